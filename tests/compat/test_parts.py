"""Updates of parts of variables, segments, derivatives without tapes, and complex tensors, as in TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit import tf

ROWS = tf.IndexedSlices(values=[[1.0, 2.0], [3.0, 0.5]], indices=[2, 2])  # twice the same row

SCATTERED = {
    "update": [[1.0, 1.0], [2.0, 2.0], [3.0, 0.5]],
    "add": [[1.0, 1.0], [2.0, 2.0], [8.0, 6.5]],
    "sub": [[1.0, 1.0], [2.0, 2.0], [0.0, 1.5]],
    "mul": [[1.0, 1.0], [2.0, 2.0], [12.0, 4.0]],
    "div": [[1.0, 1.0], [2.0, 2.0], [4.0 / 3.0, 4.0]],
    "max": [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]],
    "min": [[1.0, 1.0], [2.0, 2.0], [1.0, 0.5]],
}


def variable() -> Any:
    return tf.Variable([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("how", SCATTERED)
def test_scatter(how: str, compiled: bool) -> None:
    v = variable()

    def update() -> None:
        getattr(v, f"scatter_{how}")(ROWS)

    (tf.function(update) if compiled else update)()
    np.testing.assert_allclose(v.numpy(), SCATTERED[how], rtol=1e-6)


def test_scatter_returns_the_variable_and_requires_slices() -> None:
    v = variable()
    assert v.scatter_add(ROWS) is v
    with pytest.raises(TypeError, match="not IndexedSlices"):
        v.scatter_add([1.0])


def test_scatter_nd_and_reads() -> None:
    v = variable()
    v.scatter_nd_update([[0, 1], [2, 0]], [9.0, 8.0])
    np.testing.assert_array_equal(v.numpy(), [[1, 9], [2, 2], [8, 4]])
    v.scatter_nd_add([[0], [0]], [[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_array_equal(v.numpy()[0], [3, 11])
    v.scatter_nd_sub([[0, 0]], [3.0])
    np.testing.assert_array_equal(v.sparse_read([0, 2]).numpy(), [[0, 11], [8, 4]])
    np.testing.assert_array_equal(v.gather_nd([[1, 1], [2, 0]]).numpy(), [2, 8])


def test_gradients_of_sparse_reads() -> None:
    v = variable()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v.sparse_read([1, 1]) ** 2)
    np.testing.assert_array_equal(tape.gradient(y, v).numpy(), [[0, 0], [8, 8], [0, 0]])


# ---- forward accumulators and gradients of traces


@pytest.mark.parametrize("compiled", [False, True])
def test_forward_accumulator(compiled: bool) -> None:
    def f(x: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as acc:
            y = tf.sin(x) * 3.0
            z = tf.constant(1.0) * 2.0
        return acc.jvp(y), acc.jvp(z, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    x = np.array([2.0, 3.0], "f4")
    along, zero = (tf.function(f) if compiled else f)(tf.constant(x))
    np.testing.assert_allclose(along.numpy(), 3 * np.cos(x) * [1.0, 0.5], rtol=1e-6)
    assert float(zero) == 0.0


def test_forward_over_reverse() -> None:
    x, v = tf.constant([2.0, 3.0]), tf.Variable([1.0, 5.0])
    with tf.autodiff.ForwardAccumulator([x, v], [tf.constant([1.0, 0.5]), tf.constant([1.0, 1.0])]) as acc:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x**3 * v)
        g = tape.gradient(y, x)
    np.testing.assert_allclose(acc.jvp(g).numpy(), [24.0, 72.0])


def test_forward_accumulator_checks_its_tangents() -> None:
    with pytest.raises(ValueError, match=r"Expected the tangent of a primal of f32\[2\] to be f32\[2\], got f32\[\]"):
        tf.autodiff.ForwardAccumulator(tf.constant([1.0, 2.0]), tf.constant(1.0))
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="multiple times"):
        tf.autodiff.ForwardAccumulator([x, x], [x, x])


def test_gradients_and_hessians() -> None:
    v = tf.Variable([1.0, 5.0])

    @tf.function
    def f(x: Any) -> Any:
        s = tf.reduce_sum(x**3 * v)
        return *tf.gradients(s, [x, v]), *tf.hessians(s, [x])

    dx, dv, h = f(tf.constant([2.0, 3.0]))
    np.testing.assert_allclose(dx.numpy(), [12.0, 135.0])
    np.testing.assert_allclose(dv.numpy(), [8.0, 27.0])
    np.testing.assert_allclose(h.numpy(), [[12.0, 0.0], [0.0, 90.0]])
    with pytest.raises(RuntimeError, match=r"Use tf\.GradientTape instead"):
        tf.gradients(tf.constant(1.0), [v])


# ---- groups of rows, complex numbers


def test_partition_and_stitch_are_inverse() -> None:
    x = tf.constant([[1.0], [2.0], [3.0]])
    parts = tf.dynamic_partition(x, [1, 0, 1], 2)
    places = tf.dynamic_partition(tf.range(3), [1, 0, 1], 2)
    np.testing.assert_array_equal(tf.dynamic_stitch(places, parts).numpy(), x.numpy())


def test_segments_that_are_not_sorted() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="not increasing"):
        tf.math.segment_sum([1.0, 2.0], [1, 0])
    compiled = tf.function(lambda ids: tf.math.segment_sum([1.0, 2.0], ids))
    assert compiled(tf.constant([0, 2])).numpy().tolist() == [1.0, 0.0, 2.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not increasing"):
        compiled(tf.constant([1, 0]))


def test_complex_tensors() -> None:
    z = tf.constant([1 + 2j])
    assert (z.dtype, z.dtype.real_dtype, z.dtype.is_complex) == (tf.complex128, tf.float64, True)
    assert tf.constant([1.0], tf.complex64).dtype == tf.complex64
    with pytest.raises(TypeError, match="Cannot convert"):
        tf.constant([1j], tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="takes complex64 or complex128, not float32"):
        tf.signal.fft(tf.constant([1.0]))
    assert (2.0 * z).numpy().tolist() == [2 + 4j]
