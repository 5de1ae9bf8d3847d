"""tf.keras.optimizers."""

from __future__ import annotations

from typing import Any

from adjit.nn.optimizers import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, Nadam, Optimizer, RMSprop, get_optimizer

from . import schedules


def get(identifier: Any) -> Any:
    """An optimizer from its name, or the optimizer itself."""
    return get_optimizer(identifier)


__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Nadam", "Optimizer", "RMSprop", "get", "schedules"]


def __dir__() -> list[str]:
    return __all__
