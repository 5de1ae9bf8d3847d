"""Regularizers: penalties on variables or outputs, which a trainer adds to the loss.

nn.Dense(64, kernel_regularizer="l2", activity_regularizer=nn.regularizers.L1(1e-4))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.tracer.convert import to_operand

from .recorded import Recorded

__all__ = ["L1", "L1L2", "L2", "Regularizer", "get_regularizer"]


def __dir__() -> list[str]:
    return __all__


class Regularizer(Recorded):
    """Base of regularizers: a function from an array to one number.

    >>> class Largest(aj.nn.regularizers.Regularizer):
    ...     def __call__(self, x):
    ...         return 0.1 * np.max(np.abs(x))
    >>> layer = aj.nn.Dense(1, kernel_initializer="ones", kernel_regularizer=Largest())
    >>> _ = layer(np.ones((1, 2), "f4"))
    >>> [round(float(loss), 3) for loss in layer.losses]
    [0.1]
    """

    def __call__(self, x: Any) -> Operand:
        raise NotImplementedError(type(self).__name__)


class L1L2(Regularizer):
    """l1 * sum(|x|) + l2 * sum(x**2)

    >>> aj.nn.regularizers.L1L2(0.1, 0.2)(np.array([1.0, -2.0]))
    Tensor(1.3, f64[])
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        for name, value in (("l1", l1), ("l2", l2)):
            if not 0.0 <= value < float("inf"):
                raise ValueError(f"{type(self).__name__}: {name} is a factor that is not negative, not {value}")
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x: Any) -> Operand:
        x = to_operand(x)
        return self.l1 * ops.sum(ops.absolute(x)) + self.l2 * ops.sum(ops.square(x))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(l1={self.l1}, l2={self.l2})"


class L1(L1L2):
    """l1 * sum(|x|)

    >>> aj.nn.regularizers.L1(0.1)(np.array([1.0, -2.0]))
    Tensor(0.3, f64[])
    """

    def __init__(self, l1: float = 0.01) -> None:
        super().__init__(l1=l1)


class L2(L1L2):
    """l2 * sum(x**2)

    >>> aj.nn.regularizers.L2(0.1)(np.array([1.0, -2.0]))
    Tensor(0.5, f64[])
    """

    def __init__(self, l2: float = 0.01) -> None:
        super().__init__(l2=l2)


NAMED: dict[str, Callable[[], Regularizer]] = {"l1": L1, "l2": L2, "l1_l2": lambda: L1L2(0.01, 0.01), "l1l2": lambda: L1L2(0.01, 0.01)}


def get_regularizer(what: str | Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """Return a regularizer from its name, or the function itself; None stays None.

    >>> aj.nn.regularizers.get_regularizer("l2")(np.array([1.0, -2.0]))
    Tensor(0.05, f64[])
    """
    if isinstance(what, str):
        if what not in NAMED:
            raise ValueError(f"there is no regularizer {what!r}; choose one of {', '.join(NAMED)}")
        return NAMED[what]()
    if what is not None and not callable(what):
        raise TypeError(f"a regularizer is a name or a function of an array, not {what!r}")
    return what
