"""Steps of gradient descent on rows of a table touch only these rows, in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import adjit as aj
from adjit.ir.errors import OutOfBoundsError
from adjit.passes.simplify.checked import check_once
from adjit.passes.simplify.scatters import scatter_updates
from tests.passes.checks import leaves, rewrites

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(50, 6)).astype("f4")
IDS = np.array([3, 7, -1, 3, 0])
RATE = aj.Variable(np.float32(0.1))


def test_a_scaled_difference() -> None:
    rewrites(
        scatter_updates,
        """
        func @f(%x: f64[9,2], %u: f64[4,2], %i: i64[4], %c: f64[]) -> f64[9,2] {
          %g: f64[9,2] = scatter_add 0.0:f64[9,2], %u, %i
          %a: f64[9,2] = mul 0.5, %g
          %b: f64[9,2] = broadcast %c
          %d: f64[9,2] = mul %a, %b
          %y: f64[9,2] = sub %x, %d
          return %y
        }
        """,
        """
        func @f(%x: f64[9,2], %u: f64[4,2], %i: i64[4], %c: f64[]) -> f64[9,2] {
          %b: f64[9,2] = broadcast %c
          %0: f64[4,2] = mul %u, 0.5
          %1: f64[4,2] = broadcast %c
          %2: f64[4,2] = mul %0, %1
          %3: f64[4,2] = neg %2
          %4: f64[9,2] = scatter_add %x, %3, %i
          return %4
        }
        """,
    )


@pytest.mark.parametrize(
    "lines",
    [
        ["%g: f64[9,2] = scatter_add %x, %u, %i", "%y: f64[9,2] = sub %x, %g"],  # not to zeros
        ["%g: f64[9,2] = scatter_add 0.0:f64[9,2], %u, %i", "%y: f64[9,2] = sub %g, %x"],  # the other way round
        ["%g: f64[9,2] = scatter_add 0.0:f64[9,2], %u, %i", "%h: f64[9,2] = mul %g, %x", "%y: f64[9,2] = sub %x, %h"],  # no scalar
        ["%g: f64[9,2] = scatter_add 0.0:f64[9,2], %u, %i", "%h: f64[9,2] = mul %g, %g", "%y: f64[9,2] = sub %x, %h"],  # not linear
        ["%g: f64[9,2] = scatter_add 0.0:f64[9,2], %u, %i", "%h: f64[9,2] = sub %x, %g", "%y: f64[9,2] = mul %h, %g"],  # used twice
    ],
)
def test_what_stays(lines: list[str]) -> None:
    body = "\n".join(f"  {line}" for line in lines)
    leaves(scatter_updates, f"func @f(%x: f64[9,2], %u: f64[4,2], %i: i64[4]) -> f64[9,2] {{\n{body}\n  return %y\n}}\n")


def test_indices_are_checked_once() -> None:
    rewrites(
        check_once,
        """
        func @f(%x: f64[9,2], %z: f64[8,2], %i: i64[4], %p: bool[]) -> (f64[9,2], f64[8,2], f64[4,2]) {
          %a: f64[4,2] = gather %x, %i
          %b: f64[9,2] = scatter_add %x, %a, %i
          %c: f64[8,2] = scatter_set %z, %a, %i
          %d: f64[4,2] = if %p {
            %j: i64[4] = add %i, 1
            %e: f64[4,2] = gather %x, %j
            %g: f64[4,2] = gather %z, %i
            %h: f64[4,2] = add %e, %g
            yield %h
          } else {
            %k: f64[4,2] = gather %z, %j.1
            yield %k
          }
          return %b, %c, %d
        }
        """.replace("%j.1", "%i"),
        """
        func @f(%x: f64[9,2], %z: f64[8,2], %i: i64[4], %p: bool[]) -> (f64[9,2], f64[8,2], f64[4,2]) {
          %a: f64[4,2] = gather %x, %i
          %b: f64[9,2] = scatter_add %x, %a, %i {checked=true}
          %c: f64[8,2] = scatter_set %z, %a, %i
          %d: f64[4,2] = if %p {
            %j: i64[4] = add %i, 1
            %e: f64[4,2] = gather %x, %j
            %g: f64[4,2] = gather %z, %i {checked=true}
            %h: f64[4,2] = add %e, %g
            yield %h
          } else {
            %k: f64[4,2] = gather %z, %i {checked=true}
            yield %k
          }
          return %b, %c, %d
        }
        """,
    )


def test_what_a_branch_checks_is_not_known_after_it() -> None:
    leaves(
        check_once,
        """
        func @f(%x: f64[9], %i: i64[4], %p: bool[]) -> (f64[4], f64[4]) {
          %d: f64[4] = if %p {
            %a: f64[4] = gather %x, %i
            yield %a
          } else {
            yield 0.0
          }
          %b: f64[4] = gather %x, %i
          return %d, %b
        }
        """,
    )


def descent(rate: Any) -> tuple[aj.Variable, Any]:
    table = aj.Variable(TABLE)

    @aj.function
    def step(ids: Any, targets: Any) -> Any:
        with aj.GradientTape() as tape:
            loss = np.mean((table[ids] - targets) ** 2)
        table.assign_sub(rate() * tape.gradient(loss, table))
        return loss

    return table, step


@pytest.mark.parametrize("rate", [lambda: 0.1, lambda: RATE], ids=["literal", "variable"])
def test_a_step_writes_the_variable_in_place(rate: Any) -> None:
    table, step = descent(rate)
    targets = RNG.normal(size=(5, 6)).astype("f4")
    text = step.inspect(IDS, targets).optimized
    assert "f32[50,6] @arena" not in text
    step(IDS, targets)
    wanted = TABLE.astype("f8")
    np.subtract.at(wanted, IDS, 0.1 * 2 * (TABLE[IDS] - targets) / 30)
    assert_allclose(np.asarray(table), wanted, rtol=1e-5)
    unread = np.setdiff1d(np.arange(50), IDS % 50)
    assert_array_equal(np.asarray(table)[unread], TABLE[unread])


def test_an_index_out_of_bounds_leaves_the_variable_unchanged() -> None:
    table, step = descent(lambda: 0.1)
    with pytest.raises(OutOfBoundsError, match="index 50 is out of bounds"):
        step(np.array([1, 2, 50, 3, 4]), np.zeros((5, 6), "f4"))
    assert_array_equal(np.asarray(table), TABLE)


def test_an_optimizer_touches_only_the_rows_that_were_read() -> None:
    table, sgd = aj.Variable(TABLE), aj.nn.optimizers.SGD(0.1)

    @aj.function
    def step(ids: Any) -> None:
        with aj.GradientTape() as tape:
            loss = np.sum(table[ids])
        sgd.apply_gradients([(tape.gradient(loss, table), table)])

    step(IDS)
    wanted = TABLE.copy()
    np.subtract.at(wanted, IDS, np.float32(0.1))
    assert_allclose(np.asarray(table), wanted, rtol=1e-6)
    assert "f32[50,6] @arena" not in step.inspect(IDS).optimized
