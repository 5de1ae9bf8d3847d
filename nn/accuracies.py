"""Accuracies: functions of labels and predictions that return whether, or how often, the predictions are correct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import I64
from adjit.tracer.convert import to_operands

from .loss_functions import mean_last, pair


def equal_labels(y_true: Any, y_pred: Any) -> Operand:
    """Whether labels and predicted labels are equal."""
    y_true, y_pred = to_operands(y_true, y_pred)
    if y_true.type.shape != y_pred.type.shape:
        raise ShapeError(f"accuracy: labels {y_true.type} and predicted labels {y_pred.type} differ in shape")
    return ops.equal(y_true, y_pred)


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Operand:
    """The share of labels 0 and 1 for which the prediction is on the right side of the threshold."""
    y_true, y_pred = pair("binary_accuracy", y_true, y_pred)
    return mean_last(ops.equal(y_true, (y_pred > threshold).astype(y_true.type.dtype)).astype(y_pred.type.dtype))


def categorical_accuracy(y_true: Any, y_pred: Any) -> Operand:
    """Whether the largest prediction is at the position of the 1 in the one-hot label."""
    y_true, y_pred = pair("categorical_accuracy", y_true, y_pred)
    return ops.equal(ops.argmax(y_true, -1), ops.argmax(y_pred, -1))


def class_labels(name: str, y_true: Any, y_pred: Any) -> tuple[Operand, Operand]:
    y_true, y_pred = to_operands(y_true, y_pred)
    if y_true.ndim == y_pred.ndim and y_true.type.shape[-1] == 1:
        y_true = ops.reshape(y_true, y_true.type.shape[:-1])
    if y_true.type.shape != y_pred.type.shape[:-1]:
        raise ShapeError(f"{name}: labels {y_true.type} must have the shape of the predictions {y_pred.type} without its last axis")
    return y_true.astype(I64), y_pred


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Operand:
    """Whether the largest prediction is that of the label's class."""
    labels, y_pred = class_labels("sparse_categorical_accuracy", y_true, y_pred)
    return ops.equal(labels, ops.argmax(y_pred, -1))


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Operand:
    """Whether the prediction for the label's class is among the k largest."""
    labels, y_pred = class_labels("sparse_top_k_categorical_accuracy", y_true, y_pred)
    chosen = ops.one_hot(labels, y_pred.type.shape[-1], dtype=y_pred.type.dtype)
    score = ops.sum(chosen * y_pred, -1, True)
    return ops.sum(y_pred > score, -1) < k


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Operand:
    """Whether the prediction at the position of the 1 in the one-hot label is among the k largest."""
    y_true, y_pred = pair("top_k_categorical_accuracy", y_true, y_pred)
    return sparse_top_k_categorical_accuracy(ops.argmax(y_true, -1), y_pred, k)


def accuracy_for(y_true_shape: Sequence[int], y_pred_shape: Sequence[int]) -> Callable[..., Operand]:
    """The accuracy that "accuracy" means in Keras for labels and predictions of these shapes."""
    if y_pred_shape[-1:] in ((1,), ()) or (len(y_pred_shape) == 1 and tuple(y_true_shape) == tuple(y_pred_shape)):
        return binary_accuracy
    return categorical_accuracy if tuple(y_true_shape) == tuple(y_pred_shape) else sparse_categorical_accuracy


def automatic_accuracy(y_true: Any, y_pred: Any) -> Operand:
    y_true, y_pred = to_operands(y_true, y_pred)
    return accuracy_for(y_true.type.shape, y_pred.type.shape)(y_true, y_pred)
