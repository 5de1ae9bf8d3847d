"""Which calls keep the GIL: those that take microseconds, whatever their values are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.native import Native

CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {  # of the first shape quick, of the second not
    "add": (lambda x: x + 1.0, (1000,), (60_000,)),
    "argsort": (np.argsort, (30,), (4000,)),
    "sort": (np.sort, (30,), (4000,)),
    "cholesky": (np.linalg.cholesky, (4, 4), (430, 430)),
    "many choleskies": (np.linalg.cholesky, (4, 4, 4), (2000, 5, 5)),
    "qr": (lambda x: np.linalg.qr(x)[1], (4, 4), (200, 200)),
    "solve": (lambda x: np.linalg.solve(x, x), (4, 4), (200, 200)),
    "det": (np.linalg.det, (4, 4), (200, 200)),
    "product": (lambda x: x @ x, (8, 8), (200, 200)),
    "cumsum": (np.cumsum, (100,), (60_000,)),
    "convolution": (lambda x: np.convolve(x, x), (10,), (180,)),
    "fmod": (lambda x: np.fmod(x, x + 1.0), (10,), (1000,)),
    "transpose": (lambda x: x.T + 1.0, (30, 30), (250, 250)),
    "eigh": (lambda x: np.linalg.eigh(x)[1], (4, 4), (28, 28)),
    "a loop": (lambda x: np.sum(x) if x.size == 1 else aj.scan(lambda s, row: (s + row, None), 0.0, x)[0], (1,), (3000,)),
}


def quick_of(f: aj.Function, shape: tuple[int, ...]) -> int:
    f.inspect(np.ones(shape))
    (concrete,) = f._cache.values()
    native = concrete.convention.native
    assert isinstance(native, Native)
    return native.quick_up_to


@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_size("asks up to which size calls keep the GIL")
def test_short_calls_keep_the_gil_and_long_ones_do_not(name: str) -> None:
    fn, small, large = CASES[name]
    assert quick_of(aj.function(fn), small)
    assert not quick_of(aj.function(fn), large)


def test_integers_divide_in_constant_time() -> None:
    f = aj.function(lambda x: np.ones(x.shape, int) // 7 + x.astype(int) % 3)
    assert quick_of(f, (1000,))


GENERAL: dict[str, tuple[Callable[[Any], Any], tuple[int | None, ...], int]] = {  # with the size up to which calls are quick
    "add": (lambda x: x + 1.0, (None,), 4**7),
    "rows": (lambda x: np.sum(x * x), (None, 1000), 4**2),
    "products": (lambda x: x @ x.T, (None, 1000), 4),
    "pairs": (lambda x: x[:, None] - x, (None,), 4**3),
    "long rows": (lambda x: np.exp(x), (None, 100_000), 0),
    "loops": (lambda x: aj.scan(lambda s, row: (s + row, None), 0.0, x)[0], (None,), 0),
}


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.one_size("only the first size is a symbol")
def test_programs_for_all_sizes_keep_the_gil_at_small_ones(name: str) -> None:
    fn, shape, expected = GENERAL[name]
    f = aj.function(fn, input_signature=[aj.TensorSpec(shape, np.float64)])
    assert quick_of(f, tuple(7 if n is None else n for n in shape)) == expected
