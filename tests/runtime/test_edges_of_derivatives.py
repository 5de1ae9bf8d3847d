"""Rare arguments of transforms, tapes and custom rules: the right derivative, or an error that names the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

X = np.array([0.5, -1.0, 2.0])
Z = np.array([1.0 + 2.0j, -0.5j])


# ---- Jacobians


def test_modes_of_jacobians_agree() -> None:
    f = lambda x: aj.sin(x) * x[0]  # noqa: E731
    wanted = np.diag(np.cos(X) * X[0]) + np.outer(np.sin(X), [1.0, 0.0, 0.0])
    for mode in ("forward", "reverse", None):
        for wrap in (lambda g: g, aj.function):
            np.testing.assert_allclose(np.asarray(wrap(aj.jacobian(f, mode=mode))(X)), wanted, rtol=1e-14)


def test_modes_of_complex_jacobians() -> None:
    to_complex = lambda x: aj.exp(1j * x)  # noqa: E731
    to_real = lambda z: aj.real(z * z) + aj.imag(z)  # noqa: E731
    wanted = np.diag(1j * np.exp(1j * X))
    np.testing.assert_allclose(np.asarray(aj.jacobian(to_complex)(X)), wanted, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(aj.jacobian(to_complex, mode="forward")(X)), wanted, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(aj.jacobian(to_complex, mode="reverse")(X)), wanted.real, rtol=1e-14)
    rows = np.asarray(aj.jacobian(to_real)(Z))
    np.testing.assert_allclose(rows, np.asarray(aj.jacobian(to_real, mode="reverse")(Z)), rtol=1e-14)
    for k in range(2):
        np.testing.assert_allclose(rows[k], np.asarray(aj.grad(lambda z, k=k: to_real(z)[k])(Z)), rtol=1e-14)
    with pytest.raises(aj.GradientError, match="is computed in reverse mode, not 'forward'"):
        aj.jacobian(to_real, mode="forward")(Z)
    with pytest.raises(aj.GradientError, match="mode is 'forward', 'reverse' or None"):
        aj.jacobian(to_real, mode="sideways")(Z)  # type: ignore[arg-type]


def test_a_jacobian_without_forward_rules_is_computed_in_reverse() -> None:
    """Forward mode is cheaper here, and not available: the gradient of a custom_gradient function is not linear in its cotangent."""

    @aj.custom_gradient
    def clipped(x: Any) -> Any:
        return x * x, lambda d: aj.clip(d, -1.0, 1.0) * 2.0 * x

    f = lambda x: aj.concatenate([clipped(x), x])  # noqa: E731
    np.testing.assert_allclose(np.asarray(aj.jacobian(f)(X)), np.concatenate([np.diag(2.0 * X), np.eye(3)]))
    with pytest.raises(aj.GradientError, match="forward"):
        aj.jacobian(f, mode="forward")(X)


def test_unconnected_examples_have_no_jacobian() -> None:
    x = aj.tensor(np.ones((2, 3)))
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = aj.ones((2, 4))
    assert tape.batch_jacobian(y, x) is None


# ---- rules of users


@aj.custom_jvp
def squared(x: Any, *, power: int = 2) -> Any:
    return x**power


@squared.defjvp
def squared_rule(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return squared(x), 2.0 * x * dx


STATE = aj.Variable(2.0, name="state")


@aj.custom_jvp
def assigning(x: Any) -> Any:
    return x * x


@assigning.defjvp
def assigning_rule(primals: Any, tangents: Any) -> Any:
    STATE.assign(3.0)
    return primals[0] ** 2, 2.0 * primals[0] * tangents[0]


@aj.custom_gradient
def assigning_backward(x: Any) -> Any:
    def grad(d: Any) -> Any:
        STATE.assign(3.0)
        return 2.0 * x * d

    return x * x, grad


@aj.custom_gradient
def without_a_function(x: Any) -> Any:
    return x * x


@aj.custom_gradient
def of_another_shape(x: Any) -> Any:
    return x * x, lambda d: d[:1]


@aj.custom_gradient
def of_too_many(x: Any) -> Any:
    return x * x, lambda d: (d, d)


@aj.custom_gradient
def of_too_few(x: Any, *, scale: Any) -> Any:
    return x * x * scale, lambda d: d


@aj.custom_gradient
def without_variables(x: Any) -> Any:
    return x * STATE, lambda d: d * 2.0


@aj.custom_gradient
def without_a_pair(x: Any) -> Any:
    return x * STATE, lambda d, variables: d * 2.0


@aj.custom_gradient
def without_enough(x: Any) -> Any:
    return x * STATE, lambda d, variables: (d * 2.0, [])


@aj.custom_gradient
def by_variables(x: Any) -> Any:
    return x * STATE, lambda d, variables: (d * 5.0, [aj.sum(d) * 7.0 for _ in variables])


WRONG: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (lambda x: squared(x, power=3), TypeError, r"keyword-only arguments \(power\) are not supported by custom_jvp"),
    (without_a_function, aj.GradientError, "must return its result and a function"),
    (of_another_shape, aj.GradientError, r"gradient of type f64\[1\] for an argument of type f64\[3\]"),
    (of_too_many, aj.GradientError, "must return 1 gradients, but returned 2"),
    (lambda x: of_too_few(x, scale=x), aj.GradientError, r"must return 2 gradients \(1 of them for keyword arguments"),
    (without_variables, TypeError, "grad_fn must accept a 'variables' keyword argument: without_variables reads 'state'"),
    (without_a_pair, aj.GradientError, r"must return \(gradients, gradients of the variables\)"),
    (without_enough, aj.GradientError, "must return 1 gradients of variables, but returned 0"),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("function", "error", "message"), WRONG)
def test_wrong_rules_are_refused(function: Callable[..., Any], error: type[Exception], message: str, compiled: bool) -> None:
    gradient = aj.grad(lambda x: aj.sum(function(x)))
    with pytest.raises(error, match=message):
        (aj.function(gradient) if compiled else gradient)(X)
    assert STATE.numpy() == 2.0


@pytest.mark.parametrize(("function", "message"), [(assigning, "must not assign"), (assigning_backward, "must not assign")])
def test_rules_in_traces_must_not_assign(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(aj.GradientError, match=message):
        aj.function(aj.grad(lambda x: aj.sum(function(x))))(X)
    assert STATE.numpy() == 2.0


@pytest.mark.parametrize("compiled", [False, True])
def test_rules_may_give_gradients_of_variables(compiled: bool) -> None:
    def step(x: Any) -> Any:
        with aj.GradientTape() as tape:
            x = aj.tensor(x)
            tape.watch(x)
            y = aj.sum(by_variables(x))
        return tape.gradient(y, [x, STATE])

    by_x, by_state = (aj.function(step) if compiled else step)(X)
    np.testing.assert_array_equal(np.asarray(by_x), [5.0] * 3)
    np.testing.assert_array_equal(np.asarray(by_state), 21.0)


def test_none_replaces_the_gradient_of_a_structure() -> None:
    f = aj.custom_vjp(lambda pair, x: pair[0] * x)
    f.defvjp(lambda pair, x: (pair[0] * x, pair), lambda pair, d: (None, d * pair[0]))
    by_x = aj.grad(lambda x: aj.sum(f((x * 0.0 + 3.0, x), x)))(X)
    np.testing.assert_array_equal(np.asarray(by_x), [3.0] * 3)


# ---- vmap


@pytest.mark.parametrize(
    ("axes", "message"),
    [(({"a": 0},), r"does not have the structure"), ((0, 0), "names 2 axes for 1 values"), (("first",), "does not have the structure")],
)
def test_axes_of_vmap_have_the_structure_of_the_arguments(axes: Any, message: str) -> None:
    with pytest.raises((aj.AdjitError, TypeError), match=message):
        aj.vmap(lambda x: x, in_axes=axes)(X)


# ---- tapes


def test_an_active_tape_is_not_entered_again() -> None:
    with aj.GradientTape() as tape, pytest.raises(ValueError, match="still recording"), tape:
        pass


def test_a_tape_may_be_reset_while_it_records() -> None:
    v, x = aj.Variable(3.0), aj.tensor(2.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        lost = x * v
        assert tape.watched_variables() == (v,)
        tape.reset()
        assert tape.watched_variables() == ()
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, [x])[0].numpy() == 4.0
    with aj.GradientTape() as tape:
        tape.watch(x)
        tape.reset()
    assert tape.gradient(lost, x) is None


def test_a_gradient_inside_of_a_tape_ends_its_recording() -> None:
    x = aj.tensor(2.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert tape.gradient(y, x).numpy() == 4.0
    with pytest.raises(RuntimeError):
        tape.gradient(y, x)


def test_explanations_of_variables() -> None:
    v, frozen = aj.Variable(1.0, name="v"), aj.Variable(1.0, name="frozen", trainable=False)
    x = aj.tensor(2.0)
    with aj.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = x * v * frozen
    assert "not watched: the tape was made with watch_accessed_variables=False" in tape.explain(y, v)
    assert "'frozen' is not trainable" in tape.explain(y, frozen)
    assert tape.explain(x, x) == "connected: the target is the source itself"
