"""The functions of `nn.losses`: each returns one value per example.

Logarithms are safe: with `from_logits` nothing overflows; probabilities are clipped to [EPSILON, 1 - EPSILON].
"""

from __future__ import annotations

import math
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import F32, normalize_axes
from adjit.tracer.convert import to_operands
from adjit.tracer.surface import reductions

from .core import within
from .ctc import ctc_loss

EPSILON = 1e-7  # distance that probabilities keep from 0 and 1


def pair(name: str, y_true: Any, y_pred: Any) -> tuple[Operand, Operand]:
    """Labels and predictions in the dtype of the predictions, with the same rank."""
    y_true, y_pred = to_operands(y_true, y_pred)
    if not y_pred.type.is_float:
        y_pred = y_pred.astype(F32)
    y_true = y_true.astype(y_pred.type.dtype)
    if y_true.ndim == y_pred.ndim - 1 and y_pred.type.shape[-1] == 1:
        y_true = ops.reshape(y_true, (*y_true.type.shape, 1))
    elif y_pred.ndim == y_true.ndim - 1 and y_true.type.shape[-1] == 1:
        y_pred = ops.reshape(y_pred, (*y_pred.type.shape, 1))
    if y_true.type.shape != y_pred.type.shape:
        raise ShapeError(
            f"{name}: labels {y_true.type} and predictions {y_pred.type} differ in shape: one label is needed for each prediction; "
            "reshape the labels, or change the size of the last layer"
        )
    return y_true, y_pred


def mean_last(x: Operand) -> Operand:
    """The mean over the last axis; a scalar is returned unchanged."""
    return ops.sum(x, -1) * (1.0 / max(1, x.type.shape[-1])) if x.ndim else x


def mean_along(x: Operand, axis: int) -> Operand:
    """The mean over an axis; a scalar is returned unchanged."""
    return ops.sum(x, axis) * (1.0 / max(1, x.type.shape[axis])) if x.ndim else x


# ---- regression


def mean_squared_error(y_true: Any, y_pred: Any) -> Operand:
    """Return mean((y_pred - y_true)**2)

    >>> aj.nn.losses.mean_squared_error(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.065])
    """
    y_true, y_pred = pair("mean_squared_error", y_true, y_pred)
    return mean_last(ops.square(y_pred - y_true))


def mean_absolute_error(y_true: Any, y_pred: Any) -> Operand:
    """Return mean(|y_pred - y_true|)

    >>> aj.nn.losses.mean_absolute_error(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.25])
    """
    y_true, y_pred = pair("mean_absolute_error", y_true, y_pred)
    return mean_last(ops.absolute(y_pred - y_true))


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Operand:
    """Return 100 * mean(|y_pred - y_true| / |y_true|)

    >>> aj.nn.losses.mean_absolute_percentage_error(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([1.00000015e+08])
    """
    y_true, y_pred = pair("mean_absolute_percentage_error", y_true, y_pred)
    return 100.0 * mean_last(ops.absolute(y_pred - y_true) / ops.maximum(ops.absolute(y_true), EPSILON))


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Operand:
    """Return mean((log(1 + y_pred) - log(1 + y_true))**2), of non-negative values.

    >>> aj.nn.losses.mean_squared_logarithmic_error(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.0298])
    """
    pairs = pair("mean_squared_logarithmic_error", y_true, y_pred)
    y_true, y_pred = (ops.log1p(ops.maximum(x, EPSILON)) for x in pairs)
    return mean_last(ops.square(y_pred - y_true))


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Operand:
    """Return half the squared error up to `delta`, linear beyond.

    >>> aj.nn.losses.huber(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.0325])
    """
    y_true, y_pred = pair("huber", y_true, y_pred)
    error = ops.absolute(y_pred - y_true)
    small = ops.minimum(error, delta)
    return mean_last(small * (error - 0.5 * small))


