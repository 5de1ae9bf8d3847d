"""Elementwise ops: their base classes, promotion and broadcasting, and the few that the others are built on.

An elementwise op takes operands of one shape and (except for `where` and comparisons) one dtype: broadcasting and promotion are explicit in
the IR, inserted here by `unary`, `binary` and `ternary`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import source_helpers
from ..cost import NOTHING, Cost, Counted, Counting
from ..errors import DTypeError, ShapeError
from ..operand import Operand
from ..types import (
    BOOL,
    DTYPE_NAMES,
    F32,
    F64,
    DType,
    TensorType,
    broadcast_shapes,
    computed,
    identical,
    math_dtype,
    promote,
    real_dtype,
    weak_example,
)
from .base import Array, Emitter, Op, Reg, Registers, Writing, apply, with_attributes
from .shape import broadcast_to

__all__ = ["astype", "cast", "where", "strong_mul"]

if TYPE_CHECKING:
    from ..func import Stmt


KINDS = {"f": "floats", "c": "complex numbers", "i": "integers", "u": "unsigned integers", "b": "bools"}


COMPLEX = 4  # operations on real numbers for one on complex numbers, roughly

_costs: dict[tuple[Op | type[Op], tuple[DType, ...]], Cost] = {}


class Masking(threading.local):
    """Whether the cotangents being pulled back may be zero because a `where` masked them: then every product is a `strong_mul`.

    Otherwise a zero cotangent has no special meaning, and a comparison per product would be wasted.
    """

    active = False


masking = Masking()


class Map(Op, abstract=True):
    """Elementwise. `derivative(i, y, *args)` is the partial derivative with respect to argument i: both modes multiply by it.

    An op whose derivative can be infinite or NaN where the op itself is finite sets `singular`: a zero tangent or cotangent then stays
    zero.
    """

    is_elementwise = True
    writes_strided = True
    kinds: ClassVar[str] = "fiub"  # supported dtype kinds: float, int, unsigned, bool; "c" for complex
    singular: ClassVar[bool] = False
    numpy: ClassVar[str] = ""  # the op as an expression of NumPy Python, with `{}` for each operand: see `Op.python`
    counts: ClassVar[bool] = False  # whether Python computes the same on the counters of loops

    def infer(self, *types: TensorType) -> TensorType:
        first = types[0]
        for other in types[1:]:
            if other.shape != first.shape:
                raise ShapeError(f"{self.name}: shapes differ: {first} and {other}")
            if other.dtype != first.dtype:
                raise DTypeError(f"{self.name}: dtypes differ: {first} and {other}")
        self.check_kind(first.dtype)
        return self.result(first)

    def check_kind(self, dtype: DType) -> None:
        if dtype.kind not in self.kinds:
            taken = ", ".join(KINDS[kind] for kind in self.kinds)
            raise DTypeError(f"{self.name}: {DTYPE_NAMES[dtype]} operands are not supported; it takes {taken}: cast with .astype")

    def result(self, operand: TensorType) -> TensorType:
        return operand

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.elementwise(self.numpy, *args) if self.numpy else super().python(write, *args)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand | float | None:
        """d result / d args[i], elementwise; None if the op is not differentiable with respect to it."""
        return None

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        partial = self.derivative(i, y, *args)
        if partial is None:
            return None
        return strong_mul(d, partial) if self.singular or masking.active else d * partial

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return self._chain(i, y, args, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return self._chain(i, y, args, d)

    def widened(self, size: int) -> Map:
        return self

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        """Native code for a few elements at a time."""
        raise NotImplementedError(f"{self.name}: no lowering")

    def cost(self, *types: TensorType) -> Cost:
        each, result = self.element_cost(*(t.dtype for t in types)), self.infer(*types)
        return Cost(each.flops * result.size, each.latency, result.nbytes + sum(t.nbytes for t in types))

    def element_cost(self, *dtypes: DType) -> Cost:
        """The cost of one element in registers, counted in its lowering. Complex numbers are computed by their parts."""
        key = (self.key, dtypes)
        found = _costs.get(key)  # the cost of each statement of a program is needed several times
        if found is None:
            found = _costs[key] = self._counted_cost(dtypes)
        return found

    def _counted_cost(self, dtypes: tuple[DType, ...]) -> Cost:
        if any(dtype.kind == "c" for dtype in dtypes):
            real = self.element_cost(*map(real_dtype, dtypes))
            return real._replace(flops=COMPLEX * real.flops)
        emit = Counting()
        result = self.scalar(emit, *(Counted(dtype, 0) for dtype in dtypes))
        return Cost(emit.operations, result.ready)

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return (*args, *results)

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        kernel.elementwise(stmt)

    def splat(self, *values: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.evaluate(*(np.asarray(v) for v in values))[()]


class Unary(Map, abstract=True):
    """One operand."""

    arity = 1


class FloatUnary(Unary, abstract=True):
    """One floating-point operand, lowered to a function of the vector math library of the same name."""

    kinds = "f"

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.call(self.name, *xs)


class ComplexUnary(FloatUnary, abstract=True):
    """A function of one operand that is holomorphic, so that one derivative serves real and complex numbers."""

    kinds = "fc"


class Binary(Map, abstract=True):
    """Two operands of one type."""

    arity = 2


def element_cost(stmt: Stmt) -> Cost:
    """The cost of one element of an elementwise statement; other statements have none."""
    return stmt.op.element_cost(*[x.type.dtype for x in stmt.args]) if isinstance(stmt.op, Map) else NOTHING


# ---- promotion and broadcasting: the basis of the frontend functions

SCALAR = (bool, int, float, complex)  # a tuple: unions take twice as long


def cast(x: Operand, dtype: Any) -> Operand:
    """`x` as `dtype`; emits nothing if it already has it. Complex numbers do not lose their imaginary part: see `astype`."""
    dtype = dtype if isinstance(dtype, np.dtype) else np.dtype(dtype.dtype)  # the `.dtype` of TensorFlow's tensors is not a NumPy dtype
    if x.type.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(f"{x.type} would lose its imaginary part as {DTYPE_NAMES.get(dtype, dtype)}; take .real, or cast with .astype")
    return x if x.type.dtype == dtype else apply(Cast(dtype), x)


def astype(x: Operand, dtype: DType) -> Operand:
    """`x` as `dtype`; of complex numbers, real dtypes take the real part."""
    return x if x.type.dtype == dtype else apply(Cast(dtype), x)


def common_dtype(*operands: Operand | complex) -> DType:
    """The dtype to which NumPy promotes the operands; Python scalars and weakly typed values do not determine it."""
    strong = None
    for x in operands:  # the usual case without NumPy's help: floats of one dtype, and real Python scalars
        if is_weak_complex(x):
            break
        if isinstance(x, Operand) and not x.weak:
            if strong is not None and strong != x.type.dtype:
                break
            strong = x.type.dtype
    else:
        if strong is not None and strong.kind == "f":
            return computed(strong)
    return promote(*(x if not isinstance(x, Operand) else weak_example(x.type.dtype) if x.weak else x.type.dtype for x in operands))


def is_weak_complex(x: Operand | complex) -> bool:
    """Whether x is a Python complex number, or represents one: next to real numbers it makes the result complex."""
    return x.weak and x.type.dtype.kind == "c" if isinstance(x, Operand) else type(x) is complex


def has_complex(a: Operand | complex, b: Operand | complex) -> bool:
    """Whether two operands promote to complex numbers."""
    left = a.type.dtype.kind == "c" if isinstance(a, Operand) else type(a) is complex
    return left or (b.type.dtype.kind == "c" if isinstance(b, Operand) else type(b) is complex)


def common_math_dtype(*operands: Operand | complex) -> DType:
    """The dtype in which NumPy computes a transcendental function of several operands."""
    common = common_dtype(*operands)
    if common.kind in "fc":
        return common
    return math_dtype(*(x.type.dtype for x in operands if isinstance(x, Operand) and not x.weak))


def promoted(name: str, operands: tuple[Operand | complex, ...], dtype: DType | None = None) -> list[Operand]:
    """Operands converted to one dtype and one shape, Python scalars as literals."""
    if dtype is None:
        alike = of_one_type(operands)
        if alike is not None:
            return alike
        dtype = common_dtype(*operands)
    arrays = [x for x in operands if isinstance(x, Operand)]
    leader = arrays[0]
    shape = leader.type.shape
    if not all(identical(x.type.shape, shape) for x in arrays):
        shape = broadcast_shapes(name, *(x.type.shape for x in arrays))
    out: list[Operand] = []
    for x in operands:
        if not isinstance(x, Operand):
            out.append(leader.literal(checked_scalar(name, x, dtype), TensorType(dtype, shape)))
        elif x.type.dtype is dtype and x.type.shape is shape:
            out.append(x)
        else:
            out.append(broadcast_to(cast(x, dtype), shape))
    return out


def of_one_type(operands: tuple[Operand | complex, ...]) -> list[Operand] | None:
    """The operands if they are floats of one type, the usual case, or Python floats next to one: these need no promotion."""
    leader: Operand | None = None
    for x in operands:
        if type(x) is float:
            continue
        if not isinstance(x, Operand) or x.weak or (leader is not None and x.type is not leader.type):
            return None
        leader = x
    if leader is None or not (leader.type.dtype is F64 or leader.type.dtype is F32):
        return None
    return [leader.literal(x, leader.type) if type(x) is float else x for x in operands]  # type: ignore[misc] # operands


WHERE_WRAPS = tuple(map(int, np.__version__.split(".")[:2])) < (2, 5)  # Python integers out of range in `np.where`; later versions raise


def checked_scalar(name: str, value: complex, dtype: DType) -> complex:
    """A Python scalar that fits dtype: raises for integers out of range, as NumPy does."""
    if dtype.kind in "iu" and isinstance(value, int):
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise DTypeError(f"{name}: the Python integer {value} is out of bounds for {DTYPE_NAMES[dtype]}")
    if type(value) is complex and dtype.kind != "c":
        raise DTypeError(f"{name}: the complex number {value} does not fit {DTYPE_NAMES[dtype]}; take its real part")
    return value


def wrapped_scalar(name: str, value: complex, dtype: DType) -> complex:
    """A Python scalar as an array's element: integers wrap, as in the functions of NumPy that cast arrays."""
    if dtype.kind in "iu" and isinstance(value, int) and -(2**63) <= value < 2**64:
        bits = 8 * dtype.itemsize
        wrapped = value & ((1 << bits) - 1)
        return wrapped - (1 << bits) if dtype.kind == "i" and wrapped >> (bits - 1) else wrapped
    return checked_scalar(name, value, dtype)


