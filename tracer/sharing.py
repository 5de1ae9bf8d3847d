"""Which arrays would share memory in NumPy.

A traced `x[i] = v` gives the variable `x` a new value. In NumPy it changes memory, and therefore every variable that holds the array or a
view of it. If there is such a variable, the results would differ: this module lets a write detect that, and raise an error.

Not every reference to an array is known when it is written: that of a helper's caller, an attribute, a dict. `Overwritten` therefore
records the values that writes have replaced, and using one again is an error.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Sequence
from sys import getrefcount
from types import FrameType, FunctionType, GeneratorType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.errors import TraceError
from adjit.ir.func import Value
from adjit.ir.location import Location
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, Op
from adjit.ir.ops.index import Gather
from adjit.ir.ops.shape import Flip, Reshape, Slice, Transpose
from adjit.ir.records import NamedTuple

from .contents import ArrayContents, same_bits
from .frames import user_location
from .pytree import flatten
from .traced import Traced

Doubles: TypeAlias = dict[int, tuple[Array, tuple[Array, ...]]]

REACH = 1000  # objects that a search for other references to an array visits
SHARING: tuple[type[Op], ...] = (Reshape, Transpose, Slice, Flip, Gather)  # ops that return views in NumPy


def remember_view(op: Op, args: Sequence[Operand], result: Value) -> None:
    """Record whose memory a result would share. Only gathers by scalars (`x[i]`) are views; a result without axes is a scalar."""
    source = args[0]
    if not result.type.shape or any(index.type.shape for index in args[1:]):
        return
    if isinstance(source, Traced) and isinstance(result, Traced):
        set_memory(result, memory_of(source))


def remember_choice(trace: Builder, results: Sequence[Value], given: Sequence[Sequence[Any]]) -> None:
    """Record whose memory the results of branches or of a loop may share, given the values that they may take."""
    inside: dict[int, Traced] = {}  # id of an array created inside -> the first result that shares its memory
    for result, values in zip(results, given, strict=False):
        if isinstance(result, Traced) and result.type.shape:
            outside, made = split_memory(trace, values)
            # arrays made inside are known outside by the first result that may hold them, which may be this one
            set_memory(result, (*outside, *{id(root): inside.setdefault(id(root), result) for root in made}.values()))


def split_memory(trace: Builder, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the arrays that values may be views of: those that existed in `trace`, and those created in its regions."""
    around = list(trace.around())
    roots = [root for value in values for root in memory_of(value) if isinstance(root, Traced | np.ndarray)]
    outside = [isinstance(root, np.ndarray) or root.owner in around for root in roots]
    return [r for r, out in zip(roots, outside, strict=True) if out], [r for r, out in zip(roots, outside, strict=True) if not out]


def set_memory(value: Traced, arrays: tuple[Any, ...]) -> None:
    """Record the arrays that a value may be a view of."""
    value.memory = arrays
    if value.owner is None:
        return
    known = value.owner.root().overwritten
    for array in arrays:
        known.views.setdefault(id(array), []).append(value)
        if isinstance(array, np.ndarray):
            known.contents.setdefault(id(array), ArrayContents.of(array))


def memory_of(x: Any) -> tuple[Any, ...]:
    """Return the arrays that a value may be a view of, or else itself. A copy made for a branch, and its views, count as its original."""
    if isinstance(x, Traced):
        return x.memory or (x,)
    known, viewed = doubles(), x
    while isinstance(viewed, np.ndarray):
        if id(viewed) in known:
            return (x, *(root for original in known[id(viewed)][1] for root in memory_of(original)))
        viewed = viewed.base
    return (x,)


def doubles() -> Doubles:
    """Return id of a copy made for a branch or an iteration -> (copy, originals), for the duration of the trace."""
    builder = current_builder()
    kept: list[Doubles] = [] if builder is None else [b.doubles for b in builder.around() if hasattr(b, "doubles")]
    return kept[-1] if kept else {}


def double(array: Array, *others: Array) -> Array:
    """Copy an array for a branch or an iteration to change; the copy remains linked to the original, and to others with its contents."""
    out = array.copy()
    doubles()[id(out)] = (out, (array, *others))
    return out


