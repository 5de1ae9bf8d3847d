"""Methods and functions take positional arguments in NumPy's order; NaN sorts as in NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import UnsupportedError
from tests.tracer.running import same

X = np.array([[1.0, 5.0, 2.0], [4.0, 0.5, 3.0]])
CALLS: list[Callable[[Any], Any]] = [
    lambda x: x.sum(0, np.float32),
    lambda x: np.reshape(x, (3, 2)),
    lambda x: np.reshape(x, -1, "C"),
    lambda x: x.sum(0, None, None, True, 2.0),
    lambda x: x.prod(1, np.float32, None, True),
    lambda x: x.mean(0, np.float32, None, True),
    lambda x: x.var(0, None, None, 1, True),
    lambda x: x.std(1, np.float32, None, 1),
    lambda x: x.max(0, None, True, 3.0),
    lambda x: x.min(1, None, True, 1.0),
    lambda x: x.any(0, None, keepdims=True),
    lambda x: x.all(1, None, keepdims=True),
    lambda x: x.argmax(0, None),
    lambda x: x.argmin(1, None),
    lambda x: x.cumsum(0, np.float32, None),
    lambda x: x.cumprod(1, np.float32, None),
    lambda x: x.trace(1, 0, 1, np.float32, None),
    lambda x: x.take([1, 0], 1, None, "clip"),
    lambda x: x.clip(1, 3, None),
    lambda x: x.round(0, None),
    lambda x: x.dot(x.T, None),
    lambda x: np.sum(x, 0, np.float32, None, True),
    lambda x: np.mean(x, 0, np.float32, None, True),
    lambda x: np.max(x, 0, None, True, 3.0),
    lambda x: np.std(x, 0, None, None, 1, True),
    lambda x: np.argmax(x, 0, None),
    lambda x: np.cumsum(x, 0, np.float32, None),
    lambda x: np.nansum(x, 0, np.float32, None, True),
    lambda x: np.ptp(x, 0, None, True),
]


def text(call: Callable[[Any], Any]) -> str:
    return inspect.getsource(call).strip().removeprefix("lambda x: ").rstrip(",")


@pytest.mark.parametrize("call", CALLS, ids=text)
def test_positional_arguments(call: Callable[[Any], Any]) -> None:
    wanted = np.asarray(call(X))
    for got in (call(aj.tensor(X)), aj.function(call)(X)):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6)
        assert (np.asarray(got).dtype, np.asarray(got).shape) == (wanted.dtype, wanted.shape)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "cumprod"])
def test_functions_of_ours_have_the_same_order(name: str) -> None:
    theirs = [p for p in inspect.signature(getattr(np, name)).parameters if p not in ("a", "where", "initial", "mean", "correction")]
    ours = [p for p in inspect.signature(getattr(aj, name)).parameters if p in theirs]
    assert ours == theirs


def test_nothing_is_written_to_out() -> None:
    with pytest.raises(UnsupportedError, match="assign the result"):
        aj.tensor(X).sum(0, None, np.zeros(3))  # type: ignore[arg-type]


SORTED = [np.array([1.0, 2.0, 2.0, 3.0]), np.array([1.0, 2.0, np.nan, np.nan]), np.array([2.0]), np.array([1, 2, 5])]
WANTED = np.array([np.nan, 0.0, 2.0, 5.0, -np.inf, np.inf, 3.0, 1.5])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("line", SORTED, ids=str)
def test_searchsorted_puts_nan_last(line: np.ndarray[Any, Any], side: Any) -> None:
    def call(a: Any, v: Any) -> Any:
        return np.searchsorted(a, v, side)

    for got in (call(aj.tensor(line), aj.tensor(WANTED)), aj.function(call)(line, WANTED)):
        np.testing.assert_array_equal(got, call(line, WANTED))


@pytest.mark.parametrize("size", [255, 256, 257, 511, 512, 513, 5000])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "u8", "c16"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_of_long_vectors(size: int, dtype: str, side: Any) -> None:
    """Shorter ones are compared with all elements, longer ones bisected: the same positions, with ties, ends and NaN."""
    rng = np.random.default_rng(size)
    line = np.sort(rng.integers(0, size // 2, size)).astype(dtype)
    wanted = np.concatenate([line[:5], line[-5:], rng.integers(0, size, 50).astype(dtype), np.array([0, size], dtype)])
    if dtype[0] in "fc":
        line[-3:] = np.nan
        wanted = np.concatenate([wanted, wanted + 0.5, np.array([np.nan, np.inf, -np.inf, -1], dtype)])
    for v in (wanted, wanted[:8].reshape(2, 4), wanted[3]):
        expected = np.searchsorted(line, v, side)
        found = aj.function(lambda a, v: np.searchsorted(a, v, side))(line, v), np.searchsorted(aj.tensor(line), v, side)
        for got in (*found, aj.vmap(lambda v: aj.searchsorted(line, v, side))(v) if np.ndim(v) else found[0]):
            np.testing.assert_array_equal(np.asarray(got), expected)


def test_searchsorted_of_many_in_many_takes_no_table_of_all_pairs() -> None:
    line = np.arange(300_000.0)
    for found in (aj.searchsorted(line, line), aj.function(aj.searchsorted)(line, line), np.digitize(aj.tensor(line), line) - 1):
        np.testing.assert_array_equal(np.asarray(found), np.arange(300_000))
    np.testing.assert_allclose(np.asarray(aj.function(np.interp)(line + 0.5, line, line**2))[:3], [0.5, 2.5, 6.5])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [SORTED[0], SORTED[0][::-1], SORTED[2], np.array([2.0, 2.0])], ids=str)
def test_digitize_takes_bins_of_either_direction(bins: np.ndarray[Any, Any], right: bool) -> None:
    def call(x: Any, bins: Any) -> Any:
        return np.digitize(x, bins, right)

    for got in (call(aj.tensor(WANTED), aj.tensor(bins)), aj.function(call)(WANTED, bins)):
        np.testing.assert_array_equal(got, call(WANTED, bins))


@pytest.mark.parametrize("function", [np.nanargmax, np.nanargmin], ids=lambda f: f.__name__)
def test_only_nan_has_no_extreme(function: Any) -> None:
    x = np.array([[np.nan, 2.0], [np.nan, -np.inf]])
    for call in (function, lambda x: function(aj.tensor(x)), aj.function(lambda x: function(x))):
        assert int(call(x)) == int(function(x))
        with pytest.raises(ValueError, match="NaN"):
            call(x * np.nan)
    for call in (function, lambda x, axis: function(aj.tensor(x), axis), aj.function(lambda x, axis: function(x, axis), static=["axis"])):
        with pytest.raises(ValueError, match="NaN"):
            call(x, 0)


PLANES = np.array([[3, 255, 0, 1], [7, 7, 1, 2]], np.uint8)
OF_C: dict[str, Callable[[Any], Any]] = {  # functions written in C, whose parameters have no names
    "packbits": lambda x: np.packbits(x, 0, "little"),
    "unpackbits": lambda x: np.unpackbits(x, 1, 3),
    "unravel_index": lambda x: np.unravel_index(x, (16, 16), "F"),
    "ravel_multi_index": lambda x: np.ravel_multi_index((x, x), (256, 256), "raise", "F"),
    "concatenate": lambda x: np.concatenate((x, x), 1),
    "trace of a dtype": lambda x: np.trace(x, 0, 0, 1, "i2"),
    "astype": lambda x: x.astype("f4", "C", "safe", True, True),
    "argsort": lambda x: x.argsort(0, "stable"),
    "var": lambda x: x.astype(float).var(1, where=x > 1, keepdims=True),
    "std": lambda x: np.std(x, 1, "f4", where=x > 1, ddof=1),
    "searchsorted": lambda x: x[0].searchsorted(2, "left", np.array([2, 3, 0, 1])),
    "norm": lambda x: np.linalg.norm(x.astype(float), axis=np.int64(1)),
    "an axis that is an array": lambda x: x.sum(np.array(1)),
    "orders of memory": lambda x: np.add(x, 1, order="F") + np.copy(x, "F"),
}


@pytest.mark.parametrize("name", OF_C)
def test_all_arguments_count(name: str) -> None:
    same(np.asarray(OF_C[name](aj.tensor(PLANES))), np.asarray(OF_C[name](PLANES)), name)
    same(np.asarray(aj.function(OF_C[name])(PLANES)), np.asarray(OF_C[name](PLANES)), name)


def test_casts_follow_the_rule() -> None:
    for f in (lambda x: x.astype("i4", casting="same_kind"), aj.function(lambda x: x.astype("i4", casting="same_kind"))):
        with pytest.raises(TypeError, match="according to the rule 'same_kind'"):
            f(aj.tensor(X))
