"""Edge cases of Python's builtins and lists: a traced program has the results and exceptions of Python."""

# ruff: noqa: PERF401 - loops that append are tested

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

X = np.array([2.0, -1.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


def zero_step(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(0, 5, n - 3):
        total += i
    return total


def zero_known_step(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(0, n, 0):
        total += i
    return total


def strict_zip(x: Any, n: int) -> Any:
    total = 0.0
    for i, j in zip(range(n), x[:2], strict=True):
        total += i * j
    return total


def strict_zip_that_fits(x: Any, n: int) -> Any:
    total = 0.0
    for i, j in zip(range(n), x, strict=True):
        total += i * j
    return total


def strict_zip_of_arrays(x: Any, n: int) -> Any:
    total = n * 1.0
    for i, j in zip(x, x[:2], strict=True):
        total += i * j
    return total


def rest_of_a_stream(x: Any, n: int) -> Any:
    pairs = enumerate(x)
    first = next(pairs)
    total = first[1] * n
    for i, v in pairs:
        total += i * v
    return total


def grown(x: Any, n: int) -> list[Any]:
    items = [x[0]]
    for i in range(n):
        items.append(x[i] * 2.0)
    return items


def item_beyond(x: Any, n: int) -> Any:
    return grown(x, n)[n + 1]


def item_before(x: Any, n: int) -> Any:
    return grown(x, n)[-n - 2]


def item_beyond_any(x: Any, n: int) -> Any:
    items = []
    for i in range(n):
        if x[i] > 0.0:
            items.append(x[i])
    return items[2]


def item_at_a_traced_place(x: Any, n: int) -> Any:
    return grown(x, n)[n - 1] + grown(x, n)[-1] + grown(x, n)[0]


def pop_of_nothing(x: Any, n: int) -> Any:
    items = []
    for i in range(n):
        if x[i] > 5.0:
            items.append(x[i])
    return items.pop()


def pop_of_something(x: Any, n: int) -> Any:
    items = []
    for i in range(n):
        if x[i] > 0.0:
            items.append(x[i])
    return items.pop() + len(items)


def sum_of_rows(x: Any, n: int) -> Any:
    return sum(x) + sum(x, 1.0) * n


def all_and_any(x: Any, n: int) -> Any:
    return all(x > -5.0), any(x > 2.5), all(x > 0.0), all([x[0] > 0.0, n > 2]), any([x[0] < 0.0, n > 9])


def items_of(x: Any, n: int) -> list[Any]:
    items = []
    for i in range(n):
        if x[i] > 0.0:
            items.append(x[i])
    return items


def list_asked_whether_empty(x: Any, n: int) -> Any:
    return 1.0 if items_of(x, n) else 2.0


def all_of_a_list(x: Any, n: int) -> Any:
    found = []
    for i in range(n):
        found.append(x[i] > 0.0)
    return all(found), any(found)


def extremes(x: Any, n: int) -> Any:
    return min(x), max(x), max(x[0], n), min(x[1], 0.5), max([1.0, 2.0])


def extremes_by_key(x: Any, n: int) -> Any:
    return max([x[0], x[1], x[2]], key=lambda v: -v), min([1.0, 2.0, 3.0], key=lambda v: (v - 2.0) ** 2) + 0.0 * n


def of_one_element(x: Any, n: int) -> Any:
    return float(x[:1] * n) if n > 9 else int(n) + bool(n)


def of_several_elements(x: Any, n: int) -> Any:
    return float(x * n)


def loop_that_never_ends(x: Any, n: int) -> Any:
    total = x[0]
    while n > 0:
        total += 1.0
        if total > 10.0:
            break
    return total


def window(x: Any, n: int) -> Any:
    k = n - 2
    return x[k : k + 2], x[2 - k : -k + 3], x[2 * k - 2 : k + k], x[..., k : k + 1]


def window_of_an_array(x: Any, n: int) -> Any:
    k = n - 3
    y = np.stack([x, x, x])
    y[k : k + 2, :] = 7.0
    return y, y[..., k : k + 1], y[k : k + 1, None]


PROGRAMS: list[Callable[..., Any]] = [
    zero_step, zero_known_step, strict_zip, strict_zip_that_fits, strict_zip_of_arrays, rest_of_a_stream, item_beyond, item_before,
    list_asked_whether_empty, item_beyond_any, item_at_a_traced_place, pop_of_nothing, pop_of_something, sum_of_rows, all_and_any,
    all_of_a_list, extremes,
    extremes_by_key, of_one_element, of_several_elements, loop_that_never_ends, window, window_of_an_array,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_end_as_in_python(program: Callable[..., Any]) -> None:
    try:
        wanted = program(X, 3)
    except (ValueError, IndexError, TypeError) as error:
        with pytest.raises(type(error)):
            aj.function(program)(X, 3)
    else:
        got = aj.function(program)(X, 3)
        for a, b in zip(aj.tree_leaves(got), aj.tree_leaves(wanted), strict=True):
            np.testing.assert_allclose(np.asarray(a), b)


# ---- what Python could do, and a traced program cannot


def first_of_an_empty_list(x: Any, n: int) -> Any:
    items: list[Any] = []
    total = 0.0
    for i in range(n):
        total += items[-1]
        items.append(x[i])
    return total


def slice_assigned(x: Any, n: int) -> Any:
    items = grown(x, n)
    items[0:1] = [1.0]
    return items


def list_of_pairs(x: Any, n: int) -> Any:
    items = [(x[0], x[1])]
    for i in range(n):
        items.append((x[i], x[i]))
    return np.stack(items)


def list_inserted(x: Any, n: int) -> Any:
    items = grown(x, n)
    items.insert(0, x[0])
    return items


def list_popped_at_the_start(x: Any, n: int) -> Any:
    return grown(x, n).pop(0)


def list_outgrowing_its_length(x: Any, n: int) -> Any:
    return aj.stack(grown(x, n), fill=0.0, length=0)


def variable_assigned_in_a_condition(x: Any, n: int) -> Any:
    v = STATE

    def more(k: Any) -> Any:
        v.assign(1.0)
        return k < n

    k = 0
    while more(k):
        k += 1
    return k


def printed_to_a_file(x: Any, n: int) -> Any:
    print(x, file=FILE)
    return x


class File:
    def write(self, text: str) -> None:
        raise AssertionError("nothing is written while tracing")


STATE, FILE = aj.Variable(0.0), File()


def list_of_a_traced_length(x: Any, n: int) -> Any:
    out = [0.0] * n
    for i in range(len(out)):
        out[i] = x[i]
    return out


def list_made_longer(x: Any, n: int) -> Any:
    out = [x[0]]
    out *= n
    return out


REFUSED: dict[Callable[..., Any], str] = {
    list_of_a_traced_length: "how often it repeats a list is not known while tracing",
    list_made_longer: "how often it repeats a list is not known while tracing",
    first_of_an_empty_list: "the list is empty before the traced loop that appends to it",
    slice_assigned: "the contents of a slice of it",
    list_of_pairs: "the items of the list are structures, not arrays",
    list_inserted: "takes new items at its end",
    list_popped_at_the_start: "takes new items at its end",
    list_outgrowing_its_length: "the list has 1 items or more, but length=0",
    variable_assigned_in_a_condition: "the condition of a traced `while` assigns a Variable",
    printed_to_a_file: "print() of traced values writes to sys.stdout or sys.stderr",
}


@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_refusals_name_the_line_and_leave_no_state(program: Callable[..., Any]) -> None:
    with pytest.raises(aj.AdjitError) as caught:
        aj.function(program)(X, 3)
    assert REFUSED[program] in str(caught.value)
    assert f"in {program.__name__}" in str(caught.value)
    assert STATE.numpy() == 0.0
    np.testing.assert_array_equal(aj.function(sum_of_rows)(X, 3), sum_of_rows(X, 3))
