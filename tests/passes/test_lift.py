"""Products leave loops."""

from __future__ import annotations

from random import Random
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.codegen.compile import compile_func
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.ops.control import For
from adjit.ir.ops.linalg import Matmul
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.loops.lift import lift_products
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites


def products_in_loops(func: Func) -> int:
    loops = [s for s in walk(func.block) if isinstance(s.op, For)]
    return sum(isinstance(s.op, Matmul) for loop in loops for s in walk(loop.blocks[0]))


def agrees(func: Func, *arrays: Any) -> None:
    """The function after the pass has the same results, interpreted and compiled."""
    want = run(func, *arrays)
    lifted = lift_products(func)
    verify(lifted)
    for got in (run(lifted, *arrays), compile_func(OPTIMIZE(func))(list(arrays))):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape) / 3


BEFORE = """
    func @f(%x: f64[4,2,3], %w: f64[3,5]) -> f64[2,5] {
      %r: f64[2,5] = for %k in 0..4 carry (%c: f64[2,5] = 0.0) {
        %row: f64[2,3] = gather %x, %k
        %p: f64[2,5] = matmul %row, %w
        %t: f64[2,5] = tanh %p
        %n: f64[2,5] = add %t, %c
        yield %n
      }
      return %r
    }
    """


def test_a_product_of_what_is_read_is_computed_before_the_loop() -> None:
    rewrites(
        lift_products,
        BEFORE,
        """
        func @f(%x: f64[4,2,3], %w: f64[3,5]) -> f64[2,5] {
          %0: f64[8,3] = reshape %x
          %1: f64[8,5] = matmul %0, %w
          %2: f64[4,2,5] = reshape %1
          %r: f64[2,5] = for %k in 0..4 carry (%c: f64[2,5] = 0.0) {
            %p: f64[2,5] = gather %2, %k
            %t: f64[2,5] = tanh %p
            %n: f64[2,5] = add %t, %c
            yield %n
          }
          return %r
        }
        """,
    )
    agrees(parse_func(dedent(BEFORE)), numbers(4, 2, 3), numbers(3, 5))


def test_products_that_are_added_up_are_one_product_after_the_loop() -> None:
    text = """
        func @f(%x: f64[4,2,3], %w: f64[2,5], %first: f64[3,5]) -> f64[3,5] {
          %r: f64[3,5], %s: f64[2,5] = for %k in 0..4 carry (%total: f64[3,5] = %first, %c: f64[2,5] = %w) {
            %i: i64[] = sub 3, %k
            %row: f64[2,3] = gather %x, %i
            %n: f64[2,5] = tanh %c
            %t: f64[3,2] = transpose %row {axes=[1, 0]}
            %p: f64[3,5] = matmul %t, %n
            %next: f64[3,5] = add %total, %p
            yield %next, %n
          }
          return %r
        }
        """
    rewrites(
        lift_products,
        text,
        """
        func @f(%x: f64[4,2,3], %w: f64[2,5], %first: f64[3,5]) -> f64[3,5] {
          %s: f64[2,5], %n: f64[4,2,5] = for %k in 0..4 carry (%c: f64[2,5] = %w, %n.1: f64[4,2,5] = 0.0) {
            %i: i64[] = sub 3, %k
            %n.2: f64[2,5] = tanh %c
            %n.3: f64[4,2,5] = scatter_set %n.1, %n.2, %i
            yield %n.2, %n.3
          }
          %0: f64[8,3] = reshape %x
          %1: f64[8,5] = reshape %n
          %2: f64[3,8] = transpose %0 {axes=[1, 0]}
          %3: f64[3,5] = matmul %2, %1
          %r: f64[3,5] = add %first, %3
          return %r
        }
        """,
    )
    agrees(parse_func(dedent(text)), numbers(4, 2, 3), numbers(2, 5), numbers(3, 5))


