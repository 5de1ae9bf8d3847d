"""Building `for` and `while` while tracing.

What a loop carries is found by tracing: the body is traced with the types that the values have before the loop, and again as long as it
changes them. Variables that the body assigns are carried too; values that no trip changes are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from adjit.ir import ops
from adjit.ir.errors import TraceError
from adjit.ir.func import Block
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.control import For, While
from adjit.ir.types import BOOL, I64, TensorType

from .frames import user_location
from .growing import GrowingList, StackedList
from .pytree import TreeDef, flatten
from .regions import (
    UNDEFINED,
    Entry,
    Kind,
    Wording,
    blank,
    conform,
    describe,
    finish,
    hold,
    is_traced,
    join,
    kind_of,
    mismatch,
    name_of,
    predicate,
    same_static,
)  # fmt: skip
from .trace import Cell, Trace, Traced

MAX_ATTEMPTS = 12  # traces of one body: each makes a type wider or a carry fewer, so that more means a bug or a body that is not a function


class Slot:
    """A leaf of what a loop carries, or (`kind` None) a constant that stays as it is."""

    __slots__ = ("init", "kind", "name", "param")

    def __init__(self, init: Any, kind: Kind | None, name: str | None) -> None:
        self.init = init
        self.kind = kind
        self.name = name
        self.param: Traced | None = None


class Carry:
    """The state of one entry through the attempts to trace a loop."""

    def __init__(self, entry: Entry, value: Any, words: Wording) -> None:
        self.entry = entry
        self.words = words
        self.before = value
        self.tree: TreeDef | None = None
        self.slots: list[Slot] = []
        self.growth: list[TreeDef] | None = None  # for a list: the structures of what one trip appends
        self.buffers: list[Slot] = []
        self.given: Any = None
        self.rows: list[Any] = []
        if value is not UNDEFINED:
            self.take(value)

    def take(self, value: Any, unknown: bool = False) -> None:
        """Carry this structure; `unknown` where it is only known what a trip will make of it, not what it is before."""
        leaves, self.tree = flatten(value)
        paths = self.tree.paths()
        given = [blank(leaf) for leaf in leaves] if unknown else leaves
        self.slots = [Slot(x, kind_of(x), name_of(self.entry, path)) for x, path in zip(given, paths, strict=True)]

    def start(self, region: Trace) -> Any:
        """The value at the start of a trip, on parameters of the region."""
        if self.tree is None:
            return UNDEFINED
        for slot in self.slots:
            slot.param = region.parameter(slot.kind.type, slot.name, slot.kind.weak, user_location()) if slot.kind else None
        value = self.tree.unflatten([slot.init if slot.param is None else slot.param for slot in self.slots])
        self.given = GrowingList(value) if type(value) is list and self.growth is not None else value
        for slot in self.buffers:
            assert slot.kind is not None
            slot.param = region.parameter(slot.kind.type, slot.name, False, user_location())
        return self.given

    def settle(self, out: Any, certain: bool, trips: int | None) -> bool:
        """Compare what a trip gives with what it took; whether that changes what is carried."""
        if self.tree is None:
            return self.define(out, certain)
        if out is UNDEFINED and self.entry.optional:  # no trip assigns it: it stays what it was
            changed = any(slot.kind is not None for slot in self.slots)
            for slot in self.slots:
                slot.kind = None
            return changed
        if out is UNDEFINED:
            raise mismatch(self.words, self.entry, "", (self.before, out), "a traced loop must leave it assigned")
        if isinstance(self.before, list) and isinstance(out, list) and (self.growth is not None or length(out) > length(self.before)):
            return self.grow(out, trips)
        if isinstance(self.before, list) and isinstance(out, StackedList):
            raise TraceError(
                f"{self.entry} is appended to by a loop inside of a traced loop; make an array of the inner values first"
            ).at(user_location())
        leaves, tree = flatten(out)
        if tree != self.tree:
            if self.entry.fresh and certain:
                self.tree = None
                return self.define(out, certain)
            raise mismatch(self.words, self.entry, "", (self.before, out), "a traced loop must leave its structure as it is")
        changed = False
        for slot, leaf, path in zip(self.slots, leaves, tree.paths(), strict=True):
            changed |= self.settle_leaf(slot, leaf, path, certain)
        return changed

    def define(self, out: Any, certain: bool) -> bool:
        if out is UNDEFINED:
            return False
        if not (certain or self.entry.optional):
            raise mismatch(
                self.words, self.entry, "", (self.before, out),
                f"the loop may run no trip at all: assign {self.entry} before it, for it is used after it",
            )  # fmt: skip
        self.take(out, unknown=True)
        return True

    def settle_leaf(self, slot: Slot, leaf: Any, path: str, certain: bool) -> bool:
        if slot.kind is None:
            if same_static(slot.init, leaf):
                return False
            theirs = kind_of(leaf)
            if theirs is not None and self.entry.fresh and certain:
                slot.init, slot.kind = Literal(0, theirs.type), theirs
                return True
            raise mismatch(self.words, self.entry, path, (slot.init, leaf), "only numbers and arrays may change in a traced loop")
        if leaf is slot.param:  # no trip changes it: the loop sees it from outside, as the Python value that it is
            slot.kind = None
            return True
        theirs = kind_of(leaf)
        kind = join(slot.kind, theirs) if theirs else None
        if kind is None and theirs is not None and self.entry.fresh and certain:
            slot.init, kind = Literal(0, theirs.type), theirs
        if kind is None:
            advice = "a traced loop must leave its type as it is; cast or reshape it before the loop"
            raise mismatch(self.words, self.entry, path, (slot.init, leaf), advice)
        changed, slot.kind = kind != slot.kind, kind
        return changed

    def grow(self, out: list[Any], trips: int | None) -> bool:
        """A list that trips append to: one buffer for each leaf of what is appended, with a row for each trip."""
        everything = list(list.__iter__(out))
        base, items = everything[: length(self.before)], everything[length(self.before) :]
        if trips is None:
            raise TraceError(
                f"{self.entry} is a list that the loop appends to, but the number of trips is only known when it runs; make a buffer first "
                f"({self.entry.name} = np.zeros((most, ...))) and write its rows ({self.entry.name}[i] = value), or use aj.scan"
            ).at(user_location())
        if len(base) != length(self.before) or any(a is not b for a, b in zip(base, list.__iter__(self.given))):
            raise TraceError(f"{self.entry} is a list that a traced loop both appends to and changes; append only").at(user_location())
        rows, first = flatten(items), self.growth is None
        kinds = [self.row_kind(leaf, trips) for leaf in rows[0]]
        if not first and [slot.kind for slot in self.buffers] == kinds:
            self.rows = rows[0]
            return False
        if not first and len(kinds) != len(self.buffers):
            raise TraceError(f"{self.entry} grows by another number of values in another trip").at(user_location())
        self.growth = [flatten(item)[1] for item in items]
        self.buffers = [Slot(Literal(0, kind.type), kind, None) for kind in kinds]
        for slot in self.slots:
            slot.kind = None
        return True

    def row_kind(self, leaf: Any, trips: int) -> Kind:
        kind = kind_of(leaf)
        if kind is None:
            raise TraceError(f"{self.entry}: a traced loop appends {describe(leaf)}; only numbers and arrays stack").at(user_location())
        return Kind(kind.type.with_shape((trips, *kind.type.shape)), False)

    def carried(self) -> list[Slot]:
        return [*(slot for slot in self.slots if slot.kind is not None), *self.buffers]

    def yields(self, out: Any, index: Operand | None) -> list[Operand]:
        """What a trip hands to the next, in the order of `carried`; inside of the region."""
        if self.growth is not None:
            assert index is not None
            return [_set_row(slot, row, index) for slot, row in zip(self.buffers, self.rows, strict=True)]
        if self.tree is None or out is UNDEFINED:
            return []
        return [conform(leaf, slot.kind) for slot, leaf in zip(self.slots, flatten(out)[0], strict=True) if slot.kind is not None]

    def result(self, results: Iterator[Operand], trips: int | None) -> Any:
        """The value after the loop."""
        if self.tree is None:
            return UNDEFINED
        if self.growth is not None:
            assert trips is not None
            return StackedList(self.before, self.growth, [next(results) for _ in self.buffers], trips)
        return self.tree.unflatten([slot.init if slot.kind is None else next(results) for slot in self.slots])


def length(items: list[Any]) -> int:
    return list.__len__(items)  # that of a growing list is not for the user


def _set_row(slot: Slot, row: Any, index: Operand) -> Operand:
    assert slot.kind is not None
    assert slot.param is not None
    type = slot.kind.type
    return ops.setitem(slot.param, index, conform(row, Kind(type.with_shape(type.shape[1:]), False)))


class Loop(NamedTuple):
    """A loop to be traced. `step` takes the number of the trip (None in a `while`) and the values at its start, gives those at its end."""

    entries: Sequence[Entry]
    init: Sequence[Any]
    step: Callable[[Operand | None, list[Any]], Sequence[Any]]
    words: Wording
    certain: bool  # whether there is a first trip for sure: variables that are assigned by trips only have a value after it
    checkpoint: str | int = "none"


def emit_for(trace: Trace, loop: Loop, start: Operand | int, stop: Operand | int) -> list[Any]:
    """`for` with trips numbered from `start` to `stop - 1`."""
    trips = max(0, stop - start) if isinstance(start, int) and isinstance(stop, int) else None
    carries, cells, block = _trace_body(trace, loop, True, trips, start if isinstance(start, int) else 0)
    bounds = [Literal(x, TensorType(I64)) if isinstance(x, int) else ops.cast(x, I64) for x in (start, stop)]
    return _emit_loop(trace, For(loop.checkpoint), bounds, carries, cells, (block,), trips)


def emit_while(trace: Trace, loop: Loop, test: Callable[[list[Any]], Any]) -> list[Any]:
    """`while test(values)`. The test is traced on its own, as often as the body settles: once."""
    carries, cells, block = _trace_body(trace, loop, False, None, 0)
    region = trace.region()
    with region:
        values = [carry.start(region) for carry in carries]
        variables = _carry_cells(region, cells)
        go_on = test(values)
        if any(region.written[id(cell)] is not v for cell, v in zip(cells, variables, strict=True)) or len(region.written) > len(cells):
            raise TraceError("the condition of a traced `while` assigns a Variable; assign it in the body").at(user_location())
        if not is_traced(go_on):
            if go_on:
                raise TraceError("the condition of a traced `while` is always true, and nothing leaves the loop").at(user_location())
            go_on = False
        holds = conform(predicate(go_on, loop.words.what) if is_traced(go_on) else go_on, Kind(TensorType(BOOL), False))
        params = [slot.param for carry in carries for slot in carry.carried() if slot.param is not None]
    condition = finish(region, [holds], [*params, *variables])
    return _emit_loop(trace, While(loop.checkpoint), [], carries, cells, (condition, block), None)


def _trace_body(
    trace: Trace, loop: Loop, counted: bool, trips: int | None, first: int
) -> tuple[list[Carry], list[Cell], Block]:
    carries = []
    for entry, x in zip(loop.entries, loop.init, strict=True):
        unread = loop.certain and entry.fresh and not isinstance(x, list)
        carries.append(Carry(entry, UNDEFINED if unread else x, loop.words))
    cells: list[Cell] = []
    for _ in range(MAX_ATTEMPTS):
        region = trace.region()
        with region:
            index = region.parameter(TensorType(I64), "k", True, user_location()) if counted else None
            values = [carry.start(region) for carry in carries]
            variables = _carry_cells(region, cells)
            outs = loop.step(index, values)
            changed = False
            for carry, out in zip(carries, outs, strict=True):
                changed |= carry.settle(out, loop.certain, trips)
            known = {id(cell) for cell in cells}
            more = [cell for cell in trace.cells if id(cell) in region.written and id(cell) not in known]
            cells += more
            if changed or more:
                continue
            # rows of a buffer are counted from 0, whatever the loop counts from
            grows = any(carry.growth is not None for carry in carries)
            row: Operand | None = index - first if index is not None and first and grows else index
            results = [x for carry, out in zip(carries, outs, strict=True) for x in carry.yields(out, row)]
            results += [region.written[id(cell)] for cell in cells]
            params = [slot.param for carry in carries for slot in carry.carried() if slot.param is not None]
        return carries, cells, finish(region, results, [*([index] if index is not None else []), *params, *variables])
    raise TraceError(f"the types in this {loop.words.what} loop do not settle: each trip changes them again").at(user_location())


def _carry_cells(region: Trace, cells: Sequence[Cell]) -> list[Traced]:
    out = [region.parameter(cell.type, cell.name, location=user_location()) for cell in cells]
    region.written.update({id(cell): param for cell, param in zip(cells, out, strict=True)})
    return out


def _emit_loop(
    trace: Trace, op: For | While, bounds: Sequence[Operand], carries: Sequence[Carry], cells: Sequence[Cell], blocks: tuple[Block, ...],
    trips: int | None,
) -> list[Any]:  # fmt: skip
    slots = [slot for carry in carries for slot in carry.carried()]
    kinds = [slot.kind for slot in slots if slot.kind is not None] + [Kind(cell.type, False) for cell in cells]
    inits = [conform(slot.init, kind) for slot, kind in zip(slots, kinds, strict=False)] + [trace.read(cell) for cell in cells]
    results = trace.emit(op, [*bounds, *inits], blocks, [kind.type for kind in kinds])
    hold(trace, results, [slot.name for slot in slots] + [cell.name for cell in cells], kinds)
    left: Iterator[Operand] = iter(results)
    values = [carry.result(left, trips) for carry in carries]
    for cell in cells:
        trace.written[id(cell)] = next(left)
    return values
