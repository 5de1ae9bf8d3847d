"""tf.print: values as TensorFlow prints them, eagerly and in every run of a compiled function."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand, as_operand
from adjit.tracer.pytree import flatten
from adjit.tracer.regions import is_traced

from .errors import translated


@translated
def print(*inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: str | None = None) -> None:
    """Print tensors and anything else; to standard error, unless told, as TensorFlow does."""
    if any(is_traced(leaf) for x in inputs for leaf in flatten(x)[0]):
        traced: list[Operand] = []
        ops.print_(sep.join(_template(x, traced) for x in inputs), *traced)
        return
    stream = {None: sys.stderr, "stdout": sys.stdout, "stderr": sys.stderr}.get(output_stream, output_stream)
    stream.write(sep.join(_text(x, summarize) for x in inputs) + end)


def _template(x: Any, traced: list[Operand]) -> str:
    if isinstance(x, Operand):
        traced.append(as_operand(x))
        return "{}"
    return str(x).replace("{", "{{").replace("}", "}}")


def _text(x: Any, summarize: int, quoted: bool = False) -> str:
    if isinstance(x, Operand):
        return _array_text(np.asarray(x), summarize)
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v, summarize, True)}" for k, v in x.items()) + "}"
    if isinstance(x, list | tuple):
        open_, close = "[]" if isinstance(x, list) else "()"
        return open_ + ", ".join(_text(v, summarize, True) for v in x) + close
    return repr(x) if quoted else str(x)


def _array_text(x: Any, summarize: int, indent: int = 1) -> str:
    """Elements separated by blanks, rows by line ends; the middle of long axes is left out."""
    if not x.ndim:
        return _number_text(x[()])
    if summarize < 0 or x.shape[0] <= 2 * summarize:
        parts = [_array_text(row, summarize, indent + 1) for row in x]
    else:
        ends = [*x[:summarize], *x[len(x) - summarize :]]
        parts = [_array_text(row, summarize, indent + 1) for row in ends]
        parts.insert(summarize, "...")
    return "[" + (" " if x.ndim == 1 else "\n" * (x.ndim - 1) + " " * indent).join(parts) + "]"


def _number_text(value: Any) -> str:
    if isinstance(value, np.bool_):
        return str(int(value))
    if value.dtype.kind != "f":
        return str(value)
    few, enough = (6, 9) if value.dtype == np.float32 else (15, 17)
    text = f"{float(value):.{few}g}"
    return text if value.dtype.type(text) == value else f"{float(value):.{enough}g}"
