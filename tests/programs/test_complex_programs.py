"""Random programs with complex numbers and Fourier transforms: NumPy, eager, interpreted, compiled and differentiated agree.

`ADJIT_COMPLEX_PROGRAMS=2000` runs as many.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.programs.check import Mismatch, check
from tests.programs.draw import make_program
from tests.programs.grammar_complex import RULES
from tests.programs.test_source_programs import report

COUNT = int(os.environ.get("ADJIT_COMPLEX_PROGRAMS", "40"))
SHARE = 10  # programs of one test


@pytest.mark.parametrize("start", range(0, COUNT, SHARE))
def test_programs(start: int) -> None:
    for seed in range(start, min(start + SHARE, COUNT)):
        program = make_program(seed, RULES)
        try:
            check(program)
        except Mismatch as error:
            report(program, error)


def test_programs_have_complex_numbers() -> None:
    texts = [str(make_program(seed, RULES)) for seed in range(30)]
    assert np.mean(["j" in text or "fft" in text for text in texts]) > 0.7
    assert np.mean(["np.fft" in text for text in texts]) > 0.3
