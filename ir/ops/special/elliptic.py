"""Complete elliptic integrals, by arithmetic-geometric means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .base import Derived, special
from .numbers import Num, where

__all__ = ["ellipk", "ellipe"]

if TYPE_CHECKING:
    from ...operand import Operand

INF = math.inf
STEPS = 8  # the number of correct digits doubles with each; parameters next to 1, and large negative ones, need the most


def means(m: Num) -> tuple[Num, Num]:
    """K(m), and 1 - E(m) / K(m) as the sum of 2**(n - 1) c_n², which is accurate for small m too."""
    a, b = m * 0.0 + 1.0, (1.0 - m).sqrt()
    square, total = m, m * 0.5
    for n in range(STEPS):
        a, b = (a + b) * 0.5, (a * b).sqrt()
        square = square * square / (a * a * 16.0)
        total = total + square * 2.0**n
    return (math.pi / 2.0) / a, total


class Ellipk(Derived):
    """The complete elliptic integral of the first kind of the parameter m < 1."""

    def value(self, *xs: Num) -> Num:
        (m,) = xs
        value, _ = means(m)
        plain = m.primal
        return where(plain.equals(1.0), value.like(INF), where(plain.equals(-INF), value.like(0.0), value))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return self.raised(0, *args)


class Ellipe(Derived):
    """The complete elliptic integral of the second kind of the parameter m <= 1."""

    def value(self, *xs: Num) -> Num:
        """For m > 1/2 by Legendre's relation, in which nothing cancels."""
        (m,) = xs
        plain = m.primal
        near = plain > 0.5
        first, total = means(m)
        complement = 1.0 - m
        other, other_total = means(where(near, complement, 0.5))
        value = where(near, (math.pi / 2.0) / other + first * other_total, first * (1.0 - total))
        return where(plain.equals(1.0), value.like(1.0), where(plain.equals(-INF), value.like(INF), value))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return self.raised(0, *args)


def ellipk(m: Operand) -> Operand:
    return special(Ellipk((0,)), m)


def ellipe(m: Operand) -> Operand:
    return special(Ellipe((0,)), m)
