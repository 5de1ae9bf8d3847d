"""Algebraic simplification: every rule of the table on special values, bit for bit."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.builder import Builder
from adjit.ir.errors import AdjitError, ParseError
from adjit.ir.func import Func, Value
from adjit.ir.interpreter import run
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import REGISTRY
from adjit.ir.ops.maps import Cast
from adjit.ir.ops.reduce import Max, Min, Sum
from adjit.ir.ops.shape import Broadcast, Flip, Reshape, Slice, Transpose
from adjit.ir.types import BOOL, DTYPES, F32, F64, I8, I64, U8, DType, TensorType
from adjit.ir.verifier import verify
from adjit.passes.simplify.rules import Apply, PatternName, Rule, Term, parse_rules
from adjit.passes.simplify.simplify import GUARDS, RULES, Simplifier, simplify
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites, same_bits

ALL_RULES = {rule.name: rule for rules in RULES.by_op.values() for rule in rules}
EVERY_ORDER = [(rule.name, k, rule) for rules in RULES.by_op.values() for k, rule in enumerate(rules)]


def specials(dtype: DType) -> list[Any]:
    if dtype == BOOL:
        return [False, True]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [v for v in (0, 1, 2, 3, 7, -1, -2, info.min, info.max, info.max // 2 + 1) if info.min <= v <= info.max]
    info = np.finfo(dtype)
    edges = [info.tiny, info.smallest_subnormal, info.max, info.eps]
    return [s * v for v in (0.0, 1.0, 2.0, 0.5, 3.0, 0.1, 8.0, float("inf"), *map(float, edges)) for s in (1.0, -1.0)] + [float("nan")]


def names(term: Term) -> list[str]:
    if isinstance(term, Apply):
        return list(dict.fromkeys(n for arg in term.args for n in names(arg)))
    return [term.name] if isinstance(term, PatternName) else []


def emit(b: Builder, term: Term, dtype: DType, bound: dict[str, Any], size: int) -> Operand:
    """The pattern as statements, on parameters and literals of `dtype` (a condition is a bool)."""
    if isinstance(term, Apply):
        condition = [BOOL] if term.op == "where" else []
        dtypes = (condition + [dtype] * 3)[: len(term.args)]
        return b.emit(REGISTRY[term.op](), [emit(b, t, d, bound, size) for t, d in zip(term.args, dtypes)])[0]
    if isinstance(term, PatternName):
        if term.is_literal:
            return Literal(bound[term.name], TensorType(dtype, (size,)))
        if term.name not in bound:
            bound[term.name] = Value(TensorType(dtype, (size,)), term.name)
            b.params.append(bound[term.name])
        found: Operand = bound[term.name]
        return found
    number = Literal(term.value, TensorType(dtype, (size,)))
    if number.value != term.value:
        raise OverflowError(f"{term.value} is no {dtype}")
    return number


def instances(rule: Rule, dtype: DType) -> list[Func]:
    """Functions that consist of the rule's pattern, one for every choice of literals."""
    literals = [n for n in names(rule.pattern) if n[0].isupper()]
    variables = [n for n in names(rule.pattern) if not n[0].isupper()]
    size = len(specials(dtype)) ** min(len(variables), 2)
    out = []
    for values in product(specials(dtype), repeat=len(literals)):
        bound: dict[str, Any] = dict(zip(literals, values))
        with Builder() as b:
            try:
                result = emit(b, rule.pattern, dtype, bound, size)
            except (AdjitError, OverflowError):
                return []  # the op does not take this dtype, or the dtype not the pattern's number
        if all(guard(bound[n] if isinstance(bound[n], Operand) else Literal(bound[n], TensorType(dtype))) for guard, n in rule.guards):
            out.append(Func("pattern", b.finish([result])))
    return out


def arguments(func: Func) -> list[Any]:
    """Every pair of special values for the first two parameters; the third follows the second, turned around."""
    size = func.params[0].type.size if func.params else 0
    arrays = []
    for k, param in enumerate(func.params):
        line = np.array([param.type.dtype.type(v) for v in specials(param.type.dtype)])
        repeated = np.resize(line, size) if k == 0 else np.resize(np.repeat(line, len(line)), size)
        arrays.append(repeated[::-1].copy() if k == 2 else repeated)
    return arrays


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("name", "k", "rule"), EVERY_ORDER, ids=[f"{name}-{k}" for name, k, _ in EVERY_ORDER])
def test_every_rule_is_exact_on_special_values(name: str, k: int, rule: Rule) -> None:
    tried = 0
    for dtype in (F64, F32, I64, I8, U8, BOOL):
        for func in instances(rule, dtype):
            rewriter = Simplifier()
            for stmt in func.stmts:
                rewriter.current = stmt
                rewriter.definitions[id(stmt.result)] = stmt
            replaced = rule.apply(func.stmts[-1], rewriter.definitions, rewriter.emit)
            assert replaced is not None, f"{name} does not match its own pattern:\n{func}"
            assert replaced.type == func.results[0].type
            after = simplify(func)
            verify(after)
            want, got = (run(f, *arguments(func))[0] for f in (func, after))
            assert same_bits(got, want), f"{name} on {dtype}: {want} became {got}\n{func}{after}"
            tried += 1
    assert tried, f"{name} matches no dtype"


