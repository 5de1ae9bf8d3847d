"""Which buffer holds each value: where results are computed, what is overwritten, and how buffers share the arena."""

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


def test_branches_compute_in_the_buffer_of_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%p: bool[], %x: f64[8], %w: f64[8,8]) -> f64[8] {
          %a: f64[8] = if %p {
            %b: f64[8] = fuse {
              %c: f64[8] = exp %x
              yield %c
            }
            yield %b
          } else {
            %m: f64[8] = matmul %x, %w
            %d: f64[8] = matmul %m, %w
            yield %d
          }
          %e: f64[8] = matmul %a, %w
          return %e
        }
        """,
        """
        func @f(%p: bool[] @param+0, %x: f64[8] @param+1, %w: f64[8,8] @param+2) -> f64[8] arena 128 {
          %a: f64[8] @arena+0 = if %p {
            %b: f64[8] @arena+0 = fuse {
              %c: f64[8] = exp %x
              yield %c
            }
            yield %b
          } else {
            %m: f64[8] @arena+64 = matmul %x, %w
            %d: f64[8] @arena+0 = matmul %m, %w
            yield %d
          }
          %e: f64[8] @result+0 = matmul %a, %w
          return %e
        }
        """,
    )


def test_a_branch_yields_values_of_others_views_and_parts() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%p: bool[], %x: f64[8], %w: f64[8,8]) -> (f64[8], f64[8], f64[8]) {
          %s: f64[8] = matmul %x, %w
          %a: f64[8], %t: f64[8], %u: f64[8] = if %p {
            %v: f64[8] = matmul %s, %w
            yield %s, %v, %v
          } else {
            %d: f64[4,2] = fuse {
              %c: f64[4,2] = fill {value=1.0}
              yield %c
            }
            %r: f64[8] = reshape %d
            %m: f64[8,8] = matmul %w, %w
            %n: f64[1,8] = slice %m {starts=[0, 0], stops=[1, 8], steps=[1, 1]}
            %o: f64[8] = reshape %n
            %g: f64[8] = flip %r {axes=[0]}
            yield %r, %o, %g
          }
          %y: f64[8] = matmul %a, %w
          %z: f64[8] = matmul %t, %w
          %j: f64[8] = matmul %u, %w
          return %y, %z, %j
        }
        """,
        """
        func @f(%p: bool[] @param+0, %x: f64[8] @param+1, %w: f64[8,8] @param+2) -> (f64[8], f64[8], f64[8]) arena 768 {
          %s: f64[8] @arena+0 = matmul %x, %w
          %a: f64[8] @arena+64, %t: f64[8] @arena+128, %u: f64[8] @arena+192 = if %p {
            %v: f64[8] @arena+128 = matmul %s, %w
            yield %s, %v, %v
          } else {
            %d: f64[4,2] @arena+64 = fuse {
              %c: f64[4,2] = fill {value=1.0}
              yield %c
            }
            %r: f64[8] @%d = reshape %d
            %m: f64[8,8] @arena+256 = matmul %w, %w
            %n: f64[1,8] @%m = slice %m {starts=[0, 0], stops=[1, 8], steps=[1, 1]}
            %o: f64[8] @%m = reshape %n
            %g: f64[8] @%d+7[-1] = flip %r {axes=[0]}
            yield %r, %o, %g
          }
          %y: f64[8] @result+0 = matmul %a, %w
          %z: f64[8] @result+1 = matmul %t, %w
          %j: f64[8] @result+2 = matmul %u, %w
          return %y, %z, %j
        }
        """,
    )


