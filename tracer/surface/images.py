"""Convolutions and pooling as functions of images [batch, *sizes, channels]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers

from ..convert import to_operand, to_operands
from ..results import copies
from .elementwise import floating


def conv1d(
    x: Any, filters: Any, /, strides: int | Sequence[int] = 1, padding: int | str | Sequence[Any] = "valid",
    dilations: int | Sequence[int] = 1, groups: int = 1,
) -> Operand:  # fmt: skip
    """Return the convolution of sequences [batch, time, channels] with filters [size, channels / groups, features].

    The padding is "valid", "same", "causal" (only past values), a number, or `[(before, after)]`.

    >>> aj.conv1d(np.ones((1, 5, 1)), np.ones((3, 1, 1)), padding="causal").ravel()
    Tensor([1., 2., 3., 3., 3.], f64[5])
    """
    return convolved("conv1d", 1, x, filters, strides, padding, dilations, groups)


def conv2d(
    x: Any, filters: Any, /, strides: int | Sequence[int] = 1, padding: int | str | Sequence[Any] = "valid",
    dilations: int | Sequence[int] = 1, groups: int = 1,
) -> Operand:  # fmt: skip
    """Return the convolution of images [batch, height, width, channels] with filters [height, width, channels / groups, features].

    As in other frameworks, filters are not flipped. The padding is "valid", "same", a number, or a list with a number or a pair
    `(before, after)` for each spatial axis.

    >>> aj.conv2d(np.ones((1, 5, 5, 3)), np.ones((3, 3, 3, 8)), strides=2, padding="same").shape
    (1, 3, 3, 8)
    """
    return convolved("conv2d", 2, x, filters, strides, padding, dilations, groups)


def conv3d(
    x: Any, filters: Any, /, strides: int | Sequence[int] = 1, padding: int | str | Sequence[Any] = "valid",
    dilations: int | Sequence[int] = 1, groups: int = 1,
) -> Operand:  # fmt: skip
    """Return the convolution of volumes [batch, depth, height, width, channels]; see `conv2d`.

    >>> aj.conv3d(np.ones((1, 4, 4, 4, 2)), np.ones((3, 3, 3, 2, 5))).shape
    (1, 2, 2, 2, 5)
    """
    return convolved("conv3d", 3, x, filters, strides, padding, dilations, groups)


def conv_transpose(
    x: Any, filters: Any, /, strides: int | Sequence[int] = 1, padding: int | str | Sequence[Any] = "valid",
    dilations: int | Sequence[int] = 1, groups: int = 1, output_padding: int | Sequence[int] | None = None,
) -> Operand:  # fmt: skip
    """Return the transpose of a convolution with filters [*sizes, features / groups, channels], as a linear map: it enlarges images.

    "same" gives `strides` times the size; `output_padding` is added to the smallest size that is possible.

    >>> aj.conv_transpose(np.ones((1, 4, 4, 3)), np.ones((2, 2, 5, 3)), strides=2, padding="same").shape
    (1, 8, 8, 5)
    """
    x, w = (floating(each) for each in to_operands(x, filters))
    return ops.conv_transpose(x, w, strides, padding, dilations, groups, output_padding)


@copies
def max_pool(
    x: Any, /, window: int | Sequence[int], strides: int | Sequence[int] | None = None, padding: int | str | Sequence[Any] = "valid"
) -> Operand:
    """Return maxima over windows of the spatial axes of images [batch, *sizes, channels]; strides default to the size of the window.

    >>> aj.max_pool(np.arange(16.0).reshape(1, 4, 4, 1), 2).reshape(2, 2)
    Tensor([[ 5.,  7.],
            [13., 15.]], f64[2,2])
    """
    return ops.max_pool(floating(to_operand(x)), window, strides, padding)


def avg_pool(
    x: Any, /, window: int | Sequence[int], strides: int | Sequence[int] | None = None, padding: int | str | Sequence[Any] = "valid"
) -> Operand:
    """Return means over windows of the spatial axes of images [batch, *sizes, channels]; elements of the padding do not count.

    >>> aj.avg_pool(np.arange(16.0).reshape(1, 4, 4, 1), 2).reshape(2, 2)
    Tensor([[ 2.5,  4.5],
            [10.5, 12.5]], f64[2,2])
    """
    return ops.avg_pool(floating(to_operand(x)), window, strides, padding)


def convolved(name: str, rank: int, x: Any, filters: Any, strides: Any, padding: Any, dilations: Any, groups: int) -> Operand:
    x, w = (floating(each) for each in to_operands(x, filters))
    if (x.ndim, w.ndim) != (rank + 2, rank + 2):
        raise ShapeError(f"{name}: images {x.type} and filters {w.type} must have {rank + 2} axes each: {rank} spatial ones and two others")
    return ops.conv(x, w, strides, padding, dilations, groups)


end_at_callers(globals())
