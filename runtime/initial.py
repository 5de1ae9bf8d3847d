"""The initial value of a variable that is created while tracing: a traced value evaluated before any run of the function.

Such a value may depend on constants, random numbers and the current values of other variables, but not on the function's arguments, which
differ from call to call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.errors import TraceError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.ops.base import Array
from adjit.passes.rewrite import operands_read
from adjit.tracer.frames import user_location
from adjit.tracer.trace import current_trace

if TYPE_CHECKING:
    from .variable import Store


def initial_value(value: Value, name: str | None) -> Array:
    """Evaluate the statements traced so far and return the array; raise TraceError if the value depends on an argument."""
    from adjit.ir.interpreter import run  # noqa: PLC0415 - few variables are created so

    needed: dict[int, Value] = {id(value): value}
    stmts: list[Stmt] = []
    builder: Builder | None = current_builder()
    while builder is not None:
        for stmt in reversed(builder.stmts):
            if any(id(r) in needed for r in stmt.results):
                stmts.append(stmt)
                for result in stmt.results:
                    needed.pop(id(result), None)
                needed |= {id(x): x for x in operands_read(stmt) if isinstance(x, Value)}
        builder = builder.parent
    known = outside_values()
    if any(key not in known for key in needed):
        raise TraceError(
            f"the initial value of variable {name or ''!r} is a traced value ({value.type}) that depends on the function's arguments, "
            "whose values are not known yet; create the variable outside of the function, or from a constant"
        ).at(user_location())
    func = Func("initial", Block(list(needed.values()), stmts[::-1], [value]))
    return run(func, *(known[key] for key in needed))[0]


def outside_values() -> dict[int, Array]:
    """Return the values of the variables and captured arrays that are parameters of the trace."""
    trace = current_trace()
    assert trace is not None
    root = trace.root()
    cells: list[tuple[Store, Value]] = list(root._cells.values())  # type: ignore[arg-type] # the cells of a running trace are stores
    return {id(p): cell.data for cell, p in cells} | {id(p): array for _, array, p in root._captures}
