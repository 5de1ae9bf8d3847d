"""HTML tables of tensors, for notebooks. Large tensors show their edges only."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from adjit.ir.ops.base import Array

EDGE = 5  # rows or columns shown at each end


def table(array: Array, title: str) -> str:
    """Format the last two axes as a table (of a stack, the first matrix); a single number as text."""
    title = escape(title)
    if array.ndim == 0:
        return f"<code>{escape(text(array[()]))}</code> <small>{title}</small>"
    if 0 in array.shape:
        return f"<small>{title}, empty</small>"
    shown = array.reshape(-1, *array.shape[-2:])[0] if array.ndim > 1 else array[None]
    more = f", [{', '.join(['0'] * (array.ndim - 2))}] of it" if array.ndim > 2 else ""
    rows = "".join(f"<tr>{cells(row)}</tr>" for row in edges(shown))
    return f"<table>{rows}</table><small>{title}{more}</small>"


def cells(row: Any) -> str:
    if row is None:
        return "<td>⋮</td>"
    return "".join("<td>…</td>" if x is None else f"<td style='text-align:right'>{escape(text(x))}</td>" for x in edges(row))


def edges(items: Array) -> list[Any]:
    """Return the first and last items, with None in place of those omitted between them."""
    return list(items) if len(items) <= 2 * EDGE + 1 else [*items[:EDGE], None, *items[-EDGE:]]


def text(x: Any) -> str:
    return f"{x:.5g}" if isinstance(x, np.floating) else str(x)
