"""Which operands a kernel overwrites."""

from __future__ import annotations

from adjit.passes.memory.buffers import plan_buffers
from tests.passes.checks import rewrites


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
