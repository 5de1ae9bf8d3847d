"""Text that notebooks show as HTML: curves as pictures, summaries as tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = ["Shown", "table"]


class Shown(str):
    """A text, and what a notebook shows in its place."""

    __slots__ = ("_html",)

    _html: str

    def __new__(cls, text: str, html: str) -> Any:
        self = super().__new__(cls, text)
        self._html = html
        return self

    def _repr_html_(self) -> str:
        return self._html


def table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """Rows of text as a table, with a title."""
    body = "".join(f"<tr>{''.join(f'<td style=text-align:left>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption style=text-align:left;white-space:pre>{escape(title)}</caption>{body}</table>"
