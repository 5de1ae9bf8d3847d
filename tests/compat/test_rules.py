"""What TensorFlow's users rely on besides values: dtypes that are not promoted, error classes, tapes, functions and their traces."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit
from adjit import tf

WRONG: list[tuple[str, Callable[[], Any], type[BaseException]]] = [
    ("int + float", lambda: tf.constant(1) + tf.constant(1.0), tf.errors.InvalidArgumentError),
    ("int + 2.5", lambda: tf.constant(1) + 2.5, tf.errors.InvalidArgumentError),
    ("f32 + f64", lambda: tf.constant(1.0) + tf.constant(1.0, tf.float64), tf.errors.InvalidArgumentError),
    ("sqrt of ints", lambda: tf.sqrt(tf.constant(4)), tf.errors.InvalidArgumentError),
    ("shapes", lambda: tf.zeros([2, 3]) + tf.zeros([2, 2]), tf.errors.InvalidArgumentError),
    ("matmul sizes", lambda: tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3])), tf.errors.InvalidArgumentError),
    ("matmul of vectors", lambda: tf.matmul(tf.zeros([3]), tf.zeros([3])), tf.errors.InvalidArgumentError),
    ("reshape", lambda: tf.reshape(tf.zeros([4]), [3]), tf.errors.InvalidArgumentError),
    ("index", lambda: tf.constant([1, 2])[5], tf.errors.InvalidArgumentError),
    ("gather", lambda: tf.gather([1, 2], 5), tf.errors.InvalidArgumentError),
    ("fractions as ints", lambda: tf.constant(1.5, dtype=tf.int32), TypeError),
    ("assign a shape", lambda: tf.Variable(1.0).assign([1.0, 2.0]), ValueError),
    ("convert a dtype", lambda: tf.convert_to_tensor(tf.constant(1.0), tf.int32), ValueError),
    ("assert_equal", lambda: tf.debugging.assert_equal(tf.constant(1), 2), tf.errors.InvalidArgumentError),
    ("assert_greater", lambda: tf.debugging.assert_greater(tf.constant([1.0, 2.0]), 2.0), tf.errors.InvalidArgumentError),
    ("assert_rank", lambda: tf.debugging.assert_rank(tf.zeros([2]), 2), ValueError),
    ("assert_type", lambda: tf.debugging.assert_type(tf.zeros([2]), tf.int32), TypeError),
    ("check_numerics", lambda: tf.debugging.check_numerics(tf.constant(np.inf), "here"), tf.errors.InvalidArgumentError),
    ("Assert", lambda: tf.Assert(tf.constant(False), ["why"]), tf.errors.InvalidArgumentError),
    ("strings", lambda: tf.strings, tf.errors.UnimplementedError),
    ("the rest of tf.saved_model", lambda: tf.saved_model.simple_save, tf.errors.UnimplementedError),
    ("TensorBoard", lambda: tf.summary, NotImplementedError),
    ("the rest of tf.data", lambda: tf.data.TFRecordDataset, NotImplementedError),
    ("layers", lambda: tf.nn.ctc_loss, NotImplementedError),
    ("factorisations", lambda: tf.linalg.lu(tf.eye(2)), NotImplementedError),
    ("a misspelt name", lambda: tf.redcue_sum, AttributeError),
]


@pytest.mark.parametrize(("what", "action", "error"), WRONG, ids=[w[0] for w in WRONG])
def test_errors(what: str, action: Callable[[], Any], error: type[BaseException]) -> None:
    with pytest.raises(error):
        action()


def test_errors_stay_those_of_adjit_too() -> None:
    with pytest.raises(adjit.ShapeError):
        tf.zeros([2, 3]) + tf.zeros([2, 2])
    with pytest.raises(adjit.DTypeError, match=r"tf\.cast"):
        tf.constant(1) + tf.constant(1.0)


def test_numbers_and_arrays_take_the_dtype_of_the_tensor() -> None:
    x = tf.constant([1.0, 2.0])
    for other in (2, 2.0, np.float64(2), np.array([2.0, 2.0]), [2.0, 2.0], tf.constant(2.0)):
        for y in (x * other, other * x):
            assert y.dtype == tf.float32
            assert y.numpy().tolist() == [2.0, 4.0]
    assert (tf.constant(3) / 2).dtype == tf.float64
    assert (tf.Variable(1.0) + np.ones(2)).dtype == tf.float32


def test_names_are_namespaces_and_import_is_lazy() -> None:
    assert adjit.tf is tf
    assert tf.math.reduce_sum is tf.reduce_sum
    assert tf.linalg.matmul is tf.matmul
    assert tf.newaxis is None


# ---- tapes


def test_unconnected_gradients() -> None:
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = y * y
    assert tape.gradient(z, x) is None
    assert repr(tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)) == repr(tf.constant(0.0))


def test_a_variable_may_be_the_target() -> None:
    v, w = tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        result = v
    gradients = tape.gradient(result, [v, w])
    assert float(gradients[0]) == 1.0
    assert gradients[1] is None


def test_integers_have_no_gradient() -> None:
    x = tf.constant(10)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert tape.gradient(y, x) is None


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_jacobians(compiled: bool) -> None:
    k = np.arange(6.0).reshape(3, 2) / 5 - 0.4

    def both(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.nn.tanh(x @ tf.constant(k))
        return tape.jacobian(y, x), tape.batch_jacobian(y, x)

    x = tf.constant(np.linspace(-1, 1, 12).reshape(4, 3))
    whole, batch = (tf.function(both) if compiled else both)(x)
    y = np.tanh(x.numpy() @ k)
    expected = (1 - y**2)[:, :, None] * k.T[None]
    np.testing.assert_allclose(batch.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(np.einsum("bibj->bij", whole.numpy()), expected, rtol=1e-12)
    assert whole.shape == (4, 2, 4, 3)


def test_jacobian_by_several_sources() -> None:
    a, b = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = a * a * b
    ja, jb, jn = tape.jacobian(y, [a, b, tf.Variable(0.0)])
    np.testing.assert_allclose(ja.numpy(), np.diag([6.0, 12.0]))
    np.testing.assert_allclose(jb.numpy(), [1.0, 4.0])
    assert jn is None
    with pytest.raises(RuntimeError):
        tape.gradient(y, a)


# ---- functions


def test_python_arguments_are_static() -> None:
    seen = []

    @tf.function
    def f(x, n=2, *, scale=1.0):
        seen.append((n, scale))
        return x * n * scale

    x = tf.constant(3.0)
    assert float(f(x)) == float(f(x, 2)) == float(f(x=x, n=2, scale=1.0)) == 6.0
    assert seen == [(2, 1.0)]
    assert float(f(x, 3)) == 9.0
    assert float(f(np.float32(4.0), n=3)) == 12.0
    assert float(f(2.0, n=3)) == 6.0  # a Python number in place of a tensor is another trace
    assert seen == [(2, 1.0), (3, 1.0), (3, 1.0)]
    assert f.experimental_get_tracing_count() == 3


def test_results_are_tensors() -> None:
    out = tf.function(lambda: (1, 2.5, {"a": True}, None, np.zeros(2)))()
    assert [type(x).__name__ for x in (out[0], out[1], out[2]["a"], out[4])] == ["EagerTensor"] * 4
    assert (out[0].dtype, out[1].dtype, out[2]["a"].dtype, out[3], out[4].dtype) == (tf.int32, tf.float32, tf.bool, None, tf.float64)


def test_input_signature() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def collatz(x):
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)

    assert collatz(tf.constant([1, 2])).numpy().tolist() == [4, 1]
    assert collatz([1, 2, 3]).numpy().tolist() == [4, 1, 10]
    for wrong in (tf.constant([[1, 2]]), tf.constant([1.0])):
        with pytest.raises(TypeError, match=r"Binding inputs to tf\.function failed"):
            collatz(wrong)
    concrete = collatz.get_concrete_function()
    assert concrete.structured_outputs.dtype == tf.int32


def test_concrete_functions() -> None:
    @tf.function
    def power(a, b):
        return a**b

    square = power.get_concrete_function(tf.TensorSpec([], tf.float32), 2)
    assert float(square(tf.constant(3.0))) == 9.0
    assert power.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError, match=r"Binding inputs to tf\.function failed"):
        square(tf.constant([3.0]))
    assert "func @power" in str(square.graph.as_graph_def())
    assert "TensorSpec(shape=(), dtype=tf.float32, name=None)" in power.pretty_printed_concrete_signatures()


def test_methods_modules_and_variables_created_once() -> None:
    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__(name="counter")
            self.count = None
            self.layers = [tf.Variable(1.0, name="a"), {"b": tf.Variable(2.0, name="b", trainable=False)}]

        @tf.function
        def __call__(self):
            if self.count is None:
                self.count = tf.Variable(0)
            return self.count.assign_add(1)

    a, b = Counter(), Counter()
    assert [int(a()), int(a()), int(b())] == [1, 2, 1]
    assert [v.name for v in a.variables] == ["Variable:0", "a:0", "b:0"]
    assert [v.name for v in a.trainable_variables] == ["Variable:0", "a:0"]
    outer = tf.Module()
    outer.inner = a
    assert outer.submodules == (a,)

    @tf.function
    def creates_each_time():
        return tf.Variable(1.0)

    with pytest.raises(ValueError, match="singleton"):
        creates_each_time()


def test_variables_as_arguments() -> None:
    @tf.function
    def step(v, x):
        assert isinstance(v, tf.Variable)
        v.assign_sub(0.5 * x)
        return v + 0.0

    a, b = tf.Variable(1.0), tf.Variable(2.0)
    assert float(step(a, tf.constant(1.0))) == 0.5
    assert float(step(b, tf.constant(1.0))) == 1.5
    assert (float(a), float(b), step.experimental_get_tracing_count()) == (0.5, 1.5, 1)


def test_autograph() -> None:
    @tf.function
    def fizzbuzz(n):
        score = 0
        for k in tf.range(1, n + 1):
            if k % 15 == 0:
                score += 15
            elif k % 3 == 0 or k % 5 == 0:
                score += 3
        return score

    assert fizzbuzz(tf.constant(15)).numpy() == 15 + 6 * 3
    assert fizzbuzz(tf.constant(5)).dtype == tf.int32
    assert fizzbuzz.experimental_get_tracing_count() == 1
    assert "while_stmt" in tf.autograph.to_code(halved) or "while" in tf.autograph.to_code(halved)

    x = tf.constant(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(halved)(x)
    assert (float(y), float(tape.gradient(y, x))) == (0.78125, 2.0**-7)


def halved(x):
    while x > 1.0:
        x = x / 2.0
    return x


def test_assertions_hold_in_every_run() -> None:
    @tf.function
    def checked(x):
        tf.debugging.assert_positive(x, message="must be positive")
        return tf.math.log(x)

    checked(tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        checked(tf.constant([-1.0]))


def test_run_functions_eagerly() -> None:
    @tf.function
    def where_am_i(x):
        return tf.constant(tf.executing_eagerly())

    assert not bool(where_am_i(tf.constant(1.0)))
    tf.config.run_functions_eagerly(True)
    try:
        assert bool(where_am_i(tf.constant(1.0)))
    finally:
        tf.config.run_functions_eagerly(False)


# ---- random numbers and data


def test_random_state_reaches_compiled_functions() -> None:
    draw = tf.function(lambda: tf.random.normal([3]))
    tf.random.set_seed(5)
    first = [draw().numpy(), tf.random.normal([3]).numpy(), draw().numpy()]
    tf.random.set_seed(5)
    again = [tf.random.normal([3]).numpy(), draw().numpy(), draw().numpy()]
    np.testing.assert_array_equal(first, again)
    assert len({tuple(x) for x in first}) == 3


def test_distributions() -> None:
    tf.random.set_seed(0)
    x = tf.random.normal([20000], mean=2.0, stddev=3.0).numpy()
    assert abs(x.mean() - 2) < 0.1
    assert abs(x.std() - 3) < 0.1
    t = tf.random.truncated_normal([20000]).numpy()
    assert np.abs(t).max() <= 2
    assert abs(t.std() - 0.88) < 0.02
    u = tf.random.uniform([20000], -1.0, 1.0).numpy()
    assert -1 <= u.min() < u.max() < 1
    n = tf.random.uniform([1000], maxval=6, dtype=tf.int32)
    assert (n.dtype, set(n.numpy().tolist())) == (tf.int32, set(range(6)))
    c = tf.random.categorical(tf.math.log([[0.75, 0.25]]), 4000)
    assert c.shape == (1, 4000)
    assert abs(c.numpy().mean() - 0.25) < 0.03
    for shuffled in (tf.random.shuffle(tf.range(10)), tf.function(tf.random.shuffle)(tf.range(10))):
        assert sorted(shuffled.numpy().tolist()) == list(range(10))
    np.testing.assert_array_equal(tf.random.stateless_normal([3], seed=[1, 2]), tf.random.stateless_normal([3], seed=[1, 2]))
    assert tf.random.Generator.from_seed(1).normal([2, 3]).shape == (2, 3)


def test_datasets() -> None:
    data = tf.data.Dataset.from_tensor_slices((np.arange(10.0), np.arange(10)))
    batches = list(data.map(lambda x, y: (x * 2, y)).batch(4))
    assert [len(x) for x, _ in batches] == [4, 4, 2]
    assert batches[1][0].numpy().tolist() == [8.0, 10.0, 12.0, 14.0]
    assert len(data.batch(4)) == 3
    assert len(list(data.batch(4, drop_remainder=True))) == 2
    shuffled = data.shuffle(10, seed=1)
    orders = [[int(y) for _, y in shuffled] for _ in range(2)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == list(range(10))
    assert [int(x) for x in tf.data.Dataset.range(3).repeat(2)] == [0, 1, 2, 0, 1, 2]
    assert [int(x) for x in tf.data.Dataset.range(3).repeat().take(4)] == [0, 1, 2, 0]
    assert list(tf.data.Dataset.from_tensor_slices([1, 2]).as_numpy_iterator()) == [1, 2]
    assert data.batch(2).element_spec[0] == tf.TensorSpec([2], tf.float64)
    with pytest.raises(NotImplementedError, match="out of the scope"):
        data.snapshot("here")


def test_tapes_that_are_not_recording_cannot_stop_or_start_again() -> None:
    with tf.GradientTape() as tape:
        pass
    for use in (tape.reset, tape.stop_recording):
        with pytest.raises(ValueError, match=r"Tape is not recording\."):
            use()
    for x in (2.0, np.array(2.0)):
        with tf.GradientTape() as tape, pytest.raises(ValueError, match=r"not tf\.Tensor or tf\.Variable"):
            tape.watch(x)


def test_watched_variables_come_in_the_order_of_their_creation() -> None:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    with tf.GradientTape() as tape:
        b * a
    assert [v.name for v in tape.watched_variables()] == ["a:0", "b:0"]


def test_signatures_of_structures() -> None:
    @tf.function(input_signature=[{"a": tf.TensorSpec([], tf.float32), "b": (tf.TensorSpec([None], tf.float32),)}])
    def f(d):
        return d["a"] * d["b"][0]

    assert f({"a": 2.0, "b": ([1.0, 2.0],)}).numpy().tolist() == [2.0, 4.0]
    for wrong in ({"a": 2.0}, {"a": 2.0, "b": [1.0, 2.0]}, [1.0], {"a": [2.0], "b": ([1.0],)}):
        with pytest.raises(TypeError, match=r"Binding inputs to tf\.function failed"):
            f(wrong)
    with pytest.raises(TypeError, match=r"Binding inputs to tf\.function failed due to `too many positional arguments`"):
        f({"a": 2.0, "b": ([1.0],)}, 3)


def test_tensors_are_immutable_unhashable_and_have_no_truth_of_their_own() -> None:
    x = tf.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="does not support item assignment"):
        x[0] = 3.0
    with pytest.raises(TypeError, match=r"use tensor\.ref\(\) as the key"):
        hash(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    assert {x.ref(): 1}[x.ref()] == 1
    assert (tf.range(3.0).dtype, tf.range(0, 1, 0.5).dtype, tf.range(tf.constant(3, tf.int64)).dtype) == (tf.float32, tf.float32, tf.int64)


def test_derivatives_along_tangents_are_part_of_what_records_around() -> None:
    def nested(x):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as outer, tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as inner:
            y = x**3.5
        slope = inner.jvp(y)
        return slope, outer.jvp(slope), inner.jvp(outer.jvp(y)) is None

    for call in (nested, tf.function(nested)):
        slope, curvature, unconnected = call(tf.constant(1.1))
        np.testing.assert_allclose(slope, 3.5 * 1.1**2.5, rtol=1e-5)
        np.testing.assert_allclose(curvature, 3.5 * 2.5 * 1.1**1.5, rtol=1e-5)
        assert bool(unconnected)

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as accumulator:
            y = tf.reduce_sum(x**3)
    np.testing.assert_allclose(tape.gradient(accumulator.jvp(y), x), [6.0, 0.0])


def test_derivatives_along_tangents_through_identities_in_functions() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def f():
        with tf.autodiff.ForwardAccumulator(v, tf.constant([0.1, -0.2, 0.3])) as accumulator:
            shifted, doubled = v + 0.1, v * 2.0
        return accumulator.jvp((v, shifted, doubled))

    for found, factor in zip(f(), (1, 1, 2), strict=True):
        np.testing.assert_allclose(found, np.array([0.1, -0.2, 0.3]) * factor, rtol=1e-6)


def test_accumulators_refuse_what_tensorflow_refuses() -> None:
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="multiple times"):
        tf.autodiff.ForwardAccumulator([x, x], [x, x])
    accumulator = tf.autodiff.ForwardAccumulator(x, x)
    with accumulator, pytest.raises(ValueError, match="already recording"), accumulator:
        pass


def test_ranges_of_floats_are_counted_in_their_own_precision() -> None:
    assert tf.range(-2.0, 1.0, 3.0 / 800).shape == (800,)
    np.testing.assert_allclose(tf.range(0.0, 1.0, 0.1), np.arange(10) * 0.1, rtol=1e-6)
    np.testing.assert_array_equal(tf.range(3.0, 0.0, -1.0), [3.0, 2.0, 1.0])
    assert tf.range(5).dtype == tf.int32
    assert tf.range(0, 5, dtype=tf.float64).dtype == tf.float64
    for bounds in ((0.0, 1.0, 0.0), (0, 1, 0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Requires delta != 0"):
            tf.range(*bounds)


def test_batch_jacobians_require_the_same_as_in_tensorflow() -> None:
    def tape_of(x, persistent=False):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = x * x
        return tape, y

    x = tf.constant([[1.0, 2.0]])
    for options in ({"experimental_use_pfor": False}, {"parallel_iterations": 8}):
        tape, y = tape_of(x)
        with pytest.raises(RuntimeError, match=r"persistent=True.*parallel_iterations"):
            tape.batch_jacobian(y, x, **options)
        tape, y = tape_of(x, True)
        np.testing.assert_allclose(tape.batch_jacobian(y, x, **options), [[[2.0, 0.0], [0.0, 4.0]]])
    row = tf.constant([1.0, 2.0])
    tape, y = tape_of(row)
    with pytest.raises(ValueError, match="must have rank at least 2"):
        tape.batch_jacobian(y, row)


def test_numbers_returned_by_custom_gradients_are_float32() -> None:
    @tf.custom_gradient
    def f(x):
        return -1.5, lambda upstream: upstream * 2.0

    assert f(tf.constant(1.0)).dtype == tf.float32
    assert tf.function(f)(tf.constant(1.0)).dtype == tf.float32
