"""tf.autograph: the source that AutoGraph generates for a function, and how to exclude a function from conversion."""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from adjit.tracer.autograph.convert import convert
from adjit.tracer.autograph.convert import to_code as _to_code
from adjit.tracer.autograph.marks import do_not_convert

from .errors import missing
from .loop_rules import set_loop_options


def to_code(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The source that is traced for the function, with control flow as calls."""
    return _to_code(getattr(entity, "python_function", entity))


def to_graph(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None) -> Callable[..., Any]:
    return convert(getattr(entity, "python_function", entity))


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Does nothing: AutoGraph does not log; errors name the line and the reason."""


def trace(*args: Any) -> None:
    """Print immediately, while tracing."""
    print(*args)


class Feature(enum.Enum):
    """TensorFlow's optional features of AutoGraph; here, all supported statements are always rewritten."""

    ALL, AUTO_CONTROL_DEPS, ASSERT_STATEMENTS, BUILTIN_FUNCTIONS, EQUALITY_OPERATORS, LISTS, NAME_SCOPES = range(7)

    @classmethod
    def all_but(cls, exclude: Any) -> tuple[Feature, ...]:
        """All features except some."""
        return tuple(set(cls) - {cls.ALL} - set(exclude if isinstance(exclude, list | tuple | set) else [exclude]))


experimental = SimpleNamespace(Feature=Feature, do_not_convert=do_not_convert, set_loop_options=set_loop_options)

__all__ = ["convert", "do_not_convert", "experimental", "set_verbosity", "to_code", "to_graph", "trace"]


def __dir__() -> list[str]:
    return __all__


__getattr__ = missing("tf.autograph", "docs/control_flow.md describes what is rewritten")
