"""Programs with branches and loops, as text, for the tests of derivatives of regions.

A row is a text with one function, whose first result is a scalar, and the arrays to call it with. `{how}` is replaced by the attributes of
the loop, where the tests vary its checkpoints.
"""

from __future__ import annotations

from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np

from adjit.ir.func import Func
from adjit.ir.parser import parse_func


class Program(NamedTuple):
    text: str
    arrays: tuple[Any, ...]

    def func(self, checkpoint: str = "") -> Func:
        return parse_func(dedent(self.text).replace("{how}", checkpoint))


def scalar(x: float) -> Any:
    return np.float64(x)


def index(x: int) -> Any:
    return np.int64(x)


def vector(*xs: float) -> Any:
    return np.array(xs, np.float64)


def matrix(rows: int, columns: int) -> Any:
    return np.linspace(-0.6, 0.7, rows * columns).reshape(rows, columns)


POLYNOMIAL = """
    func @polynomial(%x: f64[], %a: f64[]) -> f64[] {
      %r: f64[] = for %k in 0..6 carry (%c: f64[] = %x){how} {
        %t: f64[] = mul %c, %a
        %u: f64[] = mul %t, %c
        %v: f64[] = sub %u, %x
        yield %v
      }
      return %r
    }
"""

TRACED_BOUNDS = """
    func @traced_bounds(%x: f64[], %a: f64[], %first: i64[], %last: i64[]) -> f64[] {
      %r: f64[], %q: f64[] = for %k in %first..%last carry (%c: f64[] = %x, %d: f64[] = %a){how} {
        %s: f64[] = sin %c
        %kf: f64[] = cast %k
        %t: f64[] = mul %s, %d
        %u: f64[] = mul %t, %kf
        %e: f64[] = exp %d
        %f: f64[] = div %e, 4.0
        yield %u, %f
      }
      %z: f64[] = mul %r, %q
      return %z
    }
"""

COLLATZ_LIKE = """
    func @until_small(%x: f64[], %a: f64[]) -> f64[] {
      %r: f64[], %n: i64[] = while carry (%c: f64[] = %x, %i: i64[] = 0){how} {
        %p: bool[] = greater %c, 1.0
        cond %p
      } do {
        %t: f64[] = mul %c, %a
        %e: f64[] = tanh %t
        %s: f64[] = mul %t, %e
        %j: i64[] = add %i, 1
        yield %s, %j
      }
      return %r
    }
"""

NEWTON = """
    func @newton(%x: f64[], %a: f64[]) -> f64[] {
      %r: f64[], %e: f64[] = while carry (%c: f64[] = %x, %err: f64[] = 1.0){how} {
        %p: bool[] = greater %err, 0.0001
        cond %p
      } do {
        %q: f64[] = div %a, %c
        %s: f64[] = add %c, %q
        %h: f64[] = mul %s, 0.5
        %d: f64[] = sub %h, %c
        %m: f64[] = abs %d
        yield %h, %m
      }
      return %r
    }
"""

BRANCH = """
    func @branch(%x: f64[], %a: f64[]) -> f64[] {
      %p: bool[] = greater %x, 0.5
      %r: f64[] = if %p {
        %s: f64[] = sin %x
        %t: f64[] = mul %s, %s
        %u: f64[] = mul %t, %a
        yield %u
      } else {
        %e: f64[] = exp %a
        %f: f64[] = mul %e, %x
        yield %f
      }
      %z: f64[] = mul %r, %x
      return %z
    }
"""

BRANCH_IN_LOOP = """
    func @branch_in_loop(%x: f64[], %a: f64[]) -> f64[] {
      %r: f64[] = for %k in 0..7 carry (%c: f64[] = %x){how} {
        %p: bool[] = greater %c, 0.6
        %n: f64[] = if %p {
          %s: f64[] = sin %c
          %t: f64[] = mul %s, %c
          %u: f64[] = mul %t, %a
          yield %u
        } else {
          %v: f64[] = add %c, %a
          yield %v
        }
        yield %n
      }
      return %r
    }
"""

LOOP_IN_BRANCH = """
    func @loop_in_branch(%x: f64[], %a: f64[]) -> f64[] {
      %p: bool[] = greater %x, 0.5
      %r: f64[] = if %p {
        %y: f64[] = exp %x
        %q: f64[] = for %k in 0..3 carry (%c: f64[] = %y){how} {
          %s: f64[] = sin %c
          %t: f64[] = mul %s, %a
          yield %t
        }
        yield %q
      } else {
        yield %x
      }
      return %r
    }
"""

NESTED = """
    func @nested(%x: f64[], %a: f64[], %n: i64[]) -> f64[] {
      %r: f64[] = for %k in 0..%n carry (%c: f64[] = %x){how} {
        %b: f64[] = cos %c
        %q: f64[] = for %l in 0..%k carry (%d: f64[] = %c){how} {
          %s: f64[] = sin %d
          %t: f64[] = mul %s, %a
          %u: f64[] = add %t, %b
          yield %u
        }
        %m: f64[] = mul %q, %c
        yield %m
      }
      return %r
    }
"""

