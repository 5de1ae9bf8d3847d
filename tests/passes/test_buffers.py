"""How buffers share the arena, and which buffer holds constants."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.func import Block
from adjit.ir.verifier import verify
from adjit.passes.fusion.fuse import fuse
from adjit.passes.fusion.legalize import legalize
from adjit.passes.memory.buffers import plan_buffers
from tests.ir.random_funcs import random_func
from tests.passes.checks import QUICK, rewrites


def test_the_smallest_gap_that_is_large_enough_is_used() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16], %v: f64[16,64], %u: f64[64,16]) -> f64[16] {
          %a: f64[64] = matmul %x, %v
          %b: f64[16] = matmul %x, %w
          %c: f64[16] = matmul %b, %w
          %d: f64[16] = matmul %a, %u
          %e: f64[16] = matmul %c, %w
          %g: f64[16] = matmul %d, %w
          %h: f64[64] = matmul %e, %v
          %i: f64[16] = matmul %h, %u
          %j: f64[16] = fuse {
            %k: f64[16] = mul %i, %g
            yield %k
          }
          %l: f64[16] = matmul %j, %w
          return %l
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1, %v: f64[16,64] @param+2, %u: f64[64,16] @param+3) -> f64[16] arena 768 {
          %a: f64[64] @arena+0 = matmul %x, %v
          %b: f64[16] @arena+512 = matmul %x, %w
          %c: f64[16] @arena+640 = matmul %b, %w
          %d: f64[16] @arena+512 = matmul %a, %u
          %e: f64[16] @arena+0 = matmul %c, %w
          %g: f64[16] @arena+640 = matmul %d, %w
          %h: f64[64] @arena+128 = matmul %e, %v
          %i: f64[16] @arena+0 = matmul %h, %u
          %j: f64[16] @arena+640 = fuse {
            %k: f64[16] = mul %i, %g
            yield %k
          }
          %l: f64[16] @result+0 = matmul %j, %w
          return %l
        }
        """,
    )


def test_gaps_side_by_side_become_one() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16], %v: f64[16,32], %u: f64[32,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %b: f64[16] = matmul %x, %w
          %c: f64[16] = matmul %x, %w
          %d: f64[16] = matmul %x, %w
          %a1: f64[16,1] = reshape %a
          %c1: f64[1,16] = reshape %c
          %s: f64[16,16] = matmul %a1, %c1
          %t: f64[16] = matmul %b, %s
          %y: f64[32] = matmul %t, %v
          %z: f64[16] = matmul %y, %u
          %q: f64[16] = fuse {
            %m: f64[16] = mul %z, %d
            yield %m
          }
          %r: f64[16] = matmul %q, %w
          return %r
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1, %v: f64[16,32] @param+2, %u: f64[32,16] @param+3) -> f64[16] arena 2560 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %b: f64[16] @arena+128 = matmul %x, %w
          %c: f64[16] @arena+256 = matmul %x, %w
          %d: f64[16] @arena+384 = matmul %x, %w
          %a1: f64[16,1] @%a = reshape %a
          %c1: f64[1,16] @%c+0[0,1] = reshape %c
          %s: f64[16,16] @arena+512 = matmul %a1, %c1
          %t: f64[16] @arena+0 = matmul %b, %s
          %y: f64[32] @arena+128 = matmul %t, %v
          %z: f64[16] @arena+0 = matmul %y, %u
          %q: f64[16] @arena+384 = fuse {
            %m: f64[16] = mul %z, %d
            yield %m
          }
          %r: f64[16] @result+0 = matmul %q, %w
          return %r
        }
        """,
    )


def test_constants_have_places_of_their_own() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%i: i64[], %v: f64[]) -> f64[3] {
          %a: f64[3] = constant {data=[0.0, 1.0, 2.0]}
          %b: f64[3] = scatter_set %a, %v, %i
          return %b
        }
        """,
        """
        func @f(%i: i64[] @param+0, %v: f64[] @param+1) -> f64[3] arena 0 {
          %a: f64[3] @constant+0 = constant {data=[0.0, 1.0, 2.0]}
          %b: f64[3] @result+0 = scatter_set %a, %v, %i
          return %b
        }
        """,
    )


