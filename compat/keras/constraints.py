"""tf.keras.constraints."""

from adjit.nn.constraints import Constraint, MaxNorm, MinMaxNorm, NonNeg, UnitNorm
from adjit.nn.constraints import get_constraint as get

max_norm, min_max_norm, non_neg, unit_norm = MaxNorm, MinMaxNorm, NonNeg, UnitNorm

__all__ = ["Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "get", "max_norm", "min_max_norm", "non_neg", "unit_norm"]


def __dir__() -> list[str]:
    return __all__
