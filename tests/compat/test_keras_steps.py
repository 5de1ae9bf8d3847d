"""Keras models with user-defined steps, callbacks, summaries, and `build`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adjit import tf

keras = tf.keras
X = np.random.default_rng(0).normal(size=(64, 4)).astype("f4")
Y = X @ np.array([[1.0], [2.0], [-1.0], [0.5]], "f4")


class Line(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1, kernel_initializer="zeros")

    def call(self, x: Any) -> Any:
        return self.dense(x)


class Tracked(Line):
    """With a metric of its own, and neither loss nor metrics in `compile`."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker = keras.metrics.Mean(name="loss")
        self.largest = 0.0

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
            if loss > 1.0:  # decided by a value
                goal = loss * 1.0
            else:
                goal = loss + 1.0
        gradients = tape.gradient(goal, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}

    @property
    def metrics(self) -> Any:
        return [self.tracker]


class Computed(Line):
    """With the loss and the metrics of `compile`."""

    def train_step(self, data: Any) -> Any:
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=predicted, sample_weight=weight)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, predicted)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data: Any) -> Any:
        x, y = data
        return {"error": tf.reduce_mean((self(x, training=False) - y) ** 2)}


def plain() -> list[float]:
    model = Line()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model.fit(X, Y, batch_size=16, epochs=3, verbose=0, shuffle=False).history["loss"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("eager", [False, True])
def test_a_step_with_its_own_tracker(eager: bool) -> None:
    model = Tracked()
    model.compile(optimizer=keras.optimizers.SGD(0.1), run_eagerly=eager)
    history = model.fit(X, Y, batch_size=16, epochs=3, verbose=0, shuffle=False).history
    assert history["loss"] == pytest.approx(plain(), rel=1e-5)


def test_a_step_with_the_loss_and_metrics_of_compile() -> None:
    model = Computed()
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    history = model.fit(X, Y, batch_size=16, epochs=3, verbose=0, shuffle=False, validation_data=(X, Y)).history
    assert history["loss"] == pytest.approx(plain(), rel=1e-5)
    assert set(history) == {"loss", "mae", "val_error"}
    error = float(np.mean((np.asarray(model(X)) - Y) ** 2))
    assert model.evaluate(X, Y, batch_size=64, verbose=0, return_dict=True) == pytest.approx({"error": error}, rel=1e-5)
    assert model.predict(X, verbose=0).shape == (64, 1)


def test_a_step_that_extends_keras_own() -> None:
    class More(Line):
        def train_step(self, data: Any) -> Any:
            results = super().train_step(data)
            return {**results, "twice": 2.0 * results["loss"]}

    model = More()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    history = model.fit(X, Y, batch_size=16, epochs=3, verbose=0, shuffle=False).history
    assert history["loss"] == pytest.approx(plain(), rel=1e-5)
    assert history["twice"] == pytest.approx([2.0 * x for x in history["loss"]], rel=1e-5)


def test_data_without_labels_and_two_optimizers() -> None:
    class Twice(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.up = keras.layers.Dense(4, kernel_initializer="zeros")
            self.down = keras.layers.Dense(4, kernel_initializer="zeros")

        def compile(self, first: Any, second: Any) -> None:
            super().compile()
            self.first, self.second = first, second

        def train_step(self, x: Any) -> Any:
            for optimizer, layer in ((self.first, self.up), (self.second, self.down)):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((layer(x) - x) ** 2)
                optimizer.apply_gradients(zip(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables, strict=True))
            return {"loss": loss}

    model = Twice()
    model.compile(keras.optimizers.SGD(0.5), keras.optimizers.Adam(0.05))
    losses = model.fit(X, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.2 * losses[0]


def test_a_step_must_return_results_by_name() -> None:
    class Wrong(Line):
        def train_step(self, data: Any) -> Any:
            return 1.0

    model = Wrong()
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match=r"train_step returns the results of a batch by name, \{'loss': loss\}, not float"):
        model.fit(X, Y, verbose=0)


def test_callbacks_are_called_as_in_keras() -> None:
    log: list[Any] = []

    class Log(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            log.append("train begin")

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            log.append(("begin", batch))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            log.append(("end", batch, sorted(logs)))

        def on_test_begin(self, logs: Any = None) -> None:
            log.append("test begin")

        def on_test_end(self, logs: Any = None) -> None:
            log.append(("test end", sorted(logs)))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            log.append(("epoch", epoch, sorted(logs), self.params["epochs"]))
            logs["own"] = 7.0

    model = Line()
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(X, Y, batch_size=32, verbose=0, validation_data=(X, Y), callbacks=[Log()]).history
    assert log == [
        "train begin", ("begin", 0), ("end", 0, ["loss", "mae"]), ("begin", 1), ("end", 1, ["loss", "mae"]),
        "test begin", ("test end", ["loss", "mae"]), ("epoch", 0, ["loss", "mae", "val_loss", "val_mae"], 1),
    ]  # fmt: skip
    assert history["own"] == [7.0]


def test_the_learning_rate_is_part_of_the_history() -> None:
    model = Line()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    halve = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    assert model.fit(X, Y, epochs=3, verbose=0, callbacks=[halve]).history["learning_rate"] == pytest.approx([0.05, 0.025, 0.0125])


def test_terminate_on_nan(capsys: pytest.CaptureFixture[str]) -> None:
    model = Line()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    bad = np.where(np.arange(64)[:, None] == 40, np.float32(math.nan), Y)
    history = model.fit(X, bad, batch_size=16, epochs=5, verbose=0, shuffle=False, callbacks=[keras.callbacks.TerminateOnNaN()])
    assert len(history.history["loss"]) == 1
    assert "batch 2: invalid loss" in capsys.readouterr().out


def test_build_creates_the_variables() -> None:
    model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
    model.build((None, 4))
    assert [tuple(v.shape) for v in model.variables] == [(4, 8), (8,), (8, 1), (1,)]
    line = Line()
    line.build((None, 4))
    assert line.count_params() == 5
    assert [layer.name for layer in line.layers] == [line.dense.name]


def test_summary_has_a_line_for_each_layer(capsys: pytest.CaptureFixture[str]) -> None:
    layers = [keras.Input((4,)), keras.layers.Dense(8, name="a"), keras.layers.Dropout(0.5), keras.layers.Dense(1, name="b")]
    model = keras.Sequential(layers, name="net")
    model.get_layer("b").trainable = False
    model.summary()
    text = capsys.readouterr().out
    for part in ('Model: "net"', "a (Dense)", "(None, 8)", "40", "b (Dense)", "(None, 1)", "Trainable params: 40 (160.00 B)"):
        assert part in text
    keras.Sequential([keras.layers.Dense(8)]).summary()
    assert "0 (unbuilt)" in capsys.readouterr().out


@pytest.mark.parametrize("loss", ["mse", "class", "function", "several"])
def test_weights_of_examples_reach_every_kind_of_loss(loss: str) -> None:
    kinds = {"mse": "mse", "class": keras.losses.MeanSquaredError(), "function": lambda y, p: tf.reduce_mean((y - p) ** 2, -1)}
    x, y, weights = np.ones((8, 4), "f4"), np.ones((8, 1), "f4"), np.arange(8.0)
    inputs = keras.Input(shape=(4,))
    out = keras.layers.Dense(1, kernel_initializer="ones")(inputs)
    model = keras.Model(inputs, [out, out] if loss == "several" else out)
    model.compile(keras.optimizers.SGD(0.0), ["mse", "mae"] if loss == "several" else kinds[loss])
    found = model.fit(x, [y, y] if loss == "several" else y, sample_weight=weights, batch_size=4, verbose=0).history["loss"]
    assert found == pytest.approx([(9.0 + 3.0 * (loss == "several")) * weights.mean()])


# options of SGD(0.1, use_ema=True, ema_momentum=0.8): a weight after each of five calls, and after two epochs of two batches, in Keras 3.15
AVERAGED = [
    ({}, [0.728099, 0.921172, 1.084588, 1.222897, 1.339951, 1.345212]),
    ({"ema_overwrite_frequency": 3}, [0.728099, 0.921172, 0.830289, 1.007663, 1.15779, 1.146887]),
    ({"gradient_accumulation_steps": 2}, [0.5, 0.728099, 0.728099, 0.921172, 0.921172, 1.018967]),
]


@pytest.mark.parametrize(("options", "weights"), AVERAGED)
def test_moving_averages_of_weights(options: dict[str, Any], weights: list[float]) -> None:
    x = np.linspace(-1, 1, 12).reshape(6, 2).astype("f4")
    y = (x @ [[1.0], [2.0]]).astype("f4")
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.set_weights([np.array([[0.5], [-0.5]], "f4"), np.zeros(1, "f4")])
    model.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.8, **options), "mse")
    found = []
    for _ in range(5):
        model.train_on_batch(x, y)
        found.append(model.get_weights()[0][0, 0])
    model.fit(x, y, batch_size=3, epochs=2, shuffle=False, verbose=0)
    assert [*found, model.get_weights()[0][0, 0]] == pytest.approx(weights, abs=2e-6)


@pytest.mark.parametrize("options", [{"ema_momentum": 1.5}, {"ema_overwrite_frequency": 0}])
def test_options_of_moving_averages_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} is a"):
        keras.optimizers.Adam(use_ema=True, **options)


def test_lambda_callback_by_position() -> None:
    seen = []
    callback = keras.callbacks.LambdaCallback(
        lambda epoch, logs: seen.append(("begin", epoch)), lambda epoch, logs: seen.append(("end", epoch))
    )
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[callback])
    assert seen == [("begin", 0), ("end", 0), ("begin", 1), ("end", 1)]