def test_an_update_is_written_to_its_parameter_at_the_end() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %g: f64[16]) -> f64[] {
          %s: f64[] = fuse {
            %t: f64[] = sum %w {axes=[0]}
            yield %t
          }
          %n: f64[16] = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          return %s updating %w = %n
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %g: f64[16] @param+1) -> f64[] arena 0 {
          %s: f64[] @result+0 = fuse {
            %t: f64[] = sum %w {axes=[0]}
            yield %t
          }
          %n: f64[16] @param+0 = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          return %s updating %w = %n
        }
        """,
    )


def test_an_update_of_what_is_read_later_or_elsewhere_is_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %u: f64[16], %g: f64[16], %v: f64[16,16]) -> f64[16] {
          %n: f64[16] = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          %s: f64[16] = matmul %w, %v
          %o: f64[16] = matmul %u, %v
          return %s updating %w = %n, %u = %o
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %u: f64[16] @param+1, %g: f64[16] @param+2, %v: f64[16,16] @param+3) -> f64[16] arena 256 {
          %n: f64[16] @arena+0 = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          %s: f64[16] @result+0 = matmul %w, %v
          %o: f64[16] @arena+128 = matmul %u, %v
          return %s updating %w = %n, %u = %o
        }
        """,
    )


def test_an_update_waits_for_the_last_statement_that_may_raise() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %u: f64[16], %g: f64[16], %p: bool[]) -> () {
          %n: f64[16] = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          assert %p {message="p"}
          %o: f64[16] = fuse {
            %q: f64[16] = sub %u, %g
            yield %q
          }
          return updating %w = %n, %u = %o
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %u: f64[16] @param+1, %g: f64[16] @param+2, %p: bool[] @param+3) -> () arena 128 {
          %n: f64[16] @arena+0 = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          assert %p {message="p"}
          %o: f64[16] @param+1 = fuse {
            %q: f64[16] = sub %u, %g
            yield %q
          }
          return updating %w = %n, %u = %o
        }
        """,
    )


def test_an_update_of_another_size_or_dtype_has_its_own_buffer() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %u: f64[16], %g: f64[16]) -> (f64[], f64[16]) {
          %s: f64[], %n: f64[16] = fuse {
            %m: f64[16] = sub %w, %g
            %t: f64[] = sum %m {axes=[0]}
            yield %t, %m
          }
          return %s, %u updating %w = %n, %u = %g
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %u: f64[16] @param+1, %g: f64[16] @param+2) -> (f64[], f64[16]) arena 0 {
          %s: f64[] @result+0, %n: f64[16] @param+0 = fuse {
            %m: f64[16] = sub %w, %g
            %t: f64[] = sum %m {axes=[0]}
            yield %t, %m
          }
          %u.1: f64[16] @result+1 = fuse {
            %0: f64[16] = copy %u
            yield %0
          }
          %g.1: f64[16] @param+1 = fuse {
            %1: f64[16] = copy %g
            yield %1
          }
          return %s, %u.1 updating %w = %n, %u = %g.1
        }
        """,
    )


def test_updates_before_a_long_statement_are_not_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[1024,1024], %g: f64[1024,1024], %a: f64[1024,1024]) -> f64[1024,1024] {
          %n: f64[1024,1024] = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %b: f64[1024,1024] = matmul %a, %a
          %c: f64[1024,1024] = matmul %b, %b
          return %c updating %w = %n
        }
        """,
        """
        func @f(%w: f64[1024,1024] @param+0, %g: f64[1024,1024] @param+1, %a: f64[1024,1024] @param+2) -> f64[1024,1024] arena 16777216 {
          %n: f64[1024,1024] @arena+0 = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %b: f64[1024,1024] @arena+8388608 = matmul %a, %a
          %c: f64[1024,1024] @result+0 = matmul %b, %b
          return %c updating %w = %n
        }
        """,
    )


def test_updates_before_a_short_statement_are_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[1024,1024], %g: f64[1024,1024], %a: f64[1024,1024]) -> f64[1024,1024] {
          %b: f64[1024,1024] = matmul %a, %a
          %n: f64[1024,1024] = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %c: f64[1024,1024] = fuse {
            %d: f64[1024,1024] = exp %b
            yield %d
          }
          return %c updating %w = %n
        }
        """,
        """
        func @f(%w: f64[1024,1024] @param+0, %g: f64[1024,1024] @param+1, %a: f64[1024,1024] @param+2) -> f64[1024,1024] arena 8388608 {
          %b: f64[1024,1024] @arena+0 = matmul %a, %a
          %n: f64[1024,1024] @param+0 = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %c: f64[1024,1024] @result+0 = fuse {
            %d: f64[1024,1024] = exp %b
            yield %d
          }
          return %c updating %w = %n
        }
        """,
    )


