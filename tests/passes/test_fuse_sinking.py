"""Fusion: values that are computed in the loops that read them, and the conditions for it."""

from __future__ import annotations

from adjit.passes.fusion.fuse import fuse
from tests.passes.checks import rewrites


def test_a_value_of_a_merged_loop_sinks_as_if_it_had_been_there() -> None:
    """Both loops read %z; the values that only the last loop reads are computed there."""
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %z: f64[5000], %w: f64[5000,5000]) -> f64[5000] {
          %a: f64[5000] = mul %x, %z
          %m: f64[5000] = matmul %x, %w
          %b: f64[5000] = mul %m, %z
          %c: f64[5000] = add %a, %b
          %e: f64[5000] = exp %c
          %n: f64[5000] = matmul %e, %w
          %g: f64[5000] = mul %c, %n
          %h: f64[5000] = mul %g, %z
          return %h
        }
        """,
        """
        func @f(%x: f64[5000], %z: f64[5000], %w: f64[5000,5000]) -> f64[5000] {
          %m: f64[5000] = matmul %x, %w
          %c: f64[5000], %e: f64[5000] = fuse {
            %a: f64[5000] = mul %x, %z
            %b: f64[5000] = mul %m, %z
            %c.1: f64[5000] = add %a, %b
            %e.1: f64[5000] = exp %c.1
            yield %c.1, %e.1
          }
          %n: f64[5000] = matmul %e, %w
          %h: f64[5000] = fuse {
            %g: f64[5000] = mul %c, %n
            %h.1: f64[5000] = mul %g, %z
            yield %h.1
          }
          return %h
        }
        """,
    )


def test_a_value_sinks_together_with_its_constants() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> f64[5000] {
          %i: f64[5000] = iota {axis=0}
          %a: f64[5000] = exp %x
          %b: f64[5000] = mul %a, %i
          %y: f64[5000] = matmul %w, %a
          %d: f64[5000] = mul %b, %y
          return %d
        }
        """,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> f64[5000] {
          %a: f64[5000] = fuse {
            %i: f64[5000] = iota {axis=0}
            %a.1: f64[5000] = exp %x
            yield %a.1
          }
          %y: f64[5000] = matmul %w, %a
          %d: f64[5000] = fuse {
            %i.1: f64[5000] = iota {axis=0}
            %b: f64[5000] = mul %a, %i.1
            %d.1: f64[5000] = mul %b, %y
            yield %d.1
          }
          return %d
        }
        """,
    )


def test_a_value_that_is_computed_from_constants_is_stored() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000], f64[5000]) {
          %i: f64[5000] = iota {axis=0}
          %a: f64[5000] = sub %x, %i
          %e: f64[5000] = exp %a
          %y: f64[5000] = matmul %w, %e
          %b: f64[5000] = mul %a, %y
          %c: f64[5000] = mul %b, %x
          %z: f64[5000] = matmul %w, %c
          %d: f64[5000] = mul %a, %z
          %g: f64[5000] = mul %d, %x
          return %e, %c, %g
        }
        """,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000], f64[5000]) {
          %a: f64[5000], %e: f64[5000] = fuse {
            %i: f64[5000] = iota {axis=0}
            %a.1: f64[5000] = sub %x, %i
            %e.1: f64[5000] = exp %a.1
            yield %a.1, %e.1
          }
          %y: f64[5000] = matmul %w, %e
          %c: f64[5000] = fuse {
            %b: f64[5000] = mul %a, %y
            %c.1: f64[5000] = mul %b, %x
            yield %c.1
          }
          %z: f64[5000] = matmul %w, %c
          %g: f64[5000] = fuse {
            %d: f64[5000] = mul %a, %z
            %g.1: f64[5000] = mul %d, %x
            yield %g.1
          }
          return %e, %c, %g
        }
        """,
    )


def test_a_value_is_stored_if_one_of_several_readers_is_full() -> None:
    """The convolution cannot host a second call of a mathematical function, and reads other elements."""
    rewrites(
        fuse,
        """
        func @f(%x: f32[2,6,6,5], %y: f32[2,8,8,3], %k: f32[3,3,3,5], %u: f32[2,6,6,5]) -> (f32[2,6,6,5], f32[2,6,6,5]) {
          %a: f32[2,6,6,5] = sub %x, %u
          %e: f32[2,6,6,5] = exp %a
          %c: f32[2,6,6,5] = convolve %y, %k {strides=[1, 1], dilations=[1, 1], groups=1}
          %b: f32[2,6,6,5] = mul %c, %a
          return %e, %b
        }
        """,
        """
        func @f(%x: f32[2,6,6,5], %y: f32[2,8,8,3], %k: f32[3,3,3,5], %u: f32[2,6,6,5]) -> (f32[2,6,6,5], f32[2,6,6,5]) {
          %a: f32[2,6,6,5], %e: f32[2,6,6,5] = fuse {
            %a.1: f32[2,6,6,5] = sub %x, %u
            %e.1: f32[2,6,6,5] = exp %a.1
            yield %a.1, %e.1
          }
          %b: f32[2,6,6,5] = fuse {
            %c: f32[2,6,6,5] = convolve %y, %k {strides=[1, 1], dilations=[1, 1], groups=1}
            %b.1: f32[2,6,6,5] = mul %c, %a
            yield %b.1
          }
          return %e, %b
        }
        """,
    )


def test_a_chain_sinks_into_the_loop_that_reads_its_end() -> None:
    """Each statement of it frees the place of the one before."""
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000] = tanh %x
          %b: f64[5000] = mul %a, %a
          %c: f64[5000] = neg %b
          %d: f64[5000] = add %c, 1.0
          %s: f64[5000] = exp %a
          %y: f64[5000] = matmul %w, %s
          %e: f64[5000] = mul %d, %y
          %g: f64[5000] = mul %e, %a
          return %s, %g
        }
        """,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000], %s: f64[5000] = fuse {
            %a.1: f64[5000] = tanh %x
            %s.1: f64[5000] = exp %a.1
            yield %a.1, %s.1
          }
          %y: f64[5000] = matmul %w, %s
          %g: f64[5000] = fuse {
            %b: f64[5000] = mul %a, %a
            %c: f64[5000] = neg %b
            %d: f64[5000] = add %c, 1.0
            %e: f64[5000] = mul %d, %y
            %g.1: f64[5000] = mul %e, %a
            yield %g.1
          }
          return %s, %g
        }
        """,
    )


def test_values_that_are_broadcast_from_small_ones_cost_nothing() -> None:
    """Four times as large is enough; views of such values cost nothing either."""
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000,4], %r: f64[5000,1], %w: f64[4,4]) -> (f64[5000,4], f64[5000,4]) {
          %s: f64[5000,4] = broadcast %r
          %t: f64[5000,4] = flip %s {axes=[1]}
          %a: f64[5000,4] = mul %s, %t
          %e: f64[5000,4] = exp %a
          %y: f64[5000,4] = matmul %e, %w
          %d: f64[5000,4] = mul %a, %y
          return %e, %d
        }
        """,
        """
        func @f(%x: f64[5000,4], %r: f64[5000,1], %w: f64[4,4]) -> (f64[5000,4], f64[5000,4]) {
          %s: f64[5000,4] = broadcast %r
          %t: f64[5000,4] = flip %s {axes=[1]}
          %e: f64[5000,4] = fuse {
            %a: f64[5000,4] = mul %s, %t
            %e.1: f64[5000,4] = exp %a
            yield %e.1
          }
          %y: f64[5000,4] = matmul %e, %w
          %d: f64[5000,4] = fuse {
            %a.1: f64[5000,4] = mul %s, %t
            %d.1: f64[5000,4] = mul %a.1, %y
            yield %d.1
          }
          return %e, %d
        }
        """,
    )


