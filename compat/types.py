"""tf.types.experimental: classes for isinstance checks, and `TraceType`, with which user classes control which arguments share a trace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any

from .concrete import ConcreteFunction
from .function import Function


class TraceType(ABC):
    """The result of `__tf_tracing_type__`: arguments whose trace types are equal (and have equal hashes) share a trace."""

    @abstractmethod
    def is_subtype_of(self, other: Any) -> bool: ...

    @abstractmethod
    def most_specific_common_supertype(self, others: Any) -> Any: ...

    @abstractmethod
    def placeholder_value(self, placeholder_context: Any = None) -> Any: ...

    @abstractmethod
    def __hash__(self) -> int: ...

    @abstractmethod
    def __eq__(self, other: object) -> bool: ...


experimental = SimpleNamespace(
    TraceType=TraceType, GenericFunction=Function, PolymorphicFunction=Function, ConcreteFunction=ConcreteFunction, Callable=Function,
    TensorLike=Any,
)  # fmt: skip

__all__ = ["experimental"]


def __dir__() -> list[str]:
    return __all__
