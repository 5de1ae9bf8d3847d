"""Fourier transforms of any length: the algorithm for each size, and the results."""

from __future__ import annotations

import numpy as np
import pytest

from adjit.ir.builder import Builder
from adjit.ir.func import Func, Stmt, Value
from adjit.ir.interpreter import run
from adjit.ir.ops.fft import Fft
from adjit.ir.types import C128, TensorType
from adjit.passes.complex import split_complex
from adjit.passes.fourier import good_size, halves


@pytest.mark.parametrize(("least", "size"), [(1, 1), (7, 7), (11, 12), (13, 14), (31, 32), (67, 70), (127, 128), (250, 250)])
def test_sizes_that_are_cut_well(least: int, size: int) -> None:
    assert good_size(least) == size


@pytest.mark.parametrize(("n", "wanted"), [(1, (1, 1)), (12, (3, 4)), (16, (4, 4)), (13, (1, 13)), (60, (6, 10)), (128, (8, 16))])
def test_halves(n: int, wanted: tuple[int, int]) -> None:
    assert halves(n) == wanted


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(("n", "sizes"), [(1, [1]), (7, [7]), (32, [32]), (64, [8, 8]), (90, [9, 10]), (63, [63]), (98, [7, 14])])
def test_smooth_lengths_are_one_transform(n: int, sizes: list[int], inverse: bool) -> None:
    """An axis of 64 elements or more is cut in two: a table for each part, and one for the roots between them."""
    (transform,) = transforms(n, inverse)
    assert [a.type.shape[0] for a in transform.args] == [n, *[2] * (len(sizes) + (len(sizes) > 1))]
    assert len(sizes) == 1 or transform.args[-1].type.shape == (2, *sizes)


@pytest.mark.parametrize(("n", "size"), [(17, 35), (23, 45), (34, 70), (67, 135)])
def test_other_lengths_are_convolutions_of_a_good_size(n: int, size: int) -> None:
    assert [s.result.type.shape[0] for s in transforms(n, False)] == [size, size]


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("shape", [(1,), (12,), (11,), (64,), (67,), (3, 17, 2), (3, 80, 2)])
def test_values_are_numpys(shape: tuple[int, ...], inverse: bool) -> None:
    axis = len(shape) // 2
    numbers = np.random.default_rng(0).normal(size=(2, *shape))
    x = numbers[0] + 1j * numbers[1]
    (got,) = run(split_complex(transform(shape, axis, inverse, 0.5)), np.stack(list(numbers), -1))
    wanted = (np.fft.ifft(x, axis=axis) * shape[axis] if inverse else np.fft.fft(x, axis=axis)) * 0.5
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], wanted, rtol=1e-12, atol=1e-12)


def transforms(n: int, inverse: bool) -> list[Stmt]:
    return [s for s in split_complex(transform((n,), 0, inverse, 1.0)).block.stmts if s.op.name == "fft_parts"]


def transform(shape: tuple[int, ...], axis: int, inverse: bool, scale: float) -> Func:
    x = Value(TensorType(C128, shape), "x")
    with Builder([x]) as builder:
        (y,) = builder.emit(Fft(axis, inverse, scale), (x,))
        return Func("f", builder.finish([y]))
