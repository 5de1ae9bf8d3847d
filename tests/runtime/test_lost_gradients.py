"""Differentiated values that are converted to NumPy or Python: an error wherever they could affect the result, never a wrong gradient."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj

special = pytest.importorskip("scipy.special")
signal = pytest.importorskip("scipy.signal")

X = np.array([0.5, 1.5])


def written(x: Any) -> Any:
    out = np.zeros(2)
    out[0] = x[0]
    return np.sum(out * x)


def added(x: Any) -> Any:
    out = np.zeros(2)
    out += x
    return np.sum(out * x)


def filled(x: Any) -> Any:
    out = np.zeros(2)
    out.fill(x[0])
    return np.sum(out * x)


def copied(x: Any) -> Any:
    out = np.zeros(2)
    np.copyto(out, x)
    return np.sum(out * x)


def given_out(x: Any) -> Any:
    out = np.zeros(2)
    np.divide(x, 2.0, out=out, where=np.ones(2, bool))
    return np.sum(out * x)


def reduced_out(x: Any) -> Any:
    out = np.zeros(2)
    np.cumsum(x, out=out)
    return np.sum(out * x)


def split_out(x: Any) -> Any:
    out = np.zeros(2)
    np.modf(x, out, np.zeros(2))
    return np.sum(out * x)


def store(kept: dict[str, Any], value: Any) -> None:
    kept["value"] = value


def handed_to_a_helper(x: Any) -> Any:
    kept: dict[str, Any] = {}
    store(kept, float(x[0]))
    return np.sum(x) * kept["value"]


def array_handed_to_a_helper(x: Any) -> Any:
    kept: dict[str, Any] = {}
    store(kept, x.numpy())
    return np.sum(x * kept["value"])


def collected(x: Any) -> Any:
    out: list[Any] = []
    out.append(np.asarray(x))
    return np.sum(out[0] * x)


# each is a different function of x if the derivative of a part is lost
LEAKS: dict[str, Callable[[Any], Any]] = {
    "np.array of a list": lambda x: np.sum(np.array([x[0], 1.0]) * x),
    "np.asarray": lambda x: np.sum(np.asarray(x) * x),
    "np.full": lambda x: np.sum(np.full(2, x[0]) * x),
    "float": lambda x: np.sum(x) * float(x[0]),
    "a power of a float": lambda x: np.sum(x) * float(x[0]) ** 2,
    "item": lambda x: np.sum(x) * x[0].item(),
    "item of an index": lambda x: np.sum(x) * x.item(0),
    "tolist": lambda x: np.sum(np.array(x.tolist()) * x),
    "numpy": lambda x: np.sum(x.numpy() * x),
    "math": lambda x: np.sum(x) * math.sin(x[0]),
    "math of a float": lambda x: np.sum(x) * math.sin(float(x[0])),
    "a ufunc of SciPy": lambda x: np.sum(special.airy(x)[0]),
    "a function of SciPy": lambda x: np.sum(signal.convolve(x, np.ones(2))),
    "what NumPy alone has": lambda x: np.polynomial.chebyshev.chebval(0.5, x),
    "an item of an array": written,
    "array += x": added,
    "array.fill": filled,
    "np.copyto": copied,
    "out=": lambda x: np.sum(np.add(x, x, out=np.zeros(2))),
    "a statement with out=": given_out,
    "a reduction with out=": reduced_out,
    "several outputs": split_out,
    "a number that a helper stores": handed_to_a_helper,
    "an array that a helper stores": array_handed_to_a_helper,
    "a list": collected,
    "DLPack": lambda x: np.sum(np.from_dlpack(x) * x),
}


def refused(error: BaseException | None) -> bool:
    """NumPy attaches errors of `float(x)` as the cause of its own."""
    return error is not None and (isinstance(error, aj.GradientError) or refused(error.__cause__))


@pytest.mark.parametrize("name", LEAKS)
def test_leaks_raise_in_transforms(name: str) -> None:
    f = LEAKS[name]
    transforms: list[Callable[[], Any]] = [
        lambda: aj.grad(f)(X),
        lambda: aj.vjp(f, X),
        lambda: aj.jvp(f, (X,), (X,)),
        lambda: aj.hessian(f)(X),
        lambda: aj.grad(aj.checkpoint(f))(X),
    ]
    for transform in transforms:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - `refused` tells
            transform()
        assert refused(caught.value)


@pytest.mark.parametrize("name", LEAKS)
def test_leaks_raise_in_tapes(name: str) -> None:
    for x in (aj.tensor(X), aj.Variable(X)):
        with pytest.raises(ValueError) as caught, aj.GradientTape() as tape:  # noqa: PT011, PT012 - the tape is what is tested
            tape.watch(x)
            LEAKS[name](x)
        assert refused(caught.value)
    assert isinstance(LEAKS[name](aj.tensor(X)), aj.Tensor | np.generic)  # outside, nothing is lost


def test_the_error_names_the_line_and_the_remedy() -> None:
    with pytest.raises(aj.GradientError, match=r"value \(f64\[\]\)(.|\n)*stop_gradient") as caught:
        aj.grad(lambda x: x * math.sin(x))(1.5)
    assert "test_lost_gradients.py" in str(caught.value)
    assert "math.sin(x)" in str(caught.value)


def test_a_write_to_an_item_is_explained() -> None:
    for transform in (lambda: aj.grad(written)(X), lambda: aj.vjp(written, X), lambda: aj.jvp(written, (X,), (X,))):
        with pytest.raises(aj.GradientError, match=r"aj.function\(aj.grad\(f\)\), may write(.|\n)*out\[0\] = x\[0\]"):
            transform()
    np.testing.assert_allclose(aj.function(aj.grad(written))(X), [2 * X[0], 0.0])


def looked_at(x: Any) -> Any:
    print(float(x), f"{x:.3f} {float(x)}", x.item())
    logging.getLogger("adjit.test").debug("%f", x)
    np.testing.assert_allclose(x, np.asarray(x))
    while float(x) < 10.0:
        x = x * 2.0
    if math.sin(x) > 2.0 or x.numpy() < 0:
        x = x * 0.0
    assert math.isfinite(x), float(x)
    more = 1.0 if x.item() > 3.0 else 5.0
    return x * more * [1.0, 2.0][int(x > 0)] * int(x)


def test_reading_is_not_a_leak() -> None:
    assert float(aj.grad(looked_at)(1.5)) == 8 * 2 * 12
    x = aj.tensor(1.5)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = looked_at(x)
    assert float(tape.gradient(y, x)) == 8 * 2 * 12


def test_numbers_taken_out_by_name_may_be_kept_by_who_uses_a_tape() -> None:
    x = aj.tensor(1.5)
    history: list[float] = []
    with aj.GradientTape() as tape:
        tape.watch(x)
        value = float(x)
        history.append(x.item())
        best = min(2.0, float(x))
        while value < 10.0:
            x2 = x * 2.0
            value = value * 2.0
    assert history == [1.5]
    assert best == 1.5
    assert float(tape.gradient(x2, x)) == 2.0


@pytest.mark.parametrize("take", [lambda x: float(x), lambda x: x.item(), lambda x: x.numpy()], ids=["float", "item", "numpy"])
@pytest.mark.parametrize("use", [lambda x, v: x * v, lambda x, v: v + x, lambda x, v: np.maximum(v, x)], ids=["mul", "radd", "ufunc"])
def test_they_may_not_come_back(take: Callable[[Any], Any], use: Callable[[Any, Any], Any]) -> None:
    x = aj.tensor(1.5)
    with aj.GradientTape() as tape:
        tape.watch(x)
        kept = take(x)
        with pytest.raises(aj.GradientError, match=r"converted at line \d+ is used here as a constant"):
            use(x, kept)
        assert float(use(x, 1.5)) == float(use(x, 1.5))  # the same number from elsewhere is another
    use(x, kept)


def test_stop_gradient_is_the_remedy() -> None:
    remedies: list[Callable[[Any], Any]] = [
        lambda x: x * float(aj.stop_gradient(x)),
        lambda x: x * math.sin(aj.stop_gradient(x)),
        lambda x: x * np.array(aj.stop_gradient(x)),
    ]
    for f in remedies:
        assert float(aj.grad(f)(1.5)) == pytest.approx(float(f(aj.tensor(1.5))) / 1.5)


def test_what_is_not_watched_may_leave() -> None:
    other = aj.tensor([2.0, 3.0])
    assert aj.grad(lambda x: np.sum(x * np.asarray(other) * float(other[0])))(X).tolist() == [4.0, 6.0]
    v = aj.Variable(2.0)
    assert float(aj.grad(lambda x: x * float(v))(3.0)) == 2.0


def test_sources_are_not_needed() -> None:
    """In `exec` the source is not available: under a tape, numbers may be stored; in a transform, no conversion is allowed."""
    scope: dict[str, Any] = {"aj": aj, "math": math}
    exec("def f(x):\n    print(float(x))\n    return x * 2.0", scope)
    with pytest.raises(aj.GradientError, match="is converted to NumPy or Python"):
        aj.grad(scope["f"])(1.5)
    x = aj.tensor(1.5)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = scope["f"](x)
    assert float(tape.gradient(y, x)) == 2.0


@pytest.fixture
def warning() -> Iterator[None]:
    aj.config.lost_gradient = "warn"
    yield
    aj.config.lost_gradient = "raise"


@pytest.mark.usefixtures("warning")
def test_a_warning_if_that_is_wanted() -> None:
    with pytest.warns(aj.LostGradientWarning, match=r"stop_gradient.*test_lost_gradients.py:\d+"):
        assert float(aj.grad(lambda x: x * math.sin(x))(1.5)) == math.sin(1.5)
    x = aj.tensor(1.5)
    with aj.GradientTape() as tape:
        tape.watch(x)
        kept = float(x)
        with pytest.warns(aj.LostGradientWarning, match="used here as a constant"):
            y = x * kept
    assert float(tape.gradient(y, x)) == 1.5


def test_the_setting_is_checked() -> None:
    with pytest.raises(ValueError, match="'raise' or 'warn'"):
        aj.config.lost_gradient = "ignore"


def test_arrays_of_differentiated_values() -> None:
    def volume(x: Any) -> Any:
        matrix = aj.array([[x[0], 1.0], [aj.tensor(2.0), x[1] ** 2]], dtype="float64")
        return np.linalg.det(matrix) + np.sum(aj.constant((x, X)))

    expected = [X[1] ** 2 + 1.0, 2.0 * X[0] * X[1] + 1.0]
    for gradient in (aj.grad(volume), aj.function(aj.grad(volume))):
        np.testing.assert_allclose(gradient(X), expected)
    with aj.GradientTape() as tape:
        x = aj.tensor(X)
        tape.watch(x)
        value = volume(x)
    np.testing.assert_allclose(tape.gradient(value, x), expected)
    assert aj.array([x[0], 3.0], dtype="float32").dtype == np.float32


def by_vjp() -> Any:
    f = aj.custom_vjp(lambda x: np.sin(np.asarray(x)))
    f.defvjp(lambda x: (special.jv(0, np.asarray(x)), x), lambda x, g: (-g * special.j1(x),))
    return f


def with_cosine(of: Callable[[Any], Any]) -> Any:
    @aj.custom_gradient
    def f(x: Any) -> Any:
        value, slope = math.sin(float(x)), of(x)
        return np.full((), value), lambda g: g * (np.cos(x) if slope is None else slope)

    return f


def test_a_function_with_its_own_derivative_may_compute_with_anything() -> None:
    """Nothing is differentiated inside it."""
    own = by_vjp()
    np.testing.assert_allclose(aj.grad(lambda x: np.sum(own(2.0 * x) * x))(X), special.jv(0, 2 * X) - 2 * X * special.j1(2 * X))
    for of in (lambda x: None, lambda x: math.cos(x)):
        f = with_cosine(of)
        assert float(aj.grad(f)(1.5)) == pytest.approx(math.cos(1.5))
        assert float(aj.jvp(f, (1.5,), (2.0,))[1]) == pytest.approx(2.0 * math.cos(1.5))
        x = aj.Variable(1.5)
        with aj.GradientTape() as tape:
            y = f(x * x) * x
        assert float(tape.gradient(y, x)) == pytest.approx(math.sin(2.25) + 4.5 * math.cos(2.25))
    with pytest.raises(aj.GradientError, match=r"is converted to NumPy"):  # beside it, the rule holds
        aj.grad(lambda x: f(x) * math.sin(x))(1.5)


def test_higher_derivatives_need_values_that_tapes_have_recorded() -> None:
    assert float(aj.grad(aj.grad(with_cosine(lambda x: None)))(1.5)) == pytest.approx(-math.sin(1.5))
    with pytest.raises(aj.GradientError, match=r"f: its gradient is being differentiated(.|\n)*reads slope(.|\n)*custom_gradient"):
        aj.grad(aj.grad(with_cosine(lambda x: math.cos(x))))(1.5)
    saved = aj.custom_vjp(lambda x: x * x)
    saved.defvjp(lambda x: (x * x, float(x)), lambda x, g: (2.0 * x * g,))
    with pytest.raises(aj.GradientError, match=r"reads the values saved for it(.|\n)*test_lost_gradients.py"):
        aj.grad(aj.grad(saved))(1.5)


def test_values_converted_in_such_a_function_may_not_be_used_outside() -> None:
    taken = []

    @aj.custom_gradient
    def f(x: Any) -> Any:
        taken.append(float(x))
        return x * 1.0, lambda g: g

    with pytest.raises(aj.GradientError, match="used here as a constant"):
        aj.grad(lambda x: f(x) * taken[0])(1.5)
