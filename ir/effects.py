"""The effects of a statement, besides computing its results. Passes, the planner and the runtime query statements here, never the op: a
branch or a loop has the effects of the statements inside it, at any depth, which only the statement knows.

Variables are parameters and updates of a Func, and random numbers are functions of a key, so no statement reads or writes hidden state.
The remaining effects are:

    fails     may raise: an index out of bounds, an assertion, a matrix that has no factorisation
    ordered   happens once, in program order, and is never dead code: printing, assertions, collectives of MPI
    stops     may end early whatever its operands are: a loop is interrupted, a stack runs out of memory

A call that raises must not have changed a variable, so no statement that `fails` or `stops` may follow the first write to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import UnsupportedError
from .records import NamedTuple

if TYPE_CHECKING:
    from .func import Block, Stmt
    from .ops.base import Op


class Effects(NamedTuple):
    fails: bool = False
    ordered: bool = False
    stops: bool = False

    @property
    def is_pure(self) -> bool:
        """Whether the statement may be moved, repeated or dropped, as long as its operands are available. `stops` does not prevent this."""
        return not (self.fails or self.ordered)

    @property
    def may_raise(self) -> bool:
        return self.fails or self.stops


_ALL = {(f, o, s): Effects(f, o, s) for f in (False, True) for o in (False, True) for s in (False, True)}
NONE = _ALL[False, False, False]


def effects(stmt: Stmt) -> Effects:
    """The effects of the statement, including those of its blocks."""
    op = stmt.op
    own = _ALL[op.can_fail, op.effect, op.can_stop]
    for block in stmt.blocks:
        own = _joined(own, block_effects(block))
    return own


def block_effects(block: Block) -> Effects:
    """The effects of a block's statements; cached, since blocks are immutable."""
    found = block._effects
    if found is None:
        found = NONE
        for stmt in block.stmts:
            found = _joined(found, effects(stmt))
        block._effects = found
    return found


def effects_of(op: Op) -> Effects:
    """The effects of the op itself, without those of blocks."""
    fails, ordered, stops = op.can_fail, op.effect, op.can_stop
    return _ALL[fails, ordered, stops] if fails or ordered or stops else NONE  # most ops have none


def cannot_repeat(op: Op) -> UnsupportedError:
    """The error for a derivative that would have to compute the results of an ordered op a second time."""
    return UnsupportedError(
        f"{op.name}: a derivative would have to repeat it; use it outside of `checkpoint`, and take the derivative inside the compiled "
        "function"
    )


def _joined(a: Effects, b: Effects) -> Effects:
    return a if a is b or b is NONE else _ALL[a.fails or b.fails, a.ordered or b.ordered, a.stops or b.stops]