@pytest.mark.parametrize(("m", "k", "n"), [(0, 2, 5), (3, 0, 5), (3, 2, 0), (0, 0, 0)])
def test_products_of_no_elements(m: int, k: int, n: int) -> None:
    func = parse_func(
        dedent(f"""
        func @f(%x: f64[4,{k},{m}], %w: f64[{k},{n}], %v: f64[{m},{n}]) -> (f64[{m},{n}], f64[{k},{n}]) {{
          %r: f64[{m},{n}], %s: f64[{k},{n}] = for %i in 0..4 carry (%total: f64[{m},{n}] = 0.0, %c: f64[{k},{n}] = %w) {{
            %row: f64[{k},{m}] = gather %x, %i
            %t: f64[{m},{k}] = transpose %row {{axes=[1, 0]}}
            %p: f64[{m},{n}] = matmul %t, %c
            %next: f64[{m},{n}] = add %total, %p
            %q: f64[{k},{n}] = matmul %row, %v
            %n: f64[{k},{n}] = add %c, %q
            yield %next, %n
          }}
          return %r, %s
        }}
        """)
    )
    verify(lift_products(func))
    agrees(func, numbers(4, k, m), numbers(k, n), numbers(m, n))


def test_products_leave_loops_over_sizes_that_are_known_only_at_run_time() -> None:
    """Both directions at once: rows are read backwards, as in the backward pass of a loop over all rows."""
    rewrites(
        lift_products,
        """
        func @f[B=4, T=2](%x: f64[B,T,3], %w: f64[3,5], %first: f64[3,5]) -> (f64[T,5], f64[3,5]) {
          %b: i64[] = size {value=B}
          %m: i64[] = maximum %b, 0
          %r: f64[T,5], %q: f64[3,5] = for %k in 0..%m carry (%c: f64[T,5] = 0.0, %total: f64[3,5] = %first) {
            %l: i64[] = sub %m, 1
            %i: i64[] = sub %l, %k
            %row: f64[T,3] = gather %x, %i
            %p: f64[T,5] = matmul %row, %w
            %n: f64[T,5] = tanh %p
            %t: f64[3,T] = transpose %row {axes=[1, 0]}
            %g: f64[3,5] = matmul %t, %n
            %d: f64[T,5] = add %n, %c
            %next: f64[3,5] = add %total, %g
            yield %d, %next
          }
          return %r, %q
        }
        """,
        """
        func @f[B=4, T=2](%x: f64[B,T,3], %w: f64[3,5], %first: f64[3,5]) -> (f64[T,5], f64[3,5]) {
          %b: i64[] = size {value=B}
          %m: i64[] = maximum %b, 0
          %0: f64[B*T,3] = reshape %x
          %1: f64[B*T,5] = matmul %0, %w
          %2: f64[B,T,5] = reshape %1
          %r: f64[T,5], %n: f64[B,T,5] = for %k in 0..%m carry (%c: f64[T,5] = 0.0, %n.1: f64[B,T,5] = 0.0) {
            %l: i64[] = sub %m, 1
            %i: i64[] = sub %l, %k
            %p: f64[T,5] = gather %2, %i
            %n.2: f64[T,5] = tanh %p
            %d: f64[T,5] = add %n.2, %c
            %n.3: f64[B,T,5] = scatter_set %n.1, %n.2, %i
            yield %d, %n.3
          }
          %3: f64[B*T,3] = reshape %x
          %4: f64[B*T,5] = reshape %n
          %5: f64[3,B*T] = transpose %3 {axes=[1, 0]}
          %6: f64[3,5] = matmul %5, %4
          %q: f64[3,5] = add %first, %6
          return %r, %q
        }
        """,
    )


@pytest.mark.parametrize("bound", ["sub %b, 2", "sub %b, %t", "minimum %b, 7"])
def test_products_stay_in_loops_that_may_have_fewer_than_two_iterations(bound: str) -> None:
    leaves(
        lift_products,
        f"""
        func @f[B=9, T=3](%x: f64[B,T,3], %w: f64[3,5]) -> f64[T,5] {{
          %b: i64[] = size {{value=B}}
          %t: i64[] = size {{value=T}}
          %m: i64[] = {bound}
          %r: f64[T,5] = for %k in 0..%m carry (%c: f64[T,5] = 0.0) {{
            %row: f64[T,3] = gather %x, %k
            %p: f64[T,5] = matmul %row, %w
            %n: f64[T,5] = add %p, %c
            yield %n
          }}
          return %r
        }}
        """,
    )


