"""Special functions of tf.math and tf.math.special, and functions of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.ops import complex as complex_ops
from adjit.ir.types import broadcast_shapes
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import complex_numbers, shapes
from adjit.tracer.surface import special as functions

from .errors import out_of_scope
from .tensor import convert_to_tensor
from .wrapping import binary, check_floating, public, tensors, unary

__all__ = [
    "angle", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc", "complex", "conj", "digamma", "erfc", "erfcinv", "erfinv",
    "igamma", "igammac", "imag", "lbeta", "lgamma", "ndtri", "polygamma", "real", "zeta",
]  # fmt: skip

lgamma, digamma = unary(functions.gammaln, "lgamma", True), unary(functions.digamma, "digamma", True)
erfc, erfinv, erfcinv = (
    unary(functions.erfc, "erfc", True), unary(functions.erfinv, "erfinv", True), unary(functions.erfcinv, "erfcinv", True)
)  # fmt: skip
ndtri = unary(functions.ndtri, "ndtri", True)
bessel_i0, bessel_i0e = unary(functions.i0, "bessel_i0", True), unary(functions.i0e, "bessel_i0e", True)
bessel_i1, bessel_i1e = unary(functions.i1, "bessel_i1", True), unary(functions.i1e, "bessel_i1e", True)
_igamma, _igammac = binary(functions.gammainc, "igamma"), binary(functions.gammaincc, "igammac")
_zeta = binary(functions.zeta, "zeta")


def igamma(a: Any, x: Any, name: str | None = None) -> Any:
    """The lower regularized incomplete gamma function."""
    return _igamma(a, x)


def igammac(a: Any, x: Any, name: str | None = None) -> Any:
    """The upper regularized incomplete gamma function."""
    return _igammac(a, x)


def zeta(x: Any, q: Any, name: str | None = None) -> Any:
    """The Hurwitz zeta function."""
    return _zeta(x, q)


@public
def polygamma(a: Any, x: Any, name: str | None = None) -> Any:
    """The a-th derivative of digamma. The order is one number, known while tracing."""
    order = convert_to_tensor(a)
    if is_traced(order) or np.unique(np.asarray(order)).size != 1 or float(np.asarray(order).flat[0]) % 1:
        out_of_scope("tf.math.polygamma of several orders, or of one that is computed", "pass an integer")
    x = convert_to_tensor(x)
    check_floating("polygamma", x)
    shape = broadcast_shapes("polygamma", order.type.shape, x.type.shape)
    return functions.polygamma(int(np.asarray(order).flat[0]), ops.broadcast_to(x, shape))


@public
def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Any:
    """The regularised incomplete beta function."""
    return functions.betainc(convert_to_tensor(a), convert_to_tensor(b), convert_to_tensor(x))


@public
def lbeta(x: Any, name: str | None = None) -> Any:
    """log |beta| of the numbers on the last axis."""
    x = convert_to_tensor(x)
    check_floating("lbeta", x)
    return ops.sum(functions.gammaln(x), -1) - functions.gammaln(ops.sum(x, -1))


# ---- complex numbers


@public
def complex(real: Any, imag: Any, name: str | None = None) -> Any:
    """A complex tensor from its real and imaginary parts."""
    a, b = tensors("complex", real, imag)
    check_floating("tf.complex", a)
    return complex_ops.from_parts(*shapes.broadcast_arrays(a, b))


@public
def real(input: Any, name: str | None = None) -> Any:
    """The real part; real tensors are returned as they are."""
    x = convert_to_tensor(input)
    return complex_ops.real(x) if x.type.is_complex else x


@public
def imag(input: Any, name: str | None = None) -> Any:
    """The imaginary part; zeros for real tensors."""
    x = convert_to_tensor(input)
    return complex_ops.imag(x) if x.type.is_complex else x.literal(0, x.type)


@public
def conj(x: Any, name: str | None = None) -> Any:
    """The complex conjugate."""
    x = convert_to_tensor(x)
    return complex_ops.conj(x) if x.type.is_complex else x


@public
def angle(input: Any, name: str | None = None) -> Any:
    """The angle of complex numbers; 0 or π for real ones."""
    return complex_numbers.angle(convert_to_tensor(input))
