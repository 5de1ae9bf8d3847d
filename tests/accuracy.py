"""Every elementwise function with a rounding error: what users call, its exact value, and arguments from its whole range.

Shared by the test of the table in docs/numerics.md and by benchmarks/ulp_vecmath.py, which fills it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

import adjit as aj

from .codegen.vecmath_harness import Array, by_numpy, exact, in_domain, samples, ulps, unit

F32 = np.dtype(np.float32)


class Row(NamedTuple):
    """`text` is the call as the page writes it. `wide` is the same in NumPy, for wider floats; `exact` for mpmath's numbers."""

    text: str
    function: Callable[..., Any]
    wide: Callable[..., Array]
    exact: Callable[..., Any]
    name: str  # by which `samples` finds its arguments
    arity: int = 1
    term: float = 0.0  # its error is counted in units of its largest argument, or of this: a sum may cancel

    def compiled(self) -> Callable[..., Any]:
        return aj.function(lambda *args: self.function(*args))  # type: ignore[no-any-return]

    def samples(self, dtype: np.dtype[Any], count: int, seed: int = 0) -> tuple[Array, ...]:
        args = samples(self.name, dtype, count, seed)
        return args if self.name != "reals" else args[: self.arity]

    def inside(self, x: Array) -> Array:
        return in_domain(self.name, x)

    def errors(self, got: Array, *args: Array) -> Array:
        """In ULP, against NumPy in the next wider format."""
        wide = np.float64 if got.dtype == F32 else np.longdouble
        with np.errstate(all="ignore"):
            reference = self.wide(*(a.astype(wide) for a in args))
            if not self.term:
                return ulps(got, reference)
            largest = np.maximum.reduce([*map(np.abs, (got, *args)), np.full(got.shape, self.term, got.dtype)])
            error = np.abs(got.astype(wide) - reference) / unit(largest).astype(wide)
        return np.where(np.isfinite(got) & np.isfinite(reference), error, np.where(got == reference, 0.0, np.inf)).astype(np.float64)

    def exact_errors(self, got: Array, *args: Array) -> Array:
        """The same against mpmath, one by one."""
        out = np.empty(len(got))
        with mp.workdps(60):
            for i, (y, *xs) in enumerate(zip(got.tolist(), *(a.tolist() for a in args), strict=True)):
                true = self.exact(*map(mp.mpf, xs))
                rounded = got.dtype.type(float(true))
                if not (np.isfinite(rounded) and np.isfinite(y)):
                    out[i] = 0.0 if y == rounded else math.inf
                    continue
                size = max(map(abs, (float(rounded), *xs, self.term))) if self.term else abs(rounded)
                out[i] = float(abs(mp.mpf(y) - true) / mp.mpf(float(unit(np.asarray(size, got.dtype)))))
        return out


def vecmath(text: str, function: Callable[..., Any], name: str, arity: int = 1) -> Row:
    """A function of the vector math library."""
    return Row(text, function, by_numpy(name), exact(name), name, arity)


def power_of(n: int) -> Row:
    return Row(f"x**{n}", lambda x: x**n, lambda x: np.power(x, x.dtype.type(n)), lambda x: mp.power(x, n) if x else mp.inf, "reals")


def log_sum(base: Any, a: Any, b: Any) -> Any:
    return mp.log(mp.power(base, a) + mp.power(base, b), base)


ROWS = [
    *(
        vecmath(f"{name}(x)", getattr(np, name), name)
        for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    ),
    *(vecmath(f"arc{name[1:]}(x)", getattr(np, f"arc{name[1:]}"), name) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")),
    *(vecmath(f"{name}(x)", getattr(aj, name), name) for name in ("erf", "sigmoid", "softplus")),
    vecmath("arctan2(x, y)", np.arctan2, "atan2", 2),
    vecmath("power(x, y)", np.power, "pow", 2),
    Row("sqrt(x)", np.sqrt, np.sqrt, mp.sqrt, "log"),
    Row("rsqrt(x)", aj.rsqrt, lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x), "log"),
    *(power_of(n) for n in (2, 3, 4, 5, 7, 10, 33, 64, -1, -2, -3, -10)),
    Row("hypot(x, y)", np.hypot, np.hypot, mp.hypot, "atan2", 2),
    Row("logaddexp(x, y)", np.logaddexp, np.logaddexp, partial(log_sum, mp.e), "logaddexp", 2, term=math.log(2.0)),
    Row("logaddexp2(x, y)", np.logaddexp2, np.logaddexp2, partial(log_sum, 2), "logaddexp", 2, term=1.0),
    Row("divide(x, y)", np.divide, np.divide, lambda x, y: x / y if y else mp.inf, "atan2", 2),
    Row("deg2rad(x)", np.deg2rad, np.deg2rad, lambda x: x * mp.pi / 180, "reals"),
    Row("rad2deg(x)", np.rad2deg, np.rad2deg, lambda x: x * 180 / mp.pi, "reals"),
]
