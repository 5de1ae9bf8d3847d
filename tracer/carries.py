"""The values that a loop carries while it is traced: one `CarriedEntry` per variable; tracing the body repeatedly finds its type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import CapacityError
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.ops.base import perform
from adjit.ir.ops.effects import Assert
from adjit.ir.records import NamedTuple
from adjit.ir.types import BOOL, I64, TensorType

from .frames import user_location
from .growing import GrowingList, TracedList, bounds, is_items
from .list_items import ItemForm, Kept, resized
from .pytree import LEAF, TreeDef, flatten
from .regions import (
    UNDEFINED,
    Kind,
    RegionOutput,
    Wording,
    blank,
    conform,
    differ_in_shape,
    join,
    kind_of,
    mismatch,
    name_of,
    same_static,
)  # fmt: skip
from .sharing import memory_of, set_memory, split_memory
from .trace import Trace, Traced, current_trace


class Slot:
    """A leaf of a loop's carried value, or (if `kind` is None) a constant that does not change."""

    __slots__ = ("init", "kind", "name", "param", "left", "shared")

    def __init__(self, init: Any, kind: Kind | None, name: str | None) -> None:
        self.init = init
        self.kind = kind
        self.name = name
        self.param: Traced | None = None
        self.left: Any = None  # its value at the end of an iteration
        self.shared: tuple[Any, ...] = ()  # arrays outside the loop of which the value may become a view

    def parameter(self, region: Trace) -> Traced:
        assert self.kind is not None
        self.param = region.parameter(self.kind.type, self.name, self.kind.weak, user_location())
        if isinstance(self.init, Traced | np.ndarray) and self.init.shape == self.param.shape:
            set_memory(self.param, memory_of(self.init) + self.shared)
        else:
            set_memory(self.param, self.shared)
        return self.param

    def shares_more(self, trace: Trace) -> bool:
        """Whether the value after an iteration is a view of arrays that its initial value is not known to share. Checked once."""
        if self.shared or self.kind is None or not self.kind.type.shape:
            return False
        known = memory_of(self.init)
        self.shared = tuple(root for root in split_memory(trace, [self.left])[0] if not any(root is k for k in known))
        return bool(self.shared)


class Trips(NamedTuple):
    """The trip count, as far as it is known: its upper bound, and whether it is exact."""

    most: int | None
    exact: bool
    first: int = 0  # first value of the loop counter


