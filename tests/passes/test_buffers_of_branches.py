"""Buffers of branches: values computed directly in the buffer of a result, and values copied there."""

from __future__ import annotations

from adjit.passes.memory.buffers import plan_buffers
from tests.passes.checks import rewrites


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


def test_what_a_branch_yields_lives_until_its_end() -> None:
    """A view of an array that is not computed in the result; and an array that two results have."""
    rewrites(
        plan_buffers,
        """
        func @f(%p: bool[], %x: f64[8], %w: f64[8,8]) -> (f64[8], f64[8], f64[8]) {
          %a: f64[8], %t: f64[8], %u: f64[8] = if %p {
            %v: f64[8] = matmul %x, %w
            %g: f64[8] = flip %v {axes=[0]}
            %b: f64[8] = matmul %x, %w
            %c: f64[8] = matmul %b, %w
            %d: f64[8] = matmul %c, %w
            yield %g, %b, %b
          } else {
            %e: f64[8] = matmul %x, %w
            %h: f64[8] = matmul %e, %w
            yield %x, %h, %e
          }
          %y: f64[8] = matmul %a, %w
          %z: f64[8] = matmul %t, %w
          %j: f64[8] = matmul %u, %w
          return %y, %z, %j
        }
        """,
        """
        func @f(%p: bool[] @param+0, %x: f64[8] @param+1, %w: f64[8,8] @param+2) -> (f64[8], f64[8], f64[8]) arena 384 {
          %a: f64[8] @arena+0, %t: f64[8] @arena+64, %u: f64[8] @arena+128 = if %p {
            %v: f64[8] @arena+192 = matmul %x, %w
            %g: f64[8] @%v+7[-1] = flip %v {axes=[0]}
            %b: f64[8] @arena+64 = matmul %x, %w
            %c: f64[8] @arena+256 = matmul %b, %w
            %d: f64[8] @arena+320 = matmul %c, %w
            yield %g, %b, %b
          } else {
            %e: f64[8] @arena+128 = matmul %x, %w
            %h: f64[8] @arena+64 = matmul %e, %w
            yield %x, %h, %e
          }
          %y: f64[8] @result+0 = matmul %a, %w
          %z: f64[8] @result+1 = matmul %t, %w
          %j: f64[8] @result+2 = matmul %u, %w
          return %y, %z, %j
        }
        """,
    )


def test_a_condition_is_not_overwritten_by_the_branches_or_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[], %y: f64[8], %w: f64[8,8]) -> f64[8] {
          %p: bool[] = fuse {
            %q: bool[] = less %x, 1.0
            yield %q
          }
          %a: bool[], %b: f64[8] = if %p {
            %r: bool[] = fuse {
              %s: bool[] = less %x, 2.0
              yield %s
            }
            %v: f64[8] = matmul %y, %w
            yield %r, %v
          } else {
            yield false, %y
          }
          %s1: bool[8] = broadcast %a {shape=[8]}
          %c: f64[8] = fuse {
            %m: f64[8] = where %s1, %b, 0.0
            yield %m
          }
          %d: f64[8] = matmul %c, %w
          return %d
        }
        """,
        """
        func @f(%x: f64[] @param+0, %y: f64[8] @param+1, %w: f64[8,8] @param+2) -> f64[8] arena 192 {
          %p: bool[] @arena+0 = fuse {
            %q: bool[] = less %x, 1.0
            yield %q
          }
          %a: bool[] @arena+64, %b: f64[8] @arena+128 = if %p {
            %r: bool[] @arena+64 = fuse {
              %s: bool[] = less %x, 2.0
              yield %s
            }
            %v: f64[8] @arena+128 = matmul %y, %w
            yield %r, %v
          } else {
            yield false, %y
          }
          %s1: bool[8] @%a+0[0] = broadcast %a
          %c: f64[8] @arena+128 = fuse {
            %m: f64[8] = where %s1, %b, 0.0
            yield %m
          }
          %d: f64[8] @result+0 = matmul %c, %w
          return %d
        }
        """,
    )


def test_a_result_that_is_not_read_has_its_buffer_in_both_branches() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%p: bool[], %x: f64[8], %w: f64[8,8]) -> f64[8] {
          %a: f64[8], %t: f64[8] = if %p {
            %b: f64[8] = matmul %x, %w
            %c: f64[8] = matmul %b, %w
            yield %c, %x
          } else {
            %d: f64[8] = matmul %x, %w
            %e: f64[8] = matmul %d, %w
            %g: f64[8] = matmul %e, %w
            yield %x, %d
          }
          %y: f64[8] = matmul %a, %w
          return %y
        }
        """,
        """
        func @f(%p: bool[] @param+0, %x: f64[8] @param+1, %w: f64[8,8] @param+2) -> f64[8] arena 256 {
          %a: f64[8] @arena+0, %t: f64[8] @arena+64 = if %p {
            %b: f64[8] @arena+128 = matmul %x, %w
            %c: f64[8] @arena+0 = matmul %b, %w
            yield %c, %x
          } else {
            %d: f64[8] @arena+64 = matmul %x, %w
            %e: f64[8] @arena+128 = matmul %d, %w
            %g: f64[8] @arena+192 = matmul %e, %w
            yield %x, %d
          }
          %y: f64[8] @result+0 = matmul %a, %w
          return %y
        }
        """,
    )


