"""Reverse mode of branches and loops.

The adjoint of an `if` is an `if` on the same predicate. The adjoint of a loop is a `for` over its iterations in reverse, which carries the
cotangents of the carries, and one for every outside value that the body reads. The forward values that they need are recomputed or stored
(`recompute` decides): an `if` returns them as further results, a loop saves them on stacks. The forward statement is then replaced by one
that does so, with the same results and more.

A loop inside a region does not save for the outer one: the adjoint of the region runs it again, with saving, and then its adjoint. A loop
with `checkpoint` is first rewritten as two nested loops, to which the same rules apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import maximum
from adjit.ir.ops.base import apply
from adjit.ir.ops.control import For
from adjit.ir.ops.stack import StackRead, zeros_like
from adjit.ir.types import I64, StackType, TensorType

from ..rewrite import Renaming, operands_read
from ..simplify.trips import counted, stepping
from .activity import carried_params, extend_reached, initial_carries, mark, want_carries
from .checkpoint import segmented
from .recompute import choose, copied

if TYPE_CHECKING:
    from .reverse import Sweep

INDEX = TensorType(I64)


def _builder() -> Builder:
    builder = current_builder()
    assert builder is not None
    return builder


def _child(params: Sequence[Value], of: Stmt) -> Builder:
    """A builder for a backward block."""
    child = Builder(params, _builder())
    child.location, child.phase, child.origin = of.location, "backward", of
    return child


def _barred(value: Operand) -> Value:
    name = getattr(value, "name", None)
    return Value(value.type, f"{name}.bar" if name else None)


def _outside(sweep: Sweep, blocks: Sequence[Block]) -> list[Value]:
    """Values of the enclosing blocks that derivatives reach through these blocks."""
    found = {id(v): v for block in blocks for v in block.free() if id(v) in sweep.active}
    return list(found.values())


def _needs(block: Block, of: Block, stmts: Sequence[Stmt]) -> list[Value]:
    """The values of its forward counterpart, whose statements are `stmts`, that a backward block reads."""
    made = {id(p) for p in of.params} | {id(r) for s in stmts for r in s.results}
    return [v for v in block.free() if id(v) in made]


def _final(stmts: Sequence[Stmt], before: Sequence[Stmt], kept: Sequence[Value]) -> list[Stmt]:
    """A forward block's statements: those that compute stored values as they are now, the others as they were, without loops that save."""
    wanted = {id(v) for v in kept}
    return [new if any(id(r) in wanted for r in new.results[len(old.results) :]) else old for new, old in zip(stmts, before, strict=True)]


# ---- branches, and blocks that are recomputed


def pull_back_branches(sweep: Sweep, stmt: Stmt, may_keep: bool) -> None:
    """If `may_keep`, values that the adjoint needs may become further results of the forward statement rather than be recomputed."""
    outside = _outside(sweep, stmt.blocks)
    builders: list[Builder] = []
    locals_: list[list[Stmt]] = []
    found: list[dict[int, Operand]] = []
    for block in stmt.blocks:
        child, stmts = _child((), stmt), list(block.stmts)
        inner = sweep.inside(stmts)
        inner.cotangents = {id(v): sweep.cotangents[id(v)] for v in outside if id(v) in sweep.cotangents}
        with child:
            for result, value in zip(stmt.results, block.results, strict=True):
                if id(result) in sweep.cotangents:
                    inner.accumulate(value, sweep.cotangents[id(result)])
            inner.run(stmts)
        builders.append(child)
        locals_.append(stmts)
        found.append(inner.cotangents)
    changed = [v for v in outside if any(f.get(id(v)) is not sweep.cotangents.get(id(v)) for f in found)]
    if not changed:
        return
    kept: list[list[Value]] = []
    blocks: list[Block] = []
    renamings: list[Renaming] = []
    for block, child, stmts, cotangents in zip(stmt.blocks, builders, locals_, found, strict=True):
        with child:
            results = [cotangents[id(v)] if id(v) in cotangents else zeros_like(v) for v in changed]
        adjoint = child.finish(results)
        choice = choose(_needs(adjoint, block, stmts), block, stmts, may_keep=may_keep)
        renaming = Renaming()
        for value in choice.keep:
            renaming[value] = Value(value.type, value.name)
        again = [copied(s, renaming, "backward", stmt) for s in choice.again]
        adjoint = renaming.block(adjoint)
        blocks.append(Block((), [*again, *adjoint.stmts], adjoint.results))
        kept.append(choice.keep)
        renamings.append(renaming)
    if any(kept):
        sweep.replace(stmt, _keeping(stmt, locals_, kept, renamings))
    totals = _builder().emit(stmt.op, stmt.args, tuple(blocks), [v.type for v in changed])
    for value, total in zip(changed, totals, strict=True):
        sweep.set(value, total)


def _keeping(stmt: Stmt, stmts: Sequence[Sequence[Stmt]], kept: Sequence[Sequence[Value]], renamings: Sequence[Renaming]) -> Stmt:
    """The `if` with further results: a value stored by one branch is zero in the other."""
    results = [*stmt.results]
    yields = [[*b.results] for b in stmt.blocks]
    for branch, (values, renaming) in enumerate(zip(kept, renamings, strict=True)):
        for value in values:
            results.append(renaming[value])
            for k, each in enumerate(yields):
                each.append(value if k == branch else Literal(0, value.type))
    blocks = [Block((), _final(new, b.stmts, keep), out) for b, new, keep, out in zip(stmt.blocks, stmts, kept, yields, strict=True)]
    return stmt.replace(results=tuple(results), blocks=tuple(blocks))


