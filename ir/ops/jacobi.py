"""Jacobi's rotations, as native code: eigenvalues and singular values where there is no LAPACK.

Each sweep rotates every pair of rows, in both orders; convergence is quadratic, so a number of sweeps that grows with the logarithm of the
size is enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..types import I64, DType, TensorType
from .base import Emitter, Loops, Reg, Window, nest
from .reduce import Sum
from .triangle import spread


def sweeps(n: int) -> int:
    return 5 + math.ceil(math.log2(max(n, 2)))


@contextmanager
def pairs(k: Loops, n: int) -> Iterator[tuple[Reg, Reg]]:
    """Every ordered pair of different indices."""
    emit = k.scalar
    with k.loop(n) as p, k.loop(n - 1) as j:
        following = emit.add(emit.add(p, j), emit.const(I64, 1))
        yield p, emit.irem(following, emit.const(I64, n))


class Rotation:
    """A rotation of two rows, whose cosine and sine are in memory."""

    def __init__(self, k: Loops, dtype: DType) -> None:
        self.k = k
        self.cosine, self.sine = (k.scratch(TensorType(dtype, (1,))) for _ in range(2))

    def choose(self, app: Reg, aqq: Reg, apq: Reg) -> None:
        """The rotation that makes the element apq of a symmetric matrix zero: none, if it is negligible."""
        emit, zero = self.k.scalar, self.k.scalar.const(I64, 0)
        one = emit.like(app, 1.0)
        tiny = emit.mul(emit.sqrt(emit.mul(emit.fabs(app), emit.fabs(aqq))), emit.like(app, float(np.finfo(app.dtype).eps) / 4))
        idle = emit.compare("le", emit.fabs(apq), tiny)
        idle = emit.or_(idle, emit.compare("eq", apq, emit.like(app, 0.0)))
        safe = emit.select(idle, one, apq)
        theta = emit.fdiv(emit.sub(aqq, app), emit.add(safe, safe))
        root = emit.sqrt(emit.add(emit.mul(theta, theta), one))
        tangent = emit.copysign(emit.fdiv(one, emit.add(emit.fabs(theta), root)), theta)
        cosine = emit.fdiv(one, emit.sqrt(emit.add(emit.mul(tangent, tangent), one)))
        self.k.store(self.cosine, emit.select(idle, one, cosine), zero)
        self.k.store(self.sine, emit.select(idle, emit.like(app, 0.0), emit.mul(tangent, cosine)), zero)

    def turn(self, p: Window, q: Window) -> None:
        """Rotate two rows."""
        (size,) = p.type.shape

        def rotated(emit: Emitter, x: Reg, y: Reg, c: Reg, s: Reg) -> list[Reg]:
            return [emit.sub(emit.mul(c, x), emit.mul(s, y)), emit.add(emit.mul(s, x), emit.mul(c, y))]

        self.k.map(rotated, [p, q], [p, q, spread(self.k, self.cosine, size), spread(self.k, self.sine, size)])


def by_rotations(k: Loops, out: Window, a: Window, matrix: Window) -> None:
    """The result of `Eigh` for one matrix; `matrix` is scratch memory of its size."""
    emit, n, dtype = k.scalar, a.type.shape[0], a.type.dtype
    vectors, rotation = k.scratch(a.type), Rotation(k, dtype)
    with nest(k, (n, n)) as (i, j):
        inside = emit.compare("ge", i, j)
        k.store(matrix, k.load(a, emit.select(inside, i, j), emit.select(inside, j, i)), i, j)
    unit(k, vectors)
    columns = matrix.transposed(1, 0)
    with k.loop(sweeps(n)), pairs(k, n) as (p, q):
        rotation.choose(k.load(matrix, p, p), k.load(matrix, q, q), k.load(matrix, p, q))
        for rows in (matrix, columns, vectors):
            rotation.turn(rows.at(p), rows.at(q))
    values = k.scratch(TensorType(dtype, (n,)))
    with k.loop(n) as i:
        k.store(values, k.load(matrix, i, i), i)
    zero = emit.const(I64, 0)
    with k.loop(n) as i:
        place = rank(k, values, i, descending=False)
        k.store(out.slice(0, 0, 1).at(zero), k.load(values, i), place)
        k.copy(out.slice(0, 1, n).at(place), vectors.at(i))


def singular_by_rotations(k: Loops, out: Window, a: Window, columns: Window) -> None:
    """The result of `Svd` for one matrix: rotations make its columns orthogonal. `columns` is scratch memory for its transpose."""
    emit, (m, n), dtype = k.scalar, a.type.shape, a.type.dtype
    vectors, rotation, values = k.scratch(TensorType(dtype, (n, n))), Rotation(k, dtype), k.scratch(TensorType(dtype, (n,)))
    sums, zero = k.scratch(TensorType(dtype, (1,))), emit.const(I64, 0)

    def product(x: Window, y: Window) -> Reg:
        k.reduce(Sum((0,)), lambda emit, x, y: emit.mul(x, y), sums, [x, y])
        return k.load(sums, zero)

    k.copy(columns, a.transposed(1, 0))
    unit(k, vectors)
    with k.loop(sweeps(n)), pairs(k, n) as (p, q):
        x, y = columns.at(p), columns.at(q)
        rotation.choose(product(x, x), product(y, y), product(x, y))
        rotation.turn(x, y)
        rotation.turn(vectors.at(p), vectors.at(q))
    with k.loop(n) as i:
        k.store(values, emit.sqrt(product(columns.at(i), columns.at(i))), i)
    largest = k.scratch(TensorType(dtype, (1,)))
    k.reduce(Sum((0,)), lambda emit, x: emit.mul(x, x), largest, [values])
    small = emit.mul(emit.sqrt(k.load(largest, zero)), emit.const(dtype, float(np.finfo(dtype).eps)))
    with k.loop(n) as i:
        normalise(k, columns.at(i), k.load(values, i), small)
    complete(k, columns, product)
    left = out.slice(0, n + 1, m).transposed(1, 0)
    with k.loop(n) as i:
        place = rank(k, values, i, descending=True)
        k.store(out.slice(0, n, 1).at(zero), k.load(values, i), place)
        k.copy(out.slice(0, 0, n).at(place), vectors.at(i))
        k.copy(left.at(place), columns.at(i))


def normalise(k: Loops, row: Window, length: Reg, small: Reg) -> None:
    """Divide a row by its length; a negligible one becomes zero."""
    emit, (size,) = k.scalar, row.type.shape
    scale, zero = k.scratch(TensorType(row.type.dtype, (1,))), emit.const(I64, 0)
    keep = emit.compare("gt", length, small)
    one = emit.like(length, 1.0)
    k.store(scale, emit.select(keep, emit.fdiv(one, emit.select(keep, length, one)), emit.like(length, 0.0)), zero)
    k.map(lambda emit, x, s: [emit.mul(x, s)], [row], [row, spread(k, scale, size)])


def complete(k: Loops, rows: Window, product: object) -> None:
    """Replace rows that are zero by others, orthonormal to all: the unit vector that the rows cover least, made orthogonal twice."""
    assert callable(product)
    emit, (n, m), dtype = k.scalar, rows.type.shape, rows.type.dtype
    zero = emit.const(I64, 0)
    best, place = k.scratch(TensorType(dtype, (1,))), k.scratch(TensorType(I64, (1,)))
    new, factor = k.scratch(TensorType(dtype, (m,))), k.scratch(TensorType(dtype, (1,)))
    with k.loop(n) as i:
        missing = emit.compare("eq", product(rows.at(i), rows.at(i)), emit.const(dtype, 0.0))
        k.store(best, emit.const(dtype, 2.0), zero)
        k.store(place, zero, zero)
        across = rows.transposed(1, 0)
        with k.loop(m) as j:
            covered = product(across.at(j), across.at(j))
            less = emit.compare("lt", covered, k.load(best, zero))
            k.store(best, emit.select(less, covered, k.load(best, zero)), zero)
            k.store(place, emit.select(less, j, k.load(place, zero)), zero)
        with k.loop(m) as j:
            chosen = emit.compare("eq", j, k.load(place, zero))
            k.store(new, emit.select(chosen, emit.const(dtype, 1.0), emit.const(dtype, 0.0)), j)
        with k.loop(2), k.loop(n) as other:
            k.store(factor, product(new, rows.at(other)), zero)
            k.map(lambda emit, x, y, c: [emit.sub(x, emit.mul(c, y))], [new], [new, rows.at(other), spread(k, factor, m)])
        length = emit.sqrt(product(new, new))
        scale = emit.select(missing, emit.fdiv(emit.like(length, 1.0), length), emit.like(length, 0.0))
        k.store(factor, scale, zero)
        k.map(lambda emit, x, y, c: [emit.add(x, emit.mul(c, y))], [rows.at(i)], [rows.at(i), new, spread(k, factor, m)])


def unit(k: Loops, matrix: Window) -> None:
    emit, dtype = k.scalar, matrix.type.dtype
    with nest(k, matrix.type.shape) as (i, j):
        k.store(matrix, emit.select(emit.compare("eq", i, j), emit.const(dtype, 1.0), emit.const(dtype, 0.0)), i, j)


def rank(k: Loops, values: Window, i: Reg, descending: bool) -> Reg:
    """The position of a value in sorted order; of equal ones, the first comes first."""
    emit, (n,) = k.scalar, values.type.shape
    count, zero, one = k.scratch(TensorType(I64, (1,))), emit.const(I64, 0), emit.const(I64, 1)
    k.store(count, zero, zero)
    mine = k.load(values, i)
    with k.loop(n) as j:
        other = k.load(values, j)
        before = emit.compare("gt" if descending else "lt", other, mine)
        tied = emit.and_(emit.or_(emit.compare("eq", other, mine), emit.unordered(other, mine)), emit.compare("lt", j, i))
        k.store(count, emit.add(k.load(count, zero), emit.select(emit.or_(before, tied), one, zero)), zero)
    return k.load(count, zero)
