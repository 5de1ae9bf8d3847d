"""Data-parallel functions: each rank computes its part of a batch, and results and assigned values are averaged over all ranks.

The parts of one rank, if there are several (`shards`), are computed by a loop whose trip count is read at run time. The body is therefore
the same code on any number of ranks, and rounds in the same way; the parts are stored, and added by a tree that depends only on their
number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.active import outside_builders
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops import collective
from adjit.ir.records import NamedTuple
from adjit.ir.world import world
from adjit.tracer.control import row_at, row_kind, stacked_type
from adjit.tracer.convert import to_operand
from adjit.tracer.loops import LoopTrace, emit_for
from adjit.tracer.pytree import TreeDef, flatten, tree_map
from adjit.tracer.regions import UNDEFINED, RegionOutput, Wording, conform
from adjit.tracer.trace import Cell, Trace, current_trace

from .conversion import as_called
from .shards import computing
from .variable import Variable, journal, undone_by_errors

SMALL = 4096  # elements: smaller arrays of one dtype are reduced together, since a reduction costs microseconds whatever its size


class Split(NamedTuple):
    """How batches are divided: into `total` parts, of which each rank computes `own`; `ordered` sums do not depend on the ranks."""

    total: int
    own: int
    ordered: bool


class Computed(NamedTuple):
    """The results of a function and its assignments."""

    leaves: list[Operand]
    tree: TreeDef
    cells: list[Any]  # of the variables that it assigned
    values: list[Operand]  # what it assigned to them


def split_for(shards: int | None) -> Split:
    ranks = world().size
    if shards is None:
        return Split(ranks, 1, False)
    if shards < 1 or shards & (shards - 1) or shards % ranks:
        raise ValueError(f"data_parallel: shards={shards} must be a power of two and a multiple of the number of ranks, {ranks}")
    return Split(shards, shards // ranks, True)


def averaged(fn: Callable[..., Any], split: Split, sums: Sequence[Variable], args: Sequence[Any]) -> Any:
    """The mean over all parts of what `fn` returns for this rank's part of a batch.

    Variables that `fn` assigns get the mean of what the parts assign, or, if they are not floats, what the first part assigns. `sums` are
    variables that it only adds to: they get the sum of what the parts add.
    """
    trace = current_trace()
    if trace is None:
        with undone_by_errors():
            return _finished(_eager(fn, sums, args), split, sums, [v.read_operand() for v in sums])
    before = [v.read_operand() for v in sums]
    if split.ordered:
        return _finished(_looped(trace, fn, split, sums, args), split, sums, before)
    with computing(number(world().rank).read_operand()):
        return _finished(_traced(trace, fn, sums, args), split, sums, before)


def _eager(fn: Callable[..., Any], sums: Sequence[Variable], args: Sequence[Any]) -> Computed:
    olds = [v.read_operand() for v in sums]
    with undone_by_errors(), computing(to_operand(np.int64(world().rank))):
        _clear(sums)
        leaves, tree = flatten(fn(*args))
        entries = journal.entries or {}
        stores = list(entries)
        values = [Variable.of(store).read_operand() for store in stores]
        for variable, old in zip(sums, olds, strict=True):
            variable.assign(old)
    return Computed([to_operand(x) for x in leaves], tree, stores, values)


def _clear(sums: Sequence[Variable]) -> None:
    for variable in sums:
        variable.assign(np.zeros(variable.shape, variable.dtype))


def _traced(trace: Trace, fn: Callable[..., Any], sums: Sequence[Variable], args: Sequence[Any]) -> Computed:
    """Trace the function; afterwards, all variables have their former values."""
    before = dict(trace.written)
    _clear(sums)
    leaves, tree = flatten(as_called(fn)(*args))
    operands = [to_operand(x) for x in leaves]
    cells = [cell for cell in trace.cells if trace.written.get(id(cell)) is not before.get(id(cell))]
    values = [trace.written[id(cell)] for cell in cells]
    trace.written = before
    return Computed(operands, tree, cells, values)


def _looped(trace: Trace, fn: Callable[..., Any], split: Split, sums: Sequence[Variable], args: Sequence[Any]) -> Computed:
    """Trace a loop over the parts; results and values have an additional first axis, with an element for each part."""
    rows = tree_map(lambda x: _in_parts(to_operand(x), split.own), tuple(args))
    found: list[Computed] = []

    def step(k: Operand | None, values: list[Any]) -> list[Any]:
        assert k is not None
        region = current_trace()
        assert region is not None
        with computing(number(world().rank * split.own) + k):
            made = _traced(region, fn, sums, tree_map(lambda x: row_at(x, k), rows))
        found[:] = [made]
        (buffers,) = values
        kinds = [row_kind(x) for x in (*made.leaves, *made.values)]
        types = [stacked_type(kind, split.own) for kind in kinds]
        if buffers is UNDEFINED or [b.type for b in buffers] != types:
            return [tuple(Literal(0, type) for type in types)]  # this trace only determines the types
        outs = zip(buffers, (*made.leaves, *made.values), kinds, strict=True)
        return [tuple(ops.setitem(b, k, conform(x, kind)) for b, x, kind in outs)]

    words = Wording("`data_parallel`", ("before the loop", "from the function"), lambda name, side: None)
    entries = [RegionOutput("the parts", optional=True, fresh=True)]
    (buffers,) = emit_for(trace, LoopTrace(entries, [UNDEFINED], step, words, True), 0, number(split.own).read_operand())
    (made,) = found
    count = len(made.leaves)
    return Computed(list(buffers[:count]), made.tree, made.cells, list(buffers[count:]))


def _in_parts(x: Operand, count: int) -> Operand:
    if not x.shape or x.shape[0] % count:
        raise ShapeError(f"data_parallel: this rank's part of the batch, {x.type}, cannot be cut into {count} equal parts")
    return x.reshape(count, x.shape[0] // count, *x.shape[1:])


@cache
def number(value: int) -> Variable:
    """A number that compiled code reads at run time, so that the code depends neither on the rank nor on the number of ranks."""
    with outside_builders():
        return Variable(np.int64(value), trainable=False, name="shard")


def _finished(made: Computed, split: Split, sums: Sequence[Variable], before: Sequence[Operand]) -> Any:
    """Combine the parts of all ranks, and assign the variables."""
    summed = {id(v.store): old for v, old in zip(sums, before, strict=True)}
    reduced = [x.type.is_inexact or id(cell) in summed for cell, x in zip(made.cells, made.values, strict=True)]
    chosen = [x for x, wanted in zip(made.values, reduced, strict=True) if wanted]
    totals = _totals([*made.leaves, *chosen], split)
    for cell, value, wanted in zip(made.cells, made.values, reduced, strict=True):
        _write(cell, _new_value(cell, value, totals.pop(len(made.leaves)) if wanted else None, split, summed))
    return made.tree.unflatten([total / split.total for total in totals])


def _new_value(cell: Any, value: Operand, total: Operand | None, split: Split, summed: dict[int, Operand]) -> Operand:
    if total is None:
        return value[0] if split.ordered else value
    return summed[id(cell)] + total if id(cell) in summed else (total / split.total).astype(total.type.dtype)


def _write(cell: Cell, value: Operand) -> None:
    trace = current_trace()
    if trace is not None:
        trace.write(cell, value)
    else:
        Variable.of(cell).assign(value)  # type: ignore[arg-type] # cells of eager code are stores


# ---- sums over all parts


def _totals(xs: Sequence[Operand], split: Split) -> list[Operand]:
    """Return the sum of each array over all parts; small arrays are reduced together."""
    shapes = [x.type.shape[1:] if split.ordered else x.type.shape for x in xs]
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    groups: dict[Any, list[int]] = {}
    for i, (x, size) in enumerate(zip(xs, sizes, strict=True)):
        groups.setdefault(x.type.dtype if size < SMALL else i, []).append(i)
    out: dict[int, Operand] = {}
    for members in groups.values():
        flat = [_over_own(xs[i], split) for i in members]
        total = _over_ranks(flat[0] if len(flat) == 1 else ops.concatenate([x.reshape(x.type.size) for x in flat], 0), split)
        at = 0
        for i in members:
            out[i] = total if len(flat) == 1 else total[at : at + sizes[i]].reshape(*shapes[i])
            at += sizes[i]
    return [out[i] for i in range(len(xs))]


def _over_own(x: Operand, split: Split) -> Operand:
    return tree_sum([x[k] for k in range(split.own)]) if split.ordered else x


def _over_ranks(x: Operand, split: Split) -> Operand:
    ranks = world().size
    if not split.ordered:
        return collective.all_reduce(x)
    if ranks == 1:
        return x
    n = x.type.size
    each = -(-n // ranks)
    flat = ops.concatenate([x.reshape(n), ops.full((each * ranks - n,), 0, x.type.dtype)], 0) if n % ranks else x.reshape(n)
    rows = collective.all_to_all(flat.reshape(ranks, each))
    return collective.all_gather(tree_sum([rows[r] for r in range(ranks)])).reshape(each * ranks)[:n].reshape(*x.type.shape)


def tree_sum(parts: Sequence[Operand]) -> Operand:
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
