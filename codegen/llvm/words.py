"""Integers that are known only at run time, with Python's operators, so that one rule works on numbers and on registers.

    rows = least(MAX_ROWS, over(m, 6) * 6)      # a number if m is one, otherwise a `Word`, whose instructions are emitted

`chosen(m <= 64, a, b)` stands for `a if m <= 64 else b`: both are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar, overload

from .counted import only_if
from .lanes import Text


class Truth:
    """A condition on words: a register of type i1."""

    def __init__(self, text: Text, name: str) -> None:
        self.text, self.name = text, name

    def __bool__(self) -> bool:
        raise TypeError("whether a condition on words holds is known only at run time: use `chosen` or `branch`")

    def __and__(self, other: bool | Truth) -> bool | Truth:
        return (self if other else False) if isinstance(other, bool) else self._joined("and", other)

    def __or__(self, other: bool | Truth) -> bool | Truth:
        return (True if other else self) if isinstance(other, bool) else self._joined("or", other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Truth:
        return Truth(self.text, self.text.define(f"xor i1 {self.name}, true"))

    def _joined(self, operation: str, other: Truth) -> Truth:
        return Truth(self.text, self.text.define(f"{operation} i1 {self.name}, {other.name}"))


class Word:
    """A register of type i64, with a number that is not negative. Arithmetic emits instructions."""

    def __init__(self, text: Text, name: str) -> None:
        self.text, self.name = text, name

    def __add__(self, other: Integer) -> Word:
        return _emitted(self.text, "add", self, other)

    def __sub__(self, other: Integer) -> Word:
        return _emitted(self.text, "sub", self, other)

    def __mul__(self, other: Integer) -> Word:
        return _emitted(self.text, "mul", self, other)

    def __floordiv__(self, other: Integer) -> Word:
        return _emitted(self.text, "udiv", self, other)

    def __radd__(self, other: int) -> Word:
        return _emitted(self.text, "add", other, self)

    def __rmul__(self, other: int) -> Word:
        return _emitted(self.text, "mul", other, self)

    def __rfloordiv__(self, other: int) -> Word:
        return _emitted(self.text, "udiv", other, self)

    def __le__(self, other: Integer) -> Truth:
        return Truth(self.text, self.text.define(f"icmp sle i64 {self.name}, {spelled(other)}"))

    def __lt__(self, other: Integer) -> Truth:
        return Truth(self.text, self.text.define(f"icmp slt i64 {self.name}, {spelled(other)}"))


Integer: TypeAlias = int | Word
N = TypeVar("N", int, Word)


def spelled(x: Integer) -> str:
    """As an operand of type i64."""
    return x.name if isinstance(x, Word) else str(x)


@overload
def over(a: int, b: int) -> int: ...
@overload
def over(a: Word, b: Integer) -> Word: ...
@overload
def over(a: int, b: Word) -> Word: ...
def over(a: Integer, b: Integer) -> Integer:
    """a / b, rounded up."""
    return (a + (b - 1)) // b


@overload
def least(a: int, b: int) -> int: ...
@overload
def least(a: Integer, b: Word) -> Word: ...
def least(a: Integer, b: Integer) -> Integer:
    return _extreme("smin", a, b) if isinstance(a, Word) or isinstance(b, Word) else min(a, b)


@overload
def greatest(a: int, b: int) -> int: ...
@overload
def greatest(a: Integer, b: Word) -> Word: ...
def greatest(a: Integer, b: Integer) -> Integer:
    return _extreme("smax", a, b) if isinstance(a, Word) or isinstance(b, Word) else max(a, b)


@overload
def chosen(condition: bool, a: int, b: int) -> int: ...
@overload
def chosen(condition: Truth, a: Word, b: Integer) -> Word: ...
def chosen(condition: bool | Truth, a: Integer, b: Integer) -> Integer:
    """`a` if the condition holds, otherwise `b`."""
    if not isinstance(condition, Truth):
        return a if condition else b
    text = condition.text
    return Word(text, text.define(f"select i1 {condition.name}, i64 {spelled(a)}, i64 {spelled(b)}"))


def decided(condition: bool | Truth, then: Callable[[], Integer], otherwise: Callable[[], Integer]) -> Integer:
    """`then()` if the condition holds, otherwise `otherwise()`. Unlike `chosen`, only one is computed: for divisions, which take long."""
    if not isinstance(condition, Truth):
        return then() if condition else otherwise()
    text = condition.text
    yes, no, after = (text.fresh_label() for _ in range(3))
    text.put(f"br i1 {condition.name}, label %{yes}, label %{no}")
    incoming = []
    for label, compute in ((yes, then), (no, otherwise)):
        text.start(label)
        incoming.append(f"[{spelled(compute())}, %{text.block}]")
        text.jump(after)
    text.start(after)
    return Word(text, text.define(f"phi i64 {', '.join(incoming)}"))


def branch(condition: bool | Truth, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Call `then` if the condition holds, otherwise `otherwise`. If the condition is a register, emit both, with a branch."""
    if isinstance(condition, Truth):
        with only_if(condition.text, condition.name):
            then()
        with only_if(condition.text, (~condition).name):
            otherwise()
    else:
        (then if condition else otherwise)()


def _emitted(text: Text, operation: str, a: Integer, b: Integer) -> Word:
    return Word(text, text.define(f"{operation} i64 {spelled(a)}, {spelled(b)}"))


def _extreme(name: str, a: Integer, b: Integer) -> Word:
    text = next(x.text for x in (a, b) if isinstance(x, Word))
    text.declares.add(f"declare i64 @llvm.{name}.i64(i64, i64)")
    return Word(text, text.define(f"call i64 @llvm.{name}.i64(i64 {spelled(a)}, i64 {spelled(b)})"))
