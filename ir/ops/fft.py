"""The discrete Fourier transform along an axis, of any length.

`Fft` is what users and derivatives see: complex numbers, any length. `passes.complex` replaces it by `FftParts`, which transforms lengths
without large prime factors, of arrays whose last axis holds the parts of complex numbers: one for a short axis, two with factors between
for a long one (the four-step algorithm), and two transforms of a larger power of two for other lengths (Bluestein's algorithm).

Native code uses Stockham's algorithm: a pass for each factor of the length, from one buffer to another, with results in natural order. It
transforms as many columns at a time as a few vectors hold, so that every pass works on whole vectors; columns are other axes of the array.
In two steps, the passes of a step work on so few numbers that they stay in the first cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..records import NamedTuple
from ..types import I64, DType, TensorType, complex_dtype, normalize_axis
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, apply, nest, with_attributes
from .butterflies import dft, mul
from .maps import cast

if TYPE_CHECKING:
    from ..operand import Operand

RADICES = (8, 4, 2, 3, 5, 7, 11, 13)
FEW = 8  # columns: with fewer, vectors would be filled badly


@with_attributes
class Fft(Op):
    """y[j] = scale * sum x[k] exp(-2πi jk/n) along an axis; with `inverse`, exp(2πi jk/n). It is its own transpose."""

    axis: int
    inverse: bool = False
    scale: float = 1.0

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if not x.is_complex:
            raise DTypeError(f"fft: takes complex numbers, not {x}")
        if not x.shape or not x.shape[normalize_axis(self.axis, x.rank, "fft")]:
            raise ShapeError(f"fft: axis {self.axis} of {x} is empty")
        return x

    def evaluate(self, *arrays: Array) -> Array:
        x = arrays[0]
        out = np.fft.ifft(x, axis=self.axis, norm="forward") if self.inverse else np.fft.fft(x, axis=self.axis)
        return np.asarray(out if self.scale == 1.0 else out * self.scale).astype(x.dtype, copy=False)

    def python(self, write: Writing, *args: Operand) -> Any:
        return self.written(write, write.array(args[0]))

    def written(self, write: Writing, x: Any) -> Any:
        call = 'np.fft.ifft({}, axis={}, norm="forward")' if self.inverse else "np.fft.fft({}, axis={})"
        scaled = "" if self.scale == 1.0 else f" * {self.scale!r}"
        return write(f"{call}{scaled}", x, write.value(self.axis))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)

    def conjugated(self) -> Fft:
        return replace(self, inverse=not self.inverse)

    def widened(self, size: int) -> Fft:
        return replace(self, axis=self.axis + 1)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, work(types[0].size, types[0].shape[self.axis]))


def work(size: int, n: int) -> float:
    return 5.0 * size * max(1.0, math.log2(n or 1))


@with_attributes
class FftParts(Op):
    """`Fft` of complex numbers whose parts are along the last axis: args x and the roots of unity of its passes (`roots(n)`).

    In two steps, for n = a * b: args x, the roots of a, those of b, and factors [2, a, b], the roots of unity of n. Inserted by
    `passes.complex`.
    """

    axis: int
    inverse: bool = False
    scale: float = 1.0
    differentiable: ClassVar[bool] = False
    unread: ClassVar[tuple[int, ...]] = (1, 2, 3)  # tables
    in_place: ClassVar[int | None] = 0  # columns are read before their results are written

    def infer(self, *types: TensorType) -> TensorType:
        x, *tables = types
        n = x.shape[self.axis] if x.rank > 1 and 0 <= self.axis < x.rank - 1 else 0
        sizes = self._sizes(*types) if n else ()
        wanted = [x.with_shape((2, count_of_roots(size))) for size in sizes if size]
        wanted += [x.with_shape((2, *sizes))] * (len(tables) == 3)
        if not x.is_float or not n or x.shape[-1] != 2 or math.prod(sizes) != n or tables != wanted:
            raise ShapeError(f"fft_parts: {x} along axis {self.axis}, with tables {', '.join(map(str, tables))}")
        return x

    def _sizes(self, *types: TensorType) -> tuple[int, ...]:
        """The lengths that are transformed at once: that of the axis, or its two factors."""
        x, *tables = types
        return (x.shape[self.axis],) if len(tables) == 1 else tables[-1].shape[1:] if len(tables) == 3 else ()

    def tables(self, *types: TensorType) -> Mapping[int, Array]:
        return dict(enumerate(tables_of(self._sizes(*types), types[0].dtype), start=1))

    def evaluate(self, *arrays: Array) -> Array:
        x = arrays[0]
        z = (x[..., 0] + 1j * x[..., 1]).astype(np.result_type(x.dtype, np.complex64))
        out = Fft(self.axis, self.inverse, self.scale).evaluate(z)
        return np.stack([out.real, out.imag], -1)

    def python(self, write: Writing, *args: Operand) -> Any:
        x = write.atom(args[0])
        z = write("{}[..., 0] + 1j * {}[..., 1]", x, x)
        out = write.temporary("z", Fft(self.axis, self.inverse, self.scale).written(write, z))
        return write("np.stack([{}.real, {}.imag], -1)", out, out)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, self.work(types[0]))

    def work(self, x: TensorType) -> float:
        return work(x.size // 2, x.shape[self.axis])

    def lower(self, k: Loops, out: Window, x: Window, *tables: Window) -> None:
        if x.type.size:
            total = self.work(x.type)
            columns = math.prod(x.type.shape[self.axis + 1 : -1])  # whose numbers are neighbours
            steps = Direct if len(tables) == 1 else TwoSteps if columns < FEW else TwoStepsOfColumns
            steps(k, self, total, self.in_columns(out), self.in_columns(x), *tables).emit()

    def in_columns(self, w: Window) -> Window:
        """The window with the axes [..., columns, n, 2]; columns are the last of the other axes that has several elements."""
        others = [a for a in range(w.type.rank - 1) if a != self.axis]
        long = [a for a in others if w.type.shape[a] > 1] or others[-1:]
        if not long:  # a single column
            return w.sliding(0, 1, 0, w.type.shape[0])
        return w.transposed(*(a for a in others if a != long[-1]), long[-1], self.axis, w.type.rank - 1)


class ColumnTransforms:
    """Transforms of all columns of windows [columns, n, 2], as many at a time as fill a few vectors."""

    def __init__(self, k: Loops, inverse: bool, scale: float, columns: int, n: int, dtype: DType) -> None:
        self.k, self.inverse, self.scale, self.columns, self.n = k, inverse, scale, columns, n
        self.width = min(columns, k.tile_width(dtype))
        self.memory = k.private(TensorType(dtype, (6, n, self.width)))

    def emit(self, work: float, out: Window, x: Window, memory: Window, table: Window, *factors: Window) -> None:
        """`work`: the operations in all, if threads may share them; `factors` [2, n, columns] multiply the results."""
        k, width, count = self.k, self.width, self.columns // self.width
        cut = [w.sliding(0, count, width, width) for w in (out, x, *(f.transposed(2, 0, 1) for f in factors))]

        def one(i: Reg, memory: Window, table: Window, *windows: Window) -> None:
            o, w, *f = (v.at(i) for v in windows)
            ColumnBlock(self, o, w, memory, table, [v.transposed(1, 2, 0) for v in f]).transform()

        k.each(count, work, one, memory, table, *cut)
        rest = self.columns % width
        if rest:
            o, w = (v.slice(0, count * width, rest) for v in (out, x))
            here = memory.at(k.scalar.const(I64, 0)) if memory is self.memory else memory
            ColumnBlock(self, o, w, here.slice(2, 0, rest), table, [f.slice(2, count * width, rest) for f in factors]).transform()


class Direct:
    """One transform for each column, other axes in loops around them."""

    def __init__(self, k: Loops, op: FftParts, work: float, out: Window, x: Window, table: Window) -> None:
        self.k, self.work, self.out, self.x, self.table = k, work, out, x, table
        *self.rest, columns, n, _ = x.type.shape
        self.columns = ColumnTransforms(k, op.inverse, op.scale, columns, n, x.type.dtype)

    def emit(self) -> None:
        memory = self.columns.memory
        if not self.rest:
            self.columns.emit(self.work, self.out, self.x, memory, self.table)
            return

        def each(i: Reg, o: Window, w: Window, memory: Window, table: Window) -> None:
            with nest(self.k, self.rest[1:]) as index:
                self.columns.emit(0.0, o.at(i, *index), w.at(i, *index), memory, table)

        self.k.each(self.rest[0], self.work, each, self.out, self.x, memory, self.table)


class TwoSteps:
    """Each column as a matrix [a, b]: its columns are transformed and multiplied by factors, then its rows."""

    def __init__(self, k: Loops, op: FftParts, work: float, out: Window, x: Window, first: Window, second: Window, factors: Window) -> None:
        self.k, self.work, self.out, self.x, self.tables = k, work, out, x, (first, second, factors)
        _, self.a, self.b = factors.type.shape
        dtype = x.type.dtype
        self.rows = x.type.shape[:-2]
        self.shared = math.prod(self.rows) == 1
        self.columns = (
            ColumnTransforms(k, op.inverse, 1.0, self.b, self.a, dtype),
            ColumnTransforms(k, op.inverse, op.scale, self.a, self.b, dtype),
        )
        between = TensorType(dtype, (2, self.a, self.b))
        self.between = k.scratch(between) if self.shared else k.private(between)

    def emit(self) -> None:
        k = self.k
        first, second = (c.memory for c in self.columns)
        if self.shared:
            zero = [k.scalar.const(I64, 0)] * len(self.rows)
            self.one(self.work, self.out.at(*zero), self.x.at(*zero), self.between, first, second, *self.tables)
            return

        def each(i: Reg, o: Window, w: Window, *windows: Window) -> None:
            with nest(k, self.rows[1:]) as index:
                self.one(0.0, o.at(i, *index), w.at(i, *index), *windows)

        k.each(self.rows[0], self.work, each, self.out, self.x, self.between, first, second, *self.tables)

    def one(self, work: float, out: Window, x: Window, between: Window, *windows: Window) -> None:
        memory, other, first, second, factors = windows
        matrix = x.sliding(0, self.a, self.b, self.b).transposed(1, 0, 2)
        self.columns[0].emit(work, between.transposed(2, 1, 0), matrix, memory, first, factors)
        self.columns[1].emit(work, out.sliding(0, self.b, self.a, self.a).transposed(1, 0, 2), between.transposed(1, 2, 0), other, second)


class TwoStepsOfColumns:
    """As many columns at a time as fill a few vectors, as matrices [a, b]: the passes of each step stay in the first cache.

    What is between the steps stays in the second one, which all passes of `Direct` would go through.
    """

    def __init__(self, k: Loops, op: FftParts, work: float, out: Window, x: Window, *tables: Window) -> None:
        self.k, self.work, self.out, self.x, self.tables = k, work, out, x, tables
        *self.rest, self.columns, _, _ = x.type.shape
        _, self.a, self.b = tables[-1].type.shape
        dtype = x.type.dtype
        self.width = min(self.columns, k.tile_width(dtype))
        self.steps = [ColumnTransforms(k, op.inverse, scale, self.width, n, dtype) for scale, n in ((1.0, self.a), (op.scale, self.b))]
        self.private = k.private(TensorType(dtype, (2, self.a, self.b, self.width))), *(step.memory for step in self.steps)

    def emit(self) -> None:
        if not self.rest:
            self.blocks(self.work, self.out, self.x, *self.private, *self.tables)
            return

        def each(i: Reg, o: Window, w: Window, *windows: Window) -> None:
            with nest(self.k, self.rest[1:]) as index:
                self.blocks(0.0, o.at(i, *index), w.at(i, *index), *windows)

        self.k.each(self.rest[0], self.work, each, self.out, self.x, *self.private, *self.tables)

    def blocks(self, work: float, out: Window, x: Window, *windows: Window) -> None:
        """All columns of [columns, n, 2]."""
        k, width, count = self.k, self.width, self.columns // self.width

        def one(i: Reg, o: Window, w: Window, *windows: Window) -> None:
            self.block(o.at(i), w.at(i), *windows)

        k.each(count, work, one, *(w.sliding(0, count, width, width) for w in (out, x)), *windows)
        rest = self.columns % width
        if rest:
            *private, first, second, factors = windows
            between, *memory = (w.at(k.scalar.const(I64, 0)) if w in self.private else w for w in private)
            o, w = (v.slice(0, count * width, rest) for v in (out, x))
            self.block(o, w, between.slice(3, 0, rest), *(m.slice(2, 0, rest) for m in memory), first, second, factors)

    def block(self, out: Window, x: Window, between: Window, *windows: Window) -> None:
        """A few columns. Element (i, j) of a matrix is element i * b + j of its column, and j * a + i of the result."""
        memory, other, first, second, factors = windows
        k, a, b, width = self.k, self.a, self.b, x.type.shape[0]
        with k.loop(b) as j:
            column, result = x.sliding(1, b, 1, a, b).transposed(1, 0, 2, 3).at(j), between.transposed(2, 3, 1, 0).at(j)
            factor = factors.transposed(2, 0, 1).at(j).sliding(1, a, 1, width, 0)
            ColumnBlock(self.steps[0], result, column, memory, first, [factor]).transform()
        with k.loop(a) as i:
            row, result = between.transposed(1, 3, 2, 0).at(i), out.sliding(1, a, 1, b, a).transposed(1, 0, 2, 3).at(i)
            ColumnBlock(self.steps[1], result, row, other, second, []).transform()


class ColumnBlock:
    """The transform of a few columns, in six buffers [n, columns]: two pairs for the passes, one pair around them."""

    def __init__(self, of: ColumnTransforms, out: Window, x: Window, memory: Window, table: Window, factors: Sequence[Window]) -> None:
        self.k, self.of, self.out, self.x, self.table, self.factors = of.k, of, out, x, table, factors
        self.width, self.n, _ = x.type.shape
        planes = [memory.at(self.k.scalar.const(I64, i)) for i in range(6)]
        self.pairs = [planes[0:2], planes[2:4]]
        self.around = memory.slice(0, 4, 2).transposed(1, 0, 2)  # [n, 2, columns]

    def transform(self) -> None:
        stages = passes(self.n)
        current = self.loaded()
        for i, stage in enumerate(stages):
            is_last = i == len(stages) - 1
            target = self.target() if is_last else self.pairs[i % 2]
            self.stage(stage, target, current, is_last)
            current = target
        self.stored()

    def parts(self, numbers: Window) -> list[Window]:
        """The real and imaginary parts of [n, 2, columns]; exchanged for the inverse, which is the transform of exchanged numbers."""
        parts = [self.picked(numbers.transposed(1, 0, 2), i) for i in (0, 1)]
        return parts[::-1] if self.of.inverse else parts

    def picked(self, w: Window, i: int) -> Window:
        return w.at(self.k.scalar.const(I64, i))

    def runs_down(self, w: Window) -> bool:
        """Whether the numbers of a column, rather than those of a row, are neighbours in memory."""
        return w.strides[1:] == (2, 1) and w.strides[0] != 2 and self.width > 1

    def loaded(self) -> list[Window]:
        x = self.x.transposed(1, 2, 0)
        if self.runs_down(self.x):
            self.turn(self.around, x, rows=0)
        elif self.x.strides[1] == 1 and self.width > 1:  # the parts are planes
            for i in (0, 1):
                self.turn_plane(self.picked(self.around.transposed(1, 0, 2), i), self.picked(x.transposed(1, 0, 2), i))
        else:
            return self.parts(x)
        return self.parts(self.around)

    def target(self) -> list[Window]:
        is_apart = self.runs_down(self.out) or self.out.strides[0] == 2
        return self.parts(self.around if is_apart else self.out.transposed(1, 2, 0))

    def stored(self) -> None:
        if self.runs_down(self.out):
            self.turn(self.out, self.around.transposed(2, 0, 1), rows=1)
        elif self.out.strides[0] == 2:
            self.k.interleave(self.out.transposed(1, 0, 2), *(self.picked(self.around.transposed(1, 0, 2), i) for i in (0, 1)))

    def turn(self, target: Window, source: Window, rows: int) -> None:
        """Copy [n, 2, columns] (rows: 0) or [columns, n, 2] (rows: 1), by squares that are transposed in registers."""
        k, side = self.k, self.k.lanes(target.type.dtype)
        half = side // 2
        if not half or self.width % side or self.n < half:
            k.copy(target, source)
            return
        count, across = self.n // half, self.width // side

        def cut(w: Window) -> Window:
            """[tiles of rows, tiles of columns, a tile]."""
            if rows == 0:
                return w.sliding(0, count, half, half).sliding(3, across, side, side).transposed(0, 3, 1, 2, 4)
            return w.sliding(1, count, half, half).sliding(0, across, side, side).transposed(2, 0, 1, 3, 4)

        tiles = cut(target), cut(source)
        with k.loop(count) as i, k.loop(across) as j:
            k.copy(tiles[0].at(i, j), tiles[1].at(i, j))
        if self.n % half:
            k.copy(*(w.slice(rows, count * half, self.n % half) for w in (target, source)))

    def turn_plane(self, target: Window, source: Window) -> None:
        """Copy [n, columns] from a plane whose columns are contiguous."""
        k, side = self.k, self.k.lanes(target.type.dtype)
        if self.width % side or self.n < side:
            k.copy(target, source)
            return
        count, across = self.n // side, self.width // side
        tiles = [w.sliding(0, count, side, side).sliding(2, across, side, side).transposed(0, 2, 1, 3) for w in (target, source)]
        with k.loop(count) as i, k.loop(across) as j:
            k.copy(tiles[0].at(i, j), tiles[1].at(i, j))
        if self.n % side:
            k.copy(*(w.slice(0, count * side, self.n % side) for w in (target, source)))

    def stage(self, stage: TransformPass, target: Sequence[Window], source: Sequence[Window], is_last: bool) -> None:
        r, m, s, at = stage
        index = [self.k.scalar.const(I64, j) for j in range(r)]
        sources = [w.sliding(0, r, m * s, m * s).sliding(1, m, s, s) for w in source]
        targets = [w.sliding(0, m, r * s, r * s).sliding(1, r, s, s).transposed(1, 0, 2, 3) for w in target]
        given = [w.at(j) for w in sources for j in index]
        if m > 1:
            given += [self.roots(part, at + (j - 1) * m, m, s) for part in (0, 1) for j in range(1, r)]
        factored = is_last and bool(self.factors)
        if factored:  # the rows of the results are those of the factors: m is 1
            tables = [self.picked(self.factors[0], part).sliding(0, 1, 0, self.n) for part in (0, 1)]
            given += [w.sliding(1, r, s, s).transposed(1, 0, 2, 3).at(j) for w in tables for j in index]
        scale = self.of.scale if is_last else 1.0

        def butterfly(emit: Emitter, *xs: Reg) -> list[Reg]:
            parts = iter(xs)
            numbers, factors = taken(parts, r), taken(parts, r - 1) if m > 1 else []
            out = dft(emit, numbers)
            if m > 1:
                out = [out[0], *(mul(emit, y, w) for y, w in zip(out[1:], factors, strict=True))]
            if factored:
                out = [mul(emit, y, w) for y, w in zip(out, taken(parts, r), strict=True)]
            if scale != 1.0:
                out = [(emit.mul(a, emit.like(a, scale)), emit.mul(b, emit.like(b, scale))) for a, b in out]
            return [y[part] for part in (0, 1) for y in out]

        self.k.map(butterfly, [w.at(j) for w in targets for j in index], given)

    def roots(self, part: int, start: int, m: int, s: int) -> Window:
        """Roots of unity, one for each of m rows, broadcast over the rest of [m, s, columns]."""
        return self.picked(self.table, part).slice(0, start, m).sliding(0, m, 1, s, 0).sliding(1, s, 0, self.width, 0)


def taken(parts: Iterator[Reg], count: int) -> list[tuple[Reg, Reg]]:
    """The next complex numbers of a list with all real parts first."""
    re = [next(parts) for _ in range(count)]
    return list(zip(re, [next(parts) for _ in range(count)], strict=True))


# ---- passes and their roots of unity


class TransformPass(NamedTuple):
    """A pass: x[r, m, s] to y[m, r, s], with roots of unity of r * m from `at` on in the table."""

    r: int
    m: int
    s: int
    at: int


@lru_cache(maxsize=256)
def passes(n: int) -> tuple[TransformPass, ...]:
    """The passes of a transform of n, the larger factors first."""
    out, s, at = [], 1, 0
    for r in factors_of(n):
        m = n // (r * s)
        out.append(TransformPass(r, m, s, at))
        at += (r - 1) * m if m > 1 else 0
        s *= r
    return tuple(out)


def factors_of(n: int) -> list[int]:
    """Factors for which there are butterflies, and what is left. A power of two is cut into 8s, with 4s for the rest."""
    out: list[int] = []
    twos = (n & -n).bit_length() - 1
    n >>= twos
    if twos == 1:
        out.append(2)
    elif twos:
        out += {0: [], 1: [4, 4], 2: [4]}[twos % 3] + [8] * (twos // 3 - (twos % 3 == 1))
    for r in RADICES[3:]:
        while n % r == 0:
            out.append(r)
            n //= r
    return sorted(out, reverse=True) + ([n] if n > 1 or not out else [])


def is_smooth(n: int) -> bool:
    return all(r in (1, *RADICES) for r in factors_of(n))


def count_of_roots(n: int) -> int:
    return max(1, sum((stage.r - 1) * stage.m for stage in passes(n) if stage.m > 1))


@lru_cache(maxsize=64)
def roots(n: int) -> Array:
    """The table [2, count] of the passes of n."""
    found = [unit_root(np.outer(np.arange(1, r), np.arange(m)).ravel(), r * m) for r, m, _, _ in passes(n) if m > 1]
    z = np.concatenate(found) if found else np.ones(1, complex)
    return np.stack([z.real, z.imag])


@lru_cache(maxsize=4)
def tables_of(sizes: tuple[int, ...], dtype: DType) -> tuple[Array, ...]:
    """The tables that `FftParts` reads besides its operand, to transform an axis at once or as a matrix of these sizes."""
    tables = [roots(n) for n in sizes]
    if len(sizes) > 1:
        z = unit_root(np.outer(*map(np.arange, sizes)), math.prod(sizes))
        tables.append(np.stack([z.real, z.imag]))
    return tuple(table.astype(dtype) for table in tables)


def unit_root(k: Array, n: int) -> Array:
    """exp(-2πi k/n), rounded to within an ULP: angles are reduced to an eighth of the circle, in integers."""
    k = np.asarray(k, np.int64) % n
    octant, rest = np.divmod(8 * k, n)
    mirrored = octant % 2 == 1
    angle = np.where(mirrored, n - rest, rest) * (math.pi / (4 * n))
    c, s = np.cos(angle), np.sin(angle)
    c, s = np.where(mirrored, s, c), np.where(mirrored, c, s)  # within a quarter
    quarter = octant // 2
    re = np.choose(quarter, [c, -s, -c, s])
    im = np.choose(quarter, [s, c, -s, -c])
    return np.asarray(re - 1j * im)


def fft(x: Operand, axis: int = -1, inverse: bool = False, scale: float = 1.0) -> Operand:
    """The discrete Fourier transform along an axis; real numbers become complex ones of their precision."""
    z = cast(x, complex_dtype(x.type.dtype))
    return apply(Fft(normalize_axis(axis, len(z.type.shape), "fft"), inverse, scale), z)
