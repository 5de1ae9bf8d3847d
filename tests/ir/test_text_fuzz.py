"""Damaged text is read or refused, never more: only ParseError and VerifyError come out, and what is accepted runs alike in the
interpreter and in native code.

`ADJIT_FUZZ=1000000` damages as many texts and runs every function that is accepted; the default runs a few of them. `ADJIT_SEED=n` chooses
others.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.errors import AdjitError, ParseError, VerifyError
from adjit.ir.fingerprint import fingerprint
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.types import StackType
from adjit.ir.verifier import verify
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.ir.damaged_texts import damaged

COUNT = int(os.environ.get("ADJIT_FUZZ", "20000"))
SEED = int(os.environ.get("ADJIT_SEED", "20"))
SHARE = 10_000  # texts of one test
RUN = None if "ADJIT_FUZZ" in os.environ else 30  # accepted functions that one test runs
SMALL = 20_000  # elements of a value that is computed
ARBITRARY = ("svd", "eig", "hermitian_eigh", "complex_svd", "complex_eig")  # beginnings of ops whose vectors have arbitrary signs or phases
STEPS = 3_000  # statements that the interpreter runs before it stops


def accepted(text: str) -> Func | None:
    """The function, if it is valid. Any error except our two fails the test."""
    try:
        return verify(parse_func(text))
    except (ParseError, VerifyError):
        return None


seen: set[bytes | None] = set()  # fingerprints of the functions that were run


@pytest.mark.parametrize("seed", range(SEED, SEED + -(-COUNT // SHARE)))
def test_damaged_text_is_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    kept = ran = 0
    for _ in range(min(COUNT, SHARE)):
        text = damaged(rng)
        try:
            func = accepted(text)
            kept += func is not None
            if func is not None and (RUN is None or ran < RUN) and is_new(func):
                ran += 1
                runs_alike(func)
        except BaseException as error:
            error.add_note(f"ADJIT_SEED={seed} ADJIT_FUZZ={SHARE}, of the text {text[:3000]!r}")
            raise
    assert kept > SHARE // 50


def is_new(func: Func) -> bool:
    key = fingerprint(func.replace(plan=None))
    known = key in seen
    seen.add(key)
    return not known


class TooLong(Exception):
    """The program is not worth waiting for."""


def is_small(func: Func) -> bool:
    values = [*func.params, *(r for s in walk(func.block) for r in (*s.results, *s.args)), *func.outputs()]
    return all(v.type.size <= SMALL for v in values) and not any(isinstance(v.type, StackType) for v in (*func.params, *func.outputs()))


def runs_alike(func: Func) -> None:
    if not is_small(func) or any(s.op.name.startswith(ARBITRARY) for s in walk(func.block)):
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
        found = compile_func(OPTIMIZE(func), traced=func)([a.copy() for a in arrays])
    except AdjitError as error:
        found = error
    if isinstance(wanted, AdjitError) or isinstance(found, AdjitError):
        assert isinstance(wanted, AdjitError) and isinstance(found, AdjitError), f"{wanted!r}, but natively {found!r}, of\n{func}"  # noqa: PT018
        return
    for ours, theirs in zip(found, wanted, strict=False):  # updated parameters come last, and are written in place
        assert_alike(np.asarray(ours), np.asarray(theirs), func)


def assert_alike(ours: Any, theirs: Any, func: Func) -> None:
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), str(func)
    if ours.dtype.kind == "c":  # an infinite number has any imaginary part
        finite = np.isfinite(theirs)
        np.testing.assert_array_equal(np.isfinite(ours), finite, err_msg=str(func))
        ours, theirs = ours[finite], theirs[finite]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=str(func))


def argument(rng: np.random.Generator, type: Any) -> Any:
    if type.dtype.kind == "f":
        values = rng.uniform(0.5, 1.5, type.shape)
        return (values + 4 * np.eye(4) if type.shape == (4, 4) else values).astype(type.dtype)  # to have a Cholesky factor
    if type.dtype.kind == "c":
        return (rng.uniform(0.5, 1.5, type.shape) + 1j * rng.uniform(0.5, 1.5, type.shape)).astype(type.dtype)
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
