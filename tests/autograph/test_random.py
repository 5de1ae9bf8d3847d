"""Random programs of nested branches, loops and jumps: plain Python = the traced IR, interpreted."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from adjit.ir.verifier import verify
from adjit.tracer.autograph.convert import convert
from adjit.tracer.autograph.items import range as rolled
from tests.tracer.running import run_program, trace

INPUTS = [(0.5, -1.0, 2.0, 3), (-0.75, 0.25, 0.1, 0), (1.5, 1.25, -2.0, 5)]
STATIC = [True, False]


class Writer:
    """Writes a function of three floats, an integer and a static flag. All loops end; all variables are assigned before they are read."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.counters = 0

    def function(self) -> str:
        body = list(self.block(3, False, self.random.randint(2, 5)))
        lines = ["def program(a, b, c, n, flag):", "    s = t = 0.0", *(f"    {line}" for line in body), "    return a, b, c + s * t"]
        return "\n".join(lines) + "\n"

    def block(self, depth: int, in_loop: bool, count: int | None = None) -> Iterator[str]:
        for _ in range(count or self.random.randint(1, 3)):
            yield from self.statement(depth, in_loop)

    def statement(self, depth: int, in_loop: bool) -> Iterator[str]:
        choices = [self.assign, self.assign]
        if depth:
            choices += [self.branch, self.branch, self.counted, self.conditional, self.jump]
        if depth and in_loop:
            choices += [self.jump, self.jump]
        yield from self.random.choice(choices)(depth, in_loop)

    def indented(self, lines: Iterator[str]) -> Iterator[str]:
        return (f"    {line}" for line in lines)

    # ---- statements

    def assign(self, depth: int, in_loop: bool) -> Iterator[str]:
        target = self.variable()
        match self.random.randint(0, 4):
            case 0:
                yield f"{target} += {self.expression()}"
            case 1:
                other = self.random.choice([v for v in "abcst" if v != target])
                yield f"{target}, {other} = {self.expression()}, {target} * 0.5"
            case 2:
                yield f"{target} = {self.expression()} if {self.condition()} else {self.expression()}"
            case _:
                yield f"{target} = {self.expression()}"

    def branch(self, depth: int, in_loop: bool) -> Iterator[str]:
        yield f"if {self.condition()}:"
        yield from self.indented(self.block(depth - 1, in_loop))
        if self.random.random() < 0.3:
            yield f"elif {self.condition()}:"
            yield from self.indented(self.block(depth - 1, in_loop))
        if self.random.random() < 0.5:
            yield "else:"
            yield from self.indented(self.block(depth - 1, in_loop))

    def counted(self, depth: int, in_loop: bool) -> Iterator[str]:
        self.counters += 1
        limit = self.random.choice(["range(n)", "range(2)", "rolled(3)", "range(n, 0, -2)", "rolled(1, n)", "(0.5, 2.0)"])
        yield f"for i{self.counters} in {limit}:"
        yield f"    {self.variable()} += i{self.counters} * 0.25"
        yield from self.loop_body(depth)

    def conditional(self, depth: int, in_loop: bool) -> Iterator[str]:
        self.counters += 1
        counter = f"k{self.counters}"
        yield f"{counter} = 0"
        tests = [f"{counter} < 3", f"{counter} < n and {self.condition()}", f"{self.condition()} and {counter} < 4", "True"]
        test = self.random.choice(tests)
        yield f"while {test}:"
        yield f"    {counter} += 1"
        if test == "True":
            yield f"    if {counter} > 3 or {self.condition()}:"
            yield "        break"
        yield from self.loop_body(depth)

    def loop_body(self, depth: int) -> Iterator[str]:
        yield from self.indented(self.block(depth - 1, True))
        if self.random.random() < 0.25:
            yield "else:"
            yield from self.indented(self.block(depth - 1, False))

    def jump(self, depth: int, in_loop: bool) -> Iterator[str]:
        yield f"if {self.condition()}:"
        if self.random.random() < 0.5:
            yield f"    {self.variable()} = {self.expression()}"
        leave = f"return {self.expression()}, {self.variable()}, 1.0"
        yield f"    {self.random.choice(['break', 'continue', leave] if in_loop else [leave])}"

    # ---- expressions

    def variable(self) -> str:
        return self.random.choice("abcst")

    def expression(self) -> str:
        a, b = self.variable(), self.variable()
        forms = [f"{a} * 0.5 + {b}", f"np.sin({a}) - {b} * 0.25", f"{a} - 0.125", f"min({a}, {b})", f"abs({a}) * 0.75", f"-{a}", "1.5"]
        return self.random.choice(forms)

    def condition(self) -> str:
        a, b = self.variable(), self.variable()
        forms = [
            f"{a} > {b}", f"{a} < 0.5", f"not {a} > {b}", f"{a} < 1 and {b} > -1", f"{a} > 1 or {b} < 0", "flag", f"flag and {a} > 0",
            f"-1 < {a} < 1", "n > 2",
        ]  # fmt: skip
        return f"({self.random.choice(forms)})"


class ListWriter(Writer):
    """Programs that store values in a list. The maximum trip count of loops is known, since it determines the capacity of the list."""

    def function(self) -> str:
        body = list(self.block(3, False, self.random.randint(2, 5)))
        lines = ["def program(a, b, c, n, flag):", "    s = t = 0.0", "    ys = [a]", *(f"    {line}" for line in body)]
        lines += ["    for y in ys:", "        s = 0.5 * s + y * t", "    return a + ys[-1], b + sum(ys), c + s * len(ys)"]
        return "\n".join(lines) + "\n"

    def statement(self, depth: int, in_loop: bool) -> Iterator[str]:
        if self.random.random() < 0.4:
            yield self.random.choice([
                f"ys.append({self.expression()})", f"ys.append({self.expression()})", f"ys += [{self.variable()}, {self.expression()}]",
                f"{self.variable()} = ys[-1]", f"{self.variable()} = ys[len(ys) // 2]", f"ys[0] = {self.expression()}",
                f"{self.variable()} = sum(ys) * 0.25 + len(ys)", f"{self.variable()} = max(ys) if len(ys) > 2 else ys[0]",
            ])  # fmt: skip
        else:
            yield from super().statement(depth, in_loop)

    def counted(self, depth: int, in_loop: bool) -> Iterator[str]:
        self.counters += 1
        yield f"for i{self.counters} in {self.random.choice(['range(3)', 'range(2)', 'rolled(3)', 'rolled(4)', '(0.5, 2.0)'])}:"
        yield f"    {self.variable()} += i{self.counters} * 0.25"
        yield from self.loop_body(depth)

    conditional = counted


def compiled(source: str, seed: int) -> Callable[..., Any]:
    """The function, with its source where Python's own tools find it."""
    name = f"<random program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"np": np, "rolled": rolled, "__name__": "random_programs"}
    exec(compile(source, name, "exec"), namespace)
    function: Callable[..., Any] = namespace["program"]
    return function


def check(seed: int, writer: type[Writer] = Writer) -> None:
    source = writer(seed).function()
    function = compiled(source, seed)
    for flag in STATIC:
        program = trace(convert(function), *INPUTS[0], flag)
        verify(program.func)
        for args in INPUTS:
            expected = function(*args, flag)
            actual = run_program(program, *args)
            np.testing.assert_allclose(np.array(actual, float), np.array(expected, float), rtol=1e-10, err_msg=source)


@pytest.mark.parametrize("seed", range(150))
def test_random_program(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", [*range(60), 163, 178, 271, 362])
def test_random_program_with_lists(seed: int) -> None:
    check(seed, ListWriter)
