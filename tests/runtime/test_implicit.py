"""Implicit derivatives of roots, fixed points and minima: both modes, first and second order, eager and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import adjit as aj

START, A = np.array([1.0, 0.5]), np.array([2.0, 3.0])


def cubic(x: Any, a: Any) -> Any:
    return x**3 + a * x - 1.0


def solution(a: Any) -> Any:
    return aj.implicit.root(cubic, START, a)


def slope(a: Any) -> Any:
    """The derivative of the solution, which is elementwise, from the solution itself."""
    x = np.asarray(solution(a))
    return -x / (3 * x * x + a)


def test_root() -> None:
    for solve in (solution, aj.function(solution)):
        np.testing.assert_allclose(cubic(np.asarray(solve(A)), A), 0.0, atol=1e-15)


def test_first_derivatives() -> None:
    for jacobian in (aj.jacobian(solution), aj.jacobian(solution, mode="reverse"), aj.function(aj.jacobian(solution, mode="reverse"))):
        np.testing.assert_allclose(np.asarray(jacobian(A)), np.diag(slope(A)), rtol=1e-13, atol=1e-15)
    _, tangent = aj.jvp(solution, (A,), (np.array([1.0, -2.0]),))
    np.testing.assert_allclose(np.asarray(tangent), slope(A) * [1.0, -2.0], rtol=1e-13)


def test_second_derivatives() -> None:
    step = 1e-5
    wanted = np.diag((slope(A + step) - slope(A - step)) / (2 * step))
    for hessian in (aj.hessian(lambda a: aj.sum(solution(a))), aj.function(aj.hessian(lambda a: aj.sum(solution(a))))):
        np.testing.assert_allclose(np.asarray(hessian(A)), wanted, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_units_make_no_difference(unit: float, offset: float) -> None:
    """Neither the unit of f nor a constant term, which hides differences of f near its minimum, decides whether a solution is found."""

    def bowl(x: Any, a: Any) -> Any:
        return unit * (aj.sum((x - a) ** 4 + (x - a) ** 2 + x**2) + offset)

    wanted = scipy.optimize.root(lambda x: 4 * (x - A) ** 3 + 2 * (x - A) + 2 * x, A, tol=1e-14).x
    for start in (np.zeros(2), A, np.array([-50.0, 40.0])):
        for minimum in (aj.implicit.minimize, aj.function(lambda x0, a: aj.implicit.minimize(bowl, x0, a))):
            found = minimum(bowl, start, A) if minimum is aj.implicit.minimize else minimum(start, A)
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-7)
    for dtype in (np.float64, np.float32):
        root = aj.implicit.root(lambda x: unit * (x**3 - 2.0), np.ones(1, dtype))
        np.testing.assert_allclose(np.asarray(root), 2.0 ** (1 / 3), rtol=4 * np.finfo(dtype).eps)
    assert np.isnan(np.asarray(aj.implicit.root(lambda x: unit * (x**2 + 1.0), np.array([0.7])))).all()


def test_several_arguments_in_structures() -> None:
    def f(x: Any, p: Any, k: int) -> Any:
        return p["m"] @ x - k * p["b"]

    m, b = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([1.0, 2.0])
    gradient = aj.grad(lambda p: aj.sum(aj.implicit.root(f, np.zeros(2), p, 2)))({"m": m, "b": b})
    inverse = np.linalg.inv(m)
    np.testing.assert_allclose(np.asarray(gradient["b"]), 2 * inverse.sum(0))
    np.testing.assert_allclose(np.asarray(gradient["m"]), -np.outer(inverse.sum(0), 2 * inverse @ b))


def test_fixed_point() -> None:
    def found(a: Any) -> Any:
        return aj.implicit.fixed_point(lambda x, a: aj.cos(a * x), np.array(0.5), a)

    x = float(found(1.0))
    assert np.cos(x) == pytest.approx(x, rel=1e-14)
    for gradient in (aj.grad(found), aj.function(aj.grad(found))):
        assert float(gradient(1.0)) == pytest.approx(-x * np.sin(x) / (1 + np.sin(x)), rel=1e-12)


def test_minimize() -> None:
    def valley(x: Any, t: Any) -> Any:
        return (x[0] - t[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2 + t[1] * x[1]

    def found(t: Any) -> Any:
        return aj.implicit.minimize(valley, np.array([-1.2, 1.0]), t)

    t = np.array([1.0, 0.3])
    wanted = scipy.optimize.minimize(valley, [-1.2, 1.0], (t,), tol=1e-12).x
    np.testing.assert_allclose(np.asarray(found(t)), wanted, rtol=1e-5)
    steps = np.eye(2) * 1e-5
    columns = np.stack([(np.asarray(found(t + d)) - np.asarray(found(t - d))) / 2e-5 for d in steps], 1)
    for jacobian in (aj.jacobian(found), aj.function(aj.jacobian(found))):
        np.testing.assert_allclose(np.asarray(jacobian(t)), columns, rtol=1e-7)


def test_custom_root_with_a_solver_of_scipy() -> None:
    def by_scipy(x0: Any, a: Any) -> Any:
        return scipy.optimize.root(lambda x: cubic(x, np.asarray(a)), np.asarray(x0), tol=1e-13).x

    solve = aj.implicit.custom_root(cubic, by_scipy)
    np.testing.assert_allclose(np.asarray(aj.grad(lambda a: aj.sum(solve(START, a)))(A)), slope(A), rtol=1e-9)


def test_many_problems_at_once() -> None:
    roots = aj.vmap(lambda a: aj.implicit.root(lambda x, a: x * x - a, 1.0, a))(np.array([2.0, 3.0, 4.0]))
    np.testing.assert_allclose(np.asarray(roots), np.sqrt([2.0, 3.0, 4.0]), rtol=1e-14)


def test_no_solution_is_nan_and_wrong_shapes_raise() -> None:
    assert np.isnan(np.asarray(aj.implicit.root(lambda x, a: x * x + a, np.array([1.3]), np.array([1.0])))).all()
    assert np.isnan(np.asarray(aj.implicit.fixed_point(lambda x: 2.0 * x + 1.0, np.array(1.0), maxiter=50))).all()
    with pytest.raises(aj.ShapeError, match="as many equations"):
        aj.implicit.root(lambda x: x[:1], np.ones(2))
    with pytest.raises(aj.GradientError, match="only floats"):
        aj.implicit.root(lambda x: x, np.arange(2))
