"""Ordered ops: assertions and printing. They have no results, and are never removed, repeated or reordered."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import AdjitError, CapacityError, CheckError, DTypeError, FoundSizeError, ShapeError, UnsupportedError, raised_as
from ..types import BOOL, DTYPE_NAMES, I64, TensorType, complex_dtype
from .base import Array, Loops, Op, Reg, Window, Writing, apply, perform, with_attributes
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
    """Raises CheckError with `message` unless the condition, a bool, holds. The error also subclasses the built-in exception `raises`.

    Up to four numbers may follow the condition; then the message is a template in the syntax of `str.format`, which shows them.
    """

    message: str
    raises: str = ""
    can_fail: ClassVar[bool] = True
    most_values: ClassVar[int] = 4  # the details that an error record of native code has room for

    @property
    def error(self) -> type[AdjitError]:  # type: ignore[override]
        return raised_as(self.raises)

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        condition, *values = types
        if len(values) > self.most_values or any(v.shape or v.is_complex or v.is_stored for v in values):
            raise ShapeError(f"assert: shows up to {self.most_values} real numbers, not {', '.join(map(str, values))}")
        if values:
            check_template(self.name, self.message, values)
        if condition.dtype != BOOL:
            raise DTypeError(f"assert: the condition must be bool, not {condition}")
        if condition.shape:
            raise ShapeError(f"assert: the condition must be a scalar, not {condition}; use all() or any()")
        return ()

    def evaluate(self, *arrays: Array) -> tuple[()]:
        if not arrays[0]:
            raise self.error(self.message.format(*(a[()] for a in arrays[1:])) if len(arrays) > 1 else self.message)
        return ()

    def python(self, write: Writing, *args: Operand) -> Any:
        condition, message = write.array(args[0]), write.value(self.message)
        if len(args) > 1:
            values = [write("{}[()]", write.array(x)) for x in args[1:]]
            message = write(f"{{}}.format({', '.join(['{}'] * len(values))})", message, *values)
        if self.error in (CheckError, FoundSizeError, CapacityError):
            write.run("assert {}, {}" if self.message else "assert {}", condition, message)
            return
        write.run("if {}:", write("not {}", condition))
        write.run(f"    raise {self.raises}({{}})", message)

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        return apply(self if len(args) == 1 else Assert(self.without_values(), self.raises), all_true(args[0]))

    def without_values(self) -> str:
        """The message of examples that are computed together, each of which has values of its own."""
        return "".join(literal + ("..." if field is not None else "") for literal, field, _, _ in parsed(self.message))

    def with_details(self, types: Sequence[TensorType]) -> str:
        """The message as a template of 64-bit words, from which `Detail` restores numbers of these types."""
        out, left = "", list(types)
        for literal, field, spec, conversion in parsed(self.message):
            out += literal.replace("{", "{{").replace("}", "}}")
            if field is not None:
                out += f"{{:{DTYPE_NAMES[left.pop(0).dtype]}!{conversion or ''}:{spec}}}"
        return out

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        condition = args[0] if batched[0] else lead(args[0], size)
        return (condition | ~active, *args[1:]), (True, *batched[1:])

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(types[0].size))

    def lower(self, k: Loops, outs: tuple[Window, ...], condition: Window, *values: Window) -> None:
        holds = k.load(condition)
        message = self.with_details([v.type for v in values]) if values else self.message.replace("{", "{{").replace("}", "}}")
        k.fail_if(k.scalar.xor(holds, k.scalar.like(holds, True)), message, *(word(k, k.load(v)) for v in values))


def word(k: Loops, x: Reg) -> Reg:
    """A number as 64 bits, which `Detail` turns back into that number."""
    if x.dtype.kind == "f":
        x = k.scalar.bitcast(x, np.dtype(f"i{x.dtype.itemsize}"))
    return x if x.dtype == I64 else k.scalar.convert(x, I64)


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
        if self.stream not in ("stdout", "stderr") or self.style not in self.styles:
            raise ShapeError(f"print: {self.template!r} to {self.stream!r}, as {self.style!r}, does not fit {len(types)} operands")
        if self.complex:
            types = tuple(complex_type(t) if pair else t for t, pair in zip(types, self.complex, strict=True))
        check_template("print", self.template, types)
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


def parsed(template: str) -> Iterable[tuple[str, str | None, str | None, str | None]]:
    """The parts of a template: text, and the name, format and conversion of the placeholder after it."""
    from string import Formatter  # noqa: PLC0415 - compiles regular expressions when imported, and few programs need it

    return Formatter().parse(template)


def check_template(what: str, template: str, types: Sequence[TensorType]) -> None:
    """Reject a template without a placeholder for each operand, or with a format that an operand does not support."""
    places = [part[1:] for part in parsed(template) if part[1] is not None]
    if len(places) != len(types):
        raise ShapeError(f"{what}: {template!r} does not fit {len(types)} operands")
    for (name, spec, conversion), type in zip(places, types, strict=True):
        if name or conversion not in (None, "r", "s", "a") or (spec and (type.shape or "{" in spec)):
            raise ShapeError(f"{what}: {template!r} does not fit an operand of type {type}")
        if spec:
            format(str(0) if conversion else type.dtype.type(0), spec)


def complex_type(parts: TensorType) -> TensorType:
    """The type of the complex numbers whose parts are along the last axis."""
    return TensorType(complex_dtype(parts.dtype), parts.shape[:-1])


def of_parts(parts: Array) -> Array:
    type = complex_type(TensorType(parts.dtype, parts.shape))
    return np.ascontiguousarray(parts).view(type.dtype).reshape(type.shape)


def check(condition: Operand, message: str = "", raises: str = "") -> None:
    """Check at run time that a scalar condition holds. One that is known while tracing is checked immediately.

    `raises` names a built-in exception that the error also subclasses, or `CapacityError`.
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
