"""Modules: the variables that belong to them, their names, when they are created, and error messages."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from tests.nn.reference import assert_close, raises_with, random, training_step


class Block(nn.Module):
    """Without `super().__init__()`, with attributes of every kind."""

    def __init__(self) -> None:
        self.first = nn.Dense(3, activation="relu")
        self.more = [nn.Dense(3), {"deep": nn.Dense(2, use_bias=False)}]
        self.scale = aj.Variable(np.float32(2.0), name="scale")
        self.frozen = aj.Variable(np.float32(1.0), trainable=False)
        self.number = 7

    def call(self, x):
        return self.more[1]["deep"](self.more[0](self.first(x))) * self.scale


def test_variables_are_found_and_named() -> None:
    block = Block()
    assert [path for path, _ in block.named_variables()] == ["scale", "frozen"]
    block(np.ones((2, 4), np.float32))
    names = [path for path, _ in block.named_variables()]
    assert names == ["first.kernel", "first.bias", "more.0.kernel", "more.0.bias", "more.1.deep.kernel", "scale", "frozen"]
    assert len(block.trainable_variables) == 6
    assert len(block.variables) == len(block.weights) == 7
    assert block.count_params() == 4 * 3 + 3 + 9 + 3 + 6 + 2
    assert "more.1.deep.kernel" in block.summary()
    assert [type(m).__name__ for m in block.modules()] == ["Block", "Dense", "Dense", "Dense"]


def test_shared_variables_come_once() -> None:
    layer = nn.Dense(4)
    model = nn.Sequential([layer, nn.Activation("tanh"), layer])
    model(np.ones((1, 4), np.float32))
    assert len(model.variables) == 2


def test_names_are_those_of_the_classes() -> None:
    wanted = {
        nn.Conv2D(1, 1): "conv2d", nn.Conv2DTranspose(1, 1): "conv2d_transpose", nn.MaxPool1D(): "max_pool1d",
        nn.MultiHeadAttention(1, 1): "multi_head_attention", nn.optimizers.RMSprop(): "rmsprop", nn.SimpleRNN(1): "simple_rnn",
    }  # fmt: skip
    for module, name in wanted.items():
        assert module.name.rstrip("_0123456789") == name


def test_freezing() -> None:
    model = nn.Sequential([nn.Dense(3), nn.Dense(2)])
    model(np.ones((1, 2), np.float32))
    model.layers[0].trainable = False
    assert [v.name for v in model.trainable_variables] == [v.name for v in model.layers[1].variables]
    assert len(model.non_trainable_variables) == 2
    model.trainable = False
    assert model.trainable_variables == []


def test_variables_are_created_once_inside_a_function() -> None:
    nn.set_seed(0)
    model = nn.Sequential([nn.Dense(3, activation="tanh"), nn.BatchNorm(), nn.Dropout(0.5), nn.Dense(1)])
    optimizer = nn.optimizers.Adam()
    step = training_step(model, optimizer)
    losses = [float(step(random(8, 2).astype(np.float32))) for _ in range(3)]
    step(random(5, 2).astype(np.float32))
    assert step.trace_count == 2
    assert len(set(losses)) == 3
    assert int(optimizer.iterations.numpy()) == 4


def test_seeds_repeat_models() -> None:
    def make() -> list[np.ndarray]:
        nn.set_seed(3)
        model = nn.Sequential([nn.Dense(4), nn.Dense(4)])
        model(np.ones((1, 4), np.float32))
        return model.get_weights()

    a, b = make(), make()
    assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert not np.array_equal(a[0], a[2])


def test_training_reaches_inner_layers() -> None:
    seen = []

    class Probe(nn.Module):
        def call(self, x, training=False):
            seen.append((training, nn.is_training()))
            return x

    model = nn.Sequential([Probe(), nn.Sequential([Probe()])])
    x = np.ones(1, np.float32)
    model(x)
    model(x, training=True)
    with nn.training_mode(True):
        model(x)
        model(x, training=False)
    assert seen == [(False, False)] * 2 + [(True, True)] * 4 + [(False, False)] * 2


def test_weights_are_copies_and_are_checked() -> None:
    layer = nn.Dense(2)
    layer(np.ones((1, 3), np.float32))
    values = layer.get_weights()
    values[0][:] = 5.0
    assert not (layer.kernel.numpy() == 5.0).any()
    layer.set_weights(values)
    assert (layer.kernel.numpy() == 5.0).all()
    with raises_with(ValueError, "kernel", "f32[3,2]", "[2, 3]"):
        layer.set_weights([values[0].T, values[1]])
    with raises_with(ValueError, "1 arrays for 2 variables", "kernel, bias"):
        layer.set_weights(values[:1])


def test_input_shapes_build_at_once() -> None:
    model = nn.Sequential([nn.Dense(3, input_shape=(2,)), nn.Dense(1)])
    assert [v.shape for v in model.variables] == [(2, 3), (3,), (3, 1), (1,)]
    image = nn.Sequential([nn.Input((4, 4, 1)), nn.Conv2D(2, 3), nn.Flatten(), nn.Dense(1)])
    assert image.layers[-1].kernel.shape == (8, 1)


def test_inputs_are_cast_to_the_dtype_of_the_layer() -> None:
    layer = nn.Dense(2)
    assert layer(random(3, 4)).dtype == np.float32
    assert layer(np.ones((3, 4), int)).dtype == np.float32
    assert nn.Dense(2, dtype="float64")(random(3, 4)).dtype == np.float64


def test_errors_name_the_layer_the_shapes_and_the_remedy() -> None:
    layer = nn.Dense(2, name="head")
    layer(np.ones((1, 3), np.float32))
    with raises_with(ValueError, "head", "3 features", "f32[1,4]", "new layer"):
        layer(np.ones((1, 4), np.float32))
    model = nn.Sequential([nn.Dense(4, name="a"), nn.Dense(4, name="b")], name="net")
    model(np.ones((1, 3), np.float32))
    with raises_with(ValueError, "'net' (Sequential)", "'a' (Dense)"):
        model(np.ones((1, 5), np.float32))
    for make in (nn.Dense, nn.LSTM, lambda *a, **k: nn.Conv1D(*a, 2, **k)):
        with raises_with(ValueError, "hidden: there is no activation 'rellu'", "did you mean 'relu'?", "choose one of celu"):
            make(3, activation="rellu", name="hidden")
    with raises_with(ValueError, "no initializer 'glorot'", "glorot_uniform"):
        nn.Dense(3, kernel_initializer="glorot")(np.ones((1, 2), np.float32))
    with raises_with(TypeError, "did you mean Flatten(...)"):
        nn.Sequential([nn.Flatten])
    with raises_with(ValueError, "units", "positive"):
        nn.Dense(0)
    with pytest.raises(NotImplementedError, match="must define call"):
        nn.Module()(1)


@pytest.mark.parametrize("name", sorted(nn.initializers.NAMED))
def test_initializers_by_name(name: str) -> None:
    make = nn.initializers.get_initializer(name)
    shape = (6, 6) if name == "identity" else (64, 32)
    value = make(shape, np.float64)
    assert value.shape == shape
    assert value.dtype == np.float64


def test_initializers_have_the_moments_they_promise() -> None:
    for make, variance in [
        (nn.initializers.GlorotUniform(1), 2.0 / (300 + 200)),
        (nn.initializers.HeNormal(2), 2.0 / 300),
        (nn.initializers.LecunUniform(3), 1.0 / 300),
        (nn.initializers.RandomNormal(0.0, 0.1, 4), 0.01),
    ]:
        value = make((300, 200), np.float64)
        assert abs(value.mean()) < 3e-3
        np.testing.assert_allclose(value.var(), variance, rtol=0.03)
    assert np.abs(nn.initializers.TruncatedNormal(0.0, 1.0, 5)((100, 100))).max() <= 2.0
    q = nn.initializers.Orthogonal(2.0, 6)((5, 3, 4), np.float64).reshape(15, 4)
    assert_close(q.T @ q, 4.0 * np.eye(4), 1e-12)
    wide = nn.initializers.Orthogonal(seed=6)((3, 7), np.float64)
    assert_close(wide @ wide.T, np.eye(3))
    assert np.array_equal(nn.initializers.HeNormal(9)((3, 3)), nn.initializers.HeNormal(9)((3, 3)))


def test_the_summary_of_a_model_that_was_never_called() -> None:
    assert "layers make their variables when they are first called" in nn.Sequential([nn.Dense(1)]).summary()


def test_attempts_to_create_variables_draw_the_same_numbers() -> None:
    """Compiled for all sizes, a layer learns the size of its input only when that has failed."""
    x, found = np.ones((5, 4), np.float32), []
    for dynamic in (False, True):
        nn.set_seed(3)
        layer = nn.Dense(6)
        aj.function(lambda x, layer=layer: layer(x), dynamic=dynamic)(x)
        found.append(layer.get_weights()[0])
    np.testing.assert_array_equal(*found)
