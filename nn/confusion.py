"""Metrics computed from counts of labels and predictions above thresholds: precision, recall, and areas under curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import F64
from adjit.tracer.convert import to_operand

from .loss_functions import pair
from .metric import Metric

__all__ = ["AUC", "Precision", "Recall"]


class Confusion(Metric):
    """Counts of labels and predictions for each threshold: the base of precision, recall and AUC."""

    def __init__(self, thresholds: Sequence[float], name: str | None = None) -> None:
        super().__init__(name)
        self.thresholds = np.asarray(thresholds, np.float64)
        shape = self.thresholds.shape
        self.true_positives, self.false_positives = self.add_state("true_positives", shape), self.add_state("false_positives", shape)
        self.positives, self.negatives = self.add_state("positives"), self.add_state("negatives")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true, y_pred = self.selected(*pair(self.name, y_true, y_pred))
        truth, scores = ops.reshape(y_true, -1) > 0.5, ops.reshape(y_pred, (-1, 1))
        weight = truth.astype(F64) * 0.0 + 1.0
        if sample_weight is not None:
            weight = weight * ops.reshape(to_operand(sample_weight).astype(F64), -1)
        above = (scores > to_operand(self.thresholds.astype(scores.type.dtype))).astype(F64)  # in their precision, as in Keras
        hit, miss = ops.where(truth, weight, 0.0), ops.where(truth, 0.0, weight)
        self.true_positives.assign_add(hit @ above)
        self.false_positives.assign_add(miss @ above)
        self.positives.assign_add(ops.sum(hit))
        self.negatives.assign_add(ops.sum(miss))

    def selected(self, y_true: Operand, y_pred: Operand) -> tuple[Operand, Operand]:
        """The labels and predictions that count."""
        return y_true, y_pred


class Decisions(Confusion):
    """Base of precision and recall. `threshold` is one number, or several for a result each.

    With `top_k`, the k largest predictions of a row are the positive ones (above a threshold, if that is given as well); with `class_id`,
    only that column counts.
    """

    def __init__(
        self, threshold: float | Sequence[float] | None = None, name: str | None = None, top_k: int | None = None,
        class_id: int | None = None,
    ) -> None:  # fmt: skip
        if threshold is None:
            threshold = 0.5 if top_k is None else -np.inf
        super().__init__(np.atleast_1d(np.asarray(threshold, np.float64)).tolist(), name)
        self.shape = np.shape(threshold)
        self.top_k, self.class_id = top_k, class_id

    def selected(self, y_true: Operand, y_pred: Operand) -> tuple[Operand, Operand]:
        if self.top_k is not None:
            ranks = ops.argsort(ops.argsort(-y_pred, -1), -1)
            y_pred = ops.where(ranks < self.top_k, y_pred, -np.inf)
        if self.class_id is None:
            return y_true, y_pred
        classes = y_pred.type.shape[-1] if y_pred.ndim else 0
        if not 0 <= self.class_id < classes:
            raise ShapeError(f"{self.name}: class_id {self.class_id} is not one of the {classes} columns of the predictions {y_pred.type}")
        column = (Ellipsis, self.class_id)
        return ops.getitem(y_true, column), ops.getitem(y_pred, column)


def ratio(a: Any, b: Any) -> Operand:
    """a / b, and 0 where b is 0."""
    return ops.where(ops.equal(b, 0.0), 0.0, a / ops.where(ops.equal(b, 0.0), 1.0, b))


class Precision(Decisions):
    """The share of positive predictions (above the threshold) that are correct.

    >>> metric = aj.nn.metrics.Precision()
    >>> metric.update_state(np.array([0, 1, 1]), np.array([0.2, 0.7, 0.4]))
    >>> round(float(metric.result()), 4)
    1.0
    """

    def __init__(
        self, threshold: float | Sequence[float] | None = None, name: str | None = "precision", top_k: int | None = None,
        class_id: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(threshold, name, top_k, class_id)

    def result(self) -> Operand:
        hits = self.true_positives.read_operand()
        return ops.reshape(ratio(hits, hits + self.false_positives), self.shape)


class Recall(Decisions):
    """The share of positive labels that are predicted (above the threshold).

    >>> metric = aj.nn.metrics.Recall()
    >>> metric.update_state(np.array([0, 1, 1]), np.array([0.2, 0.7, 0.4]))
    >>> round(float(metric.result()), 4)
    0.5
    """

    def __init__(
        self, threshold: float | Sequence[float] | None = None, name: str | None = "recall", top_k: int | None = None,
        class_id: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(threshold, name, top_k, class_id)

    def result(self) -> Operand:
        return ratio(ops.reshape(self.true_positives.read_operand(), self.shape), self.positives.read_operand())


class AUC(Confusion):
    """The area under the ROC curve or, with `curve="PR"`, that of precision and recall.

    It is summed over `num_thresholds` thresholds between 0 and 1, or over 0, 1 and the given `thresholds`: by trapezoids
    (`summation_method="interpolation"`), or by the smaller ("minoring") or larger ("majoring") of each two heights.

    >>> metric = aj.nn.metrics.AUC()
    >>> metric.update_state(np.array([0, 1, 1]), np.array([0.2, 0.7, 0.4]))
    >>> round(float(metric.result()), 4)
    1.0
    """

    def __init__(
        self, num_thresholds: int = 200, name: str | None = "auc", from_logits: bool = False, curve: str = "ROC",
        summation_method: str = "interpolation", thresholds: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        if curve not in ("ROC", "PR") or summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                f"AUC: curve is 'ROC' or 'PR', and summation_method 'interpolation', 'minoring' or 'majoring', not {curve!r} and "
                f"{summation_method!r}"
            )
        if thresholds is None and num_thresholds < 2:
            raise ValueError(f"AUC: there are at least 2 thresholds, 0 and 1, not {num_thresholds}")
        inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)] if thresholds is None else sorted(thresholds)
        super().__init__([-1e-7, *inner, 1.0 + 1e-7], name)
        self.from_logits, self.curve, self.summation_method = from_logits, curve, summation_method

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        super().update_state(y_true, ops.sigmoid(to_operand(y_pred)) if self.from_logits else y_pred, sample_weight)

    def result(self) -> Operand:
        hits, wrong, positives = self.true_positives.read_operand(), self.false_positives.read_operand(), self.positives.read_operand()
        if self.curve == "PR" and self.summation_method == "interpolation":
            return interpolated(hits, hits + wrong, positives)
        recall = ratio(hits, positives)
        if self.curve == "PR":
            x, y = recall, ratio(hits, hits + wrong)
        else:
            x, y = ratio(wrong, self.negatives.read_operand()), recall
        left, right = neighbours(y)
        heights = {"minoring": ops.minimum, "majoring": ops.maximum}.get(self.summation_method, middle)(left, right)
        start, end = neighbours(x)
        return ops.sum((start - end) * heights)


def neighbours(x: Operand) -> tuple[Operand, Operand]:
    """Return all values except the last, and for each the one after it."""
    return ops.slice_(x, [slice(None, -1)]), ops.slice_(x, [slice(1, None)])


def middle(a: Operand, b: Operand) -> Operand:
    return (a + b) * 0.5


def interpolated(hits: Operand, chosen: Operand, positives: Operand) -> Operand:
    """The area under precision and recall, between thresholds interpolated by numbers of true positives (Davis and Goadrich, 2006)."""
    (hits_before, hits_after), (before, after) = neighbours(hits), neighbours(chosen)
    slope = ratio(hits_before - hits_after, before - after)
    intercept = hits_after - slope * after
    both = ops.logical_and(before > 0.0, after > 0.0)
    growth = ops.where(both, ops.where(both, before, 1.0) / ops.where(both, after, 1.0), 1.0)
    return ops.sum(ratio(slope * ((hits_before - hits_after) + intercept * ops.log(growth)), positives))
