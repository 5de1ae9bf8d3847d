"""Garbage collection waits for compilations, and goes on after them, failed ones too."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import adjit as aj


def test_collection_goes_on_as_it_was() -> None:
    seen = []

    def noted(x):
        seen.append(gc.isenabled())
        return x + 1.0

    assert gc.isenabled()
    aj.function(noted)(np.ones(2))
    assert gc.isenabled()
    gc.disable()
    try:
        aj.function(noted)(np.ones(3))
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen == [False, False]


def test_an_error_while_tracing_leaves_it_on() -> None:
    def broken(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        aj.function(broken)(np.ones(2))
    assert gc.isenabled()
