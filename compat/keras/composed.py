"""Layers of Keras that are composed of others: wrappers, normalisation by data, separable convolutions; and merging layers as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.nn.module import as_input
from adjit.tracer.convert import to_operand

from . import layers
from .orders import in_keras_order

__all__ = [
    "Normalization", "PReLU", "SeparableConv2D", "TimeDistributed", "add", "average", "concatenate", "maximum", "minimum", "multiply",
    "subtract",
]  # fmt: skip


class TimeDistributed(layers.Layer):
    """Applies a layer to every time step of [batch, time, ...]."""

    def __init__(self, layer: Callable[..., Any], **more: Any) -> None:
        super().__init__(**more)
        self.layer = layer

    def call(self, inputs: Any) -> Any:
        x = to_operand(inputs)
        batch, time, *rest = x.type.shape
        out = to_operand(self.layer(ops.reshape(x, (batch * time, *rest))))
        return ops.reshape(out, (batch, time, *out.type.shape[1:]))


class Normalization(layers.Layer):
    """(x - mean) / sqrt(variance), with the mean and variance of the data passed to `adapt`, or given ones; `invert` is the inverse."""

    def __init__(
        self, axis: int | Sequence[int] | None = -1, mean: Any = None, variance: Any = None, invert: bool = False, **more: Any
    ) -> None:
        super().__init__(**more)
        self.axis, self.invert = axis, invert
        if (mean is None) != (variance is None):
            raise ValueError("Normalization: give both mean and variance, or call adapt(data)")
        self.mean: Any = None
        self.variance: Any = None
        if mean is not None:
            self._keep(np.asarray(mean), np.asarray(variance))

    def adapt(self, data: Any) -> None:
        """Find the mean and variance of each feature (each index along `axis`)."""
        x = np.asarray(data, np.float64)
        kept = () if self.axis is None else (self.axis,) if isinstance(self.axis, int) else tuple(self.axis)
        over = tuple(i for i in range(x.ndim) if i not in {k % x.ndim for k in kept})
        self._keep(x.mean(over, keepdims=True), x.var(over, keepdims=True))

    def _keep(self, mean: Any, variance: Any) -> None:
        self.mean = self.add_weight("mean", mean.shape, lambda shape, dtype: mean.astype(dtype), trainable=False)
        self.variance = self.add_weight("variance", variance.shape, lambda shape, dtype: variance.astype(dtype), trainable=False)
        self.built = True

    def call(self, inputs: Any) -> Any:
        if self.mean is None:
            raise ValueError(f"{self.name}: call adapt(data) first, or give mean= and variance=")
        spread = ops.maximum(ops.sqrt(self.variance.read_operand()), 1e-7)
        x = as_input(self, inputs)
        return x * spread + self.mean if self.invert else (x - self.mean) / spread


class PReLU(layers.Layer):
    """x above 0, alpha * x below, with a learnt alpha for each element of an example, shared along `shared_axes`."""

    regularized = ("alpha",)

    def __init__(
        self, alpha_initializer: Any = "zeros", alpha_regularizer: Any = None, alpha_constraint: Any = None,
        shared_axes: Sequence[int] | None = None, **more: Any,
    ) -> None:  # fmt: skip
        more.update(alpha_regularizer=alpha_regularizer, alpha_constraint=alpha_constraint)
        super().__init__(**more)
        self.alpha_initializer, self.shared_axes = alpha_initializer, tuple(shared_axes or ())
        self.alpha: Any = None

    def build(self, input_shape: Any) -> None:
        sizes = [1 if i in self.shared_axes else n for i, n in enumerate(input_shape)][1:]
        self.alpha = self.add_weight("alpha", sizes, self.alpha_initializer)

    def call(self, inputs: Any) -> Any:
        x = as_input(self, inputs)
        return ops.maximum(x, 0.0) + self.alpha * ops.minimum(x, 0.0)


@in_keras_order
class SeparableConv2D(layers.Layer):
    """A convolution of every channel, then one of a single pixel that mixes them."""

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid", depth_multiplier: int = 1, activation: Any = None,
        use_bias: bool = True, depthwise_initializer: Any = "glorot_uniform", pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros", *, dilation_rate: Any = 1, data_format: Any = None, depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None, bias_regularizer: Any = None, depthwise_constraint: Any = None, pointwise_constraint: Any = None,
        bias_constraint: Any = None, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(data_format=data_format, **more)
        self.depthwise = layers.DepthwiseConv2D(
            kernel_size, strides, padding, depth_multiplier, use_bias=False, dilation_rate=dilation_rate,
            depthwise_initializer=depthwise_initializer, depthwise_regularizer=depthwise_regularizer,
            depthwise_constraint=depthwise_constraint,
        )  # fmt: skip
        self.pointwise = layers.Conv2D(
            filters, 1, activation=activation, use_bias=use_bias, kernel_initializer=pointwise_initializer,
            bias_initializer=bias_initializer, kernel_regularizer=pointwise_regularizer, bias_regularizer=bias_regularizer,
            kernel_constraint=pointwise_constraint, bias_constraint=bias_constraint,
        )  # fmt: skip

    def call(self, inputs: Any) -> Any:
        return self.pointwise(self.depthwise(inputs))


def _merging(layer: type[Any], name: str) -> Callable[..., Any]:
    def merge(inputs: Any, **kwargs: Any) -> Any:
        return layer(**kwargs)(inputs)

    merge.__name__ = merge.__qualname__ = name
    merge.__doc__ = f"`{layer.__name__}()(inputs)`: {layer.__doc__}"
    return merge


add, subtract = _merging(layers.Add, "add"), _merging(layers.Subtract, "subtract")
multiply, average = _merging(layers.Multiply, "multiply"), _merging(layers.Average, "average")
maximum, minimum = _merging(layers.Maximum, "maximum"), _merging(layers.Minimum, "minimum")


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """`Concatenate(axis)(inputs)`: the inputs concatenated along an axis."""
    return layers.Concatenate(axis=axis, **kwargs)(inputs)
