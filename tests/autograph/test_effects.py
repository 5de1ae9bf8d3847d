"""Effects in traced branches and loops: the compiled function behaves as in Python, or raises an error that names the user's line."""

from __future__ import annotations

import random
from copy import deepcopy

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import CheckError, TraceError, UnsupportedError
from adjit.tracer.pytree import flatten
from tests.autograph import effects, effects_of_matching, effects_of_syntax, effects_on_dicts, effects_on_objects
from tests.autograph.effect_table import EFFECTS, Effect


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda e: e.fn.__name__)
def test_python_or_an_error(effect: Effect) -> None:
    for args in effect.calls:
        function = aj.function(effect.fn)
        if effect.refused:
            with pytest.raises((TraceError, UnsupportedError)) as caught:
                function(*deepcopy(args))
            message = str(caught.value)
            modules = (effects, effects_of_matching, effects_of_syntax, effects_on_dicts, effects_on_objects)
            assert any(module.__file__ in message for module in modules), message
            continue
        expected = effect.fn(*deepcopy(args))
        actual = function(*deepcopy(args))
        (ours, tree), (theirs, form) = flatten(actual), flatten(expected)
        assert tree == form
        for x, y in zip(ours, theirs, strict=True):
            if isinstance(y, str):
                assert x == y
            else:
                np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12, atol=1e-12)


def test_key_of_a_loop_that_runs_no_iteration() -> None:
    with pytest.raises(CheckError, match=r"`d\['a'\]` has no value: the `for` loop must iterate at least once to assign it") as caught:
        aj.function(effects_on_dicts.only_body_key)(0)
    assert isinstance(caught.value, KeyError)


def test_dicts_of_results_keep_the_order_of_their_keys() -> None:
    @aj.function
    def f(x):
        return {"z": x, "a": {"y": x, "b": 2 * x}}

    for _ in range(3):  # traced, then called natively
        out = f(np.ones(2))
        assert list(out) == ["z", "a"]
        assert list(out["a"]) == ["y", "b"]
        np.testing.assert_array_equal(out["a"]["b"], [2.0, 2.0])


def test_arrays_written_to_are_captured_as_they_are() -> None:
    @aj.function
    def f(x):
        a = np.arange(500.0)
        view = a[:]
        y = a * x
        a[1] = 5.0
        z = a * x
        view[1] = 7.0
        return y[1], z[1], (a * x)[1]

    assert [float(v) for v in f(2.0)] == [2.0, 10.0, 14.0]


def test_what_a_failed_branch_changed_is_put_back() -> None:
    kept, seen = [1.0], {"n": 0}

    def f(x):
        if x > 0:
            kept.append(2.0)
            seen["n"] += 1
            raise KeyError(undefined_name)  # noqa: F821
        return x

    with pytest.raises(NameError):
        aj.function(f)(1.0)
    assert kept == [1.0]
    assert seen == {"n": 0}


def test_layers_are_built_in_branches() -> None:
    """Attributes declared by a library's class, and objects created at the first call, are not effects of the branch."""

    class Block(aj.nn.Module):
        def __init__(self):
            self.dense = None

        def call(self, x):
            if self.dense is None:
                self.dense = aj.nn.Dense(2)
            return self.dense(x)

    block = Block()

    @aj.function
    def f(x):
        if x.sum() > 0:
            y = block(x)
        else:
            y = x
        return y

    x = np.ones((1, 2), "f4")
    np.testing.assert_allclose(f(x), block(x), rtol=1e-6)
    np.testing.assert_allclose(f(-x), -x)


def draws_from_numpy(x):
    return x * np.random.normal()  # noqa: NPY002


def draws_from_python(x):
    return x * random.uniform(0.0, 1.0)


def draws_from_outside(x):
    return x * SOURCE.normal()


def draws_from_own(x):
    source = np.random.default_rng(0)
    return x * source.normal() + random.Random(1).random()


SOURCE = np.random.default_rng(0)


@pytest.mark.parametrize("function", [draws_from_numpy, draws_from_python])
def test_frozen_random_numbers_warn(function) -> None:
    with pytest.warns(UserWarning, match=r"use aj\.random, which draws in every call") as found:
        aj.function(function)(1.0)
    assert found[0].filename == __file__
    assert found[0].lineno == function.__code__.co_firstlineno + 1


def test_frozen_numbers_of_a_generator_raise() -> None:
    with pytest.raises(aj.TraceError, match=r"normal\(\) draws .* use aj\.random, which draws in every call") as found:
        aj.function(draws_from_outside)(1.0)
    assert f"test_effects.py:{draws_from_outside.__code__.co_firstlineno + 1}" in str(found.value)
    with pytest.raises(aj.TraceError, match=r"aj\.random"):
        aj.function(lambda x: x + np.random.default_rng().normal(size=3))(np.ones(3))


def test_random_numbers_of_a_seed_inside_do_not_warn() -> None:
    np.testing.assert_allclose(aj.function(draws_from_own)(2.0), draws_from_own(2.0))


def test_slice_that_leaves_the_array_raises_and_has_a_gradient_inside() -> None:
    @aj.function
    def part(x, i):
        return x[i * 2 : (i + 1) * 2]

    x = np.arange(6.0)
    np.testing.assert_array_equal(part(x, 2), x[4:6])
    for outside in (3, -1):
        with pytest.raises(CheckError, match="NumPy would cut it short"):
            part(x, outside)
    gradient = aj.function(aj.grad(lambda x, i: aj.sum(part(x, i) ** 2)))(x, 1)
    np.testing.assert_array_equal(gradient, [0.0, 0.0, 4.0, 6.0, 0.0, 0.0])
