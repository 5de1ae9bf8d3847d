"""Complex numbers as pairs: products, powers, running products, recurrences and stacks, against the interpreter on complex numbers."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.complex import split_complex
from tests.passes.near_misses import as_pairs


def agrees(text: str) -> None:
    """The pass removes all complex numbers, and leaves the results unchanged."""
    func = parse_func(dedent(text))
    verify(func)
    out = split_complex(func)
    verify(out)
    assert not any(v.type.dtype.kind == "c" for v in (*out.params, *(r for s in out.stmts for r in s.results)))
    rng = np.random.default_rng(len(text))
    arrays = []
    for param in func.params:
        x = rng.standard_normal((*param.type.shape, 2))
        arrays.append((x[..., 0] + 1j * x[..., 1] if param.type.dtype.kind == "c" else 3 + 0 * x[..., 0]).astype(param.type.dtype))
    got = run(out, *(as_pairs(a, p.type) for a, p in zip(arrays, out.params, strict=True)))
    for ours, theirs in zip(got, run(func, *arrays), strict=True):
        np.testing.assert_allclose(ours, as_pairs(theirs, ours), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n", range(10))
def test_products_of_any_number_of_elements(n: int) -> None:
    agrees(
        f"""
        func @f(%x: c128[{n}], %y: c128[2,{n},3]) -> (c128[], c128[2,3], c128[]) {{
          %a: c128[] = prod %x {{axes=[0]}}
          %b: c128[2,3] = prod %y {{axes=[1]}}
          %c: c128[] = prod %y {{axes=[0, 1, 2]}}
          return %a, %b, %c
        }}
        """
    )


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2], [1, 2], [0, 1]])
def test_products_over_any_axes(axes: list[int]) -> None:
    kept = ",".join(str(size) for axis, size in enumerate((2, 3, 4)) if axis not in axes)
    agrees(f"func @f(%x: c128[2,3,4]) -> c128[{kept}] {{\n  %y: c128[{kept}] = prod %x {{axes={axes}}}\n  return %y\n}}\n")


@pytest.mark.parametrize("n", [-5, -2, -1, 0, 1, 2, 3, 8])
def test_integer_powers(n: int) -> None:
    agrees(f"func @f(%x: c128[3]) -> c128[3] {{\n  %y: c128[3] = integer_pow %x {{n={n}}}\n  return %y\n}}\n")


@pytest.mark.parametrize("reverse", ["false", "true"])
@pytest.mark.parametrize("shape", ["1", "2", "7", "8", "3,5", "0"])
def test_running_products_and_recurrences(shape: str, reverse: str) -> None:
    for axis in range(shape.count(",") + 1):
        agrees(
            f"""
            func @f(%a: c128[{shape}], %b: c128[{shape}]) -> (c128[{shape}], c128[{shape}]) {{
              %c: c128[{shape}] = cumprod %a {{axis={axis}, reverse={reverse}}}
              %d: c128[{shape}] = recurrence %a, %b {{axis={axis}, reverse={reverse}}}
              return %c, %d
            }}
            """
        )


def test_stacks_of_complex_numbers() -> None:
    agrees(
        """
        func @f(%x: c128[2], %n: i64[]) -> (c128[2], c128[2], c64[3], f64[2], i64[]) {
          %l: c128[2], %s: stack<c128[2]>, %r: stack<f64[2]> = for %k in 0..%n carry (%c: c128[2] = %x) {
            %d: c128[2] = mul %c, %x
            %e: f64[2] = real %d
            yield %d saving %c, %e
          }
          %z: stack<c128[2]> = stack_zeros %s
          %t: stack<c128[2]> = stack_accumulate %z, 1:i64[], %l
          %u: stack<c128[2]> = stack_add %t, %s
          %a: c128[2] = stack_read %u, 1:i64[]
          %b: c128[2] = stack_read %u, 0:i64[]
          %v: stack<c64[3]> = stack_zeros %s {element=c64[3]}
          %g: c64[3] = stack_read %v, 0:i64[]
          %w: stack<f64[2]> = stack_zeros %r
          %h: f64[2] = stack_read %w, 0:i64[]
          %m: i64[] = stack_length %s
          return %a, %b, %g, %h, %m
        }
        """
    )


def test_zeros_as_long_as_a_stack_of_real_numbers() -> None:
    agrees(
        """
        func @f(%x: f64[2], %n: i64[]) -> c128[3] {
          %l: f64[2], %s: stack<f64[2]> = for %k in 0..%n carry (%c: f64[2] = %x) {
            %d: f64[2] = sin %c
            yield %d saving %c
          }
          %v: stack<c128[3]> = stack_zeros %s {element=c128[3]}
          %g: c128[3] = stack_read %v, 0:i64[]
          return %g
        }
        """
    )


def test_casts_pads_and_selections() -> None:
    agrees(
        """
        func @f(%x: c128[3], %y: f64[3], %z: c128[3]) -> (c64[3], f32[3], bool[3], c128[3], c128[5], c128[3], c128[3]) {
          %a: c64[3] = cast %x {dtype=c64}
          %b: c64[3] = cast %y {dtype=c64}
          %c: c64[3] = mul %a, %b
          %d: f32[3] = cast %x {dtype=f32}
          %e: bool[3] = cast %x {dtype=bool}
          %g: c128[3] = cast %y {dtype=c128}
          %h: c128[5] = pad %x {low=[1], high=[1], interior=[0], value=2.0}
          %i: c128[3] = where %e, %x, %z
          %j: c128[3] = strong_mul %x, %z
          return %c, %d, %e, %g, %h, %i, %j
        }
        """
    )