def test_what_is_changed_to_a_result_is_made_in_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[], %v: f64[], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %b: f64[16] = scatter_set %a, %v, %i
          %c: f64[16] = scatter_set %b, %v, %i
          return %c
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[16,16] @param+3) -> f64[16] arena 0 {
          %a: f64[16] @result+0 = matmul %x, %w
          %b: f64[16] @result+0 = scatter_set %a, %v, %i
          %c: f64[16] @result+0 = scatter_set %b, %v, %i
          return %c
        }
        """,
    )


def test_what_is_read_later_is_not_made_in_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %i: i64[], %v: f64[], %w: f64[8,8]) -> (f64[8], f64[8], f64[8]) {
          %a: f64[8] = matmul %x, %w
          %b: f64[8] = scatter_set %a, %v, %i
          %c: f64[8] = matmul %a, %w
          %d: f64[8] = scatter_set %x, %v, %i
          return %b, %c, %d
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[8,8] @param+3) -> (f64[8], f64[8], f64[8]) arena 64 {
          %a: f64[8] @arena+0 = matmul %x, %w
          %b: f64[8] @result+0 = scatter_set %a, %v, %i
          %c: f64[8] @result+1 = matmul %a, %w
          %d: f64[8] @result+2 = scatter_set %x, %v, %i
          return %b, %c, %d
        }
        """,
    )


def test_results_of_loops_are_not_made_in_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[], %v: f64[], %w: f64[16,16]) -> f64[16] {
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %n: f64[16] = matmul %c, %w
            yield %n
          }
          %b: f64[16] = scatter_set %r, %v, %i
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[16,16] @param+3) -> f64[16] arena 320 {
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %n: f64[16] @arena+192 = matmul %c, %w
            yield %n
          }
          %b: f64[16] @result+0 = scatter_set %r, %v, %i
          return %b
        }
        """,
    )


def test_a_kernel_overwrites_an_operand_that_dies() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %b: f64[16] = fuse {
            %m: f64[16] = mul %a, %a
            yield %m
          }
          %c: f64[16] = matmul %b, %w
          return %c
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 128 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %b: f64[16] @arena+0 = fuse {
            %m: f64[16] = mul %a, %a
            yield %m
          }
          %c: f64[16] @result+0 = matmul %b, %w
          return %c
        }
        """,
    )


