"""Functions of one matrix that work for any number of rows, as users write them."""

import numpy as np

import adjit as aj


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(5, 4))


W, V3 = table(), np.random.default_rng(1).normal(size=(4, 3))


def softmax(x):
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def loop_of_rows(x):
    total = np.zeros(x.shape[1])
    for row in x:
        total = np.tanh(total + row)
    return total


def counted_loop(x):
    total = 0.0
    for i in range(x.shape[0]):
        total = total + np.sum(x[i]) * i
    return total


def rolled_backwards(x):
    h = np.zeros(x.shape[1])
    for i in aj.range(x.shape[0] - 1, -1, -1):
        h = np.tanh(h + x[i])
    return h


def collected(x):
    out = []
    for row in x:
        out.append(np.sum(row))  # noqa: PERF401 - the loop is the subject
    return np.stack(out)


def scanned(x):
    return aj.scan(lambda h, row: (np.tanh(h + row), np.sum(h)), np.zeros(x.shape[1]), x)[1]


def attention(x):
    s = softmax(x @ x.T)
    return s @ x


def written(x):
    y = np.zeros((x.shape[0], 2))
    y[:, 0] = x[:, 1]
    y[1:, 1] = x[:-1, 2]
    return y


def numbered_rows(x):
    h = np.zeros(x.shape[1])
    for i, (row, other) in enumerate(zip(x, 2 * x)):
        h = np.tanh(h + row * i + other)
    return h


def number(x):
    n = x.shape[0]
    return np.sum(x) / n + n * 2.0 + n**2 - n // 2 + n % 3 + np.sqrt(n) + float(n)


PROGRAMS = {
    "elementwise": lambda x: np.tanh(x) * 2 + x**2,
    "broadcast": lambda x: x + W[0] * x[:, :1],
    "sum": lambda x: np.sum(x, 0) + np.sum(x),
    "mean": lambda x: np.mean(x, 0) + np.mean(x),
    "moments": lambda x: np.var(x, 0) + np.std(x) + np.var(x, ddof=1),
    "extremes": lambda x: np.max(x, 0) - np.min(x),
    "product": lambda x: np.tanh(x @ V3),
    "gram": lambda x: x.T @ x,
    "outer": lambda x: x @ x.T,
    "softmax": softmax,
    "attention": attention,
    "reshape": lambda x: np.reshape(x, (-1, 2)) * 3,
    "flat": lambda x: np.reshape(x, -1)[::2],
    "transpose": lambda x: x.T * np.arange(x.shape[0]),
    "slices": lambda x: x[1:] - x[:-1],
    "steps": lambda x: (x[::2], x[::-1], x[-1], x[0], x[1::2]),
    "concatenate": lambda x: np.concatenate([x, x[:1], 2 * x]),
    "stack": lambda x: np.stack([x, x * 2], 1),
    "zeros": lambda x: np.concatenate([np.zeros((x.shape[0], 2)), x], 1),
    "arange": lambda x: np.arange(x.shape[0]) * 0.5 + x[:, 0],
    "gather": lambda x: x[np.arange(x.shape[0]), np.zeros(x.shape[0], int)],
    "take": lambda x: np.take(x, np.array([0, -1, 1]), 0),
    "cumsum": lambda x: np.cumsum(x, 0) + np.cumsum(x, 1),
    "where": lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0.0),
    "sort": lambda x: np.sort(x, 0),
    "argmax": lambda x: np.argmax(x, 0),
    "pad": lambda x: np.pad(x, ((1, 2), (0, 0))),
    "roll": lambda x: np.roll(x, 1, 0),
    "repeat": lambda x: np.repeat(x, 2, 0),
    "tile": lambda x: np.tile(x, (2, 1)),
    "norm": lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    "einsum": lambda x: np.einsum("bi,ij->bj", x, V3),
    "diff": lambda x: np.diff(x, axis=0),
    "clip": lambda x: np.clip(x, -0.5, 0.5),
    "one_hot": lambda x: aj.one_hot(np.argmax(x, 1), 4) * x,
    "rows": loop_of_rows,
    "counted": counted_loop,
    "backwards": rolled_backwards,
    "collected": collected,
    "scanned": scanned,
    "written": written,
    "number": number,
    "numbered rows": numbered_rows,
    "linspace": lambda x: np.linspace(0.0, 1.0, x.shape[0]) * x[:, 0],
    "order statistics": lambda x: np.median(x, 0) + np.quantile(x, 0.3, axis=0),
    "covariances": lambda x: np.cov(x.T),
    "interpolation": lambda x: np.interp(np.tanh(x[:, 0]) + 1.0, np.arange(x.shape[0]), x[:, 1]),
    "prod": lambda x: np.prod(x, 1),
    "prod of rows": lambda x: np.prod(1.0 + 0.1 * x, 0) + np.prod(np.tanh(x)),
    "eye": lambda x: np.eye(x.shape[0]) @ x,
    "vmap": lambda x: aj.vmap(lambda row: softmax(row) * row[0])(x),
}
DISCRETE = {"argmax"}
