"""Shapes that depend on values: a call assumes the sizes of the previous call, and starts again with the actual ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import tf
from adjit.runtime.function import Function

X = np.array([0.3, -1.2, 2.5, 0.7, -0.1])
M = np.outer(X, X)


def trail(x, limit):
    out = []
    while x < limit:
        x = x * 1.5
        out.append(x)
    return out


def stacked(limit):
    a = np.stack(trail(1.0, limit))
    return (a**2).sum(), a[::-1], a.mean(), a.shape[0], len(a)


def masks(x):
    return x[x > 0], (x[x > 0] ** 2).sum(), np.nonzero(x > 0)[0], np.where(x < 0)[0], np.flatnonzero(x), np.argwhere(x > 0)


def masks_of_axes(m):
    return m[m > 0], m[m[:, 0] > 0], m[m[:, 0] > 0, 1], m[:, m[0] > 0], m[..., m[0] > 0], np.compress(m[0] > 0, m, axis=1)


def distinct(x):
    k = x.astype(int)
    return np.unique(k), len(np.unique(k)), *np.unique(k, return_counts=True), np.setdiff1d(k, [1]), np.union1d(k, [7]), np.bincount(k)


def created(x, n):
    constants = np.zeros(n) + x, np.ones((n, 2)), np.full((2, n), x), np.empty(n).shape[0], np.eye(n), np.identity(n)
    return *constants, np.arange(n), np.arange(1, n), np.arange(n, 0, -2), np.linspace(0, 1, n), np.arange(0.0, x, 0.5)


def slices(x, i, j):
    return x[i:j], x[:j].sum(), x[i:], x[-i:], x[:-i], x[i:j].reshape(-1, 1), np.repeat(x, i), np.tile(x, j), np.outer(x, x)[i:j, :j]


def repeated(x, m, k):
    return (
        np.repeat(x, k),
        np.repeat(m[:3], k[:3], axis=0),
        np.repeat(m, k[:1], axis=1),
        np.repeat(x, [k[0], 1, 2, 0, k[1]]).sum(),
        x.repeat(k),
    )


def single_bools(m, a):
    b = a > 0
    return m[b], m[b, 0], m[:, b], m[1, :, b], m[..., b], m[b, [1]], m[True, b], m[np.True_, b], m[b, None, 1:, 0], a[b]


def reshaped(x, n):
    return (np.arange(12.0) * x).reshape(n, -1), np.broadcast_to(x, (n, 2))


def branches(x, k):
    if k > 0:
        y = x[:2] * 2
    else:
        y = x + 1
    z = x[1:] if k > 1 else x[:1]
    return y, y.sum(), z * 2, y.shape[0]


def early_return(x, k):
    if k > 0:
        return x[:2]
    return np.stack([x, x])[0]


def another_argument_fits(x, w):
    return x[x > 0] * w


def asserted(x):
    a = x[x > 0]
    assert a[-1] > 0
    assert a.shape[0] < 5
    return a.min()


def one_after_the_other(x):
    a = x[x > 0]
    b = a[a > a.mean()]
    return b, b.shape[0], a.shape[0]


CASES: dict[Callable[..., Any], list[tuple[Any, ...]]] = {
    stacked: [(10.0,), (20.0,), (20.0,), (1000.0,), (1.2,), (5e4,), (10.0,)],
    masks: [(X,), (-X,), (0 * X,), (X,), (np.abs(X),)],
    masks_of_axes: [(M,), (-M,), (np.outer(X, np.abs(X)),)],
    distinct: [(np.array([3.0, 1.0, 2.0, 3.0]),), (np.array([3.0, 1.0, 1.0, 1.0]),), (np.ones(4),)],
    created: [(2.0, 3), (2.0, 5), (3.0, 4), (1.0, 1), (1.0, 0), (1.0, 7)],
    slices: [(X, 1, 3), (X, 2, 4), (X, 1, 5), (X, 3, 2), (X, 2, 99), (X, 1, 4)],
    repeated: [(X, M, np.array(k)) for k in ([1, 0, 2, 3, 0], [0, 0, 0, 0, 0], [4, 1, 0, 0, 1], [1, 1, 1, 1, 1], [0, 2, 0, 9, 0])],
    single_bools: [(M, np.float64(1)), (M, np.float64(-1)), (-M, np.float64(1))],
    reshaped: [(2.0, 3), (2.0, 4), (2.0, 6)],
    branches: [(X, 1.0), (X, -1.0), (X, 2.0), (X, -1.0)],
    early_return: [(X, 1.0), (X, -1.0), (X, 1.0)],
    another_argument_fits: [(X, np.ones(3)), (-X, np.ones(2)), (np.abs(X), np.ones(5))],
    asserted: [(X,), (-X,), (X,)],
    one_after_the_other: [(X,), (-X,), (np.abs(X),), (X,)],
}


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
def test_results_are_those_of_numpy(fn: Callable[..., Any]) -> None:
    compiled = aj.function(fn, reduce_retracing=True)
    for args in CASES[fn]:
        wanted, got = fn(*args), compiled(*args)
        for a, b in zip(wanted if isinstance(wanted, tuple) else (wanted,), got if isinstance(got, tuple) else (got,), strict=True):
            assert np.shape(a) == np.shape(b)
            np.testing.assert_allclose(b, a, rtol=1e-12)


def test_one_program_serves_all_sizes() -> None:
    largest = aj.function(lambda x: np.sort(x[x > 0])[-1])
    for n in range(2, 9):
        assert largest(np.where(np.arange(10) < n, np.arange(10.0) + 1, -1.0)) == n
    assert largest.trace_count == 2, "one program that finds the first size, one for all sizes"
    assert "bool[B]" in largest.pretty_printed_signature()


def test_gradients() -> None:
    def loss(w, x, y):
        e = x @ w - y
        e = e[np.abs(e) < 1.0]
        return (e**2).mean()

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    compiled = aj.function(aj.value_and_grad(loss))
    for _ in range(4):
        w = rng.normal(size=3)
        value, slope = compiled(w, x, y)
        np.testing.assert_allclose(value, loss(w, x, y))
        np.testing.assert_allclose(slope, aj.grad(loss)(w, x, y), rtol=1e-12)
    of_branch = aj.function(aj.grad(lambda x, k: np.sum((x[:2] if k > 0 else x) ** 3)))
    np.testing.assert_allclose(of_branch(X, 1.0), 3 * X**2 * (np.arange(5) < 2))
    np.testing.assert_allclose(of_branch(X, -1.0), 3 * X**2)
    with aj.GradientTape() as tape:
        x = aj.tensor(X)
        tape.watch(x)
        total = aj.function(lambda x: (x[x > 0] ** 2).sum())(x)
    np.testing.assert_allclose(tape.gradient(total, x), np.where(X > 0, 2 * X, 0.0))
    of_list = aj.function(aj.grad(lambda x, limit: np.sum(np.stack(trail(x, limit)) ** 2)))
    np.testing.assert_allclose(of_list(1.0, 20.0), 2 * sum(1.5 ** (2 * k) for k in range(1, 9)))


def test_variables_change_once() -> None:
    count = aj.Variable(0.0)

    @aj.function
    def step(x):
        count.assign_add(1.0)
        return x[x > 0].sum() * count

    for k in range(1, 5):
        np.testing.assert_allclose(step(X * (-1) ** k), (X * (-1) ** k).clip(0).sum() * k)
        assert count.numpy() == k


def test_a_function_that_prints_cannot_start_again(capsys: pytest.CaptureFixture[str]) -> None:
    @aj.function
    def prints(x):
        print("x is", x[0])
        return x[x > 0].sum()

    with pytest.raises(aj.CheckError, match=r"is 3 here .*return the values to print(.|\n)*x\[x > 0\]"):
        prints(X)
    assert capsys.readouterr().out == "x is 0.3\n"


def test_errors_are_those_of_the_call() -> None:
    product = aj.function(lambda x, w: x[x > 0] * w)
    product(X, np.ones(3))
    with pytest.raises(aj.ShapeError, match=r"shapes \[2\] and \[3\] do not broadcast"):
        product(-X, np.ones(3))
    with pytest.raises(ValueError, match="negative dimensions"):
        aj.function(lambda n: np.zeros(n))(-1)
    repeated = aj.function(np.repeat)
    for counts, message in (
        ([1, -1], "the counts must not be negative"),
        ([1, 2, 3], "has a count for each"),
        ([1.0, 2.0], "must be integers"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            repeated(np.ones(2), np.array(counts))
    np.testing.assert_array_equal(repeated(np.ones(0), np.array([], int)), np.ones(0))
    last = aj.function(lambda x: x[x > 0][4])
    assert last(np.abs(X)) == 0.1
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        last(X)
    assert last(np.abs(X)) == 0.1


@pytest.mark.parametrize(
    "refused",
    [
        lambda: aj.vmap(lambda x: x[x > 0].sum())(M),
        lambda: aj.function(lambda x: x[x > 0]).inspect(X),
        lambda: aj.function(lambda x: x[x > 0]).export("never.so", X),
        lambda: aj.function(lambda x: aj.cond(x[0] > 0, lambda: x[x > 0].sum(), lambda: 0.0))(X),
    ],
)
def test_where_sizes_cannot_be_found(refused: Callable[[], Any]) -> None:
    with pytest.raises(aj.TraceError, match=r"number of elements that a traced mask selects.*extract\(mask, x, size=n\)"):
        refused()


def test_a_branch_in_a_branch_raises_with_a_remedy() -> None:
    @aj.function
    def f(x, k):
        if k > 1:
            y = x[:1]
        elif k > 0:
            y = x[:2]
        else:
            y = x
        return y

    with pytest.raises(aj.TraceError, match="sizes may differ where the statement is not inside another traced one"):
        f(X, 1.0)


def test_arrays_of_branches_are_shared_as_in_python() -> None:
    @aj.function
    def f(x, k):
        whole = x * 1.0
        y = whole[:2] if k > 0 else whole
        y[0] = 9.0
        return whole, y

    with pytest.raises(aj.TraceError, match="this write would also change `whole`"):
        f(X, 1.0)


def test_inspection_shows_the_program_of_the_last_call() -> None:
    f = aj.function(lambda x: x[x > 0].sum())
    f(X)
    assert "bool[B]" in str(f.inspect(X).traced)


def test_methods_and_static_arguments() -> None:
    class Filter:
        def __init__(self, least: float) -> None:
            self.least = least

        @aj.function
        def kept(self, x):
            return x[x > self.least]

    np.testing.assert_array_equal(Filter(0.5).kept(X), X[X > 0.5])
    named = aj.function(lambda x, mode: x[x > 0] if mode == "up" else x[x < 0], static=["mode"])
    for mode in ("up", "down", "up"):
        np.testing.assert_array_equal(named(X, mode), X[X > 0] if mode == "up" else X[X < 0])
        np.testing.assert_array_equal(named(x=-X, mode=mode), -X[X < 0] if mode == "up" else -X[X > 0])


def test_threads_do_not_disturb_each_other() -> None:
    f = aj.function(lambda x: x[x > 0])
    wrong: list[Any] = []

    def calls(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.normal(size=20)
            if not np.array_equal(f(x), x[x > 0]):
                wrong.append(x)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tensor_arrays_that_grow() -> None:
    @tf.function
    def f(x, limit):
        out, i = tf.TensorArray(tf.float32, size=0, dynamic_size=True), 0
        while x < limit:
            x = x * 2.0
            out = out.write(i, x)
            i += 1
        rows = out.stack()
        return tf.reduce_sum(rows * rows), rows + 1.0, tf.shape(rows), rows[::-1], rows

    for limit, wanted in ((10.0, [2.0, 4.0, 8.0, 16.0]), (3.0, [2.0, 4.0]), (40.0, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0])):
        rows = np.array(wanted, "f4")
        total, more, shape, back, same = f(tf.constant(1.0), tf.constant(limit))
        assert total.numpy() == (rows**2).sum()
        assert shape.numpy().tolist() == [len(rows)]
        for got, want in ((more, rows + 1), (back, rows[::-1]), (same, rows)):
            np.testing.assert_array_equal(got.numpy(), want)


def test_functions_with_such_shapes_are_not_saved(tmp_path: Any) -> None:
    class Module(tf.Module):
        @tf.function
        def kept(self, x):
            return x[x > 0]

    module = Module()
    module.kept(tf.constant([1.0, -1.0]))
    with pytest.raises(aj.UnsupportedError, match="kept has shapes that depend on values"):
        tf.saved_model.save(module, str(tmp_path))


def test_shapes_of_tensors_that_branches_decide_on() -> None:
    @tf.function
    def f(x, k):
        if k > 0:
            y = x[:2]
        else:
            y = tf.concat([x, x], 0)
        return tf.reduce_sum(y * y), tf.boolean_mask(y, y > 0), tf.where(y > 0), tf.zeros([k * k]), tf.range(k * k) + 1

    x = tf.constant([1.0, -2.0, 3.0])
    for k in (2, -1, 3):
        total, kept, places, zeros, numbers = f(x, tf.constant(k))
        y = x.numpy()[:2] if k > 0 else np.tile(x.numpy(), 2)
        assert total.numpy() == (y**2).sum()
        np.testing.assert_array_equal(kept.numpy(), y[y > 0])
        np.testing.assert_array_equal(places.numpy(), np.argwhere(y > 0))
        assert zeros.shape == (k * k,)
        assert numbers.numpy().tolist() == list(range(1, k * k + 1))


COUNTED = {
    "tri": lambda n: np.tri(n, n + 1),
    "triu_indices": lambda n: np.stack(np.triu_indices(n, 1)),
    "tril_indices": lambda n: np.stack(np.tril_indices(n, m=n + 1)),
    "diag_indices": lambda n: np.stack(np.diag_indices(n)),
    "indices": lambda n: np.indices((n, 2)),
    "vander": lambda n: np.vander(np.array([1.0, 2.0]), n),
    "logspace": lambda n: np.logspace(0.0, 1.0, n),
    "geomspace": lambda n: np.geomspace(1.0, 8.0, num=n),
    "fftfreq": lambda n: np.fft.fftfreq(n, 1.0 / n),
    "hanning": lambda n: np.hanning(n),
    "leggauss": lambda n: np.polynomial.legendre.leggauss(n)[0],
}


@pytest.mark.parametrize("name", COUNTED)
def test_arrays_that_numpy_makes_of_traced_numbers(name: str) -> None:
    compiled = aj.function(lambda x, n: x * COUNTED[name](n))
    for n in (3, 4, 3):
        np.testing.assert_allclose(compiled(2.0, n), 2.0 * COUNTED[name](n), rtol=1e-14)


def equal_sizes(limit):
    return np.sum(np.stack(trail(1.0, limit)) * np.stack(trail(2.0, 2.0 * limit)))


def neighbouring_sizes(x, limit):
    chosen = x[x < limit]
    return np.sum((chosen[1:] - chosen[:-1]) * x[(x < limit) & (x > 0.0)])


LIMITS = [3.0, 9.0, 4.0, 14.0, 6.0, 11.0, 17.0]


def test_equal_sizes_of_one_call_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = aj.function(equal_sizes)
    for limit in LIMITS[:3]:
        np.testing.assert_allclose(compiled(limit), equal_sizes(limit))
    traced: list[Any] = []
    original = Function._trace
    monkeypatch.setattr(Function, "_trace", lambda self, *args: traced.append(args) or original(self, *args))
    for limit in LIMITS[3:]:
        np.testing.assert_allclose(compiled(limit), equal_sizes(limit))
    assert not traced


def test_sizes_that_depend_on_each_other_are_found_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One trace of a call may fail because it mixes a size of this call with one of another call; later ones do not."""
    x = np.arange(20.0)
    compiled = aj.function(neighbouring_sizes)
    failed: list[Exception] = []
    original = Function._trace

    def trace(self: Function, *args: Any) -> Any:
        try:
            return original(self, *args)
        except aj.ShapeError as error:
            failed.append(error)
            raise

    monkeypatch.setattr(Function, "_trace", trace)
    for limit in LIMITS:
        np.testing.assert_allclose(compiled(x, limit), neighbouring_sizes(x, limit))
    assert 1 <= len(failed) <= 2  # for all sizes, and for those of the call
