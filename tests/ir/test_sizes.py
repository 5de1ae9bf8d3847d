"""Symbolic sizes: arithmetic, proofs, guards and pins, and their text."""

import operator
import random

import numpy as np
import pytest

from adjit.ir.bounds import Range, Ranges
from adjit.ir.errors import NotGeneral, ParseError, ShapeError
from adjit.ir.expr import Symbol, evaluated, expr_text, substituted, symbol_names, var_of, variable, without_common_symbols
from adjit.ir.expr import minimum as minimum_expr
from adjit.ir.guards import recording
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.sizes import (
    Size,
    Symbols,
    at_least,
    hint_of,
    is_symbolic,
    maximum,
    minimum,
    symbols_of,
    value_of,
)
from adjit.ir.specialize import specialize
from adjit.ir.types import F32, TensorType, broadcast_shapes, matmul_shape, resolve_reshape, row_major
from adjit.ir.verifier import verify


def sizes():
    symbols = Symbols()
    return symbols, symbols.new("B", 64), symbols.new("T", 12)


def test_texts_are_canonical():
    _, B, T = sizes()
    assert str(B) == "B"
    assert str(2 * B - 1) == str(B - 1 + B) == "2*B-1"
    assert str(B * T) == str(T * B) == "B*T"
    assert str((B + 1) // 2) == "(B+1)//2"
    assert str(B // 2 * 3 + T) == "3*(B//2)+T"
    assert str((4 * B + 7) // 2) == "2*B+3"
    assert str((6 * B + 3) // 9) == "(2*B+1)//3"
    assert (B * T) // T is not None
    assert str((B * T) // T) == "B"
    assert str((B * B - 1) // (B - 1)) == "B+1"
    assert B - B == 0
    assert type(B - B) is int
    assert f"{B:.3g}" == "B"


def test_equal_expressions_are_equal_sizes():
    _, B, T = sizes()
    assert B + T == T + B
    assert hash(B + T) == hash(T + B)
    assert B != T
    assert B != 64
    assert B - 1 != B
    assert B != 1
    assert TensorType(F32, (B, 3)) == TensorType(F32, (B, 3)) != TensorType(F32, (64, 3))
    assert str(TensorType(F32, (B * T, 64))) == "f32[B*T,64]"
    assert {TensorType(F32, (B,)): 1}[TensorType(F32, (B,))] == 1


def test_values_follow_python():
    """Random expressions have the value that Python computes, for positive and negative numbers."""
    rng = random.Random(0)
    ops = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
    for _ in range(300):
        _, B, T = sizes()
        pairs = [(B, "B"), (T, "T"), (3, "3"), (-2, "-2"), (5, "5")]
        size, text = rng.choice(pairs[:2])
        for _ in range(4):
            op = rng.choice(ops)
            other, its = rng.choice(pairs[2:] if op in ops[3:] else pairs)
            size = op(size, other)
            symbol = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%"}[op]
            text = f"({text}) {symbol} ({its})"
        for b, t in [(2, 2), (7, 3), (64, 12), (1000, 31)]:
            want = eval(text, {"B": b, "T": t})
            assert value_of(size, {"B": b, "T": t}) == want
            if is_symbolic(size):
                assert eval(str(size), {"B": b, "T": t}) == want


def test_bounds_hold():
    """Every bound proven for random expressions holds for random sizes."""
    rng = random.Random(1)
    proofs = 0
    for _ in range(400):
        symbols = Symbols([Symbol("B", 8, rng.randrange(3), rng.choice([None, 9])), Symbol("T", 8)])
        B, T = symbols["B"], symbols["T"]
        size = rng.choice([1, -1]) * B * rng.choice([1, B, T]) + rng.randrange(-3, 4) * T + rng.randrange(-9, 9)
        size = size + rng.choice([0, 1, -2]) * ((B * rng.choice([1, 3]) + T) // rng.choice([2, 5]))
        size = size + rng.choice([0, 1, -1]) * B * ((T + rng.randrange(3)) // 2) + rng.choice([0, 4, -4]) * ((B - B // 2) // 4)
        if not is_symbolic(size):
            continue
        least = symbols.least(size.expr)
        if least is None:
            continue
        proofs += 1
        for b in range(symbols.table["B"].low, 10):
            assert all(value_of(size, {"B": b, "T": t}) >= least for t in (2, 3, 8, 50))
    assert proofs > 50


def test_ranges_decide_comparisons():
    _, B, T = sizes()
    assert B > 1
    assert B >= 2
    assert B - 1 > 0
    assert B > 0
    assert B != 0
    assert bool(B)
    assert B * B - B > 0
    assert B * T >= B
    assert B // 2 >= 1
    assert 2 * (B // 2) <= B
    assert maximum(0, B - 2) == B - 2
    assert maximum(2, B) == B
    assert minimum(B, 2) == 2
    assert at_least(B, 2)
    assert not at_least(B, 3)
    assert not at_least(B, T)
    assert at_least(5, 4)
    assert at_least(B * B, 2 * B * (B // 2))
    assert at_least(B * T * T, 2 * B * T * (T // 2) + B * T * (T % 2) - 1)
    assert at_least(B - B // 2, 8 * ((B - B // 2) // 8))
    assert at_least(B * T - (B + 1) // 2 * T, T)  # B//2 rows of T, written as B - (B+1)//2, have a first one
    assert at_least(B * T - (B + 1) // 2 * T, 8 * (T // 8))
    assert not at_least(B * T - (B + 1) // 2 * T, T + 1)


def test_undecided_comparisons_raise_outside_of_traces():
    _, B, T = sizes()
    for undecided in (lambda: B > 3, lambda: B < T, lambda: min(B, 10), lambda: bool(B - 3 > 0)):
        with pytest.raises(NotGeneral, match="depends on the sizes"):
            undecided()
    for lost in (lambda: range(B), lambda: operator.index(B), lambda: int(B), lambda: np.zeros((B, 2)), lambda: [0] * B, lambda: float(B)):
        with pytest.raises(NotGeneral, match="needs the value of B"):
            lost()
    assert hint_of(2 * B) == 128
    assert hint_of(5) == 5


def test_guards_narrow_ranges():
    symbols, B, T = sizes()
    with recording(symbols, lambda: None) as found:
        assert B != T
        assert B > 32
        assert not T > 20
        assert B > 32.5
        assert 3 * B >= 70
        assert B % 2 != 1
    assert (symbols.table["B"].low, symbols.table["T"].high) == (33, 20)
    assert not found.pins
    assert len(found.guards) == 2
    assert all(g.holds({"B": 64, "T": 12}) for g in found.guards)
    assert not all(g.holds({"B": 40, "T": 40}) for g in found.guards)
    assert B > 30  # is proven now


def test_pins_say_why():
    for pinning, reason in [
        (lambda n: n == 64, "is decided"),
        (lambda n: range(n), "needs the value of B"),
        (lambda n: int(n), r"int\(\)"),
        (lambda n: np.zeros(n), "only numbers"),
        (lambda n: n % 2 == 0, "is decided"),
    ]:
        symbols, B, _T = sizes()
        with recording(symbols, lambda: None) as found:
            pinning(B)
        assert list(found.pins) == ["B"]
        assert found.pins["B"].value == 64
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(str(found.pins["B"]))
        assert B == 64  # is proven now


def test_shape_rules():
    _, B, T = sizes()
    assert broadcast_shapes("add", (B, 1), (3,)) == (B, 3)
    assert broadcast_shapes("add", (B, T), (1, T), (1,)) == (B, T)
    with pytest.raises(ShapeError, match="do not broadcast"):
        broadcast_shapes("add", (B,), (3,))
    assert resolve_reshape((B, T, 8), (-1, 8)) == (B * T, 8)
    assert resolve_reshape((B * T, 8), (B, -1, 2, 4)) == (B, T, 2, 4)
    assert matmul_shape((B, 3), (3, T)) == (B, T)
    assert row_major((2, B, T)) == (B * T, T, 1)
    with pytest.raises(ShapeError, match="does not fit"):
        resolve_reshape((B, 3), (B, 2))


TEXT = """\
func @f[B=64, T=12 in 6..31](%x: f32[B,T], %w: f32[T,3]) -> (f32[B,3], i64[], f32[B-1,T], f32[2*B,T]) {
  %y: f32[B,3] = matmul %x, %w
  %n: i64[] = size {value=B*T}
  %z: f32[B-1,T] = slice %x {starts=[1, 0], stops=[B, T], steps=[1, 1]}
  %c: f32[2*B,T] = concatenate %x, %x {axis=0}
  return %y, %n, %z, %c
}
"""


def test_functions_with_sizes_round_trip_verify_and_run():
    func = parse_func(TEXT)
    assert print_func(func) == TEXT
    verify(func)
    assert {name: (s.hint, s.low, s.high) for name, s in symbols_of(func).items()} == {"B": (64, 2, None), "T": (12, 6, 31)}
    rng = np.random.default_rng(0)
    for b, t in [(0, 6), (1, 6), (5, 7), (64, 12)]:
        x, w = rng.normal(size=(b, t)).astype("f4"), rng.normal(size=(t, 3)).astype("f4")
        if b == 0:
            continue
        y, n, z, c = run(func, x, w)
        np.testing.assert_allclose(y, x @ w, rtol=1e-5, atol=1e-6)
        assert n == b * t
        np.testing.assert_array_equal(z, x[1:])
        np.testing.assert_array_equal(c, np.concatenate([x, x]))
    static = specialize(func, {"B": 5, "T": 7})
    verify(static)
    assert "[B" not in print_func(static)
    assert "f32[10,7]" in print_func(static)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func @f(%x: f32[B]) -> f32[B] {\n  return %x\n}\n", "expected a type"),
        ("func @f[B=4](%x: f32[T]) -> f32[T] {\n  return %x\n}\n", "unknown size T"),
        ("func @f[B=4, B=5](%x: f32[B]) -> f32[B] {\n  return %x\n}\n", "declared twice"),
        ("func @f[B=4 in 6..9](%x: f32[B]) -> f32[B] {\n  return %x\n}\n", "not in the range"),
        ("func @f[B=4](%x: f32[B//0]) -> f32[B] {\n  return %x\n}\n", "cannot be divided by 0"),
        ("func @f[B=4](%x: f32[B*]) -> f32[B] {\n  return %x\n}\n", "expected a size"),
        ("func @f[B](%x: f32[B]) -> f32[B] {\n  return %x\n}\n", "expected '='"),
    ],
)
def test_texts_with_mistakes(text, message):
    with pytest.raises(ParseError, match=message):
        parse_func(text)


def test_sizes_are_integers_to_python():
    _, B, _ = sizes()
    assert isinstance(B, int)
    assert not isinstance(B, bool)
    assert type(B) is Size
    assert 1 + B == B + 1
    assert B * True == B
    assert B + np.int64(3) == B + 3


def test_bounds_of_positions_in_loops():
    """A row of B//2 elements, written as B - (B+1)//2, or of 2*B-1, at every position of T of them, also in chunks."""
    _, B, T = sizes()
    for row in ((B - (B + 1) // 2).expr, (2 * B - 1).expr):
        check_rows(row, T)


def check_rows(row, T):
    outer, inner, chunk, rows = (variable(name) for name in ("outer", "inner", "chunk", "rows"))
    for last in (T.expr - 1, minimum_expr(chunk * rows + rows, T.expr) - 1):
        for first, final in ((0, 8 * (row // 8) - 8), (8 * (row // 8), row - 1)):
            ranges = Ranges()
            ranges.known[var_of(outer)] = Range(0, last)
            ranges.known[var_of(inner)] = Range(first, final)
            assert ranges.at_least(row * outer + inner, 0)
            assert ranges.at_least(row * T.expr - row * outer - inner, 1)
            assert not ranges.at_least(row * T.expr - row * outer - inner, 10)  # 9 are proven of 2*B-1, which is odd


def test_common_symbols_do_not_change_a_sign():
    symbols = Symbols()
    b, t = (symbols.new(name, hint).expr for name, hint in (("B", 5), ("T", 7)))
    assert without_common_symbols(2 * t - b * t) == 2 - b
    assert without_common_symbols(b * b * t - b * t * 3) == b - 3
    assert without_common_symbols(b * t) == 1
    assert without_common_symbols(b * t - b + 1) == b * t - b + 1
    assert without_common_symbols(3) == 3


def test_quotients_of_sizes():
    _, B, T = sizes()
    assert (B * T + T) // T == B + 1
    assert (B * B - 1) // (B + 1) == B - 1
    assert T // (T + 1) == 0
    assert -T // (T + 1) == -1
    assert -T // T == -1
    with pytest.raises(ZeroDivisionError, match="integer division or modulo by zero"):
        B // 0
    with pytest.raises(ZeroDivisionError):
        B % 0
    for undecided in (lambda: B // T, lambda: (B * T + 1) // T, lambda: (3 * B) // (2 * B)):
        with pytest.raises(NotGeneral, match="a division needs the value"):
            undecided()


def test_sizes_and_infinity():
    _, B, _ = sizes()
    inf = float("inf")
    answers = [op(B, limit) for limit in (inf, -inf) for op in (operator.le, operator.lt, operator.ge, operator.gt)]
    assert answers == [True, True, False, False, False, False, True, True]
    assert B >= 0.5
    assert B != 0.5


def test_numpys_functions_of_sizes():
    _, B, T = sizes()
    assert np.add(B, np.int64(2)) == B + 2
    assert np.multiply(B, T) == B * T
    assert np.negative(B) == -B
    assert np.floor_divide(B, 2) == B // 2
    assert np.less(B - 1, B)


def test_expressions_divide_by_positive_numbers_only():
    _, B, T = sizes()
    with pytest.raises(NotGeneral, match="divided by"):
        B.expr // T.expr
    with pytest.raises(ValueError, match="positive integers only, not by 0"):
        B.expr // 0
    assert (-B.expr) // 4 == -((B.expr + 3) // 4)


def test_texts_and_values_of_minima():
    b, t = variable("b"), variable("t")
    least = minimum_expr(b, t) * 2 + 1
    assert evaluated(least, {"b": 3, "t": 5}) == 7
    assert evaluated(least, {"b": 6, "t": 5}) == 11
    assert expr_text(least) == "2*min(b,t)+1"
    assert eval(expr_text(least), {"b": 3, "t": 5}) == 7
    assert expr_text(4) == "4"
    assert sorted(symbol_names(least)) == ["b", "t"]
    assert symbol_names(4) == []
    with pytest.raises(TypeError, match="b has no hint"):
        b.hint
    assert minimum_expr(b, b + 1) == b
    assert minimum_expr(b + 1, b) == b
    assert substituted(least, var_of(t), 4) == least, "only where it stands alone"
    assert substituted(b * t + t, var_of(t), 4) == 4 * b + 4
    assert substituted(7, var_of(t), 4) == 7


def test_every_size_is_that_of_some_axis():
    func = parse_func("func @f[B=4](%x: f32[2*B]) -> f32[2*B] {\n  return %x\n}\n")
    with pytest.raises(ShapeError, match="@f: no parameter has an axis whose size is B alone"):
        run(func, np.ones(8, "f4"))


def test_ops_whose_types_depend_on_sizes_are_trusted():
    """Whether there are three elements is not decided for all sizes: the verifier accepts the type in the text, if it is valid."""
    text = "func @f[B=4](%x: f32[B]) -> f32[3] {\n  %z: f32[3] = slice %x {starts=[0], stops=[3], steps=[1]}\n  return %z\n}\n"
    verify(parse_func(text))
    np.testing.assert_array_equal(run(parse_func(text), np.arange(5, dtype="f4"))[0], [0.0, 1.0, 2.0])