class CarriedEntry:
    """The state of one entry during the attempts to trace a loop."""

    steady = False  # whether positions in lists follow from the iteration number
    holds_lists = False
    missing = "UnboundLocalError"  # what reading it raises if no iteration has assigned it

    def __init__(self, entry: RegionOutput, value: Any, words: Wording) -> None:
        self.entry = entry
        self.words = words
        self.before = value
        self.tree: TreeDef | None = None
        self.slots: list[Slot] = []
        self.ran: Slot | None = None  # whether an iteration has assigned the variable, if nothing else does and the loop may run zero times
        if value is not UNDEFINED:
            self.take(value)

    def take(self, value: Any, unknown: bool = False) -> None:
        """Carry this structure; `unknown` if only its type after an iteration is known, not its initial value."""
        leaves, self.tree = flatten(value)
        paths = self.tree.paths()
        given = [blank(leaf) for leaf in leaves] if unknown else leaves
        self.slots = [Slot(x, kind_of(x), name_of(self.entry, path)) for x, path in zip(given, paths, strict=True)]

    @property
    def made(self) -> list[str]:
        """The keys of a structure from before the loop that only the body creates."""
        return []

    def hide(self) -> None:
        """Start the next attempt without the keys that only the body creates."""

    def start(self, region: Trace, trip: Operand | None) -> Any:
        """Return the value at the start of an iteration, made of parameters of the region."""
        if self.tree is None:
            return UNDEFINED
        if self.ran is not None:
            self.ran.parameter(region)
        return self.tree.unflatten([slot.init if slot.kind is None else slot.parameter(region) for slot in self.slots])

    def settle(self, out: Any, certain: bool, trips: Trips) -> bool:
        """Compare an iteration's final value with its initial one; return whether this changes what is carried."""
        if self.tree is None:
            return self.define(out, certain)
        if out is UNDEFINED and self.entry.optional:  # no iteration assigns it: it keeps its value
            changed = any(slot.kind is not None for slot in self.slots)
            for slot in self.slots:
                slot.kind = None
            return changed
        if out is UNDEFINED:
            raise mismatch(self.words, self.entry, "", (self.before, out), "a traced loop must leave it assigned")
        leaves, tree = flatten(out)
        if not tree.same(self.tree):
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
        if not (certain or self.entry.optional or self.entry.inner):
            if any(kind_of(leaf) is None for leaf in flatten(out)[0]):
                raise mismatch(
                    self.words, self.entry, "", (self.before, out),
                    f"the loop may have no iterations: assign {self.entry} before it, because it is used after it",
                )  # fmt: skip
            self.ran = Slot(Literal(False, TensorType(BOOL)), Kind(TensorType(BOOL), False), None)
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
            advice = "only numbers and arrays may change in a traced loop"
            if isinstance(leaf, np.ndarray):
                advice = "the loop changes its contents through another reference; write to the variable itself, or make a copy first"
            raise mismatch(self.words, self.entry, path, (slot.init, leaf), advice)
        if leaf is slot.param:  # no iteration changes it: the loop uses it from outside, as the Python value that it is
            slot.kind = None
            return True
        theirs = kind_of(leaf)
        kind = join(slot.kind, theirs) if theirs else None
        if kind is None and theirs is not None and self.entry.fresh and certain:
            slot.init, kind = Literal(0, theirs.type), theirs
        if kind is None:
            advice, is_allowed = "a traced loop must leave its type as it is; cast or reshape it before the loop", False
            trace = current_trace()
            rules = None if trace is None else trace.root().loop_rules
            if rules is not None and theirs is not None and differ_in_shape(slot.kind, theirs):
                advice, is_allowed = f"a traced loop must leave its shape as it is; {rules.advice}", rules.may_vary(slot.param)
            raise mismatch(self.words, self.entry, path, (slot.init, leaf), advice, is_allowed)
        changed, slot.kind = kind != slot.kind, kind
        return changed

    def carried(self) -> list[Slot]:
        return [*(slot for slot in self.slots if slot.kind is not None), *([] if self.ran is None else [self.ran])]

    def yields(self, out: Any) -> list[Operand]:
        """Return the operands passed to the next iteration, in the order of `carried`. Call inside the region."""
        if self.tree is None or out is UNDEFINED:
            return []
        leaves = flatten(out)[0]
        for slot, leaf in zip(self.slots, leaves, strict=True):
            slot.left = leaf
        given = [conform(leaf, slot.kind) for slot, leaf in zip(self.slots, leaves, strict=True) if slot.kind is not None]
        return given if self.ran is None else [*given, Literal(True, TensorType(BOOL))]

    def prepare(self) -> None:
        """Emit the ops that compute the values before the loop. Call outside the region."""

    def result(self, results: Iterator[Operand]) -> Any:
        """Return the value after the loop."""
        if self.tree is None:
            return UNDEFINED
        value = self.tree.unflatten([slot.init if slot.kind is None else next(results) for slot in self.slots])
        if self.ran is not None:
            text = f"{self.entry} has no value: the {self.words.what} loop must iterate at least once to assign it"
            perform(Assert(text, self.missing), next(results))
        return value


