"""Printing and parsing of scalars and of op attributes.

An attribute is a dataclass field of the op. Its text shows its type, so that parsing needs no knowledge of the op:

    {axes=[0, 1], subscripts="ij,jk->ik", dtype=f32, scale=0.5, strict=true, low=none}

Types are written at binders only: a field `dtype` or `shape` that equals the result's is omitted, and `bytes` are written as elements of
that dtype. A field at its default is omitted too. Floats round-trip bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

import numpy as np

from .errors import AdjitError, ParseError
from .ops.base import Op
from .scanner import NUMBER, Scanner
from .sizes import is_symbolic
from .types import DTYPE_NAMES, DTYPES, F64, DType, TensorType, real_dtype

# ---- scalars


def scalar_text(value: np.generic) -> str:
    """`true`, `3`, `0.1`, `-inf`, `(0.0, 1.0)` (complex): the shortest text that gives the same bits if parsed with the same dtype."""
    kind = value.dtype.kind
    if kind == "b":
        return "true" if value else "false"
    if kind == "c":
        parts = np.asarray(value)
        return f"({_float_text(parts.real[()])}, {_float_text(parts.imag[()])})"
    return _float_text(value) if kind == "f" else str(int(value))


def _float_text(value: Any) -> str:
    number = float(value)
    if number != number:
        return _nan_text(value)
    if value.dtype == F64:
        return repr(number)
    # Precisions are tried one by one rather than left to NumPy, whose print options would affect the IR.
    with np.errstate(over="ignore"):
        for digits in (6, 7, 8):
            short = float(f"{number:.{digits}g}")
            if value.dtype.type(short) == value:
                return repr(short)
    return repr(float(f"{number:.9g}"))


def _nan_text(value: Any) -> str:
    """`nan`, `-nan`, or `nan(0x7fc00001)` for a non-default payload."""
    for text in ("nan", "-nan"):
        if scalar_of(text, value.dtype).tobytes() == value.tobytes():
            return text
    return f"nan(0x{int.from_bytes(value.tobytes(), 'little'):x})"


def scalar_of(text: str, dtype: DType) -> np.generic:
    """The scalar of `dtype` that `text` (a NUMBER) denotes; ValueError if there is none."""
    bad = ValueError(f"{text if len(text) < 80 else text[:80] + '...'} is not a value of {DTYPE_NAMES[dtype]}")
    if (dtype.kind == "b") != (text in ("true", "false")):
        raise bad
    if dtype.kind == "b":
        return np.bool_(text == "true")
    scalar: np.generic
    if (dtype.kind == "c") != text.startswith("("):
        raise bad
    if dtype.kind == "c":
        pair = [scalar_of(part.strip(), real_dtype(dtype)) for part in text[1:-1].split(",")]
        return np.array(pair).view(dtype)[0]  # type: ignore[no-any-return]
    if dtype.kind != "f":
        try:
            scalar = dtype.type(int(text))
        except (ValueError, OverflowError):
            raise bad from None
    elif text.startswith("nan("):
        bits = int(text[6:-1], 16)
        if bits.bit_length() > 8 * dtype.itemsize or not np.isnan(np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0]):
            raise bad
        scalar = np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0]
    else:
        with np.errstate(over="ignore"):
            scalar = np.copysign(dtype.type(abs(float(text))), dtype.type(-1.0 if text.startswith("-") else 1.0))
    return scalar


# ---- printing


def attributes_text(op: Op, results: Sequence[TensorType]) -> str:
    """` {axes=[0]}`, or an empty string."""
    parts = []
    for field in fields(op):
        value = getattr(op, field.name)
        filled, default = _default(field, results)
        if not (filled and type(default) is type(value) and _value_text(op, default, results) == _value_text(op, value, results)):
            parts.append(f"{field.name}={_value_text(op, value, results)}")
    return f" {{{', '.join(parts)}}}" if parts else ""


def _value_text(op: Op, value: Any, results: Sequence[TensorType]) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float_text(np.float64(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple | list):
        return f"[{', '.join(_value_text(op, v, results) for v in value)}]"
    if isinstance(value, np.dtype):
        return DTYPE_NAMES[value]
    if isinstance(value, TensorType):
        return str(value)
    if isinstance(value, bytes) and results:
        return _elements_text(np.frombuffer(value, results[0].dtype).reshape(results[0].shape))
    raise AdjitError(f"{op.name}: an attribute of type {type(value).__name__} has no text in the IR")


def _elements_text(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return scalar_text(array.reshape(1)[0])
    return f"[{', '.join(_elements_text(np.asarray(row)) for row in array)}]"


def _default(field: Field[Any], results: Sequence[TensorType]) -> tuple[bool, Any]:
    """Whether a field can be omitted, and the value that it then has."""
    if results and field.name in ("dtype", "shape"):
        return True, getattr(results[0], field.name)
    return field.default is not MISSING, field.default


# ---- parsing


def parse_op(scanner: Scanner, op_class: type[Op], results: Sequence[TensorType], name_at: tuple[int, int]) -> Op:
    """Parse the attributes of an op and return it; `results` are the types of its statement's results, `name_at` the span of its name."""
    known = {field.name: field for field in fields(op_class)}
    values: dict[str, Any] = {}
    before = scanner.at
    if scanner.accept("{"):
        if scanner.line_end():  # the opening brace of a region
            scanner.at = before
        while scanner.at != before:
            name = scanner.word()
            if name is None:
                scanner.fail_here(f"{op_class.name}: expected an attribute")
            if name not in known:
                scanner.fail(f"{op_class.name} has no attribute {name!r}; it has {', '.join(known) or 'none'}")
            if name in values:
                scanner.fail(f"{op_class.name}: attribute {name!r} is given twice")
            scanner.expect("=")
            values[name] = _parse_field(scanner, op_class, known[name], results)
            if not scanner.accept(","):
                scanner.expect("}")
                break
    for name, field in known.items():
        if name not in values:
            filled, values[name] = _default(field, results)
            if not filled:
                scanner.fail(f"{op_class.name}: attribute {name!r} is missing", *name_at)
    return op_class(**values)


