"""Elementary functions on lanes: inlined polynomials, without branches, within 2 ULP over the whole range of float32 and float64.

This module has the table in which the code generator looks them up. Subnormals, infinities, NaN and signed zeros follow C99 Annex F, as
NumPy does. There is no support for integers (convert first) or fast-math: the code is strict, so the same argument gives the same bits in a
vector, in the scalar tail of a loop, and on every CPU with FMA; CPUs without it differ in the last bits, and so do `erf` and `sigmoid` on
targets with tables.
benchmarks/ulp_vecmath.py measures the errors; benchmarks/fit_vecmath.py computed the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable

from ..llvm.lanes import Reg
from . import division, exponentials, logarithms, powers
from . import trigonometry as trig

FUNCTIONS: dict[str, Callable[..., Reg]] = {
    "exp": exponentials.exp,
    "exp2": exponentials.exp2,
    "expm1": exponentials.expm1,
    "log": logarithms.log,
    "log1p": logarithms.log1p,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "pow": powers.pow,
    "cbrt": powers.cbrt,
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "asin": trig.asin,
    "acos": trig.acos,
    "atan": trig.atan,
    "atan2": trig.atan2,
    "sinh": exponentials.sinh,
    "cosh": exponentials.cosh,
    "tanh": exponentials.tanh,
    "asinh": logarithms.asinh,
    "acosh": logarithms.acosh,
    "atanh": logarithms.atanh,
    "erf": exponentials.erf,
    "fmod": division.fmod,
    "remainder": division.remainder,
    "floor_divide": division.floor_divide,
    "sigmoid": exponentials.sigmoid,
    "softplus": logarithms.softplus,
    "logit": logarithms.logit,
}

# variants for part of the domain, for formulas that bound their arguments or discard the results elsewhere
PARTIAL: dict[str, Callable[..., Reg]] = {"exp_bounded": exponentials.exp_bounded, "log_normal": logarithms.log_normal}
LIBRARY = FUNCTIONS | PARTIAL
