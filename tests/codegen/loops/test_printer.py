"""The output of `inspect().loops`."""

from __future__ import annotations

import re

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.program import loops_text


@pytest.mark.one_size("the text has known sizes")
def test_sums_of_rows() -> None:
    executable = aj.function(lambda x: np.sum(np.tanh(x), 1)).inspect(np.ones((3, 19)))._executable
    assert loops_text(executable.optimized, executable.target._replace(vector_bytes=32)) == (
        """\
kernel k0(%p0: 456 bytes, %p1: 24 bytes) {
  nest 3 x 19 {
    for i0 in 0..3 {
      for i1 in 0..16 step 8 carry sum0 x8 {
        vector i1 x8 {
          %0 = load %p0[19*i0 + i1]
          %1 = tanh %0
          sum sum0, %1
        }
      }
      total0 = fold sum0 x8
      vector 16 x3 {
        %0 = load %p0[19*i0 + 16]
        %1 = tanh %0
        sum sum0, %1
      }
      total0 = fold sum0 x3
      %p1[i0] = total0
    }
  }
}
"""
    )


def softmax(x):
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def test_every_kind_of_kernel_is_shown() -> None:
    def f(x):
        return np.pad(x, 1), np.sum(x), np.sum(x, 0), np.where(x > 0, x, np.arange(700.0)), np.cumsum(x), x @ x.T

    x = np.ones((900, 700))
    loops = aj.function(f).inspect(x).loops + aj.function(softmax).inspect(x).loops
    for word in ("parallel chunk in", "for row in", "local %row0", "slot0 =", "carry sum0", "select", "%work["):
        assert word in loops, word
    assert len(re.findall(r"^kernel ", loops, re.M)) > 4


@pytest.mark.one_size("the text has known sizes")
def test_a_product_in_tiles() -> None:
    executable = aj.function(lambda x, y: x @ y).inspect(np.ones((9, 4)), np.ones((4, 8)))._executable
    assert loops_text(executable.optimized, executable.target._replace(vector_bytes=32, vector_registers=16)) == (
        """\
kernel k0(%p0: 576 bytes, %p1: 288 bytes, %p2: 256 bytes) {
  contraction 9 x 8 {
    for i1 in 0..8 step 8 {
      for i0 in 0..5 step 5 {
        tile 5 x 4+4 sum over i2 in 0..4 {
          %0 = sum %p1[4*i0 + i2] * %p2[i1 + 8*i2]
          store %p0[8*i0 + i1], %0
        }
      }
      for i0 in 5..9 step 4 {
        tile 4 x 4+4 sum over i2 in 0..4 {
          %0 = sum %p1[4*i0 + i2] * %p2[i1 + 8*i2]
          store %p0[8*i0 + i1], %0
        }
      }
    }
  }
}
"""
    )


@pytest.mark.one_size("the text has known sizes")
def test_a_large_product_is_a_call() -> None:
    """One that no number of threads divides into strips of equal size: all threads compute it together."""
    loops = aj.function(lambda x: x @ x).inspect(np.ones((607, 607))).loops
    assert re.search(r"call \S+ writes %p0\[607\*i0 \+ i1\] for i0 in 0\.\.607, i1 in 0\.\.607 reads %p1\[", loops)


@pytest.mark.one_size("the text has known sizes")
def test_narrow_borders_are_not_vectorised_across_rows() -> None:
    """The first column of a roll is read and written element by element in any case: vectors of it would only be more code."""
    loops = aj.function(lambda x: np.tanh(np.roll(x, 1, 1) + x)).inspect(np.ones((32, 40))).loops
    border = loops.partition("nest 32 {")[2]
    assert "for i0 in 0..32 {" in border
    assert "vector i0 x1 {" in border
    wide = aj.function(lambda x: np.tanh(np.pad(x, [(0, 0), (0, 1)]) + np.pad(x, [(0, 0), (1, 0)]))).inspect(np.ones((32, 2))).loops
    assert "x1 {" not in wide, "a third of the work"
