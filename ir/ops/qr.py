"""QR factorisation by Householder reflections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..records import NamedTuple
from ..types import I64, DType, TensorType
from .base import Array, Loops, Op, Reg, Window, Writing, apply, nest
from .join import concatenate
from .linalg import matmul, swap
from .lu import rounded
from .reduce import Sum
from .shape import slice_
from .triangle import cut, part, spread
from .triangular import SolveTriangular, lower

__all__ = ["qr"]

if TYPE_CHECKING:
    from ..operand import Operand


class Qr(Op):
    """Orthonormal columns `q` and an upper triangular `r` with `q @ r = a`, for matrices with at least as many rows m as columns n.

    The result contains the rows of `q`, then the columns of `r`: its shape is [m + n, n]. Signs are those of Householder reflections, as
    in LAPACK. Derivatives require linearly independent columns.
    """

    def infer(self, *types: TensorType) -> TensorType:
        (a,) = types
        if not a.is_float:
            raise DTypeError(f"qr: takes floats, not {a}")
        if a.rank < 2 or a.shape[-2] < a.shape[-1]:
            raise ShapeError(f"qr: takes matrices with at least as many rows as columns, not {a}")
        return a.with_shape((*a.shape[:-2], a.shape[-2] + a.shape[-1], a.shape[-1]))

    def evaluate(self, *arrays: Array) -> Array:
        q, r = np.linalg.qr(arrays[0])
        return np.concatenate([q, np.swapaxes(r, -1, -2)], -2)

    def python(self, write: Writing, *args: Operand) -> Any:
        qr = write.temporary("qr", write("np.linalg.qr({})", write.array(args[0])))
        return write("np.concatenate([{}.Q, np.swapaxes({}.R, -1, -2)], -2)", qr, qr)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        q, r = parts(y)
        x = swap(apply(SolveTriangular(upper=True, transposed=True), r, swap(d)))
        inside = matmul(swap(q), x)
        turn = lower(inside, -1) - swap(lower(inside, -1))
        dq = matmul(q, turn) + x - matmul(q, inside)
        return concatenate([dq, swap(matmul(inside - turn, r))], -2)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        q, r = parts(y)
        dq, dr = parts(d)
        mixed = matmul(r, swap(upper(dr))) - matmul(swap(dq), q)
        symmetric = lower(mixed) + swap(lower(mixed, -1))
        return swap(apply(SolveTriangular(upper=True), r, swap(dq + matmul(q, symmetric))))

    def widened(self, size: int) -> Qr:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 4.0 * types[0].size * min(types[0].shape[-2:]))

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        """Reflections triangularise the columns; applied in reverse to unit vectors, they then give the columns of `q`."""
        *batch, m, n = a.type.shape
        if not a.type.size:
            return
        emit, one = k.scalar, k.scalar.const(a.type.dtype, 1.0)
        work, reflections = k.scratch(TensorType(a.type.dtype, (m, n))), Reflections(k, m, n, a.type.dtype)
        with nest(k, batch) as at:
            q, r = out.at(*at).slice(0, 0, m), out.at(*at).slice(0, m, n)
            k.copy(work, a.at(*at))
            for panel in reflections.panels():
                reflections.triangularise(work, panel)
            k.copy(r, work.slice(0, 0, n).transposed(1, 0))
            with k.loop(n) as j, k.loop(emit.sub(emit.like(j, n - 1), j)) as i:
                k.store(r, emit.like(one, 0.0), j, emit.add(emit.add(i, j), emit.like(i, 1)))
            k.fill(q, 0.0)
            with k.loop(n) as j:
                k.store(q, one, j, j)
            for panel in reflections.panels(backwards=True):
                reflections.apply(q, panel, panel.start, transposed=False)


class Panel(NamedTuple):
    """A block of columns: its number and first column at run time, its columns, and at most how many rows are left, in whole vectors."""

    index: Reg
    start: Reg
    size: int
    length: int


class Reflections:
    """Reflections of blocks of columns: those of one block are the product I - V T Vᵀ, so that most of the work is matrix products.

    Each block is triangularised in a copy whose columns are contiguous and padded with zeros, so that the elements after a position known
    at run time are a window of fixed size. Row j of `mirrors` is column j of V, beginning at the first row of its block; `factors` are -T.
    """

    def __init__(self, k: Loops, m: int, n: int, dtype: DType) -> None:
        self.k, self.m, self.n = k, m, n
        self.width, self.count, self.last = cut(n)
        width, length, blocks = self.width, rounded(k, m, dtype), self.count + 1
        self.columns = k.scratch(TensorType(dtype, (width, length + width)))
        self.mirrors = k.scratch(TensorType(dtype, (blocks, width, length)))
        self.factors = k.scratch(TensorType(dtype, (blocks, width, width)))
        self.gram, self.scales = k.scratch(TensorType(dtype, (width, width))), k.scratch(TensorType(dtype, (width,)))
        self.rows, self.scaled = (k.scratch(TensorType(dtype, (width, n))) for _ in range(2))
        self.column, self.one = k.scratch(TensorType(dtype, (width, 1))), k.scratch(TensorType(dtype, (1,)))

    def panels(self, backwards: bool = False) -> Iterator[Panel]:
        """All blocks, in loops at run time: what follows a `yield` must be the body. Half of the blocks have half of the rows, at most."""
        k, emit, width = self.k, self.k.scalar, self.width
        half = self.count // 2
        groups = [(first, stop) for first, stop in ((0, half), (half, self.count)) if first < stop]
        if backwards:
            yield self.panel(emit.const(I64, self.count), self.last, self.count * width)
        for first, stop in reversed(groups) if backwards else groups:
            with k.loop(stop - first) as i:
                index = emit.sub(emit.like(i, stop - 1), i) if backwards else emit.add(i, emit.like(i, first))
                yield self.panel(index, width, first * width)
        if not backwards:
            yield self.panel(emit.const(I64, self.count), self.last, self.count * width)

    def panel(self, index: Reg, size: int, least: int) -> Panel:
        """A block that starts in column `least` or later."""
        start = self.k.scalar.mul(index, self.k.scalar.const(I64, self.width))
        return Panel(index, start, size, rounded(self.k, self.m - least, self.columns.type.dtype))

    def triangularise(self, work: Window, panel: Panel) -> None:
        """Reflect a block of columns of the matrix, and all columns after it."""
        k, emit = self.k, self.k.scalar
        _, start, size, length = panel
        columns, mirrors, factor = self.columns.slice(0, 0, size), *self.parts(panel)
        k.fill(columns.slice(1, 0, length + size), 0.0)
        with k.loop(emit.sub(emit.const(I64, self.m), start)) as i:
            source = part(work.at(emit.add(start, i)), start, size)
            k.copy(columns.transposed(1, 0).at(i), source)
        k.call(reflect_columns, columns, mirrors, self.scales, self.one, length=length)
        gram = self.gram.slice(0, 0, size).slice(1, 0, size)
        k.matmul(gram, mirrors, mirrors.transposed(1, 0), brief=True)
        k.call(combine, factor, gram, self.scales, self.column.slice(0, 0, size))
        with k.loop(size) as i:
            k.copy(part(work.at(emit.add(start, i)), start, size), columns.transposed(1, 0).at(i))
        if self.count:
            self.apply(work, panel, emit.add(start, emit.const(I64, size)), transposed=True)

    def apply(self, work: Window, panel: Panel, first: Reg, transposed: bool) -> None:
        """The reflections of a block, or their transposes, on its rows of a matrix, from column `first` on."""
        k, emit, (m, n) = self.k, self.k.scalar, work.type.shape
        mirrors, factor = self.parts(panel)
        rows, scaled = (w.slice(0, 0, panel.size) for w in (self.rows, self.scaled))
        factor = factor.transposed(1, 0) if transposed else factor
        if not self.count:  # all sizes are known
            mirrors = mirrors.slice(1, 0, m)
            k.matmul(rows, mirrors, work)
            k.matmul(scaled, factor, rows)
            k.matmul(work, mirrors.transposed(1, 0), scaled, accumulate=True)
            return
        right = part(part(work, panel.start, m).transposed(1, 0), first, n).transposed(1, 0)
        height, width = emit.sub(emit.const(I64, m), panel.start), emit.sub(emit.const(I64, n), first)
        across = part(mirrors.transposed(1, 0), emit.const(I64, 0), m)
        k.product(rows, across.transposed(1, 0), right, n=width, k=height)
        k.product(scaled, factor, rows, n=width)
        k.product(right, across, scaled, m=height, n=width, accumulate=True)

    def parts(self, panel: Panel) -> tuple[Window, Window]:
        """Vᵀ and -T of a block."""
        mirrors, factor = self.mirrors.at(panel.index).slice(0, 0, panel.size), self.factors.at(panel.index)
        return mirrors.slice(1, 0, panel.length), factor.slice(0, 0, panel.size).slice(1, 0, panel.size)


def reflect_columns(k: Loops, columns: Window, mirrors: Window, scales: Window, one: Window, length: int) -> None:
    """Triangularise a block, one column after the other."""
    emit, size = k.scalar, columns.type.shape[0]
    with k.loop(size) as j:
        column, mirror, after = columns.at(j), mirrors.at(j).slice(0, 0, length), emit.add(j, emit.like(j, 1))
        k.store(scales, find_mirror(k, column, mirror, one, j), j)
        with k.loop(emit.sub(emit.like(j, size - 1), j)) as i:
            other = columns.at(emit.add(after, i)).slice(0, 0, length)
            k.reduce(Sum((0,)), lambda emit, x, y: emit.mul(x, y), one, [mirror, other])
            first = emit.const(I64, 0)
            k.store(one, emit.mul(k.load(scales, j), k.load(one, first)), first)
            k.map(lambda emit, x, v, s: [emit.sub(x, emit.mul(v, s))], [other], [other, mirror, spread(k, one, length)])


def find_mirror(k: Loops, column: Window, mirror: Window, one: Window, j: Reg) -> Reg:
    """The reflection that zeroes column j below the diagonal: its direction, 1 at the diagonal, and its scale, which is returned."""
    emit, (length,), first = k.scalar, mirror.type.shape, k.scalar.const(I64, 0)
    alpha = k.load(column, j)
    none, unit = emit.like(alpha, 0.0), emit.like(alpha, 1.0)
    k.reduce(Sum((0,)), lambda emit, x: emit.mul(x, x), one, [part(column, emit.add(j, emit.like(j, 1)), length)])
    tail = k.load(one, first)
    done = emit.compare("eq", tail, none)
    beta = emit.neg(emit.copysign(emit.sqrt(emit.add(emit.mul(alpha, alpha), tail)), alpha))
    k.store(one, emit.select(done, unit, emit.sub(alpha, beta)), first)
    k.map(lambda emit, x, d: [emit.fdiv(x, d)], [mirror], [column.slice(0, 0, length), spread(k, one, length)])
    with k.loop(j) as i:
        k.store(mirror, none, i)
    k.store(mirror, unit, j)
    k.store(column, emit.select(done, alpha, beta), j)
    return emit.select(done, none, emit.fdiv(emit.sub(beta, alpha), beta))


def combine(k: Loops, factor: Window, gram: Window, scales: Window, column: Window) -> None:
    """-T of a block, given Vᵀ V: column by column, the earlier ones times the products of this mirror with the earlier mirrors."""
    emit, size, first = k.scalar, factor.type.shape[0], k.scalar.const(I64, 0)
    k.fill(factor, 0.0)
    with k.loop(size) as j:
        scale = k.load(scales, j)
        k.matmul(column, factor, gram.at(j).sliding(0, size, 1, 1))
        with k.loop(size) as i:
            k.store(factor, emit.neg(emit.mul(scale, k.load(column, i, first))), i, j)
        k.store(factor, emit.neg(scale), j, j)


def parts(packed: Operand) -> tuple[Operand, Operand]:
    """q and r from the result of `Qr`."""
    n = packed.shape[-1]
    m = packed.shape[-2] - n
    head = [slice(None)] * (packed.ndim - 2)
    return slice_(packed, [*head, slice(0, m)]), swap(slice_(packed, [*head, slice(m, m + n)]))


def upper(x: Operand) -> Operand:
    return swap(lower(swap(x)))


def qr(a: Operand) -> tuple[Operand, Operand]:
    """q with orthonormal columns and a triangular r with `q @ r = a`; for a wide matrix, r is as wide."""
    m, n = a.type.shape[-2:] if a.ndim > 1 else (0, 0)
    if m >= n:
        return parts(apply(Qr(), a))
    head = [slice(None)] * (a.ndim - 1)
    q, r = qr(slice_(a, [*head, slice(0, m)]))
    return q, concatenate([r, matmul(swap(q), slice_(a, [*head, slice(m, n)]))], -1)
