"""Building `if`, `for` and `while` while tracing: a branch or a body is traced on its own, and its values settle on one type each.

Owns what the functional forms (`control`) and rewritten Python statements (`autograph`) have in common: which leaves of structures are
carried, how the types of two branches or of two trips meet, what becomes of variables that a region assigns, and the errors when types do not
meet. Refuses: knowing where values come from and go to.

What a loop carries is found by tracing: the body is traced with the types that the values have before the loop, and again as long as it
changes them. Python scalars give way in dtype and shape; anything else must keep its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError, TraceError
from adjit.ir.func import Block, Value
from adjit.ir.location import Location
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.ops.control import For, If, While
from adjit.ir.types import BOOL, F64, I64, TensorType, as_dtype, promote, weak_example

from .frames import user_location
from .growing import GrowingList, StackedList
from .pytree import TreeDef, flatten, spelled
from .trace import Cell, Trace, Traced
from .traced import WeakSplat

MAX_ATTEMPTS = 12  # traces of one body: each makes a type wider or a carry fewer, so that more means a bug or a body that is not a function

Find: TypeAlias = Callable[[str, int], Location | None]  # (name, side) -> the line where that side gives the name its value


class Undefined:
    """What a Python variable holds that nothing was assigned to."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


class Entry(NamedTuple):
    """One thing that a region gives: a variable of the user's, or the result of a function."""

    name: str
    optional: bool = False  # read only where it was assigned, which adjit itself has arranged: any value will do elsewhere
    fresh: bool = False  # no trip of the loop reads it before assigning it

    def __str__(self) -> str:
        return f"`{self.name}`" if self.name.isidentifier() else self.name


class Wording(NamedTuple):
    """How messages speak of a construct: its name, its two sides, and the user's lines."""

    what: str  # "`if`"
    sides: tuple[str, str]  # "in the `if` branch", "in the `else` branch"
    find: Find = lambda name, side: None

    def side(self, entry: Entry, index: int, value: Any) -> str:
        location = self.find(entry.name, index) or getattr(value, "location", None)
        return self.sides[index] + (f" ({location.file.rpartition('/')[2]}:{location.line})" if location else "")


class Kind(NamedTuple):
    """What a leaf is to the IR. A Python scalar is weak: it takes the dtype and the shape of what it meets."""

    type: TensorType
    weak: bool


_SCALARS = {bool: TensorType(BOOL), int: TensorType(I64), float: TensorType(F64)}


def kind_of(leaf: Any) -> Kind | None:
    """None for what no array holds: text, functions, objects."""
    if isinstance(leaf, Operand):
        return Kind(leaf.type, leaf.weak)
    scalar = _SCALARS.get(type(leaf))
    if scalar is not None:
        return Kind(scalar, True)
    if isinstance(leaf, np.ndarray | np.generic):
        try:
            return Kind(TensorType(as_dtype(leaf.dtype), leaf.shape), False)
        except DTypeError:
            return None
    return None


def join(a: Kind, b: Kind) -> Kind | None:
    """The one kind for both; None where there is none."""
    weak = a.weak and b.weak
    if a.type == b.type:
        return Kind(a.type, weak)
    if not (a.weak or b.weak):
        return None
    dtype = promote(*(weak_example(k.type.dtype) if k.weak else k.type.dtype for k in (a, b)))
    for one, other in ((a, b), (b, a)):
        if one.type.shape == other.type.shape or (one.weak and not one.type.shape):
            return Kind(TensorType(dtype, other.type.shape), weak)
    return None


def conform(leaf: Any, kind: Kind) -> Operand:
    """A leaf as an operand of exactly this type, emitted into the active trace where it takes an op."""
    if type(leaf) in _SCALARS:
        return Literal(leaf, kind.type)
    x = ops.broadcast_to(ops.cast(as_operand(leaf), kind.type.dtype), kind.type.shape)
    return Literal(x.value, x.type) if isinstance(x, Literal) else x


