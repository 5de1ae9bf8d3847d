"""Writes to the elements of tensors: as NumPy's, compiled = eager, and seen by nobody who should not see them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

X = np.arange(12.0).reshape(3, 4)
WEIGHTS = np.linspace(1.0, 2.0, 12).reshape(3, 4)

KEYS: dict[str, Any] = {
    "item": (1, 2), "row": 1, "negative": -1, "slice": slice(1, None), "steps": (slice(None, None, 2), slice(None, None, -1)),
    "column": (slice(None), 2), "ellipsis": ..., "new axis": (None, 1), "mask": X > 5, "row mask": np.array([True, False, True]),
    "list": [0, 2], "indices": (np.array([0, 2, 0]), np.array([1, 3, 1])), "mixed": (slice(None), np.array([0, 2])), "nothing": slice(2, 2),
    "last": (..., -1), "repeated": [1, 1],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16", "?"])
@pytest.mark.parametrize("name", KEYS)
def test_elements_are_written_as_numpy_writes_them(name: str, dtype: str) -> None:
    key = KEYS[name]
    for value in (3, True, 2.5, np.float32(1.5), np.full_like(X[key], 7.0, dtype), np.arange(X[key].size).reshape(X[key].shape)):
        want, found = X.astype(dtype), aj.tensor(X.astype(dtype))
        want[key] = value
        found[tuple(map(as_tensor, key)) if isinstance(key, tuple) else as_tensor(key)] = as_tensor(value)
        np.testing.assert_array_equal(found, want)
        assert found.dtype == want.dtype


def as_tensor(x: Any) -> Any:
    return aj.tensor(x) if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [(3, 1.0, "out of bounds"), ((0, 0, 0), 1.0, "too many indices"), (0, [1.0, 2.0], "does not fit"), (1.5, 1.0, "not an index"),
     (0, 1j, "complex"), (np.ones(2, bool), 1.0, "a mask of shape"), (slice(None), np.ones((2, 4)), "does not fit")],
)  # fmt: skip
def test_a_refused_write_changes_nothing(key: Any, value: Any, error: str) -> None:
    x = aj.tensor(X)
    with pytest.raises(aj.AdjitError, match=error):
        x[key] = value
    np.testing.assert_array_equal(x, X)


def test_other_ways_to_write() -> None:
    x = aj.tensor([3.0, 1.0, 2.0])
    x.sort()
    assert x.tolist() == [1.0, 2.0, 3.0]
    x.put([0, -1], [7.0, 8.0])
    assert x.tolist() == [7.0, 2.0, 8.0]
    x.fill(4)
    assert x.tolist() == [4.0, 4.0, 4.0]
    x[1:] += 1.0
    x[x > 4.5] *= 2.0
    assert x.tolist() == [4.0, 10.0, 10.0]
    x.partition(1)
    x[:2] = x[1:]
    assert x.tolist() == [10.0, 10.0, 10.0]


WRITERS: dict[str, Callable[[Any], Any]] = {
    "put": lambda x: np.put(x, [0, 5], [7.0, 8.0]),
    "copyto": lambda x: np.copyto(x, X[0] * 2.0, where=X > 2.0),
    "place": lambda x: np.place(x, X > 4.0, [1.0, 2.0]),
    "putmask": lambda x: np.putmask(x, X > 4.0, -X),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 9.0),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([[1], [0], [2]]), 9.0, 1),
    "add.at": lambda x: np.add.at(x, ([0, 0, 1], [1, 1, 2]), 2.0),
    "maximum.at": lambda x: np.maximum.at(x, ([0, 0, 1], [1, 1, 2]), 5.0),
    "multiply.at of a view": lambda x: np.multiply.at(x[1], [0, 0, 3], 2.0),
}


@pytest.mark.parametrize("name", WRITERS)
def test_numpys_functions_that_write(name: str) -> None:
    want, x = X.copy(), aj.tensor(X)
    assert WRITERS[name](x) is None
    WRITERS[name](want)
    np.testing.assert_array_equal(x, want)


# ---- who must not see a write

SEERS: dict[str, Callable[[aj.Tensor], Any]] = {
    "numpy": lambda x: x.numpy(),
    "data": lambda x: x.data,
    "asarray": np.asarray,
    "a view of that": lambda x: x.numpy()[1:],
    "interface": lambda x: np.asarray(type("Box", (), {"__array_interface__": x.__array_interface__, "kept": x.numpy()})()),
    "dlpack": np.from_dlpack,
    "dlpack of ours": aj.from_dlpack,
    "copy": lambda x: x.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "array": aj.array,
    "asarray copy": lambda x: aj.asarray(x, copy=True),
    "astype": lambda x: x.astype(x.dtype),
    "variable": aj.Variable,
    "flatten": lambda x: x.flatten(),
    "positive": lambda x: +x,
    "clip": lambda x: np.clip(x, None, None),
    "roll": lambda x: np.roll(x, 0),
    "concatenate": lambda x: np.concatenate([x]),
    "take": lambda x: np.take(x, 1, 0),
    "tile": lambda x: np.tile(x, 1),
    "pad": lambda x: np.pad(x, 0),
    "a row, read before": lambda x: x[1],
    "compiled identity": lambda x: aj.function(lambda y: y)(x),
    "compiled view": lambda x: aj.function(lambda y: y[1:])(x),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "stopped": aj.stop_gradient,
    "tree": lambda x: aj.tree_map(lambda y: y.copy(), [x])[0],
}


@pytest.mark.parametrize("name", SEERS)
def test_nobody_else_sees_a_write(name: str) -> None:
    x = aj.tensor(X)
    other = SEERS[name](x)
    before = np.array(other)
    x[...] = -1.0
    x[1, 1] = -2.0
    np.testing.assert_array_equal(np.asarray(other), before)
    assert float(x[1, 1]) == -2.0


@pytest.mark.parametrize(
    "name", [name for name in SEERS if isinstance(SEERS[name](aj.tensor(X)), aj.Tensor) and name != "a row, read before"]
)
def test_a_copy_is_written_to_alone(name: str) -> None:
    x = aj.tensor(X)
    other = SEERS[name](x)
    other[...] = -1.0
    np.testing.assert_array_equal(x, X)


def test_arrays_of_users_are_not_written_to() -> None:
    for make in (aj.tensor, aj.asarray, aj.Tensor, aj.from_dlpack, lambda a: aj.zeros(3) + a):
        array = np.ones(3)
        x = make(array)
        x[0] = 5.0
        assert array.tolist() == [1.0, 1.0, 1.0]


def test_variables_and_their_values() -> None:
    v = aj.Variable([1.0, 2.0])
    value = v.read_value() if hasattr(v, "read_value") else +v
    value[0] = 5.0
    assert v.numpy().tolist() == [1.0, 2.0]
    v.assign(value)
    value[1] = 6.0
    v.assign_add([1.0, 1.0])
    assert (v.numpy().tolist(), value.tolist()) == ([6.0, 3.0], [5.0, 6.0])
    with pytest.raises(aj.UnsupportedError, match="assign"):
        v[0] = 1.0


def test_constants_of_compiled_functions_stay() -> None:
    small, large = aj.tensor([1.0, 2.0]), aj.tensor(np.arange(1000.0))
    f = aj.function(lambda x: (x * small, x * large))
    before = f(1.0)
    small[0] = large[0] = 9.0
    for a, b in zip(before, f(1.0), strict=True):
        np.testing.assert_array_equal(a, b)


def test_memory_is_reused_only_if_nobody_else_has_it() -> None:
    x = aj.zeros(1000)
    address = lambda: x.__array_interface__["data"][0]  # noqa: E731
    x[0] = 1.0
    first = address()
    for k in range(10):
        x[k] = float(k)
    assert address() == first
    kept = x.numpy()
    x[0] = 5.0
    assert address() != first
    assert kept[0] == 0.0


# ---- views

VIEWS: dict[str, Callable[[Any], Any]] = {
    "row": lambda x: x[1], "part": lambda x: x[1:, ::2], "turned": lambda x: x.T, "flat": lambda x: x.reshape(-1), "ravel": np.ravel,
    "backwards": lambda x: x[::-1, ::-1], "swapped": lambda x: np.swapaxes(x, 0, 1), "split": lambda x: np.split(x, 3)[1],
    "new axis": lambda x: x[:, None], "expanded": lambda x: np.expand_dims(x, 0), "moved": lambda x: np.moveaxis(x, 0, -1),
    "flipped": lambda x: np.flip(x, 0), "of a view": lambda x: x[1:][0], "same shape": lambda x: x.reshape(3, 4), "all": lambda x: x[...],
    "transposed": lambda x: x.transpose(1, 0), "view": lambda x: x.view(),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_writes_to_a_view_change_what_it_views(name: str) -> None:
    want, x = X.copy(), aj.tensor(X)
    mine, other, handed = x[:2], x.copy(), x.numpy()
    theirs = want[:2]
    for change in (assign, add, twice):
        change(VIEWS[name](want))
        change(VIEWS[name](x))
        np.testing.assert_array_equal(x, want)
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(other, X)
    np.testing.assert_array_equal(handed, X)


def assign(y: Any) -> None:
    y[0] = 50.0


def add(y: Any) -> None:
    y += 1.0


def twice(y: Any) -> None:
    y[...] = y * 2.0
    y[-1] -= 3.0


def test_chained_indices_and_flat() -> None:
    want, x = X.copy(), aj.tensor(X)
    for each in (want, x):
        each[1][2] = -1.0
        each.T[0, 1] = -2.0
        each.flat[::5] += 10.0
        each[2] += 1.0
        for row in each:
            row[-1] = 0.0
    np.testing.assert_array_equal(x, want)


def test_views_of_what_is_gone_are_written_to_alone() -> None:
    a, b = np.split(aj.tensor(np.arange(6.0)), 2)
    a[0] = 9.0
    assert (a.tolist(), b.tolist()) == ([9.0, 1.0, 2.0], [3.0, 4.0, 5.0])


def test_results_that_only_happen_to_share_memory_are_refused() -> None:
    x = aj.tensor(X)
    y = np.broadcast_to(x, (2, 3, 4))
    with pytest.raises(aj.UnsupportedError, match=r"(?s)memory in common with another one \(f64\[3,4\]\).*test_writing.py"):
        y[0] = 1.0
    np.testing.assert_array_equal(x, X)


# ---- derivatives


def filled(p: Any) -> Any:
    x = aj.zeros(3)
    x[0] = p[0] * 2.0
    x[1] = x[0] * p[1]
    y = x * p
    x[2] = 5.0
    x[0] = 1.0
    return aj.sum(y * x)


def recurrence(p: Any) -> Any:
    x = aj.ones(6)
    for k in range(5):
        x[k + 1] = aj.sin(x[k]) * p[k % 3] + x[k]
    return aj.sum(x**2)


def changed_copy(p: Any) -> Any:
    q = p.copy()
    q[0] = q[1] * 3.0
    q[1:] += p[:2]
    q[q > 4.0] = 0.5
    return aj.sum(q * q * p)


def all_replaced(p: Any) -> Any:
    q = p * 2.0
    r = q + 1.0
    q[...] = p * p
    return aj.sum(q * r)


def constant_then_not(p: Any) -> Any:
    c = aj.tensor([1.0, 2.0, 3.0])
    y = p * c
    c[0] = 10.0
    z = p * c
    c[1] = p[0]
    return aj.sum(y * z * c)


def same_twice(p: Any) -> Any:
    q = p + 0.0
    q[0] = q[1]
    q[1] = q[0] * q[2]
    return aj.sum(q**3)


PROGRAMS = [filled, recurrence, changed_copy, all_replaced, constant_then_not, same_twice]
P = np.array([1.2, 0.7, 2.1])


@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_follow_writes(program: Callable[[Any], Any]) -> None:
    steps = 1e-6 * np.eye(3)
    numeric = [(float(program(aj.tensor(P + d))) - float(program(aj.tensor(P - d)))) / 2e-6 for d in steps]
    for _ in range(12):  # tapes seen often have programs of their own
        eager = aj.grad(program)(aj.tensor(P))
    np.testing.assert_allclose(eager, numeric, rtol=1e-7)
    np.testing.assert_allclose(aj.function(aj.grad(program))(P), eager, rtol=1e-12)
    np.testing.assert_allclose(aj.hessian(program)(P), aj.function(aj.hessian(program))(P), rtol=1e-9, atol=1e-12)
    tangent = np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(aj.jvp(program, (P,), (tangent,))[1], eager.numpy() @ tangent, rtol=1e-12)
    with aj.GradientTape(persistent=True) as outer, aj.GradientTape() as tape:
        p = aj.tensor(P)
        outer.watch(p)
        tape.watch(p)
        out = program(p)
    np.testing.assert_allclose(tape.gradient(out, p), eager, rtol=1e-12)
    np.testing.assert_allclose(outer.gradient(out, p), eager, rtol=1e-12)


def test_a_tape_keeps_the_values_that_it_recorded() -> None:
    p, c = aj.tensor(P), aj.tensor([1.0, 2.0, 3.0])
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(p)
        y = p * c
    c[...] = 100.0
    np.testing.assert_array_equal(tape.gradient(y, p), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("which", ["source", "result"])
def test_what_a_tape_needs_is_not_written_to(which: str) -> None:
    p = aj.tensor(P)
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(p)
        y = p * 2.0
    with pytest.raises(aj.GradientError, match=r"(?s)copy: x = x\.copy\(\).*test_writing.py"):
        (p if which == "source" else y)[0] = 1.0
    np.testing.assert_array_equal(tape.gradient(y, p), [2.0, 2.0, 2.0])
    del tape
    p[0] = y[0] = 1.0
    assert float(p[0]) == float(y[0]) == 1.0


def test_arguments_of_transforms_are_not_written_to() -> None:
    def f(p: Any) -> Any:
        p[0] = 1.0
        return aj.sum(p)

    with pytest.raises(aj.GradientError, match="write to a copy"):
        aj.grad(f)(aj.tensor(P))


def test_results_of_custom_derivatives_are_not_written_to() -> None:
    @aj.custom_gradient
    def f(x: Any) -> Any:
        y = aj.exp(x)
        return y, lambda dy: dy * y

    def program(p: Any) -> Any:
        y = f(p)
        y[0] = 0.0
        return aj.sum(y)

    with pytest.raises(aj.GradientError, match="a derivative of its own"):
        aj.grad(program)(aj.tensor(P))


def test_gradients_are_objects_of_their_own() -> None:
    a, b = aj.grad(lambda x, y: aj.sum(x + y), (0, 1))(P, P)
    a[0] = 7.0
    assert b.tolist() == [1.0, 1.0, 1.0]


def test_traced_code_that_is_not_rewritten_says_what_to_write() -> None:
    with pytest.raises(aj.UnsupportedError, match="immutable"):
        aj.function(lambda x: x.__setitem__(0, 1.0))(P)
