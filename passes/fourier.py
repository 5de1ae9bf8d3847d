"""Composes Fourier transforms of any length from the lengths that native code supports; called by `passes.complex`.

A length without large prime factors is one `fft_parts`: in two steps, unless the axis is short. Other lengths are convolutions with a
chirp, by transforms of a larger size (Bluestein's algorithm).
"""

from __future__ import annotations

import math

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.ir.ops import pairs
from adjit.ir.ops.base import Array, apply
from adjit.ir.ops.create import Constant
from adjit.ir.ops.fft import Fft, FftParts, factors_of, is_smooth, tables_of, unit_root
from adjit.ir.ops.pairs import Pair
from adjit.ir.types import DType

SPLIT = 64  # shorter axes are transformed in one step, longer ones in two: each step then works on few numbers
LEAST = 4  # the smallest factor worth a step of its own


def transformed(op: Fft, x: Operand) -> Operand:
    """The transform of numbers whose parts are along the last axis."""
    n = x.type.shape[op.axis]
    if not is_smooth(n):
        return chirped(op, x)
    return direct(op, x) if n < SPLIT or halves(n)[0] < LEAST else in_two_steps(op, x)


def direct(op: Fft, x: Operand) -> Operand:
    return in_steps(op, x, (x.type.shape[op.axis],))


def in_steps(op: Fft, x: Operand, sizes: tuple[int, ...]) -> Operand:
    return apply(FftParts(op.axis, op.inverse, op.scale), x, *(constant(t, x.type.dtype) for t in tables_of(sizes, x.type.dtype)))


def constant(array: Array, dtype: DType) -> Operand:
    return ops.perform(Constant.of(array.astype(dtype)))


def halves(n: int) -> tuple[int, int]:
    """Two factors of n, as close to each other as possible, the smaller first."""
    small = next(d for d in range(math.isqrt(n), 0, -1) if n % d == 0)
    return small, n // small


def in_two_steps(op: Fft, x: Operand) -> Operand:
    """The axis as a matrix: element (j, k) of its transformed columns is multiplied by the root of unity of j * k."""
    return in_steps(op, x, halves(x.type.shape[op.axis]))


def times(x: Operand, factors: Pair) -> Operand:
    """x, whose last axis holds parts, times factors that broadcast."""
    z = pairs.parted(x)
    wide = Pair(*(ops.broadcast_to(f, z.re.type.shape) for f in factors))
    return pairs.joined(pairs.mul(z, wide))


def chirped(op: Fft, x: Operand) -> Operand:
    """Bluestein's algorithm: jk = (j² + k² - (j - k)²) / 2 makes the transform a convolution, which any larger size computes."""
    shape, axis = x.type.shape, op.axis
    n, dtype = shape[axis], x.type.dtype
    size = good_size(2 * n - 1)
    squares = np.arange(n) ** 2 % (2 * n)
    chirp = unit_root(squares, 2 * n)
    kernel = np.zeros(size, complex)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[1:][::-1].conj()
    spectrum = np.fft.fft(kernel) / size
    if op.inverse:
        chirp, spectrum = chirp.conj(), np.roll(spectrum[::-1], 1).conj()
    trail = (1,) * (len(shape) - axis - 2)

    def along(z: Array) -> Pair:
        return Pair(*(constant(np.ascontiguousarray(p).reshape(-1, *trail), dtype) for p in (z.real, z.imag)))

    low, high = [0] * len(shape), [0] * len(shape)
    high[axis] = size - n
    wide = ops.pad(times(x, along(chirp)), low, high)
    product = times(transformed(Fft(axis), wide), along(spectrum))
    back = transformed(Fft(axis, inverse=True), product)
    cut = ops.slice_(back, [*[slice(None)] * axis, slice(n)])
    return times(cut, along(chirp * op.scale))


def good_size(least: int) -> int:
    """The smallest size of at least `least` that native code transforms in steps of at most 8."""
    size = least
    while max(factors_of(size)) > 8:
        size += 1
    return size
