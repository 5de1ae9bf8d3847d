"""Text to Func: golden texts are reproduced byte for byte, and errors show their position."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjit.ir.attributes import attributes_text, parse_op
from adjit.ir.errors import AdjitError, ParseError
from adjit.ir.func import Value
from adjit.ir.interpreter import run
from adjit.ir.layout import Layout
from adjit.ir.location import Location
from adjit.ir.operand import Literal
from adjit.ir.ops.base import Op
from adjit.ir.ops.control import While
from adjit.ir.ops.reduce import Sum
from adjit.ir.parser import parse_func, parse_funcs
from adjit.ir.plan import Place
from adjit.ir.printer import print_func
from adjit.ir.scanner import Scanner
from adjit.ir.types import F32, F64, TensorType
from adjit.ir.verifier import verify

FORWARD = """\
func @loss.fwd(%w: f64[3,4], %x: f64[4], %t: f64[3]) -> f64[] saving (f64[3], f64[3]) !model.py:11:1 {
  %h: f64[3] = matmul %w, %x !12:9
  %y: f64[3] = tanh %h !12:5
  %e: f64[3] = sub %y, %t !13:9
  %q: f64[3] = mul %e, %e !14:10
  %l: f64[] = sum %q {axes=[0]} !14:10
  return %l saving %y, %e
}
"""

BACKWARD = """\
func @loss.bwd(%l.bar: f64[]) given (%w: f64[3,4], %y: f64[3], %e: f64[3]) -> f64[3] {
backward:
  %q.bar: f64[3] = broadcast %l.bar !model.py:14:10
  %0: f64[3] = mul %q.bar, %e !model.py:14:10
  %e.bar: f64[3] = mul %0, 2.0 !model.py:14:10
  %1: f64[3] = mul %y, %y !model.py:12:5
  %2: f64[3] = sub 1.0, %1 !model.py:12:5
  %h.bar: f64[3] = mul %e.bar, %2 !model.py:12:5
  return %h.bar
}
"""

STEP = """\
func @step(%W: f32[2], %b: f32[], %x: f32[2]) -> f32[] !model.py:3:1 {
  %p: f32[2] = mul %x, %W !4:5
  %l: f32[] = sum %p {axes=[0]} !"other dir/util.py":9:3
backward:
  %d: f32[2] = broadcast 1.0:f32[] !4
forward:
  %n: f32[2] = sub %W, %d !6:5
  return %l updating %W = %n, %b = 0.0
}
"""

REGIONS = """\
func @regions(%x: f64[], %p: bool[], %n: i64[]) -> (f64[], f64[], f64[]) !r.py:1:1 {
  %a: f64[] = if %p !2:3 {
    %0: f64[] = neg %x !3:5
    yield %0
  } else {
  backward:
    %1: f64[] = exp %x !5:5
    yield %1
  }
  %s: f64[], %m: f64[] = for %k in 0..%n carry (%c: f64[] = %x, %d: f64[] = 1.0) !7:1 {
    %2: f64[] = cast %k !8:9
    %3: f64[] = add %c, %2 !8:5
    %4: f64[] = for %j in %k..%n carry (%e: f64[] = %3) {
      %5: f64[] = mul %e, 2.0
      yield %5
    }
    yield %4, %d
  }
  %w: f64[] = while carry (%v: f64[] = %m) {
    %6: bool[] = cast %v
    cond %6
  } do {
    %7: f64[] = sub %v, 1.0
    yield %7
  }
  if %p {
  }
  %f: f64[], %g: f64[] = fuse {
    %8: f64[] = mul %a, %s
    %9: f64[] = add %8, 0.0
    yield %8, %9
  }
  return %f, %w, %g
}
"""

PLANNED = """\
func @planned(%x: f64[2,3] @param+0) -> f64[3,2] arena 192 {
  %0: f64[2,3] @arena+128 = exp %x
  %1: f64[3,2] @%0+0[1,3] = transpose %0 {axes=[1, 0]}
  %2: f64[3,2] @arena+64 = neg %1
  %3: f64[3,2] @%c = while carry (%c: f64[3,2] @arena+0 = %2) {
    cond false
  } do {
    yield %c
  }
  if true @registers {
  }
  return %3
}
"""

SAVING = """\
func @saving(%n: i64[], %x: f64[]) -> (f64[], stack<f64[]>) {
  %r: f64[], %s: stack<f64[]>, %t: stack<stack<f64[]>> = for %k in 0..%n carry (%c: f64[] = %x) {checkpoint=4} {
    %0: f64[], %1: stack<f64[]> = for %j in 0..2 carry (%d: f64[] = %c) {
      %2: f64[] = mul %d, 2.0
      yield %2 saving %d
    }
    yield %0 saving %c, %1
  }
  %3: stack<f64[]> = stack_read %t, 0:i64[]
  %4: f64[] = stack_read %3, 1:i64[]
  return %4, %3
}
"""

CONSTANTS = """\
func @"<lambda>"() -> (f32[2,3], i64[0], f64[3], f64[2]) {
  %a: f32[2,3] = constant {data=[[1.0, 0.1, -0.0], [nan, inf, nan(0x7fc00001)]]}
  %b: i64[0] = constant {data=[]}
  %c: f64[3] = fill {value=-inf}
  return %a, %b, %c, -nan
}
"""


@pytest.mark.parametrize("text", [FORWARD, BACKWARD, STEP, REGIONS, SAVING, PLANNED, CONSTANTS], ids=lambda t: t[6:12])
def test_golden_texts_come_back(text: str) -> None:
    assert print_func(verify(parse_func(text))) == text


def test_several_functions() -> None:
    forward, backward = parse_funcs(f"# the pair\n{FORWARD}\n{BACKWARD}")
    assert (forward.name, backward.name) == ("loss.fwd", "loss.bwd")
    assert [p.name for p in backward.given] == ["w", "y", "e"]
    with pytest.raises(ParseError, match="expected one function, found 2"):
        parse_func(FORWARD + BACKWARD)
    with pytest.raises(ParseError, match="found 0"):
        parse_func(" \n# nothing")


def test_what_is_read() -> None:
    func = parse_func(STEP)
    p, l, d, n = func.stmts
    assert p.location == Location("model.py", 4, 5)
    assert l.location == Location("other dir/util.py", 9, 3)
    assert d.location == Location("model.py", 4, 0)
    assert [s.phase for s in func.stmts] == ["forward", "forward", "backward", "forward"]
    assert l.op == Sum((0,))
    (one,) = d.args
    assert isinstance(one, Literal)
    assert one.same(Literal(1.0, TensorType(F32)))
    (W, new), (b, zero) = func.updates
    assert W is func.params[0]
    assert new is n.result
    assert b is func.params[1]
    assert isinstance(zero, Literal)
    assert [v.name for v in parse_func(BACKWARD).stmts[1].results if isinstance(v, Value)] == [None]


def test_given_anywhere() -> None:
    text = "func @f(%a: f64[], %b: f64[3], %c: f64[]) given (%b) -> () {\n  return\n}\n"
    func = parse_func(text)
    assert func.given[0] is func.params[1]
    assert print_func(func) == text


def test_a_while_loop_has_parameters_in_both_blocks() -> None:
    (loop,) = (s for s in parse_func(REGIONS).stmts if isinstance(s.op, While))
    condition, body = loop.blocks
    assert condition.params[0] is not body.params[0]
    assert body.stmts[0].args[0] is body.params[0]


def test_plans() -> None:
    func = parse_func(PLANNED)
    plan = func.plan
    exp, transpose, neg, loop, branch = func.stmts
    assert plan.registers == {id(branch)}
    assert plan.arena_bytes == 192
    assert plan.place(exp.result) == plan.place(transpose.result) == Place("arena", 128)
    assert plan.windows[id(transpose.result)] == (exp.result, Layout(0, (1, 3)))
    assert plan.windows[id(neg.result)] == (neg.result, Layout(0, (2, 1)))
    assert plan.windows[id(loop.result)] == (loop.blocks[-1].params[0], Layout(0, (2, 1)))
    assert [plan.place(block.params[0]) for block in loop.blocks] == [Place("arena", 0)] * 2


def test_loops_mean_what_they_say() -> None:
    f, w, g = run(parse_func(REGIONS), np.array(3.0), np.array(True), np.array(2))
    # s: ((3 + 0) * 2 * 2 + 1) * 2
    assert (f, w, g) == (-3.0 * 26.0, 0.0, -3.0 * 26.0)


def test_names_are_scoped_by_blocks() -> None:
    text = dedent("""
        func @f(%p: bool[], %x: f64[]) -> f64[] {
          %r: f64[] = if %p {   # spaces, comments and blank lines are free

            %t: f64[] = neg %x
            yield %t
          } else {
            %t: f64[] = exp %x
            yield %t
          }
          return %r
        }
    """)
    assert "%t.1: f64[] = exp %x" in print_func(verify(parse_func(text)))


def test_integers_stand_for_floats() -> None:
    assert "mul %x, 2.0" in print_func(parse_func("func @f(%x: f64[]) -> f64[] {\n %y: f64[] = mul %x, 2\n return %y\n}"))


def error(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse_func(text)
    return str(caught.value)


def test_an_error_shows_its_span() -> None:
    assert error(FORWARD.replace("matmul", "matmull")) == (
        "line 2, column 16: there is no op 'matmull'; did you mean 'matmul'?\n"
        "    %h: f64[3] = matmull %w, %x !12:9\n"
        "                 ^^^^^^^"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tanh %h", "tanh %hh", "line 3, column 21: %hh is not defined here"),
        ("tanh %h", "tanh %q", "%q is not defined here"),
        ("%y: f64[3] =", "%h: f64[3] =", "%h is defined twice"),
        ("%y: f64[3]", "%y: f12[3]", "unknown dtype 'f12'"),
        ("%y: f64[3]", "%y f64[3]", "expected ':', found 'f64'"),
        ("%y: f64[3]", "%y: 3", "expected a type like f32[128,784], found '3'"),
        ("%y:", "%:", "expected a name after '%'"),
        ("tanh %h", "%h", "expected an op, found '%h'"),
        ("tanh %h", "tanh %h,", "expected an operand, found '!'"),
        ("tanh %h", "tanh %h {a=1}", "tanh has no attribute 'a'; it has none"),
        ("tanh %h", "tanh %h %h", "expected the end of the line, found '%h'"),
        ("{axes=[0]}", "", "sum: attribute 'axes' is missing"),
        ("{axes=[0]}", "{axs=[0]}", "sum has no attribute 'axs'; it has axes"),
        ("{axes=[0]}", "{axes=[0], axes=[0]}", "attribute 'axes' is given twice"),
        ("{axes=[0]}", "{axes=0}", "attribute 'axes' must be tuple[int, ...]"),
        ("{axes=[0]}", "{axes=[zero]}", "expected an attribute's value, found 'zero'"),
        ("{axes=[0]}", "{[0]}", "expected an attribute, found '['"),
        ("matmul %w, %x", "matmul %w, 0.0", "the type of this literal cannot be inferred"),
        ("sub %y, %t", "sub %y, true", "true is not a value of f64"),
        ("-> f64[]", "-> f32[]", "the results have types (f64[]), the function's head says (f32[])"),
        ("saving (f64[3], f64[3])", "saving (f64[3])", "the saved values have types"),
        ("return %l", "yield %l", "expected 'return', found 'yield'"),
        ("!12:5", "!x", "expected ':'"),
        ("!model.py:11:1 ", "", "the function has no location whose file this one could inherit"),
        ("%y: f64[3]", "%y: f64[3] @arena+0", "a place needs `arena`"),
        ("func @loss.fwd", "func loss", "expected '@', found 'loss'"),
        ("@loss.fwd", "@", "expected the function's name"),
    ],
)
def test_errors(old: str, new: str, message: str) -> None:
    assert old in FORWARD
    assert message in error(FORWARD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-0.0]", "]", "5 elements for f32[2,3]"),
        ("0.1", "x", "expected an element, found 'x'"),
        ("inf, nan", "true, nan", "true is not a value of f32"),
        ("0x7fc00001", "0x7f000001", "nan(0x7f000001) is not a value of f32"),
        ("0x7fc00001", "0xfffffffff", "is not a value of f32"),
    ],
)
def test_errors_in_constants(old: str, new: str, message: str) -> None:
    assert message in error(CONSTANTS.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@arena+128", "@nowhere+1", "nowhere+1 is not a place"),
        ("@%0+0", "@%9+0", "%9 is not a place"),
        ("+0[1,3]", "+0[1]", "1 strides for f64[3,2]"),
        ("@param+0", "@param", "expected a place like arena+128"),
    ],
)
def test_errors_in_plans(old: str, new: str, message: str) -> None:
    assert message in error(PLANNED.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0..%n", "0.5..%n", "0.5 is not a value of i64"),
        ("0..%n", "0,%n", "expected '..', found ','"),
        ("%k in", "%k of", "expected 'in', found 'of'"),
        ("} do {", "} else {", "expected 'do', found 'else'"),
        ("cond %6", "yield %6", "expected '}', found 'yield'"),
        ("    yield %8, %9\n  }\n", "", "expected '}', found 'return'"),
        ("return %f", "return %8", "%8 is not defined here"),
    ],
)
def test_errors_in_regions(old: str, new: str, message: str) -> None:
    assert message in error(REGIONS.replace(old, new, 1))


@pytest.mark.parametrize("text", [FORWARD, REGIONS, SAVING, PLANNED, CONSTANTS], ids=lambda t: t[6:12])
def test_every_prefix_is_refused_with_a_span(text: str) -> None:
    for end in range(1, len(text) - 2):
        assert error(text[:end]).startswith("line ")


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([STEP, REGIONS, PLANNED, CONSTANTS]), st.data())
def test_damaged_text_is_read_or_refused(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    mark = data.draw(st.sampled_from(["", " ", "%", "{", "}", "[", "0", "-", ".", ":", '"', "\n", "x", "!", "@", "="]))
    try:
        func = parse_func(text[:at] + mark + text[at + 1 :])
        again = print_func(func)
    except AdjitError:
        return
    assert print_func(parse_func(again)) == again


def test_attributes_of_every_kind() -> None:
    @dataclass(eq=False)
    class Rich(Op, abstract=True):
        text: str
        scale: float
        pairs: tuple[tuple[int, int], ...]
        kind: TensorType
        low: int | None = None
        dtype: object = F32

    scalar = TensorType(F64)
    for op in (Rich('a"b\n', 0.1, ((1, 2),), scalar, 3), Rich("ü", -0.0, (), scalar, None, F64), Rich("", float("inf"), (), scalar)):
        text = attributes_text(op, [scalar])
        again = parse_op(Scanner(text), Rich, [scalar], (0, 0))
        assert again == op
        assert attributes_text(again, [scalar]) == text
