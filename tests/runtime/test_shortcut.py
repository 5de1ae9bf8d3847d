"""The native entry: it runs the calls that it supports, and passes all others to Python, with the same results."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.entry.entry import available
from adjit.ir.gate import gate

pytestmark = pytest.mark.skipif(not available(), reason="this Python lays out its objects in another way: calls go through Python")


def is_native(f: object) -> bool:
    return type(type(f).__call__).__name__ == "builtin_function_or_method"


def test_small_functions_get_an_entry_and_everything_else_still_works() -> None:
    f = aj.function(lambda x: 2.0 * x + 1.0, reduce_retracing=True)
    x = np.arange(8, dtype="f4")
    assert not is_native(f)
    first = f(x)
    assert is_native(f)
    for argument in (x, aj.tensor(x), x[::-1], x[::2], x.astype("f8"), x.reshape(2, 4), 3.0, 3, np.float32(2)):
        np.testing.assert_allclose(f(argument).numpy(), 2.0 * np.asarray(argument) + 1.0)
    assert isinstance(f(x), aj.Tensor)
    assert f(x).type == first.type
    np.testing.assert_array_equal(f(x=x).numpy(), first.numpy())


def test_results_as_the_function_gives_them() -> None:
    pair = aj.function(lambda x, s: (x * s, x.sum()))
    x = np.arange(3.0)
    for _ in range(3):
        scaled, total = pair(x, 2.0)
        np.testing.assert_array_equal(scaled.numpy(), [0.0, 2.0, 4.0])
        assert float(total) == 3.0
    named = aj.function(lambda x: {"y": x + 1.0})
    for _ in range(3):
        np.testing.assert_array_equal(named(x)["y"].numpy(), x + 1.0)
    assert aj.function(lambda x: None)(x) is None


def took_the_short_way(f: aj.Function) -> bool:
    """Whether the entry itself ran a call since the last call of this function."""
    return bool(f._shortcut.used())


def total(tree: Any) -> Any:
    """A function of structures: the sum of all their arrays and numbers, and the structure with everything doubled."""
    match tree:
        case dict():
            parts = {key: total(value) for key, value in tree.items()}
            return sum(p[0] for p in parts.values()), {key: p[1] for key, p in parts.items()}
        case tuple() | list():
            parts = [total(value) for value in tree]
            return sum(p[0] for p in parts), type(tree)(p[1] for p in parts)
        case None | bool() | str():
            return 0.0, None
        case _:
            return np.sum(tree), tree * 2.0


def plain(tree: Any) -> Any:
    """Tensors as lists of numbers."""
    if isinstance(tree, aj.Tensor):
        return tree.numpy().tolist()
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    return type(tree)(map(plain, tree)) if isinstance(tree, tuple | list) else tree


A, B = np.arange(3.0), np.ones((2, 2))
STRUCTURES = {
    "tuple": (A, B),
    "list": [A, B, A],
    "dict": {"w": A, "b": B},
    "nested": {"layers": [{"w": B, "b": A}, {"w": B * 3.0, "b": A}], "scale": 2.5, "rest": ((A,), [], (), {})},
    "static": {"x": A, "name": "linear", "training": True, "mask": None},
    "tensors": [aj.tensor(A), (aj.tensor(B),)],
}


@pytest.mark.parametrize("tree", STRUCTURES.values(), ids=STRUCTURES)
def test_structures_go_the_short_way(tree: Any) -> None:
    f = aj.function(total)
    first = f(tree)
    assert is_native(f)
    took_the_short_way(f)
    again = f(tree)
    assert took_the_short_way(f)
    assert plain(again) == plain(first) == plain(aj.function(total)(tree))
    assert f.trace_count == 1


OTHERS = {
    "a shape": {"w": np.ones(4), "b": [B, 1.0]},
    "a dtype": {"w": A.astype("f4"), "b": [B, 1.0]},
    "a missing key": {"b": [B, 1.0]},
    "another key": {"v": A, "b": [B, 1.0]},
    "one key more": {"w": A, "b": [B, 1.0], "c": A},
    "a tuple for a list": {"w": A, "b": (B, 1.0)},
    "a longer list": {"w": A, "b": [B, 1.0, A]},
    "a number for an array": {"w": 2.0, "b": [B, 1.0]},
    "an integer": {"w": A, "b": [B, 1]},
    "a subclass": OrderedDict(w=A, b=[B, 1.0]),
    "not contiguous": {"w": np.arange(6.0)[::2], "b": [B, 1.0]},
}


@pytest.mark.parametrize("tree", OTHERS.values(), ids=OTHERS)
def test_what_differs_from_the_structure_goes_through_python(tree: Any) -> None:
    known = {"w": A, "b": [B, 1.0]}
    f = aj.function(total)
    f(known)
    took_the_short_way(f)
    assert plain(f(tree)) == plain(aj.function(total)(tree))
    f(known)
    assert took_the_short_way(f)


def digits(tree: dict[str, Any]) -> Any:
    """A function of the order of the keys."""
    value = 0.0
    for key in tree:
        value = 10.0 * value + tree[key]
    return value


@pytest.mark.parametrize("number", [float, np.float64, np.array, aj.tensor])
def test_dicts_are_seen_in_their_own_order(number: Any) -> None:
    f = aj.function(digits)
    trees = [{"a": number(1.0), "b": number(2.0), "c": number(3.0)}, {"c": number(3.0), "a": number(1.0), "b": number(2.0)}]
    for _ in range(3):
        assert [float(f(tree)) for tree in trees] == [123.0, 312.0]
    assert f.trace_count == 2
    assert [float(aj.function(lambda **named: digits(named))(**tree)) for tree in trees] == [123.0, 312.0]


@pytest.mark.one_size("counts traces")
def test_dicts_in_another_order_go_the_short_way_after_their_own_trace() -> None:
    f = aj.function(digits)
    one, two = {"weight": A, "bias": A + 7}, {"bias": A + 7, "weight": A}
    f(one)
    took_the_short_way(f)
    np.testing.assert_array_equal(f(two), 10 * (A + 7) + A)
    assert f.trace_count == 2
    for tree in (one, two):
        np.testing.assert_array_equal(f(tree), digits(tree))
        assert took_the_short_way(f)
    copied = {"".join(["wei", "ght"]): A, "".join(["bi", "as"]): A + 7}  # equal keys that are other objects
    np.testing.assert_array_equal(f(copied), digits(copied))
    assert took_the_short_way(f)


def test_keys_that_run_python_code_when_they_are_compared() -> None:
    """Such a key could free objects that the entry has found already: a dict with one goes through Python."""
    f = aj.function(lambda tree: tree["inner"][0] * tree["w"])
    f({"inner": [np.ones(1000)], "w": 2.0})

    class Key:
        def __hash__(self) -> int:
            return hash("w")

        def __eq__(self, other: object) -> bool:
            tree["inner"].clear()
            compared.append(other)
            return True

    compared: list[object] = []
    took_the_short_way(f)
    tree: dict[Any, Any] = {"inner": [np.ones(1000)], Key(): 2.0}
    with suppress(TypeError, IndexError):
        f(tree)
    assert not took_the_short_way(f)
    plain = {"inner": [np.ones(3)], "w": 2.0, 1: 2}
    del plain[1]  # a dict that once had another key keeps the layout of such
    np.testing.assert_array_equal(f(plain).numpy(), np.full(3, 2.0))


def test_static_values_are_distinguished() -> None:
    f = aj.function(lambda x, how: x * 2.0 if how == "double" else x)
    for how, factor in (("double", 2.0), ("single", 1.0), ("double", 2.0), ("".join(["dou", "ble"]), 2.0)):
        np.testing.assert_array_equal(f(A, how).numpy(), factor * A)


def test_calls_leave_no_references_behind() -> None:
    tree = {"w": np.arange(3.0), "b": [np.ones(2), 1.5], "name": "a name of its own"}
    f = aj.function(total)
    f(tree)
    before = [sys.getrefcount(x) for x in (tree, tree["w"], tree["b"], tree["b"][0], tree["name"])]
    for _ in range(100):
        out = list(f(tree))  # items count in every version of Python, local variables do not
        counts = [sys.getrefcount(out[1]), sys.getrefcount(out[1]["w"]), sys.getrefcount(out[1]["b"]), sys.getrefcount(out[1]["b"][0])]
        assert counts == [2] * 4
    out.clear()
    assert [sys.getrefcount(x) for x in (tree, tree["w"], tree["b"], tree["b"][0], tree["name"])] == before


def test_functions_that_release_the_gil_take_lists_too() -> None:
    f = aj.function(lambda xs: halved(xs[0]))
    for xs in ([np.arange(100.0)], (np.arange(100.0),)):
        assert float(f(xs)) == 4950 / 8192
        took_the_short_way(f)
        f(xs)
        assert took_the_short_way(f)


SCALAR_TYPES = [np.dtype(code).type for code in "?bhilBHILefdFD"]


@pytest.mark.parametrize("kind", [int, float, complex, *SCALAR_TYPES], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("held", [False, True], ids=["short", "released"])
def test_numbers_go_the_short_way(kind: Any, held: bool) -> None:
    """Also in containers, and while other threads run: a list may lose them meanwhile."""
    run = halved if held else lambda x: x

    def f(x: Any, parts: Any) -> Any:
        return x, [2 * part for part in parts], run(np.ones(3))

    compiled = aj.function(f)
    for number in (1, 0, 1):
        value = kind(number)
        got, (doubled,), _ = compiled(value, [value])
        wanted = np.asarray(value)
        assert (got.numpy().dtype, got.numpy()) == (wanted.dtype, wanted)
        np.testing.assert_array_equal(doubled.numpy(), 2 * wanted)
    assert took_the_short_way(compiled)
    assert compiled.trace_count == 1


def test_integers_of_all_sizes() -> None:
    f = aj.function(lambda n: n)
    f(1)
    took_the_short_way(f)
    for n in (0, -1, 2**31, -(2**62), 2**63 - 1, -(2**63)):
        assert int(f(n)) == n
    assert took_the_short_way(f)
    for n in (2**63, -(2**63) - 1, 10**40):
        with pytest.raises(aj.AdjitError, match="does not fit into i64"):
            f(n)
    assert int(f(7)) == 7


def test_numbers_of_other_classes_are_distinguished() -> None:
    class Metres(float):
        pass

    f = aj.function(lambda x: x + np.float32(1.0), reduce_retracing=True)
    values = [1, 1.0, np.float32(1.0), np.float64(1.0), np.int8(1), np.array(1.0, "f4"), np.True_, Metres(1.0)]
    for value in values + values[::-1]:
        wanted = aj.function(lambda x: x + np.float32(1.0))(value)
        got = f(value)
        assert (got.type, float(got)) == (wanted.type, float(wanted))


def test_gradients_of_structures() -> None:
    params = {"w": np.full((3, 2), 0.5), "b": [np.zeros(2)]}
    x = np.arange(12.0).reshape(4, 3)

    def loss(params, x):
        return np.sum(np.tanh(x @ params["w"] + params["b"][0]))

    f = aj.function(aj.value_and_grad(loss))
    f(params, x)
    took_the_short_way(f)
    value, gradients = f(params, x)
    assert took_the_short_way(f)
    np.testing.assert_allclose(float(value), loss(params, x))
    slope = 1 - np.tanh(x @ params["w"]) ** 2
    np.testing.assert_allclose(gradients["w"].numpy(), x.T @ slope)
    np.testing.assert_allclose(gradients["b"][0].numpy(), slope.sum(0))


def test_variables_are_updated_in_place_unless_their_value_is_referenced() -> None:
    w = aj.Variable(np.zeros(3))

    @aj.function
    def step(d):
        w.assign_add(d)

    d = np.ones(3)
    for k in range(1, 4):
        assert step(d) is None
        np.testing.assert_array_equal(w.numpy(), k * d)
    held = w.value()
    step(d)
    np.testing.assert_array_equal(held.numpy(), 3 * d)
    np.testing.assert_array_equal(w.numpy(), 4 * d)


def test_errors_of_native_code_come_with_the_users_line_and_change_nothing() -> None:
    w = aj.Variable(np.zeros(4))

    @aj.function
    def step(x, i):
        w.assign_add(x)
        return x[i]

    x = np.arange(4.0)
    step(x, np.array(1))
    for _ in range(2):
        with pytest.raises(IndexError, match="out of bounds") as caught:
            step(x, np.array(7))
        assert "test_shortcut.py" in str(caught.value)
    np.testing.assert_array_equal(w.numpy(), x)


def test_tapes_eager_runs_and_traces_close_the_gate() -> None:
    f = aj.function(lambda x: x * x)
    x = aj.tensor(np.arange(3.0))
    f(x)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [0.0, 2.0, 4.0])
    outer = aj.function(lambda x: f(x) + 1.0)
    np.testing.assert_array_equal(outer(x).numpy(), [1.0, 2.0, 5.0])
    with pytest.raises(ValueError, match="broadcast"):
        aj.function(lambda x: f(x) + np.ones(7))(x)
    assert gate.reasons == 0


def test_a_function_and_its_programs_can_be_freed() -> None:
    f = aj.function(lambda x: x + 1.0)
    f(np.arange(3.0))
    assert is_native(f)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def halved(x):
    """A loop: the entry releases the GIL while it runs."""
    total = x.sum()
    while total > 1.0:
        total = total / 2.0
    return total


@pytest.mark.parametrize(("fn", "expected"), [(lambda x: (x * 3.0).sum(), 14850.0), (halved, 4950 / 8192)], ids=["quick", "loop"])
def test_threads_share_an_entry(fn: Callable[..., Any], expected: float) -> None:
    f = aj.function(fn)
    x = np.arange(100.0)
    assert float(f(x)) == expected
    assert is_native(f)
    wrong = []

    def run() -> None:
        wrong.extend(1 for _ in range(300) if float(f(x)) != expected)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.one_size("counts traces")
def test_hundreds_of_arrays_and_variables_go_the_short_way() -> None:
    tree = {f"x{k}": [np.full(2, float(k))] for k in range(300)}
    variables = [aj.Variable(np.zeros(2)) for _ in range(300)]

    @aj.function
    def step(tree: Any) -> Any:
        for variable, (x,) in zip(variables, tree.values(), strict=True):
            variable.assign_add(x)
        return {name: x for name, (x,) in tree.items()}

    for _ in range(4):
        results = step(tree)
    assert type(step).__call__ is not aj.Function.__call__
    assert len(step._shortcut._routes) == 1
    assert [float(v[1]) for v in variables] == [4.0 * k for k in range(300)]
    assert [float(x[0]) for x in results.values()] == [float(k) for k in range(300)]
    other = step({name: [np.array(x[0])] for name, x in tree.items()})  # others of the same kind
    assert list(other) == list(tree)
    assert step.trace_count == 1


def test_a_busy_caller_waits_for_the_entry(tmp_path: Path) -> None:
    """The disk cache is empty, and successive calls leave hardly any time to the thread that compiles."""
    program = """
import numpy as np, adjit as aj
from adjit.runtime.shortcut import PATIENCE
f, x = aj.function(lambda x: 2.0 * x + 1.0), np.ones(8)
f(x)
assert type(type(f).__call__).__name__ == "function"
for _ in range(PATIENCE):
    f(x)
print(type(type(f).__call__).__name__)
"""
    env = {**os.environ, "ADJIT_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "builtin_function_or_method"
