"""A sort of which only the first or last few elements are used becomes a selection: `sort(x)[-k:]`, `argpartition(x, k)[:k]`.

The sorted order may be read by slices, or by a gather that is itself only read by slices. All slices must select the same part; if the rest
is used as well, the sort stays.
"""

from __future__ import annotations

from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.create import Iota
from adjit.ir.ops.index import Gather
from adjit.ir.ops.select import RARE, Select
from adjit.ir.ops.shape import Slice
from adjit.ir.ops.sort import Argsort
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import hint_of
from adjit.ir.types import TensorType

from ..rewrite import Renaming, like, operands_read


class SelectedPositions(NamedTuple):
    """The first or last positions, `size` of them."""

    size: int
    last: bool


def select_parts(func: Func) -> Func:
    if not func.block.contains(Argsort):
        return func
    renaming = Renaming()
    kept = {id(new) for _, new in func.updates}
    stmts = _rewritten(func.block, renaming, kept)
    return renaming.func(func, stmts) if renaming.table else func


def _rewritten(block: Block, renaming: Renaming, kept: set[int]) -> list[Stmt]:
    uses: dict[int, list[Stmt]] = {}
    for stmt in block.stmts:
        for x in {id(x): x for x in operands_read(stmt)}.values():
            uses.setdefault(id(x), []).append(stmt)
    given = kept | {id(x) for x in (*block.results, *block.saving)}
    made = {id(stmt.result): stmt for stmt in block.stmts if len(stmt.results) == 1}
    out: list[Stmt] = []
    parts: dict[int, Operand] = {}  # what replaces orders, and gathers by them
    for stmt in block.stmts:
        new = renaming.stmt(stmt)
        if new.blocks:
            new = new.replace(blocks=tuple(renaming.body(b, _rewritten(b, renaming, set())) for b in new.blocks))
        op = stmt.op
        if isinstance(op, Argsort) and stmt.args[0].type.dtype.kind in "iuf":
            part = _used_part(stmt, op.axis, uses, given, made)
            if part is not None:
                new = like(new, Select(op.axis, *part, op.descending), new.args, named=stmt.result)
                parts[id(stmt.result)] = new.result
                out.append(new)
                continue
        order = next((parts[id(x)] for x in stmt.args if id(x) in parts), None)
        if order is None:
            out.append(new)
        elif isinstance(stmt.op, Slice):
            renaming[stmt.result] = order
        else:
            axis = next(a for a, x in enumerate(stmt.args[1:]) if id(x) in parts)
            out += _smaller_gather(stmt, new, order, axis)
            parts[id(stmt.result)] = out[-1].result
    return out


def _used_part(sort: Stmt, axis: int, uses: dict[int, list[Stmt]], given: set[int], made: dict[int, Stmt]) -> SelectedPositions | None:
    """The part of a sort's positions that is used; None if it is not at one of the ends, or not the same everywhere."""
    slices: list[Stmt] = []
    results = [sort.result]
    for use in uses.get(id(sort.result), []):
        if isinstance(use.op, Gather) and _gathers_rows(use, sort, axis, made):
            results.append(use.result)
            slices += uses.get(id(use.result), [])
        else:
            slices.append(use)
    taken = [(s.op, s.args[0].type) for s in slices if isinstance(s.op, Slice)]
    if any(id(x) in given for x in results) or len(taken) < len(slices):
        return None
    found = {_part(op, whole, axis) for op, whole in taken}
    return found.pop() if len(found) == 1 else None


def _part(op: Slice, whole: TensorType, axis: int) -> SelectedPositions | None:
    """The part that a slice takes along an axis, if it takes everything along the others."""
    for a, (start, stop, step, size) in enumerate(zip(op.starts, op.stops, op.steps, whole.shape, strict=True)):
        if step != 1 or (a != axis and (start, stop) != (0, size)):
            return None
    start, stop, size = op.starts[axis], op.stops[axis], whole.shape[axis]
    return (
        SelectedPositions(stop - start, start != 0)
        if 0 in (start, size - stop) and hint_of((stop - start) * RARE) <= hint_of(size)
        else None
    )


def _gathers_rows(gather: Stmt, sort: Stmt, along: int, made: dict[int, Stmt]) -> bool:
    """Whether a gather takes one element for each position of a sort along an axis, from the same row."""
    for axis, index in enumerate(gather.args[1:]):
        counted = made.get(id(index))
        is_counted = counted is not None and counted.op.position_axis == axis != along
        if not is_counted and (index is not sort.result or axis != along):
            return False
    return gather.args[0] is not sort.result and gather.result.type.shape == sort.result.type.shape


def _smaller_gather(stmt: Stmt, new: Stmt, order: Operand, along: int) -> list[Stmt]:
    """A gather by a part of the order; its other indices count along their axes."""
    counts: list[Stmt] = []
    indices: list[Operand] = []
    for axis, index in enumerate(new.args[1:]):
        if axis != along:
            counts.append(like(stmt, Iota(index.type.dtype, order.type.shape, axis), ()))
        indices.append(order if axis == along else counts[-1].result)
    return [*counts, like(stmt, new.op, (new.args[0], *indices), named=stmt.result)]
