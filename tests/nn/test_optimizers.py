"""Optimizers, schedules, clipping and averages against formulas written out in NumPy over ten compiled steps, in float64."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from adjit.nn import optimizers, schedules
from tests.nn.reference import assert_close, raises_with, random

X, Y, W0, B0 = random(12, 4), random(12, 3, seed=1), random(4, 3, seed=2), random(3, seed=3)
STEPS = 10


def gradients(w, b):
    error = X @ w + b - Y
    return [2.0 / error.size * X.T @ error, 2.0 / error.size * error.sum(0)]


def trained(optimizer, steps: int = STEPS, compiled: bool = True):
    """The variables after every step."""
    w, b = aj.Variable(W0, name="w"), aj.Variable(B0, name="b")

    def step(x, y):
        with aj.GradientTape() as tape:
            loss = np.mean((x @ w + b - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
        return loss

    run = aj.function(step) if compiled else step
    out = []
    for _ in range(steps):
        run(X, Y)
        out.append([w.numpy().copy(), b.numpy().copy()])
    return out


def by_hand(update, steps: int = STEPS):
    """`update(t, p, g, state)` returns the new parameter; each parameter has its own `state` dict."""
    params, states = [W0.copy(), B0.copy()], [{}, {}]
    out = []
    for t in range(1, steps + 1):
        params = [update(t, p, g, s) for p, g, s in zip(params, gradients(*params), states, strict=True)]
        out.append(params)
    return out


def sgd(lr=0.1, momentum=0.0, nesterov=False):
    def update(t, p, g, s):
        m = s["m"] = momentum * s.get("m", 0.0) - lr * g
        return p + (momentum * m - lr * g if nesterov else m)

    return update


def adam(lr=0.05, b1=0.9, b2=0.999, eps=1e-7, amsgrad=False, decay=0.0):
    def update(t, p, g, s):
        p = p - lr * decay * p
        s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
        s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * g * g
        s["top"] = np.maximum(s.get("top", 0.0), s["v"])
        v = s["top"] if amsgrad else s["v"]
        return p - lr * math.sqrt(1 - b2**t) / (1 - b1**t) * s["m"] / (np.sqrt(v) + eps)

    return update


def rmsprop(lr=0.05, rho=0.9, momentum=0.0, eps=1e-7, centered=False):
    def update(t, p, g, s):
        s["v"] = rho * s.get("v", 0.0) + (1 - rho) * g * g
        s["a"] = rho * s.get("a", 0.0) + (1 - rho) * g
        change = lr * g / np.sqrt(s["v"] - (s["a"] ** 2 if centered else 0.0) + eps)
        s["m"] = momentum * s.get("m", 0.0) + change
        return p - s["m"]

    return update


def adagrad(t, p, g, s):
    s["a"] = s.get("a", 0.1) + g * g
    return p - 0.5 * g / np.sqrt(s["a"] + 1e-7)


def adadelta(t, p, g, s):
    s["g"] = 0.95 * s.get("g", 0.0) + 0.05 * g * g
    change = g * np.sqrt(s.get("d", 0.0) + 1e-7) / np.sqrt(s["g"] + 1e-7)
    s["d"] = 0.95 * s.get("d", 0.0) + 0.05 * change * change
    return p - change


def adamax(t, p, g, s):
    s["m"] = 0.9 * s.get("m", 0.0) + 0.1 * g
    s["u"] = np.maximum(0.999 * s.get("u", 0.0), abs(g))
    return p - 0.05 / (1 - 0.9**t) * s["m"] / (s["u"] + 1e-7)


def nadam(t, p, g, s):
    u, following = (0.9 * (1 - 0.5 * 0.96**k) for k in (t, t + 1))
    s["product"] = s.get("product", 1.0) * u
    s["m"] = 0.9 * s.get("m", 0.0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0.0) + 0.001 * g * g
    m = following * s["m"] / (1 - s["product"] * following) + (1 - u) * g / (1 - s["product"])
    return p - 0.05 * m / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-7)


def lion(t, p, g, s):
    m = s.get("m", 0.0)
    s["m"] = 0.99 * m + 0.01 * g
    return p - 0.05 * np.sign(0.9 * m + 0.1 * g)


CASES = {
    "sgd": (lambda: optimizers.SGD(0.1), sgd()),
    "momentum": (lambda: optimizers.SGD(0.1, momentum=0.9), sgd(momentum=0.9)),
    "nesterov": (lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True), sgd(momentum=0.9, nesterov=True)),
    "adam": (lambda: optimizers.Adam(0.05), adam()),
    "amsgrad": (lambda: optimizers.Adam(0.05, amsgrad=True), adam(amsgrad=True)),
    "adamw": (lambda: optimizers.AdamW(0.05, weight_decay=0.1), adam(decay=0.1)),
    "rmsprop": (lambda: optimizers.RMSprop(0.05), rmsprop()),
    "rmsprop_centered": (lambda: optimizers.RMSprop(0.05, momentum=0.5, centered=True), rmsprop(momentum=0.5, centered=True)),
    "adagrad": (lambda: optimizers.Adagrad(0.5), adagrad),
    "adadelta": (lambda: optimizers.Adadelta(1.0), adadelta),
    "adamax": (lambda: optimizers.Adamax(0.05), adamax),
    "nadam": (lambda: optimizers.Nadam(0.05), nadam),
    "lion": (lambda: optimizers.Lion(0.05), lion),
}


@pytest.mark.parametrize("name", CASES)
def test_against_formulas(name: str) -> None:
    make, update = CASES[name]
    wanted = by_hand(update)
    for compiled in (True, False):
        for got, expected in zip(trained(make(), compiled=compiled), wanted, strict=True):
            for a, b in zip(got, expected, strict=True):
                assert_close(a, b, 1e-11)


def test_clipping() -> None:
    def value(t, p, g, s):
        return p - 0.1 * np.clip(g, -0.2, 0.2)

    def norm(t, p, g, s):
        return p - 0.1 * g * min(1.0, 0.3 / np.linalg.norm(g))

    for optimizer, update in ((optimizers.SGD(0.1, clipvalue=0.2), value), (optimizers.SGD(0.1, clipnorm=0.3), norm)):
        for got, wanted in zip(trained(optimizer), by_hand(update), strict=True):
            assert_close(got[0], wanted[0], 1e-12)
    params = [W0, B0]
    for got in trained(optimizers.SGD(0.1, global_clipnorm=0.5)):
        g = gradients(*params)
        total = math.sqrt(sum((x * x).sum() for x in g))
        params = [p - 0.1 * x * min(1.0, 0.5 / total) for p, x in zip(params, g, strict=True)]
        assert_close(got[0], params[0], 1e-12)
    with raises_with(ValueError, "only one kind of clipping", "clipnorm, clipvalue"):
        optimizers.SGD(0.1, clipnorm=1.0, clipvalue=1.0)


def test_clip_functions() -> None:
    gradient = [np.array([3.0, 4.0]), np.array([12.0])]
    assert_close(nn.global_norm(gradient), 13.0)
    clipped, norm = nn.clip_by_global_norm(gradient, 6.5)
    assert float(norm) == 13.0
    assert_close(clipped[0], [1.5, 2.0])
    assert_close(nn.clip_by_norm(gradient, 2.5)[0], [1.5, 2.0])
    assert_close(nn.clip_by_value(gradient, 3.5)[0], [3.0, 3.5])
    assert np.isnan(np.asarray(nn.clip_by_global_norm([np.array([np.inf, 1.0])], 1.0)[0][0])).all()


def test_accumulation_is_a_step_by_the_mean() -> None:
    optimizer = optimizers.Adam(0.05, gradient_accumulation_steps=3)
    got = trained(optimizer, 9)
    wanted = by_hand(adam(), 3)
    for k in range(9):
        expected = [W0, B0] if k < 2 else wanted[(k + 1) // 3 - 1]
        assert_close(got[k][0], expected[0], 1e-12)
    assert int(optimizer.iterations.numpy()) == 3


def cosine(t):
    if t < 3:
        return 0.1 + 0.2 * t / 3
    return 0.3 * 0.5 * (1 + math.cos(math.pi * min((t - 3) / 6, 1.0)))


SCHEDULES = {
    "exponential": (schedules.ExponentialDecay(0.1, 4, 0.5), lambda t: 0.1 * 0.5 ** (t / 4)),
    "step": (schedules.StepDecay(0.1, 4, 0.5), lambda t: 0.1 * 0.5 ** (t // 4)),
    "inverse": (schedules.InverseTimeDecay(0.1, 4, 0.5), lambda t: 0.1 / (1 + 0.5 * t / 4)),
    "piecewise": (schedules.PiecewiseConstantDecay([3, 6], [0.3, 0.2, 0.1]), lambda t: 0.3 if t <= 3 else 0.2 if t <= 6 else 0.1),
    "polynomial": (schedules.PolynomialDecay(0.1, 6, 0.01, power=2.0), lambda t: 0.09 * (1 - min(t, 6) / 6) ** 2 + 0.01),
    "cosine": (schedules.CosineDecay(0.1, 6, warmup_target=0.3, warmup_steps=3), cosine),
    "restarts": (
        schedules.CosineDecayRestarts(0.1, 3, t_mul=1.0, m_mul=0.5),
        lambda t: 0.1 * 0.5 ** (t // 3) * 0.5 * (1 + math.cos(math.pi * (t % 3) / 3)),
    ),
    "warm_up": (schedules.WarmUp(0.2, 4), lambda t: 0.2 * (t + 1) / 5 if t < 4 else 0.2),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    schedule, formula = SCHEDULES[name]
    compiled = aj.function(lambda t: schedule(t))
    for t in range(12):
        assert_close(schedule(t), formula(t), 1e-12)
        assert_close(compiled(t), formula(t), 1e-12)
    rates = iter(map(formula, range(STEPS)))
    params = [W0, B0]
    for got in trained(optimizers.SGD(schedule)):
        rate = next(rates)
        params = [p - rate * g for p, g in zip(params, gradients(*params), strict=True)]
        assert_close(got[0], params[0], 1e-12)


def test_the_rate_changes_without_a_new_trace() -> None:
    optimizer = optimizers.SGD(0.5)
    w = aj.Variable(np.zeros(2))

    @aj.function
    def step():
        optimizer.apply_gradients([(np.ones(2), w)])

    step()
    optimizer.learning_rate = 0.25
    step()
    assert step.trace_count == 1
    assert w.numpy().tolist() == [-0.75, -0.75]
    assert float(optimizer.learning_rate) == 0.25


def test_moving_average() -> None:
    w = aj.Variable(np.zeros(2), name="w")
    average = nn.ExponentialMovingAverage([w], 0.9)

    @aj.function
    def step(x):
        w.assign(x)
        average.update()

    mean = np.zeros(2)
    for k in range(4):
        step(np.full(2, float(k)))
        mean = 0.9 * mean + 0.1 * k
    with average.swapped():
        assert_close(w, mean)
    assert w.numpy().tolist() == [3.0, 3.0]


def test_bad_usage() -> None:
    v, other = aj.Variable(np.zeros(2), name="v"), aj.Variable(np.zeros(3), name="other")
    optimizer = optimizers.Adam(name="adam")
    with raises_with(ValueError, "gradient of v is None", "trainable = False", "unconnected_gradients"):
        optimizer.apply_gradients([(None, v)])
    optimizer.apply_gradients([(np.ones(2), v)])
    with raises_with(ValueError, "built for 1 variables (v)", "other", "new optimizer"):
        optimizer.apply_gradients([(np.ones(3), other)])
    with raises_with(ValueError, "v is f64[2]", "f64[3]", "both must be in the same order"):
        optimizer.apply_gradients([(np.ones(3), v)])
    with raises_with(ValueError, "no gradients"):
        optimizer.apply_gradients([])
    with raises_with(TypeError, "(gradient, variable)"):
        optimizer.apply_gradients([(v, np.ones(2))])
    with raises_with(ValueError, "no optimizer 'adan'", "adam"):
        optimizers.get_optimizer("adan")


def test_updates_happen_in_place() -> None:
    w = aj.Variable(np.zeros(1000, np.float32))
    optimizer = optimizers.Adam()

    @aj.function
    def step(g):
        optimizer.apply_gradients([(g, w)])

    step(np.ones(1000, np.float32))
    before = [v.store.data.ctypes.data for v in (w, *optimizer.variables)]
    for _ in range(3):
        step(np.ones(1000, np.float32))
    assert [v.store.data.ctypes.data for v in (w, *optimizer.variables)] == before


def test_lbfgs() -> None:
    pytest.importorskip("scipy")
    w = aj.Variable(np.array([-1.2, 1.0]), name="w")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = nn.LBFGS(200).minimize(lambda: (1.0 - w[0]) ** 2 + 100.0 * (w[1] - w[0] ** 2) ** 2, [w])
    assert result.success
    np.testing.assert_allclose(w.numpy(), [1.0, 1.0], rtol=1e-4)


def test_lbfgs_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with raises_with(ImportError, "pip install scipy"):
        nn.LBFGS().minimize(lambda: 0.0, [aj.Variable(1.0)])