def test_a_kernel_does_not_overwrite_what_it_reads_elsewhere() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16,16], %w: f64[16,16]) -> f64[16,16] {
          %a: f64[16,16] = matmul %x, %w
          %t: f64[16,16] = transpose %a {axes=[1, 0]}
          %b: f64[16,16] = fuse {
            %m: f64[16,16] = mul %a, %t
            yield %m
          }
          %c: f64[16,16] = matmul %b, %w
          return %c
        }
        """,
        """
        func @f(%x: f64[16,16] @param+0, %w: f64[16,16] @param+1) -> f64[16,16] arena 4096 {
          %a: f64[16,16] @arena+0 = matmul %x, %w
          %t: f64[16,16] @%a+0[1,16] = transpose %a {axes=[1, 0]}
          %b: f64[16,16] @arena+2048 = fuse {
            %m: f64[16,16] = mul %a, %t
            yield %m
          }
          %c: f64[16,16] @result+0 = matmul %b, %w
          return %c
        }
        """,
    )


def test_a_sum_does_not_overwrite_its_operand() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[1,16], %w: f64[16,16]) -> f64[1,16] {
          %a: f64[1,16] = matmul %x, %w
          %b: f64[16] = fuse {
            %m: f64[16] = sum %a {axes=[0]}
            yield %m
          }
          %r: f64[1,16] = reshape %b
          %c: f64[1,16] = matmul %r, %w
          return %c
        }
        """,
        """
        func @f(%x: f64[1,16] @param+0, %w: f64[16,16] @param+1) -> f64[1,16] arena 256 {
          %a: f64[1,16] @arena+0 = matmul %x, %w
          %b: f64[16] @arena+128 = fuse {
            %m: f64[16] = sum %a {axes=[0]}
            yield %m
          }
          %r: f64[1,16] @%b+0[0,1] = reshape %b
          %c: f64[1,16] @result+0 = matmul %r, %w
          return %c
        }
        """,
    )


def test_a_pad_does_not_overwrite_its_operand() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %s: f64[15] = slice %a {starts=[0], stops=[15], steps=[1]}
          %b: f64[16] = fuse {
            %p: f64[16] = pad %s {low=[1], high=[0], interior=[0], value=0.0}
            %m: f64[16] = exp %p
            yield %m
          }
          %c: f64[16] = matmul %b, %w
          return %c
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 256 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %s: f64[15] @%a = slice %a {starts=[0], stops=[15], steps=[1]}
          %b: f64[16] @arena+128 = fuse {
            %p: f64[16] = pad %s {low=[1], high=[0], interior=[0], value=0.0}
            %m: f64[16] = exp %p
            yield %m
          }
          %c: f64[16] @result+0 = matmul %b, %w
          return %c
        }
        """,
    )


def test_the_first_of_two_operands_that_die_is_overwritten() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> (f64[16], f64[16]) {
          %a: f64[16] = matmul %x, %w
          %b: f64[16] = matmul %x, %w
          %d: f64[16], %e: f64[16] = fuse {
            %m: f64[16] = mul %a, %b
            %n: f64[16] = sub %a, %b
            yield %m, %n
          }
          %y: f64[16] = matmul %d, %w
          %z: f64[16] = matmul %e, %w
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> (f64[16], f64[16]) arena 256 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %b: f64[16] @arena+128 = matmul %x, %w
          %d: f64[16] @arena+0, %e: f64[16] @arena+128 = fuse {
            %m: f64[16] = mul %a, %b
            %n: f64[16] = sub %a, %b
            yield %m, %n
          }
          %y: f64[16] @result+0 = matmul %d, %w
          %z: f64[16] @result+1 = matmul %e, %w
          return %y, %z
        }
        """,
    )


def test_a_scatter_overwrites_its_operand_but_not_its_updates() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[16], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %b: f64[16] = scatter_add %a, %a, %i
          %c: f64[16] = scatter_add %b, %x, %i
          %d: f64[16] = matmul %c, %w
          return %d
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[16] @param+1, %w: f64[16,16] @param+2) -> f64[16] arena 256 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %b: f64[16] @arena+128 = scatter_add %a, %a, %i
          %c: f64[16] @arena+128 = scatter_add %b, %x, %i
          %d: f64[16] @result+0 = matmul %c, %w
          return %d
        }
        """,
    )


def test_a_carry_is_changed_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %n: f64[16] = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            yield %n
          }
          %b: f64[16] = matmul %r, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 192 {
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %n: f64[16] @arena+64 = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            yield %n
          }
          %b: f64[16] @result+0 = matmul %r, %w
          return %b
        }
        """,
    )


