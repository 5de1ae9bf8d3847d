"""The evaluation of special functions on NumPy arrays: eager code and native code run one algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import source_helpers
from ...types import F32, DType
from ..base import Array, Reg
from ..elementary import Erf
from ..host import HostEmitter, by_pieces

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp_bounded": np.exp, "log": np.log, "log_normal": np.log, "log1p": np.log1p,
    "pow": np.power, "pow_short": np.power, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "erf": lambda x: Erf().evaluate(np.asarray(x)), "logit": source_helpers.logit,
}  # fmt: skip
SPLIT = 2.0**27 + 1.0  # splits a double into halves whose products are exact


class Numpy(HostEmitter):
    """A `HostEmitter` with elementary functions, which round as NumPy's do: results may differ from native code's in the last bits."""

    def fma(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """a * b + c with the exact product, for operands whose halves do not overflow."""
        if a.dtype == F32:
            return (a.astype(np.float64) * b + c).astype(np.float32)
        product = a * b
        (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
        error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
        return (product + c) + np.where(np.isfinite(error), error, 0.0)

    def call(self, function: str, *args: Reg) -> Reg:
        return FUNCTIONS[function](*args)

    def strict(self) -> Numpy:
        return self


def halves(a: Any) -> tuple[Any, Any]:
    scaled = a * SPLIT
    high = scaled - (scaled - a)
    return high, a - high


def evaluated(function: Callable[..., Any], dtype: DType, *arrays: Array) -> Array:
    """`function(emitter, *registers)` on arrays that broadcast."""
    return by_pieces(lambda *pieces: function(Numpy(), *pieces), dtype, *arrays)
