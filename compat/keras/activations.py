"""tf.keras.activations."""

from __future__ import annotations

from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.nn import activations as ours
from adjit.nn.activations import get_activation
from adjit.tracer.convert import to_operand

from .dressing import dress_module, dressed_function


def get(identifier: Any) -> Any:
    """An activation from its name, or the activation itself."""
    return get_activation(identifier)


__all__ = [name for name in ours.__all__ if name != "get_activation"]
dress_module(ours, __all__, globals())


@dressed_function
def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """x up to `max_value`; below `threshold`, `negative_slope` times the distance from it."""
    return bent(to_operand(x), negative_slope, max_value, threshold)


def bent(x: Operand, negative_slope: float, max_value: float | None, threshold: float) -> Operand:
    if not negative_slope and not threshold:
        out = ours.relu(x)
    else:
        out = ops.where(x > threshold, x, negative_slope * (x - threshold))
    return out if max_value is None else ops.minimum(out, max_value)


__all__ += ["get"]


def __dir__() -> list[str]:
    return __all__
