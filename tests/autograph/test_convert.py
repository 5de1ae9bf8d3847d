"""Converted functions keep the user's closure, defaults, lines and names; and functions that are not converted."""

from __future__ import annotations

import functools
import gc
import traceback
import weakref
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.autograph import items
from adjit.tracer.autograph.convert import convert, to_code
from adjit.tracer.autograph.marks import do_not_convert
from tests.tracer.running import run_program, run_traced, trace

FACTOR = 3.0
TOTAL = 0.0


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


@decorated
def with_decorator(x):
    if x > 0:
        return x * FACTOR
    return x


def with_defaults(x, scale=2.0, *rest, shift=1.0, **more):
    """Scales."""
    if x > 0:
        x = x * scale
    return x + shift + sum(rest) + sum(more.values())


def assigns_global(x):
    global TOTAL
    TOTAL = x
    if x > 0:
        TOTAL = x * 2
    return TOTAL


def fails(x):
    y = x
    for i in range(3):
        if y is not None:
            # fmt: off
            y = y + {}[
                i
            ]
            # fmt: on
    return y


class Layer:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        if x > 0:
            return x * self.w
        return x

    def forward(self, x):
        return self(x) if x > -1 else -x


def test_keeps_what_a_function_has() -> None:
    new = convert(with_defaults)
    assert new is not with_defaults
    assert (new.__name__, new.__qualname__, new.__module__, new.__doc__) == ("with_defaults", "with_defaults", __name__, "Scales.")
    assert new.__defaults__ is with_defaults.__defaults__
    assert new.__globals__ is globals()
    assert new(1.0) == 3.0
    assert new(1.0, 5.0, 1.0, shift=0.0, k=2.0) == 8.0
    assert run_traced(new, 1.0, 4.0) == 5.0


def test_decorators_and_wrapped_functions() -> None:
    assert run_traced(convert(with_decorator), 2.0) == 7.0
    assert run_traced(convert(with_decorator), -2.0) == -1.0


def test_globals_are_read_when_called(monkeypatch: pytest.MonkeyPatch) -> None:
    new = convert(with_decorator)
    monkeypatch.setitem(globals(), "FACTOR", 10.0)
    assert new(1.0) == 11.0


def test_closure_cells_are_shared() -> None:
    count = 0

    def step(x):
        nonlocal count
        count += 1
        if x > 0:
            x = x + count
        return x

    new = convert(step)
    assert new(1.0) == 2.0
    assert count == 1
    count = 10
    assert new(1.0) == 12.0
    assert count == 11


def test_global_assigned_in_branch() -> None:
    before = TOTAL
    try:
        for x in (2.0, -2.0):
            program = trace(convert(assigns_global), x)
            assert run_program(program, x) == (4.0 if x > 0 else -2.0)
    finally:
        globals()["TOTAL"] = before


def test_methods_and_callable_objects() -> None:
    layer = Layer(3.0)
    assert run_traced(convert(layer), 2.0) == 6.0
    assert run_traced(convert(layer.forward), 2.0) == 6.0
    assert run_traced(convert(layer.forward), -2.0) == 2.0
    assert run_traced(convert(functools.partial(with_defaults, scale=5.0)), 1.0) == 6.0


def test_converted_once() -> None:
    assert convert(with_defaults) is convert(with_defaults)
    assert convert(convert(with_defaults)) is convert(with_defaults)

    def make(limit):
        def inner(x):
            return x if x > limit else limit

        return inner

    one, two = make(1.0), make(2.0)
    assert convert(one).__code__ is convert(two).__code__
    assert run_traced(convert(one), 0.0) == 1.0
    assert run_traced(convert(two), 0.0) == 2.0


def test_functions_are_not_kept_alive() -> None:
    def make():
        held = Layer(1.0)

        def inner(x):
            return held(x) if x > 0 else x

        return inner, weakref.ref(held)

    function, alive = make()
    convert(function)
    del function
    gc.collect()
    assert alive() is None


def test_libraries_are_left_alone() -> None:
    for function in (np.sum, np.linalg.norm, len, functools.reduce, convert, items.range, Layer, 3):
        assert convert(function) is function  # type: ignore[arg-type]


