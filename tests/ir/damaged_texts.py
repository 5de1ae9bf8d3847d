"""Texts of the IR, and random damage to them."""

from __future__ import annotations

import random
from functools import cache

from adjit.ir.printer import print_func
from adjit.ir.types import DTYPES
from tests.ir.test_mutations import TEXTS, good
from tests.ops.cases import Case
from tests.ops.harness import func_of
from tests.ops.test_rows import ROWS

MORE = [
    """
func @effects(%x: f32[5], %i: u64[3], %p: bool[]) -> (f32[3], f32[5]) {
  print %p, %x {template="{} {!r}", end=" "}
  assert %p {message="no"}
  %a: f32[3] = gather %x, %i
  %b: f32[5] = scatter_add %x, %a, %i
  %c: f32[5] = constant {data=[1.0, nan(0x7fc00001), -inf, 0.1, 1e-45]}
  %d: f32[5] = maximum %b, %c
  %e: i64[5] = iota {axis=0}
  %f: f32[5] = cast %e
  %g: f32[5] = add %d, %f
  return %a, %g
}
""",
    """
func @stacks(%n: i64[], %x: f64[3]) -> (f64[3], f64[3]) !"a file.py":3:1 {
  %y: f64[3], %s: stack<f64[3]> = for %k in 0..%n carry (%c: f64[3] = %x) !4 {
    %0: f64[3] = sin %c
    yield %0 saving %c
  }
  %1: i64[] = stack_length %s
  %2: f64[3] = for %k in 0..%1 carry (%d: f64[3] = %y) {
    %3: f64[3] = stack_read %s, %k
    %4: f64[3] = mul %3, %d
    yield %4
  }
  return %y, %2
}
""",
]
PIECES = [
    "%x", "%0", "0", "1", "-1", "2", "7", "4294967296", "9" * 5000, "-0.0", "nan", "inf", "1e400", "nan(0x1)", "nan(0x" + "f" * 40 + ")",
    "true", "f64[]", "f64[3]", "f32[2,2]", "i64[]", "u64[1]", "bool[0]", "f64[99999999999,99999999999]", "f64[" + "1," * 70 + "1]",
    "stack<f64[]>", "stack<" * 80, "[" * 3000, "{" * 300, "if %p {\n" * 90, "axes=[-1]", "axis=-1", "axes=[0, 0]", "axes=[1]", "groups=0",
    "strides=[0]", "[]", '"a\\u0000b"', '"\\ud800"', "\0", "\udc80", "@arena+8", "@param+9", "arena 64", "!3:1",
    '!"/no":99999999999999999999', "yield", "saving %x", "backward:", "fuse {", "rows {", "}", "{", "(", ")", ",", "=", "\n", "add",
    "matmul", "gather", "flip", "while carry", "for %k in 0..3",
]  # fmt: skip


@cache
def whole_programs() -> list[str]:
    planned = [print_func(good(name)) for name in ("softmax.grad.opt", "loops.opt", "various.opt")]
    return [*TEXTS.values(), *MORE, *planned, print_func(good("loops.grad"))]


@cache
def rows() -> list[str]:
    """Every row of the op table, in one of its dtypes."""
    return [row_text(case, case.dtypes[k % len(case.dtypes)]) for k, case in enumerate(ROWS)]


def row_text(case: Case, dtype: str) -> str:
    return print_func(func_of(case.call, case.draw(DTYPES[dtype])))


def damaged(rng: random.Random) -> str:
    return mutated(rng, rng.choice(whole_programs() if rng.random() < 0.05 else rows()))  # which parse in a tenth of the time


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(text) or 1)
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:at] + text[at + rng.randint(1, 12) :]
        elif kind == 1:
            text = text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 1, 5)) :]
        elif kind == 2:
            text = text[:at] + chr(rng.choice((rng.randrange(32, 127), rng.randrange(1, 0x3000)))) + text[at + 1 :]
        elif kind == 3:  # a digit
            k = rng.choice([k for k, c in enumerate(text) if c.isdigit()] or [at])
            text = text[:k] + rng.choice("0123456789") + text[k + 1 :]
        else:  # lines or words moved, repeated, exchanged
            parts = text.split("\n") if kind == 4 else text.split(" ")
            i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
            parts[i] = parts[j] if kind != 6 else ""
            text = ("\n" if kind == 4 else " ").join(parts)
    return text
