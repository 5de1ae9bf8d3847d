"""Recurrent layers against loops written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from tests.nn.formulas import gru_step, lstm_step, old_gru_step, run, simple_step
from tests.nn.reference import assert_close, check_layer, raises_with, random, randomized

D = {"dtype": "float64"}


KINDS = {
    "simple": (nn.SimpleRNN, {}, simple_step, 1),
    "lstm": (nn.LSTM, {}, lstm_step, 2),
    "gru": (nn.GRU, {}, gru_step, 1),
    "old_gru": (nn.GRU, {"reset_after": False}, old_gru_step, 1),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def made(kind, x, **options):
    cls, more, step, count = KINDS[kind]
    layer = randomized(cls(3, **more, **options, **D), x)
    return layer, step, tuple(np.zeros((x.shape[0], 3)) for _ in range(count))


@every_kind
def test_sequences(kind: str) -> None:
    x = random(2, 5, 4)
    layer, step, zeros = made(kind, x, return_sequences=True)
    check_layer(layer, x, wanted=run(step, x, layer.get_weights(), zeros)[0])


@every_kind
def test_last_output_with_states_and_a_mask(kind: str) -> None:
    x = random(2, 5, 4)
    mask = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], bool)
    layer, step, zeros = made(kind, x)
    initial = tuple(random(2, 3, seed=20 + i) for i in range(len(zeros)))
    wanted = run(step, x, layer.get_weights(), initial, mask)[1][0]
    check_layer(layer, x, wanted=wanted, mask=mask, initial_state=initial)


@every_kind
def test_backwards_and_unrolled(kind: str) -> None:
    x = random(2, 4, 4)
    layer, step, zeros = made(kind, x, go_backwards=True, return_sequences=True)
    wanted = run(step, x[:, ::-1], layer.get_weights(), zeros)[0]
    assert_close(layer(x), wanted)
    unrolled, _, _ = made(kind, x, go_backwards=True, return_sequences=True, unroll=True)
    assert_close(unrolled(x), wanted)
    assert_close(aj.function(lambda v: unrolled(v))(x), wanted)


@every_kind
def test_stateful(kind: str) -> None:
    x = random(2, 6, 4)
    layer, step, zeros = made(kind, x[:, :3], stateful=True)
    layer.reset_state()
    compiled = aj.function(lambda v: layer(v))
    compiled(x[:, :3])
    weights = layer.get_weights()[:3]
    assert_close(compiled(x[:, 3:]), run(step, x, weights, zeros)[1][0])
    layer.reset_state()
    assert_close(compiled(x[:, :3]), run(step, x[:, :3], weights, zeros)[1][0])
    with raises_with(ValueError, "stateful", "batches of 2"):
        layer(x[:1])


def test_return_state() -> None:
    x = random(2, 5, 4)
    layer, step, zeros = made("lstm", x, return_sequences=True, return_state=True)
    outputs, h, c = aj.function(lambda v: layer(v))(x)
    wanted, (last, cell) = run(step, x, layer.get_weights(), zeros)
    for a, b in ((outputs, wanted), (h, last), (c, cell)):
        assert_close(a, b)


def test_forget_gates_start_open() -> None:
    layer = nn.LSTM(2)
    layer(random(1, 2, 3))
    assert layer.bias.numpy().tolist() == [0, 0, 1, 1, 0, 0, 0, 0]


def test_bidirectional() -> None:
    x = random(2, 4, 3)
    layer = randomized(nn.Bidirectional(lambda: nn.GRU(3, return_sequences=True, **D), **D), x)
    out = check_layer(layer, x)
    zeros = (np.zeros((2, 3)),)
    ahead = run(gru_step, x, layer.forward.get_weights(), zeros)[0]
    behind = run(gru_step, x[:, ::-1], layer.backward.get_weights(), zeros)[0][:, ::-1]
    assert_close(out, np.concatenate([ahead, behind], -1))


def test_masks_pass_through_sequential() -> None:
    ids = np.array([[1, 2, 0, 0], [3, 1, 2, 0]])
    model = nn.Sequential([nn.Embedding(4, 3, mask_zero=True, **D), nn.LSTM(3, return_sequences=True, **D), nn.LSTM(2, **D)])
    model(ids)
    short = np.asarray(model(ids[:1, :2]))
    assert_close(np.asarray(model(ids))[:1], short)
    masked = nn.Sequential([nn.Masking(**D), nn.GRU(2, **D)])
    x = random(2, 4, 3)
    x[0, 2:] = 0.0
    masked(x)
    assert_close(np.asarray(masked(x))[:1], masked(x[:1, :2]))


def test_errors() -> None:
    layer = nn.LSTM(2, name="memory")
    with raises_with(ValueError, "memory", "[batch, time, features]"):
        layer(random(3, 4))
    layer(random(1, 3, 4))
    with raises_with(ValueError, "mask", "[batch, time]"):
        layer(random(1, 3, 4), mask=np.ones((3, 1), bool))
    with raises_with(ValueError, "2 initial state(s)", "[1, 2]"):
        layer(random(1, 3, 4), initial_state=np.zeros((1, 2)))
    with raises_with(TypeError, "makes a layer"):
        nn.Bidirectional(layer)


@every_kind
def test_dropout_is_the_same_in_all_steps(kind: str) -> None:
    """With the masks of twins: features of the input are dropped, and units that the next step sees."""
    x = random(2, 5, 4)
    layer, step, zeros = made(kind, x, dropout=0.4, recurrent_dropout=0.3, seed=1, return_sequences=True)
    kernel, recurrent, bias = (layer.kernel.numpy(), layer.recurrent_kernel.numpy(), layer.bias.numpy())
    features, units = (
        np.asarray(nn.Dropout(rate, seed=1, **D)(np.ones(shape), training=True)) for rate, shape in ((0.4, (2, 1, 4)), (0.3, (2, 3)))
    )
    assert (features == 0.0).any()
    assert (units == 0.0).any()
    # a unit that is dropped is a row of the recurrent kernel that is zero: example by example
    zero, seen = tuple(z[:1] for z in zeros), x * features
    rows = [run(step, seen[i : i + 1], (kernel, units[i][:, None] * recurrent, bias), zero)[0] for i in range(2)]
    state = [v.numpy().copy() for v in layer.variables]
    for call in (lambda v: layer(v, training=True), aj.function(lambda v: layer(v, training=True))):
        assert_close(call(x), np.concatenate(rows))
        layer.set_weights(state)
    assert_close(layer(x), run(step, x, (kernel, recurrent, bias), zeros)[0])