def is_traced(x: Any) -> bool:
    """Whether only a run of the compiled function will know x. A variable is, while a function is traced."""
    return isinstance(x, Value) or (isinstance(x, Operand) and isinstance(as_operand(x), Value))


def predicate(x: Any, what: str) -> Operand:
    """A traced condition as a bool scalar."""
    operand = as_operand(x)
    if operand.type.size != 1:
        raise ShapeError(f"{what}: the truth of {operand.type}, which has {operand.type.size} elements, is ambiguous; use .any() or .all()").at(
            user_location()
        )
    return ops.cast(ops.reshape(operand, ()), BOOL)


def same_static(a: Any, b: Any) -> bool:
    """Whether two leaves that are no arrays, or two Python scalars, are one and the same constant."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Operand | np.ndarray):
        return False
    try:
        return repr(a) == repr(b) if isinstance(a, float) else bool(a == b)  # -0.0 is not 0.0
    except Exception:
        return False  # a comparison of the user's that fails makes two values different, no more


def describe(value: Any) -> str:
    if value is UNDEFINED:
        return "not assigned"
    kind = kind_of(value)
    if kind is not None:
        return f"{kind.type}" + (f" (a Python {type(value).__name__})" if type(value) in _SCALARS else "")
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def mismatch(words: Wording, entry: Entry, path: str, values: tuple[Any, Any], advice: str) -> TraceError:
    sides = [f"{describe(v)} {words.side(entry, i, v)}" for i, v in enumerate(values)]
    name = f"`{entry.name}{path}`" if entry.name.isidentifier() else f"{entry.name}{path}"
    return TraceError(f"{name} is {sides[0]}, but {sides[1]}; {advice}").at(user_location())


def name_of(entry: Entry, path: str = "") -> str | None:
    return entry.name if entry.name.isidentifier() and not path else None


def hold(trace: Trace, results: Sequence[Value], names: Sequence[str | None], kinds: Sequence[Kind]) -> None:
    """Give the results of a region the names and the weakness of what they stand for."""
    for result, name, kind in zip(results, names, kinds, strict=True):
        result.name = name
        if isinstance(result, Traced):
            result.weak = kind.weak
    trace.keep_names()


def finish(region: Trace, results: Sequence[Operand], params: Sequence[Value] = ()) -> Block:
    for x in results:
        if isinstance(x, Traced):
            region.check_reachable(x, "yield")
    region.params = list(params)
    return region.finish(results)


# ---- branches


class Choice(NamedTuple):
    """A leaf that the two branches give differently."""

    kind: Kind
    sides: tuple[Any, Any]
    name: str | None


def emit_if(
    trace: Trace, condition: Any, branches: Sequence[Callable[[], Sequence[Any]]], entries: Sequence[Entry], words: Wording
) -> list[Any]:
    """Trace both branches, each giving a value for each entry, and emit the `if` that chooses between them."""
    test = predicate(condition, words.what)
    regions: list[Trace] = []
    outcomes: list[Sequence[Any]] = []
    for branch in branches:
        region = trace.region()
        with region:
            outcomes.append(branch())
        regions.append(region)
    choices: list[Choice] = []
    builds: list[Callable[[Iterator[Operand]], Any]] = []
    dead = tuple(region.dead_end for region in regions)
    for entry, a, b in zip(entries, *outcomes, strict=True):
        builds.append(_meet(entry, (a, b), dead, words, choices))
    cells = [cell for cell in trace.cells if any(id(cell) in region.written for region in regions)]
    for cell in cells:
        sides = tuple(region.written.get(id(cell)) for region in regions)
        current = trace.read(cell)
        choices.append(Choice(Kind(cell.type, False), (sides[0] or current, sides[1] or current), cell.name))
    trace.dead_end = trace.dead_end or all(dead)
    results = iter(_choose(trace, test, regions, choices, words))
    values = [build(results) for build in builds]
    for cell in cells:
        trace.written[id(cell)] = next(results)
    return values


def _meet(
    entry: Entry, sides: tuple[Any, Any], dead: tuple[bool, ...], words: Wording, choices: list[Choice]
) -> Callable[[Iterator[Operand]], Any]:
    """Note what the `if` has to choose for this entry; gives the function that builds the entry's value from the results."""
    a, b = sides
    if a is b:
        return lambda results: a
    for missing, there in ((0, b), (1, a)):
        if sides[missing] is UNDEFINED or dead[missing]:
            if not (entry.optional or dead[missing]):
                raise mismatch(words, entry, "", sides, f"assign it in both, or before the {words.what}, for it is used after it")
            if dead[1 - missing]:
                return lambda results: UNDEFINED
            leaves, tree = flatten(there)
            return _build(entry, tree, [(_nothing(leaf), leaf) if missing == 0 else (leaf, _nothing(leaf)) for leaf in leaves], words, choices)
    (a_leaves, tree), (b_leaves, b_tree) = flatten(a), flatten(b)
    if tree != b_tree:
        raise mismatch(words, entry, "", sides, f"both branches of a traced {words.what} must give it the same structure")
    return _build(entry, tree, list(zip(a_leaves, b_leaves, strict=True)), words, choices)


