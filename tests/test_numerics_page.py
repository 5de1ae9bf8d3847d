"""The table in docs/numerics.md against native code: a sample of every row must be within the published errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjit.codegen.llvm.target import current
from tests.accuracy import ROWS, Row

PAGE = Path(__file__).parent.parent / "docs" / "numerics.md"
LINES = re.findall(r"^\| `([^`]*)` \| ([\d.]+) \| ([\d.]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
BOUNDS = {text: (float(single), float(double)) for text, single, double in LINES}


def test_the_page_has_every_row_and_keeps_its_promise() -> None:
    assert list(BOUNDS) == [row.text for row in ROWS]
    assert max(map(max, BOUNDS.values())) <= 2.0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text)
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64)], ids=str)
def test_errors_are_within_the_published_bound(row: Row, dtype: np.dtype[Any]) -> None:
    single = dtype == np.float32 and row.name != "erf"
    args = row.samples(dtype, 20_000 if single else 150, seed=1)
    got = np.asarray(row.compiled()(*args))
    errors = row.errors(got, *args) if single else row.exact_errors(got, *args)
    worst = int(np.argmax(errors))
    bound = BOUNDS[row.text][dtype.itemsize // 8]
    if row.text.startswith("x**") and not current().fma:
        bound = max(bound, 2.5)
    assert errors[worst] <= bound + 1e-6, ([float(a[worst]) for a in args], got[worst])
