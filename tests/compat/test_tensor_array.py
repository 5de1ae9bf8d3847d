"""tf.TensorArray: eagerly a list of tensors, in a function rows of a buffer, also where their number is known only at run time."""

from __future__ import annotations

import numpy as np
import pytest

from adjit import tf
from adjit.runtime.slow_calls import SlowCallWarning


def squares(n, element_shape=None):
    out = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=element_shape)
    i = 0
    while i < n:
        out = out.write(i, tf.cast(i * i, tf.float32))
        i += 1
    return out.stack()


class TestGrowing:
    @pytest.mark.parametrize("kind", [int, tf.constant])
    @pytest.mark.parametrize("n", [0, 1, 5])
    def test_a_loop_writes(self, n, kind):
        out = tf.function(squares)(kind(n), ())
        np.testing.assert_array_equal(out, np.arange(n, dtype=np.float32) ** 2)
        assert out.dtype == tf.float32
        np.testing.assert_array_equal(squares(kind(n), ()), out)

    def test_beyond_the_first_capacity(self):
        assert tf.function(squares)(tf.constant(5000)).shape == (5000,)

    def test_several_writes_and_gaps(self):
        @tf.function
        def f(n):
            out = tf.TensorArray(tf.int32, size=2, dynamic_size=True, element_shape=[])
            for i in tf.range(n):
                out = out.write(2 * i + 3, i + 1)
            return out.stack(), out.size(), out.read(0)

        rows, size, first = f(tf.constant(2))
        np.testing.assert_array_equal(rows, [0, 0, 0, 1, 0, 2])
        assert (int(size), int(first)) == (6, 0)
        np.testing.assert_array_equal(f(tf.constant(0))[0], [0, 0])

    def test_at_its_own_size(self):
        @tf.function
        def evens(x):
            out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for value in x:
                if value > 0.0:
                    out = out.write(out.size(), value)
            return out.stack()

        np.testing.assert_array_equal(evens(tf.constant([1.0, -1.0, 3.0, -2.0, 4.0])), [1.0, 3.0, 4.0])

    def test_gradients(self):
        x = tf.Variable([1.0, 2.0])

        @tf.function
        def f(n):
            out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in tf.range(n):
                out = out.write(i, x * tf.cast(i, tf.float32))
            return out.read(2)

        with tf.GradientTape() as tape:
            y = f(tf.constant(4))
        np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 2.0])

    def test_a_size_of_run_time(self):
        @tf.function
        def f(n):
            out = tf.TensorArray(tf.int32, size=n)
            for i in tf.range(n):
                out = out.write(i, 10 * i)
            return out.stack()

        np.testing.assert_array_equal(f(tf.constant(3)), [0, 10, 20])

        @tf.function
        def beyond(n):
            return tf.TensorArray(tf.int32, size=n).write(n, 1).stack()

        with pytest.raises(tf.errors.InvalidArgumentError, match="not resizeable"):
            beyond(tf.constant(3))

    def test_rows_are_counted_by_the_call(self):
        @tf.function
        def mean(n):
            out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in tf.range(n):
                out = out.write(i, tf.cast(i, tf.float32))
            return tf.reduce_mean(out.stack())

        assert [mean(tf.constant(n)).numpy() for n in (3, 5, 2)] == [1.0, 2.0, 0.5]

        @tf.function
        def inside(n):
            out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            total = 0.0
            for i in tf.range(n):
                out = out.write(i, 1.0)
                total += tf.reduce_mean(out.stack())
            return total

        with pytest.warns(SlowCallWarning, match=r"op by op(.|\n)*number of rows of this tensor(.|\n)*may differ each time"):
            assert inside(tf.constant(3)).numpy() == 3.0

    def test_known_sizes_stay_known(self):
        @tf.function
        def f(x):
            out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
            for i in range(3):
                out = out.write(i, x)
            return tf.reduce_mean(out.stack()), out.concat()

        mean, flat = f(tf.constant([2.0, 4.0]))
        assert float(mean) == 3.0
        np.testing.assert_array_equal(flat, [2.0, 4.0] * 3)


