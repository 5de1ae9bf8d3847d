"""Runs random programs from the seed of this run; a failing one is printed as a small program, with the command that runs it again."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.programs.check import Mismatch, check
from tests.programs.program import Program
from tests.programs.shrink import shrunk

FIRST = int(os.environ.get("ADJIT_PROGRAMS_SEED", "0"))
SHARE = 10  # programs of one test


def starts(count: int) -> range:
    """The first seeds of tests that run so many programs in all."""
    return range(FIRST, FIRST + count, SHARE)


def run_programs(start: int, count: int, program_of: Callable[[int], Program], again: str) -> None:
    """Check one share of `count` programs. `again` is the setting, and the test, that run a single one."""
    with collected():
        for seed in range(start, min(start + SHARE, FIRST + count)):
            program = program_of(seed)
            try:
                check(program)
            except Mismatch as error:
                small, shown = smallest(program, error)
                pytest.fail(f"ADJIT_PROGRAMS_SEED={seed} {again}\n{small}\n{shown}", pytrace=False)


@contextmanager
def collected() -> Iterator[None]:
    """Collect garbage after the block: native code of dropped functions takes more memory than Python's object counts suggest.

    All that was there before is left alone, since looking at it takes as long as some of the checks.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()


def smallest(program: Program, error: Mismatch) -> tuple[Program, Mismatch]:
    """A smaller program that fails in the same way, and its exception."""
    small = shrunk(program, error.kind)
    try:
        check(small)
    except Mismatch as again:
        return small, again
    return program, error