WHILE_IN_FOR = """
    func @while_in_for(%x: f64[], %a: f64[]) -> f64[] {
      %r: f64[] = for %k in 0..4 carry (%c: f64[] = %x){how} {
        %big: f64[] = mul %c, 8.0
        %q: f64[] = while carry (%d: f64[] = %big){how} {
          %p: bool[] = greater %d, 1.5
          cond %p
        } do {
          %t: f64[] = mul %d, %a
          yield %t
        }
        %s: f64[] = sin %q
        yield %s
      }
      return %r
    }
"""

VECTORS = """
    func @vectors(%x: f64[3], %a: f64[3]) -> f64[] {
      %r: f64[3] = for %k in 0..5 carry (%c: f64[3] = %x){how} {
        %s: f64[3] = sin %c
        %t: f64[3] = mul %s, %a
        %u: f64[3] = add %t, %c
        yield %u
      }
      %y: f64[] = sum %r {axes=[0]}
      return %y
    }
"""

RECURRENT = """
    func @recurrent(%w: f64[4,4], %u: f64[4,2], %xs: f64[6,2], %h: f64[4]) -> f64[] {
      %r: f64[4] = for %k in 0..6 carry (%c: f64[4] = %h){how} {
        %x: f64[2] = gather %xs, %k
        %a: f64[4] = matmul %w, %c
        %b: f64[4] = matmul %u, %x
        %s: f64[4] = add %a, %b
        %n: f64[4] = tanh %s
        yield %n
      }
      %y: f64[] = sum %r {axes=[0]}
      return %y
    }
"""

TABLE = """
    func @table(%x: f64[5], %a: f64[]) -> f64[] {
      %zero: f64[5] = mul %x, 0.5
      %r: f64[], %t: f64[5] = for %k in 0..5 carry (%c: f64[] = %a, %d: f64[5] = %zero){how} {
        %v: f64[] = gather %x, %k
        %w: f64[] = gather %d, %k
        %m: f64[] = mul %v, %c
        %s: f64[] = add %m, %w
        %e: f64[5] = scatter_add %d, %s, %k
        %f: f64[] = sin %s
        yield %f, %e
      }
      %q: f64[5] = mul %t, %t
      %z: f64[] = sum %q {axes=[0]}
      %o: f64[] = add %z, %r
      return %o
    }
"""

INVARIANT = """
    func @invariant(%x: f64[], %a: f64[], %n: i64[]) -> f64[] {
      %r: f64[], %same: f64[] = for %k in 0..%n carry (%c: f64[] = %x, %d: f64[] = %a){how} {
        %e: f64[] = exp %a
        %t: f64[] = mul %c, %e
        %u: f64[] = sin %t
        %v: f64[] = mul %u, %d
        yield %v, %d
      }
      %z: f64[] = add %r, %same
      return %z
    }
"""

SWAPPING = """
    func @swapping(%x: f64[], %a: f64[], %n: i64[]) -> f64[] {
      %r: f64[], %s: f64[], %t: f64[] = for %k in 0..%n carry (%c: f64[] = %x, %d: f64[] = %a, %e: f64[] = 0.5){how} {
        %m: f64[] = mul %c, %e
        yield %d, %m, 1.5
      }
      %z: f64[] = mul %r, %s
      %y: f64[] = mul %z, %t
      return %y
    }
"""

SAVED_PREDICATE = """
    func @saved_predicate(%x: f64[4], %a: f64[]) -> f64[] {
      %r: f64[4], %s: f64[] = for %k in 0..4 carry (%c: f64[4] = %x, %d: f64[] = %a){how} {
        %m: f64[] = sum %c {axes=[0]}
        %p: bool[] = less %m, 2.0
        %n: f64[4], %o: f64[] = if %p {
          %b: f64[4] = broadcast %d
          %u: f64[4] = mul %c, %b
          %e: f64[4] = exp %u
          %f: f64[] = mul %d, %m
          yield %e, %f
        } else {
          %g: f64[] = gather %c, %k
          yield %c, %g
        }
        yield %n, %o
      }
      %q: f64[] = sum %r {axes=[0]}
      %z: f64[] = mul %q, %s
      return %z
    }
"""

