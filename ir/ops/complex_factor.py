"""Factorisations of complex matrices.

A complex number is a real matrix of two rows and columns, so a complex matrix is a real one of twice the size, whose triangular factors are
those of the complex matrix. Determinants have an elimination of their own: the real matrix does not determine their phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost import Cost
from ..errors import ShapeError
from ..types import I64, TensorType
from .base import Array, Emitter, Loops, Reg, Window, Writing, apply, nest
from .cholesky import cholesky
from .complex import conj, from_parts, imag, real
from .elementary import Hypot
from .hermitian import PartsOp, adjoint, check_parts
from .join import concatenate
from .linalg import matmul
from .logic import less
from .lu import check_square, exchange
from .maps import where
from .qr import qr
from .reduce import sum as total
from .shape import reshape, slice_
from .solve import identity, solve
from .spectral import diagonal_of
from .triangle import spread

__all__ = ["cholesky_complex", "qr_complex", "slogdet_complex"]

if TYPE_CHECKING:
    from ..operand import Operand


def embedded(re: Operand, im: Operand) -> Operand:
    """The real matrices of twice the size: the number in row i and column j is in rows 2i, 2i + 1 and columns 2j, 2j + 1."""
    *batch, m, n = re.shape
    pairs = [concatenate([reshape(x, (*batch, m, 1, n, 1)) for x in row], -1) for row in ((re, -im), (im, re))]
    return reshape(concatenate(pairs, len(batch) + 1), (*batch, 2 * m, 2 * n))


def extracted(x: Operand) -> Operand:
    """The complex matrices that real ones of twice the size represent."""
    *batch, m, n = x.shape
    wide, whole = reshape(x, (*batch, m // 2, 2, n // 2, 2)), [slice(None)] * len(batch)
    parts = [slice_(wide, [*whole, slice(None), slice(i, i + 1), slice(None), slice(0, 1)]) for i in (0, 1)]
    return from_parts(*(reshape(part, (*batch, m // 2, n // 2)) for part in parts))


def cholesky_complex(a: Operand) -> Operand:
    """The lower triangular l with a positive diagonal and `l @ l^H = a`; the imaginary parts of the diagonal are not read."""
    check_square("cholesky", real(a).type)
    return extracted(cholesky(embedded(real(a), where(identity(a), 0.0, imag(a)))))


def qr_complex(a: Operand) -> tuple[Operand, Operand]:
    """q with orthonormal columns and a triangular r with a positive diagonal, with `q @ r = a`."""
    if a.ndim < 2:
        raise ShapeError(f"qr: takes matrices, not {a.type}")
    m, n = a.type.shape[-2:]
    if m < n:
        head = [slice(None)] * (a.ndim - 1)
        q, r = qr_complex(slice_(a, [*head, slice(0, m)]))
        return q, concatenate([r, matmul(adjoint(q), slice_(a, [*head, slice(m, n)]))], -1)
    q, r = qr(embedded(real(a), imag(a)))
    on_diagonal = diagonal_of(r)
    signs = where(less(on_diagonal, 0.0), on_diagonal.literal(-1.0, on_diagonal.type), 1.0)
    rows = reshape(signs, (*signs.shape[:-1], 1, signs.shape[-1]))
    return extracted(q * rows), extracted(r * reshape(signs, (*signs.shape, 1)))


class ComplexSlogdet(PartsOp):
    """The real and imaginary part of a determinant's phase and the logarithm of its magnitude, from the parts of the matrices.

    For a singular matrix they are 0, 0 and -inf.
    """

    def infer(self, *types: TensorType) -> TensorType:
        a = check_parts("slogdet", types)
        check_square("slogdet", a)
        return a.with_shape((*a.shape[:-2], 3))

    def evaluate(self, *arrays: Array) -> Array:
        sign, size = np.linalg.slogdet(arrays[0] + 1j * arrays[1])
        return np.stack([sign.real, sign.imag, size], -1).astype(arrays[0].dtype)

    def python(self, write: Writing, *args: Operand) -> Any:
        found = write.temporary("slogdet", write("np.linalg.slogdet({} + 1j * {})", *map(write.array, args)))
        return write("np.stack([{}.sign.real, {}.sign.imag, {}.logabsdet], -1)", *[found] * 3)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        zero = d.literal(0.0, d.type)
        change = total(diagonal_of(solve(from_parts(*args), from_parts(d, zero) if i == 0 else from_parts(zero, d))), -1)
        sign, _ = determinant_parts(y)
        turned = from_parts(-imag(sign), real(sign))
        parts = (imag(change) * real(turned), imag(change) * imag(turned), real(change))
        return concatenate([reshape(part, (*part.shape, 1)) for part in parts], -1)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        (sign, _), (dsign, dsize) = determinant_parts(y), determinant_parts(d)
        weight = from_parts(dsize, -imag(conj(dsign) * sign))
        a = from_parts(*args)
        wide = reshape(weight, (*weight.shape, 1, 1)) + a.literal(0.0, a.type)
        out = solve(adjoint(a), where(identity(wide), wide, 0.0))
        return real(out) if i == 0 else imag(out)

    def widened(self, size: int) -> ComplexSlogdet:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 8.0 * types[0].size * types[0].shape[-1])

    def lower(self, k: Loops, out: Window, re: Window, im: Window) -> None:
        """The product of the pivots of an elimination; each exchange of two rows flips its sign."""
        *batch, n, _ = re.type.shape
        emit, dtype = k.scalar, re.type.dtype
        places = [emit.const(I64, i) for i in range(3)]
        x, y = (k.scratch(TensorType(dtype, (max(n, 1), max(n, 1)))) for _ in range(2))
        scratch = [k.scratch(TensorType(dtype, (1,))) for _ in range(2)]
        with nest(k, batch) as at:
            found = out.at(*at)
            for place, value in zip(places, (1.0, 0.0, 0.0), strict=True):
                k.store(found, emit.const(dtype, value), place)
            if n:
                k.copy(x, re.at(*at))
                k.copy(y, im.at(*at))
                with k.loop(n) as i:
                    other = find_pivot(k, x, y, i, scratch[0])
                    exchange(k, x, i, other)
                    exchange(k, y, i, other)
                    self.multiply(k, found, places, k.load(x, i, i), k.load(y, i, i), emit.compare("eq", i, other))
                    eliminate(k, x, y, i, scratch)

    def multiply(self, k: Loops, found: Window, places: Sequence[Reg], a: Reg, b: Reg, stays: Reg) -> None:
        """Multiply the determinant by a pivot."""
        emit, (first, second, last) = k.scalar, places
        size = Hypot().scalar(emit, a, b)
        k.store(found, emit.add(k.load(found, last), emit.call("log", size)), last)
        scale = emit.select(emit.compare("eq", size, emit.like(size, 0.0)), emit.like(size, 1.0), size)
        scale = emit.select(stays, scale, emit.neg(scale))
        p, q, c, s = emit.fdiv(a, scale), emit.fdiv(b, scale), k.load(found, first), k.load(found, second)
        k.store(found, emit.sub(emit.mul(p, c), emit.mul(q, s)), first)
        k.store(found, emit.add(emit.mul(p, s), emit.mul(q, c)), second)


def find_pivot(k: Loops, x: Window, y: Window, i: Reg, best: Window) -> Reg:
    """The row, from i on, whose element in column i is largest."""
    emit, n, zero = k.scalar, x.type.shape[0], k.scalar.const(I64, 0)
    place = k.scratch(TensorType(I64, (1,)))
    k.store(place, i, zero)
    k.store(best, emit.const(x.type.dtype, -1.0), zero)
    with k.loop(n) as r:
        size = emit.add(emit.fabs(k.load(x, r, i)), emit.fabs(k.load(y, r, i)))
        larger = emit.and_(emit.compare("ge", r, i), emit.compare("gt", size, k.load(best, zero)))
        k.store(best, emit.select(larger, size, k.load(best, zero)), zero)
        k.store(place, emit.select(larger, r, k.load(place, zero)), zero)
    return k.load(place, zero)


def eliminate(k: Loops, x: Window, y: Window, i: Reg, factor: Sequence[Window]) -> None:
    """Subtract multiples of row i from the rows after it, so that their elements in column i vanish."""
    emit, n, zero = k.scalar, x.type.shape[0], k.scalar.const(I64, 0)
    a, b = k.load(x, i, i), k.load(y, i, i)
    square = emit.add(emit.mul(a, a), emit.mul(b, b))
    square = emit.select(emit.compare("eq", square, emit.like(square, 0.0)), emit.like(square, 1.0), square)
    p, q = emit.fdiv(a, square), emit.fdiv(emit.neg(b), square)

    def reduced(emit: Emitter, u: Reg, v: Reg, s: Reg, t: Reg, f: Reg, g: Reg) -> list[Reg]:
        return [emit.sub(u, emit.sub(emit.mul(f, s), emit.mul(g, t))), emit.sub(v, emit.add(emit.mul(f, t), emit.mul(g, s)))]

    with k.loop(n) as r:
        below = emit.compare("gt", r, i)
        u, v, none = k.load(x, r, i), k.load(y, r, i), emit.like(a, 0.0)
        k.store(factor[0], emit.select(below, emit.sub(emit.mul(u, p), emit.mul(v, q)), none), zero)
        k.store(factor[1], emit.select(below, emit.add(emit.mul(u, q), emit.mul(v, p)), none), zero)
        with k.loop(emit.convert(below, I64)):
            rows = [x.at(r), y.at(r)]
            k.map(reduced, rows, [*rows, x.at(i), y.at(i), *(spread(k, f, n) for f in factor)])


def determinant_parts(packed: Operand) -> tuple[Operand, Operand]:
    """The phase and the logarithm, from the result of `ComplexSlogdet`."""
    head = [slice(None)] * (packed.ndim - 1)
    re, im, size = (reshape(slice_(packed, [*head, slice(i, i + 1)]), packed.shape[:-1]) for i in range(3))
    return from_parts(re, im), size


def slogdet_complex(a: Operand) -> tuple[Operand, Operand]:
    """The phase and the logarithm of the absolute value of the determinant."""
    return determinant_parts(apply(ComplexSlogdet(), real(a), imag(a)))
