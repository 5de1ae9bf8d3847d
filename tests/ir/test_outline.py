"""Texts of long functions: folded lines that are parsed again, and outlines without repeated stretches."""

from __future__ import annotations

import re

import numpy as np

import adjit as aj
from adjit.ir.outline import Repeat, outline, repeats
from adjit.ir.parser import parse_func
from adjit.ir.printer import WIDTH, folded, print_func


def network(layers: int, width: int = 3) -> str:
    """A function of many parameters, with the same statements for each layer."""
    params = [f"%w{k}: f32[{width},{width}], %b{k}: f32[{width}]" for k in range(layers)]
    stmts, x = [], "%x"
    for k in range(layers):
        stmts += [
            f"  %p{k}: f32[{width}] = matmul %w{k}, {x} !2:1",
            f"  %s{k}: f32[{width}] = add %p{k}, %b{k} !3:1",
            f"  %t{k}: f32[{width}] = tanh %s{k} !4:1",
            f"  %y{k}: f32[{width}] = mul %t{k}, 2.0 !5:1",
        ]
        x = f"%y{k}"
    updates = ", ".join(f"%b{k} = %y{k}" for k in range(layers))
    head = f"func @net(%x: f32[{width}], {', '.join(params)}) -> f32[{width}] !net.py:1:1 {{"
    return "\n".join([head, *stmts, f"  %l: f32[{width}] = exp {x} !6:1", f"  return %l updating {updates}", "}"]) + "\n"


def test_long_lines_are_folded_and_parsed_again() -> None:
    unfolded = network(12)
    func = parse_func(unfolded)
    text = print_func(func)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert len(text.splitlines()) > len(unfolded.splitlines())
    assert print_func(parse_func(text)) == text
    assert re.sub(r",\n +", ", ", text) == unfolded


def test_complex_literals_are_folded_like_other_operands() -> None:
    carries = ", ".join(f"%z{k}: c128[] = ({k}.0, -1.0)" for k in range(12))
    results, yields = (", ".join(f"%{name}{k}{type}" for k in range(12)) for name, type in (("r", ": c128[]"), ("z", "")))
    text = f"func @f() -> c128[] {{\n  {results} = for %k in 0..3 carry ({carries}) {{\n    yield {yields}\n  }}\n  return %r0\n}}\n"
    once = print_func(parse_func(text))
    assert re.search(r"\(\d+\.0,\n", once)
    assert print_func(parse_func(once)) == once


def test_statements_that_cannot_be_folded_stay() -> None:
    for line in ("x" * 200, '  call "a, b, ' + "c, " * 60 + '"', "  op {names=[" + "1, " * 60 + "1]}"):
        assert folded(line) == line
    assert folded("short, line") == "short, line"


def test_repeated_layers_are_printed_once() -> None:
    text = outline(parse_func(network(12)))
    assert "  # 11 more times the same 4 statements on other values, up to %y11" in text
    assert "%y0: " in text
    assert "%t1: " not in text
    assert "  %l: f32[3] = exp %y11 !6:1" in text
    assert outline(parse_func(network(1))) == network(1)


def test_stretches() -> None:
    assert list(repeats("aabcdeabcdeabcdef")) == [Repeat(1, 5, 3)]
    assert list(repeats("abcdabceabcdabce" + "xyzwxyzw")) == [Repeat(0, 8, 2), Repeat(16, 4, 2)]
    assert not list(repeats("abababab"[:6]))
    assert list(repeats("abababab")) == [Repeat(0, 4, 2)]
    assert not list(repeats(""))


def test_inspection_of_a_deep_network() -> None:
    model = aj.nn.Sequential([aj.nn.Dense(4, activation="tanh") for _ in range(10)])
    x = np.ones((2, 4), "f4")
    model(x)

    @aj.function
    def step(x):
        with aj.GradientTape() as tape:
            loss = np.sum(model(x) ** 2)
        for v, d in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True):
            v.assign_sub(0.1 * d)
        return loss

    found = step.inspect(x)
    assert max(map(len, str(found).splitlines())) <= WIDTH
    assert len(found.outline.splitlines()) < 0.5 * len((found.forward + found.backward).splitlines())
    assert found.outline.count("more times the same") >= 2
