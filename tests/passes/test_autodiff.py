"""Forward mode, reverse mode as a pass, and the split into phases."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from adjit.ir.errors import GradientError
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.autodiff.forward import jvp_func
from adjit.passes.autodiff.split import split
from adjit.passes.simplify.dce import eliminate_dead_code
from adjit.passes.simplify.simplify import simplify
from tests.passes.checks import rewrites

LOSS = """
func @loss(%w: f64[3,4], %x: f64[4], %t: f64[3]) -> f64[] {
  %h: f64[3] = matmul %w, %x !model.py:12:9
  %y: f64[3] = tanh %h !model.py:12:5
  %e: f64[3] = sub %y, %t !model.py:13:9
  %q: f64[3] = mul %e, %e !model.py:14:10
  %l: f64[] = sum %q {axes=[0]} !model.py:14:5
  return %l
}
"""


def test_tangents_follow_the_statements() -> None:
    rewrites(
        jvp_func,
        """
        func @f(%x: f64[3], %n: i64[3]) -> (f64[3], i64[3]) {
          %y: f64[3] = exp %x
          %z: f64[3] = sub %y, %x
          return %z, %n
        }
        """,
        """
        func @f.jvp(%x: f64[3], %n: i64[3], %x.dot: f64[3]) -> (f64[3], i64[3], f64[3]) {
          %y: f64[3] = exp %x
          %y.dot: f64[3] = mul %x.dot, %y
          %z: f64[3] = sub %y, %x
          %0: f64[3] = neg %x.dot
          %z.dot: f64[3] = add %y.dot, %0
          return %z, %n, %z.dot
        }
        """,
        near=0,  # it returns tangents as well
    )


def test_adjoints_keep_location_and_name() -> None:
    func = eliminate_dead_code(simplify(value_and_grad_func(parse_func(LOSS), wrt=[0])))
    verify(func)
    text = print_func(func)
    assert "%w.bar: f64[3,4]" in text
    assert "%h.bar: f64[3] = mul" in text
    backward = [s for s in func.stmts if s.phase == "backward"]
    assert backward
    assert all(s.origin is not None and s.location == s.origin.location for s in backward)


def loss_arrays() -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    numbers = np.random.default_rng(0)
    return [numbers.normal(size=s) for s in ((3, 4), (4,), (3,))]


def test_gradient_and_tangent_agree() -> None:
    func, arrays = parse_func(LOSS), loss_arrays()
    gradients = run(value_and_grad_func(func), *arrays)[1:]
    along = [np.cos(a) for a in arrays]
    tangent = run(jvp_func(func), *arrays, *along)[1]
    np.testing.assert_allclose(tangent, sum(np.sum(g * v) for g, v in zip(gradients, along)), rtol=1e-12)


ACCUMULATED = """
    func @f(%c: f64[2,4], %a: f64[2,3], %b: f64[3,4]) -> f64[] {
      %y: f64[2,4] = matmul_add %c, %a, %b
      %z: f64[2,4] = tanh %y
      %s: f64[] = sum %z {axes=[0, 1]}
      return %s
    }
    """


def test_a_product_that_is_accumulated_has_the_derivatives_of_a_sum() -> None:
    fused = parse_func(dedent(ACCUMULATED))
    apart = parse_func(
        dedent(ACCUMULATED.replace("%y: f64[2,4] = matmul_add %c, %a, %b", "%p: f64[2,4] = matmul %a, %b\n      %y: f64[2,4] = add %c, %p"))
    )
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(p.type.shape) for p in fused.params]
    for ours, theirs in zip(run(value_and_grad_func(fused), *arrays), run(value_and_grad_func(apart), *arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    tangents = [rng.standard_normal(p.type.shape) for p in fused.params]
    for ours, theirs in zip(run(jvp_func(fused), *arrays, *tangents), run(jvp_func(apart), *arrays, *tangents), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_an_unconnected_parameter_has_gradient_zero() -> None:
    func = value_and_grad_func(parse_func("func @f(%x: f64[], %y: f64[2]) -> f64[] {\n  return %x\n}\n"))
    assert "return %x, 1.0, 0.0" in print_func(func)


@pytest.mark.parametrize(
    ("text", "wrt", "message"),
    [
        ("func @f(%n: i64[]) -> i64[] {\n  return %n\n}\n", None, "first result is i64"),
        ("func @f(%n: i64[], %x: f64[]) -> f64[] {\n  return %x\n}\n", [0], "parameter 0 is i64"),
        ("func @f(%x: f64[]) -> f64[] {\n  return %x\n}\n", [3], "no parameter 3 to differentiate by"),
        ("func @f(%x: f64[]) -> () {\n  return\n}\n", None, "is missing"),
    ],
)
def test_gradients_that_cannot_be_requested(text: str, wrt: list[int] | None, message: str) -> None:
    with pytest.raises(GradientError, match=message):
        value_and_grad_func(parse_func(text), wrt)


def joint(text: str) -> tuple[Func, Func | None]:
    func = parse_func(dedent(text))
    verify(func)
    fwd, bwd = split(func)
    verify(fwd)
    if bwd is not None:
        verify(bwd)
    return fwd, bwd


def test_the_forward_part_saves_what_the_backward_part_is_given() -> None:
    fwd, bwd = joint(
        """
        func @step(%w: f64[3], %x: f64[3]) -> (f64[], f64[3]) {
          %y: f64[3] = exp %x
          %p: f64[3] = mul %y, %w
          %l: f64[] = sum %p {axes=[0]}
        backward:
          %w.bar: f64[3] = mul %y, 2.0
        forward:
          %new: f64[3] = sub %w, %w.bar
          return %l, %w.bar updating %w = %new
        }
        """
    )
    assert print_func(fwd) == dedent(
        """\
        func @step.fwd(%w: f64[3], %x: f64[3]) -> f64[] saving (f64[3]) {
          %y: f64[3] = exp %x
          %p: f64[3] = mul %y, %w
          %l: f64[] = sum %p {axes=[0]}
          return %l saving %y
        }
        """
    )
    assert bwd is not None
    assert print_func(bwd) == dedent(
        """\
        func @step.bwd() given (%w: f64[3], %y: f64[3]) -> f64[3] {
        backward:
          %w.bar: f64[3] = mul %y, 2.0
        forward:
          %new: f64[3] = sub %w, %w.bar
          return %w.bar updating %w = %new
        }
        """
    )


def test_an_update_waits_for_the_last_reader_of_the_old_value() -> None:
    fwd, bwd = joint(
        """
        func @step(%w: f64[], %n: f64[]) -> f64[] {
          %next: f64[] = add %w, 1.0
          %m: f64[] = add %n, 1.0
        backward:
          %g: f64[] = mul %w, 3.0
          return %g updating %w = %next, %n = %m
        }
        """
    )
    assert bwd is not None
    assert [param.name for param, _ in fwd.updates] == ["n"]
    assert [param.name for param, _ in bwd.updates] == ["w"]
    assert [v.name for v in bwd.given] == ["w", "next"]


def test_effects_keep_their_order_and_stay_forward_until_one_is_backward() -> None:
    fwd, bwd = joint(
        """
        func @step(%w: f64[]) -> f64[] {
          print %w {template="first {}"}
          %y: f64[] = exp %w
        backward:
          %g: f64[] = mul %y, 3.0
          print %g {template="second {}"}
        forward:
          print %w {template="third {}"}
          return %g
        }
        """
    )
    assert bwd is not None
    printed = [[word for word in ("first", "second", "third") if word in print_func(part)] for part in (fwd, bwd)]
    assert printed == [["first"], ["second", "third"]]


def test_without_a_backward_statement_there_is_no_backward_part() -> None:
    fwd, bwd = joint(LOSS)
    assert bwd is None
    assert print_func(fwd).startswith("func @loss.fwd(")


def test_the_halves_compute_what_the_whole_does() -> None:
    whole, arrays = value_and_grad_func(parse_func(LOSS)), loss_arrays()
    fwd, bwd = split(whole)
    assert bwd is not None
    outputs = run(fwd, *arrays)
    saved = dict(zip(map(id, fwd.block.saving), outputs[len(fwd.results) :]))
    saved |= dict(zip(map(id, fwd.params), arrays))
    backward = run(bwd, *(saved[id(v)] for v in bwd.params))
    for got, want in zip((*outputs[: len(fwd.results)], *backward), run(whole, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)