def test_every_rule_has_a_reason_and_valid_ops() -> None:
    def known(term: Term) -> bool:
        return not isinstance(term, Apply) or (term.op in REGISTRY and all(map(known, term.args)))

    for rule in ALL_RULES.values():
        assert known(rule.pattern), rule.name
        assert known(rule.replacement), rule.name
        assert rule.why, rule.name
        assert set(names(rule.replacement)) <= set(names(rule.pattern)), rule.name


@pytest.mark.parametrize("line", ["x => y  # no name", "a: add(x, 0) => x", "a: x => x  # no op", "a: add(x, 0)) => x  # too many"])
def test_invalid_rules_are_refused(line: str) -> None:
    with pytest.raises(ParseError):
        parse_rules(line, GUARDS).by_op


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(ParseError, match="two rules"):
        parse_rules("a: neg(neg(x)) => x  # so\na: abs(neg(x)) => abs(x)  # so", GUARDS)


def test_what_is_not_exact_stays() -> None:
    leaves(
        simplify,
        """
        func @f(%x: f64[3], %y: f64[3]) -> (f64[3], f64[3], f64[3], f64[3], f64[3], f64[3], f64[3]) {
          %a: f64[3] = add %x, 0.0
          %b: f64[3] = mul %x, 0.0
          %c: f64[3] = sub %x, %x
          %d: f64[3] = div %x, 3.0
          %e: f64[3] = sub 0.0, %x
          %g: f64[3] = strong_mul %x, -2.0
          %h: f64[3] = sub %x, %y
          %i: f64[3] = neg %h
          return %a, %b, %c, %d, %e, %g, %i
        }
        """,
    )


def test_operands_are_simple_before_their_readers_are_looked_at() -> None:
    rewrites(
        simplify,
        """
        func @f(%x: f64[3], %y: f64[3]) -> f64[3] {
          %a: f64[3] = mul %x, 1.0
          %b: f64[3] = neg %a
          %c: f64[3] = neg %b
          %d: f64[3] = neg %y
          %e: f64[3] = sub %c, %d
          %z: f64[3] = div %e, 4.0
          return %z
        }
        """,
        """
        func @f(%x: f64[3], %y: f64[3]) -> f64[3] {
          %b: f64[3] = neg %x
          %d: f64[3] = neg %y
          %e: f64[3] = add %x, %y
          %z: f64[3] = mul %e, 0.25
          return %z
        }
        """,
    )


def test_views_are_joined() -> None:
    rewrites(
        simplify,
        """
        func @f(%x: f64[2,3,4]) -> (f64[2,3,4], f64[24], f64[5,2,3,4], f64[2,1,1]) {
          %a: f64[4,3,2] = transpose %x {axes=[2, 1, 0]}
          %b: f64[2,3,4] = transpose %a {axes=[2, 1, 0]}
          %c: f64[6,4] = reshape %b
          %d: f64[24] = reshape %c
          %e: f64[1,2,3,4] = broadcast %x
          %g: f64[5,2,3,4] = broadcast %e
          %h: f64[2,2,2] = slice %x {starts=[0, 0, 1], stops=[2, 3, 4], steps=[1, 2, 2]}
          %i: f64[2,1,1] = slice %h {starts=[0, 1, 1], stops=[2, 2, 2], steps=[1, 1, 1]}
          return %b, %d, %g, %i
        }
        """,
        """
        func @f(%x: f64[2,3,4]) -> (f64[2,3,4], f64[24], f64[5,2,3,4], f64[2,1,1]) {
          %a: f64[4,3,2] = transpose %x {axes=[2, 1, 0]}
          %c: f64[6,4] = reshape %x
          %d: f64[24] = reshape %x
          %e: f64[1,2,3,4] = broadcast %x
          %g: f64[5,2,3,4] = broadcast %x
          %h: f64[2,2,2] = slice %x {starts=[0, 0, 1], stops=[2, 3, 4], steps=[1, 2, 2]}
          %i: f64[2,1,1] = slice %x {starts=[0, 2, 3], stops=[2, 3, 4], steps=[1, 2, 2]}
          return %x, %d, %g, %i
        }
        """,
    )


