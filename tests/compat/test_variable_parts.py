"""`v[0].assign(...)`: parts of variables, eagerly and in functions."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from adjit import tf
from adjit.tf import parts

W = np.arange(12, dtype="f4").reshape(3, 4)
KEYS = [0, -1, slice(1, None), (slice(None), 2), (..., 1), (slice(None, None, 2), slice(1, 3)), (1, 2), (None, 1)]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("compiled", [False, True])
def test_as_in_numpy(key, compiled) -> None:
    v = tf.Variable(W)
    new = -np.ones_like(W[key])

    def change(new):
        v[key].assign(new * 3)
        return v[key] * 2

    out = (tf.function(change) if compiled else change)(tf.constant(new))
    expected = W.copy()
    expected[key] = new * 3
    np.testing.assert_array_equal(v, expected)
    np.testing.assert_array_equal(out, expected[key] * 2)


def test_returns_the_variable_and_broadcasts() -> None:
    v = tf.Variable(W)
    assert v[0].assign(7.0) is v
    np.testing.assert_array_equal(v[0], [7.0] * 4)


def test_traced_index_in_a_loop() -> None:
    v = tf.Variable(tf.zeros([4, 2]))

    @tf.function
    def fill(n):
        for i in tf.range(n):
            v[i].assign([tf.cast(i, tf.float32), 1.0])
        return v[n - 1]

    np.testing.assert_array_equal(fill(tf.constant(3)), [2.0, 1.0])
    np.testing.assert_array_equal(v, [[0, 1], [1, 1], [2, 1], [0, 0]])


def test_gradients_flow_through_parts_that_are_read() -> None:
    v = tf.Variable(W)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v[1] ** 2)
    expected = np.zeros_like(W)
    expected[1] = 2 * W[1]
    np.testing.assert_array_equal(tape.gradient(y, v), expected)


def test_only_parts_of_variables_can_be_assigned() -> None:
    v = tf.Variable(W)
    with pytest.raises(AttributeError, match="'EagerTensor' object has no attribute 'assign'"):
        (v[0] * 1.0).assign([1.0] * 4)
    assert not hasattr(tf.constant([1.0])[0], "assign")
    with pytest.raises(ValueError, match=r"use tf\.cast"):
        v[0].assign(tf.constant([1, 2, 3, 4]))
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        v[0].assign([1.0, 2.0])


def test_nothing_is_kept_of_parts_that_are_gone() -> None:
    gc.collect()
    before = len(parts._eager)
    v = tf.Variable(W)
    for _ in range(10):
        v[0]
    gc.collect()
    assert len(parts._eager) == before


def test_parts_in_traced_branches() -> None:
    v = tf.Variable(W)

    @tf.function
    def f(x):
        if x > 0:
            y = v[0]
        else:
            y = v[1] * 2
        return y

    np.testing.assert_array_equal(f(tf.constant(1.0)), W[0])
    np.testing.assert_array_equal(f(tf.constant(-1.0)), W[1] * 2)


def test_attributes_that_are_set_on_access() -> None:
    """Tensors created by native code for all sizes determine their type on first access."""

    @tf.function(reduce_retracing=True)
    def f(x):
        return x * 2

    for n in (3, 5, 7, 9):
        out = f(tf.constant([1.0] * n))
        assert out.shape == (n,)
        assert not hasattr(out, "assign")
        assert f"shape=({n},)" in str(out)
