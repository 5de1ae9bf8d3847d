"""Wraps the classes and functions of adjit.nn for users of TensorFlow."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

from adjit.ir.sizes import is_symbolic as is_symbolic_size
from adjit.nn.module import Module
from adjit.nn.symbolic import call_symbolically, is_symbolic
from adjit.tracer.pytree import tree_map
from adjit.tracer.trace import current_trace

from ..tensor import dress_structure
from ..variable import Variable
from .orders import LAYERS, ordered


class LayerVariable(Variable):
    """A variable of a layer or model, named and shown as Keras does."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def path(self) -> str:
        """The names of the layers around it, and its own: `dense/kernel`."""
        return (self.store.name or "variable").replace(".", "/")

    def __repr__(self) -> str:
        text = "<traced>" if current_trace() is not None else self.store.read()
        return f"<Variable path={self.path}, shape={self.shape}, dtype={self.dtype.name}, value={text}>"

    __str__ = __repr__


class Dressed:
    """Mixin before a class of adjit.nn: calls return tensors of `adjit.tf`, and variables are its variables."""

    variable_class: ClassVar[Callable[..., Any]] = LayerVariable
    output_shape: Any = None  # of the last call, with None for the batch size

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = dress_structure(super().__call__(*args, **kwargs))  # type: ignore[misc] # of the class behind
        self.output_shape = tree_map(batch_shape, out)
        return out


def batch_shape(x: Any) -> Any:
    shape = tuple(getattr(x, "shape", None) or ())
    return (None, *(None if is_symbolic_size(n) else n for n in shape[1:])) if shape else ()


def dressed(cls: type[Any], base: type[Any], name: str | None = None) -> Any:
    """A class of adjit.nn under its Keras name."""
    name = name or cls.__name__
    own: dict[str, Any] = {"__doc__": cls.__doc__, "__module__": base.__module__}
    if name in LAYERS and issubclass(cls, Module):
        own["__init__"] = ordered(name, LAYERS[name], base.__init__, cls.__init__)
    return type(name, (base, cls), own)


def dressed_function(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_symbolic((args, kwargs)):
            return call_symbolically(wrapper, args, kwargs)
        return dress_structure(function(*args, **kwargs))

    return wrapper


def dress_module(source: ModuleType, names: list[str], target: dict[str, Any], base: type[Any] = Dressed) -> None:
    """Copy names of a module of adjit.nn into a namespace: classes and functions that compute are wrapped, others are copied."""
    for name in names:
        value = getattr(source, name)
        if isinstance(value, type):
            computes = "__call__" in dir(value) and value is not Module
            target[name] = dressed(value, base) if computes and not issubclass(value, Dressed) else value
        else:
            target[name] = dressed_function(value) if callable(value) else value
