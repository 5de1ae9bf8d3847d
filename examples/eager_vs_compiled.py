"""The same gradient, eager and compiled, with their times.

python examples/eager_vs_compiled.py
"""

import time

import numpy as np

import adjit as aj

rng = np.random.default_rng(0)


def tiny_mlp(params, x, y):
    (w1, b1), (w2, b2) = params
    h = np.tanh(x @ w1 + b1)
    return np.mean((h @ w2 + b2 - y) ** 2)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def mixture(x, means, scales):
    """The negative log-likelihood of points under a mixture of normals."""
    d = (x[:, None] - means) / scales
    return -np.sum(aj.logsumexp(-0.5 * d * d - np.log(scales), axis=1))


LAYERS = [(rng.normal(size=(8, 16)), np.zeros(16)), (rng.normal(size=(16, 1)), np.zeros(1))]

CASES = {
    "tiny MLP": (tiny_mlp, [LAYERS, rng.normal(size=(4, 8)), rng.normal(size=(4, 1))]),
    "Rosenbrock, n = 10,000": (rosenbrock, [rng.normal(size=10_000)]),
    "mixture of normals": (mixture, [rng.normal(size=20_000), np.linspace(-2.0, 2.0, 5), np.ones(5)]),
}


def best(fn, args, seconds=0.5):
    """The shortest time of a call, out of as many as fit into `seconds`."""
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        fn(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def difference(a, b):
    """The largest difference between two structures of arrays, relative for large values."""
    worst = []
    aj.tree_map(lambda a, b: worst.append(float(np.max(np.abs(a.numpy() - b.numpy()) / (1.0 + np.abs(a.numpy()))))), a, b)
    return max(worst)


print(f"{'':<24}{'largest difference':>20}{'eager':>14}{'compiled':>14}{'ratio':>9}{'first call':>13}")
for name, (fn, args) in CASES.items():
    eager = aj.value_and_grad(fn)
    compiled = aj.function(eager)
    start = time.perf_counter()
    fast = compiled(*args)
    first = time.perf_counter() - start
    slow = eager(*args)
    e, c = best(eager, args), best(compiled, args)
    print(f"{name:<24}{difference(slow, fast):>20.1e}{e * 1e6:>11.0f} µs{c * 1e6:>11.0f} µs{e / c:>8.1f}x{first * 1e3:>10.0f} ms")

x = np.array([-1.2, 1.0, 0.5])
print("\ngradient of Rosenbrock's function at", x)
print("  eager:   ", aj.grad(rosenbrock)(x))
print("  compiled:", aj.function(aj.grad(rosenbrock))(x))
h = 1e-6
numeric = [(float(rosenbrock(x + h * e)) - float(rosenbrock(x - h * e))) / (2 * h) for e in np.eye(3)]
print("  differences of values:", np.round(numeric, 4))
