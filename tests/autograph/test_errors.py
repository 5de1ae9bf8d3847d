"""What users read when control flow cannot be traced: the variable, both types, both lines, and what to do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.active import current_builder
from adjit.ir.errors import AdjitError, CheckError, ShapeError, TraceError
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.tracer.autograph import items
from adjit.tracer.autograph.convert import convert
from adjit.tracer.autograph.marks import do_not_convert
from tests.tracer.running import trace

V = np.arange(4.0)


def shared(name: str) -> str:
    return (
        f"this write would also change `{name}`, which holds the same array, or a view of it, and is read later; a traced function gives "
        "the variable that is written its own array: use only that variable afterwards, or copy the array first, with .copy()"
    )


def unassigned(what: str, line: int) -> str:
    return (
        f"`y` is read before it is assigned; all parts of a traced {what} are traced, also those that do not run: assign `y` before it\n"
        f"  {__file__}:${line}:"
    )


def one_branch(x):
    if x > 0:
        y = x * 2
    return y


def reads_in_branch(x):
    if x > 0:
        y = x * 2
    else:
        y = y + 1
    return y


def reads_of_earlier_trip(x):
    for k in items.range(3):
        if k > 0:
            z = y + 1  # noqa: F821
        else:
            z = x
        y = z
    return y


def reads_in_loop(x):
    k = 0
    while k < x:
        z = y  # noqa: F821
        y = z + 1  # noqa: F841
        k = k + 1
    return x


def reads_in_expression(x):
    z = y if x > 0 else x  # noqa: F821
    y = z
    return z + y


def handler_of_a_read(x):
    try:
        if x > 0:
            y = y + 1
    except NameError:
        y = 5.0
    return y


def shapes(x):
    if x[0] > 0:
        y = x
    else:
        y = x[:2]
    return y


def dtypes(x):
    pair = (x, x)
    if x[0] > 0:
        pair = (x, x.astype("f4"))
    return pair


def structures(x):
    if x > 0:
        y = (x, x)
    else:
        y = [x]
    return y


def return_types(x):
    if x > 0:
        return x
    return "no"


def falls_off_the_end(x):  # noqa: RET503
    if x > 0:
        return x


def carried_shape(x, n):
    y = x
    for _ in range(n):
        y = y[:2]
    return y


def carried_none(x, n):
    y = None
    while n > 0:
        y = x
        n = n - 1
    return y


def carried_text(x, n):
    mode = "a"
    for _ in range(n):
        mode = mode + "b"
    return x, mode


def first_assigned_in_loop(x, n):
    for i in range(n):
        y = (x * i, "text")
    return y


class Holder:
    pass


def attribute_in_one_branch(x):
    holder = Holder()
    if x > 0:
        holder.value = x
    return holder.value


def truth_of_array(x):
    if x > 0:
        return x
    return -x


def write_to_argument(x):
    x[0] = 1.0
    return x


def write_to_alias_of_argument(x):
    y = x
    y[0] = 1.0
    return y


def write_to_view_of_argument_in_loop(x, n):
    y = x[1:]
    for i in range(n):
        y[i] = 1.0
    return y


def write_to_same_array(x):
    y = np.zeros(4)
    z = y
    z[0] = x[0]
    return y


def write_to_row(x):
    y = np.zeros((2, 4))
    y[0] = x
    row = y[1]
    row[:] = x
    return y


def write_to_row_of_traced_number(x, n):
    y = np.zeros((2, 4))
    for i in range(n):
        row = y[i]
        row[0] = x[0]
    return y


def write_under_view(x):
    y = np.zeros(4)
    half = y.reshape(2, 2)[0]
    y[0] = x[0]
    return half


def swap_rows(x):
    y = x.copy()
    old = y[:2]
    y[:2] = y[2:]
    y[2:] = old
    return y


def write_to_what_a_loop_leaves(x, n):
    y = x * 2
    z = x * 3
    for _ in range(n):
        z = y.ravel()
    z[0] = 1.0
    return y


def write_to_what_a_branch_chooses(x):
    y, z = np.zeros(4), np.ones(4)
    chosen = y if x[0] > 0 else z
    chosen[0] = x[1]
    return z


def write_to_array_in_list(x):
    y = np.zeros(4)
    both = [y, y]
    y[0] = x[0]
    return both


def write_through_dict(x):
    state = {"y": np.zeros(4)}
    state["y"][0] = x[0]
    return state


def size_of_traced_value(n):
    total = 0.0
    for k in range(n):
        total += np.zeros(k).sum()
    return total


def condition_in_comprehension(x):
    return {1 for v in x if v > 0}


@do_not_convert
def marked(x):
    if x > 0:
        return x
    return -x


def calls_marked(x):
    return marked(x)


def of_unknown_length(x):
    ys = [x]
    if x > 0:
        ys.append(x)
    return ys


def stacked_though_unknown(x):
    ys = of_unknown_length(x)
    while x < 10:
        x = x + np.stack(ys).sum()
    return x


def averaged_though_unknown(x):
    return x if x < 0 else np.mean(of_unknown_length(x))


def comprehension_over_unknown(x):
    return [2 * y for y in of_unknown_length(x)]


def slice_of_unknown(x):
    return of_unknown_length(x)[1:]


def item_of_empty_list(x):
    ys = []
    for i in items.range(8):
        if i > 0:
            x = x + ys[-1]
        ys.append(x)
    return x


def text_in_list(x):
    ys = []
    for _ in items.range(8):
        ys.append("a")  # noqa: PERF401 - the loop is what is tested
    return x


def list_of_two_types(x):
    ys = [x]
    for _ in items.range(8):
        ys.append(x[0])  # noqa: PERF401
    return ys


def append_to_argument(x, ys):
    for k in items.range(5):
        ys.append(x * k)


def gives_argument_away(x):
    ys = []
    append_to_argument(x, ys)
    return ys


def appends_to_argument(items):
    items.append(items[0])
    return items[0]


def writes_to_argument(params):
    params["a"] = params["a"] * 2
    return [params["a"]]


def sorts_texts(x):
    return sorted(["a", "b"], key=lambda name: x if name == "a" else -x)


def sorts_by_arrays(x):
    return sorted([x, -x])


def sorts_by_a_traced_direction(x):
    return sorted([x, -x], reverse=x > 0)


def set_in_while(x):
    seen = set()
    while x > 1:
        seen.add(0)
        x = x / 2
    return len(seen)


def popped(x):
    ys = of_unknown_length(x)
    ys.pop(0)
    return ys


def recursion(n, x):
    if n < 1:
        return x
    return recursion(n - 1, x * 2)


def not_tried(x):
    if x > 0:
        return x
    return -x


@do_not_convert
def calls_without_converting(x):
    return not_tried(x)


def calls_from_library(x):
    return list(itertools.starmap(larger, [(x[0], x[1])]))


def larger(a, b):
    return a if a > b else b


namespace: dict[str, Any] = {}
exec(
    """
