"""`tf.Variable(shape=...)` with unknown sizes: values of other shapes can be assigned, eagerly and inside functions."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import tf
from adjit.ir.errors import UnsupportedError


def open_variable(*values: float) -> Any:
    return tf.Variable(list(values), shape=[None], dtype=tf.float32)


@pytest.mark.parametrize("shape", [None, [None], [None, 3]])
def test_shape_is_what_was_declared(shape: Any) -> None:
    initial = tf.ones([2, 3]) if shape == [None, 3] else tf.ones([2])
    v = tf.Variable(initial, shape=tf.TensorShape(shape))
    assert v.shape.rank is None if shape is None else v.shape.as_list() == shape
    assert v.read_value().shape == initial.shape


def test_assigning_another_shape() -> None:
    v = tf.Variable(1.0, shape=tf.TensorShape(None))
    v.assign(tf.ones([2, 2]))
    assert v.numpy().shape == (2, 2)
    v[0].assign([5.0, 6.0])
    v.scatter_update(tf.IndexedSlices(tf.constant([[9.0, 9.0]]), tf.constant([1])))
    assert v.numpy().tolist() == [[5.0, 6.0], [9.0, 9.0]]
    assert "shape=<unknown>" in repr(v)


def test_arguments_that_do_not_fit_are_refused() -> None:
    v = tf.Variable(tf.ones([2, 3]), shape=[None, 3])
    with pytest.raises(ValueError, match=r"variable shape \(None, 3\), and the assigned value shape \(5, 4\)"):
        v.assign(tf.ones([5, 4]))
    v.assign(tf.ones([5, 3]))
    with pytest.raises(ValueError, match=r"variable shape \(5, 3\), and the assigned value shape \(3,\)"):
        v.assign_add([1.0, 1.0, 1.0])  # no broadcasting, as in TensorFlow
    with pytest.raises(ValueError, match="not compatible with the explicitly supplied"):
        tf.Variable(tf.ones([2, 4]), shape=[None, 3])


def test_functions_read_the_shape_of_each_call() -> None:
    v = open_variable(1.0, 2.0)

    @tf.function
    def total() -> Any:
        return tf.reduce_sum(v), tf.shape(v)

    for size in (2, 7, 2, 1, 0):
        v.assign(tf.ones([size]))
        found, shape = total()
        assert float(found) == size
        assert shape.numpy().tolist() == [size]


def test_functions_assign_other_shapes() -> None:
    v = tf.Variable(tf.zeros([3]), shape=tf.TensorShape(None))

    @tf.function
    def keep(x: Any) -> Any:
        v.assign(x)
        return tf.reduce_sum(v), v + 1.0

    for shape in ([4, 4], [5], [4, 4], []):
        total, more = keep(tf.ones(shape))
        assert float(total) == np.prod(shape)
        assert v.numpy().shape == more.numpy().shape == tuple(shape)
        assert more.numpy().max() == 2.0


def test_a_function_that_returns_what_it_assigns() -> None:
    v = open_variable(1.0)

    @tf.function
    def push(x: Any) -> Any:
        v.assign(tf.concat([v, [x]], 0))
        return v

    first = push(tf.constant(2.0))
    second = push(tf.constant(3.0))
    v.assign_add([10.0, 10.0, 10.0])
    assert first.numpy().tolist() == [1.0, 2.0]  # later assignments do not change it
    assert second.numpy().tolist() == [1.0, 2.0, 3.0]
    assert v.numpy().tolist() == [11.0, 12.0, 13.0]


def test_two_assignments_in_one_function() -> None:
    v = open_variable(1.0, 2.0)

    @tf.function
    def back_and_forth() -> Any:
        v.assign(tf.concat([v, v], 0))
        longer = tf.reduce_sum(v)
        v.assign(v[:2] * 10.0)
        return longer

    assert float(back_and_forth()) == 6.0
    assert v.numpy().tolist() == [10.0, 20.0]


def test_passed_as_an_argument() -> None:
    v, w = open_variable(1.0, 2.0), open_variable(1.0, 2.0, 3.0)

    @tf.function
    def grown(u: Any) -> Any:
        u.assign(tf.concat([u, [1.0]], 0))
        return tf.reduce_sum(u)

    assert [float(grown(u)) for u in (v, w, v)] == [4.0, 7.0, 5.0]
    assert (v.numpy().shape, w.numpy().shape) == ((4,), (4,))


def test_gradients() -> None:
    v = open_variable(1.0, 2.0)

    @tf.function
    def inside() -> Any:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * v)
        return tape.gradient(y, v)

    @tf.function
    def square() -> Any:
        return tf.reduce_sum(v * v)

    for value in ([1.0, 2.0], [1.0, 2.0, 3.0]):
        v.assign(value)
        with tf.GradientTape() as tape:
            y = square()
        assert inside().numpy().tolist() == tape.gradient(y, v).numpy().tolist() == [2 * x for x in value]


def test_gradient_by_a_value_that_a_function_assigned() -> None:
    v = open_variable(1.0, 2.0)

    @tf.function
    def assigned() -> Any:
        v.assign([1.0, 2.0, 3.0])
        return tf.reduce_sum(v * v)

    with tf.GradientTape() as tape:
        y = assigned()
    assert tape.gradient(y, v).numpy().tolist() == [2.0, 4.0, 6.0]


def test_branches_and_loops_need_one_shape() -> None:
    v = open_variable(1.0, 2.0)

    @tf.function
    def branch(p: Any) -> None:
        if p:
            v.assign([1.0, 2.0, 3.0])

    @tf.function
    def loop(n: Any) -> None:
        for _ in tf.range(n):
            v.assign(tf.concat([v, [1.0]], 0))

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"f32\[3\] in the `if` branch and f32\[2\] in the `else` branch"):
        branch(tf.constant(True))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"f32\[2\] before an iteration and f32\[3\] after it"):
        loop(tf.constant(3))
    assert v.numpy().tolist() == [1.0, 2.0]


def test_both_branches_may_assign_another_shape() -> None:
    v = open_variable(1.0, 2.0)

    @tf.function
    def choose(p: Any) -> Any:
        if p:
            v.assign([1.0, 2.0, 3.0])
        else:
            v.assign([4.0, 5.0, 6.0])
        return tf.reduce_sum(v)

    assert float(choose(tf.constant(False))) == 15.0
    assert float(choose(tf.constant(True))) == 6.0
    assert v.numpy().tolist() == [1.0, 2.0, 3.0]


def test_growing_at_every_call_warns_once() -> None:
    v = open_variable()

    @tf.function
    def push(x: Any) -> None:
        v.assign(tf.concat([v, [x]], 0))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(9):
            push(tf.constant(float(k)))
    assert v.numpy().tolist() == list(range(9))
    (warning,) = caught
    assert "push has been traced 6 times, because a variable had another shape each time" in str(warning.message)


def test_no_update_is_lost_between_threads() -> None:
    v = open_variable()

    @tf.function(reduce_retracing=True)
    def push(x: Any) -> None:
        v.assign(tf.concat([v, [x]], 0))

    def work() -> None:
        for _ in range(4):
            push(tf.constant(1.0))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert v.numpy().tolist() == [1.0] * 12


def test_checkpoints(tmp_path: Any) -> None:
    v = open_variable(1.0, 2.0, 3.0)
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.save(tmp_path / "state")
    v.assign([5.0])
    checkpoint.restore(path)
    assert v.numpy().tolist() == [1.0, 2.0, 3.0]


def test_inspection_shows_the_shape_of_now() -> None:
    v = open_variable(1.0, 2.0)

    @tf.function
    def total() -> Any:
        return tf.reduce_sum(v)

    total()
    v.assign([1.0, 2.0, 3.0])
    assert "f32[3]" in str(total.inspect().forward)


def test_programs_that_change_a_shape_are_not_saved(tmp_path: Any) -> None:
    module = tf.Module()
    module.v = open_variable(1.0, 2.0)

    @tf.function(input_signature=[])
    def grow() -> Any:
        module.v.assign(tf.concat([module.v, [1.0]], 0))
        return tf.reduce_sum(module.v)

    module.grow = grow
    with pytest.raises(UnsupportedError, match="changes the shape of a variable"):
        tf.saved_model.save(module, str(tmp_path / "model"))
    with pytest.raises(UnsupportedError, match="changes the shape"):
        aj.function(grow.python_function).export(str(tmp_path / "grow.o"))
