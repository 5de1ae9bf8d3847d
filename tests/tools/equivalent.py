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


EQUIVALENT = [
    Equivalent(
        "passes/memory/buffers.py",
        "if host is not None and any(self.root(a) is old for a in host.args if isinstance(a, Value)):",
        "drop the filter",
        "operands of a host are values: `legalize` has filled in the literals",
    ),
    *(
        Equivalent("passes/memory/buffers.py", "at = self.made_at.get(id(window.root), -1)", what, "a carry is made at position 1 or later")
        for what in ("-1 -> +1", "1 -> 2")
    ),
    Equivalent(
        "passes/dependencies.py",
        "size = kind.size if isinstance(kind, TensorType) else 1",
        "1 -> 2",
        "only the columns of a stack's pattern are read",
    ),
]

_KNOWN = {row[:3] for row in EQUIVALENT}


def is_equivalent(mutant: Mutant, root: Path) -> bool:
    if not mutant.path.is_relative_to(root):
        return False
    return (mutant.path.relative_to(root).as_posix(), mutant.text, mutant.what) in _KNOWN