def test_arrays_are_added_before_they_are_padded_alike_with_zeros() -> None:
    text = """
        func @f(%x: f64[3], %y: f64[3]) -> f64[5] {
          %a: f64[5] = pad %x {low=[1], high=[1], interior=[0], value=0.0}
          %b: f64[5] = pad %y {low=[1], high=[1], interior=[0], value=0.0}
          %c: f64[5] = add %a, %b
          return %c
        }
        """
    rewrites(
        simplify,
        text,
        """
        func @f(%x: f64[3], %y: f64[3]) -> f64[5] {
          %a: f64[5] = pad %x {low=[1], high=[1], interior=[0], value=0.0}
          %b: f64[5] = pad %y {low=[1], high=[1], interior=[0], value=0.0}
          %0: f64[3] = add %x, %y
          %c: f64[5] = pad %0 {low=[1], high=[1], interior=[0], value=0.0}
          return %c
        }
        """,
    )
    leaves(simplify, text.replace("value=0.0", "value=2.0"))
    leaves(simplify, text.replace("low=[1], high=[1]", "low=[2], high=[0]", 1))


def test_a_sum_of_repetitions_is_a_product() -> None:
    rewrites(
        simplify,
        """
        func @f(%x: f64[3]) -> f64[] {
          %a: f64[5,3] = broadcast %x
          %b: f64[] = sum %a {axes=[0, 1]}
          return %b
        }
        """,
        """
        func @f(%x: f64[3]) -> f64[] {
          %a: f64[5,3] = broadcast %x
          %0: f64[] = sum %x {axes=[0]}
          %b: f64[] = mul %0, 5.0
          return %b
        }
        """,
    )


def test_equal_elements_are_computed_once() -> None:
    rewrites(
        simplify,
        """
        func @f(%s: f64[], %x: f64[100]) -> f64[100] {
          %a: f64[100] = broadcast %s
          %b: f64[100] = exp %a
          %c: f64[100] = add %b, 1.0
          %d: f64[100] = mul %x, %c
          return %d
        }
        """,
        """
        func @f(%s: f64[], %x: f64[100]) -> f64[100] {
          %a: f64[100] = broadcast %s
          %0: f64[] = exp %s
          %b: f64[100] = broadcast %0
          %1: f64[] = add %0, 1.0
          %c: f64[100] = broadcast %1
          %d: f64[100] = mul %x, %c
          return %d
        }
        """,
    )


@pytest.mark.parametrize("source", list(DTYPES))
def test_casts_of_casts_keep_every_value(source: str) -> None:
    dtype = DTYPES[source]
    x = np.array([dtype.type(v) for v in specials(dtype)])
    for between, target in product(DTYPES.values(), repeat=2):
        param = Value(TensorType(dtype, x.shape), "x")
        with Builder([param]) as b:
            (y,) = b.emit(Cast(between), [param])
            (z,) = b.emit(Cast(target), [y])
        func = Func("casts", b.finish([z]))
        after = simplify(func)
        assert same_bits(run(after, x)[0], run(func, x)[0]), f"{dtype} -> {between} -> {target}"


@QUICK
@given(st.randoms(use_true_random=False))
def test_chains_of_views_and_reductions_keep_their_meaning(random: Random) -> None:
    """Exact, for the numbers are small integers."""
    shape = tuple(random.choice([1, 1, 2, 3]) for _ in range(random.randint(0, 4)))
    x: Operand = Value(TensorType(F64, shape), "x")
    with Builder([x]) as b:  # type: ignore[list-item]
        for _ in range(random.randint(1, 6)):
            n = len(x.shape)
            steps = tuple(random.choice([1, 2]) for _ in range(n))
            starts = tuple(random.randrange(k) for k in x.shape)
            (x,) = b.emit(
                random.choice(
                    [
                        Reshape(tuple(random.sample(x.shape, n))),
                        Reshape((x.size, *(1,) * random.randint(0, 2))),
                        Transpose(tuple(random.sample(range(n), n))),
                        Broadcast((*(2,) * random.randint(0, 4 - min(n, 4)), *(random.choice([1, 3]) if k == 1 else k for k in x.shape))),
                        Flip(tuple(a for a in range(n) if random.random() < 0.5)),
                        Slice(starts, x.shape, steps),
                        random.choice([Sum, Max, Min])(tuple(a for a in range(n) if random.random() < 0.5)),
                    ]
                ),
                [x],
            )
            if x.size > 2000:
                break
    func = Func("views", b.finish([x]))
    after = simplify(func)
    verify(after)
    array = np.asarray(np.random.default_rng(random.randint(0, 99)).integers(-3, 4, shape)).astype(F64) + 0.0
    np.testing.assert_array_equal(run(after, array)[0], run(func, array)[0])


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    keeps_meaning(simplify, random)


def test_integers_wrap_around_in_folded_literals() -> None:
    rewrites(
        simplify,
        """
        func @f(%x: i32[2]) -> i32[2] {
          %a: i32[2] = add %x, 2000000000
          %b: i32[2] = add %a, 2000000000
          return %b
        }
        """,
        """
        func @f(%x: i32[2]) -> i32[2] {
          %a: i32[2] = add %x, 2000000000
          %b: i32[2] = add %x, -294967296
          return %b
        }
        """,
    )