class ListCarry(CarriedEntry):
    """A list: treated as a structure until an iteration appends to it, then a `TracedList` with capacity for all iterations.

    It is `steady` if every iteration appends the same number of items: its length then follows from the iteration number.
    """

    holds_lists = True

    def __init__(self, entry: RegionOutput, value: list[Any] | TracedList, words: Wording) -> None:
        self.probed = isinstance(value, GrowingList)  # by an enclosing loop
        super().__init__(entry, list(list.__iter__(value)) if isinstance(value, GrowingList) else value, words)
        self.form: Kept | None = None  # the form of the list with capacity for all iterations, once it is known to grow
        self.growth = 0  # maximum number of items that an iteration appends
        self.capacity = 0  # rows of the carried arrays
        self.limited = False  # whether only the capacity limits the number of items: the loop may have any number of iterations
        self.steady = False
        self.number: Operand | None = None  # number of items at the start of an iteration, if not static

    def take(self, value: Any, unknown: bool = False) -> None:
        if isinstance(value, TracedList):
            self.before, self.tree = value.written(), LEAF
        else:
            super().take(value, unknown)

    def start(self, region: Trace, trip: Operand | None) -> Any:
        if self.form is None:
            value = self.before.copy() if isinstance(self.before, TracedList) else super().start(region, trip)
            self.number = value.base if isinstance(value, TracedList) else None
            return GrowingList(value) if type(value) is list else value
        params = [slot.parameter(region) for slot in self.slots]
        if self.steady:
            assert trip is not None
            count = self.before.length if isinstance(self.before, TracedList) else len(self.before)
            scaled = trip if self.growth == 1 else trip * self.growth
            self.number = scaled if isinstance(count, int) and not count else scaled + count
        else:
            self.number = params.pop()
        return TracedList(self.form._replace(most=self.form.most - self.growth), params, self.number)

    def settle(self, out: Any, certain: bool, trips: Trips) -> bool:
        if isinstance(out, GrowingList):
            out = list(list.__iter__(out))
        if isinstance(out, list) and self.form is not None and self.entry.fresh and certain:  # a new list in every iteration
            self.form, self.growth, self.before, self.tree = None, 0, out, None
            return self.define(out, certain)
        if isinstance(out, list) and self.form is None and isinstance(self.before, list) and len(out) == len(self.before):
            return super().settle(out, certain, trips)
        if not isinstance(out, list | TracedList):
            return super().settle(out, certain, trips)
        if self.form is None and isinstance(self.before, TracedList) and isinstance(out, TracedList) and out.same(self.before):
            return False
        return self.grow(out, trips)

    def grow(self, out: list[Any] | TracedList, trips: Trips) -> bool:
        """Reserve capacity for the items that an iteration appends; return whether there was too little."""
        before = bounds(self.before)
        least, most = bounds(out)
        given = before[1] if self.form is None else self.form.most - self.growth
        growth = max(self.growth, most - given)
        rows = ItemForm.of(out or self.before) if isinstance(out, list) else out.rows
        steady = trips.exact and self.adds_always(out) and (self.form is None or self.steady)
        self.limited = bool(growth) and trips.most is None
        most = max(before[1] + 1, rows.capacity) if self.limited else before[1] + growth * (trips.most or 0)
        if least < (before[0] if self.form is None else self.form.least):  # iterations may take items away, as many as there are
            least = 0
        form = Kept(rows, before[0] if steady else min(before[0], least), most)
        if (form, growth, steady) == (self.form, self.growth, self.steady):
            return False
        self.form, self.growth, self.steady = form, growth, steady
        self.capacity = max(form.most, self.before.capacity if isinstance(self.before, TracedList) else 0)
        self.slots = [Slot(None, Kind(kind.type.with_shape((self.capacity, *kind.type.shape)), False), None) for kind in rows.kinds]
        self.slots[0].name = name_of(self.entry)
        if not steady:
            self.slots.append(Slot(None, Kind(TensorType(I64), True), None))
        return True

    def adds_always(self, out: list[Any] | TracedList) -> bool:
        """Whether an iteration appends a static number of items."""
        if isinstance(out, list):
            return self.form is None and len(out) > bounds(self.before)[1]
        return out.base is self.number and all(isinstance(chunk.number, int) for chunk in out.chunks)

    def yields(self, out: Any) -> list[Operand]:
        if self.form is None:
            return [] if isinstance(self.before, TracedList) else super().yields(out)
        if self.limited and isinstance(out, TracedList):
            ops.check(
                ops.less_equal(as_operand(out.length), self.form.most),
                f"{self.entry} has more than {self.form.most} items, the capacity of lists in loops of unknown length; write "
                "`for _ in range(most):` with `if ...: break` in it",
                CapacityError.__name__,
            )
        full = TracedList.of(out, self.capacity, self.form.rows)
        for slot, buffer in zip(self.slots, full.buffers, strict=False):
            slot.left = buffer  # this value records whose memory its rows represent
        leaves = [*(resized(buffer, self.capacity) for buffer in full.buffers), *([] if self.steady else [full.length])]
        return [conform(leaf, slot.kind) for slot, leaf in zip(self.slots, leaves, strict=True) if slot.kind is not None]

    def prepare(self) -> None:
        if self.form is not None:
            full = TracedList.of(self.before, self.capacity, self.form.rows)
            for slot, leaf in zip(self.slots, [*full.buffers, full.length], strict=False):
                slot.init = leaf

    def result(self, results: Iterator[Operand]) -> Any:
        if self.form is None:
            value = self.before if isinstance(self.before, TracedList) else super().result(results)
            return GrowingList(value) if self.probed and type(value) is list else value
        left = [next(results) for _ in self.slots]
        for slot, buffer in zip(self.slots, left, strict=True):
            if isinstance(buffer, Traced) and isinstance(slot.init, Traced) and slot.init.memory:
                set_memory(buffer, (*buffer.memory, *slot.init.memory))
        if not self.steady:
            return TracedList(self.form, left[:-1], left[-1])
        least, most = bounds(self.before)
        added = self.form.most - most
        out = TracedList(self.form._replace(least=least + added), left, most + added)
        if isinstance(self.before, TracedList):
            out.base, out.offset = self.before.base, self.before.offset + added
        return out


