"""Integer range analysis: an index that cannot be out of bounds needs no check.

Tracks counters of loops with known bounds, positions along an axis, sizes, constants, and sums, differences, products, minima, maxima and
remainders of those.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add, Maximum, Minimum, Sub
from adjit.ir.ops.base import Op
from adjit.ir.ops.create import Constant, Fill, Iota, SizeValue
from adjit.ir.ops.division import Remainder
from adjit.ir.ops.index import Indexing
from adjit.ir.ops.logic import BitwiseAnd
from adjit.ir.ops.maps import Cast, Mul
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import at_least, is_symbolic
from adjit.ir.types import I64

from .trips import known_trips

SAFE = 2**31  # smaller integers cannot overflow in the computations here


class Interval(NamedTuple):
    low: int
    high: int


def _constant(op: Constant) -> Interval | None:
    data = op.evaluate()
    return Interval(int(data.min()), int(data.max())) if data.size else None


# The ranges of ops without operands, given the op; and of others, given the ranges of their operands.
_SOURCES: dict[type[Op], Callable[[Any], Interval | None]] = {
    Iota: lambda op: Interval(0, op.shape[op.axis] - 1),
    SizeValue: lambda op: Interval(op.value, op.value),
    Fill: lambda op: Interval(int(op.value), int(op.value)),
    Constant: _constant,
}
_ARITHMETIC: dict[type[Op], Callable[[Interval, Interval], Interval]] = {
    Add: lambda a, b: Interval(a.low + b.low, a.high + b.high),
    Sub: lambda a, b: Interval(a.low - b.high, a.high - b.low),
    Mul: lambda a, b: Interval(*(pick(x * y for x in a for y in b) for pick in (min, max))),
    Minimum: lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
    Maximum: lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
}


def _remainder(a: Interval | None, by: Interval | None) -> Interval | None:
    return Interval(0, by.high - 1) if by is not None and at_least(by.low, 1) else None


def _masked(a: Interval | None, b: Interval | None) -> Interval | None:
    """A mask that is not negative is an upper bound."""
    mask = next((m for m in (b, a) if m is not None and at_least(m.low, 0)), None)
    return None if mask is None else Interval(0, mask.high)


# The same for ops whose results are limited even if the range of an operand is unknown.
_LIMITED: dict[type[Op], Callable[[Interval | None, Interval | None], Interval | None]] = {Remainder: _remainder, BitwiseAnd: _masked}


def _extremum(largest: bool, a: Interval, b: Interval) -> Interval | None:
    """The range of a minimum or maximum, if the order of the bounds is the same for all sizes."""
    ends = []
    for x, y in zip(a, b, strict=True):
        if not at_least(x, y) and not at_least(y, x):
            return None
        ends.append(x if at_least(x, y) == largest else y)
    return Interval(*ends)


# The same for bounds that are sizes known only at run time.
_OPEN: dict[type[Op], Callable[[Interval, Interval], Interval | None]] = {
    Add: _ARITHMETIC[Add],
    Sub: _ARITHMETIC[Sub],
    Minimum: partial(_extremum, False),
    Maximum: partial(_extremum, True),
}


class Bounds:
    """Ranges of values, found by one walk through the function, outer blocks first."""

    def __init__(self, func: Func) -> None:
        self.known: dict[int, Interval] = {}
        self._walk(func.block)

    def of(self, x: Operand) -> Interval | None:
        if isinstance(x, Literal):
            return Interval(int(x.value), int(x.value)) if x.type.dtype.kind in "iu" else None
        return self.known.get(id(x))

    def cannot_fail(self, stmt: Stmt) -> bool:
        """Whether all indices of a statement are known to be within bounds."""
        if not isinstance(stmt.op, Indexing):
            return False
        sizes = stmt.op.indexed(*(a.type for a in stmt.args)).shape
        found = [self.of(index) for index in stmt.args[stmt.op.first :]]
        return all(i is not None and at_least(i.low, -size) and at_least(size - 1, i.high) for i, size in zip(found, sizes, strict=False))

    def _walk(self, block: Block) -> None:
        for stmt in block.stmts:
            counted = known_trips(stmt)
            if counted is not None and counted.length:
                self._learn(stmt.blocks[0].params[0], Interval(counted.first, counted.last))
            elif stmt.op.is_loop and stmt.region.counters:
                start, stop = map(self.of, stmt.args[:2])
                if start is not None and stop is not None:
                    self._learn(stmt.blocks[0].params[0], Interval(start.low, stop.high - 1))
            elif len(stmt.results) == 1 and stmt.result.type.dtype.kind in "iu":
                self._learn(stmt.result, self._result(stmt))
            for inner in stmt.blocks:
                self._walk(inner)
            if stmt.op.is_nest:
                for result, inside in zip(stmt.results, stmt.blocks[0].results, strict=True):
                    self._learn(result, self.of(inside))

    def _learn(self, value: Operand, interval: Interval | None) -> None:
        if interval is None:
            return
        if is_open(interval):  # sums and differences of sizes do not overflow 64 bits
            if value.type.dtype == I64:
                self.known[id(value)] = interval
        elif interval.low > -SAFE and interval.high < SAFE and fits(interval, value):
            self.known[id(value)] = interval

    def _result(self, stmt: Stmt) -> Interval | None:
        op = stmt.op
        source = _SOURCES.get(type(op))
        if source is not None:
            return source(op)
        if op.is_view or (isinstance(op, Cast) and stmt.args[0].type.dtype.kind in "iu"):
            return self.of(stmt.args[0])
        if type(op) not in _ARITHMETIC and type(op) not in _LIMITED:
            return None
        a, b = map(self.of, stmt.args)
        if type(op) in _LIMITED:
            return _LIMITED[type(op)](a, b)
        if a is None or b is None:
            return None
        combine = (_OPEN if is_open(a) or is_open(b) else _ARITHMETIC).get(type(op))
        return None if combine is None else combine(a, b)


def is_open(interval: Interval) -> bool:
    """Whether a bound is a size that is known only at run time."""
    return is_symbolic(interval.low) or is_symbolic(interval.high)


def fits(interval: Interval, value: Operand) -> bool:
    """Whether the value's dtype can represent the whole interval: otherwise values wrap around."""
    bits = value.type.dtype.itemsize * 8 - (value.type.dtype.kind == "i")
    return interval.high < 2**bits and interval.low >= (-(2**bits) if value.type.dtype.kind == "i" else 0)
