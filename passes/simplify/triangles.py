"""Systems whose matrix is known to be triangular are solved by substitution, without a factorisation.

A matrix is triangular if it was made so: by `cholesky`, as the `r` of `qr`, by `tril` or `triu`, or as the transpose of one.
"""

from __future__ import annotations

import numpy as np

from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add
from adjit.ir.ops.cholesky import Cholesky
from adjit.ir.ops.logic import LessEqual
from adjit.ir.ops.maps import Where
from adjit.ir.ops.qr import Qr
from adjit.ir.ops.shape import Broadcast, Slice, Transpose
from adjit.ir.ops.solve import SolveWith
from adjit.ir.ops.triangular import SolveTriangular

from ..rewrite import Renaming, like, walk

LOWER, UPPER = False, True


def substitute_triangles(func: Func) -> Func:
    if not func.block.contains(SolveWith):
        return func
    definitions = {id(stmt.result): stmt for stmt in walk(func.block) if len(stmt.results) == 1}
    renaming = Renaming()
    stmts = _rewritten(func.block, renaming, definitions)
    return renaming.func(func, stmts) if renaming.table else func


def _rewritten(block: Block, renaming: Renaming, definitions: dict[int, Stmt]) -> list[Stmt]:
    out: list[Stmt] = []
    for stmt in block.stmts:
        op, new = stmt.op, renaming.stmt(stmt)
        if new.blocks:
            new = new.replace(blocks=tuple(renaming.body(b, _rewritten(b, renaming, definitions)) for b in new.blocks))
        if isinstance(op, SolveWith):
            triangle = _triangle(stmt.args[0], definitions)
            if triangle is not None:
                a, _, b = new.args
                new = like(new, SolveTriangular(triangle, op.transposed), (a, b), named=stmt.result)
                renaming[stmt.result] = new.result
        out.append(new)
    return out


def _triangle(matrix: Operand, definitions: dict[int, Stmt]) -> bool | None:
    """Which triangle of a matrix may differ from zero; None if both."""
    stmt = definitions.get(id(matrix))
    if stmt is None:
        return None
    op, rank = stmt.op, matrix.type.rank
    if isinstance(op, Cholesky):
        return LOWER
    if isinstance(op, Transpose) and op.axes == (*range(rank - 2), rank - 1, rank - 2):
        inner = _triangle(stmt.args[0], definitions)
        return None if inner is None else not inner
    if isinstance(op, Slice) and isinstance(getattr(definitions.get(id(stmt.args[0])), "op", None), Qr):
        whole, start = stmt.args[0].type.shape, op.starts[-2]
        return LOWER if start == whole[-2] - whole[-1] and matrix.type.shape[-2:] == (whole[-1], whole[-1]) else None
    if isinstance(op, Where):
        return _masked(stmt, definitions)
    return None


def _masked(stmt: Stmt, definitions: dict[int, Stmt]) -> bool | None:
    """Which triangle a `where` leaves, with zeros elsewhere."""
    mask, below, above = stmt.args
    diagonal = _diagonal(mask, definitions)
    if diagonal is None:
        return None
    if diagonal <= 0 and _is_zero(above):
        return LOWER
    return UPPER if diagonal >= -1 and _is_zero(below) else None


def _diagonal(mask: Operand, definitions: dict[int, Stmt]) -> int | None:
    """k, if the mask is true on and below the k-th diagonal: `column <= row + k`."""
    stmt, rank, shift = definitions.get(id(mask)), mask.type.rank, 0
    if stmt is not None and isinstance(stmt.op, Broadcast) and stmt.args[0].type.shape[-2:] == mask.type.shape[-2:]:
        return _diagonal(stmt.args[0], definitions)
    if stmt is None or not isinstance(stmt.op, LessEqual) or rank < 2:
        return None
    column, row = (definitions.get(id(a)) for a in stmt.args)
    if row is not None and isinstance(row.op, Add) and isinstance(row.args[1], Literal):
        shift, row = int(row.args[1].value), definitions.get(id(row.args[0]))
    axes = [s.op.position_axis for s in (column, row) if s is not None]
    return shift if axes == [rank - 1, rank - 2] else None


def _is_zero(x: Operand) -> bool:
    return isinstance(x, Literal) and bool(np.all(x.value == 0))
