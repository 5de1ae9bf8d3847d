"""Errors name the requested operation, the user's own line, and what to do instead."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adjit.ir.errors import AdjitError, DTypeError, ShapeError, TraceError, UnsupportedError
from tests.tracer.running import Eager, trace

X = np.arange(3.0)
M = np.ones((3, 4))


def refused(fn: Callable[..., Any], *args: Any) -> AdjitError:
    """The error of tracing a lambda, which must carry the lambda's own line."""
    with pytest.raises(AdjitError) as caught:
        trace(fn, *(args or (X,)))
    location = caught.value.location
    assert location is not None
    assert (location.file, location.line) == (__file__, fn.__code__.co_firstlineno)
    assert "test_errors.py" in str(caught.value)
    return caught.value


CONCRETE: dict[str, Callable[[Any], Any]] = {
    "np.where": lambda x: 1.0 if x[0] > 0 else 2.0,
    ".astype(int)": lambda x: int(x[0]),
    ".astype(float)": lambda x: math.sin(x[0]),
    "sizes are static": lambda x: list(range(x[0].astype(int))),
    "np.stack": lambda x: np.array([x[0], x[1]]),
    "call .numpy()": lambda x: x.numpy(),
    "call .item()": lambda x: x[0].item(),
    "call .tolist()": lambda x: x.tolist(),
    "format the result": lambda x: f"{x[0]:.3f}",
    "keep it traced": lambda x: complex(x[0]),
}


@pytest.mark.parametrize("advice", CONCRETE)
def test_needing_a_value_raises_with_a_remedy(advice: str) -> None:
    error = refused(CONCRETE[advice])
    assert isinstance(error, TraceError)
    assert isinstance(error, TypeError)
    assert "not known while tracing" in str(error)
    assert advice in str(error)


def test_sequences_are_not_repeated_by_traced_numbers() -> None:
    """An array of no axes is a factor, as in NumPy; a Python number repeats a list."""
    assert "how often it repeats a list is not known while tracing" in str(refused(lambda n: [0.0] * n, 3))
    assert "how often it repeats a tuple is not known while tracing" in str(refused(lambda n: (n + 1) * (1.0, 2.0), 3))
    assert trace(lambda n: n * [1.0, 2.0], np.array(3)).func.results[0].type.shape == (2,)


UNSUPPORTED: dict[str, tuple[Callable[..., Any], str]] = {
    "np.put": (lambda x: np.put(x, 0, 1.0), "x.at[index].set"),
    "np.add": (lambda x: np.add.at(x, 0, 1.0), "x.at[index]"),
    "np.sum": (lambda x: np.sum(x, out=np.zeros(())), "assign the result instead"),
    "np.exp": (lambda x: np.exp(x, where=x > 0), "where="),
    "np.multiply": (lambda x: np.multiply(x, 2.0, out=np.zeros(3)), "write x = x + y"),
    "pad": (lambda x: np.pad(x, 1, mode="linear_ramp"), "edge, reflect"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_missing_names_are_named(name: str) -> None:
    fn, advice = UNSUPPORTED[name]
    error = refused(fn)
    assert isinstance(error, UnsupportedError)
    assert isinstance(error, NotImplementedError)
    assert str(error).startswith(name)
    assert advice in str(error)


def test_arrays_are_immutable() -> None:
    def assign(x: Any) -> Any:
        x[0] = 1.0

    def delete(x: Any) -> Any:
        del x[0]

    def add(x: Any) -> Any:
        total = np.zeros(3)
        total += x

    for fn, advice in ((assign, "x = x.at[index].set(value)"), (delete, "immutable"), (add, "write x = x + y")):
        with pytest.raises(UnsupportedError) as caught:
            trace(fn, X)
        assert advice in str(caught.value)
        assert caught.value.location is not None
        assert caught.value.location.function == fn.__name__
    for method in ("fill", "put", "sort"):
        with pytest.raises(UnsupportedError, match="immutable"):
            getattr(Eager(X), method)(*([1.0, 1.0][: {"fill": 1, "put": 2, "sort": 0}[method]]))


SHAPES: dict[str, Callable[..., Any]] = {
    "add: shapes [3] and [3, 4] do not broadcast": lambda x, m: x + m,
    "matmul: ": lambda x, m: m @ x,
    "reshape: [3] (3 elements)": lambda x, m: x.reshape(2, 2),
    "stack: all arrays must have the same shape": lambda x, m: np.stack([x, m]),
    "split: axis 0": lambda x, m: np.split(x, 2),
    "squeeze: axis 0": lambda x, m: np.squeeze(x, axis=0),
    "sum: axis 1 is out of range": lambda x, m: np.sum(x, axis=1),
    "tensordot: ": lambda x, m: np.tensordot(x, m.T, 1),
    "cross: takes vectors of three": lambda x, m: np.cross(m, m),
    "norm: takes one axis": lambda x, m: np.linalg.norm(m[None], 1, axis=(0, 1, 2)),
    "max: where= needs initial=": lambda x, m: np.max(x, where=x > 0),
    "moveaxis: ": lambda x, m: np.moveaxis(m, (0, 1), 0),
}


@pytest.mark.parametrize("message", SHAPES)
def test_shapes_that_do_not_fit(message: str) -> None:
    error = refused(SHAPES[message], X, M)
    assert isinstance(error, ShapeError)
    assert str(error).startswith(message)


def test_dtypes_that_do_not_fit() -> None:
    assert isinstance(refused(lambda x: x + np.array([1j], np.clongdouble)), DTypeError)
    assert isinstance(refused(lambda x: x.astype("clongdouble")), DTypeError)
    assert isinstance(refused(lambda x: np.concatenate([x, np.array([None])])), DTypeError)


def test_repr_and_format_are_readable() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        y = x * 2.0
        seen.extend([repr(y), f"{y}", str(y), np.array_repr(y)])
        return y

    trace(f, X)
    line = f.__code__.co_firstlineno + 1
    assert seen == [f"<traced f64[3] %y at test_errors.py:{line}>"] * 4


def test_copies_are_values_of_their_own() -> None:
    def f(x: Any) -> Any:
        copies = [copy.copy(x), copy.deepcopy(x), x.copy(), np.copy(x), x.astype(x.dtype), x.flatten()]
        assert all(c.type == x.type and c is not x for c in copies)
        assert copy.copy(x[0]).type == x[0].type
        return x

    trace(f, X)
