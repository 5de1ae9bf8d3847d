"""A row for every layer: its constructor, its inputs, and its formula. The tests of ten training steps use all rows.

`make(nn, **d)` creates the layer from a namespace, adjit.nn or a similar one, so that other libraries can be tested as well.
`formula(*inputs, *weights)` is NumPy; weights come in the order of the layer's variables, those that are not trained last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adjit import nn
from tests.nn import formulas as f
from tests.nn.reference import Array, random


@dataclass(frozen=True)
class Case:
    """One layer with its options."""

    make: Callable[..., Any]
    inputs: tuple[Array, ...]  # floating ones are trained, too
    formula: Callable[..., Array]
    call: dict[str, Any] = field(default_factory=dict)
    update: Callable[..., Sequence[Array]] | None = None  # variables that are not trained, after a step with these inputs and weights
    extra: Callable[[], Sequence[Array]] = list  # state of the formula alone, behind the weights
    in_keras: bool = True
    in_float32: bool = True


IMAGE, WIDE = random(2, 4, 5, 2), random(2, 5, 6, 2)
LINE, SERIES = random(2, 6, 4), random(2, 4, 2)
IDS = np.array([[1, 2, 0, 0], [3, 1, 2, 0]])
STEPS_MASK = np.array([[1, 0, 1, 0], [0, 1, 1, 1]], bool)
QUERY, VALUE = random(2, 4, 4), random(2, 5, 3, seed=1)
KEYS_MASK = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], bool)
PAIRS_MASK = np.random.default_rng(0).random((2, 4, 5)) < 0.6
PAIRS_MASK[:, :, 0] = True
TRAIN = {"training": True}

SHAPES = {
    "dense": Case(lambda nn, **d: nn.Dense(3, activation="tanh", **d), (random(5, 4),), lambda x, w, b: np.tanh(x @ w + b)),
    "dense on the last axis": Case(lambda nn, **d: nn.Dense(3, use_bias=False, **d), (LINE,), lambda x, w: x @ w),
    "embedding": Case(lambda nn, **d: nn.Embedding(4, 3, **d), (IDS,), lambda ids, table: table[ids]),
    "flatten": Case(lambda nn, **d: nn.Flatten(**d), (LINE,), lambda x: x.reshape(2, 24)),
    "reshape": Case(lambda nn, **d: nn.Reshape((4, -1), **d), (LINE,), lambda x: x.reshape(2, 4, 6)),
    "function": Case(lambda nn, **d: nn.Lambda(lambda x: x * x + 1.0, **d), (LINE,), lambda x: x * x + 1.0),
    "residual": Case(
        lambda nn, **d: nn.Residual(nn.Dense(4, activation="relu", **d), **d), (LINE,), lambda x, w, b: x + np.maximum(x @ w + b, 0.0),
        in_keras=False,
    ),
    "zero padding": Case(
        lambda nn, **d: nn.ZeroPadding2D(((1, 0), (0, 2)), **d), (IMAGE,), lambda x: f.padded(x, ((1, 0), (0, 2))),
    ),
    "up-sampling": Case(lambda nn, **d: nn.UpSampling2D((2, 3), **d), (IMAGE,), lambda x: x.repeat(2, 1).repeat(3, 2)),
}  # fmt: skip


# ---- dropout


def dropout_masks(rate: float, shape: tuple[int, ...]) -> Array:
    """The factors by which a Dropout of this rate with seed 3 multiplies its input, in each of ten steps, from a second layer."""
    twin = nn.Dropout(rate, seed=3, dtype="float64")
    return np.stack([np.asarray(twin(np.ones(shape), training=True)) for _ in range(10)])


DROPOUT = {
    "dropout": Case(
        lambda nn, **d: nn.Dropout(0.4, seed=3, **d), (LINE,), lambda x, masks: x * masks[0], TRAIN,
        update=lambda x, masks: [np.roll(masks, -1, 0)], extra=lambda: [dropout_masks(0.4, LINE.shape)], in_keras=False,
        in_float32=False,  # float32 has different masks
    ),
    "dropout, inference": Case(lambda nn, **d: nn.Dropout(0.5, seed=3, **d), (LINE,), lambda x: x),
}  # fmt: skip

# ---- normalisation


def batch_norm(axis: int) -> Case:
    x = random(6, 3, 4) * 3.0 + 1.0
    others = tuple(a for a in range(3) if a != axis % 3)
    wide = [-1 if a == axis % 3 else 1 for a in range(3)]

    def update(x, gamma, beta, mean, variance):
        return 0.9 * mean + 0.1 * x.mean(others), 0.9 * variance + 0.1 * x.var(others)

    return Case(
        lambda nn, **d: nn.BatchNorm(axis=axis, momentum=0.9, **d), (x,),
        lambda x, g, b, *_: f.standardized(x, others, 1e-3) * g.reshape(wide) + b.reshape(wide), TRAIN, update,
    )  # fmt: skip


NORMALIZATION = {
    "batch norm": batch_norm(-1),
    "batch norm of axis 1": batch_norm(1),
    "batch norm, inference": Case(
        lambda nn, **d: nn.BatchNorm(**d), (random(6, 3),), lambda x, g, b, mean, variance: (x - mean) / np.sqrt(variance + 1e-3) * g + b,
        update=lambda x, g, b, mean, variance: (mean, variance),
    ),
    "layer norm": Case(lambda nn, **d: nn.LayerNorm(**d), (LINE,), lambda x, g, b: f.standardized(x, -1, 1e-3) * g + b),
    "layer norm of two axes": Case(
        lambda nn, **d: nn.LayerNorm(axis=(1, 2), center=False, scale=False, **d), (LINE,), lambda x: f.standardized(x, (1, 2), 1e-3)
    ),
    "rms norm": Case(
        lambda nn, **d: nn.RMSNorm(epsilon=1e-6, **d), (LINE,), lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g
    ),
}  # fmt: skip

# ---- convolution and pooling

CONVOLUTION = {
    "conv2d": Case(
        lambda nn, **d: nn.Conv2D(3, (3, 2), activation="relu", **d), (IMAGE,), lambda x, w, b: np.maximum(f.conv2d(x, w) + b, 0.0)
    ),
    "conv2d, stride 2, same": Case(
        lambda nn, **d: nn.Conv2D(3, (3, 2), strides=2, padding="same", **d), (IMAGE,),
        lambda x, w, b: f.conv2d(x, w, (2, 2), ((0, 1), (0, 1))) + b,
    ),
    "conv2d, explicit padding, dilated": Case(
        lambda nn, **d: nn.Conv2D(2, 3, padding=[(1, 0), (2, 1)], dilation_rate=(1, 2), use_bias=False, **d), (IMAGE,),
        lambda x, w: f.conv2d(x, w, (1, 1), ((1, 0), (2, 1)), (1, 2)), in_keras=False,
    ),
    "conv2d, dilated, same": Case(
        lambda nn, **d: nn.Conv2D(2, 2, padding="same", dilation_rate=2, **d), (IMAGE,),
        lambda x, w, b: f.conv2d(x, w, (1, 1), ((1, 1), (1, 1)), (2, 2)) + b,
    ),
    "conv2d, groups": Case(
        lambda nn, **d: nn.Conv2D(4, 2, groups=2, use_bias=False, **d), (IMAGE,), lambda x, w: f.conv2d(x, w, groups=2), in_keras=False
    ),
    "depthwise": Case(
        lambda nn, **d: nn.DepthwiseConv2D(2, depth_multiplier=2, **d), (IMAGE,),
        lambda x, w, b: f.conv2d(x, w.reshape(2, 2, 1, 4), groups=2) + b,
    ),
    "conv1d, causal, dilated": Case(
        lambda nn, **d: nn.Conv1D(3, 3, padding="causal", dilation_rate=2, **d), (LINE,),
        lambda x, w, b: f.conv1d(x, w, 1, (4, 0), 2) + b,
    ),
    "conv1d, stride 2, same": Case(
        lambda nn, **d: nn.Conv1D(3, 3, strides=2, padding="same", **d), (LINE,), lambda x, w, b: f.conv1d(x, w, 2, (0, 1)) + b
    ),
    "conv1d, groups": Case(
        lambda nn, **d: nn.Conv1D(4, 2, groups=4, **d), (LINE,), lambda x, w, b: f.conv1d(x, w, groups=4) + b, in_keras=False
    ),
    "transposed conv2d": Case(
        lambda nn, **d: nn.Conv2DTranspose(3, 3, strides=2, **d), (IMAGE,), lambda x, w, b: f.conv2d_transpose(x, w, (2, 2)) + b
    ),
    "transposed conv2d, same": Case(
        lambda nn, **d: nn.Conv2DTranspose(2, 3, strides=2, padding="same", activation="tanh", **d), (IMAGE,),
        lambda x, w, b: np.tanh(f.conv2d_transpose(x, w, (2, 2), ((0, 1), (0, 1))) + b),
    ),
    "transposed conv2d, groups, dilated": Case(
        lambda nn, **d: nn.Conv2DTranspose(2, 2, groups=2, dilation_rate=2, use_bias=False, **d), (IMAGE,),
        lambda x, w: f.conv2d_transpose(x, w, dilations=(2, 2), groups=2), in_keras=False,
    ),
    "transposed conv1d": Case(
        lambda nn, **d: nn.Conv1DTranspose(2, 3, strides=2, padding="same", **d), (LINE,),
        lambda x, w, b: f.conv1d_transpose(x, w, 2, (0, 1)) + b,
    ),
    "max pool": Case(lambda nn, **d: nn.MaxPool2D(**d), (WIDE,), lambda x: f.max_pool(x, (2, 2), (2, 2))),
    "max pool, overlapping, same": Case(
        lambda nn, **d: nn.MaxPool2D(3, strides=2, padding="same", **d), (WIDE,), lambda x: f.max_pool(x, (3, 3), (2, 2), ((1, 1), (0, 1)))
    ),
    "max pool of a line": Case(
        lambda nn, **d: nn.MaxPool1D(2, strides=1, **d), (LINE,), lambda x: f.max_pool(x[:, None], (1, 2), (1, 1))[:, 0]
    ),
    "average pool": Case(lambda nn, **d: nn.AvgPool2D((2, 3), **d), (WIDE,), lambda x: f.avg_pool(x, (2, 3), (2, 3))),
    "average pool of a line, same": Case(
        lambda nn, **d: nn.AvgPool1D(3, strides=2, padding="same", **d), (LINE[:, :5],),
        lambda x: f.avg_pool(x[:, None], (1, 3), (1, 2), ((0, 0), (1, 1)))[:, 0],
    ),
    "global average": Case(lambda nn, **d: nn.GlobalAvgPool2D(**d), (IMAGE,), lambda x: x.mean((1, 2))),
    "global average of a line": Case(lambda nn, **d: nn.GlobalAvgPool1D(keepdims=True, **d), (LINE,), lambda x: x.mean(1, keepdims=True)),
    "global maximum": Case(lambda nn, **d: nn.GlobalMaxPool2D(keepdims=True, **d), (IMAGE,), lambda x: x.max((1, 2), keepdims=True)),
    "global maximum of a line": Case(lambda nn, **d: nn.GlobalMaxPool1D(**d), (LINE,), lambda x: x.max(1)),
}  # fmt: skip

# ---- recurrent layers

CELLS: dict[str, tuple[str, dict[str, Any], Callable[..., Any], int]] = {
    "simple rnn": ("SimpleRNN", {}, f.simple_step, 1),
    "lstm": ("LSTM", {}, f.lstm_step, 2),
    "gru": ("GRU", {}, f.gru_step, 1),
    "gru, reset before": ("GRU", {"reset_after": False}, f.old_gru_step, 1),
}
UNITS = 2


def zeros(count: int, batch: int = 2) -> tuple[Array, ...]:
    return tuple(np.zeros((batch, UNITS)) for _ in range(count))


def recurrent(cell: str, formula: Callable[..., Array], call: dict[str, Any] | None = None, **options: Any) -> Case:
    """`formula(step, x, weights, zeros)`."""
    name, more, step, count = CELLS[cell]
    return Case(
        lambda nn, **d: getattr(nn, name)(UNITS, **more, **options, **d), (SERIES,),
        lambda x, *weights: formula(step, x, weights, zeros(count)), call or {},
    )  # fmt: skip


def stateful(cell: str) -> Case:
    name, more, step, _ = CELLS[cell]
    return Case(
        lambda nn, **d: getattr(nn, name)(UNITS, stateful=True, **more, **d), (SERIES,),
        lambda x, *weights: f.run(step, x, weights[:3], weights[3:])[1][0],
        update=lambda x, *weights: f.run(step, x, weights[:3], weights[3:])[1], in_keras=False,
    )  # fmt: skip


def bidirectional(mode: str, merge: Callable[[Array, Array], Array]) -> Case:
    def formula(x, *weights):
        ahead = f.run(f.gru_step, x, weights[:3], zeros(1))[0]
        return merge(ahead, f.run(f.gru_step, x[:, ::-1], weights[3:], zeros(1))[0][:, ::-1])

    return Case(
        lambda nn, **d: nn.Bidirectional(lambda: nn.GRU(UNITS, return_sequences=True, **d), merge_mode=mode, **d), (SERIES,), formula
    )


RECURRENT = {
    f"{cell}, {what}": case
    for cell in CELLS
    for what, case in {
        "last output": recurrent(cell, lambda *a: f.run(*a)[1][0]),
        "sequences": recurrent(cell, lambda *a: f.run(*a)[0], return_sequences=True),
        "masked": recurrent(cell, lambda *a: f.run(*a, STEPS_MASK)[1][0], {"mask": STEPS_MASK}),
        "backwards": recurrent(
            cell, lambda step, x, *a: f.run(step, x[:, ::-1], *a)[0], go_backwards=True, return_sequences=True
        ),
        "unrolled": recurrent(cell, lambda *a: f.run(*a)[1][0], unroll=True),
        "stateful": stateful(cell),
    }.items()
}  # fmt: skip
RECURRENT |= {
    "bidirectional": bidirectional("concat", lambda a, b: np.concatenate([a, b], -1)),
    "bidirectional, average": bidirectional("ave", lambda a, b: (a + b) / 2),
    "bidirectional, product": bidirectional("mul", lambda a, b: a * b),
}

# ---- attention


def attended(q: Array, v: Array, weights: Sequence[Array], visible: Any = True) -> Array:
    return f.attention(q, v, v, (weights[:4], weights[4:]), visible)


ATTENTION = {
    "self attention": Case(
        lambda nn, **d: nn.MultiHeadAttention(2, 2, **d), (QUERY,), lambda q, *w: attended(q, q, w), in_keras=False
    ),
    "causal attention": Case(
        lambda nn, **d: nn.MultiHeadAttention(2, 2, **d), (QUERY,),
        lambda q, *w: attended(q, q, w, np.tril(np.ones((4, 4), bool))), {"use_causal_mask": True}, in_keras=False,
    ),
    "attention to others": Case(
        lambda nn, **d: nn.MultiHeadAttention(2, 2, value_dim=3, **d), (QUERY, VALUE), lambda q, v, *w: attended(q, v, w)
    ),
    "attention with padding": Case(
        lambda nn, **d: nn.MultiHeadAttention(2, 2, **d), (QUERY, VALUE),
        lambda q, v, *w: attended(q, v, w, KEYS_MASK[:, None]), {"mask": KEYS_MASK},
    ),
    "attention with a mask": Case(
        lambda nn, **d: nn.MultiHeadAttention(1, 3, output_shape=2, **d), (QUERY, VALUE),
        lambda q, v, *w: attended(q, v, w, PAIRS_MASK), {"attention_mask": PAIRS_MASK},
    ),
}  # fmt: skip

# ---- compositions


def small_net(nn: Any, **d: Any) -> Any:
    layers = [nn.Conv2D(2, 2, **d), nn.BatchNorm(momentum=0.9, **d), nn.Activation("relu", **d), nn.MaxPool2D(**d), nn.Flatten(**d)]
    return nn.Sequential([nn.Input((4, 5, 2), dtype=d["dtype"]), *layers, nn.Dense(3, **d), np.tanh])


def small_net_formula(x, kernel, bias, gamma, beta, *rest):
    h = np.maximum(f.standardized(f.conv2d(x, kernel) + bias, (0, 1, 2), 1e-3) * gamma + beta, 0.0)
    w, b = rest[:2]
    return np.tanh(f.max_pool(h, (2, 2), (2, 2)).reshape(len(x), -1) @ w + b)


def small_net_update(x, kernel, bias, *rest):
    h = f.conv2d(x, kernel) + bias
    mean, variance = rest[-2:]
    return 0.9 * mean + 0.1 * h.mean((0, 1, 2)), 0.9 * variance + 0.1 * h.var((0, 1, 2))


def symbolic_net(nn: Any, **d: Any) -> Any:
    x = nn.Input((4,), **d)
    h = nn.Dense(3, activation="tanh", **d)(x)
    return nn.Model(x, h + nn.Dense(3, **d)(h) * 0.5)


def symbolic_net_formula(x, w1, b1, w2, b2):
    h = np.tanh(x @ w1 + b1)
    return h + (h @ w2 + b2) * 0.5


def masked_series() -> Array:
    x = SERIES.copy()
    x[0, 2:] = 0.0
    return x


MASKED = masked_series().any(-1)

COMPOSITION = {
    "sequential": Case(small_net, (IMAGE,), small_net_formula, TRAIN, small_net_update, in_keras=False),
    "model of symbols": Case(symbolic_net, (random(5, 4),), symbolic_net_formula),
    "masking": Case(
        lambda nn, **d: nn.Sequential([nn.Dense(2, use_bias=False, **d), nn.Masking(mask_value=0.0, **d), nn.GRU(UNITS, **d)]),
        (masked_series(),),
        lambda x, w, *weights: f.run(f.gru_step, x @ w, weights, zeros(1), MASKED)[1][0],
    ),
    "masked embedding": Case(
        lambda nn, **d: nn.Sequential([nn.Embedding(4, 2, mask_zero=True, **d), nn.LSTM(UNITS, **d)]), (IDS,),
        lambda ids, table, *weights: f.run(f.lstm_step, table[ids], weights, zeros(2), ids != 0)[1][0],
    ),
}  # fmt: skip


def activation(name: str) -> Case:
    x = np.linspace(-7.3, 7.9, 24).reshape(4, 6) / (8.0 if name == "exponential" else 1.0)
    return Case(lambda nn, **d: nn.Activation(name, **d), (x,), f.ACTIVATIONS[name], in_keras=name != "gelu_tanh")


ACTIVATIONS = {f"activation {name}": activation(name) for name in sorted(nn.activations.NAMED)}

CASES = {**SHAPES, **DROPOUT, **NORMALIZATION, **CONVOLUTION, **RECURRENT, **ATTENTION, **COMPOSITION, **ACTIVATIONS}
