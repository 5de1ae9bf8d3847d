"""NumPy's functions that write to their first argument, and `np.vectorize`: traced, they have NumPy's results, or raise with a remedy."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

A = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
I = np.array([0, 0, 2, 1, 1, 1])


def put(x: Any) -> Any:
    y = x * 2.0
    np.put(y, [0, 2], [10.0, x[1]])
    return y


def put_at_traced_positions(x: Any, i: Any) -> Any:
    y = np.zeros(6)
    np.put(y, ind=i + 4, v=x[:2], mode="wrap")
    return y


def putmask(x: Any) -> Any:
    y = x.copy()
    np.putmask(y, y > 2.0, y**2)
    return y


def place(x: Any) -> Any:
    y = x + 1.0
    np.place(y, mask=x > 2.0, vals=[44.0, 55.0])
    return y


def copyto(x: Any) -> Any:
    y = np.ones((2, 6))
    np.copyto(y, x, where=x > 2.0)
    return y


def copyto_all(x: Any) -> Any:
    y = np.empty(6)
    np.copyto(y, x)
    x = x * 2.0
    return y + x


def fill_diagonal(x: Any) -> Any:
    y = np.zeros((3, 2))
    np.fill_diagonal(y, x[1], wrap=False)
    return y


def put_along_axis(x: Any) -> Any:
    y = x.reshape(2, 3) * 1.0
    np.put_along_axis(y, np.array([[0], [2]]), x[4], axis=1)
    return y


def add_at(x: Any, i: Any) -> Any:
    y = np.zeros(3)
    np.add.at(y, i, x)
    np.subtract.at(y, i[:2], x[:2] * x[2])
    return y


def add_at_rows(x: Any) -> Any:
    y = np.zeros((2, 3))
    np.add.at(y, (np.array([0, 0, 1]), np.array([1, 1, 2])), x[:3])
    return y


def other_ufuncs_at(x: Any) -> Any:
    y = np.ones(3)
    np.multiply.at(y, I, x)
    np.maximum.at(y, [0, 0, 2], x[3:])
    np.negative.at(y, [0, 1, 1])
    return y


def in_branches_and_loops(x: Any) -> Any:
    y = np.zeros(3)
    for k in aj.range(3):
        if x[k] > 1.0:
            np.add.at(y, [k, k], x[k])
        else:
            np.put(y, [0], 7.0)
    return y


def of_no_array(x: Any) -> Any:
    """A method with the name of one of NumPy's functions."""

    class Queue:
        held = None

        def put(self, value: Any) -> None:
            self.held = value

    queue, y = Queue(), x * 2.0
    queue.put(y)
    return queue.held + y


def of_constants(x: Any) -> Any:
    y = np.arange(6.0)
    z = y[:3]
    np.put(y, [0], 9.0)  # an array of NumPy that is known while tracing: the view sees it
    return x[:3] * z


def lists(x: Any) -> Any:
    """Lists that contain traced values, as rows and columns."""
    y = np.zeros((3, 2))
    for i in range(3):
        y[i] = [x[i], x[-1] * 2.0]
    y[:, 0] = (x[0], 1.0, x[2] * x[2])
    y[1:] += [x[3], 1]
    y[[0, 2]] *= [[x[1], 2.0], [1.0, x[5]]]
    np.add.at(y, [0, 0, 1], [[x[4], 1.0], [2.0, 3.0], [x[4], x[4]]])
    return y


def lists_in_a_loop(x: Any) -> Any:
    y, k = x * 2.0, 0
    while k < 3:
        y[k : k + 2] = [y[k + 1], x[0]]
        k += 1
    return y


def soft(a: Any, b: Any) -> Any:
    if a > 2.0:
        return a * b
    return b - a * a


SOFT = np.vectorize(soft)


def vectorized(x: Any) -> Any:
    return SOFT(x, 3.0)


def vectorized_over_axes(x: Any) -> Any:
    return np.vectorize(soft, otypes=[np.float64])(x.reshape(2, 3), x[:3])


def vectorized_pair(x: Any) -> Any:
    total, product = np.vectorize(lambda a, b: (a + b, a * b))(x, x[1])
    return total - product


def vectorized_in_one_argument(x: Any) -> Any:
    return np.vectorize(lambda a, weights: a * weights[0], excluded=[1])(x, [2.0, 1.0])


def vectorized_over_parts(x: Any) -> Any:
    total, twice = np.vectorize(lambda v: (v.sum(), v * 2), signature="(n)->(),(n)")(x.reshape(2, 3))
    return total[:, None] * twice


def vectorized_products(x: Any) -> Any:
    return np.vectorize(lambda m, v: m @ v, signature="(m,n),(n)->(m)")(x.reshape(1, 2, 3), x[:3])


