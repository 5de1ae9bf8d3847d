"""Which functions belong to libraries: those are called as they are, not converted."""

from __future__ import annotations

import sys
from types import CodeType

LIBRARIES = frozenset({"adjit", "numpy", "scipy", "pytest", "_pytest", "hypothesis", *sys.stdlib_module_names} - {"__main__"})
_library: dict[str, bool] = {}


def is_library(module: str | None) -> bool:
    """Whether a module belongs to adjit, NumPy or the standard library."""
    name = module or ""
    found = _library.get(name)
    if found is None:
        found = _library[name] = name.partition(".")[0] in LIBRARIES
    return found


def is_adjit(module: str | None) -> bool:
    return (module or "").partition(".")[0] == "adjit"


def in_site_packages(code: CodeType) -> bool:
    return "site-packages" in code.co_filename or "dist-packages" in code.co_filename
