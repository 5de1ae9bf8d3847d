"""NaN in maxima and minima: found at any position, without changing other results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.codegen.llvm.target import WIDTHS, current
from adjit.ir import ops
from adjit.ir.target import Target
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.harness import func_of

COLUMNS = 203  # whole trips of a loop over four registers, and elements left over, at every width
EXTREMES: dict[str, Callable[[Any, Any], Any]] = {"max": ops.max, "min": ops.min}


def machine(width: int, threads: int = 1) -> Target:
    return current()._replace(vector_bytes=width, threads=threads)


def compiled(name: str, x: np.ndarray, target: Target, axis: int | None = 1) -> np.ndarray:
    func = func_of(lambda x: EXTREMES[name](x, axis), [x])
    return np.asarray(compile_func(OPTIMIZE(func), target)([x])[0])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nan_at_every_position(width: int, name: str, dtype: str) -> None:
    """Row k has NaN in column k; the last row has none, and the row before it nothing else."""
    x = np.random.default_rng(0).normal(size=(COLUMNS + 2, COLUMNS)).astype(dtype)
    x[range(COLUMNS), range(COLUMNS)] = np.nan
    x[COLUMNS] = np.nan
    np.testing.assert_array_equal(compiled(name, x, machine(width)), getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_infinities_are_numbers(width: int, name: str, dtype: str) -> None:
    x = np.random.default_rng(1).choice(np.array([-np.inf, -1.0, 2.0, np.inf], dtype), (40, COLUMNS))
    x[0], x[1], x[2] = np.inf, -np.inf, np.where(np.arange(COLUMNS) == 100, 1.0, x[2])
    np.testing.assert_array_equal(compiled(name, x, machine(width)), getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("at", [0, 70_001, 299_999])
def test_nan_in_one_chunk_of_many(name: str, at: int) -> None:
    x = np.random.default_rng(2).normal(size=300_000).astype("f4")
    without = [compiled(name, x, machine(32, threads), None) for threads in (1, 2)]
    assert without[0].tobytes() == without[1].tobytes() == np.asarray(getattr(np, name)(x)).tobytes()
    x[at] = np.nan
    found = [compiled(name, x, machine(32, threads), None) for threads in (1, 2)]
    assert np.isnan(found).all()
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("call", [ops.maximum, ops.minimum])
def test_elementwise_extremes_of_special_values(call: Callable[[Any, Any], Any], width: int) -> None:
    """Every pair of them, bit by bit except for the bits of NaN: of two zeros the first one."""
    special = np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan], "f4")
    a, b = (np.resize(each.ravel(), 100) for each in np.meshgrid(special, special))
    (found,) = compile_func(OPTIMIZE(func_of(call, [a, b])), machine(width))([a, b])
    first = (a >= b) | np.isnan(a) if call is ops.maximum else (a <= b) | np.isnan(a)
    wanted, values = np.where(first, a, b), np.asarray(found)
    assert np.isnan(values).tolist() == np.isnan(wanted).tolist()
    assert values[~np.isnan(wanted)].tobytes() == wanted[~np.isnan(wanted)].astype("f4").tobytes()
