"""Parameters of Keras against numbers of TensorFlow 2.21 (Keras 3.15)."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from adjit import tf

keras = tf.keras
layers, metrics = keras.layers, keras.metrics

LABELS = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], "f4")
SCORES = np.array([0.1, 0.9, 0.4, 0.35, 0.8, 0.6, 0.2, 0.55, 0.3, 0.45], "f4")
MANY = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 0]], "f4")
GUESSED = np.array([[0.2, 0.9, 0.6], [0.7, 0.1, 0.3], [0.6, 0.2, 0.5], [0.4, 0.8, 0.1]], "f4")
X = (np.arange(80).reshape(20, 4) % 7 / 7).astype("f4")
Y = X.sum(1, keepdims=True) * 2
WEIGHTS = (np.arange(20) % 3).astype("f4")


def updated(metric: Any, *given: Any) -> Any:
    metric.update_state(*given)
    return metric.result().numpy()


EXPECTED: dict[str, Any] = {  # of TensorFlow
    "AUC ROC interpolation": 0.76,
    "AUC ROC minoring": 0.76,
    "AUC ROC majoring": 0.76,
    "AUC PR interpolation": 0.78942,
    "AUC PR minoring": 0.56762,
    "AUC PR majoring": 0.80833,
    "AUC thresholds": 0.78,
    "precision thresholds": [0.625, 0.75, 0.0],
    "precision top_k": 0.875,
    "precision class_id": 1.0,
    "recall top_k thresholds": 0.42857,
    "recall thresholds": [1.0, 0.6],
    "accuracy by position": 0.6,
    "sparse crossentropy ignore_class": 0.77389,
    "binary crossentropy axis": [0.6031, 0.16425, 0.62833],
    "relu": [-0.3, -0.05, 3.0, 6.0],
    "LSTM by position": [[0.20466, 0.20466]],
    "GRU by position": [[0.20281, 0.20281]],
    "Conv1D by position": [[[0.97285], [0.97953], [0.97285]]],
    "DepthwiseConv2D": 212.57144,
    "SeparableConv2D": 333.71429,
    "Bidirectional": [[0.93934, 0.93934, 0.89254, 0.89254]],
    "Normalization invert": [[1.0, 2.28571, 3.57143, 4.85714]],
    "BatchNormalization": [[-0.9995, -0.85671, -0.71393, -0.57114]],
    "Embedding weights": [[4.0, 5.0], [2.0, 3.0]],
    "Lambda arguments": [[0.0, 0.42857, 0.85714, 1.28571]],
    "fit": [2.0, 1.30767, 0.64484, 0.36916, 0.27019, 1.88151, 0.51898, 0.18113, 0.09547, 0.43947, 0.29988],
    "evaluate steps": [0.71486, 0.73939],
    "predict steps": 25.46322,
    "test_on_batch": [0.73021, 0.76216],
    "start_from_epoch": [1.91896, 0.48044, 0.16363, 0.09233, 0.07474, 0.0689],
    "baseline": [1.91896, 0.48044, 0.16363],
    "cooldown": [0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125, 0.0125, 0.0125, 0.00625, 0.00625, 0.00625],
}  # fmt: skip
CASES: dict[str, Any] = {
    **{
        f"AUC {curve} {how}": lambda curve=curve, how=how: updated(metrics.AUC(20, curve, how), LABELS, SCORES)
        for curve in ("ROC", "PR")
        for how in ("interpolation", "minoring", "majoring")
    },
    "AUC thresholds": lambda: updated(metrics.AUC(thresholds=[0.25, 0.5]), LABELS, SCORES),
    "precision thresholds": lambda: updated(metrics.Precision([0.2, 0.5, 0.95]), LABELS, SCORES),
    "precision top_k": lambda: updated(metrics.Precision(top_k=2), MANY, GUESSED),
    "precision class_id": lambda: updated(metrics.Precision(class_id=1), MANY, GUESSED),
    "recall top_k thresholds": lambda: updated(metrics.Recall(0.65, 2), MANY, GUESSED),
    "recall thresholds": lambda: updated(metrics.Recall([0.2, 0.5]), LABELS, SCORES),
    "accuracy by position": lambda: updated(metrics.BinaryAccuracy("a", None, 0.85), LABELS, SCORES),
    "sparse crossentropy ignore_class": lambda: updated(
        metrics.SparseCategoricalCrossentropy(ignore_class=1), np.array([0, 1, 2, 1]), GUESSED),
    "binary crossentropy axis": lambda: keras.losses.BinaryCrossentropy(axis=0, reduction="none")(MANY, GUESSED).numpy(),
    "relu": lambda: keras.activations.relu(np.array([-2.0, 0.5, 3.0, 9.0], "f4"), 0.1, 6.0, 1.0).numpy(),
    "LSTM by position": lambda: layers.LSTM(2, "relu", "sigmoid", True, "ones", "ones")(X[None, :3] * 0.1).numpy(),
    "GRU by position": lambda: layers.GRU(2, "relu", "sigmoid", True, "ones", "ones")(X[None, :3] * 0.1).numpy(),
    "Conv1D by position": lambda: layers.Conv1D(1, 2, 1, "same", None, 2, 1, "tanh", True, "ones")(X[None, :3]).numpy(),
    "DepthwiseConv2D": lambda: layers.DepthwiseConv2D(2, 1, "same", 2, depthwise_initializer="ones")(X.reshape(1, 4, 5, 4)).numpy().sum(),
    "SeparableConv2D": lambda: layers.SeparableConv2D(
        2, 2, 1, "same", None, 2, 2, depthwise_initializer="ones", pointwise_initializer="ones")(X.reshape(1, 4, 5, 4)).numpy().sum(),
    "Bidirectional": lambda: layers.Bidirectional(
        layers.LSTM(2, kernel_initializer="ones", recurrent_initializer="ones"),
        backward_layer=layers.LSTM(2, kernel_initializer="zeros", recurrent_initializer="ones", bias_initializer="ones", go_backwards=True),
    )(X[None, :3]).numpy(),
    "Normalization invert": lambda: layers.Normalization(mean=[1.0, 2.0, 3.0, 4.0], variance=[4.0] * 4, invert=True)(X[:1]).numpy(),
    "BatchNormalization": lambda: layers.BatchNormalization(moving_mean_initializer="ones")(X[:1]).numpy(),
    "Embedding weights": lambda: layers.Embedding(3, 2, weights=np.arange(6.0).reshape(3, 2))(np.array([2, 1])).numpy(),
    "Lambda arguments": lambda: layers.Lambda(lambda a, b: a * b, arguments={"b": 3.0})(X[:1]).numpy(),
}  # fmt: skip


def trained(epochs: int = 8, **options: Any) -> Any:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(0.05), "mse", **options.pop("compiled", {}))
    return model, model.fit(X, Y, epochs=epochs, batch_size=5, shuffle=False, verbose=0, **options).history


def validated() -> Any:
    both = {"metrics": ["mae"], "weighted_metrics": ["mse"]}
    _, h = trained(4, compiled=both, sample_weight=WEIGHTS, validation_data=(X, Y), validation_steps=2, validation_freq=[2, 3])
    return [len(h["val_loss"]), *h["mae"], *h["mse"], *h["val_mae"]]


CASES |= {
    "fit": validated,
    "evaluate steps": lambda: trained(1, compiled={"metrics": ["mae"]})[0].evaluate(X, Y, batch_size=5, steps=2, verbose=0),
    "predict steps": lambda: trained(1)[0].predict(X, batch_size=5, steps=2, verbose=0).sum(),
    "test_on_batch": lambda: list(trained(1, compiled={"metrics": ["mae"]})[0].test_on_batch(X, Y, return_dict=True).values()),
    "start_from_epoch": lambda: trained(callbacks=[keras.callbacks.EarlyStopping("loss", 10.0, 2, start_from_epoch=3)])[1]["loss"],
    "baseline": lambda: trained(callbacks=[keras.callbacks.EarlyStopping("loss", 0.5, 2, baseline=0.001)])[1]["loss"],
    "cooldown": lambda: trained(
        12, callbacks=[keras.callbacks.ReduceLROnPlateau("loss", 0.5, 2, min_delta=10.0, cooldown=2)])[1]["learning_rate"],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_tensorflow(name: str) -> None:
    np.testing.assert_allclose(np.asarray(CASES[name](), float), EXPECTED[name], atol=3e-4)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: layers.Conv2D(2, 3, data_format="channels_first"), "data_format='channels_first' is out of the scope"),
        (lambda: layers.Dense(2, lora_rank=4), "lora_rank=4"),
        (lambda: layers.UpSampling2D(2, None, "bilinear"), "interpolation='bilinear'"),
        (lambda: keras.Input((3,), sparse=True), "sparse=True"),
        (lambda: metrics.AUC(multi_label=True), "multi_label="),
        (lambda: trained()[0].save("x", zipped=True), "zipped="),
        (lambda: trained()[0].summary(positions=[1.0]), "positions="),
        (lambda: tf.strided_slice([1, 2], [0], [1], begin_mask=1), "begin_mask"),
        (lambda: tf.nn.pool(np.ones((1, 4, 1), "f4"), [2], "MAX", dilations=[2]), "dilations"),
        (lambda: tf.scatter_nd([[0]], [1], [2], bad_indices_policy="IGNORE"), "bad_indices_policy='IGNORE'"),
    ],
)
def test_other_meanings_are_refused(make: Any, told: str) -> None:
    with pytest.raises(NotImplementedError, match=told):
        make()


def test_unknown_options_are_named() -> None:
    for make in (lambda: layers.LSTM(3, wrong=1), lambda: metrics.Mean(wrong=1), lambda: trained()[0].compile("sgd", wrong=1)):
        with pytest.raises(TypeError, match="wrong"):
            make()
    with pytest.raises(TypeError, match="twice"):
        layers.LSTM(3, units=3)


def test_help_shows_the_order_of_keras() -> None:
    assert list(inspect.signature(layers.LSTM).parameters)[:3] == ["units", "activation", "recurrent_activation"]
    assert list(inspect.signature(metrics.BinaryAccuracy).parameters)[:3] == ["name", "dtype", "threshold"]


def test_dtypes_of_results() -> None:
    assert metrics.Mean()(X).dtype == tf.float32
    assert metrics.Mean(dtype="float64")(X).dtype == tf.float64
    assert metrics.Mean("mean", tf.float64)(X).dtype == tf.float64
    assert keras.losses.MeanSquaredError(dtype="float64")(Y, Y).dtype == tf.float64


def test_inputs_with_batches() -> None:
    x = keras.Input(batch_shape=(None, 4))
    model = keras.Model(x, layers.Dense(2)(x))
    assert model(X).shape == (20, 2)
    assert keras.Input(tensor=tf.constant(X)).shape[1:] == (4,)
    with pytest.raises(ValueError, match="batch_shape"):
        keras.Input((4,), batch_shape=(None, 4))


def test_weights_that_fit(tmp_path: Any) -> None:
    a, b = (keras.Sequential([layers.Dense(3), layers.Dense(n)]) for n in (2, 5))
    a(X), b(X)
    a.save_weights(tmp_path / "w.safetensors")
    with pytest.raises(FileExistsError):
        a.save_weights(tmp_path / "w.safetensors", overwrite=False)
    b.load_weights(tmp_path / "w.safetensors", skip_mismatch=True)
    np.testing.assert_array_equal(a.layers[0].kernel.numpy(), b.layers[0].kernel.numpy())


def test_callbacks_see_predictions_and_report(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    seen = []

    class Watching(keras.callbacks.Callback):
        def on_predict_begin(self, logs=None):
            seen.append("begin")

        def on_predict_end(self, logs=None):
            seen.append("end")

    model, _ = trained(2, callbacks=[
        keras.callbacks.LearningRateScheduler(lambda epoch: 0.1, verbose=1),
        keras.callbacks.ModelCheckpoint(tmp_path / "m.safetensors", verbose=1),
    ])  # fmt: skip
    model.predict(X, callbacks=[Watching()], verbose=0)
    assert seen == ["begin", "end"]
    assert "Epoch 2: saving model to" in (told := capsys.readouterr().out)
    assert "setting learning rate to 0.1" in told


def test_gradients_with_constants() -> None:
    """Numbers of TensorFlow."""

    @tf.function
    def f(a):
        b = 2.0 * a
        c = a * b
        d = tf.sin(b) * c
        partial = tf.gradients(a + b, [a, b], stop_gradients=[a, b])
        return partial + tf.gradients(d, [a, b], stop_gradients=[b]) + tf.gradients(d, [a, c], stop_gradients=c) + tf.gradients(d, a)

    expected = [1.0, 1.0, 1.37963, 0.85638, 0.33314, 0.98545, 3.09239]
    np.testing.assert_allclose([float(g) for g in f(tf.constant(0.7))], expected, rtol=1e-4)


def test_exclusive_cases() -> None:
    @tf.function
    def f(x):
        return tf.case([(x > 0, lambda: 1.0), (x > 1, lambda: 2.0)], default=lambda: 3.0, exclusive=True)

    assert float(f(tf.constant(0.5))) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
        f(tf.constant(2.0))


def test_parameters_that_were_ignored() -> None:
    np.testing.assert_array_equal(tf.transpose(tf.constant([[1 + 2j]]), conjugate=True).numpy(), [[1 - 2j]])
    assert tf.matmul([[1, 2]], [[1], [2]], output_type=tf.int64).dtype == tf.int64
    with pytest.raises(ValueError, match="num=3"):
        tf.unstack(tf.constant([1, 2]), num=3)
    tf.debugging.assert_none_equal([1], [2], 3, "message")
