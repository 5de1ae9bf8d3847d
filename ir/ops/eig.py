"""Eigenvalues and eigenvectors of general square matrices, which are complex; native code needs LAPACK for them.

The results are packed into one real array: the real and imaginary parts of the eigenvalues, then those of the eigenvectors, as rows of
length 1. The shape is [2 + 2n, n]. Where LAPACK does not converge, they are NaN. What depends on the derivatives of eigenvectors of equal
eigenvalues, or on the phases of eigenvectors, has no meaningful derivative; a defective matrix has none for its equal eigenvalues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import UnsupportedError
from ..types import I64, TensorType, complex_dtype
from .base import Array, Loops, Op, Window, Writing, apply, nest
from .complex import from_parts, imag, real
from .hermitian import PartsOp, adjoint, check_parts, part_of, rows
from .join import concatenate
from .linalg import matmul, swap
from .lu import check_square
from .maps import cast, strong_mul, where
from .shape import reshape
from .solve import identity, solve
from .spectral import SPACE, diagonal_of, gaps, row_of, spoil

__all__ = ["eig"]

if TYPE_CHECKING:
    from ..operand import Operand


def packed_type(a: TensorType) -> TensorType:
    check_square("eig", a)
    return a.with_shape((*a.shape[:-2], 2 * a.shape[-1] + 2, a.shape[-1]))


def evaluated(a: Array, packed: TensorType) -> Array:
    try:
        w, v = np.linalg.eig(a)
    except np.linalg.LinAlgError:
        return np.full(packed.shape, np.nan, packed.dtype)
    w, columns = w[..., None, :], np.swapaxes(v, -1, -2)
    return np.concatenate([w.real, w.imag, columns.real, columns.imag], -2).astype(packed.dtype)


def written(write: Writing, matrix: Any, dtype: Any) -> Any:
    w = write.temporary("eig", write("np.linalg.eig({})", matrix))
    values = write.temporary("values", write("{}[0][..., None, :]", w))
    columns = write.temporary("columns", write("np.swapaxes({}[1], -1, -2)", w))
    both = write("np.concatenate([{}.real, {}.imag, {}.real, {}.imag], -2)", values, values, columns, columns)
    return write("{}.astype({})", both, write.dtype(dtype))


def along(y: Any, d: Operand) -> Operand:
    """The change of the packed result for a change of the complex matrices."""
    w, v = eigen_parts(y)
    change = solve(v, matmul(d, v))
    turned = matmul(v, strong_mul(change, gaps(w)))
    growth = real(diagonal_of(matmul(adjoint(v), turned)))
    turned = swap(turned - v * cast(row_of(growth), v.dtype))
    values = row_of(diagonal_of(change))
    return concatenate([real(values), imag(values), real(turned), imag(turned)], -2)


def back(y: Any, d: Operand) -> Operand:
    """The complex cotangent of the matrices."""
    w, v = eigen_parts(y)
    dw, dv = eigen_parts(d)
    moved = matmul(adjoint(v), dv)
    moved = moved - matmul(adjoint(v), v) * cast(row_of(real(diagonal_of(moved))), v.dtype)
    wide = row_of(dw) + moved.literal(0.0, moved.type)
    inner = strong_mul(moved, adjoint(swap(gaps(w)))) + where(identity(wide), wide, 0.0)
    return solve(adjoint(v), matmul(inner, adjoint(v)))


class Eig(Op):
    """Eigenvalues and eigenvectors of real matrices."""

    arity: ClassVar[int | None] = 1

    def infer(self, *types: TensorType) -> TensorType:
        return packed_type(types[0])

    def evaluate(self, *arrays: Array) -> Array:
        (a,) = arrays
        return evaluated(a, self.infer(TensorType(a.dtype, a.shape)))

    def python(self, write: Writing, *args: Operand) -> Any:
        return written(write, write.array(args[0]), args[0].type.dtype)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return along(y, cast(d, complex_dtype(d.dtype)))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return real(back(y, d))

    def widened(self, size: int) -> Eig:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 25.0 * types[0].size * types[0].shape[-1])

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        *batch, n, _ = a.type.shape
        if not a.type.size:
            return
        need_lapack(k)
        dtype, zero = a.type.dtype, k.scalar.const(I64, 0)
        matrix, vectors = (k.scratch(TensorType(dtype, (n, n))) for _ in range(2))
        re, im = (k.scratch(TensorType(dtype, (n,))) for _ in range(2))
        floats = (4 + SPACE) * n
        space = k.scratch(TensorType(dtype, (floats,)))
        with nest(k, batch) as at:
            k.copy(matrix, a.at(*at).transposed(1, 0))  # LAPACK reads columns
            failed = k.lapack("geev", dtype, "N", "V", n, matrix, n, re, im, vectors, n, vectors, n, space, floats)
            target = out.at(*at)
            k.copy(target.slice(0, 0, 1).at(zero), re)
            k.copy(target.slice(0, 1, 1).at(zero), im)
            unpack(k, target, vectors, im)
            spoil(k, target, failed)


def need_lapack(k: Loops) -> None:
    if not k.has_lapack():
        raise UnsupportedError("eig: native code needs LAPACK, which this target, or this installation of NumPy, does not have")


def unpack(k: Loops, target: Window, vectors: Window, im: Window) -> None:
    """LAPACK stores the parts of one vector of each conjugate pair; here every vector has both."""
    emit, n, dtype = k.scalar, vectors.type.shape[0], vectors.type.dtype
    one, nothing, last = emit.const(I64, 1), emit.const(dtype, 0.0), emit.const(I64, n - 1)
    with nest(k, (n, n)) as (i, j):
        part = k.load(im, i)
        first, second = emit.compare("gt", part, nothing), emit.compare("lt", part, nothing)
        before, after = emit.sub(i, emit.select(second, one, emit.const(I64, 0))), emit.add(i, one)
        after = emit.select(emit.compare("gt", after, last), last, after)
        mine, following = k.load(vectors, i, j), k.load(vectors, after, j)
        other = emit.select(first, following, emit.select(second, emit.neg(mine), nothing))
        k.store(target.slice(0, 2, n), k.load(vectors, before, j), i, j)
        k.store(target.slice(0, 2 + n, n), other, i, j)


class ComplexEig(PartsOp):
    """Eigenvalues and eigenvectors of complex matrices, given by their parts."""

    def infer(self, *types: TensorType) -> TensorType:
        return packed_type(check_parts("eig", types))

    def evaluate(self, *arrays: Array) -> Array:
        re, im = arrays
        return evaluated(re + 1j * im, packed_type(TensorType(re.dtype, re.shape)))

    def python(self, write: Writing, *args: Operand) -> Any:
        return written(write, write("({} + 1j * {})", *map(write.array, args)), args[0].type.dtype)

    def along(self, y: Any, d: Operand) -> Operand:
        return along(y, d)

    def back(self, y: Any, d: Operand) -> Operand:
        return back(y, d)

    def widened(self, size: int) -> ComplexEig:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 100.0 * types[0].size * types[0].shape[-1])

    def lower(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        *batch, n, _ = re.type.shape
        if not re.type.size:
            return
        need_lapack(k)
        dtype, zero = re.type.dtype, k.scalar.const(I64, 0)
        matrix, vectors = (k.scratch(TensorType(dtype, (n, n, 2))) for _ in range(2))
        numbers = (2 + SPACE) * n
        values, space, more = (k.scratch(TensorType(dtype, shape)) for shape in ((n, 2), (2 * numbers,), (2 * n,)))
        with nest(k, batch) as at:
            for i, part in enumerate((re, im)):
                k.copy(part_of(k, matrix, i), part.at(*at).transposed(1, 0))
            sizes = (vectors, n, vectors, n, space, numbers, more)
            failed = k.lapack("geev", dtype, "N", "V", n, matrix, n, values, *sizes, complex=True)
            target = out.at(*at)
            for i in (0, 1):
                k.copy(target.slice(0, i, 1).at(zero), part_of(k, values, i))
                k.copy(target.slice(0, 2 + i * n, n), part_of(k, vectors, i))
            spoil(k, target, failed)


def eigen_parts(packed: Operand) -> tuple[Operand, Operand]:
    """Eigenvalues and, as columns, eigenvectors."""
    n = packed.shape[-1]
    values = from_parts(rows(packed, 0, 1), rows(packed, 1, 1))
    return reshape(values, (*packed.shape[:-2], n)), swap(from_parts(rows(packed, 2, n), rows(packed, 2 + n, n)))


def eig(a: Operand) -> tuple[Operand, Operand]:
    """Eigenvalues and eigenvectors, as columns, in LAPACK's order; complex numbers, also if all of them are real."""
    return eigen_parts(apply(ComplexEig(), real(a), imag(a)) if a.type.is_complex else apply(Eig(), a))