def log_cosh(y_true: Any, y_pred: Any) -> Operand:
    """Return mean(log(cosh(y_pred - y_true))), without overflow.

    >>> aj.nn.losses.log_cosh(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.0321])
    """
    y_true, y_pred = pair("log_cosh", y_true, y_pred)
    error = y_pred - y_true
    return mean_last(error + ops.softplus(-2.0 * error) - math.log(2.0))


def poisson(y_true: Any, y_pred: Any) -> Operand:
    """Return mean(y_pred - y_true * log(y_pred))

    >>> aj.nn.losses.poisson(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.6283])
    """
    y_true, y_pred = pair("poisson", y_true, y_pred)
    return mean_last(y_pred - y_true * ops.log(y_pred + EPSILON))


# ---- margins


def signed(y_true: Operand) -> Operand:
    """Convert labels 0 and 1 to -1 and 1; labels -1 and 1 are unchanged."""
    binary = ops.all(ops.logical_or(ops.equal(y_true, 0.0), ops.equal(y_true, 1.0)))
    return ops.where(binary, 2.0 * y_true - 1.0, y_true)


def hinge(y_true: Any, y_pred: Any) -> Operand:
    """Return mean(max(0, 1 - y_true * y_pred)), for labels -1 and 1 (or 0 and 1).

    >>> aj.nn.losses.hinge(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.75])
    """
    y_true, y_pred = pair("hinge", y_true, y_pred)
    return mean_last(ops.maximum(1.0 - signed(y_true) * y_pred, 0.0))


def squared_hinge(y_true: Any, y_pred: Any) -> Operand:
    """Return mean(max(0, 1 - y_true * y_pred)**2), for labels -1 and 1 (or 0 and 1).

    >>> aj.nn.losses.squared_hinge(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.765])
    """
    y_true, y_pred = pair("squared_hinge", y_true, y_pred)
    return mean_last(ops.square(ops.maximum(1.0 - signed(y_true) * y_pred, 0.0)))


def categorical_hinge(y_true: Any, y_pred: Any) -> Operand:
    """Return max(0, 1 + the largest wrong score - the correct one), for one-hot labels.

    >>> aj.nn.losses.categorical_hinge(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.5])
    """
    y_true, y_pred = pair("categorical_hinge", y_true, y_pred)
    right = ops.sum(y_true * y_pred, -1)
    wrong = ops.max((1.0 - y_true) * y_pred, -1)
    return ops.maximum(wrong - right + 1.0, 0.0)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Operand:
    """Return the negative cosine of the angle, so that smaller is closer: -1 for the same direction.

    >>> aj.nn.losses.cosine_similarity(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([-0.9615])
    """
    y_true, y_pred = pair("cosine_similarity", y_true, y_pred)
    unit = [x * ops.rsqrt(ops.maximum(ops.sum(x * x, axis, True), 1e-12)) for x in (y_true, y_pred)]
    return -ops.sum(unit[0] * unit[1], axis)


# ---- distributions


