"""Python numbers that loops carry, shapes of unknown rank, and other parts of TensorFlow that its own tests cover."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit import tf


def test_python_numbers_of_loops_are_32_bits_where_they_become_tensors() -> None:
    @tf.function
    def f(n):
        i, s, x = 0, 0, 1.0
        array = tf.TensorArray(tf.int32, 3)
        while i < n:
            array = array.write(i, s)
            s, i, x = s + i, i + 1, x * 2
        joined = tf.concat([tf.constant([7]), [s]], 0)
        return (
            tf.concat([[s], [i]], 0),
            array.stack(),
            tf.exp(x * 0),
            tf.stack([x, 1.0]),
            joined,
            tf.add(i, tf.constant(2, tf.int64)),
            [[i]],
        )

    out = f(tf.constant(3))
    dtypes = [tf.int32, tf.int32, tf.float32, tf.float32, tf.int32, tf.int64]
    assert [t.dtype for t in out[:-1]] == dtypes
    assert [np.asarray(t).tolist() for t in out] == [[3, 3], [0, 0, 1], 1.0, [8.0, 1.0], [7, 3], 5, [[3]]]


def test_shapes_of_unknown_rank() -> None:
    unknown = tf.TensorShape(None)
    assert (repr(unknown), str(unknown), unknown.rank, unknown.dims) == ("TensorShape(None)", "<unknown>", None, None)
    assert unknown.is_compatible_with([1, 2])
    assert tf.TensorShape([1]).is_compatible_with(unknown)
    assert tf.TensorShape([1, 2]).most_specific_compatible_shape([1]) is unknown
    assert unknown.merge_with([1, None]) == tf.TensorShape([1, None])
    assert tf.TensorShape([1]).merge_with(unknown) == [1]
    assert (unknown.concatenate([1]), tf.TensorShape([1]).concatenate(None)) == (unknown, unknown)
    assert not unknown.is_fully_defined()
    assert unknown.num_elements() is None
    for refused in (len, list, lambda s: s[0], lambda s: s.as_list()):
        with pytest.raises(ValueError, match="unknown rank"):
            refused(unknown)
    assert tf.TensorArray(tf.float32, 2).element_shape is unknown


def test_sizes_that_are_known_only_at_run_time_print_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x):
        print(x, repr(x.shape))
        return x

    f(tf.ones([3, 2]))
    assert capsys.readouterr().out == 'Tensor("x:0", shape=(None, 2), dtype=float32) TensorShape([None, 2])\n'


def test_errors_of_branches_are_value_errors_and_failed_checks_invalid_arguments() -> None:
    @tf.function
    def branches(x):
        if x > 0:
            y = x
        return y

    with pytest.raises(ValueError, match="not assigned in the `else` branch"):
        branches(tf.constant(1.0))

    @tf.function
    def loop(n):
        for i in tf.range(n):
            last = i * 2.0 if False else i
        return last

    assert int(loop(tf.constant(3))) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="must iterate at least once"):
        loop(tf.constant(0))
    with pytest.raises(aj.CheckError):
        loop(tf.constant(0))


def test_parts_of_variables() -> None:
    def clipped(x):
        return tf.clip_by_value(x, 0.0, 1.0)

    v = tf.Variable([1.0, 2.0], constraint=clipped)
    assert v.constraint is clipped
    assert v.initializer is None
    assert v.assign([3.0, 4.0]) is v
    assert [v.assign_add([1.0, 1.0], read_value=False), v.assign([0.0, 0.0], read_value=False)] == [None, None]
    half = tf.Variable(np.zeros(3, np.float16))
    half.scatter_add(tf.IndexedSlices(np.float16(2), [1]))
    half[0].assign(5)
    half.scatter_mul(tf.IndexedSlices(np.float16(3), [1]))
    assert half.numpy().tolist() == [5, 6, 0]
    assert half.dtype == tf.float16


def test_scopes_of_names_and_features() -> None:
    with tf.name_scope("a") as outer, tf.name_scope("b") as inner:
        assert (outer, inner) == ("a/", "a/b/")
    assert tf.autograph.experimental.Feature.LISTS not in tf.autograph.experimental.Feature.all_but(tf.autograph.experimental.Feature.LISTS)


def test_what_compares_itself_does() -> None:
    """Here `pytest.approx`; objects that define no comparison are refused, as in TensorFlow."""
    assert tf.constant(1.5) == pytest.approx(1.5)
    assert tf.constant([1.0, 2.0]) == pytest.approx([1.0, 2.0])
    assert pytest.approx([1.0, 2.0]) == tf.Variable([1.0, 2.0])
    assert tf.constant([1.0, 2.0]) != pytest.approx([1.0, 2.5])
    assert (tf.constant(1.0) != None) is True  # noqa: E711 - the operator is what is tested
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant(1.0) == object()  # noqa: B015
