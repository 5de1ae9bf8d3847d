"""Hand-written programs that reach outside of a stack fail in the interpreter and in native code, with one message.

Programs of the tracer never do: derivatives emit reads that cannot fail, which native code does not check.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.compile import compile_func
from adjit.ir.effects import effects
from adjit.ir.errors import DTypeError, OutOfBoundsError, VerifyError
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.ops.stack import CheckedStackOp
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.programs.check import traced

HEAD = """
func @f(%n: i64[], %m: i64[], %i: {index}, %x: {type}) -> {type} {{
  %y: {type}, %s: stack<{type}> = for %k in 0..%n carry (%c: {type} = %x) {{
    %0: {type} = sin %c
    yield %0 saving %c
  }}
  %z: {type}, %t: stack<{type}> = for %k in 0..%m carry (%c: {type} = %x) {{
    %0: {type} = cos %c
    yield %0 saving %c
  }}
"""
READ = "  %a: {type} = stack_read %s, %i\n  return %a\n}}\n"
UNUSED = "  %a: {type} = stack_read %s, %i\n  return %y\n}}\n"
ADDED = "  %u: stack<{type}> = stack_accumulate %s, %i, %y\n  %a: {type} = stack_read %u, 0:i64[]\n  return %a\n}}\n"
JOINED = "  %u: stack<{type}> = stack_add %s, %t\n  %a: {type} = stack_read %u, %i\n  return %a\n}}\n"
IN_LOOP = """
  %a: {type} = for %j in 0..%m carry (%d: {type} = %y) {{
    %1: i64[] = cast %i
    %2: i64[] = add %j, %1
    %3: {type} = stack_read %s, %2
    %u: stack<{type}> = stack_zeros %s
    %v: stack<{type}> = stack_accumulate %u, %j, %3
    %4: {type} = stack_read %v, %j
    %5: {type} = add %4, %d
    yield %5
  }}
  return %a
}}
"""
WHOLE = "  %a: {rows} = stack_array %s {{count=3}}\n  %b: {type} = sum %a {{axes=[0]}}\n  return %b\n}}\n"
TYPES = {"f64[]": "f64[3]", "f32[5]": "f32[3,5]", "f64[40]": "f64[3,40]"}

CASES = [(3, 3, 0), (3, 3, 2), (3, 3, 3), (3, 3, -1), (3, 2, 0), (3, 2, 1), (2, 3, 0), (0, 0, 0), (0, 3, 0), (3, 3, 2**62), (3, 0, 1)]


def outcome(action: Any) -> Any:
    try:
        return action()
    except OutOfBoundsError as error:
        return str(error).partition("\n")[0]


def compiled(func: Func, arrays: list[Any]) -> Any:
    return compile_func(OPTIMIZE(func))([a.copy() for a in arrays])


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("body", [READ, UNUSED, ADDED, JOINED, IN_LOOP, WHOLE], ids=["read", "unused", "added", "joined", "loop", "whole"])
def test_bounds(type: str, body: str) -> None:
    func = verify(parse_func((HEAD + body).format(type=type, index="i64[]", rows=TYPES[type])))
    element = func.params[-1].type
    native = compile_func(OPTIMIZE(func))
    failed = 0
    for n, m, i in CASES:
        arrays = [np.asarray(n), np.asarray(m), np.asarray(i), np.full(element.shape, 0.5, element.dtype)]
        want, got = outcome(lambda a=arrays: run(func, *a)), outcome(lambda a=arrays: native([x.copy() for x in a]))
        failed += isinstance(want, str)
        if isinstance(want, str) or isinstance(got, str):
            assert got == want, (n, m, i)
        else:
            np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
    assert 0 < failed < len(CASES)


@pytest.mark.parametrize("type", TYPES)
def test_indices_of_other_dtypes(type: str) -> None:
    func = parse_func((HEAD + READ).format(type=type, index="u64[]"))
    element = func.params[-1].type
    for i in (2, 3, 2**63, 2**64 - 1):
        arrays = [np.asarray(3), np.asarray(0), np.asarray(i, "u8"), np.full(element.shape, 0.5, element.dtype)]
        assert (i < 3) != isinstance(outcome(lambda a=arrays: run(func, *a)), str)
        assert (i < 3) != isinstance(outcome(lambda a=arrays: compiled(func, a)), str)


def test_sums_are_of_floats() -> None:
    with pytest.raises((VerifyError, DTypeError)):
        verify(parse_func((HEAD.replace("sin", "neg").replace("cos", "neg") + JOINED).format(type="i64[]", index="i64[]")))


def nested(x: Any) -> Any:
    y = x
    for _ in aj.range(3):
        while np.sum(y * y) > 0.5:
            y = np.sin(y) * 0.9
        y = y * y + x
    return np.sum(y)


@pytest.mark.parametrize("function", [aj.grad(nested), aj.vmap(aj.grad(nested)), aj.grad(lambda x: np.sum(aj.grad(nested)(x)))])
def test_derivatives_need_no_checks(function: Any) -> None:
    func, _ = traced(function, [np.ones((2, 3))])
    found = [stmt for stmt in walk(func.block) if isinstance(stmt.op, CheckedStackOp)]
    assert found
    assert not any(effects(stmt).fails for stmt in found)
    again = parse_func(str(func))
    assert all(effects(stmt).fails for stmt in walk(again.block) if isinstance(stmt.op, CheckedStackOp))
    assert str(again) == str(func)
