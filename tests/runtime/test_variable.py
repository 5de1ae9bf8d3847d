"""Variable: reading, assigning, and the visibility of changes."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import DTypeError, ShapeError, TraceError


def test_properties_and_repr() -> None:
    w = aj.Variable(np.zeros((2, 3), "f4"), name="w", trainable=False)
    assert (w.shape, w.dtype, w.ndim, w.size, len(w), w.name, w.trainable) == ((2, 3), np.float32, 2, 6, 2, "w", False)
    assert repr(aj.Variable([1.0], name="v")) == "Variable([1.], f64[1], name='v')"
    assert f"{aj.Variable(1.25):.1f}" == "1.2"


def test_initial_value_may_be_a_function_and_have_a_dtype() -> None:
    assert aj.Variable(lambda: [1, 2], dtype="f4").dtype == np.float32


def test_the_initial_array_is_copied() -> None:
    array = np.zeros(2)
    w = aj.Variable(array)
    array[0] = 1.0
    assert w.numpy().tolist() == [0.0, 0.0]


def test_works_where_a_tensor_does() -> None:
    w = aj.Variable(np.arange(6.0).reshape(2, 3))
    x = np.ones((4, 2))
    expected = w.numpy()
    for got, want in [
        (x @ w, x @ expected),
        (aj.tensor(x) @ w, x @ expected),
        (np.dot(x, w), x @ expected),
        (w * 2, expected * 2),
        (2 * w, expected * 2),
        (w - w, expected * 0),
        (w[0], expected[0]),
        (w.T, expected.T),
        (w.sum(), expected.sum()),
        (w.reshape(3, 2), expected.reshape(3, 2)),
        (w.reshape(2, 3), expected),
        (np.exp(w), np.exp(expected)),
        (np.concatenate([w, w]), np.concatenate([expected, expected])),
        (w == w, expected == expected),
        (-w, -expected),
        (abs(w), expected),
        (w.astype("f4"), expected.astype("f4")),
    ]:
        assert type(got) is aj.Tensor
        assert np.array_equal(got.numpy(), want)


def test_what_was_read_does_not_change() -> None:
    w = aj.Variable([1.0, 2.0])
    same, view, array, reshaped = w.value(), w[:1], w.numpy(), w.reshape(2)
    w.assign([3.0, 4.0])
    assert (same.tolist(), view.tolist(), array.tolist(), reshaped.tolist()) == ([1.0, 2.0], [1.0], [1.0, 2.0], [1.0, 2.0])


def test_assignments() -> None:
    w = aj.Variable(np.ones(2, "f4"))
    assert w.assign([2, 3]) is w
    assert w.assign_add(1.0).numpy().tolist() == [3.0, 4.0]
    assert w.assign_sub(np.ones(2, "f4")).numpy().tolist() == [2.0, 3.0]
    assert w.assign_sub([1.0, 1.0]).numpy().tolist() == [1.0, 2.0]
    assert w.dtype == np.float32


def test_assignments_are_checked() -> None:
    w = aj.Variable(np.ones(2, "f4"), name="w")
    with pytest.raises(ShapeError, match=r"variable 'w' is f32\[2\].*f32\[3\]"):
        w.assign([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError):
        w.assign(0.0)
    with pytest.raises(DTypeError, match="astype"):
        w.assign(np.ones(2))
    with pytest.raises(DTypeError, match="do not fit"):
        aj.Variable([1, 2]).assign([1.5, 2.5])
    with pytest.raises(DTypeError):
        w.assign_add(aj.tensor([1.0, 2.0]))
    assert w.numpy().tolist() == [1.0, 1.0]


def test_assigning_one_variable_to_another_shares_nothing_visible() -> None:
    a, b = aj.Variable([1.0, 2.0]), aj.Variable([0.0, 0.0])
    b.assign(a)

    @aj.function
    def step() -> None:
        a.assign_add([1.0, 1.0])

    step()
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([2.0, 3.0], [1.0, 2.0])


def test_copy_and_pickle() -> None:
    w = aj.Variable([1.0], name="w", trainable=False)
    for other in (copy.copy(w), copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert (other.name, other.trainable, other.numpy().tolist()) == ("w", False, [1.0])
        other.assign([2.0])
    assert w.numpy().tolist() == [1.0]


def test_hashable_by_identity() -> None:
    a, b = aj.Variable(1.0), aj.Variable(1.0)
    assert {a: 1, b: 2}[a] == 1


def test_an_initial_value_that_is_traced_is_refused() -> None:
    with pytest.raises(TraceError, match="initial value"):
        aj.function(lambda x: aj.Variable(x * 2.0).value())(1.0)


def test_freed_with_its_last_reference() -> None:
    w = aj.Variable([1.0])
    gone = weakref.ref(w)
    del w
    gc.collect()
    assert gone() is None


# ---- in place, and when not


def buffer_of(w: aj.Variable) -> int:
    return int(w.store.data.__array_interface__["data"][0])


def incremented(w: aj.Variable) -> aj.Function:
    @aj.function
    def step() -> None:
        w.assign_add(1.0)

    return step


def test_updates_are_in_place_without_other_references() -> None:
    w = aj.Variable(np.zeros(100))
    step = incremented(w)
    step()
    before = buffer_of(w)
    for _ in range(3):
        step()
        float(w[0])  # a tensor that is gone again
    assert buffer_of(w) == before
    assert w[0] == 4.0


@pytest.mark.parametrize("look", [lambda w: w.value(), lambda w: w.numpy(), lambda w: w[3:5], lambda w: w.T, lambda w: np.asarray(w)[::2]])
def test_what_was_read_before_a_compiled_update_does_not_change(look: object) -> None:
    w = aj.Variable(np.zeros(100))
    step = incremented(w)
    seen = look(w)  # type: ignore[operator]
    kept = np.array(seen)
    step()
    assert np.array_equal(np.asarray(seen), kept)
    assert w[0] == 1.0


def test_an_argument_that_is_the_variables_value_is_not_overwritten() -> None:
    w = aj.Variable(np.ones(100))

    @aj.function
    def step(x: aj.Tensor) -> aj.Tensor:
        w.assign(x * 2.0)
        return x + w

    assert step(w.value())[0] == 3.0
    assert step(w.numpy())[0] == 6.0


def test_a_failed_call_changes_nothing() -> None:
    w = aj.Variable(np.zeros(4))

    @aj.function
    def step(i: aj.Tensor) -> aj.Tensor:
        w.assign_add(1.0)
        return w[i]

    step(np.array([1, 2]))
    with pytest.raises(IndexError):
        step(np.array([1, 9]))
    assert w.numpy().tolist() == [1.0, 1.0, 1.0, 1.0]


def test_new_values_that_wait_for_each_other_do_not_share_memory() -> None:
    a, b, c = aj.Variable(np.arange(4.0)), aj.Variable(np.arange(4.0) + 10.0), aj.Variable(np.arange(4.0).reshape(2, 2))

    @aj.function
    def step() -> None:
        doubled, turned = b * 2.0, c[::-1] + np.reshape(a, (2, 2))
        a.assign(doubled)
        c.assign(turned)

    step()
    assert np.asarray(a).tolist() == [20.0, 22.0, 24.0, 26.0]
    assert np.asarray(c).tolist() == [[2.0, 4.0], [2.0, 4.0]]
