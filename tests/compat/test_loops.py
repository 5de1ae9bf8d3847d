"""Loops of `tf.function` whose variables change: in shape, which TensorFlow allows where it is declared, and in dtype or structure."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adjit import tf
from adjit.runtime.slow_calls import SlowCallWarning

GROWS = tf.TensorShape([None])


def declare(x: Any, shape: Any = GROWS) -> None:
    tf.autograph.experimental.set_loop_options(shape_invariants=[(x, shape)])


def by_while(n):
    v, i = tf.constant([0, 0]), 0
    while i < n:
        declare(v)
        v = tf.concat((v, [i]), 0)
        i += 1
    return v


def by_for(n):
    v = tf.constant([0.0])
    for i in tf.range(n):
        declare(v)
        v = tf.concat([v, [2.0 * tf.cast(i, tf.float32) + v[-1]]], 0)
    return v, tf.reduce_sum(v)


def by_columns(n):
    m = tf.constant([[0], [1]])
    for i in tf.range(n):
        declare(m, tf.TensorShape([2, None]))
        m = tf.concat((m, [[i], [i + 1]]), 1)
    return m


def on_all_sides(n):
    m, i = tf.constant([[1]]), 0
    while i < n:
        declare(m, tf.TensorShape(None))
        m = tf.pad(m, [[1, 1], [1, 1]], constant_values=2)
        i += 1
    return m


def twice(n):
    v, i = tf.constant([1.5, 2.5]), 0
    while i < n:
        declare(v)
        v = tf.concat([v, v], 0)
        i += 1
    return v


def when_even(n):
    v = tf.constant([7])
    for i in tf.range(n):
        declare(v)
        if i % 2 == 0:
            v = tf.concat([v, [i]], 0)
    return v


def shrinks(n):
    v, i = tf.range(9), 0
    while i < n:
        declare(v)
        v = v[1:]
        i += 1
    return v


def inside_of_a_branch(n):
    if n > 1:
        v, i = tf.constant([0]), 0
        while i < n:
            declare(v)
            v = tf.concat([v, [i]], 0)
            i += 1
    else:
        v = tf.constant([1, 2, 3])
    return v


def by_function(n):
    shapes = [tf.TensorShape([]), tf.TensorSpec([None], tf.int32)]
    return tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.concat([v, [i]], 0)), [0, tf.constant([5])], shape_invariants=shapes)


def made_in_the_loop(n):
    i = 0
    while i < n:
        v = tf.zeros([1, i + 1, 2])
        i += 1
    return v


def selected_in_the_loop(n):
    x, total = tf.constant([1.0, 5.0, 3.0]), 0.0
    for i in tf.range(n):
        total += tf.reduce_max(tf.boolean_mask(x, x > tf.cast(i, tf.float32)))
    return total


def stacked_in_the_loop(n):
    rows, total = tf.TensorArray(tf.float32, size=0, dynamic_size=True), 0.0
    for i in tf.range(n):
        rows = rows.write(i, tf.cast(i, tf.float32))
        total += tf.reduce_mean(rows.stack())
    return total


def range_in_the_loop(n):
    i, v = 0, tf.range(1)
    while i < n:
        declare(v)
        v = tf.range(i)
        i += 1
    return v


VARYING = [
    by_while, by_for, by_columns, on_all_sides, twice, when_even, shrinks, inside_of_a_branch, by_function, made_in_the_loop,
    selected_in_the_loop, stacked_in_the_loop, range_in_the_loop,
]  # fmt: skip


@pytest.mark.parametrize("fn", VARYING, ids=lambda fn: fn.__name__)
@pytest.mark.filterwarnings("ignore::adjit.runtime.slow_calls.SlowCallWarning")
def test_shapes_that_vary(fn: Callable[..., Any]) -> None:
    """The values of eager code, for several trip counts with one function."""
    compiled = tf.function(fn)
    for n in (3, 1, 4):
        for mine, other in zip(tf.nest.flatten(compiled(tf.constant(n))), tf.nest.flatten(fn(tf.constant(n))), strict=True):
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine.numpy(), other.numpy())


def test_warns_once_and_names_the_line():
    compiled = tf.function(by_while)
    with pytest.warns(SlowCallWarning, match=r"(?s)by_while runs op by op.*test_loops.py:\d+:\d+ in by_while:  while i < n:"):
        compiled(tf.constant(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(tf.constant(3))
        compiled(3)  # known while tracing: compiled


@pytest.mark.filterwarnings("ignore::adjit.runtime.slow_calls.SlowCallWarning")
class TestStepwise:
    """Calls that run op by op."""

    def test_gradients(self):
        def inside(n, x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                v = tf.ones([1])
                for _ in tf.range(n):
                    declare(v)
                    v = tf.concat([v, v[-1:] * x], 0)
                y = tf.reduce_sum(v)
            return y, tape.gradient(y, x)

        x, n = tf.constant(2.0), tf.constant(3)
        y, slope = tf.function(inside)(n, x)
        assert (y.numpy(), slope.numpy()) == (15.0, 17.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            y, slope = tf.function(inside)(n, x)
        assert outer.gradient(slope, x).numpy() == 14.0  # of 1 + 2x + 3x²

    def test_variables(self):
        state = tf.Variable(1.0)

        @tf.function
        def step(n):
            v = tf.constant([1.0])
            for _ in tf.range(n):
                declare(v)
                v = tf.concat([v, v], 0)
                state.assign_add(tf.reduce_sum(v))
            tf.debugging.assert_less(state, 100.0)

        step(tf.constant(2))
        assert state.numpy() == 7.0
        with pytest.raises(tf.errors.InvalidArgumentError):
            step(tf.constant(8))
        assert state.numpy() == 7.0  # as after an error in compiled code

    def test_variables_are_created_once(self):
        kept = []

        @tf.function
        def careless(n):
            kept.append(tf.Variable(1.0))
            return by_while(n)

        careless(tf.constant(1))
        with pytest.raises(ValueError, match="singleton variables"):
            careless(tf.constant(2))

    def test_no_iteration(self):
        with pytest.raises(tf.errors.InvalidArgumentError, match="'v'"):
            tf.function(made_in_the_loop)(tf.constant(0))

    def test_called_by_another_function(self):
        inner = tf.function(by_while)
        outer = tf.function(lambda n: tf.reduce_sum(inner(n)))
        assert [outer(tf.constant(n)).numpy() for n in (3, 4)] == [3, 6]

    def test_signatures_that_need_no_steps_stay_compiled(self):
        @tf.function
        def f(x, grows):
            return by_while(x[1]) if grows else x + 1

        x = tf.constant([1, 2])
        np.testing.assert_array_equal(f(x, True).numpy(), [0, 0, 0, 1])
        np.testing.assert_array_equal(f(x, False).numpy(), [2, 3])
        assert f.experimental_get_tracing_count() == 1


@tf.function
def factorial(n):
    if n > 1:
        return n * factorial(n - 1)
    return tf.constant(1)


@tf.function
def fibonacci(n):
    return tf.cond(n <= 1, lambda: n, lambda: fibonacci(n - 1) + fibonacci(n - 2))


@tf.function
def power(x, n):
    return x * power(x, n - 1) if n > 0 else x


@tf.function
def endless(n):
    return endless(n + 1)


@pytest.mark.filterwarnings("ignore::adjit.runtime.slow_calls.SlowCallWarning")
def test_recursion_that_a_tensor_ends() -> None:
    assert [factorial(tf.constant(n)).numpy() for n in (5, 1, 6)] == [120, 1, 720]
    assert fibonacci(tf.constant(7)).numpy() == 13
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = power(x, tf.constant(3))
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (81.0, 108.0)
    with pytest.raises(TypeError, match=r"endless: infinite recursion(.|\n)*in endless:  return endless\(n \+ 1\)"):
        endless(tf.constant(1))


# ---- what TensorFlow refuses


def dtype_of_rows(rows):
    n = tf.constant(0)
    for _ in rows:
        n = tf.constant(0.0)
    return n


def dtype_with_break():
    n = tf.constant(0)
    while tf.constant(True):
        n = tf.constant(0.0)
        break
    return n


def shape_of_range():
    t = tf.constant([1])
    for _ in tf.range(3):
        t = tf.constant([1, 1])
    return t


def shape_of_while():
    t = tf.constant([1])
    while tf.constant(True):
        t = tf.constant([1, 1])
    return t


def unknown_size(rows):
    t = tf.constant([1])
    for _ in tf.range(3):
        t = tf.range(rows[0])
    return t


def breaks_its_word():
    t = tf.constant([1])
    for _ in tf.range(3):
        declare(t, tf.TensorShape([1]))
        t = tf.constant([1, 1])
    return t


def structure():
    s = {"a": tf.constant(0)}
    while tf.constant(True):
        s = tf.constant(7.0)
    return s


ROWS = (tf.constant([1, 2, 3]),)
REFUSED = [
    (dtype_of_rows, ROWS, 2, "'n' has dtype int32 before the loop, but dtype float32 after one iteration"),
    (dtype_of_rows, (tf.data.Dataset.from_tensor_slices([1, 2]),), 2, "'n' has dtype int32 before the loop, but dtype float32"),
    (dtype_with_break, (), 2, "'n' has dtype int32 before the loop, but dtype float32 after one iteration"),
    (shape_of_range, (), 2, r"'t' has shape \(1,\) before the loop, but shape \(2,\) after one iteration. Use tf.autograph.experimental"),
    (shape_of_while, (), 2, r"'t' has shape \(1,\) before the loop, but shape \(2,\) after one iteration"),
    (unknown_size, ROWS, 2, r"'t' has shape \(1,\) before the loop, but shape \(None,\) after one iteration"),
    (breaks_its_word, (), 2, r"'t' has shape \(2,\) after one iteration, which does not conform with the shape invariant \(1,\)"),
    (structure, (), 2, "'s' does not have the same nested structure after one iteration"),
]


@pytest.mark.parametrize(("fn", "args", "line", "message"), REFUSED, ids=[row[0].__name__ + str(i) for i, row in enumerate(REFUSED)])
def test_refused_as_by_tensorflow(fn: Callable[..., Any], args: tuple[Any, ...], line: int, message: str) -> None:
    with pytest.raises(TypeError if "dtype" in message or "structure" in message else ValueError, match=message) as caught:
        tf.function(fn)(*args)
    where = inspect.getsourcelines(fn)[1] + line
    assert f"test_loops.py:{where}:" in str(caught.value)


def test_a_loop_of_unknown_length_explains_how_to_declare_shapes():
    @tf.function
    def f(n):
        v = tf.constant([0])
        for i in tf.range(n):
            v = tf.concat([v, [i]], 0)
        return v

    with pytest.raises(ValueError, match=r"`v` is i32\[1\] before the loop, but i32\[2\] after(.|\n)*set_loop_options\(shape_invariants="):
        f(tf.constant(3))


class TestNotRefused:
    """Loops that TensorFlow accepts, and loops that only adjit accepts."""

    def test_loops_over_datasets_change_shapes(self):
        @tf.function
        def f(rows):
            v = tf.constant([0])
            for x in rows:
                v = tf.concat([v, [x]], 0)
            return v

        np.testing.assert_array_equal(f(tf.data.Dataset.from_tensor_slices([4, 5])).numpy(), [0, 4, 5])

    def test_open_sizes_change(self):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def f(x):
            for _ in tf.range(2):
                x = tf.concat([x, x[:1]], 0)
            return x

        assert f(tf.constant([1.0, 2.0, 3.0])).shape == (5,)
        assert f(tf.constant([1.0])).shape == (3,)

    def test_sizes_that_follow_from_values_change(self):
        @tf.function
        def f(x):
            x = tf.boolean_mask(x, x > 0)
            for i in tf.range(3):
                x = tf.boolean_mask(x, x > i)
            return x

        np.testing.assert_array_equal(f(tf.constant([5, 1, 0, 3, 2])).numpy(), [5, 3])
        np.testing.assert_array_equal(f(tf.constant([5, 1, 1, 2, 2])).numpy(), [5])

    def test_python_numbers_and_loops_over_python(self):
        @tf.function
        def f():
            total = 0
            for i in tf.range(3):
                total = total + 0.5 * tf.cast(i, tf.float32)
            x = tf.constant(1)
            for _ in range(2):
                x = tf.stack([tf.cast(x, tf.float32)])
            return total, x

        total, x = f()
        assert (total.numpy(), x.shape) == (1.5, (1, 1))

    def test_lists_grow(self):
        @tf.function
        def f():
            items = []
            for i in tf.range(3):
                items = [*items, i]
            return tf.stack(items)

        np.testing.assert_array_equal(f().numpy(), [0, 1, 2])


BAD_INVARIANTS = [
    (None, ValueError, "enters the loop with shape .1,., but has shape .2,. after one iteration"),
    ([None, tf.TensorShape([3])], ValueError, "not compatible with its initial shape"),
    ([tf.TensorShape([]), tf.TensorShape([1])], ValueError, "is .1,., but it has shape .2,. after one iteration"),
    ([None], ValueError, "1 shape_invariants for 2 loop variables"),
    (["foo", "bar"], TypeError, "TensorShapes and TensorSpecs, not 'foo'"),
]


@pytest.mark.parametrize(("invariants", "error", "message"), BAD_INVARIANTS)
def test_shape_invariants_are_checked(invariants: Any, error: type[Exception], message: str) -> None:
    @tf.function
    def f(n):
        body = lambda i, v: (i + 1, tf.concat([v, v], 0))  # noqa: E731
        return tf.while_loop(lambda i, v: i < n, body, [0, tf.ones([1])], shape_invariants=invariants)

    with pytest.raises(error, match=message):
        f(tf.constant(2))


def test_a_range_of_traced_bounds_is_returned_as_a_tensor():
    f = tf.function(lambda n: {"all": tf.range(n)})
    for n in (4, 2):
        np.testing.assert_array_equal(f(tf.constant(n))["all"].numpy(), np.arange(n))


def test_random_integers_between_traced_bounds():
    @tf.function
    def f(low, high):
        return tf.random.uniform((1000,), low, high, tf.int32)

    drawn = f(tf.constant(-2), tf.constant(3)).numpy()
    assert drawn.dtype == np.int32
    assert sorted(set(drawn.tolist())) == [-2, -1, 0, 1, 2]
    assert np.abs(np.bincount(drawn + 2) - 200).max() < 60
    with pytest.raises(tf.errors.InvalidArgumentError, match="minval < maxval"):
        f(tf.constant(3), tf.constant(3))
