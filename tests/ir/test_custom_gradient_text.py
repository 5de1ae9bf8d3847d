"""Custom gradients in the text of the IR: printed with their derivatives, and parsed to functions with the same derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import GradientError, ParseError, VerifyError
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.specialize import specialize
from adjit.ir.verifier import verify
from adjit.passes.autodiff.forward import jvp_func
from adjit.runtime.executable import pullback_func

TEXT = """func @f(%x: f64[]) -> f64[] {
  %e: f64[] = exp %x
  %y: f64[] = custom_gradient %x, %e, %e {function="thrice", inputs=1, values=1, pulled=[0]} pull (%e: f64[], %y.bar: f64[]) {
    %0: f64[] = mul %y.bar, %e
    %1: f64[] = mul %0, 3.0
    yield %1
  }
  return %y
}
"""


@aj.custom_gradient
def clever(x: Any, y: Any) -> Any:
    e = np.exp(x)

    def gradient(u: Any, v: Any) -> Any:
        scale = aj.cond(y > 0, lambda: 2.0 * u, lambda: u)
        return scale * e + v, None

    return (e * y, x + 1.0), gradient


@aj.custom_jvp
def bent(x: Any) -> Any:
    return np.tanh(x)


@bent.defjvp
def bent_jvp(primals: Any, tangents: Any) -> Any:
    y = bent(*primals)
    return y, (1.0 - y * y) * tangents[0]


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda x: clever(x, x)[0] * clever(x * x, 3.0)[1], 0.5),
        (bent, 0.5),
        (aj.grad(bent), 0.5),
        (aj.vmap(lambda x: clever(x, x)[0]), np.ones(3)),
        (aj.checkpoint(bent), 0.5),
    ],
    ids=["several", "with its forward rule", "its gradient", "batched", "in a region"],
)
def test_round_trip(fn: Any, x: Any) -> None:
    text = str(aj.function(fn).inspect(x).traced)
    assert "custom_gradient" in text
    assert print_func(verify(parse_func(text))) == text


def test_parsed_functions_differentiate() -> None:
    func = verify(parse_func(TEXT))
    assert print_func(func) == TEXT
    pull, _ = pullback_func(func, (True,), (True,))
    assert run(pull, np.array(0.5), np.array(2.0))[0] == pytest.approx(6.0 * np.exp(0.5))
    assert run(jvp_func(func), np.array(0.5), np.array(2.0))[1] == pytest.approx(6.0 * np.exp(0.5))


def test_a_missing_value_raises() -> None:
    head, _, tail = TEXT.partition(" pull (")
    func = verify(parse_func(head + " later\n" + tail[tail.index("  return") :]))
    assert run(func, np.array(0.0))[0] == 1.0
    with pytest.raises(GradientError, match="thrice: its derivative had not been built"):
        pullback_func(func, (True,), (True,))


@pytest.mark.parametrize(
    ("before", "after", "error", "message"),
    [
        (" pull (%e: f64[], %y.bar: f64[])", "", ParseError, "pull"),
        ("%y.bar: f64[])", "%y.bar: f64[2])", VerifyError, "must take"),
        ("pull (%e: f64[],", "pull (%e: f32[],", ParseError, r"%e is f64\[\] around this block"),
        ("yield %1", "yield %1, %1", VerifyError, "must take"),
    ],
)
def test_bad_text(before: str, after: str, error: type[Exception], message: str) -> None:
    assert before in TEXT
    with pytest.raises(error, match=message):
        verify(parse_func(TEXT.replace(before, after)))


def test_custom_gradients_for_all_sizes_are_specialised() -> None:
    text = """func @f[B=4](%x: f64[B]) -> f64[B] {
  %e: f64[B] = exp %x
  %y: f64[B] = custom_gradient %x, %e, %e {function="thrice", inputs=1, values=1, pulled=[0]} pull (%e: f64[B], %y.bar: f64[B]) {
    %0: f64[B] = mul %y.bar, %e
    %1: f64[B] = mul %0, 3.0
    yield %1
  }
  return %y
}
"""
    func = parse_func(text)
    verify(func)
    static = specialize(func, {"B": 3})
    assert print_func(static) == text.replace("[B=4]", "").replace("[B]", "[3]")
    x = np.arange(3.0)
    pull, _ = pullback_func(static, (True,), (True,))
    np.testing.assert_allclose(run(pull, x, np.ones(3))[0], 3.0 * np.exp(x))
