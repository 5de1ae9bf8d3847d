"""tf.autograph: the source that AutoGraph makes of a function, and how to keep a function away from it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from adjit.tracer.autograph.convert import convert
from adjit.tracer.autograph.convert import to_code as _to_code
from adjit.tracer.autograph.marks import do_not_convert

from .errors import missing


def to_code(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The function as it is traced: its control flow as calls."""
    return _to_code(getattr(entity, "python_function", entity))


def to_graph(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> Callable[..., Any]:
    return convert(getattr(entity, "python_function", entity))


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """AutoGraph says nothing anyway: errors name the line and the reason."""


def trace(*args: Any) -> None:
    """Print now, while tracing."""
    print(*args)


def set_loop_options(**options: Any) -> None:
    """Nothing to do: loops need no hints."""


experimental = SimpleNamespace(do_not_convert=do_not_convert, set_loop_options=set_loop_options)

__all__ = ["convert", "do_not_convert", "experimental", "set_verbosity", "to_code", "to_graph", "trace"]


__getattr__ = missing("tf.autograph", "docs/control_flow.md says what is rewritten")
