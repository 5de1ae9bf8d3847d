"""Calls that start again: with a larger capacity for a list that was full, or with the actual size of an array.

Stores what earlier calls of a function have found about lists in loops of unknown length and about sizes that depend on values, and decides
whether a call can start again: it cannot if it has had an effect outside, such as a print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from adjit.ir.effects import effects_of
from adjit.ir.errors import CapacityError, FoundSizeError, ShapeError, SizeWanted
from adjit.ir.ops.base import Array, Op
from adjit.tracer.trace import SIZES

from .concrete import ConcreteFunction

GROWTH = 8  # factor by which the capacity of a list grows that was too small
FOUND = re.compile(r".* is (-?\d+) here \(size (\d+)\)")  # in the message of `ir.found_sizes`


class Start:
    """The state with which a call starts: the capacity of lists, and the sizes that it assumes, as arrays (None: none are needed)."""

    __slots__ = ("factor", "sizes", "is_guess", "is_mixed")

    def __init__(self, factor: int, sizes: tuple[Array, ...] | None) -> None:
        self.factor, self.sizes = factor, sizes
        self.is_guess = bool(sizes)  # whether some of the sizes are those of another call
        self.is_mixed = False  # whether some are this call's own

    def concerns(self, error: Exception) -> bool:
        """Whether an error may be due to what the call started with."""
        return self.is_guess or isinstance(error, CapacityError | SizeWanted | FoundSizeError)

    def passed(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of the call, with the sizes that it assumes."""
        return kwargs if self.sizes is None else {**kwargs, SIZES: self.sizes}

    def axes(self, arrays: Sequence[Array]) -> list[tuple[int, int]]:
        """The axes of the arrays of a call that are such sizes, as (number of the array, axis)."""
        ours = set(map(id, self.sizes or ()))
        return [(i, 0) for i, array in enumerate(arrays) if id(array) in ours]


class Restarts:
    """The list capacities and sizes found by earlier calls of a function."""

    def __init__(self) -> None:
        self.factor = 1  # times the usual capacity of a list: see `larger_capacity`
        self.sizes: tuple[Array, ...] | None = None  # those of the last call
        self.are_bound = False  # whether sizes found by different calls have not gone together

    def start(self) -> Start:
        return Start(self.factor, self.sizes)

    @contextmanager
    def with_capacity(self) -> Iterator[None]:
        """Trace with this capacity for lists."""
        from adjit.tracer.list_items import larger_capacity  # noqa: PLC0415 - `import adjit` does without the tracer's regions

        with larger_capacity(self.factor):
            yield

    def learn(self, start: Start, error: Exception, programs: Sequence[ConcreteFunction]) -> list[ConcreteFunction] | None:
        """Change what a call that failed starts with. Return None if it cannot start again, else the programs to discard."""
        if isinstance(error, CapacityError):
            return self._grow(start, programs)
        if isinstance(error, SizeWanted) and start.sizes is None:
            self.sizes = start.sizes = ()
            return []
        unknown = isinstance(error, FoundSizeError)
        if not (unknown or start.is_guess) or any(is_visible(known) for known in programs if raises(known, FoundSizeError)):
            return None
        if isinstance(error, FoundSizeError):
            site, size = found_in(error)
            if size < 0:
                raise ShapeError(f"negative dimensions are not allowed: an array of size {size}") from None
            self.sizes = start.sizes = self._with_found(start.sizes or (), site, np.empty(size, bool))
            start.is_mixed = True
        else:  # sizes of another call, which are not those of this one, may be the cause
            self.are_bound = self.are_bound or start.is_mixed
            start.sizes, start.is_guess = (), False
        return []

    def _with_found(self, sizes: tuple[Array, ...], site: int, found: Array) -> tuple[Array, ...]:
        """The sizes to assume after one was found. Those behind it that were equal to it are likely to be again (the lengths of two lists
        of one loop). Where a program cannot be traced with sizes of two calls, only this call's own are assumed.
        """
        if site >= len(sizes):
            return (*sizes, found)
        before, last = sizes[site].size, sizes[site + 1 :]
        moved = tuple(np.empty(found.size, bool) if each.size == before else each for each in last)
        return (*sizes[:site], found, *(() if self.are_bound else moved))

    def _grow(self, start: Start, programs: Sequence[ConcreteFunction]) -> list[ConcreteFunction] | None:
        small = [known for known in programs if raises(known, CapacityError)]
        if any(map(is_visible, small)):
            return None
        if self.factor != start.factor:  # another thread has increased the capacity meanwhile
            small = []
        else:
            self.factor *= GROWTH
        start.factor = self.factor
        return small


def found_in(error: FoundSizeError) -> tuple[int, int]:
    """The size that an error is about: which one, and its value."""
    match = FOUND.match(str(error))
    assert match is not None
    return int(match[2]), int(match[1])


def raises(concrete: ConcreteFunction, error: type[Exception]) -> bool:
    """Whether the program has checks that raise this class of error."""
    return any(op.error is error for op in _ordered(concrete))


def is_visible(concrete: ConcreteFunction) -> bool:
    """Whether the program does something that others notice, and that must not happen twice."""
    return any(op.is_visible for op in _ordered(concrete))


def _ordered(concrete: ConcreteFunction) -> list[Op]:
    from adjit.passes.rewrite import walk  # noqa: PLC0415 - after a call that failed

    if concrete.effects is None:
        concrete.effects = [stmt.op for stmt in walk(concrete.program.func.block) if effects_of(stmt.op).ordered]
    return concrete.effects
