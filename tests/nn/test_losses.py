"""Losses against formulas, at extreme values, with weights and reductions; and their errors."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from adjit.nn import losses
from tests.nn.reference import assert_close, raises_with

RNG = np.random.default_rng(0)
TRUE, PRED = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
P = RNG.uniform(0.05, 0.95, (5, 3))
Q = P / P.sum(-1, keepdims=True)
LABELS = np.array([0, 2, 1, 1, 0])
ONE_HOT = np.eye(3)[LABELS]
BITS = (TRUE > 0).astype(float)
SIGNS = np.sign(TRUE)
LOG_P = PRED - np.log(np.exp(PRED).sum(-1, keepdims=True))
SIGMOID = 1 / (1 + np.exp(-PRED))


def bce(y, p):
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


def huber(e, d):
    return np.where(abs(e) <= d, 0.5 * e * e, d * abs(e) - 0.5 * d * d).mean(-1)


CASES = {
    "mean_squared_error": (TRUE, PRED, {}, ((PRED - TRUE) ** 2).mean(-1)),
    "mean_absolute_error": (TRUE, PRED, {}, abs(PRED - TRUE).mean(-1)),
    "mean_absolute_percentage_error": (TRUE, PRED, {}, 100 * (abs(PRED - TRUE) / abs(TRUE)).mean(-1)),
    "mean_squared_logarithmic_error": (Q, P, {}, ((np.log1p(P) - np.log1p(Q)) ** 2).mean(-1)),
    "huber": (TRUE, PRED, {"delta": 0.7}, huber(PRED - TRUE, 0.7)),
    "log_cosh": (TRUE, PRED, {}, np.log(np.cosh(PRED - TRUE)).mean(-1)),
    "poisson": (Q, P, {}, (P - Q * np.log(P + 1e-7)).mean(-1)),
    "hinge": (SIGNS, PRED, {}, np.maximum(1 - SIGNS * PRED, 0).mean(-1)),
    "squared_hinge": (BITS, PRED, {}, (np.maximum(1 - (2 * BITS - 1) * PRED, 0) ** 2).mean(-1)),
    "categorical_hinge": (
        ONE_HOT, PRED, {}, np.maximum(((1 - ONE_HOT) * PRED).max(-1) - (ONE_HOT * PRED).sum(-1) + 1, 0),
    ),
    "cosine_similarity": (
        TRUE, PRED, {}, -(TRUE * PRED).sum(-1) / np.linalg.norm(TRUE, axis=-1) / np.linalg.norm(PRED, axis=-1),
    ),
    "kl_divergence": (Q, Q[::-1], {}, (Q * np.log(Q / Q[::-1])).sum(-1)),
    "binary_crossentropy": (BITS, P, {}, bce(BITS, P)),
    "binary_crossentropy logits": (BITS, PRED, {"from_logits": True, "label_smoothing": 0.2}, bce(BITS * 0.8 + 0.1, SIGMOID)),
    "categorical_crossentropy": (ONE_HOT, P, {}, -(ONE_HOT * np.log(Q)).sum(-1)),
    "categorical_crossentropy logits": (
        ONE_HOT, PRED, {"from_logits": True, "label_smoothing": 0.3}, -((ONE_HOT * 0.7 + 0.1) * LOG_P).sum(-1),
    ),
    "sparse_categorical_crossentropy": (LABELS, P, {}, -np.log(Q[np.arange(5), LABELS])),
    "sparse_categorical_crossentropy logits": (LABELS, PRED, {"from_logits": True}, -LOG_P[np.arange(5), LABELS]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case: str) -> None:
    y_true, y_pred, options, wanted = CASES[case]
    function = getattr(losses, case.split()[0])
    call = lambda p: function(y_true, p, **options)  # noqa: E731
    assert_close(call(y_pred), wanted, 1e-12)
    gradient = aj.grad(lambda p: call(p).sum())
    eager = np.asarray(gradient(y_pred))
    assert_close(aj.function(gradient)(y_pred), eager, 1e-12)
    direction = RNG.normal(size=y_pred.shape)
    step = 1e-6
    slope = (np.sum(call(y_pred + step * direction)) - np.sum(call(y_pred - step * direction))) / (2 * step)
    np.testing.assert_allclose(np.sum(eager * direction), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_classes_reduce(case: str) -> None:
    y_true, y_pred, options, wanted = CASES[case]
    cls = getattr(losses, "".join(w.capitalize() for w in case.split()[0].split("_")).replace("KlD", "KLD"))
    assert_close(cls(**options)(y_true, y_pred), wanted.mean(), 1e-12)
    assert_close(cls(reduction="sum", **options)(y_true, y_pred), wanted.sum(), 1e-12)
    assert_close(cls(reduction=None, **options)(y_true, y_pred), wanted, 1e-12)
    weight = np.array([0.0, 1.0, 2.0, 0.5, 1.0])
    assert_close(cls(**options)(y_true, y_pred, sample_weight=weight), (weight * wanted).mean(), 1e-12)
    assert_close(cls(reduction="mean", **options)(y_true, y_pred, sample_weight=weight), (weight * wanted).sum() / weight.sum(), 1e-12)


@pytest.mark.parametrize(
    "loss",
    [
        lambda p: losses.binary_crossentropy(np.array([[0.0, 1.0, 1.0]]), p, from_logits=True),
        lambda p: losses.categorical_crossentropy(np.array([[0.0, 1.0, 0.0]]), p, from_logits=True),
        lambda p: losses.sparse_categorical_crossentropy(np.array([2]), p, from_logits=True),
        lambda p: losses.binary_crossentropy(np.array([[0.0, 1.0, 1.0]]), p * 0.0),
        lambda p: losses.log_cosh(np.zeros((1, 3)), p),
        lambda p: losses.kl_divergence(np.array([[0.0, 1.0, 0.0]]), p * 0.0),
    ],
)
def test_extreme_predictions_are_finite(loss) -> None:
    p = np.array([[1e4, -1e4, 0.0]], np.float32)
    value, gradient = aj.function(aj.value_and_grad(lambda v: loss(v).sum()))(p)
    assert np.isfinite(float(value))
    assert np.isfinite(np.asarray(gradient)).all()


def test_labels_are_checked() -> None:
    logits = np.zeros((4, 3), np.float32)
    sparse = losses.SparseCategoricalCrossentropy(from_logits=True)
    for run in (sparse, aj.function(lambda y, p: sparse(y, p))):
        for bad in (3, -1):
            with pytest.raises(IndexError, match="out of bounds"):
                run(np.array([0, 1, 2, bad]), logits)
    with raises_with(ValueError, "i64[5]", "f32[4,3]", "[4]"):
        sparse(np.zeros(5, int), logits)
    with raises_with(ValueError, "one-hot", "categorical_crossentropy"):
        sparse(np.zeros((4, 3), int), logits)
    with raises_with(ValueError, "sparse loss", "f32[4,3]"):
        losses.categorical_crossentropy(np.zeros(4, int), logits)
    for shape in ((4,), (4, 1), (4, 2), (1, 3)):
        with raises_with(ValueError, "mean_squared_error", f"f32{list(shape)}".replace(" ", ""), "f32[4,3]", "reshape the labels"):
            losses.mean_squared_error(np.zeros(shape, np.float32), logits)
    with raises_with(ValueError, "sample_weight", "f32[3]"):
        losses.MeanSquaredError()(logits, logits, sample_weight=np.ones(3))


def test_labels_with_an_axis_of_one() -> None:
    assert_close(losses.mean_squared_error(np.ones(4), np.zeros((4, 1))), np.ones(4))
    assert losses.sparse_categorical_crossentropy(np.zeros((4, 1), int), np.ones((4, 3)) / 3).shape == (4,)


def test_ignored_class() -> None:
    out = np.asarray(losses.sparse_categorical_crossentropy(np.array([0, -1]), np.zeros((2, 2)), from_logits=True, ignore_class=-1))
    assert_close(out, [np.log(2.0), 0.0])


def test_names_and_options() -> None:
    assert_close(losses.get_loss("mse")(TRUE, PRED), ((PRED - TRUE) ** 2).mean())
    assert_close(losses.get_loss(lambda y, p: abs(y - p))(TRUE, PRED), abs(TRUE - PRED).mean())
    assert_close(losses.BinaryCrossentropy(True)(BITS, PRED), bce(BITS, SIGMOID).mean())
    with raises_with(ValueError, "no loss 'msee'", "mse"):
        losses.get_loss("msee")
    with raises_with(TypeError, "no option 'delt'", "delta"):
        losses.Huber(delt=1.0)
    with raises_with(ValueError, "reduction 'avg'", "sum_over_batch_size"):
        losses.Huber(reduction="avg")
    assert isinstance(nn.losses.Huber(), losses.Loss)


def test_several_outputs() -> None:
    truth, guess = {"a": TRUE, "b": LABELS}, {"a": PRED, "b": P}
    both = losses.get_loss({"a": "mse", "b": "sparse_categorical_crossentropy"}, {"a": 2.0, "b": 0.5})
    wanted = 2.0 * ((PRED - TRUE) ** 2).mean() + 0.5 * -np.log(Q[np.arange(5), LABELS]).mean()
    assert_close(both(truth, guess), wanted, 1e-12)
    assert_close(losses.get_loss(["mse", "mae"])([TRUE, TRUE], [PRED, PRED]), ((PRED - TRUE) ** 2 + abs(PRED - TRUE)).mean(), 1e-12)
    with raises_with(ValueError, "the outputs a, b", "labels have another structure"):
        both(TRUE, guess)
    with raises_with(TypeError, "one for each output"):
        losses.get_loss("mse", [1.0])
