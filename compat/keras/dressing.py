"""Wraps the classes and functions of adjit.nn for users of TensorFlow."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

from adjit.nn.module import Module
from adjit.nn.symbolic import call_symbolically, is_symbolic

from ..tensor import dress_structure
from ..variable import Variable


class Dressed:
    """Mixin before a class of adjit.nn: calls return tensors of `adjit.tf`, and variables are its variables."""

    variable_class: ClassVar[Callable[..., Any]] = Variable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return dress_structure(super().__call__(*args, **kwargs))  # type: ignore[misc] # of the class behind


def dressed(cls: type[Any], base: type[Any], name: str | None = None) -> Any:
    """A class of adjit.nn under its Keras name."""
    return type(name or cls.__name__, (base, cls), {"__doc__": cls.__doc__, "__module__": base.__module__})


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
