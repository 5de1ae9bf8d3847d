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


def test_a_product_in_a_kernel_does_not_overwrite_its_operands() -> None:
    """Another operand, which is read element by element, is overwritten."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16,16], %w: f64[16,16]) -> (f64[16,16], f64[16,16]) {
          %a: f64[16,16] = matmul %x, %w
          %b: f64[16,16] = fuse {
            %m: f64[16,16] = matmul %a, %w
            %n: f64[16,16] = exp %m
            yield %n
          }
          %c: f64[16,16] = matmul %x, %x
          %d: f64[16,16] = fuse {
            %o: f64[16,16] = matmul %x, %w
            %p: f64[16,16] = add %o, %c
            yield %p
          }
          %y: f64[16,16] = matmul %b, %w
          %z: f64[16,16] = matmul %d, %w
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[16,16] @param+0, %w: f64[16,16] @param+1) -> (f64[16,16], f64[16,16]) arena 4096 {
          %a: f64[16,16] @arena+0 = matmul %x, %w
          %b: f64[16,16] @arena+2048 = fuse {
            %m: f64[16,16] = matmul %a, %w
            %n: f64[16,16] = exp %m
            yield %n
          }
          %c: f64[16,16] @arena+0 = matmul %x, %x
          %d: f64[16,16] @arena+0 = fuse {
            %o: f64[16,16] = matmul %x, %w
            %p: f64[16,16] = add %o, %c
            yield %p
          }
          %y: f64[16,16] @result+0 = matmul %b, %w
          %z: f64[16,16] @result+1 = matmul %d, %w
          return %y, %z
        }
        """,
    )


def test_the_product_of_a_kernel_overwrites_what_is_read_beside_it() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16,16], %w: f64[16,16]) -> (f64[16,16], f64[16,16]) {
          %c: f64[16,16] = matmul %x, %x
          %d: f64[16,16], %e: f64[16,16] = fuse {
            %o: f64[16,16] = matmul %x, %w
            %p: f64[16,16] = add %o, %c
            yield %o, %p
          }
          %y: f64[16,16] = matmul %d, %w
          %z: f64[16,16] = matmul %e, %w
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[16,16] @param+0, %w: f64[16,16] @param+1) -> (f64[16,16], f64[16,16]) arena 4096 {
          %c: f64[16,16] @arena+0 = matmul %x, %x
          %d: f64[16,16] @arena+0, %e: f64[16,16] @arena+2048 = fuse {
            %o: f64[16,16] = matmul %x, %w
            %p: f64[16,16] = add %o, %c
            yield %o, %p
          }
          %y: f64[16,16] @result+0 = matmul %d, %w
          %z: f64[16,16] @result+1 = matmul %e, %w
          return %y, %z
        }
        """,
    )


def test_a_sum_of_what_a_kernel_computes_does_not_overwrite_its_operand() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[1,16], %w: f64[16,16]) -> f64[1,16] {
          %a: f64[1,16] = matmul %x, %w
          %b: f64[16] = fuse {
            %e: f64[1,16] = exp %a
            %m: f64[16] = sum %e {axes=[0]}
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
            %e: f64[1,16] = exp %a
            %m: f64[16] = sum %e {axes=[0]}
            yield %m
          }
          %r: f64[1,16] @%b+0[0,1] = reshape %b
          %c: f64[1,16] @result+0 = matmul %r, %w
          return %c
        }
        """,
    )


