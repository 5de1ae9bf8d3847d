"""Regularizers and other additions to the loss."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from adjit.nn import regularizers
from tests.nn.reference import assert_close, raises_with, random

D = {"dtype": "float64"}
X, Y = random(12, 4), random(12, 3, seed=1)


def test_values() -> None:
    x = random(3, 4)
    for make, wanted in (
        (regularizers.L1(0.3), 0.3 * abs(x).sum()), (regularizers.L2(0.2), 0.2 * (x * x).sum()),
        (regularizers.L1L2(0.3, 0.2), 0.3 * abs(x).sum() + 0.2 * (x * x).sum()),
        (regularizers.get_regularizer("l2"), 0.01 * (x * x).sum()), (regularizers.get_regularizer("l1_l2"), 0.01 * (abs(x) + x * x).sum()),
    ):  # fmt: skip
        assert_close(make(x), wanted, 1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_ten_steps_against_formulas(compiled: bool) -> None:
    """All of a layer's penalties, trained by the trainer: the mean square of errors, l2 of the kernel, l1 of the bias, l2 of the output."""
    layer = nn.Dense(
        3, kernel_regularizer=regularizers.L2(0.05), bias_regularizer="l1", activity_regularizer=regularizers.L2(0.1),
        bias_initializer="ones", **D,
    )  # fmt: skip
    layer(X)
    w, b = layer.get_weights()
    trainer = nn.Trainer(layer, "mse", nn.optimizers.SGD(0.1), compiled=compiled)
    for _ in range(10):
        out = X @ w + b
        loss = ((out - Y) ** 2).mean() + 0.05 * (w * w).sum() + 0.01 * abs(b).sum() + 0.1 * (out * out).sum() / 12
        slope = 2 * (out - Y) / out.size + 0.2 * out / 12
        w, b = w - 0.1 * (X.T @ slope + 0.1 * w), b - 0.1 * (slope.sum(0) + 0.01 * np.sign(b))
        assert_close(trainer._train(X, Y, None), loss, 1e-12)
        assert_close(layer.kernel, w, 1e-12)
        assert_close(layer.bias, b, 1e-12)
    out = X @ w + b
    loss = ((out - Y) ** 2).mean() + 0.05 * (w * w).sum() + 0.01 * abs(b).sum() + 0.1 * (out * out).sum() / 12
    assert_close(trainer.evaluate(X, Y)["loss"], loss, 1e-6)


def test_every_variable_that_takes_one() -> None:
    layers = {
        nn.Conv2D(2, 2, kernel_regularizer="l2"): (random(1, 3, 3, 1), 1),
        nn.Embedding(3, 2, embeddings_regularizer="l2"): (np.array([0]), 1),
        nn.LSTM(2, kernel_regularizer="l2", recurrent_regularizer="l2", bias_regularizer="l2"): (random(1, 3, 2), 3),
        nn.BatchNorm(gamma_regularizer="l1"): (random(2, 3), 1), nn.LayerNorm(beta_regularizer="l1"): (random(2, 3), 1),
        nn.MultiHeadAttention(1, 2, kernel_regularizer="l2"): (random(1, 3, 2), 4),
        nn.Sequential([nn.Dense(2, kernel_regularizer="l2"), nn.Residual(nn.Dense(2, bias_regularizer="l2"))]): (random(1, 3), 2),
    }  # fmt: skip
    for layer, (x, count) in layers.items():
        layer(x)
        assert len(layer.losses) == count
        layer.trainable = False
        assert layer.losses == []


class Encoder(nn.Module):
    def __init__(self) -> None:
        self.inner = nn.Dense(2, **D)

    def call(self, x):
        code = self.inner(x)
        self.add_loss(0.5 * np.mean(code**2))
        return code


@pytest.mark.one_size("counts traces")
def test_losses_that_layers_add() -> None:
    model = nn.Sequential([Encoder(), nn.Dense(3, **D)])
    model(X)
    code = np.asarray(model.layers[0](X))
    assert_close(model.layers[0].losses[0], 0.5 * (code**2).mean())
    model(X)
    model(X)
    assert len(model.losses) == 1
    out = np.asarray(model(X))
    trainer = nn.Trainer(model, "mse", nn.optimizers.SGD(0.0))
    for _ in range(2):
        assert_close(trainer._train(X, Y, None), ((out - Y) ** 2).mean() + 0.5 * (code**2).mean())
    assert trainer._train.trace_count == 1

    @aj.function
    def own_step(x):
        return np.sum(model(x)) + sum(model.losses)

    assert_close(own_step(X), out.sum() + 0.5 * (code**2).mean())


def test_errors() -> None:
    with raises_with(TypeError, "Dense has no option 'kernal_regularizer'", "kernel_regularizer", "activity_regularizer"):
        nn.Dense(2, kernal_regularizer="l2")
    with raises_with(ValueError, "no regularizer 'l3'", "l1, l2"):
        nn.Dense(2, kernel_regularizer="l3")
    with raises_with(TypeError, "name or a function", "0.1"):
        nn.Dense(2, kernel_regularizer=0.1)
    with raises_with(ValueError, "L2", "-1"):
        regularizers.L2(-1.0)
    with raises_with(RuntimeError, "call add_loss inside call"):
        nn.Dense(2).add_loss(1.0)
