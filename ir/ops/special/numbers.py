"""Numbers in terms of which special functions are written: registers of an emitter with operators, and dual numbers made of them.

An algorithm written for `Num` runs in native code and, with the emitter `Numpy`, on arrays. On `Dual` numbers it computes a derivative as
well; dual numbers of dual numbers give derivatives of higher order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...types import F32
from ..base import Emitter, Reg

SINGLE = 2.0**-28  # the relative error of polynomials in float32


class Num:
    """A register of floats with Python's operators. Comparisons return a `Num` of bools, for `where`."""

    __slots__ = ("emit", "reg")

    def __init__(self, emit: Emitter, reg: Reg) -> None:
        self.emit = emit
        self.reg = reg

    def _reg(self, other: Num | float) -> Reg:
        if isinstance(other, Dual):
            raise TypeError("the tangent of a dual number would be lost")
        return other.reg if isinstance(other, Num) else self.emit.like(self.reg, other)

    def like(self, value: float) -> Num:
        return Num(self.emit, self.emit.like(self.reg, value))

    def by_format(self, double: float, single: float) -> float:
        """One of two constants: for float64, or for float32."""
        return single if self.reg.dtype == F32 else double

    @property
    def huge(self) -> float:
        """A number whose sums with others, and small multiples, are finite."""
        return self.by_format(1e300, 1e37)

    # ---- arithmetic

    def __add__(self, other: Num | float) -> Num:
        return Num(self.emit, self.emit.add(self.reg, self._reg(other)))

    def __radd__(self, other: Num | float) -> Num:
        return self + other

    def __sub__(self, other: Num | float) -> Num:
        return Num(self.emit, self.emit.sub(self.reg, self._reg(other)))

    def __rsub__(self, other: Num | float) -> Num:
        return Num(self.emit, self.emit.sub(self._reg(other), self.reg))

    def __mul__(self, other: Num | float) -> Num:
        return Num(self.emit, self.emit.mul(self.reg, self._reg(other)))

    def __rmul__(self, other: Num | float) -> Num:
        return self * other

    def __truediv__(self, other: Num | float) -> Num:
        return Num(self.emit, self.emit.fdiv(self.reg, self._reg(other)))

    def __rtruediv__(self, other: Num | float) -> Num:
        return Num(self.emit, self.emit.fdiv(self._reg(other), self.reg))

    def __neg__(self) -> Num:
        return Num(self.emit, self.emit.neg(self.reg))

    def __abs__(self) -> Num:
        return Num(self.emit, self.emit.fabs(self.reg))

    def mad(self, factor: Num | float, addend: Num | float) -> Num:
        """self * factor + addend, rounded once or twice."""
        if isinstance(factor, Dual) or isinstance(addend, Dual):
            return self * factor + addend
        return Num(self.emit, self.emit.mad(self.reg, self._reg(factor), self._reg(addend)))

    def fma(self, factor: Num | float, addend: Num | float) -> Num:
        """self * factor + addend, with the exact product."""
        return Num(self.emit, self.emit.fma(self.reg, self._reg(factor), self._reg(addend)))

    def square_pair(self) -> tuple[Num, Num]:
        """self² as a rounded value and its error."""
        high = self * self
        return high, self.fma(self, -high)

    # ---- functions

    def call(self, function: str, *others: Num | float) -> Num:
        """A function of the vector math library."""
        if others and isinstance(others[0], Dual):
            return others[0].lift(self).call(function, *others)
        return Num(self.emit, self.emit.call(function, self.reg, *map(self._reg, others)))

    def exp(self) -> Num:
        return self.call("exp")

    def log(self) -> Num:
        return self.call("log")

    def exp_bounded(self) -> Num:
        """exp of an argument between -700 and 700; some number elsewhere, NaN included."""
        return self.call("exp_bounded")

    def log_normal(self) -> Num:
        """log of a positive number that is not subnormal; some number elsewhere, NaN included."""
        return self.call("log_normal")

    def log1p(self) -> Num:
        return self.call("log1p")

    def sqrt(self) -> Num:
        return Num(self.emit, self.emit.sqrt(self.reg))

    def power(self, exponent: Num | float) -> Num:
        return self.call("pow", exponent)

    def rint(self) -> Num:
        return Num(self.emit, self.emit.rint(self.reg))

    def floor(self) -> Num:
        return Num(self.emit, self.emit.floor(self.reg))

    def copysign(self, sign: Num) -> Num:
        return Num(self.emit, self.emit.copysign(self.reg, sign.reg))

    # ---- comparisons, false for NaN

    def _compare(self, predicate: str, other: Num | float) -> Num:
        return Num(self.emit, self.emit.compare(predicate, self.reg, self._reg(other.primal if isinstance(other, Num) else other)))

    def __lt__(self, other: Num | float) -> Num:
        return self._compare("lt", other)

    def __le__(self, other: Num | float) -> Num:
        return self._compare("le", other)

    def __gt__(self, other: Num | float) -> Num:
        return self._compare("gt", other)

    def __ge__(self, other: Num | float) -> Num:
        return self._compare("ge", other)

    def equals(self, other: Num | float) -> Num:
        return self._compare("eq", other)

    def is_nan(self) -> Num:
        return Num(self.emit, self.emit.unordered(self.reg, self.reg))

    def __and__(self, other: Num) -> Num:
        return Num(self.emit, self.emit.and_(self.reg, other.reg))

    def __or__(self, other: Num) -> Num:
        return Num(self.emit, self.emit.or_(self.reg, other.reg))

    def clamp(self, low: float | None = None, high: float | None = None) -> Num:
        """self limited to [low, high]; NaN stays NaN."""
        out = self
        if low is not None:
            out = where(out < low, low, out)
        if high is not None:
            out = where(out > high, high, out)
        return out

    # ---- structure, for loops

    def leaves(self) -> list[Reg]:
        return [self.reg]

    def rebuilt(self, leaves: Any) -> Num:
        return Num(self.emit, next(leaves))

    @property
    def primal(self) -> Num:
        return self


