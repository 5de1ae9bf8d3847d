"""Every ufunc that adjit has returns NumPy's dtype: for every dtype, every pair of dtypes, and with Python numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.numpy_table import NUMPY

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
OTHERWISE = {np.conjugate}  # for bools NumPy returns int8; here, bools
KNOWN = sorted((u for u in NUMPY if isinstance(u, np.ufunc) and u.signature is None and u not in OTHERWISE), key=lambda u: u.__name__)


def operands(ufunc: np.ufunc) -> Iterator[tuple[Any, ...]]:
    for dtype in DTYPES:
        x = np.ones(2, dtype)
        if ufunc.nin == 1:
            yield (x,)
        elif ufunc.nin == 2:
            yield from ((x, 2), (2, x), (x, 0.5), (0.5, x), (x, True))
            yield from ((x, np.ones(2, other)) for other in DTYPES)


@pytest.mark.parametrize("ufunc", KNOWN, ids=lambda u: u.__name__)
def test_dtypes(ufunc: np.ufunc) -> None:
    wrong = []
    for given in operands(ufunc):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = ufunc(*given)
        except (TypeError, OverflowError):
            continue
        want = want[0] if isinstance(want, tuple) else want
        if want.dtype == np.float16:  # not supported: wider
            continue
        out = ufunc(*(aj.tensor(x) if isinstance(x, np.ndarray) else x for x in given))
        got = np.asarray(out[0] if isinstance(out, tuple) else out)
        if got.dtype != want.dtype:
            names = (x.dtype.name if isinstance(x, np.ndarray) else x for x in given)
            wrong.append((*names, "gives", got.dtype.name, "not", want.dtype.name))
    assert not wrong
