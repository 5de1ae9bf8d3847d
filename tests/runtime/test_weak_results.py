"""Results that represent Python numbers: computed from Python numbers alone, they are weakly typed as well, wherever they are used."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.entry.entry import available

W = np.linspace(-1.0, 1.0, 3, dtype=np.float32)


@pytest.fixture(params=["compiled", "eager"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    aj.config.eager = request.param == "eager"
    yield request.param
    aj.config.eager = False


def weak(tree: Any) -> Any:
    return aj.tree_map(lambda x: x.weak, tree)


RESULTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "argument": (lambda k: k, (2.0,), True),
    "constant": (lambda: 1.0, (), True),
    "arithmetic": (lambda k, n: [k + 1, 2.0 * k, n // 2, -n, k**n, k * 1j], (2.0, 3), [True] * 6),
    "integers": (lambda n: n + 1, (3,), True),
    "a size": (lambda x: x.shape[0], (W,), True),
    "a truth value is an array": (lambda k: k > 1.0, (2.0,), False),
    "a function of NumPy gives an array": (lambda k: [np.sin(k), np.add(k, 1.0), np.asarray(k), np.array([k, k])], (2.0,), [False] * 4),
    "adjit's arrays": (lambda k: [aj.array(k), aj.tensor(k), aj.asarray(k)], (2.0,), [False] * 3),
    "a cast names the dtype": (lambda k, n: [aj.array(k).astype(float), np.float64(1.0) * k], (2.0, 3), [False] * 2),
    "an array joins": (lambda k, x: [k * x, x.sum(), k + np.float32(1.0)], (2.0, W), [False] * 3),
    "a loop counts": (lambda n: sum(1 for _ in range(3)) + n, (3,), True),
    "a structure": (lambda k, x: {"t": k + 1, "w": (k * x, k)}, (2.0, W), {"t": True, "w": (False, True)}),
    "another function": (lambda k: aj.function(lambda j: [j + 1, j > 0])(k), (2.0,), [True, False]),
    "a gradient is an array": (lambda k: aj.grad(lambda j: j * j)(k), (2.0,), False),
    "a tangent is an array": (lambda k: aj.jvp(lambda j: j * j, (k,), (1.0,))[1], (2.0,), False),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.usefixtures("mode")
def test_which_results_are_weak(name: str) -> None:
    function, args, expected = RESULTS[name]
    assert weak(aj.function(function)(*args)) == expected


def counted(k: Any, n: int) -> Any:
    while n > 0:
        k, n = k * 0.5, n - 1
    return k, n


def chosen(k: Any) -> Any:
    return k * 2 if k > 0 else k - 1


def last(k: Any, x: Any) -> Any:
    total = 0
    for v in x:
        total, k = total + 1, k if v > 0 else k + 1.0
    return total, k


@pytest.mark.parametrize(("function", "args"), [(counted, (3.0, 4)), (chosen, (3.0,)), (chosen, (-3.0,)), (last, (1.0, W))])
@pytest.mark.usefixtures("mode")
def test_traced_branches_and_loops_keep_numbers(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    out = aj.function(function)(*args)
    np.testing.assert_allclose(np.array(aj.tree_leaves(out)), np.array(aj.tree_leaves(function(*args))))
    assert all(x.weak for x in aj.tree_leaves(out))


@pytest.mark.usefixtures("mode")
def test_a_count_that_goes_round_leaves_the_dtype_of_weights() -> None:
    @aj.function
    def step(t: Any, w: Any) -> Any:
        return t + 1, w - 0.9**t * w

    t, w = 0, W
    for _ in range(40):
        t, w = step(t, w)
    assert (int(t), w.dtype, t.dtype) == (40, np.float32, np.int64)
    assert step.trace_count == (0 if aj.config.eager else 1)


def test_a_result_follows_a_number_without_a_trace() -> None:
    f = aj.function(lambda k, n, z: (k * 2.0, n + 1, z * 1j))
    args: Any = (1.0, 1, 1.0 + 1.0j)
    for _ in range(3):
        f(*args)
        args = f(*args)
    assert f.trace_count == f.cache_size == 1
    for k, other in enumerate((np.float64(1.0), np.int64(1), np.complex128(1.0))):
        f(*args[:k], other, *args[k + 1 :])  # scalars of NumPy are arrays
    assert f.trace_count == 4
    assert f.pretty_printed_signature().startswith("<lambda>(k: float, n: int, z: complex)")


@pytest.mark.skipif(not available(), reason="calls go through Python")
def test_the_native_entry_takes_and_returns_them() -> None:
    f = aj.function(lambda k, n, z, x: ({"k": k + 1.0}, [n + 1, z + 1j], (x * k).sum()))
    state: Any = 1.0, 1, 1j
    for _ in range(60):
        a, b, s = f(*state, W)
        state = a["k"], *b
    assert f.trace_count == 1
    assert f._shortcut.used()
    f._shortcut.used()
    a, b, s = f(*state, W)
    assert f._shortcut.used()
    assert (float(a["k"]), int(b[0]), complex(b[1])) == (62.0, 62, 62j)
    assert (weak((a, b, s)), s.dtype) == (({"k": True}, [True, True], False), np.float32)
    other: Any = aj.function(lambda n: n)
    f(other(1), 1, 1j, W)  # an int where the route wants a float
    assert f.trace_count == 2


@pytest.mark.usefixtures("mode")
def test_next_to_arrays_they_leave_the_dtype() -> None:
    t, n = aj.function(lambda k: (k * 2.0, 3))(2.0)
    x, u = aj.Tensor(W), np.arange(3, dtype=np.uint8)
    for y in (x * t, t * x, W * t, t * W, np.multiply(W, t), x + n, n - W, np.float32(1.0) * t, x**n, x / t):
        assert y.dtype == np.float32
    assert [(u + n).dtype, (n * u).dtype] == [np.uint8] * 2
    np.testing.assert_array_equal((x * t).numpy(), W * np.float32(4.0))
    np.testing.assert_array_equal((t * x).numpy(), W * np.float32(4.0))
    assert weak([t + 1, -t, t * t, n + n, n / 2, t.astype(float), n.astype(int), n.astype(float)]) == [True] * 5 + [False] * 3
    assert [np.asarray(t).dtype, np.sin(t).dtype, (W * t.astype(float)).dtype, (W * aj.array(t)).dtype] == [np.float64] * 4
    assert (float(t), int(n), list(range(n)), f"{t:.1f}") == (4.0, 3, [0, 1, 2], "4.0")
    assert isinstance(t, aj.Tensor)
    assert repr(t) == "Tensor(4., f64[])"


def test_copies_remember() -> None:
    t = aj.function(lambda: 1.5)()
    for other in (pickle.loads(pickle.dumps(t)), copy.copy(t), copy.deepcopy(t), *aj.tree_leaves([t])):
        assert other.weak
        assert float(other) == 1.5
    assert not pickle.loads(pickle.dumps(aj.Tensor(1.5))).weak


def test_a_tape_follows_them() -> None:
    double = aj.function(lambda k: 2.0 * k)
    start = double(1.5)
    with aj.GradientTape() as tape:
        tape.watch(start)
        y = aj.sum(aj.Tensor(W + 1.0) * double(start))
    assert y.dtype == np.float32
    gradient = tape.gradient(y, start)
    assert (float(gradient), gradient.dtype, gradient.weak) == (6.0, np.float64, False)
    loss = aj.function(lambda k, x: aj.sum(x * double(k)))
    for g in (aj.grad(loss)(start, W), aj.function(aj.grad(loss))(start, W), aj.grad(loss)(1.5, W)):
        assert (float(g), g.dtype, g.weak) == (0.0, np.float64, False)


def test_signatures_take_them_for_numbers() -> None:
    t = aj.function(lambda: 1.5)()
    f = aj.function(lambda x: x, input_signature=[aj.TensorSpec((), "f4")])
    assert f(t).dtype == f(1.5).dtype == np.float32
    known = aj.function(lambda n, x: n * x).get_concrete_function(2.0, W)
    assert known(2.0, W).dtype == np.float32


def test_tensorflows_functions_return_arrays() -> None:
    tf = aj.tf
    f = tf.function(lambda: (1.5, 2))
    assert [x.dtype for x in f()] == [tf.float32, tf.int32]
    assert weak(list(f())) == [False, False]
