"""Names of `adjit.tf` that used to do nothing."""

from __future__ import annotations

import numpy as np
import pytest

from adjit import tf


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "int32", "uint32", "int64", "float32"])
@pytest.mark.parametrize("source", ["int8", "int32", "int64", "uint8", "uint32", "float32", "float64"])
def test_saturate_cast(source: str, target: str) -> None:
    info = np.iinfo(source) if np.dtype(source).kind in "iu" else np.finfo(source)
    x = np.array([info.min, 0, 1, 100, info.max], source)
    bounds = np.iinfo(target) if np.dtype(target).kind in "iu" else np.finfo(target)
    low, high = (v.item() if isinstance(v, np.generic) else v for v in (bounds.min, bounds.max))
    expected = [min(max(v.item(), low), high) for v in x]
    got = tf.saturate_cast(tf.constant(x), target).numpy()
    assert got.dtype == target
    np.testing.assert_allclose(got.astype(float), np.array(expected, float), rtol=1e-7)


@pytest.mark.parametrize(
    ("x", "rising", "strictly"), [([[1, 2], [3, 4]], True, True), ([[1, 5], [3, 6]], False, False), ([1, 1], True, False)]
)
def test_increasing(x: list[object], rising: bool, strictly: bool) -> None:
    assert bool(tf.math.is_non_decreasing(x)) is rising
    assert bool(tf.math.is_strictly_increasing(x)) is strictly


@pytest.mark.parametrize("compiled", [False, True])
def test_constraint(compiled: bool) -> None:
    def limit(x):
        return tf.clip_by_value(x, 0.0, 1.0)

    v = tf.Variable([1.0, 2.0], constraint=limit)
    optimizer = tf.keras.optimizers.SGD(0.1)
    assert v.constraint is not None

    def step():
        optimizer.apply_gradients([(tf.constant([1.0, -1.0]), v)])

    (tf.function(step) if compiled else step)()
    np.testing.assert_allclose(v.numpy(), [0.9, 1.0], rtol=1e-6)


def test_recompute_grad_keeps_no_intermediate_values() -> None:
    calls = []

    @tf.recompute_grad
    def f(x):
        calls.append(1)
        return tf.sin(x) * x

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), np.cos(2.0) * 2 + np.sin(2.0), rtol=1e-6)
    assert len(calls) == 2
