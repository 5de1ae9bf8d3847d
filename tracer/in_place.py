"""`y += value` and the other augmented assignments on arrays, with NumPy's result: `y` keeps its dtype and its shape.

In NumPy they change the array, for everything that refers to it. Arrays are immutable here, so `y` becomes a new array. A trace records
that the old one is outdated, and raises an error if it is used again (`Trace.overwrite`). Values without axes are numbers, which Python
replaces.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import trim

from .frames import user_location

SYMBOLS: dict[Callable[[Any, Any], Any], str] = {
    operator.add: "+=", operator.sub: "-=", operator.mul: "*=", operator.truediv: "/=", operator.floordiv: "//=", operator.mod: "%=",
    operator.pow: "**=", operator.matmul: "@=", operator.and_: "&=", operator.or_: "|=", operator.xor: "^=", operator.lshift: "<<=",
    operator.rshift: ">>=",
}  # fmt: skip


def fitted(x: Operand, out: Operand, operation: Callable[[Any, Any], Any]) -> Operand:
    """Return the result of `x += value`, computed by `x + value`: cast to the dtype of x, if that keeps its kind, as in NumPy."""
    symbol = SYMBOLS[operation]
    instead = f"write y = y {symbol[:-1]} value, which makes another array"
    if not np.can_cast(out.type.dtype, x.type.dtype, "same_kind"):
        raise DTypeError(f"{symbol}: the result is {out.type}, which {x.type} cannot hold; {instead}, or cast the value").at(
            user_location()
        )
    if out.type.shape != x.type.shape:
        raise ShapeError(f"{symbol}: the result is {out.type} and does not fit into {x.type}; {instead}").at(user_location())
    return out if out.type.dtype == x.type.dtype else out.astype(x.type.dtype)


class AugmentedAssignment(Operand):
    """Augmented assignment."""

    __slots__ = ()
    in_place = True  # False where `y += value` means `y = y + value`, as in TensorFlow

    def overwritten(self, new: Operand) -> None:
        """Note that this object is no longer the value of the array."""

    def _update(self, operation: Callable[[Any, Any], Any], value: Any) -> Any:
        if not self.in_place or not self.type.shape:
            return NotImplemented  # Python computes `y = y + value`
        try:
            out = fitted(self, operation(self, value), operation)
        except Exception as error:
            trim(error)
            raise
        self.overwritten(out)
        return out

    def __iadd__(self, value: Any) -> Any:
        return self._update(operator.add, value)

    def __isub__(self, value: Any) -> Any:
        return self._update(operator.sub, value)

    def __imul__(self, value: Any) -> Any:
        return self._update(operator.mul, value)

    def __itruediv__(self, value: Any) -> Any:
        return self._update(operator.truediv, value)

    def __ifloordiv__(self, value: Any) -> Any:
        return self._update(operator.floordiv, value)

    def __imod__(self, value: Any) -> Any:
        return self._update(operator.mod, value)

    def __ipow__(self, value: Any, modulus: Any = None) -> Any:
        return self._update(operator.pow, value)

    def __imatmul__(self, value: Any) -> Any:
        return self._update(operator.matmul, value)

    def __iand__(self, value: Any) -> Any:
        return self._update(operator.and_, value)

    def __ior__(self, value: Any) -> Any:
        return self._update(operator.or_, value)

    def __ixor__(self, value: Any) -> Any:
        return self._update(operator.xor, value)

    def __ilshift__(self, value: Any) -> Any:
        return self._update(operator.lshift, value)

    def __irshift__(self, value: Any) -> Any:
        return self._update(operator.rshift, value)