def binary(op: Binary, a: Operand | float, b: Operand | float) -> Operand:
    return apply(op, *promoted(op.name, (a, b)))


def float_binary(op: Binary, a: Operand | float, b: Operand | float) -> Operand:
    """A binary op computed in floating point, to which integers are promoted as in NumPy."""
    return apply(op, *promoted(op.name, (a, b), common_math_dtype(a, b)))


def unary(op: Unary, x: Operand) -> Operand:
    return apply(op, x)


def float_unary(op: Unary, x: Operand) -> Operand:
    return apply(op, cast(x, math_dtype(x.type.dtype)))


def strong_mul(d: Operand, partial: Operand | float) -> Operand:
    """d * partial, but zero wherever d is zero, whatever the value of partial."""
    return d * partial if isinstance(partial, float | int) else apply(StrongMul(), d, partial)


# ---- the ops that the functions above need


@with_attributes
class Cast(Unary):
    """Change of dtype, as NumPy's `astype`; of a complex number, only the real part becomes a real number."""

    dtype: DType
    kinds: ClassVar[str] = "fiubcV"
    takes_stored: ClassVar[bool] = True

    def result(self, operand: TensorType) -> TensorType:
        return operand.with_dtype(self.dtype)

    def evaluate(self, *arrays: Array) -> Array:
        x = arrays[0].astype(computed(arrays[0].dtype), copy=False)
        if computed(self.dtype) != self.dtype:
            with np.errstate(over="ignore"):
                return Cast(F32).evaluate(x).astype(self.dtype)
        if x.dtype.kind == "c" and self.dtype.kind not in "cb":
            x = x.real
        with np.errstate(invalid="ignore", over="ignore"):
            if x.dtype.kind == "f" and self.dtype.kind in "iu":
                return np.asarray(source_helpers.saturate(x, self.dtype))
            return x.astype(self.dtype)

    def python(self, write: Writing, *args: Operand) -> Any:
        (x,) = args
        saturates = x.type.dtype.kind in "fc" and self.dtype.kind in "iu"
        part = "{}.real" if x.type.is_complex and self.dtype.kind not in "cb" else "{}"
        return write(f"saturate({part}, {{}})" if saturates else f"{part}.astype({{}})", write.array(x), write.dtype(self.dtype))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return astype(d, self.dtype) if args[0].type.is_inexact and self.dtype.kind in "fcV" else None

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return astype(d, args[0].type.dtype) if args[0].type.is_inexact and self.dtype.kind in "fcV" else None

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.convert(xs[0], self.dtype)