def vectorized_with_keywords(x: Any) -> Any:
    return np.vectorize(lambda a, b=2.0, *, c=1.0: a + b * c, excluded=["c"])(x, b=x[::-1], c=3.0)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (put, (A,)), (put_at_traced_positions, (A, np.array([1, 3]))), (putmask, (A,)), (place, (A,)), (copyto, (A,)), (copyto_all, (A,)),
    (fill_diagonal, (A,)), (put_along_axis, (A,)), (add_at, (A, I)), (add_at_rows, (A,)), (other_ufuncs_at, (A,)),
    (in_branches_and_loops, (A,)), (of_no_array, (A,)), (of_constants, (A,)), (vectorized, (A,)), (vectorized_over_axes, (A,)),
    (lists, (A,)), (lists_in_a_loop, (A,)), (vectorized_pair, (A,)), (vectorized_in_one_argument, (A,)),
    (vectorized_over_parts, (A,)), (vectorized_products, (A,)), (vectorized_with_keywords, (A,)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_results_and_gradients(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected = f(*(np.array(a) for a in args))
    actual = np.asarray(aj.function(f)(*args))
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-14)
    x, *rest = args
    step = 1e-6 * np.random.default_rng(0).normal(size=x.shape)
    change = (f(x + step, *rest).astype(float) ** 2 - f(x - step, *rest).astype(float) ** 2).sum()
    slope = np.asarray(aj.function(aj.grad(lambda x: aj.sum(f(x, *rest) ** 2)))(x))
    np.testing.assert_allclose(2.0 * np.sum(slope * step), change, rtol=1e-5)


def argument(x: Any) -> Any:
    np.put(x, [0], x[1])
    return x


def alias(x: Any) -> Any:
    y = x * 2.0
    z = y[1:]
    np.add.at(y, [0, 0], x[1])
    return y[1:] + z


def unknown_mask(x: Any) -> Any:
    y = x * 2.0
    np.multiply.at(y, x > 2, 3.0)
    return y


def lost_kind(x: Any) -> Any:
    y = np.zeros(6, int)
    np.copyto(y, x)
    return y


def core_dimensions(x: Any) -> Any:
    return np.vectorize(np.dot, signature="(n),(n)->()")(x, x[:3])


def results_of_another_rank(x: Any) -> Any:
    return np.vectorize(np.sum, signature="(n)->(k)")(x)


def arguments_that_are_missing(x: Any) -> Any:
    return np.vectorize(np.dot, signature="(n),(n)->()")(x)


@pytest.mark.parametrize(
    ("f", "args", "error", "text"),
    [
        (argument, (A,), aj.TraceError, r"`np\.put\(x, \.\.\.\)` would change an argument.*\n.*np\.put\(x, \[0\], x\[1\]\)"),
        (alias, (A,), aj.TraceError, r"also change `z`.*\n.*np\.add\.at\(y, \[0, 0\], x\[1\]\)"),
        (unknown_mask, (A,), aj.UnsupportedError, r"np\.multiply\.at: indices that.*must be integers.*\n.*\.at\(y, x > 2, 3\.0\)"),
        (lost_kind, (A,), aj.DTypeError, r"copyto: f64\[6\] cannot be cast to the dtype of i64.*\n.*np\.copyto\(y, x\)"),
        (core_dimensions, (A,), aj.ShapeError, r"np\.vectorize: the axis 'n' has 6 elements in one argument and 3 .*\n.*x\[:3\]\)"),
        (results_of_another_rank, (A,), aj.ShapeError, r"names 1 axes of a result; the function returns 0.*\n.*\(k\)"),
        (arguments_that_are_missing, (A,), aj.ShapeError, r"names 2 arguments; 1 are given"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_errors_name_the_line(f: Callable[..., Any], args: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        aj.function(f)(*args)


ROWS = np.arange(12.0).reshape(4, 3) / 7 + 0.5


def updates_at(name: str) -> Callable[..., Any]:
    """A function with a call of `np.NAME.at`, which conversion finds by its text."""
    source = f"def updated(x, values, key):\n    y = x * 1.0\n    np.{name}.at(y, key, values)\n    return y\n"
    lines = linecache.cache[f"<np.{name}.at>"] = (len(source), None, source.splitlines(True), f"<np.{name}.at>")
    names: dict[str, Any] = {"np": np}
    exec(compile(source, lines[3], "exec"), names)
    function: Callable[..., Any] = names["updated"]
    return function


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.power], ids=lambda u: u.__name__)
@pytest.mark.parametrize(
    ("key", "values"),
    [
        ((np.array([1, 3, 1, -3]),), ROWS),
        ((np.array([[0, 0], [2, 0]]), np.array([2, -1])), np.array([1.5, 0.5])),
        ((np.zeros(0, int),), ROWS[:0]),
    ],
    ids=["rows", "elements", "none"],
)  # fmt: skip
def test_indices_known_only_when_the_function_runs(ufunc: Any, key: tuple[Any, ...], values: Any) -> None:
    """Each of several equal indices counts, as in NumPy; so it does in derivatives."""

    updated = updates_at(ufunc.__name__)
    want = updated(ROWS, values, key)
    np.testing.assert_allclose(aj.function(updated)(ROWS, values, key), want, rtol=1e-15)
    loss = lambda x, v, k: np.sum(np.sin(updated(x, v, k)))  # noqa: E731
    gradient = aj.function(aj.grad(loss, (0, 1)))(ROWS, values, key)
    for at, g in enumerate(gradient):
        for place in np.ndindex(np.shape(g)):
            sides = []
            for h in (1e-6, -1e-6):
                moved = [ROWS.copy(), values.copy()]
                moved[at][place] += h
                sides.append(loss(*moved, key))
            np.testing.assert_allclose(np.asarray(g)[place], (sides[0] - sides[1]) / 2e-6, rtol=1e-6, atol=1e-8)


def test_a_list_of_tensors_at_an_index() -> None:
    x = aj.tensor(A)
    np.testing.assert_array_equal(x.at[:2].set([x[1], 7.0]), [1.5, 7.0, 2.5, 3.5, 4.5, 5.5])
    np.testing.assert_array_equal(x.at[[0, 0]].add([x[1], 7.0]), [9.0, 1.5, 2.5, 3.5, 4.5, 5.5])


def test_selection_of_a_given_size() -> None:
    x = np.arange(6.0)
    first = aj.function(lambda x: aj.compress(x > 2.0, x, size=4, fill_value=-1.0))
    np.testing.assert_array_equal(first(x), [3.0, 4.0, 5.0, -1.0])
    np.testing.assert_array_equal(first(x + 10.0), [10.0, 11.0, 12.0, 13.0])
    np.testing.assert_array_equal(
        aj.function(aj.grad(lambda x: aj.sum(aj.compress(x > 2.0, x, size=4) ** 2)))(x), np.where(x > 2.0, 2.0 * x, 0.0)
    )
    rows = aj.function(lambda x: aj.compress(x[:2] < 1.0, x.reshape(2, 3), axis=0, size=2))
    np.testing.assert_array_equal(rows(x), [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(aj.function(lambda x: aj.extract(x.reshape(2, 3) > 3.0, x.reshape(2, 3), size=2))(x), [4.0, 5.0])
    np.testing.assert_array_equal(aj.compress(x > 2.0, x), x[x > 2.0])
    for read in (lambda x: x[x > 2.0], lambda x: aj.compress(x > 2.0, x)):
        np.testing.assert_array_equal(aj.function(read)(x), x[x > 2.0])


def negated(x: Any) -> Any:
    y, m = x.copy(), x > 2.0
    y[m] = -x[m]
    return y


def rows_under_a_mask(x: Any) -> Any:
    y = x[:, None] * np.arange(3.0)
    m = x < 3.0
    y[m] = y[~m] + 1.0
    y[m, 1] = 7.0
    y[:, y[0] > 0.0] *= 2.0
    return y


def added_under_a_mask(x: Any) -> Any:
    y = x * 2.0
    y[x > 2.0] += np.arange(4.0)
    y[x > 5.0] = [9.0]
    return y


def updated_under_a_mask(x: Any) -> Any:
    m = x > 2.0
    return (
        x.at[m].set(-x[m]).at[m].add(x[m] ** 2) if isinstance(x, aj.Tensor) or not isinstance(x, np.ndarray) else np.where(m, x**2 - x, x)
    )


@pytest.mark.parametrize("program", [negated, rows_under_a_mask, added_under_a_mask, updated_under_a_mask])
def test_values_for_the_elements_of_a_traced_mask(program: Callable[..., Any]) -> None:
    """`y[mask] = values` with a value for each element that the mask selects."""
    f, slope = aj.function(program), aj.function(aj.grad(lambda x: np.sum(np.sin(program(x)))))
    for x in (A, A[::-1].copy()):
        np.testing.assert_array_equal(f(x), program(x))
        ends = [np.array([np.sum(np.sin(program(x + sign * 1e-6 * row))) for row in np.eye(6)]) for sign in (1.0, -1.0)]
        np.testing.assert_allclose(slope(x), (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_more_or_fewer_values_than_a_mask_selects() -> None:
    def program(x: Any) -> Any:
        y = x.copy()
        y[x > 0.0] = np.arange(3.0)
        return y

    f = aj.function(program)
    x = np.array([1.0, -1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f(x), program(x))
    for wrong in (np.ones(4), -np.ones(4), x[::-1] * [1, 1, 1, 0]):
        with pytest.raises(ValueError, match="cannot assign 3 input values"):
            program(wrong)
        with pytest.raises(aj.ShapeError, match="does not fit"):
            f(wrong)
