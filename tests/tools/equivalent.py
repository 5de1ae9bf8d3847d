"""Mutants that make no difference to any result, each read and found so: the tool does not draw them.

A row is a file, the text of the changed line, what is changed, and why no test can notice. A line that is rewritten leaves its row behind;
`test_equivalent.py` finds such rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.tools.mutants import Mutant


class Equivalent(NamedTuple):
    file: str  # from the root of the repository
    line: str
    what: str
    why: str


EQUIVALENT: list[Equivalent] = []

_KNOWN = {row[:3] for row in EQUIVALENT}


def is_equivalent(mutant: Mutant, root: Path) -> bool:
    if not mutant.path.is_relative_to(root):
        return False
    return (mutant.path.relative_to(root).as_posix(), mutant.text, mutant.what) in _KNOWN
