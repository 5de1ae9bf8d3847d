"""Integrals of functions and of samples, and initial value problems of ordinary differential equations.

Differential equations are solved by Dormand and Prince's method of order 5 with adaptive steps. Derivatives go through the accepted steps,
whose sizes count as constants: with respect to the initial values, the arguments, the times, and whatever the function closes over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.records import NamedTuple
from adjit.ir.types import normalize_axis
from adjit.tracer.control import scan, while_loop
from adjit.tracer.convert import pick, to_operand, to_operands
from adjit.tracer.surface.calculus import trapezoid as trapezoid
from adjit.tracer.surface.elementwise import floating
from adjit.tracer.surface.shapes import concatenate, moveaxis

from ..vmap import vmap

__all__ = ["odeint", "quad", "simpson", "solve_ivp", "trapezoid"]

# Dormand and Prince's tableau: the nodes, the stages' weights, the weights of order 5, and their difference from those of order 4
NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0  # safety factor, least and greatest factor by which a step changes


class OdeResult(NamedTuple):
    """The times, the solution with one column per time, and whether it reached the end."""

    t: Any
    y: Any
    success: Any


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, args: Sequence[Any] = (), rtol: float = 1.49012e-8, atol: float = 1.49012e-8,
    mxstep: int = 5000,
) -> Operand:  # fmt: skip
    """Solve dy/dt = func(y, t, *args) from y0 at t[0]; the rows of the result are the solution at the times t.

    NaN after an interval that needs more than `mxstep` steps.
    """
    return integrated(lambda time, y: func(y, time, *args), y0, t, rtol, atol, mxstep)


def solve_ivp(
    fun: Callable[..., Any], t_span: Sequence[Any], y0: Any, method: str = "RK45", t_eval: Any = None, args: Sequence[Any] | None = None,
    rtol: float = 1e-3, atol: float = 1e-6, max_steps: int = 5000,
) -> OdeResult:  # fmt: skip
    """Solve dy/dt = fun(t, y, *args) over t_span. The result is at the times t_eval; by default, at both ends: their number is static."""
    if method != "RK45":
        raise UnsupportedError(f"solve_ivp: the method is 'RK45', not {method!r}")
    times = ends(t_span) if t_eval is None else floating(to_operand(t_eval))
    start = floating(to_operand(t_span[0]))
    grid = concatenate([ops.reshape(ops.cast(start, times.dtype), (1,)), times], 0)
    rows = integrated(lambda time, y: fun(time, y, *(args or ())), y0, grid, rtol, atol, max_steps)
    found = moveaxis(pick(rows, slice(1, None)), 0, -1)
    return OdeResult(times, found, ops.all(ops.isfinite(ops.stop_gradient(found))))


def ends(span: Sequence[Any]) -> Operand:
    return concatenate([ops.reshape(floating(x), (1,)) for x in to_operands(*span)], 0)


def integrated(f: Callable[[Any, Any], Any], y0: Any, t: Any, rtol: float, atol: float, limit: int) -> Operand:
    """The solution at the times t, along a new first axis."""
    start, times = (floating(x) for x in to_operands(y0, t))
    times = ops.cast(times, start.dtype)
    if times.ndim != 1 or not times.shape[0]:
        raise ShapeError(f"the times must be a vector that is not empty, not {times.type}")
    begin = pick(times, 0)
    forward = ops.where(pick(times, -1) < begin, -1.0, ops.full((), 1.0, start.dtype))
    slope = as_operand(f(begin, start))
    if slope.type.shape != start.type.shape:
        raise ShapeError(f"the derivative of y, {start.type}, is {slope.type}: their shapes must be equal")

    def norm(error: Any, y: Any, z: Any) -> Any:
        scale = atol + rtol * ops.maximum(ops.absolute(y), ops.absolute(z))
        ratio = error / scale
        return ops.sqrt(ops.sum(ratio * ratio) / max(start.type.size, 1))

    def interval(carry: Any, end: Any) -> tuple[Any, Any]:
        def going(state: Any) -> Any:
            time, _, _, _, count = state
            return ops.logical_and(ops.greater((end - time) * forward, 0.0), ops.less(count, limit))

        def step(state: Any) -> Any:
            time, y, k, size, count = state
            is_last = ops.greater_equal(size, ops.absolute(end - time))
            h = ops.where(is_last, end - time, size * forward)
            following, last, error = stages(f, time, y, k, h)
            amount = ops.stop_gradient(norm(error, y, following))
            accepted = ops.less_equal(amount, 1.0)
            change = ops.clip(SAFETY * ops.power(ops.maximum(amount, 1e-10), -0.2), LEAST, MOST)
            change = ops.where(ops.isfinite(amount), change, LEAST)
            later = ops.where(is_last, end, time + h)
            return (
                ops.where(accepted, later, time), ops.where(accepted, following, y), ops.where(accepted, last, k),
                ops.where(ops.logical_and(accepted, is_last), ops.maximum(size, ops.absolute(h) * change), ops.absolute(h) * change),
                count + 1,
            )  # fmt: skip

        time, y, k, size = carry
        time, y, k, size, count = while_loop(going, step, (time, y, k, size, to_operand(0)))
        y = ops.where(ops.less(count, limit), y, math.nan)
        return (time, y, k, ops.stop_gradient(size)), y

    first = first_step(f, begin, start, slope, norm, forward)
    _, rows = scan(interval, (begin, start, slope, first), pick(times, slice(1, None)))
    return concatenate([ops.reshape(start, (1, *start.shape)), rows], 0)


def stages(f: Callable[[Any, Any], Any], time: Any, y: Any, k: Any, h: Any) -> tuple[Any, Any, Any]:
    """One step: the solution after it, the slope there, and the estimated error."""
    slopes = [k]
    following = y
    for node, weights in zip(NODES[1:], STAGES[1:], strict=True):
        total = None
        for weight, slope in zip(weights, slopes, strict=True):
            if weight:
                total = weight * slope if total is None else total + weight * slope
        following = y + h * total
        slopes.append(as_operand(f(time + node * h, following)))
    error = None
    for weight, slope in zip(ERROR, slopes, strict=True):
        if weight:
            error = weight * slope if error is None else error + weight * slope
    assert error is not None
    return following, slopes[-1], h * error


def first_step(f: Callable[[Any, Any], Any], time: Any, y: Any, k: Any, norm: Callable[..., Any], forward: Any) -> Operand:
    """Return a guess of the first step, from the size of the first two derivatives (Hairer, Nørsett and Wanner)."""
    y, k, time, forward = (ops.stop_gradient(as_operand(x)) for x in (y, k, time, forward))
    d0, d1 = norm(y, y, y), norm(k, y, y)
    small = ops.logical_or(ops.less(d0, 1e-5), ops.less(d1, 1e-5))
    guess = ops.where(small, 1e-6, 0.01 * d0 / ops.where(small, 1.0, d1))
    second = norm(ops.stop_gradient(as_operand(f(time + guess * forward, y + guess * forward * k))) - k, y, y) / guess
    largest = ops.maximum(d1, second)
    flat = ops.less_equal(largest, 1e-15)
    other = ops.where(flat, ops.maximum(1e-6, guess * 1e-3), ops.power(0.01 / ops.where(flat, 1.0, largest), 0.2))
    return ops.stop_gradient(ops.minimum(100.0 * guess, other))


# ---- integrals

LEVEL = 2.0**-5  # the distance of the nodes, before they are transformed


def quad(func: Callable[..., Any], a: Any, b: Any, args: Sequence[Any] = ()) -> tuple[Operand, Operand]:
    """Integrate the scalar `func(x, *args)` from a to b, and estimate the error; infinite bounds are Python floats.

    By the double exponential formula: singularities at the ends are harmless, kinks inside cost accuracy; split the interval there.
    `func` is called once, on all nodes by `vmap`. Derivatives are with respect to the bounds, the arguments and what func closes over.
    """
    x, weights = nodes(a, b)
    values = as_operand(vmap(lambda point: func(point, *args))(x))
    terms = ops.where(ops.isfinite(ops.stop_gradient(values)), values, 0.0) * weights
    total = ops.sum(terms) * LEVEL
    coarse = ops.sum(pick(terms, slice(None, None, 2))) * (2.0 * LEVEL)
    return total, ops.absolute(ops.stop_gradient(total - coarse))


def nodes(a: Any, b: Any) -> tuple[Operand, Operand]:
    """The nodes between a and b, and the weights without the factor LEVEL."""
    infinite = [isinstance(bound, int | float) and math.isinf(bound) for bound in (a, b)]
    if not any(infinite):
        t = np.arange(-115, 116) * LEVEL
        inner = 0.5 * np.pi * np.sinh(t)
        fraction = 1.0 / (1.0 + np.exp(2.0 * np.abs(inner)))  # of the interval, from the nearer end
        weights = 0.5 * np.pi * np.cosh(t) / np.cosh(inner) ** 2 * 0.5
        low, high = (floating(v) for v in to_operands(a, b))
        width = high - low
        x = ops.where(to_operand(t < 0), low + width * fraction, high - width * fraction)
        return x, width * weights
    t = np.arange(-200, 201) * LEVEL
    if all(infinite):
        t = t[np.abs(t) <= 5.5]
        sign = 1.0 if a < b else -1.0
        inner = 0.5 * np.pi * np.sinh(t)
        keep = np.abs(inner) < 690
        return to_operand(np.sinh(inner[keep])), to_operand(sign * 0.5 * np.pi * np.cosh(t[keep]) * np.cosh(inner[keep]))
    finite, direction = (a, 1.0 if b > 0 else -1.0) if infinite[1] else (b, -1.0 if a > 0 else 1.0)
    outward = direction if infinite[1] else -direction
    inner = 0.5 * np.pi * np.sinh(t)
    keep = np.abs(inner) < 690
    distance = np.exp(inner[keep])
    return floating(to_operand(finite)) + outward * distance, to_operand(direction * 0.5 * np.pi * np.cosh(t[keep]) * distance)


def simpson(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Operand:
    """Integrate samples by Simpson's rule, at equal distances dx or at the points x; an even number of them is corrected at the end."""
    samples = floating(to_operand(y))
    at = normalize_axis(axis, samples.ndim, "simpson")
    samples = moveaxis(samples, at, -1)
    count = samples.shape[-1]
    if x is None:
        steps = ops.full((max(count - 1, 0),), dx, samples.dtype)
    else:
        points = floating(to_operand(x))
        points = moveaxis(points, at, -1) if points.ndim == samples.ndim else points
        steps = pick(points, (..., slice(1, None))) - pick(points, (..., slice(None, -1)))
    if count < 3:
        return ops.sum(0.5 * steps * (pick(samples, (..., slice(1, None))) + pick(samples, (..., slice(None, -1)))), -1)
    whole = count - (count % 2 == 0)
    total = parabolas(pick(samples, (..., slice(None, whole))), pick(steps, (..., slice(None, whole - 1))))
    if whole == count:
        return total
    h0, h1 = pick(steps, (..., -2)), pick(steps, (..., -1))  # the last interval, by the parabola through the last three points
    a, b, c = (pick(samples, (..., -k)) for k in (1, 2, 3))
    alpha = (2.0 * h1 * h1 + 3.0 * h0 * h1) / (6.0 * (h1 + h0))
    beta = (h1 * h1 + 3.0 * h0 * h1) / (6.0 * h0)
    eta = h1 * h1 * h1 / (6.0 * h0 * (h0 + h1))
    return total + alpha * a + beta * b - eta * c


def parabolas(y: Operand, steps: Operand) -> Operand:
    """Simpson's rule for an odd number of samples."""
    h0, h1 = pick(steps, (..., slice(None, None, 2))), pick(steps, (..., slice(1, None, 2)))
    first, middle, last = (pick(y, (..., s)) for s in (slice(None, -2, 2), slice(1, None, 2), slice(2, None, 2)))
    total, ratio = h0 + h1, h0 / h1
    terms = total / 6.0 * (first * (2.0 - 1.0 / ratio) + middle * (total * total / (h0 * h1)) + last * (2.0 - ratio))
    return ops.sum(terms, -1)


def __dir__() -> list[str]:
    return __all__
