"""Clipping of gradients, and moving averages of variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.runtime.variable import Variable
from adjit.tracer.convert import to_operand

from .module import Module

if TYPE_CHECKING:
    from .sharding import Sharding

__all__ = ["clip_by_value", "clip_by_norm", "clip_by_global_norm", "global_norm", "ExponentialMovingAverage"]


def clip_by_value(gradients: Sequence[Any], limit: float) -> list[Operand]:
    """Return gradients with every element clipped to [-limit, limit].

    >>> aj.nn.clip_by_value([np.array([-3.0, 0.5])], 1.0)[0]
    Tensor([-1. ,  0.5], f64[2])
    """
    return [ops.clip(to_operand(g), -float(limit), float(limit)) for g in gradients]


def scaled_down(g: Operand, norm: Operand, limit: float) -> Operand:
    """g times limit / norm if the norm exceeds the limit. An infinite or NaN norm gives NaN rather than a silent zero."""
    factor = limit / ops.maximum(norm, limit)
    factor = ops.where(ops.isfinite(norm), factor, float("nan"))
    return g * factor.astype(g.type.dtype)


def clip_by_norm(gradients: Sequence[Any], limit: float) -> list[Operand]:
    """Return every gradient scaled to a Euclidean norm of at most `limit`.

    >>> aj.nn.clip_by_norm([np.array([3.0, 4.0])], 1.0)[0]
    Tensor([0.6, 0.8], f64[2])
    """
    operands = [to_operand(g) for g in gradients]
    return [scaled_down(g, ops.sqrt(ops.sum(g * g)), float(limit)) for g in operands]


def global_norm(gradients: Sequence[Any]) -> Operand:
    """Return the Euclidean norm of all gradients as one vector.

    >>> aj.nn.global_norm([np.array([3.0]), np.array([4.0])])
    Tensor(5., f64[])
    """
    operands = [to_operand(g) for g in gradients]
    total = ops.sum(ops.square(operands[0]))
    for g in operands[1:]:
        total = total + ops.sum(ops.square(g))
    return ops.sqrt(total)


def clip_by_global_norm(gradients: Sequence[Any], limit: float) -> tuple[list[Operand], Operand]:
    """All gradients scaled by one factor, to a global norm of at most `limit`; also returns the original norm.

    >>> clipped, norm = aj.nn.clip_by_global_norm([np.array([3.0]), np.array([4.0])], 1.0)
    >>> float(norm), [c.numpy().round(2).tolist() for c in clipped]
    (5.0, [[0.6], [0.8]])
    """
    operands = [to_operand(g) for g in gradients]
    norm = global_norm(operands)
    return [scaled_down(g, norm, float(limit)) for g in operands], norm


class ExponentialMovingAverage(Module):
    """Moving averages of variables: average = decay * average + (1 - decay) * variable, at every `update()`.

    `update` can be compiled into a training step. `with average.swapped():` replaces the variables by their averages.

    >>> w = aj.Variable(1.0)
    >>> average = aj.nn.ExponentialMovingAverage([w], decay=0.5)
    >>> _ = w.assign(3.0)
    >>> average.update()
    >>> with average.swapped():
    ...     print(float(w))
    ...
    2.0
    """

    def __init__(self, variables: Sequence[Variable], decay: float = 0.999, **more: Any) -> None:
        super().__init__(**more)
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"{self.name}: the decay is a number in [0, 1), not {decay}")
        self.decay = float(decay)
        self._stores = [v.store for v in variables]
        self.averages = [Variable(v.numpy().copy(), trainable=False, name=f"{v.name or 'variable'}.average") for v in variables]

    def update(self) -> None:
        for store, average in zip(self._stores, self.averages, strict=True):
            average.assign(self.decay * average + (1.0 - self.decay) * Variable.of(store))

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Within this context the variables hold their averages; afterwards, their own values are restored."""
        own = [np.array(Variable.of(store).numpy()) for store in self._stores]
        for store, average in zip(self._stores, self.averages, strict=True):
            Variable.of(store).assign(average.numpy())
        try:
            yield
        finally:
            for store, value in zip(self._stores, own, strict=True):
                Variable.of(store).assign(value)


def clip_slices(slices: list[Operand], sharding: Sharding, clipnorm: float | None, global_clipnorm: float | None) -> list[Operand]:
    """Clip gradients of which each rank has a slice."""
    if clipnorm is not None:
        return [scaled_down(g, norm, clipnorm) for g, norm in zip(slices, sharding.norms(slices), strict=True)]
    if global_clipnorm is None:
        return slices
    norm = sharding.norm(slices)
    return [scaled_down(g, norm, global_clipnorm) for g in slices]
