"""Building `for` and `while` regions while tracing.

The values that a loop carries are found by tracing: the body is traced with the types of the values before the loop, and traced again as
long as it changes them. Variables that the body assigns are carried too; values that no iteration changes are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from adjit.ir.errors import TraceError
from adjit.ir.func import Block
from adjit.ir.operand import Operand, as_index
from adjit.ir.ops.control import For, While
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import maximum
from adjit.ir.types import BOOL, I64, TensorType

from .carries import CarriedEntry, Trips, carry_of
from .frames import user_location
from .growing import TracedList
from .regions import (
    UNDEFINED,
    Kind,
    RegionOutput,
    Wording,
    check_shapes,
    conform,
    finish,
    hold,
    is_traced,
    predicate,
    reading_assigned,
    same_blocks,
)  # fmt: skip
from .sharing import Overwritten, remember_choice
from .trace import Cell, Trace, Traced

MAX_ATTEMPTS = 12  # traces of one body: each widens a type or drops a carry, so more indicate a bug or an impure body


class LoopTrace(NamedTuple):
    """A loop to be traced. `step` maps the iteration number (None in a `while`) and the values at its start to the values at its end."""

    entries: Sequence[RegionOutput]
    init: Sequence[Any]
    step: Callable[[Operand | None, list[Any]], Sequence[Any]]
    words: Wording
    certain: bool  # whether at least one iteration runs: variables assigned only in the body then have a value afterwards
    checkpoint: str | int = "none"
    most: int | None = None  # upper bound on the trip count, if known


def emit_for(trace: Trace, loop: LoopTrace, start: Operand | int, stop: Operand | int) -> list[Any]:
    """Emit a `for` with iterations numbered from `start` to `stop - 1`."""
    trips = Trips(loop.most, False)
    if isinstance(start, int) and isinstance(stop, int):
        trips = Trips(maximum(0, stop - start), True, start)
    body = _trace_body(trace, loop, True, trips)
    bounds = [as_index(x) for x in (start, stop)]
    return _emit_loop(trace, For(loop.checkpoint), bounds, body, (body.block,))


def emit_while(trace: Trace, loop: LoopTrace, test: Callable[[list[Any]], Any]) -> list[Any]:
    """Emit `while test(values)`. The condition is traced separately and only once, after the types in the body have settled."""
    trips = Trips(loop.most, False)
    body = _trace_body(trace, loop, False, trips)
    carries, cells = body.carries, body.cells
    region = trace.region()
    with region:
        values = [carry.start(region, None) for carry in carries]
        variables = _carry_cells(trace, region, cells)
        go_on = test(values)
        if any(region.written[id(cell)] is not v for cell, v in zip(cells, variables, strict=True)) or len(region.written) > len(cells):
            raise TraceError("the condition of a traced `while` assigns a Variable; assign it in the body").at(user_location())
        if not is_traced(go_on):
            if go_on:
                raise TraceError("the condition of a traced `while` is always true, and nothing leaves the loop; add a `break`").at(
                    user_location()
                )
            go_on = False
        holds = conform(predicate(go_on, loop.words.what) if is_traced(go_on) else go_on, Kind(TensorType(BOOL), False))
        params = [slot.param for carry in carries for slot in carry.carried() if slot.param is not None]
    condition = finish(region, [holds], [*params, *variables])
    return _emit_loop(trace, While(loop.checkpoint), [], body, (condition, body.block))


class Body(NamedTuple):
    """A traced body: what it carries, the variables that it assigns, and the values that it replaces by writes."""

    carries: list[CarriedEntry]
    cells: list[Cell]
    block: Block
    overwritten: Overwritten


def _trace_body(trace: Trace, loop: LoopTrace, counted: bool, trips: Trips) -> Body:
    carries = []
    for entry, x in zip(loop.entries, loop.init, strict=True):
        unread = loop.certain and entry.fresh and not isinstance(x, list | TracedList)
        carries.append(carry_of(entry, UNDEFINED if unread else x, loop.words))
    cells: list[Cell] = []
    seen: Block | None = None  # the body in an iteration in which the dict keys that it creates exist already
    for _ in range(MAX_ATTEMPTS):
        region = trace.region()
        with region:
            index = region.parameter(TensorType(I64), "k", True, user_location()) if counted else None
            trip = index - trips.first if index is not None and trips.first and any(carry.steady for carry in carries) else index
            values = [carry.start(region, trip) for carry in carries]
            variables = _carry_cells(trace, region, cells)
            with reading_assigned(loop.words.what):
                outs = loop.step(index, values)
            changed = _settle(carries, outs, loop.certain, trips)
            known = {id(cell) for cell in cells}
            more = [cell for cell in trace.cells if id(cell) in region.written and id(cell) not in known]
            cells += more
            if changed or more:
                if seen is not None:
                    raise reads_made(carries)
                continue
            results = [x for carry, out in zip(carries, outs, strict=True) for x in carry.yields(out)]
            for cell, param in zip(cells, variables, strict=True):
                check_shapes(cell, param, region.written[id(cell)], "before an iteration", "after it")
            results += [region.written[id(cell)] for cell in cells]
            sharing = [slot.shares_more(trace) for carry in carries for slot in carry.carried()]
            if any(sharing):
                continue
            params = [slot.param for carry in carries for slot in carry.carried() if slot.param is not None]
        block = finish(region, results, [*([index] if index is not None else []), *params, *variables])
        if seen is None and any(carry.made for carry in carries):
            seen = block
            for carry in carries:
                carry.hide()
            continue
        if seen is not None and not same_blocks(seen, block):
            raise reads_made(carries)
        return Body(carries, cells, block, region.overwritten)
    raise TraceError(f"each iteration of this {loop.words.what} loop changes types again; a traced loop must keep them").at(user_location())


def reads_made(carries: Sequence[CarriedEntry]) -> TraceError:
    made = ", ".join(name for carry in carries for name in carry.made)
    return TraceError(
        f"the loop creates {made} in its first iteration, and does something else in later ones, when it exists; create it before the loop"
    ).at(user_location())


def _settle(carries: Sequence[CarriedEntry], outs: Sequence[Any], certain: bool, trips: Trips) -> bool:
    """Settle lists first: the body may depend on whether a list is empty, and a growing list is so only in the first attempt."""
    for lists in (True, False):
        pairs = [(c, out) for c, out in zip(carries, outs, strict=True) if c.holds_lists is lists]
        changes = [carry.settle(out, certain, trips) for carry, out in pairs]
        if any(changes):
            return True
    return False


def _carry_cells(trace: Trace, region: Trace, cells: Sequence[Cell]) -> list[Traced]:
    out = [region.parameter(trace.read(cell).type, cell.name, location=user_location()) for cell in cells]
    region.written.update({id(cell): param for cell, param in zip(cells, out, strict=True)})
    return out


def _emit_loop(
    trace: Trace, op: For | While, bounds: Sequence[Operand], body: Body, blocks: tuple[Block, ...],
) -> list[Any]:  # fmt: skip
    carries, cells = body.carries, body.cells
    if body.overwritten:  # the next iteration must not use what this one has replaced
        body.overwritten.check([x for block in blocks for x in block.free()])
    for carry in carries:
        carry.prepare()
    slots = [slot for carry in carries for slot in carry.carried()]
    kinds = [slot.kind for slot in slots if slot.kind is not None] + [Kind(trace.read(cell).type, False) for cell in cells]
    inits = [conform(slot.init, kind) for slot, kind in zip(slots, kinds, strict=False)] + [trace.read(cell) for cell in cells]
    results = trace.emit(op, [*bounds, *inits], blocks, [kind.type for kind in kinds])
    trace.overwritten.take_over(body.overwritten, [slot.left for slot in slots], results)
    remember_choice(trace, results, [(slot.left,) for slot in slots])
    hold(trace, results, [slot.name for slot in slots] + [cell.name for cell in cells], kinds)
    left: Iterator[Operand] = iter(results)
    values = [carry.result(left) for carry in carries]
    for cell in cells:
        trace.write(cell, next(left))
    return values
