"""Ops with regions: `if`, `for`, `while`, and `fuse`, which groups statements into one native kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .base import Array, Op

RunBlock: TypeAlias = Callable[..., tuple[Array, ...]]


class Region(Op, abstract=True):
    """An op with blocks. Regions use values of the blocks around them; what they carry is in block parameters."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        raise NotImplementedError(self.name)


class Fuse(Region):
    """`%a, %b = fuse { ... yield %x, %y }`: the statements inside become one loop nest. Means the same as the statements alone."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]()


class If(Region):
    """`%r = if %p { ... yield %a } else { ... yield %b }`."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]() if arrays[0] else blocks[1]()


class For(Region):
    """`%r = for %k in %start..%stop carry (%c = %init) { ... yield %next }`: k runs upwards by one. args: start, stop, *init."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        start, stop, *carry = arrays
        state: tuple[Array, ...] = tuple(carry)
        for k in range(int(start), int(stop)):
            state = blocks[0](start.dtype.type(k), *state)
        return state


class While(Region):
    """`%r = while carry (%c = %init) { ... cond %p } do { ... yield %next }`. args: *init; blocks: condition, body."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        state: tuple[Array, ...] = tuple(arrays)
        while blocks[0](*state)[0]:
            state = blocks[1](*state)
        return state
