"""Products with logarithms, as they appear in entropies, with their limits at 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from ..elementary import log, log1p
from ..logic import equal
from ..maps import where as where_
from .base import Special, special
from .numbers import Num, where

__all__ = ["xlogy", "xlog1py", "entr", "rel_entr", "kl_div", "logit"]

if TYPE_CHECKING:
    from ...operand import Operand

INF, NAN = math.inf, math.nan


def share(x: Operand, y: Operand) -> Operand:
    """x / y, and 0 where x is 0: there the function is 0 whatever y is."""
    return where_(equal(x, 0.0), 0.0, x / y)


class Xlogy(Special):
    """x log(y), and 0 where x is 0 (unless y is NaN)."""

    arity: ClassVar[int | None] = 2
    narrow = True

    def formula(self, *xs: Num) -> Num:
        x, y = xs
        return where(x.equals(0.0), where(y.is_nan(), NAN, x), x * y.log())

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return log(args[1]) if i == 0 else share(args[0], args[1])


class Xlog1py(Special):
    """x log(1 + y), and 0 where x is 0 (unless y is NaN)."""

    arity: ClassVar[int | None] = 2
    name = "xlog1py"
    narrow = True

    def formula(self, *xs: Num) -> Num:
        x, y = xs
        return where(x.equals(0.0), where(y.is_nan(), NAN, x), x * y.log1p())

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return log1p(args[1]) if i == 0 else share(args[0], 1.0 + args[1])


class Entr(Special):
    """-x log(x), 0 at 0, -inf for negative x."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        return where(x.equals(0.0), 0.0, where(x < 0.0, -INF, -x * x.log()))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return -1.0 - log(args[0])


def log_ratio(x: Num, y: Num) -> Num:
    """log(x / y), also where the quotient leaves the range of the format."""
    ratio = x / y
    return where((ratio > 0.25) & (ratio < 4.0), ratio.log(), x.log() - y.log())


class RelEntr(Special):
    """x log(x / y), 0 where x is 0 and y >= 0, otherwise infinite unless both are positive."""

    arity: ClassVar[int | None] = 2

    def formula(self, *xs: Num) -> Num:
        x, y = xs
        value = where((x > 0.0) & (y > 0.0), x * log_ratio(x, y), where(x.equals(0.0) & (y >= 0.0), 0.0 * x, INF))
        return where(x.is_nan() | y.is_nan(), NAN, value)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        p, q = args
        return log(p / q) + 1.0 if i == 0 else -share(p, q)


class KlDiv(Special):
    """x log(x / y) - x + y, y where x is 0 and y >= 0, otherwise infinite unless both are positive."""

    arity: ClassVar[int | None] = 2

    def formula(self, *xs: Num) -> Num:
        x, y = xs
        value = where((x > 0.0) & (y > 0.0), x * log_ratio(x, y) - x + y, where(x.equals(0.0) & (y >= 0.0), y, INF))
        return where(x.is_nan() | y.is_nan(), NAN, value)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        p, q = args
        return log(p / q) if i == 0 else 1.0 - share(p, q)


class Logit(Special):
    """log(p / (1 - p))."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        return xs[0].call("logit")

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 / (args[0] * (1.0 - args[0]))


def xlogy(x: Operand | float, y: Operand | float) -> Operand:
    return special(Xlogy(), x, y)


def xlog1py(x: Operand | float, y: Operand | float) -> Operand:
    return special(Xlog1py(), x, y)


def entr(x: Operand) -> Operand:
    return special(Entr(), x)


def rel_entr(x: Operand | float, y: Operand | float) -> Operand:
    return special(RelEntr(), x, y)


def kl_div(x: Operand | float, y: Operand | float) -> Operand:
    return special(KlDiv(), x, y)


def logit(p: Operand) -> Operand:
    return special(Logit(), p)