def test_wrappers_of_adjit_are_left_alone() -> None:
    """They have the module of the function that they wrap, which is converted when they call it."""

    def f(x: Any) -> Any:
        return x * x if x > 0 else -x

    for wrapped in (aj.value_and_grad(f), aj.grad(f), aj.checkpoint(f), aj.vmap(f), aj.jacobian(f)):
        assert convert(wrapped) is wrapped
    assert convert(f) is not f
    value, slope = aj.function(aj.value_and_grad(f))(3.0)
    assert (float(value), float(slope)) == (9.0, 6.0)


def test_do_not_convert() -> None:
    @do_not_convert
    def plain(x, flag):
        if flag:
            return x
        return -x

    assert convert(plain) is plain
    assert run_traced(convert(plain), 2.0, True) == 2.0
    with pytest.raises(TypeError, match="do_not_convert takes a Python function, not int"):
        do_not_convert(3)  # type: ignore[type-var]


def test_coroutines_are_left_alone() -> None:
    async def coroutine(x):
        return x if x else None

    assert convert(coroutine) is coroutine


def test_generators_stay_generators() -> None:
    def generator(x):
        if x and not x < 0:
            got = yield x
            while got is not None:
                got = yield got + x
        try:
            return "done"
        finally:
            x = [v for v in range(3) if v in (1, 2)]

    def drive(make):
        g = make(2)
        out = [next(g), g.send(5), g.send(7)]
        with pytest.raises(StopIteration) as end:
            next(g)
        return out, end.value.value

    assert convert(generator) is not generator
    assert drive(convert(generator)) == drive(generator) == ([2, 7, 9], "done")


def test_tracebacks_show_the_users_lines() -> None:
    first = fails.__code__.co_firstlineno
    with pytest.raises(KeyError) as caught:
        trace(convert(fails), 1.0)
    ours = [frame for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__ and frame.name == "fails"]
    assert [frame.lineno for frame in ours] == [first + 2, first + 3, first + 5]
    assert [frame.line for frame in ours] == ["for i in range(3):", "if y is not None:", "y = y + {}["]
    assert ours[-1].colno == 20


def locations(block: Any) -> list[tuple[str, int, int, str]]:
    out = []
    for stmt in block.stmts:
        place = stmt.location
        out.append((stmt.op.name, place.line, place.column, place.function))
        for inner in stmt.blocks:
            out += locations(inner)
    return out


def test_ir_has_the_users_lines_and_names() -> None:
    def f(x, n):
        total = 0.0
        while total < n:
            if x > 1:
                total = total + np.sin(x)
            total = total + 1
        return total

    func = trace(convert(f), 2.0, 3.0).func
    first = f.__code__.co_firstlineno
    assert [(name, line - first, column) for name, line, column, _ in locations(func.block)] == [
        ("while", 2, 9),
        ("less", 2, 15),
        ("greater", 3, 16),
        ("if", 3, 13),
        ("sin", 4, 33),
        ("add", 4, 25),
        ("add", 5, 21),
    ]
    assert {function for *_, function in locations(func.block)} == {"f"}
    assert str(func.results[0]).startswith("<traced f64[] %total")


GOLDEN = """\
def clip(x, limit):
    'Clips.'
    result__1: 'variable'

    def then__3():
        nonlocal result__1
        result__1 = limit

    def else__4():
        nonlocal result__1
        result__1 = ag__.if_exp((x < 0), (lambda : 0.0), (lambda : x))
    ag__.if_stmt((x > limit), then__3, else__4, ('result__1',))
    return result__1
"""


def test_to_code() -> None:
    def clip(x, limit):
        """Clips."""
        if x > limit:
            return limit
        return 0.0 if x < 0 else x

    assert to_code(clip) == GOLDEN
    compile(to_code(clip), "<text>", "exec")
    assert to_code(lambda x, *rest, k=2: x if x > k else rest) == (
        "def lambda_(x, *rest, k):\n    return ag__.if_exp((x > k), (lambda : x), (lambda : rest))\n"
    )
    assert to_code(functools.partial(clip, limit=2.0)) == GOLDEN
    with pytest.raises(ValueError, match="<lambda> is not converted: its source is not available"):
        to_code(eval("lambda x: x"))
    with pytest.raises(TypeError, match="to_code takes a Python function, not int"):
        to_code(3)  # type: ignore[arg-type]


