"""The functional forms of control flow: traced and interpreted = eager; their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adjit.ir.errors import ShapeError, TraceError
from adjit.ir.verifier import verify
from adjit.tracer.control import cond, fori_loop, map, scan, switch, while_loop
from adjit.tracer.pytree import flatten
from tests.tracer.running import run_program, trace

V = np.array([1.0, -2.0, 3.0, 0.5])
M = np.arange(8.0).reshape(4, 2)


def same(ours: Any, theirs: Any) -> None:
    (a, tree), (b, expected) = flatten(ours), flatten(theirs)
    assert tree == expected
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-13)


CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...], list[str]]] = [
    ("cond true", lambda x: cond(x > 0, lambda x: x * 2, lambda x: -x, x), (2.0,), ["greater", "if"]),
    ("cond false", lambda x: cond(x > 0, lambda x: x * 2, lambda x: -x, x), (-2.0,), ["greater", "if"]),
    ("cond known", lambda x: cond(True, lambda: x, lambda: x.nothing), (2.0,), []),
    ("cond of structures", lambda x: cond(x[0] > 0, lambda: {"a": x, "b": (1, x[0])}, lambda: {"a": -x, "b": (2.5, x[1])}), (V,), None),
    ("cond of one constant", lambda x: (cond(x > 0, lambda: 3, lambda: 3), x), (2.0,), None),
    ("switch", lambda i, x: switch(i, [lambda x: x, lambda x: x * 2, lambda x: x * 3, lambda x: -x], x), (2, 5.0), None),
    ("switch below", lambda i, x: switch(i, [lambda x: x, lambda x: x * 2, lambda x: x * 3], x), (-4, 5.0), None),
    ("switch above", lambda i, x: switch(i, [lambda x: x, lambda x: x * 2, lambda x: x * 3], x), (9, 5.0), None),
    ("while", lambda x: while_loop(lambda s: s[1] < 50, lambda s: (s[0] + 1, s[1] * 2), (0, x)), (3.0,), ["while"]),
    ("while without trips", lambda x: while_loop(lambda s: s < 0, lambda s: s - 1, x), (3.0,), ["while"]),
    ("while of a weak start", lambda x: while_loop(lambda s: s[0] < 3, lambda s: [s[0] + 1, s[1] + x], [0, 0]), (V,), ["while"]),
    ("fori", lambda x, n: fori_loop(1, n, lambda i, s: s * i + x[i], 0.0), (V, 4), ["for"]),
    ("fori without trips", lambda x, n: fori_loop(5, n, lambda i, s: s * i + x[i], 0.0), (V, 4), ["for"]),
    ("fori of known bounds stays a loop", lambda x: fori_loop(0, 3, lambda i, s: np.sin(s) + i, x), (0.5,), ["for"]),
    ("fori nested", lambda x: fori_loop(0, 3, lambda i, s: fori_loop(0, i, lambda j, t: t + x[j], s * 2), 1.0), (V,), ["for"]),
    ("scan", lambda x: scan(lambda c, x: (c + x, c * x), 0.0, x), (V,), ["for"]),
    ("scan reversed", lambda x: scan(lambda c, x: (c + x, c * x), 0.0, x, reverse=True), (V,), ["for"]),
    ("scan of structs", lambda v, m: scan(lambda c, x: (c + x["m"], (x["v"] * c, [c.sum()])), np.zeros(2), {"v": v, "m": m}), (V, M), None),
    ("scan of a length", lambda x: scan(lambda c, _: (c * 0.5, c), x, length=5), (2.0,), ["for"]),
    ("scan of promoted ys", lambda x: scan(lambda c, x: (c + x, c), 0, x), (V,), ["for"]),
    ("map", lambda m: map(lambda row: row * row.sum(), m), (M,), ["for"]),
    ("cond in scan", lambda x: scan(lambda c, x: (cond(x > 0, lambda: c + x, lambda: c), c), 0.0, x), (V,), ["for"]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "expected_ops"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_traced_is_eager(function: Callable[..., Any], args: tuple[Any, ...], expected_ops: list[str] | None) -> None:
    program = trace(function, *args)
    verify(program.func)
    if expected_ops is not None:
        assert [stmt.op.name for stmt in program.func.stmts] == expected_ops
    same(run_program(program, *args), function(*args))


def test_functions_are_converted() -> None:
    def body(s):
        if s > 10:
            return s - 3
        return s * 2

    def f(x):
        return while_loop(lambda s: s < 15, body, x)

    same(run_program(trace(f, 3.0), 3.0), f(3.0))


def test_checkpoint_is_kept() -> None:
    (stmt,) = trace(lambda x: fori_loop(0, 9, lambda i, s: np.sin(s), x, checkpoint="binomial"), 1.0).func.stmts
    assert stmt.op.checkpoint == "binomial"
    (stmt,) = trace(lambda x: while_loop(lambda s: s > 1, lambda s: s / 2, x, checkpoint=4), 1.0).func.stmts
    assert stmt.op.checkpoint == 4
    for wrong in ("sometimes", 0, True, 1.5):
        with pytest.raises(ValueError, match="checkpoint is 'none', 'sqrt', 'binomial' or a positive number of iterations"):
            fori_loop(0, 3, lambda i, s: s, 1.0, checkpoint=wrong)  # type: ignore[arg-type]


ERRORS: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
    (lambda x: cond(x[0] > 0, lambda: x, lambda: x[0]), (V,), TraceError, "the result of cond is f64[4] from true_fn (test_control.py:"),
    (lambda x: cond(x[0] > 0, lambda: (x,), lambda: x), (V,), TraceError, "branches of a traced `cond` must give it the same structure"),
    (lambda x: cond(x > 0, lambda: x, lambda: x), (V,), ShapeError, "`cond`: the truth of bool[4] is ambiguous"),
    (lambda x: while_loop(lambda s: s[0] < 5, lambda s: s[:2], x), (V,), TraceError, "the state is f64[4] before the loop"),
    (lambda x: while_loop(lambda s: s[0] < 5, lambda s: s.astype("f4"), x), (V,), TraceError, "but f32[4] from body_fn (test_control.py:"),
    (lambda x: fori_loop(0, x, lambda i, s: s, 1.0), (1.5,), TraceError, "fori_loop: a bound must be an integer, not f64[]"),
    (lambda x: switch(x, [lambda: 1, lambda: 2]), (1.5,), TraceError, "switch: the index must be an integer scalar, not f64[]"),
    (lambda x: switch(x, []), (1,), TraceError, "switch: needs at least one branch"),
    (lambda x: scan(lambda c, x: c, 0.0, x), (V,), TraceError, "scan: f must return a pair (carry, y), not Traced"),
    (lambda x: scan(lambda c, x: (c, x), 0.0), (V,), ShapeError, "scan: neither xs nor a length is given"),
    (lambda x: scan(lambda c, x: (c, x), 0.0, (x, x[:2])), (V,), ShapeError, "scan: xs[1] has 2 rows, not 4"),
    (lambda x: scan(lambda c, x: (c, x), 0.0, x), (1.5,), ShapeError, "scan: xs is f64[]: a scalar has no rows"),
    (lambda x: scan(lambda c, x: (c, "y"), 0.0, x), (V,), TraceError, "scan: a y must be made of numbers and arrays, not str"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "kind", "message"), ERRORS)
def test_errors(function: Callable[..., Any], args: tuple[Any, ...], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        trace(function, *args)
    assert message in str(caught.value)


def test_values_of_a_region_do_not_leave_it() -> None:
    def f(x):
        kept = []
        cond(x > 0, lambda: kept.append(x * 2) or x, lambda: x)
        return kept[0] + 1

    with pytest.raises(TraceError, match="computed inside a branch or a loop and is used outside, where it may not exist"):
        trace(f, 1.0)
