"""Parts of a concatenation, and rows that a loop collects in an array, are computed in place."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.errors import OutOfBoundsError
from adjit.ir.parser import parse_func
from adjit.passes.memory.buffers import plan_buffers
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.passes.checks import rewrites
from tests.passes.test_windows import X, check, places


def test_parts_are_made_inside_of_their_concatenation() -> None:
    out = check(
        """
        func @f(%x: f64[4,20], %w: f64[20,30]) -> (f64[4,90], f64[4,20], f64[20]) {
          %a: f64[4,20] = exp %x
          %b: f64[4,30] = matmul %a, %w
          %c: f64[4,20] = tanh %a
          %t: f64[20,4] = transpose %c {axes=[1, 0]}
          %all: f64[4,90] = concatenate %a, %b, %c, %a {axis=1}
          %d: f64[4,20] = mul %a, 2.0
          %u: f64[20,4] = mul %t, 3.0
          %s: f64[20] = sum %u {axes=[1]}
          return %all, %d, %s
        }
        """,
        X,
        np.linspace(-1, 1, 600).reshape(20, 30),
    )
    concatenate = next(s for s in out.stmts if s.op.name == "concatenate")
    assert all(out.plan.windows[id(x)].root is concatenate.result for x in concatenate.args)
    assert sum(s.op.name == "copy" for s in walk(out.block)) == 2  # of %a, which can be at one place only, and %c, which has a view


def test_a_part_that_is_a_result_or_a_sum_stays_apart() -> None:
    check(
        """
        func @f(%x: f64[4,20], %y: f64[3,20]) -> (f64[20], f64[8,20]) {
          %e: f64[3,20] = exp %y
          %s: f64[20] = sum %e {axes=[0]}
          %r: f64[1,20] = reshape %s
          %a: f64[4,20] = cumsum %x {axis=0}
          %all: f64[8,20] = concatenate %a, %r, %e {axis=0}
          return %s, %all
        }
        """,
        X,
        X[:3],
    )


COLLECTING = """
    func @f(%x: f64[4,20], %y: f64[5,20], %first: i64[]) -> (f64[5,2,20], f64[20]) {
      %all: f64[5,2,20], %c: f64[20] = for %k in 0..4 carry (%out: f64[5,2,20] = 1.5, %d: f64[20] = 0.0) {
        %i: i64[] = sub %first, %k
        %row: f64[20] = gather %x, %k
        %e: f64[20] = exp %row
        %g: f64[20] = add %d, %e
        %er: f64[1,20] = reshape %e
        %gr: f64[1,20] = tanh %er
        %n: f64[1,20] = mul %er, %gr
        %both: f64[2,20] = concatenate %n, %gr {axis=0}
        %next: f64[5,2,20] = scatter_set %out, %both, %i
        %sum: f64[20] = sum %both {axes=[0]}
        %h: f64[20] = add %g, %sum
        yield %next, %h
      }
      return %all, %c
    }
    """


@pytest.mark.parametrize("first", [3, 4, -1])
def test_what_a_loop_puts_into_an_array_is_made_there(first: int) -> None:
    out = check(COLLECTING, X, np.vstack([X, X[:1]]), np.int64(first))
    assert "row+0" in places(out)


def test_a_row_outside_of_the_array_raises() -> None:
    compiled = compile_func(OPTIMIZE(parse_func(dedent(COLLECTING))))
    for first, index in ((5, 5), (-3, -6)):
        with pytest.raises(OutOfBoundsError, match=f"scatter_set: index {index} is out of bounds for axis 0"):
            compiled([X, np.vstack([X, X[:1]]), np.array(first)])


def test_a_row_of_an_array_that_the_loop_reads_is_copied_there() -> None:
    read = "%two: f64[2,20] = gather %out, 1:i64[]\n        %row: f64[20] = sum %two {axes=[0]}"
    text = COLLECTING.replace("%row: f64[20] = gather %x, %k", read)
    out = check(text, X / 9, np.vstack([X, X[:1]]), np.int64(3))
    assert "row+0" not in places(out)


def test_the_row_may_be_known_too_late() -> None:
    text = COLLECTING.replace("%i: i64[] = sub %first, %k\n", "")
    late = "%mean: f64[] = sum %both {axes=[0, 1]}\n        %zero: f64[] = mul %mean, 0.0\n        %j: i64[] = cast %zero\n"
    text = text.replace("        %next:", f"        {late}        %i: i64[] = add %j, %k\n        %next:")
    out = check(text, X / 9, np.vstack([X, X[:1]]), np.int64(3))
    assert "row+0" not in places(out)


def test_long_parts_are_made_in_their_concatenation() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[2,16], %w: f64[16,16], %v: f64[2,16]) -> f64[2,48] {
          %a: f64[2,16] = fuse {
            %b: f64[2,16] = exp %x
            yield %b
          }
          %c: f64[2,16] = matmul %x, %w
          %y: f64[2,48] = concatenate %a, %v, %c {axis=1}
          return %y
        }
        """,
        """
        func @f(%x: f64[2,16] @param+0, %w: f64[16,16] @param+1, %v: f64[2,16] @param+2) -> f64[2,48] arena 0 {
          %a: f64[2,16] @%y+0[48,1] = fuse {
            %b: f64[2,16] = exp %x
            yield %b
          }
          %c: f64[2,16] @%y+32[48,1] = matmul %x, %w
          %v.1: f64[2,16] @%y+16[48,1] = fuse {
            %0: f64[2,16] = copy %v
            yield %0
          }
          %y: f64[2,48] @result+0 = concatenate %a, %v.1, %c {axis=1}
          return %y
        }
        """,
    )


