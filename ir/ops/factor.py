"""Matrix factorisations: determinants and QR. Ops take (stacks of) floating-point matrices.

Factors that belong together are stored in one array and extracted as views: an op has one result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost import MATH
from ..errors import DTypeError, ShapeError
from ..types import I64, TensorType
from .base import Array, Loops, Op, Reg, Window, Writing, apply, nest
from .join import concatenate
from .linalg import matmul, swap
from .lu import Lu, check_square, lu
from .maps import where
from .reduce import sum as total
from .shape import broadcast_to, reshape, slice_
from .solve import SolveWith, identity
from .triangular import SolveTriangular, lower

__all__ = ["qr", "slogdet"]

if TYPE_CHECKING:
    from ..operand import Operand


class Slogdet(Op):
    """Sign and logarithm of the absolute value of determinants, along a new last axis, from matrices and their factors by `Lu`.

    For a singular matrix they are 0 and -inf. Derivatives are with respect to the matrix.
    """

    def infer(self, *types: TensorType) -> TensorType:
        a, factors = types
        check_square("slogdet", a)
        if factors != Lu().infer(a):
            raise ShapeError(f"slogdet: {factors} are not the factors of the matrices {a}")
        return a.with_shape((*a.shape[:-2], 2))

    def evaluate(self, *arrays: Array) -> Array:
        return np.stack(np.linalg.slogdet(arrays[0]), -1)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("np.stack(np.linalg.slogdet({}), -1)", write.array(args[0]))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i == 1:
            return None
        moved = apply(SolveWith(), *args, d)
        slope = total(where(identity(moved), moved, 0.0), (-2, -1))
        return concatenate([slope.literal(0, slope.type.with_shape((*slope.shape, 1))), reshape(slope, (*slope.shape, 1))], -1)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i == 1:
            return None
        weight = reshape(slice_(d, [slice(None)] * (d.ndim - 1) + [slice(1, 2)]), (*d.shape[:-1], 1, 1))
        scaled = where(identity(args[0]), broadcast_to(weight, args[0].shape), 0.0)
        return apply(SolveWith(transposed=True), *args, scaled)

    def widened(self, size: int) -> Slogdet:
        return self

    def operations(self, args: Sequence[TensorType], results: Sequence[TensorType]) -> float:
        return float(MATH * math.prod(args[0].shape[:-1]))

    def lower(self, k: Loops, out: Window, a: Window, factors: Window) -> None:
        """The determinant is the product of the diagonal; each exchange of two rows flips its sign."""
        *batch, n, _ = a.type.shape
        emit, dtype = k.scalar, a.type.dtype
        first, second, last = (emit.const(I64, i) for i in (0, 1, n))
        one, zero = emit.const(dtype, 1.0), emit.const(dtype, 0.0)
        with nest(k, batch) as at:
            found, packed = out.at(*at), factors.at(*at)
            k.store(found, one, first)
            k.store(found, zero, second)
            with k.loop(n) as i:
                pivot = k.load(packed, i, i)
                stays = emit.compare("eq", k.load(packed, last, i), zero)
                sign = emit.select(emit.compare("eq", pivot, zero), zero, emit.copysign(one, pivot))
                k.store(found, emit.mul(k.load(found, first), emit.select(stays, sign, emit.neg(sign))), first)
                k.store(found, emit.add(k.load(found, second), emit.call("log", emit.fabs(pivot))), second)


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

    def operations(self, args: Sequence[TensorType], results: Sequence[TensorType]) -> float:
        return 4.0 * args[0].size * min(args[0].shape[-2:])

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        """Reflections triangularise the columns one by one; applied in reverse to unit vectors, they then give the columns of `q`."""
        *batch, m, n = a.type.shape
        dtype, emit = a.type.dtype, k.scalar
        if not n:
            return
        work, mirrors, basis = (k.scratch(TensorType(dtype, shape)) for shape in ((m, n), (n, m), (m, n)))
        column, row, scales = (k.scratch(TensorType(dtype, shape)) for shape in ((m, 1), (1, n), (n,)))
        with nest(k, batch) as at:
            k.copy(work, a.at(*at))
            with k.loop(n) as j:
                self.mirror(k, work, mirrors.at(j), scales, j)
                self.reflect(k, work, mirrors.at(j), k.load(scales, j), column, row)
            with nest(k, (m, n)) as (i, j):
                one = emit.select(emit.compare("eq", i, j), emit.const(dtype, 1.0), emit.const(dtype, 0.0))
                k.store(basis, one, i, j)
            with k.loop(n) as step:
                j = emit.sub(emit.like(step, n - 1), step)
                self.reflect(k, basis, mirrors.at(j), k.load(scales, j), column, row)
            k.copy(out.at(*at).slice(0, 0, m), basis)
            with nest(k, (n, n)) as (j, i):
                inside = k.load(work, i, j)
                k.store(out.at(*at).slice(0, m, n), emit.select(emit.compare("le", i, j), inside, emit.like(inside, 0.0)), j, i)

    def mirror(self, k: Loops, work: Window, mirror: Window, scales: Window, j: Reg) -> None:
        """The reflection that zeroes column j below the diagonal: its direction, 1 at the diagonal, and its scale."""
        emit, m = k.scalar, work.type.shape[0]
        alpha = k.load(work, j, j)
        zero, one = emit.like(alpha, 0.0), emit.like(alpha, 1.0)
        k.store(scales, zero, j)
        with k.loop(m) as i:
            x = emit.select(emit.compare("gt", i, j), k.load(work, i, j), zero)
            k.store(scales, emit.add(k.load(scales, j), emit.mul(x, x)), j)
        tail = k.load(scales, j)
        done = emit.compare("eq", tail, zero)
        length = emit.sqrt(emit.add(emit.mul(alpha, alpha), tail))
        beta = emit.select(done, one, emit.neg(emit.copysign(length, alpha)))
        k.store(scales, emit.select(done, zero, emit.fdiv(emit.sub(beta, alpha), beta)), j)
        divisor = emit.select(done, one, emit.sub(alpha, beta))
        with k.loop(m) as i:
            x = emit.select(emit.compare("gt", i, j), emit.fdiv(k.load(work, i, j), divisor), zero)
            k.store(mirror, emit.select(emit.compare("eq", i, j), one, x), i)

    def reflect(self, k: Loops, work: Window, mirror: Window, scale: Reg, column: Window, row: Window) -> None:
        """work -= scale * mirror ⊗ (mirror @ work), `column` and `row` being scratch."""
        emit, (m, n), first = k.scalar, work.type.shape, k.scalar.const(I64, 0)
        with k.loop(m) as i:
            k.store(column, k.load(mirror, i), i, first)
        k.matmul(row, column.transposed(1, 0), work)
        with k.loop(n) as j:
            k.store(row, emit.neg(emit.mul(scale, k.load(row, first, j))), first, j)
        k.matmul(work, column, row, accumulate=True)


def parts(packed: Operand) -> tuple[Operand, Operand]:
    """q and r from the result of `Qr`."""
    n = packed.shape[-1]
    m = packed.shape[-2] - n
    head = [slice(None)] * (packed.ndim - 2)
    return slice_(packed, [*head, slice(0, m)]), swap(slice_(packed, [*head, slice(m, m + n)]))


def upper(x: Operand) -> Operand:
    return swap(lower(swap(x)))


def slogdet(a: Operand) -> tuple[Operand, Operand]:
    """Sign and logarithm of the absolute value of the determinant."""
    check_square("slogdet", a.type)
    both = apply(Slogdet(), a, lu(a))
    head = [slice(None)] * (both.ndim - 1)
    sign, size = (reshape(slice_(both, [*head, slice(i, i + 1)]), both.shape[:-1]) for i in range(2))
    return sign, size


def qr(a: Operand) -> tuple[Operand, Operand]:
    """q with orthonormal columns and a triangular r with `q @ r = a`; for a wide matrix, r is as wide."""
    m, n = a.type.shape[-2:] if a.ndim > 1 else (0, 0)
    if m >= n:
        return parts(apply(Qr(), a))
    head = [slice(None)] * (a.ndim - 1)
    q, r = qr(slice_(a, [*head, slice(0, m)]))
    return q, concatenate([r, matmul(swap(q), slice_(a, [*head, slice(m, n)]))], -1)
