"""Programs of many kinds; `test_achieved.py` counts their statements after all passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import adjit as aj
from adjit import nn


class Program(NamedTuple):
    function: Callable[..., Any]
    args: tuple[Any, ...]


def _ones(*shape: int, dtype: Any = np.float64) -> Any:
    return np.ones(shape, dtype)


PROGRAMS: dict[str, Program] = {}


def program(*args: Any, by: int | tuple[int, ...] | None = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A row: the function, or its value and gradient with respect to some arguments, and its arguments."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(function if by is None else aj.value_and_grad(function, argnums=by), args)
        return function

    return add


@program(_ones(32, 20), _ones(20, 64), _ones(64), _ones(64, 10), _ones(32, dtype=np.int64), by=(1, 2, 3))
def classifier(x, w, b, v, labels):
    hidden = np.maximum(x @ w + b, 0.0)
    scores = hidden @ v
    shifted = scores - np.max(scores, axis=1, keepdims=True)
    logs = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(np.take_along_axis(logs, labels[:, None], axis=1))


CONVOLUTION, POOL = nn.Conv2D(8, 3), nn.MaxPool2D(2)


@program(_ones(4, 12, 12, 1), _ones(200, 10), by=(0, 1))
def convolutional(x, v):
    y = POOL(np.maximum(CONVOLUTION(x), 0.0))
    return np.sum(np.tanh(y.reshape(4, -1) @ v) ** 2)


@program(_ones(2, 64, 32), _ones(2, 64, 32), _ones(2, 64, 32), by=(0, 1, 2))
def attention(q, k, v):
    return np.sum((aj.softmax(q @ np.swapaxes(k, 1, 2) / np.sqrt(32.0)) @ v) ** 2)


@program(_ones(64, 96), _ones(96), _ones(96), by=(0, 1, 2))
def normalised(x, scale, shift):
    mean = np.mean(x, axis=1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=1, keepdims=True)
    return np.sum(np.tanh((x - mean) / np.sqrt(variance + 1e-5) * scale + shift))


@program(_ones(12, 4, 8), _ones(8, 16), _ones(16, 16), by=(1, 2))
def recurrent(xs, w, u):
    h = np.zeros((4, 16))
    for x in xs:
        h = np.tanh(x @ w + h @ u)
    return np.sum(h * h)


@program(_ones(12, 4, 8), _ones(8, 64), _ones(16, 64), by=(1, 2))
def gated(xs, w, u):
    h = c = np.zeros((4, 16))
    rows = []
    for x in xs:
        i, f, g, o = np.split(x @ w + h @ u, 4, axis=1)
        c = aj.sigmoid(f) * c + aj.sigmoid(i) * np.tanh(g)
        h = aj.sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.sum(np.stack(rows) ** 2)


@program(_ones(100, 3), _ones(100))
def bodies(x, m):
    d = x[:, None, :] - x[None, :, :]
    r = np.sqrt(np.sum(d * d, axis=2) + 0.01)
    return np.sum(m[:, None] * m[None, :] / r)


@program(_ones(40, 40), 5)
def heat(u, n):
    for _ in range(n):
        u = u.at[1:-1, 1:-1].add(0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]))
    return np.sum(u * u)


@program(_ones(5000))
def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@program(_ones(500, 16), _ones(4, 7, dtype=np.int64), _ones(16, 3), by=(0, 2))
def embedded(table, ids, w):
    return np.sum(np.tanh(np.mean(table[ids], axis=1) @ w))


@program(_ones(30), _ones(30, 2), by=(0, 1))
def process(y, x):
    d = np.sum((x[:, None] - x[None]) ** 2, axis=2)
    factor = np.linalg.cholesky(np.exp(-d) + np.eye(30))
    z = np.linalg.solve(factor, y)
    return np.sum(z * z) + 2 * np.sum(np.log(np.diag(factor)))


@program(2.0, 1e-9)
def newton(s, tolerance):
    r = s
    while np.abs(r * r - s) > tolerance:
        r = 0.5 * (r + s / r)
    return r


@program(_ones(3), 0.01)
def lorenz(state, step):
    def field(s):
        x, y, z = s[0], s[1], s[2]
        return np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    for _ in aj.range(20):
        a = field(state)
        b = field(state + 0.5 * step * a)
        c = field(state + 0.5 * step * b)
        d = field(state + step * c)
        state = state + step / 6.0 * (a + 2 * b + 2 * c + d)
    return np.sum(state)


@program(_ones(64))
def spectrum(x):
    return np.sum(np.abs(np.fft.rfft(x * np.hanning(64))) ** 2)


@program(_ones(16, dtype=np.complex128), _ones(16, 16, dtype=np.complex128), by=None)
def waves(z, m):
    w = m @ (z * np.exp(1j * np.abs(z)))
    return np.fft.ifft(np.conj(np.fft.fft(w)) * z), np.real(np.vdot(w, z))


@program(_ones(50), _ones(50, dtype=bool))
def branching(x, keep):
    y = np.where(keep, np.exp(x), np.sin(x))
    if np.sum(y) > 3.0:
        y = np.sort(y * 2.0)
    else:
        y = np.cumsum(y)
    return np.sum(np.where(keep, y, 0.0))


@program(_ones(8, 5), _ones(5), by=None)
def hessians(x, w):
    def loss(w, row):
        return np.sum(np.tanh(row * w) ** 2)

    return aj.vmap(aj.hessian(loss), in_axes=(None, 0))(w, x)


@program(_ones(6, 20), _ones(20, 20), by=None)
def batched_loops(x, w):
    def each(row, n):
        while np.sum(row * row) > 1.0:
            row = np.tanh(row @ w) * 0.5 * n
        return row

    return aj.vmap(each)(x, np.arange(6.0))


@program(_ones(20, 20), _ones(20), by=None)
def hessian_products(w, x):
    def loss(x):
        return np.sum(np.tanh(w @ x) ** 2)

    return aj.jvp(aj.grad(loss), (x,), (x,))


@program(_ones(30, 10), by=(0,))
def checkpointed(x):
    @aj.checkpoint
    def block(y):
        return np.tanh(np.exp(y) @ (y.T @ y))

    return np.sum(block(block(x)))


@program(_ones(40), _ones(10, dtype=np.int64), _ones(10), by=(0, 2))
def scattered(x, at, new):
    x = x.at[at].add(new)
    x = x.at[2:30:3].set(x[3:31:3] * 2.0)
    return np.sum(np.flip(x) * np.roll(x, 3) + np.prod(x[:4]))


@program(_ones(4, 30), by=None)
def triangles(x):
    a = np.tril(x.T @ x) + np.triu(np.ones((30, 30)), 1)
    return np.sum(np.tril(a, -1) * 2.0), np.trace(a), np.max(a, axis=0), np.argmax(a, axis=1)
