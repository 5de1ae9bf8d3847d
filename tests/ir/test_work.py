"""The work of statements is computed from that of their ops and blocks, and the time from the work and the target."""

from __future__ import annotations

import math

import pytest

from adjit.ir.cost import MATH, Cost, nanoseconds
from adjit.ir.parser import parse_func
from adjit.ir.target import USUAL
from adjit.ir.work import block_work


def work_of(body: str) -> Cost:
    return block_work(parse_func(f"func @f(%x: f64[100], %p: bool[], %n: i64[]) -> f64[100] {{\n{body}\n  return %y\n}}\n").block)


EXP = "%a: f64[100] = exp %x\n yield %a"
ADD = "%b: f64[100] = add %x, 1.0\n yield %b"


@pytest.mark.parametrize(
    ("body", "flops", "numbers"),
    [
        ("%y: f64[100] = exp %x", 100 * MATH, 200),
        (f"%y: f64[100] = fuse {{\n{EXP}\n}}", 100 * MATH, 200),
        (f"%y: f64[100] = checkpoint {{\n{EXP}\n}}", 100 * MATH, 400),
        ("%y: f64[100] = for %k in 0..7 carry (%c: f64[100] = %x) {\n%a: f64[100] = exp %c\n yield %a\n}", 700 * MATH, 1600),
        ("%y: f64[100] = for %k in 0..%n carry (%c: f64[100] = %x) {\n%a: f64[100] = exp %c\n yield %a\n}", math.inf, math.inf),
        ("%y: f64[100] = flip %x {axes=[0]}", 0, 0),
    ],
)
def test_work_of_blocks(body: str, flops: float, numbers: float) -> None:
    found = work_of(body)
    assert found.flops == flops
    assert found.bytes == pytest.approx(8 * numbers, abs=16)  # and the bounds of loops


def test_a_branch_costs_as_much_as_the_longer_one() -> None:
    assert work_of(f"%y: f64[100] = if %p {{\n{EXP}\n}} else {{\n{ADD}\n}}").flops == 100 * MATH
    assert work_of(f"%y: f64[100] = if %p {{\n{ADD}\n}} else {{\n{EXP}\n}}").flops == 100 * MATH


def test_times_grow_with_everything_that_is_done() -> None:
    cost = Cost(1000.0, 8.0, 800.0, 10.0, 10.0)
    for field in ("flops", "bytes", "serial", "worst"):
        assert nanoseconds(cost._replace(**{field: 2000.0}), USUAL) > nanoseconds(cost, USUAL)
    assert nanoseconds(Cost(1.0, 500.0), USUAL) >= 100 * nanoseconds(Cost(1.0, 1.0), USUAL)  # a chain is not faster in vectors
    assert nanoseconds(cost, USUAL._replace(vector_bytes=16)) > nanoseconds(cost, USUAL)
    assert nanoseconds(cost, USUAL._replace(vector_bytes=64)) <= nanoseconds(cost, USUAL)
