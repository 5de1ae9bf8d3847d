"""Windows of regions: stacks and arrays inside them, and the conditions for running in registers."""

from __future__ import annotations

from adjit.passes.memory.buffers import plan_buffers
from tests.passes.checks import rewrites


def test_constants_that_are_returned_are_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[3]) {
          %a: f64[3] = constant {data=[0.0, 1.0, 2.0]}
          return %a, %x
        }
        """,
        """
        func @f(%x: f64[3] @param+0) -> (f64[3], f64[3]) arena 0 {
          %a: f64[3] @constant+0 = constant {data=[0.0, 1.0, 2.0]}
          %a.1: f64[3] @result+0 = fuse {
            %0: f64[3] = copy %a
            yield %0
          }
          %x.1: f64[3] @result+1 = fuse {
            %1: f64[3] = copy %x
            yield %1
          }
          return %a.1, %x.1
        }
        """,
    )


def test_a_row_at_a_number_is_a_window() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,16], %w: f64[16,16]) -> f64[16] {
          %row: f64[16] = gather %x, 2:i64[]
          %y: f64[16] = matmul %row, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[4,16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 0 {
          %row: f64[16] @view+0 = gather %x, 2:i64[]
          %y: f64[16] @result+0 = matmul %row, %w
          return %y
        }
        """,
    )


def test_the_second_result_of_a_kernel_is_made_in_a_concatenation() -> None:
    """The first of another is a sum."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[32,32]) -> (f64[], f64[32]) {
          %s: f64[], %b: f64[16] = fuse {
            %m: f64[16] = exp %x
            %t: f64[] = sum %m {axes=[0]}
            yield %t, %m
          }
          %c: f64[16] = fuse {
            %n: f64[16] = tanh %x
            yield %n
          }
          %j: f64[32] = concatenate %b, %c {axis=0}
          %r: f64[32] = matmul %j, %w
          return %s, %r
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[32,32] @param+1) -> (f64[], f64[32]) arena 256 {
          %s: f64[] @result+0, %b: f64[16] @%j = fuse {
            %m: f64[16] = exp %x
            %t: f64[] = sum %m {axes=[0]}
            yield %t, %m
          }
          %c: f64[16] @%j+16[1] = fuse {
            %n: f64[16] = tanh %x
            yield %n
          }
          %j: f64[32] @arena+0 = concatenate %b, %c {axis=0}
          %r: f64[32] @result+1 = matmul %j, %w
          return %s, %r
        }
        """,
    )


def test_stacks_inside_of_a_region_in_registers() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[], %n: i64[]) -> f64[] {
          %y: f64[] = for %k in 0..%n carry (%c: f64[] = %x) {
            %l: f64[], %s: stack<f64[]> = for %j in 0..4 carry (%d: f64[] = %c) {
              %e: f64[] = sin %d
              yield %e saving %d
            }
            %z: stack<f64[]> = stack_zeros %s
            %m: f64[], %t: stack<f64[]> = for %i in 0..4 carry (%g: f64[] = %l, %u: stack<f64[]> = %z) {
              %h: f64[] = stack_read %s, %i
              %o: f64[] = mul %h, %g
              %v: stack<f64[]> = stack_accumulate %u, %i, %o
              yield %o, %v
            }
            %q: f64[] = stack_read %t, 1:i64[]
            yield %q
          }
          return %y
        }
        """,
        """
        func @f(%x: f64[] @param+0, %n: i64[] @param+1) -> f64[] arena 128 {
          %y: f64[] @result+0 = for %k in 0..%n carry (%c: f64[] = %x) @registers {
            %l: f64[], %s: stack<f64[]> @arena+0 = for %j in 0..4 carry (%d: f64[] = %c) {
              %e: f64[] = sin %d
              yield %e saving %d
            }
            %z: stack<f64[]> @arena+64 = stack_zeros %s
            %m: f64[], %t: stack<f64[]> @%z = for %i in 0..4 carry (%g: f64[] = %l, %u: stack<f64[]> @%z = %z) {
              %h: f64[] = stack_read %s, %i
              %o: f64[] = mul %h, %g
              %v: stack<f64[]> @%z = stack_accumulate %u, %i, %o
              yield %o, %v
            }
            %q: f64[] = stack_read %t, 1:i64[]
            yield %q
          }
          return %y
        }
        """,
    )


def test_a_loop_that_saves_arrays_does_not_run_in_registers() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[], %v: f64[8]) -> f64[] {
          %y: f64[], %s: stack<f64[8]> = for %k in 0..4 carry (%c: f64[] = %x) {
            %e: f64[] = gather %v, %k
            %t: f64[] = fuse {
              %p: f64[] = mul %c, %e
              yield %p
            }
            yield %t saving %v
          }
          return %y
        }
        """,
        """
        func @f(%x: f64[] @param+0, %v: f64[8] @param+1) -> f64[] arena 192 {
          %y: f64[] @%c, %s: stack<f64[8]> @arena+0 = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[] @result+0 = %x) {
            %e: f64[] @arena+128 = gather %v, %k
            %t: f64[] @result+0 = fuse {
              %p: f64[] = mul %c, %e
              yield %p
            }
            yield %t saving %v
          }
          return %y
        }
        """,
    )