def test_values_that_are_broadcast_from_a_third_of_their_size_are_read() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000,3], %r: f64[5000,1], %v: f64[5000,1], %w: f64[3,3]) -> (f64[5000,3], f64[5000,3]) {
          %s: f64[5000,3] = broadcast %r
          %t: f64[5000,3] = broadcast %v
          %a: f64[5000,3] = mul %s, %t
          %e: f64[5000,3] = exp %a
          %y: f64[5000,3] = matmul %e, %w
          %d: f64[5000,3] = mul %a, %y
          return %e, %d
        }
        """,
        """
        func @f(%x: f64[5000,3], %r: f64[5000,1], %v: f64[5000,1], %w: f64[3,3]) -> (f64[5000,3], f64[5000,3]) {
          %s: f64[5000,3] = broadcast %r
          %t: f64[5000,3] = broadcast %v
          %a: f64[5000,3], %e: f64[5000,3] = fuse {
            %a.1: f64[5000,3] = mul %s, %t
            %e.1: f64[5000,3] = exp %a.1
            yield %a.1, %e.1
          }
          %y: f64[5000,3] = matmul %e, %w
          %d: f64[5000,3] = fuse {
            %d.1: f64[5000,3] = mul %a, %y
            yield %d.1
          }
          return %e, %d
        }
        """,
    )


def test_views_that_are_not_broadcast_are_read() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %z: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000]) {
          %s: f64[5000] = flip %x {axes=[0]}
          %t: f64[5000] = flip %z {axes=[0]}
          %a: f64[5000] = mul %s, %t
          %e: f64[5000] = exp %a
          %y: f64[5000] = matmul %w, %e
          %d: f64[5000] = mul %a, %y
          return %e, %d
        }
        """,
        """
        func @f(%x: f64[5000], %z: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000]) {
          %s: f64[5000] = flip %x {axes=[0]}
          %t: f64[5000] = flip %z {axes=[0]}
          %a: f64[5000], %e: f64[5000] = fuse {
            %a.1: f64[5000] = mul %s, %t
            %e.1: f64[5000] = exp %a.1
            yield %a.1, %e.1
          }
          %y: f64[5000] = matmul %w, %e
          %d: f64[5000] = fuse {
            %d.1: f64[5000] = mul %a, %y
            yield %d.1
          }
          return %e, %d
        }
        """,
    )


def test_a_value_does_not_sink_into_a_loop_over_another_domain() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[70,80], %w: f64[80,70]) -> (f64[70,80], f64[80,70]) {
          %a: f64[70,80] = tanh %x
          %b: f64[70,80] = mul %a, %a
          %t: f64[80,70] = transpose %b {axes=[1, 0]}
          %c: f64[80,70] = mul %t, %w
          return %a, %c
        }
        """,
        """
        func @f(%x: f64[70,80], %w: f64[80,70]) -> (f64[70,80], f64[80,70]) {
          %a: f64[70,80], %b: f64[70,80] = fuse {
            %a.1: f64[70,80] = tanh %x
            %b.1: f64[70,80] = mul %a.1, %a.1
            yield %a.1, %b.1
          }
          %t: f64[80,70] = transpose %b {axes=[1, 0]}
          %c: f64[80,70] = fuse {
            %c.1: f64[80,70] = mul %t, %w
            yield %c.1
          }
          return %a, %c
        }
        """,
    )
