"""Damaged text is read or refused, never more: only ParseError and VerifyError come out, and what is accepted runs alike in the
interpreter and in native code.

`ADJIT_FUZZ=100000` mutates as many texts, and `ADJIT_SEED=n` others; the default keeps the suite quick.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.errors import AdjitError, ParseError, VerifyError
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.types import StackType
from adjit.ir.verifier import verify
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.ir.test_mutations import TEXTS, good

COUNT = int(os.environ.get("ADJIT_FUZZ", "20000"))
SEED = int(os.environ.get("ADJIT_SEED", "20"))
COMPILED = COUNT // 500  # of those that are accepted, so many are compiled
SMALL = 20_000  # elements of a value that is computed
STEPS = 3_000  # statements that the interpreter runs before it gives up

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


def sources() -> list[str]:
    planned = [print_func(good(name)) for name in ("softmax.grad.opt", "loops.opt", "various.opt")]
    return [*TEXTS.values(), *MORE, *planned, print_func(good("loops.grad"))]


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(text))
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:at] + text[at + rng.randint(1, 12) :]
        elif kind == 1:
            text = text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 1, 5)) :]
        elif kind == 2:
            text = text[:at] + chr(rng.choice((rng.randrange(32, 127), rng.randrange(1, 0x3000)))) + text[at + 1 :]
        elif kind == 3:  # a digit
            places = [k for k, c in enumerate(text) if c.isdigit()]
            k = rng.choice(places)
            text = text[:k] + rng.choice("0123456789") + text[k + 1 :]
        else:  # lines or words moved, repeated, exchanged
            parts = text.split("\n") if kind == 4 else text.split(" ")
            i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
            parts[i] = parts[j] if kind != 6 else ""
            text = ("\n" if kind == 4 else " ").join(parts)
    return text


def accepted(text: str) -> Func | None:
    """The function, if it keeps the rules. Anything but our two errors goes on to the test."""
    try:
        return verify(parse_func(text))
    except (ParseError, VerifyError):
        return None


def test_damaged_text_is_read_or_refused() -> None:
    rng, texts = random.Random(SEED), sources()
    kept: list[Func] = []
    for _ in range(COUNT):
        text = mutated(rng, rng.choice(texts))
        try:
            func = accepted(text)
        except BaseException as error:
            error.add_note(f"of the text {text[:3000]!r}")
            raise
        if func is not None:
            kept.append(func)
    assert len(kept) > COUNT // 50
    for func in rng.sample(kept, min(len(kept), COMPILED)):
        runs_alike(func)


class TooLong(Exception):
    """The program is not worth waiting for."""


def is_small(func: Func) -> bool:
    values = [*func.params, *(r for s in walk(func.block) for r in (*s.results, *s.args)), *func.outputs()]
    return all(v.type.size <= SMALL for v in values) and not any(isinstance(v.type, StackType) for v in (*func.params, *func.outputs()))


def runs_alike(func: Func) -> None:
    if not is_small(func):
        return
    func = func.replace(plan=None)
    rng = np.random.default_rng(0)
    arrays = [np.asarray(argument(rng, p.type)) for p in func.params]
    steps = 0

    def counted(*_: Any) -> None:
        nonlocal steps
        steps += 1
        if steps > STEPS:
            raise TooLong

    wanted: Any
    try:
        with np.errstate(all="ignore"):
            wanted = run(func, *(a.copy() for a in arrays), observe=counted)
    except TooLong:
        return
    except AdjitError as error:
        wanted = error
    found: Any
    try:
        found = compile_func(OPTIMIZE(func))([a.copy() for a in arrays])
    except AdjitError as error:
        found = error
    if isinstance(wanted, AdjitError) or isinstance(found, AdjitError):
        assert isinstance(wanted, AdjitError) and isinstance(found, AdjitError), f"{wanted!r}, but natively {found!r}, of\n{func}"  # noqa: PT018
        return
    for ours, theirs in zip(found, wanted, strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=str(func))


def argument(rng: np.random.Generator, type: Any) -> Any:
    if type.dtype.kind == "f":
        return rng.uniform(0.5, 1.5, type.shape).astype(type.dtype) + (4 * np.eye(*type.shape) if type.shape == (4, 4) else 0)
    if type.dtype.kind == "b":
        return np.ones(type.shape, bool)
    return rng.integers(0, 3, type.shape).astype(type.dtype)


@pytest.mark.parametrize("piece", ["9" * 5000, "-" + "1" * 5000, "nan(0x" + "f" * 50 + ")", "1" * 400 + ".5", "1e99999"])
def test_numbers_of_any_length_are_read_or_refused(piece: str) -> None:
    for text in (
        f"func @f(%x: f64[{piece}]) -> () {{\n  return\n}}\n",
        f"func @f() -> f64[] {{\n  %a: f64[] = add {piece}, 1.0\n  return %a\n}}\n",
        f"func @f(%x: i64[]) -> i64[] {{\n  %a: i64[] = add %x, {piece}\n  return %a\n}}\n",
        f"func @f(%x: f64[3]) -> f64[] {{\n  %a: f64[] = sum %x {{axes=[{piece}]}}\n  return %a\n}}\n",
        f"func @f(%x: f64[3] @param+{piece}) -> f64[3] arena {piece} {{\n  return %x\n}}\n",
        f"func @f() -> () !a.py:{piece}:{piece} {{\n  return\n}}\n",
    ):
        accepted(text)


def test_depth_is_bounded() -> None:
    head = "func @f() -> () {\n"
    for text in ("func @f(%x: " + "stack<" * 5000, head + "  if true {\n" * 5000, head + "  print {template=" + "[" * 5000):
        with pytest.raises(ParseError, match="nested more than 50 deep"):
            parse_func(text)
