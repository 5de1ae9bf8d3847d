"""Concatenated views that only elementwise statements read are read in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import adjit as aj
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.passes.fusion.joins import pad_joined_views
from tests.passes.checks import leaves, rewrites, same_bits

RNG = np.random.default_rng(0)


def test_a_rolled_array() -> None:
    rewrites(
        pad_joined_views,
        """
        func @f(%x: f64[300]) -> f64[300] {
          %a: f64[1] = slice %x {starts=[299], stops=[300], steps=[1]}
          %b: f64[299] = slice %x {starts=[0], stops=[299], steps=[1]}
          %c: f64[300] = concatenate %a, %b {axis=0}
          %y: f64[300] = sub %x, %c
          return %y
        }
        """,
        """
        func @f(%x: f64[300]) -> f64[300] {
          %a: f64[1] = slice %x {starts=[299], stops=[300], steps=[1]}
          %b: f64[299] = slice %x {starts=[0], stops=[299], steps=[1]}
          %0: f64[300] = pad %a {low=[0], high=[299], interior=[0], value=-0.0}
          %1: f64[300] = pad %b {low=[1], high=[0], interior=[0], value=-0.0}
          %c: f64[300] = add %0, %1
          %y: f64[300] = sub %x, %c
          return %y
        }
        """,
    )


@pytest.mark.parametrize(
    ("size", "lines", "result"),
    [
        (300, ["%b: f64[600] = concatenate %x, %x {axis=0}"], "%b: f64[600]"),  # a result
        (300, ["%a: f64[300] = neg %x", "%b: f64[600] = concatenate %a, %x {axis=0}", "%c: f64[600] = neg %b"], "%c: f64[600]"),  # computed
        (300, ["%b: f64[600] = concatenate %x, %x {axis=0}", "%c: f64[600] = cumsum %b {axis=0}"], "%c: f64[600]"),  # not elementwise
        (3, ["%b: f64[6] = concatenate %x, %x {axis=0}", "%c: f64[6] = neg %b"], "%c: f64[6]"),  # small
        (300, ["%b: f64[600] = concatenate %x, 1.0:f64[300] {axis=0}", "%c: f64[600] = neg %b"], "%c: f64[600]"),  # a number
        (
            300,
            [
                "%e: f64[0] = slice %x {starts=[0], stops=[0], steps=[1]}",
                "%b: f64[600] = concatenate %x, %e, %x {axis=0}",
                "%c: f64[600] = neg %b",
            ],
            "%c: f64[600]",
        ),  # no elements
    ],
)
def test_what_stays(size: int, lines: list[str], result: str) -> None:
    name, _, type = result.partition(": ")
    body = "\n".join(f"  {line}" for line in lines)
    leaves(pad_joined_views, f"func @f(%x: f64[{size}]) -> {type} {{\n{body}\n  return {name}\n}}\n")


ROLLED: dict[str, Callable[[Any], Any]] = {
    "forwards": lambda x: -np.roll(x, 3, 0),
    "both ways": lambda x: np.roll(x, 1, 1) - np.roll(x, -2, 1),
    "two axes": lambda x: np.roll(x, 1, 0) * np.roll(x, -1, 1),
    "both axes at once": lambda x: -np.roll(x, (1, 2), (0, 1)),
    "three parts": lambda x: -np.concatenate([x[-2:], x[4:-3], x[:5]]),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ROLLED)
def test_every_bit_is_kept(name: str, dtype: str) -> None:
    x = RNG.choice(np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]), (33, 37)).astype(dtype)
    with np.errstate(invalid="ignore"):
        wanted = ROLLED[name](x)
    assert same_bits(np.asarray(aj.function(ROLLED[name])(x)), wanted)


@pytest.mark.parametrize("steps", [3, 200])
@pytest.mark.one_size("parts of arrays of known sizes are not joined")
def test_a_loop_over_a_periodic_grid(steps: int) -> None:
    """No copies, and of each iteration only the state is saved, unrolled or not."""

    def energy(u: Any) -> Any:
        for _ in range(steps):
            around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
            u = u + 0.1 * (around - 4.0 * u) * (1.0 - u * u)
        return np.sum(u * u)

    u = 0.1 * RNG.normal(size=(20, 24))
    f = aj.function(aj.value_and_grad(energy))
    text = f.inspect(u).optimized
    assert "concatenate" not in text
    assert text.count(": stack<f64[20,24]>") == (steps > 100)
    value, gradient = f(u)
    assert_allclose(value, energy(u))
    d = RNG.normal(size=u.shape)
    assert_allclose(np.sum(np.asarray(gradient) * d), (energy(u + 1e-6 * d) - energy(u - 1e-6 * d)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(("count", "pads"), [(9, 18), (11, 0)])
def test_few_boxes_or_none(count: int, pads: int) -> None:
    """Every array that is rolled by another number cuts the loop at another place, and every box has its own code."""
    lines, total = [], "%x"
    for k in range(1, count + 1):
        lines += [
            f"%a{k}: f64[{1000 - k}] = slice %x {{starts=[{k}], stops=[1000], steps=[1]}}",
            f"%b{k}: f64[{k}] = slice %x {{starts=[0], stops=[{k}], steps=[1]}}",
            f"%c{k}: f64[1000] = concatenate %a{k}, %b{k} {{axis=0}}",
            f"%s{k}: f64[1000] = add {total}, %c{k}",
        ]
        total = f"%s{k}"
    func = parse_func("\n".join(["func @f(%x: f64[1000]) -> f64[1000] {", *lines, f"return {total}", "}\n"]))
    assert print_func(pad_joined_views(func)).count("= pad ") == pads