def test_lambdas() -> None:
    def root(a):
        x = a
        while abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x

    def made(limit):
        return (
            lambda x, *, scale=2.0: (
                x * scale if x < limit
                else limit
            )
        )  # fmt: skip

    several = [lambda x: x if x > 0 else -x, lambda x: (x * 2) if (x > 0) else (x * 3), lambda x: lambda: x if x > 0 else 0.0]
    calls: list[tuple[Any, float, float]] = [
        (lambda a: root(a) + 1, 4.0, 3.0), (made(3.0), 2.0, 4.0), (made(3.0), 5.0, 3.0), (several[0], -2.0, 2.0), (several[1], -2.0, -6.0),
        (lambda x: several[2](x)(), -2.0, 0.0), (lambda x: 7.0, 1.0, 7.0),
    ]  # fmt: skip
    for function, x, expected in calls:
        assert float(run_program(trace(convert(function), x), x)) == pytest.approx(expected)


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x, n):
        print("once", 1, sep="-")
        for i in range(n):
            print("at", i, "{braces}")
            if x > i:
                print("below")
        return x

    program = trace(convert(f), 1.5, 3)
    assert capsys.readouterr().out == "once-1\n"
    run_program(program, 1.5, 3)
    assert capsys.readouterr().out == "at 0 {braces}\nbelow\nat 1 {braces}\nbelow\nat 2 {braces}\n"


def test_unrolled_or_rolled() -> None:
    def loop(x, trips):
        for _ in range(trips):
            x = np.sin(x)
        return x

    def static_index(x, trips):
        for i in range(trips):
            x = x + {0: 1.0, 1: 2.0}[i % 2]
        return x

    def ops_of(function: Any, trips: int) -> list[str]:
        def entry(x):
            return function(x, trips)

        return [stmt.op.name for stmt in trace(convert(entry), 1.0).func.stmts]

    assert ops_of(loop, 3) == ["sin"] * 3
    assert ops_of(loop, 1000) == ["for"]
    assert ops_of(static_index, 100) == ["add"] * 100  # a dict takes no traced key: the loop is unrolled


def test_many_statements_in_nested_loops_roll() -> None:
    def f(x):
        for _ in range(60):
            for _ in range(60):
                x = np.sin(x) + np.cos(x)
        return x

    func = trace(convert(f), 0.1).func
    assert [stmt.op.name for stmt in func.stmts] == ["for"]


def test_statements_of_inner_loops_count() -> None:
    """Ten loops of unknown length: one iteration has three statements, and 300 inside them."""

    def f(x):
        for _ in range(10):
            while x > 1.0:
                for _ in range(60):
                    x = x - np.sin(x) / (200.0 + x * x)
            x = x * 5.0
        return x

    func = trace(convert(f), 0.1).func
    assert [stmt.op.name for stmt in func.stmts] == ["for"]


def test_range_takes_a_checkpoint() -> None:
    def f(x):
        for _ in items.range(10, checkpoint="sqrt"):
            x = np.sin(x)
        return x

    (stmt,) = trace(convert(f), 0.1).func.stmts
    assert stmt.op.checkpoint == "sqrt"
    assert list(items.range(2, 8, 3)) == [2, 5]
    with pytest.raises(ValueError, match="checkpoint is 'none', 'sqrt', 'binomial' or a positive number"):
        items.range(3, checkpoint="often")


def test_jumps_in_finally_swallow_exceptions() -> None:
    def continues():
        for _ in range(3):
            try:
                raise KeyError
            finally:
                continue  # noqa: B012
        return "through"

    def returns():
        try:
            raise KeyError
        finally:
            return 5  # noqa: B012

    def breaks(at):
        for i in range(3):
            try:
                if i == at:
                    raise KeyError(at)
            except ValueError:
                pass
            finally:
                if i == 1:
                    break  # noqa: B012
        return i

    assert convert(continues)() == "through"
    assert convert(returns)() == 5
    assert convert(breaks)(1) == convert(breaks)(2) == 1
    with pytest.raises(KeyError):
        convert(breaks)(0)


def test_paths_of_functions_and_classes_inside() -> None:
    def names(x):
        if x:

            def inner():
                pass

            class Inner:
                def method(self):
                    pass

            return inner.__qualname__, Inner.__qualname__, Inner.method.__qualname__, (lambda: 0).__qualname__
        return ()

    assert convert(names)(1) == names(1)


def test_iterators_are_gone_over_once() -> None:
    def lengths(x):
        pairs, numbered = zip(range(3), x, strict=False), enumerate(x)
        next(numbered)
        return [len(list(pairs)), len(list(pairs)), sum(v for _, v in numbered), len(list(numbered))]

    x = np.arange(4.0)
    assert [float(v) for v in run_program(trace(convert(lengths), x), x)] == [float(v) for v in lengths(x)]
