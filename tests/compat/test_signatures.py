"""Signatures of tf.function: accepted arguments, and the names and calls of concrete functions."""

from __future__ import annotations

import numpy as np
import pytest

from adjit import tf

SCALAR = tf.TensorSpec([], tf.float32)


def test_signatures_are_made_of_specs():
    with pytest.raises(TypeError, match=r"input_signature.*nested sequence"):
        tf.function(lambda a, b: a, input_signature=[(2, 3), SCALAR])
    spec = tf.function(lambda v: v + 1.0).get_concrete_function(tf.Variable(1.0)).structured_input_signature[0][0]
    with pytest.raises(TypeError, match="doesn't support VariableSpec"):
        tf.function(lambda v: v, input_signature=[spec])


def test_methods_with_any_number_of_arguments():
    class Adder(tf.Module):
        @tf.function(input_signature=[SCALAR, SCALAR])
        def add(self, *both):
            return tf.add(*both)

    concrete = Adder().add.get_concrete_function()
    assert float(concrete(-12.0, 3.0)) == -9.0


def test_one_trace_is_one_concrete_function():
    f = tf.function(lambda x: x + 1.0)
    first = f.get_concrete_function(tf.TensorSpec([2], tf.float32))
    assert f.get_concrete_function(tf.constant([1.0, 2.0])) is first
    assert f.get_concrete_function(tf.constant([1.0])) is not first


def test_names_of_tensors():
    f = tf.function(lambda x, **more: x[0] + x[1] + more["d"])
    concrete = f.get_concrete_function((SCALAR, SCALAR), d=SCALAR)
    assert float(concrete(x=tf.constant(1.0), x_1=tf.constant(2.0), d=tf.constant(3.0))) == 6.0
    assert float(concrete(tf.constant(1.0), tf.constant(2.0), tf.constant(3.0))) == 6.0
    with pytest.raises(TypeError, match="Binding inputs"):
        concrete(x=tf.constant(1.0), wrong=tf.constant(2.0), d=tf.constant(3.0))

    g = tf.function(lambda x: 2.0 * x).get_concrete_function(tf.TensorSpec([], tf.float32, name="y"))
    assert float(g(y=tf.constant(3.0))) == 6.0
    assert g.structured_input_signature[0][0].name == "y"
    unnamed = tf.function(lambda x: x).get_concrete_function(SCALAR)
    assert unnamed.structured_input_signature[0][0].name == "x"


def test_texts():
    concrete = tf.function(lambda x, y=7: x).get_concrete_function(SCALAR)
    spec = "TensorSpec(shape=(), dtype=tf.float32, name=None)"
    assert concrete.pretty_printed_signature(verbose=False) == f"(x: {spec}, y: Literal[7]) -> {spec}"
    assert concrete.pretty_printed_signature().startswith("Input Parameters:\n  x (POSITIONAL_OR_KEYWORD)")


def test_concrete_functions_of_datasets():
    @tf.function
    def total(data):
        out = 0
        for x in data:
            out += x
        return out

    data = tf.data.Dataset.from_tensor_slices([1, 2, 3])
    assert "TensorSpec" in str(total.get_concrete_function(data))
    assert int(total(data)) == 6


def test_generators_are_refused():
    def numbers(n):
        yield n

    with pytest.raises(NotImplementedError, match="generators"):
        tf.function(numbers)(tf.constant(1))


def test_printing_as_a_feature(capfd):
    def shows(x):
        print("x is", x)
        return x

    tf.function(shows)(tf.constant([1, 2]))
    assert "Tensor(" in capfd.readouterr().out
    f = tf.function(shows, experimental_autograph_options=tf.autograph.experimental.Feature.ALL)
    for value in (1, 2):
        f(tf.constant([value]))
    out = capfd.readouterr().out
    assert "[1]" in out
    assert "[2]" in out


def test_numbers_of_dtypes():
    assert tf.float32.as_datatype_enum == 1
    assert tf.as_dtype(tf.int64.as_datatype_enum) is tf.int64
    with pytest.raises(TypeError):
        tf.as_dtype(99)


def test_variables_of_one_replica():
    on_read = tf.VariableSynchronization.ON_READ
    assert not tf.Variable(1.0, synchronization=on_read).trainable
    assert tf.Variable(1.0, synchronization=on_read, trainable=True).trainable
    v = tf.Variable([[0, 0], [0, 0]])
    rows = tf.IndexedSlices(indices=[[1], [0]], values=[[5], [6]])
    np.testing.assert_array_equal(v.batch_scatter_update(rows), [[0, 5], [6, 0]])


def test_gradients_that_pass_through():
    x = tf.Variable(2.5)
    with tf.GradientTape() as tape:
        y = 3.0 * tf.grad_pass_through(tf.round)(x)
    assert float(y) == 6.0
    assert float(tape.gradient(y, x)) == 3.0
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(w.assign)(x * 3.0)
    assert float(tape.gradient(y, x)) == 3.0
    assert [float(t) for t in tf.tuple([1.0, tf.constant(2.0)])] == [1.0, 2.0]


def test_batch_jacobians_are_never_none():
    x = tf.constant([[1.0], [2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.ones([2, 3])
    np.testing.assert_array_equal(tape.batch_jacobian(y, x), np.zeros((2, 3, 1)))


def test_stitching_checks_indices():
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
        tf.dynamic_stitch([[0, -1]], [[1.0, 2.0]])


def test_arguments_that_a_trace_does_not_have():
    concrete = tf.function(lambda x, *more, **named: x).get_concrete_function(1)
    for args, kwargs, text in (((1, 2), {}, "too many positional"), ((1,), {"c": 2}, "unexpected keyword argument 'c'")):
        with pytest.raises(TypeError, match=text):
            concrete(*args, **kwargs)
    more = tf.function(lambda x, *more, **named: x).get_concrete_function(1, SCALAR, c=SCALAR)
    with pytest.raises(TypeError, match="missing a required argument: 'more_0'"):
        more(1, c=1.0)
    with pytest.raises(TypeError, match="missing a required argument: 'c'"):
        more(1, 1.0)
    with pytest.raises(TypeError, match=r"Can not cast 8 to Literal.1."):
        concrete(8)


def test_keywords_of_signatures_have_defaults():
    with pytest.raises(TypeError, match="keyword-only parameter `b` must have a default"):
        tf.function(lambda a, *, b: a + b, input_signature=[SCALAR])


DTYPES = [
    ([np.float64(1)], "float64"), ([np.array(1.0)], "float64"), ([[np.float16(1)]], "float16"), ([np.float32(1), 2.0], "float32"),
    ([2.0, np.float64(1)], "float32"), ((np.float64(2), 1), "float64"), ([1, np.float64(2)], "float32"), ([1, 2.5], "float32"),
    ([np.int8(1)], "int32"), ([np.uint8(3)], "int32"), ([np.int64(1)], "int32"), ([1, 2**40], "int64"), ([np.complex64(1)], "complex128"),
    ([np.array([1.0, 2.0]), [3, 4]], "float64"), ([True, np.bool_(False)], "bool"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "name"), DTYPES)
def test_dtypes_of_lists_of_numpy_numbers(value, name):
    assert tf.constant(value).dtype.name == name
