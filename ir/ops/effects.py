"""Ordered ops: assertions and printing. They have no results, and are never removed, repeated or reordered."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import AdjitError, CheckError, DTypeError, OutOfRoomError, ShapeError, UnsupportedError, raised_as
from ..types import BOOL, TensorType, complex_dtype
from .base import Array, Loops, Op, Window, Writing, apply, perform, with_attributes
from .maps import cast
from .reduce import all as all_true
from .shape import lead, reshape, slice_

__all__ = ["check", "print_"]

if TYPE_CHECKING:
    from ..operand import Operand


class Repeating(threading.local):
    """Whether this thread repeats a run whose visible effects have already happened: see `repeating`."""

    active = False


_repeating = Repeating()


@contextmanager
def repeating() -> Iterator[None]:
    """Suppress prints inside: an earlier run has already printed them."""
    before, _repeating.active = _repeating.active, True
    try:
        yield
    finally:
        _repeating.active = before


def is_repeating() -> bool:
    return _repeating.active


class Effect(Op, abstract=True):
    """An op that is executed for its effect, not for a result."""

    effect = True
    differentiable = False

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        return []

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: object
    ) -> list[Operand | None]:
        return [None] * len(args)


@with_attributes
class Assert(Effect):
    """Raises CheckError with `message` unless the condition, a bool, holds. The error also subclasses the built-in exception `raises`."""

    message: str
    raises: str = ""
    can_fail: ClassVar[bool] = True

    @property
    def error(self) -> type[AdjitError]:  # type: ignore[override]
        return raised_as(self.raises)

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        (condition,) = types
        if condition.dtype != BOOL:
            raise DTypeError(f"assert: the condition must be bool, not {condition}")
        if condition.shape:
            raise ShapeError(f"assert: the condition must be a scalar, not {condition}; use all() or any()")
        return ()

    def evaluate(self, *arrays: Array) -> tuple[()]:
        if not arrays[0]:
            raise self.error(self.message)
        return ()

    def python(self, write: Writing, *args: Operand) -> Any:
        condition = write.array(args[0])
        if self.error in (CheckError, OutOfRoomError):
            write.run("assert {}, {}" if self.message else "assert {}", condition, write.value(self.message))
            return
        write.run("if {}:", write("not {}", condition))
        write.run(f"    raise {self.raises}({{}})", write.value(self.message))

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        return apply(self, all_true(args[0]))

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        condition = args[0] if batched[0] else lead(args[0], size)
        return (condition | ~active,), (True,)

    def operations(self, args: Sequence[TensorType], results: Sequence[TensorType]) -> float:
        return float(args[0].size)

    def lower(self, k: Loops, outs: tuple[Window, ...], condition: Window) -> None:
        holds = k.load(condition)
        k.fail_if(k.scalar.xor(holds, k.scalar.like(holds, True)), self.message.replace("{", "{{").replace("}", "}}"))


@with_attributes
class Print(Effect):
    """Prints `template` with its `{}` replaced by the arguments, as `str.format` does. Native code calls back into Python for it.

    `style` names how arrays are formatted: as in NumPy, or as in a registered frontend, which shows `summarize` elements at each end of
    long axes (-1: all).
    """

    template: str
    end: str = "\n"
    stream: str = "stdout"
    style: str = "numpy"
    summarize: int = -1
    calls_python = True
    is_visible = True
    complex: tuple[bool, ...] = ()  # operands whose last axis holds the parts of complex numbers, if there are any

    can_fail: ClassVar[bool] = True  # the stream may be closed, or unable to encode a character
    styles: ClassVar[dict[str, Callable[[Array, int], object]]] = {"numpy": lambda a, _: a if a.shape else a[()]}

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        from string import Formatter  # noqa: PLC0415 - only printing needs it

        places = [part[1:] for part in Formatter().parse(self.template) if part[1] is not None]
        if len(places) != len(types) or self.stream not in ("stdout", "stderr") or self.style not in self.styles:
            raise ShapeError(f"print: {self.template!r} to {self.stream!r}, as {self.style!r}, does not fit {len(types)} operands")
        if self.complex:
            types = tuple(complex_type(t) if pair else t for t, pair in zip(types, self.complex, strict=True))
        for (name, spec, conversion), type in zip(places, types, strict=True):
            if name or conversion not in (None, "r", "s", "a") or (spec and (type.shape or "{" in spec)):
                raise ShapeError(f"print: {self.template!r} does not fit an operand of type {type}")
            if spec:
                format(str(0) if conversion else type.dtype.type(0), spec)
        return ()

    def evaluate(self, *arrays: Array) -> tuple[()]:
        if is_repeating():
            return ()
        text = self.styles[self.style]
        stream = sys.stderr if self.stream == "stderr" else sys.stdout
        if self.complex:
            arrays = tuple(of_parts(a) if pair else a for a, pair in zip(arrays, self.complex, strict=True))
        stream.write(self.template.format(*(text(a, self.summarize) for a in arrays)) + self.end)
        return ()

    def python(self, write: Writing, *args: Operand) -> Any:
        if self.style != "numpy":
            raise UnsupportedError(f"print: the style {self.style!r} is not NumPy's, and cannot be written as Python that needs NumPy only")
        values = [write("{}[()]", write.array(x)) if not x.type.shape else write.array(x) for x in args]
        text = write(f"{{}}.format({', '.join(['{}'] * len(values))})", write.value(self.template), *values)
        end = "" if self.end == "\n" else ", end={}"
        stream = ", file=sys.stderr" if self.stream == "stderr" else ""
        write.run(f"print({{}}{end}{stream})", text, *([write.value(self.end)] if end else []))

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        for k in range(size):
            row = (reshape(slice_(a, [slice(k, k + 1)]), a.type.shape[1:]) if has else a for a, has in zip(args, batched, strict=True))
            perform(self, *row)
        return ()

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        raise UnsupportedError("print: in a branch or loop that some examples of a vmap take and others do not; print after it")


def complex_type(parts: TensorType) -> TensorType:
    """The type of the complex numbers whose parts are along the last axis."""
    return TensorType(complex_dtype(parts.dtype), parts.shape[:-1])


def of_parts(parts: Array) -> Array:
    type = complex_type(TensorType(parts.dtype, parts.shape))
    return np.ascontiguousarray(parts).view(type.dtype).reshape(type.shape)


def check(condition: Operand, message: str = "", raises: str = "") -> None:
    """Check at run time that a scalar condition holds. One that is known while tracing is checked immediately.

    `raises` names a built-in exception that the error also subclasses, or `OutOfRoomError`.
    """
    apply(Assert(message, raises), cast(condition, BOOL))


def print_(template: str, *args: Operand, end: str = "\n", stream: str = "stdout", style: str = "numpy", summarize: int = -1) -> None:
    """Print at run time, in every run."""
    try:
        template.format(*("" for _ in args))
    except (IndexError, KeyError):
        raise ShapeError(f"print: {template!r} does not fit {len(args)} arguments") from None
    except ValueError:
        pass  # a format that text does not support, but a number may
    perform(Print(template, end, stream, style, summarize), *args)
