"""Convolutions and pooling of `tf.nn`: images [batch, *sizes, channels], or channels first with `data_format="NC..."`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.tracer.surface import shapes
from adjit.tracer.surface.padding import pad

from .errors import InvalidShape, out_of_scope
from .tensor import check_dtypes, convert_to_tensor, dress
from .wrapping import floating, public, sizes_of


class Images:
    """The image operand of one call: its number of spatial axes, its channel axis, and how arguments per spatial axis are read."""

    def __init__(self, what: str, x: Any, rank: int | None, data_format: str | None) -> None:
        operand = floating(what, x)
        self.what = what
        self.rank = operand.ndim - 2 if rank is None else rank
        self.channels_first = data_format is not None and data_format.startswith("NC")
        if operand.ndim != self.rank + 2 or self.rank < 1:
            raise InvalidShape(f"{what}: input must be {self.rank + 2}-dimensional, with a batch and channels, not {operand.type.shape}")
        self.x = shapes.moveaxis(operand, 1, -1) if self.channels_first else operand

    def done(self, out: Operand) -> Operand:
        return shapes.moveaxis(out, -1, 1) if self.channels_first else out

    def axes(self, name: str, value: Any) -> tuple[int, ...]:
        """A number for each spatial axis, from one for all, one for each, or one for each axis of the images."""
        given = (1,) if value is None else sizes_of(value)
        if len(given) == self.rank + 2:
            rest = given[:2] if self.channels_first else (given[0], given[-1])
            if rest != (1, 1):
                raise InvalidShape(f"{self.what}: {name} {list(given)}: those of batch and channels must be 1")
            return given[2:] if self.channels_first else given[1:-1]
        if len(given) not in (1, self.rank):
            raise InvalidShape(f"{self.what}: {name} should be of length 1, {self.rank} or {self.rank + 2} but was {len(given)}")
        return given * self.rank if len(given) == 1 else given

    def padding(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.lower()
        pairs = [(int(a), int(b)) for a, b in value]
        if len(pairs) == self.rank + 2:
            pairs = pairs[2:] if self.channels_first else pairs[1:-1]
        return pairs


def filters_of(images: Images, filters: Any) -> Any:
    w = convert_to_tensor(filters, dtype_hint=images.x.dtype)
    check_dtypes(images.what, images.x, w)
    if w.ndim != images.rank + 2:
        raise InvalidShape(f"{images.what}: filters must be {images.rank + 2}-dimensional, not {w.type.shape}")
    return w


# ---- convolutions


def convolved(what: str, rank: int | None, x: Any, filters: Any, strides: Any, padding: Any, data_format: Any, dilations: Any) -> Any:
    images = Images(what, x, rank, data_format)
    w = filters_of(images, filters)
    channels, taken = images.x.shape[-1], w.shape[-2]
    if not taken or channels % taken:
        raise InvalidShape(f"{what}: input depth {channels} must be evenly divisible by filter depth {taken}")
    steps, spread = images.axes("strides", strides), images.axes("dilations", dilations)
    return images.done(ops.conv(images.x, w, steps, images.padding(padding), spread, channels // taken))


@public
def convolution(
    input: Any, filters: Any, strides: Any = None, padding: Any = "VALID", data_format: str | None = None, dilations: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Convolution of images with any number of spatial axes."""
    return convolved("convolution", None, input, filters, strides, padding, data_format, dilations)


@public
def conv1d(
    input: Any, filters: Any, stride: Any, padding: Any, data_format: str | None = "NWC", dilations: Any = None, name: str | None = None
) -> Any:
    return convolved("conv1d", 1, input, filters, stride, padding, data_format, dilations)


@public
def conv2d(
    input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None = "NHWC", dilations: Any = None, name: str | None = None
) -> Any:
    return convolved("conv2d", 2, input, filters, strides, padding, data_format, dilations)


@public
def conv3d(
    input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None = "NDHWC", dilations: Any = None, name: str | None = None
) -> Any:
    return convolved("conv3d", 3, input, filters, strides, padding, data_format, dilations)


@public
def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Any:
    return convolved("atrous_conv2d", 2, value, filters, 1, padding, None, rate)


