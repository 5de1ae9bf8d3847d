"""The base of special functions: an op whose lowering is a formula on `Num`s, computed in float64 unless it is stable in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import UnsupportedError
from ...types import F64, TensorType, math_dtype
from ..base import Array, Emitter, Reg, Writing, apply, with_attributes
from ..maps import SCALAR, Map, cast, common_math_dtype, promoted
from .arrays import evaluated
from .numbers import Num, seeded, top

if TYPE_CHECKING:
    from ...operand import Operand

MAX_ORDER = 4  # of derivatives that have no closed form; the native code of order 7 overflows the stack


class Special(Map, abstract=True):
    """An elementwise function that is given by `formula`, in native code and eagerly.

    Float32 is computed in float64, and rounded once, unless the formula is `narrow`: stable in float32, with polynomials of lower degrees.
    """

    kinds = "f"
    singular = True
    narrow: ClassVar[bool] = False
    arity: ClassVar[int | None] = 1

    def formula(self, *xs: Num) -> Num:
        raise NotImplementedError(self.name)

    def single(self, *xs: Num) -> Num:
        """The formula in float64 of arguments that were float32, as the result will be: one with fewer digits, if there is one."""
        return self.formula(*xs)

    def evaluate(self, *arrays: Array) -> Array:
        return evaluated(self.scalar, arrays[0].dtype, *arrays)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.formula(self, *args)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        strict = emit.strict()
        if self.narrow or xs[0].dtype == F64:
            return self.formula(*(Num(strict, x) for x in xs)).reg
        return strict.convert(self.single(*(Num(strict, strict.convert(x, F64)) for x in xs)).reg, xs[0].dtype)


@with_attributes
class Derived(Special, abstract=True):
    """A function whose derivatives have no closed form in some arguments: they are computed by its own formula, on dual numbers.

    The op is the derivative of order `orders[i]` in argument i.
    """

    orders: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        if len(self.orders) != self.arity or min(self.orders) < 0:
            raise UnsupportedError(f"{self.name}: takes a derivative order for each of its {self.arity} arguments, not {list(self.orders)}")
        if sum(self.orders) > MAX_ORDER:  # the formula doubles with every order
            raise UnsupportedError(f"{self.name}: derivatives up to order {MAX_ORDER} are supported, not {sum(self.orders)}")
        return super().infer(*types)

    def value(self, *xs: Num) -> Num:
        """The function itself, on numbers that may be dual."""
        raise NotImplementedError(self.name)

    def formula(self, *xs: Num) -> Num:
        return top(self.value(*seeded(xs, self.orders)))

    def raised(self, i: int, *args: Operand) -> Operand:
        """The derivative in argument i, by the same formula."""
        return apply(type(self)(tuple(order + (j == i) for j, order in enumerate(self.orders))), *args)


def special(op: Special, *args: Operand | float) -> Operand:
    """Apply an op to operands of any dtypes and shapes that broadcast; Python scalars are weak."""
    if len(args) == 1:
        (x,) = args
        assert not isinstance(x, SCALAR)
        return apply(op, cast(x, math_dtype(x.type.dtype)))
    return apply(op, *promoted(op.name, args, common_math_dtype(*args)))