def written(trace: Builder, x: Operand, key: Any, value: Any) -> Operand:
    """Return the value of a variable after `x[key] = value`: it has its own memory, even if the value replaces all elements."""
    return owned(trace, ops.setitem(x, key, value), value)


def owned(trace: Builder, out: Operand, given: Any = None) -> Operand:
    """Return a value with its own memory: not that of `given`, nor that of an array of which it would be a view."""
    if not isinstance(out, Traced):  # a constant: emitted as a value of the trace, so that its views are tracked
        return trace.emit(Reshape(out.type.shape), (out,))[0]
    return out.copy() if out is given or out.memory else out


def share(x: Any, other: Any, kind: type = object) -> bool:
    """Whether a write to the array `x` should change `other`: an array, or a structure of arrays.

    Only arrays of class `kind` count, and copies of NumPy arrays, which a write to the original does not change.
    """
    leaves = [leaf for leaf in arrays_in(other) if isinstance(leaf, kind) or not (leaf is x or overlap(leaf, x))]
    return any(same_memory(x, leaf) for leaf in leaves)


def arrays_in(structure: Any) -> Iterator[Any]:
    """Yield the arrays that can be reached from an object: through structures, other containers and attributes."""
    todo = list(flatten(structure)[0])
    seen: set[int] = set()
    while todo and len(seen) < REACH:
        x = todo.pop()
        if id(x) in seen or isinstance(x, type | ModuleType | FunctionType | str | int | float):
            continue
        seen.add(id(x))
        if isinstance(x, Operand | np.ndarray):
            yield x
        elif isinstance(x, list | tuple | dict):
            todo += flatten(x)[0]
        elif isinstance(x, set | frozenset | deque):
            todo += x
        else:
            todo += getattr(x, "__dict__", {}).values()
            slots = (name for cls in type(x).__mro__ for name in cls.__dict__.get("__slots__", ()))
            todo += [getattr(x, name) for name in slots if hasattr(x, name)]


def same_memory(x: Any, y: Any) -> bool:
    return any(a is b or overlap(a, b) for a in memory_of(x) for b in memory_of(y))


def overlap(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)


class Replaced(NamedTuple):
    """A value that a write has replaced."""

    old: Operand | Array
    new: Any  # the value of the array since then; None if a region changed it and no variable has its new value outside
    where: Location | None

    def at(self) -> str:
        return f" at {self.where.short}" if self.where is not None else ""