def test_constants_and_results_of_regions_are_copied_to_the_result_of_a_branch() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%p: bool[], %x: f64[8], %w: f64[8,8]) -> (f64[8], f64[8]) {
          %a: f64[8], %t: f64[8] = if %p {
            %b: f64[8] = constant {data=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}
            %r: f64[8] = for %k in 0..4 carry (%c: f64[8] = %x) {
              %n: f64[8] = matmul %c, %w
              yield %n
            }
            yield %b, %r
          } else {
            %d: f64[8] = if %p {
              %e: f64[8] = matmul %x, %w
              yield %e
            } else {
              yield %x
            }
            yield %d, %x
          }
          %y: f64[8] = matmul %a, %w
          %z: f64[8] = matmul %t, %w
          return %y, %z
        }
        """,
        """
        func @f(%p: bool[] @param+0, %x: f64[8] @param+1, %w: f64[8,8] @param+2) -> (f64[8], f64[8]) arena 320 {
          %a: f64[8] @arena+0, %t: f64[8] @arena+64 = if %p {
            %b: f64[8] @constant+0 = constant {data=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}
            %r: f64[8] @%c = for %k: i64[] @arena+128 in 0..4 carry (%c: f64[8] @arena+192 = %x) {
              %n: f64[8] @arena+256 = matmul %c, %w
              yield %n
            }
            yield %b, %r
          } else {
            %d: f64[8] @arena+128 = if %p {
              %e: f64[8] @arena+128 = matmul %x, %w
              yield %e
            } else {
              yield %x
            }
            yield %d, %x
          }
          %y: f64[8] @result+0 = matmul %a, %w
          %z: f64[8] @result+1 = matmul %t, %w
          return %y, %z
        }
        """,
    )


def test_values_of_the_second_branch_take_the_places_of_those_of_the_first() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%p: bool[], %x: f64[8], %w: f64[8,8]) -> f64[8] {
          %o: f64[8] = matmul %x, %w
          %a: f64[8] = if %p {
            %b: f64[8] = matmul %x, %w
            %c: f64[8] = matmul %b, %w
            %d: f64[8] = matmul %c, %w
            yield %d
          } else {
            %e: f64[8] = matmul %o, %w
            %g: f64[8] = matmul %e, %w
            %h: f64[8] = matmul %g, %w
            yield %h
          }
          %y: f64[8] = matmul %a, %w
          %z: f64[8] = matmul %y, %w
          return %z
        }
        """,
        """
        func @f(%p: bool[] @param+0, %x: f64[8] @param+1, %w: f64[8,8] @param+2) -> f64[8] arena 256 {
          %o: f64[8] @arena+0 = matmul %x, %w
          %a: f64[8] @arena+64 = if %p {
            %b: f64[8] @arena+128 = matmul %x, %w
            %c: f64[8] @arena+192 = matmul %b, %w
            %d: f64[8] @arena+64 = matmul %c, %w
            yield %d
          } else {
            %e: f64[8] @arena+128 = matmul %o, %w
            %g: f64[8] @arena+0 = matmul %e, %w
            %h: f64[8] @arena+64 = matmul %g, %w
            yield %h
          }
          %y: f64[8] @arena+0 = matmul %a, %w
          %z: f64[8] @result+0 = matmul %y, %w
          return %z
        }
        """,
    )
