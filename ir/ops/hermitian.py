"""Eigenvalues of Hermitian matrices and singular values of complex ones, with their vectors.

The ops take the real and the imaginary parts of (stacks of) matrices, and return both parts of the vectors and the values in one real
array: native code has no complex numbers. Derivatives are those of the complex matrices, written with complex operands: cotangents of parts
pair with tangents as Re(conj(c) t). Vectors have arbitrary phases, and what depends on these has no meaningful derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..types import I64, TensorType
from .base import Array, Loops, Op, Window, Writing, apply, nest
from .complex import conj, from_parts, imag, real
from .jacobi_complex import hermitian_by_rotations, unitary_by_rotations
from .join import concatenate
from .linalg import matmul, swap
from .lu import check_square
from .maps import cast, strong_mul
from .shape import broadcast_to, reshape, slice_
from .spectral import SPACE, diagonal_matrix, diagonal_of, gaps, row_of, spoil
from .triangular import lower

__all__ = ["eigh_complex", "svd_complex"]

if TYPE_CHECKING:
    from ..operand import Operand


def adjoint(x: Operand) -> Operand:
    """The conjugate transpose."""
    return swap(conj(x))


def check_parts(what: str, types: Sequence[TensorType]) -> TensorType:
    re, im = types
    if re != im or not re.is_float:
        raise DTypeError(f"{what}: takes the parts of complex matrices, floats of one type, not {re} and {im}")
    return re


class PartsOp(Op, abstract=True):
    """An op on the real and imaginary parts of matrices."""

    arity: ClassVar[int | None] = 2

    def along(self, y: Any, d: Operand) -> Operand:
        """The change of the result for a change `d` of the complex matrices."""
        raise NotImplementedError

    def back(self, y: Any, d: Operand) -> Operand:
        """The complex cotangent of the matrices, for the cotangent `d` of the result."""
        raise NotImplementedError

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        zero = d.literal(0.0, d.type)
        return self.along(y, from_parts(d, zero) if i == 0 else from_parts(zero, d))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        whole = self.back(y, d)
        return real(whole) if i == 0 else imag(whole)


class Decomposition(PartsOp, abstract=True):
    """An op that is lowered to LAPACK, or to rotations where there is none."""

    def by_lapack(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        raise NotImplementedError

    def by_rotations(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        """The same for one matrix."""
        raise NotImplementedError

    def widened(self, size: int) -> Decomposition:
        return self

    def lower(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        if not re.type.size:
            return
        if k.has_lapack():
            self.by_lapack(k, out, re, im)
            return
        with nest(k, re.type.shape[:-2]) as at:
            self.by_rotations(k, out.at(*at), re.at(*at), im.at(*at))


class HermitianEigh(Decomposition):
    """The eigenvalues of Hermitian matrices, ascending, then the real and the imaginary parts of their eigenvectors as rows.

    The shape is [1 + 2n, n]. Only the lower triangle is read, without the imaginary parts of its diagonal.
    """

    def infer(self, *types: TensorType) -> TensorType:
        a = check_parts("eigh", types)
        check_square("eigh", a)
        return a.with_shape((*a.shape[:-2], 2 * a.shape[-1] + 1, a.shape[-1]))

    def evaluate(self, *arrays: Array) -> Array:
        re, im = arrays
        try:
            w, v = np.linalg.eigh(re + 1j * im)
        except np.linalg.LinAlgError:
            return np.full((*re.shape[:-2], 2 * re.shape[-1] + 1, re.shape[-1]), np.nan, re.dtype)
        rows = np.swapaxes(v, -1, -2)
        return np.concatenate([w[..., None, :], rows.real, rows.imag], -2)

    def python(self, write: Writing, *args: Operand) -> Any:
        w = write.temporary("eigh", write("np.linalg.eigh({} + 1j * {})", *map(write.array, args)))
        rows = write.temporary("rows", write("np.swapaxes({}[1], -1, -2)", w))
        return write("np.concatenate([{}[0][..., None, :], {}.real, {}.imag], -2)", w, rows, rows)

    def along(self, y: Any, d: Operand) -> Operand:
        w, v = hermitian_parts(y)
        whole = lower(d, -1)
        whole = whole + adjoint(whole) + cast(diagonal_matrix(real(diagonal_of(d))), d.dtype)
        change = matmul(matmul(adjoint(v), whole), v)
        turned = swap(matmul(v, strong_mul(change, cast(gaps(w), change.dtype))))
        return concatenate([row_of(real(diagonal_of(change))), real(turned), imag(turned)], -2)

    def back(self, y: Any, d: Operand) -> Operand:
        w, v = hermitian_parts(y)
        dw, dv = hermitian_parts(d)
        inner = strong_mul(matmul(adjoint(v), dv), cast(gaps(w), v.dtype)) + cast(diagonal_matrix(dw), v.dtype)
        whole = matmul(matmul(v, inner), adjoint(v))
        below = lower(whole, -1) + lower(adjoint(whole), -1)
        return below + cast(diagonal_matrix(real(diagonal_of(whole))), v.dtype)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 36.0 * types[0].size * types[0].shape[-1])

    def by_rotations(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        hermitian_by_rotations(k, out, re, im)

    def by_lapack(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        *batch, n, _ = re.type.shape
        dtype, zero = re.type.dtype, k.scalar.const(I64, 0)
        vectors, values = k.scratch(TensorType(dtype, (n, n, 2))), k.scratch(TensorType(dtype, (n,)))
        numbers, floats, integers = 2 * n + n * n + SPACE * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n
        space, more = k.scratch(TensorType(dtype, (2 * numbers,))), k.scratch(TensorType(dtype, (floats,)))
        places = k.scratch(TensorType(I64, (integers,)))
        with nest(k, batch) as at:
            # LAPACK reads columns: rows of the conjugate are columns of the matrix, and its lower triangle the upper one
            k.copy(part_of(k, vectors, 0), re.at(*at))
            k.map(lambda emit, x: [emit.neg(x)], [part_of(k, vectors, 1)], [im.at(*at)])
            sizes = (space, numbers, more, floats, places, integers)
            failed = k.lapack("heevd", dtype, "V", "U", n, vectors, n, values, *sizes, complex=True)
            target = out.at(*at)
            k.copy(target.slice(0, 0, 1).at(zero), values)
            k.copy(target.slice(0, 1, n), part_of(k, vectors, 0))
            k.copy(target.slice(0, 1 + n, n), part_of(k, vectors, 1))
            spoil(k, target, failed)


def part_of(k: Loops, window: Window, i: int) -> Window:
    """The real or imaginary parts of a window of interleaved ones."""
    rank = window.type.rank
    return window.transposed(rank - 1, *range(rank - 1)).slice(0, i, 1).at(k.scalar.const(I64, 0))


class ComplexSvd(Decomposition):
    """The singular values of complex matrices with at least as many rows m as columns n, descending, and their vectors.

    Rows of the real and imaginary parts of V^H come first, then the values, then both parts of the rows of U: [2n + 1 + 2m, n].
    """

    def infer(self, *types: TensorType) -> TensorType:
        a = check_parts("svd", types)
        if a.rank < 2 or a.shape[-2] < a.shape[-1]:
            raise ShapeError(f"svd: takes matrices with at least as many rows as columns, not {a}")
        m, n = a.shape[-2:]
        return a.with_shape((*a.shape[:-2], 2 * n + 1 + 2 * m, n))

    def evaluate(self, *arrays: Array) -> Array:
        re, im = arrays
        try:
            u, s, vh = np.linalg.svd(re + 1j * im, full_matrices=False)
        except np.linalg.LinAlgError:
            return np.full(self.infer(TensorType(re.dtype, re.shape), TensorType(re.dtype, re.shape)).shape, np.nan, re.dtype)
        return np.concatenate([vh.real, vh.imag, s[..., None, :], u.real, u.imag], -2)

    def python(self, write: Writing, *args: Operand) -> Any:
        svd = write.temporary("svd", write("np.linalg.svd({} + 1j * {}, full_matrices=False)", *map(write.array, args)))
        parts = ", ".join(["{}[2].real", "{}[2].imag", "{}[1][..., None, :]", "{}[0].real", "{}[0].imag"])
        return write(f"np.concatenate([{parts}], -2)", *[svd] * 5)

    def along(self, y: Any, d: Operand) -> Operand:
        u, s, vh = unitary_parts(y)
        change, f, row = matmul(matmul(adjoint(u), d), adjoint(vh)), cast(gaps(s * s), u.dtype), cast(row_of(s), u.dtype)
        column, ds = swap(row), real(diagonal_of(change))
        phase = imag(diagonal_of(change)) / (2.0 * s)
        spin = diagonal_complex(phase)
        turn_u = strong_mul(change * row + column * adjoint(change), f) + spin
        turn_v = strong_mul(column * change + adjoint(change) * row, f) - spin
        outside = matmul(d, adjoint(vh)) - matmul(u, change)
        du = matmul(u, turn_u) + strong_mul(outside, broadcast_to(1.0 / row, outside.shape))
        dvh = matmul(adjoint(turn_v), vh)
        return concatenate([real(dvh), imag(dvh), row_of(ds), real(du), imag(du)], -2)

    def back(self, y: Any, d: Operand) -> Operand:
        u, s, vh = unitary_parts(y)
        du, ds, dvh = unitary_parts(d)
        f, row = cast(gaps(s * s), u.dtype), cast(row_of(s), u.dtype)
        along_u, along_v = matmul(adjoint(u), du), matmul(vh, adjoint(dvh))
        phase = (imag(diagonal_of(along_u)) - imag(diagonal_of(along_v))) / (2.0 * s)
        inner = strong_mul(along_u - adjoint(along_u), f) * row + swap(row) * strong_mul(along_v - adjoint(along_v), f)
        inner = inner + cast(diagonal_matrix(ds), u.dtype) + diagonal_complex(phase)
        outside = du - matmul(u, along_u)
        outside = strong_mul(outside, broadcast_to(1.0 / row, outside.shape))
        return matmul(matmul(u, inner) + outside, vh)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 80.0 * types[0].size * types[0].shape[-1])

    def by_rotations(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        unitary_by_rotations(k, out, re, im)

    def by_lapack(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        *batch, m, n = re.type.shape
        dtype, zero = re.type.dtype, k.scalar.const(I64, 0)
        matrix, u, vh = (k.scratch(TensorType(dtype, shape)) for shape in ((m, n, 2), (m, n, 2), (n, n, 2)))
        s, places = k.scratch(TensorType(dtype, (n,))), k.scratch(TensorType(I64, (8 * n,)))
        numbers, floats = n * n + 3 * n + SPACE * (m + n), max(5 * n * n + 7 * n, 2 * m * n + 2 * n * n + n)
        space, more = k.scratch(TensorType(dtype, (2 * numbers,))), k.scratch(TensorType(dtype, (floats,)))
        with nest(k, batch) as at:
            k.copy(part_of(k, matrix, 0), re.at(*at))  # LAPACK sees the transpose, whose left vectors are the conjugates of V
            k.copy(part_of(k, matrix, 1), im.at(*at))
            failed = k.lapack("gesdd", dtype, "S", n, m, matrix, n, s, vh, n, u, n, space, numbers, more, places, complex=True)
            target = out.at(*at)
            for i in (0, 1):
                k.copy(target.slice(0, i * n, n), part_of(k, vh, i))
                k.copy(target.slice(0, 2 * n + 1 + i * m, m), part_of(k, u, i))
            k.copy(target.slice(0, 2 * n, 1).at(zero), s)
            spoil(k, target, failed)


# ---- parts


def rows(packed: Operand, start: int, count: int) -> Operand:
    return slice_(packed, [*[slice(None)] * (packed.ndim - 2), slice(start, start + count)])


def hermitian_parts(packed: Operand) -> tuple[Operand, Operand]:
    """Eigenvalues and, as columns, eigenvectors from the result of `HermitianEigh`."""
    n = packed.shape[-1]
    values = reshape(rows(packed, 0, 1), (*packed.shape[:-2], n))
    return values, swap(from_parts(rows(packed, 1, n), rows(packed, 1 + n, n)))


def unitary_parts(packed: Operand) -> tuple[Operand, Operand, Operand]:
    """U, the singular values, and V^H, from the result of `ComplexSvd`."""
    n = packed.shape[-1]
    m = (packed.shape[-2] - 2 * n - 1) // 2
    values = reshape(rows(packed, 2 * n, 1), (*packed.shape[:-2], n))
    u = from_parts(rows(packed, 2 * n + 1, m), rows(packed, 2 * n + 1 + m, m))
    return u, values, from_parts(rows(packed, 0, n), rows(packed, n, n))


def diagonal_complex(x: Operand) -> Operand:
    """A diagonal matrix of imaginary numbers."""
    wide = diagonal_matrix(x)
    return from_parts(wide.literal(0.0, wide.type), wide)


def eigh_complex(a: Operand) -> tuple[Operand, Operand]:
    """Eigenvalues, ascending, and the eigenvectors of Hermitian matrices as columns."""
    return hermitian_parts(apply(HermitianEigh(), real(a), imag(a)))


def svd_complex(a: Operand) -> tuple[Operand, Operand, Operand]:
    """U, the singular values, descending, and V^H, all of min(m, n) rows or columns."""
    if a.ndim > 1 and a.shape[-2] < a.shape[-1]:
        v, s, uh = svd_complex(adjoint(a))
        return adjoint(uh), s, adjoint(v)
    return unitary_parts(apply(ComplexSvd(), real(a), imag(a)))
