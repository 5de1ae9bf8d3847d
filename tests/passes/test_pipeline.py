"""The pipeline."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.errors import VerifyError
from adjit.ir.func import Func
from adjit.ir.parser import parse_func
from adjit.passes.pipeline import OPTIMIZE, Pipeline
from adjit.passes.simplify.cse import eliminate_common_subexpressions
from adjit.passes.simplify.dce import eliminate_dead_code
from adjit.passes.simplify.simplify import simplify
from tests.ir.random_funcs import random_func
from tests.passes.checks import QUICK, keeps_meaning

FUNC = "func @f(%x: f64[3]) -> f64[3] {\n  %y: f64[3] = mul %x, 1.0\n  return %y\n}\n"


def test_passes_have_unique_names_and_are_observed_in_order() -> None:
    seen: list[tuple[str, int]] = []
    pipeline = Pipeline(simplify, eliminate_dead_code, simplify)
    pipeline.run(parse_func(FUNC), lambda name, func: seen.append((name, len(func.stmts))))
    assert seen == [("simplify", 0), ("eliminate_dead_code", 0), ("simplify.2", 0)]


def test_a_pass_is_not_run_on_its_own_output() -> None:
    runs: list[str] = []

    def first(func: Func) -> Func:
        runs.append("first")
        return func

    def second(func: Func) -> Func:
        runs.append("second")
        return func

    seen: list[str] = []
    Pipeline(first, second, first, second).run(parse_func(FUNC), lambda name, func: seen.append(name))
    assert runs == ["first", "second"]
    assert seen == ["first", "second", "first.2", "second.2"]
    changing = Pipeline(first, lambda func: func.replace(name="g"), first)
    runs.clear()
    changing(parse_func(FUNC))
    assert runs == ["first", "first"]


@QUICK
@given(st.randoms(use_true_random=False))
def test_passes_are_idempotent(random: Random) -> None:
    repeated = {each for name, each in OPTIMIZE.passes.items() if ".2" in name}
    assert repeated == {simplify, eliminate_common_subexpressions}
    func = random_func(random)
    for each in repeated:
        once = each(func)
        assert each(once) is once


def test_a_pipeline_is_a_pass() -> None:
    assert len(Pipeline(Pipeline(simplify))(parse_func(FUNC)).stmts) == 0


def test_verification_names_the_pass_that_broke_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_definitions(func: Func) -> Func:
        return func.replace(block=type(func.block)(func.params, (), func.results))

    monkeypatch.setenv("ADJIT_VERIFY", "1")
    with pytest.raises(VerifyError) as caught:
        Pipeline(lose_definitions)(parse_func(FUNC))
    assert "lose_definitions" in caught.value.__notes__[0]


@QUICK
@given(st.randoms(use_true_random=False))
def test_all_passes_together_keep_the_meaning(random: Random) -> None:
    optimize = Pipeline(*(each for name, each in OPTIMIZE.passes.items() if name != "plan_buffers"))
    keeps_meaning(optimize, random)
