"""Features in TensorFlow's guides that no other file tests: scopes, leaks, arrays written by loops, callbacks, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit import tf


def test_init_scope_runs_while_tracing_and_is_not_recorded() -> None:
    count = tf.Variable(0)

    @tf.function
    def f():
        with tf.init_scope():
            assert tf.executing_eagerly()
            count.assign_add(1)
        assert not tf.executing_eagerly()
        return count + 0

    assert [int(f()) for _ in range(3)] == [1, 1, 1]
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * 1.0
        with tf.init_scope():
            z = x * x
    assert tape.gradient([y, z], x).numpy() == 1.0


def test_leaked_tensors_have_no_value_and_cannot_be_captured() -> None:
    kept: list[Any] = []

    @tf.function
    def leaks(a):
        kept.append(a + 1)
        with pytest.raises(AttributeError, match="not known while tracing"):
            a.numpy()
        return a

    leaks(tf.constant(1))
    with pytest.raises(AttributeError, match="used outside of the trace of leaks"):
        kept[0].numpy()
    with pytest.raises(TypeError, match="used outside of the trace of leaks"):
        tf.function(lambda b: b + kept[0])(tf.constant(2))


def test_an_index_out_of_bounds_raises_even_if_the_result_is_not_used() -> None:
    """As in eager code. TensorFlow removes such an op from its graphs: a function of its guide runs there, and raises here."""

    def unused(x):
        tf.gather(x, [1])
        return x

    for call in (unused, tf.function(unused), tf.function(lambda x: tf.gather(x, [1]))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            call(tf.constant([0.0]))


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_that_loops_write(compiled: bool) -> None:
    def states(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            rows = tf.TensorArray(tf.float32, size=4)
            s = x
            for i in tf.range(4):
                s = s * x
                if i != 2:
                    rows = rows.write(i, s)
            out = rows.stack()
            total = tf.reduce_sum(out)
        return out, tape.gradient(total, x)

    x = tf.constant([1.0, 2.0])
    out, slope = (tf.function(states) if compiled else states)(x)
    assert out.numpy().tolist() == [[1, 4], [1, 8], [0, 0], [1, 32]]
    assert slope.numpy().tolist() == [2 + 3 + 5, 4 + 12 + 80]


def test_arrays_that_do_not_fit() -> None:
    with pytest.raises(tf.errors.OutOfRangeError, match="not resizeable"):
        tf.TensorArray(tf.float32, 2).write(2, 1.0)
    with pytest.raises(ValueError, match="Incompatible shape"):
        tf.TensorArray(tf.float32, 2).write(0, 1.0).write(1, [1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="trying to write dtype int32"):
        tf.TensorArray(tf.float32, 2).write(0, tf.constant(1))
    with pytest.raises(ValueError, match="element_shape"):
        tf.TensorArray(tf.float32, 2).stack()


def test_arrays_change_eagerly() -> None:
    array = tf.TensorArray(tf.int32, 2)
    array.write(0, 5)
    array.write(1, 6)
    assert array.stack().numpy().tolist() == [5, 6]
    assert (int(array.size()), array.dtype, array.element_shape) == (2, tf.int32, ())


def test_python_callbacks_run_eagerly_and_are_refused_in_a_function() -> None:
    @tf.py_function(Tout=tf.float32)
    def plus(x, y):
        return x + y

    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = plus(x, x)
    assert (float(y), float(tape.gradient(y, x))) == (3.0, 2.0)
    assert tf.numpy_function(np.sum, [tf.constant([1.0, 2.0])], tf.float32).numpy() == 3.0
    two = tf.py_function(lambda a: (a, a + 1), [tf.constant(1)], [tf.int32, tf.int32])
    assert [int(t) for t in two] == [1, 2]
    with pytest.raises(tf.errors.UnimplementedError, match="cannot call Python while it runs"):
        tf.function(lambda x: plus(x, x))(x)


@pytest.mark.parametrize("value", ["a", ["a", "b"], [["a"]], b"a", np.array(["a"])])
def test_text_is_out_of_scope(value: Any) -> None:
    for use in (
        tf.Variable,
        tf.convert_to_tensor,
        tf.sin,
        lambda text: tf.reduce_sum(tf.constant(text)),
        lambda text: tf.constant(text).strip,
    ):
        with pytest.raises(tf.errors.UnimplementedError, match="out of the scope"):
            use(value)


def test_ragged_lists_raise_value_errors() -> None:
    with pytest.raises(ValueError, match="ragged"):
        tf.constant([[1, 2], [3]])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.unique(x).y,
        lambda x: tf.unique(x).idx,
        lambda x: tf.where(x > 0),
        lambda x: tf.boolean_mask(x, x > 0),
        lambda x: x[x > 0],
        lambda x: tf.math.segment_sum(x, tf.sort(tf.cast(x, tf.int32) + 1)),
        lambda x: tf.dynamic_partition(x, tf.cast(x > 0, tf.int32), 2)[1],
        lambda x: tf.dynamic_stitch([tf.cast(x + 1, tf.int32)], [x]),
        lambda x: tf.fill([tf.cast(tf.reduce_max(x), tf.int32), 2], 1.0),
        lambda x: tf.zeros(tf.cast(x[:2] + 1, tf.int32)),
    ],
)
def test_shapes_that_depend_on_values_in_a_function(call: Any) -> None:
    compiled = tf.function(call)
    for values in ([1.0, 2.0, -1.0], [2.0, 2.0, 2.0], [0.0, 4.0, 4.0], [1.0, 2.0, -1.0]):
        x = tf.constant(values)
        np.testing.assert_array_equal(compiled(x).numpy(), call(x).numpy())


def test_a_singular_matrix_is_an_invalid_argument() -> None:
    for solve in (tf.linalg.solve, tf.function(tf.linalg.solve)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="singular"):
            solve(tf.zeros([2, 2]), tf.ones([2, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 2 dimensions"):
        tf.linalg.solve(tf.eye(2), tf.ones([2]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.nn.conv2d(tf.zeros([2, 3, 4]), tf.zeros([1, 1, 4, 2]), 1, "SAME"), "must be 4-dimensional"),
        (lambda: tf.nn.conv2d(tf.zeros([1, 3, 3, 4]), tf.zeros([1, 1, 3, 2]), 1, "SAME"), "input depth 4 must be evenly divisible"),
        (lambda: tf.nn.conv2d(tf.zeros([1, 3, 3, 4]), tf.zeros([1, 1, 4, 2]), [2, 1, 1, 1], "SAME"), "batch and channels must be 1"),
        (lambda: tf.nn.conv2d(tf.zeros([1, 3, 3, 4]), tf.zeros([1, 1, 4, 2]), [1, 1, 1], "SAME"), "should be of length 1, 2 or 4"),
        (lambda: tf.nn.depthwise_conv2d(tf.zeros([1, 3, 3, 4]), tf.zeros([1, 1, 3, 2]), 1, "SAME"), "differ"),
        (lambda: tf.nn.max_pool2d(tf.zeros([1, 3, 3, 4], tf.int32), 2, 1, "SAME"), "use tf.cast"),
    ],
)
def test_bad_images(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


def test_channels_first() -> None:
    x, w = tf.random.normal([2, 5, 4, 3]), tf.random.normal([3, 2, 3, 6])
    first = tf.nn.conv2d(tf.transpose(x, [0, 3, 1, 2]), w, [1, 1, 2, 1], "SAME", data_format="NCHW")
    last = tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME")
    np.testing.assert_allclose(tf.transpose(first, [0, 2, 3, 1]), last, rtol=1e-5, atol=1e-6)


def test_variables_made_of_random_tensors_and_other_variables_in_the_first_call() -> None:
    class Layer(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.random.normal([3]) * 2.0, name="w")
                self.b = tf.Variable(self.w * 0.0 + tf.reduce_sum(self.w))
            return x * self.w + self.b

    layer, x = Layer(), tf.ones([3])
    first, second = layer(x), layer(x)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, layer.w.numpy() + layer.w.numpy().sum(), rtol=1e-6)
    assert len({float(v) for v in layer.w.numpy()}) == 3


def test_variables_made_of_arguments_are_refused() -> None:
    kept: list[Any] = []

    @tf.function
    def f(x):
        kept.append(tf.Variable(x * 2.0, name="w"))
        return x

    with pytest.raises(TypeError, match=r"'w' is a traced value .* that depends on the function's arguments"):
        f(tf.constant(1.0))


def test_names_that_are_not_here() -> None:
    for space, name in [(tf, "image"), (tf, "no_such_name"), (tf.nn, "ctc_loss"), (tf.linalg, "LinearOperator"), (tf.math, "nextafter")]:
        assert not hasattr(space, name)
        with pytest.raises(NotImplementedError, match=rf"{name} is out of the scope of adjit\.tf"):
            getattr(space, name)
    assert tf.__version__.startswith("2.")
    assert tf.losses is tf.keras.losses
    assert tf.dtypes.bool == tf.bool


def test_nested_structures() -> None:
    nested = {"b": [1, None], "a": (2, 3)}
    assert tf.nest.flatten(nested) == [2, 3, 1, None]
    assert tf.nest.pack_sequence_as(nested, [5, 6, 7, 8]) == {"b": [7, 8], "a": (5, 6)}
    assert tf.nest.map_structure(lambda x, y: (x or 0) + (y or 0), nested, nested) == {"b": [2, 0], "a": (4, 6)}
    assert (tf.nest.is_nested([1]), tf.nest.is_nested(1), tf.nest.is_nested(None)) == (True, False, False)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.nest.map_structure(lambda x, y: x, [1], (1,))
    with pytest.raises(ValueError, match="has 4 elements, but flat_sequence had 1"):
        tf.nest.pack_sequence_as(nested, [1])


def test_check_numerics_everywhere() -> None:
    f = tf.function(lambda x: tf.math.log(x) * 2.0)
    assert np.isneginf(f(tf.constant(0.0)).numpy())
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(FloatingPointError, match="log"):
            f(tf.constant(0.0))
    finally:
        tf.debugging.disable_check_numerics()
    assert np.isneginf(f(tf.constant(0.0)).numpy())
