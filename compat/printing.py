"""tf.print: prints values in TensorFlow's format, eagerly and in every run of a compiled function."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.effects import Print

from .errors import out_of_scope, translated
from .tensor import tracing
from .text import TextTensor

STYLE = "tensorflow"  # the name of the array format in the op


@translated
def print(*inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: str | None = None) -> None:
    """Print tensors and other values, by default to standard error, as TensorFlow does. Inside a function, prints in every run."""
    named = {None: sys.stderr, "stdout": sys.stdout, "stderr": sys.stderr}
    stream: Any = named.get(output_stream, output_stream) if output_stream is None or isinstance(output_stream, str) else output_stream
    if not tracing():
        stream.write(sep.join(_text(x, summarize) for x in inputs) + end)
        return
    if stream not in (sys.stdout, sys.stderr):
        out_of_scope("tf.print(output_stream=...) inside a tf.function", "give sys.stdout or sys.stderr")
    traced: list[Operand] = []
    template = _literal(sep).join(_template(x, traced) for x in inputs)
    ops.print_(template, *traced, end=end, stream="stdout" if stream is sys.stdout else "stderr", style=STYLE, summarize=summarize)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _template(x: Any, traced: list[Operand], quoted: bool = False) -> str:
    """The text of x with `{}` for every tensor in it; the tensors are appended to `traced`."""
    if isinstance(x, Operand):
        traced.append(as_operand(x))
        return "{}"
    if isinstance(x, TextTensor):
        return _literal(_words(x.numpy()))
    if isinstance(x, dict):
        return "{{" + ", ".join(f"{_literal(repr(k))}: {_template(v, traced, True)}" for k, v in x.items()) + "}}"
    if isinstance(x, list | tuple):
        open_, close = "[]" if isinstance(x, list) else "()"
        return open_ + ", ".join(_template(v, traced, True) for v in x) + close
    return _literal(repr(x) if quoted else str(x))


def _words(x: Any) -> str:
    """Text as tf.print shows it: quoted among others."""
    if isinstance(x, bytes):
        return x.decode(errors="replace")
    return "[" + " ".join(f'"{_words(row)}"' if isinstance(row, bytes) else _words(row) for row in x) + "]"


def _text(x: Any, summarize: int) -> str:
    tensors: list[Operand] = []
    return _template(x, tensors).format(*(_array_text(np.asarray(t), summarize) for t in tensors))


def _array_text(x: Any, summarize: int, indent: int = 1) -> str:
    """Elements separated by spaces, rows by newlines; the middle of long axes is omitted."""
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


Print.styles[STYLE] = _array_text
