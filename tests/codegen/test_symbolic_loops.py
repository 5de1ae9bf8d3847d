"""Loops over a size that is known only at run time, and stacks whose elements differ in size from call to call."""

from __future__ import annotations

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.codegen.native import Native
from adjit.ir import ops
from adjit.ir.func import Func
from adjit.ir.operand import Operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.index import Gather, ScatterAdd, ScatterSet
from adjit.ir.parser import parse_func
from adjit.ir.types import F32
from adjit.passes.pipeline import OPTIMIZE

from .symbolic import B, T, check, compare

RECURRENT = """
func @f[B=32, T=17](%x: f32[T,B,5], %w: f32[5,8], %u: f32[8,8], %h0: f32[B,8]) -> (f32[B,8], f32[]) {
  %n: i64[] = size {value=T}
  %h: f32[B,8] = for %k in 0..%n carry (%c: f32[B,8] = %h0) {
    %xt: f32[B,5] = gather %x, %k
    %a: f32[B,8] = matmul %xt, %w
    %b: f32[B,8] = matmul %c, %u
    %s: f32[B,8] = add %a, %b
    %t: f32[B,8] = tanh %s
    yield %t
  }
  %l: f32[] = sum %h {axes=[0, 1]}
  return %h, %l
}
"""

SAVED = """
func @f[B=32, T=17](%x: f32[T,B]) -> f32[B] {
  %n: i64[] = size {value=T}
  %h: f32[B], %saved: stack<f32[B]> = for %k in 0..%n carry (%c: f32[B] = 1.0) {
    %r: f32[B] = gather %x, %k
    %p: f32[B] = mul %c, %r
    yield %p saving %c
  }
  %d: f32[B] = for %k in 0..%n carry (%e: f32[B] = 0.0) {
    %one: f32[B] = stack_read %saved, %k
    %s: f32[B] = add %e, %one
    yield %s
  }
  %out: f32[B] = add %h, %d
  return %out
}
"""

NUMBER = """
func @f[B=32](%x: f32[B]) -> (i64[], f32[B]) {
  %n: i64[] = size {value=3*B-1}
  %y: f32[B] = add %x, 1.0
  return %n, %y
}
"""

WRITTEN = """
func @f[B=32](%x: f32[B,B], %r: f32[1,B]) -> (f32[B,B], f32[B]) {
  %y: f32[B,B] = set_slice %x, %r {starts=[B-1, 0], stops=[B, B], steps=[1, 1]}
  %z: f32[1,B] = slice %y {starts=[B-2, 0], stops=[B-1, B], steps=[1, 1]}
  %w: f32[B] = reshape %z {shape=[B]}
  %v: f32[B] = add %w, 1.0
  return %y, %v
}
"""

CUBE = """
func @f[B=32](%x: f32[B,B]) -> f32[] {
  %y: f32[B,B] = matmul %x, %x
  %z: f32[B,B] = matmul %y, %x
  %s: f32[] = sum %z {axes=[0, 1]}
  return %s
}
"""


def compiled(text: str) -> tuple[Native, Func]:
    func = parse_func(text)
    return compile_func(OPTIMIZE(func), traced=func), func


@pytest.mark.parametrize("text", [RECURRENT, SAVED], ids=["recurrent", "saved"])
def test_loops(text: str) -> None:
    """Sizes vary in both directions: stacks keep their memory from call to call, and the arena grows."""
    native, func = compiled(text)
    for b, t in [(2, 3), (100, 2), (3, 40), (1000, 7), (2, 2), (64, 500), (2000, 20), (5, 1000)]:
        compare(native, func, {"B": b, "T": t})


def test_a_size_as_a_number() -> None:
    native, _ = compiled(NUMBER)
    for b in (2, 100):
        number, _ = native([np.zeros(b, np.float32)])
        assert number == 3 * b - 1


def joined(x: Operand, y: Operand) -> Operand:
    return ops.concatenate([x, y * 2.0], 0) * 0.5


def test_moving_data() -> None:
    check(joined, (B, 4), (T, 4))
    check(lambda x, y: ops.concatenate([x, y], 1), (B, T), (B, 10))
    check(lambda x: ops.pad(x, (1, 0), (2, 3)) * 2.0, (B, 10))
    check(lambda x: (ops.cumsum(x, 0), ops.cumsum(x, 1)), (B, T))
    check(lambda x: (ops.sort(x, 0), ops.argmax(x, 1)), (B, 10))
    check(lambda x: ops.argsort(x, 1), (B, T), sizes=(2, 17, 100))


def test_a_part_that_begins_at_a_size() -> None:
    """The attributes of an op are sizes of types; those of its operands in native code are expressions."""
    native, func = compiled(WRITTEN)
    for b in (2, 3, 40):
        compare(native, func, {"B": b})


def test_indices_into_an_axis_of_any_size() -> None:
    check(lambda x, i: apply(Gather(), x, i), (B, 4), (7,), indices=(1,))
    for op in (ScatterAdd(), ScatterSet()):
        check(lambda x, u, i, op=op: apply(op, x, u, i), (B, 4), (7, 4), (7,), indices=(2,))


def test_an_index_out_of_bounds_is_found_at_every_size() -> None:
    native, func = compiled("func @f[B=32](%x: f32[B,4], %i: i64[3]) -> f32[3,4] {\n%y: f32[3,4] = gather %x, %i\nreturn %y\n}")
    for b in (2, 50):
        compare(native, func, {"B": b})
        for wrong in (b, -b - 1):
            with pytest.raises(IndexError, match=str(wrong)):
                native([np.zeros((b, 4), np.float32), np.array([0, 1, wrong])])


def test_an_arena_grows_and_calls_with_other_sizes_go_on() -> None:
    native, _ = compiled(CUBE)
    for b in (4, 300, 4, 600, 2):
        x = np.full((b, b), 0.01, F32)
        (got,) = native([x])
        np.testing.assert_allclose(got, np.sum(x @ x @ x), rtol=1e-4)


def test_large_results_reuse_buffers_only_without_references() -> None:
    native, _ = compiled("func @f[B=32](%x: f32[B]) -> f32[B] {\n%y: f32[B] = add %x, 1.0\nreturn %y\n}")
    held = []
    for step, n in enumerate([100_000, 100_000, 100_000, 150_000, 90_000, 2, 100_000]):
        (got,) = native([np.full(n, step, np.float32)])
        held.append(got)
    for step, array in enumerate(held):
        assert (array == step + 1).all()
    del held, got, array
    places = {native([np.zeros(100_000, np.float32)])[0].__array_interface__["data"][0] for _ in range(20)}
    assert len(places) <= 2
