"""Convolution of arrays of any rank."""

from __future__ import annotations

from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.ops.convolution import conv
from adjit.tracer.convert import pick, to_operands
from adjit.tracer.surface import polynomials
from adjit.tracer.surface.elementwise import floating
from adjit.tracer.surface.fft import fftconvolve

__all__ = ["convolve", "correlate", "fftconvolve"]


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Operand:
    """Convolve two arrays of the same rank, 1 to 3. `mode` is "full", "same" (the size of in1) or "valid"; `method` makes no difference."""
    a, v = (floating(x) for x in to_operands(in1, in2))
    if a.ndim != v.ndim or not 1 <= a.ndim <= 3:
        raise ShapeError(f"convolve: takes two arrays of the same rank, 1 to 3, not {a.type} and {v.type}")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: mode is 'full', 'same' or 'valid', not {mode!r}")
    if mode == "valid":
        if all(m <= n for m, n in zip(a.shape, v.shape, strict=True)):
            a, v = v, a
        elif not all(m >= n for m, n in zip(a.shape, v.shape, strict=True)):
            raise ShapeError(f"convolve: for mode 'valid', one array must be at least as large as the other, not {a.type} and {v.type}")
        return slid(a, v, [0] * a.ndim)
    whole = slid(a, v, [n - 1 for n in v.shape])
    if mode == "full":
        return whole
    return pick(whole, tuple(slice((n - 1) // 2, (n - 1) // 2 + m) for m, n in zip(a.shape, v.shape, strict=True)))


def slid(a: Operand, v: Operand, margins: list[int]) -> Operand:
    """The sums of products of the reversed v with every window of a, padded with zeros."""
    if a.ndim == 1:
        return polynomials.correlated(ops.pad(a, margins, margins), ops.flip(v, 0), "valid", "convolve")
    image = ops.reshape(a, (1, *a.shape, 1))
    kernel = ops.reshape(ops.flip(v, tuple(range(v.ndim))), (*v.shape, 1, 1))
    found = conv(image, kernel, padding=[(m, m) for m in margins])
    return ops.reshape(found, found.shape[1:-1])


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Operand:
    """Cross-correlate two arrays of the same rank: the convolution with the second one reversed."""
    a, v = to_operands(in1, in2)
    return convolve(a, ops.flip(v, tuple(range(v.ndim))), mode, method)


def __dir__() -> list[str]:
    return __all__
