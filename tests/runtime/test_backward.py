"""Backward programs of eager tapes: when they are written and shared; only the time differs from pulling back op by op."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.types import DTYPES
from adjit.runtime import backward, log
from tests.ops.cases import Case
from tests.ops.cases_collective import CASES as COLLECTIVE
from tests.ops.test_rows import ROWS

DIFFERENTIABLE = [row for row in ROWS if any(row.differentiable(row.draw(DTYPES[dtype])) for dtype in row.dtypes)]


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward, "_programs", {})
    monkeypatch.setattr(backward, "_seen", {})


@contextmanager
def after(often: int) -> Iterator[None]:
    """Programs are written for structures that were seen this often."""
    before = backward.OFTEN
    backward.OFTEN = often
    try:
        yield
    finally:
        backward.OFTEN = before


NEVER = 1 << 60


def written() -> list[backward.BackwardProgram]:
    return [program for program in backward._programs.values() if program is not None]


def same(found: Any, expected: Any) -> None:
    if expected is None:
        assert found is None
        return
    assert type(found) is type(expected)
    assert found.type == expected.type
    if found.type.is_complex:  # a product by 1, which is left out, changes signs of zeros
        np.testing.assert_array_equal(found, expected)
        return
    assert np.ascontiguousarray(found.buffer).tobytes() == np.ascontiguousarray(expected.buffer).tobytes()


def both_ways(compute: Callable[[], Any]) -> Any:
    """The result, which is the same op by op and by a program."""
    with after(NEVER):
        expected = compute()
    with after(1):
        found = compute()
    for each, wanted in zip(*((x if isinstance(x, list | tuple) else [x]) for x in (found, expected)), strict=True):
        same(each, wanted)
    return found


# ---- the same bits


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=repr)
def test_programs_give_the_bits_of_the_rules(case: Case) -> None:
    for dtype in case.dtypes:
        args = case.draw(DTYPES[dtype])
        wrt = case.differentiable(args)
        if not wrt:
            continue
        with after(NEVER):
            expected = row_gradients(case, args, wrt)
        with after(1):
            found = row_gradients(case, args, wrt)
        assert written() or case in COLLECTIVE  # which have no Python source
        for each, wanted in zip(found, expected, strict=True):
            same(each, wanted)


def row_gradients(case: Case, args: list[Any], wrt: list[int]) -> Any:
    rng = np.random.default_rng(2)
    xs = [aj.tensor(a) for a in args]
    with aj.GradientTape() as tape:
        tape.watch([xs[i] for i in wrt])
        out = case.call(*xs)
    targets = [r for r in (out if isinstance(out, tuple | list) else [out]) if r.type.is_inexact]
    weights = [np.asarray(rng.normal(size=t.shape)).astype(t.dtype) for t in targets]
    return tape.gradient(targets, [xs[i] for i in wrt], output_gradients=weights)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "constants": lambda x: np.sum(np.ones(4) * x + x / np.arange(1.0, 5.0) - np.full(4, 2.0) / x),
    "numbers": lambda x: np.sum(2.0 * x + 1 - (3.0 - x) / 0.3 + 0.7 / x),
    "number zero": lambda x: np.sum(np.maximum(x, 0) + np.minimum(x, 1.5)),
    "broadcasting": lambda x: np.sum(np.reshape(x, (4, 1)) * x + np.ones((2, 1, 4)) * x),
    "products": lambda x: np.dot(np.dot(np.ones((4, 4)), x), x) + np.sum(x @ np.eye(4)) + np.sum(np.eye(4) @ x),
    "indices": lambda x: x[0] * x[-1] + np.sum(x[1:3] * x[::2]) + np.sum(x[None, :].T[:, 0]),
    "reductions": lambda x: np.mean(x) + np.max(x) - np.min(x) + np.sum(np.sum(np.reshape(x, (2, 2)), axis=1, keepdims=True) * x[:2]),
    "where": lambda x: np.sum(np.where(x > 1.0, np.sqrt(x), x**3)),
    "masked": lambda x: np.sum(np.where(x > 9.0, np.log(x - 9.0), 0.0)),
    "joined": lambda x: np.sum(np.concatenate([x, np.tanh(x), x]) * np.arange(12.0)) + np.sum(np.stack([x, x]) ** 2),
    "used twice": lambda x: np.sum((y := np.exp(x)) * y + y),
    "not used": lambda x: (x * 3.0, np.sum(x))[1],
    "the argument itself": lambda x: x[0] + 0.0,
    "powers": lambda x: np.sum(x**2 + x**3 + x**0.5 + x**-1 + 2.0**x),
    "abs": lambda x: np.sum(abs(-x)),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_functions(name: str, dtype: str) -> None:
    x = np.array([0.5, 1.25, 2.0, 0.75], dtype)
    found = both_ways(lambda: aj.grad(PROGRAMS[name])(x))
    assert written()
    compiled = aj.function(aj.grad(PROGRAMS[name]))(x)
    np.testing.assert_allclose(found, compiled, rtol=3e-5 if dtype == "f4" else 1e-12)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(PROGRAMS[name](aj.Tensor(x)).numpy(), PROGRAMS[name](x))


def test_numbers_of_python() -> None:
    both_ways(lambda: aj.grad(lambda x, y: x * y + np.sin(x) / y, argnums=(0, 1))(3.0, 2.0))
    assert written()


# ---- which programs are written, and when


def test_a_program_is_written_when_a_structure_was_seen_often() -> None:
    f = aj.grad(lambda x: np.sum(np.sin(x) * x))
    for k in range(backward.OFTEN):
        assert len(written()) == 0
        f(np.arange(3.0) + k)
    (program,) = written()
    assert "np.cos" in program.text
    f(np.arange(3.0))
    assert len(written()) == 1


def test_numbers_that_change_share_a_program() -> None:
    with after(2):
        for k in range(20):
            x = np.array([0.3, 0.7]) + k
            found = aj.grad(lambda x, k=k: np.sum(x * (0.1 * k) + (k + 1.0) / x))(x)
            np.testing.assert_allclose(found, 0.1 * k - (k + 1.0) / x**2)
    assert len(written()) == 1


@pytest.mark.parametrize("pair", [(0.0, -0.0), (0.0, 1.0), (1, 1.0)])
def test_numbers_that_rules_look_at_do_not(pair: tuple[float, float]) -> None:
    for bound in pair:
        both_ways(lambda bound=bound: aj.grad(lambda x: np.sum(np.maximum(x, bound)))(np.array([-1.0, 0.0, 0.5, 2.0])))


def test_structures_that_alternate() -> None:
    functions = [lambda x: np.sum(x * x), lambda x: np.sum(x + x), lambda x: np.sum(np.exp(x) * 2.0), lambda x: np.prod(x)]
    x = np.array([0.5, 1.5])
    with after(NEVER):
        expected = [aj.grad(f)(x) for f in functions]
    with after(3):
        for k in range(40):
            same(aj.grad(functions[k % 4])(x), expected[k % 4])
    assert len(written()) == 4


def test_sizes_and_dtypes_that_change() -> None:
    def f(x: Any) -> Any:
        return np.sum(x * np.mean(x) + x[0])

    for _ in range(3):
        for size in (1, 2, 5):
            for dtype in ("f4", "f8"):
                both_ways(lambda size=size, dtype=dtype: aj.grad(f)(np.linspace(1, 2, size, dtype=dtype)))


def test_a_loop_whose_length_changes_is_never_written() -> None:
    for n in range(1, 3 * backward.OFTEN):
        y = aj.grad(lambda x, n=n: sum(x**2 for _ in range(n)))(np.float64(3.0))
        assert float(y) == 6.0 * n
    assert not written()


def test_constants_of_other_shapes() -> None:
    x = np.arange(3.0)
    with after(1):
        for shape in ((3,), (1,), (2, 3), (2, 1)):
            c = np.random.default_rng(0).normal(size=shape)
            found = aj.grad(lambda x, c=c: np.sum(x * c))(x)
            np.testing.assert_allclose(found, np.broadcast_to(c, np.broadcast_shapes(shape, (3,))).reshape(-1, 3).sum(0))


def test_constants_that_are_one_tensor_in_one_tape_and_two_in_another() -> None:
    def gradient(a: Any, b: Any, weights: Any = None) -> Any:
        x = aj.tensor([1.0, 2.0])
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = x * a + np.sin(x) * b
        return tape.gradient(y, x, output_gradients=weights)

    c, d = aj.tensor([3.0, 5.0]), aj.tensor([-1.0, 4.0])
    with after(1):
        np.testing.assert_allclose(gradient(c, c), c * (1 + np.cos([1.0, 2.0])))
        np.testing.assert_allclose(gradient(c, d), c + d * np.cos([1.0, 2.0]))
        assert len(written()) == 1
        np.testing.assert_allclose(gradient(c, c, c), c * c * (1 + np.cos([1.0, 2.0])))
        np.testing.assert_allclose(gradient(c, d, d), c * d + d * d * np.cos([1.0, 2.0]))
        assert len(written()) == 2


def test_a_tensor_that_is_watched_after_it_was_an_argument() -> None:
    def gradients(late: bool) -> Any:
        x, c, d = (aj.tensor(v) for v in (2.0, 3.0, 5.0))
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = x * c
            tape.watch(c if late else d)
            z = y * x
        return tape.gradient(z, [x, c, d])

    for late in (False, True, False, True):
        both_ways(lambda late=late: gradients(late))


def test_results_without_derivatives_as_arguments() -> None:
    def f(x: Any) -> Any:
        order = np.argsort(x)
        values, places = aj.top_k(x, 2)
        return np.sum(x[order] * np.arange(4.0)) + np.sum(values * x[places]) + np.sum(np.where(x > 1.0, x * x, 3.0 * x))

    for seed in range(4):
        x = np.random.default_rng(seed).uniform(0.5, 1.5, 4)
        both_ways(lambda x=x: aj.grad(f)(x))
    assert len(written()) == 1


def test_dtypes_of_storage() -> None:
    w = aj.Variable(np.array([0.5, 1.5], np.float16))

    def gradient() -> Any:
        with aj.GradientTape() as tape:
            loss = np.sum(np.tanh(w * 2.0) * w)
        return tape.gradient(loss, w)

    assert both_ways(gradient).dtype == np.float16


def test_an_array_that_is_written_to_after_the_op() -> None:
    with after(1):
        for k in range(3):
            c = np.array([1.0, 2.0]) + k

            def f(x: Any, c: Any = c) -> Any:
                y = x * c
                c[:] = 100.0
                return np.sum(y)

            np.testing.assert_array_equal(aj.grad(f)(np.ones(2)), np.array([1.0, 2.0]) + k)


def test_targets_sources_and_weights_are_part_of_the_structure() -> None:
    def gradients(target: int, source: int, weights: Any = None) -> Any:
        x, y = aj.tensor([1.0, 2.0]), aj.tensor([3.0, 4.0])
        with aj.GradientTape() as tape:
            tape.watch([x, y])
            outs = [x * y, np.sum(np.sin(x)), y * 2.0]
        return tape.gradient(outs[target], [x, y][source], output_gradients=weights)

    for _ in range(2):
        for target in range(3):
            for source in range(2):
                both_ways(lambda target=target, source=source: gradients(target, source))
        both_ways(lambda: gradients(0, 0, 2.0))
        both_ways(lambda: gradients(0, 0, np.array([5.0, 7.0])))
        both_ways(lambda: gradients(0, 0, 3.0))


# ---- tapes


def test_unconnected_sources() -> None:
    def gradients(zero: str | None) -> Any:
        x, y = aj.tensor(2.0), aj.tensor(3.0)
        with aj.GradientTape() as tape:
            tape.watch([x, y])
            z = x * x
            _ = y * y
        found = tape.gradient(z, [x, y], unconnected_gradients=zero)
        assert zero is not None or "not connected" in tape.explain(z, y)
        return found

    both_ways(lambda: gradients(None))
    both_ways(lambda: gradients("zero"))


def test_persistent_tapes_and_pauses() -> None:
    def gradients() -> Any:
        x = aj.tensor([2.0, 3.0])
        with aj.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            with tape.stop_recording():
                z = x * 5.0
            w = y + z
        return [tape.gradient(w, x), tape.gradient(y, x), tape.gradient(z, x), tape.gradient(w, y)]

    both_ways(gradients)


def test_variables() -> None:
    w, b = aj.Variable(np.array([[1.0, 2.0], [3.0, 4.0]])), aj.Variable(np.zeros(2))

    def gradients() -> Any:
        with aj.GradientTape() as tape:
            y = np.tanh(w @ np.array([1.0, -1.0]) + b)
            loss = np.sum(y * y + b)
        return tape.gradient(loss, [w, b])

    both_ways(gradients)
    with after(1):
        for _ in range(3):
            dw, db = gradients()
            w.assign_sub(0.1 * dw)
            b.assign_sub(0.1 * db)
            both_ways(gradients)


def test_higher_orders_go_op_by_op() -> None:
    with after(1):
        for _ in range(3):
            assert float(aj.grad(aj.grad(lambda x: x**3))(np.float64(2.0))) == 12.0
            x = aj.tensor(2.0)
            with aj.GradientTape() as outer:
                outer.watch(x)
                with aj.GradientTape() as inner:
                    inner.watch(x)
                    y = x * x * x
                first = inner.gradient(y, x)
            assert float(outer.gradient(first, x)) == 12.0


def test_functions_of_the_user_go_op_by_op() -> None:
    calls = []

    @aj.custom_gradient
    def twice(x: Any) -> Any:
        def pull(d: Any) -> Any:
            calls.append(1)
            return 7.0 * d

        return 2.0 * x, pull

    compiled = aj.function(lambda x: x * x)
    with after(1):
        for _ in range(4):
            assert float(aj.grad(lambda x: twice(x) * 3.0)(np.float64(1.0))) == 21.0
            assert float(aj.grad(lambda x: compiled(x) * 3.0)(np.float64(2.0))) == 12.0
    assert len(calls) == 4
    assert not written()
    with after(1):
        for _ in range(4):  # what a checkpoint repeats is a tape of its own
            assert float(aj.grad(aj.checkpoint(lambda x: x * x))(np.float64(2.0))) == 4.0


def test_an_error_in_the_middle_of_a_tape() -> None:
    def f(x: Any, fails: bool) -> Any:
        y = np.sin(x)
        if fails:
            raise KeyError("mine")
        return np.sum(y)

    with after(2):
        for k in range(12):
            if k % 3 == 2:
                with pytest.raises(KeyError):
                    aj.grad(f)(np.ones(2), True)
            else:
                np.testing.assert_array_equal(aj.grad(f)(np.ones(2), False), np.cos(np.ones(2)))


def test_after_a_failing_program_the_rules_are_used() -> None:
    def failing(*args: Any) -> Any:
        raise ArithmeticError("of the program")

    f = aj.grad(lambda x: np.sum(np.sin(x)))
    with after(1):
        expected = f(np.ones(2))
        (program,) = written()
        program.call = failing
        same(f(np.ones(2)), expected)


def test_no_warnings() -> None:
    with after(1):
        for _ in range(3):
            found = aj.grad(lambda x: np.sum(1.0 / x + np.sqrt(x)))(np.array([0.0, 1.0]))
            assert np.isnan(found.numpy()[0]) or np.isinf(found.numpy()[0])


# ---- lifetimes and threads


def test_nothing_is_kept_alive() -> None:
    f = aj.grad(lambda x: np.sum(np.sin(x) * x))
    with after(1):
        f(np.ones(3))
        made: list[Any] = []

        def g(x: Any) -> Any:
            made.append(weakref.ref(x))
            y = np.sin(x)
            made.append(weakref.ref(y))
            return np.sum(y * x)

        out = aj.grad(g)(np.ones(3))
        gc.collect()
        assert [r() for r in made] == [None, None]
        assert out.shape == (3,)


def test_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward, "MOST_PROGRAMS", 4)
    monkeypatch.setattr(backward, "MOST_ENTRIES", 40)
    monkeypatch.setattr(backward, "SEEN", 8)
    with after(1):
        for n in range(1, 20):
            aj.grad(lambda x, n=n: sum(x * x for _ in range(n)))(np.float64(1.0))
            assert len(backward._programs) <= 4
            assert sum(program.size for program in written()) <= 40
    with after(NEVER):
        for n in range(1, 20):
            aj.grad(lambda x, n=n: sum(x + x for _ in range(n)))(np.float64(1.0))
            assert len(backward._seen) <= 8


def test_numbers_of_ops_are_never_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "OPS", 3)
    monkeypatch.setattr(log, "_numbers", {})
    with after(1):
        for _ in range(3):
            for k in range(8):
                found = aj.grad(lambda x, k=k: aj.roll(x, k)[0])(np.arange(8.0))
                assert found.numpy().tolist() == [float(i == (8 - k) % 8) for i in range(8)]


def test_threads() -> None:
    failures: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for k in range(60):
                n = 1 + k % 5
                x = rng.uniform(1, 2, n)
                found = aj.grad(lambda x: np.sum(np.log(x) * x))(x)
                np.testing.assert_allclose(found, np.log(x) + 1, rtol=1e-12)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    with after(2):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_memory_stays_flat() -> None:
    import tracemalloc

    f = aj.grad(lambda x: np.sum(np.sin(x) * 2.0 + x[1:3].sum()))
    x = np.ones(4)
    for _ in range(100):
        f(x)
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2000):
            f(x)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
