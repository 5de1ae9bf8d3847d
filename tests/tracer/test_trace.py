"""What a trace records: names, lines, weak types, captured arrays, variables; and that nothing is left behind."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.errors import DTypeError, ShapeError, TraceError
from adjit.ir.func import Value
from adjit.ir.interpreter import run
from adjit.ir.operand import Literal, Operand
from adjit.ir.types import F32, F64, TensorType
from adjit.tracer.convert import present
from adjit.tracer.pytree import flatten
from adjit.tracer.surface import create
from adjit.tracer.trace import Spec, Splat, Trace, Traced, TracedProgram, current_trace, trace_function
from tests.tracer.running import run_program, run_traced, trace

X = np.arange(3.0)


class Cell(NamedTuple):
    type: TensorType
    name: str

    def takes(self, shape: Sequence[int]) -> bool:
        return self.type.shape == tuple(shape)


def a_trace() -> Trace:
    found = current_trace()
    assert found is not None
    return found


def names(program: TracedProgram) -> list[str | None]:
    return [r.name for stmt in program.func.stmts for r in stmt.results if isinstance(r, Value)]


def op_names(program: TracedProgram) -> list[str]:
    return [stmt.op.name for stmt in program.func.stmts]


# ---- names and places


def test_values_have_the_names_of_the_users_variables() -> None:
    def f(x: Any) -> Any:
        h = x * 2.0
        y = np.tanh(h + 1.0)
        return y - 1.0

    assert names(trace(f, X)) == ["h", None, "y", None]


def test_the_name_belongs_to_the_last_op_of_a_call() -> None:
    def f(x: Any) -> Any:
        loss = np.mean(x * x)
        return -loss

    program = trace(f, X)
    assert op_names(program)[-2:] == ["div", "neg"]
    assert names(program) == [None, None, "loss", None]


def test_a_loop_names_every_round() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = np.sin(x)
        return x

    assert names(trace(f, X)) == ["x", "x", "x"]


def test_closure_and_global_variables_give_names() -> None:
    def f(x: Any) -> Any:
        global _kept
        inner = x * 2.0
        _kept = 0

        def g() -> Any:
            return inner

        return g()

    assert names(trace(f, X)) == ["inner"]


def test_parameters_have_the_names_of_arguments() -> None:
    def f(params: Any, x: Any, *rest: Any, scale: Any = 1.0) -> Any:
        return params["w"] * x + rest[0] + scale

    program = trace(f, {"w": X, "b": X}, X, X, scale=2.0)
    assert [p.name for p in program.func.params] == ["params.b", "params.w", "x", "rest.0", "scale"]


def test_a_bound_method_does_not_count_self() -> None:
    class Model:
        def __call__(self, x: Any) -> Any:
            return x + 1.0

        def apply(self, x: Any) -> Any:
            return x + 1.0

    assert [p.name for p in trace(Model().apply, X).func.params] == ["x"]
    assert [p.name for p in trace(Model(), X).func.params] == ["x"]


def test_statements_know_file_line_and_column() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        return (
            y +
            1.0
        )  # fmt: skip

    first, second = trace(f, X).func.stmts
    start = f.__code__.co_firstlineno
    assert first.location is not None
    assert second.location is not None
    assert (first.location.file, first.location.line, first.location.column) == (__file__, start + 1, 13)
    assert first.location.function == "f"
    assert second.location.line == start + 3


def test_places_inside_numpy_functions_are_the_users() -> None:
    def f(x: Any) -> Any:
        return np.std(np.pad(x, 1))

    lines = {stmt.location.line for stmt in trace(f, X).func.stmts if stmt.location}
    assert lines == {f.__code__.co_firstlineno + 1}


# ---- weak types


def test_a_traced_python_scalar_is_weakly_typed() -> None:
    def f(x: Any, k: Any, n: Any) -> Any:
        return x * k + n, k * 2.0 + n, np.sin(k) * x, n // 2, -k

    x = X.astype(np.float32)
    out = run_traced(f, x, 0.5, 3)
    assert [a.dtype for a in out] == [F32, F64, F64, np.int64, F64]
    np.testing.assert_allclose(out[0], x * 0.5 + 3)


def test_weakness_ends_where_an_array_joins_or_a_dtype_is_named() -> None:
    seen: list[bool] = []

    def f(x: Any, k: Any) -> Any:
        seen.extend(v.weak for v in (k, k + 1, 2.0 * k, k + k, k > 1))
        seen.extend(v.weak for v in (k * x, np.float64(1.0) * k, k.astype(float), np.sin(k), k + create.zeros(())))
        return k

    trace(f, X, 1.5)
    assert seen == [True] * 5 + [False] * 5


# ---- constants


def test_a_large_array_is_captured_once_and_as_it_was() -> None:
    big = np.arange(100.0)

    def f(x: Any) -> Any:
        return np.sum(x * big) + np.sum(big - x)

    program = trace(f, np.ones(100))
    assert len(program.captures) == 1
    assert program.func.params[-1].type == TensorType(F64, (100,))
    assert not program.captures[0].flags.writeable
    big[:] = 0.0
    np.testing.assert_allclose(run_program(program, np.ones(100)), 4950.0 + 4850.0)


def test_small_and_uniform_arrays_stay_in_the_ir() -> None:
    def f(x: Any) -> Any:
        return x + np.array([1.0, 2.0, 3.0]) + np.ones(3)

    program = trace(f, X)
    assert not program.captures
    assert op_names(program) == ["constant", "add", "add"]
    assert isinstance(program.func.stmts[-1].args[1], Literal)


def test_splats_fold_and_have_the_methods_of_arrays() -> None:
    def f(x: Any) -> Any:
        zeros = create.zeros((3,)) + 1.0
        assert isinstance(zeros, Splat)
        assert zeros.mean().shape == ()
        assert float(create.ones(())) == 1.0
        return x * zeros + np.cos(zeros)

    program = trace(f, X)
    np.testing.assert_allclose(run_program(program, X), X + np.cos(1.0))
    assert "cos" not in op_names(program)


def test_present_returns_the_classes_of_users() -> None:
    literal = Literal(2.0, TensorType(F64, (2,)))
    assert type(present(literal)).__name__ in ("Concrete", "Tensor")

    def f(x: Any) -> Any:
        assert isinstance(present(literal), Splat)
        return x

    trace(f, X)


# ---- variables


def test_a_cell_is_a_parameter_and_its_last_value_an_update() -> None:
    cell = Cell(TensorType(F64, (3,)), "w")

    def f(x: Any) -> Any:
        before = a_trace().read(cell)
        a_trace().write(cell, before + x)
        return before, a_trace().read(cell) * 2.0

    program = trace(f, X)
    assert program.cells == [cell]
    ((param, new),) = program.func.updates
    assert param is program.func.params[1]
    assert isinstance(new, Value)
    assert (param.name, new.name) == ("w", "w")
    before, doubled, update = run(program.func, X, np.ones(3))
    np.testing.assert_allclose(before, 1.0)
    np.testing.assert_allclose(update, X + 1.0)
    np.testing.assert_allclose(doubled, 2 * X + 2.0)


def test_a_cell_written_first_is_a_parameter_too_and_a_constant_a_value_of_its_own() -> None:
    cell = Cell(TensorType(F64, ()), "count")

    def f(x: Any) -> Any:
        written = a_trace().write(cell, Literal(0.0, cell.type))
        assert a_trace().read(cell) is written
        return x

    program = trace(f, X)
    assert [p.name for p in program.func.params] == ["x", "count"]
    assert op_names(program) == ["assigned"]


def test_assignments_check_shape_and_dtype() -> None:
    cell = Cell(TensorType(F64, (3,)), "w")
    with pytest.raises(ShapeError, match=r"assign: w is f64\[3\], the new value f64\[\]"):
        trace(lambda x: a_trace().write(cell, np.sum(x)), X)
    with pytest.raises(DTypeError, match="astype"):
        trace(lambda x: a_trace().write(cell, x.astype("f4")), X)


def test_a_region_sees_the_cells_and_values_around_it() -> None:
    cell = Cell(TensorType(F64, (3,)), "w")

    def f(x: Any) -> Any:
        root = a_trace()
        outer = root.write(cell, x)
        region = Trace(parent=root)
        with region:
            assert current_trace() is region
            assert region.root() is root
            inner = region.write(cell, region.read(cell) + np.arange(100.0).sum())
            assert region.read(cell) is inner
        assert root.read(cell) is outer
        with pytest.raises(TraceError, match="computed inside a branch or a loop and is used outside, where it may not exist"):
            inner + 1.0
        return outer

    assert op_names(trace(f, X)) == ["assigned"]


# ---- results


def test_results_keep_their_structure_and_static_parts() -> None:
    class Point(NamedTuple):
        x: Any
        label: str

    def f(x: Any) -> Any:
        return {"p": Point(x * 2.0, "here"), "n": None, "c": 3, "a": np.ones(2), "l": [x, (x,)]}

    out = run_traced(f, X)
    assert out["p"].label == "here"
    assert out["n"] is None
    assert out["c"].dtype == np.int64
    assert out["l"][0] is not None
    np.testing.assert_allclose(out["p"].x, 2 * X)
    np.testing.assert_allclose(out["a"], 1.0)


def test_static_leaves_of_the_arguments_pass() -> None:
    def f(x: Any, mode: str, options: Any) -> Any:
        assert mode == "fast"
        return x if options["twice"] is None else x * 2

    np.testing.assert_allclose(run_traced(f, X, "fast", {"twice": None}), X)


# ---- leaks and exceptions


def test_a_leaked_value_names_the_op_and_the_line() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2.0)
        return x

    trace(f, X)
    with pytest.raises(
        TraceError, match=r"add: <traced f64\[3\] at test_trace.py:\d+> was used outside of the trace of f(.|\n)*kept\[0\] \+ 1"
    ):
        kept[0] + 1
    with pytest.raises(TraceError, match="return it from the function"):
        trace(lambda x: x * kept[0], X)
    with pytest.raises(TraceError, match=r"^return: "):
        trace(lambda x: kept[0], X)


def test_a_leaked_value_does_not_keep_the_trace_alive() -> None:
    kept: list[Any] = []
    big = np.arange(1000.0)

    def f(x: Any) -> Any:
        kept.append(x)
        return x * big

    program = trace(f, np.ones(1000))
    alive = weakref.ref(program.captures[0])
    del program
    gc.collect()
    assert alive() is None


def test_an_exception_leaves_no_state() -> None:
    def f(x: Any) -> Any:
        with Trace(parent=a_trace()):
            raise KeyError("stop")

    for _ in range(3):
        with pytest.raises(KeyError):
            trace(f, X)
        assert current_trace() is None
        assert current_builder() is None
    np.testing.assert_allclose(run_traced(lambda x: x + 1, X), X + 1)


def test_traces_nest_and_do_not_mix() -> None:
    def f(x: Any) -> Any:
        outer = a_trace()
        inner = trace(lambda y: y * 2.0, X)
        assert op_names(inner) == ["mul"]
        assert a_trace() is outer
        with pytest.raises(TraceError, match="outside of the trace"):
            trace(lambda y: y * x, X)
        return x + 1.0

    assert op_names(trace(f, X)) == ["add"]


def test_threads_trace_independently() -> None:
    barrier = threading.Barrier(4)
    out: list[list[str]] = []

    def work() -> None:
        def f(x: Any) -> Any:
            for _ in range(50):
                barrier.wait()
                x = np.sin(x)
            return x

        out.append(op_names(trace(f, X)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert out == [["sin"] * 50] * 4


def test_a_long_chain_does_not_recurse() -> None:
    def f(x: Any) -> Any:
        for _ in range(20_000):
            x = x + 1.0
        return x

    assert len(trace(f, X).func.stmts) == 20_000


def test_a_spec_may_name_its_value() -> None:
    leaves, tree = flatten(((Spec(TensorType(F32, (2,)), name="batch"),), {}))
    program = trace_function(lambda x: -x, tree, leaves, name="negate")
    assert (program.func.name, program.func.params[0].name) == ("negate", "batch")


def test_ops_on_traced_values_give_traced_values() -> None:
    def f(x: Any) -> Any:
        assert isinstance(x, Traced)
        assert isinstance(ops.sum(x), Operand)
        assert isinstance(np.sum(x), Traced)
        y = x
        y += 1.0
        assert y is not x
        return y

    np.testing.assert_allclose(run_traced(f, X), X + 1.0)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    assert current_builder() is None
