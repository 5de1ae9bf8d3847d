"""Ops with regions: `if`, `for`, `while`, `checkpoint`, and `fuse`, which groups statements into one native kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from .base import Array, Op

if TYPE_CHECKING:
    from ..func import Stmt


class RunBlock(Protocol):
    """A block as the interpreter hands it to its op: called with the block's parameters, gives its results and what it saves."""

    saves: int

    def __call__(self, *arrays: Any) -> tuple[Any, ...]: ...


class Region(Op, abstract=True):
    """An op with blocks. Regions use values of the blocks around them; what they carry is in block parameters."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        raise NotImplementedError(self.name)


class Fuse(Region):
    """`%a, %b = fuse { ... yield %x, %y }`: the statements inside become one loop nest. Means the same as the statements alone.

    One of them may be the host, an op that stores elements of its result once each (a convolution, say): the others, all elementwise,
    are computed where it does.
    """

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]()


def hosted_by(stmt: Stmt) -> Stmt | None:
    """The host of a `fuse` region."""
    return next((s for s in stmt.blocks[0].stmts if s.op.stores_once(*(a.type for a in s.args))), None)


class Rows(Region):
    """`%a = rows { ... yield %x }`: the `fuse` regions inside run one after the other on each row (each index of the first axis), so
    that what they hand on stays in the cache. Means the same as the statements alone."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]()


class If(Region):
    """`%r = if %p { ... yield %a } else { ... yield %b }`."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]() if arrays[0] else blocks[1]()


class Checkpoint(Region):
    """`%r = checkpoint { ... yield %x }`: the block alone, but reverse mode computes it again rather than keep what it computes."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]()


@dataclass(eq=False, repr=False)
class For(Region):
    """`%r = for %k in %start..%stop carry (%c = %init) { ... yield %next }`: k runs upwards by one. args: start, stop, *init.

    What the body saves becomes one stack each, in results after the carries. `checkpoint` bounds what reverse mode saves.
    """

    checkpoint: str | int = "none"
    can_stop: ClassVar[bool] = True  # by Ctrl-C; and what it saves takes memory

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        start, stop, *carry = arrays
        trips = (blocks[0](start.dtype.type(k), *carry) for k in range(int(start), int(stop)))
        return _gathered(carry, trips, blocks[-1].saves)


@dataclass(eq=False, repr=False)
class While(Region):
    """`%r = while carry (%c = %init) { ... cond %p } do { ... yield %next }`. args: *init; blocks: condition, body."""

    checkpoint: str | int = "none"
    can_stop: ClassVar[bool] = True  # by Ctrl-C; and what it saves takes memory

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        carry = list(arrays)
        trips = (blocks[1](*carry) for _ in iter(lambda: bool(blocks[0](*carry)[0]), False))
        return _gathered(carry, trips, blocks[-1].saves)


def _gathered(carry: list[Array], trips: Iterable[tuple[Any, ...]], saves: int) -> tuple[Any, ...]:
    """Runs the trips, which read `carry`; the final carries, then a list of elements for each stack."""
    stacks: list[list[Any]] = [[] for _ in range(saves)]
    for out in trips:
        carry[:] = out[: len(carry)]
        for stack, element in zip(stacks, out[len(carry) :], strict=True):
            stack.append(element)
    return (*carry, *stacks)
