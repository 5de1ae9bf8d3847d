"""Random programs that print, assign variables and fail, at any depth: Python source, drawn from a seed.

A program takes `x: f64[4]`, `at: i64[SITES]`, `m: f64[SITES,2,2]`, `flags: f64[FLAGS]` and `n: i64[FLAGS]`. Each place that may fail reads
its own element of `at` or `m`, so that the caller decides which of them fails.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

SITES, FLAGS = 12, 8
OUTSIDE = 99  # no array here has so many elements


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.sites = self.flags = self.prints = self.names = 0
        self.lines: list[str] = []

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def site(self) -> int:
        self.sites += 1
        return self.sites - 1

    def flag(self) -> int:
        self.flags += 1
        return self.flags - 1

    def block(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 4 if depth < 3 else 2)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        kinds = [self.compute, self.compute, self.assign, self.assign, self.show]
        if self.sites < SITES:
            kinds += [self.fail] * 3
        if self.flags < FLAGS and depth < 4:
            kinds += [self.branch, self.branch, self.count, self.repeat]
        self.random.choice(kinds)(depth)

    def compute(self, depth: int) -> None:
        self.put(depth, self.random.choice([
            "s = 0.5 * s + 0.25", "s = np.sin(s)", "y = 0.5 * y + V", "y = np.tanh(y) * s", "s = 0.25 * s + 0.1 * np.sum(y)",
        ]))  # fmt: skip

    def assign(self, depth: int) -> None:
        self.put(depth, self.random.choice([
            "V.assign(0.5 * V + 1.0)", "V.assign(y)", "S.assign(s)", "S.assign_add(0.5)", "V.assign_sub(0.1 * y)", "S.assign(S * 0.5)",
        ]))  # fmt: skip

    def show(self, depth: int) -> None:
        self.prints += 1
        self.put(depth, f'print("<{self.prints}>", s)')

    def fail(self, depth: int) -> None:
        k, name = self.site(), self.name()
        self.put(depth, self.random.choice([
            f"s = s + 0.5 * x[at[{k}]]",
            f"{name} = x[at[{k}]]",  # unused
            f"{name} = np.exp(y)[at[{k}]]",
            f"y = y.at[at[{k}]].set(s)",
            f"V.assign(V.at[at[{k}]].add(s))",
            f"{name} = y.at[at[{k}]].add(1.0)",
            f'assert at[{k}] < 50, "site {k}"',
            f"s = s + np.linalg.cholesky(m[{k}])[0, 0]",
            f"{name} = np.linalg.cholesky(m[{k}])",
        ]))  # fmt: skip

    def branch(self, depth: int) -> None:
        self.put(depth, f"if flags[{self.flag()}] > 0.0:")
        self.block(depth + 1)
        if self.random.random() < 0.6:
            self.put(depth, "else:")
            self.block(depth + 1)

    def count(self, depth: int) -> None:
        self.put(depth, f"for {self.name()} in range(n[{self.flag()}]):")
        self.block(depth + 1)

    def repeat(self, depth: int) -> None:
        k, name = self.flag(), self.name()
        self.put(depth, f"{name} = n[{k}] * 0")
        self.put(depth, f"while {name} < n[{k}]:")
        self.put(depth + 1, f"{name} = {name} + 1")
        self.block(depth + 1)


def source(seed: int) -> str:
    """The text of `program(x, at, m, flags, n)`, on the variables V and S."""
    writer = Writer(seed)
    writer.put(0, "def program(x, at, m, flags, n):")
    writer.put(1, "s = x[0] * 1.0")
    writer.put(1, "y = x[1:] * 2.0")
    writer.block(1)
    while writer.sites < 3:
        writer.statement(1)
    writer.put(1, "return s, y")
    return "\n".join([*writer.lines, ""])


def arguments(seed: int, failing: int | None = None) -> list[Any]:
    """Arguments with which at most the place `failing` fails, if it is reached."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 3, SITES)
    m = np.broadcast_to(2.0 * np.eye(2), (SITES, 2, 2)).copy()
    if failing is not None:
        at[failing] = OUTSIDE
        m[failing] *= -1.0
    return [rng.uniform(-1.0, 1.0, 4), at, m, rng.uniform(-0.5, 1.0, FLAGS), rng.integers(0, 4, FLAGS)]
