"""Augmented assignment in traced functions: NumPy's result, or an error that names the line; never another array."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import tf
from adjit.ir.errors import DTypeError, ShapeError, TraceError
from adjit.tracer.autograph.convert import convert
from tests.tracer.running import run_traced, same

X = np.array([0.6, -0.2, 0.9])

# ---- dtypes and shapes

DTYPES = ["bool", "int8", "uint8", "int64", "float32", "float64", "complex64"]
ARITHMETIC = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow]
BITS = [operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift]


def outcome(update: Callable[[Any, Any], Any], x: Any, value: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return np.asarray(update(x, value))
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


@pytest.mark.parametrize("update", ARITHMETIC + BITS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_those_of_numpy(update: Any, dtype: str) -> None:
    values = [np.array([2, 1, 1], other) for other in DTYPES] + [1, 2.5, True, np.float64(2.0), np.array([[1, 2, 1]] * 2, dtype)]
    for value in values:
        x = np.array([1, 0, 1] if dtype == "bool" else [3, 2, 1], dtype)
        expected = outcome(update, x.copy(), value)
        eager = outcome(update, aj.tensor(x), value)
        traced = outcome(lambda a, b: run_traced(lambda y: update(y * np.ones((), y.dtype), b), a), x, value)
        for found in (eager, traced):
            if isinstance(expected, type) or isinstance(found, type):
                assert found is expected, (value, found, expected)
            else:
                assert found.dtype == expected.dtype, (value, found.dtype, expected.dtype)
                np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_errors_suggest_what_to_write() -> None:
    with pytest.raises(DTypeError, match=r"/=: the result is f64\[3\], which i64\[3\] cannot hold; write y = y / value"):
        halved(np.arange(3))
    with pytest.raises(ShapeError, match=r"\+=: the result is f64\[2,3\] and does not fit into f64\[3\]; write y = y \+ value"):
        widened(np.ones(3))


@aj.function
def halved(x: Any) -> Any:
    y = x * 1
    y /= 2
    return y


@aj.function
def widened(x: Any) -> Any:
    y = x * 1
    y += np.ones((2, 3))
    return y


def test_numbers_are_replaced() -> None:
    """A value without axes is replaced, not changed: np.float32(1) += a vector is a vector."""

    def total(x: Any) -> Any:
        s = np.sum(x.astype("f4"))
        t = s
        s += x
        return s, t

    run_both(total, X)


# ---- who else refers to the array


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value

    def grow(self) -> None:
        self.value += 1.0

    def taken(self, x: Any) -> Any:
        value = self.value
        value += x
        return self.value


def lowered(v: Any) -> Any:
    v -= 1.0
    return v


def lower(v: Any) -> None:
    v -= 1.0


def caller_reads_on(x: Any) -> Any:
    y = np.exp(x)
    z = lowered(y)
    return z + y


def caller_reads_only(x: Any) -> Any:
    y = np.exp(x)
    lower(y)
    return y


def an_attribute(x: Any) -> Any:
    y = np.exp(x)
    box = Box(y)
    box.grow()
    return y + box.value


def a_dict(x: Any) -> Any:
    y = np.exp(x)
    held = {"y": y}
    held["y"] += 1
    return y


def a_closure(x: Any) -> Any:
    y = np.exp(x)
    z = y

    def grow() -> None:
        nonlocal y
        y += 1

    grow()
    return z


def in_a_branch(x: Any) -> Any:
    y = np.exp(x)
    if x[0] > 0:
        lower(y)
    return y


def in_a_loop(x: Any) -> Any:
    y, n = np.exp(x), 0.0
    while n < x[0]:
        lower(y)
        n = n + 0.5
    return y


def read_by_the_next_iteration(x: Any) -> Any:
    y, s, n = np.exp(x), 0.0, 0.0
    while n < x[0]:
        s = s + np.sum(y)
        lower(y)
        n = n + 0.5
    return s


def read_by_the_condition(x: Any) -> Any:
    y, n = np.exp(x), 0.0
    while np.sum(y) > 0.0:
        lower(y)
        n = n + 0.5
    return n


def a_view_of_a_helper(x: Any) -> Any:
    y = np.exp(x)
    lower(y[1:])
    return y


def an_attribute_of_numpy(x: Any) -> Any:
    box = Box(np.zeros(3))
    value = box.value
    value += x
    return box.value


def a_method(x: Any) -> Any:
    return Box(np.zeros(3)).taken(x)


def items_of_an_attribute(x: Any) -> Any:
    y = np.zeros(3)
    box = Box([y])
    y[1] = x[1]
    return box.value[0]


def a_closure_that_returns(x: Any) -> Any:
    y = np.zeros(3)

    def get() -> Any:
        return y

    z = get()
    z += x
    return y


def an_array_handed_on(x: Any) -> Any:
    y = np.zeros(3)
    add_to(y, x)
    return y


def add_to(y: Any, x: Any) -> None:
    y += x


KEPT = np.zeros(3)


def a_global_array(x: Any) -> Any:
    y = KEPT
    y += x
    return y


def items_of_a_global_array(x: Any) -> Any:
    y = KEPT[1:]
    y[0] = x[0]
    return y


def an_argument_not_returned(x: Any) -> Any:
    x += 1.0
    return np.sum(x)


def an_argument_in_a_loop(x: Any) -> Any:
    n = 0.0
    while n < 2.0:
        x += 1.0
        n = n + 1.0
    return n


REFUSED = [
    caller_reads_on, caller_reads_only, an_attribute, a_dict, a_closure, in_a_branch, in_a_loop, read_by_the_next_iteration,
    read_by_the_condition, a_view_of_a_helper, an_attribute_of_numpy, a_method, items_of_an_attribute, a_closure_that_returns,
    an_array_handed_on, a_global_array, items_of_a_global_array, an_argument_not_returned, an_argument_in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_a_change_that_would_be_lost_is_refused(f: Any) -> None:
    with pytest.raises(TraceError, match=r"(?s)(in place|would change an argument|this write would also change).*test_in_place\.py:\d+"):
        aj.function(f)(X.copy())


# ---- what works, with NumPy's result


def run_both(f: Any, *args: Any) -> None:
    expected = f(*(a.copy() for a in args))
    for found in (aj.function(f)(*(a.copy() for a in args)), run_traced(convert(f), *(a.copy() for a in args))):
        same(tuple(found) if isinstance(found, list | tuple) else (found,), expected if isinstance(expected, tuple) else (expected,), "")


def an_accumulator(x: Any) -> Any:
    total = np.zeros(3)
    for i in range(4):
        total += x * i
    return total


def an_accumulator_of_branches(x: Any) -> Any:
    total = np.zeros(3)
    if x[0] > 0:
        total += x
    else:
        total -= x
    return total


def nested_calls(x: Any) -> Any:
    total = np.zeros(3)

    def go(n: int) -> None:
        nonlocal total
        if n:
            total += x
            go(n - 1)

    go(3)
    return total


def a_simulation(position: Any, velocity: Any) -> Any:
    for _ in range(3):
        velocity -= 0.1 * position
        position += 0.1 * velocity
    return position, velocity


def a_returned_argument(x: Any) -> Any:
    x -= np.mean(x)
    return x.reshape(3, 1)


def an_argument_of_a_branch(x: Any) -> Any:
    if x[0] > 0.5:
        x *= 2.0
    return x


def an_argument_of_a_while(x: Any) -> Any:
    while np.sum(x) < 20.0:
        x += 1.0
    return x


def a_rebound_caller(x: Any) -> Any:
    y = np.exp(x)
    y = lowered(y)
    for _ in range(2):
        y = lowered(y)
    return y


def a_list(x: Any) -> Any:
    held = [x * 1.0, x * 2.0]
    for i in range(2):
        held[i] += x
    return held[0], held[1]


def attributes_in_loops(x: Any) -> Any:
    box, n = Box(x * 1.0), 0.0
    while n < 2.0:
        box.value += x
        n = n + 1.0
    return box.value


def a_copy(x: Any) -> Any:
    y = np.exp(x)
    z = lowered(y.copy())
    return y, z


def float32_stays(x: Any) -> Any:
    y = x.astype("f4")
    y += np.ones(3)
    y *= np.float64(0.5)
    y[1:] -= x[1:]
    return y


WORKING = [
    an_accumulator, an_accumulator_of_branches, nested_calls, a_returned_argument, an_argument_of_a_branch, an_argument_of_a_while,
    a_rebound_caller, a_list, attributes_in_loops, a_copy, float32_stays,
]  # fmt: skip


@pytest.mark.parametrize("f", WORKING, ids=lambda f: f.__name__)
def test_results_are_numpys(f: Any) -> None:
    run_both(f, X)


def test_arguments_that_are_returned() -> None:
    run_both(a_simulation, X, np.ones(3))


def test_derivatives_are_those_at_the_old_values() -> None:
    def f(x: Any) -> Any:
        y = np.exp(x)
        z = y * y
        y += 1.0
        return np.sum(z * y)

    expected = np.exp(2 * X) * (2 * (np.exp(X) + 1) + np.exp(X))
    np.testing.assert_allclose(aj.function(aj.grad(f))(X), expected)
    np.testing.assert_allclose(aj.function(lambda x, t: aj.jvp(f, (x,), (t,))[1])(X, np.ones(3)), np.sum(expected))
    np.testing.assert_allclose(aj.function(aj.vmap(aj.grad(f)))(np.stack([X, X])), np.stack([expected] * 2))


def test_reading_a_variable_is_not_a_view_of_it() -> None:
    v = aj.Variable(np.ones(3))

    @aj.function
    def f(x: Any) -> Any:
        y = v.value()
        y += x
        return y + v

    np.testing.assert_allclose(f(X), X + 2)
    np.testing.assert_array_equal(v.numpy(), np.ones(3))


def test_tensorflow_replaces_the_variable() -> None:
    """Tensors of TensorFlow are immutable: `y += 1` is `y = y + 1`."""

    @tf.function
    def f(x: Any) -> Any:
        y = x
        y += 1.0
        lower(y)
        return x, y

    x, y = f(tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(x, [1.0, 2.0])
    np.testing.assert_array_equal(y, [2.0, 3.0])