class CarriedParts(CarriedEntry):
    """A structure whose parts are carried separately."""

    parts: list[CarriedEntry]

    @property
    def steady(self) -> bool:  # type: ignore[override]
        return any(part.steady for part in self.parts)

    @property
    def holds_lists(self) -> bool:  # type: ignore[override]
        return any(part.holds_lists for part in self.parts)

    def carried(self) -> list[Slot]:
        return [slot for part in self.parts for slot in part.carried()]

    def prepare(self) -> None:
        for part in self.parts:
            part.prepare()


class StructureCarry(CarriedParts):
    """A structure that contains lists."""

    def __init__(self, entry: RegionOutput, value: Any, words: Wording) -> None:
        self.entry, self.words, self.before = entry, words, value
        parts, self.outer = flatten(value, is_leaf=is_items)
        names = (f"{entry.name}{path}" for path in self.outer.paths())
        self.parts = [carry_of(entry._replace(name=name), part, words) for name, part in zip(names, parts, strict=True)]

    def start(self, region: Trace, trip: Operand | None) -> Any:
        return self.outer.unflatten([part.start(region, trip) for part in self.parts])

    def settle(self, out: Any, certain: bool, trips: Trips) -> bool:
        leaves, tree = flatten(out, is_leaf=is_items)
        if not tree.same(self.outer):
            raise mismatch(self.words, self.entry, "", (self.before, out), "a traced loop must leave its structure as it is")
        changes = [part.settle(leaf, certain, trips) for part, leaf in zip(self.parts, leaves, strict=True)]
        return any(changes)

    def yields(self, out: Any) -> list[Operand]:
        leaves = flatten(out, is_leaf=is_items)[0]
        return [x for part, leaf in zip(self.parts, leaves, strict=True) for x in part.yields(leaf)]

    def result(self, results: Iterator[Operand]) -> Any:
        return self.outer.unflatten([part.result(results) for part in self.parts])


class DictCarry(CarriedParts):
    """A dict, to which iterations may add keys: these are carried like variables that only the body assigns.

    A key that the body creates is missing in the first iteration and present in later ones. The loop is traced in both cases, and must be
    the same (`hide`).
    """

    def __init__(self, entry: RegionOutput, value: dict[Any, Any], words: Wording) -> None:
        self.entry, self.words, self.before = entry, words, value
        self.keys: list[Any] = []
        self.parts = []
        self.hidden = False
        for key, item in value.items():
            self.add(key, item)

    def add(self, key: Any, item: Any) -> None:
        self.keys.append(key)
        self.parts.append(carry_of(self.entry._replace(name=f"{self.entry.name}[{key!r}]"), item, self.words))
        self.parts[-1].missing = "KeyError"

    @property
    def made(self) -> list[str]:
        """The keys that only the body creates, as the user writes them."""
        inner = [name for part in self.parts for name in part.made]
        return [str(part.entry) for part in self.parts[len(self.before) :]] + inner

    def hide(self) -> None:
        self.hidden = True
        for part in self.parts:
            part.hide()

    def start(self, region: Trace, trip: Operand | None) -> Any:
        started = {key: part.start(region, trip) for key, part in zip(self.keys, self.parts, strict=True)}
        return {key: started[key] for key in self.before} if self.hidden else started

    def settle(self, out: Any, certain: bool, trips: Trips) -> bool:
        if out is UNDEFINED and self.entry.optional:
            changes = [part.settle(out, certain, trips) for part in self.parts]
            return any(changes)
        if type(out) is not dict or list(out)[: len(self.keys)] != self.keys:
            raise mismatch(self.words, self.entry, "", (self.before, out), "a traced loop must leave its structure as it is")
        more = list(out)[len(self.keys) :]
        for key in more:
            self.add(key, UNDEFINED)
        changes = [part.settle(out[key], certain, trips) for key, part in zip(self.keys, self.parts, strict=True)]
        return any(changes) or bool(more)

    def yields(self, out: Any) -> list[Operand]:
        values = [UNDEFINED if out is UNDEFINED else out[key] for key in self.keys]
        return [x for part, value in zip(self.parts, values, strict=True) for x in part.yields(value)]

    def result(self, results: Iterator[Operand]) -> Any:
        return {key: part.result(results) for key, part in zip(self.keys, self.parts, strict=True)}


def carry_of(entry: RegionOutput, value: Any, words: Wording) -> CarriedEntry:
    if is_items(value):
        return ListCarry(entry, value, words)
    if type(value) is dict:
        return DictCarry(entry, value, words)
    holds_lists = any(map(is_items, flatten(value, is_leaf=is_items)[0]))
    return (StructureCarry if holds_lists else CarriedEntry)(entry, value, words)