# ---- loops


def pull_back_loop(sweep: Sweep, stmt: Stmt) -> None:
    cotangents, active = sweep.cotangents, sweep.active
    split = segmented(stmt)
    if split is not stmt:
        sweep.replace(stmt, split)
        stmt = split
        extend_reached([stmt], active)
    body = stmt.blocks[-1]
    params, inits, carries = carried_params(stmt, body), initial_carries(stmt), len(body.results)
    stacks = [
        (value, cotangents[id(stack)])
        for stack, value in zip(stmt.results[carries:], body.saving, strict=True)
        if id(stack) in cotangents and id(value) in active
    ]
    wanted: set[int] = set()
    mark(wanted, (value for value, _ in stacks))
    slots = {i for i in range(carries) if id(stmt.results[i]) in cotangents and id(stmt.results[i]) in active}
    want_carries(body, params, slots, wanted)
    bars = {i: _barred(params[i]) for i in sorted(slots) if id(params[i]) in active}
    totals = [(v, _barred(v)) for v in _outside(sweep, [body]) if id(v) in wanted]
    if not stmt.region.counters:
        stmt, trips = counted(stmt)
        body = stmt.blocks[-1]
    else:
        start, stop = stmt.args[:2]
        trips = maximum(stop if isinstance(start, Literal) and start.value == 0 else stop - start, 0)
    j = Value(INDEX)
    lead = _child((), stmt)
    with lead:
        i = trips - 1 - j
    # the adjoint of the body, in terms of the body's own values
    child, stmts = _child((), stmt), list(body.stmts)
    inner = sweep.inside(stmts)
    inner.cotangents = {id(v): total for v, total in totals}
    with child:
        for slot, bar in bars.items():
            inner.accumulate(body.results[slot], bar)
        for value, d in stacks:
            inner.accumulate(value, apply(StackRead().unchecked(), d, i))
        inner.run(stmts)
        following = [inner.cotangents[id(params[s])] if id(params[s]) in inner.cotangents else zeros_like(bar) for s, bar in bars.items()]
    totals = [(v, total) for v, total in totals if inner.cotangents[id(v)] is not total]
    adjoint = child.finish([*following, *(inner.cotangents[id(v)] for v, _ in totals)])
    # the forward values that it reads
    needs = _needs(adjoint, body, stmts)
    known = _known_values(stmt, body)
    choice = choose(needs, body, stmts, [value for value, _ in known])
    read = {id(v) for v in needs} | {id(v) for s in choice.again for v in operands_read(s)}
    renaming = Renaming()
    stacked: list[Value] = []
    with lead:
        for value, at in known:
            if id(value) in read:
                renaming[value] = at(i)
        for value in choice.keep:
            stacked.append(Value(StackType(value.type), value.name))
            renaming[value] = apply(StackRead().unchecked(), stacked[-1], i)
    again = [copied(s, renaming, "backward", stmt) for s in choice.again]
    adjoint = renaming.block(adjoint)
    augmented = Block(body.params, _final(stmts, body.stmts, choice.keep), body.results, (*body.saving, *choice.keep))
    sweep.replace(stmt, stmt.replace(blocks=(*stmt.blocks[:-1], augmented), results=(*stmt.results, *stacked)))
    if not bars and not totals:
        return
    block = Block((j, *bars.values(), *(t for _, t in totals)), [*lead.stmts, *again, *adjoint.stmts], adjoint.results)
    starts = [cotangents[id(stmt.results[s])] if id(stmt.results[s]) in cotangents else zeros_like(stmt.results[s]) for s in bars]
    starts += [cotangents[id(v)] if id(v) in cotangents else zeros_like(v) for v, _ in totals]
    args = (Literal(0, INDEX), trips, *starts)
    out = _builder().emit(For(), args, (block,), [x.type for x in starts])
    for (value, _), total in zip(totals, out[len(bars) :], strict=True):
        sweep.set(value, total)
    for slot, d in zip(bars, out, strict=False):
        if id(inits[slot]) in active:
            sweep.accumulate(inits[slot], d)


def _known_values(stmt: Stmt, body: Block) -> list[tuple[Value, Callable[[Operand], Operand]]]:
    """Values of a loop's body that are available at iteration i anyway: counters, carries that never change, values already saved."""
    out: dict[int, tuple[Value, Callable[[Operand], Operand]]] = {}  # by id: traced values have no hash
    if stmt.region.counters:
        out[id(body.params[0])] = body.params[0], partial(_counted_to, stmt.args[0], Literal(1, INDEX))
    params, inits = carried_params(stmt, body), initial_carries(stmt)
    steps = stepping(body, params)
    for slot, (param, init) in enumerate(zip(params, inits, strict=True)):
        if body.results[slot] is param:
            out[id(param)] = param, partial(_unchanged, init)
        elif slot in steps:
            out[id(param)] = param, partial(_counted_to, init, steps[slot])
    for value, stack in zip(body.saving, stmt.results[len(body.results) :], strict=True):
        if isinstance(value, Value):
            out.setdefault(id(value), (value, partial(apply, StackRead().unchecked(), stack)))
    return list(out.values())


def _unchanged(first: Operand, i: Operand) -> Operand:
    return first


def _counted_to(first: Operand, step: Literal, i: Operand) -> Operand:
    offset = i if step.value == 1 else i * step
    return offset if isinstance(first, Literal) and first.value == 0 else first + offset
