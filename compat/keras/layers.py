"""tf.keras.layers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from adjit import nn
from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.nn.module import Module, as_input
from adjit.nn.recurrent import Recurrent
from adjit.tracer.convert import to_operand

from .dressing import Dressed, dressed


class Layer(Dressed, Module):
    """Base of custom layers: create variables in `build(self, input_shape)` with `self.add_weight`, compute in `call(self, inputs)`."""

    @property
    def output(self) -> Any:
        """The result of its last call on symbolic values."""
        return self.symbolic_output

    def add_weight(
        self, name: Any = None, shape: Sequence[int] = (), initializer: Any = None, trainable: bool = True, dtype: Any = None,
        regularizer: Any = None, constraint: Any = None,
    ) -> Any:  # fmt: skip
        if not isinstance(name, str | None):  # Keras 3 takes the shape first
            name, shape, initializer = None, name, shape or initializer
        kind = "glorot_uniform" if initializer is None else initializer
        return self.add_variable(name or "weight", tuple(shape), kind, trainable, getattr(dtype, "dtype", dtype), regularizer, constraint)


MERGING = ("add", "average", "concatenate", "maximum", "minimum", "multiply", "subtract")  # of `composed`, which adds them


def _layer(cls: type[Any], name: str | None = None) -> Any:
    return dressed(cls, Layer, name)


Activation = _layer(nn.Activation)
AveragePooling1D = AvgPool1D = _layer(nn.AvgPool1D, "AveragePooling1D")
AveragePooling2D = AvgPool2D = _layer(nn.AvgPool2D, "AveragePooling2D")
BatchNormalization = _layer(nn.BatchNorm, "BatchNormalization")
Conv1D = Convolution1D = _layer(nn.Conv1D)
Conv1DTranspose = _layer(nn.Conv1DTranspose)
Conv2D = Convolution2D = _layer(nn.Conv2D)
Conv2DTranspose = _layer(nn.Conv2DTranspose)
Dense = _layer(nn.Dense)
DepthwiseConv2D = _layer(nn.DepthwiseConv2D)
Dropout = _layer(nn.Dropout)
Embedding = _layer(nn.Embedding)
Flatten = _layer(nn.Flatten)
GRU = _layer(nn.GRU)
GlobalAveragePooling1D = GlobalAvgPool1D = _layer(nn.GlobalAvgPool1D, "GlobalAveragePooling1D")
GlobalAveragePooling2D = GlobalAvgPool2D = _layer(nn.GlobalAvgPool2D, "GlobalAveragePooling2D")
GlobalMaxPooling1D = GlobalMaxPool1D = _layer(nn.GlobalMaxPool1D, "GlobalMaxPooling1D")
GlobalMaxPooling2D = GlobalMaxPool2D = _layer(nn.GlobalMaxPool2D, "GlobalMaxPooling2D")
InputLayer = _layer(nn.InputLayer)
LSTM = _layer(nn.LSTM)
Lambda = _layer(nn.Lambda)
LayerNormalization = _layer(nn.LayerNorm, "LayerNormalization")
Masking = _layer(nn.Masking)
MaxPooling1D = MaxPool1D = _layer(nn.MaxPool1D, "MaxPooling1D")
MaxPooling2D = MaxPool2D = _layer(nn.MaxPool2D, "MaxPooling2D")
MultiHeadAttention = _layer(nn.MultiHeadAttention)
RMSNormalization = _layer(nn.RMSNorm, "RMSNormalization")
Reshape = _layer(nn.Reshape)
SimpleRNN = _layer(nn.SimpleRNN)
UpSampling2D = _layer(nn.UpSampling2D)
ZeroPadding2D = _layer(nn.ZeroPadding2D)


def Input(  # noqa: N802 - Keras' name
    shape: Sequence[int | None], batch_size: int | None = None, dtype: Any = None, name: str | None = None
) -> Any:
    """A symbolic input, for `Model(inputs, outputs)`, or as the first layer of a `Sequential`."""
    return nn.Input(shape, batch_size, getattr(dtype, "dtype", dtype), name)


class Bidirectional(Layer, nn.Bidirectional):
    """A recurrent layer in both directions."""

    def __init__(self, layer: Any, merge_mode: str | None = "concat", **more: Any) -> None:
        if not isinstance(layer, Recurrent) or layer.built:
            raise TypeError(f"Bidirectional takes a recurrent layer that was not called yet, not {layer!r}")
        nn.Bidirectional.__init__(self, lambda: copy.copy(layer), merge_mode, **more)


class ReLU(Layer):
    """x up to `max_value`; below `threshold`, `negative_slope` times the distance from it."""

    def __init__(self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0, **more: Any) -> None:
        super().__init__(**more)
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold

    def call(self, inputs: Any) -> Any:
        x = as_input(self, inputs)
        out = ops.where(x > self.threshold, x, self.negative_slope * (x - self.threshold))
        return out if self.max_value is None else ops.minimum(out, self.max_value)


class LeakyReLU(Layer):
    """x above 0, `negative_slope * x` below."""

    def __init__(self, negative_slope: float = 0.3, **more: Any) -> None:
        super().__init__(**more)
        self.negative_slope = negative_slope

    def call(self, inputs: Any) -> Any:
        return nn.activations.leaky_relu(as_input(self, inputs), self.negative_slope)


class ELU(Layer):
    """x above 0, alpha * (exp(x) - 1) below."""

    def __init__(self, alpha: float = 1.0, **more: Any) -> None:
        super().__init__(**more)
        self.alpha = alpha

    def call(self, inputs: Any) -> Any:
        return nn.activations.elu(as_input(self, inputs), self.alpha)


class Softmax(Layer):
    """exp(x) / sum(exp(x)) on an axis."""

    def __init__(self, axis: int = -1, **more: Any) -> None:
        super().__init__(**more)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        return nn.activations.softmax(as_input(self, inputs), self.axis)


class Rescaling(Layer):
    """scale * x + offset"""

    def __init__(self, scale: float, offset: float = 0.0, **more: Any) -> None:
        super().__init__(**more)
        self.scale, self.offset = scale, offset

    def call(self, inputs: Any) -> Any:
        return as_input(self, inputs) * self.scale + self.offset


# ---- layers with several inputs


class Merge(Layer):
    """Base of layers that take a list of inputs and combine them one after the other."""

    combine: Callable[[Any, Any], Any]

    def call(self, inputs: Any) -> Any:
        values = [as_input(self, x) for x in inputs]
        if len(values) < 2:
            raise ShapeError(f"{self.name}: takes a list of at least two inputs")
        out = values[0]
        for value in values[1:]:
            out = type(self).combine(out, value)
        return out


class Add(Merge):
    """The sum of the inputs."""

    combine = staticmethod(ops.add)


class Subtract(Merge):
    """The first input minus the second."""

    combine = staticmethod(ops.sub)


class Multiply(Merge):
    """The product of the inputs."""

    combine = staticmethod(ops.mul)


class Maximum(Merge):
    """The largest of the inputs, elementwise."""

    combine = staticmethod(ops.maximum)


class Minimum(Merge):
    """The smallest of the inputs, elementwise."""

    combine = staticmethod(ops.minimum)


class Average(Add):
    """The mean of the inputs."""

    def call(self, inputs: Any) -> Any:
        return super().call(inputs) * (1.0 / len(inputs))


class Concatenate(Layer):
    """The inputs concatenated along an axis."""

    def __init__(self, axis: int = -1, **more: Any) -> None:
        super().__init__(**more)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        return ops.concatenate([to_operand(x) for x in inputs], self.axis)


def __dir__() -> list[str]:
    own = [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Layer) and value is not Merge]
    return sorted([*own, "Input", *MERGING])
