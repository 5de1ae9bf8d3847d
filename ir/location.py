"""Locations of ops in the user's source."""

from __future__ import annotations

import linecache
import sys
from typing import Any

from .records import NamedTuple


class Location(NamedTuple):
    """File, line and column (counted from 1; 0 if unknown), and the function's name."""

    file: str
    line: int
    column: int = 0
    function: str = ""

    def describe(self) -> str:
        """`model.py:12:9 in loss:  h = w @ x`, for error messages."""
        place = f"{cell_name(self.file) or self.file}:{self.line}" + (f":{self.column}" if self.column else "")
        where = f" in {self.function}" if self.function else ""
        source = linecache.getline(self.file, self.line).strip()
        return f"{place}{where}:  {source}" if source else f"{place}{where}"

    @property
    def short(self) -> str:
        """`model.py:12`, for short messages."""
        return f"{file_name(self.file)}:{self.line}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def file_name(file: str) -> str:
    """The name of a file without its folders; `In[3]` for the third cell of a notebook, whose file is a temporary one."""
    return cell_name(file) or file.replace("\\", "/").rpartition("/")[2]


def cell_name(file: str) -> str | None:
    """What IPython calls a cell in its tracebacks; None for a file."""
    ipython: Any = sys.modules.get("IPython")
    try:
        found = ipython.get_ipython().compile.format_code_name(file)
        return None if found is None else str(found[1])
    except AttributeError:  # not in IPython, or in one that has no names for cells
        return None