FILLED_INSIDE = """
    func @filled_inside(%x: f64[4], %a: f64[]) -> f64[] {
      %r: f64[], %u: f64[4] = for %k in 0..3 carry (%c: f64[] = %a, %t: f64[4] = %x){how} {
        %d: f64[], %w: f64[4] = for %l in 0..4 carry (%e: f64[] = %c, %v: f64[4] = 0.5){how} {
          %g: f64[] = gather %v, %l
          %h: f64[] = mul %g, %e
          %y: f64[] = sin %h
          %z: f64[4] = scatter_set %v, %y, %k
          yield %y, %z
        }
        %f: f64[] = gather %w, %k
        %m: f64[] = gather %t, %k
        %n: f64[] = mul %f, %m
        %o: f64[4] = scatter_add %t, %n, %k
        %p: bool[] = greater %n, 0.1
        %q: f64[4] = if %p {
          %s: f64[4] = scatter_add %o, %d, 0:i64[]
          yield %s
        } else {
          yield %o
        }
        %j: f64[] = add %d, %n
        yield %j, %q
      }
      %b: f64[] = sum %u {axes=[0]}
      %i: f64[] = mul %b, %r
      return %i
    }
"""

STARTS_FROM_WHAT_IT_READS = """
    func @starts_from_what_it_reads(%x: f64[4], %a: f64[]) -> f64[] {
      %r: f64[4], %s: f64[4] = for %k in 0..4 carry (%c: f64[4] = %x, %d: f64[4] = %x){how} {
        %v: f64[] = gather %x, %k
        %w: f64[] = gather %d, %k
        %m: f64[] = mul %v, %w
        %n: f64[] = mul %m, %a
        %e: f64[4] = scatter_add %c, %n, %k
        yield %d, %e
      }
      %p: f64[4] = mul %r, %s
      %q: f64[4] = mul %p, %x
      %o: f64[] = sum %q {axes=[0]}
      return %o
    }
"""

YIELDS_FROM_OUTSIDE = """
    func @f(%a: f64[], %n: i64[]) -> f64[] {
      %0: f64[], %1: i64[] = while carry (%c: f64[] = 1.0, %k: i64[] = 0){how} {
        %2: bool[] = less %k, %n
        cond %2
      } do {
        %3: i64[] = add %k, 1
        yield %a, %3
      }
      %4: f64[] = mul %0, %a
      return %4
    }
"""

PROGRAMS: dict[str, Program] = {
    "polynomial": Program(POLYNOMIAL, (scalar(0.7), scalar(0.9))),
    "traced_bounds": Program(TRACED_BOUNDS, (scalar(0.7), scalar(0.4), index(1), index(5))),
    "no_trips": Program(TRACED_BOUNDS, (scalar(0.7), scalar(0.4), index(3), index(3))),
    "backwards_bounds": Program(TRACED_BOUNDS, (scalar(0.7), scalar(0.4), index(3), index(-2))),
    "until_small": Program(COLLATZ_LIKE, (scalar(9.0), scalar(0.7))),
    "yields_from_outside": Program(YIELDS_FROM_OUTSIDE, (scalar(0.7), index(3))),
    "while_never": Program(COLLATZ_LIKE, (scalar(0.5), scalar(0.7))),
    "newton": Program(NEWTON, (scalar(3.0), scalar(2.0))),
    "branch_then": Program(BRANCH, (scalar(0.9), scalar(0.3))),
    "branch_else": Program(BRANCH, (scalar(0.2), scalar(0.3))),
    "branch_in_loop": Program(BRANCH_IN_LOOP, (scalar(0.3), scalar(0.4))),
    "loop_in_branch": Program(LOOP_IN_BRANCH, (scalar(0.8), scalar(1.3))),
    "loop_in_branch_not_taken": Program(LOOP_IN_BRANCH, (scalar(0.1), scalar(1.3))),
    "nested": Program(NESTED, (scalar(0.8), scalar(0.6), index(4))),
    "while_in_for": Program(WHILE_IN_FOR, (scalar(0.9), scalar(0.55))),
    "vectors": Program(VECTORS, (vector(0.1, 0.5, 0.9), vector(0.3, -0.4, 1.1))),
    "recurrent": Program(RECURRENT, (matrix(4, 4), matrix(4, 2), matrix(6, 2), vector(0.1, 0.2, -0.3, 0.4))),
    "table": Program(TABLE, (vector(0.1, 0.5, -0.9, 0.3, 0.7), scalar(0.6))),
    "filled_inside": Program(FILLED_INSIDE, (vector(0.4, 0.5, -0.9, 0.3), scalar(0.6))),
    "starts_from_what_it_reads": Program(STARTS_FROM_WHAT_IT_READS, (vector(0.4, 0.5, -0.9, 0.3), scalar(0.6))),
    "invariant": Program(INVARIANT, (scalar(0.8), scalar(0.6), index(3))),
    "swapping": Program(SWAPPING, (scalar(0.8), scalar(0.6), index(3))),
    "swapping_once": Program(SWAPPING, (scalar(0.8), scalar(0.6), index(1))),
    "saved_predicate": Program(SAVED_PREDICATE, (vector(0.1, 0.5, -0.9, 0.3), scalar(0.6))),
}
