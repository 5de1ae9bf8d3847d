"""Locations of ops in the user's source."""

from __future__ import annotations

import linecache

from .records import NamedTuple


class Location(NamedTuple):
    """File, line and column (counted from 1; 0 if unknown), and the function's name."""

    file: str
    line: int
    column: int = 0
    function: str = ""

    def describe(self) -> str:
        """`model.py:12:9 in loss:  h = w @ x`, for error messages."""
        place = f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")
        where = f" in {self.function}" if self.function else ""
        source = linecache.getline(self.file, self.line).strip()
        return f"{place}{where}:  {source}" if source else f"{place}{where}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
