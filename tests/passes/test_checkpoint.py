"""Checkpoints of loops and of straight-line code: the values that they store, and refusals."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.errors import AdjitError
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.ops.control import Checkpoint
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.pipeline import OPTIMIZE

DECAY = """
    func @decay(%x: f64[], %n: i64[]) -> f64[] {
      %r: f64[] = for %k in 0..%n carry (%c: f64[] = %x){how} {
        %s: f64[] = sin %c
        %m: f64[] = mul %s, 0.5
        yield %m
      }
      return %r
    }
"""

UNTIL = """
    func @until(%x: f64[], %n: i64[]) -> f64[] {
      %r: f64[], %last: i64[] = while carry (%c: f64[] = %x, %i: i64[] = 0){how} {
        %p: bool[] = less %i, %n
        cond %p
      } do {
        %s: f64[] = sin %c
        %j: i64[] = add %i, 1
        yield %s, %j
      }
      return %r
    }
"""

LAYERS = """
    func @layers(%x: f64[4], %w: f64[4,4]) -> f64[] {
      %h: f64[4] = checkpoint {
        %a: f64[4] = matmul %w, %x
        %b: f64[4] = tanh %a
        %c: f64[4] = exp %b
        yield %c
      }
      %d: f64[4] = matmul %w, %h
      %y: f64[] = sum %d {axes=[0]}
      return %y
    }
"""


def gradient(text: str, how: str) -> Func:
    return value_and_grad_func(parse_func(dedent(text).replace("{how}", how)))


def most_saved(func: Func, *arrays: object) -> int:
    """The largest number of elements in a stack so far."""
    most = 0

    def observe(stmt: object, args: object, results: object) -> None:
        nonlocal most
        most = max([most, *(len(r) for r in results if isinstance(r, list))])  # type: ignore[attr-defined]

    run(func, *arrays, observe=observe)  # type: ignore[arg-type]
    return most


def test_memory_is_bounded_by_the_number_of_trips_and_not_by_the_bounds_of_the_range() -> None:
    func = gradient(DECAY.replace("0..%n", "10000..%n"), ' {checkpoint="sqrt"}')
    assert most_saved(func, np.array(0.7), np.array(10_400)) <= 40


@pytest.mark.parametrize(
    ("text", "how", "most"),
    [
        (DECAY, "sqrt", 55),  # 3000 = 55 segments of 55
        (DECAY, "binomial", 15),  # 15 segments of 209, each of 15 of 15
        (UNTIL, "sqrt", 78),  # segments of 16, 17, …, 78, and the rest
        (UNTIL, "binomial", 31),  # segments of 16, 17, 20, 25, …, 377, the last of 16, 17, …, 31, and the rest
    ],
)
def test_memory_of_many_trips(text: str, how: str, most: int) -> None:
    func = gradient(text, f' {{checkpoint="{how}"}}')
    assert most_saved(func, np.array(0.9), np.array(3000)) == most


@pytest.mark.parametrize("text", [DECAY, UNTIL])
@pytest.mark.parametrize(
    ("how", "bound"), [("", 400), (" {checkpoint=10}", 41), (' {checkpoint="sqrt"}', 40), (' {checkpoint="binomial"}', 40)]
)
def test_memory_is_bounded(text: str, how: str, bound: int) -> None:
    arrays = np.array(0.9), np.array(400)
    func = gradient(text, how)
    assert most_saved(func, *arrays) <= bound
    np.testing.assert_allclose(run(func, *arrays), run(gradient(text, ""), *arrays), rtol=1e-12)


@pytest.mark.parametrize("trips", [0, 1, 2, 15, 16, 17, 33, 100])
@pytest.mark.parametrize("how", ["{checkpoint=1}", "{checkpoint=16}", '{checkpoint="sqrt"}', '{checkpoint="binomial"}'])
@pytest.mark.parametrize("text", [DECAY, UNTIL])
def test_any_number_of_trips(text: str, how: str, trips: int) -> None:
    arrays = np.array(0.9), np.array(trips)
    func = gradient(text, " " + how)
    want = run(gradient(text, ""), *arrays)
    np.testing.assert_allclose(run(func, *arrays), want, rtol=1e-12)
    np.testing.assert_allclose(compile_func(OPTIMIZE(func))(arrays), want, rtol=1e-12)


def test_unknown_checkpoints_are_refused() -> None:
    with pytest.raises(AdjitError, match=r'for: checkpoint must be "none", "sqrt", "binomial" or a number of iterations, not \'cubic\''):
        gradient(DECAY, ' {checkpoint="cubic"}')


def test_straight_code_is_computed_again() -> None:
    func = parse_func(dedent(LAYERS))
    both = value_and_grad_func(func)
    verify(both)
    forward, backward = (s for s in both.stmts if isinstance(s.op, Checkpoint))
    assert [s.op.name for s in forward.blocks[0].stmts] == ["matmul", "tanh", "exp"]
    assert [s.op.name for s in backward.blocks[0].stmts][:3] == ["matmul", "tanh", "exp"]
    made = {id(r) for s in forward.blocks[0].stmts for r in s.results} | {id(r) for r in forward.results}
    assert not any(id(v) in made for v in backward.blocks[0].free()), "the backward block reads what the forward one computed"
    x, w = np.linspace(-0.5, 0.5, 4), np.linspace(-1.0, 1.5, 16).reshape(4, 4)
    branch = dedent(LAYERS).replace("checkpoint {", "if true {").replace("yield %c\n  }", "yield %c\n  } else {\n    yield 0.0\n  }")
    plain = parse_func(branch)
    want = run(value_and_grad_func(plain), x, w)
    for a, b, c in zip(run(both, x, w), compile_func(OPTIMIZE(both))([x, w]), want, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-12)
        np.testing.assert_allclose(b, c, rtol=1e-12)


@pytest.mark.parametrize("text", [DECAY])
def test_lack_of_memory_is_an_error_with_a_remedy(text: str) -> None:
    native = compile_func(OPTIMIZE(gradient(text, "")))
    with pytest.raises(MemoryError, match="checkpoint="):
        native([np.array(0.9), np.array(2**60)])
    np.testing.assert_allclose(native([np.array(0.9), np.array(3)]), run(gradient(text, ""), np.array(0.9), np.array(3)))
