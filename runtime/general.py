"""Which calls share one specialisation for all sizes, and what such a specialisation assumes.

Owns the policy of `function(dynamic=...)`: which axes of the arguments become symbols, which sizes a compiled program accepts, and why a
program was compiled for one size only. It traces and compiles nothing itself.

Calls with the same structure, dtypes and ranks form a *family*. An axis becomes a symbol if a `TensorSpec` leaves it open, if the policy is
True, or ("auto") if two calls of the family differ in it. Equal sizes in the traced call share a symbol. Sizes 0 and 1, which broadcast,
are never symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from adjit.ir.errors import NotGeneral, Undecided
from adjit.ir.expr import symbol_names
from adjit.ir.guards import Recording, no_recording
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import Size, Symbols, is_symbolic, range_text, symbols_of
from adjit.ir.types import Shape

from .concrete import ConcreteFunction
from .config import check_dynamic
from .signature import Signature

NAMES = "BTNMKLSPQRUVWXYZ"
MAX_GENERAL = 4  # specialisations of one family for all sizes: with more, the guards are too narrow to be worth it

MAX_NARROWED = 3  # times that a program is compiled again because a pass depends on a size

Axis: TypeAlias = tuple[int, int]  # number of the array among the arguments, and its axis


class General(NamedTuple):
    """A specialisation for all sizes: the shapes of its arguments, and the conditions on them."""

    concrete: ConcreteFunction
    shapes: tuple[Shape, ...]
    symbols: Symbols

    def accepts(self, shapes: Sequence[Shape]) -> bool:
        """Whether it is valid for arguments of these shapes, which have the right ranks."""
        sizes: dict[str, int] = {}
        for pattern, shape in zip(self.shapes, shapes, strict=True):
            for n, given in zip(pattern, shape, strict=True):
                if not is_symbolic(n):
                    if n != given:
                        return False
                elif sizes.setdefault(str(n), given) != given:
                    return False
        for name, size in sizes.items():
            symbol = self.symbols.table[name]
            if size < symbol.low or (symbol.high is not None and size > symbol.high):
                return False
        return all(guard.holds(sizes) for guard in self.concrete.guards)


class Family:
    """The calls that differ in sizes only."""

    def __init__(self) -> None:
        self.known: list[tuple[Shape, ...]] = []  # shapes of the specialisations for one size
        self.general: list[General] = []
        self.fixed: dict[Axis, str] = {}  # axes that cannot be symbols, and why
        self.special: dict[tuple[Axis, int], str] = {}  # sizes of axes that are special cases, and why: the others may share a program
        self.refused: dict[frozenset[Axis], str] = {}  # sets of axes that cannot all be symbols, and why
        self.open_axes: set[Axis] = set()  # symbols from the first call on


class Policy:
    """The families of one function."""

    def __init__(self, dynamic: bool | str, open_axes: Iterable[Axis] = ()) -> None:
        """`open_axes` are symbols from the first call on, for any value of `dynamic`."""
        check_dynamic(dynamic)
        self.dynamic = dynamic
        self.open_axes = set(open_axes)
        self.families: dict[Hashable, Family] = {}
        self.has_open_axes = False  # whether some calls have open axes although `dynamic` is False

    def __bool__(self) -> bool:
        return self.dynamic is not False or bool(self.open_axes) or self.has_open_axes

    def is_open(self, array: int, axis: int) -> bool:
        """Whether an axis is a symbol from the first call on: "first" are those of the first array, "leading" the first of every array."""
        if self.dynamic == "first":
            return array == 0
        return self.dynamic is True or (self.dynamic == "leading" and axis == 0)

    def family(self, signature: Signature) -> Family:
        return self.families.setdefault(family_key(signature.key), Family())

    def leave_open(self, signature: Signature, axes: Iterable[Axis], always: bool = False) -> None:
        """Let axes of calls like this one be symbols from the first call on; `always`: even if `dynamic` is False."""
        if self or always:
            self.has_open_axes = self.has_open_axes or always
            self.family(signature).open_axes |= set(axes)

    def find(self, signature: Signature) -> ConcreteFunction | None:
        """A specialisation for all sizes that is valid for this call."""
        family = self.families.get(family_key(signature.key))
        if family is None:
            return None
        shapes = shapes_of(signature)
        for general in family.general:
            known = general.concrete
            if not known.dropped and general.accepts(shapes) and known.alias == known.coincidence(signature.stores):
                return known
        return None

    def axes(self, signature: Signature) -> list[Axis]:
        """The axes that become symbols in a new specialisation for this call; none if it is one for these sizes alone."""
        family, shapes = self.family(signature), shapes_of(signature)
        if len(family.general) >= MAX_GENERAL:
            return []
        found = self.open_axes | family.open_axes
        found |= {(i, a) for i, shape in enumerate(shapes) for a in range(len(shape)) if self.is_open(i, a)}
        for known in family.known if self.dynamic else ():
            found |= {(i, a) for i, shape in enumerate(shapes) for a, n in enumerate(shape) if known[i][a] != n}
        for general in family.general:
            found |= {(i, a) for i, shape in enumerate(general.shapes) for a, n in enumerate(shape) if is_symbolic(n)}
        special = {axis for axis, size in family.special if axis[1] < len(shapes[axis[0]]) and shapes[axis[0]][axis[1]] == size}
        chosen = {(i, a) for i, a in found - special if a < len(shapes[i]) and shapes[i][a] > 1 and (i, a) not in family.fixed}
        return [] if frozenset(chosen) in family.refused else sorted(chosen)

    def note(self, signature: Signature, general: General | None) -> None:
        """Remember a new specialisation; None if it is one for these sizes alone."""
        family = self.family(signature)
        if general is None:
            family.known.append(shapes_of(signature))
            del family.known[:-16]
        else:
            family.general = [*(g for g in family.general if not g.concrete.dropped), general]

    def fix(self, signature: Signature, shapes: Sequence[Shape], found: Recording) -> None:
        """Record why axes have one size only: the first size that a decision fixes is a special case; with a second one, every size is."""
        family = self.family(signature)
        seen = {axis for axis, _ in family.special}
        for i, shape in enumerate(shapes):
            for a, n in enumerate(shape):
                if is_symbolic(n):
                    (name,) = symbol_names(n.expr)  # type: ignore[attr-defined]
                    pin = found.pins.get(name)
                    if pin is not None and pin.is_decision and (i, a) not in seen:
                        family.special[(i, a), pin.value] = str(pin)
                    elif pin is not None:
                        family.fixed[i, a] = str(pin)

    def forgive(self, signature: Signature, axes: Sequence[Axis]) -> None:
        """Remove the record that a call could not be compiled for all sizes: it cannot be compiled for its own sizes either."""
        self.family(signature).refused.pop(frozenset(axes), None)

    def reasons(self, key: Hashable) -> list[str]:
        """Why calls with this key, or others that differ in sizes only, are compiled for single sizes."""
        family = self.families.get(family_key(key))
        if family is None:
            return []
        return list(dict.fromkeys([*family.fixed.values(), *family.special.values(), *family.refused.values()]))

    def clear(self) -> None:
        self.families.clear()


def conditions(concrete: ConcreteFunction) -> str:
    """The sizes for which a specialisation is valid, if they are not all: ` for B in 33.., B-T != 0`."""
    limited = [range_text(symbol) for symbol in symbols_of(concrete.program.func).values() if range_text(symbol)]
    parts = [*limited, *map(str, concrete.guards)]
    return f" for {', '.join(parts)}" if parts else ""


def refusal(error: Exception) -> str:
    """Why a program could not be made for all sizes."""
    return str(error).replace("\n", "") if isinstance(error, NotGeneral) else f"{type(error).__name__}: {error}".replace("\n", "")


def narrowed(found: Recording | None, make: Callable[[], ConcreteFunction]) -> ConcreteFunction:
    """Return the result of `make`. If a pass cannot decide for all sizes, they are restricted to those that agree with the call's."""
    for _ in range(MAX_NARROWED):
        try:
            with no_recording():
                return make()
        except Undecided as error:
            if found is None or not found.narrow(error):
                raise
    with no_recording():
        return make()


