"""16-bit floats in adjit.tf: functions compute in float32 and round their results, and never mix dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit import tf

A = np.array([[1.1, 2.2], [3.3, 0.5]], np.float16)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (lambda x: x * x + 1, (A * A + np.float16(1))),
        (lambda x: 2 / x, np.float16(2) / A),
        (lambda x: x @ x, A.astype(np.float32) @ A.astype(np.float32)),
        (lambda x: tf.matmul(x, x, transpose_b=True), A.astype(np.float32) @ A.astype(np.float32).T),
        (lambda x: -x, -A),
        (lambda x: abs(1 - x), abs(np.float16(1) - A)),
        (lambda x: tf.math.xlogy(x, x), A.astype(np.float32) * np.log(A.astype(np.float32))),
        (lambda x: tf.math.squared_difference(x, 2 * x), A.astype(np.float32) ** 2),
        (tf.exp, np.exp(A.astype(np.float32))),
        (tf.reduce_sum, A.astype(np.float32).sum()),
        (lambda x: tf.reduce_mean(x, axis=0), A.astype(np.float32).mean(0)),
        (tf.transpose, A.T),
        (lambda x: tf.concat([x, x], 0), np.concatenate([A, A])),
        (lambda x: tf.stack([x, x])[0], A),
        (lambda x: tf.nn.relu(x - 1), np.maximum(A - np.float16(1), 0)),
        (lambda x: tf.where(x > 1, x, tf.zeros_like(x)), np.where(A > 1, A, 0)),
    ],
)
def test_results_are_rounded_to_the_dtype_of_the_operands(of: Any, expected: Any, compiled: bool) -> None:
    out = (tf.function(of) if compiled else of)(tf.constant(A))
    assert out.dtype == tf.float16
    np.testing.assert_array_equal(out.numpy(), np.asarray(expected, np.float16))


def test_softmax_is_computed_in_float32() -> None:
    x = tf.constant(A)
    wide = tf.nn.softmax(tf.cast(x, tf.float32))
    assert wide.dtype == tf.float32
    np.testing.assert_array_equal(tf.nn.softmax(x), wide.numpy().astype(np.float16))


def test_gradients_and_variables() -> None:
    v = tf.Variable(A)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v)
    slope = tape.gradient(y, v)
    assert (y.dtype, slope.dtype, v.dtype) == (tf.float16, tf.float16, tf.float16)
    np.testing.assert_array_equal(slope, 2 * A)
    v.assign_sub(slope)
    np.testing.assert_array_equal(v.numpy(), -A)


def test_dtypes_are_not_mixed_and_are_chosen() -> None:
    x = tf.constant(A)
    with pytest.raises(tf.errors.InvalidArgumentError, match="float16 tensor but is a float32"):
        x + tf.constant([1.0, 2.0])
    made = [tf.zeros_like(x), tf.ones([2], tf.float16), tf.eye(2, dtype=tf.half), tf.random.normal([3], dtype=tf.float16),
            tf.random.uniform([3], dtype=tf.float16), tf.random.truncated_normal([3], dtype=tf.float16)]  # fmt: skip
    assert {t.dtype for t in made} == {tf.float16}
    assert tf.zeros_like(x, tf.float32).dtype == tf.cast(x, tf.float32).dtype == tf.float32
    assert (tf.float16.is_floating, tf.float16.name, tf.as_dtype("float16"), tf.dtypes.float16) == (True, "float16", tf.half, tf.half)
    assert float(tf.float16.max) == 65504


def test_bfloat16() -> None:
    pytest.importorskip("ml_dtypes")
    x = tf.constant([1.0, 2.5], tf.bfloat16)
    y = tf.exp(x) * x
    assert y.dtype == tf.bfloat16
    assert y.dtype.is_floating
    np.testing.assert_allclose(np.asarray(tf.cast(y, tf.float32)), np.exp([1.0, 2.5]) * [1.0, 2.5], rtol=1e-2)
