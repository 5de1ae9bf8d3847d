"""The passes that rewrite a program for code generation, by text: custom gradients, complex numbers, literals, buffers."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjit.passes.autodiff.transparent import drop_transparent
from adjit.passes.complex import split_complex
from adjit.passes.conjugates import conjugate_operands
from adjit.passes.fusion.legalize import legalize
from adjit.passes.memory.buffers import plan_buffers
from adjit.passes.pipeline import OPTIMIZE
from tests.passes.checks import leaves, rewrites


def test_a_custom_gradient_is_replaced_by_its_values() -> None:
    rewrites(
        drop_transparent,
        """
        func @f(%x: f64[]) -> f64[] {
          %e: f64[] = exp %x
          %y: f64[] = custom_gradient %x, %e, %e {function="thrice", inputs=1, values=1, pulled=[0]} pull (%e: f64[], %y.bar: f64[]) {
            %0: f64[] = mul %y.bar, %e
            yield %0
          }
          %z: f64[] = add %y, 1.0
          return %z
        }
        """,
        """
        func @f(%x: f64[]) -> f64[] {
          %e: f64[] = exp %x
          %z: f64[] = add %e, 1.0
          return %z
        }
        """,
    )


def test_what_a_variable_is_assigned_is_the_new_value() -> None:
    """At any depth, and for values of such values; a value without a name takes that of the variable's new value."""
    rewrites(
        drop_transparent,
        """
        func @f(%x: f64[], %w: f64[], %p: bool[]) -> f64[] {
          %0: f64[] = mul %x, %w
          %a: f64[] = assigned %0, %w
          %b: f64[] = assigned %a, %w
          %r: f64[] = if %p {
            %s: f64[] = sin %b
            %c: f64[] = assigned %s, %b
            %d: f64[] = detach %c
            yield %d
          } else {
            yield %a
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[], %w: f64[], %p: bool[]) -> f64[] {
          %a: f64[] = mul %x, %w
          %r: f64[] = if %p {
            %s: f64[] = sin %a
            yield %s
          } else {
            yield %a
          }
          return %r
        }
        """,
    )


def test_complex_numbers_become_pairs() -> None:
    rewrites(
        split_complex,
        """
        func @f(%a: c128[3], %b: c128[3]) -> c128[3] {
          %p: c128[3] = mul %a, %b
          return %p
        }
        """,
        """
        func @f(%a: f64[3,2], %b: f64[3,2]) -> f64[3,2] {
          %0: f64[3,1] = slice %a {starts=[0, 0], stops=[3, 1], steps=[1, 1]}
          %1: f64[3] = reshape %0
          %2: f64[3,1] = slice %a {starts=[0, 1], stops=[3, 2], steps=[1, 1]}
          %3: f64[3] = reshape %2
          %4: f64[3,1] = slice %b {starts=[0, 0], stops=[3, 1], steps=[1, 1]}
          %5: f64[3] = reshape %4
          %6: f64[3,1] = slice %b {starts=[0, 1], stops=[3, 2], steps=[1, 1]}
          %7: f64[3] = reshape %6
          %8: f64[3] = mul %1, %5
          %9: f64[3] = mul %3, %7
          %p.re: f64[3] = sub %8, %9
          %10: f64[3] = mul %1, %7
          %11: f64[3] = mul %3, %5
          %p.im: f64[3] = add %10, %11
          %12: f64[3,2] = interleave %p.re, %p.im
          return %12
        }
        """,
    )


def test_conjugations_move_before_transforms() -> None:
    rewrites(
        conjugate_operands,
        """
        func @f(%x: c128[4,4], %y: c128[4,4]) -> (c128[4,4], c128[4,4], c128[4,4]) {
          %c: c128[4,4] = conj %x
          %p: c128[4,4] = fft %c {axis=0}
          %q: c128[4,4] = fft %p {axis=1, scale=0.5}
          %a: c128[4,4] = conj %q
          %r: c128[4,4] = fft %y {axis=0, inverse=true}
          %b: c128[4,4] = conj %r
          %s: c128[4,4] = fft %y {axis=1}
          %d: c128[4,4] = conj %s
          %e: c128[4,4] = add %d, %s
          return %a, %b, %e
        }
        """,
        """
        func @f(%x: c128[4,4], %y: c128[4,4]) -> (c128[4,4], c128[4,4], c128[4,4]) {
          %c: c128[4,4] = conj %x
          %0: c128[4,4] = fft %x {axis=0, inverse=true}
          %a: c128[4,4] = fft %0 {axis=1, inverse=true, scale=0.5}
          %1: c128[4,4] = conj %y
          %b: c128[4,4] = fft %1 {axis=0}
          %s: c128[4,4] = fft %y {axis=1}
          %d: c128[4,4] = conj %s
          %e: c128[4,4] = add %d, %s
          return %a, %b, %e
        }
        """,
    )


def test_conjugations_between_transforms_that_are_both_conjugated() -> None:
    """conj(fft(conj(X))) is an inverse transform: of X that is a conjugated transform itself."""
    rewrites(
        conjugate_operands,
        """
        func @f(%x: c128[4]) -> c128[4] {
          %p: c128[4] = fft %x {axis=0}
          %q: c128[4] = conj %p
          %r: c128[4] = fft %q {axis=0}
          %s: c128[4] = conj %r
          return %s
        }
        """,
        """
        func @f(%x: c128[4]) -> c128[4] {
          %0: c128[4] = conj %x
          %q: c128[4] = fft %0 {axis=0, inverse=true}
          %1: c128[4] = conj %q
          %s: c128[4] = fft %1 {axis=0, inverse=true}
          return %s
        }
        """,
    )


