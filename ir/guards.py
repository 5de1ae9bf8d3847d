"""The assumptions of a trace about sizes that are known only when a program runs: guards and pins.

A question about sizes that their ranges do not decide is answered by the sizes of the call that is traced, while its `Recording` is active;
the answer becomes a guard of what is compiled, or pins the symbols to one value. Outside of a trace such questions are refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import NotGeneral, Undecided
from .expr import Expr, Symbolic, Var, evaluated, expr_text, is_symbol, symbol_names, without_common_symbols
from .records import NamedTuple

if TYPE_CHECKING:
    from .location import Location
    from .sizes import Size, Symbols


class Guard(NamedTuple):
    """`expr relation 0`, which the trace assumed because it holds for the hints; relation is `>=`, `!=` or `==`."""

    expr: Symbolic
    relation: str
    location: Location | None

    def holds(self, sizes: Mapping[str, int]) -> bool:
        n = evaluated(self.expr, sizes)
        return n >= 0 if self.relation == ">=" else (n == 0) == (self.relation == "==")

    def __str__(self) -> str:
        return f"{expr_text(self.expr)} {self.relation} 0"


class Pin(NamedTuple):
    """Why a symbol has only one value."""

    name: str
    value: int
    reason: str
    location: Location | None
    is_decision: bool = False  # which may be another one for other sizes

    def __str__(self) -> str:
        where = "" if self.location is None else f" at {self.location.describe()}"
        return f"{self.name} = {self.value}: {self.reason}{where}"


class Recording:
    """The assumptions of a trace about its sizes. `locate` finds the user's line."""

    def __init__(self, symbols: Symbols, locate: Callable[[], Location | None]) -> None:
        self.symbols = symbols
        self.locate = locate
        self.guards: list[Guard] = []
        self.pins: dict[str, Pin] = {}
        self.is_single = False  # whether a pass has narrowed a symbol to one value: a program for that size alone is then better

    def assume(self, expr: Symbolic, relation: str) -> None:
        guard = Guard(expr, relation, self.locate())
        if relation == "==":
            self.pin(expr, f"{expr_text(expr)} == 0 is decided", is_decision=True)
        elif relation == ">=" and len(expr.terms) == 1 and is_symbol(expr):
            (((atom,), factor),) = expr.terms.items()
            assert isinstance(atom, Var)
            if factor > 0:
                self.symbols.limit(atom.name, low=-(expr.constant // factor))
            else:
                self.symbols.limit(atom.name, high=expr.constant // -factor)
            symbol = self.symbols.table[atom.name]
            if symbol.low == symbol.high:  # such as after a loop of Python's that goes on while a counter is less than the size
                self.pin(expr, f"{expr_text(expr)} {relation} 0 is decided", is_decision=True)
        elif not any((g.expr, g.relation) == (expr, relation) for g in self.guards):
            self.guards.append(guard)

    def decide(self, expr: Symbolic) -> bool:
        """Whether an expression is at least 0 for the hints, which is assumed from now on."""
        answer = expr.hint >= 0
        assumed = expr if answer else -expr - 1
        assert isinstance(assumed, Symbolic)
        self.assume(assumed, ">=")
        return answer

    def narrow(self, error: Undecided) -> bool:
        """Assume what a pass could not decide, after the trace, if that narrows the range of a symbol; False if it does not."""
        expr = without_common_symbols(error.expr)
        if not isinstance(expr, Symbolic) or not expr.is_of_symbols or not is_symbol(expr):
            return False
        self.decide(expr)
        (name,) = symbol_names(expr)
        symbol = self.symbols.table[name]
        self.is_single = symbol.low == symbol.high
        return not self.is_single

    def pin(self, expr: Symbolic, reason: str, is_decision: bool = False) -> None:
        location = self.locate()
        for name in symbol_names(expr):
            hint = self.symbols.table[name].hint
            self.pins.setdefault(name, Pin(name, hint, reason, location, is_decision))
            self.symbols.limit(name, hint, hint)


class _ActiveRecording(threading.local):
    recording: Recording | None = None


_active = _ActiveRecording()


@contextmanager
def recording(symbols: Symbols, locate: Callable[[], Location | None]) -> Iterator[Recording]:
    """Answer undecided questions about these symbols by the hints, inside the block, and record them."""
    before, now = _active.recording, Recording(symbols, locate)
    _active.recording = now
    try:
        yield now
    finally:
        _active.recording = before


@contextmanager
def no_recording() -> Iterator[None]:
    """Refuse undecided questions inside the block: for passes, which may not add guards."""
    before, _active.recording = _active.recording, None
    try:
        yield
    finally:
        _active.recording = before


def recording_of(size: Size) -> Recording | None:
    found = _active.recording
    return found if found is not None and found.symbols is size.symbols else None


def lost(size: Size, reason: str) -> int:
    """The hint of a size that cannot stay symbolic."""
    found = recording_of(size)
    if found is None:
        raise NotGeneral(f"{reason} needs the value of {size}")
    found.pin(size.expr, f"{reason} needs the value of {size}")
    return size.hint


def same(size: Size, difference: Expr) -> bool:
    """Whether a difference to a size is 0."""
    if not isinstance(difference, Symbolic):
        return difference == 0
    least, greatest = size.symbols.least(difference), size.symbols.greatest(difference)
    if (least is not None and least > 0) or (greatest is not None and greatest < 0):
        return False
    if least == greatest == 0:
        return True
    found = recording_of(size)
    if found is None:
        return False
    answer = difference.hint == 0
    found.assume(difference, "==" if answer else "!=")
    return answer


def at_least_zero(size: Size, expr: Expr) -> bool:
    known = proven(size.symbols, expr)
    if known is not None:
        return known
    assert isinstance(expr, Symbolic)
    found = recording_of(size)
    if found is None:
        raise Undecided(f"whether {expr_text(expr)} >= 0 depends on the sizes", expr)
    return found.decide(expr)


def proven(symbols: Symbols, expr: Expr) -> bool | None:
    """Whether an expression is at least 0: always, never (False) or sometimes (None)."""
    least = symbols.least(expr)
    if least is not None and least >= 0:
        return True
    greatest = symbols.greatest(expr)
    return False if greatest is not None and greatest < 0 else None


def is_recording() -> bool:
    return _active.recording is not None