RECURRENT = """
    func @f(%x: f64[{steps},2,3], %w: f64[3,5], %u: f64[5,5], %b: f64[5]) -> f64[] {{
      %h: f64[2,5], %all: f64[4,2,5] = for %k in {start}..{stop} carry (%c: f64[2,5] = 0.0, %out: f64[4,2,5] = 0.0) {{
        %i: i64[] = sub {last}, %k
        %row: f64[2,3] = gather %x, %i
        %p: f64[2,5] = matmul %row, %w
        %q: f64[2,5] = matmul %c, %u
        %bias: f64[2,5] = broadcast %b
        %s: f64[2,5] = add %p, %q
        %a: f64[2,5] = add %s, %bias
        %n: f64[2,5] = tanh %a
        %next: f64[4,2,5] = scatter_set %out, %n, {to}
        yield %n, %next
      }}
      %y: f64[4,2,5] = mul %all, %all
      %z: f64[] = sum %y {{axes=[0, 1, 2]}}
      return %z
    }}
    """


@pytest.mark.parametrize(("start", "last", "to"), [(0, 3, "%k"), (0, 3, "%i"), (2, 5, "%i"), (-2, 1, "%i"), (0, 4, "%k")])
def test_a_recurrent_network_keeps_its_recurrence_only(start: int, last: int, to: str) -> None:
    steps = 4 if last - start == 3 else 5  # of five rows, four are read
    text = RECURRENT.format(start=start, stop=start + 4, last=last, to=to, steps=steps)
    func = OPTIMIZE_HALF(value_and_grad_func(parse_func(dedent(text))))
    arrays = numbers(steps, 2, 3), numbers(3, 5), numbers(5, 5), numbers(5)
    agrees(func, *arrays)
    if steps == 4:
        assert products_in_loops(func) == 6
        assert products_in_loops(lift_products(func)) == 2  # h @ u, and its cotangent by h


def OPTIMIZE_HALF(func: Func) -> Func:  # noqa: N802 - a pipeline
    """The function before the pass."""
    for name, each in OPTIMIZE.passes.items():
        if name == "lift_products":
            break
        if name != "unpack_small_arrays":
            func = each(func)
    return func


def test_outer_products_of_vectors() -> None:
    text = """
        func @f(%x: f64[4,30], %u: f64[30,30]) -> f64[] {
          %h: f64[30] = for %k in 0..4 carry (%c: f64[30] = 0.5) {
            %row: f64[30] = gather %x, %k
            %q: f64[30] = matmul %c, %u
            %s: f64[30] = add %row, %q
            %n: f64[30] = tanh %s
            yield %n
          }
          %z: f64[] = sum %h {axes=[0]}
          return %z
        }
        """
    func = OPTIMIZE_HALF(value_and_grad_func(parse_func(dedent(text))))
    agrees(func, numbers(4, 30), numbers(30, 30))
    assert products_in_loops(lift_products(func)) == products_in_loops(func) - 1