def test_conjugations_move_inside_of_branches() -> None:
    rewrites(
        conjugate_operands,
        """
        func @f(%x: c128[4], %p: bool[]) -> c128[4] {
          %r: c128[4] = if %p {
            %a: c128[4] = fft %x {axis=0}
            %b: c128[4] = conj %a
            yield %b
          } else {
            yield %x
          }
          return %r
        }
        """,
        """
        func @f(%x: c128[4], %p: bool[]) -> c128[4] {
          %r: c128[4] = if %p {
            %0: c128[4] = conj %x
            %b: c128[4] = fft %0 {axis=0, inverse=true}
            yield %b
          } else {
            yield %x
          }
          return %r
        }
        """,
    )


def test_parts_that_are_computed_are_transformed_as_planes() -> None:
    rewrites(
        split_complex,
        """
        func @f(%a: f64[4,2], %z: c128[4,2]) -> (c128[4,2], c128[4,2]) {
          %s: f64[4,2] = sin %a
          %c: c128[4,2] = complex %a, %s
          %f: c128[4,2] = fft %c {axis=0}
          %y: c128[4,2] = reshape %z
          %g: c128[4,2] = fft %y {axis=0}
          return %f, %g
        }
        """,
        """
        func @f(%a: f64[4,2], %z: f64[4,2,2]) -> (f64[4,2,2], f64[4,2,2]) {
          %0: f64[4,2,1] = slice %z {starts=[0, 0, 0], stops=[4, 2, 1], steps=[1, 1, 1]}
          %y.re: f64[4,2] = reshape %0
          %1: f64[4,2,1] = slice %z {starts=[0, 0, 1], stops=[4, 2, 2], steps=[1, 1, 1]}
          %y.im: f64[4,2] = reshape %1
          %s: f64[4,2] = sin %a
          %2: f64[8,2] = concatenate %a, %s {axis=0}
          %3: f64[2,4,2] = reshape %2
          %4: f64[4,2,2] = transpose %3 {axes=[1, 2, 0]}
          %5: f64[2,1] = constant {data=[[1.0], [0.0]]}
          %6: f64[4,2,2] = fft_parts %4, %5 {axis=0}
          %7: f64[4,2,1] = slice %6 {starts=[0, 0, 0], stops=[4, 2, 1], steps=[1, 1, 1]}
          %f.re: f64[4,2] = reshape %7
          %8: f64[4,2,1] = slice %6 {starts=[0, 0, 1], stops=[4, 2, 2], steps=[1, 1, 1]}
          %f.im: f64[4,2] = reshape %8
          %9: f64[2,1] = constant {data=[[1.0], [0.0]]}
          %10: f64[4,2,2] = fft_parts %z, %9 {axis=0}
          %11: f64[4,2,1] = slice %10 {starts=[0, 0, 0], stops=[4, 2, 1], steps=[1, 1, 1]}
          %g.re: f64[4,2] = reshape %11
          %12: f64[4,2,1] = slice %10 {starts=[0, 0, 1], stops=[4, 2, 2], steps=[1, 1, 1]}
          %g.im: f64[4,2] = reshape %12
          return %6, %10
        }
        """,
    )


def test_real_programs_are_left_as_they_are() -> None:
    leaves(
        split_complex,
        """
        func @f(%x: f64[3]) -> f64[3] {
          %y: f64[3] = exp %x
          return %y
        }
        """,
    )


def test_literals_that_are_read_from_memory_are_filled_in() -> None:
    rewrites(
        legalize,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[], f64[5]) {
          %s: f64[] = sum 2.0:f64[4] {axes=[0]}
          %y: f64[3] = mul %x, 3.0
          return %y, %s, 1.0:f64[5]
        }
        """,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[], f64[5]) {
          %0: f64[4] = fill {value=2.0}
          %s: f64[] = sum %0 {axes=[0]}
          %y: f64[3] = mul %x, 3.0
          return %y, %s, 1.0
        }
        """,
    )


def test_buffers_are_reused_when_their_values_are_dead() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[64], %w: f64[64,64]) -> f64[64] {
          %a: f64[64] = matmul %x, %w
          %b: f64[64] = matmul %a, %w
          %c: f64[64] = matmul %b, %w
          %d: f64[64] = matmul %c, %w
          return %d
        }
        """,
        """
        func @f(%x: f64[64] @param+0, %w: f64[64,64] @param+1) -> f64[64] arena 1024 {
          %a: f64[64] @arena+0 = matmul %x, %w
          %b: f64[64] @arena+512 = matmul %a, %w
          %c: f64[64] @arena+0 = matmul %b, %w
          %d: f64[64] @result+0 = matmul %c, %w
          return %d
        }
        """,
    )


@pytest.mark.parametrize("name", sorted({each.__name__ for each in OPTIMIZE.passes.values()}))
def test_every_pass_has_before_and_after_texts(name: str) -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert f"rewrites(\n        {name}," in tests or f"rewrites({name}," in tests


def test_the_architecture_page_lists_the_passes_in_order() -> None:
    page = Path(__file__).parents[2] / "docs" / "architecture.md"
    names = ", ".join(each.__name__ for each in OPTIMIZE.passes.values())
    assert names in " ".join(page.read_text().split())
