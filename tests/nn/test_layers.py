"""Every layer: values against formulas written out in NumPy, gradients against differences, eager = compiled; all in float64."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from adjit.nn import activations
from tests.nn.formulas import ACTIVATIONS, attention, conv1d, conv2d
from tests.nn.reference import assert_close, check_layer, raises_with, random, randomized

D = {"dtype": "float64"}


def test_dense() -> None:
    x = random(5, 2, 3)
    layer = randomized(nn.Dense(4, activation="tanh", **D), x)
    w, b = layer.get_weights()
    check_layer(layer, x, wanted=np.tanh(x @ w + b))
    assert nn.Dense(4, use_bias=False, **D)(x).shape == (5, 2, 4)


def test_embedding() -> None:
    ids = np.array([[0, 2], [1, 2]])
    layer = randomized(nn.Embedding(3, 4, **D), ids)
    check_layer(layer, ids, wanted=layer.get_weights()[0][ids])
    for run in (layer, aj.function(lambda i: layer(i))):
        with pytest.raises(IndexError, match="out of bounds"):
            run(np.array([3]))
        with pytest.raises(IndexError, match="out of bounds"):
            run(np.array([-1]))
    with raises_with(TypeError, "integers", "astype"):
        layer(np.array([0.5]))


def test_flatten_reshape_and_functions() -> None:
    x = random(2, 3, 4)
    check_layer(nn.Flatten(**D), x, wanted=x.reshape(2, 12))
    check_layer(nn.Reshape((2, -1), **D), x, wanted=x.reshape(2, 2, 6))
    check_layer(nn.Lambda(lambda v: v * v), x, wanted=x * x)
    check_layer(nn.Sequential([nn.Dense(4, **D), np.tanh]), x)
    check_layer(nn.Residual(nn.Dense(4, **D), **D), x)
    with raises_with(ValueError, "12 elements", "[5]"):
        nn.Reshape((5,))(x)
    with raises_with(ValueError, "equal shapes"):
        nn.Residual(nn.Dense(3))(x)


def test_dropout() -> None:
    x = np.ones((200, 50), np.float32)
    layer = nn.Dropout(0.3, seed=1)
    assert np.array_equal(layer(x), x)
    first, second = (np.asarray(layer(x, training=True)) for _ in range(2))
    assert set(np.unique(first).tolist()) == {0.0, float(np.float32(1.0) * np.float32(1.0 / 0.7))}
    assert abs((first == 0).mean() - 0.3) < 0.02
    assert (first != second).any()
    again = nn.Dropout(0.3, seed=1)
    compiled = aj.function(lambda v: again(v, training=True))
    assert np.array_equal(compiled(x), first)
    assert np.array_equal(compiled(x), second)
    rows = np.asarray(nn.Dropout(0.5, noise_shape=(None, 1), seed=2)(x, training=True))
    assert (rows == rows[:, :1]).all()
    with raises_with(ValueError, "[0, 1)"):
        nn.Dropout(1.0)


def test_dropout_scales_the_gradient() -> None:
    layer = nn.Dropout(0.5, seed=3)
    x = aj.tensor(random(20))
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
    assert_close(tape.gradient(y, x), np.where(np.asarray(y) == 0, 0.0, 2.0))
    assert y.dtype == layer(x, training=False).dtype == np.float64


@pytest.mark.parametrize("axis", [-1, 1])
def test_batch_norm(axis: int) -> None:
    x = random(6, 3, 4) * 3.0 + 1.0
    layer = randomized(nn.BatchNorm(axis=axis, momentum=0.9, **D), x)
    layer.moving_variance.assign(np.abs(layer.moving_variance.numpy()))
    gamma, beta, mean, variance = layer.get_weights()
    wide = [1, 1, 1]
    wide[axis] = -1
    g, b, m, v = (a.reshape(wide) for a in (gamma, beta, mean, variance))
    check_layer(layer, x, wanted=(x - m) / np.sqrt(v + 1e-3) * g + b)
    others = tuple(a for a in range(3) if a != axis % 3)
    now = (x - x.mean(others, keepdims=True)) / np.sqrt(x.var(others, keepdims=True) + 1e-3) * g + b
    check_layer(layer, x, wanted=now, training=True)
    layer.set_weights([gamma, beta, mean, variance])
    layer(x, training=True)
    assert_close(layer.moving_mean, 0.9 * mean + 0.1 * x.mean(others))
    assert_close(layer.moving_variance, 0.9 * variance + 0.1 * x.var(others))


def test_frozen_batch_norm_does_not_update() -> None:
    layer = nn.BatchNorm()
    layer(random(4, 2))
    layer.trainable = False
    layer(random(4, 2) + 5.0, training=True)
    assert_close(layer.moving_mean, [0.0, 0.0])


def test_layer_norm_and_rms_norm() -> None:
    x = random(4, 3, 5)
    layer = randomized(nn.LayerNorm(**D), x)
    g, b = layer.get_weights()
    check_layer(layer, x, wanted=(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * g + b)
    both = nn.LayerNorm(axis=(1, 2), center=False, scale=False, **D)
    check_layer(both, x, wanted=(x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-3))
    rms = randomized(nn.RMSNorm(**D), x)
    check_layer(rms, x, wanted=x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * rms.get_weights()[0])


def test_conv2d() -> None:
    x = random(2, 6, 7, 3)
    layer = randomized(nn.Conv2D(4, (3, 2), strides=2, padding="same", activation="relu", **D), x)
    w, b = layer.get_weights()
    check_layer(layer, x, wanted=np.maximum(conv2d(x, w, (2, 2), ((0, 1), (0, 1))) + b, 0.0))
    given = randomized(nn.Conv2D(2, 3, padding=[(1, 0), (2, 1)], dilation_rate=(1, 2), use_bias=False, **D), x)
    check_layer(given, x, wanted=conv2d(x, given.get_weights()[0], (1, 1), ((1, 0), (2, 1)), (1, 2)))
    grouped = randomized(nn.Conv2D(6, 2, groups=3, use_bias=False, **D), x)
    check_layer(grouped, x, wanted=conv2d(x, grouped.get_weights()[0], groups=3))
    depthwise = randomized(nn.DepthwiseConv2D(2, depth_multiplier=2, **D), x)
    assert depthwise.kernel.shape == (2, 2, 1, 6)
    check_layer(depthwise, x)


def test_conv1d() -> None:
    x = random(2, 7, 3)
    layer = randomized(nn.Conv1D(4, 3, padding="causal", dilation_rate=2, **D), x)
    w, b = layer.get_weights()
    check_layer(layer, x, wanted=conv1d(x, w, 1, (4, 0), 2) + b)
    changed = x.copy()
    changed[:, 4] += 1.0
    assert_close(np.asarray(layer(changed))[:, :4], np.asarray(layer(x))[:, :4])


@pytest.mark.parametrize(("padding", "size"), [("same", (6, 8)), ("valid", (7, 9))])
def test_conv2d_transpose_is_the_transpose(padding: str, size: tuple[int, int]) -> None:
    x = random(2, 3, 4, 2)
    layer = randomized(nn.Conv2DTranspose(3, 3, strides=2, padding=padding, use_bias=False, **D), x)
    out = check_layer(layer, x)
    assert out.shape == (2, *size, 3)
    back = nn.Conv2D(2, 3, strides=2, padding=padding, use_bias=False, **D)
    image = random(*out.shape, seed=9)
    back(image)
    back.set_weights(layer.get_weights())
    np.testing.assert_allclose(np.sum(np.asarray(back(image)) * x), np.sum(image * out), rtol=1e-12)


def test_transposed_sizes() -> None:
    assert nn.Conv1DTranspose(2, 3, strides=2, padding="same")(random(1, 5, 2)).shape == (1, 10, 2)
    assert nn.Conv1DTranspose(2, 2, strides=3)(random(1, 4, 2)).shape == (1, 12, 2)
    assert nn.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1)(random(1, 4, 4, 2)).shape == (1, 8, 8, 2)


def test_pooling() -> None:
    x = random(2, 5, 6, 3)
    cut = x[:, :4].reshape(2, 2, 2, 3, 2, 3)
    check_layer(nn.MaxPool2D(**D), x, wanted=cut.max((2, 4)))
    check_layer(nn.AvgPool2D(**D), x, wanted=cut.mean((2, 4)))
    check_layer(nn.MaxPool2D(3, 2, padding="same", **D), x)
    line = random(2, 5, 3)
    same = np.stack([line[:, 0:2].mean(1), line[:, 1:4].mean(1), line[:, 3:5].mean(1)], 1)
    check_layer(nn.AvgPool1D(3, 2, padding="same", **D), line, wanted=same)
    check_layer(nn.MaxPool1D(2, 1, **D), line, wanted=np.maximum(line[:, :-1], line[:, 1:]))
    check_layer(nn.GlobalAvgPool2D(**D), x, wanted=x.mean((1, 2)))
    check_layer(nn.GlobalMaxPool1D(keepdims=True, **D), line, wanted=line.max(1, keepdims=True))
    check_layer(nn.ZeroPadding2D(((1, 0), (0, 2)), **D), x, wanted=np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0))))
    check_layer(nn.UpSampling2D((2, 3), **D), x, wanted=x.repeat(2, 1).repeat(3, 2))


def test_the_gradient_of_max_pool_goes_to_the_first_maximum() -> None:
    x = aj.tensor(np.ones((1, 2, 2, 1)))
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = nn.MaxPool2D(**D)(x)
    assert np.asarray(tape.gradient(y, x)).ravel().tolist() == [1.0, 0.0, 0.0, 0.0]


def test_errors_of_spatial_layers() -> None:
    with raises_with(ValueError, "conv", "[batch, height, width, channels]", "f32[4,4]", "x[..., None]"):
        nn.Conv2D(2, 3, name="conv")(np.ones((4, 4), np.float32))
    with raises_with(ValueError, "'sane'", "same"):
        nn.Conv2D(2, 3, padding="sane")
    with raises_with(ValueError, "3 filters", "2 groups"):
        nn.Conv2D(3, 3, groups=2)
    with raises_with(ValueError, "kernel_size"):
        nn.Conv2D(3, (3, 3, 3))
    for large in (nn.Conv2D(2, 5, name="large"), nn.MaxPool2D(5, name="large"), nn.AvgPool2D((1, 5), name="large")):
        with raises_with(ValueError, "large: a window of", "5]", "f32[1,4,4,2]", "smaller"):
            large(np.ones((1, 4, 4, 2), np.float32))
    layer = nn.Conv2D(2, 3, name="c")
    layer(np.ones((1, 4, 4, 2), np.float32))
    with raises_with(ValueError, "'c'", "2 features", "f32[1,4,4,3]"):
        layer(np.ones((1, 4, 4, 3), np.float32))


def test_multi_head_attention() -> None:
    q, v = random(2, 4, 6), random(2, 5, 3, seed=1)
    layer = randomized(nn.MultiHeadAttention(2, 3, value_dim=4, **D), q, v)
    weights = [a.numpy() for a in layer.kernels.values()], [a.numpy() for a in layer.biases.values()]
    check_layer(layer, q, v, wanted=attention(q, v, v, weights, True))
    mask = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], bool)
    check_layer(layer, q, v, wanted=attention(q, v, v, weights, mask[:, None]), mask=mask)
    seen = np.random.default_rng(0).random((2, 4, 5)) < 0.6
    seen[:, :, 0] = True
    check_layer(layer, q, v, wanted=attention(q, v, v, weights, seen), attention_mask=seen)


def test_causal_attention_does_not_look_ahead() -> None:
    x = random(1, 6, 4)
    layer = randomized(nn.MultiHeadAttention(2, 3, **D), x)
    before = check_layer(layer, x, use_causal_mask=True)
    x[:, 3] += 1.0
    after = np.asarray(layer(x, use_causal_mask=True))
    assert_close(after[:, :3], before[:, :3])
    assert (np.abs(after[:, 3:] - before[:, 3:]) > 1e-6).all()
    _, weights = layer(x, use_causal_mask=True, return_attention_scores=True)
    assert (np.triu(np.asarray(weights), 1) == 0).all()


def test_a_query_that_sees_nothing_is_not_nan() -> None:
    out = nn.MultiHeadAttention(1, 2)(random(1, 3, 4), mask=np.zeros((1, 3), bool))
    assert np.isfinite(np.asarray(out)).all()


@pytest.mark.parametrize("name", sorted(activations.NAMED))
def test_activations(name: str) -> None:
    x = np.linspace(-7.3, 7.9, 24).reshape(4, 6)
    check_layer(nn.Activation(name, **D), x, wanted=ACTIVATIONS[name](x), tolerance=1e-12)


@pytest.mark.parametrize("name", sorted(set(activations.NAMED) - {"exponential"}))
def test_activations_do_not_overflow(name: str) -> None:
    x = aj.tensor(np.array([-1e4, 0.0, 1e4], np.float32))
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = activations.get_activation(name)(x)
    assert np.isfinite(np.asarray(y)).all()
    assert np.isfinite(np.asarray(tape.gradient(y, x))).all()
