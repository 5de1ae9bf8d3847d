"""Operations that Python's own integers refuse and NumPy's allow: division by zero, and shifts by a negative count.

A traced Python number follows Python: native code raises. The check is a statement of its own, so that division itself stays the one op
that arrays use, which never fails. Floats are not checked: a traced Python float is an IEEE number, whose quotient by zero is an infinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import SCALARS
from .effects import check
from .logic import greater_equal, not_equal
from .reduce import all as all_true

if TYPE_CHECKING:
    from ..operand import Operand

__all__ = ["check_integers"]

ZERO = ("integer division or modulo by zero", "ZeroDivisionError")
NEGATIVE = ("negative shift count", "ValueError")
REFUSES = {"floor_divide": ZERO, "remainder": ZERO, "left_shift": NEGATIVE, "right_shift": NEGATIVE}


def check_integers(name: str, a: Operand | float, b: Operand | float) -> None:
    """Emit the check of an operator on two numbers, one of them traced, if both are Python integers and Python might raise for them."""
    if name not in REFUSES or not is_integer(a) or not is_integer(b):
        return
    divides = REFUSES[name] is ZERO
    if not isinstance(b, SCALARS):
        holds = not_equal(b, 0) if divides else greater_equal(b, 0)
    elif b > 0 or (b < 0 if divides else b == 0):
        return
    else:
        holds = not_equal(a, a)  # false, but not while tracing: the line may lie in a branch that is not taken
    check(all_true(holds) if holds.type.shape else holds, *REFUSES[name])


def is_integer(x: Operand | float) -> bool:
    """Whether this is a Python integer or bool, known or traced."""
    return type(x) in (bool, int) if isinstance(x, SCALARS) else x.weak and x.type.dtype.kind in "iub"
