"""What `inspect().loops` shows."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

import adjit as aj
from adjit.codegen.program import loops_text


def test_sums_of_rows() -> None:
    executable = aj.function(lambda x: np.sum(np.tanh(x), 1)).inspect(np.ones((3, 19)))._executable
    assert loops_text(executable.optimized, dataclasses.replace(executable.target, vector_bytes=32)) == (
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
