"""Layers written out in NumPy, in float64, for readability rather than speed. Nothing here uses adjit."""

from __future__ import annotations

import math

import numpy as np

# ---- activations


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)), "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * sigmoid(x), "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))), "softsign": lambda x: x / (1 + abs(x)),
    "softplus": lambda x: np.log1p(np.exp(x)), "sigmoid": sigmoid, "tanh": np.tanh, "exponential": np.exp,
    "log_sigmoid": lambda x: -np.log1p(np.exp(-x)), "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "hard_tanh": lambda x: np.clip(x, -1, 1), "linear": lambda x: x, "softmax": softmax, "log_softmax": lambda x: np.log(softmax(x)),
}  # fmt: skip

# ---- convolution and pooling: every tap of the window is one product of a strided view


def windows(x, size, strides, dilations=(1, 1)):
    """For each tap of a window over [n, h, w, c]: its place in the window, and its inputs at all positions."""
    count = [(x.shape[i + 1] - (size[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in (0, 1)]
    for tap in np.ndindex(*size):
        rows, columns = (slice(t * d, t * d + s * (n - 1) + 1, s) for t, d, s, n in zip(tap, dilations, strides, count, strict=True))
        yield tap, x[:, rows, columns]


def padded(x, pads, value=0.0):
    return np.pad(x, ((0, 0), *pads, (0, 0)), constant_values=value)


def conv2d(x, w, strides=(1, 1), pads=((0, 0), (0, 0)), dilations=(1, 1), groups=1):
    """[n, h, w, c] by [r, s, c / groups, k]: the channels of a group go to its share of the filters."""
    if groups > 1:
        parts = zip(np.split(x, groups, -1), np.split(w, groups, -1), strict=True)
        return np.concatenate([conv2d(a, b, strides, pads, dilations) for a, b in parts], -1)
    return sum(seen @ w[tap] for tap, seen in windows(padded(x, pads), w.shape[:2], strides, dilations))


def conv1d(x, w, stride=1, pads=(0, 0), dilation=1, groups=1):
    return conv2d(x[:, None], w[None], (1, stride), ((0, 0), pads), (1, dilation), groups)[:, 0]


def conv2d_transpose(x, w, strides=(1, 1), cut=((0, 0), (0, 0)), dilations=(1, 1), groups=1, longer=(0, 0)):
    """Every element of [n, h, w, c] adds a window [r, s, k / groups, c] to the output, whose margins are cut off at the end."""
    if groups > 1:
        parts = zip(np.split(x, groups, -1), np.split(w, groups, -1), strict=True)
        return np.concatenate([conv2d_transpose(a, b, strides, cut, dilations, 1, longer) for a, b in parts], -1)
    size = [(x.shape[i + 1] - 1) * strides[i] + (w.shape[i] - 1) * dilations[i] + 1 + longer[i] for i in (0, 1)]
    out = np.zeros((x.shape[0], *size, w.shape[2]))
    for r, s in np.ndindex(*w.shape[:2]):
        top, left = r * dilations[0], s * dilations[1]
        bottom, right = top + strides[0] * (x.shape[1] - 1) + 1, left + strides[1] * (x.shape[2] - 1) + 1
        out[:, top : bottom : strides[0], left : right : strides[1]] += x @ w[r, s].T
    (a, b), (c, d) = cut
    return out[:, a : size[0] - b, c : size[1] - d]


def conv1d_transpose(x, w, stride=1, cut=(0, 0), dilation=1, groups=1):
    return conv2d_transpose(x[:, None], w[None], (1, stride), ((0, 0), cut), (1, dilation), groups)[:, 0]


def max_pool(x, size, strides, pads=((0, 0), (0, 0))):
    return np.max([seen for _, seen in windows(padded(x, pads, -np.inf), size, strides)], 0)


def avg_pool(x, size, strides, pads=((0, 0), (0, 0))):
    """Means over windows; padding does not count."""
    total, count = (sum(seen for _, seen in windows(padded(a, pads), size, strides)) for a in (x, np.ones_like(x)))
    return total / count


# ---- normalisation


def standardized(x, axes, epsilon):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


# ---- recurrent layers


def simple_step(x, states, weights):
    kernel, recurrent, bias = weights
    return (np.tanh(x @ kernel + states[0] @ recurrent + bias),)


def lstm_step(x, states, weights):
    kernel, recurrent, bias = weights
    h, c = states
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, states, weights):
    kernel, recurrent, bias = weights
    (h,) = states
    xz, xr, xh = np.split(x @ kernel + bias[0], 3, -1)
    hz, hr, hh = np.split(h @ recurrent + bias[1], 3, -1)
    z, r = sigmoid(xz + hz), sigmoid(xr + hr)
    return (z * h + (1 - z) * np.tanh(xh + r * hh),)


def old_gru_step(x, states, weights):
    kernel, recurrent, bias = weights
    (h,) = states
    u = h.shape[-1]
    xz, xr, xh = np.split(x @ kernel + bias, 3, -1)
    z, r = sigmoid(xz + h @ recurrent[:, :u]), sigmoid(xr + h @ recurrent[:, u : 2 * u])
    return (z * h + (1 - z) * np.tanh(xh + (r * h) @ recurrent[:, 2 * u :]),)


def run(step, x, weights, states, mask=None):
    """All outputs, and the last states; a masked step leaves the states unchanged."""
    outputs = []
    for t in range(x.shape[1]):
        new = step(x[:, t], states, weights)
        states = new if mask is None else tuple(np.where(mask[:, t, None], n, s) for n, s in zip(new, states, strict=True))
        outputs.append(states[0])
    return np.stack(outputs, 1), states


# ---- attention


def attention(q, k, v, weights, visible=True):
    """[b, t, d], by the four projections (kernels [d, h, s], biases), one head after the other."""
    (wq, wk, wv, wo), (bq, bk, bv, bo) = weights
    out = np.zeros((*q.shape[:2], wo.shape[-1])) + bo
    for h in range(wq.shape[1]):
        a, b, c = q @ wq[:, h] + bq[h], k @ wk[:, h] + bk[h], v @ wv[:, h] + bv[h]
        scores = a @ b.transpose(0, 2, 1) / math.sqrt(wq.shape[-1])
        out += softmax(np.where(visible, scores, -1e30)) @ c @ wo[h]
    return out