def _nothing(like: Any) -> Any:
    kind = kind_of(like)
    return like if kind is None else (WeakSplat if kind.weak else Literal)(0, kind.type)


def _build(
    entry: Entry, tree: TreeDef, pairs: Sequence[tuple[Any, Any]], words: Wording, choices: list[Choice]
) -> Callable[[Iterator[Operand]], Any]:
    parts: list[Any] = []
    for (a, b), path in zip(pairs, tree.key_paths(), strict=True):
        where = spelled(path)
        ours, theirs = kind_of(a), kind_of(b)
        if same_static(a, b):
            parts.append((a,))
            continue
        kind = join(ours, theirs) if ours and theirs else None
        if kind is None:
            advice = f"both branches of a traced {words.what} must give it one type"
            raise mismatch(words, entry, where, (a, b), advice + ("; cast with .astype" if ours and theirs else ": only numbers and arrays may differ"))
        parts.append(None)
        choices.append(Choice(kind, (a, b), name_of(entry, where)))
    return lambda results: tree.unflatten([next(results) if part is None else part[0] for part in parts])


def _choose(trace: Trace, test: Operand, regions: Sequence[Trace], choices: Sequence[Choice], words: Wording) -> list[Operand]:
    yields: list[list[Operand]] = []
    for side, region in enumerate(regions):
        with region:
            yields.append([conform(choice.sides[side], choice.kind) for choice in choices])
    known = [_truth(test, a, b) for a, b in zip(*yields, strict=True)]
    chosen = [i for i, value in enumerate(known) if value is None]
    out: list[Operand] = [test if value is None else value for value in known]
    if chosen or any(region.stmts for region in regions):
        blocks = tuple(finish(region, [row[i] for i in chosen]) for region, row in zip(regions, yields, strict=True))
        results = trace.emit(If(), (test,), blocks, [choices[i].kind.type for i in chosen])
        hold(trace, results, [choices[i].name for i in chosen], [choices[i].kind for i in chosen])
        for i, result in zip(chosen, results, strict=True):
            out[i] = result
    return out


def _truth(test: Operand, a: Operand, b: Operand) -> Operand | None:
    """A flag set in one branch and cleared in the other is the condition itself."""
    if not (isinstance(a, Literal) and isinstance(b, Literal)) or a.type != test.type or b.type != test.type:
        return None
    if a.value == b.value:
        return WeakSplat(a.value, a.type)
    return test if a.value else ops.logical_not(test)