def kl_divergence(y_true: Any, y_pred: Any) -> Operand:
    """Return sum(y_true * log(y_true / y_pred)) of two distributions on the last axis.

    >>> aj.nn.losses.kl_divergence(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.3567])
    """
    y_true, y_pred = (ops.clip(x, EPSILON, 1.0) for x in pair("kl_divergence", y_true, y_pred))
    return ops.sum(y_true * (ops.log(y_true) - ops.log(y_pred)), -1)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Operand:  # fmt: skip
    """Return the mean over `axis` of -log p of labels 0 and 1 (or probabilities in between).

    >>> aj.nn.losses.binary_crossentropy(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.2899])
    """
    y_true, y_pred = pair("binary_crossentropy", y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        return mean_along(ops.softplus(y_pred) - y_pred * y_true, axis)
    p = ops.clip(y_pred, EPSILON, 1.0 - EPSILON)
    return mean_along(-(y_true * ops.log(p) + (1.0 - y_true) * ops.log1p(-p)), axis)


def log_probabilities(y_pred: Operand, from_logits: bool, axis: int) -> Operand:
    if from_logits:
        return reductions.log_softmax(y_pred, axis)
    total = ops.sum(y_pred, axis, True)
    return ops.log(ops.clip(y_pred / total, EPSILON, 1.0 - EPSILON))


def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1) -> Operand:
    """Return -sum(y_true * log p) for one-hot labels (or distributions) on `axis`.

    >>> aj.nn.losses.categorical_crossentropy(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.2513])
    """
    y_true, y_pred = to_operands(y_true, y_pred)
    if y_true.type.shape != y_pred.type.shape:
        hint = "; for labels that are class numbers use the sparse loss" if y_true.ndim == y_pred.ndim - 1 else ""
        raise ShapeError(f"categorical_crossentropy: labels {y_true.type} and predictions {y_pred.type} differ in shape{hint}")
    y_true, y_pred = pair("categorical_crossentropy", y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + label_smoothing / y_pred.type.shape[axis]
    return -ops.sum(y_true * log_probabilities(y_pred, from_logits, axis), axis)


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> Operand:
    """Return -log p of the class given by each label; the classes are on `axis` of the predictions.

    A label out of range raises. Where the label is `ignore_class`, the loss is 0.

    >>> aj.nn.losses.sparse_categorical_crossentropy(np.array([1]), np.array([[0.2, 0.7]])).numpy().round(4)
    array([0.2513])
    """
    y_true, y_pred = to_operands(y_true, y_pred)
    if not y_pred.type.is_float or not y_pred.ndim:
        raise ShapeError(f"sparse_categorical_crossentropy: predictions must be floats with a last axis of classes, not {y_pred.type}")
    (last,) = normalize_axes(axis, y_pred.ndim, "sparse_categorical_crossentropy")
    if last != y_pred.ndim - 1:
        y_pred = ops.transpose(y_pred, [*(i for i in range(y_pred.ndim) if i != last), last])
    if y_true.ndim == y_pred.ndim and y_true.type.shape[-1] == 1:
        y_true = ops.reshape(y_true, y_true.type.shape[:-1])
    if y_true.type.shape != y_pred.type.shape[:-1]:
        hint = "; for one-hot labels use categorical_crossentropy" if y_true.type.shape == y_pred.type.shape else ""
        raise ShapeError(
            f"sparse_categorical_crossentropy: labels {y_true.type} must have the shape {list(y_pred.type.shape[:-1])} "
            f"of the predictions {y_pred.type} without its last axis{hint}"
        )
    if y_true.type.dtype.kind not in "iu":
        if y_true.type.dtype.kind == "b":
            raise DTypeError(f"sparse_categorical_crossentropy: labels are class numbers, not {y_true.type}; use .astype('int32')")
        y_true = y_true.astype("int64")
    classes = y_pred.type.shape[-1]
    ignored = None
    if ignore_class is not None:
        ignored = ops.equal(y_true, ignore_class)
        y_true = ops.where(ignored, 0, y_true)
    rows = ops.reshape(log_probabilities(y_pred, from_logits, -1), (-1, classes))
    labels = ops.reshape(within(y_true, classes), -1)
    picked = ops.getitem(rows, (ops.iota((rows.type.shape[0],), 0), labels))
    loss = ops.reshape(-picked, y_true.type.shape)
    return loss if ignored is None else ops.where(ignored, 0.0, loss)


def ctc(y_true: Any, y_pred: Any, blank: int = 0) -> Operand:
    """Return the loss of labels [batch, longest], padded by `blank`, whose alignment in time is unknown, from logits. See `nn.ctc_loss`.

    >>> aj.nn.losses.ctc(np.array([[1, 2]]), np.zeros((1, 4, 3), "f4")).numpy().round(3)
    array([1.686], dtype=float32)
    """
    return ctc_loss(y_true, y_pred, blank=blank)


end_at_callers(globals())
