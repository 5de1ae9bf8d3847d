"""Unusual arrays, wherever they enter: right results, or an error that says what to do. No information is lost silently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn

X = aj.tensor([1.0, 2.0, 3.0])


class Units(np.ndarray[Any, Any]):
    """Redefines arithmetic, as arrays with units do."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*(np.asarray(x) for x in inputs), **kwargs).view(Units)


REFUSED = {
    "masked": (np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]), r"lose its mask; pass .filled\(value\)"),
    "matrix": (np.ones((1, 3)).view(np.matrix), r"pass np.asarray\(m\), and use @"),
    "subclass": (np.ones(3).view(Units), r"Units is a subclass of np.ndarray with its own arithmetic"),
}

# every way to pass an array
ENTRANCES: dict[str, Callable[[Any], Any]] = {
    "argument": lambda a: aj.function(lambda x: x * 2.0)(a),
    "keyword": lambda a: aj.function(lambda x: x * 2.0)(x=a),
    "structure": lambda a: aj.function(lambda x: x["a"][0] * 2.0)({"a": [a]}),
    "closed over": lambda a: aj.function(lambda x: x * a)(X),
    "NumPy function while tracing": lambda a: aj.function(lambda x: np.add(x, a))(X),
    "tensor": aj.tensor,
    "list": lambda a: aj.tensor([a, a]),
    "nested list": lambda a: aj.tensor([[a], [a]]),
    "asarray": aj.asarray,
    "variable": aj.Variable,
    "assign": lambda a: aj.Variable([1.0, 2.0, 3.0]).assign(a),
    "assign_add": lambda a: aj.Variable([1.0, 2.0, 3.0]).assign_add(a),
    "operator": lambda a: X * a,
    "NumPy function": lambda a: np.add(X, a),
    "where": lambda a: np.where(X > 0.0, X, a),
    "stack": lambda a: np.stack([X, a]),
    "our function": aj.exp,
    "jvp": lambda a: aj.jvp(lambda x: x * 2.0, (X,), (a,)),
    "at": lambda a: X.at[0:3].set(a),
    "scan": lambda a: aj.scan(lambda c, x: (c + x, c), 0.0, a),
    "layer": lambda a: nn.Flatten()(a.reshape(1, -1)),
    "set_weights": lambda a: nn_layer().set_weights([a, a]),
}


def nn_layer() -> nn.Dense:
    layer = nn.Dense(1)
    layer(np.ones((1, 3), np.float32))
    return layer


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("name", REFUSED)
def test_refused_everywhere(name: str, entrance: str) -> None:
    array, reason = REFUSED[name]
    with pytest.raises(aj.DTypeError, match=reason):
        ENTRANCES[entrance](array)


def test_the_masked_constant_is_not_a_number() -> None:
    for enter in (aj.tensor, lambda a: X + a, lambda a: aj.tensor([1.0, a]), lambda a: aj.function(lambda x: x * 2.0)(a)):
        with pytest.raises(aj.DTypeError, match="lose its mask"):
            enter(np.ma.masked)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_training_and_files(name: str, tmp_path: Path) -> None:
    array, reason = REFUSED[name]
    rows = array.reshape(-1, 1)
    trainer = nn.Trainer(nn.Sequential([nn.Dense(1)]), "mse", nn.optimizers.SGD(0.1))
    with pytest.raises(aj.DTypeError, match=reason):
        trainer.fit(np.ones((len(rows), 2), np.float32), rows, epochs=1, verbose=0)
    with pytest.raises(aj.DTypeError, match=reason):
        nn.write_arrays(tmp_path / "m", {"a": array})
    with pytest.raises(aj.GradientError, match=reason):
        aj.grad(lambda x: aj.sum(x * x))(array)


def unaligned(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(values.dtype)


def read_only(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values.flags.writeable = False
    return values


RIGHT: dict[str, Callable[[], np.ndarray[Any, Any]]] = {
    "reversed": lambda: np.arange(6.0)[::-1],
    "every second": lambda: np.arange(6.0)[::2],
    "columns": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "stride of zero": lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
    "one element everywhere": lambda: np.broadcast_to(2.0, (4,)),
    "unaligned": lambda: unaligned(np.arange(5.0)),
    "read-only": lambda: read_only(np.arange(4.0)),
    "overlapping windows": lambda: np.lib.stride_tricks.sliding_window_view(np.arange(5.0), 3),
    "a field": lambda: np.ones(3, [("a", "f8"), ("b", "i4")])["a"],
    "bytes as booleans": lambda: np.array([0, 1, 2, 255], np.uint8).view(bool),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_in_any_layout(name: str) -> None:
    array = RIGHT[name]()
    before = array.copy()
    double = aj.function(lambda x: x * 2.0 + x.astype(np.float64))
    wanted = array * 2.0 + array.astype(np.float64)
    for value in (double(array), double(array), aj.function(lambda: aj.tensor(array) * 2.0 + array)(), aj.tensor(array) * 2.0 + array):
        np.testing.assert_array_equal(value, wanted)
    np.testing.assert_array_equal(array, before)


def test_memory_maps_are_plain_arrays(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "x", np.float64, "w+", shape=(3,))
    np.testing.assert_array_equal(aj.function(lambda x: x + 1.0)(mapped), np.ones(3))
    np.testing.assert_array_equal(aj.tensor(mapped) + 1.0, np.ones(3))


def test_arrays_too_large_for_the_machine() -> None:
    huge = np.broadcast_to(1.0, (1 << 45,))
    for enter in (aj.function(lambda x: x * 2.0), aj.tensor):
        with pytest.raises(MemoryError):
            enter(huge)
