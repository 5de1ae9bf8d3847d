"""Bad input, eagerly and while tracing: an error with the op, a remedy and the user's line, after which the next call works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

X = np.ones((3, 4))
SMALL = np.array([1, 2, 3], "u1")

# text in the message -> the program, its arguments
BAD: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul: inner sizes differ: f64[3,4] @ f64[5] (4 != 5)": (lambda x, y: x @ y, (X, np.ones(5))),
    "add: shapes [3, 4] and [5] do not broadcast": (lambda x, y: x + y, (X, np.ones(5))),
    "nan is not an index": (lambda x: x[np.nan], (X,)),
    "indices must be integers": (lambda x, i: x[i], (X, np.array([0.0, np.nan]))),
    "index 7 is out of bounds for axis 0": (lambda x, i: x[i], (X, np.array([7]))),
    "Python objects cannot be stored in a tensor: array([<object": (lambda x: x * np.array([object()] * 4), (X,)),
    "a ragged sequence is not a tensor: [[1.0], [2.0, 3.0]]; pad": (lambda x: x * [[1.0], [2.0, 3.0]], (X,)),
    "a ragged sequence is not a tensor: [[1.0], [2.0, 4.0]]; pad": (lambda x: aj.asarray([[1.0], [2.0, 4.0]]), (X,)),
    "stack: all arrays must have the same shape": (lambda x: aj.stack([x, x[0]]), (X,)),
    "full: f64[1099511627776,1099511627776] is too large": (lambda x: aj.zeros((2**40, 2**40)), (X,)),
    "broadcast_to: shapes [] and [8589934592, 8589934592]": (lambda x: aj.broadcast_to(x[0, 0], (2**33, 2**33)), (X,)),
    "mul: shapes [8589934592, 1] and [8589934592]": (
        lambda x: aj.broadcast_to(x[0, 0], (2**33, 1)) * aj.broadcast_to(x[0, 0], (2**33,)),
        (X,),
    ),
    "pad: f64[4611686018427387908] is too large": (lambda x: aj.pad(x[0], (2**62, 0)), (X,)),
    "broadcast_to: f64[3,4] does not broadcast to [4]": (lambda x: aj.broadcast_to(x, (4,)), (X,)),
    "bitwise_and: f64 operands are not supported; it takes integers": (lambda x: x & 1, (X,)),
    "the Python integer 300 is out of bounds for u8": (lambda x: x + 300, (SMALL,)),
    "sum: axis 5 is out of range for rank 2": (lambda x: aj.sum(x, axis=5), (X,)),
    "slice step cannot be zero": (lambda x: x[::0], (X,)),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_raises_and_leaves_the_next_call_clean(message: str) -> None:
    program, args = BAD[message]
    with pytest.raises(aj.AdjitError) as eager:
        program(*map(aj.tensor, args))
    assert message in str(eager.value)
    compiled = aj.function(program)
    with pytest.raises(aj.AdjitError) as traced:
        compiled(*args)
    assert message.split(": ")[-1] in str(traced.value)
    assert traced.value.location is not None
    assert traced.value.location.file == __file__
    assert "test_bad_input.py" in str(traced.value)
    np.testing.assert_array_equal(aj.function(lambda x: x + 1.0)(X), X + 1.0)


@pytest.mark.parametrize("dtype", [object, np.clongdouble, "U1", "M8[D]", ">f8"])
def test_arguments_of_other_dtypes_are_named(dtype: Any) -> None:
    double = aj.function(lambda x: x * 2)
    with pytest.raises(aj.DTypeError, match="argument 0"):
        double(np.zeros(3).astype(np.int64).astype(dtype))
    np.testing.assert_array_equal(double(X), X * 2)


@pytest.mark.parametrize("give", [lambda x: (v for v in x), lambda x: zip(x, x), lambda x: map(abs, x), lambda x: iter([x])])
def test_iterators_are_not_results(give: Any) -> None:
    with pytest.raises(aj.TraceError, match="return a list of its items"):
        aj.function(give)(X)


def test_variables_are_not_written_by_index() -> None:
    v = aj.Variable([1.0, 2.0])

    def f(x: Any) -> Any:
        w = v
        w[0] = x
        return w

    for call in (f, aj.function(f)):
        with pytest.raises(aj.UnsupportedError, match=r"use variable.assign\(variable.at\[index\].set\(value\)\)"):
            call(1.0)


def test_keys_of_dicts_are_named() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            return {"a": x}
        return {"b": x}

    with pytest.raises(aj.TraceError, match=r"a dict of 1 \('a'\) in the `if` branch.*a dict of 1 \('b'\) in the `else` branch"):
        aj.function(f)(1.0)


def test_traced_sizes_raise_once_with_a_remedy() -> None:
    with pytest.raises(aj.TraceError, match="the length of a slice follows from traced bounds") as caught:
        aj.vmap(lambda n: aj.tensor(X)[:n])(np.array([1, 2]))
    assert str(caught.value).count("\n") == 1, "the user's line, once"


def test_leaked_values_raise_whatever_is_done_with_them() -> None:
    kept = []

    @aj.function
    def leaky(x: Any) -> Any:
        kept.append(x)
        return x

    leaky(X)
    for use in (bool, float, int, np.asarray, np.sin, lambda x: x + 1, lambda x: x.numpy()):
        with pytest.raises(aj.TraceError, match="was used outside of the trace of leaky"):
            use(kept[0])


class Opaque:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_functions_that_only_numpy_has_are_refused_while_tracing() -> None:
    with pytest.raises(aj.AdjitError, match=r"np\.array2string is not supported"):
        aj.function(lambda x: np.array2string(x))(X)


def test_results_that_hide_traced_values_are_refused() -> None:
    with pytest.raises(aj.TraceError, match="register_pytree_node"):
        aj.function(lambda x: Opaque(x))(X)
    kept = Opaque("a string")
    assert aj.function(lambda x: kept)(X) is kept


def test_scalars_are_not_iterable() -> None:
    with pytest.raises(TypeError, match="0-dimensional"):
        list(aj.tensor(1.0))
    with pytest.raises(aj.TraceError, match=r"0-dimensional value \(f64"):
        aj.function(lambda x: list(x))(np.array(1.0))
