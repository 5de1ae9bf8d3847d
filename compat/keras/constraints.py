"""tf.keras.constraints."""

from __future__ import annotations

from typing import Any

from adjit.nn.constraints import Constraint, MaxNorm, MinMaxNorm, NonNeg, UnitNorm, get_constraint

max_norm, min_max_norm, non_neg, unit_norm = MaxNorm, MinMaxNorm, NonNeg, UnitNorm


def get(identifier: Any) -> Any:
    """A constraint from its name, or the constraint itself."""
    return get_constraint(identifier)


__all__ = ["Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "get", "max_norm", "min_max_norm", "non_neg", "unit_norm"]


def __dir__() -> list[str]:
    return __all__
