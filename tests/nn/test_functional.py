"""Models of symbolic inputs and outputs."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from tests.nn.layer_cases import CASES
from tests.nn.reference import assert_close, check_layer, raises_with, random

D = {"dtype": "float64"}


def residual_net() -> nn.Model:
    x = nn.Input((3,), dtype="float64")
    h = nn.Dense(4, activation="tanh", **D)(x)
    h = h + nn.Dense(4, **D)(h) * 0.5
    return nn.Model(x, nn.Dense(2, **D)(np.concatenate([h, np.maximum(x, 0.0)], -1)))


def test_against_the_layers_by_hand() -> None:
    model = residual_net()
    w1, b1, w2, b2, w3, b3 = model.get_weights()
    x = random(5, 3)
    h = np.tanh(x @ w1 + b1)
    h = h + (h @ w2 + b2) * 0.5
    check_layer(model, x, wanted=np.concatenate([h, np.maximum(x, 0.0)], -1) @ w3 + b3)


def test_variables_and_shapes_are_there_at_once() -> None:
    image = nn.Input((6, 6, 1))
    h = nn.Conv2D(4, 3)(image)
    assert (h.shape, h.ndim, h.dtype) == ((None, 4, 4, 4), 4, np.float32)
    model = nn.Model(image, nn.Dense(3, name="head")(nn.Flatten()(nn.MaxPool2D()(h))))
    assert [path for path, _ in model.named_variables()] == ["layers.1.kernel", "layers.1.bias", "layers.4.kernel", "layers.4.bias"]
    assert model.layers[-1].kernel.shape == (16, 3)
    assert "head" in repr(model.outputs)
    assert model(np.ones((7, 6, 6, 1), np.float32)).shape == (7, 3)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.update is None and not name.startswith("activation")])
def test_every_layer_can_be_called_on_symbols(name: str) -> None:
    case = CASES[name]
    layer = case.make(nn, dtype="float64")
    inputs = [nn.Input(a.shape[1:], a.shape[0], a.dtype, name=f"input {i}") for i, a in enumerate(case.inputs)]
    model = nn.Model(inputs, layer(*inputs, **case.call))
    assert_close(model(list(case.inputs)), layer(*case.inputs, **case.call))
    assert [v.shape for v in model.variables] == [v.shape for v in layer.variables]


def test_several_inputs_and_outputs() -> None:
    a, b = nn.Input((2,), name="a"), nn.Input((2,), name="b")
    shared = nn.Dense(3)
    model = nn.Model([a, b], {"sum": shared(a) + shared(b), "product": shared(a) * shared(b)})
    assert len(model.variables) == 2
    x, y = random(4, 2), random(4, 2, seed=1)
    out = aj.function(lambda p, q: model([p, q]))(x, y)
    assert_close(out["sum"], np.asarray(shared(x)) + np.asarray(shared(y)), 1e-6)
    assert_close(out["product"], np.asarray(shared(x)) * np.asarray(shared(y)), 1e-6)
    assert_close(model({"b": y, "a": x})["sum"], out["sum"], 1e-6)
    named = nn.Model({"left": a, "right": b}, a - b)
    assert_close(named({"left": x, "right": y}), x - y, 1e-6)
    for wrong in ([x], x, {"a": x}):
        with raises_with(ValueError, "takes 2 inputs", "a [None, 2], b [None, 2]", "[4, 2]"):
            model(wrong)


def test_a_model_is_a_layer_and_can_be_cut() -> None:
    x = nn.Input((3,))
    features = nn.Dense(4, activation="relu", name="features")
    whole = nn.Model(x, nn.Dense(1)(features(x)))
    cut = nn.Model(whole.inputs, features.symbolic_output)
    value = random(2, 3)
    assert_close(cut(value), features(value))
    y = nn.Input((3,))
    outer = nn.Model(y, whole(y * 2.0) + 1.0)
    assert_close(outer(value), np.asarray(whole(value * 2.0)) + 1.0)
    assert len(outer.variables) == 4
    last = nn.Model(features.symbolic_output, whole.outputs)
    assert_close(last(features(value)), whole(value))


def test_layers_with_several_results_and_masks() -> None:
    ids = nn.Input((None,), dtype="int32")
    h, last, cell = nn.LSTM(3, return_sequences=True, return_state=True, **D)(nn.Embedding(5, 2, mask_zero=True, **D)(ids))
    model = nn.Model(ids, [nn.GRU(2, **D)(h), last + cell])
    padded = np.array([[1, 2, 0, 0], [3, 1, 2, 0]])
    for out, short in zip(model(padded), model(padded[:1, :2]), strict=True):
        assert_close(np.asarray(out)[:1], short)
    rest = nn.Model([last, cell], model.outputs[1])
    a, b = random(2, 3), random(2, 3, seed=1)
    assert_close(rest([a, b]), a + b)
    mixed = nn.Model([ids, cell], model.outputs[1])  # one result of the layer is given, the other computed
    assert_close(np.asarray(mixed([padded, b])) - b, np.asarray(nn.Model(ids, last)(padded)))


@pytest.mark.one_size("counts traces")
def test_it_trains_and_repeats_training_behaviour() -> None:
    nn.set_seed(0)
    x = nn.Input((4,))
    model = nn.Model(x, nn.Dense(1)(nn.Dropout(0.2)(nn.BatchNorm(name="norm")(nn.Dense(8, activation="relu")(x)))))
    assert_close(model.layers[2].moving_variance, np.ones(8))
    data = random(64, 4).astype(np.float32)
    trainer = nn.Trainer(model, "mse", nn.optimizers.Adam(0.02))
    history = trainer.fit(data, data[:, :1] ** 2, epochs=20, batch_size=32, verbose=0)
    assert history["loss"][-1] < 0.6 * history["loss"][0]
    assert trainer._train.trace_count == 1
    assert (np.abs(model.layers[2].moving_variance.numpy() - 1.0) > 0.1).any()


def test_deep_models() -> None:
    x = h = nn.Input((2,))
    for _ in range(3000):
        h = h + 1.0
    assert_close(nn.Model(x, h)(np.zeros((1, 2), np.float32)), np.full((1, 2), 3000.0))


def test_errors() -> None:
    x, y = nn.Input((2,), name="x"), nn.Input((2,), name="y")
    with raises_with(TypeError, "Symbolic", "nn.Lambda", "nn.Model(inputs, outputs)"):
        aj.tensor(x)
    with pytest.raises(TypeError, match="no value yet"):
        bool(x > 0)
    with raises_with(ValueError, "need the input 'y'"):
        nn.Model(x, x + y)
    with raises_with(ValueError, "same name (x, x)"):
        nn.Model([x, nn.Input((2,), name="x")], x)
    with raises_with(TypeError, "outputs must be symbolic", "3.0"):
        nn.Model(x, 3.0)
    with raises_with(TypeError, "variable scale", "belongs to no layer"):
        x * aj.Variable(np.float32(2.0), name="scale")
    with raises_with(ValueError, "'head' (Dense)", "f32[1,2]"):
        layer = nn.Dense(3, name="head")
        layer(np.ones((1, 5), np.float32))
        layer(x)
    with raises_with(ValueError, "x: takes batches of shape [2]", "f32[4,3]"):
        nn.Model(x, x + 1.0)(np.ones((4, 3), np.float32))
