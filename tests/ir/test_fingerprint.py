"""Fingerprints: equal for equivalent functions, different for all others."""

from __future__ import annotations

from random import Random
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjit.ir.builder import Builder
from adjit.ir.fingerprint import fingerprint, plain
from adjit.ir.func import Block, Func, Value
from adjit.ir.location import Location
from adjit.ir.ops.base import Op, apply
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.types import F64, TensorType
from tests.ir.random_funcs import random_func


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_a_text_that_comes_back_has_the_same_fingerprint(random: Random) -> None:
    func = random_func(random)
    assert fingerprint(parse_func(print_func(func))) == fingerprint(func) is not None


@pytest.mark.parametrize("value", ["0.0", "-0.0", "nan"])
def test_zeros_of_either_sign_and_nan_are_distinguished(value: str) -> None:
    """A second constant with other bits is another one, even if it is equal; one with the same bits is the same, even if it is NaN."""
    text = "func @f() -> (f64[3], f64[3]) {{\n  %a: f64[3] = fill {{value={}}}\n  %b: f64[3] = fill {{value={}}}\n  return %a, %b\n}}\n"
    prints = {other: fingerprint(parse_func(text.format(value, other))) for other in ("0.0", "-0.0", "nan")}
    assert len(set(prints.values())) == 3
    func = parse_func(text.format(value, value))
    first, second = func.stmts
    shared = Block(func.block.params, [first, second.replace(op=first.op)], func.block.results)
    assert fingerprint(func.replace(block=shared)) == prints[value]


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.randoms(use_true_random=False))
def test_other_texts_have_other_fingerprints(one: Random, other: Random) -> None:
    funcs = random_func(one), random_func(other)
    if fingerprint(funcs[0]) == fingerprint(funcs[1]):
        assert len(funcs[0].stmts) == len(funcs[1].stmts)
        for a, b in zip(funcs[0].stmts, funcs[1].stmts, strict=True):
            assert (a.op, a.phase, [r.type for r in a.results]) == (b.op, b.phase, [r.type for r in b.results])


BASE = """
func @f(%x: f64[3], %i: i64[]) -> f64[] {
  %y: f64[3] = mul %x, 2.0
  %z: f64[] = gather %y, %i !model.py:7:3
  return %z updating %x = %y
}
"""
OTHERS = {
    "a type": BASE.replace("f64", "f32"),
    "a literal": BASE.replace("2.0", "2.5"),
    "an op": BASE.replace("mul", "add"),
    "an operand": BASE.replace("gather %y", "gather %x"),
    "a result": BASE.replace("-> f64[]", "-> f64[3]").replace("return %z", "return %y"),
    "an update": BASE.replace("updating %x = %y", ""),
    "a phase": BASE.replace("  %y:", "backward:\n  %y:"),
    "the line of what can fail": BASE.replace("model.py:7:3", "model.py:8:3"),
}
SAME = {
    "a name of a value": BASE.replace("%y", "%why"),
    "the name of the function": BASE.replace("@f", "@g"),
    "a line of what cannot fail": BASE.replace("mul %x, 2.0", "mul %x, 2.0 !model.py:6:1"),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_decides_the_code(text: str) -> None:
    assert fingerprint(parse_func(dedent(text))) != fingerprint(parse_func(dedent(BASE)))


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_what_does_not(text: str) -> None:
    assert fingerprint(parse_func(dedent(text))) == fingerprint(parse_func(dedent(BASE)))


def test_signs_of_zero_and_payloads_count() -> None:
    assert fingerprint(parse_func(BASE.replace("2.0", "0.0"))) != fingerprint(parse_func(BASE.replace("2.0", "-0.0")))


def test_an_op_that_is_not_plain_data_has_none() -> None:
    class Opaque(Op, abstract=True):
        name = "opaque"

        def infer(self, *types: TensorType) -> TensorType:
            return types[0]

        def attributes(self) -> list[tuple[str, object]]:
            return [("function", print)]

    x = Value(TensorType(F64, (2,)), "x")
    with Builder([x]) as builder:
        func = Func("f", builder.finish([apply(Opaque(), x)]))
    assert fingerprint(func) is None
    with pytest.raises(TypeError, match="plain data"):
        plain([Location("f.py", 1)])
