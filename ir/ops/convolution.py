"""Convolutions over spatial axes, channels last: images [batch, *sizes, channels], filters [*sizes, channels / groups, features].

Owns three primitives, which are the three derivatives of one trilinear form (summed over all o, r, c, k of one group)

    T(x, w, d) = sum x[n, o * stride + r * dilation, c] * w[r, c, k] * d[n, o, k]

`convolve` is its derivative with respect to d, `convolve_input` to x and `convolve_filter` to w: the derivatives of each are the other
two, to any order. Does no padding, which is a `pad` before (or a slice after) them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import cast as typed

from .. import source_helpers
from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..expr import hint_of, is_static, minimum
from ..types import I64, Shape, TensorType
from .base import Array, Loops, Op, Reg, Window, Writing, apply, with_attributes
from .maps import cast, common_dtype
from .shape import lead, move_lead, move_to_lead, pad, reshape, slice_

__all__ = ["conv", "conv_transpose", "same_padding"]

if TYPE_CHECKING:
    from ..operand import Operand


Labelled: TypeAlias = tuple[str, Window]  # the letters of its axes, and a window
FEW_IMAGES = 8  # per batch: below this, rows of images are distributed over threads
COPIES = 16  # of a filter, each of which accumulates some of the images
COPIED_BYTES = 1 << 22  # of these copies: larger filters are split into blocks instead
WORTH_PACKING = 32  # reads per element from which packing pays off
BLOCKS = 8  # into which the channels of such a filter are split


@with_attributes
class Convolution(Op, abstract=True):
    """Shared by the three ops: steps between positions (`strides`) and between filter elements (`dilations`), and groups."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int
    is_product = True

    def shares_filter(self, batched: Sequence[bool]) -> bool:
        """Whether all examples of a batch are convolved with the same filter."""
        return not batched[1]

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Operand:
        """With a shared filter, the images of all examples form one larger batch; otherwise examples become groups of channels."""
        if self.shares_filter(batched):
            x, w = args
            out = apply(self, reshape(x, (size * x.type.shape[1], *x.type.shape[2:])), w)
            return reshape(out, (size, x.type.shape[1], *out.type.shape[1:]))
        before_last = len(self.strides) + 1
        joined = []
        for a, has in zip(args, batched, strict=True):
            moved = move_lead(a if has else lead(a, size), before_last)
            joined.append(reshape(moved, (*moved.type.shape[:-2], size * moved.type.shape[-1])))
        out = apply(replace(self, groups=self.groups * size), *joined)
        last = out.type.shape[-1] // size if size else 0
        return move_to_lead(reshape(out, (*out.type.shape[:-1], size, last)), before_last)

    def output_sizes(self, sizes: Shape, places: Shape) -> Shape:
        spans = [(r - 1) * b + 1 for r, b in zip(places, self.dilations)]
        return tuple((n - span) // s + 1 if n >= span else 0 for n, span, s in zip(sizes, spans, self.strides))

    def products(self, w: TensorType, d: TensorType) -> float:
        """Operations of the form, for filters w and results d: every result is a sum over the elements and channels of its filter."""
        return 2.0 * d.size * math.prod(w.shape[:-1])

    def check(self, x: TensorType, w: TensorType, d: TensorType) -> None:
        """Check the types of the three arguments of the form, whichever of them is the result."""
        rank = len(self.strides)
        if not x.dtype == w.dtype == d.dtype or not x.is_inexact:
            raise DTypeError(f"{self.name}: operands must be floats of one dtype, not {x}, {w} and {d}")
        if not x.rank == w.rank == d.rank == rank + 2 or len(self.dilations) != rank or rank < 1:
            raise ShapeError(
                f"{self.name}: {x} and {w} with {rank} strides: images are [batch, sizes, channels], filters [sizes, channels, features]"
            )
        if min(self.strides) < 1 or min(self.dilations) < 1 or self.groups < 1:
            given = f"{self.strides}, {self.dilations} and {self.groups}"
            raise ShapeError(f"{self.name}: strides, dilations and groups are at least 1, not {given}")
        if 0 in w.shape[:-2]:
            raise ShapeError(f"{self.name}: the filter {w} is empty: its spatial sizes must be at least 1")
        channels, features = x.shape[-1], w.shape[-1]
        if channels != w.shape[-2] * self.groups or features % self.groups:
            raise ShapeError(
                f"{self.name}: {x} has {channels} channels, and {w} in {self.groups} group(s) takes {w.shape[-2] * self.groups} "
                f"and gives {features}, which the groups must divide"
            )
        if d.shape != (x.shape[0], *self.output_sizes(x.shape[1:-1], w.shape[:-2]), features):
            raise ShapeError(f"{self.name}: {x} and {w} do not give {d}")

    # ---- NumPy

    def settings(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        return self.strides, self.dilations, self.groups

    # ---- native code: einsum letters are n batch, A.. positions, a.. filter elements, g groups, c channels, k features

    def work(self, d: TensorType, w: TensorType) -> float:
        """Operations of one evaluation of the form."""
        return 2.0 * d.size * math.prod(w.shape[:-1])

    def letters(self) -> tuple[str, str]:
        rank = len(self.strides)
        return "ABDEF"[:rank], "abdef"[:rank]

    def image(self, x: Window, sizes: Shape, places: Shape) -> Labelled:
        """x as the form reads it: [n, A, a, B, b, .., g, c], with positions and filter elements overlapping in memory."""
        label, window = "n", x
        for i, (n, s, r, b, A, a) in enumerate(zip(sizes, self.strides, places, self.dilations, *self.letters())):
            window = window.sliding(1 + 2 * i, n, s, r, b)
            label += A + a
        return label + "gc", self.split(window, len(window.type.shape) - 1)

    def split(self, window: Window, axis: int) -> Window:
        size = window.type.shape[axis] // self.groups
        return window.sliding(axis, self.groups, size, size)

    def filter(self, w: Window) -> Labelled:
        """w as [a, b, .., c, g, k]."""
        return self.letters()[1] + "cgk", self.split(w, len(w.type.shape) - 1)

    def result(self, d: Window) -> Labelled:
        """d as [n, A, B, .., g, k]."""
        return "n" + self.letters()[0] + "gk", self.split(d, len(d.type.shape) - 1)


@with_attributes
class Convolve(Convolution):
    """The convolution (without flipping, as is usual in deep learning) of x with w."""

    def infer(self, *types: TensorType) -> TensorType:
        x, w = types
        out = x.with_shape((*x.shape[:1], *self.output_sizes(x.shape[1:-1], w.shape[:-2]), *w.shape[-1:]))
        self.check(x, w, out)
        return out

    def evaluate(self, *arrays: Array) -> Array:
        x, w = arrays
        return source_helpers.convolve(x, w, *self.settings())  # type: ignore[no-any-return]

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("convolve({}, {}, {}, {}, {})", *map(write.array, args), *map(write.value, self.settings()))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d, args[1]) if i == 0 else apply(self, args[0], d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        x, w = args
        if i == 0:
            return apply(ConvolveInput(self.strides, self.dilations, self.groups, x.type.shape[1:-1]), d, w)
        return apply(ConvolveFilter(self.strides, self.dilations, self.groups, w.type.shape[:-2]), x, d)

    def stores_once(self, *types: TensorType) -> bool:
        return True

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, self.products(types[1], self.infer(*types)))

    def lower(self, k: Loops, out: Window, x: Window, w: Window) -> None:
        (kept, target), (image, xs), (filter, ws) = self.result(out), self.image(x, out.type.shape[1:-1], w.type.shape[:-2]), self.filter(w)
        width = k.tile_width(w.type.dtype)
        if ws.type.shape[-1] > width and ws.type.shape[-1] % width == 0:
            kept, target = in_blocks("p", kept, target, width)
            filter, ws = packed(k, *in_blocks("p", filter, ws, width))

        lead = "n" if hint_of(out.type.shape[0]) >= FEW_IMAGES else "A"
        (kept, target), (image, xs) = led_by(lead, kept, target), led_by(lead, image, xs)

        def one(i: Reg, target: Window, xs: Window, ws: Window) -> None:
            k.contract(f"{kept[1:]},{image[1:]},{filter}", target.at(i), xs.at(i), ws)

        k.each(target.type.shape[0], self.work(out.type, w.type), one, target, xs, ws)


@with_attributes
class ConvolveInput(Convolution):
    """From d and w, the cotangent of images of these spatial `sizes`: also called transposed convolution."""

    sizes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        d, w = types
        out = d.with_shape((*d.shape[:1], *self.sizes, *(c * self.groups for c in w.shape[-2:-1])))
        self.check(out, w, d)
        return out

    def evaluate(self, *arrays: Array) -> Array:
        d, w = arrays
        return source_helpers.convolve_input(d, w, *self.settings(), self.sizes)  # type: ignore[no-any-return]

    def python(self, write: Writing, *args: Operand) -> Any:
        given = *map(write.array, args), *map(write.value, (*self.settings(), self.sizes))
        return write("convolve_input({}, {}, {}, {}, {}, {})", *given)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d, args[1]) if i == 0 else apply(self, args[0], d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        result, w = args
        if i == 0:
            return apply(Convolve(self.strides, self.dilations, self.groups), d, w)
        return apply(ConvolveFilter(self.strides, self.dilations, self.groups, w.type.shape[:-2]), d, result)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, self.products(types[1], types[0]))

    def lower(self, k: Loops, out: Window, d: Window, w: Window) -> None:
        """Every position adds its products to the part of the image that it covers: vectors run along channels, for which the filter is
        transposed, and, where neighbouring filter elements cover neighbouring channels, along both.
        """
        (image, met), (given, ds) = self.image(out, d.type.shape[1:-1], w.type.shape[:-2]), self.result(d)
        rank, width, (label, filter) = len(self.strides), k.tile_width(w.type.dtype), self.filter(w)
        neighbours = rank - 1 if self.groups == 1 else rank
        order = [*range(neighbours), rank + 1, rank + 2, *range(neighbours, rank), rank]  # a, .., g, k, b, c
        label, filter = "".join(label[axis] for axis in order), filter.transposed(*order)
        if filter.type.shape[-1] % width == 0:
            image, met = in_blocks("p", image, met, width)
            label, filter = in_blocks("p", label, filter, width)
        label, filter = packed(k, label, filter)

        def one(n: Reg, out: Window, met: Window, ds: Window, filter: Window) -> None:
            k.fill(out.at(n), 0)
            k.contract(f"{image[1:]},{given[1:]},{label}", met.at(n), ds.at(n), filter, accumulate=True)

        k.each(d.type.shape[0], self.work(d.type, w.type), one, out, met, ds, filter)


