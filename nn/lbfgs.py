"""L-BFGS from SciPy, on variables, with a compiled loss and gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir.ops.base import Array
from adjit.runtime.function import Function
from adjit.runtime.tape import GradientTape
from adjit.runtime.variable import Variable

__all__ = ["LBFGS"]


class LBFGS:
    """Minimises a loss over all data at once: `LBFGS().minimize(loss, variables)`. Needs SciPy.

    >>> w = aj.Variable(np.zeros(2))
    >>> _ = aj.nn.LBFGS().minimize(lambda: np.sum((w - np.array([1.0, 2.0])) ** 2), [w])
    >>> w.numpy().round(3)
    array([1., 2.])
    """

    def __init__(self, max_iterations: int = 100, history: int = 10, tolerance: float = 1e-9, gradient_tolerance: float = 1e-6) -> None:
        self.options = {"maxiter": max_iterations, "maxcor": history, "ftol": tolerance, "gtol": gradient_tolerance}

    def minimize(self, loss: Callable[[], Any], variables: Sequence[Variable], callback: Callable[[float], Any] | None = None) -> Any:
        """Assign the variables the values that minimise `loss()`; returns SciPy's result (`fun`, `nit`, `message`, ...)."""
        try:
            from scipy.optimize import minimize  # noqa: PLC0415 - optional
        except ImportError:
            raise ImportError("LBFGS needs SciPy: pip install scipy, or use an optimizer of adjit.nn.optimizers") from None
        targets = list(variables)
        if not targets:
            raise ValueError("LBFGS: no variables to minimise over; is the model built?")

        def value_and_gradients() -> Any:
            with GradientTape() as tape:
                value = loss()
            return value, tape.gradient(value, targets, unconnected_gradients="zero")

        compiled = Function(value_and_gradients, name="lbfgs_loss")
        last = [0.0]

        def evaluate(flat: Array) -> tuple[float, Array]:
            assign_flat(targets, flat)
            value, gradients = compiled()
            last[0] = float(value)
            return last[0], np.concatenate([np.asarray(g, np.float64).ravel() for g in gradients])

        start = np.concatenate([v.numpy().astype(np.float64).ravel() for v in targets])
        told = None if callback is None else lambda _: callback(last[0])
        result = minimize(evaluate, start, jac=True, method="L-BFGS-B", options=self.options, callback=told)
        assign_flat(targets, result.x)
        return result


def assign_flat(variables: Sequence[Variable], flat: Array) -> None:
    """Assign variables from one flat vector."""
    at = 0
    for variable in variables:
        size = variable.type.size
        variable.assign(flat[at : at + size].reshape(variable.shape).astype(variable.dtype))
        at += size
