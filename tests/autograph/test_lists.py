"""Lists beyond the table of programs: as arguments and results of a compiled function, under a tape, in the IR."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import CheckError, ShapeError, TraceError


def steps(x, limit):
    ys = []
    for _ in range(10):
        if x > limit:
            break
        ys.append((x, 2 * x))
        x = x * 1.5
    return ys


@pytest.mark.parametrize("limit", [0.0, 3.0, 1e9])
def test_a_compiled_function_returns_the_list(limit: float) -> None:
    got, want = aj.function(steps)(1.0, limit), steps(1.0, limit)
    assert type(got) is list
    assert len(got) == len(want)
    np.testing.assert_allclose(np.array(got).reshape(-1), np.array(want).reshape(-1))


def test_an_outer_tape_goes_through_the_list() -> None:
    compiled = aj.function(steps)
    x = aj.tensor(1.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        ys = compiled(x, 3.0)
        loss = ys[1][0] * ys[-1][1]
    assert float(tape.gradient(loss, x)) == pytest.approx(2 * 1.5 * 1.5**2 * 2)


def test_an_index_past_the_end_raises_when_it_runs() -> None:
    @aj.function
    def third(x, limit):
        return steps(x, limit)[2][0]

    assert third(1.0, 3.0) == 2.25
    with pytest.raises(CheckError, match="list index out of range"):
        third(1.0, 2.0)


def test_an_index_past_what_the_list_can_hold_raises_at_once() -> None:
    with pytest.raises(IndexError, match="list index out of range"):
        aj.function(lambda x: steps(x, 3.0)[10])(1.0)


def test_a_list_longer_than_the_array_for_it_raises() -> None:
    def padded(x, limit):
        return aj.stack(first(x, limit), fill=0.0, length=3)

    def first(x, limit):
        ys = [x]
        for _ in range(10):
            if x > limit:
                break
            x = x * 1.5
            ys.append(x)
        return ys

    for function, error in ((padded, ShapeError), (aj.function(padded), CheckError)):
        np.testing.assert_allclose(function(1.0, 1.0), [1.0, 1.5, 0.0])
        with pytest.raises(error, match="length=3"):
            function(1.0, 9.0)


def test_stack_fills() -> None:
    np.testing.assert_allclose(aj.stack([[1.0, 2.0]], 1, fill=-1.0, length=3), [[1.0, -1.0, -1.0], [2.0, -1.0, -1.0]])
    with pytest.raises(ShapeError, match="a length needs a fill"):
        aj.stack([1.0], length=3)


def test_a_branch_chooses_between_items_not_between_lists() -> None:
    """A copy of the whole list in each iteration would make the loop quadratic."""

    def kept(x):
        ys = [x]
        for k in aj.range(1000):
            if x > 100:
                break
            if x > 0:
                ys.append(x + k)
        return sum(ys)

    text = str(aj.function(kept).inspect(1.0).forward)
    assert "f64[1001] = if" not in text
    assert text.count("scatter") == 1


def test_vmap_refuses_lists_of_unknown_length() -> None:
    with pytest.raises(TraceError, match="a function under vmap returns a list"):
        aj.vmap(lambda x: steps(x, 3.0))(np.ones(3))


@aj.function
def countdown(x, step):
    items = []
    while x > 0:
        x = x - step
        items.append(x * step)
    return items, len(items)


def test_a_list_in_a_loop_of_unknown_length_grows() -> None:
    """Its capacity is 4096 items, then eight times as many: a call that finds it full starts again."""
    for count, traces in ((4096, 1), (4097, 2), (4096, 2), (100_000, 3), (262_144, 3), (5, 3)):
        items, length = countdown(float(count), 1.0)
        assert (int(length), len(items), countdown.trace_count) == (count, count, traces)
        assert [float(items[0]), float(items[-1])] == [count - 1, 0]


def test_gradients_through_a_list_that_has_grown() -> None:
    @aj.function
    def slope(x, n):
        with aj.GradientTape() as tape:
            tape.watch(x)
            items, k = [], 0.0
            while k < n:
                items.append(x * k)
                k = k + 1
            total = 0.0
            for item in items:
                total = total + item * item
        return tape.gradient(total, x)

    for n in (10, 100_000):
        np.testing.assert_allclose(slope(1e-3, float(n)), 2e-3 * np.sum(np.arange(n, dtype=float) ** 2), rtol=1e-12)


def test_variables_are_assigned_once_though_a_call_starts_again() -> None:
    calls = aj.Variable(0.0)

    @aj.function
    def fill(n):
        calls.assign_add(1.0)
        items = []
        while n > 0:
            n = n - 1
            items.append(n)
        return len(items)

    assert fill(5000) == 5000
    assert fill(6000) == 6000
    assert float(calls) == 2


def test_eager_tapes_record_the_call_with_enough_capacity() -> None:
    x = aj.tensor(2.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        items, _ = countdown(5000.0 * x, x)
        y = items[0] + items[4999]
    assert float(y) == (10000 - 2) * 2
    assert float(tape.gradient(y, x)) == pytest.approx(2 * 2 * 4999)  # items[0] is 4999 x², items[4999] is 0


def test_a_call_that_has_printed_cannot_start_again(capsys: pytest.CaptureFixture[str]) -> None:
    @aj.function
    def shown(n):
        print("started with", n)
        items = []
        while n > 0:
            n = n - 1
            items.append(n)
        return len(items)

    with pytest.raises(CheckError, match="`items` has more than 4096 items, the capacity of lists in loops of unknown length; write"):
        shown(5000)
    assert capsys.readouterr().out == "started with 5000\n"


def test_a_list_larger_than_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjit.tracer.list_items.memory", lambda: 1 << 27)

    @aj.function
    def endless(x):
        items = []
        while x > 0:
            x = x + 1
            items.append(x)
        return len(items)

    with pytest.raises(MemoryError, match="not enough memory for a list of 16,777,216 items of f64"):
        endless(1.0)


def test_pop_from_an_empty_list() -> None:
    @aj.function
    def f(x):
        items = [x]
        while x > 1:
            x = x / 2 + items.pop() * 0
        return len(items)

    assert f(1.5) == 0
    with pytest.raises(CheckError, match="pop from empty list"):
        f(5.0)


def test_a_list_grows_in_a_function_for_all_sizes() -> None:
    @aj.function(dynamic=True)
    def total(x, n):
        items = []
        while n > 0:
            n = n - 1
            items.append(np.sum(x))
        return sum(items)

    for size, n in ((3, 10), (4, 5000), (5, 5000), (6, 50)):
        assert float(total(np.ones(size), float(n))) == size * n


BY_NUMPY = {
    "square": np.square,
    "sum": np.sum,
    "max": np.max,
    "linalg.norm": np.linalg.norm,
    "add.reduce": np.add.reduce,
    "a number": lambda ys: np.add(ys, 1.0),
    "array and list": lambda ys: np.array(ys) * ys,
    "list and array": lambda ys: ys - np.array(ys),
    "equal": lambda ys: np.array(ys) == ys,
    "product": lambda ys: np.array(ys) @ ys,
    "where": lambda ys: np.where(np.array(ys) > 2, ys, 0.0),
    "lists of it": lambda ys: np.concatenate([ys, ys]),
    "rows": lambda ys: np.vstack([ys, ys]),
}
JOINED = [
    (name, shape)
    for name in ("vstack", "hstack", "dstack", "column_stack", "concatenate")
    for shape in ((), (3,), (2, 3), (2, 3, 2))
    if shape or name != "concatenate"
]


@pytest.mark.parametrize("name", BY_NUMPY)
@pytest.mark.parametrize("limit", [2.0, 20.0])
def test_numpy_takes_the_list_as_an_array(name: str, limit: float) -> None:
    def of_list(x, limit):
        ys = []
        for _ in range(10):
            if x > limit:
                break
            ys.append(x)
            x = x * 1.5
        return BY_NUMPY[name](ys)

    np.testing.assert_allclose(aj.function(of_list)(1.0, limit), of_list(1.0, limit))


@pytest.mark.parametrize(("name", "shape"), JOINED, ids=[f"{name} of {shape}" for name, shape in JOINED])
def test_arrays_in_the_list_are_joined(name: str, shape: tuple[int, ...]) -> None:
    def joined(x, count):
        ys = []
        for k in aj.range(count):
            ys.append(x * (k + 1.0))  # noqa: PERF401 - a comprehension over a traced range is not a list that grows
        return getattr(np, name)(ys)

    x = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1.0
    compiled = aj.function(joined)
    for count in (3, 5):
        rows = getattr(np, name)([x * (k + 1.0) for k in range(count)])
        np.testing.assert_array_equal(compiled(x, count), rows)


def test_lists_are_not_compared() -> None:
    def same(x, limit):
        return steps(x, limit) == steps(x, limit + 1)

    with pytest.raises(TraceError, match="cannot be compared"):
        aj.function(same)(1.0, 3.0)


@pytest.mark.parametrize("use", [np.multiply, np.matmul, np.equal, lambda a, b: a - b, lambda a, b: a @ b, lambda a, b: a == b])
def test_operators_take_lists_of_traced_numbers(use) -> None:
    x = np.array([1.0, 2.0, 4.0])
    both = aj.function(lambda x: (use(x, [x[2], 2.0, x[0]]), use([x[2], 2.0, x[0]], x), use(x, (x[0], 1.0, 2.0))))
    for got, want in zip(both(x), both.python_function(x), strict=True):
        np.testing.assert_array_equal(got, want)
