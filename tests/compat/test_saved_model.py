"""tf.saved_model: saved models behave the same in a process without their source."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from adjit import tf
from adjit.ir.errors import UnsupportedError


class Dense(tf.Module):
    def __init__(self, rows, columns, name=None):
        super().__init__(name=name)
        self.w = tf.Variable(np.arange(rows * columns, dtype="f4").reshape(rows, columns) / 10, name="w")
        self.b = tf.Variable(tf.zeros([columns]), name="b")
        self.steps = tf.Variable(0, trainable=False, name="steps")

    @tf.function
    def __call__(self, x, scale=2.0):
        self.steps.assign_add(1)
        for _ in range(2):
            x = tf.nn.relu(x) + 0.5
        return {"z": tf.matmul(x, self.w) * scale + self.b, "a": [tf.reduce_sum(x), "fixed"]}


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(3, 2), Dense(2, 2)]
        self.table = {"offset": tf.constant([1.0, 2.0]), "size": 2}
        self.rate = 0.1

    @tf.function(input_signature=[tf.TensorSpec([4, 3], tf.float32)])
    def predict(self, x):
        for layer in self.layers:
            x = layer(x)["z"]
        total = x[0, 0] * 0
        while total < 3.0:
            total += 1.5
        return x + self.table["offset"] * total

    @tf.function
    def count(self, n):
        return n + 1


X = np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3)


def test_module_with_state_and_structures(tmp_path) -> None:
    dense = Dense(3, 2)
    expected = dense(X)
    tf.saved_model.save(dense, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    out = loaded(X)
    assert list(out) == ["z", "a"]
    assert out["a"][1] == "fixed"
    np.testing.assert_array_equal(out["z"], expected["z"])
    assert int(loaded.steps) == 2
    assert int(dense.steps) == 1
    loaded.b.assign([5.0, 5.0])
    np.testing.assert_allclose(loaded(X, scale=2.0)["z"], expected["z"] + 5.0, rtol=1e-6)
    assert [v.name for v in loaded.trainable_variables] == ["b:0", "w:0"]
    assert loaded.name == dense.name


def test_gradients_and_training_of_what_was_loaded(tmp_path) -> None:
    model = Model()
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)

    def gradients(m):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(m.predict(X) ** 2)
        return tape.gradient(loss, [m.layers[0].w, m.layers[1].b])

    for ours, theirs in zip(gradients(loaded), gradients(model), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loaded.predict(x) ** 2)
        for v, g in zip(loaded.trainable_variables, tape.gradient(loss, loaded.trainable_variables), strict=True):
            if g is not None:
                v.assign_sub(0.01 * g)
        return loss

    losses = [float(step(X)) for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_objects_attributes_and_signatures(tmp_path) -> None:
    model = Model()
    model.count(tf.constant(1))
    model.count(2)
    tf.saved_model.save(model, tmp_path, signatures={"predict": model.predict})
    loaded = tf.saved_model.load(tmp_path)
    assert loaded.rate == 0.1
    assert loaded.table["size"] == 2
    np.testing.assert_array_equal(loaded.table["offset"], [1.0, 2.0])
    assert loaded.count(tf.constant(41)).numpy() == 42
    assert loaded.count(2).numpy() == 3  # a Python number is part of the trace
    out = loaded.signatures["predict"](x=tf.constant(X))
    np.testing.assert_allclose(out["output_0"], model.predict(X), rtol=1e-6)
    assert loaded.signatures["predict"].structured_outputs["output_0"].shape == (4, 2)
    tf.saved_model.save(loaded, tmp_path / "again")
    again = tf.saved_model.load(tmp_path / "again")
    np.testing.assert_array_equal(again.layers[1].w, model.layers[1].w)
    np.testing.assert_array_equal(again.predict(X), loaded.predict(X))
    assert again.count(2).numpy() == 3


def test_arguments_that_no_trace_was_made_for(tmp_path) -> None:
    model = Model()
    model.count(2)
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    with pytest.raises(ValueError, match=r"Could not find matching concrete function(.|\n)*count got:\n  \(n=3\)(.|\n)*n=Literal\[2\]"):
        loaded.count(3)
    with pytest.raises(ValueError, match=r"shape=\(4, 3\)"):
        loaded.predict(X[:2])
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        loaded.predict()


def test_runs_without_the_source(tmp_path) -> None:
    model = Model()
    expected = model.predict(X)
    tf.saved_model.save(model, tmp_path)
    code = """
        import sys, numpy as np
        from adjit import tf
        loaded = tf.saved_model.load(sys.argv[1])
        out = loaded.predict(np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3))
        assert "test_saved_model" not in sys.modules
        print(out.numpy().tolist())
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose(json.loads(out), expected, rtol=1e-6)


