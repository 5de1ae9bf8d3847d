"""Fit the four rates of a predator-prey model to noisy observations, through an ODE solver written as a Python loop.

    python examples/ode_fit.py

The solver chooses its own step sizes (Heun's method with an error estimate): the number of steps depends on the rates, and is not known
before the loop has run. The gradient goes through all of it: through the `while` loop over the steps, including rejected ones.
"""

import time

import numpy as np

import adjit as aj

RATES = np.array([1.1, 0.4, 1.2, 0.3])  # prey growth, predation, predator death, predator growth
TIMES = np.linspace(0.0, 12.0, 25)
STEPS, RATE = 400, 0.03


def slope(x, y, rates):
    a, b, c, d = rates
    return a * x - b * x * y, d * x * y - c * y


def advance(x, y, rates, span, h, tolerance=1e-4):
    """Advance from one observation to the next, in steps as long as the tolerance allows; also returns the length of the last step."""
    t = 0.0
    count = 0
    while t < span - 1e-12:
        step = min(h, span - t)
        k, l = slope(x, y, rates)
        m, n = slope(x + step * k, y + step * l, rates)
        error = 0.5 * step * (abs(m - k) + abs(n - l))
        count += 1
        if error > tolerance * (1.0 + abs(x) + abs(y)):
            h = step * 0.5
            continue
        x, y, t = x + 0.5 * step * (k + m), y + 0.5 * step * (l + n), t + step
        if error < 0.1 * tolerance:
            h = h * 1.5
    return x, y, h, count


def solve(rates, x, y):
    """The populations at all observation times, and the number of attempted steps."""
    prey, predators = [x], [y]
    h, steps = 0.1, 0
    for _ in aj.range(len(TIMES) - 1):
        x, y, h, count = advance(x, y, rates, TIMES[1] - TIMES[0], h)
        steps += count
        prey.append(x)
        predators.append(y)
    return np.array(prey), np.array(predators), steps


def misfit(log_rates, prey, predators):
    p, q, steps = solve(np.exp(log_rates), 4.0, 2.0)
    return np.mean((p - prey) ** 2 + (q - predators) ** 2), steps


@aj.function
def fit(log_rates, prey, predators):
    """Run all steps of Adam: a loop around the gradient of a loop."""
    mean, square = np.zeros(4), np.zeros(4)
    losses = np.zeros(STEPS)
    tried = 0
    for k in aj.range(STEPS):
        (loss, steps), g = aj.value_and_grad(misfit, has_aux=True)(log_rates, prey, predators)
        mean, square = 0.9 * mean + 0.1 * g, 0.99 * square + 0.01 * g * g
        log_rates = log_rates - RATE * (mean / (1.0 - 0.9 ** (k + 1.0))) / (np.sqrt(square / (1.0 - 0.99 ** (k + 1.0))) + 1e-8)
        losses[k] = loss
        tried += steps
    return np.exp(log_rates), losses, tried


def drawn(curves, points, height=14):
    """Curves as lines of text, with points on top."""
    top = max(c.max() for c in curves)
    rows = [[" "] * (3 * len(TIMES)) for _ in range(height)]
    for mark, values in [*zip("..", curves), *zip("ox", points)]:
        fine = np.interp(np.linspace(0, len(values) - 1, 3 * len(values)), np.arange(len(values)), values)
        for column, value in enumerate(fine):
            if mark == "." or column % 3 == 1:
                rows[height - 1 - int(np.clip(value / top, 0, 1) * (height - 1))][column] = mark
    return "\n".join("  |" + "".join(row) for row in rows)


def main():
    rng = np.random.default_rng(0)
    x, y, _ = aj.function(solve)(RATES, 4.0, 2.0)
    prey, predators = (v.numpy() * (1 + 0.05 * rng.normal(size=len(TIMES))) for v in (x, y))
    start = np.log([0.7, 0.7, 0.7, 0.7])
    begin = time.perf_counter()
    fit(start, prey, predators)
    compiled = time.perf_counter()
    rates, losses, tried = fit(start, prey, predators)
    end = time.perf_counter()
    p, q, _ = aj.function(solve)(rates.numpy(), 4.0, 2.0)
    print("prey (o) and predators (x) as observed, and the fit (.)\n")
    print(drawn([p.numpy(), q.numpy()], [prey, predators]))
    print(f"\nrates    {np.round(rates.numpy(), 3)}   of the data {RATES}")
    print(f"misfit   {' -> '.join(f'{v:.4g}' for v in losses.numpy()[[0, 9, 49, 99, -1]])}")
    run, build = end - compiled, compiled - begin - (end - compiled)
    print(f"{int(tried):,} adaptive steps in {STEPS} gradients, all of it one native call: {run:.3f} s (compiled in {build:.1f} s)")


if __name__ == "__main__":
    main()