def test_every_constant_has_a_place_of_its_own() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[3]) {
          %a: f64[3] = constant {data=[0.0, 1.0, 2.0]}
          %b: f64[3] = constant {data=[3.0, 4.0, 5.0]}
          %c: f64[3] = constant {data=[6.0, 7.0, 8.0]}
          %d: f64[3] = fuse {
            %m: f64[3] = mul %a, %b
            yield %m
          }
          %e: f64[3] = fuse {
            %n: f64[3] = mul %c, %x
            yield %n
          }
          return %d, %e
        }
        """,
        """
        func @f(%x: f64[3] @param+0) -> (f64[3], f64[3]) arena 0 {
          %a: f64[3] @constant+0 = constant {data=[0.0, 1.0, 2.0]}
          %b: f64[3] @constant+1 = constant {data=[3.0, 4.0, 5.0]}
          %c: f64[3] @constant+2 = constant {data=[6.0, 7.0, 8.0]}
          %d: f64[3] @result+0 = fuse {
            %m: f64[3] = mul %a, %b
            yield %m
          }
          %e: f64[3] @result+1 = fuse {
            %n: f64[3] = mul %c, %x
            yield %n
          }
          return %d, %e
        }
        """,
    )


def test_buffers_of_sizes_known_at_run_time_follow_the_arena() -> None:
    rewrites(
        plan_buffers,
        """
        func @f[B=64](%x: f64[B,16], %w: f64[16,16]) -> f64[B,16] {
          %a: f64[B,16] = matmul %x, %w
          %b: f64[B,16] = matmul %a, %w
          %c: f64[B,16] = matmul %b, %w
          %d: f64[B,16] = fuse {
            %e: f64[B,16] = exp %c
            yield %e
          }
          %g: f64[B,16] = matmul %d, %w
          return %g
        }
        """,
        """
        func @f[B=64](%x: f64[B,16] @param+0, %w: f64[16,16] @param+1) -> f64[B,16] arena 0 sized [128*B, 128*B] {
          %a: f64[B,16] @sized+0 = matmul %x, %w
          %b: f64[B,16] @sized+1 = matmul %a, %w
          %c: f64[B,16] @sized+0 = matmul %b, %w
          %d: f64[B,16] @sized+0 = fuse {
            %e: f64[B,16] = exp %c
            yield %e
          }
          %g: f64[B,16] @result+0 = matmul %d, %w
          return %g
        }
        """,
    )


def test_an_array_inside_a_region_in_registers_has_a_buffer() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[]) -> f64[] {
          %y: f64[] = for %k in 0..4 carry (%c: f64[] = %x) {
            %z: f64[8] = for %j in 0..8 carry (%a: f64[8] = 0.0) {
              %b: f64[8] = scatter_set %a, %c, %j
              yield %b
            }
            %e: f64[] = gather %z, %k
            yield %e
          }
          return %y
        }
        """,
        """
        func @f(%x: f64[] @param+0) -> f64[] arena 64 {
          %y: f64[] @result+0 = for %k in 0..4 carry (%c: f64[] = %x) @registers {
            %z: f64[8] @%a = for %j in 0..8 carry (%a: f64[8] @arena+0 = 0.0) {
              %b: f64[8] @%a = scatter_set %a, %c, %j
              yield %b
            }
            %e: f64[] = gather %z, %k
            yield %e
          }
          return %y
        }
        """,
    )


def test_new_values_of_variables_live_until_all_statements_are_done() -> None:
    """Neither can be written into its variable at once; the last statement must not write over the other."""
    rewrites(
        plan_buffers,
        """
        func @f(%a: f64[4], %b: f64[4], %c: f64[2,2]) -> () {
          %0: f64[2,2] = flip %c {axes=[0]}
          %1: f64[2,2] = reshape %a
          %2: f64[4] = fuse {
            %3: f64[4] = mul %b, 2.0
            yield %3
          }
          %4: f64[2,2] = fuse {
            %5: f64[2,2] = add %0, %1
            yield %5
          }
          return updating %a = %2, %c = %4
        }
        """,
        """
        func @f(%a: f64[4] @param+0, %b: f64[4] @param+1, %c: f64[2,2] @param+2) -> () arena 128 {
          %0: f64[2,2] @%c+2[-2,1] = flip %c {axes=[0]}
          %1: f64[2,2] @%a = reshape %a
          %2: f64[4] @arena+0 = fuse {
            %3: f64[4] = mul %b, 2.0
            yield %3
          }
          %4: f64[2,2] @arena+64 = fuse {
            %5: f64[2,2] = add %0, %1
            yield %5
          }
          return updating %a = %2, %c = %4
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_plans_of_random_functions_are_sound(random: Random) -> None:
    func = random_func(random, 25)
    alone = func.replace(block=Block(func.params, func.stmts, func.results))  # what is saved leaves by another function's results
    verify(plan_buffers(fuse(legalize(alone))))
