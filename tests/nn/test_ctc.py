"""The CTC loss against the sum over all paths, enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np

import adjit as aj
from adjit.nn import losses
from adjit.nn.ctc import ctc_loss
from tests.nn.reference import assert_close, raises_with, random


def collapsed(path):
    return [k for k, _ in itertools.groupby(path) if k != 0]


def enumerated(labels, logits):
    """-log of the summed probability of all paths for the labels."""
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=p.shape[0]):
        if collapsed(path) == list(labels):
            total += math.prod(p[t, k] for t, k in enumerate(path))
    return -math.log(total)


LABELS = np.array([[1, 2, 0], [1, 1, 0], [2, 0, 0], [0, 0, 0], [1, 2, 1]])
LOGITS = random(5, 5, 3)


def test_against_all_paths() -> None:
    wanted = [enumerated(row[row != 0], x) for row, x in zip(LABELS, LOGITS, strict=True)]
    assert_close(ctc_loss(LABELS, LOGITS), wanted, 1e-12)
    assert_close(aj.function(lambda y, x: ctc_loss(y, x))(LABELS, LOGITS), wanted, 1e-12)


def test_as_a_loss() -> None:
    wanted = np.mean([enumerated(row[row != 0], x) for row, x in zip(LABELS, LOGITS, strict=True)])
    for loss in (losses.CTC(), losses.get_loss("ctc")):
        assert_close(loss(LABELS, LOGITS), wanted, 1e-12)


def test_lengths() -> None:
    times, counts = np.array([4, 5, 2, 3, 5]), np.array([2, 2, 1, 0, 3])
    wanted = [enumerated(row[:n], x[:t]) for row, x, n, t in zip(LABELS, LOGITS, counts, times, strict=True)]
    assert_close(ctc_loss(LABELS, LOGITS, counts, times), wanted, 1e-12)


def test_gradients() -> None:
    gradient = aj.grad(lambda x: ctc_loss(LABELS, x).sum())
    eager = np.asarray(gradient(LOGITS))
    assert_close(aj.function(gradient)(LOGITS), eager, 1e-12)
    direction, step = random(5, 5, 3, seed=1), 1e-6
    slope = (np.sum(ctc_loss(LABELS, LOGITS + step * direction)) - np.sum(ctc_loss(LABELS, LOGITS - step * direction))) / (2 * step)
    np.testing.assert_allclose(np.sum(eager * direction), slope, rtol=1e-7)


def test_extremes() -> None:
    value, gradient = aj.function(aj.value_and_grad(lambda x: ctc_loss(LABELS[:1], x).sum()))(LOGITS[:1].astype(np.float32) * 1e4)
    assert np.isfinite(float(value))
    assert np.isfinite(np.asarray(gradient)).all()
    impossible, gradient = aj.value_and_grad(lambda x: ctc_loss(np.array([[1, 1]]), x).sum())(LOGITS[:1, :2])
    assert float(impossible) > 1e29
    assert np.isfinite(np.asarray(gradient)).all()
    assert_close(ctc_loss(np.array([[1]]), LOGITS[:1, :1]), [enumerated([1], LOGITS[0, :1])])


def test_errors() -> None:
    with raises_with(ValueError, "i64[3]", "f64[5,5,3]"):
        ctc_loss(LABELS[0], LOGITS)
    with raises_with(TypeError, "class numbers"):
        ctc_loss(LABELS * 1.0, LOGITS)
    with raises_with(ValueError, "label_length", "i64[5]"):
        ctc_loss(LABELS, LOGITS, label_length=np.ones(4, int))
