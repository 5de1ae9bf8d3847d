"""Jacobi's rotations of complex rows, as native code: eigenvalues and singular values of complex matrices where there is no LAPACK.

A phase makes the element that a rotation removes real; then both parts are rotated as real rows are.
"""

from __future__ import annotations

import numpy as np

from ..records import NamedTuple
from ..types import I64, DType, TensorType
from .base import Emitter, Loops, Reg, Window, nest
from .jacobi import Rotation, normalise, pairs, rank, sweeps, unit
from .reduce import Sum
from .triangle import spread


class ComplexWindows(NamedTuple):
    """Windows of the real and imaginary parts."""

    re: Window
    im: Window

    def at(self, *index: Reg) -> ComplexWindows:
        return ComplexWindows(self.re.at(*index), self.im.at(*index))

    def transposed(self, *axes: int) -> ComplexWindows:
        return ComplexWindows(self.re.transposed(*axes), self.im.transposed(*axes))


class Turning:
    """Rotations of pairs of complex rows, and the phases before them."""

    def __init__(self, k: Loops, dtype: DType) -> None:
        self.k, self.rotation = k, Rotation(k, dtype)
        self.re, self.im, self.sums = (k.scratch(TensorType(dtype, (1,))) for _ in range(3))
        self.zero = k.scalar.const(I64, 0)

    def choose(self, app: Reg, aqq: Reg, re: Reg, im: Reg) -> None:
        """The phase of row q that makes the element re + i im real, and the rotation that then makes it zero."""
        emit = self.k.scalar
        size = emit.sqrt(emit.add(emit.mul(re, re), emit.mul(im, im)))
        none = emit.compare("eq", size, emit.like(size, 0.0))
        safe = emit.select(none, emit.like(size, 1.0), size)
        self.k.store(self.re, emit.select(none, emit.like(size, 1.0), emit.fdiv(re, safe)), self.zero)
        self.k.store(self.im, emit.select(none, emit.like(size, 0.0), emit.neg(emit.fdiv(im, safe))), self.zero)
        self.rotation.choose(app, aqq, size)

    def turn(self, p: ComplexWindows, q: ComplexWindows, conjugated: bool = False) -> None:
        """Multiply row q by the phase, or its conjugate, and rotate."""
        (size,) = q.re.type.shape

        def spun(emit: Emitter, x: Reg, y: Reg, a: Reg, b: Reg) -> list[Reg]:
            b = emit.neg(b) if conjugated else b
            return [emit.sub(emit.mul(x, a), emit.mul(y, b)), emit.add(emit.mul(x, b), emit.mul(y, a))]

        self.k.map(spun, [*q], [*q, spread(self.k, self.re, size), spread(self.k, self.im, size)])
        self.rotation.turn(p.re, q.re)
        self.rotation.turn(p.im, q.im)

    def real_product(self, x: Window, y: Window) -> Reg:
        self.k.reduce(Sum((0,)), lambda emit, x, y: emit.mul(x, y), self.sums, [x, y])
        return self.k.load(self.sums, self.zero)

    def product(self, x: ComplexWindows, y: ComplexWindows) -> tuple[Reg, Reg]:
        """The parts of the sum of conj(x) y."""
        emit = self.k.scalar
        re = emit.add(self.real_product(x.re, y.re), self.real_product(x.im, y.im))
        return re, emit.sub(self.real_product(x.re, y.im), self.real_product(x.im, y.re))

    def square(self, x: ComplexWindows) -> Reg:
        return self.k.scalar.add(self.real_product(x.re, x.re), self.real_product(x.im, x.im))


def scratch(k: Loops, dtype: DType, *shape: int) -> ComplexWindows:
    return ComplexWindows(*(k.scratch(TensorType(dtype, shape)) for _ in range(2)))


def unit_vectors(k: Loops, dtype: DType, n: int) -> ComplexWindows:
    out = scratch(k, dtype, n, n)
    unit(k, out.re)
    k.fill(out.im, 0.0)
    return out


def hermitian_by_rotations(k: Loops, out: Window, re: Window, im: Window) -> None:
    """The result of `HermitianEigh` for one matrix."""
    emit, n, dtype = k.scalar, re.type.shape[0], re.type.dtype
    matrix, turning, zero = scratch(k, dtype, n, n), Turning(k, dtype), k.scalar.const(I64, 0)
    vectors = unit_vectors(k, dtype, n)
    with nest(k, (n, n)) as (i, j):
        inside = emit.compare("ge", i, j)
        row, column = emit.select(inside, i, j), emit.select(inside, j, i)
        k.store(matrix.re, k.load(re, row, column), i, j)
        part = k.load(im, row, column)
        part = emit.select(inside, part, emit.neg(part))
        k.store(matrix.im, emit.select(emit.compare("eq", i, j), emit.like(part, 0.0), part), i, j)
    columns = matrix.transposed(1, 0)
    with k.loop(sweeps(n)), pairs(k, n) as (p, q):
        turning.choose(k.load(matrix.re, p, p), k.load(matrix.re, q, q), k.load(matrix.re, p, q), k.load(matrix.im, p, q))
        turning.turn(matrix.at(p), matrix.at(q), conjugated=True)
        turning.turn(columns.at(p), columns.at(q))
        turning.turn(vectors.at(p), vectors.at(q))
    values = k.scratch(TensorType(dtype, (n,)))
    with k.loop(n) as i:
        k.store(values, k.load(matrix.re, i, i), i)
    with k.loop(n) as i:
        place = rank(k, values, i, descending=False)
        k.store(out.slice(0, 0, 1).at(zero), k.load(values, i), place)
        k.copy(out.slice(0, 1, n).at(place), vectors.re.at(i))
        k.copy(out.slice(0, 1 + n, n).at(place), vectors.im.at(i))