def symbolized(shapes: Sequence[Shape], axes: Sequence[Axis]) -> tuple[tuple[Shape, ...], Symbols]:
    """Return the shapes with symbols for `axes`, where equal sizes share a symbol, and the symbols."""
    symbols = Symbols()
    of_size: dict[int, Size] = {}
    for i, a in axes:
        n = shapes[i][a]
        if n not in of_size:
            count = len(of_size)
            name = NAMES[count] if count < len(NAMES) else f"B{count}"
            of_size[n] = symbols.new(name, n)
    chosen = set(axes)
    return tuple(tuple(of_size[n] if (i, a) in chosen else n for a, n in enumerate(shape)) for i, shape in enumerate(shapes)), symbols


def shapes_of(signature: Signature) -> tuple[Shape, ...]:
    return tuple(array.shape for array in signature.arrays)


def family_key(key: Any) -> Hashable:
    """Return the key of a call with ranks instead of shapes."""
    tree, kinds = key
    return tree, tuple((k[0], len(k[1]), *k[2:]) if is_array_kind(k) else k for k in kinds)


def general_key(signature: Signature, shapes: Sequence[Shape]) -> Hashable:
    """Return the key of a call with symbolic shapes instead of numbers."""
    key: Any = signature.key
    tree, kinds = key
    given = iter(shapes)
    out: list[Any] = []
    for kind in kinds:
        if isinstance(kind, str):
            next(given)  # a Python number
            out.append(kind)
        else:
            out.append((kind[0], next(given), *kind[2:]) if is_array_kind(kind) else kind)
    return tree, tuple(out)


def is_array_kind(kind: Any) -> bool:
    return isinstance(kind, tuple) and isinstance(kind[0], np.dtype)
