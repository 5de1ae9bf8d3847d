"""Constraints: functions that optimizers apply to a variable after each update.

    nn.Dense(64, kernel_constraint=nn.constraints.MaxNorm(2.0), bias_constraint="non_neg")

Norms are taken along the first axis by default: over the inputs of a unit of a dense layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.tracer.convert import to_operand

from .recorded import Recorded

EPSILON = 1e-7  # added to norms, as in Keras

__all__ = ["Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "get_constraint"]


def __dir__() -> list[str]:
    return __all__


class Constraint(Recorded):
    """Base of constraints: a function from the new value of a variable to one that is allowed.

    >>> class Rounded(aj.nn.constraints.Constraint):
    ...     def __call__(self, w):
    ...         return np.round(w, 1)
    >>> Rounded()(np.array([0.26, 1.0]))
    array([0.3, 1. ])
    """

    def __call__(self, w: Any) -> Any:
        raise NotImplementedError(type(self).__name__)


class NonNeg(Constraint):
    """Replaces negative elements by 0.

    >>> aj.nn.constraints.NonNeg()(np.array([-1.0, 2.0]))
    Tensor([0., 2.], f64[2])
    """

    def __call__(self, w: Any) -> Operand:
        return ops.relu(to_operand(w))


class MinMaxNorm(Constraint):
    """Scales vectors along `axis` so that their norms lie between two bounds; `rate` < 1 goes only a part of the way.

    >>> aj.nn.constraints.MinMaxNorm(1.0, 2.0)(np.array([[3.0, 0.3], [4.0, 0.4]])).numpy().round(2)
    array([[1.2, 0.6],
           [1.6, 0.8]])
    """

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: int | Sequence[int] = 0) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Operand:
        x = to_operand(w)
        norms = norms_of(x, self.axis)
        bounded = ops.minimum(ops.maximum(norms, self.min_value), self.max_value)
        wanted = self.rate * bounded + (1.0 - self.rate) * norms
        return x * (wanted / (norms + EPSILON))


class MaxNorm(MinMaxNorm):
    """Scales vectors along `axis` whose norm is above a bound down to it.

    >>> aj.nn.constraints.MaxNorm(1.0)(np.array([[3.0, 0.3], [4.0, 0.4]])).numpy().round(2)
    array([[0.6, 0.3],
           [0.8, 0.4]])
    """

    def __init__(self, max_value: float = 2.0, axis: int | Sequence[int] = 0) -> None:
        super().__init__(0.0, max_value, 1.0, axis)


class UnitNorm(Constraint):
    """Scales vectors along `axis` to norm 1.

    >>> aj.nn.constraints.UnitNorm()(np.array([[3.0], [4.0]])).numpy().round(2)
    array([[0.6],
           [0.8]])
    """

    def __init__(self, axis: int | Sequence[int] = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Operand:
        x = to_operand(w)
        return x / (norms_of(x, self.axis) + EPSILON)


def norms_of(w: Operand, axis: int | Sequence[int]) -> Operand:
    axes = axis if isinstance(axis, int) else tuple(axis)
    return ops.sqrt(ops.sum(ops.square(w), axes, True))


NAMED: dict[str, Callable[[], Constraint]] = {
    "max_norm": MaxNorm, "min_max_norm": MinMaxNorm, "non_neg": NonNeg, "unit_norm": UnitNorm
}  # fmt: skip


def get_constraint(what: str | Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """Return a constraint from its name, or the function itself; None stays None.

    >>> aj.nn.constraints.get_constraint("non_neg")(np.array([-1.0, 2.0]))
    Tensor([0., 2.], f64[2])
    """
    if isinstance(what, str):
        known = {**NAMED, **{type_.__name__: type_ for type_ in (MaxNorm, MinMaxNorm, NonNeg, UnitNorm)}}
        if what not in known:
            raise ValueError(f"there is no constraint {what!r}; choose one of {', '.join(NAMED)}")
        return known[what]()
    if what is not None and not callable(what):
        raise TypeError(f"a constraint is a name or a function of an array, not {what!r}")
    return what
