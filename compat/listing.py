"""The names of a namespace for tab completion: TensorFlow's, without those that the module imports for its own use."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

HELPERS = ("wrapping", "tensor", "dtypes", "errors", "listing")  # modules that others import functions from


def public_names(namespace: Mapping[str, Any]) -> list[str]:
    """The names of a namespace (`globals()` of a module) that users call: neither modules, nor helpers, nor Python's own names."""
    own = str(namespace["__name__"])
    package = own.rpartition(".")[0]
    helpers = [vars(sys.modules[name]) for name in (f"{package}.{each}" for each in HELPERS) if name != own and name in sys.modules]

    def is_public(name: str, value: Any) -> bool:
        if name.startswith("_") or isinstance(value, ModuleType) or not callable(value):
            return False
        return str(getattr(value, "__module__", "")).startswith(package) and not any(h.get(name) is value for h in helpers)

    return sorted(name for name, value in namespace.items() if is_public(name, value))
