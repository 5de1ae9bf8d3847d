"""Rows that are read in place, and those that must be copied because the array is changed before they have been read for the last time.

A loop that reads a row of a table and then overwrites it (the gradient of a table filled row by row) would otherwise copy the whole table
at every iteration, to keep the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.index import Scatter

from ..rewrite import operands_read


def outlived(stmts: Sequence[Stmt], last: Sequence[Operand] = ()) -> set[int]:
    """The results of gathers of single rows that are read after a later scatter has changed the array; `last` are read at the end."""
    changed = {id(stmt.args[0]): at for at, stmt in enumerate(stmts) if isinstance(stmt.op, Scatter)}  # arrays, and where
    rows: dict[int, tuple[int, int]] = {}  # a row, or a view of one: the gather's result, and where the array is changed
    out: set[int] = set()
    if not changed:
        return out
    for at, stmt in enumerate(stmts):
        if stmt.op.reads_rows and changed.get(id(stmt.args[0]), -1) > at:
            rows[id(stmt.result)] = id(stmt.result), changed[id(stmt.args[0])]
        for x in operands_read(stmt):
            row, change = rows.get(id(x), (0, at))
            if change < at:
                out.add(row)
            elif stmt.op.is_view and id(x) in rows:
                rows[id(stmt.result)] = rows[id(x)]
    return out.union(rows[id(x)][0] for x in last if id(x) in rows)
