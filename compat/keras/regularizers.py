"""tf.keras.regularizers."""

from __future__ import annotations

from typing import Any

from adjit.nn.regularizers import L1, L1L2, L2, Regularizer, get_regularizer

l1, l2 = L1, L2


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """l1 * sum(|x|) + l2 * sum(x**2)"""
    return L1L2(l1, l2)


def get(identifier: Any) -> Any:
    """A regularizer from its name, or the regularizer itself."""
    return get_regularizer(identifier)


__all__ = ["L1", "L1L2", "L2", "Regularizer", "get", "l1", "l1_l2", "l2"]


def __dir__() -> list[str]:
    return __all__