def test_an_operand_is_overwritten_beside_others_of_other_layouts() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16,16], %w: f64[16,16]) -> f64[16,16] {
          %a: f64[16,16] = matmul %x, %w
          %t: f64[16,16] = transpose %w {axes=[1, 0]}
          %b: f64[16,16] = fuse {
            %m: f64[16,16] = mul %t, %a
            yield %m
          }
          %c: f64[16,16] = matmul %b, %w
          return %c
        }
        """,
        """
        func @f(%x: f64[16,16] @param+0, %w: f64[16,16] @param+1) -> f64[16,16] arena 2048 {
          %a: f64[16,16] @arena+0 = matmul %x, %w
          %t: f64[16,16] @%w+0[1,16] = transpose %w {axes=[1, 0]}
          %b: f64[16,16] @arena+0 = fuse {
            %m: f64[16,16] = mul %t, %a
            yield %m
          }
          %c: f64[16,16] @result+0 = matmul %b, %w
          return %c
        }
        """,
    )


def test_a_scatter_into_a_view_does_not_overwrite_the_array() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[], %v: f64[], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %t: f64[16] = flip %a {axes=[0]}
          %b: f64[16] = scatter_set %t, %v, %i
          %c: f64[16] = matmul %b, %w
          return %c
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[16,16] @param+3) -> f64[16] arena 256 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %t: f64[16] @%a+15[-1] = flip %a {axes=[0]}
          %b: f64[16] @arena+128 = scatter_set %t, %v, %i
          %c: f64[16] @result+0 = matmul %b, %w
          return %c
        }
        """,
    )


def test_two_results_of_a_kernel_do_not_share_a_buffer() -> None:
    """The first is read by nothing."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %d: f64[16], %e: f64[16] = fuse {
            %m: f64[16] = exp %x
            %n: f64[16] = tanh %x
            yield %m, %n
          }
          %y: f64[16] = matmul %e, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 256 {
          %d: f64[16] @arena+0, %e: f64[16] @arena+128 = fuse {
            %m: f64[16] = exp %x
            %n: f64[16] = tanh %x
            yield %m, %n
          }
          %y: f64[16] @result+0 = matmul %e, %w
          return %y
        }
        """,
    )


def test_a_part_of_a_concatenation_does_not_overwrite_what_is_as_large_as_the_whole() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[32], %w: f64[32,32]) -> f64[32] {
          %a: f64[32] = matmul %x, %w
          %s: f64[16] = slice %a {starts=[0], stops=[16], steps=[1]}
          %b: f64[16] = fuse {
            %m: f64[16] = exp %s
            yield %m
          }
          %y: f64[16] = slice %x {starts=[0], stops=[16], steps=[1]}
          %c: f64[16] = fuse {
            %n: f64[16] = exp %y
            yield %n
          }
          %j: f64[32] = concatenate %b, %c {axis=0}
          %r: f64[32] = matmul %j, %w
          return %r
        }
        """,
        """
        func @f(%x: f64[32] @param+0, %w: f64[32,32] @param+1) -> f64[32] arena 512 {
          %a: f64[32] @arena+0 = matmul %x, %w
          %s: f64[16] @%a = slice %a {starts=[0], stops=[16], steps=[1]}
          %b: f64[16] @%j = fuse {
            %m: f64[16] = exp %s
            yield %m
          }
          %y: f64[16] @%x = slice %x {starts=[0], stops=[16], steps=[1]}
          %c: f64[16] @%j+16[1] = fuse {
            %n: f64[16] = exp %y
            yield %n
          }
          %j: f64[32] @arena+256 = concatenate %b, %c {axis=0}
          %r: f64[32] @result+0 = matmul %j, %w
          return %r
        }
        """,
    )


def test_what_is_computed_elementwise_beside_a_pad_overwrites_an_operand() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> (f64[16], f64[16]) {
          %a: f64[16] = matmul %x, %w
          %s: f64[15] = slice %x {starts=[0], stops=[15], steps=[1]}
          %b: f64[16], %c: f64[16] = fuse {
            %p: f64[16] = pad %s {low=[1], high=[0], interior=[0], value=0.0}
            %m: f64[16] = mul %a, %a
            yield %p, %m
          }
          %y: f64[16] = matmul %b, %w
          %z: f64[16] = matmul %c, %w
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> (f64[16], f64[16]) arena 256 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %s: f64[15] @%x = slice %x {starts=[0], stops=[15], steps=[1]}
          %b: f64[16] @arena+128, %c: f64[16] @arena+0 = fuse {
            %p: f64[16] = pad %s {low=[1], high=[0], interior=[0], value=0.0}
            %m: f64[16] = mul %a, %a
            yield %p, %m
          }
          %y: f64[16] @result+0 = matmul %b, %w
          %z: f64[16] @result+1 = matmul %c, %w
          return %y, %z
        }
        """,
    )
