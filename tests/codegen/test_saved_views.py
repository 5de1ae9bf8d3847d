"""Loops that save a value and views of it, in any order: only the value itself is computed on its stack, and views are copied."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.compile import compile_func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.memory.buffers import plan_buffers

VIEWS = {
    "value": ("f64[2,8]", "%a"),
    "transposed": ("f64[8,2]", "transpose %a {axes=[1, 0]}"),
    "part": ("f64[1,8]", "slice %a {starts=[0, 0], stops=[1, 8], steps=[1, 1]}"),
    "last part": ("f64[1,8]", "slice %a {starts=[1, 0], stops=[2, 8], steps=[1, 1]}"),
    "flipped": ("f64[2,8]", "flip %a {axes=[1]}"),
    "repeated": ("f64[3,2,8]", "broadcast %a"),
    "reshaped": ("f64[16]", "reshape %a"),
}
MAKERS = {
    "product": "%a: f64[2,8] = matmul %c, %w",
    "kernel": "%a: f64[2,8] = fuse {\n      %m: f64[2,8] = mul %c, 1.5\n      yield %m\n    }",
}


def program(maker: str, saved: tuple[str, ...]) -> str:
    """A loop that saves these, and gives all that it has saved."""
    names = [f"%v{k}" if VIEWS[view][1] != "%a" else "%a" for k, view in enumerate(saved)]
    made = "".join(f"    {name}: {VIEWS[view][0]} = {VIEWS[view][1]}\n" for name, view in zip(names, saved, strict=True) if name != "%a")
    arrays = [VIEWS[view][0].replace("[", "[3,") for view in saved]
    stacks = ", ".join(f"%s{k}: stack<{VIEWS[view][0]}>" for k, view in enumerate(saved))
    read = "".join(f"  %o{k}: {type} = stack_array %s{k} {{count=3}}\n" for k, type in enumerate(arrays))
    return (
        f"func @f(%x: f64[2,8], %w: f64[8,8]) -> ({', '.join(['f64[2,8]', *arrays])}) {{\n"
        f"  %r: f64[2,8], {stacks} = for %k in 0..3 carry (%c: f64[2,8] = %x) {{\n"
        f"    {MAKERS[maker]}\n{made}"
        f"    %n: f64[2,8] = matmul %a, %w\n    yield %n saving {', '.join(names)}\n  }}\n"
        f"{read}  return {', '.join(['%r', *(f'%o{k}' for k in range(len(saved)))])}\n}}\n"
    )


PAIRS = [pair for view in VIEWS if view != "value" for pair in (("value", view), (view, "value"))]
TRIPLES = [*permutations(["value", "transposed", "part"]), ("value", "value", "flipped")]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("saved", [*PAIRS, *TRIPLES], ids=", ".join)
def test_what_is_saved_beside_views_of_it(maker: str, saved: tuple[str, ...]) -> None:
    func = plan_buffers(parse_func(program(maker, saved)))
    verify(func)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=p.type.shape) for p in func.params]
    for got, want in zip(compile_func(func)(arrays), run(func, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_gradient_of_a_loop_that_saves_a_factor_and_its_transpose() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4))

    def loss(y: np.ndarray) -> np.ndarray:
        for _ in aj.range(2):
            y = np.tanh(y * 0.7 + np.sum(np.einsum("abc,ade,afg->fd", y, y, y)) * 0.001)
        return np.sum(np.sin(y))

    np.testing.assert_allclose(aj.function(aj.grad(loss))(x), aj.grad(loss)(aj.tensor(x)), rtol=1e-12)