def test_a_loop_around_one_that_computes_arrays_does_not_run_in_registers() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[], %v: f64[8], %w: f64[8,8]) -> f64[] {
          %y: f64[] = for %k in 0..4 carry (%c: f64[] = %x) {
            %e: f64[8] = for %j in 0..4 carry (%d: f64[8] = %v) {
              %n: f64[8] = matmul %d, %w
              yield %n
            }
            %g: f64[] = gather %e, %k
            yield %g
          }
          return %y
        }
        """,
        """
        func @f(%x: f64[] @param+0, %v: f64[8] @param+1, %w: f64[8,8] @param+2) -> f64[] arena 256 {
          %y: f64[] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[] @result+0 = %x) {
            %e: f64[8] @%d = for %j: i64[] @arena+64 in 0..4 carry (%d: f64[8] @arena+128 = %v) {
              %n: f64[8] @arena+192 = matmul %d, %w
              yield %n
            }
            %g: f64[] @result+0 = gather %e, %k
            yield %g
          }
          return %y
        }
        """,
    )


def test_arrays_of_nested_regions_in_registers_share_the_buffer_of_the_outermost_carry() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[], %n: i64[], %v: f64[8]) -> (f64[], f64[8]) {
          %y: f64[], %z: f64[8] = while carry (%c: f64[] = %x, %a: f64[8] = %v) {
            %e: f64[] = gather %a, 0:i64[]
            %p: bool[] = less %e, 4.0
            cond %p
          } do {
            %b: f64[8] = for %j in 0..8 carry (%d: f64[8] = %a) {
              %g: f64[] = gather %d, %j
              %h: f64[] = add %g, 1.0
              %i: f64[8] = scatter_set %d, %h, %j
              yield %i
            }
            %o: f64[] = gather %b, 1:i64[]
            yield %o, %b
          }
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[] @param+0, %n: i64[] @param+1, %v: f64[8] @param+2) -> (f64[], f64[8]) arena 0 {
          %y: f64[] @result+0, %z: f64[8] @%a = while carry (%c: f64[] = %x, %a: f64[8] @result+1 = %v) @registers {
            %e: f64[] = gather %a, 0:i64[]
            %p: bool[] = less %e, 4.0
            cond %p
          } do {
            %b: f64[8] @%a = for %j in 0..8 carry (%d: f64[8] @%a = %a) {
              %g: f64[] = gather %d, %j
              %h: f64[] = add %g, 1.0
              %i: f64[8] @%a = scatter_set %d, %h, %j
              yield %i
            }
            %o: f64[] = gather %b, 1:i64[]
            yield %o, %b
          }
          return %y, %z
        }
        """,
    )


def test_a_stack_that_branches_choose_and_loops_carry_keeps_its_memory() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %p: bool[], %w: f64[8,8]) -> f64[8] {
          %l: f64[8], %s: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %n: f64[8] = matmul %c, %w
            yield %n saving %c
          }
          %q: stack<f64[8]> = if %p {
            yield %s
          } else {
            yield %s
          }
          %r: f64[8], %t: stack<f64[8]> = while carry (%d: f64[8] = %l, %u: stack<f64[8]> = %q) {
            %e: f64[8] = stack_read %u, 0:i64[]
            %g: f64[] = fuse {
              %h: f64[] = sum %e {axes=[0]}
              yield %h
            }
            %i: bool[] = fuse {
              %j: bool[] = less %g, 9.0
              yield %j
            }
            cond %i
          } do {
            %m: f64[8] = matmul %d, %w
            %v: stack<f64[8]> = stack_accumulate %u, 0:i64[], %m
            yield %m, %v
          }
          %y: f64[8] = stack_read %t, 1:i64[]
          %z: f64[8] = matmul %y, %w
          return %z
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %p: bool[] @param+1, %w: f64[8,8] @param+2) -> f64[8] arena 256 {
          %l: f64[8] @%c, %s: stack<f64[8]> @arena+0 = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[8] @arena+128 = %x) {
            %n: f64[8] @arena+192 = matmul %c, %w
            yield %n saving %c
          }
          %q: stack<f64[8]> @%s = if %p {
            yield %s
          } else {
            yield %s
          }
          %r: f64[8] @%d, %t: stack<f64[8]> @%s = while carry (%d: f64[8] @arena+64 = %l, %u: stack<f64[8]> @%s = %q) {
            %e: f64[8] @arena+128 = stack_read %u, 0:i64[]
            %g: f64[] @arena+192 = fuse {
              %h: f64[] = sum %e {axes=[0]}
              yield %h
            }
            %i: bool[] @arena+128 = fuse {
              %j: bool[] = less %g, 9.0
              yield %j
            }
            cond %i
          } do {
            %m: f64[8] @arena+128 = matmul %d, %w
            %v: stack<f64[8]> @%s = stack_accumulate %u, 0:i64[], %m
            yield %m, %v
          }
          %y: f64[8] @arena+64 = stack_read %t, 1:i64[]
          %z: f64[8] @result+0 = matmul %y, %w
          return %z
        }
        """,
    )
