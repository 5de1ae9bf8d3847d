"""Normalisation layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import normalize_axes
from adjit.runtime.variable import Variable

from .calls import is_training
from .core import Init
from .module import Module, as_input


class BatchNorm(Module):
    """Normalises each feature by its mean and variance over the batch in training, and by their moving averages otherwise.

    The moving averages are variables, updated by training calls: average = momentum * average + (1 - momentum) * value.

    >>> x = np.array([[1.0], [3.0]], "f4")
    >>> aj.nn.BatchNorm()(x, training=True).numpy().ravel().round(2)
    array([-1.,  1.], dtype=float32)
    """

    regularized = ("gamma", "beta")
    gamma: Variable | None
    beta: Variable | None

    def __init__(
        self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
        beta_initializer: Init = "zeros", gamma_initializer: Init = "ones", moving_mean_initializer: Init = "zeros",
        moving_variance_initializer: Init = "ones", **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(**more)
        self.axis, self.momentum, self.epsilon = axis, momentum, epsilon
        self.moving_mean_initializer, self.moving_variance_initializer = moving_mean_initializer, moving_variance_initializer
        self.center, self.scale = center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer

    def build(self, shape: Any, *_: Any) -> None:
        (axis,) = normalize_axes(self.axis, len(shape), self.name)
        size = (shape[axis],)
        self.gamma = self.add_variable("gamma", size, self.gamma_initializer) if self.scale else None
        self.beta = self.add_variable("beta", size, self.beta_initializer) if self.center else None
        self.moving_mean = self.add_variable("moving_mean", size, self.moving_mean_initializer, trainable=False)
        self.moving_variance = self.add_variable("moving_variance", size, self.moving_variance_initializer, trainable=False)

    def call(self, x: Any) -> Any:
        x = as_input(self, x)
        (axis,) = normalize_axes(self.axis, x.ndim, self.name)
        size = self.moving_mean.type.shape[0]
        if x.type.shape[axis] != size:
            raise ShapeError(f"{self.name}: built for {size} features on axis {self.axis}, called with {x.type}")
        others = tuple(a for a in range(x.ndim) if a != axis)
        wide = tuple(size if a == axis else 1 for a in range(x.ndim))
        if is_training() and self.trainable:
            if x.size == 0:
                raise ShapeError(f"{self.name}: an empty batch has no mean; called with {x.type}")
            count = 1.0 * (x.size // size)
            mean = ops.sum(x, others) / count
            centred = x - ops.reshape(mean, wide)
            variance = ops.sum(centred * centred, others) / count
            for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
                average.assign(self.momentum * average + (1.0 - self.momentum) * value)
        else:
            centred = x - ops.reshape(self.moving_mean.read_operand(), wide)
            variance = self.moving_variance.read_operand()
        factor = ops.rsqrt(variance + self.epsilon)
        if self.gamma is not None:
            factor = factor * self.gamma
        out = centred * ops.reshape(factor, wide)
        return out if self.beta is None else out + ops.reshape(self.beta.read_operand(), wide)


class LayerNorm(Module):
    """Normalises each example over its last axis (or `axis`), with a learnt scale and shift.

    >>> aj.nn.LayerNorm()(np.array([[1.0, 3.0]], "f4")).numpy().round(2)
    array([[-1.,  1.]], dtype=float32)
    """

    regularized = ("gamma", "beta")
    gamma: Variable | None
    beta: Variable | None

    def __init__(
        self, axis: int | Sequence[int] = -1, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
        beta_initializer: Init = "zeros", gamma_initializer: Init = "ones", **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(**more)
        self.axis, self.epsilon, self.center, self.scale = axis, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer

    def build(self, shape: Any, *_: Any) -> None:
        self.sizes = tuple(shape[a] for a in normalize_axes(self.axis, len(shape), self.name))
        self.gamma = self.add_variable("gamma", self.sizes, self.gamma_initializer) if self.scale else None
        self.beta = self.add_variable("beta", self.sizes, self.beta_initializer) if self.center else None

    def call(self, x: Any) -> Any:
        x = as_input(self, x)
        axes, wide = self._axes(x)
        count = 1.0 / max(1, math.prod(self.sizes))
        centred = x - ops.sum(x, axes, True) * count
        out = centred * ops.rsqrt(ops.sum(centred * centred, axes, True) * count + self.epsilon)
        out = out if self.gamma is None else out * ops.reshape(self.gamma.read_operand(), wide)
        return out if self.beta is None else out + ops.reshape(self.beta.read_operand(), wide)

    def _axes(self, x: Operand) -> tuple[tuple[int, ...], tuple[int, ...]]:
        axes = normalize_axes(self.axis, x.ndim, self.name)
        if tuple(x.type.shape[a] for a in axes) != self.sizes:
            raise ShapeError(f"{self.name}: built for {list(self.sizes)} on axis {self.axis}, called with {x.type}")
        return axes, tuple(n if a in axes else 1 for a, n in enumerate(x.type.shape))


class RMSNorm(LayerNorm):
    """Divides each example by the root of the mean square over its last axis (or `axis`), with a learnt scale.

    >>> aj.nn.RMSNorm()(np.array([[3.0, 4.0]], "f4")).numpy().round(2)
    array([[0.85, 1.13]], dtype=float32)
    """

    def __init__(self, axis: int | Sequence[int] = -1, epsilon: float = 1e-6, scale: bool = True, **more: Any) -> None:
        super().__init__(axis, epsilon, center=False, scale=scale, **more)

    def call(self, x: Any) -> Any:
        x = as_input(self, x)
        axes, wide = self._axes(x)
        out = x * ops.rsqrt(ops.sum(x * x, axes, True) * (1.0 / max(1, math.prod(self.sizes))) + self.epsilon)
        return out if self.gamma is None else out * ops.reshape(self.gamma.read_operand(), wide)