@pytest.mark.parametrize("order", ["%r, %s, %t", "%t, %s, %r", "%s, %r, %t"])
def test_products_of_products_that_are_collected(order: str) -> None:
    """The operands of a product after the loop exist before it, whatever the order of the carries."""
    kinds = {"%r": "f64[3,5]", "%s": "f64[4,2,5]", "%t": "f64[4,2,6]"}
    following = {"%r": "%total.1", "%s": "%ps", "%t": "%qs"}
    params = {"%r": "%total", "%s": "%pp", "%t": "%qq"}
    names = order.split(", ")
    results = ", ".join(f"{n}: {kinds[n]}" for n in names)
    carries = ", ".join(f"{params[n]}: {kinds[n]} = 0.0" for n in names)
    func = parse_func(
        dedent(f"""
        func @f(%x: f64[4,2,3], %y: f64[4,2,5], %v: f64[5,5], %w: f64[5,6]) -> (f64[3,5], f64[4,2,5], f64[4,2,6]) {{
          {results}, %z: f64[2,5] = for %k in 0..4 carry ({carries}, %c: f64[2,5] = 0.3) {{
            %row: f64[2,3] = gather %x, %k
            %other: f64[2,5] = gather %y, %k
            %n: f64[2,5] = mul %c, %other
            %p: f64[2,5] = matmul %n, %v
            %q: f64[2,6] = matmul %p, %w
            %ps: f64[4,2,5] = scatter_add %pp, %p, %k
            %qs: f64[4,2,6] = scatter_add %qq, %q, %k
            %turned: f64[3,2] = transpose %row {{axes=[1, 0]}}
            %g: f64[3,5] = matmul %turned, %p
            %total.1: f64[3,5] = add %total, %g
            yield {", ".join(following[n] for n in names)}, %n
          }}
          return %r, %s, %t
        }}
        """)
    )
    agrees(func, numbers(4, 2, 3), numbers(4, 2, 5), numbers(5, 5), numbers(5, 6))
    assert products_in_loops(lift_products(func)) <= 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for %k in 0..4", "for %k in 1..4"),  # a row is not read
        ("gather %x, %k", "gather %x, 2:i64[]"),
        ("matmul %row, %w", "matmul %row, %v"),
        ("for %k in 0..4", "for %k in 0..%m"),
    ],
)
def test_other_products_stay(old: str, new: str) -> None:
    text = BEFORE.replace("%w: f64[3,5])", "%w: f64[3,5], %m: i64[])").replace(old, new)
    if "%v" in new:
        made = ["%y: f64[] = cast %k", "%z: f64[3,5] = broadcast %y", "%v: f64[3,5] = mul %w, %z", "%p:"]
        text = text.replace("%p:", "\n        ".join(made))
    leaves(lift_products, text)


def test_a_total_that_the_loop_reads_stays() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[4,2,3], %w: f64[2,5]) -> f64[3,5] {
          %r: f64[3,5] = for %k in 0..4 carry (%total: f64[3,5] = 0.0) {
            %row: f64[2,3] = gather %x, %k
            %half: f64[3,5] = mul %total, 0.5
            %t: f64[3,2] = transpose %row {axes=[1, 0]}
            %n: f64[2,5] = exp %w
            %p: f64[3,5] = matmul %t, %n
            %next: f64[3,5] = add %half, %p
            yield %next
          }
          return %r
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_random_programs_keep_their_meaning(random: Random) -> None:
    keeps_meaning(lift_products, random)


def test_products_of_matrices_with_several_columns_that_are_not_transposed_stay() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[6,4,4], %y: f64[6,4,5]) -> f64[4,5] {
          %r: f64[4,5] = for %k in 0..6 carry (%c: f64[4,5] = 0.0) {
            %a: f64[4,4] = gather %x, %k
            %b: f64[4,5] = gather %y, %k
            %p: f64[4,5] = matmul %a, %b
            %n: f64[4,5] = add %c, %p
            yield %n
          }
          return %r
        }
        """,
    )


def test_a_product_by_what_comes_from_outside_is_not_stored() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[6,4], %w: f64[3,4]) -> f64[3,5] {
          %v: f64[4,5] = fill {value=2.0}
          %r: f64[3,5] = for %k in 0..6 carry (%c: f64[3,5] = 0.0) {
            %u: f64[4,3] = transpose %w {axes=[1, 0]}
            %t: f64[3,4] = transpose %u {axes=[1, 0]}
            %p: f64[3,5] = matmul %t, %v
            %n: f64[3,5] = add %c, %p
            yield %n
          }
          return %r
        }
        """,
    )


def test_vectors_are_multiplied_inside() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[6,4], %y: f64[6,4]) -> f64[] {
          %r: f64[] = for %k in 0..6 carry (%c: f64[] = 0.0) {
            %a: f64[4] = gather %x, %k
            %b: f64[4] = gather %y, %k
            %p: f64[] = matmul %a, %b
            %n: f64[] = add %c, %p
            yield %n
          }
          return %r
        }
        """,
    )
