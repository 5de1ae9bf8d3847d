"""tf.types.experimental: the classes that users check against, and `TraceType`, by which their own classes share traces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any

from .concrete import ConcreteFunction
from .function import Function


class TraceType(ABC):
    """What `__tf_tracing_type__` of a class gives: arguments whose trace types are equal (and hash alike) share a trace."""

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