class TestEager:
    def test_shapes_may_differ(self):
        out = tf.TensorArray(tf.float32, size=2, infer_shape=False).write(0, [1.0]).write(1, [2.0, 3.0])
        np.testing.assert_array_equal(out.concat(), [1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match="Incompatible shape"):
            tf.TensorArray(tf.float32, size=2).write(0, [1.0]).write(1, [2.0, 3.0])

    def test_split(self):
        out = tf.TensorArray(tf.float32, size=2, infer_shape=False).split([1.0, 2.0, 3.0], [1, 2])
        np.testing.assert_array_equal(out.read(1), [2.0, 3.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="sum of lengths is 4"):
            tf.TensorArray(tf.float32, size=2, infer_shape=False).split([1.0, 2.0, 3.0], [2, 2])

    def test_bounds(self):
        out = tf.TensorArray(tf.float32, size=1)
        for wrong in (lambda: out.write(1, 1.0), lambda: out.write(-1, 1.0), lambda: out.read(1), lambda: out.read(-1)):
            with pytest.raises(tf.errors.OutOfRangeError):
                wrong()

    def test_reading_clears(self):
        out = tf.TensorArray(tf.float32, size=1).write(0, 1.0)
        assert float(out.read(0)) == 1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="twice because it was cleared"):
            out.read(0)
        kept = tf.TensorArray(tf.float32, size=1, clear_after_read=False).write(0, 1.0)
        assert float(kept.read(0)) == float(kept.read(0))

    def test_unwritten_elements_are_zeros(self):
        out = tf.TensorArray(tf.float32, size=3).write(1, [1.0, 2.0])
        np.testing.assert_array_equal(out.stack(), [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
        with pytest.raises(ValueError, match="element_shape"):
            tf.TensorArray(tf.float32, size=1).read(0)

    def test_dtypes(self):
        with pytest.raises(tf.errors.InvalidArgumentError, match="TensorArray dtype is float32"):
            tf.TensorArray(tf.float32, size=1).write(0, tf.constant(1))

    def test_gradients_of_rows(self):
        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.TensorArray(tf.float32, size=2).write(0, x).write(1, x * x).stack())
        assert float(tape.gradient(y, x)) == 7.0

    def test_arguments_and_results(self):
        f = tf.function(lambda array: array.write(0, 2.0 * array.read(1)))
        out = f(tf.TensorArray(tf.float32, size=2).unstack([1.0, 5.0]))
        np.testing.assert_array_equal(out.stack(), [10.0, 5.0])


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_loops_and_branches_as_functions(wrap):
    def f(x):
        def body(i, out):
            return i + 1, tf.cond(x[i] > 0, lambda: out.write(i, x[i] ** 2), lambda: out.write(i, x[i]))

        start = tf.TensorArray(tf.int32, size=x.shape[0])
        _, out = tf.while_loop(lambda i, out: i < x.shape[0], body, (tf.constant(0), start))
        return out.stack()

    np.testing.assert_array_equal(wrap(f)(tf.range(-2, 3)), [-2, -1, 0, 1, 4])


def test_partly_written_arrays_are_arguments():
    f = tf.function(lambda array: array.write(0, [1.0, 2.0]).stack())
    np.testing.assert_array_equal(f(tf.TensorArray(tf.float32, size=2)), [[1.0, 2.0], [0.0, 0.0]])
    np.testing.assert_array_equal(f(tf.TensorArray(tf.float32, size=2).write(1, [3.0, 4.0])), [[1.0, 2.0], [3.0, 4.0]])


def test_parts_of_different_lengths() -> None:
    parts = tf.TensorArray(tf.float32, 2).split([1.0, 2.0, 3.0], [1, 2])
    assert [parts.read(k).numpy().tolist() for k in (0, 1)] == [[1.0], [2.0, 3.0]]
