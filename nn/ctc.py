"""Connectionist temporal classification: the loss of a label sequence whose alignment in time is unknown."""

from __future__ import annotations

from typing import Any

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import I64, TensorType
from adjit.tracer.control import scan
from adjit.tracer.convert import to_operands
from adjit.tracer.surface import reductions

from .core import within

__all__ = ["ctc_loss"]

IMPOSSIBLE = -1e30  # log of probability 0: finite, so that its derivatives are finite too


def ctc_loss(y_true: Any, y_pred: Any, label_length: Any = None, logit_length: Any = None, blank: int = 0) -> Operand:
    """Return -log of the probability of the labels, summed over all alignments with time: one value per example.

    `y_true` are labels [batch, longest] (without lengths, labels equal to `blank` are padding), `y_pred` logits [batch, time, classes].
    Labels that do not fit into the time steps have a loss of about 1e30. Graves et al., "Connectionist temporal classification", 2006.

    >>> logits = np.zeros((1, 4, 3), "f4")  # 4 time steps; blank and two letters
    >>> aj.nn.ctc_loss(np.array([[1, 2]]), logits).numpy().round(3)
    array([1.686], dtype=float32)
    """
    labels, logits = to_operands(y_true, y_pred)
    if labels.type.dtype.kind not in "iu":
        raise DTypeError(f"ctc_loss: labels are class numbers, not {labels.type}; use .astype('int32')")
    if labels.ndim != 2 or logits.ndim != 3 or labels.type.shape[0] != logits.type.shape[0] or not logits.type.is_float:
        raise ShapeError(f"ctc_loss: takes labels [batch, longest] and logits [batch, time, classes], not {labels.type} and {logits.type}")
    batch, time, classes = logits.type.shape
    labels = within(labels.astype(I64), classes)
    counts = ops.sum(ops.not_equal(labels, blank), -1) if label_length is None else lengths(label_length, batch, "label_length")
    times = None if logit_length is None else lengths(logit_length, batch, "logit_length")
    # a blank before, between and after the labels: paths advance by one, or skip a blank between two different labels
    states = ops.pad(labels, [0, 1], [0, 1], [0, 1], blank)
    before = shifted(states, 2, blank)
    skips = ops.logical_and(ops.not_equal(states, blank), ops.not_equal(states, before))
    seen = ops.transpose(reductions.log_softmax(logits, -1), (1, 0, 2))
    rows = ops.reshape(ops.iota((batch,), 0), (batch, 1))
    emitted = ops.getitem(seen, (slice(None), rows, states))
    place = ops.iota(states.type.shape, 1)
    first = ops.where(place < 2, ops.getitem(emitted, 0), IMPOSSIBLE)

    def step(alpha: Operand, inputs: tuple[Operand, Operand]) -> tuple[Operand, None]:
        now, t = inputs
        stay = ops.logaddexp(alpha, shifted(alpha, 1, IMPOSSIBLE))
        new = ops.logaddexp(stay, ops.where(skips, shifted(alpha, 2, IMPOSSIBLE), IMPOSSIBLE)) + now
        return (new if times is None else ops.where(ops.reshape(t < times, (batch, 1)), new, alpha)), None

    alpha = first
    if time > 1:
        alpha, _ = scan(step, first, (ops.getitem(emitted, slice(1, None)), ops.iota((time - 1,), 0) + 1))
    end = 2 * ops.reshape(counts, (batch, 1))
    last = ops.logical_or(ops.equal(place, end), ops.equal(place, end - 1))
    return -reductions.logsumexp(ops.where(last, alpha, IMPOSSIBLE), -1)


def lengths(given: Any, batch: int, what: str) -> Operand:
    (out,) = to_operands(given)
    if out.type.shape != (batch,) or out.type.dtype.kind not in "iu":
        raise ShapeError(f"ctc_loss: {what} must be {TensorType(I64, (batch,))}, not {out.type}")
    return out.astype(I64)


def shifted(x: Operand, by: int, fill: Any) -> Operand:
    """The last axis shifted to the right, with `fill` in front."""
    size = x.type.shape[1]
    return ops.slice_(ops.pad(x, [0, by], [0, 0], None, fill), [slice(None), slice(0, size)])
