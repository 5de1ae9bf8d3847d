"""Elementary functions on lanes: inlined polynomials, within 2 ULP over the whole range of float32 and float64.

This module has the table in which the code generator looks them up. Subnormals, infinities, NaN and signed zeros follow C99 Annex F, as
NumPy does. There is no support for integers (convert first) or fast-math: the code is strict, so the same argument gives the same bits in a
vector, in the scalar tail of a loop, and on every CPU with FMA; CPUs without it differ in the last bits, and so do `erf`, `sigmoid` and
`log` of float32 on targets with tables. The only branches are those to arguments that are rare in any data (`rarely`).
benchmarks/ulp_vecmath.py measures the errors; benchmarks/fit_vecmath.py computed the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from ..llvm.lanes import Reg

# by module: a program imports those that it uses
_NAMES = {
    "exponentials": "exp exp2 expm1 sinh cosh tanh erf sigmoid",
    "logarithms": "log log1p log2 log10 asinh acosh atanh softplus logit",
    "powers": "pow cbrt",
    "trigonometry": "sin cos tan asin acos atan atan2",
    "division": "fmod remainder floor_divide",
}
FUNCTIONS = tuple(name for names in _NAMES.values() for name in names.split())
# variants for part of the domain, for formulas that bound their arguments or discard the results elsewhere
_PARTIAL = {"exponentials": "exp_bounded", "logarithms": "log_normal", "powers": "pow_short"}
_MODULES = {name: module for table in (_NAMES, _PARTIAL) for module, names in table.items() for name in names.split()}


@cache
def function(name: str) -> Callable[..., Reg]:
    """The function with a name, which takes an emitter and its arguments."""
    found: Callable[..., Reg] = getattr(import_module(f".{_MODULES[name]}", __package__), name)
    return found
