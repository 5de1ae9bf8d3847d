"""Eigenvalues of symmetric matrices, and singular values, with their vectors; ops take (stacks of) floating-point matrices.

Values and vectors are stored in one array and extracted as views: an op has one result. Native code calls LAPACK if there is one, and
uses Jacobi's rotations otherwise. Where no algorithm converges, the results are NaN.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..types import I64, TensorType
from .base import Array, Loops, Op, Reg, Window, Writing, apply, nest
from .jacobi import by_rotations, singular_by_rotations
from .join import concatenate
from .linalg import matmul, swap
from .lu import check_square
from .maps import strong_mul, where
from .reduce import sum as total
from .shape import broadcast_to, reshape, slice_
from .solve import identity
from .triangular import lower

__all__ = ["eigh", "svd"]

if TYPE_CHECKING:
    from ..operand import Operand

SPACE = 64  # extra columns of LAPACK's workspace, with which its blocked algorithms are fast


# ---- eigenvalues of symmetric matrices


class Eigh(Op):
    """The eigenvalues of symmetric matrices, ascending, and below them, as rows, their eigenvectors: the shape is [n + 1, n].

    Only the lower triangle is read. Eigenvectors of equal eigenvalues are arbitrary: what depends on their derivative is NaN there, and
    functions of the eigenvalues alone have their exact gradient.
    """

    def infer(self, *types: TensorType) -> TensorType:
        (a,) = types
        check_square("eigh", a)
        return a.with_shape((*a.shape[:-2], a.shape[-1] + 1, a.shape[-1]))

    def evaluate(self, *arrays: Array) -> Array:
        (a,) = arrays
        try:
            w, v = np.linalg.eigh(a)
        except np.linalg.LinAlgError:
            return np.full((*a.shape[:-2], a.shape[-1] + 1, a.shape[-1]), np.nan, a.dtype)
        return np.concatenate([w[..., None, :], np.swapaxes(v, -1, -2)], -2)

    def python(self, write: Writing, *args: Operand) -> Any:
        w = write.temporary("eigh", write("np.linalg.eigh({})", write.array(args[0])))
        return write("np.concatenate([{}[0][..., None, :], np.swapaxes({}[1], -1, -2)], -2)", w, w)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        w, rows = eigen_parts(y)
        change = matmul(matmul(rows, lower(d) + swap(lower(d, -1))), swap(rows))
        turned = matmul(swap(strong_mul(change, gaps(w))), rows)
        return concatenate([row_of(diagonal_of(change)), turned], -2)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        w, rows = eigen_parts(y)
        dw, drows = eigen_parts(d)
        inner = diagonal_matrix(dw) + strong_mul(matmul(rows, swap(drows)), gaps(w))
        whole = matmul(matmul(swap(rows), inner), rows)
        return lower(whole) + lower(swap(whole), -1)

    def widened(self, size: int) -> Eigh:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 9.0 * types[0].size * types[0].shape[-1])

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        *batch, n, _ = a.type.shape
        if not a.type.size:
            return
        dtype, zero = a.type.dtype, k.scalar.const(I64, 0)
        vectors, values = k.scratch(TensorType(dtype, (n, n))), k.scratch(TensorType(dtype, (n,)))
        if not k.has_lapack():
            with nest(k, batch) as at:
                by_rotations(k, out.at(*at), a.at(*at), vectors)
            return
        floats, integers = 1 + 6 * n + 2 * n * n + SPACE * n, 3 + 5 * n
        space, places = k.scratch(TensorType(dtype, (floats,))), k.scratch(TensorType(I64, (integers,)))
        with nest(k, batch) as at:
            k.copy(vectors, a.at(*at))  # by rows; LAPACK reads columns, so that this lower triangle is its upper one
            failed = k.lapack("syevd", dtype, "V", "U", n, vectors, n, values, space, floats, places, integers)
            target = out.at(*at)
            k.copy(target.slice(0, 0, 1).at(zero), values)
            k.copy(target.slice(0, 1, n), vectors)
            spoil(k, target, failed)


def spoil(k: Loops, target: Window, failed: Reg) -> None:
    """Replace the results by NaN if LAPACK has not converged."""
    dtype, (m, n) = target.type.dtype, target.type.shape
    bad = k.scratch(TensorType(dtype, (1,)))
    emit, zero = k.scalar, k.scalar.const(I64, 0)
    k.store(bad, emit.select(failed, emit.const(dtype, np.nan), emit.const(dtype, 0.0)), zero)
    wide = bad.sliding(0, m, 0, 1).sliding(1, n, 0, 1).transposed(2, 0, 1).at(zero)
    k.map(lambda emit, x, b: [emit.select(emit.unordered(b, b), b, x)], [target], [target, wide])


# ---- singular values


class Svd(Op):
    """The singular values of matrices with at least as many rows m as columns n, descending, and their vectors.

    The rows of Vᵀ come first, then the singular values, then the rows of U: the shape is [n + 1 + m, n]. What depends on the derivatives of
    vectors of equal singular values, or of columns of U that belong to zeros, is NaN.
    """

    def infer(self, *types: TensorType) -> TensorType:
        (a,) = types
        if not a.is_float:
            raise DTypeError(f"svd: takes floats, not {a}")
        if a.rank < 2 or a.shape[-2] < a.shape[-1]:
            raise ShapeError(f"svd: takes matrices with at least as many rows as columns, not {a}")
        m, n = a.shape[-2:]
        return a.with_shape((*a.shape[:-2], n + 1 + m, n))

    def evaluate(self, *arrays: Array) -> Array:
        (a,) = arrays
        m, n = a.shape[-2:]
        try:
            u, s, vt = np.linalg.svd(a, full_matrices=False)
        except np.linalg.LinAlgError:
            return np.full((*a.shape[:-2], n + 1 + m, n), np.nan, a.dtype)
        return np.concatenate([vt, s[..., None, :], u], -2)

    def python(self, write: Writing, *args: Operand) -> Any:
        svd = write.temporary("svd", write("np.linalg.svd({}, full_matrices=False)", write.array(args[0])))
        return write("np.concatenate([{}[2], {}[1][..., None, :], {}[0]], -2)", svd, svd, svd)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        u, s, vt = singular_parts(y)
        change = matmul(matmul(swap(u), d), swap(vt))
        f, row = gaps(s * s), row_of(s)
        column = swap(row)
        turn_u = strong_mul(change * row + column * swap(change), f)
        turn_v = strong_mul(column * change + swap(change) * row, f)
        outside = matmul(d, swap(vt)) - matmul(u, change)  # what the columns of U do not span
        du = matmul(u, turn_u) + strong_mul(outside, broadcast_to(row_of(1.0 / s), outside.shape))
        return concatenate([matmul(swap(turn_v), vt), row_of(diagonal_of(change)), du], -2)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        u, s, vt = singular_parts(y)
        du, ds, dvt = singular_parts(d)
        f, row = gaps(s * s), row_of(s)
        along_u, along_v = matmul(swap(u), du), matmul(vt, swap(dvt))
        inner = strong_mul(along_u - swap(along_u), f) * row + swap(row) * strong_mul(along_v - swap(along_v), f) + diagonal_matrix(ds)
        outside = du - matmul(u, along_u)
        outside = strong_mul(outside, broadcast_to(row_of(1.0 / s), outside.shape))
        return matmul(matmul(u, inner) + outside, vt)

    def widened(self, size: int) -> Svd:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 20.0 * types[0].size * types[0].shape[-1])

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        *batch, m, n = a.type.shape
        if not a.type.size:
            return
        dtype, zero = a.type.dtype, k.scalar.const(I64, 0)
        if not k.has_lapack():
            columns = k.scratch(TensorType(dtype, (n, m)))
            with nest(k, batch) as at:
                singular_by_rotations(k, out.at(*at), a.at(*at), columns)
            return
        matrix, u, vt, s = (k.scratch(TensorType(dtype, shape)) for shape in ((m, n), (m, n), (n, n), (n,)))
        floats = 4 * n * n + 7 * n + SPACE * (m + n)
        space, places = k.scratch(TensorType(dtype, (floats,))), k.scratch(TensorType(I64, (8 * n,)))
        with nest(k, batch) as at:
            k.copy(matrix, a.at(*at))  # LAPACK reads it by columns, as the transpose, whose left vectors are V
            failed = k.lapack("gesdd", dtype, "S", n, m, matrix, n, s, vt, n, u, n, space, floats, places)
            target = out.at(*at)
            k.copy(target.slice(0, 0, n), vt)
            k.copy(target.slice(0, n, 1).at(zero), s)
            k.copy(target.slice(0, n + 1, m), u)
            spoil(k, target, failed)


# ---- parts


def eigen_parts(packed: Operand) -> tuple[Operand, Operand]:
    """Eigenvalues and eigenvectors, as rows, from the result of `Eigh`."""
    head, n = [slice(None)] * (packed.ndim - 2), packed.shape[-1]
    values = reshape(slice_(packed, [*head, slice(0, 1)]), (*packed.shape[:-2], n))
    return values, slice_(packed, [*head, slice(1, n + 1)])


def singular_parts(packed: Operand) -> tuple[Operand, Operand, Operand]:
    """U, the singular values, and Vᵀ, from the result of `Svd`."""
    head, n = [slice(None)] * (packed.ndim - 2), packed.shape[-1]
    values = reshape(slice_(packed, [*head, slice(n, n + 1)]), (*packed.shape[:-2], n))
    return slice_(packed, [*head, slice(n + 1, packed.shape[-2])]), values, slice_(packed, [*head, slice(0, n)])


def gaps(w: Operand) -> Operand:
    """1 / (w_j - w_i) in row i and column j: NaN where they are equal, and 0 on the diagonal."""
    difference = row_of(w) - swap(row_of(w))
    is_equal = difference == 0.0
    return where(identity(difference), 0.0, where(is_equal, math.nan, 1.0 / where(is_equal, 1.0, difference)))


def row_of(x: Operand) -> Operand:
    return reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def diagonal_of(x: Operand) -> Operand:
    return total(where(identity(x), x, 0.0), -1)


def diagonal_matrix(x: Operand) -> Operand:
    wide = broadcast_to(row_of(x), (*x.shape, x.shape[-1]))
    return where(identity(wide), wide, 0.0)


def eigh(a: Operand) -> tuple[Operand, Operand]:
    """Eigenvalues, ascending, and the eigenvectors as columns."""
    w, rows = eigen_parts(apply(Eigh(), a))
    return w, swap(rows)


def svd(a: Operand) -> tuple[Operand, Operand, Operand]:
    """U, the singular values, descending, and Vᵀ, all of min(m, n) rows or columns."""
    if a.ndim > 1 and a.shape[-2] < a.shape[-1]:
        v, s, ut = svd(swap(a))
        return swap(ut), s, swap(v)
    return singular_parts(apply(Svd(), a))
