"""The result of all passes together on whole programs: numbers of statements and kernels, and bytes of the arena.

No pass may lose what it achieves without anybody noticing: results stay right, and take longer. Fewer are welcome: then the row is lowered.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from adjit.passes.pipeline import OPTIMIZE
from tests.passes.achieved_programs import PROGRAMS
from tests.programs.check import traced


class Left(NamedTuple):
    statements: int  # at any depth
    kernels: int
    arena: int  # bytes


MOST = {
    "classifier": Left(68, 17, 24896),
    "convolutional": Left(34, 7, 40704),
    "attention": Left(14, 2, 35840),
    "normalised": Left(63, 11, 100352),
    "recurrent": Left(220, 27, 35328),
    "gated": Left(665, 41, 157184),
    "bodies": Left(74, 4, 9984),
    "heat": Left(42, 5, 60416),
    "rosenbrock": Left(29, 1, 0),
    "embedded": Left(22, 5, 4096),
    "process": Left(75, 10, 50560),
    "newton": Left(29, 6, 320),
    "lorenz": Left(248, 6, 576),
    "spectrum": Left(89, 6, 2304),
    "waves": Left(76, 5, 768),
    "branching": Left(31, 7, 2368),
    "hessians": Left(35, 4, 2816),
    "batched_loops": Left(23, 5, 1088),
    "hessian_products": Left(21, 1, 384),
    "checkpointed": Left(61, 11, 12992),
    "scattered": Left(51, 9, 1088),
    "triangles": Left(31, 5, 7488),
}


def left(text: str) -> Left:
    text = re.sub(r",\n +", ", ", text)  # long lines are folded after commas
    arena = re.search(r" arena (\d+)", text)
    assert arena is not None
    return Left(len(re.findall(r"^ +%.* = ", text, re.MULTILINE)), len(re.findall(r" = (?:fuse|rows)\b", text)), int(arena[1]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_more_than_before(name: str) -> None:
    program = PROGRAMS[name]
    func, _ = traced(program.function, program.args)
    found = left(str(OPTIMIZE(func)))
    assert all(now <= before for now, before in zip(found, MOST[name], strict=True)), f"{found} instead of {MOST[name]}"
