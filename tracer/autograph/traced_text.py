"""Text that contains traced values: f-strings, `str(x)`, `"%s" % x`, `"{}".format(x)`."""

from __future__ import annotations

import builtins
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from adjit.ir.errors import TraceError
from adjit.ir.location import Location
from adjit.ir.operand import Operand, as_operand

from ..frames import user_location
from ..regions import is_traced

PERCENT = re.compile(r"%(?:%|([-+ #0]*[0-9]*(?:\.[0-9]+)?)([diufeEgGFsra]))")


class TracedText(str):
    """Text with traced values. Printed, or in an error, it shows those of the run; it cannot be a condition or a result."""

    template: str
    operands: list[Operand]
    made: Location | None

    def __new__(cls, parts: Sequence[Any]) -> TracedText:
        known = [part if isinstance(part, str) else repr(part[0]) if is_traced(part[0]) else written_out(*part) for part in parts]
        out = super().__new__(cls, "".join(known))
        out.made = user_location()
        out.operands = [as_operand(part[0]) for part in parts if isinstance(part, tuple) and is_traced(part[0])]
        out.template = "".join(
            placeholder(*part) if isinstance(part, tuple) and is_traced(part[0]) else braced(text)
            for part, text in zip(parts, known, strict=True)
        )
        return out

    def __add__(self, other: str) -> TracedText:
        return join_texts([self, other])

    def __radd__(self, other: str) -> TracedText:
        return join_texts([other, self])

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error where the text itself is needed."""
        raise TraceError(
            "text of a traced value is known only when the function runs: it can be printed, and be the message of an error; return the "
            "value itself, and format the result"
        ).at(self.made)

    def with_numbers(self, most: int) -> tuple[str, list[Operand]]:
        """Return a template with at most `most` real numbers, and these numbers; arrays and further numbers are shown by their type."""
        from string import Formatter  # noqa: PLC0415 - compiles a regular expression

        template, left = "", list(self.operands)
        numbers: list[Operand] = []
        for literal, field, spec, conversion in Formatter().parse(self.template):
            template += braced(literal)
            if field is not None:
                x = left.pop(0)
                if len(numbers) < most and not (x.type.shape or x.type.is_complex or x.type.is_stored):
                    numbers.append(x)
                    template += "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
                else:
                    template += braced(f"<{x.type}>")
        return template, numbers


KEPT = {"__add__", "__radd__", "__class__", "__new__", "__init__", "__str__", "__repr__", "__format__", "__reduce__", "__reduce_ex__"}
KEPT |= {"__getattribute__", "__setattr__", "__delattr__", "__dir__", "__sizeof__", "__subclasshook__", "__init_subclass__", "__doc__"}
KEPT |= {"__getnewargs__", "__getstate__"}
for _name in vars(str).keys() - KEPT:
    setattr(TracedText, _name, TracedText.refuse)


def written_out(value: Any, conversion: str = "", spec: str = "") -> str:
    """Format a value as an f-string does."""
    conversions: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}
    return format(conversions[conversion](value) if conversion else value, spec)


def placeholder(value: Any, conversion: str = "", spec: str = "") -> str:
    """Return the placeholder of a run-time value, in the syntax of `str.format`."""
    if spec and not conversion and as_operand(value).ndim:
        raise TypeError(f"unsupported format string {spec!r} for an array, {as_operand(value).type}; only numbers take one")
    return "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"


def braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def join_texts(texts: Sequence[str]) -> TracedText:
    """Return the concatenation of texts."""
    out = str.__new__(TracedText, "".join(str.__str__(t) for t in texts))
    out.made = user_location()
    out.operands = [x for t in texts if isinstance(t, TracedText) for x in t.operands]
    out.template = "".join(t.template if isinstance(t, TracedText) else braced(t) for t in texts)
    return out


def is_text(value: Any) -> bool:
    return is_traced(value) or isinstance(value, TracedText)


def str_(*args: Any, **options: Any) -> Any:
    if len(args) == 1 and not options and is_text(args[0]):
        return args[0] if isinstance(args[0], TracedText) else TracedText([(args[0],)])
    return builtins.str(*args, **options)


def repr_(value: Any, /) -> Any:
    return TracedText([(value, "r")]) if is_traced(value) else builtins.repr(value)


def format_(value: Any, spec: str = "", /) -> Any:
    return TracedText([(value, "", spec)]) if is_traced(value) else builtins.format(value, spec)


def format_method(template: str, /, *args: Any, **named: Any) -> Any:
    """`template.format(...)`."""
    if not any(map(is_text, (*args, *named.values()))):
        return template.format(*args, **named)
    raise TraceError("str.format() of traced values: write an f-string").at(user_location())


def join_method(separator: str, items: Iterable[Any], /) -> Any:
    """`separator.join(items)`."""
    texts = list(items)
    if not any(isinstance(t, TracedText) for t in (separator, *texts)):
        return separator.join(texts)
    return join_texts([part for t in texts for part in (separator, t)][1:])


def percent_text(template: str, values: Any) -> TracedText:
    """`template % values` with traced values among them."""
    left = list(values) if isinstance(values, tuple) else [values]
    parts: list[Any] = []
    end = 0
    for found in PERCENT.finditer(template):
        parts.append(template[end : found.start()])
        end = found.end()
        spec, kind = found.groups()
        if kind is None:
            parts.append("%")
            continue
        if not left:
            raise TypeError("not enough arguments for format string")
        value = left.pop(0)
        if not is_traced(value):
            parts.append(found[0] % (value,))
        elif kind in "sra":
            parts.append((value, kind, spec))
        else:
            parts.append((value, "", spec.replace("-", "<") + ("" if kind in "diu" else kind)))
    if left or "%" in template[end:]:
        raise TraceError("`%` of traced values: write an f-string").at(user_location())
    return TracedText([*parts, template[end:]])


def warn(message: Any, category: Any = None, stacklevel: int = 1, *more: Any, **named: Any) -> None:
    """`warnings.warn`, which looks up messages in a table."""
    known = str.__str__(message) if isinstance(message, TracedText) else message
    warnings.warn(known, category, stacklevel + 1, *more, **named)
