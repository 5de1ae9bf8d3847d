"""Statements that builders append and fold, and the state after errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.errors import ShapeError, TraceError
from adjit.ir.func import Func, Value
from adjit.ir.location import Location
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.ops import exp, tanh
from adjit.ir.ops.arithmetic import Add, Neg
from adjit.ir.ops.base import Op
from adjit.ir.ops.create import Constant
from adjit.ir.ops.maps import Mul
from adjit.ir.ops.reduce import Sum
from adjit.ir.ops.shape import Pad
from adjit.ir.printer import print_func
from adjit.ir.types import F64, TensorType
from adjit.ir.verifier import verify

VECTOR = TensorType(F64, (3,))


def x() -> Value:
    return Value(VECTOR, "x")


def test_operators_emit_where_the_builder_is() -> None:
    with Builder([v := x()]) as b:
        y = tanh(v * v + 1.0)
    assert [s.op.name for s in b.stmts] == ["mul", "add", "tanh"]
    func = verify(Func("f", b.finish([y])))
    assert func.results[0] is b.stmts[-1].result


def test_the_innermost_builder_takes_the_statement() -> None:
    v = x()
    with Builder([v]) as outer:
        with Builder(parent=outer) as inner:
            assert current_builder() is inner
            v * v
        assert current_builder() is outer
    assert current_builder() is None
    assert (len(outer.stmts), len(inner.stmts)) == (0, 1)


def test_an_exception_leaves_no_state() -> None:
    with pytest.raises(ZeroDivisionError), Builder() as b, b.at(Location("a.py", 1), "backward", None):
        raise ZeroDivisionError
    assert current_builder() is None
    assert (b.location, b.phase, b.origin) == (None, "forward", None)


def test_builders_belong_to_their_thread() -> None:
    seen: list[Builder | None] = []
    with Builder():
        thread = threading.Thread(target=lambda: seen.append(current_builder()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_a_value_outside_of_its_trace() -> None:
    with pytest.raises(TraceError, match="outside of the function that traced it"):
        x() * 2.0
    with pytest.raises(TraceError, match="truth of a traced value"):
        bool(x())


def test_literals_fold() -> None:
    with Builder() as b:
        two = Literal(2.0, VECTOR)
        four = two * two
        wide = Literal(1.0, TensorType(F64)).reshape(1)
    assert isinstance(four, Literal)
    assert four.same(Literal(4.0, VECTOR))
    assert isinstance(wide, Literal)
    assert wide.shape == (1,)
    assert b.stmts == []


def test_literals_are_the_same_by_their_bits() -> None:
    assert not Literal(0.0, VECTOR).same(Literal(-0.0, VECTOR))
    assert Literal(np.nan, VECTOR).same(Literal(np.nan, VECTOR))
    assert not Literal(0.0, VECTOR).same(Literal(0.0, TensorType(F64)))
    assert not Literal(0.0, VECTOR).same(0.0)


def test_statements_have_their_place() -> None:
    where = Location("model.py", 3, 5, "loss")
    with Builder([v := x()]) as b:
        v + v
        forward = b.stmts[0]
        with b.at(where, "backward", forward):
            v * v
        v - v
    assert [(s.location, s.phase, s.origin) for s in b.stmts] == [
        (None, "forward", None),
        (where, "backward", forward),
        (None, "forward", None),
    ]


def test_errors_carry_the_users_line() -> None:
    with Builder([v := x()]) as b:
        b.location = Location("model.py", 3, 5, "loss")
        with pytest.raises(ShapeError, match=r"model\.py:3:5 in loss"):
            b.emit(Mul(), [v, Value(TensorType(F64, (2,)))])


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([2.0, 2.0, 2.0], "literal"),
        ([-0.0, -0.0, -0.0], "literal"),
        ([0.0, -0.0, 0.0], "constant"),
        ([1.0, 2.0, 3.0], "constant"),
        ([np.nan, 1.0, np.nan], "constant"),
    ],
)
def test_arrays_become_literals_or_constants(data: list[float], kind: str) -> None:
    array = np.array(data)
    with Builder([v := x()]) as b:
        b.emit(Mul(), [v, Concrete(array)])
    operand = b.stmts[-1].args[1]
    if kind == "literal":
        assert isinstance(operand, Literal)
        assert operand.array().tobytes() == array.tobytes()
    else:
        constant = b.stmts[0]
        assert isinstance(constant.op, Constant)
        assert constant.result is operand
        assert constant.op.evaluate().tobytes() == array.tobytes()


def test_large_arrays_are_captured() -> None:
    captured: list[Value] = []

    def capture(data: np.ndarray) -> Operand:  # type: ignore[type-arg]
        captured.append(Value(TensorType(F64, data.shape), "data"))
        return captured[-1]

    with Builder() as b:
        b.capture = capture
        with Builder(parent=b) as inner:
            inner.emit(Sum((0,)), [Concrete(np.arange(100.0))])
    assert inner.stmts[0].args[0] is captured[0]


def test_results_and_saved_values_may_be_arrays() -> None:
    with Builder([v := x()]) as b:
        y = exp(v)
    func = Func("f", b.finish([Concrete(np.arange(3.0)), y], [Concrete(np.ones(2))]))
    assert print_func(verify(func)) == (
        "func @f(%x: f64[3]) -> (f64[3], f64[3]) saving (f64[2]) {\n"
        "  %0: f64[3] = exp %x\n"
        "  %1: f64[3] = constant {data=[0.0, 1.0, 2.0]}\n"
        "  return %1, %0 saving 1.0\n"
        "}\n"
    )


def test_free_values_of_a_block() -> None:
    a, b_ = x(), x()
    with Builder([c := x()]) as inner:
        y = a * c
        z = y + b_ * a
    block = inner.finish([z], [b_])
    assert [id(v) for v in block.free()] == [id(a), id(b_)]


def test_attributes_of_ops_never_change() -> None:
    op = Sum((0,))
    with pytest.raises(FrozenInstanceError, match="sum: ops are immutable: 'axes' cannot be set again"):
        op.axes = (1,)
    with pytest.raises(FrozenInstanceError, match="cannot be deleted"):
        del op.axes
    assert op == Sum((0,))
    assert hash(op) == hash(Sum((0,)))
    assert replace(op, axes=(1,)) == Sum((1,))


def test_ops_take_their_attributes_by_position_or_by_name() -> None:
    op = Pad((1,), (2,), (0,))
    assert op == Pad((1,), (2,), interior=(0,)) == Pad(value=0, interior=(0,), high=(2,), low=(1,)) == Pad((1,), (2,), (0,), 0)
    assert hash(op) == hash(Pad(interior=(0,), high=(2,), low=(1,)))  # whatever the order of the names
    assert op != Pad((2,), (1,), (0,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sum(), "sum: the attribute 'axes' is missing"),
        (lambda: Sum((0,), (1,)), "sum: the attributes are axes;"),
        (lambda: Sum((0,), axes=(1,)), "sum: the attributes are axes;"),
        (lambda: Sum(axis=0), "sum: the attributes are axes;"),
        (lambda: Add(1), "add: the attributes are none;"),
    ],
)
def test_ops_reject_other_attributes(make: Callable[[], Op], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_only_values_literals_and_arrays_become_operands() -> None:
    class Foreign(Operand):
        type = TensorType(F64, (2,))

    builder = Builder()
    with builder, pytest.raises(TraceError, match="cannot be part of the IR: only traced values, literals and arrays can"):
        builder.emit(Neg(), (Foreign(),))
    assert builder.stmts == []


def test_large_literals_stay_literals_in_a_trace() -> None:
    """Outside, they are evaluated; in a trace, an op that does not fold is emitted instead of computed on a large array."""
    large = Literal(2.0, TensorType(F64, (2000, 2000)))
    with Builder() as builder:
        out = ops.cumsum(large, 0)
    assert [stmt.op.name for stmt in builder.stmts] == ["cumsum"]
    assert out.type.shape == (2000, 2000)
    small = Literal(2.0, TensorType(F64, (3,)))
    np.testing.assert_array_equal(ops.cumsum(small, 0).data, [2.0, 4.0, 6.0])


def test_scalars_have_no_length() -> None:
    with pytest.raises(TypeError, match="len\\(\\) of a 0-dimensional value"):
        len(Literal(2.0, TensorType(F64)))
    assert len(Literal(2.0, TensorType(F64, (3, 2)))) == 3