@public
def depthwise_conv2d(
    input: Any, filter: Any, strides: Any, padding: Any, data_format: str | None = None, dilations: Any = None, name: str | None = None
) -> Any:
    """Convolve each channel with separate filters: [height, width, channels, multiplier]."""
    images = Images("depthwise_conv2d", input, 2, data_format)
    w = filters_of(images, filter)
    *sizes, channels, times = w.shape
    if channels != images.x.shape[-1]:
        raise InvalidShape(f"depthwise_conv2d: input depth {images.x.shape[-1]} and filter depth {channels} differ")
    steps, spread = images.axes("strides", strides), images.axes("dilations", dilations)
    out = ops.conv(images.x, ops.reshape(w, (*sizes, 1, channels * times)), steps, images.padding(padding), spread, channels)
    return images.done(out)


@public
def separable_conv2d(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any, data_format: str | None = None,
    dilations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    deep = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return convolved("separable_conv2d", 2, deep, pointwise_filter, 1, "VALID", data_format, None)


def transposed(rank: int, x: Any, filters: Any, output_shape: Any, strides: Any, padding: Any, data_format: Any, dilations: Any) -> Any:
    """The gradient of a convolution with respect to its images; `output_shape` selects one of the sizes that give this input."""
    images = Images(f"conv{rank}d_transpose", x, rank, data_format)
    w = filters_of(images, filters)
    steps, spread, kind = images.axes("strides", strides), images.axes("dilations", dilations), images.padding(padding)
    wanted = sizes_of(output_shape)
    sizes = wanted[2:] if images.channels_first else wanted[1:-1]
    out: Any = dress(ops.conv_transpose(images.x, w, steps, [(0, 0)] * rank, spread))
    for axis, (size, places, step, wide) in enumerate(zip(sizes, w.shape[:rank], steps, spread, strict=True), 1):
        before = ops.same_padding(size, places, step, wide)[0] if kind == "same" else 0 if kind == "valid" else kind[axis - 1][0]
        missing = max(before + size - out.shape[axis], 0)
        out = pad(out, [(0, missing if a == axis else 0) for a in range(rank + 2)])
        out = ops.slice_(out, [slice(None)] * axis + [slice(before, before + size)])
    return images.done(out)


@public
def conv1d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME", data_format: str | None = "NWC",
    dilations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    return transposed(1, input, filters, output_shape, strides, padding, data_format, dilations)


@public
def conv2d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME", data_format: str | None = "NHWC",
    dilations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    return transposed(2, input, filters, output_shape, strides, padding, data_format, dilations)


# ---- pooling


def pooled(function: Callable[..., Operand], what: str, rank: int | None) -> Callable[..., Any]:
    @public
    def pooling(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None) -> Any:
        images = Images(what, input, rank, data_format)
        return images.done(function(images.x, images.axes("ksize", ksize), images.axes("strides", strides), images.padding(padding)))

    pooling.__name__ = pooling.__qualname__ = what
    pooling.__doc__ = f"The {'largest element' if function is ops.max_pool else 'mean'} of each window."
    return pooling


max_pool, max_pool1d, max_pool2d, max_pool3d = (pooled(ops.max_pool, f"max_pool{n or ''}{'d' if n else ''}", n) for n in (None, 1, 2, 3))
avg_pool, avg_pool1d, avg_pool2d, avg_pool3d = (pooled(ops.avg_pool, f"avg_pool{n or ''}{'d' if n else ''}", n) for n in (None, 1, 2, 3))


@public
def pool(
    input: Any, window_shape: Sequence[int], pooling_type: str, strides: Any = None, padding: Any = "VALID", data_format: str | None = None,
    dilations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """`pooling_type` is "MAX" or "AVG"."""
    kinds = {"MAX": max_pool, "AVG": avg_pool}
    if pooling_type not in kinds:
        raise ValueError(f"pooling_type should be one of 'AVG' or 'MAX', not {pooling_type!r}")
    if any(n != 1 for n in np.atleast_1d(1 if dilations is None else dilations)):
        out_of_scope("tf.nn.pool(dilations=...) with gaps in windows", "take every n-th element of each axis first")
    return kinds[pooling_type](input, window_shape, strides, padding, data_format)


__all__ = [
    "atrous_conv2d", "avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d", "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose",
    "conv3d", "convolution", "depthwise_conv2d", "max_pool", "max_pool1d", "max_pool2d", "max_pool3d", "pool", "separable_conv2d",
]  # fmt: skip
