"""Forward mode of branches and loops: the same region with tangents beside the values.

A branch yields the tangents of its results; a loop carries the tangents of its carries, and saves those of its saved values. Which carries
have a tangent is found first, by iterating over the loop (`activity`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.stack import zeros_like
from adjit.ir.records import NamedTuple

from ..rewrite import Renaming
from .activity import carried_params, extend_reached, initial_carries
from .recompute import copied

Tangents = dict[int, Operand]
Append = Callable[[Sequence[Stmt], Tangents], None]  # appends statements to the active builder, with their tangents


class _Dotted(NamedTuple):
    """A region with tangents: its operands and blocks, and what its results are, by their positions in the original statement."""

    args: tuple[Operand, ...]
    blocks: tuple[Block, ...]
    results: list[tuple[int, bool]]  # position, whether it is the tangent


def push_region(stmt: Stmt, known: Tangents, append: Append, in_place: bool) -> bool:
    """Emit the region with its tangents if any of its results has one, and record them in `known`.

    If `in_place`, the emitted region is the statement itself, with further results. Otherwise the statement has been emitted elsewhere, and
    this is a second one that computes everything again.
    """
    builder = current_builder()
    active = set(known)
    extend_reached([stmt], active)
    if builder is None or not any(id(r) in active for r in stmt.results):
        return False
    twin = stmt
    if not in_place:
        twin = copied(stmt, Renaming())
        extend_reached([twin], active)
    dotted = twin.region.push_forward(_Pusher(known, active, append, builder), twin)
    made = builder.emit(stmt.op, dotted.args, dotted.blocks, [stmt.results[k].type for k, _ in dotted.results])
    for value, (k, is_tangent) in zip(made, dotted.results, strict=True):
        if is_tangent:
            known[id(stmt.results[k])] = value
            value.name = _dot(stmt.results[k]).name
    if in_place:
        results = [value if is_tangent else stmt.results[k] for value, (k, is_tangent) in zip(made, dotted.results, strict=True)]
        builder.stmts[-1] = builder.stmts[-1].replace(results=tuple(results))
    return True


class _Pusher:
    """Implements `ir.ops.lowering.Forward` for regions."""

    def __init__(self, known: Tangents, active: set[int], append: Append, builder: Builder) -> None:
        self.given = known, active, append, builder

    def branches(self, stmt: Stmt) -> _Dotted:
        return _branches(stmt, *self.given)

    def loop(self, stmt: Stmt) -> _Dotted:
        return _loop(stmt, *self.given)


def _dot(value: Operand) -> Value:
    name = getattr(value, "name", None)
    return Value(value.type, f"{name}.dot" if name else None)


def _tangent(value: Operand, known: Tangents) -> Operand:
    return known[id(value)] if id(value) in known else zeros_like(value)


def _child(stmt: Stmt, params: Sequence[Value], around: Builder) -> Builder:
    child = Builder(params, around)
    child.location, child.phase, child.origin = stmt.location, stmt.phase, stmt.origin
    return child


def _branches(stmt: Stmt, known: Tangents, active: set[int], append: Append, builder: Builder) -> _Dotted:
    places = [k for k, r in enumerate(stmt.results) if id(r) in active]
    blocks = []
    for block in stmt.blocks:
        inside = dict(known)
        with _child(stmt, (), builder) as child:
            append(block.stmts, inside)
            blocks.append(child.finish([*block.results, *(_tangent(block.results[k], inside) for k in places)]))
    results = [*((k, False) for k in range(len(stmt.results))), *((k, True) for k in places)]
    return _Dotted(stmt.args, tuple(blocks), results)


def _loop(stmt: Stmt, known: Tangents, active: set[int], append: Append, builder: Builder) -> _Dotted:
    body = stmt.blocks[-1]
    carries = len(body.results)
    params, inits = carried_params(stmt, body), initial_carries(stmt)
    slots = [k for k, p in enumerate(params) if id(p) in active]
    saves = [k for k, s in enumerate(body.saving) if id(s) in active]
    inside = dict(known)
    dots = [_dot(params[k]) for k in slots]
    inside.update((id(params[k]), dot) for k, dot in zip(slots, dots, strict=True))
    with _child(stmt, (*body.params, *dots), builder) as child:
        append(body.stmts, inside)
        block = child.finish(
            [*body.results, *(_tangent(body.results[k], inside) for k in slots)],
            [*body.saving, *(_tangent(body.saving[k], inside) for k in saves)],
        )
    tests = [Block((*b.params, *(_dot(params[k]) for k in slots)), b.stmts, b.results) for b in stmt.blocks[:-1]]
    results = [
        *((k, False) for k in range(carries)),
        *((k, True) for k in slots),
        *((carries + k, False) for k in range(len(body.saving))),
        *((carries + k, True) for k in saves),
    ]
    return _Dotted((*stmt.args, *(_tangent(inits[k], known) for k in slots)), (*tests, block), results)