def test_a_carry_is_changed_by_several_statements_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[], %v: f64[], %w: f64[16,16]) -> f64[16] {
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %a: f64[16] = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            %b: f64[16] = scatter_set %a, %v, %i
            %n: f64[16] = fuse {
              %o: f64[16] = exp %b
              yield %o
            }
            yield %n
          }
          %y: f64[16] = matmul %r, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[16,16] @param+3) -> f64[16] arena 192 {
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %a: f64[16] @arena+64 = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            %b: f64[16] @arena+64 = scatter_set %a, %v, %i
            %n: f64[16] @arena+64 = fuse {
              %o: f64[16] = exp %b
              yield %o
            }
            yield %n
          }
          %y: f64[16] @result+0 = matmul %r, %w
          return %y
        }
        """,
    )


def test_a_carry_that_is_read_after_the_first_change_is_not_changed() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %a: f64[16] = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            %d: f64[16] = matmul %c, %w
            %n: f64[16] = fuse {
              %o: f64[16] = mul %a, %d
              yield %o
            }
            yield %n
          }
          %b: f64[16] = matmul %r, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 448 {
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %a: f64[16] @arena+192 = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            %d: f64[16] @arena+320 = matmul %c, %w
            %n: f64[16] @arena+64 = fuse {
              %o: f64[16] = mul %a, %d
              yield %o
            }
            yield %n
          }
          %b: f64[16] @result+0 = matmul %r, %w
          return %b
        }
        """,
    )


def test_carries_that_are_exchanged_are_copied_once() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %y: f64[16]) -> (f64[16], f64[16]) {
          %r: f64[16], %s: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x, %d: f64[16] = %y) {
            yield %d, %c
          }
          return %r, %s
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %y: f64[16] @param+1) -> (f64[16], f64[16]) arena 192 {
          %r: f64[16] @%c, %s: f64[16] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @result+0 = %x, %d: f64[16] @result+1 = %y) {
            %d.1: f64[16] @arena+64 = fuse {
              %0: f64[16] = copy %d
              yield %0
            }
            %c.1: f64[16] @result+1 = fuse {
              %1: f64[16] = copy %c
              yield %1
            }
            yield %d.1, %c.1
          }
          return %r, %s
        }
        """,
    )


def test_what_a_loop_reads_from_outside_lives_until_its_end() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %n: f64[16] = fuse {
              %m: f64[16] = mul %c, %a
              yield %m
            }
            %o: f64[16] = matmul %n, %w
            %q: f64[16] = for %l in 0..4 carry (%e: f64[16] = %o) {
              %g: f64[16] = matmul %e, %w
              %h: f64[16] = matmul %g, %w
              yield %h
            }
            yield %q
          }
          %b: f64[16] = matmul %r, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 576 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %r: f64[16] @%c = for %k: i64[] @arena+128 in 0..4 carry (%c: f64[16] @arena+192 = %x) {
            %n: f64[16] @arena+320 = fuse {
              %m: f64[16] = mul %c, %a
              yield %m
            }
            %o: f64[16] @arena+448 = matmul %n, %w
            %q: f64[16] @%e = for %l: i64[] @arena+320 in 0..4 carry (%e: f64[16] @arena+192 = %o) {
              %g: f64[16] @arena+384 = matmul %e, %w
              %h: f64[16] @arena+192 = matmul %g, %w
              yield %h
            }
            yield %q
          }
          %b: f64[16] @result+0 = matmul %r, %w
          return %b
        }
        """,
    )