@tf.custom_gradient
def halved_backwards(x):
    return x * 2, lambda dy: dy / 2


class Particular(tf.Module):
    def __init__(self):
        super().__init__()
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dropout(0.5)])
        self.table = np.arange(600, dtype="f4")

    @tf.function
    def __call__(self, x, training=False):
        return halved_backwards(self.model(x, training=training)) + self.table[:4]


def test_layers_random_numbers_constants_and_custom_gradients(tmp_path) -> None:
    module = Particular()
    expected = module(X)
    module(X, training=True)
    tf.saved_model.save(module, tmp_path, options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded(X), expected, rtol=1e-6)
    assert not np.array_equal(loaded(X, training=True), loaded(X, training=True))  # draws go on
    x = tf.constant(X)
    found = []
    for each in (module, loaded):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = each(x)
        found.append(tape.gradient(y, x))
    np.testing.assert_allclose(*found, rtol=1e-6)


class Odd(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def any_rows(self, x):
        return x * 2

    @tf.function
    def doubled(self, v):
        return v * 2


def test_functions_that_were_compiled_for_all_sizes(tmp_path) -> None:
    odd = Odd()
    for n in (4, 1):
        odd.any_rows(np.ones((n, 3), "f4"))
    tf.saved_model.save(odd, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    for n in (4, 9, 2, 1):
        x = np.full((n, 3), n, "f4")
        np.testing.assert_array_equal(loaded.any_rows(x), 2 * x)
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.any_rows(np.ones((0, 3), "f4"))
    tf.saved_model.save(loaded, tmp_path / "again")
    assert tf.saved_model.load(tmp_path / "again").any_rows(np.ones((7, 3), "f4")).shape == (7, 3)


def test_open_sizes_are_saved_without_a_call(tmp_path) -> None:
    tf.saved_model.save(Odd(), tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    for n in (4, 1, 2):
        assert loaded.any_rows(tf.ones([n, 3])).numpy().tolist() == [[2.0] * 3] * n


def test_sizes_that_decide_what_is_computed_are_saved_if_called(tmp_path) -> None:
    class Sized(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def total(self, x):
            return sum(x[i] * i for i in range(x.shape[0]))

    module = Sized()
    with pytest.raises(UnsupportedError, match=r"total has an input_signature with sizes of None, and cannot be compiled for all sizes"):
        tf.saved_model.save(module, tmp_path)
    module.total(tf.ones([3]))
    module.total(tf.ones([4]))
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert [float(loaded.total(tf.ones([n]))) for n in (3, 4)] == [3.0, 6.0]


def test_objects_that_cannot_be_saved(tmp_path) -> None:
    odd = Odd()
    odd.any_rows(X)
    odd.doubled(tf.Variable(1.0))
    with pytest.raises(UnsupportedError, match=r"Odd.doubled takes a variable as an argument"):
        tf.saved_model.save(odd, tmp_path)
    layer = tf.keras.layers.Dense(2)
    layer(X)
    with pytest.raises(UnsupportedError, match=r"Dense has no function that was traced(.|\n)*model.save"):
        tf.saved_model.save(layer, tmp_path)
    with pytest.raises(ValueError, match=r"takes a tf\.Module"):
        tf.saved_model.save(3, tmp_path)
    with pytest.raises(ValueError, match=r"the signature 'f' must be a tf\.function"):
        tf.saved_model.save(Model(), tmp_path, signatures={"f": lambda x: x})


def test_files_that_are_not_saved_models(tmp_path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="SavedModel file does not exist"):
        tf.saved_model.load(tmp_path)
    (tmp_path / "saved_model.json").write_text("{")
    with pytest.raises(ValueError, match="is not a saved model"):
        tf.saved_model.load(tmp_path)
    (tmp_path / "saved_model.json").write_text("{}")
    with pytest.raises(ValueError, match="is not a saved model of adjit"):
        tf.saved_model.load(tmp_path)


def test_names() -> None:
    assert dir(tf.saved_model) == ["LoadOptions", "SaveOptions", "load", "save"]
    with pytest.raises(AttributeError, match=r"tf\.saved_model\.simple_save is out of the scope(.|\n)*it has save, load"):
        _ = tf.saved_model.simple_save
