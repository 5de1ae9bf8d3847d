"""tf.keras: programs as Keras' users write them, with only the import changed."""

from __future__ import annotations

import numpy as np
import pytest

from adjit import nn, tf
from adjit.tf import keras
from adjit.tf.keras import layers
from adjit.tf.keras.layers import Dense, Flatten
from tests.nn.reference import assert_close, raises_with

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32)


def test_a_gradient_of_a_model() -> None:
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,), activation="linear")])
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.01)
    x_train = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    y_train = tf.constant([[3.0], [7.0]])
    before = model.get_weights()

    with tf.GradientTape() as tape:
        predictions = model(x_train)
        loss = tf.keras.losses.mean_squared_error(y_train, predictions)

    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    error = x_train.numpy() @ before[0] + before[1] - y_train.numpy()
    assert_close(gradients[0], 2 * x_train.numpy().T @ error, 1e-5)
    assert_close(model.get_weights()[0], before[0] - 0.01 * gradients[0].numpy(), 1e-6)
    assert repr(model.trainable_variables[0]).startswith("<Variable path=dense")


def test_a_model_of_two_layers() -> None:
    model = tf.keras.models.Sequential([
        tf.keras.layers.Dense(units=10, activation="relu", input_shape=(5,)),
        tf.keras.layers.Dense(units=2)
    ])  # fmt: skip
    input_data = tf.random.normal((32, 5))
    labels = tf.random.normal((32, 2))
    loss_function = tf.keras.losses.MeanSquaredError()

    with tf.GradientTape() as tape:
        predictions = model(input_data)
        loss = loss_function(labels, predictions)

    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.001)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    assert [g.shape for g in gradients] == [(5, 10), (10,), (10, 2), (2,)]
    assert all(isinstance(g, tf.Tensor) for g in (loss, predictions, *gradients))


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(16, activation="relu")
        self.drop = layers.Dropout(0.1)
        self.out = layers.Dense(2, activation="softmax")

    def call(self, inputs, training=False):
        return self.out(self.drop(self.hidden(inputs), training=training))


