"""Algorithms as numerical people write them."""

# ruff: noqa: B007 - programs as people write them

from __future__ import annotations

import numpy as np

import adjit.tracer.autograph.items as hints
from tests.autograph.table import program

V = np.array([0.5, -1.5, 2.0, 3.25, 1.0])
M = np.arange(12.0).reshape(4, 3) / 7 - 0.5
TABLE = np.linspace(1.0, 2.0, 9)


@program((2.0,), (9.0,))
def newton_square_root(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


@program((np.array([1.0, 2.0, 5.0, 10.0]),))
def newton_to_tolerance_on_vector(a):
    x = np.ones(4)
    for _ in range(100):
        step = (x**3 - a) / (3 * x**2)
        x = x - step
        if np.max(np.abs(step)) < 1e-13:
            break
    return x


@program((3.0, 0.0, 4.0), differentiable=False)
def bisection(target, low, high):
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if middle * middle < target:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high) * target


@program((252, 105), (17, 5), (0, 9), differentiable=False)
def euclid(a, b):
    while b:
        a, b = b, a % b
    return a


@program((27,), (1,), differentiable=False)
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program((0.0, 1.0, 2.0, 0.01), differentiable=False)
def adaptive_ode(t, y, end, tolerance):
    h = 0.5
    steps = 0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = -y * np.sin(t)
        k2 = -(y + h * k1) * np.sin(t + h)
        error = abs(h * (k2 - k1) / 2)
        if error > tolerance:
            h = h / 2
            continue
        t = t + h
        y = y + h * (k1 + k2) / 2
        steps += 1
        if error < tolerance / 4:
            h = h * 2
    return y, steps


@program((np.array([1.0, 0.0]), 0.1))
def runge_kutta(y, h):
    def slope(y):
        return np.stack([y[1], -y[0]])

    for _ in range(100):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


RNG = np.random.default_rng(0)
W, U = RNG.normal(size=(3, 3)) * 0.5, RNG.normal(size=(3, 2)) * 0.5
SEQUENCE = RNG.normal(size=(6, 2))


@program((W, U, SEQUENCE, 6), (W, U, SEQUENCE, 3), (W, U, SEQUENCE, 0))
def rnn_of_variable_length(w, u, xs, length):
    h = np.zeros(3)
    for t in range(length):
        h = np.tanh(w @ h + u @ xs[t])
    return h.sum()


@program((W, U, SEQUENCE))
def rnn_with_outputs(w, u, xs):
    h = np.zeros(3)
    outputs = []
    for x in xs:
        h = np.tanh(w @ h + u @ x)
        outputs.append(h)
    return np.stack(outputs)


@program((np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])))
def power_iteration(a, v):
    previous = 0.0
    value = 1.0
    while abs(value - previous) > 1e-10:
        previous = value
        v = a @ v
        value = np.sqrt(v @ v)
        v = v / value
    return value


@program((0.3,), (4.0,))
def series_until_small(x):
    term, total, n = 1.0, 0.0, 0
    while abs(term) > 1e-15:
        total += term
        n += 1
        term = term * x / n
    return total


@program((3,), (0,), differentiable=False)
def factorial_by_recursion(n):
    def down(k):
        return 1 if k == 0 else k * down(k - 1)

    return down(5) * n


def power(x, n):
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


@program((1.5,))
def recursion_on_static_value(x):
    return power(x, 13)


@program((np.array([3.0, 1.0, 2.0, 0.5]),))
def bubble_sort(x):
    y = x.copy()
    for i in range(4):
        for j in range(3 - i):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
    return y


@program((0.1, 0.2), (2.0, 2.0))
def escape_time(cx, cy):
    x, y = 0.0, 0.0
    n = 0
    while n < 50 and x * x + y * y < 4:
        x, y = x * x - y * y + cx, 2 * x * y + cy
        n += 1
    return x + y + n


@program((np.array([0.4, -1.2]), 0.01))
def gradient_descent_by_hand(x, rate):
    for step in hints.range(30):
        g = np.stack([-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])
        norm = np.sqrt(g @ g)
        if norm > 1:
            g = g / norm
        x = x - rate * g
    return x


@program((np.array([1.0, 4.0, 9.0]),))
def conjugate_gradient(d):
    b = np.ones(3)
    x = np.zeros(3)
    r = b - d * x
    p = r
    rs = r @ r
    for _ in range(3):
        ap = d * p
        alpha = rs / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + new / rs * p
        rs = new
    return x


@program((np.array([1.0, -2.0, 3.0, -4.0]), 4), (np.array([1.0, -2.0, 3.0, -4.0]), 2))
def horner_and_clip(c, n):
    total = 0.0
    for i in range(n):
        total = total * 0.5 + c[i]
        if total > 1:
            total = 1 + (total - 1) * 0.1
        elif total < -1:
            total = -1.0
    return total


@program((5.0, 3), (0.2, 3))
def line_search(x, tries):
    t = 1.0
    fx = x**4
    for _ in range(tries):
        trial = x - t * 4 * x**3
        if trial**4 < fx:
            break
        t = t / 4
    return x - t * 4 * x**3


# ---- arrays created and written in place


@program((V,), (-V,))
def masked_writes(x):
    y = np.array(x)
    y[x > 1.2] = 0.5
    y[y < 0] *= -2.0
    y[x < -1.2] += x[0]
    return y


@program((M,))
def masked_rows(x):
    y = x.copy()
    y[x[:, 0] > 0] = np.array([1.0, 2.0, 3.0])
    y[x > 0.6] = 7.0
    return y * x


@program((V,))
def writes_to_copies(x):
    y = np.zeros(5)
    y[...] = x
    old = y.copy()
    y[1:] = y[:-1] * 2
    flat = y.flatten()
    flat[0] = 9.0
    same = y.astype(float)
    same[1] = 3.0
    return old + y * flat + same


@program((V,))
def view_that_is_not_read_again(x):
    y = x * 2
    middle = y[1:-1]
    y[1:-1] = middle * x[1:-1]
    return y


@program((V,))
def arrays_of_traced_values(x):
    y = np.asarray(x, dtype=np.float64)
    return np.array([[y[0], 1.0], [2, y[1]]]) * np.float64(np.sum(y)) + np.full((2, 2), y[2])


@program((V,))
def lists_as_arrays(x):
    return np.linalg.norm([x[0], x[1]]) + np.dot([x[0], 2.0], [x[1], x[2]]) + np.sum([x, 2 * x], axis=0) + np.max([x[3], x[4], 1])


@program((V, 3), (V, 0))
def items_of_constants(x, n):
    total = 0.0
    for i in range(n):
        total += TABLE[i] * x[i]
    return total * [1.0, 2.0, 3.0, 4.0][n] + TABLE[n + np.arange(2)] * (5, 6, 7, 8)[n]


@program((V, np.array([1.0, 0.0, 2.0, 0.0, -1.0])))
def divided_where_possible(a, b):
    ratio = np.divide(a, b, out=np.zeros_like(a), where=b > 0.5)
    return ratio + np.sqrt(a, out=np.full(5, 2.0), where=a > 0) + np.add(a, b, out=np.empty(5)) * np.sum(TABLE[:2], out=np.empty(()))


@program((V,))
def joined_with_brackets(x):
    n = len(x)
    return np.r_[x, 1.0, 0:n, x[0]], np.c_[x, 2 * x, np.ones((n, 2))]