def test_a_carry_that_stays_is_not_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: f64[8] = for %k in 0..4 carry (%c: f64[8] = %x, %d: f64[8] = %x) {
            %n: f64[8] = fuse {
              %m: f64[8] = mul %c, %d
              yield %m
            }
            yield %n, %d
          }
          %b: f64[8] = matmul %r, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %r: f64[8] @%c, %s: f64[8] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[8] @arena+64 = %x, %d: f64[8] @arena+128 = %x) {
            %n: f64[8] @arena+64 = fuse {
              %m: f64[8] = mul %c, %d
              yield %m
            }
            yield %n, %d
          }
          %b: f64[8] @result+0 = matmul %r, %w
          return %b
        }
        """,
    )


def test_rows_are_made_in_the_array_that_a_loop_fills() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,16], %w: f64[16,16]) -> f64[4,16] {
          %r: f64[4,16] = for %k in 0..4 carry (%c: f64[4,16] = 0.0) {
            %row: f64[16] = gather %x, %k
            %a: f64[16] = matmul %row, %w
            %n: f64[4,16] = scatter_set %c, %a, %k
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[4,16] @param+0, %w: f64[16,16] @param+1) -> f64[4,16] arena 64 {
          %r: f64[4,16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[4,16] @result+0 = 0.0) {
            %row: f64[16] @view+0 = gather %x, %k
            %a: f64[16] @row+0 = matmul %row, %w
            %n: f64[4,16] @result+0 = scatter_set %c, %a, %k
            yield %n
          }
          return %r
        }
        """,
    )


def test_rows_at_an_index_that_is_known_later_are_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,16], %w: f64[16,16]) -> f64[4,16] {
          %r: f64[4,16] = for %k in 0..4 carry (%c: f64[4,16] = 0.0) {
            %row: f64[16] = gather %x, %k
            %a: f64[16] = matmul %row, %w
            %j: i64[] = fuse {
              %l: i64[] = sub 3, %k
              yield %l
            }
            %n: f64[4,16] = scatter_set %c, %a, %j
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[4,16] @param+0, %w: f64[16,16] @param+1) -> f64[4,16] arena 256 {
          %r: f64[4,16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[4,16] @result+0 = 0.0) {
            %row: f64[16] @view+0 = gather %x, %k
            %a: f64[16] @arena+64 = matmul %row, %w
            %j: i64[] @arena+192 = fuse {
              %l: i64[] = sub 3, %k
              yield %l
            }
            %n: f64[4,16] @result+0 = scatter_set %c, %a, %j
            yield %n
          }
          return %r
        }
        """,
    )


def test_a_condition_reads_the_carry_before_it_is_changed() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %r: f64[16], %q: f64[] = while carry (%c: f64[16] = %x, %e: f64[] = 1.0) {
            %p: bool[] = fuse {
              %t: bool[] = less %e, 5.0
              yield %t
            }
            cond %p
          } do {
            %n: f64[16] = matmul %c, %w
            %f: f64[] = fuse {
              %s: f64[] = sum %n {axes=[0]}
              yield %s
            }
            yield %n, %f
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 256 {
          %r: f64[16] @%c, %q: f64[] @%e = while carry (%c: f64[16] @result+0 = %x, %e: f64[] @arena+0 = 1.0) {
            %p: bool[] @arena+64 = fuse {
              %t: bool[] = less %e, 5.0
              yield %t
            }
            cond %p
          } do {
            %n: f64[16] @arena+128 = matmul %c, %w
            %f: f64[] @arena+0 = fuse {
              %s: f64[] = sum %n {axes=[0]}
              yield %s
            }
            yield %n, %f
          }
          return %r
        }
        """,
    )


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


def test_every_value_that_is_saved_has_a_slot() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: stack<f64[8]>, %t: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %a: f64[8] = matmul %c, %w
            %b: f64[8] = matmul %a, %w
            %n: f64[8] = matmul %b, %w
            yield %n saving %a, %b
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %r: f64[8] @%c, %s: stack<f64[8]> @arena+0, %t: stack<f64[8]> @arena+64 = for %k: i64[] @arena+128 in 0..4 carry (%c: f64[8] @result+0 = %x) {
            %a: f64[8] @slot+0 = matmul %c, %w
            %b: f64[8] @slot+1 = matmul %a, %w
            %n: f64[8] @result+0 = matmul %b, %w
            yield %n saving %a, %b
          }
          return %r
        }
        """,  # noqa: E501
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