def without_source(x):
    if x > 0: return x
    return -x

def loop_without_source(n, range):
    for _ in range(n): pass

lambda_without_source = lambda x: x if x > 0 else -x
""",
    namespace,
)

# function, arguments, error, message; $N is the line N lines below the `def`
CASES: list[tuple[Callable[..., Any], tuple[Any, ...], type[AdjitError], str]] = [
    (reads_in_branch, (1.0,), TraceError, unassigned("`if`", 4)),
    (reads_of_earlier_trip, (1.0,), TraceError, unassigned("`if`", 3)),
    (reads_in_loop, (3,), TraceError, unassigned("`while`", 3)),
    (reads_in_expression, (1.0,), TraceError, unassigned("conditional expression", 1)),
    (handler_of_a_read, (1.0,), TraceError, unassigned("`if`", 3)),
    (one_branch, (1.0,), TraceError,
     ("`y` is f64[] in the `if` branch (test_errors.py:$2), but not assigned in the `else` branch; "
     "assign it in both, or before the `if`, since it is used afterwards")),
    (shapes, (V,), TraceError,
     ("`y` is f64[4] in the `if` branch (test_errors.py:$2), but f64[2] in the `else` branch (test_errors.py:$4); "
     "both branches of a traced `if` must give it one type; cast with .astype, or reshape")),
    (dtypes, (V,), TraceError,
     ("`pair[1]` is f32[4] in the `if` branch (test_errors.py:$3), but f64[4] in the `else` branch (test_errors.py:$0); "
     "both branches of a traced `if` must give it one type; cast with .astype, or reshape")),
    (structures, (1.0,), TraceError,
     ("`y` is a tuple of 2 in the `if` branch (test_errors.py:$2), but a list of 1 in the `else` branch (test_errors.py:$4); "
     "both branches of a traced `if` must give it the same structure")),
    (return_types, (1.0,), TraceError,
     ("what the function returns is f64[] in the `if` branch (test_errors.py:$2), but 'no' in the `else` branch (test_errors.py:$3); "
     "both branches of a traced `if` must give it one type: only numbers and arrays may differ")),
    (falls_off_the_end, (1.0,), TraceError,
     ("what the function returns is f64[] in the `if` branch (test_errors.py:$2), but None in the `else` branch (test_errors.py:$1); "
     "both branches of a traced `if` must give it the same structure")),
    (carried_shape, (V, 3), TraceError,
     ("`y` is f64[4] before the loop (test_errors.py:$0), but f64[2] after an iteration (test_errors.py:$3); "
     "a traced loop must leave its type as it is; cast or reshape it before the loop")),
    (carried_none, (V, 3), TraceError,
     "`y` is None before the loop, but f64[4] after an iteration (test_errors.py:$3); a traced loop must leave its structure as it is"),
    (carried_text, (V, 3), TraceError,
     "`mode` is 'a' before the loop, but 'ab' after an iteration (test_errors.py:$3); only numbers and arrays may change in a traced loop"),
    (first_assigned_in_loop, (V, 3), TraceError,
     ("`y` is not assigned before the loop, but a tuple of 2 after an iteration (test_errors.py:$2); "
     "the loop may have no iterations: assign `y` before it, because it is used after it")),
    (attribute_in_one_branch, (1.0,), TraceError,
     ("`holder.value` is f64[] in the `if` branch (test_errors.py:$3), but not assigned in the `else` branch; "
     "assign it in both, or before the `if`, since it is used afterwards")),
    (truth_of_array, (V,), ShapeError, "`if`: the truth of bool[4] is ambiguous; use .any() or .all()"),
    (write_to_argument, (V,), TraceError,
     "`x[...] = ...` would change an argument, which the caller of a traced function does not see; copy it first: x = x.copy()"),
    (write_to_alias_of_argument, (V,), TraceError, "`x[...] = ...` would change an argument"),
    (write_to_view_of_argument_in_loop, (V, 3), TraceError, "`x[...] = ...` would change an argument"),
    (write_to_same_array, (V,), TraceError, shared("y")),
    (write_to_row, (V,), TraceError, shared("y")),
    (write_to_row_of_traced_number, (V, 2), TraceError, shared("y")),
    (write_under_view, (V,), TraceError, shared("half")),
    (swap_rows, (V,), TraceError, shared("old")),
    (write_to_what_a_loop_leaves, (V, 3), TraceError, shared("y")),
    (write_to_what_a_branch_chooses, (V,), TraceError, shared("z")),
    (write_to_array_in_list, (V,), TraceError, shared("both")),
    (write_through_dict, (V,), TraceError, "a traced value cannot be stored in a NumPy array that is not a local variable"),
    (size_of_traced_value, (3,), TraceError,
     ("full: a size cannot be a traced value; take it from the .shape of an argument, close over a Python int, or name the argument in "
     "static=; in a traced branch or loop it may differ each time")),
    (condition_in_comprehension, (V,), TraceError, "a condition inside a comprehension cannot depend on it: write a loop, or choose"),
    (calls_marked, (1.0,), TraceError, "`marked` was not converted to trace `if`, `while`, `and`, `or`, `not` and `assert`: it is marked"),
    (stacked_though_unknown, (1.0,), TraceError,
     ("the length of this list is only known when the function runs; "
     "aj.stack(items, fill=0.0) makes an array with a row for each possible item, and `for item in items:` iterates over the actual ones")),
    (averaged_though_unknown, (1.0,), TraceError, "only known when the function runs; aj.stack(items, fill=0.0) makes an array"),
    (comprehension_over_unknown, (1.0,), TraceError, "the length of this list is only known when the function runs; aj.stack("),
    (slice_of_unknown, (1.0,), TraceError, "and so are the contents of a slice of it; aj.stack("),
    (item_of_empty_list, (1.0,), TraceError,
     ("the list is empty before the traced loop that appends to it, so the type of its items is not known: append the first one before the "
     "loop, or test len(...) > 0 first")),
    (text_in_list, (1.0,), TraceError, "a list that a traced loop or branch appends to takes numbers and arrays, not 'a'"),
    (list_of_two_types, (V,), TraceError,
     "the items of a list that a traced loop or branch appends to must be of one type, not f64[4] and f64[]"),
    (gives_argument_away, (1.0,), TraceError,
     ("`ys.append(...)` in a traced statement would change an argument, which the caller does not see; copy it first, ys = list(ys), and "
     "return it")),
    (appends_to_argument, ([1.0],), TraceError, "appends_to_argument changes a list among its arguments, which the caller of a"),
    (writes_to_argument, ({"a": 1.0},), TraceError, "writes_to_argument changes a dict among its arguments, which the caller of a"),
    (sorts_texts, (1.0,), TraceError, "sorted(): the order of the items is only known when the function runs, so they must be numbers or"),
    (sorts_by_arrays, (V,), TraceError, "sorted(): the keys must be numbers, or tuples of equally many numbers, since their order is only"),
    (sorts_by_a_traced_direction, (1.0,), TraceError, "sorted(): `reverse` is only known when the function runs; sort the list on both"),
    (set_in_while, (3.0,), TraceError, "`seen` is set() before the loop, but {0} after an iteration (test_errors.py:$3); only numbers and"),
    (popped, (1.0,), TraceError, "a list that a traced loop or branch changes takes new items at its end, replaced items, and pop()"),
    (recursion, (3, V), TraceError, "a traced value cannot end a recursion, because both branches are traced; write a loop"),
    (calls_without_converting, (1.0,), TraceError,
     "and `assert`: it is called by `calls_without_converting`, which is not: it is marked do_not_convert; or choose"),
    (calls_from_library, (V,), TraceError, "it is called by code that is not converted: call it in a function of your own; or choose"),
    (namespace["loop_without_source"], (3, items.range), TraceError,
     "the number of iterations is only known when the function runs; `loop_without_source` was not converted to trace `if`, `while`"),
    (namespace["lambda_without_source"], (1.0,), TraceError, "`<lambda>` was not converted to trace"),
    (namespace["without_source"], (1.0,), TraceError,
     "its source is not available (typed at a prompt, read from a pipe, or made by exec): put it in a file; or choose"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "kind", "message"), CASES, ids=[c[0].__name__ for c in CASES])
def test_message(function: Callable[..., Any], args: tuple[Any, ...], kind: type[AdjitError], message: str) -> None:
    first = function.__code__.co_firstlineno
    expected = re.sub(r"\$(\d+)", lambda m: str(first + int(m[1])), message)
    with pytest.raises(kind) as caught:
        trace(convert(function), *args)
    assert expected in str(caught.value)
    assert caught.value.location is not None
    assert current_builder() is None


def test_statement_that_fails_is_named() -> None:
    with pytest.raises(TraceError) as caught:
        trace(convert(shapes), V)
    line = shapes.__code__.co_firstlineno + 1
    assert str(caught.value).endswith(f"test_errors.py:{line}:5 in shapes:  if x[0] > 0:")


def test_region_values_do_not_leak() -> None:
    kept = {}

    def f(x):
        if x > 0:
            keep(kept, x * 2)
        return kept["value"] + 1

    def keep(where, value):
        where["value"] = value

    with pytest.raises(TraceError, match=r"`kept` is a dict of 1 .* in the `if` branch"):
        trace(convert(f), 1.0)


def test_exception_in_a_body_leaves_variables_unchanged() -> None:
    seen = {}

    def f(x, n):
        y = x
        try:
            for _ in range(n):
                y = y * 2
                y = y @ np.ones((7, 7))
        except ShapeError:
            seen["y"] = y is x
        return y

    program = trace(convert(f), V, 3)
    assert seen == {"y": True}
    assert program.func.results[0] is program.func.params[0]


def test_raise_in_a_branch_fails_when_it_runs() -> None:
    def f(x):
        if x < 0:
            raise ValueError(f"x must not be negative, {'really'}")
        return x * 2

    func = trace(convert(f), 1.0).func
    assert run(func, np.float64(3.0))[0] == 6.0
    with pytest.raises(CheckError, match="ValueError: x must not be negative, really") as caught:
        run(func, np.float64(-3.0))
    assert caught.value.location.line == f.__code__.co_firstlineno + 2
    assert isinstance(caught.value, ValueError)


class Unphysical(ArithmeticError):
    pass


@pytest.mark.parametrize("error", [Unphysical, KeyError, OSError, CheckError])
def test_raised_in_a_branch_is_caught_by_its_class(error: type[Exception]) -> None:
    def f(x):
        if x < 0:
            raise error("no")
        return x

    func = trace(convert(f), 1.0).func
    built_in = {Unphysical: ArithmeticError, CheckError: AssertionError, OSError: CheckError}.get(error, error)
    for wanted in (CheckError, built_in):
        with pytest.raises(wanted, match="no") as caught:
            run(func, np.float64(-1.0))
        assert "\n  " in str(caught.value), "a message, not the repr of one, as of a KeyError"
    assert str(parse_func(str(func))) == str(func)


def test_assertion_fails_when_it_runs() -> None:
    def f(x, limit):
        assert limit == 5, "known while tracing"
        for i in range(limit):
            assert x < i + 1, "too large"
        return x

    def g(x):
        return f(x, 5)

    func = trace(convert(g), 0.5).func
    assert run(func, np.float64(0.25))[0] == 0.25
    with pytest.raises(CheckError, match="too large"):
        run(func, np.float64(1.25))


def test_assertion_on_known_values_fails_at_once() -> None:
    def f(x, mode):
        assert mode == "a", f"no such mode: {mode}"
        return x

    with pytest.raises(AssertionError, match="no such mode: b"):
        trace(convert(f), 1.0, "b")


def test_undefined_variables_stay_python_errors() -> None:
    def f(x, flag):
        if flag:
            y = x
        return y

    with pytest.raises(UnboundLocalError, match="y"):
        trace(convert(f), 1.0, False)


EXPLAINED = [
    (lambda x: f"x is {x}", "x is 5.25"),
    (lambda x: f"{x:.1f} {{braces}} {x!s:>6}", "5.2 {braces}   5.25"),
    (lambda x: f"{int(x)} {x > 1} {np.float32(1) * x} {'text'}", "5 True 5.25 text"),
    (lambda x: f"{x} {x} {x} {x} {x}", "5.25 5.25 5.25 5.25 <f64[]>"),
    (lambda x: f"{np.ones(2) * x} of {x}", "<f64[2]> of 5.25"),
    (lambda x: f"{x.astype(np.float16)}", "<f16[]>"),
    (lambda x: f"{np.uint64(2**64 - 1) + np.uint64(0) * x.astype(np.uint64)}", "18446744073709551615"),
    (lambda x: f"{np.float32(0.1) + np.float32(0) * x.astype(np.float32)!s}", "0.1"),
    (lambda x: f"{-np.int8(3) * (x > 0).astype(np.int8)}", "-3"),
]


@pytest.mark.parametrize(("text", "expected"), EXPLAINED)
@pytest.mark.parametrize("kind", ["raise", "assert", "loop"])
def test_f_strings_of_errors_show_the_values_of_the_run(text: Any, expected: str, kind: str) -> None:
    def raises(x):
        if x > 3:
            raise ValueError(text(x))
        return x

    def asserts(x):
        assert x <= 3, text(x)
        return x

    def loops(x):
        while x < 1000:
            if x > 3:
                raise ValueError(text(x))
            x = x * 5.25
        return x

    f = aj.function({"raise": raises, "assert": asserts, "loop": loops}[kind])
    good, bad = (1.0 if kind == "loop" else 2.0), (1.0 if kind == "loop" else 5.25)
    if kind != "loop":
        assert float(f(good)) == good
    with pytest.raises(CheckError) as raised:
        f(bad)
    before = "" if kind == "assert" else "ValueError: "
    assert str(raised.value).split("\n")[0] == before + expected


def test_values_of_errors_under_vmap_and_in_gradients() -> None:
    def checked(x):
        if x > 3:
            raise ValueError(f"x is {x:.2f}")
        return x * x

    with pytest.raises(CheckError, match=r"ValueError: x is \.\.\."):
        aj.function(aj.vmap(checked))(np.array([1.0, 5.0]))
    gradient = aj.function(aj.grad(checked))
    assert float(gradient(2.0)) == 4.0
    with pytest.raises(CheckError, match=r"ValueError: x is 5.00"):
        gradient(5.0)
