"""Random programs with complex numbers and Fourier transforms: NumPy, eager, interpreted, compiled and differentiated agree.

`ADJIT_COMPLEX_PROGRAMS=2000` runs as many, from `ADJIT_PROGRAMS_SEED`; there are a fifth as many as of other programs (`ADJIT_PROGRAMS`).
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.programs.grammar_complex import program_of
from tests.programs.running import run_programs, starts

COUNT = int(os.environ.get("ADJIT_COMPLEX_PROGRAMS", int(os.environ.get("ADJIT_PROGRAMS", "200")) // 5))


@pytest.mark.parametrize("start", starts(COUNT))
def test_programs(start: int) -> None:
    run_programs(start, COUNT, program_of, "ADJIT_COMPLEX_PROGRAMS=1 python -m pytest tests/programs/test_complex_programs.py")


def test_programs_have_complex_numbers() -> None:
    texts = [str(program_of(seed)) for seed in range(30)]
    assert np.mean(["j" in text or "fft" in text for text in texts]) > 0.7
    assert np.mean(["np.fft" in text for text in texts]) > 0.3