class Overwritten:
    """The values of a trace or region that writes have replaced: those that were written to, and all views of the same array.

    A region starts with those of the trace around it, which takes over what the region adds only when it is complete.
    """

    __slots__ = ("contents", "known", "views")

    def __init__(self, around: Overwritten | None = None) -> None:
        self.known: dict[int, Replaced] = {} if around is None else dict(around.known)
        self.views: dict[int, list[Traced]] = {} if around is None else around.views  # id of an array -> its views, in the whole trace
        self.contents: dict[int, ArrayContents] = {} if around is None else around.contents  # of NumPy arrays among them, likewise

    def __bool__(self) -> bool:
        return bool(self.known)

    def add(self, old: Operand | Array, new: Operand, where: Location | None, kept: set[int]) -> None:
        """Record a write, except to `kept` arrays (by id): the value of a variable does not change with an array read from it."""
        for array in memory_of(old):
            if id(array) not in kept:
                for value in (array, *self.views.get(id(array), ())):
                    self.known[id(value)] = Replaced(value, new, where)

    def wrote(self, x: Array) -> None:
        """Record a write to a NumPy array: traced values that may be views of it have become outdated."""
        for key, known in self.contents.items():
            if known.array is x or overlap(known.array, x):
                self.contents[key] = ArrayContents.of(known.array)
                self.known |= {id(view): Replaced(view, None, user_location()) for view in self.views.get(key, ())}

    def check_constants(self, trace: Builder, results: Sequence[Any], where: Location | None) -> None:
        """Raise an error if a NumPy array was changed after a statement that made it one of several possible values of a variable."""
        pairs = [(copy, originals) for copy, originals in doubles().values() if len(originals) > 1]
        changed = any(not same_bits(copy, original) for copy, originals in pairs for original in originals)
        views = [view for key, known in self.contents.items() if known.changed() for view in self.views[key] if view.owner is trace]
        if views and not changed:
            inner = [x for stmt in trace.stmts for block in stmt.blocks for x in block.free()]
            used = {id(x) for x in (*results, *inner, *(x for stmt in trace.stmts for x in stmt.args))}
            changed = any(id(view) in used for view in views)
        if changed:
            raise TraceError(
                "an array is changed in place after a traced branch or loop that may have assigned it to a variable: whether the variable "
                "changes as well is only known when the function runs; copy the array first, with .copy()"
            ).at(where)

    def outdate(self, array: Array, new: Sequence[Any], where: Location | None) -> None:
        """Record that a region has changed an array, whose new values are `new`: the array and other views of it must not be used."""
        taken = {id(value) for value in new}
        for value in (array, *self.views.get(id(array), ())):
            if id(value) not in taken:
                self.known[id(value)] = Replaced(value, None, where)

    def current(self, value: Any) -> Any:
        """Return what a value has been replaced by, if it has."""
        while (found := self.known.get(id(value))) is not None:
            value = found.new
        return value

    def check(self, values: Sequence[Any], returned: bool = False) -> None:
        """Raise an error if a value has been replaced, or is an array that shares memory with one that has."""
        for value in values:
            found = self.known.get(id(value))
            if found is None and isinstance(value, np.ndarray):
                found = next((known for known in self.known.values() if overlap(known.old, value)), None)
            if found is not None:
                raise stale(found).at(found.where if returned else user_location())

    def check_outside(self) -> None:
        """Raise an error for a replaced array that outlives the trace, since its owner would not see the change."""
        if self.owners():
            gc.collect()  # closures left over from the trace hold variables in cycles
            for owner, found in self.owners():
                raise lost(found, owner)

    def owners(self) -> list[tuple[Any, Replaced]]:
        """Return the objects of other code that refer to replaced arrays."""
        arrays = {id(array): (array, found) for found in self.known.values() for array in with_bases(found.old)}
        # each is referred to by its pair, by a value in `known` or as a base, and as the argument; Python 3.14 counts no local variables
        shared = [pair[0] for pair in arrays.values() if getrefcount(pair[0]) > 3]
        if not shared:
            return []  # a search among all objects takes milliseconds
        owners = [x for x in gc.get_referrers(*shared) if x is not shared and not is_ours(x)]
        lasting = [x for x in owners if any(y is not owners and not is_ours(y) for y in gc.get_referrers(x))]
        return [(owner, arrays[id(x)][1]) for owner in lasting for x in gc.get_referents(owner) if id(x) in arrays]

    def take_over(self, inner: Overwritten, left: Sequence[Any], results: Sequence[Any]) -> None:
        """Add what a region has replaced. `left` are values at its end, which are `results` outside."""
        for key, found in inner.known.items():
            if self.known.get(key) is not found:
                last = inner.current(found.old)
                new = next((result for value, result in zip(left, results, strict=False) if value is last), None)
                self.known[key] = found._replace(new=new)


def is_ours(owner: Any) -> bool:
    """Whether an object belongs to the trace, or is a frame that has ended. Tuples hold captured and replaced arrays."""
    return isinstance(owner, tuple | FrameType | GeneratorType | np.ndarray) or type(owner).__module__.startswith("adjit.")


def with_bases(x: Any) -> Iterator[Array]:
    while isinstance(x, np.ndarray):
        yield x
        x = x.base


def lost(found: Replaced, owner: Any) -> TraceError:
    return TraceError(
        f"an array that outlives the function is changed in place{found.at()}: a {type(owner).__name__} refers to it. Traced, the change "
        "would be lost: copy the array first, with .copy(), or keep the state in a Variable"
    ).at(found.where)


def stale(found: Replaced) -> TraceError:
    return TraceError(
        f"{found.old!r} was changed in place{found.at()}, through another variable, an attribute or a view. NumPy shows the change here "
        "as well, where a traced function still has the old value: make a new array there (y = y + 1 instead of y += 1), return it and "
        "use that one, or copy the array first, with .copy()"
    )
