"""Layers, optimizers and losses against Keras, where it is installed (with TensorFlow): over the same ten steps of training."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from tests.nn.layer_cases import CASES, Case
from tests.nn.reference import Array, assert_close, random
from tests.nn.test_optimizers import B0, W0, X, Y
from tests.nn.test_optimizers import trained as optimized
from tests.nn.test_ten_steps import MOMENTUM, RATE, STEPS, by_formula, deviation, first_weights, trained

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")

pytestmark = pytest.mark.filterwarnings("ignore")  # those of another library

NAMES = {"BatchNorm": "BatchNormalization", "LayerNorm": "LayerNormalization", "RMSNorm": "RMSNormalization"}


class Spelling:
    """keras.layers, under the names of adjit.nn."""

    def __getattr__(self, name: str) -> Any:
        return getattr(keras.layers, NAMES.get(name, name))

    def Bidirectional(self, make: Any, **options: Any) -> Any:  # noqa: N802 - a layer's name
        return keras.layers.Bidirectional(make(), **options)

    Sequential, Model = keras.Sequential, keras.Model


def in_our_order(layer: Any) -> list[Any]:
    """Floating variables: trained ones first; of attention, kernels before biases."""
    variables = [*layer.trainable_variables, *(v for v in layer.non_trainable_variables if "float" in str(v.dtype))]
    return [*variables[::2], *variables[1::2]] if isinstance(layer, keras.layers.MultiHeadAttention) else variables


def trained_in_keras(case: Case, target: Array, dtype: str) -> list[Array]:
    layer = case.make(Spelling(), dtype=dtype)
    inputs = [keras.Variable(a, dtype=dtype) if a.dtype.kind == "f" else tf.constant(a) for a in case.inputs]
    call = {"value_mask" if name == "mask" and len(inputs) == 2 else name: value for name, value in case.call.items()}

    def forward() -> Any:
        return layer(*(tf.convert_to_tensor(x) for x in inputs), **call)

    forward()
    for variable, value in zip(in_our_order(layer), first_weights(case)[0], strict=True):
        variable.assign(value.reshape(variable.shape))
    variables = [*(x for x in inputs if isinstance(x, keras.Variable)), *layer.trainable_variables]
    optimizer = keras.optimizers.SGD(RATE, momentum=MOMENTUM)
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((forward() - target.astype(dtype)) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [v.value for v in variables]), variables, strict=True))
    return [np.asarray(v) for v in (*inputs, *in_our_order(layer))]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.in_keras])
def test_layers(name: str) -> None:
    case, target = CASES[name], by_formula(name)[1]
    for dtype, tolerance in (("float64", 1e-8), ("float32", 1e-5)):  # some constants are float32 in Keras, whatever the dtype
        ours, theirs = trained(case, target, dtype, compiled=True), trained_in_keras(case, target, dtype)
        assert deviation([a.reshape(b.shape) for a, b in zip(ours, theirs, strict=True)], theirs) < tolerance


OPTIMIZERS = {
    "sgd": ("SGD", {"learning_rate": 0.1}),
    "momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"learning_rate": 0.05}),
    "amsgrad": ("Adam", {"learning_rate": 0.05, "amsgrad": True}),
    "adamw": ("AdamW", {"learning_rate": 0.05, "weight_decay": 0.1}),
    "rmsprop": ("RMSprop", {"learning_rate": 0.05}),
    "rmsprop, centred": ("RMSprop", {"learning_rate": 0.05, "momentum": 0.5, "centered": True}),
    "adagrad": ("Adagrad", {"learning_rate": 0.5}),
    "adadelta": ("Adadelta", {"learning_rate": 1.0}),
    "adamax": ("Adamax", {"learning_rate": 0.05}),
    "nadam": ("Nadam", {"learning_rate": 0.05}),
    "lion": ("Lion", {"learning_rate": 0.05}),
    "clipped by value": ("SGD", {"learning_rate": 0.1, "clipvalue": 0.2}),
    "clipped by norm": ("SGD", {"learning_rate": 0.1, "clipnorm": 0.3}),
    "clipped by the global norm": ("SGD", {"learning_rate": 0.1, "global_clipnorm": 0.5}),
    "accumulated": ("Adam", {"learning_rate": 0.05, "gradient_accumulation_steps": 3}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    cls, options = OPTIMIZERS[name]
    w, b = keras.Variable(W0, dtype="float64"), keras.Variable(B0, dtype="float64")
    optimizer = getattr(keras.optimizers, cls)(**options)
    for ours in optimized(getattr(nn.optimizers, cls)(**options)):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((X @ w.value + b.value - Y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w.value, b.value]), [w, b], strict=True))
        assert deviation(ours, [np.asarray(w), np.asarray(b)]) < 1e-5  # Keras holds rates and powers of betas in float32


LOGITS, REAL = random(6, 4), random(6, 4, seed=1)
SHARES = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
CLASSES = np.array([0, 3, 1, 2, 2, 0])
FLAGS, ONE_HOT = (REAL > 0).astype(float), np.eye(4)[CLASSES]
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.0, 1.5, 1.0])

LOSSES = {
    "MeanSquaredError": [({}, REAL, LOGITS)],
    "MeanAbsoluteError": [({}, REAL, LOGITS)],
    "MeanAbsolutePercentageError": [({}, REAL, LOGITS)],
    "MeanSquaredLogarithmicError": [({}, REAL + 3.0, LOGITS + 3.0)],
    "Huber": [({}, REAL, LOGITS), ({"delta": 0.3}, REAL, LOGITS)],
    "LogCosh": [({}, REAL, LOGITS)],
    "Hinge": [({}, 2 * FLAGS - 1, LOGITS)],
    "SquaredHinge": [({}, 2 * FLAGS - 1, LOGITS)],
    "CategoricalHinge": [({}, ONE_HOT, LOGITS)],
    "KLDivergence": [({}, SHARES[::-1], SHARES)],
    "Poisson": [({}, FLAGS * 2, SHARES)],
    "CosineSimilarity": [({}, REAL, LOGITS)],
    "BinaryCrossentropy": [
        ({"from_logits": True}, FLAGS, LOGITS), ({}, FLAGS, SHARES), ({"from_logits": True, "label_smoothing": 0.2}, FLAGS, LOGITS),
    ],
    "CategoricalCrossentropy": [
        ({"from_logits": True}, ONE_HOT, LOGITS), ({}, ONE_HOT, SHARES), ({"from_logits": True, "label_smoothing": 0.2}, ONE_HOT, LOGITS),
    ],
    "SparseCategoricalCrossentropy": [({"from_logits": True}, CLASSES, LOGITS), ({}, CLASSES, SHARES)],
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    for options, truth, prediction in LOSSES[name]:
        for weights in (None, WEIGHTS):
            loss = getattr(nn.losses, name)(**options)
            ours = aj.function(aj.value_and_grad(lambda p, loss=loss, t=truth, w=weights: loss(t, p, sample_weight=w)))
            guess = tf.constant(prediction)
            with tf.GradientTape() as tape:
                tape.watch(guess)
                theirs = getattr(keras.losses, name)(**options, dtype="float64")(truth, guess, sample_weight=weights)
            for a, b in zip(ours(prediction), (theirs, tape.gradient(theirs, guess)), strict=True):
                assert_close(a, b, 1e-6)


def test_additions_to_the_loss() -> None:
    def total(layers: Any, regularizers: Any) -> float:
        penalties = {"kernel_regularizer": regularizers.L1L2(0.1, 0.2), "bias_regularizer": "l2"}
        layer = layers.Dense(3, **penalties, activity_regularizer=regularizers.L2(0.3), dtype="float64")
        layer(X)
        layer.set_weights([random(4, 3), random(3)])
        layer(X)
        return float(sum(np.asarray(loss) for loss in layer.losses))

    np.testing.assert_allclose(total(nn, nn.regularizers), total(keras.layers, keras.regularizers), rtol=1e-6)