def _parse_field(scanner: Scanner, op_class: type[Op], field: Field[Any], results: Sequence[TensorType]) -> Any:
    annotation = str(field.type)
    scanner.accept("")  # skip spaces, to the start of the value
    start = scanner.at
    if annotation == "bytes":
        if not results:
            scanner.fail_here(f"{op_class.name}: elements need a result to take their dtype from")
        elements = _parse_elements(scanner, results[0].dtype)
        if len(elements) != results[0].size:
            scanner.fail(f"{op_class.name}: {len(elements)} elements for {results[0]}", start)
        return b"".join(e.tobytes() for e in elements)
    value = _parse_value(scanner)
    if annotation == "float" and type(value) is int:
        return float(value)
    wanted = _CLASSES.get("tuple" if annotation.startswith("tuple[") and "|" not in annotation else annotation)
    if wanted is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
        scanner.fail(f"{op_class.name}: attribute {field.name!r} must be {annotation}", start)
    return value


# The classes that the annotations used by ops allow (annotations are text here, never evaluated); others allow any value.
_CLASSES: dict[str, type] = {
    "int": int, "bool": bool, "float": float, "str": str, "tuple": tuple, "Shape": tuple, "DType": np.dtype, "TensorType": TensorType,
}  # fmt: skip


def _parse_value(scanner: Scanner) -> Any:
    if scanner.accept("["):
        items: list[Any] = []
        while not scanner.accept("]"):
            if items:
                scanner.expect(",")
            with scanner.deeper():
                items.append(_parse_value(scanner))
        return tuple(items)
    if scanner.symbols.table:
        size = _parse_size(scanner)
        if size is not None:
            return size
    number = scanner.match(NUMBER)
    if number is not None:
        if number in ("true", "false"):
            return number == "true"
        if number.lstrip("-").isdigit():
            return scanner.whole(number)
        try:
            return float(scalar_of(number, F64))
        except ValueError as error:
            scanner.fail(str(error))
    text = scanner.string()
    if text is not None:
        return text
    start = scanner.at
    word = scanner.word()
    if word == "none":
        return None
    if word in DTYPES:
        if not scanner.text.startswith("[", scanner.at):
            return DTYPES[word]
        scanner.at = start
        return scanner.type()
    scanner.at = start
    return scanner.fail_here("expected an attribute's value")


def _parse_size(scanner: Scanner) -> int | None:
    """A size with a symbol in it, if one comes next."""
    start = scanner.at
    try:
        size = scanner.size()
    except ParseError:
        size = 0
    if is_symbolic(size):
        return size
    scanner.at = start
    return None


def _parse_elements(scanner: Scanner, dtype: DType) -> list[np.generic]:
    """Elements in row-major order; the brackets around rows are only for readability."""
    out: list[np.generic] = []
    depth = 0
    while True:
        if scanner.accept("["):
            depth += 1
            continue
        if depth and scanner.accept("]"):
            depth -= 1
        else:
            number = scanner.match(NUMBER)
            if number is None:
                scanner.fail_here("expected an element")
            try:
                out.append(scalar_of(number, dtype))
            except ValueError as error:
                scanner.fail(str(error))
        if depth == 0:
            return out
        scanner.accept(",")
