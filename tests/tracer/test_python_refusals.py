"""Operations that raise for Python's integers raise for traced ones, too, with the user's line; floats are IEEE numbers, arrays NumPy's."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.runtime.conversion import converted

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "//": operator.floordiv, "%": operator.mod, "divmod": divmod, "<<": operator.lshift, ">>": operator.rshift, "/": operator.truediv,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
INTEGERS = [0, 1, -1, 3, -4, True, False]
FLOATS = [0.0, -0.0, 1.5, -2.0]
OF_FLOATS = ["//", "%", "divmod", "/", "+", "-", "*"]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """The results, or the built-in exception that was raised."""
    try:
        out = function(*args)
    except (ZeroDivisionError, ValueError) as error:
        return ZeroDivisionError if isinstance(error, ZeroDivisionError) else ValueError
    return [np.asarray(x)[()] for x in (out if isinstance(out, tuple) else (out,))]


@pytest.fixture(params=["compiled", "eager"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(aj.config, "eager", request.param == "eager")
    return str(request.param)


@pytest.mark.parametrize("name", OPERATORS)
def test_integers_behave_as_in_python(name: str, mode: str) -> None:
    python = OPERATORS[name]
    both = aj.function(lambda a, b: python(a, b))
    for a in INTEGERS:
        for b in INTEGERS:
            if name == "/" and not b:
                continue  # a float: see below
            assert outcome(both, a, b) == outcome(python, a, b), (a, b)


@pytest.mark.parametrize("name", ["//", "%", "divmod", "<<", ">>"])
def test_one_of_the_two_is_known(name: str) -> None:
    python = OPERATORS[name]
    for known in (0, -2, 3):
        first, second = aj.function(lambda n, k=known: python(k, n)), aj.function(lambda n, k=known: python(n, k))
        for n in (0, -3, 2):
            assert outcome(first, n) == outcome(python, known, n)
            assert outcome(second, n) == outcome(python, n, known)


@pytest.mark.parametrize("name", OF_FLOATS)
def test_floats_are_ieee_numbers(name: str, mode: str) -> None:
    """Where Python raises, these are infinite or NaN, as all floats of NumPy and adjit."""
    python = OPERATORS[name]
    both = aj.function(lambda a, b: python(a, b))
    with np.errstate(all="ignore"):
        for a in FLOATS:
            for b in [*FLOATS, 0, 2]:
                if mode == "eager" and not b and name in ("//", "%", "divmod", "/"):
                    continue  # Python's own numbers
                want = [np.asarray(x)[()] for x in np.atleast_1d(python(np.float64(a), np.float64(b)))]
                np.testing.assert_array_equal(outcome(both, a, b), want, err_msg=f"{a} {name} {b}")


@pytest.mark.parametrize("name", ["//", "%", "<<", ">>"])
def test_arrays_behave_as_numpys(name: str) -> None:
    python = OPERATORS[name]
    a, b = np.array([5, -5, 0]), np.array([0, -1, 3])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(aj.function(python_of(python))(a, b), python(a, b))
        np.testing.assert_array_equal(aj.function(python_of(python))(a, 0), python(a, 0))
        np.testing.assert_array_equal(aj.function(python_of(python))(np.int64(5), 0), python(np.int64(5), 0))
        np.testing.assert_array_equal(aj.function(lambda n: np.floor_divide(n, 0))(5), 0)


def python_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: function(a, b)


def test_the_error_names_the_line_and_leaves_variables_unchanged() -> None:
    w = aj.Variable(1.0)

    @aj.function
    def step(n: Any) -> Any:
        w.assign(2.0)
        unused = 7 // n  # noqa: F841
        return w * 1.0

    with pytest.raises(ZeroDivisionError, match=r"modulo by zero\n .*test_python_refusals.py:\d+:\d+ in step:  unused = 7 // n"):
        step(0)
    assert w.numpy() == 1.0
    assert step(2).numpy() == 2.0


def test_only_lines_that_run_raise() -> None:
    @aj.function
    def guarded(n: Any) -> Any:
        if n > 0:
            return 12 // n
        if n < -5:
            return n // 0
        return 12 >> -n

    def python(n: int) -> Any:
        if n > 0:
            return 12 // n
        if n < -5:
            return n // 0
        return 12 >> -n

    for n in (3, 0, -2, -6):
        assert outcome(guarded, n) == outcome(python, n)


@pytest.mark.parametrize("steps", [0, 2, 5])
def test_augmented_assignments_in_loops(steps: int) -> None:
    def program(n: Any, steps: Any) -> Any:
        total, k = 1000, 0
        while k < steps:
            total //= n
            total <<= n
            n -= 1
            k += 1
        return total

    assert outcome(aj.function(program), 3, steps) == outcome(program, 3, steps)


def test_derivatives_pass_by() -> None:
    """Of floats selected by an integer; `1.0 / n` of floats has the derivatives of IEEE numbers."""

    @aj.function
    def slope(x: Any, n: Any) -> Any:
        return aj.grad(lambda x: np.sum(x * (7 // n) + x**2 * (7 % n)))(x)

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(slope(x, 2), 3 + 2 * x)
    with pytest.raises(ZeroDivisionError):
        slope(x, 0)
    assert aj.function(aj.grad(lambda a: 1.0 / a))(0.0).numpy() == -np.inf


def test_generated_python_raises_too() -> None:
    @aj.function
    def rest(n: Any) -> Any:
        return 7 % n

    names: dict[str, Any] = {}
    exec(rest.source(2).text, names)
    assert names["rest"](np.array(4)) == 3
    with pytest.raises(ZeroDivisionError):
        names["rest"](np.array(0))


def test_mapped() -> None:
    mapped = aj.function(lambda x, n: aj.vmap(lambda row: row * (7 // n))(x))
    np.testing.assert_array_equal(mapped(np.ones((2, 3)), 2), np.full((2, 3), 3.0))
    with pytest.raises(ZeroDivisionError):
        mapped(np.ones((2, 3)), 0)


@pytest.mark.parametrize("call", [lambda n: pow(n, 3, 5), lambda n: pow(2, n, 5), lambda n: pow(7, 2, n), lambda n: pow(n, exp=3, mod=5)])
def test_powers_with_a_modulus_are_refused(call: Callable[[Any], Any]) -> None:
    """With the line; without the source of the function, Python itself refuses what it does not dispatch."""
    with pytest.raises(aj.UnsupportedError, match=r"a third argument is for Python integers only(.|\n)*test_python_refusals.py"):
        aj.function(call)(2)
    with pytest.raises((aj.UnsupportedError, TypeError)):
        call(aj.tensor(2))
    assert converted(call)(2) == call(2)  # numbers of Python's own


def test_powers_of_two_numbers_stay() -> None:
    assert aj.function(lambda n: pow(n, 3))(2).numpy() == 8
    assert aj.function(lambda n: pow(2, n))(3).numpy() == 8
    assert aj.function(lambda n: pow(base=n, exp=2))(3).numpy() == 9
