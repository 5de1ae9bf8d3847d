"""Building `if` regions while tracing: two branches are traced one after the other, and their results are unified to one type each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.found_sizes import found_size
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.ops.control import If
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import maximum

from .chosen_lists import COUNT, Build, merge_lists
from .growing import GrowingList, TracedList, is_items
from .pytree import TreeDef, flatten, spelled
from .regions import (
    UNDEFINED,
    Kind,
    RegionOutput,
    Wording,
    blank,
    check_shapes,
    conform,
    differ_in_shape,
    finish,
    hold,
    join,
    kind_of,
    mismatch,
    name_of,
    predicate,
    reading_assigned,
    same_static,
)  # fmt: skip
from .sharing import double, memory_of, remember_choice, set_memory
from .trace import Trace
from .traced import Traced, WeakSplat


class Choice(NamedTuple):
    """A leaf in which the results of the two branches differ."""

    kind: Kind
    sides: tuple[Any, Any]
    name: str | None


def emit_if(
    trace: Trace, condition: Any, branches: Sequence[Callable[[], Sequence[Any]]], entries: Sequence[RegionOutput], words: Wording,
    loose: tuple[bool, bool] = (False, False),
) -> list[Any]:  # fmt: skip
    """Trace both branches, each returning a value for each entry, and emit the `if` that chooses between them.

    `loose` marks a branch after which the entries (except optional ones) are not read, so that their types need not match.
    """
    test = predicate(condition, words.what)
    regions: list[Trace] = []
    outcomes: list[Sequence[Any]] = []
    for branch in branches:
        region = trace.region()
        with region, reading_assigned(words.what):
            outcomes.append(branch())
        regions.append(region)
    choices: list[Choice] = []
    builds: list[Build] = []
    values: list[Any] = []
    dead = tuple(region.dead_end for region in regions)
    same: dict[tuple[int, int], int] = {}  # objects that both branches leave in several entries, which stay shared
    for entry, a, b in zip(entries, *outcomes, strict=True):
        first = same.setdefault((id(a), id(b)), len(builds))
        if first < len(builds) and isinstance(a, list | dict | np.ndarray | TracedList):
            builds.append(lambda results, first=first: values[first])  # type: ignore[misc]
            continue
        unread = tuple(d or (free and not entry.optional) for d, free in zip(dead, loose, strict=True))
        builds.append(_Merge(words, regions, choices, unread, entry.is_name).build(entry, (a, b)))
    cells = [cell for cell in trace.cells if any(id(cell) in region.written for region in regions)]
    for cell in cells:
        then, other = (region.written.get(id(cell), trace.read(cell)) for region in regions)
        check_shapes(cell, then, other, *words.sides)
        choices.append(Choice(Kind(then.type, False), (then, other), cell.name))
    trace.dead_end = trace.dead_end or all(dead)
    results = iter(_choose(trace, test, regions, choices, words))
    for build in builds:
        values.append(build(results))  # noqa: PERF401 - a build may look at the values before it
    for cell in cells:
        trace.write(cell, next(results))
    return values


class _Merge(NamedTuple):
    """Merges one entry's values from two branches: adds to `choices` what the `if` chooses, and returns a builder of the value."""

    words: Wording
    regions: Sequence[Trace]
    choices: list[Choice]
    unread: tuple[bool, ...]  # branches whose value is not read
    grows: bool  # whether a list may get an unknown length: a variable may, but the result of a function needs a fixed structure

    def build(self, entry: RegionOutput, sides: tuple[Any, Any]) -> Build:
        a, b = sides
        if a is b:
            return lambda results: a
        return self.lists(sides) or self.parts(entry, sides) or self.leaves(entry, sides)

    def lists(self, sides: tuple[Any, Any]) -> Build | None:
        """Merge two lists of different lengths; None for anything else."""
        a, b = sides
        if not (is_items(a) and is_items(b)):
            return None
        if isinstance(a, list) and isinstance(b, list) and (len(a) == len(b) or any(self.unread) or not self.grows):
            return None
        return merge_lists((a, b), self.regions, any(self.unread), lambda kind, pair: self.choices.append(Choice(kind, pair, None)))

    def parts(self, entry: RegionOutput, sides: tuple[Any, Any]) -> Build | None:
        """Merge two structures that contain lists, part by part; None for anything else."""
        if any(side is UNDEFINED or is_items(side) for side in sides):
            return None
        (xs, tree), (ys, other) = (flatten(side, is_leaf=is_items) for side in sides)
        if not tree.same(other) or not any(map(is_items, xs)):
            return None
        names = (f"{entry.name}{path}" for path in tree.paths())
        builds = [self.build(entry._replace(name=name), pair) for name, *pair in zip(names, xs, ys, strict=True)]  # type: ignore[arg-type]
        return lambda results: tree.unflatten([build(results) for build in builds])

    def leaves(self, entry: RegionOutput, sides: tuple[Any, Any]) -> Build:
        a, b = sides
        if isinstance(a, list) and isinstance(b, list) and GrowingList in (type(a), type(b)):
            a, b = GrowingList(a), GrowingList(b)
        if a is not UNDEFINED and b is not UNDEFINED:
            (a_leaves, tree), (b_leaves, b_tree) = (_flatten_in(*side) for side in zip(self.regions, (a, b), strict=True))
            pairs = list(zip(a_leaves, b_leaves, strict=False))
            if tree.same(b_tree) and (not any(self.unread) or all(_fit(x, y) for x, y in pairs)):
                return _build(entry, tree, pairs, self.words, self.choices, self.regions)
        for missing in (0, 1):
            there = sides[1 - missing]
            if self.unread[missing] or (sides[missing] is UNDEFINED and entry.optional):
                if there is UNDEFINED:
                    return lambda results: UNDEFINED
                leaves, tree = _flatten_in(self.regions[1 - missing], there)
                pairs = [(leaf, blank(leaf)) if missing else (blank(leaf), leaf) for leaf in leaves]
                return _build(entry, tree, pairs, self.words, self.choices, self.regions)
        if a is UNDEFINED or b is UNDEFINED:
            remedy = f"assign it in both, or before the {self.words.what}, since it is used afterwards"
        else:
            remedy = f"both branches of a traced {self.words.what} must give it the same structure"
        raise mismatch(self.words, entry, "", sides, remedy)


