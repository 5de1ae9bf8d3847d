"""Special functions: `aj.special`, and the rules for the ufuncs of `scipy.special` on adjit's values.

Names and arguments are SciPy's. SciPy itself is not needed.
"""

from __future__ import annotations

import operator
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import DTypeError
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.ops import special

from ..convert import numbers, present, to_operand
from .elementwise import binary, cbrt, erf, exp2, expm1, log1p, sigmoid, sinc, unary
from .reductions import log_softmax, logsumexp, softmax

__all__ = [
    "beta", "betainc", "betaln", "digamma", "ellipe", "ellipk", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi",
    "expit", "gamma", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "jv", "k0", "k0e",
    "k1", "k1e", "kl_div", "lambertw", "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "polygamma", "psi",
    "rel_entr", "sinc", "softmax", "xlog1py", "xlogy", "y0", "y1", "zeta",
]  # fmt: skip

expit = sigmoid
gamma = unary(special.gamma, "gamma", "The gamma function.")
gammaln = unary(special.gammaln, "gammaln", "The logarithm of the absolute value of the gamma function.")
digamma = psi = unary(special.digamma, "digamma", "The derivative of the logarithm of the gamma function.")
beta = binary(special.beta, "beta", "The beta function of positive arguments.")
betaln = binary(special.betaln, "betaln", "The logarithm of the absolute value of the beta function.")
gammainc = binary(special.gammainc, "gammainc", "The regularised lower incomplete gamma function of a and x.")
gammaincc = binary(special.gammaincc, "gammaincc", "The regularised upper incomplete gamma function of a and x.")
erfc = unary(special.erfc, "erfc", "1 - erf(x), accurate for large x.")
erfcx = unary(special.erfcx, "erfcx", "exp(x²) erfc(x).")
erfinv = unary(special.erfinv, "erfinv", "The inverse of erf.")
erfcinv = unary(special.erfcinv, "erfcinv", "The inverse of erfc.")
ndtr = unary(special.ndtr, "ndtr", "The standard normal distribution function.")
ndtri = unary(special.ndtri, "ndtri", "The quantile of the standard normal distribution.")
log_ndtr = unary(special.log_ndtr, "log_ndtr", "The logarithm of the standard normal distribution function.")
logit = unary(special.logit, "logit", "log(p / (1 - p)).")
log_expit = unary(lambda x: -ops.softplus(-x), "log_expit", "The logarithm of the logistic function.")
xlogy = binary(special.xlogy, "xlogy", "x log(y), and 0 where x is 0.")
xlog1py = binary(special.xlog1py, "xlog1py", "x log(1 + y), and 0 where x is 0.")
entr = unary(special.entr, "entr", "-x log(x), and 0 at 0.")
rel_entr = binary(special.rel_entr, "rel_entr", "x log(x / y), and 0 where x is 0.")
kl_div = binary(special.kl_div, "kl_div", "x log(x / y) - x + y, and y where x is 0.")
i0 = unary(special.i0, "i0", "The modified Bessel function of the first kind, of order 0.")
i0e = unary(special.i0e, "i0e", "exp(-|x|) I0(x).")
i1 = unary(special.i1, "i1", "The modified Bessel function of the first kind, of order 1.")
i1e = unary(special.i1e, "i1e", "exp(-|x|) I1(x).")
k0 = unary(special.k0, "k0", "The modified Bessel function of the second kind, of order 0.")
k0e = unary(special.k0e, "k0e", "exp(x) K0(x).")
k1 = unary(special.k1, "k1", "The modified Bessel function of the second kind, of order 1.")
k1e = unary(special.k1e, "k1e", "exp(x) K1(x).")
iv = binary(special.iv, "iv", "The modified Bessel function of the first kind, of real order v >= 0, of x >= 0.")
ive = binary(special.ive, "ive", "exp(-x) I_v(x), for v >= 0 and x >= 0.")
j0 = unary(special.j0, "j0", "The Bessel function of the first kind, of order 0.")
j1 = unary(special.j1, "j1", "The Bessel function of the first kind, of order 1.")
y0 = unary(special.y0, "y0", "The Bessel function of the second kind, of order 0.")
y1 = unary(special.y1, "y1", "The Bessel function of the second kind, of order 1.")
ellipk = unary(special.ellipk, "ellipk", "The complete elliptic integral of the first kind, of the parameter m.")
ellipe = unary(special.ellipe, "ellipe", "The complete elliptic integral of the second kind, of the parameter m.")
exp1 = unary(special.exp1, "exp1", "The exponential integral E1 of x > 0.")
expi = unary(special.expi, "expi", "The exponential integral Ei.")


def betainc(a: Any, b: Any, x: Any, /) -> Operand:
    """Compute the regularised incomplete beta function of a, b and x."""
    return present(special.betainc(*numbers(a, b, x)))


def zeta(x: Any, q: Any = 1.0, /) -> Operand:
    """Compute the Hurwitz zeta function, for x > 1 and q > 0; with q = 1, Riemann's."""
    return present(special.zeta(*numbers(x, q)))


def polygamma(n: int, x: Any, /) -> Operand:
    """Compute the n-th derivative of digamma; n is a static integer. Negative x are supported for n up to 1."""
    return present(special.polygamma(static_order(n, "polygamma"), to_operand(x)))


def jn(n: int, x: Any, /) -> Operand:
    """Compute the Bessel function of the first kind, of the integer order n, which is static."""
    return present(special.jn(static_order(n, "jn"), to_operand(x)))


jv = jn


def lambertw(x: Any, k: int = 0, /) -> Operand:
    """Compute the real branch 0 or -1 of Lambert's W; NaN where it is not real."""
    if k not in (0, -1):
        raise ValueError(f"lambertw: the branches 0 and -1 are real, not {k}")
    return present(special.lambertw(to_operand(x), int(k)))


def static_order(n: Any, what: str) -> int:
    """Return an order as an integer; raises for orders that are traced, fractional or arrays."""
    if isinstance(n, Concrete | Literal) and n.type.size == 1:
        n = n.array().item() if isinstance(n, Literal) else n.buffer.item()
    try:
        return int(n) if isinstance(n, float) and n.is_integer() else operator.index(n)
    except TypeError:
        raise DTypeError(f"{what}: the order must be a Python integer, not {n!r}") from None


# The names of SciPy's ufuncs for which there is a rule
UFUNCS = {
    **{name: globals()[name] for name in __all__ if name not in ("logsumexp", "softmax", "log_softmax", "sinc", "lambertw", "polygamma")},
    "_zeta": zeta, "cbrt": cbrt, "exp2": exp2, "expm1": expm1, "log1p": log1p,
}  # fmt: skip