def test_compile_fit_evaluate_predict() -> None:
    keras.utils.set_random_seed(1)
    model = Net()
    with pytest.raises(RuntimeError, match="compile"):
        model.fit(X, Y)
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=50)
    epochs = []

    class Count(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            epochs.append((epoch, sorted(logs)))
            if epoch == 24:
                self.model.stop_training = True

    history = model.fit(X, Y, batch_size=40, epochs=30, validation_split=0.25, verbose=0, callbacks=[stop, Count()])
    assert len(history.history["loss"]) == 25
    assert epochs[0] == (0, ["accuracy", "loss", "val_accuracy", "val_loss"])
    loss, accuracy = model.evaluate(X, Y, verbose=0)
    assert accuracy > 0.9
    assert loss == model.evaluate(X, Y, verbose=0, return_dict=True)["loss"]
    probabilities = model.predict(X)
    assert isinstance(probabilities, np.ndarray)
    assert_close((probabilities.argmax(1) == Y).mean(), accuracy)
    again = model.fit(X, Y, epochs=1, verbose=0)
    assert again.epoch == [0]
    assert model.metrics[1].name == "accuracy"


def test_a_model_of_symbolic_inputs() -> None:
    keras.utils.set_random_seed(1)
    inputs = keras.Input(shape=(6,), name="features")
    x = layers.Dense(16, activation="relu", name="hidden")(inputs)
    x = layers.Add()([x, layers.Dropout(0.1)(layers.Dense(16)(x))])
    outputs = layers.Dense(2, activation="softmax")(x)
    model = keras.Model(inputs=inputs, outputs=outputs, name="net")
    assert isinstance(model, keras.Model)
    assert model.output.shape == (None, 2)
    assert model.get_layer("hidden").units == 16
    assert [type(layer).__name__ for layer in model.layers] == ["InputLayer", "Dense", "Dense", "Dropout", "Add", "Dense"]
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(X, Y, batch_size=40, epochs=20, verbose=0)
    assert model.evaluate(X, Y, verbose=0)[1] > 0.9
    assert isinstance(model(X), tf.Tensor)
    features = keras.Model(model.input, model.get_layer("hidden").output)
    assert features.predict(X).shape == (120, 16)
    with raises_with(ValueError, "no layer 'hiden'", "hidden"):
        model.get_layer("hiden")
    assert (keras.Model(inputs, keras.activations.relu(inputs))(X).numpy() >= 0.0).all()
    words = keras.Input((None,), dtype=tf.int32)
    assert keras.Sequential([words, layers.Embedding(5, 3), layers.GlobalAveragePooling1D()])(np.array([[1, 2]])).shape == (1, 3)


def test_callbacks_as_keras_spells_them(tmp_path, capsys) -> None:
    model = keras.Sequential([layers.Dense(2)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(
        X, Y, epochs=3, verbose=0, validation_split=0.2, class_weight={0: 1.0, 1: 2.0},
        callbacks=[
            keras.callbacks.EarlyStopping("val_loss", 10.0, 1, verbose=1), keras.callbacks.ReduceLROnPlateau(verbose=1),
            keras.callbacks.ModelCheckpoint(filepath=tmp_path / "{epoch}", verbose=1),
            keras.callbacks.CSVLogger(filename=tmp_path / "log.csv"),
            keras.callbacks.LearningRateScheduler(lambda epoch: 0.1, verbose=1),
        ],
    )  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1", "2", "log.csv"]
    assert "epoch 2: early stopping; the best was epoch 1" in capsys.readouterr().out


def test_class_weights_are_weights_of_examples() -> None:
    def trained(**weights):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([layers.Dense(2)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(X, Y, verbose=0, **weights)
        return model.get_weights()

    for a, b in zip(trained(class_weight={0: 1.0, 1: 3.0}), trained(sample_weight=np.where(Y, 3.0, 1.0)), strict=True):
        assert_close(a, b, 1e-7)
    with raises_with(ValueError, "no weight for the classes [1]"):
        trained(class_weight={0: 1.0})


def test_weights(tmp_path) -> None:
    a, b = Net(), Net()
    a(X)
    b(X)
    b.set_weights(a.get_weights())
    assert_close(a(X), b(X))
    c = Net()
    c(X)
    a.save_weights(tmp_path / "net.safetensors")
    c.load_weights(tmp_path / "net.safetensors")
    assert_close(a(X), c(X))


def test_a_layer_of_your_own_in_a_compiled_step() -> None:
    class Linear(layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.units = units

        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="random_normal", trainable=True, name="w")
            self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=True)

        def call(self, inputs):
            return tf.matmul(inputs, self.w) + self.b

    model = keras.Sequential([Linear(4), layers.ReLU(), Linear(1)])
    optimizer = keras.optimizers.RMSprop(0.01)
    loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)
    metric = keras.metrics.BinaryAccuracy(threshold=0.0)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_fn(y, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        metric.update_state(y, logits)
        return loss

    losses = [train_step(tf.constant(X), tf.constant(Y[:, None])).numpy() for _ in range(30)]
    assert losses[-1] < 0.7 * losses[0]
    assert 0.5 < metric.result().numpy() <= 1.0


IMAGES, SERIES = (2, 8, 8, 3), (2, 6, 4)
SHAPES = {
    "Conv2D": (lambda: layers.Conv2D(4, 3, padding="same", strides=2), IMAGES, (2, 4, 4, 4)),
    "Conv2DTranspose": (lambda: layers.Conv2DTranspose(4, 3, strides=2, padding="same"), IMAGES, (2, 16, 16, 4)),
    "DepthwiseConv2D": (lambda: layers.DepthwiseConv2D(3), IMAGES, (2, 6, 6, 3)),
    "MaxPooling2D": (lambda: layers.MaxPooling2D(), IMAGES, (2, 4, 4, 3)),
    "AveragePooling2D": (lambda: layers.AveragePooling2D((2, 4)), IMAGES, (2, 4, 2, 3)),
    "GlobalAveragePooling2D": (lambda: layers.GlobalAveragePooling2D(), IMAGES, (2, 3)),
    "GlobalMaxPooling1D": (lambda: layers.GlobalMaxPooling1D(), SERIES, (2, 4)),
    "BatchNormalization": (lambda: layers.BatchNormalization(), IMAGES, IMAGES),
    "LayerNormalization": (lambda: layers.LayerNormalization(), SERIES, SERIES),
    "Conv1D": (lambda: layers.Conv1D(3, 2, padding="causal"), SERIES, (2, 6, 3)),
    "LSTM": (lambda: layers.LSTM(5, return_sequences=True), SERIES, (2, 6, 5)),
    "GRU": (lambda: layers.GRU(5), SERIES, (2, 5)),
    "SimpleRNN": (lambda: layers.SimpleRNN(5), SERIES, (2, 5)),
    "Bidirectional": (lambda: layers.Bidirectional(layers.LSTM(3)), SERIES, (2, 6)),
    "Flatten": (lambda: Flatten(), IMAGES, (2, 192)),
    "Reshape": (lambda: layers.Reshape((4, 48)), IMAGES, (2, 4, 48)),
    "Softmax": (lambda: layers.Softmax(), SERIES, SERIES),
    "LeakyReLU": (lambda: layers.LeakyReLU(), SERIES, SERIES),
    "ELU": (lambda: layers.ELU(), SERIES, SERIES),
    "Rescaling": (lambda: layers.Rescaling(2.0, 1.0), SERIES, SERIES),
    "Dropout": (lambda: layers.Dropout(0.5), SERIES, SERIES),
    "UpSampling2D": (lambda: layers.UpSampling2D(), IMAGES, (2, 16, 16, 3)),
    "ZeroPadding2D": (lambda: layers.ZeroPadding2D(1), IMAGES, (2, 10, 10, 3)),
    "Dense": (lambda: Dense(7), SERIES, (2, 6, 7)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_layers_give_tensors(name: str) -> None:
    make, given, wanted = SHAPES[name]
    layer = make()
    out = layer(tf.constant(RNG.normal(size=given).astype(np.float32)), training=True)
    assert isinstance(out, tf.Tensor)
    assert isinstance(layer, layers.Layer)
    assert out.shape == wanted
    assert out.dtype == tf.float32
    assert all(isinstance(v, tf.Variable) for v in layer.trainable_variables)


def test_merging() -> None:
    a, b = tf.ones((2, 3)), 2.0 * tf.ones((2, 3))
    for make, value in ((layers.Add, 3.0), (layers.Subtract, -1.0), (layers.Multiply, 2.0), (layers.Average, 1.5), (layers.Maximum, 2.0)):
        assert (make()([a, b]).numpy() == value).all()
    assert layers.Concatenate()([a, b]).shape == (2, 6)
    out, scores = layers.MultiHeadAttention(2, 4)(tf.ones((1, 3, 4)), tf.ones((1, 3, 4)), return_attention_scores=True)
    assert (out.shape, scores.shape) == ((1, 3, 4), (1, 2, 3, 3))


def test_names_lead_to_ours() -> None:
    assert issubclass(keras.layers.Dense, nn.Dense)
    assert keras.losses.mse is keras.losses.mean_squared_error
    assert isinstance(keras.losses.get("mse")(tf.zeros((2, 1)), tf.ones((2, 1))), tf.Tensor)
    assert keras.optimizers.schedules.CosineDecay is nn.schedules.CosineDecay
    assert keras.optimizers.get("adam").learning_rate.numpy() == 0.001
    assert keras.initializers.HeNormal(seed=0)((2, 3)).shape == (2, 3)
    assert keras.activations.relu(tf.constant([-1.0, 2.0])).numpy().tolist() == [0.0, 2.0]
    assert keras.utils.to_categorical([0, 2]).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert isinstance(keras.metrics.Mean()([1.0, 3.0]), tf.Tensor)


class Both(keras.Model):
    def __init__(self):
        x = keras.Input((2,))
        super().__init__(inputs=x, outputs=x)


def test_missing_names_raise() -> None:
    with raises_with(NotImplementedError, "either a subclass of Model", "or Model(inputs, outputs)"):
        Both()


def test_compile_without_a_loss_minimises_what_layers_add() -> None:
    class Shrinking(tf.keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(name="w", shape=(3,), initializer="ones")

        def call(self, x):
            self.add_loss(tf.reduce_sum(self.w**2))
            return x * self.w

    model = tf.keras.Sequential([Shrinking()])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.25))
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(model.predict(x), x)
    model.fit(x, x, epochs=1, batch_size=4, verbose=0)
    np.testing.assert_allclose(model.predict(x), x / 2)

    plain = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    plain.compile(optimizer="sgd")
    assert plain.predict(x).shape == (4, 1)
    with pytest.raises(ValueError, match=r"no loss to compute\. Pass a `loss` to compile"):
        plain.fit(x, x[:, :1], verbose=0)


def test_variables_of_layers_have_the_names_of_keras() -> None:
    layer = tf.keras.layers.Dense(2, name="dense")
    layer(tf.ones([1, 3]))
    assert [(v.name, v.path.rpartition("/")[2], v.initializer) for v in layer.variables] == [
        ("kernel", "kernel", None),
        ("bias", "bias", None),
    ]
    assert repr(layer.bias) == str(layer.bias) == "<Variable path=dense/bias, shape=(2,), dtype=float32, value=[0. 0.]>"
