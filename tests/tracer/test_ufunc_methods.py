"""`reduce`, `accumulate`, `reduceat` and `outer` of every ufunc of two operands, eagerly and traced: the answers and refusals of NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.numpy_table import LATE, NUMPY
from tests.tracer.running import run_traced, same

X = np.array([[3.0, 1.5, 2.0, -5.0], [1.0, 4.0, 1.0, 2.0], [2.0, 2.0, 7.0, 1.0]])
ARRAYS = [X, X.astype(np.int64), X > 1.5, X.astype(np.float32)]
AT = np.array([1, 3, 0, 0])
NAMED = [u for u in vars(np).values() if isinstance(u, np.ufunc) and (u in NUMPY or u.__name__ in LATE)]
BINARY = sorted({u for u in NAMED if u.nin == 2 and u.nout == 1 and u.signature is None}, key=lambda u: u.__name__)
BY_ORDER = {"arctan2", "copysign", "divide", "float_power", "floor_divide", "fmod", "heaviside", "left_shift", "nextafter", "power"} | {
    "remainder", "right_shift", "subtract", "equal", "greater", "greater_equal", "less", "less_equal", "not_equal", "ldexp",
}  # fmt: skip
METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "reduce": lambda u, x: u.reduce(x),
    "reduce the last axis": lambda u, x: u.reduce(x, axis=-1, keepdims=True),
    "accumulate": lambda u, x: u.accumulate(x),
    "accumulate the last axis": lambda u, x: u.accumulate(x, axis=1),
    "reduceat": lambda u, x: u.reduceat(x, [0, 2, 1, 3], axis=1),
    "reduceat of rising indices": lambda u, x: u.reduceat(x, [0, 1, 1], axis=0),
    "outer": lambda u, x: u.outer(x, x[0]),
}


def by_numpy(ufunc: np.ufunc, method: str, x: Any) -> Any:
    """NumPy's result; None if it refuses. Reductions come from `accumulate`: NumPy's own differ with wide vectors (power)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if method.startswith("reduce") and "at" not in method and ufunc.__name__ in BY_ORDER:
                along = 0 if method == "reduce" else 1
                found = ufunc.accumulate(x, axis=along)
                return found[-1] if along == 0 else found[:, -1:]
            return METHODS[method](ufunc, x)
        except (TypeError, ValueError):
            return None


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_methods_are_numpys(ufunc: np.ufunc) -> None:
    for method, call in METHODS.items():
        for x in ARRAYS:
            wanted = by_numpy(ufunc, method, x)
            if wanted is None or wanted.dtype == np.float16:
                continue
            what = f"{ufunc.__name__}, {method}, {x.dtype}"
            same(np.asarray(call(ufunc, aj.tensor(x))), wanted, what, 1e-9)
            same(run_traced(lambda x, c=call: c(ufunc, x), x), wanted, what, 1e-9)


@pytest.mark.parametrize("ufunc", [u for u in BINARY if u.__name__ not in BY_ORDER | {"lcm"}], ids=lambda u: u.__name__)
def test_reduceat_of_traced_indices(ufunc: np.ufunc) -> None:
    f = aj.function(lambda x, at: ufunc.reduceat(x, at, axis=1))
    for x in ARRAYS:
        wanted = by_numpy(ufunc, "reduceat", x)
        if wanted is not None and wanted.dtype != np.float16:
            same(np.asarray(f(x, AT)), ufunc.reduceat(x, AT, axis=1), ufunc.__name__, 1e-9)


def test_traced_indices_of_what_depends_on_order_are_refused() -> None:
    with pytest.raises(aj.UnsupportedError, match=r"(?s)np.subtract.reduceat: the indices must be known.*test_ufunc_methods.py"):
        aj.function(lambda x, at: np.subtract.reduceat(x, at))(X, AT)


def test_indices_out_of_bounds() -> None:
    for call in (lambda x: np.add.reduceat(aj.tensor(x), [0, 7]), aj.function(lambda x: np.add.reduceat(x, [0, 7]))):
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            call(X)
    with pytest.raises(IndexError, match="not in the range"):
        aj.function(lambda x, at: np.add.reduceat(x, at))(X, np.array([0, 7]))


OPTIONS: dict[str, Callable[[Any], Any]] = {
    "where, with an identity": lambda x: np.bitwise_or.reduce(x.astype(int), axis=0, where=x > 1.5),
    "where, with a start": lambda x: np.subtract.reduce(x, axis=0, where=x > 1.5, initial=1.0),
    "where, of logarithms": lambda x: np.logaddexp.reduce(x, axis=1, where=x > 1.5),
    "where, of fmax": lambda x: np.fmax.reduce(x, axis=1, where=x > 1.5, initial=-9.0),
    "all axes": lambda x: np.bitwise_xor.reduce(x.astype(int), axis=None),
    "two axes, kept": lambda x: np.hypot.reduce(x, axis=(0, 1), keepdims=True),
    "nothing": lambda x: np.bitwise_or.reduce(x[:0].astype(int), axis=0),
    "a dtype": lambda x: np.maximum.accumulate(x, dtype=np.float32),
    "a dtype of parts": lambda x: np.add.reduceat(x, [0, 1], dtype=np.float32),
    "no indices": lambda x: np.add.reduceat(x, np.array([], int)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    call = OPTIONS[name]
    same(np.asarray(call(aj.tensor(X))), call(X), name)
    same(np.asarray(aj.function(call)(X)), call(X), name)


@pytest.mark.parametrize("call", [lambda x: np.subtract.reduce(x[:0]), lambda x: np.subtract.reduce(x, axis=(0, 1))])
def test_no_result(call: Callable[[Any], Any]) -> None:
    for f in (call, lambda x: call(aj.tensor(x)), aj.function(call)):
        with pytest.raises(ValueError, match=r"identity|order|reorderable"):
            f(X)


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "add.reduceat": lambda x: np.add.reduceat(x, [0, 2, 1], axis=1),
    "multiply.reduceat": lambda x: np.multiply.reduceat(x, [0, 1]),
    "subtract.accumulate": lambda x: np.subtract.accumulate(x, axis=1),
    "divide.reduce": lambda x: np.divide.reduce(x),
    "hypot.reduce": lambda x: np.hypot.reduce(x, axis=None),
    "logaddexp.accumulate": lambda x: np.logaddexp.accumulate(x),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    def loss(x: Any) -> Any:
        return np.sum(GRADIENTS[name](x) ** 2)

    step, found = 1e-6, aj.function(aj.grad(loss))(X)
    np.testing.assert_allclose(found, aj.grad(loss)(X), rtol=1e-12, atol=1e-12)
    for place in np.ndindex(X.shape):
        moved = np.zeros_like(X)
        moved[place] = step
        np.testing.assert_allclose(np.asarray(found)[place], (loss(X + moved) - loss(X - moved)) / (2 * step), rtol=1e-5, atol=1e-5)