def unitary_by_rotations(k: Loops, out: Window, re: Window, im: Window) -> None:
    """The result of `ComplexSvd` for one matrix: rotations make its columns orthogonal."""
    emit, (m, n), dtype = k.scalar, re.type.shape, re.type.dtype
    columns, turning, zero = scratch(k, dtype, n, m), Turning(k, dtype), k.scalar.const(I64, 0)
    vectors, values = unit_vectors(k, dtype, n), k.scratch(TensorType(dtype, (n,)))
    k.copy(columns.re, re.transposed(1, 0))
    k.copy(columns.im, im.transposed(1, 0))
    with k.loop(sweeps(n)), pairs(k, n) as (p, q):
        x, y = columns.at(p), columns.at(q)
        turning.choose(turning.square(x), turning.square(y), *turning.product(x, y))
        turning.turn(x, y)
        turning.turn(vectors.at(p), vectors.at(q))
    with k.loop(n) as i:
        k.store(values, emit.sqrt(turning.square(columns.at(i))), i)
    small = emit.mul(emit.sqrt(turning.real_product(values, values)), emit.const(dtype, float(np.finfo(dtype).eps)))
    with k.loop(n) as i:
        for part in columns:
            normalise(k, part.at(i), k.load(values, i), small)
    complete(k, columns, turning)
    left = out.slice(0, 2 * n + 1, 2 * m).transposed(1, 0)
    with k.loop(n) as i:
        place = rank(k, values, i, descending=True)
        k.store(out.slice(0, 2 * n, 1).at(zero), k.load(values, i), place)
        k.copy(out.slice(0, 0, n).at(place), vectors.re.at(i))
        k.map(lambda emit, x: [emit.neg(x)], [out.slice(0, n, n).at(place)], [vectors.im.at(i)])
        k.copy(left.at(place).slice(0, 0, m), columns.re.at(i))
        k.copy(left.at(place).slice(0, m, m), columns.im.at(i))


def complete(k: Loops, rows: ComplexWindows, turning: Turning) -> None:
    """Replace rows that are zero by others, orthonormal to all: the unit vector that the rows cover least, made orthogonal twice."""
    emit, (n, m), dtype, zero = k.scalar, rows.re.type.shape, rows.re.type.dtype, turning.zero
    best, place = k.scratch(TensorType(dtype, (1,))), k.scratch(TensorType(I64, (1,)))
    new, factor, across = scratch(k, dtype, m), scratch(k, dtype, 1), rows.transposed(1, 0)

    def reduced(emit: Emitter, x: Reg, y: Reg, a: Reg, b: Reg, c: Reg, s: Reg) -> list[Reg]:
        return [emit.sub(x, emit.sub(emit.mul(a, c), emit.mul(b, s))), emit.sub(y, emit.add(emit.mul(a, s), emit.mul(b, c)))]

    with k.loop(n) as i:
        missing = emit.compare("eq", turning.square(rows.at(i)), emit.const(dtype, 0.0))
        k.store(best, emit.const(dtype, 2.0), zero)
        k.store(place, zero, zero)
        with k.loop(m) as j:
            covered = turning.square(across.at(j))
            less = emit.compare("lt", covered, k.load(best, zero))
            k.store(best, emit.select(less, covered, k.load(best, zero)), zero)
            k.store(place, emit.select(less, j, k.load(place, zero)), zero)
        with k.loop(m) as j:
            chosen = emit.compare("eq", j, k.load(place, zero))
            k.store(new.re, emit.select(chosen, emit.const(dtype, 1.0), emit.const(dtype, 0.0)), j)
        k.fill(new.im, 0.0)
        with k.loop(2), k.loop(n) as other:
            re, im = turning.product(rows.at(other), new)
            k.store(factor.re, re, zero)
            k.store(factor.im, im, zero)
            k.map(reduced, [*new], [*new, *rows.at(other), *(spread(k, part, m) for part in factor)])
        length = emit.sqrt(turning.square(new))
        scale = emit.select(missing, emit.fdiv(emit.like(length, 1.0), length), emit.like(length, 0.0))
        k.store(factor.re, scale, zero)
        for row, part in zip(rows.at(i), new, strict=True):
            k.map(lambda emit, x, y, c: [emit.add(x, emit.mul(c, y))], [row], [row, part, spread(k, factor.re, m)])
