"""`aj.fft`: discrete Fourier transforms, as in `np.fft`, and convolutions by them. Single precision stays single.

Transforms of real numbers of even length n use one of n/2 complex numbers: the even and odd elements as real and imaginary parts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Concrete, Operand
from adjit.ir.ops.fft import fft as transform
from adjit.ir.ops.fft import unit_root
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import complex_dtype, normalize_axis, real_dtype

from ..convert import present, to_operand, to_operands
from ..results import copies
from .create import check_device
from .shapes import roll

__all__ = [
    "fft", "fft2", "fftconvolve", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


NORMS = ("backward", "ortho", "forward")


def scale_of(n: int, norm: str | None, inverse: bool, what: str) -> float:
    """The factor of a transform of length n."""
    if norm is not None and norm not in NORMS:
        raise ShapeError(f'{what}: norm {norm!r} is not "backward", "ortho" or "forward"')
    if norm == "ortho":
        return 1.0 / math.sqrt(n)
    return 1.0 / n if inverse != (norm == "forward") else 1.0


def sized(x: Operand, n: Any, axis: int, what: str) -> Operand:
    """x cut or padded with zeros to n elements along an axis."""
    size = x.shape[axis] if n is None else operator.index(n)
    if size < 1:
        raise ShapeError(f"{what}: a transform of {size} elements, of axis {axis} of {x.type}; it needs at least one")
    if size < x.shape[axis]:
        return ops.slice_(x, [*[slice(None)] * axis, slice(size)])
    high = [size - x.shape[axis] if a == axis else 0 for a in range(x.ndim)]
    return ops.pad(x, [0] * x.ndim, high)


def floating(x: Any, what: str, real: bool = False) -> Operand:
    """The operand in floating point; float32 stays, everything else real becomes float64."""
    operand = to_operand(x)
    if real and operand.type.is_complex:
        raise DTypeError(f"{what}: takes real numbers, not {operand.type}; use fft, or take the real part")
    return operand if operand.type.is_inexact else ops.cast(operand, np.dtype(np.float64))


def axis_of(x: Operand, axis: Any, what: str) -> int:
    return normalize_axis(axis, x.ndim, what)


# ---- one axis


def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> Operand:
    """Compute the discrete Fourier transform along an axis."""
    return transformed(floating(x, "fft"), n, axis, norm, False, "fft")


def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> Operand:
    """Compute the inverse discrete Fourier transform along an axis."""
    return transformed(floating(x, "ifft"), n, axis, norm, True, "ifft")


def transformed(x: Operand, n: Any, axis: Any, norm: str | None, inverse: bool, what: str) -> Operand:
    axis = axis_of(x, axis, what)
    z = sized(x, n, axis, what)
    return present(transform(z, axis, inverse, scale_of(z.shape[axis], norm, inverse, what)))


def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> Operand:
    """Compute the first half of the transform of real numbers: n // 2 + 1 elements; the others are their conjugates."""
    return half_spectrum(floating(x, "rfft", real=True), n, axis, norm, False, "rfft")


