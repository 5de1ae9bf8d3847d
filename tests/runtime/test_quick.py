"""Fast paths of eager calls: the same bits, tapes, errors and absence of warnings as the general path."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.ops.base import apply
from adjit.ir.silence import silence, silently
from adjit.runtime.quick import BINARY, OPERATORS, REFLECTED, UNARY
from adjit.runtime.quick_arrays import FUNCTIONS
from adjit.runtime.recording import Recorder, listening
from adjit.runtime.tensor import WeakTensor

from .eager_calls import native_calls, python_calls

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 3.7, -2.25, 1e30, -1e30, 1e-40, np.inf, -np.inf, np.nan]
DTYPES = ("f4", "f8")


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.type == expected.type
    assert found.buffer.shape == expected.buffer.shape
    assert np.ascontiguousarray(found.buffer).tobytes() == np.ascontiguousarray(expected.buffer).tobytes()


class Deaf(Recorder):
    """A recorder that is not a tape: calls take the general path."""

    def applied(self, op: Any, args: Any, results: Any) -> None: ...

    def stand_ins(self, args: Any) -> Any:
        return args

    def read(self, variable: Any, value: Any) -> None: ...

    def last_read(self, store: Any) -> Any:
        return None


@contextmanager
def the_general_way() -> Iterator[None]:
    before = listening.recorders
    listening.recorders = (*before, Deaf())
    try:
        yield
    finally:
        listening.recorders = before


@pytest.fixture(autouse=True, params=["python", "native"])
def _way(request: pytest.FixtureRequest) -> Iterator[None]:
    """In Python, as in most programs, and in native code, as in those that make many calls."""
    np.exp(aj.Tensor([1.0]))  # from its second call on, this module is known to be the user's
    with native_calls() if request.param == "native" else python_calls():
        yield


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", UNARY, ids=lambda u: u.__name__)
def test_unary_ufuncs_have_the_bits_of_their_ops(ufunc: np.ufunc, dtype: str) -> None:
    for value in (SPECIAL, [SPECIAL], 0.25):
        x = aj.Tensor(value, dtype)
        same(ufunc(x), apply(UNARY[ufunc], x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_binary_ufuncs_have_the_bits_of_their_ops(ufunc: np.ufunc, dtype: str) -> None:
    grid = np.array(SPECIAL, dtype)
    a, b = (aj.Tensor(x) for x in np.broadcast_arrays(grid[:, None], grid[None, :]))
    whole = apply(BINARY[ufunc], a, b)
    same(ufunc(a, b), whole)
    same(ufunc(aj.Tensor(grid[:, None]), aj.Tensor(grid)), whole)  # broadcasting
    for scalar in (0.1, -3.0, 7, 0, 1 << 24, (1 << 24) + 1, 1e300):
        with np.errstate(over="ignore"):  # 1e300 is no float32 number
            full = aj.Tensor(np.full_like(a.numpy(), scalar))
            same(ufunc(a, scalar), apply(BINARY[ufunc], a, full))
            same(ufunc(scalar, a), apply(BINARY[ufunc], full, a))


@pytest.mark.parametrize("name", [*OPERATORS, *REFLECTED])
def test_operators_are_their_ufuncs(name: str) -> None:
    x = aj.Tensor(SPECIAL, "f4")
    if name in REFLECTED:
        same(getattr(x, name)(0.3), REFLECTED[name](0.3, x))
    else:
        same(getattr(x, name)(x), OPERATORS[name](x, x))
        same(getattr(x, name)(2), OPERATORS[name](x, 2.0))


@pytest.mark.parametrize("n", [-2, 0, 1, 2, 3, 4])
def test_powers(n: int) -> None:
    for dtype in DTYPES:
        x = aj.Tensor(SPECIAL, dtype)
        same(x**n, np.power(x, n))


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "x[1]": lambda x, y: x[1],
    "x[-1, 2]": lambda x, y: x[-1, 2],
    "x[:, None, ::2]": lambda x, y: x[:, None, ::2],
    "x[..., 1]": lambda x, y: x[..., 1],
    "x.T": lambda x, y: x.T,
    "reshape": lambda x, y: np.reshape(x, (2, -1)),
    "x.reshape": lambda x, y: x.reshape(4, 3),
    "sum": lambda x, y: np.sum(x),
    "sum of an axis": lambda x, y: np.sum(x, 1),
    "x.sum(-2)": lambda x, y: x.sum(-2),
    "max": lambda x, y: np.max(x),
    "min": lambda x, y: np.min(x, 0),
    "mean": lambda x, y: np.mean(x),
    "x.mean(1)": lambda x, y: x.mean(1),
    "dot": lambda x, y: np.dot(x, y.T),
    "matmul": lambda x, y: x @ y.T[:, 0],
    "np.matmul": lambda x, y: np.matmul(x[0], y[1]),
    "where": lambda x, y: np.where(x > y, x, y),
    "concatenate": lambda x, y: np.concatenate([x, y], 1),
    "stack": lambda x, y: np.stack((x, y)),
    "sum with keepdims": lambda x, y: x.sum(axis=1, keepdims=True),
    "np.sum with keepdims": lambda x, y: np.sum(x, axis=-1, keepdims=True),
    "max with keepdims": lambda x, y: np.max(x, keepdims=True),
    "mean with keepdims": lambda x, y: np.mean(x, axis=0, keepdims=True),
    "broadcasting": lambda x, y: x * y[0] + x[:, 1:2] / y,
    "reshape to one axis": lambda x, y: x.reshape(-1),
    "x[None]": lambda x, y: x[None, 1],
    "x[::-1]": lambda x, y: x[::-1, -3:],
}


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c16"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_agree_with_the_general_way(name: str, dtype: str) -> None:
    call = CALLS[name]
    rng = np.random.default_rng(0)
    x, y = (aj.Tensor((5 * rng.standard_normal((3, 4))).astype(dtype)) for _ in range(2))
    if dtype == "c16" and name in ("max", "min", "where"):
        return
    with the_general_way():
        expected = call(x, y)
    same(call(x, y), expected)
    with aj.GradientTape():
        same(call(x, y), expected)
    with aj.GradientTape() as tape:
        if x.type.is_inexact:
            tape.watch(x)
        same(call(x, y), expected)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("argument", [0, 1])
def test_tapes_record_what_the_general_way_does(name: str, dtype: str, argument: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [(5 * rng.standard_normal((3, 4))).astype(dtype) for _ in range(2)]

    def gradient() -> Any:
        args: list[Any] = list(arrays)
        args[argument] = source = aj.Tensor(arrays[argument])
        other = args[1 - argument] = aj.Tensor(arrays[1 - argument])
        with aj.GradientTape(persistent=True) as tape:
            tape.watch(source)
            out = CALLS[name](*args)
        ops = [stmt.op for stmt in tape.record.statements()]
        return ops, tape.gradient(out, source), tape.gradient(out, other), tape.explain(out, source)

    found = gradient()
    with the_general_way():
        expected = gradient()
    assert found[0] == expected[0]
    assert found[2] is expected[2] is None
    assert found[3] == expected[3]
    if expected[1] is None:
        assert found[1] is None
    else:
        same(found[1], expected[1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("name", CALLS)
def test_dead_ends_take_the_general_way(name: str, dtype: str) -> None:
    """A value that depends on a watched one without a derivative: calls with it have the same result, and the tape can explain it."""
    rng = np.random.default_rng(0)
    array = 5 * rng.standard_normal((3, 4))

    def result() -> Any:
        source = aj.Tensor(array)
        with aj.GradientTape(persistent=True) as tape:
            tape.watch(source)
            dead = np.floor(source).astype(dtype)
            out = CALLS[name](dead, dead)
            with tape.stop_recording():
                out_of_sight = CALLS[name](dead, dead)
        same(out, out_of_sight)
        return out, tape.gradient(out, source) if out.type.is_inexact else None, tape.explain(out, source)

    out, gradient, explanation = result()
    with the_general_way():
        expected = result()
    same(out, expected[0])
    assert gradient is expected[1] is None
    assert explanation == expected[2]


WRONG: dict[str, Callable[[Any], Any]] = {
    "shapes": lambda x: x + aj.Tensor([1.0, 2.0]),
    "product": lambda x: x @ aj.Tensor([1.0, 2.0]),
    "index": lambda x: x[7],
    "rank": lambda x: x[0, 0],
    "reshape": lambda x: np.reshape(x, (2, 2)),
    "axis": lambda x: np.sum(x, 3),
    "join": lambda x: np.concatenate([x, aj.Tensor([[1.0]])]),
    "stack": lambda x: np.stack([x, aj.Tensor([1.0])]),
    "integer": lambda x: aj.Tensor([1], "i1") + 1000,
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_those_of_the_general_way(name: str) -> None:
    x = aj.Tensor([1.0, 2.0, 3.0])
    with the_general_way(), pytest.raises(aj.AdjitError) as expected:
        WRONG[name](x)
    with pytest.raises(aj.AdjitError) as found:
        WRONG[name](x)
    with aj.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(aj.AdjitError) as recorded:
            WRONG[name](x)
    for each in (found, recorded):
        assert (type(each.value), str(each.value)) == (type(expected.value), str(expected.value))


def test_gradients_through_every_quick_op() -> None:
    def f(x: Any, y: Any) -> Any:
        z = np.tanh(x * y + 2.0) - 1.5 / np.exp(-x) + abs(x) ** 3 + np.maximum(x, y) * np.sqrt(y) - (-y)
        return np.sum(z @ z.T + (3 - z) @ np.minimum(x, 0.5).T)

    x, y = (np.random.default_rng(k).uniform(0.5, 1.5, (3, 3)) for k in range(2))
    step = 1e-6
    found = aj.grad(f, argnums=(0, 1))(x, y)
    compiled = aj.function(aj.grad(f, argnums=(0, 1)))(x, y)
    for gradient, native, k in zip(found, compiled, range(2), strict=True):
        np.testing.assert_allclose(gradient, native, rtol=1e-12)
        for i in np.ndindex(3, 3):
            d = np.zeros((3, 3))
            d[i] = step
            moved = [f(*(aj.Tensor(v + s * d) if j == k else aj.Tensor(v) for j, v in enumerate((x, y)))) for s in (1, -1)]
            assert float(gradient[i]) == pytest.approx(float(moved[0] - moved[1]) / (2 * step), rel=1e-6)


def test_no_warnings_and_the_users_settings_stay() -> None:
    zero = aj.Tensor([0.0, -1.0])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert np.isposinf((1.0 / zero).numpy()[0])
        assert np.isnan(np.sqrt(zero).numpy()[1])
        with pytest.raises(FloatingPointError):
            np.divide(1.0, np.zeros(1))


def test_weak_numbers_stay_weak() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(type(x * 2.0))
        return np.sum(aj.Tensor([1.0], "f4") * x)

    gradient = aj.grad(f)(3.0)
    assert seen == [WeakTensor]
    assert gradient.dtype == np.float64


def test_every_thread_has_its_own_silence() -> None:
    out: list[Any] = []
    thread = threading.Thread(target=lambda: out.append(1.0 / aj.Tensor([0.0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread.start()
        thread.join()
    assert np.isposinf(out[0].numpy()[0])


def test_a_finalizer_may_compute_in_the_middle_of_a_call() -> None:
    """The context of a silent call cannot be entered again."""
    x = aj.Tensor([0.0])
    assert np.isposinf(silence.run(lambda: 1.0 / x).numpy()[0])
    assert np.isposinf(silence.run(lambda: silently(np.divide, np.ones(1), np.zeros(1)))[0])
    assert float(silence.run(lambda: np.sum(x + x))) == 0.0


def test_libraries_still_get_arrays() -> None:
    pytest.importorskip("scipy")  # if no library is loaded, nobody but the user calls
    x = aj.Tensor([1.0, 4.0])
    scope: dict[str, Any] = {"__name__": "scipy.made_up", "np": np, "x": x}
    for function in ("np.sqrt(x)", "np.add(x, x)", *(f"np.{f.__name__}(x)" for f in FUNCTIONS if f in (np.sum, np.mean))):
        assert not isinstance(eval(function, scope), aj.Tensor)


@pytest.mark.parametrize(
    "key",
    [lambda i: i, lambda i: slice(i, i + 2), lambda i: (slice(None), i), lambda i: (slice(0, 2), slice(i, i + 1)), lambda i: (..., i)],
    ids=["index", "slice", "column", "block", "last"],
)
def test_traced_keys_of_tensors_from_outside(key: Any) -> None:
    """A compiled function indexes a tensor that is not traced at a place that is."""
    table = aj.tensor(np.arange(12.0).reshape(4, 3))
    compiled = aj.function(lambda i: table[key(i)])
    for i in range(2):
        np.testing.assert_array_equal(compiled(i), table.numpy()[key(i)])
