"""Mutants that, after review, make no difference to any result: the tool does not draw them.

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
    Equivalent("passes/memory/buffers.py", "self.clock = 0", "0 -> 1", "positions are compared with each other only"),
    Equivalent("passes/memory/buffers.py", "self.clock += 1", "1 -> 2", "positions are compared with each other only"),
    Equivalent(
        "passes/memory/buffers.py",
        "self.last_use[id(self.root(new))] = self.clock + 1  # written to the variables after the last statement",
        "1 -> 2",
        "positions are compared with each other only",
    ),
    Equivalent("passes/memory/buffers.py", "now = 0", "0 -> 1", "nothing dies before position 1"),
    Equivalent(
        "passes/memory/buffers.py",
        "if window is None or id(window.root) in self.hosts or self.made_at[id(window.root)] <= since:",
        "self.made_at[id(window.root)] <= since -> self.made_at[id(window.root)] < since",
        "what an `if` makes at its own position, its results, no branch yields",
    ),
    Equivalent(
        "passes/memory/buffers.py",
        "if window is None or id(window.root) in self.plan.places or self.made_at[id(window.root)] <= loop.start:",
        "self.made_at[id(window.root)] <= loop.start -> self.made_at[id(window.root)] < loop.start",
        "what a loop makes at its start are its parameters, which `is_whole` rejects: a loop has blocks",
    ),
    Equivalent(
        "passes/memory/buffers.py",
        "until = next((loop.end for loop in loops if loop.start > self.made_at[root]), at)",
        "loop.start > self.made_at[root] -> loop.start >= self.made_at[root]",
        "what a loop makes at its start are its parameters, which live until its end",
    ),
    Equivalent(
        "passes/memory/buffers.py",
        "if free and self.made_at[id(old)] > self.made_at[id(carry)] and self.may_overwrite(old, new):",
        "self.made_at[id(old)] > self.made_at[id(carry)] -> self.made_at[id(old)] >= self.made_at[id(carry)]",
        "what is made with the carry are other parameters, which live until the end of the loop and are not overwritten before",
    ),
    Equivalent(
        "passes/memory/buffers.py",
        "if known and not indices[0].type.shape and at > self.made_at[id(carry)] and self.is_whole(window, value):",
        "at > self.made_at[id(carry)] -> at >= self.made_at[id(carry)]",
        "what is made with the carry are other parameters, which `is_whole` rejects: a loop has blocks",
    ),
    Equivalent(
        "passes/memory/buffers.py",
        "if fit > size:",
        "fit > size -> fit >= size",
        "a gap of no bytes is never taken, and disappears when a buffer beside it is released",
    ),
    Equivalent("passes/memory/in_place.py", "self._clock = 0", "0 -> 1", "positions are compared with each other only"),
    Equivalent("passes/memory/in_place.py", "self._clock += 1", "1 -> 2", "positions are compared with each other only"),
    Equivalent(
        "passes/memory/in_place.py",
        "for block in loop.blocks[:-1]:",
        "-1 -> +1",
        "a loop has a body, or a condition and a body; what shares memory with itself is as before",
    ),
    Equivalent(
        "passes/fusion/fuse.py",
        "self.ready[id(stmt.result)] = 2 * item.position + 1",
        "1 -> 2",
        "it is compared with even numbers, and a group with views is not merged into others",
    ),
    Equivalent(
        "passes/fusion/fuse.py",
        "self.ready[id(result)] = 2 * item.position + 1",
        "1 -> 2",
        "it is compared with even numbers, and a statement alone is not merged into others",
    ),
    Equivalent(
        "passes/fusion/fuse.py",
        "self.ready[id(result)] = 2 * item.position + 1",
        "2 * item.position + 1 -> 2 * item.position - 1",
        "no group has the position of a statement alone",
    ),
    Equivalent(
        "passes/fusion/fuse.py",
        "earliest = max([self.ready.get(id(v), -1) for v in values], default=-1)",
        "1 -> 2",
        "positions are not negative, and -2 | 1 is -1",
    ),
    *(
        Equivalent("passes/loops/unpack.py", line, "1 -> 2", "NumPy takes any negative size for the one that is left")
        for line in (
            "rows = np.moveaxis(numbered(stmt.args[0]), op.axes, range(-len(op.axes), 0)).reshape(result.type.size, -1)",
            "left = numbered(a).reshape(-1, summed)",
            "right = numbered(b).reshape(summed, -1)",
        )
    ),
    Equivalent(
        "ir/ops/special/modified.py",
        "nonzero = where_(x == 0.0, 1.0, x)",
        "1.0 -> 2.0",
        "what is divided by it is not chosen where x is 0",
    ),
    Equivalent(
        "ir/ops/arithmetic.py",
        "return apply(self, one, args[0]) * apply(self, one, args[1]) if i == 0 else None",
        "apply(self, one, args[0]) * apply(self, one, args[1]) -> apply(self, one, args[0]) / apply(self, one, args[1])",
        "both are 1 or -1",
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
