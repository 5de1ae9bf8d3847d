"""Complex numbers: functions at extreme values, gradients in TensorFlow's convention, and everything that stores arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import DTypeError, GradientError
from adjit.ir.ops.base import Array

RNG = np.random.default_rng(13)
Z = RNG.normal(size=5) + 1j * RNG.normal(size=5)
A = RNG.normal(size=(5, 5)) + 1j * RNG.normal(size=(5, 5))
X = RNG.normal(size=5)

FUNCTIONS = [
    np.exp, np.expm1, np.exp2, np.log, np.log2, np.log10, np.sqrt, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh,
    np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.absolute, np.angle, np.conjugate, np.isnan, np.isinf, np.isfinite,
]  # fmt: skip


def differences(f: Callable[[Array], Any], z: Array) -> Array:
    """The direction of steepest ascent of a real function, by central differences along both axes."""
    out = np.zeros_like(z)
    for k in np.ndindex(*z.shape):
        for direction in (1, 1j):
            step = np.zeros_like(z)
            step[k] = 1e-6 * direction
            out[k] += direction * (float(f(z + step)) - float(f(z - step))) / 2e-6
    return out


# ---- functions


def edges(dtype: np.dtype[Any]) -> Array:
    info = np.finfo(dtype)
    overflows = 720.0 if dtype == np.complex128 else 90.0
    sizes = [0.0, 1e-3, 0.5, 1.0, 2.0, 7.25, 100.0, overflows, 1e6, float(info.tiny), float(info.max), np.inf]
    parts = np.array([*sizes, *(-s for s in sizes), np.nan], info.dtype)
    grid = np.empty((parts.size, parts.size), dtype)
    grid.real, grid.imag = parts[:, None], parts
    return grid.ravel()


@pytest.mark.parametrize("dtype", [np.dtype("c16"), np.dtype("c8")], ids=str)
def test_special_values_are_numpys(dtype: np.dtype[Any]) -> None:
    z = edges(dtype)
    got = aj.function(lambda z: [function(z) for function in FUNCTIONS])(z)
    eps = float(np.finfo(dtype).eps)
    for function, out in zip(FUNCTIONS, got, strict=True):
        with np.errstate(all="ignore"):
            wanted = function(z)
            size = np.abs(wanted)
        assert np.asarray(out).dtype == wanted.dtype
        if wanted.dtype == bool:
            np.testing.assert_array_equal(out, wanted)
            continue
        size = np.where(np.isfinite(size), size, 0)
        for a, b in ((np.real(out), np.real(wanted)), (np.imag(out), np.imag(wanted))):
            a = np.asarray(a)
            with np.errstate(all="ignore"):
                near = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= 16 * eps * np.abs(b) + 4 * eps * size)
            assert near.all(), (function, z[~near][:3], np.asarray(out)[~near][:3], wanted[~near][:3])


def test_division_and_powers_at_special_values() -> None:
    z = edges(np.dtype("c16"))[::7]
    a, b = (m.ravel() for m in np.meshgrid(z, z))
    quotient = aj.function(lambda a, b: a / b)(a, b).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(quotient, a / b, rtol=1e-14)
    base, exponent = np.array([0, 0, 0, 2j, -1.5, 0.3 - 2j]), np.array([0, 2 + 1j, -1, 0, 0.5 + 1j, -3.2])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(aj.function(np.power)(base, exponent), np.power(base, exponent), rtol=1e-13)


def test_refusals_of_numpy_are_refused() -> None:
    for call in (lambda z: z % 2, lambda z: np.floor(z), lambda z: np.arctan2(z, z)):
        with pytest.raises(DTypeError, match="not supported"):
            aj.function(call)(Z)


def test_parts_and_products_of_the_surface() -> None:
    calls = [
        np.real, np.imag, np.conj, lambda z: z.real + z.imag, lambda z: z.conj(), np.angle, lambda z: np.angle(z, deg=True), np.isreal,
        np.iscomplex, np.var, np.std, np.mean, np.sum, np.prod, np.cumprod, np.linalg.norm, lambda z: np.linalg.norm(z, 1),
        lambda z: np.vdot(z, A[0]), lambda z: np.einsum("ij,j->i", A, z), lambda z: np.convolve(z, A[0, :2]),
        lambda z: np.correlate(z, A[0, :2]), lambda z: np.correlate(A[0, :2], z), lambda z: np.outer(z, z), lambda z: np.round(z, 1),
        lambda z: np.nan_to_num(z * np.array([np.nan, 1, 1, 1, 1])), lambda z: z[[0, 2]] * z[1], lambda z: np.where(z.real > 0, z, 1j),
        lambda z: z * 1j + 2, lambda z: np.roll(z, 2), lambda z: z.astype(np.complex64), lambda z: np.tensordot(A, z, 1),
        lambda z: np.zeros_like(z) + 1, lambda z: np.full(3, 2j) * z[:3], lambda z: np.linspace(z[0], z[1], 4),
    ]  # fmt: skip
    compiled = aj.function(lambda z: [call(z) for call in calls])(Z)
    for call, got in zip(calls, compiled, strict=True):
        wanted = np.asarray(call(Z))
        for out in (got, call(aj.tensor(Z))):
            assert np.asarray(out).dtype == wanted.dtype
            np.testing.assert_allclose(np.asarray(out), wanted, rtol=1e-13 if wanted.dtype != np.complex64 else 1e-6)


def test_systems_of_equations() -> None:
    for b in (Z, A[::-1].T):
        for solve in (np.linalg.solve, aj.function(np.linalg.solve)):
            np.testing.assert_allclose(solve(aj.tensor(A), b), np.linalg.solve(A, b), rtol=1e-10)
    np.testing.assert_allclose(aj.function(np.linalg.inv)(A), np.linalg.inv(A), rtol=1e-11)
    stack = np.stack([A, 2j * A])
    np.testing.assert_allclose(aj.function(np.linalg.solve)(stack, A[:, :2]), np.linalg.solve(stack, A[:, :2]), atol=1e-13)


def test_no_imaginary_part_is_lost_silently() -> None:
    for call in (lambda z: np.quantile(z, 0.3), lambda z: np.nanquantile(z, 0.3), lambda z: np.geomspace(z[0], 2, 3)):
        with pytest.raises((TypeError, ValueError)):
            aj.function(call)(A)
    with pytest.raises(DTypeError, match="imaginary part"):
        aj.tensor(X).at[0].set(aj.tensor(1j))
    with pytest.raises(DTypeError, match="complex number"):
        aj.tensor(X).at[0].set(1j)
    assert aj.tensor(Z).astype(np.float64).dtype == np.float64  # as asked for


def test_python_numbers_are_weak() -> None:
    single, double = np.ones(2, np.float32), np.ones(2)
    f = aj.function(lambda x, c: x * c)
    assert f(single, 1j).dtype == np.complex64
    assert f(double, 1j).dtype == np.complex128
    assert f(single, 2 + 1j).numpy()[0] == 2 + 1j
    assert len({f(single, 1j * k).numpy().tobytes() for k in range(3)}) == 3
    assert (aj.tensor(single) * 1j).dtype == np.complex64


# ---- derivatives


def loss(z: Any) -> Any:
    return np.sum(np.abs(A @ z * np.exp(0.3 * z)) ** 2) + np.sum(np.sin(z) * np.conj(z)).real + np.imag(np.prod(z))


def test_the_gradient_is_the_direction_of_steepest_ascent() -> None:
    wanted = differences(loss, Z)
    for gradient in (aj.grad(loss), aj.function(aj.grad(loss))):
        np.testing.assert_allclose(gradient(Z), wanted, rtol=1e-6)
    v = aj.Variable(Z)
    with aj.GradientTape() as tape:
        value = loss(v)
    np.testing.assert_allclose(tape.gradient(value, v), wanted, rtol=1e-6)


def test_a_descent_step_descends() -> None:
    v = aj.Variable(Z)

    @aj.function
    def step() -> Any:
        with aj.GradientTape() as tape:
            value = loss(v)
        v.assign_sub(1e-3 * tape.gradient(value, v))
        return value

    values = [float(step()) for _ in range(4)]
    assert values == sorted(values, reverse=True)
    assert v.dtype == np.complex128


def test_tensorflows_gradient_of_a_complex_target() -> None:
    z = aj.tensor(Z)
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y = z * z
    np.testing.assert_allclose(tape.gradient(y, z), np.conj(2 * Z))  # that of its real part
    np.testing.assert_allclose(tape.gradient(y, z, output_gradients=aj.tensor(Z)), np.conj(2 * Z) * Z)
    np.testing.assert_allclose(tape.jacobian(y, z), np.diag(np.conj(2 * Z)))


@pytest.mark.parametrize("compiled", [False, True])
def test_forward_and_reverse_mode_agree(compiled: bool) -> None:
    def both(z: Any, x: Any, dz: Any, dx: Any, c: Any) -> Any:
        def f(z: Any, x: Any) -> Any:
            return np.tanh(A @ z) * x + np.conj(z) ** 2

        y, dy = aj.jvp(f, (z, x), (dz, dx))
        _, pull = aj.vjp(f, z, x)
        return y, dy, pull(c)

    dz, dx, c = Z[::-1].copy(), X[::-1].copy(), A[0]
    _, dy, (cz, cx) = (aj.function(both) if compiled else both)(Z, X, dz, dx, c)
    assert cx.dtype == np.float64
    forward = np.vdot(c, dy).real  # users' cotangents pair as Re(conj(c) t)
    assert float(np.vdot(cz, dz).real + np.dot(cx, dx)) == pytest.approx(float(forward), rel=1e-11)


def test_second_order() -> None:
    product = aj.function(lambda z, v: aj.hvp(loss, z, v))(Z, A[1])
    step = 1e-5
    wanted = (aj.grad(loss)(Z + step * A[1]).numpy() - aj.grad(loss)(Z - step * A[1]).numpy()) / (2 * step)
    np.testing.assert_allclose(product, wanted, rtol=1e-6, atol=1e-6)


def test_holomorphic_derivatives() -> None:
    np.testing.assert_allclose(aj.grad(lambda z: z**3 + np.sin(z), holomorphic=True)(1 + 2j), 3 * (1 + 2j) ** 2 + np.cos(1 + 2j))
    np.testing.assert_allclose(aj.function(aj.jacobian(lambda z: A @ z, holomorphic=True))(Z), A, rtol=1e-13)
    np.testing.assert_allclose(aj.hessian(lambda z: np.sum(z**3), holomorphic=True)(Z), np.diag(6 * Z))
    np.testing.assert_allclose(aj.jacobian(lambda x: x * 1j)(X), 1j * np.eye(5))
    np.testing.assert_allclose(aj.jacobian(lambda z: np.abs(z) ** 2)(Z), np.diag(2 * Z), rtol=1e-13)
    with pytest.raises(GradientError, match="holomorphic=True"):
        aj.grad(lambda z: z * z)(1j)
    with pytest.raises(GradientError, match="only if the function is holomorphic"):
        aj.jacobian(lambda z: z * z)(Z)
    with pytest.raises(GradientError, match="take complex numbers"):
        aj.grad(lambda x: x * 1j, holomorphic=True)(1.0)


def test_custom_gradients_follow_the_same_convention() -> None:
    @aj.custom_gradient
    def squared(z: Any) -> Any:
        return z * z, lambda upstream: upstream * np.conj(2 * z)

    def f(z: Any) -> Any:
        return np.sum(np.abs(squared(z) + 1) ** 2)

    for gradient in (aj.grad(f), aj.function(aj.grad(f))):
        np.testing.assert_allclose(gradient(Z), aj.grad(lambda z: np.sum(np.abs(z * z + 1) ** 2))(Z), rtol=1e-12)
    _, tangent = aj.function(lambda z, v: aj.jvp(squared, (z,), (v,)))(Z, A[0])
    np.testing.assert_allclose(tangent, 2 * Z * A[0], rtol=1e-12)


# ---- control flow, batching, state, effects


def iterated(z: Any, n: Any) -> Any:
    c = z
    for _ in range(n):
        c = c * c * 0.3 + z
    return np.sum(np.abs(c) ** 2)


def escaping(z: Any) -> Any:
    c, k = z, 0
    while np.sum(np.abs(c)) < 50:
        c = c * c + z if np.sum(c.real) > 0 else c * 1.5j
        k += 1
    return np.sum(np.abs(c)) + k


def test_loops_carry_and_save_complex_values() -> None:
    got = aj.function(lambda z, n: aj.grad(iterated)(z, n))(Z, aj.tensor(4))
    np.testing.assert_allclose(got, differences(lambda z: iterated(z, 4), Z), rtol=1e-6)
    value, gradient = aj.function(aj.value_and_grad(escaping))(Z)
    assert float(value) == pytest.approx(float(escaping(Z)))
    np.testing.assert_allclose(gradient, differences(escaping, Z), rtol=1e-5)


def test_second_order_through_loops() -> None:
    """The cotangents of a stack that two loops read are added."""

    def powers(z: Any, n: Any) -> Any:
        total, k = 0 * z, 0
        while k < n:
            total = total + z * z * z
            z = aj.sin(z) * z
            k = k + 1
        return aj.sum(aj.real(z * aj.conj(z) + total))

    def slope(z: Any, n: Any) -> Any:
        return aj.grad(lambda y: aj.sum(aj.real(aj.grad(lambda x: powers(x, n))(y) ** 2)))(z)

    z = np.array([0.3 + 0.2j, 0.1 - 0.4j])
    unrolled = aj.function(lambda z: slope(z, 4))(z)
    np.testing.assert_allclose(aj.function(slope)(z, np.int64(4)), unrolled, rtol=1e-12)


def test_vmap() -> None:
    rows = np.stack([Z, Z * 2, np.conj(Z)])
    got = aj.function(aj.vmap(aj.grad(loss)))(rows)
    np.testing.assert_allclose(got, [aj.grad(loss)(row) for row in rows], rtol=1e-11)


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    @aj.function
    def f(z: Any) -> Any:
        print("z is", z[0], z.real[0] > 100)
        return z

    f(np.array([1 + 2j, 3]))
    assert capsys.readouterr().out == "z is (1+2j) False\n"


def test_calls_enter_natively_and_arrays_keep_their_layout() -> None:
    f = aj.function(lambda z, w: (z @ w, {"sum": z + w.T}))
    for _ in range(3):
        product, rest = f(A, A.T)
    np.testing.assert_allclose(product, A @ A.T)
    np.testing.assert_allclose(rest["sum"], 2 * A)
    np.testing.assert_allclose(f(A[::2, ::2], A[1:4, 1:4])[0], A[::2, ::2] @ A[1:4, 1:4])


def test_sign_of_special_values() -> None:
    """NumPy's sign has no negative zeros at 0, and the direction of an infinite part."""
    parts = [-math.inf, -2.0, -0.0, 0.0, 3.0, math.inf]
    z = np.array([complex(a, b) for a in parts for b in parts])
    with np.errstate(invalid="ignore"):
        expected = np.sign(z)
    for sign in (aj.sign, aj.function(aj.sign)):
        found = sign(z).numpy()
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(found), part(expected), rtol=1e-15)
        np.testing.assert_array_equal(np.signbit(found.real[z == 0]), np.signbit(expected.real[z == 0]))
        np.testing.assert_array_equal(np.signbit(found.imag[z == 0]), np.signbit(expected.imag[z == 0]))
