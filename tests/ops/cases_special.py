"""The rows of special functions, with SciPy as the oracle. Arguments lie where its implementation and differences are accurate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from adjit.ir.ops import special as ours
from adjit.ir.ops.base import Array
from tests.ops.cases import Case


def row(name: str, *bounds: tuple[float, float], call: Callable[..., Any] | None = None, oracle: Any = None, **more: Any) -> Case:
    def arrays(rng: np.random.Generator) -> list[Array]:
        return [rng.uniform(low, high, (7,)) for low, high in bounds]

    function = oracle or getattr(sp, name)

    def numpy(*args: Array) -> Array:
        return np.asarray(np.real(function(*(a.astype(np.float64) for a in args)))).astype(args[0].dtype)

    # in float64 alone, which float32 is computed in: tests/ops/test_special.py checks that it is
    return Case(f"special_{name}", call or getattr(ours, name), numpy, arrays=arrays, dtypes=("f64",), **more)


CASES = [
    row("gamma", (0.3, 5)),
    row("gammaln", (0.3, 12)),
    row("digamma", (0.3, 12)),
    row("zeta", (1.5, 5), (0.5, 4)),
    row("polygamma", (0.5, 4), call=lambda x: ours.polygamma(2, x), oracle=lambda x: sp.polygamma(2, x)),
    row("trigamma", (-2.7, -2.2), call=lambda x: ours.polygamma(1, x), oracle=lambda x: sp.polygamma(1, x), second=False, smooth=False),
    row("beta", (0.5, 3), (0.5, 3)),
    row("betaln", (0.5, 12), (0.5, 12)),
    row("gammainc", (0.5, 4), (0.5, 6)),
    row("gammaincc", (0.5, 12), (0.5, 9)),
    row("betainc", (0.5, 3), (0.5, 3), (0.2, 0.8)),
    row("erfc", (-2, 3)),
    row("erfcx", (-2, 3)),
    row("erfinv", (-0.9, 0.9)),
    row("erfcinv", (0.1, 1.9)),
    row("ndtr", (-3, 3)),
    row("ndtri", (0.05, 0.95)),
    row("log_ndtr", (-6, 3)),
    row("logit", (0.1, 0.9)),
    row("xlogy", (0.2, 3), (0.2, 3)),
    row("xlog1py", (0.2, 3), (0.2, 3)),
    row("entr", (0.2, 3)),
    row("rel_entr", (0.2, 3), (0.2, 3)),
    row("kl_div", (0.2, 3), (0.2, 3)),
    *(row(name, (-3, 12)) for name in ("i0", "i0e", "i1", "i1e", "j0", "j1")),
    *(row(name, (0.5, 9)) for name in ("k0", "k0e", "k1", "k1e", "y0", "y1")),
    row("jn", (0.5, 9), call=lambda x: ours.jn(3, x), oracle=lambda x: sp.jn(3, x)),
    row("ive", (0.2, 4), (0.5, 9)),
    row("iv", (0.2, 4), (0.5, 5)),
    row("ellipk", (-2, 0.8)),
    row("ellipe", (-2, 0.8)),
    row("exp1", (0.3, 4)),
    row("expi", (0.5, 9)),
    row("lambertw", (-0.2, 5), call=ours.lambertw),
    row("lambertw_below", (-0.33, -0.1), call=lambda x: ours.lambertw(x, -1), oracle=lambda x: sp.lambertw(x, -1)),
]