def _flatten_in(region: Trace, value: Any) -> tuple[list[Any], TreeDef]:
    """Flatten the value of a branch in its own region, since flattening a list may emit ops."""
    with region:
        return flatten(value)


def _fit(a: Any, b: Any) -> bool:
    ours, theirs = kind_of(a), kind_of(b)
    return same_static(a, b) or (ours is not None and theirs is not None and join(ours, theirs) is not None)


def _build(
    entry: RegionOutput, tree: TreeDef, pairs: Sequence[tuple[Any, Any]], words: Wording, choices: list[Choice], regions: Sequence[Trace]
) -> Build:
    parts: list[Callable[[Iterator[Operand]], Any]] = []
    for (a, b), path in zip(pairs, tree.key_paths(), strict=True):
        where = spelled(path)
        ours, theirs = kind_of(a), kind_of(b)
        if same_static(a, b):
            # two arrays with the same contents: either may be the one that other variables hold
            held = double(a, b) if isinstance(a, np.ndarray) and a is not b else a
            parts.append(lambda results, held=held: held)  # type: ignore[misc]
            continue
        kind = join(ours, theirs) if ours and theirs else None
        if kind is None:
            how = "; cast with .astype, or reshape" if ours and theirs else ": only numbers and arrays may differ"
            varies = ours is not None and theirs is not None and differ_in_shape(ours, theirs)
            is_sized = varies and len(ours.type.shape) == len(theirs.type.shape)  # type: ignore[union-attr]
            if is_sized and regions[0].parent is not regions[0].root():
                how += "; sizes may differ where the statement is not inside another traced one (`elif` is)"
            wrong = mismatch(words, entry, where, (a, b), f"both branches of a traced {words.what} must give it one type{how}", varies)
            if not is_sized or regions[0].parent is not regions[0].root():
                raise wrong
            parts.append(cut_later((a, b), regions, choices, name_of(entry, where), str(wrong).partition("\n")[0]))
            continue
        parts.append(next)
        choices.append(Choice(kind, (a, b), name_of(entry, where)))
    return lambda results: tree.unflatten([part(results) for part in parts])


def cut_later(
    sides: tuple[Any, Any], regions: Sequence[Trace], choices: list[Choice], name: str | None, otherwise: str
) -> Callable[[Iterator[Operand]], Any]:
    """Merge arrays of different sizes: the `if` chooses between both padded to one shape, and the result is cut to its size."""
    arrays = [as_operand(side) for side in sides]
    shapes = [x.type.shape for x in arrays]
    common = tuple(maximum(n, m) for n, m in zip(*shapes, strict=True))
    padded = []
    for region, side, x in zip(regions, sides, arrays, strict=True):
        with region:
            whole = ops.pad(x, [0] * len(common), [n - m for n, m in zip(common, x.type.shape, strict=True)])
        if isinstance(whole, Traced):
            set_memory(whole, memory_of(side))  # in Python, the variable has the array itself
        padded.append(whole)
    choices.append(Choice(Kind(arrays[0].type.with_shape(common), False), (padded[0], padded[1]), name))
    axes = [axis for axis, (n, m) in enumerate(zip(*shapes, strict=True)) if n != m]
    choices += [Choice(COUNT, (shapes[0][axis], shapes[1][axis]), None) for axis in axes]

    def build(results: Iterator[Operand]) -> Operand:
        whole = next(results)
        sizes = {axis: found_size(next(results), otherwise) for axis in axes}
        return ops.getitem(whole, tuple(slice(sizes.get(axis)) for axis in range(len(common))))

    return build


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
        for side, region in enumerate(regions):
            trace.overwritten.take_over(region.overwritten, [choices[i].sides[side] for i in chosen], results)
        remember_choice(trace, results, [choices[i].sides for i in chosen])
        hold(trace, results, [choices[i].name for i in chosen], [choices[i].kind for i in chosen])
        for i, result in zip(chosen, results, strict=True):
            out[i] = result
    return out


def _truth(test: Operand, a: Operand, b: Operand) -> Operand | None:
    """Return the condition itself (or its negation) for a flag that is set in one branch and cleared in the other."""
    if not (isinstance(a, Literal) and isinstance(b, Literal)) or a.type != test.type or b.type != test.type:
        return None
    if a.value == b.value:
        return WeakSplat(a.value, a.type)
    return test if a.value else ops.logical_not(test)
