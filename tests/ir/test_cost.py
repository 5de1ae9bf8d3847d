"""Costs come from the ops themselves: every pass takes the cost of a new op into account."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest

import adjit as aj
from adjit.ir import ops
from adjit.ir.cost import DIVISION, MATH, PLAIN, Cost
from adjit.ir.errors import AdjitError
from adjit.ir.ops.arithmetic import Add, Div, Maximum
from adjit.ir.ops.base import REGISTRY, Array, Emitter, Op, Reg
from adjit.ir.ops.create import Fill
from adjit.ir.ops.division import FloorDivide
from adjit.ir.ops.elementary import Atan2, Exp, Rsqrt, Sqrt
from adjit.ir.ops.maps import Binary, Map, Where, binary
from adjit.ir.ops.powers import IntegerPow
from adjit.ir.parser import parse_func
from adjit.ir.types import BOOL, DTYPES, F32, F64, I64, DType, TensorType
from adjit.ir.work import block_work
from adjit.tracer.convert import to_operand
from tests.ops.harness import func_of
from tests.ops.test_rows import ROWS

Angle: TypeAlias = Callable[..., Any]


@pytest.mark.parametrize(
    ("op", "dtypes", "cost"),
    [
        (Add(), (F64, F64), Cost(PLAIN, PLAIN)),
        (Where(), (BOOL, F32, F32), Cost(PLAIN, PLAIN)),
        (Div(), (F64, F64), Cost(DIVISION, DIVISION)),
        (Sqrt(), (F32,), Cost(DIVISION, DIVISION)),
        (Exp(), (F64,), Cost(MATH, MATH)),
        (IntegerPow(2), (F64,), Cost(PLAIN, PLAIN)),
    ],
    ids=lambda x: x.name if isinstance(x, Op) else "",
)
def test_the_cost_is_counted_in_the_lowering(op: Map, dtypes: tuple[DType, ...], cost: Cost) -> None:
    assert op.element_cost(*dtypes) == cost
    types = [TensorType(dtype, (3, 5)) for dtype in dtypes]
    assert op.cost(*types)[:2] == (15 * cost.flops, cost.latency)


def test_the_latency_is_that_of_the_longest_chain() -> None:
    found = Maximum().element_cost(F64, F64)
    assert found.latency < found.flops


def test_costly_and_cheap_functions_are_distinguished() -> None:
    assert Rsqrt().element_cost(F64).latency < MATH <= Atan2().element_cost(F64, F64).latency


def test_every_elementwise_op_can_be_counted() -> None:
    """Accepts every operation that an op's lowering emits."""
    drawn = [(row, row.draw(DTYPES[dtype])) for row in ROWS for dtype in row.dtypes]
    stmts = [s for row, args in drawn for s in func_of(row.call, args).stmts if isinstance(s.op, Map)]
    assert {type(s.op) for s in stmts}
    for s in stmts:
        counted = s.op.element_cost(*(x.type.dtype for x in s.args))
        assert 0 <= counted.latency <= counted.flops


@pytest.mark.parametrize("name", DTYPES)
def test_a_constant_costs_its_stores(name: str) -> None:
    """Of any dtype: complex numbers are pairs of real ones when they are lowered, but earlier passes need their cost as well."""
    dtype = DTYPES[name]
    assert Fill(dtype.type(1).item(), dtype, (3, 5)).cost() == Cost(bytes=15.0 * dtype.itemsize)


def test_an_op_that_lowers_itself_must_declare_its_cost() -> None:
    with pytest.raises(AdjitError, match="must declare its cost"):

        class Costless(Op):
            def lower(self) -> None: ...

    REGISTRY.pop("costless", None)


@pytest.mark.parametrize(
    ("call", "x", "least"),
    [
        (np.linalg.cholesky, np.eye(430), 430**3 / 3),
        (np.argsort, np.zeros(190_000), 190_000 * math.log2(190_000)),
        (np.linalg.inv, np.eye(200), 2 / 3 * 200**3),
        (lambda x: np.linalg.qr(x)[1], np.eye(200), 200**3),
    ],
)
def test_factorisations_and_sorts_are_known_to_be_long(call, x, least) -> None:  # type: ignore[no-untyped-def]
    """The GIL is released for long calls: with a cost of zero it would be held."""
    assert block_work(parse_func(aj.function(call).inspect(x).optimized).block).flops >= least


@pytest.fixture
def twin() -> Iterator[Binary]:
    """atan2 under another name, added as described in docs/architecture.md, and removed after the test."""

    class Twin(Binary):
        kinds = "f"
        singular = True

        def evaluate(self, *arrays: Array) -> Array:
            return np.arctan2(*arrays)

        def derivative(self, i, y, *args):  # type: ignore[no-untyped-def]
            return Atan2().derivative(i, y, *args)

        def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
            return Atan2().scalar(emit, *xs)

    yield Twin()
    del REGISTRY["twin"]


def in_a_loop(angle: Angle) -> Any:
    def f(x):  # type: ignore[no-untyped-def]
        for _ in aj.range(50):
            x = x + 0.1 * angle(x, x + 2.0)
        return aj.sum(x)

    return aj.grad(f)


def in_registers(angle: Angle) -> Any:
    def f(x):  # type: ignore[no-untyped-def]
        y = aj.sum(x)
        while y > 1.0:
            y = y - 0.1 - angle(y, 2.0) * angle(y + 1.0, y)
        return y

    return f


def in_a_scan(angle: Angle) -> Any:
    def f(x):  # type: ignore[no-untyped-def]
        return aj.sum(aj.scan(lambda c, row: (c + angle(c, row), c * row), x[0], x[1:])[1])

    return aj.value_and_grad(f)


def fused(angle: Angle) -> Any:
    return aj.value_and_grad(lambda x: aj.sum(angle(x[1:], x[:-1] + 2.0) * aj.sum(angle(x, 1.0 + x * x))))


@pytest.mark.parametrize("size", [7, 100, 300_000])
@pytest.mark.parametrize("program", [in_a_loop, in_registers, in_a_scan, fused])
def test_an_added_op_is_compiled_as_the_built_in_one(twin: Binary, program: Callable[[Angle], Any], size: int) -> None:
    """The stored and recomputed values and the use of threads are the same, statement by statement, and so is the generated code."""
    ours = aj.function(program(lambda a, b: binary(twin, to_operand(a), to_operand(b)))).inspect(np.ones(size))
    theirs = aj.function(program(ops.atan2)).inspect(np.ones(size))
    strip = lambda text: [line.partition("!")[0].replace("twin", "atan2") for line in text.splitlines()[1:]]  # noqa: E731
    assert "twin" in ours.optimized
    assert strip(ours.optimized) == strip(theirs.optimized)
    assert ours.llvm.replace("twin", "atan2") == theirs.llvm


def test_integer_division_is_not_recomputed_lightly() -> None:
    assert FloorDivide().element_cost(I64, I64).latency >= MATH
