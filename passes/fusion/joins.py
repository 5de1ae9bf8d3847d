"""Concatenated views as sums of pads, which loop nests read in place: `np.roll` in a stencil costs no copy.

`concatenate(x, y)` is `pad(x) + pad(y)` with -0.0 around them, which changes no bit of what is added to it. In each of the boxes into which
the pads cut the domain, native code knows which of the two it reads, and adds nothing.

Applied to parts that already exist in memory (others are computed directly inside the result) if only elementwise statements read the
result.
"""

from __future__ import annotations

from functools import reduce

from adjit.ir.func import Func, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.arithmetic import Add
from adjit.ir.ops.fused import cuts
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.shape import Pad, Slice
from adjit.ir.sizes import is_symbolic

from ..rewrite import like, operands_read
from ..simplify.cleanup import rewrite_blocks
from .fuse import MAX_BOXED, count_boxes

MIN_SIZE = 256  # elements: copies of fewer cost less than the code for the boxes
MAX_PARTS = 3
AROUND = 20  # elementwise statements that are expected to share a nest with the pads


def pad_joined_views(func: Func) -> Func:
    return rewrite_blocks(func, _rewritten)


def _rewritten(stmts: list[Stmt], outputs: set[int]) -> list[Stmt] | None:
    joins = [s for s in stmts if isinstance(s.op, Concatenate) and _is_large(s)]
    if not joins:
        return None
    makers = {id(r): s for s in stmts for r in s.results}
    readers: dict[int, list[Stmt]] = {}
    for stmt in stmts:
        for x in operands_read(stmt):
            readers.setdefault(id(x), []).append(stmt)
    joins = [s for s in joins if id(s.result) not in outputs and _are_views(s, makers) and _are_maps(readers.get(id(s.result), []), s)]
    families: dict[object, dict[int, list[Stmt]]] = {}  # those that are read together
    for s in joins:
        families.setdefault((s.result.type.shape, _source(s, makers)), {})[id(s)] = _padded(s)
    padded: dict[int, list[Stmt]] = {}
    for together in families.values():
        ends = {end for new in together.values() for s in new for end in cuts(s)}
        if count_boxes(ends) * (AROUND + sum(map(len, together.values()))) <= MAX_BOXED:
            padded |= together
    return [new for s in stmts for new in padded.get(id(s), [s])] if padded else None


def _is_large(join: Stmt) -> bool:
    known = not any(is_symbolic(x.type.size) for x in (join.result, *join.args))
    return known and join.result.type.is_float and join.result.type.size >= MIN_SIZE


def _source(join: Stmt, makers: dict[int, Stmt]) -> int:
    """The array that the first part of a concatenation is a slice of: those of one array are usually read together."""
    made = makers.get(id(join.args[0]))
    return id(join.args[0] if made is None else made.args[0])


def _are_views(join: Stmt, makers: dict[int, Stmt]) -> bool:
    """Whether all parts of a concatenation are in memory: values from outside of the block, or slices."""
    if not 1 < len(join.args) <= MAX_PARTS:
        return False
    made = [makers.get(id(x)) for x in join.args]
    return all(isinstance(x, Value) and x.type.size > 0 for x in join.args) and all(s is None or isinstance(s.op, Slice) for s in made)


def _are_maps(readers: list[Stmt], join: Stmt) -> bool:
    return bool(readers) and all(s.op.is_elementwise and s.result.type.shape == join.result.type.shape for s in readers)


def _padded(join: Stmt) -> list[Stmt]:
    """The statements that replace a concatenation."""
    assert isinstance(join.op, Concatenate)
    out: list[Stmt] = []
    start, axis, rank = 0, join.op.axis, join.result.type.rank
    for x in join.args:
        size = x.type.shape[axis]
        low, high = ([0] * rank for _ in range(2))
        low[axis], high[axis] = start, join.result.type.shape[axis] - start - size
        out.append(like(join, Pad(tuple(low), tuple(high), (0,) * rank, -0.0), (x,)))
        start += size

    def add(total: Operand, pad: Operand) -> Operand:
        last = pad is pads[-1]
        out.append(like(join, Add(), (total, pad), join.result, join.result if last else None))
        return out[-1].result

    pads = [s.result for s in out]
    reduce(add, pads)
    return out
