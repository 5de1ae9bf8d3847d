"""Functions of SciPy that are Python code: adjit's function of the same name, to call it or to name it in an error.

SciPy's ufuncs dispatch to their operands (`numpy_table`). Its other functions convert their arguments to NumPy arrays, which is impossible
for traced values, and for values that are being differentiated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any

from adjit.ir.operand import Operand

from .frames import BETWEEN
from .pytree import flatten

# package of SciPy -> how adjit's is written, and the names that both have
NAMES: dict[str, tuple[str, frozenset[str]]] = {
    package: (ours, frozenset(names.split()))
    for package, ours, names in (
        ("special", "aj.special", "lambertw log_softmax logsumexp multigammaln polygamma softmax"),
        ("linalg", "aj.linalg", """block_diag cho_solve cholesky det eig eigh eigvals eigvalsh expm inv lstsq lu norm pinv qr solve
            solve_triangular sqrtm svd svdvals toeplitz"""),
        ("fft", "aj.fft", """fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftn"""),
        ("integrate", "aj.scipy.integrate", "odeint quad simpson solve_ivp"),
        ("interpolate", "aj.scipy.interpolate", "CubicSpline interp1d"),
        ("ndimage", "aj.scipy.ndimage", "map_coordinates"),
        ("optimize", "aj.scipy.optimize", "fixed_point minimize root"),
        ("signal", "aj.scipy.signal", "convolve correlate fftconvolve"),
        ("spatial", "aj.scipy.spatial.distance", "cdist"),
        ("stats", "aj.scipy.stats", """bernoulli beta binom cauchy chi2 dirichlet expon gamma geom gumbel_r halfnorm invgamma laplace
            logistic lognorm multivariate_normal nbinom norm pareto poisson rayleigh t uniform weibull_min"""),
    )
}  # fmt: skip
NOTHING: tuple[str, frozenset[str]] = ("", frozenset())
SAME = NAMES["special"][1] - {"lambertw"}  # with SciPy's arguments and results; adjit's lambertw is real


def counterpart(function: Any) -> Callable[..., Any] | None:
    """Return a replacement for a function of scipy.special that is not a ufunc: it calls adjit's own if given adjit's values."""
    module = getattr(function, "__module__", None)
    if type(module) is not str or not module.startswith("scipy.special"):
        return None
    name = getattr(function, "__name__", "")
    if name not in SAME or getattr(sys.modules["scipy.special"], name, None) is not function:
        return None

    def public(*args: Any, **options: Any) -> Any:
        given = any(isinstance(leaf, Operand) for leaf in flatten((args, options))[0])
        special = import_module("adjit.tracer.surface.special" if given else "scipy.special")  # ours is imported on first use
        return getattr(special, name)(*args, **options)

    return public


def advice() -> str:
    """Return the end of an error message raised under a function of SciPy: adjit's function to call; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == "scipy":
            found = written(frame) or found
        elif package not in BETWEEN:
            break
        frame = frame.f_back
    return f"; {found} takes such values" if found else ""


def written(frame: FrameType) -> str:
    """Return the name of adjit's counterpart of the running function of SciPy; empty if there is none."""
    name, owner = frame.f_code.co_name, type(frame.f_locals.get("self")).__name__
    ours, names = names_of(frame.f_globals.get("__name__"))
    family = owner.removesuffix("_gen")  # of distributions
    if family in names and name in ("logpdf", "logpmf"):
        return f"{ours}.{family}.{name}"
    found = owner if name == "__init__" else name
    if found not in names:
        decorated = frame.f_locals.get("f")  # by SciPy, which converts the arguments before the call
        ours, names = names_of(getattr(decorated, "__module__", ""))
        found = getattr(decorated, "__name__", "")
    return f"{ours}.{found}" if found in names else ""


def names_of(module: Any) -> tuple[str, frozenset[str]]:
    parts = str(module).split(".")
    return NAMES.get(parts[1], NOTHING) if len(parts) > 1 and parts[0] == "scipy" else NOTHING
