"""Functions as methods: each object has a function of its own, which is called with the object as its first argument."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

from adjit.ir.tracebacks import boundary, trim
from adjit.tracer.trace import TracedProgram

from .concrete import ConcreteFunction
from .exporting import Exportable
from .inspecting import Inspectable, InspectedCall
from .signature import Signature
from .specs import Specialization

if TYPE_CHECKING:
    from .function import Function


class Instances:
    """The function of each object: its trace contains the values of the object's attributes, so each object has its own cache."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._table: dict[int, tuple[Callable[[], Any], Function]] = {}

    def function_of(self, instance: Any, function: Function) -> Function:
        """Return the function of an object, which is a clone of another, with a cache of its own."""
        entry = self._table.get(id(instance))
        if entry is not None and entry[0]() is instance:
            return entry[1]
        with self._lock:
            entry = self._table.get(id(instance))
            if entry is None or entry[0]() is not instance:
                entry = self._table[id(instance)] = (self._reference(instance), function._clone())
            return entry[1]

    def functions(self) -> list[Function]:
        return [own for _, own in list(self._table.values())]

    def clear(self) -> None:
        self._table.clear()

    def _reference(self, instance: Any) -> Callable[[], Any]:
        key, table = id(instance), self._table
        try:
            return weakref.ref(instance, lambda _: table.pop(key, None))
        except TypeError:  # without weak references, the object lives as long as the function
            return lambda: instance


class BoundFunction(Inspectable, Exportable):
    """A function bound to an object as its method."""

    __slots__ = ("_function", "__self__", "__weakref__")

    def __init__(self, function: Function, instance: Any) -> None:
        self._function = function
        self.__self__ = instance

    @property
    def __func__(self) -> Callable[..., Any]:
        return self._function._fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function._enter(args, kwargs, self.__self__)
        except Exception as error:
            trim(error)
            raise

    def _looked_up(self, args: tuple[Any, ...], kwargs: dict[str, Any], general: bool = True) -> InspectedCall:
        signature = self._function._taken_apart(args, kwargs)
        return InspectedCall(self._function._concrete(signature, None, self.__self__, general), signature, self._function._fn)

    def _traced_alone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedProgram:
        return self._function._traced_alone(args, kwargs, self.__self__)

    @boundary
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Specialization:
        return self._function._specialization(self, self.__self__, args, kwargs)

    def _concrete(self, signature: Signature) -> ConcreteFunction:
        return self._function._concrete(signature, None, self.__self__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __reduce__(self) -> Any:
        return getattr, (self.__self__, self.__func__.__name__)

    def __repr__(self) -> str:
        return f"<bound {self._function!r} of {self.__self__!r}>"


def bind(fn: Callable[..., Any], instance: Any) -> Callable[..., Any]:
    return fn if instance is None else MethodType(fn, instance)
