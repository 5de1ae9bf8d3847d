"""Special functions: `aj.special`, and the rules for the ufuncs of `scipy.special` on adjit's values.

Names and arguments are SciPy's. SciPy itself is not needed.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.ops import special
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import normalize_axes

from ..convert import numbers, present, to_operand
from .elementwise import binary, cbrt, erf, exp2, expm1, floating, log1p, sigmoid, sinc, unary
from .reductions import log_softmax, softmax
from .reductions import logsumexp as plain_logsumexp

__all__ = [
    "beta", "betainc", "betaln", "digamma", "ellipe", "ellipk", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi",
    "expit", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "jv",
    "k0", "k0e", "k1", "k1e", "kl_div", "lambertw", "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp", "multigammaln",
    "ndtr", "ndtri", "polygamma", "psi", "rel_entr", "sinc", "softmax", "xlog1py", "xlogy", "y0", "y1", "yn", "zeta",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


expit = sigmoid
gamma = unary(
    special.gamma, "gamma", "Return the gamma function.",
    ">>> aj.special.gamma([5.0, 0.5])", "Tensor([24.        ,  1.77245385], f64[2])",
)  # fmt: skip
gammaln = unary(
    special.gammaln, "gammaln", "Return the logarithm of the absolute value of the gamma function.",
    ">>> aj.special.gammaln(100.0)", "Tensor(359.13420537, f64[])",
)  # fmt: skip
digamma = psi = unary(
    special.digamma, "digamma", "Return the derivative of the logarithm of the gamma function.",
    ">>> aj.special.digamma(1.0)", "Tensor(-0.57721566, f64[])",
)  # fmt: skip
beta = binary(
    special.beta, "beta", "Return the beta function of positive arguments.",
    ">>> aj.special.beta(2.0, 3.0)", "Tensor(0.08333333, f64[])",
)  # fmt: skip
betaln = binary(
    special.betaln, "betaln", "Return the logarithm of the absolute value of the beta function.",
    ">>> aj.special.betaln(2.0, 3.0)", "Tensor(-2.48490665, f64[])",
)  # fmt: skip
gammainc = binary(
    special.gammainc, "gammainc", "Return the regularised lower incomplete gamma function of a and x.",
    ">>> aj.special.gammainc(2.0, [0.0, 1.0])", "Tensor([0.        , 0.26424112], f64[2])",
)  # fmt: skip
gammaincc = binary(
    special.gammaincc, "gammaincc", "Return the regularised upper incomplete gamma function of a and x.",
    ">>> aj.special.gammaincc(2.0, [0.0, 1.0])", "Tensor([1.        , 0.73575888], f64[2])",
)  # fmt: skip
erfc = unary(
    special.erfc, "erfc", "Return 1 - erf(x), accurate also for large x.",
    ">>> aj.special.erfc(10.0)", "Tensor(2.08848758e-45, f64[])",
)  # fmt: skip
erfcx = unary(
    special.erfcx, "erfcx", "Return exp(x²) erfc(x).",
    ">>> aj.special.erfcx([0.0, 10.0])", "Tensor([1.        , 0.05614099], f64[2])",
)  # fmt: skip
erfinv = unary(
    special.erfinv, "erfinv", "Return the inverse of erf.",
    ">>> aj.special.erfinv([0.0, 0.5])", "Tensor([0.        , 0.47693628], f64[2])",
)  # fmt: skip
erfcinv = unary(
    special.erfcinv, "erfcinv", "Return the inverse of erfc.",
    ">>> aj.special.erfcinv([1.0, 0.5])", "Tensor([0.        , 0.47693628], f64[2])",
)  # fmt: skip
ndtr = unary(
    special.ndtr, "ndtr", "Return the cumulative distribution function of the standard normal distribution.",
    ">>> aj.special.ndtr([0.0, 1.96])", "Tensor([0.5      , 0.9750021], f64[2])",
)  # fmt: skip
ndtri = unary(
    special.ndtri, "ndtri", "Return the quantile of the standard normal distribution.",
    ">>> aj.special.ndtri([0.5, 0.975])", "Tensor([0.        , 1.95996398], f64[2])",
)  # fmt: skip
log_ndtr = unary(
    special.log_ndtr, "log_ndtr", "Return the logarithm of the cumulative distribution function of the standard normal distribution.",
    ">>> aj.special.log_ndtr(-40.0)", "Tensor(-804.60844201, f64[])",
)  # fmt: skip
logit = unary(
    special.logit, "logit", "Return log(p / (1 - p)).",
    ">>> aj.special.logit([0.5, 0.9])", "Tensor([0.        , 2.19722458], f64[2])",
)  # fmt: skip
log_expit = unary(
    lambda x: -ops.softplus(-x), "log_expit", "Return the logarithm of the logistic function.",
    ">>> aj.special.log_expit(-1000.0)", "Tensor(-1000., f64[])",
)  # fmt: skip
xlogy = binary(
    special.xlogy, "xlogy", "Return x log(y), and 0 where x is 0.",
    ">>> aj.special.xlogy([0.0, 2.0], [0.0, aj.e])", "Tensor([0., 2.], f64[2])",
)  # fmt: skip
xlog1py = binary(
    special.xlog1py, "xlog1py", "Return x log(1 + y), and 0 where x is 0.",
    ">>> aj.special.xlog1py([0.0, 2.0], [-1.0, 1e-10])", "Tensor([0.e+00, 2.e-10], f64[2])",
)  # fmt: skip
entr = unary(
    special.entr, "entr", "Return -x log(x), and 0 at 0.",
    ">>> aj.special.entr([0.0, 0.5])", "Tensor([0.        , 0.34657359], f64[2])",
)  # fmt: skip
rel_entr = binary(
    special.rel_entr, "rel_entr", "Return x log(x / y), and 0 where x is 0.",
    ">>> aj.special.rel_entr([0.0, 0.5], 0.25)", "Tensor([0.        , 0.34657359], f64[2])",
)  # fmt: skip
kl_div = binary(
    special.kl_div, "kl_div", "Return x log(x / y) - x + y, and y where x is 0.",
    ">>> aj.special.kl_div([0.0, 0.5], 0.25)", "Tensor([0.25      , 0.09657359], f64[2])",
)  # fmt: skip
i0 = unary(
    special.i0, "i0", "Return the modified Bessel function of the first kind, of order 0.",
    ">>> aj.special.i0([0.0, 1.0])", "Tensor([1.        , 1.26606588], f64[2])",
)  # fmt: skip
i0e = unary(special.i0e, "i0e", "Return exp(-|x|) I0(x).", ">>> aj.special.i0e([0.0, 1000.0])", "Tensor([1.        , 0.01261724], f64[2])")
i1 = unary(
    special.i1, "i1", "Return the modified Bessel function of the first kind, of order 1.",
    ">>> aj.special.i1([0.0, 1.0])", "Tensor([0.       , 0.5651591], f64[2])",
)  # fmt: skip
i1e = unary(special.i1e, "i1e", "Return exp(-|x|) I1(x).", ">>> aj.special.i1e([0.0, 1000.0])", "Tensor([0.        , 0.01261093], f64[2])")
k0 = unary(
    special.k0, "k0", "Return the modified Bessel function of the second kind, of order 0.",
    ">>> aj.special.k0([0.5, 1.0])", "Tensor([0.92441907, 0.42102444], f64[2])",
)  # fmt: skip
k0e = unary(special.k0e, "k0e", "Return exp(x) K0(x).", ">>> aj.special.k0e([1.0, 1000.0])", "Tensor([1.14446308, 0.03962832], f64[2])")
k1 = unary(
    special.k1, "k1", "Return the modified Bessel function of the second kind, of order 1.",
    ">>> aj.special.k1([0.5, 1.0])", "Tensor([1.65644112, 0.60190723], f64[2])",
)  # fmt: skip
k1e = unary(special.k1e, "k1e", "Return exp(x) K1(x).", ">>> aj.special.k1e([1.0, 1000.0])", "Tensor([1.63615349, 0.03964813], f64[2])")
iv = binary(
    special.iv, "iv", "Return the modified Bessel function of the first kind, of real order v >= 0, of x >= 0.",
    ">>> aj.special.iv(0.5, [1.0, 2.0])", "Tensor([0.93767489, 2.04623686], f64[2])",
)  # fmt: skip
ive = binary(
    special.ive, "ive", "Return exp(-x) I_v(x), for v >= 0 and x >= 0.",
    ">>> aj.special.ive(0.5, [1.0, 1000.0])", "Tensor([0.34495131, 0.01261566], f64[2])",
)  # fmt: skip
j0 = unary(
    special.j0, "j0", "Return the Bessel function of the first kind, of order 0.",
    ">>> aj.special.j0([0.0, 1.0])", "Tensor([1.        , 0.76519769], f64[2])",
)  # fmt: skip
j1 = unary(
    special.j1, "j1", "Return the Bessel function of the first kind, of order 1.",
    ">>> aj.special.j1([0.0, 1.0])", "Tensor([0.        , 0.44005059], f64[2])",
)  # fmt: skip
y0 = unary(
    special.y0, "y0", "Return the Bessel function of the second kind, of order 0.",
    ">>> aj.special.y0([0.5, 1.0])", "Tensor([-0.44451873,  0.08825696], f64[2])",
)  # fmt: skip
y1 = unary(
    special.y1, "y1", "Return the Bessel function of the second kind, of order 1.",
    ">>> aj.special.y1([0.5, 1.0])", "Tensor([-1.47147239, -0.78121282], f64[2])",
)  # fmt: skip
ellipk = unary(
    special.ellipk, "ellipk", "Return the complete elliptic integral of the first kind, of the parameter m.",
    ">>> aj.special.ellipk([0.0, 0.5])", "Tensor([1.57079633, 1.85407468], f64[2])",
)  # fmt: skip
ellipe = unary(
    special.ellipe, "ellipe", "Return the complete elliptic integral of the second kind, of the parameter m.",
    ">>> aj.special.ellipe([0.0, 0.5])", "Tensor([1.57079633, 1.35064388], f64[2])",
)  # fmt: skip
exp1 = unary(
    special.exp1, "exp1", "Return the exponential integral E1 of x > 0.",
    ">>> aj.special.exp1([0.5, 1.0])", "Tensor([0.55977359, 0.21938393], f64[2])",
)  # fmt: skip
expi = unary(
    special.expi, "expi", "Return the exponential integral Ei.",
    ">>> aj.special.expi([0.5, 1.0])", "Tensor([0.4542199 , 1.89511782], f64[2])",
)  # fmt: skip


def betainc(a: Any, b: Any, x: Any, /) -> Operand:
    """Return the regularised incomplete beta function of a, b and x.

    >>> aj.special.betainc(2.0, 3.0, [0.25, 0.5])
    Tensor([0.26171875, 0.6875    ], f64[2])
    """
    return present(special.betainc(*numbers(a, b, x)))


def zeta(x: Any, q: Any = 1.0, /) -> Operand:
    """Return the Hurwitz zeta function, for x > 1 and q > 0; with q = 1, Riemann's.

    >>> aj.special.zeta([2.0, 4.0])
    Tensor([1.64493407, 1.08232323], f64[2])
    """
    return present(special.zeta(*numbers(x, q)))


def polygamma(n: int, x: Any, /) -> Operand:
    """Return the n-th derivative of digamma; n is a static integer. Negative x are supported for n up to 1.

    >>> aj.special.polygamma(1, 1.0)
    Tensor(1.64493407, f64[])
    """
    return present(special.polygamma(static_order(n, "polygamma"), to_operand(x)))


def yn(n: int, x: Any, /) -> Operand:
    """Return the Bessel function of the second kind of integer order n, by recurrence from orders 0 and 1.

    >>> aj.special.yn(2, 1.0)
    Tensor(-1.65068261, f64[])
    """
    order = operator.index(n)
    x = to_operand(x)
    before: Operand = y0(x)
    out: Operand = y1(x)
    if order == 0:
        return before
    for k in range(1, abs(order)):
        before, out = out, (2.0 * k) / x * out - before
    return -out if order < 0 and order % 2 else out


def gammasgn(x: Any, /) -> Operand:
    """Return the sign of the gamma function, 1 or -1; NaN at its poles.

    >>> aj.special.gammasgn([2.5, -0.5, -1.5])
    Tensor([ 1., -1.,  1.], f64[3])
    """
    x = ops.stop_gradient(floating(to_operand(x)))
    whole = ops.floor(x)
    odd = ops.not_equal(whole - 2.0 * ops.floor(0.5 * whole), 0.0)
    below = ops.where(ops.equal(whole, x), math.nan, ops.where(odd, -1.0, 1.0))
    return ops.cast(
        ops.where(ops.less(x, 0.0), below, ops.where(ops.isnan(x), math.nan, ops.copysign(ops.where(ops.isnan(x), x, 1.0), x))), x.dtype
    )


def multigammaln(a: Any, d: int, /) -> Operand:
    """Return the logarithm of the multivariate gamma function of dimension d, for a > (d - 1) / 2.

    >>> aj.special.multigammaln(3.0, 2)
    Tensor(1.55019499, f64[])
    """
    a, count = floating(to_operand(a)), operator.index(d)
    if count < 1:
        raise ShapeError(f"multigammaln: the dimension must be positive, not {count}")
    out: Operand = a * 0.0 + 0.25 * count * (count - 1) * math.log(math.pi)
    for j in range(count):
        out = out + gammaln(a - 0.5 * j)
    return out


def logsumexp(x: Any, /, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Return log(sum(b exp(x))) without overflow; with `return_sign`, of the absolute value, and the sign of the sum.

    >>> aj.special.logsumexp([1000.0, 1000.0], b=[1.0, 2.0])
    Tensor(1001.09861229, f64[])
    """
    if b is None and not return_sign:
        return plain_logsumexp(x, axis, keepdims)
    x = floating(to_operand(x))
    weights = ops.cast(to_operand(1.0 if b is None else b), x.dtype)
    present = ops.where(ops.equal(weights, 0.0), -math.inf, x)
    peak = ops.max(ops.stop_gradient(present), axis, True)
    peak = ops.where(ops.isfinite(peak), peak, 0.0)
    total = ops.sum(weights * ops.exp(present - peak), axis, True)
    out = ops.log(ops.absolute(total) if return_sign else total) + peak
    if not keepdims:
        axes = normalize_axes(axis, out.ndim, "logsumexp")
        shape = tuple(n for a, n in enumerate(out.shape) if a not in axes)
        out, total = ops.reshape(out, shape), ops.reshape(total, shape)
    return (out, ops.sign(total)) if return_sign else out


def jn(n: int, x: Any, /) -> Operand:
    """Return the Bessel function of the first kind, of the integer order n, which is static.

    >>> aj.special.jn(2, [0.0, 1.0])
    Tensor([0.        , 0.11490348], f64[2])
    """
    return present(special.jn(static_order(n, "jn"), to_operand(x)))


jv = jn


def lambertw(x: Any, k: int = 0, /) -> Operand:
    """Return the real branch 0 or -1 of Lambert's W; NaN where it is not real.

    >>> aj.special.lambertw([0.0, 1.0])
    Tensor([0.        , 0.56714329], f64[2])
    """
    if k not in (0, -1):
        raise ShapeError(f"lambertw: the branches 0 and -1 are real, not {k}")
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
NOT_UFUNCS = ("logsumexp", "softmax", "log_softmax", "sinc", "lambertw", "polygamma", "multigammaln")
UFUNCS = {
    **{name: globals()[name] for name in __all__ if name not in NOT_UFUNCS},
    "_zeta": zeta, "cbrt": cbrt, "exp2": exp2, "expm1": expm1, "log1p": log1p,
}  # fmt: skip


end_at_callers(globals())
