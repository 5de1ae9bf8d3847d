"""Whole programs traced once for all sizes, with their derivatives, in native code: against the interpreter, at several sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.cache import image
from adjit.codegen.compile import compile_func
from adjit.codegen.native import Native
from adjit.ir.errors import NotGeneral
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.verifier import verify
from adjit.passes.pipeline import OPTIMIZE
from tests.runtime.test_dynamic import DISCRETE, PROGRAMS, general, summed

SQUARE = """
func @square[B=32](%x: f32[B]) -> f32[] {
  %a: f32[B,1] = reshape %x {shape=[B, 1]}
  %b: f32[1,B] = reshape %x {shape=[1, B]}
  %p: f32[B,B] = matmul %a, %b
  %q: f32[B,B] = matmul %p, %p
  %s: f32[] = sum %q {axes=[0, 1]}
  return %s
}
"""


def native_of(text: str) -> Native:
    func = parse_func(text)
    return compile_func(OPTIMIZE(func), traced=func)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_their_gradients(name: str) -> None:
    fn: Callable[..., Any] = PROGRAMS[name] if name in DISCRETE else aj.value_and_grad(summed(PROGRAMS[name]))
    program, found = general(fn, (np.random.default_rng(0).normal(size=(9, 4)),), [(0, 0)])
    assert not found.pins
    native = compile_func(OPTIMIZE(program.func), traced=program.func)
    captures = [np.array(c, order="C") for c in program.captures]
    for rows in (7, 2, 3, 300):
        if all(guard.holds({"B": rows}) for guard in found.guards):
            x = np.random.default_rng(rows).normal(size=(rows, 4))
            for got, wanted in zip(native([x, *captures]), run(program.func, x, *captures), strict=True):
                assert got.shape == wanted.shape
                np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)


def test_a_program_for_all_sizes_comes_back_from_the_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("ADJIT_CACHE", raising=False)
    func = parse_func(SQUARE)
    key = image.key_of(func, ("test",))
    assert key is not None
    compile_func(OPTIMIZE(func), key=key, traced=func)
    found = image.load(key)
    assert found is not None
    again = Native(func, found, list, compile_func(OPTIMIZE(func)).target, {})
    for n in (2, 50, 700):
        x = np.linspace(0.0, 0.1, n, dtype=np.float32)
        np.testing.assert_allclose(again([x])[0], np.sum(np.outer(x, x) @ np.outer(x, x)), rtol=1e-4)


def test_memory_that_cannot_exist_is_refused() -> None:
    """Bytes for [B,B] that do not fit in 64 bits: an error, before anything is written. The array repeats one element."""
    native = native_of(SQUARE)
    for n in (10**8, 3 * 10**9, 2**33):
        with pytest.raises(MemoryError):
            native([np.broadcast_to(np.float32(0), (n,))])
    assert native([np.ones(3, np.float32)])[0] == 27


def test_ops_without_code_for_all_sizes_raise() -> None:
    with pytest.raises(NotGeneral, match="print"):
        native_of('func @f[B=32](%x: f32[B]) -> f32[B] {\nprint %x {template="{}"}\n%y: f32[B] = add %x, 1.0\nreturn %y\n}')


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_planned_program(name: str) -> None:
    """With its buffers, offsets and strides, which may depend on sizes: printed, parsed and verified."""
    fn = PROGRAMS[name] if name in DISCRETE else aj.value_and_grad(summed(PROGRAMS[name]))
    axes = [(0, 0)] if name == "written" else [(0, 0), (0, 1)]  # the end of a row there is nothing for some lengths
    program, _ = general(fn, (np.random.default_rng(0).normal(size=(9, 4)),), axes)
    text = print_func(OPTIMIZE(program.func))
    again = parse_func(text)
    verify(again)
    assert print_func(again) == text


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(300, 5), (40, 3), (5, 3)])
def test_sums_over_parts_of_a_padded_array(shape: tuple[int, int], dynamic: bool) -> None:
    """The parts are also parts of the result, with gaps between their rows: chunks of them have no separate partial results."""

    def loss(x: Any) -> Any:
        return np.sum(np.sin((x[:, None] * x[None])[..., -1]))

    x = np.random.default_rng(0).normal(size=shape)
    last = x[:, -1]
    want = np.zeros(shape)
    want[:, -1] = 2 * np.cos(np.outer(last, last)) @ last
    np.testing.assert_allclose(aj.function(aj.grad(loss), dynamic=dynamic, threads=2)(x), want, atol=1e-11)
