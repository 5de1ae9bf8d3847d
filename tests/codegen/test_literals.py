"""Numbers in a table: kernels that differ only in numbers are compiled once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import adjit as aj
from adjit.codegen.kernels import region
from adjit.codegen.loops.boxes import add_boxes
from adjit.ir.ops.linalg import Matmul


@aj.do_not_convert  # or the loop would stay a loop
def chain(x: Any, length: int) -> Any:
    """The same four ops repeatedly, with different numbers each time."""
    for k in range(length // 4):
        x = np.sin(x * (0.4 + 0.0005 * k) + 0.01 * k) - 0.003 * k
    return x


def kernels(f: Any, *args: Any) -> int:
    return len(re.findall(r"^define hidden void @k\d+\(", f.inspect(*args).llvm, re.MULTILINE))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_repetitions_are_compiled_once(dtype: str) -> None:
    x = np.linspace(-1.0, 1.0, 64).astype(dtype)
    f = aj.function(lambda x: chain(x, 4000))
    assert_allclose(f(x), chain(x, 4000), rtol=1e-3 if dtype == "float32" else 1e-9)
    assert kernels(f, x) < 8, "some forty groups of 96 statements"
    assert "@literals" in f.inspect(x).llvm


def test_gradients_and_numbers_that_stay() -> None:
    def loss(x: Any) -> Any:
        return np.sum(chain(x, 2000) * 2.0 + 1.0)

    x = np.linspace(-1.0, 1.0, 50)
    assert_allclose(aj.function(aj.grad(loss))(x), aj.grad(loss)(x), rtol=1e-7, atol=1e-12)


def test_small_programs_have_no_table() -> None:
    x = np.zeros(64)
    assert "@literals" not in aj.function(lambda x: chain(x, 100)).inspect(x).llvm


def test_chunks_on_several_threads_read_the_table() -> None:
    x = np.random.default_rng(0).normal(size=60_000).astype("float32")
    one, three = (aj.function(lambda x: chain(x, 1200), threads=n)(x) for n in (1, 3))
    assert_array_equal(one, three)
    assert_allclose(one, chain(x, 1200), rtol=1e-3, atol=1e-4)


def test_equal_products_are_emitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of equal layers, except that every third has other strides and every fifth another activation."""
    emitted = []
    lower = Matmul.lower
    monkeypatch.setattr(Matmul, "lower", lambda self, *args: emitted.append(1) or lower(self, *args))
    rng = np.random.default_rng(1)
    params = [(rng.normal(0.0, 0.4, (6, 6)), rng.normal(size=6)) for _ in range(150)]

    @aj.do_not_convert
    def loss(params: Any, x: Any) -> Any:
        for k, (w, b) in enumerate(params):
            h = x @ (w.T if k % 3 == 0 else w) + b
            x = np.tanh(h) if k % 5 else np.sin(h) * x
        return np.sum(x)

    x = rng.normal(size=(5, 6))
    found, wanted = aj.function(aj.grad(loss))(params, x), aj.grad(loss)(params, x)
    assert len(emitted) < 30, "450 products"
    for a, b in zip(found, wanted, strict=True):
        for mine, its in zip(a, b, strict=True):
            assert_allclose(mine, its, rtol=1e-9, atol=1e-12)


def test_equal_stencils_are_emitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unrolled relaxation steps: their kernels are cut into boxes at the borders, and are the same from step to step."""
    emitted = []
    monkeypatch.setattr(region, "add_boxes", lambda *args: emitted.append(1) or add_boxes(*args))
    rng = np.random.default_rng(2)
    source, target = rng.normal(size=(20, 24)), rng.normal(size=(20, 24))

    @aj.do_not_convert
    def loss(x: Any) -> Any:
        for k in range(40):
            around = np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1)
            x = np.tanh((around - source) / (4.0 + 0.01 * k))
        return np.sum((x - target) ** 2)

    f, x = aj.function(aj.value_and_grad(loss)), rng.normal(size=(20, 24))
    for mine, its in zip(f(x), aj.value_and_grad(loss)(x), strict=True):
        assert_allclose(mine, its, rtol=1e-9, atol=1e-12)
    assert 0 < len(emitted) < 10, "80 steps, there and back"
