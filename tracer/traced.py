"""The values that users compute with during tracing: values known only by type, and constants filled with one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from adjit.ir.active import current_builder
from adjit.ir.errors import TraceError, UnsupportedError
from adjit.ir.func import Value
from adjit.ir.location import Location
from adjit.ir.operand import Literal, Operand, fold_literals
from adjit.ir.ops.base import Array, Op, apply
from adjit.ir.ops.maps import Cast, Map
from adjit.ir.types import DType, TensorType, as_dtype

from .arrays import ArrayMethods, castable
from .conversion import undecided
from .convert import set_splat_class
from .frames import user_location
from .scipy_names import advice
from .sparse_products import called_by_scipy, declined

if TYPE_CHECKING:
    from .trace import Trace


class Traced(ArrayMethods, Value):
    """A value computed when the compiled function runs; during tracing only its type is known."""

    __slots__ = ("weak", "owner", "location", "memory")

    def __init__(self, type: TensorType, name: str | None = None, weak: bool = False) -> None:
        super().__init__(type, name)
        self.weak = weak
        self.owner: Trace | None = None  # the trace or region that created it: no other may use it
        self.location: Location | None = None
        self.memory: tuple[Traced | Array, ...] = ()  # arrays that this value may be a view of, as in NumPy: see `sharing`

    def __hash__(self) -> int:
        """Raise: a hash by identity would silently miss the equal key of a dict."""
        where = user_location()
        raise TypeError(
            "unhashable type: a traced value cannot be a key of a dict or an element of a set, since its value is known only when the "
            "function runs; compare it with each key, or use it as an index into an array"
            + (f"\n  {where.describe()}" if where is not None else "")
        )

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        builder = current_builder()
        if builder is None:
            raise leaked(self, op.name).at(user_location())
        return builder.apply(op, args)

    def literal(self, value: Any, type: TensorType) -> Operand:
        return (WeakSplat if self.weak else Splat)(value, type)

    def weakened(self) -> Operand:
        self.weak = True
        return self

    def settled(self) -> Operand:
        self.weak = False
        return self

    def retyped(self, dtype: DType, weak: bool) -> Operand:
        out = apply(Cast(dtype), self)
        if isinstance(out, Traced):
            out.weak = weak
        return out

    def astype(self, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True) -> Operand:
        """Cast to another dtype; casting a weakly typed value (a Python scalar) to its own dtype makes it strongly typed."""
        target = castable(self, dtype, casting)
        if self.type.dtype == target and not self.weak and not (copy and self.type.shape):
            return self
        return self.retyped(target, False)

    def copy(self, order: str = "C") -> Operand:
        """Return a value that a function may write to while the original is unchanged (native code copies only if needed)."""
        return apply(Cast(self.type.dtype), self) if self.type.shape else self

    def __copy__(self) -> Operand:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Operand:
        return self.copy()

    def overwritten(self, new: Operand) -> None:
        report_overwrite(self, new)

    def flatten(self, order: str = "C") -> Operand:
        flat = self.ravel(order)
        return flat.copy() if isinstance(flat, Traced) else flat

    # ---- operations that need an actual value

    def __mul__(self, other: Any) -> Any:
        if self.weak:
            self._refuse_repetition(other)
        return Operand.__mul__(self, other)

    def __rmul__(self, other: Any) -> Any:
        if self.weak:
            self._refuse_repetition(other)
        return Operand.__rmul__(self, other)

    def _refuse_repetition(self, other: Any) -> None:
        """Raise for `[0.0] * n`: with a Python number n, it repeats the list, and is not a product of arrays."""
        if isinstance(other, list | tuple) and self.type.dtype.kind in "iub":
            self._unknown(
                "[...] * n",
                f"how often it repeats a {'list' if isinstance(other, list) else 'tuple'} is",
                "lengths are static: name it in static=, or append to a list; for a product, convert the list to an array",
            )

    def __bool__(self) -> bool:
        self._unknown("bool()", "its truth value is", undecided())

    def __int__(self) -> int:
        self._unknown("int()", "int() of it is", "keep it traced, with .astype(int)")

    def __float__(self) -> float:
        self._unknown(
            "float()",
            "float() of it is",
            "keep it traced, with .astype(float), and use functions of NumPy",
        )

    def __complex__(self) -> complex:
        self._unknown("complex()", "complex() of it is", "keep it traced")

    def __index__(self) -> int:
        self._unknown(
            "index",
            "its value, which is needed as an index of a Python sequence, a size or a bound, is",
            "take a size from the .shape of an argument, or use a Python int: a constant, or an argument named in static=",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return (
            declined()
            if called_by_scipy()
            else self._unknown(
                "np.asarray()",
                "its elements are",
                "np.stack makes an array of a list of traced values; functions outside of NumPy and adjit do not take them",
            )
        )

    def view(self, dtype: Any = None) -> Operand:
        """Return the value itself; its bits cannot be read as another dtype."""
        if dtype is not None and as_dtype(dtype) != self.dtype:
            raise UnsupportedError(
                f"view: the bits of {self!r} cannot be read as {as_dtype(dtype).name} while tracing; convert its elements with astype, or "
                "take the view of an array before it enters the function"
            ).at(user_location())
        return self

    def __getattr__(self, name: str) -> Any:
        why = ", since its memory exists only when the function runs" if hasattr(np.ndarray, name) else ""
        raise AttributeError(f"a traced array has no attribute {name!r}{why}", name=name, obj=self)

    def numpy(self) -> Array:
        self._unknown(".numpy()", "its elements are", "return it from the function, and call .numpy() on the result")

    def item(self, *index: int) -> Any:
        self._unknown(".item()", "its elements are", "return it from the function, and call .item() on the result")

    def tolist(self) -> Any:
        self._unknown(".tolist()", "its elements are", "return it from the function, and call .tolist() on the result")

    def _unknown(self, use: str, what: str, instead: str) -> NoReturn:
        if not self._reachable():
            raise leaked(self, use).at(user_location())
        raise TraceError(f"{self!r}: {what} not known while tracing; {instead}{advice()}").at(user_location())

    def _reachable(self) -> bool:
        """Whether the trace that created this value is still active."""
        builder, home = current_builder(), self.owner.root() if self.owner else None
        while builder is not None and home is not None and builder is not home:
            builder = builder.parent
        return builder is not None

    def __format__(self, spec: str) -> str:
        if spec:
            self._unknown("format()", "its digits are", "return it from the function, and format the result")
        return repr(self)

    def __repr__(self) -> str:
        place = f" at {self.location.short}" if self.location else ""
        return f"<traced {self.type}{f' %{self.name}' if self.name else ''}{place}>"

    __str__ = __repr__


class Splat(ArrayMethods, Literal):
    """A constant filled with one value, as users hold it during tracing (`aj.zeros(3)`)."""

    __slots__ = ()
    level = 1

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        builder = current_builder()
        if builder is not None:
            args = tuple(map(builder.stand_in, args))
        folded = fold_literals(op, args)
        if folded is not None:
            return (WeakSplat if isinstance(op, Map) and all(a.weak for a in args) else Splat)(folded.value, folded.type)
        return super().apply_op(op, args) if builder is None else builder.apply(op, args)

    def literal(self, value: Any, type: TensorType) -> Operand:
        return Splat(value, type)

    def retyped(self, dtype: DType, weak: bool) -> Operand:
        out = fold_literals(Cast(dtype), (self,))
        assert out is not None
        return (WeakSplat if weak else Splat)(out.value, out.type)

    def copy(self, order: str = "C") -> Operand:
        return type(self)(self.value, self.type)  # a value of its own, which a function may write to while the original is unchanged

    def __copy__(self) -> Operand:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Operand:
        return self.copy()

    def overwritten(self, new: Operand) -> None:
        report_overwrite(self, new)

    def numpy(self) -> Array:
        return np.array(self.array())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array(), dtype=dtype)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __index__(self) -> int:
        return self.numpy().__index__()


class WeakSplat(Splat):
    """A Python scalar next to a traced value: it leaves a weakly typed value weak."""

    __slots__ = ()
    weak = True


set_splat_class(Splat)


def report_overwrite(old: Operand, new: Operand) -> None:
    """Report to the active trace that a write has replaced a value."""
    builder = current_builder()
    if builder is not None:
        builder.overwrite(old, new)


def leaked(value: Traced, what: str, here: Trace | None = None) -> TraceError:
    if here is not None and value.owner is not None and value.owner.root() is here.root():
        return TraceError(
            f"{what}: {value!r} was computed inside a branch or a loop and is used outside, where it may not exist; assign it to a "
            "variable of the function, or return it from the branch or body"
        )
    home = value.owner.root().name if value.owner else ""
    return TraceError(
        f"{what}: {value!r} was used outside of the trace{f' of {home}' if home else ''} that made it; a traced value must not be kept "
        "in a global, an attribute or a closure: return it from the function, or assign it to a Variable"
    )
