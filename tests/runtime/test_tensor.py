"""Tensor: conversions from and to other types, and immutability."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import DTypeError, ShapeError, TraceError


def test_repr_shows_values_and_type() -> None:
    assert repr(aj.tensor(np.array([1, 2], "f4"))) == "Tensor([1., 2.], f32[2])"
    assert repr(aj.tensor(3)) == "Tensor(3, i64[])"
    assert f"{aj.tensor(2.0)}" == "2.0"
    assert f"{aj.tensor(2.0):.3f}" == "2.000"
    assert "..." in repr(aj.tensor(np.arange(1000)))


def test_python_scalars_follow_numpy() -> None:
    assert aj.tensor(1.0).dtype == np.float64
    assert aj.tensor(1).dtype == np.int64
    assert aj.tensor(True).dtype == np.bool_
    assert (aj.tensor(np.float32(1)) + 1.5).dtype == np.float32


def test_tensor_of_a_tensor_is_a_copy() -> None:
    x = aj.tensor([1.0])
    assert aj.asarray(x) is x
    assert aj.tensor(x) is not x
    assert aj.tensor(x).tolist() == [1.0]
    assert aj.tensor(x, "f4").dtype == np.float32


def test_arrays_are_copied_on_entry() -> None:
    array = np.ones(3)
    x = aj.tensor(array)
    array[0] = 9.0
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_arrays_behind_other_objects_are_copied_too() -> None:
    class Holder:
        def __init__(self) -> None:
            self.array = np.ones(3)

        def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
            return self.array

    holder = Holder()
    x = aj.tensor(holder)
    holder.array[0] = 9.0
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert aj.function(lambda x: x + 1.0)(holder).tolist() == [10.0, 2.0, 2.0]


def test_numpy_is_a_read_only_view() -> None:
    x = aj.tensor([1.0, 2.0])
    view = x.numpy()
    assert np.shares_memory(view, x.data)
    for array in (view, x.data, aj.function(lambda x: x + 1)(x).data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3.0
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 3.0
    np.array(x)[0] = 3.0
    assert x.tolist() == [1.0, 2.0]


def test_array_protocol_converts() -> None:
    x = aj.tensor([1.0, 2.0])
    assert np.asarray(x, dtype="f4").dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__("f4", copy=False)


def test_dlpack_round_trip() -> None:
    x = aj.tensor(np.arange(6.0).reshape(2, 3))
    array = np.from_dlpack(x)
    assert np.array_equal(array, x.numpy())
    assert not array.flags.writeable or not np.shares_memory(array, x.data)
    assert x.__dlpack_device__() == np.zeros(1).__dlpack_device__()


def test_older_consumers_of_dlpack_and_pytorch_get_copies() -> None:
    x = aj.tensor([1.0, 2.0])

    class Old:
        def __dlpack__(self, *, stream: Any = None) -> Any:
            return x.__dlpack__(stream=stream)

        def __dlpack_device__(self) -> tuple[int, int]:
            return x.__dlpack_device__()

    assert not np.shares_memory(np.from_dlpack(Old()), x.numpy())
    scope: dict[str, Any] = {"__name__": "torch.utils.dlpack"}
    exec("def ask(x, **options): return x.__dlpack__(max_version=(1, 0), **options)", scope)
    assert '"dltensor"' in repr(scope["ask"](x))  # that of before 1.0, which is never read-only: a copy
    with pytest.raises(BufferError, match="allow a copy"):
        scope["ask"](x, copy=False)
    assert x.tolist() == [1.0, 2.0]


def test_memory_is_described_read_only() -> None:
    x = aj.tensor([[1.0, 2.0]])
    interface = x.__array_interface__
    assert interface["shape"] == (1, 2)
    assert interface["data"] == (x.numpy().__array_interface__["data"][0], True)
    assert x.tobytes() == np.array([1.0, 2.0]).tobytes()
    assert x.view("u8").tolist() == np.array([[1.0, 2.0]]).view("u8").tolist()
    assert x.view().tolist() == x.tolist()
    assert (x.item(1), x.item(0, 0), aj.Variable([1.0, 2.0]).item(1)) == (2.0, 1.0, 2.0)


@pytest.mark.parametrize("value", [1.5, True, [1, 2], np.zeros((0, 3)), np.arange(400.0).reshape(20, 20), np.ones((2, 3, 4))])
def test_notebooks_show_tables(value: Any) -> None:
    x = aj.tensor(value)
    html = x._repr_html_()
    assert str(x.type) in html
    assert html.count("<td") == (0 if not x.ndim or not x.size else x.shape[-1] if x.ndim == 1 else 111 if x.size == 400 else 12)
    assert aj.Variable(value)._repr_html_() == html


def test_conversions_to_python() -> None:
    assert float(aj.tensor([2.5])) == 2.5
    assert int(aj.tensor(3)) == 3
    assert bool(aj.tensor(False)) is False
    assert [10, 20, 30][aj.tensor(1)] == 20
    assert aj.tensor([[1, 2]]).tolist() == [[1, 2]]
    assert aj.tensor(4.5).item() == 4.5
    assert [float(v) for v in aj.tensor([1.0, 2.0])] == [1.0, 2.0]
    assert len(aj.tensor([[1.0], [2.0]])) == 2


@pytest.mark.parametrize("convert", [float, int, bool, complex])
def test_conversions_of_several_elements_raise(convert: type) -> None:
    with pytest.raises(TypeError, match="2 elements"):
        convert(aj.tensor([1.0, 2.0]))


def test_floats_are_not_indices_and_scalars_do_not_iterate() -> None:
    with pytest.raises(TypeError, match="integer scalar"):
        [1][aj.tensor(0.0)]
    with pytest.raises(TypeError, match="0-dimensional"):
        iter(aj.tensor(0.0))


def test_pickle_and_copy() -> None:
    x = aj.tensor(np.arange(6.0).reshape(2, 3)).T
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert type(y) is aj.Tensor
        assert np.array_equal(y.numpy(), x.numpy())
        assert y.shape == (3, 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "Python objects"),
        ([object()], "Python objects"),
        ("text", "not numeric"),
        ([b"x"], "not numeric"),
        (2**70, "too large"),
        (np.zeros(2, np.longdouble), "is not supported"),
        (np.zeros(2, ">f8"), "swap its bytes"),
        (np.zeros(2, "M8[s]"), "not numeric"),
        (None, "Python objects"),
    ],
)
def test_bad_input_raises_dtype_errors(value: object, message: str) -> None:
    with pytest.raises(DTypeError, match=message):
        aj.tensor(value)


RAGGED = [[1.0, 2.0], [3.0]]


@pytest.mark.parametrize(
    "use",
    [
        lambda: aj.tensor(RAGGED), lambda: aj.sin(RAGGED), lambda: aj.Variable(RAGGED), lambda: aj.Variable([1.0, 2.0]).assign(RAGGED),
        lambda: aj.tensor([1.0]) + RAGGED, lambda: np.add(aj.tensor([1.0]), RAGGED), lambda: aj.where(RAGGED, 1.0, 2.0),
        lambda: aj.function(lambda x: aj.sin(x))(RAGGED), lambda: aj.function(lambda x: x + aj.sin(RAGGED))(1.0),
        lambda: aj.function(lambda x: x * RAGGED)(1.0), lambda: aj.grad(lambda x: aj.sum(x * RAGGED))(1.0), lambda: aj.asarray(RAGGED),
        lambda: aj.asarray([aj.ones(2), aj.ones(1)]), lambda: aj.sin([aj.ones(2), 1.0]),
        lambda: aj.function(lambda x: aj.asarray([[x, x], [x]]))(1.0), lambda: aj.function(lambda x: aj.sin([[x, x], x]))(1.0),
    ],
)  # fmt: skip
def test_ragged_sequences_are_refused_in_the_same_words_everywhere(use: Callable[[], object]) -> None:
    with pytest.raises(ShapeError, match=r"^a ragged sequence is not a tensor: .*; pad it to one length"):
        use()


def test_a_ragged_sequence_raises_a_value_error() -> None:
    with pytest.raises(ShapeError, match="ragged"):
        aj.tensor([[1.0], [1.0, 2.0]])


def test_named_dtype_does_not_wrap_integers() -> None:
    with pytest.raises(DTypeError, match="does not fit"):
        aj.tensor([300], "i1")
    assert aj.tensor([300], "f4").dtype == np.float32


def test_operators_give_tensors() -> None:
    x = aj.tensor([1.0, 2.0])
    for y in (x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 / x, x**2, -x, abs(x), x > 1, x == x, np.ones(2) * x, x @ x, x.sum(), x[0]):
        assert type(y) is aj.Tensor


def test_a_traced_value_stays_traced() -> None:
    assert aj.function(lambda x: aj.tensor(x + 1, dtype="f4"))(1.0).dtype == np.float32
    with pytest.raises(TraceError, match="traced"):
        aj.function(lambda x: aj.Tensor(x + 1))(1.0)


def test_none_and_strings_equal_no_array() -> None:
    def asked(x: Any) -> tuple[bool, ...]:
        return x == None, x != None, x == "same", "same" == x, x in (None, "same")  # noqa: E711, SIM300

    for x in (aj.tensor([1.0, 2.0]), aj.Variable(1.0)):
        assert asked(x) == (False, True, False, False, False)
    assert tuple(map(bool, aj.function(asked)(np.ones(2)))) == (False, True, False, False, False)
