"""Every function of the table has NumPy's results, on eager and on traced values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from adjit.tracer.numpy_table import LATE, LATE_FFT, LATE_LINALG, NUMPY
from tests.tracer.rows import BINARY, FUNCTIONS, METHODS, UNARY, Call
from tests.tracer.running import run_eager, run_traced, same


def calls() -> list[Any]:
    out = [(f.__name__, (f, (x,))) for f, samples in UNARY.items() for x in samples]
    out += [(f.__name__, (f, pair)) for f, pairs in BINARY.items() for pair in pairs]
    out += [(f.__name__, row) for f, rows in FUNCTIONS.items() for row in rows]
    out += [("method", row) for row in METHODS]
    return [pytest.param(row, id=f"{name}-{i}") for i, (name, row) in enumerate(out)]


@pytest.mark.parametrize("row", calls())
@pytest.mark.parametrize("runner", [run_eager, run_traced], ids=["eager", "traced"])
def test_has_numpys_results(row: Call, runner: Any) -> None:
    fn, args = row
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fn(*args)
    arrays = tuple(np.asarray(a) if isinstance(a, np.generic) else a for a in args)
    same(runner(fn, *arrays), expected)


def test_every_function_has_a_row() -> None:
    spectral = {name for name, module in LATE_LINALG.items() if module == "spectral"}
    elsewhere = LATE_FFT | spectral  # in the table once they have been used; test_fft.py and test_spectral.py have rows for them
    numpys = [f for f in NUMPY if getattr(np, f.__name__, None) is f or getattr(np.linalg, f.__name__, None) is f]
    own = {f for f in numpys if f.__name__ not in elsewhere}
    known = own | {getattr(np, name) for name in LATE if callable(getattr(np, name, None))}
    known |= {getattr(np.linalg, name) for name in LATE_LINALG if name not in spectral}
    assert len(known) > 250
    assert {f.__name__ for f in known if f not in UNARY and f not in BINARY and f not in FUNCTIONS} == set()
