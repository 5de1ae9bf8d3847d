"""Rows of the op table for convolutions and pooling, against sums written out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.ops.base import Array, apply
from adjit.ir.ops.convolution import ConvolveFilter, ConvolveInput
from adjit.ir.ops.pooling import PickMax, PlaceMax, SpreadPool
from tests.ops.cases import Case
from tests.ops.cases_structure import Maker, normal, row

Pairs = tuple[tuple[int, int], ...]


def eighths(*shape: int) -> Maker:
    """Random multiples of 1/8: their products and sums are exact, so that no order of summation is better than another."""
    return lambda rng: np.asarray(np.round(8.0 * rng.normal(size=shape)) / 8.0)


def taps(sizes: tuple[int, ...], places: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]) -> Any:
    """Every pair of an output position and a filter position, with the corresponding element of the image."""
    counts = [(n - (r - 1) * b - 1) // s + 1 for n, r, s, b in zip(sizes, places, strides, dilations, strict=True)]
    for o in itertools.product(*map(range, counts)):
        for r in itertools.product(*map(range, places)):
            yield o, r, tuple(i * s + j * b for i, s, j, b in zip(o, strides, r, dilations, strict=True))


def written_out(strides: tuple[int, ...], dilations: tuple[int, ...], groups: int, pads: Pairs) -> Callable[[Array, Array], Array]:
    def convolve(x: Array, w: Array) -> Array:
        x = np.pad(x, ((0, 0), *pads, (0, 0)))
        sizes, places = x.shape[1:-1], w.shape[:-2]
        counts = [(n - (r - 1) * b - 1) // s + 1 for n, r, s, b in zip(sizes, places, strides, dilations, strict=True)]
        out = np.zeros((x.shape[0], *counts, w.shape[-1]), x.dtype)
        c, k = w.shape[-2], w.shape[-1] // groups
        for o, r, i in taps(sizes, places, strides, dilations):
            for g in range(groups):
                out[:, *o, g * k : (g + 1) * k] += x[:, *i, g * c : (g + 1) * c] @ w[*r, :, g * k : (g + 1) * k]
        return out

    return convolve


def conv(
    name: str, image: tuple[int, ...], filter: tuple[int, ...], strides: tuple[int, ...], pads: Pairs,
    dilations: tuple[int, ...] | None = None, groups: int = 1, padding: Any = None,
) -> Case:  # fmt: skip
    b = dilations or (1,) * len(strides)
    return row(
        f"conv_{name}",
        lambda x, w: ops.conv(x, w, strides, pads if padding is None else padding, b, groups),
        written_out(strides, b, groups, pads), eighths(*image), eighths(*filter),
    )  # fmt: skip


NONE1, NONE2 = ((0, 0),), ((0, 0), (0, 0))

CONVOLUTIONS = [
    conv("line", (2, 7, 3), (3, 3, 4), (1,), NONE1, padding="valid"),
    conv("causal", (2, 6, 2), (3, 2, 3), (1,), ((4, 0),), (2,), padding="causal"),
    conv("image", (2, 5, 6, 3), (3, 2, 3, 4), (1, 1), NONE2),
    conv("same", (1, 5, 6, 2), (3, 2, 2, 5), (2, 2), ((1, 1), (0, 0)), padding="same"),
    conv("strided_dilated", (2, 9, 8, 2), (3, 2, 2, 3), (2, 3), ((1, 0), (0, 2)), (2, 3)),
    conv("groups", (2, 4, 5, 4), (2, 2, 2, 6), (1, 2), NONE2, groups=2),
    conv("depthwise", (1, 4, 4, 3), (3, 3, 1, 6), (1, 1), ((1, 1), (1, 1)), groups=3, padding="same"),
    conv("places_apart", (2, 6, 5, 3), (1, 1, 3, 2), (2, 2), NONE2),
    conv("wide", (1, 4, 9, 3), (2, 2, 3, 37), (1, 1), NONE2),
    conv("no_images", (0, 3, 3, 2), (2, 2, 2, 2), (1, 1), NONE2),
    conv("volume", (1, 3, 4, 3, 2), (2, 2, 2, 2, 2), (1, 2, 1), ((0, 0),) * 3),
]


def input_cotangent(strides: tuple[int, ...], dilations: tuple[int, ...], sizes: tuple[int, ...]) -> Callable[[Array, Array], Array]:
    def transposed(d: Array, w: Array) -> Array:
        out = np.zeros((d.shape[0], *sizes, w.shape[-2]), d.dtype)
        for o, r, i in taps(sizes, w.shape[:-2], strides, dilations):
            out[:, *i] += d[:, *o] @ w[*r].T
        return out

    return transposed


def filter_cotangent(strides: tuple[int, ...], dilations: tuple[int, ...], places: tuple[int, ...]) -> Callable[[Array, Array], Array]:
    def of_filter(x: Array, d: Array) -> Array:
        out = np.zeros((*places, x.shape[-1], d.shape[-1]), x.dtype)
        for o, r, i in taps(x.shape[1:-1], places, strides, dilations):
            out[*r] += x[:, *i].T @ d[:, *o]
        return out

    return of_filter


COTANGENTS = [
    row(
        "convolve_input", lambda d, w: apply(ConvolveInput((2, 1), (1, 2), 1, (6, 7)), d, w),
        input_cotangent((2, 1), (1, 2), (6, 7)), eighths(2, 3, 5, 3), eighths(2, 2, 4, 3),
    ),
    row(
        "convolve_filter", lambda x, d: apply(ConvolveFilter((2, 1), (1, 2), 1, (2, 2)), x, d),
        filter_cotangent((2, 1), (1, 2), (2, 2)), eighths(2, 6, 7, 4), eighths(2, 3, 5, 3),
    ),
    row(
        "conv_transpose_valid", lambda x, w: ops.conv_transpose(x, w, 2),
        lambda x, w: input_cotangent((2, 2), (1, 1), (7, 8))(x, w), eighths(1, 3, 3, 2), eighths(3, 4, 3, 2),
    ),
    row(
        "conv_transpose_same", lambda x, w: ops.conv_transpose(x, w, 2, "same"),
        lambda x, w: input_cotangent((2,), (1,), (9,))(x, w)[:, 0:8], eighths(1, 4, 2), eighths(3, 3, 2),
    ),
    row(
        "conv_transpose_cut", lambda x, w: ops.conv_transpose(x, w, 2, [(1, 0)], output_padding=1),
        lambda x, w: np.pad(input_cotangent((2,), (1,), (7,))(x, w), ((0, 0), (0, 1), (0, 0)))[:, 1:], eighths(1, 3, 2), eighths(3, 3, 2),
    ),
    row(
        "conv_transpose_apart", lambda x, w: ops.conv_transpose(x, w, 3),
        lambda x, w: np.pad(input_cotangent((3,), (1,), (8,))(x, w), ((0, 0), (0, 1), (0, 0))), eighths(1, 3, 2), eighths(2, 3, 2),
    ),
]  # fmt: skip


def pooled(
    window: tuple[int, ...], strides: tuple[int, ...], reduce: Callable[..., Any], pads: Pairs | None = None
) -> Callable[[Array], Array]:
    def pool(x: Array) -> Array:
        x = np.pad(x, ((0, 0), *(pads or ((0, 0),) * len(window)), (0, 0)), constant_values=np.nan)
        counts = [(n - r) // s + 1 for n, r, s in zip(x.shape[1:-1], window, strides, strict=True)]
        out = np.zeros((x.shape[0], *counts, x.shape[-1]), x.dtype)
        for o in itertools.product(*map(range, counts)):
            cut = tuple(slice(i * s, i * s + r) for i, s, r in zip(o, strides, window, strict=True))
            out[:, *o] = reduce(x[:, *cut], axis=tuple(range(1, len(window) + 1)))
        return out

    return pool


def picked(x: Array, v: Array) -> Array:
    return pooled_of_pairs(x, v)[0]


def pooled_of_pairs(x: Array, v: Array) -> tuple[Array, Array]:
    """Windows of 2 x 3, 1 and 2 apart: v where x is largest, and how often each element is."""
    out, count = np.zeros((x.shape[0], x.shape[1] - 1, (x.shape[2] - 3) // 2 + 1, x.shape[3]), x.dtype), np.zeros(x.shape, x.dtype)
    for n, i, j, c in np.ndindex(*out.shape):
        at = np.unravel_index(np.argmax(x[n, i : i + 2, 2 * j : 2 * j + 3, c]), (2, 3))
        out[n, i, j, c] = v[n, i + at[0], 2 * j + at[1], c]
        count[n, i + at[0], 2 * j + at[1], c] += 1
    return out, count


def placed(x: Array, d: Array) -> Array:
    out = np.zeros(x.shape, x.dtype)
    for n, i, j, c in np.ndindex(*d.shape):
        at = np.unravel_index(np.argmax(x[n, i : i + 2, 2 * j : 2 * j + 3, c]), (2, 3))
        out[n, i + at[0], 2 * j + at[1], c] += d[n, i, j, c]
    return out


def spread(d: Array) -> Array:
    out = np.zeros((d.shape[0], 6, d.shape[-1]), d.dtype)
    for i in range(d.shape[1]):
        out[:, 2 * i : 2 * i + 3] += d[:, i : i + 1]
    return out


POOLS = [
    row("max_pool", lambda x: ops.max_pool(x, 2), pooled((2, 2), (2, 2), np.max), normal(2, 5, 4, 3)),
    row("max_pool_line", lambda x: ops.max_pool(x, 3, 1), pooled((3,), (1,), np.max), normal(2, 6, 2)),
    row(
        "max_pool_same",
        lambda x: ops.max_pool(x, (3, 2), 2, "same"),
        pooled((3, 2), (2, 2), np.nanmax, ((1, 1), (0, 1))),
        normal(1, 5, 5, 9),
    ),
    row("max_pool_large", lambda x: ops.max_pool(x, 6), pooled((6, 6), (6, 6), np.max), normal(1, 6, 7, 2)),
    row("avg_pool", lambda x: ops.avg_pool(x, (2, 3), (1, 2)), pooled((2, 3), (1, 2), np.mean), normal(2, 4, 5, 3)),
    row("avg_pool_same", lambda x: ops.avg_pool(x, 3, 2, "same"), pooled((3,), (2,), np.nanmean, ((0, 1),)), normal(2, 6, 5)),
    row("pick_max", lambda x, v: apply(PickMax((2, 3), (1, 2)), x, v), picked, normal(2, 3, 5, 4), normal(2, 3, 5, 4), wrt=(1,)),
    row("place_max", lambda x, d: apply(PlaceMax((2, 3), (1, 2)), x, d), placed, normal(2, 3, 5, 4), normal(2, 2, 2, 4), wrt=(1,)),
    row("spread_pool", lambda d: apply(SpreadPool((3,), (2,), (6,)), d), spread, normal(2, 2, 3)),
]

CASES: list[Case] = [*CONVOLUTIONS, *COTANGENTS, *POOLS]
