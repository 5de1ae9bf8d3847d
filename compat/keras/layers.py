"""tf.keras.layers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit import nn
from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.nn.module import Module, as_input
from adjit.nn.recurrent import Recurrent
from adjit.tracer.convert import to_operand
from adjit.tracer.pytree import tree_map

from ..tensor import convert_to_tensor
from .activations import bent
from .dressing import Dressed, dressed
from .options import accepted
from .orders import in_keras_order


class Layer(Dressed, Module):
    """Base of custom layers: create variables in `build(self, input_shape)` with `self.add_weight`, compute in `call(self, inputs)`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **accepted(type(self).__name__, options))

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
Dropout = _layer(nn.Dropout)
Flatten = _layer(nn.Flatten)
GRU = _layer(nn.GRU)
GlobalAveragePooling1D = GlobalAvgPool1D = _layer(nn.GlobalAvgPool1D, "GlobalAveragePooling1D")
GlobalAveragePooling2D = GlobalAvgPool2D = _layer(nn.GlobalAvgPool2D, "GlobalAveragePooling2D")
GlobalMaxPooling1D = GlobalMaxPool1D = _layer(nn.GlobalMaxPool1D, "GlobalMaxPooling1D")
GlobalMaxPooling2D = GlobalMaxPool2D = _layer(nn.GlobalMaxPool2D, "GlobalMaxPooling2D")
InputLayer = _layer(nn.InputLayer)
LSTM = _layer(nn.LSTM)
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
    shape: Sequence[int | None] | None = None, batch_size: int | None = None, dtype: Any = None, sparse: Any = None, ragged: Any = None,
    batch_shape: Sequence[int | None] | None = None, name: str | None = None, tensor: Any = None, optional: bool = False,
) -> Any:  # fmt: skip
    """A symbolic input, for `Model(inputs, outputs)`, or as the first layer of a `Sequential`.

    `batch_shape` is the shape including the batch size, instead of `shape` and `batch_size`; `tensor` gives shape, batch size and dtype.
    """
    accepted("Input", {"sparse": sparse, "ragged": ragged, "optional": optional})
    if tensor is not None:
        batch_shape, dtype = tuple(tensor.shape), dtype or tensor.dtype
    if (shape is None) == (batch_shape is None):
        raise ValueError("Input: give either shape=, without the batch size, or batch_shape= (or tensor=) with it")
    if batch_shape is not None:
        if batch_size is not None:
            raise ValueError("Input: give batch_size= only with shape=; batch_shape= includes the batch size")
        batch_size, *sizes = batch_shape
        shape = sizes
    return nn.Input(shape or (), batch_size, getattr(dtype, "dtype", dtype), name)


@in_keras_order
class DepthwiseConv2D(Layer, nn.DepthwiseConv2D):
    """A separate convolution of every channel, with `depth_multiplier` features each."""

    def __init__(
        self, kernel_size: Any, strides: Any = 1, padding: str = "valid", depth_multiplier: int = 1, *, depthwise_initializer: Any = None,
        depthwise_regularizer: Any = None, depthwise_constraint: Any = None, **more: Any,
    ) -> None:  # fmt: skip
        of_kernel = (("initializer", depthwise_initializer), ("regularizer", depthwise_regularizer), ("constraint", depthwise_constraint))
        more.update({f"kernel_{what}": value for what, value in of_kernel if value is not None})
        super().__init__(kernel_size, depth_multiplier, strides=strides, padding=padding, **more)


class Lambda(Layer, nn.Lambda):
    """Any function as a layer; `arguments` are passed to it by name."""

    def __init__(self, function: Any, output_shape: Any = None, mask: Any = None, arguments: Any = None, **more: Any) -> None:
        super().__init__(function, **more)
        self.shape_of_output, self.mask, self.arguments = output_shape, mask, dict(arguments or {})

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return super().call(*tree_map(convert_to_tensor, args), **{**self.arguments, **kwargs})

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        if self.mask is None:
            return mask
        return self.mask(x, mask) if callable(self.mask) else self.mask


@in_keras_order
class Embedding(Layer, nn.Embedding):
    """Looks up rows of a table, which starts as `weights` if they are given."""

    def __init__(
        self, input_dim: int, output_dim: int, embeddings_initializer: Any = "random_uniform", *, weights: Any = None, **more: Any
    ) -> None:
        super().__init__(input_dim, output_dim, embeddings_initializer, **more)
        if weights is not None:
            table = np.asarray(weights[0] if isinstance(weights, list | tuple) else weights)
            if table.shape != (input_dim, output_dim):
                raise ShapeError(f"{self.name}: weights {list(table.shape)} must have the shape {[input_dim, output_dim]}")
            self.embeddings_initializer = lambda shape, dtype: table.astype(dtype)


class Bidirectional(Layer, nn.Bidirectional):
    """A recurrent layer in both directions."""

    def __init__(
        self, layer: Any, merge_mode: str | None = "concat", weights: Any = None, backward_layer: Any = None, **more: Any
    ) -> None:  # fmt: skip
        both = [layer, layer if backward_layer is None else backward_layer]
        for each in both:
            if not isinstance(each, Recurrent) or each.built:
                raise TypeError(f"Bidirectional takes a recurrent layer that has not been called yet, not {each!r}")
        if weights is not None:
            raise UnsupportedError("Bidirectional: weights= is out of the scope of adjit.tf; call the layer once, then use set_weights")
        made = iter(both)
        nn.Bidirectional.__init__(self, lambda: copy.copy(next(made)), merge_mode, **accepted("Bidirectional", more))


class ReLU(Layer):
    """x up to `max_value`; below `threshold`, `negative_slope` times the distance from it."""

    def __init__(self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0, **more: Any) -> None:
        super().__init__(**more)
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold

    def call(self, inputs: Any) -> Any:
        return bent(as_input(self, inputs), self.negative_slope, self.max_value, self.threshold)


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