def test_parts_of_which_15_elements_are_contiguous_are_copied_and_30_are_not() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[2,15]) -> (f64[2,30], f64[4,15]) {
          %a: f64[2,15] = fuse {
            %b: f64[2,15] = exp %x
            yield %b
          }
          %c: f64[2,15] = fuse {
            %d: f64[2,15] = sin %x
            yield %d
          }
          %y: f64[2,30] = concatenate %a, %a {axis=1}
          %z: f64[4,15] = concatenate %c, %x {axis=0}
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[2,15] @param+0) -> (f64[2,30], f64[4,15]) arena 256 {
          %a: f64[2,15] @arena+0 = fuse {
            %b: f64[2,15] = exp %x
            yield %b
          }
          %c: f64[2,15] @%z = fuse {
            %d: f64[2,15] = sin %x
            yield %d
          }
          %y: f64[2,30] @result+0 = concatenate %a, %a {axis=1}
          %x.1: f64[2,15] @%z+30[15,1] = fuse {
            %0: f64[2,15] = copy %x
            yield %0
          }
          %z: f64[4,15] @result+1 = concatenate %c, %x.1 {axis=0}
          return %y, %z
        }
        """,
    )


def test_parts_that_others_view_or_that_are_reduced_stay_apart() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16,16], %w: f64[16,16]) -> (f64[48], f64[16]) {
          %a: f64[16], %b: f64[16] = fuse {
            %c: f64[16] = sum %x {axes=[0]}
            %d: f64[16] = sum %x {axes=[1]}
            yield %c, %d
          }
          %e: f64[16] = fuse {
            %g: f64[16] = exp %a
            yield %g
          }
          %h: f64[16] = flip %e {axes=[0]}
          %i: f64[16] = matmul %h, %w
          %y: f64[48] = concatenate %a, %b, %e {axis=0}
          return %y, %i
        }
        """,
        """
        func @f(%x: f64[16,16] @param+0, %w: f64[16,16] @param+1) -> (f64[48], f64[16]) arena 384 {
          %a: f64[16] @arena+0, %b: f64[16] @arena+128 = fuse {
            %c: f64[16] = sum %x {axes=[0]}
            %d: f64[16] = sum %x {axes=[1]}
            yield %c, %d
          }
          %e: f64[16] @arena+256 = fuse {
            %g: f64[16] = exp %a
            yield %g
          }
          %h: f64[16] @%e+15[-1] = flip %e {axes=[0]}
          %i: f64[16] @result+1 = matmul %h, %w
          %y: f64[48] @result+0 = concatenate %a, %b, %e {axis=0}
          return %y, %i
        }
        """,
    )


def test_a_part_that_is_concatenated_twice_is_copied_once() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16]) -> (f64[32], f64[32]) {
          %e: f64[16] = fuse {
            %g: f64[16] = exp %x
            yield %g
          }
          %y: f64[32] = concatenate %e, %e {axis=0}
          %z: f64[32] = concatenate %x, %e {axis=0}
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[16] @param+0) -> (f64[32], f64[32]) arena 0 {
          %e: f64[16] @%y = fuse {
            %g: f64[16] = exp %x
            yield %g
          }
          %e.1: f64[16] @%y+16[1] = fuse {
            %0: f64[16] = copy %e
            yield %0
          }
          %y: f64[32] @result+0 = concatenate %e, %e.1 {axis=0}
          %z: f64[32] @result+1 = concatenate %x, %e {axis=0}
          return %y, %z
        }
        """,
    )
