"""Keras models in files: the loaded model predicts the same and trains on with the same bits; broken and foreign files raise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn, tf

keras = tf.keras
X = np.random.default_rng(0).normal(size=(8, 6)).astype("f4")
Y = np.random.default_rng(1).normal(size=(8, 2)).astype("f4")


def dense() -> Any:
    return keras.Sequential(
        [
            keras.layers.Dense(
                5, "relu", kernel_regularizer=keras.regularizers.L2(0.1), kernel_initializer=keras.initializers.HeNormal(seed=3)
            ),
            keras.layers.Dropout(0.5, seed=1),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(2, bias_constraint="non_neg"),
        ]
    )


def images() -> Any:
    return keras.Sequential(
        [
            keras.Input([6]),
            keras.layers.Reshape([3, 2, 1]),
            keras.layers.Conv2D(2, (2, 1), padding="same"),
            keras.layers.Flatten(),
            keras.layers.Dense(2),
        ]
    )


def sequences() -> Any:
    layers = keras.layers
    return keras.Sequential([layers.Reshape([3, 2]), layers.Bidirectional(layers.LSTM(3)), layers.Dense(2)])


def graph() -> Any:
    x = keras.Input([6], name="x")
    shared = keras.layers.Dense(3, activation="tanh")
    a, b = shared(x[:, :6]), shared(np.tanh(x) * 2.0)
    return keras.Model(x, keras.layers.Dense(2)(keras.layers.concatenate([a, b, a * b])))


MODELS = {make.__name__: make for make in (dense, images, sequences, graph)}


def test_a_model_whose_first_call_is_compiled_for_all_sizes(tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(2)])
    x = X.reshape(8, 3, 2)
    want = aj.function(lambda x: model(x), dynamic=True)(x)
    path = tmp_path / "model.keras"
    model.save(path)
    np.testing.assert_allclose(keras.models.load_model(path)(x), want, rtol=1e-6)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_predictions_and_training_go_on(make: Any, tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    model = make()
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)), "mse", metrics=["mae"])
    model.fit(X, Y, epochs=1, batch_size=4, verbose=0)
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.models.load_model(path)
    assert [v.name for v in loaded.variables] == [v.name for v in model.variables]
    np.testing.assert_array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))
    for each in (model, loaded):
        each.fit(X, Y, epochs=1, batch_size=4, verbose=0, shuffle=False)
    for a, b in zip(loaded.variables, model.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("compile", [True, False])
def test_models_that_were_compiled_and_never_trained(compile: bool, tmp_path: Path) -> None:
    model = dense()
    model(X)
    model.compile("adam", "mse")
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras", compile=compile)
    assert (loaded.optimizer is not None) is compile
    np.testing.assert_array_equal(loaded(X).numpy(), model(X).numpy())


def test_own_layers(tmp_path: Path) -> None:
    class Scale(keras.layers.Layer):
        def __init__(self, factor: float, **more: Any) -> None:
            super().__init__(**more)
            self.factor = factor

        def call(self, inputs: Any) -> Any:
            return inputs * self.factor

    model = keras.Sequential([Scale(3.0), keras.layers.Dense(1)])
    model(X)
    with pytest.raises(NotImplementedError, match=r"Scale cannot be saved: it is not a class of tf\.keras; decorate it"):
        model.save(tmp_path / "m.keras")
    keras.utils.register_keras_serializable()(Scale)
    model.save(tmp_path / "m.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "m.keras")(X).numpy(), model(X).numpy())


def test_code_is_refused(tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.Lambda(lambda x: x + 1), keras.layers.Dense(1)])
    model(X)
    with pytest.raises(NotImplementedError, match="because it is code or not data"):
        model.save(tmp_path / "m.keras")
    with pytest.raises(nn.WeightsError, match="has no variables to save"):
        keras.Sequential([keras.layers.Dense(1)]).save(tmp_path / "m.keras")


def test_frozen_layers_and_overwriting(tmp_path: Path) -> None:
    model = dense()
    model(X)
    model.layers[0].trainable = False
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert not loaded.layers[0].trainable
    assert loaded.optimizer is None
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "m.keras", overwrite=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("objects"), "broken"),
        (lambda d: d["objects"][0].update({"class": "layers.np"}), "not a class of tf.keras"),
        (lambda d: d["objects"][0].update({"class": "os.system"}), "not a class of tf.keras"),
        (lambda d: d["objects"][0].update({"kwargs": {"units": {"function": "numpy.load"}}, "args": []}), "not supported"),
        (lambda d: d.update(model=99), "broken"),
        (lambda d: d.update(version=99), "newer"),
    ],
)
def test_broken_descriptions(change: Any, message: str, tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.Dense(1)])
    model(X)
    path = tmp_path / "m.keras"
    model.save(path)
    description = json.loads(nn.read_metadata(path)["adjit.keras"])
    change(description)
    nn.write_arrays(path, nn.read_arrays(path), {"adjit.keras": json.dumps(description)})
    with pytest.raises(ValueError, match=message):
        keras.models.load_model(path)


def test_arrays_alone_are_not_a_model(tmp_path: Path) -> None:
    nn.write_arrays(tmp_path / "a.safetensors", {"a": np.zeros(2)})
    with pytest.raises(nn.WeightsError, match="no model"):
        keras.models.load_model(tmp_path / "a.safetensors")


def test_losses_given_as_functions(tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss=tf.keras.losses.MSE, optimizer="sgd")
    x, y = np.ones((4, 2), "f4"), np.zeros((4, 1), "f4")
    model.fit(x, y, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert loaded.evaluate(x, y, verbose=0) == model.evaluate(x, y, verbose=0)
