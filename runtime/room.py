"""The room of lists in loops of unknown length: whether a call that finds a list full can start again, with more."""

from __future__ import annotations

from adjit.ir.effects import effects_of
from adjit.ir.errors import OutOfRoomError
from adjit.ir.ops.base import Op

from .concrete import ConcreteFunction

GROWTH = 8  # of the room of a list that was too small


def has_lists(concrete: ConcreteFunction) -> bool:
    """Whether the program has lists that may run out of room."""
    return any(op.error is OutOfRoomError for op in _ordered(concrete))


def is_visible(concrete: ConcreteFunction) -> bool:
    """Whether the program does something that others notice, and that must not happen twice."""
    return any(op.is_visible for op in _ordered(concrete))


def _ordered(concrete: ConcreteFunction) -> list[Op]:
    from adjit.passes.rewrite import walk  # noqa: PLC0415 - after a call that failed

    return [stmt.op for stmt in walk(concrete.program.func.block) if effects_of(stmt.op).ordered]
