"""Cost models make the expected decisions about the programs in `benchmarks/regression.py`: a mistake there only costs time."""

from __future__ import annotations

from benchmarks.regression import decisions


def test_decisions() -> None:
    found = decisions()
    assert {d.name: d.found for d in found} == {d.name: d.expected for d in found}
