"""Parts of complex numbers: real and imaginary parts, conjugates, angles."""

from __future__ import annotations

import math
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import UnsupportedError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.maps import common_math_dtype, promoted
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import BOOL, I8

from ..convert import numbers, present, to_operand
from ..results import copies
from .elementwise import floating, signbit


@copies
def conjugate(x: Any, /) -> Operand:
    """Return the complex conjugate; real numbers unchanged. Bools become integers, as in NumPy.

    >>> aj.conj([1 + 2j, 3 - 1j])
    Tensor([1.-2.j, 3.+1.j], c128[2])
    """
    operand = to_operand(x)
    return ops.cast(operand, I8) if operand.dtype == BOOL else ops.conj(operand)


def real(x: Any, /) -> Operand:
    """Return the real part; real numbers unchanged, including traced Python numbers.

    >>> aj.real([1 + 2j, 3.0])
    Tensor([1., 3.], f64[2])
    """
    return ops.real(as_operand(x) if isinstance(x, Operand) else to_operand(x))


def imag(x: Any, /) -> Operand:
    """Return the imaginary part, which is 0 for real numbers.

    >>> aj.imag([1 + 2j, 3.0])
    Tensor([2., 0.], f64[2])
    """
    x = x if isinstance(x, Operand) else to_operand(x)
    return x.literal(0, x.type) if x.weak and not x.type.is_complex else present(ops.imag(x))  # for a Python number, NumPy returns a number


def isreal(x: Any, /) -> Operand:
    """Return whether the imaginary part of each element is 0."""
    return present(ops.equal(ops.imag(to_operand(x)), 0))


def iscomplex(x: Any, /) -> Operand:
    """Return whether the imaginary part of each element differs from 0."""
    return present(ops.not_equal(ops.imag(to_operand(x)), 0))


def complex(real: Any, imag: Any, /) -> Operand:
    """Return the complex numbers with these real and imaginary parts."""
    given = numbers(real, imag)
    return ops.from_parts(*promoted("complex", tuple(given), common_math_dtype(*given)))


def angle(x: Any, /, deg: bool = False) -> Operand:
    """Return the angle of numbers in the complex plane, in radians or degrees.

    >>> aj.angle([1.0, 1j], deg=True)
    Tensor([ 0., 90.], f64[2])
    """
    x = floating(to_operand(x))
    if x.type.is_complex:
        out = ops.atan2(ops.imag(x), ops.real(x))
        return out * (180.0 / math.pi) if deg else out
    out = ops.where(signbit(x), 180.0 if deg else math.pi, ops.cast(to_operand(0.0), x.dtype))
    return ops.where(ops.isnan(x), x, out)


def real_if_close(x: Any, /, tol: float = 100) -> Operand:
    """Return x itself if it is real; whether a complex array is close to a real one is only known eagerly."""
    operand = to_operand(x)
    if operand.type.is_complex:
        raise UnsupportedError("real_if_close: whether the result is complex would depend on values; take .real")
    return operand


end_at_callers(globals())