class Dual(Num):
    """A value and its tangent, each of which may be dual itself."""

    __slots__ = ("tangent", "value")

    def __init__(self, value: Num, tangent: Num) -> None:
        self.value = value
        self.tangent = tangent
        super().__init__(value.emit, value.primal.reg)

    def lift(self, other: Num | float) -> Dual:
        """A constant, or a number of lower order, as a dual number like this one."""
        if isinstance(other, Dual) and type(other.value) is type(self.value):
            return other
        value = self.value.lift(other) if isinstance(self.value, Dual) else other if isinstance(other, Num) else self.value.like(other)
        return Dual(value, self.value.like(0.0))

    def like(self, value: float) -> Num:
        return self.lift(value)

    def chain(self, value: Num, slope: Num | float) -> Dual:
        return Dual(value, self.tangent * slope)

    def __add__(self, other: Num | float) -> Num:
        o = self.lift(other)
        return Dual(self.value + o.value, self.tangent + o.tangent)

    def __radd__(self, other: Num | float) -> Num:
        return self + other

    def __sub__(self, other: Num | float) -> Num:
        o = self.lift(other)
        return Dual(self.value - o.value, self.tangent - o.tangent)

    def __rsub__(self, other: Num | float) -> Num:
        return self.lift(other) - self

    def __mul__(self, other: Num | float) -> Num:
        if not isinstance(other, Num):
            return Dual(self.value * other, self.tangent * other)
        o = self.lift(other)
        return Dual(self.value * o.value, self.value * o.tangent + self.tangent * o.value)

    def __rmul__(self, other: Num | float) -> Num:
        return self * other

    def __truediv__(self, other: Num | float) -> Num:
        if not isinstance(other, Num):
            return Dual(self.value / other, self.tangent / other)
        o = self.lift(other)
        quotient = self.value / o.value
        return Dual(quotient, (self.tangent - quotient * o.tangent) / o.value)

    def __rtruediv__(self, other: Num | float) -> Num:
        return self.lift(other) / self

    def __neg__(self) -> Num:
        return Dual(-self.value, -self.tangent)

    def __abs__(self) -> Num:
        return where(self < 0.0, -self, self)

    def mad(self, factor: Num | float, addend: Num | float) -> Num:
        return self * factor + addend

    def call(self, function: str, *others: Num | float) -> Num:
        x = self.value
        if function == "exp":
            y = x.exp()
            return self.chain(y, y)
        if function == "log":
            return self.chain(x.log(), 1.0 / x)
        if function == "log1p":
            return self.chain(x.log1p(), 1.0 / (1.0 + x))
        if function == "sin":
            return self.chain(x.call("sin"), x.call("cos"))
        if function == "cos":
            return self.chain(x.call("cos"), -x.call("sin"))
        if function in ("pow", "pow_short"):
            e = self.lift(others[0])
            y = x.call(function, e.value)
            return Dual(y, y * (e.tangent * x.log() + e.value * self.tangent / x))
        raise NotImplementedError(f"no derivative of {function} here")

    def sqrt(self) -> Num:
        root = self.value.sqrt()
        return self.chain(root, 0.5 / root)

    def leaves(self) -> list[Reg]:
        return [*self.value.leaves(), *self.tangent.leaves()]

    def rebuilt(self, leaves: Any) -> Num:
        return Dual(self.value.rebuilt(leaves), self.tangent.rebuilt(leaves))

    @property
    def primal(self) -> Num:
        return self.value.primal


