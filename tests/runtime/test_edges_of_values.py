"""Edge cases of tensors, variables and arguments: buffers, copies, deep structures, methods, and messages about ranks."""

from __future__ import annotations

import io
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.runtime import tune
from adjit.runtime.agreement import Description, Line, difference

X = np.array([1.0, -2.0, 3.0])


# ---- arrays of tensors


def test_arrays_are_views_or_copies_as_requested() -> None:
    t = aj.tensor(X)
    assert not np.asarray(t).flags.writeable
    copy = np.array(t)
    copy[0] = 9.0
    assert t.numpy()[0] == 1.0
    assert np.asarray(t, dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(t.__array__(copy=False), X)
    np.testing.assert_array_equal(t.__array__(np.dtype("f8")), X)
    with pytest.raises(ValueError, match=r"a f64\[3\] tensor cannot become float32 without a copy"):
        t.__array__(np.dtype("f4"), copy=False)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks objects for buffers from 3.12 on")
def test_buffers_are_read_only_and_not_of_what_is_differentiated() -> None:
    t = aj.tensor(X)
    view = memoryview(t)  # type: ignore[arg-type]
    assert view.readonly
    assert view.tolist() == X.tolist()
    with pytest.raises((BufferError, TypeError), match=r"cannot be written to|read-write"):
        io.BytesIO(bytes(t.nbytes)).readinto(t)  # type: ignore[arg-type]
    assert t.numpy().tolist() == X.tolist()
    with aj.GradientTape() as tape:
        tape.watch(t)
        with pytest.raises(BufferError, match="its gradient would be lost"):
            memoryview(t)  # type: ignore[arg-type]


def test_integers_fit_the_requested_dtype() -> None:
    np.testing.assert_array_equal(aj.tensor([0, 255], dtype="uint8").numpy(), np.array([0, 255], "u1"))
    for values in ([0, 256], [-1, 3]):
        with pytest.raises(aj.DTypeError):
            aj.tensor(values, dtype="uint8")


# ---- variables


def test_a_variable_has_no_array_in_a_trace() -> None:
    v = aj.Variable(2.0, name="v")
    with pytest.raises(aj.TraceError, match="variable 'v' has no array inside a traced function"):
        aj.function(lambda x: x * np.float64(v.numpy()))(X)
    assert v.numpy() == 2.0


# ---- structures


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else [X]


def test_deep_and_odd_structures_take_the_general_way() -> None:
    total = aj.function(lambda tree: sum(aj.sum(leaf) for leaf in aj.tree_leaves(tree)))
    for _ in range(2):
        assert float(total(nested(30))) == 2.0
        assert float(total({1: X, 2: {"a": X}})) == 4.0
        assert float(total(((X, [X]), {"b": (X,)}))) == 6.0


def test_the_order_of_keys_is_a_reason_to_trace_again() -> None:
    f = aj.function(lambda d: {k: v * 2.0 for k, v in d.items()}, max_traces=1)
    f({"a": X, "b": X[:2]})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(6):
            assert list(f({"b": X[:2], "a": X})) == ["b", "a"]
            assert list(f({"a": X, "b": X[:2]})) == ["a", "b"]
    assert any("the order of the keys of a dict" in str(w.message) for w in said)


# ---- methods and closures under checkpoints


class Layer:
    def __init__(self) -> None:
        self.scale = aj.Variable(3.0)

    def __call__(self, x: Any) -> Any:
        return aj.sum(aj.sin(x) * self.scale)

    def twice(self, x: Any) -> Any:
        return self(x) * 2.0


@pytest.mark.parametrize("compiled", [False, True])
def test_checkpoints_of_methods_and_recursive_functions(compiled: bool) -> None:
    layer = Layer()
    rate = 2.0

    def power(x: Any, n: int) -> Any:
        return x * rate if n == 0 else power(x, n - 1) * x

    def loss(x: Any) -> Any:
        return aj.checkpoint(layer.twice)(x) + aj.sum(aj.checkpoint(lambda x: power(x, 2))(x))

    gradient = aj.grad(loss)
    got = (aj.function(gradient) if compiled else gradient)(X)
    np.testing.assert_allclose(np.asarray(got), 6.0 * np.cos(X) + 2.0 * 3.0 * X**2, rtol=1e-13)


def test_a_checkpoint_may_assign_and_read() -> None:
    state = aj.Variable(1.0)

    @aj.checkpoint
    def step(x: Any) -> Any:
        state.assign_add(1.0)
        return x * x * state

    x = aj.tensor(3.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = step(x)
    assert tape.gradient(y, x).numpy() == 12.0
    assert state.numpy() == 2.0


# ---- solutions without parameters


def test_a_root_that_depends_on_nothing_has_the_derivative_zero() -> None:
    root = aj.implicit.custom_root(lambda x, n: x * x - n, lambda x0, n: aj.sqrt(aj.cast(n, "float64")))
    for call in (root, aj.function(root)):
        assert float(aj.grad(lambda x0, call=call: call(x0, 4))(1.0)) == 0.0


# ---- explanations


def test_a_derivative_that_passes_a_branch_is_explained() -> None:
    @aj.function
    def explained(x: Any, p: Any) -> Any:
        with aj.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * 2.0 if p else x * 3.0
            z = aj.floor(y)
        said.append(tape.explain(y, x))
        said.append(tape.explain(z, x))
        return z

    said: list[str] = []
    explained(X, True)
    assert said[0].startswith("connected")
    assert "`floor`" in said[1]


# ---- ranks


def test_differences_between_ranks_are_named() -> None:
    one = Description("step", (Line("all_reduce f64[3]", " at a.py:1"), Line("  broadcast f64[]", " at a.py:2")))
    assert difference(one, one._replace(name="other"), 2) == (
        "ranks call different functions with collectives: step on rank 0, other on rank 2"
    )
    changed = one._replace(lines=(one.lines[0], Line("  all_reduce f64[]", " at b.py:7")))
    assert difference(one, changed, 1) == "step: broadcast f64[] at a.py:2 on rank 0, but all_reduce f64[] at b.py:7 on rank 1"
    shorter = one._replace(lines=one.lines[:1])
    assert difference(one, shorter, 3) == "step: broadcast f64[] at a.py:2 on rank 0 has no counterpart on rank 3"
    assert difference(shorter, one, 3) == "step: broadcast f64[] at a.py:2 on rank 3 has no counterpart on rank 0"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_terminals_only() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for out in (terminal, pipe):
        tune._progress(out, 1, 2)
        tune._clear(out)
    assert terminal.getvalue() == f"[{'#' * 15}{' ' * 15}] 1 of 2\r\x1b[K"
    assert pipe.getvalue() == ""
