"""Cost models decide as they should about the programs that `benchmarks/regression.py` lists: a mistake there costs time alone."""

from __future__ import annotations

from benchmarks.regression import decisions


def test_decisions() -> None:
    found = decisions()
    assert {d.name: d.found for d in found} == {d.name: d.expected for d in found}
