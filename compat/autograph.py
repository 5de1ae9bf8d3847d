"""tf.autograph: the source that AutoGraph makes of a function, and how to keep a function away from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjit.tracer.autograph.convert import convert
from adjit.tracer.autograph.convert import to_code as _to_code
from adjit.tracer.autograph.marks import do_not_convert


def to_code(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The function as it is traced: its control flow as calls."""
    return _to_code(getattr(entity, "python_function", entity))


def to_graph(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> Callable[..., Any]:
    return convert(getattr(entity, "python_function", entity))


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """AutoGraph says nothing anyway: errors name the line and the reason."""


__all__ = ["convert", "do_not_convert", "set_verbosity", "to_code", "to_graph"]