# ---- loops


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

    def take(self, value: Any, blank: bool = False) -> None:
        """Carry this structure; `blank` where it is only known what a trip will make of it, not what it is before."""
        leaves, self.tree = flatten(value)
        paths = self.tree.paths()
        given = [_nothing(leaf) for leaf in leaves] if blank else leaves
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
        if out is UNDEFINED:
            raise mismatch(self.words, self.entry, "", (self.before, out), "a traced loop must leave it assigned")
        if isinstance(self.before, list) and isinstance(out, list) and (self.growth is not None or length(out) > length(self.before)):
            return self.grow(out, trips)
        if isinstance(self.before, list) and isinstance(out, StackedList):
            raise TraceError(f"{self.entry} is appended to by a loop inside of a traced loop; make an array of the inner values first").at(user_location())
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
        self.take(out, blank=True)
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
            raise mismatch(
                self.words, self.entry, path, (slot.init, leaf), "a traced loop must leave its type as it is; cast or reshape it before the loop"
            )
        changed, slot.kind = kind != slot.kind, kind
        return changed

    def grow(self, out: list[Any], trips: int | None) -> bool:
        """A list that trips append to: one buffer for each leaf of what is appended, with a row for each trip."""
        everything = list(list.__iter__(out))
        base, items = everything[: length(self.before)], everything[length(self.before) :]
        if trips is None:
            raise TraceError(
                f"{self.entry} is a list that the loop appends to, but the number of trips is only known when it runs; assign a buffer before "
                f"the loop ({self.entry.name} = np.zeros((most, ...))) and write rows of it ({self.entry.name}[i] = value), or use aj.scan"
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
            raise TraceError(f"{self.entry}: a traced loop appends {describe(leaf)}; only numbers and arrays can be stacked").at(user_location())
        return Kind(kind.type.with_shape((trips, *kind.type.shape)), False)

    def carried(self) -> list[Slot]:
        return [*(slot for slot in self.slots if slot.kind is not None), *self.buffers]

    def yields(self, out: Any, index: Operand | None) -> list[Operand]:
        """What a trip hands to the next, in the order of `carried`; inside of the region."""
        if self.growth is not None:
            assert index is not None
            return [_set_row(slot, row, index) for slot, row in zip(self.buffers, self.rows, strict=True)]
        leaves = flatten(out)[0] if self.tree is not None else []
        return [conform(leaf, slot.kind) for slot, leaf in zip(self.slots, leaves, strict=True) if slot.kind is not None]

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
    assert slot.kind is not None and slot.param is not None
    type = slot.kind.type
    return ops.setitem(slot.param, index, conform(row, Kind(type.with_shape(type.shape[1:]), False)))


class Loop(NamedTuple):
    """A loop to be traced. `step` takes the number of the trip (None in a `while`) and the values at its start, and gives those at its end."""

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
                raise TraceError("the condition of a traced `while` is always true, and nothing leaves the loop: it would never end").at(user_location())
            go_on = False
        holds = conform(predicate(go_on, loop.words.what) if is_traced(go_on) else go_on, Kind(TensorType(BOOL), False))
        params = [slot.param for carry in carries for slot in carry.carried() if slot.param is not None]
    condition = finish(region, [holds], [*params, *variables])
    return _emit_loop(trace, While(loop.checkpoint), [], carries, cells, (condition, block), None)


def _trace_body(
    trace: Trace, loop: Loop, counted: bool, trips: int | None, first: int
) -> tuple[list[Carry], list[Cell], Block]:
    inits = [UNDEFINED if loop.certain and entry.fresh and not isinstance(x, list) else x for entry, x in zip(loop.entries, loop.init, strict=True)]
    carries = [Carry(entry, x, loop.words) for entry, x in zip(loop.entries, inits, strict=True)]
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
            row = index - first if first and any(carry.growth is not None for carry in carries) else index
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


# ---- trying


class Attempt:
    """What is traced from here on can be taken back, as if it had never been."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.count = len(trace.stmts)
        self.written = dict(trace.written)

    @property
    def statements(self) -> int:
        return len(self.trace.stmts) - self.count

    def undo(self) -> None:
        trace = self.trace
        nowhere = trace.region()  # the values taken back belong to a region that is around nothing
        for stmt in trace.stmts[self.count :]:
            for result in stmt.results:
                if isinstance(result, Traced):
                    result.owner = nowhere
        del trace.stmts[self.count :]
        trace.written = dict(self.written)
        trace.keep_names()

