"""Roots, fixed points and minima with implicit derivatives with respect to `args`: SciPy's names for `aj.implicit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand, as_operand
from adjit.ir.records import NamedTuple

from .. import implicit

__all__ = ["OptimizeResult", "fixed_point", "minimize", "root"]


class OptimizeResult(NamedTuple):
    """The solution, the function there, and whether it was found."""

    x: Any
    fun: Any
    success: Any


def root(fun: Callable[..., Any], x0: Any, args: Sequence[Any] = (), tol: float | None = None) -> OptimizeResult:
    """Solve `fun(x, *args) = 0`, as `aj.implicit.root` does."""
    return result(fun, implicit.root(fun, x0, *args, tol=tol), args)


def minimize(fun: Callable[..., Any], x0: Any, args: Sequence[Any] = (), tol: float | None = None) -> OptimizeResult:
    """Minimise the scalar `fun(x, *args)`, as `aj.implicit.minimize` does."""
    return result(fun, implicit.minimize(fun, x0, *args, tol=tol), args)


def fixed_point(func: Callable[..., Any], x0: Any, args: Sequence[Any] = (), xtol: float | None = None, maxiter: int = 500) -> Operand:
    """Find x with `func(x, *args) = x` by iteration."""
    found: Operand = implicit.fixed_point(func, x0, *args, tol=xtol, maxiter=maxiter)
    return found


def result(fun: Callable[..., Any], x: Any, args: Sequence[Any]) -> OptimizeResult:
    return OptimizeResult(x, fun(x, *args), ops.all(ops.isfinite(ops.stop_gradient(as_operand(x)))))


def __dir__() -> list[str]:
    return __all__
