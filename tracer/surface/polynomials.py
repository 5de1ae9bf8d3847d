"""Arithmetic of polynomials, given by their coefficients, highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import complex_dtype

from ..convert import counting, pick, to_operand, to_operands
from .elementwise import floating
from .shapes import atleast_1d, concatenate


def poly(roots: Any, /) -> Operand:
    """Return the coefficients of the polynomial with the given roots, highest power first.

    >>> aj.poly([1.0, 2.0])
    Tensor([ 1., -3.,  2.], f64[3])
    """
    roots = floating(to_operand(roots))
    if roots.ndim == 2:
        roots = spectral().eigvals(roots)  # complex, so that the coefficients are as well
    if roots.ndim > 1:
        raise ShapeError(f"poly: takes a vector of roots, not {roots.type}")
    out: Operand = ops.cast(to_operand([1.0]), roots.dtype)
    for i in range(roots.shape[0] if roots.ndim else 0):
        out = product(out, ops.reshape(pick(roots, i), (1,)))
    return out


def roots(p: Any, /) -> Operand:
    """Return the roots of a polynomial whose first coefficient is not 0, as complex numbers in no order.

    >>> aj.sort(aj.real(aj.roots([1.0, -3.0, 2.0])))
    Tensor([1., 2.], f64[2])
    """
    p = floating(to_operand(p))
    if p.ndim != 1 or not p.shape[0]:
        raise ShapeError(f"roots: takes a vector of coefficients, not {p.type}")
    n = p.shape[0] - 1
    ops.check(ops.not_equal(ops.stop_gradient(pick(p, 0)), 0.0), "roots: the first coefficient is 0", "ValueError")
    first = -pick(p, slice(1, None)) / pick(p, 0)
    if n < 2:
        return ops.cast(first, complex_dtype(p.dtype))
    below = ops.cast(to_operand(np.eye(n - 1, n)), p.dtype)
    out: Operand = spectral().eigvals(concatenate([ops.reshape(first, (1, n)), below], 0))
    return out


def spectral() -> Any:
    from . import spectral  # noqa: PLC0415 - few programs need it

    return spectral


def product(p: Operand, root: Operand) -> Operand:
    """Return p times (x - root)."""
    zero = ops.cast(to_operand([0.0]), p.dtype)
    return concatenate([p, zero], 0) - concatenate([zero, p * root], 0)


def polyadd(a: Any, b: Any, /) -> Operand:
    """Return the sum of two polynomials.

    >>> aj.polyadd([1, 2], [1, 0, 0])
    Tensor([1, 1, 2], i64[3])
    """
    first, second = aligned(a, b)
    return first + second


def polysub(a: Any, b: Any, /) -> Operand:
    """Return the difference of two polynomials.

    >>> aj.polysub([1, 0, 0], [1, 2])
    Tensor([ 1, -1, -2], i64[3])
    """
    first, second = aligned(a, b)
    return first - second


def polymul(a: Any, b: Any, /) -> Operand:
    """Return the product of two polynomials.

    >>> aj.polymul([1, 1], [1, -1])
    Tensor([ 1,  0, -1], i64[3])
    """
    first, second = vectors(a, b)
    return convolve(first, second)


def polydiv(u: Any, v: Any, /) -> tuple[Operand, Operand]:
    """Return the quotient and remainder. The remainder has one coefficient fewer than the divisor, including leading zeros.

    >>> aj.polydiv([1.0, 0.0, -1.0], [1.0, -1.0])
    (Tensor([1., 1.], f64[2]), Tensor([0.], f64[1]))
    """
    u, v = (floating(x) for x in vectors(u, v))
    rest, steps = u + 0.0 * pick(v, 0), u.shape[0] - v.shape[0] + 1
    quotient: list[Operand] = []
    for _ in range(steps):
        factor = pick(rest, 0) / pick(v, 0)
        quotient.append(ops.reshape(factor, (1,)))
        head = ops.slice_(rest, [slice(1, v.shape[0])]) - factor * ops.slice_(v, [slice(1, None)])
        rest = concatenate([head, ops.slice_(rest, [slice(v.shape[0], None)])], 0)
    zero = ops.cast(to_operand([0.0]), rest.dtype)
    return concatenate(quotient, 0) if quotient else zero, rest if rest.shape[0] else zero


def vectors(*xs: Any) -> list[Operand]:
    out = [ops.reshape(x, (1,)) if not x.ndim else x for x in to_operands(*xs)]
    for x in out:
        if x.ndim > 1:
            raise ShapeError(f"a polynomial is a vector of coefficients, not {x.type}")
    return out


def aligned(*xs: Any) -> list[Operand]:
    """Pad coefficients to a common length, so that equal powers are aligned."""
    given = vectors(*xs)
    longest = max(x.shape[0] for x in given)
    return [ops.pad(x, [longest - x.shape[0]], [0]) for x in given]


# ---- convolution, which multiplies polynomials


def convolve(a: Any, v: Any, /, mode: str = "full") -> Operand:
    """Return the discrete convolution of two vectors.

    >>> aj.convolve([1, 2, 3], [1, 1]), aj.convolve([1, 2, 3], [1, 1], mode="valid")
    (Tensor([1, 3, 5, 3], i64[4]), Tensor([3, 5], i64[2]))
    """
    a, v = atleast_1d(*to_operands(a, v))
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    return correlated(a, ops.flip(v, 0), mode, "convolve")


def correlate(a: Any, v: Any, /, mode: str = "valid") -> Operand:
    """Return the cross-correlation of two vectors, the second of them conjugated.

    >>> aj.correlate([1, 2, 3], [0, 1])
    Tensor([2, 3], i64[2])
    """
    a, v = atleast_1d(*to_operands(a, v))
    if v.shape[0] > a.shape[0]:
        return ops.flip(correlated(ops.conj(v), a, mode, "correlate"), 0)
    return correlated(a, ops.conj(v), mode, "correlate")


def correlated(a: Operand, v: Operand, mode: str, what: str) -> Operand:
    """Multiply `v` with every window of the longer `a`."""
    if a.ndim != 1 or v.ndim != 1 or not v.shape[0]:
        raise ShapeError(f"{what}: takes two vectors that are not empty, not {a.type} and {v.type}")
    size = v.shape[0]
    margins = {"full": (size - 1, size - 1), "same": (size // 2, size - 1 - size // 2), "valid": (0, 0)}
    if mode not in margins:
        raise ShapeError(f"{what}: mode {mode!r} is not one of full, same and valid")
    low, high = margins[mode]
    padded = ops.pad(a, [low], [high])
    count = padded.shape[0] - size + 1
    windows = pick(padded, counting(count, 2, 0) + counting(size, 2, 1))
    return ops.matmul(windows, v)


def polyval(p: Any, x: Any, /) -> Operand:
    """Return the value at x of the polynomial with coefficients p, highest power first.

    >>> aj.polyval([1, 0, -1], [2, 3])
    Tensor([3, 8], i64[2])
    """
    p, x = to_operands(p, x)
    if not p.ndim:
        raise ShapeError(f"polyval: the coefficients must be a vector, not {p.type}")
    out: Operand = ops.cast(to_operand(0), x.dtype)
    out = ops.broadcast_to(out, x.shape)
    for i in range(p.shape[0]):
        out = out * x + pick(p, i)
    return out


end_at_callers(globals())
