"""Shared by the tests of passes: before/after texts, and arrays that must not change."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from textwrap import dedent
from typing import Any

import numpy as np
from hypothesis import settings

from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.verifier import verify
from tests.ir.random_funcs import random_arrays, random_func
from tests.passes.near_misses import as_pairs, keeps_meaning_of_near_misses

Pass = Callable[[Func], Func]

QUICK = settings(max_examples=30, deadline=None)


def rewrites(each: Pass, before: str, after: str, near: int = 10) -> None:
    """The pass turns the first text into the second, and preserves the results of `near_misses` programs that differ in one place."""
    func = parse_func(dedent(before))
    verify(func)
    out = each(func)
    verify(out)
    assert print_func(out) == dedent(after).lstrip("\n")
    keeps_meaning_of_near_misses(each, func, near)


def leaves(each: Pass, text: str, near: int = 10) -> None:
    """The pass changes nothing."""
    rewrites(each, text, text, near)


def same_bits(a: Any, b: Any) -> bool:
    """Equal element by element, with every NaN equal to every other, and 0.0 not equal to -0.0."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if a.dtype.kind != "f":
        return bool((a == b).all())
    nan = np.isnan(a)
    return bool((nan == np.isnan(b)).all() and ((a == b) & (np.signbit(a) == np.signbit(b)))[~nan].all())


def keeps_meaning(each: Pass, random: Random, size: int = 25) -> None:
    """The pass leaves a valid function with the same results, on a random function. Sums may be reassociated: they are compared loosely."""
    func = random_func(random, size)
    arrays = random_arrays(random, func)
    want = run(func, *arrays)
    out = each(func)
    verify(out)
    got = run(out, *(as_pairs(a, param.type) for a, param in zip(arrays, out.params, strict=True)))
    want = [as_pairs(a, b) for a, b in zip(want, got, strict=True)]
    has_sums = "sum" in print_func(func)
    for a, b in zip(got, want, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if has_sums and b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-4 if b.dtype == np.float32 else 1e-9)
        else:
            assert same_bits(a, b), f"{a} is not {b} in\n{func}\nwhich became\n{out}"
