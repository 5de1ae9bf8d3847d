"""Solutions of equations with implicit derivatives: `aj.implicit.root`, `fixed_point`, `minimize` and `custom_root`.

The solver's iterations are not differentiated. By the implicit function theorem, x with f(x, *args) = 0 changes by -J⁻¹ times the change of
f, where J is the Jacobian of f with respect to x: one linear solve, in both modes and to any order. Derivatives are with respect to `args`;
values that f closes over are constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import GradientError, ShapeError
from adjit.ir.operand import Operand, as_operand
from adjit.tracer.control import while_loop
from adjit.tracer.convert import to_operand
from adjit.tracer.pytree import flatten

from .custom_jvp import custom_jvp
from .transforms import grad, jacobian, jvp

__all__ = ["custom_root", "fixed_point", "minimize", "root"]


def __dir__() -> list[str]:
    return __all__


Solver = Callable[..., Any]
HALVINGS = 30  # of a step that does not improve


def root(f: Callable[..., Any], x0: Any, *args: Any, tol: float | None = None, maxiter: int = 100) -> Any:
    """Solve `f(x, *args) = 0` for the array x by Newton's method with step halving, starting from x0.

    NaN where no step improves or `maxiter` is reached while Newton's step is longer than `tol (1 + |x|)` (default: half the digits of
    the dtype). The unit of f makes no difference.
    """
    return custom_root(f, lambda x0, *args: newton(lambda x: f(x, *args), None, x0, tol, maxiter))(x0, *args)


def fixed_point(g: Callable[..., Any], x0: Any, *args: Any, tol: float | None = None, maxiter: int = 1000) -> Any:
    """Iterate `x = g(x, *args)` until x no longer changes by more than `tol`; NaN if it still does after `maxiter` iterations."""
    return custom_root(lambda x, *args: g(x, *args) - x, lambda x0, *args: repeated(lambda x: g(x, *args), x0, tol, maxiter))(x0, *args)


def minimize(f: Callable[..., Any], x0: Any, *args: Any, tol: float | None = None, maxiter: int = 100) -> Any:
    """Minimise the scalar `f(x, *args)` by Newton's method with step halving, starting from x0; for problems with few unknowns.

    Directions in which f does not curve upwards are followed downhill. NaN where the gradient does not vanish within `maxiter` steps.
    """

    def gradient(x: Any, *args: Any) -> Any:
        return grad(f)(x, *args)

    def solve(x0: Any, *args: Any) -> Any:
        return newton(lambda x: gradient(x, *args), lambda x: f(x, *args), x0, tol, maxiter)

    return custom_root(gradient, solve)(x0, *args)


def custom_root(f: Callable[..., Any], solve: Solver) -> Callable[..., Any]:
    """Return `solution(x0, *args)`, which calls `solve(x0, *args)` for the array x and has the derivatives of the x with f(x, *args) = 0.

    The solver may be anything, SciPy's outside of compiled functions included.
    """

    @custom_jvp
    def solution(x0: Any, *args: Any) -> Any:
        return solve(x0, *args)

    @solution.defjvp
    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        _, *args = primals
        x = solution(*primals)
        leaves, tree = flatten(tuple(args))
        dots, _ = flatten(tuple(tangents[1:]))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Operand) and leaf.type.is_float]
        if not places:
            return x, ops.mul(as_operand(x), 0.0)

        def by_floats(*floats: Any) -> Any:
            filled = list(leaves)
            for i, value in zip(places, floats, strict=True):
                filled[i] = value
            return f(x, *tree.unflatten(filled))

        _, change = jvp(by_floats, [leaves[i] for i in places], [direction(leaves[i], dots[i]) for i in places])
        matrix = ops.reshape(as_operand(jacobian(lambda x: f(x, *args))(x)), (x.size, x.size))
        moved = ops.solve(matrix, ops.reshape(as_operand(change), (x.size, 1)))
        return x, -ops.reshape(moved, x.shape)

    def checked(x0: Any, *args: Any) -> Any:
        x = to_operand(x0)
        if not x.type.is_float:
            raise GradientError(f"the starting point is {x.type}: only floats have derivatives; cast it with .astype")
        return solution(ops.stop_gradient(x), *(floats(a) for a in args))

    return checked


def floats(x: Any) -> Any:
    """Return a Python float as an array, which has a derivative; anything else unchanged."""
    return to_operand(x) if type(x) is float else x


def direction(x: Operand, d: Any) -> Any:
    return x.literal(d, x.type) if isinstance(d, int | float) else d


def tolerance(x: Operand, tol: float | None) -> float:
    return math.sqrt(float(np.finfo(x.dtype).eps)) if tol is None else tol


def newton(f: Callable[[Any], Any], value: Callable[[Any], Any] | None, x0: Any, tol: float | None, maxiter: int) -> Any:
    """The root of f, or the minimum of `value`, whose gradient f is."""
    start = to_operand(x0)
    limit = tolerance(start, tol)
    first = as_operand(f(start))
    if first.type.shape != start.type.shape:
        raise ShapeError(f"f takes {start.type} and returns {first.type}: as many equations are needed as there are unknowns")

    def size(y: Any) -> Any:
        return ops.max(ops.absolute(ops.reshape(as_operand(y), -1)))

    def better(x: Any, before: Any, y: Any) -> Any:
        """Whether x improves on a point: by the value, or where that differs by its rounding errors only, by the gradient."""
        if value is None:
            return ops.less(size(f(x)), before)
        now = as_operand(value(x))
        level = ops.less_equal(ops.absolute(now - before), rounding * ops.absolute(before))
        return ops.where(level, ops.less(size(f(x)), size(y)), ops.less(now, before))

    rounding = 8.0 * float(np.finfo(start.dtype).eps)

    def going(state: Any) -> Any:
        _, y, count, is_stuck, _ = state
        # beyond the tolerance, steps go on while they improve: a root is found to the last digits
        return ops.logical_and(ops.logical_and(ops.less(count, maxiter), ops.logical_not(is_stuck)), ops.greater(size(y), 0.0))

    def step(state: Any) -> Any:
        x, y, count, _, _ = state
        matrix = ops.reshape(as_operand(jacobian(f)(x)), (x.size, x.size))
        right = ops.reshape(as_operand(y), (x.size, 1))
        move = ops.reshape(descent(matrix, right) if value is not None else ops.solve(matrix, right), x.shape)
        before = size(y) if value is None else as_operand(value(x))

        def longer(inner: Any) -> Any:
            scale, tries = inner
            return ops.logical_and(ops.logical_not(better(x - scale * move, before, y)), ops.less(tries, HALVINGS))

        one = ops.full((), 1.0, x.dtype)
        scale, tries = while_loop(longer, lambda inner: (inner[0] * 0.5, inner[1] + 1), (to_operand(one), to_operand(0)))
        failed = ops.greater_equal(tries, HALVINGS)
        following = ops.where(failed, x, x - scale * move)
        return following, as_operand(f(following)), count + 1, failed, size(move)

    started = (start, first, to_operand(0), to_operand(False), to_operand(ops.full((), math.inf, start.dtype)))
    x, y, _, _, moved = while_loop(going, step, started)
    # f may be given in any unit: the length of Newton's step measures the distance to the root, the size of f does not
    found = ops.logical_or(ops.equal(size(y), 0.0), ops.less_equal(moved, limit * (1.0 + size(x))))
    return ops.where(found, x, math.nan)


def descent(matrix: Operand, right: Operand) -> Operand:
    """The step of Newton's method with the absolute values of the Hessian's eigenvalues, so that it leads downhill."""
    from adjit.ir.ops.spectral import eigh  # noqa: PLC0415 - few programs minimise

    w, v = eigh(matrix)
    size = ops.absolute(w)
    floor = ops.max(size) * float(np.finfo(matrix.dtype).eps)
    size = ops.where(ops.greater(size, floor), size, ops.maximum(floor, 1e-30))
    turned = ops.matmul(ops.transpose(v), right)
    return ops.matmul(v, turned / ops.reshape(size, turned.shape))


def repeated(g: Callable[[Any], Any], x0: Any, tol: float | None, maxiter: int) -> Any:
    start = to_operand(x0)
    limit = float(np.finfo(start.dtype).eps) * 4.0 if tol is None else tol

    def change(x: Any, y: Any) -> Any:
        return ops.max(ops.absolute(ops.reshape(x - y, -1)))

    def scale(x: Any) -> Any:
        return 1.0 + ops.max(ops.absolute(ops.reshape(x, -1)))

    def going(state: Any) -> Any:
        x, y, count = state
        return ops.logical_and(ops.less(count, maxiter), ops.greater(change(x, y), limit * scale(y)))

    x, y, _ = while_loop(going, lambda s: (s[1], as_operand(g(s[1])), s[2] + 1), (start, as_operand(g(start)), to_operand(0)))
    return ops.where(ops.less_equal(change(x, y), tolerance(start, tol) * scale(y)), y, math.nan)