def where(condition: Num, a: Num | float, b: Num | float) -> Num:
    """`a` where the condition holds, else `b`; at least one is a `Num`."""
    if isinstance(a, Dual) or isinstance(b, Dual):
        model = deeper(a, b)
        x, y = model.lift(a), model.lift(b)
        return Dual(where(condition, x.value, y.value), where(condition, x.tangent, y.tangent))
    like = a if isinstance(a, Num) else b
    assert isinstance(like, Num)
    return Num(like.emit, like.emit.select(condition.reg, like._reg(a), like._reg(b)))


def where_any(condition: Num, compute: Callable[[], Num], otherwise: Num) -> Num:
    """`where(condition, compute(), otherwise)`; computed only if the condition holds for some element of a vector."""

    def leaves() -> list[Reg]:
        computed = compute()
        return (otherwise.lift(computed) if isinstance(otherwise, Dual) else computed).leaves()

    emit = otherwise.emit
    return otherwise.rebuilt(iter(emit.where_any(condition.reg, leaves, otherwise.leaves())))


def deeper(a: Num | float, b: Num | float) -> Dual:
    """The one that is dual to the higher order."""
    one, other = (x for x in (a, b))
    if not isinstance(one, Dual):
        assert isinstance(other, Dual)
        return other
    return one if not isinstance(other, Dual) or len(one.leaves()) >= len(other.leaves()) else other


def iterate(limit: int, state: Sequence[Num], step: Callable[..., tuple[Num, Sequence[Num]]]) -> list[Num]:
    """`done, state = step(*state)` until `done` holds for every element, at most `limit` times. An element that is done keeps its state."""
    state = list(state)

    def rebuilt(regs: Sequence[Reg]) -> list[Num]:
        leaves = iter(regs)
        return [x.rebuilt(leaves) for x in state]

    def on_registers(*regs: Reg) -> tuple[Reg, list[Reg]]:
        done, following = step(*rebuilt(regs))
        lifted = [model.lift(x) if isinstance(model, Dual) else x for model, x in zip(state, following, strict=True)]
        return done.reg, [reg for x in lifted for reg in x.leaves()]

    regs = [reg for x in state for reg in x.leaves()]
    return rebuilt(state[0].emit.iterate(limit, regs, on_registers))


def polynomial(x: Num, coefficients: Sequence[float], reach: float | None = 1.0) -> Num:
    """The constant term comes first. By halves (Estrin's scheme), so that the latency grows with the logarithm of the degree.

    In float32 it is replaced by one of lower degree that is as good there for |x| <= `reach`, unless that is None.
    """
    shorter = reach is not None and x.reg.dtype == F32
    terms: list[Num | float] = list(economized(tuple(coefficients), reach) if shorter else coefficients)
    power = x
    while len(terms) > 1:
        pairs: list[Num | float] = []
        for a, b in zip(terms[::2], terms[1::2]):
            pairs.append(power.like(b).mad(power, a) if not isinstance(b, Num) else b.mad(power, a))
        terms = [*pairs, *terms[len(pairs) * 2 :]]
        power = power * power if len(terms) > 1 else power
    (out,) = terms
    return out if isinstance(out, Num) else x.like(out)


@cache
def economized(coefficients: tuple[float, ...], reach: float) -> tuple[float, ...]:
    """A polynomial of lower degree that differs by at most `SINGLE` of its size for |x| <= reach: the Chebyshev series, cut off."""
    series = np.polynomial.chebyshev.poly2cheb([c * reach**k for k, c in enumerate(coefficients)])
    tails = np.cumsum(np.abs(series[::-1]))[::-1]
    kept = max(1, int(np.sum(tails > SINGLE * abs(coefficients[0]))))
    return tuple(float(c) / reach**k for k, c in enumerate(np.polynomial.chebyshev.cheb2poly(series[:kept])))


def seeded(xs: Sequence[Num], orders: Sequence[int]) -> list[Num]:
    """The arguments as dual numbers, so that the top tangent of a function of them is its derivative of `orders[i]` in argument i."""
    out = list(xs)
    for i, order in enumerate(orders):
        for _ in range(order):
            out = [Dual(x, x.like(1.0 if j == i else 0.0)) for j, x in enumerate(out)]
    return out


def top(x: Num) -> Num:
    """The derivative of the highest order."""
    while isinstance(x, Dual):
        x = x.tangent
    return x
