"""Properties of every function: it is valid, its text is reproduced byte for byte, and the parsed function has the same results."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjit.ir.interpreter import run
from adjit.ir.ops.base import REGISTRY
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.verifier import verify
from tests.ir.random_funcs import random_arrays, random_func

randoms = st.randoms(use_true_random=False)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(randoms)
def test_random_funcs_round_trip(random: Random) -> None:
    func = verify(random_func(random))
    for locations in (True, False):
        text = print_func(func, locations)
        assert print_func(parse_func(text), locations) == text
    again = verify(parse_func(print_func(func)), before=func)
    arrays = random_arrays(random, func)
    for ours, theirs in zip(run(func, *arrays), run(again, *arrays), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("seed", range(20))
def test_larger_funcs_round_trip(seed: int) -> None:
    func = verify(random_func(Random(seed), 60))
    text = print_func(func)
    assert print_func(verify(parse_func(text))) == text


def test_random_funcs_reach_the_regions() -> None:
    used = {s.op.name for seed in range(40) for s in random_func(Random(seed), 20).stmts}
    assert {"if", "for", "while", "constant", "iota", "fill", "sum", "where", "cast"} <= used <= REGISTRY.keys()


def test_long_functions_need_no_recursion() -> None:
    lines = ["func @long(%x: f64[2]) -> f64[2] {", "  %0: f64[2] = neg %x"]
    lines += [f"  %{i}: f64[2] = add %{i - 1}, 1.0" for i in range(1, 5000)]
    text = "\n".join([*lines, "  return %4999", "}", ""])
    func = verify(parse_func(text))
    assert print_func(func) == text
    np.testing.assert_array_equal(run(func, np.zeros(2))[0], [4999.0, 4999.0])
