"""What a statement may do besides computing its results. Passes, the planner and the runtime ask here, never the op: a branch or a loop
does what the statements inside it do, at any depth, and only the statement knows those.

Variables are parameters and updates of a Func, and random numbers are functions of a key, so no statement writes state or draws from it.
What is left:

    fails     may raise: an index out of bounds, an assertion, a matrix that has no factor
    ordered   happens in the order of the program, once, and is wanted for its own sake: printing, assertions
    stops     may end early whatever its operands are: a loop is interrupted, a stack finds no memory

A call that raises must not have changed a variable, so nothing that `fails` or `stops` may follow the first write to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .func import Block, Stmt
    from .ops.base import Op


class Effects(NamedTuple):
    fails: bool = False
    ordered: bool = False
    stops: bool = False

    @property
    def is_pure(self) -> bool:
        """Whether the statement may be moved, repeated or dropped, as long as its operands are there. Interruption is no reason not to."""
        return not (self.fails or self.ordered)

    @property
    def may_raise(self) -> bool:
        return self.fails or self.stops


_ALL = {(f, o, s): Effects(f, o, s) for f in (False, True) for o in (False, True) for s in (False, True)}
NONE = _ALL[False, False, False]


def effects(stmt: Stmt) -> Effects:
    """What the statement may do, with all that is inside its blocks."""
    own = effects_of(stmt.op)
    for block in stmt.blocks:
        own = _joined(own, block_effects(block))
    return own


def block_effects(block: Block) -> Effects:
    """What the statements of a block may do; found once, for blocks never change."""
    found = block._effects
    if found is None:
        found = NONE
        for stmt in block.stmts:
            found = _joined(found, effects(stmt))
        block._effects = found
    return found


def effects_of(op: Op) -> Effects:
    """What the op does by itself: all there is to say where it has no blocks."""
    return _ALL[op.can_fail, op.effect, op.can_stop]


def _joined(a: Effects, b: Effects) -> Effects:
    return a if a is b or b is NONE else _ALL[a.fails or b.fails, a.ordered or b.ordered, a.stops or b.stops]
