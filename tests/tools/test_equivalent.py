"""Every row of the list of equivalent mutants is a mutant of an existing line."""

from __future__ import annotations

from pathlib import Path

from tests.tools.equivalent import EQUIVALENT, is_equivalent
from tests.tools.mutants import mutants

ROOT = Path(__file__).parents[2]


def test_rows_are_mutants() -> None:
    assert len({row[:3] for row in EQUIVALENT}) == len(EQUIVALENT)
    for file in {row.file for row in EQUIVALENT}:
        found = {(m.text, m.what) for m in mutants(ROOT / file, lambda name: True) if is_equivalent(m, ROOT)}
        assert found == {(row.line, row.what) for row in EQUIVALENT if row.file == file}


def test_rows_say_why() -> None:
    assert all(len(row.why.split()) >= 4 for row in EQUIVALENT)