def half_spectrum(x: Operand, n: Any, axis: Any, norm: str | None, inverse: bool, what: str) -> Operand:
    axis = axis_of(x, axis, what)
    x = sized(x, n, axis, what)
    size, scale = x.shape[axis], scale_of(x.shape[axis], norm, inverse, what)
    whole = [slice(None)] * axis
    if size % 2 or size < 4:
        return present(ops.slice_(transform(x, axis, False, scale), [*whole, slice(size // 2 + 1)]))
    parts = [ops.slice_(x, [*whole, slice(k, None, 2)]) for k in (0, 1)]
    z = transform(ops.from_parts(*parts), axis, False, 0.5 * scale)
    z = ops.concatenate([z, ops.slice_(z, [*whole, slice(1)])], axis)  # periodic: element n/2 is element 0
    mirrored = ops.conj(ops.flip(z, axis))
    return present(z + mirrored + (z - mirrored) * along(z, axis, -1j * unit_root(np.arange(size // 2 + 1), size)))


def along(z: Operand, axis: int, factors: Any) -> Operand:
    """Constants along an axis, in the precision of z."""
    shape = [factors.size if a == axis else 1 for a in range(z.ndim)]
    return Concrete(np.ascontiguousarray(factors).reshape(shape).astype(z.dtype))


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> Operand:
    """Compute the n real numbers whose transform has this first half; the inverse of `rfft`."""
    return from_half(floating(x, "irfft"), n, axis, norm, True, "irfft")


def from_half(x: Operand, n: Any, axis: Any, norm: str | None, inverse: bool, what: str) -> Operand:
    z = ops.cast(x, complex_dtype(x.dtype))
    axis = axis_of(z, axis, what)
    size = 2 * (z.shape[axis] - 1) if n is None else operator.index(n)
    if size < 1:
        raise ShapeError(f"{what}: a transform of {size} elements, of axis {axis} of {x.type}; it needs at least one")
    scale = scale_of(size, norm, inverse, what)
    z = sized(z, size // 2 + 1, axis, what)
    real_ends = np.ones(size // 2 + 1)
    real_ends[0] = 0.0
    if size % 2 == 0:
        real_ends[-1] = 0.0
    shape = [real_ends.size if a == axis else 1 for a in range(z.ndim)]
    mask = Concrete(real_ends.reshape(shape).astype(real_dtype(z.dtype)))
    z = ops.from_parts(ops.real(z), ops.imag(z) * mask)  # elements that are their own conjugates are real
    whole = [slice(None)] * axis
    if size % 2 or size < 4:
        others = ops.flip(ops.slice_(z, [*whole, slice(1, (size + 1) // 2)]), axis)
        return present(ops.real(transform(ops.concatenate([z, ops.conj(others)], axis), axis, True, scale)))
    mirrored = ops.conj(ops.flip(z, axis))
    turned = (z - mirrored) * along(z, axis, 1j * unit_root(np.arange(size // 2 + 1), size).conj())
    packed = ops.slice_(z + mirrored + turned, [*whole, slice(size // 2)])
    pairs = transform(packed, axis, True, scale)
    parts = [ops.reshape(part, (*z.shape[:axis], size // 2, 1, *z.shape[axis + 1 :])) for part in (ops.real(pairs), ops.imag(pairs))]
    return present(ops.reshape(ops.concatenate(parts, axis + 1), (*z.shape[:axis], size, *z.shape[axis + 1 :])))


SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> Operand:
    """Compute the transform, which is real, of numbers whose second half are conjugates of the first."""
    return from_half(ops.conj(floating(x, "hfft")), n, axis, norm, False, "hfft")


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> Operand:
    """Compute the inverse of `hfft`."""
    return present(ops.conj(half_spectrum(floating(x, "ihfft", real=True), n, axis, norm, True, "ihfft")))


# ---- several axes


def several(x: Operand, s: Any, axes: Any, what: str) -> tuple[list[int], list[Any]]:
    """Return the axes and their lengths, as in NumPy: the last axes if only lengths are given, all by default."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    found = [axis_of(x, a, what) for a in axes]
    if s is not None and len(s) != len(found):
        raise ShapeError(f"{what}: {len(s)} lengths for {len(found)} axes")
    sizes = [x.shape[a] if n is None or n == -1 else n for a, n in zip(found, [None] * len(found) if s is None else s, strict=True)]
    if s is None and what == "irfftn" and found:
        sizes[-1] = None  # of a transform of half of the numbers
    return found, sizes


def halved(x: Operand, s: Any, axes: Any, what: str) -> tuple[Sequence[int], list[Any]]:
    """The axes and sizes of a transform that keeps half of the last axis, which must exist."""
    found, sizes = several(x, s, axes, what)
    if not found:
        raise ShapeError(f"{what}: needs at least one axis; {x.type} was given {'none' if x.ndim else 'and has none'}")
    return found, sizes


def nested(one: Callable[..., Operand], x: Operand, axes: Sequence[int], sizes: Sequence[Any], norm: str | None) -> Operand:
    for axis, n in zip(reversed(axes), reversed(sizes), strict=True):
        x = one(x, n, axis, norm)
    return x


@copies
def fftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> Operand:
    """Compute the transform along several axes, by default all."""
    operand = floating(x, "fftn")
    return nested(fft, operand, *several(operand, s, axes, "fftn"), norm)


@copies
def ifftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> Operand:
    """Compute the inverse transform along several axes, by default all."""
    operand = floating(x, "ifftn")
    return nested(ifft, operand, *several(operand, s, axes, "ifftn"), norm)


def rfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> Operand:
    """Compute the transform of real numbers along several axes: half of the last one."""
    operand = floating(x, "rfftn", real=True)
    found, sizes = halved(operand, s, axes, "rfftn")
    half = half_spectrum(operand, sizes[-1], found[-1], norm, False, "rfftn")
    return nested(fft, half, found[:-1], sizes[:-1], norm)


def irfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> Operand:
    """Compute the inverse of `rfftn`."""
    operand = floating(x, "irfftn")
    found, sizes = halved(operand, s, axes, "irfftn")
    for axis, n in zip(found[:-1], sizes[:-1], strict=True):
        operand = ifft(operand, n, axis, norm)
    return from_half(operand, sizes[-1], found[-1], norm, True, "irfftn")


@copies
def fft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Operand:
    """Compute the transform along two axes."""
    return fftn(x, s, axes, norm)


@copies
def ifft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Operand:
    """Compute the inverse transform along two axes."""
    return ifftn(x, s, axes, norm)


def rfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Operand:
    """Compute the transform of real numbers along two axes: half of the second one."""
    return rfftn(x, s, axes, norm)


def irfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Operand:
    """Compute the inverse of `rfft2`."""
    return irfftn(x, s, axes, norm)


# ---- frequencies


def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Operand:
    """Return the frequencies of the elements of a transform of length n, with samples d apart."""
    check_device(device)
    return present(Concrete(np.fft.fftfreq(n, d).astype(np.float64 if dtype is None else dtype)))


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Operand:
    """Return the frequencies of the elements of `rfft`."""
    check_device(device)
    return present(Concrete(np.fft.rfftfreq(n, d).astype(np.float64 if dtype is None else dtype)))


@copies
def fftshift(x: Any, /, axes: Any = None) -> Operand:
    """Move the zero frequency to the middle of the axes."""
    return shifted(x, axes, lambda n: n // 2)


@copies
def ifftshift(x: Any, /, axes: Any = None) -> Operand:
    """Undo `fftshift`."""
    return shifted(x, axes, lambda n: -(n // 2))


def shifted(x: Any, axes: Any, by: Callable[[int], int]) -> Operand:
    operand = to_operand(x)
    given = range(operand.ndim) if axes is None else axes if isinstance(axes, Iterable) else (axes,)
    found = tuple(axis_of(operand, a, "fftshift") for a in given)
    return roll(operand, tuple(by(operand.shape[a]) for a in found), found)


# ---- convolution


def fftconvolve(a: Any, b: Any, /, mode: str = "full", axes: Any = None) -> Operand:
    """Convolve two arrays of equal rank by Fourier transforms, as `scipy.signal.fftconvolve` does."""
    a, b = to_operands(a, b)
    if a.ndim != b.ndim or mode not in ("full", "same", "valid"):
        raise ShapeError(f"fftconvolve: takes arrays of equal rank and a mode of full, same or valid, not {a.type}, {b.type} and {mode!r}")
    along_axes = several(a, None, axes if axes is None or isinstance(axes, Iterable) else (axes,), "fftconvolve")[0]
    if mode == "valid" and any(a.shape[k] < b.shape[k] for k in along_axes):
        a, b = b, a
        if any(a.shape[k] < b.shape[k] for k in along_axes):
            raise ShapeError(f"fftconvolve: for mode 'valid', one array must be at least as large as the other, not {a.type} and {b.type}")
    full = [a.shape[k] + b.shape[k] - 1 for k in along_axes]
    sizes = [good_size(n) for n in full]
    if a.type.is_complex or b.type.is_complex:
        out = ifftn(fftn(a, sizes, along_axes) * fftn(b, sizes, along_axes), None, along_axes)
    else:
        out = irfftn(rfftn(a, sizes, along_axes) * rfftn(b, sizes, along_axes), sizes, along_axes)
    cut = [slice(None)] * a.ndim
    for k, size in zip(along_axes, full, strict=True):
        wanted = size if mode == "full" else a.shape[k] if mode == "same" else a.shape[k] - b.shape[k] + 1
        start = (size - wanted) // 2
        cut[k] = slice(start, start + wanted)
    return present(ops.slice_(out, cut))


def good_size(n: int) -> int:
    """Return the next even size whose prime factors are 2, 3 and 5: a real transform of even length uses one of half the length."""
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1 and n % 2 == 0:
            return n
        n += 1


end_at_callers(globals())
