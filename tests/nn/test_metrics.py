"""Metrics over several batches, eager and inside a compiled step."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit.nn import metrics
from tests.nn.reference import assert_close, raises_with

RNG = np.random.default_rng(0)
LABELS, SCORES = RNG.integers(0, 6, 40), RNG.normal(size=(40, 6))
BITS, PROBABILITIES = RNG.integers(0, 2, 40).astype(float), RNG.random(40)


def over_batches(metric, y, p, weight=None):
    """The result after four batches, by a compiled update; then once more after a reset, eagerly."""
    update = aj.function(lambda *args: metric.update_state(*args))
    results = []
    for run in (update, metric.update_state):
        metric.reset_state()
        for k in range(0, 40, 12):
            part = slice(k, k + 12)
            run(*(a[part] for a in (y, p, weight) if a is not None))
        results.append(float(np.asarray(metric.result())))
    assert_close(results[0], results[1], 1e-12)
    return results[0]


def roc_area(y, p):
    """The share of pairs that are in the right order."""
    positive, negative = p[y > 0.5], p[y < 0.5]
    return (positive[:, None] > negative).mean() + 0.5 * (positive[:, None] == negative).mean()


RANKS = (SCORES[np.arange(40), LABELS][:, None] < SCORES).sum(1)
CASES = {
    "accuracy": (metrics.Accuracy(), LABELS, LABELS % 5, (LABELS < 5).mean()),
    "sparse": (metrics.SparseCategoricalAccuracy(), LABELS, SCORES, (SCORES.argmax(1) == LABELS).mean()),
    "categorical": (metrics.CategoricalAccuracy(), np.eye(6)[LABELS], SCORES, (SCORES.argmax(1) == LABELS).mean()),
    "binary": (metrics.BinaryAccuracy(), BITS, PROBABILITIES, ((PROBABILITIES > 0.5) == BITS).mean()),
    "top_k": (metrics.SparseTopKCategoricalAccuracy(3), LABELS, SCORES, (RANKS < 3).mean()),
    "top_k_one_hot": (metrics.TopKCategoricalAccuracy(2), np.eye(6)[LABELS], SCORES, (RANKS < 2).mean()),
    "mse": (metrics.MeanSquaredError(), BITS, PROBABILITIES, ((BITS - PROBABILITIES) ** 2).mean()),
    "rmse": (metrics.RootMeanSquaredError(), BITS, PROBABILITIES, np.sqrt(((BITS - PROBABILITIES) ** 2).mean())),
    "mae": (metrics.MeanAbsoluteError(), BITS, PROBABILITIES, abs(BITS - PROBABILITIES).mean()),
    "precision": (metrics.Precision(), BITS, PROBABILITIES, BITS[PROBABILITIES > 0.5].mean()),
    "recall": (metrics.Recall(), BITS, PROBABILITIES, (PROBABILITIES[BITS > 0] > 0.5).mean()),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    metric, y, p, wanted = CASES[name]
    if y.ndim == 1 and p.ndim == 1 and name not in ("accuracy",):
        y, p = y[:, None], p[:, None]
    assert_close(over_batches(metric, y, p), wanted, 1e-9)


def test_auc_is_the_share_of_ordered_pairs() -> None:
    assert abs(over_batches(metrics.AUC(2000), BITS, PROBABILITIES) - roc_area(BITS, PROBABILITIES)) < 2e-3


def test_means_and_weights() -> None:
    mean = metrics.Mean()
    mean.update_state([1.0, 3.0])
    mean.update_state(10.0, sample_weight=2.0)
    assert float(mean.result()) == 6.0
    mean.reset_state()
    assert float(mean.result()) == 0.0
    weight = RNG.random(40)
    hit = SCORES.argmax(1) == LABELS
    assert_close(over_batches(metrics.SparseCategoricalAccuracy(), LABELS, SCORES, weight), (hit * weight).sum() / weight.sum())
    total = metrics.Sum()
    assert float(total([1.0, 2.0])) == 3.0


def test_accuracy_by_name_looks_at_the_shapes() -> None:
    columns = BITS[:, None], PROBABILITIES[:, None]
    for y, p, wanted in ((LABELS, SCORES, "sparse"), (np.eye(6)[LABELS], SCORES, "categorical"), (*columns, "binary")):
        assert_close(over_batches(metrics.get_metric("accuracy"), y, p), CASES[wanted][3])
    assert metrics.get_metric("acc").name == "acc"
    assert metrics.get_metric(lambda y, p: y - p).name == "<lambda>"
    with raises_with(ValueError, "no metric 'acuracy'", "accuracy"):
        metrics.get_metric("acuracy")
    with raises_with(ValueError, "i64[3]", "f64[40,6]"):
        metrics.SparseCategoricalAccuracy().update_state(LABELS[:3], SCORES)
