"""tf.keras.initializers."""

from __future__ import annotations

from typing import Any

from adjit.nn import initializers as ours
from adjit.nn.initializers import get_initializer

from ..tensor import convert_to_tensor


class Initializer(ours.Initializer):
    """Base of user-defined initializers: define `draw(key, shape, dtype)`, or `__call__(shape, dtype)`."""


def _initializer(cls: type[Any]) -> Any:
    def call(self: Any, shape: Any, dtype: Any = "float32") -> Any:
        return convert_to_tensor(cls.__call__(self, tuple(shape), getattr(dtype, "dtype", dtype)))

    return type(cls.__name__, (cls,), {"__doc__": cls.__doc__, "__module__": __name__, "__call__": call})


_NAMES = [name for name in ours.__all__ if name[0].isupper() and name != "Initializer"]
globals().update({name: _initializer(getattr(ours, name)) for name in _NAMES})


def get(identifier: Any) -> Any:
    """An initializer from its name, or the initializer itself."""
    return get_initializer(identifier)


__all__ = [*_NAMES, "Initializer", "get"]


def __dir__() -> list[str]:
    return __all__
