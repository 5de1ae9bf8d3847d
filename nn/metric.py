"""The base of metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir.operand import Operand
from adjit.runtime.variable import Store, Variable

from .module import Module

__all__ = ["Metric"]


class Metric(Module):
    """Base of metrics: `update_state` adds a batch, `result` returns the current value, `reset_state` starts again.

    >>> class Largest(aj.nn.metrics.Metric):
    ...     def __init__(self):
    ...         super().__init__("largest")
    ...         self.value = aj.Variable(0.0, trainable=False)
    ...
    ...     def update_state(self, y_true, y_pred):
    ...         self.value.assign(np.maximum(self.value, np.max(np.abs(y_true - y_pred))))
    ...
    ...     def result(self):
    ...         return self.value.value()
    >>> metric = Largest()
    >>> metric.update_state(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    >>> metric.result()
    Tensor(3., f64[])
    """

    _sums: tuple[Store, ...] = ()

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.built = True

    def add_state(self, name: str, shape: tuple[int, ...] = ()) -> Variable:
        """Create a part of the state, which `update_state` may only add to: the state of several ranks is the sum of their states."""
        variable = Variable(np.zeros(shape, np.float64), trainable=False, name=f"{self.name}.{name}")
        self._sums = (*self._sums, variable.store)
        return variable

    @property
    def sums(self) -> list[Variable]:
        """The state, if all of it was created by `add_state`."""
        variables = self.variables
        for variable in variables:
            if variable.store not in self._sums:
                name = variable.name or "a variable"
                raise TypeError(
                    f"{self.name}: {name} is not a sum over examples, and cannot be combined with that of other ranks; use add_state"
                )
        return variables

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(type(self).__name__)

    def result(self) -> Operand:
        raise NotImplementedError(type(self).__name__)

    def reset_state(self) -> None:
        for variable in self.variables:
            variable.assign(np.zeros(variable.type.shape, variable.type.dtype))

    reset_states = reset_state

    def call(self, *args: Any, **kwargs: Any) -> Operand:
        self.update_state(*args, **kwargs)
        return self.result()