class Mul(Binary):
    """a * b; logical and for bools."""

    numpy = "{} * {}"
    kinds = "fiubc"

    def evaluate(self, *arrays: Array) -> Array:
        return np.multiply(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return args[1 - i]

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.mul(*xs)


class StrongMul(Binary):
    """d * p, but 0 wherever d is 0: a product with a derivative p that may be infinite where its value is not needed."""

    numpy = "strong_mul({}, {})"
    kinds = "fc"

    def evaluate(self, *arrays: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            return source_helpers.strong_mul(*arrays)  # type: ignore[no-any-return]

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return strong_mul(d, args[1]) if i == 0 else strong_mul(args[0], d)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        d, p = xs
        return emit.select(emit.compare("eq", d, emit.like(d, 0.0)), d, emit.mul(d, p))


class Where(Map):
    """`a` where the condition holds, else `b`. Each branch's derivative is masked, never multiplied."""

    numpy = "np.where({}, {}, {})"

    def infer(self, *types: TensorType) -> TensorType:
        condition, a, b = types
        if condition.dtype != BOOL:
            raise DTypeError(f"where: the condition must be bool, not {condition}")
        if a != b or condition.shape != a.shape:
            raise ShapeError(f"where: types differ: {condition}, {a} and {b}")
        return a

    def evaluate(self, *arrays: Array) -> Array:
        return np.where(*arrays)

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        condition = args[0]
        zero = d.literal(0.0, d.type)
        return None if i == 0 else apply(self, condition, d, zero) if i == 1 else apply(self, condition, zero, d)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.select(*xs)


def where(condition: Operand, a: Operand | complex, b: Operand | complex, *, wraps: bool = WHERE_WRAPS) -> Operand:
    """`wraps`: whether Python integers out of range do."""
    dtype, scalar = common_dtype(a, b), wrapped_scalar if wraps else checked_scalar
    operands = [x for x in (condition, a, b) if isinstance(x, Operand)]
    shape = broadcast_shapes("where", *(x.type.shape for x in operands))
    branches = [
        condition.literal(scalar("where", x, dtype), TensorType(dtype, shape))
        if isinstance(x, SCALAR)
        else broadcast_to(cast(x, dtype), shape)
        for x in (a, b)
    ]
    return apply(Where(), broadcast_to(cast(condition, BOOL), shape), *branches)


class Copy(Unary):
    """The operand in a separate, contiguous buffer: inserted by the buffer planner where a view is not enough."""

    numpy = "{}.copy()"
    kinds = "fiubcV"
    takes_stored = True

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0].copy()

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return d

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return xs[0]
