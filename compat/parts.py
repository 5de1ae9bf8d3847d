"""Which part of a variable a tensor was read from, for `v[0].assign(...)`."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from adjit.ir.operand import Operand
from adjit.tracer.trace import Traced, current_trace

if TYPE_CHECKING:
    from .variable import Variable


class Part(NamedTuple):
    """`variable[key]`."""

    variable: Variable
    key: Any

    def assign(self, value: Any, name: str | None = None) -> Variable:
        """Assign this part of the variable, and return the variable."""
        return self.variable._assign_part(self.key, value)


_eager: dict[int, Part] = {}  # by id of a tensor, as long as it lives


def remember(tensor: Operand, part: Part) -> None:
    trace = current_trace()
    if isinstance(tensor, Traced) and trace is not None:
        trace.root().parts[id(tensor)] = tensor, part
    elif not isinstance(tensor, Traced):
        key = id(tensor)
        _eager[key] = part
        weakref.finalize(tensor, _eager.pop, key, None).atexit = False


def part_of(tensor: Operand) -> Part | None:
    if not isinstance(tensor, Traced):
        return _eager.get(id(tensor))
    trace = current_trace()
    known = None if trace is None else trace.root().parts.get(id(tensor))
    return None if known is None else known[1]
