"""Every program of the table: plain Python on NumPy = the traced IR, interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.tracer.autograph.convert import convert, to_code
from adjit.tracer.pytree import flatten
from tests.autograph.programs import PROGRAMS, Program
from tests.tracer.running import run_program, trace


def assert_same(ours: Any, theirs: Any) -> None:
    (a, tree), (b, expected) = flatten(ours), flatten(theirs)
    assert tree == expected
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_interpreted_is_python(program: Program) -> None:
    for args in program.calls:
        traced = trace(convert(program.fn), *args)
        verify(traced.func)
        assert_same(run_program(traced, *args), program.fn(*args))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_text_round_trip(program: Program) -> None:
    func = trace(convert(program.fn), *program.calls[0]).func
    assert str(parse_func(str(func))) == str(func)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_converted_runs_as_plain_python(program: Program) -> None:
    for args in program.calls:
        assert_same(convert(program.fn)(*args), program.fn(*args))


def test_table() -> None:
    assert len(PROGRAMS) >= 60
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS)
    assert all(to_code(p.fn) for p in PROGRAMS)