@with_attributes
class ConvolveFilter(Convolution):
    """From x and d, the cotangent of a filter of these spatial `sizes`."""

    sizes: tuple[int, ...]

    def shares_filter(self, batched: Sequence[bool]) -> bool:
        return False

    def infer(self, *types: TensorType) -> TensorType:
        x, d = types
        out = x.with_shape((*self.sizes, *(c // self.groups for c in x.shape[-1:]), *d.shape[-1:]))
        self.check(x, out, d)
        return out

    def evaluate(self, *arrays: Array) -> Array:
        x, d = arrays
        return source_helpers.convolve_filter(x, d, *self.settings(), self.sizes)  # type: ignore[no-any-return]

    def python(self, write: Writing, *args: Operand) -> Any:
        given = *map(write.array, args), *map(write.value, (*self.settings(), self.sizes))
        return write("convolve_filter({}, {}, {}, {}, {}, {})", *given)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d, args[1]) if i == 0 else apply(self, args[0], d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        x, result = args
        if i == 0:
            return apply(ConvolveInput(self.strides, self.dilations, self.groups, x.type.shape[1:-1]), result, d)
        return apply(Convolve(self.strides, self.dilations, self.groups), x, d)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, self.products(self.infer(*types), types[1]))

    def lower(self, k: Loops, out: Window, x: Window, d: Window) -> None:
        """Sums over the images one after the other: the data of one image fits the cache, and the filter stays there. In parallel, other
        images are added to copies of a small filter, or the same images to other parts of a large one.
        """
        image, given, filter = self.image(x, d.type.shape[1:-1], self.sizes), self.result(d), self.filter(out)
        features, width = filter[1].type.shape[-1], k.tile_width(d.type.dtype)
        if features > width and features % width == 0 and math.prod(out.type.shape[:-1]) >= WORTH_PACKING:
            given, filter = led_by("nq", *in_blocks("q", *given, width)), in_blocks("q", *filter, width)
        images = x.type.shape[0]
        copies = images // max(-(-images // COPIES), 1) if is_static(images) else COPIES
        work = self.work(d.type, out.type)
        k.fill(out, 0)
        if copies * out.type.nbytes > COPIED_BYTES:
            self._in_parts(k, work, filter, image, given)
        elif not is_static(images):
            self._in_shares(k, work, filter, image, given)
        else:
            self._in_copies(k, work, filter, image, given, copies if k.is_large(work) else 0)

    def _in_copies(self, k: Loops, work: float, filter: Labelled, image: Labelled, given: Labelled, copies: int) -> None:
        """Add equal shares of the images to copies of the filter, and the remainder to the filter itself; the copies are added in order."""
        batch, share = image[1].type.shape[0], image[1].type.shape[0] // max(copies, 1)
        whole = copies * share
        own = k.private(given[1].type.with_shape(given[1].type.shape[1:]))

        def add(ws: Window, xs: Window, ds: Window, own: Window) -> None:
            self._add(k, (filter[0], ws), (image[0], xs), (given[0], ds), own)

        if copies:
            parts = k.scratch(filter[1].type.with_shape((copies, *filter[1].type.shape)))

            def one(part: Reg, parts: Window, xs: Window, ds: Window, own: Window) -> None:
                k.fill(parts.at(part), 0)
                add(parts.at(part), xs.at(part), ds.at(part), own)

            k.each(copies, work, one, parts, *(w.sliding(0, copies, share, share) for _, w in (image, given)), own)
            with k.loop(copies) as part:
                k.accumulate(filter[1], parts.at(part))
        if whole < batch:
            rest = (w.slice(0, whole, batch - whole) for _, w in (image, given))
            k.each(1, 0.0, lambda _, *windows: add(*windows), filter[1], *rest, own)

    def _in_shares(self, k: Loops, work: float, filter: Labelled, image: Labelled, given: Labelled) -> None:
        """The same for a number of images that is known only at run time: all shares but the last are equal, and every copy gets some."""
        batch = image[1].type.shape[0]
        share = -(-batch // COPIES)
        copies = k.scratch(filter[1].type.with_shape((COPIES, *filter[1].type.shape)))

        def one(part: Reg, copies: Window, xs: Window, ds: Window, own: Window) -> None:
            scalar = k.scalar
            each, first = scalar.const(I64, share), scalar.mul(part, scalar.const(I64, share))
            left = scalar.sub(scalar.const(I64, batch), first)
            k.fill(copies.at(part), 0)
            with k.loop(scalar.select(scalar.compare("lt", left, each), left, each)) as n:
                self._add_one(k, (filter[0], copies.at(part)), (image[0], xs), (given[0], ds), own, scalar.add(first, n))

        own = k.private(given[1].type.with_shape(given[1].type.shape[1:]))
        k.each(typed(int, minimum(batch, COPIES)), work, one, copies, image[1], given[1], own)
        used = k.scalar.idiv(k.scalar.const(I64, batch + share - 1), k.scalar.const(I64, share))
        with k.loop(used) as part:
            k.accumulate(filter[1], copies.at(part))

    def _in_parts(self, k: Loops, work: float, filter: Labelled, image: Labelled, given: Labelled) -> None:
        """Compute each block of the filter's channels from all images."""
        channels = filter[1].type.shape[filter[0].index("c")]
        width = channels // math.gcd(channels, BLOCKS)
        kept, ws = led_by("p", *in_blocks("p", *filter, width, filter[0].index("c")))
        seen, xs = led_by("p", *in_blocks("p", *image, width))

        def one(part: Reg, ws: Window, xs: Window, ds: Window, own: Window) -> None:
            self._add(k, (kept[1:], ws.at(part)), (seen[1:], xs.at(part)), (given[0], ds), own)

        k.each(channels // width, work, one, ws, xs, given[1], k.private(given[1].type.with_shape(given[1].type.shape[1:])))

    def _add(self, k: Loops, filter: Labelled, image: Labelled, given: Labelled, own: Window) -> None:
        """Add the contribution of these images; `own` is a buffer for the cotangent of one image, block by block."""
        with k.loop(image[1].type.shape[0]) as n:
            self._add_one(k, filter, image, given, own, n)

    def _add_one(self, k: Loops, filter: Labelled, image: Labelled, given: Labelled, own: Window, n: Reg) -> None:
        """Add the contribution of image number n."""
        ds = given[1].at(n)
        if "q" in given[0]:
            k.copy(own, ds)
            ds = own
        k.contract(f"{filter[0]},{image[0][1:]},{given[0][1:]}", filter[1], image[1].at(n), ds, accumulate=True)


def in_blocks(blocks: str, label: str, window: Window, width: int, axis: int = -1) -> Labelled:
    """Split an axis into blocks of this width; the axis of blocks gets the letter `blocks`."""
    axis %= len(label)
    return f"{label[:axis]}{blocks}{label[axis:]}", window.sliding(axis, window.type.shape[axis] // width, width, width)


def led_by(letters: str, label: str, window: Window) -> Labelled:
    """Move these axes to the front."""
    order = [*(label.index(letter) for letter in letters), *(axis for axis, letter in enumerate(label) if letter not in letters)]
    return "".join(label[axis] for axis in order), window.transposed(*order)


def packed(k: Loops, label: str, window: Window) -> Labelled:
    """A copy in the order in which a contraction reads it, block by block."""
    label, window = led_by("p" if "p" in label else "", label, window)
    copy = k.scratch(window.type)
    k.copy(copy, window)
    return label, copy


# ---- frontends


def per_axis(name: str, value: int | Sequence[int], rank: int) -> tuple[int, ...]:
    out = (int(value),) * rank if isinstance(value, int) else tuple(int(v) for v in value)
    if len(out) != rank:
        raise ShapeError(f"conv: {name} {value!r} for {rank} spatial axes; give one number, or one for each")
    return out


def same_padding(size: int, places: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """The padding before and after that gives ceil(size / stride) positions: an odd element goes after, as in TensorFlow."""
    span = (places - 1) * dilation + 1
    total = max((-(-size // stride) - 1) * stride + span - size, 0)
    return total // 2, total - total // 2


def paddings(padding: int | str | Sequence[Any], sizes: Shape, places: Shape, strides: Shape, dilations: Shape) -> list[tuple[int, int]]:
    """Padding before and after each spatial axis: from "valid", "same", "causal", a number, or given as numbers or pairs."""
    if isinstance(padding, str):
        kind = padding.lower()
        if kind == "valid":
            return [(0, 0)] * len(sizes)
        if kind == "same":
            return [same_padding(*each) for each in zip(sizes, places, strides, dilations)]
        if kind == "causal":
            return [((r - 1) * b, 0) for r, b in zip(places, dilations)]
        raise ShapeError(f"conv: padding is 'valid', 'same', 'causal' or a pair of numbers for each axis, not {padding!r}")
    given = [padding] * len(sizes) if isinstance(padding, int) else padding
    out = [(int(p), int(p)) if isinstance(p, int) else (int(p[0]), int(p[1])) for p in given]
    if len(out) != len(sizes):
        raise ShapeError(f"conv: padding {padding!r} for {len(sizes)} spatial axes; give one number, or one for each")
    return out


def spatial_rank(name: str, x: Operand, w: Operand) -> int:
    if x.ndim < 3 or w.ndim != x.ndim:
        raise ShapeError(f"{name}: images {x.type} and filters {w.type}: both have one or more spatial axes and two others")
    return x.ndim - 2


def conv(
    x: Operand, w: Operand, strides: int | Sequence[int] = 1, padding: int | str | Sequence[Any] = "valid",
    dilations: int | Sequence[int] = 1, groups: int = 1,
) -> Operand:  # fmt: skip
    """The convolution of images [batch, *sizes, channels] with filters [*sizes, channels / groups, features]."""
    rank = spatial_rank("conv", x, w)
    s, b = per_axis("strides", strides, rank), per_axis("dilations", dilations, rank)
    dtype = common_dtype(x, w)
    widths = paddings(padding, x.shape[1:-1], w.shape[:-2], s, b)
    padded = pad(cast(x, dtype), [0, *(p for p, _ in widths), 0], [0, *(p for _, p in widths), 0])
    return apply(Convolve(s, b, groups), padded, cast(w, dtype))


def conv_transpose(
    x: Operand, w: Operand, strides: int | Sequence[int] = 1, padding: int | str | Sequence[Any] = "valid",
    dilations: int | Sequence[int] = 1, groups: int = 1, output_padding: int | Sequence[int] | None = None,
) -> Operand:  # fmt: skip
    """The transpose of `conv` with filters [*sizes, features / groups, channels]: from the sizes of its results to those of its images.

    Images of several sizes have results of one size: "same" gives `stride` times the size, "valid" the largest, and `output_padding` is
    added to the smallest (Keras' conventions). Elements that no position reaches are 0.
    """
    rank = spatial_rank("conv_transpose", x, w)
    s, b = per_axis("strides", strides, rank), per_axis("dilations", dilations, rank)
    dtype = common_dtype(x, w)
    extra = (None,) * rank if output_padding is None else per_axis("output_padding", output_padding, rank)
    widths: Sequence[Any] = (padding,) * rank if isinstance(padding, str) else paddings(padding, x.shape[1:-1], w.shape[:-2], s, b)
    reach = tuple((n - 1) * t + (r - 1) * u + 1 for n, r, t, u in zip(x.shape[1:-1], w.shape[:-2], s, b))
    cuts = [transposed_cut(*each) for each in zip(x.shape[1:-1], s, reach, widths, extra)]
    whole = apply(ConvolveInput(s, b, groups, reach), cast(x, dtype), cast(w, dtype))
    whole = pad(whole, [0] * (rank + 2), [0, *(max(cut.stop - n, 0) for cut, n in zip(cuts, reach)), 0])
    return slice_(whole, [slice(None), *cuts])


def transposed_cut(size: int, stride: int, reach: int, padding: str | tuple[int, int], extra: int | None) -> slice:
    """The part of the elements reached by the positions that is the result."""
    if isinstance(padding, tuple):
        return slice(padding[0], reach - padding[1] + (extra or 0))
    if padding not in ("same", "valid"):
        raise ShapeError(f"conv_transpose: padding is 'valid', 'same' or a pair of numbers for each axis, not {padding!r}")
    if extra is not None:
        span = reach - (size - 1) * stride
        before = span // 2 if padding == "same" else 0
        return slice(before, before + reach - 2 * before + extra)
    wanted = size * stride if padding == "same" else max(reach, size * stride)
    before = max(reach - wanted, 0) // 2
    return slice(before, before + wanted)
