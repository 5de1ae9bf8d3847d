"""The look of the IR."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.attributes import attributes_text, scalar_of, scalar_text
from adjit.ir.builder import Builder
from adjit.ir.errors import AdjitError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.layout import Layout
from adjit.ir.location import Location
from adjit.ir.operand import Literal
from adjit.ir.ops import exp, matmul, tanh
from adjit.ir.ops.base import Op
from adjit.ir.ops.control import For, Fuse, If, While
from adjit.ir.ops.create import Constant, Fill, Iota
from adjit.ir.ops.maps import Cast, Mul, Where
from adjit.ir.ops.reduce import Sum
from adjit.ir.ops.shape import Broadcast, Reshape, Transpose
from adjit.ir.parser import parse_func
from adjit.ir.plan import BufferView, Place, Plan
from adjit.ir.printer import Names, print_func, print_stmt
from adjit.ir.types import BOOL, F32, F64, I64, TensorType

VECTOR = TensorType(F64, (3,))
SCALAR = TensorType(F64)
INDEX = TensorType(I64)


def test_a_loss_looks_as_in_the_style_guide() -> None:
    w, x, t = Value(TensorType(F64, (3, 4)), "w"), Value(TensorType(F64, (4,)), "x"), Value(VECTOR, "t")
    with Builder([w, x, t]) as b:

        def line(line: int, column: int) -> None:
            b.location = Location("model.py", line, column, "loss")

        line(12, 9)
        h = matmul(w, x)
        line(12, 5)
        y = tanh(h)
        line(13, 9)
        e = y - t
        line(14, 10)
        q = e * e
        l = q.sum()
    for value, name in zip((h, y, e, q, l), "hyeql", strict=True):
        value.name = name  # type: ignore[attr-defined]
    func = Func("loss.fwd", b.finish([l], saving=[y, e]), location=Location("model.py", 11, 1, "loss"))
    assert str(func) == (
        "func @loss.fwd(%w: f64[3,4], %x: f64[4], %t: f64[3]) -> f64[] saving (f64[3], f64[3]) !model.py:11:1 {\n"
        "  %h: f64[3] = matmul %w, %x !12:9\n"
        "  %y: f64[3] = tanh %h !12:5\n"
        "  %e: f64[3] = sub %y, %t !13:9\n"
        "  %q: f64[3] = mul %e, %e !14:10\n"
        "  %l: f64[] = sum %q {axes=[0]} !14:10\n"
        "  return %l saving %y, %e\n"
        "}\n"
    )


def body(func: Func) -> list[str]:
    return [line.strip() for line in print_func(func).splitlines()[1:-2]]


def one(op: Op, *args: Value | Literal) -> str:
    """The text of one statement."""
    with Builder([a for a in args if isinstance(a, Value)]) as b:
        b.emit(op, args)
    return body(Func("f", b.finish([])))[0]


def test_types_are_printed_once() -> None:
    x = Value(VECTOR, "x")
    assert one(Cast(F32), x) == "%0: f32[3] = cast %x"
    assert one(Broadcast((2, 3)), x) == "%0: f64[2,3] = broadcast %x"
    assert one(Reshape((3, 1)), x) == "%0: f64[3,1] = reshape %x"
    assert one(Reshape((-1, 1)), x) == "%0: f64[3,1] = reshape %x {shape=[-1, 1]}"
    assert one(Transpose((0,)), x) == "%0: f64[3] = transpose %x {axes=[0]}"
    assert one(Iota(I64, (4,), 0)) == "%0: i64[4] = iota {axis=0}"
    assert one(Fill(0.5, F32, (4,))) == "%0: f32[4] = fill {value=0.5}"


def test_constants_show_their_elements() -> None:
    matrix = np.array([[1.0, 2.0, 0.1], [np.nan, -np.inf, -0.0]], "f4")
    assert one(Constant.of(matrix)) == "%0: f32[2,3] = constant {data=[[1.0, 2.0, 0.1], [nan, -inf, -0.0]]}"
    assert one(Constant.of(np.array(True))) == "%0: bool[] = constant {data=true}"
    assert one(Constant.of(np.zeros((2, 0), "i4"))) == "%0: i32[2,0] = constant {data=[[], []]}"


def test_literals_are_bare_where_their_type_follows() -> None:
    x = Value(VECTOR, "x")
    p = Value(TensorType(BOOL, (3,)), "p")
    zero, yes = Literal(0.0, VECTOR), Literal(True, p.type)
    assert one(Mul(), x, zero) == "%0: f64[3] = mul %x, 0.0"
    assert one(Mul(), zero, zero) == "%0: f64[3] = mul 0.0, 0.0"
    assert one(Where(), p, x, zero) == "%0: f64[3] = where %p, %x, 0.0"
    assert one(Where(), p, zero, zero) == "%0: f64[3] = where %p, 0.0, 0.0"
    assert one(Where(), yes, x, zero) == "%0: f64[3] = where true:bool[3], %x, 0.0"
    assert one(Mul(), p, yes) == "%0: bool[3] = mul %p, true"
    assert one(Cast(F32), zero) == "%0: f32[3] = cast 0.0:f64[3]"
    assert one(Sum((0,)), zero) == "%0: f64[] = sum 0.0:f64[3] {axes=[0]}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(0.1), "0.1"),
        (np.float32(0.1), "0.1"),
        (np.float32(1e-45), "1.4013e-45"),
        (np.float32(3.4028235e38), "3.4028235e+38"),
        (np.float32(16777216), "16777216.0"),
        (np.float64(-0.0), "-0.0"),
        (np.float64(1e300), "1e+300"),
        (np.float32("inf"), "inf"),
        (np.float64("-inf"), "-inf"),
        (np.float32("nan"), "nan"),
        (-np.float64("nan"), "-nan"),
        (np.array([0x7FC00001], "u4").view("f4")[0], "nan(0x7fc00001)"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (np.int8(-128), "-128"),
        (np.bool_(True), "true"),
    ],
)
def test_scalars(value: np.generic, text: str) -> None:
    assert scalar_text(value) == text
    assert scalar_of(text, value.dtype).tobytes() == value.tobytes()


@given(st.integers(0, 2**64 - 1), st.sampled_from(["f4", "f8"]))
def test_floats_keep_their_bits(bits: int, code: str) -> None:
    value = np.array([bits], "u8").view(code)[0]
    if not (np.isnan(value) and code == "f4"):  # a signalling NaN of 32 bits may be quieted by the processor on any copy
        assert scalar_of(scalar_text(value), value.dtype).tobytes() == value.tobytes()


def test_names_are_unique_and_clean() -> None:
    names = Names()
    hints = ["y", "y", "y.1", "y.bar", "y.bar", "layers/0/W", "0", None, "π", "a..b", ".", None, "y"]
    values = [Value(SCALAR, hint) for hint in hints]
    expected = "%y %y.1 %y.2 %y.bar %y.bar.1 %layers_0_W %_0 %0 %π %a.b %_ %1 %y.3"
    assert " ".join(map(names.of, values)) == expected
    assert " ".join(map(names.of, values)) == expected


def test_regions() -> None:
    x, p, n = Value(SCALAR, "x"), Value(TensorType(BOOL), "p"), Value(INDEX, "n")
    with Builder([x, p, n]) as b:
        with Builder() as then:
            y = x * 2.0
        b.emit(If(), [p], (then.finish([y]), Block((), (), [Literal(0.0, SCALAR)])), [SCALAR])
        b.emit(If(), [p], (Block((), (), ()), Block((), (), ())), [])
        k, c = Value(INDEX, "k"), Value(SCALAR, "c")
        with Builder([k, c]) as loop:
            step = c + x
        b.emit(For(), [Literal(0, INDEX), n, x], (loop.finish([step]),), [SCALAR])
        before, inside = Value(SCALAR, "v"), Value(SCALAR, "other")
        with Builder([before]) as condition:
            (more,) = condition.emit(Cast(BOOL), [before])
        with Builder([inside]) as rest:
            less = inside - 1.0
        b.emit(While(), [x], (condition.finish([more]), rest.finish([less])), [SCALAR])
        with Builder() as fused:
            e = exp(x)
        r, _ = b.emit(Fuse(), [], (fused.finish([e, e]),), [SCALAR, SCALAR])
    func = Func("f", b.finish([r]))
    assert print_func(func) == (
        "func @f(%x: f64[], %p: bool[], %n: i64[]) -> f64[] {\n"
        "  %0: f64[] = if %p {\n"
        "    %1: f64[] = mul %x, 2.0\n"
        "    yield %1\n"
        "  } else {\n"
        "    yield 0.0\n"
        "  }\n"
        "  if %p {\n"
        "  }\n"
        "  %2: f64[] = for %k in 0..%n carry (%c: f64[] = %x) {\n"
        "    %3: f64[] = add %c, %x\n"
        "    yield %3\n"
        "  }\n"
        "  %4: f64[] = while carry (%v: f64[] = %x) {\n"
        "    %5: bool[] = cast %v\n"
        "    cond %5\n"
        "  } do {\n"
        "    %6: f64[] = sub %v, 1.0\n"
        "    yield %6\n"
        "  }\n"
        "  %7: f64[], %8: f64[] = fuse {\n"
        "    %9: f64[] = exp %x\n"
        "    yield %9, %9\n"
        "  }\n"
        "  return %7\n"
        "}\n"
    )


def test_phases_locations_and_contract() -> None:
    g, w, y = Value(SCALAR, "l.bar"), Value(SCALAR, "w"), Value(SCALAR, "y")
    with Builder([g, w, y]) as b:
        b.location = Location("model.py", 3)
        w * w
        with b.at(Location("other.py", 7, 2), "backward", b.stmts[0]):
            d = g * y
        new = w - d
    func = Func("f", b.finish([]), given=[w, y], updates=[(w, new), (y, Literal(0.0, SCALAR))], location=Location("model.py", 2, 1))
    assert print_func(func) == (
        "func @f(%l.bar: f64[]) given (%w: f64[], %y: f64[]) -> () !model.py:2:1 {\n"
        "  %0: f64[] = mul %w, %w !3\n"
        "backward:\n"
        "  %1: f64[] = mul %l.bar, %y !other.py:7:2\n"
        "forward:\n"
        "  %2: f64[] = sub %w, %1 !3\n"
        "  return updating %w = %2, %y = 0.0\n"
        "}\n"
    )
    assert "!" not in print_func(func, locations=False)
    assert print_func(func.replace(given=[g])).startswith("func @f(%l.bar: f64[], %w: f64[], %y: f64[]) given (%l.bar) -> ()")


def test_unusual_names_are_quoted() -> None:
    func = Func("<lambda>", Block((), (), ()), location=Location("my dir/a.py", 1, 2))
    assert print_func(func) == 'func @"<lambda>"() -> () !"my dir/a.py":1:2 {\n  return\n}\n'


def test_a_plan_shows_places_and_windows() -> None:
    x = Value(TensorType(F64, (2, 3)), "x")
    with Builder([x]) as b:
        y = exp(x)
        t = y.T
        r = y.reshape(6)
    places = {id(x): Place("param", 0), id(y): Place("arena", 128)}
    plan = Plan(192, places)
    for value, layout in ((x, (0, (3, 1))), (y, (0, (3, 1))), (t, (0, (1, 3))), (r, (0, (1,)))):
        plan.windows[id(value)] = BufferView(x if value is x else y, Layout(*layout))  # type: ignore[arg-type]
    assert print_func(Func("f", b.finish([t, r]), plan=plan)) == (
        "func @f(%x: f64[2,3] @param+0) -> (f64[3,2], f64[6]) arena 192 {\n"
        "  %0: f64[2,3] @arena+128 = exp %x\n"
        "  %1: f64[3,2] @%0+0[1,3] = transpose %0 {axes=[1, 0]}\n"
        "  %2: f64[6] @%0 = reshape %0\n"
        "  return %1, %2\n"
        "}\n"
    )


def test_the_blocks_of_a_while_share_a_buffer() -> None:
    before, inside = Value(SCALAR, "v"), Value(SCALAR)
    (result,) = results = (Value(SCALAR),)
    blocks = (Block([before], [], [Literal(False, TensorType(BOOL))]), Block([inside], [], [inside]))
    plan = Plan(64, {id(inside): Place("arena", 0)})
    for value in (before, inside, result):
        plan.windows[id(value)] = BufferView(inside, Layout(0, ()))
    text = print_func(Func("f", Block([], [Stmt(While(), (Literal(0.0, SCALAR),), results, blocks)], [result]), plan=plan))
    assert "  %0: f64[] @%v = while carry (%v: f64[] @arena+0 = 0.0) {\n" in text
    assert print_func(parse_func(text)) == text


def test_broken_ir_still_prints() -> None:
    x, lost = Value(SCALAR, "x"), Value(SCALAR, "lost")
    y, z = Value(SCALAR), Value(SCALAR)
    stmts = [Stmt(Mul(), (x, lost), (y,)), Stmt(For(), (x,), (z,), (Block((), (), (y,)),))]
    func = Func("f", Block([x], stmts, [z]))
    assert print_stmt(func, stmts[0]) == "%0: f64[] = mul %x, %lost"
    assert print_stmt(func, stmts[1]) == "%1: f64[] = for %x {"


def test_an_attribute_without_text_is_an_error() -> None:
    @dataclass(eq=False)
    class Strange(Op, abstract=True):
        thing: object

    with pytest.raises(AdjitError, match="type object has no text"):
        attributes_text(Strange(object()), [SCALAR])


def test_attributes_of_every_kind() -> None:
    @dataclass(eq=False)
    class Rich(Op, abstract=True):
        text: str
        scale: float
        pairs: tuple[tuple[int, int], ...]
        kind: TensorType
        low: int | None = None
        dtype: object = F32

    op = Rich('a"b\n', 0.1, ((1, 2), (3, 4)), SCALAR)
    assert attributes_text(op, [SCALAR]) == ' {text="a\\"b\\n", scale=0.1, pairs=[[1, 2], [3, 4]], kind=f64[], dtype=f32}'
    assert attributes_text(Rich("", 1.0, (), SCALAR, 5, F64), [SCALAR]) == ' {text="", scale=1.0, pairs=[], kind=f64[], low=5}'
