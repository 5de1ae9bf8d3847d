"""Convolution and pooling layers, channels last: over time [batch, time, channels] or images [batch, height, width, channels]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.runtime.variable import Variable

from .activations import get_activation
from .core import Init, positive
from .module import Module, as_input, check_features

Sizes = int | Sequence[int]
Padding = str | Sequence[Any]


def sizes_of(layer: Module, what: str, value: Sizes, rank: int) -> tuple[int, ...]:
    values = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(values) != rank:
        raise ValueError(f"{layer.name}: {what} is a number, or {rank} of them, not {value!r}")
    return tuple(positive(layer, what, v) for v in values)


def checked_padding(layer: Module, padding: Padding, kinds: Sequence[str], rank: int) -> Any:
    """A padding given by name, or as one pair (before, after) per axis."""
    if isinstance(padding, str):
        if padding.lower() not in kinds:
            raise ValueError(f"{layer.name}: padding is one of {', '.join(kinds)}, or a width for each axis, not {padding!r}")
        return padding.lower()
    pairs = tuple((p, p) if isinstance(p, int) else tuple(p) for p in padding)
    if len(pairs) != rank or any(len(p) != 2 or min(p) < 0 for p in pairs):
        raise ValueError(f"{layer.name}: padding {padding!r}: {rank} widths are needed, each a number or a pair (before, after)")
    return pairs


class Spatial(Module):
    """Base of the layers of this file: checks that inputs have a batch axis, `rank` spatial axes and channels."""

    rank: ClassVar[int]

    def image(self, x: Any) -> Operand:
        out = as_input(self, x)
        if out.ndim != self.rank + 2:
            axes = "time" if self.rank == 1 else "height, width"
            raise ShapeError(f"{self.name}: takes [batch, {axes}, channels], not {out.type}; reshape it, or add an axis with x[..., None]")
        return out

    def filled(self, out: Operand, image: Operand, window: tuple[int, ...]) -> Operand:
        """Check that the window fits into the image at least once, and return the output."""
        if not out.size and image.size:
            raise ShapeError(f"{self.name}: a window of {list(window)} does not fit into {image.type}; make it smaller, or pad ('same')")
        return out


class Conv(Spatial):
    """Base of convolutions: activation(conv(x, kernel) + bias)."""

    regularized = ("kernel", "bias")
    bias: Variable | None
    paddings: ClassVar[tuple[str, ...]] = ("valid", "same")

    def __init__(
        self, filters: int, kernel_size: Sizes, strides: Sizes = 1, padding: Padding = "valid", dilation_rate: Sizes = 1, groups: int = 1,
        activation: str | Callable[..., Any] | None = None, use_bias: bool = True, kernel_initializer: Init = "glorot_uniform",
        bias_initializer: Init = "zeros", **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(**more)
        self.filters, self.groups = positive(self, "filters", filters), positive(self, "groups", groups)
        self.kernel_size = sizes_of(self, "kernel_size", kernel_size, self.rank)
        self.strides = sizes_of(self, "strides", strides, self.rank)
        self.dilation_rate = sizes_of(self, "dilation_rate", dilation_rate, self.rank)
        self.padding = checked_padding(self, padding, self.paddings, self.rank)
        if self.filters % self.groups:
            raise ValueError(f"{self.name}: {self.filters} filters do not divide into {self.groups} groups")
        self.activation = get_activation(activation, self.name)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer

    def build(self, shape: Any) -> None:
        channels = shape[-1] if shape else 0
        if channels % self.groups:
            raise ShapeError(f"{self.name}: {channels} channels do not divide into {self.groups} groups")
        self.channels = channels
        self.kernel = self.add_variable("kernel", self.kernel_shape(channels), self.kernel_initializer)
        self.bias = self.add_variable("bias", (self.filters,), self.bias_initializer) if self.use_bias else None

    def kernel_shape(self, channels: int) -> tuple[int, ...]:
        return (*self.kernel_size, channels // self.groups, self.filters)

    def convolve(self, x: Operand) -> Operand:
        return ops.conv(x, self.kernel.read_operand(), self.strides, self.padding, self.dilation_rate, self.groups)

    def call(self, x: Any) -> Any:
        image = self.image(x)
        check_features(self, image, self.channels)
        out = self.filled(self.convolve(image), image, self.kernel_size)
        return self.activation(out if self.bias is None else out + self.bias)


class Conv1D(Conv):
    """Convolution over time; padding "causal" uses only past values.

    >>> aj.nn.Conv1D(8, 3, padding="causal")(np.ones((2, 5, 3), "f4")).shape
    (2, 5, 8)
    """

    rank = 1
    paddings = ("valid", "same", "causal")


class Conv2D(Conv):
    """Convolution over images.

    >>> aj.nn.Conv2D(8, 3, activation="relu")(np.ones((1, 4, 4, 2), "f4")).shape
    (1, 2, 2, 8)
    """

    rank = 2


class DepthwiseConv2D(Conv):
    """A separate convolution of every channel, with `depth_multiplier` features each.

    >>> aj.nn.DepthwiseConv2D(3, depth_multiplier=2)(np.ones((1, 4, 4, 2), "f4")).shape
    (1, 2, 2, 4)
    """

    rank = 2

    def __init__(self, kernel_size: Sizes, depth_multiplier: int = 1, **more: Any) -> None:
        super().__init__(depth_multiplier, kernel_size, **more)
        self.depth_multiplier = depth_multiplier

    def build(self, shape: Any) -> None:
        self.groups, self.filters = shape[-1], shape[-1] * self.depth_multiplier
        super().build(shape)


class ConvTranspose(Conv):
    """Base of transposed convolutions, which enlarge; the kernel has the layout of the reverse convolution, [sizes, filters, channels]."""

    def __init__(self, filters: int, kernel_size: Sizes, strides: Sizes = 1, *, output_padding: Sizes | None = None, **more: Any) -> None:
        super().__init__(filters, kernel_size, strides, **more)
        self.output_padding = output_padding

    def kernel_shape(self, channels: int) -> tuple[int, ...]:
        return (*self.kernel_size, self.filters // self.groups, channels)

    def convolve(self, x: Operand) -> Operand:
        kernel = self.kernel.read_operand()
        return ops.conv_transpose(x, kernel, self.strides, self.padding, self.dilation_rate, self.groups, self.output_padding)


class Conv1DTranspose(ConvTranspose):
    """Transposed convolution over time.

    >>> aj.nn.Conv1DTranspose(8, 3, strides=2)(np.ones((2, 5, 3), "f4")).shape
    (2, 11, 8)
    """

    rank = 1


class Conv2DTranspose(ConvTranspose):
    """Transposed convolution over images.

    >>> aj.nn.Conv2DTranspose(8, 3, strides=2)(np.ones((1, 4, 4, 2), "f4")).shape
    (1, 9, 9, 8)
    """

    rank = 2


# ---- pooling


class Pool(Spatial):
    """Base of pooling layers; strides default to the window sizes."""

    function: ClassVar[Callable[..., Operand]]

    def __init__(self, pool_size: Sizes = 2, strides: Sizes | None = None, padding: Padding = "valid", **more: Any) -> None:
        super().__init__(**more)
        self.pool_size = sizes_of(self, "pool_size", pool_size, self.rank)
        self.strides = self.pool_size if strides is None else sizes_of(self, "strides", strides, self.rank)
        self.padding = checked_padding(self, padding, ("valid", "same"), self.rank)

    def call(self, x: Any) -> Any:
        image = self.image(x)
        return self.filled(type(self).function(image, self.pool_size, self.strides, self.padding), image, self.pool_size)


class MaxPool1D(Pool):
    """Maxima over windows of time. The derivative goes to the first of several maxima.

    >>> aj.nn.MaxPool1D(2)(np.arange(4.0).reshape(1, 4, 1)).numpy().ravel()
    array([1., 3.], dtype=float32)
    """

    rank = 1
    function = staticmethod(ops.max_pool)


class MaxPool2D(Pool):
    """Maxima over windows of images. The derivative goes to the first of several maxima.

    >>> aj.nn.MaxPool2D(2)(np.arange(16.0).reshape(1, 4, 4, 1)).numpy().ravel()
    array([ 5.,  7., 13., 15.], dtype=float32)
    """

    rank = 2
    function = staticmethod(ops.max_pool)


class AvgPool1D(Pool):
    """Means over windows of time; padding is not counted.

    >>> aj.nn.AvgPool1D(2)(np.arange(4.0).reshape(1, 4, 1)).numpy().ravel()
    array([0.5, 2.5], dtype=float32)
    """

    rank = 1
    function = staticmethod(ops.avg_pool)


class AvgPool2D(Pool):
    """Means over windows of images; padding is not counted.

    >>> aj.nn.AvgPool2D(2)(np.arange(16.0).reshape(1, 4, 4, 1)).numpy().ravel()
    array([ 2.5,  4.5, 10.5, 12.5], dtype=float32)
    """

    rank = 2
    function = staticmethod(ops.avg_pool)


class GlobalPool(Spatial):
    """Base of layers that pool over all positions; `keepdims` keeps axes of size 1."""

    def __init__(self, keepdims: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.keepdims = keepdims


class GlobalAvgPool(GlobalPool):
    """Means over all positions."""

    def call(self, x: Any) -> Any:
        image = self.image(x)
        axes = tuple(range(1, self.rank + 1))
        count = image.size // max(1, image.type.shape[0] * image.type.shape[-1])
        return ops.sum(image, axes, self.keepdims) * (1.0 / max(1, count))


class GlobalMaxPool(GlobalPool):
    """Maxima over all positions."""

    def call(self, x: Any) -> Any:
        return ops.max(self.image(x), tuple(range(1, self.rank + 1)), self.keepdims)


class GlobalAvgPool1D(GlobalAvgPool):
    """The mean over time.

    >>> aj.nn.GlobalAvgPool1D()(np.arange(4.0).reshape(1, 4, 1)).numpy()
    array([[1.5]], dtype=float32)
    """

    rank = 1


class GlobalAvgPool2D(GlobalAvgPool):
    """The mean over an image.

    >>> aj.nn.GlobalAvgPool2D()(np.arange(16.0).reshape(1, 4, 4, 1)).numpy()
    array([[7.5]], dtype=float32)
    """

    rank = 2


class GlobalMaxPool1D(GlobalMaxPool):
    """The maximum over time.

    >>> aj.nn.GlobalMaxPool1D()(np.arange(4.0).reshape(1, 4, 1)).numpy()
    array([[3.]], dtype=float32)
    """

    rank = 1


class GlobalMaxPool2D(GlobalMaxPool):
    """The maximum over an image.

    >>> aj.nn.GlobalMaxPool2D()(np.arange(16.0).reshape(1, 4, 4, 1)).numpy()
    array([[15.]], dtype=float32)
    """

    rank = 2


class ZeroPadding2D(Spatial):
    """Pads images with zeros: one width, one per axis, or a pair per axis.

    >>> aj.nn.ZeroPadding2D(1)(np.ones((1, 2, 2, 3))).shape
    (1, 4, 4, 3)
    """

    rank = 2

    def __init__(self, padding: Any = 1, **more: Any) -> None:
        super().__init__(**more)
        self.padding = checked_padding(self, (padding,) * 2 if isinstance(padding, int) else padding, (), 2)

    def call(self, x: Any) -> Any:
        return ops.pad(self.image(x), [0, *(p for p, _ in self.padding), 0], [0, *(p for _, p in self.padding), 0])


class UpSampling2D(Spatial):
    """Repeats every pixel.

    >>> aj.nn.UpSampling2D(2)(np.arange(2.0).reshape(1, 1, 2, 1)).numpy().reshape(2, 4)
    array([[0., 0., 1., 1.],
           [0., 0., 1., 1.]], dtype=float32)
    """

    rank = 2

    def __init__(self, size: Sizes = 2, **more: Any) -> None:
        super().__init__(**more)
        self.size = sizes_of(self, "size", size, 2)

    def call(self, x: Any) -> Any:
        image = self.image(x)
        n, h, w, c = image.type.shape
        a, b = self.size
        wide = ops.broadcast_to(ops.reshape(image, (n, h, 1, w, 1, c)), (n, h, a, w, b, c))
        return ops.reshape(wide, (n, h * a, w * b, c))
