"""Programs of physics, numerics, finance and statistics."""

# mypy: ignore-errors
from __future__ import annotations

import math

from .support import *

G = 9.81


def bisection(x, n):
    lo, hi = -10.0, 10.0
    for _ in range(20 + n):
        mid = (lo + hi) / 2
        if mid**3 + mid - x[0] > 0:
            hi = mid
        else:
            lo = mid
    return mid


def newton_with_tolerance(x, n):
    a = np.abs(x[0]) + 1
    r = a
    steps = 0
    while abs(r * r - a) > 1e-10:
        r = 0.5 * (r + a / r)
        steps += 1
        if steps > 50:
            raise RuntimeError(f"no convergence after {steps} steps")
    return r, steps


def secant(x, n):
    def f(v):
        return v * v * v - 2 * v - 5 + 0.01 * x[0]

    a, b = 2.0, 3.0
    for k in range(30):
        fa, fb = f(a), f(b)
        if abs(fb - fa) < 1e-13:
            break
        a, b = b, b - fb * (b - a) / (fb - fa)
    return b


def projectile_until_ground(x, n):
    px, py, vx, vy, t = 0.0, 1.0, np.abs(x[0]), np.abs(x[1]), 0.0
    dt = 0.05
    highest = py
    while py > 0:
        px, py = px + vx * dt, py + vy * dt
        vy -= G * dt
        t += dt
        highest = max(highest, py)
    return px, highest, t


def bouncing_ball(x, n):
    height, speed, bounces = np.abs(x[2]) + 0.1, 0.0, 0
    for _ in range(80):
        speed = speed - G * 0.02
        height = height + speed * 0.02
        if height < 0:
            height, speed = -height, -0.8 * speed
            bounces += 1
            if bounces > n:
                break
    else:
        bounces = -1
    return height, bounces


def pendulum_energy_drift(x, n):
    theta, omega = x[0], x[1]
    energy = lambda th, om: 0.5 * om**2 - G * np.cos(th)
    first = energy(theta, omega)
    for _ in range(n * 5):
        omega -= 0.01 * G * np.sin(theta)
        theta += 0.01 * omega
    return energy(theta, omega) - first


def runge_kutta_with_names(x, n):
    def rhs(t, state):
        prey, hunters = state
        return np.stack([prey * (1 - hunters), hunters * (prey - 1)])

    tableau = {"k1": (0.0, 1 / 6), "k2": (0.5, 1 / 3), "k3": (0.5, 1 / 3), "k4": (1.0, 1 / 6)}
    y, h = np.abs(x[:2]) + 0.1, 0.05
    for step in range(n):
        k, total = np.zeros(2), 0.0
        for name, (c, weight) in tableau.items():
            k = rhs(step * h + c * h, y + c * h * k)
            total = total + weight * k
        y = y + h * total
    return y


def adaptive_step(x, n):
    t, y, h = 0.0, x[0], 0.1
    accepted = rejected = 0
    while t < 1.0:
        h = min(h, 1.0 - t + 1e-12)
        euler = y + h * (-2 * y + np.sin(t))
        half = y + h / 2 * (-2 * y + np.sin(t))
        heun = half + h / 2 * (-2 * half + np.sin(t + h / 2))
        error = abs(heun - euler)
        if error > 1e-2:
            h *= 0.5
            rejected += 1
            continue
        t, y = t + h, heun
        accepted += 1
        if error < 1e-3:
            h *= 1.5
    return y, accepted, rejected


def simpson(x, n):
    m = 2 * (n + 1)
    a, b = 0.0, x[2]
    h = (b - a) / m
    total = np.exp(-a * a) + np.exp(-b * b)
    for i in range(1, m):
        total += (4 if i % 2 else 2) * np.exp(-((a + i * h) ** 2))
    return total * h / 3


def romberg(x, n):
    f = lambda v: np.sin(v) * x[0]
    rows = [[0.5 * (f(0.0) + f(1.0))]]
    for k in range(1, 5):
        h = 1.0 / 2**k
        new = [0.5 * rows[-1][0] + h * sum(f((2 * i + 1) * h) for i in range(2 ** (k - 1)))]
        for j, previous in enumerate(rows[-1], 1):
            new.append(new[-1] + (new[-1] - previous) / (4**j - 1))
        rows.append(new)
    return rows[-1][-1]


def horner(x, n):
    result = 0.0
    for c in reversed(x):
        result = result * n + c
    return result


def chebyshev(x, n):
    before, now = 1.0, x[3]
    match n:
        case 0:
            return before
        case 1:
            return now
    for _ in range(n - 1):
        before, now = now, 2 * x[3] * now - before
    return now


def thomas_algorithm(x, n):
    size = len(x)
    a, b, c = np.full(size, -1.0), np.full(size, 4.0 + n), np.full(size, -1.0)
    c_, d_ = [c[0] / b[0]], [x[0] / b[0]]
    for i in range(1, size):
        m = b[i] - a[i] * c_[-1]
        c_.append(c[i] / m)
        d_.append((x[i] - a[i] * d_[-1]) / m)
    out = [d_.pop()]
    while d_:
        out.append(d_.pop() - c_[len(d_)] * out[-1])
    return out[::-1]


def gauss_elimination(x, n):
    a = np.outer(x, x) + np.diag([5.0, 6.0, 7.0, 8.0])
    b = x + n
    size = len(b)
    for k in range(size):
        for i in range(k + 1, size):
            factor = a[i, k] / a[k, k]
            a[i] -= factor * a[k]
            b[i] -= factor * b[k]
    y = np.zeros(size)
    for k in range(size - 1, -1, -1):
        y[k] = (b[k] - a[k, k + 1 :] @ y[k + 1 :]) / a[k, k]
    return y


def power_iteration(x, n):
    m = np.outer(x, x) + np.eye(4)
    v = np.ones(4) / 2
    for i in range(200):
        w = m @ v
        w = w / np.linalg.norm(w)
        if np.linalg.norm(w - v) < 1e-9:
            break
        v = w
    return v @ m @ v


def conjugate_gradient(x, n):
    a = np.diag([4.0, 3.0, 2.0, 5.0]) + 0.1
    y, r = np.zeros(4), x.copy()
    p, rr = r, r @ r
    for _ in range(4):
        ap = a @ p
        alpha = rr / (p @ ap)
        y, r = y + alpha * p, r - alpha * ap
        if (new := r @ r) < 1e-20:
            break
        p, rr = r + new / rr * p, new
    return y


def heat_rod(x, n):
    u = x.copy()
    for _ in range(n):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0], u[-1] = 0.0, 1.0
    return u


def upwind(x, n):
    u = x
    for _ in range(n):
        flux = np.where(u > 0, u - np.roll(u, 1), np.roll(u, -1) - u)
        u = u - 0.05 * u * flux
    return u


def ising_energy(x, n):
    spins = [1 if v > 0 else -1 for v in x]
    energy = 0
    for i, s in enumerate(spins):
        energy -= s * spins[(i + 1) % len(spins)]
    return energy + n * sum(spins)


def random_walk_by_hand(x, n):
    seed, place, path = 12345, x[0], []
    for _ in range(6):
        seed = (1103515245 * seed + 12345) % 2**31
        place += 1.0 if (seed >> 16) % 2 else -1.0
        path.append(place)
    return max(path), min(path), path[n]


def compound_interest(x, n):
    balance, rate = 100.0 + x[0], 0.05
    for year in range(n):
        interest = balance * rate
        tax = 0.25 * interest if interest > 5 else 0.0
        balance += interest - tax
    return balance


def mortgage_months(x, n):
    debt, rate, payment, months = 1000.0 + x[0], 0.01, 50.0 + n, 0
    while debt > 0 and months < 360:
        debt = debt * (1 + rate) - payment
        months += 1
    return months, debt


def internal_rate_of_return(x, n):
    flows = [-10.0, *(5.0 + v * 0.1 for v in x)]
    rate = 0.1
    for _ in range(12):
        value = sum(c / (1 + rate) ** t for t, c in enumerate(flows))
        slope = sum(-t * c / (1 + rate) ** (t + 1) for t, c in enumerate(flows))
        rate -= value / slope
    return rate


def binomial_option(x, n):
    s, strike, up, q = 10.0 + x[0], 10.0, 1.1, 0.55
    steps = 6
    values = [max(s * up ** (2 * j - steps) - strike, 0.0) for j in range(steps + 1)]
    for level in range(steps, 0, -1):
        for j in range(level):
            hold = 0.99 * (q * values[j + 1] + (1 - q) * values[j])
            early = s * up ** (2 * j - level + 1) - strike
            values[j] = hold if hold > early else early
    return values[0]


def max_drawdown(x, n):
    peak, worst = float("-inf"), 0.0
    for price in np.exp(0.1 * x).cumsum() * (1 - 0.1 * x):
        peak = max(peak, price)
        worst = max(worst, (peak - price) / peak)
    return worst


def moving_stop_loss(x, n):
    entry, stop, profit, held = 10.0, 9.0, 0.0, True
    for change in x:
        entry += change
        stop = max(stop, entry - 2.0)
        if held and entry < stop:
            profit, held = entry - 10.0, False
        elif not held and entry > 10.5:
            held = True
    return profit if not held else entry - 10.0


def welford(x, n):
    count, mean, m2 = 0, 0.0, 0.0
    for v in x:
        count += 1
        delta = v - mean
        mean += delta / count
        m2 += delta * (v - mean)
    return mean, m2 / (count - 1)


def exponential_smoothing(x, n):
    alpha = 1.0 / (n + 2)
    level, errors = None, 0.0
    for v in x:
        if level is None:
            level = v
            continue
        errors += (v - level) ** 2
        level += alpha * (v - level)
    return level, errors


def trimmed_mean(x, n):
    ordered = sorted(x)
    kept = ordered[1:-1]
    return sum(kept) / len(kept) + n


def mode_of_bins(x, n):
    counts = [0] * 4
    for v in x:
        k = int(np.clip(np.floor(v / 3), 0, 3))
        for j in range(4):
            counts[j] += 1 if k == j else 0
    best = 0
    for j in range(1, 4):
        if counts[j] > counts[best]:
            best = j
    return best, counts


def bootstrap_by_table(x, n):
    table = [[0, 1, 1, 3], [2, 2, 0, 1], [3, 3, 3, 0]]
    means = [np.mean([x[i] for i in row]) for row in table]
    center = sum(means) / len(means)
    return center, math.sqrt(len(means)) * np.std(np.stack(means))


def em_two_gaussians(x, n):
    mu = [np.min(x), np.max(x)]
    for _ in range(n):
        weights = []
        for v in x:
            p = [np.exp(-0.5 * (v - m) ** 2) for m in mu]
            weights.append([q / (sum(p) + 1e-12) for q in p])
        mu = [sum(w[k] * v for w, v in zip(weights, x)) / (sum(w[k] for w in weights) + 1e-12) for k in range(2)]
    return mu


def kalman(x, n):
    state = {"mean": 0.0, "var": 1.0}
    for z in x:
        state["var"] += 0.1
        gain = state["var"] / (state["var"] + 0.5)
        state["mean"] += gain * (z - state["mean"])
        state["var"] *= 1 - gain
    return state


def fft_by_recursion(x, n):
    def fft(v):
        size = len(v)
        if size == 1:
            return v
        even, odd = fft(v[::2]), fft(v[1::2])
        turn = np.exp(-2j * np.pi * np.arange(size // 2) / size) * odd
        return np.concatenate([even + turn, even - turn])

    return np.abs(fft(x + 0j)) + n


def zero_crossings(x, n):
    crossings, sign = 0, None
    for v in x:
        if v == 0:
            continue
        now = v > 0
        if sign is not None and now != sign:
            crossings += 1
        sign = now
    return crossings


def biquad(x, n):
    b, a = (0.2, 0.4, 0.2), (-0.3, 0.1)
    z1 = z2 = 0.0
    out = np.empty_like(x)
    for i, v in enumerate(x):
        y = b[0] * v + z1
        z1, z2 = b[1] * v - a[0] * y + z2, b[2] * v - a[1] * y
        out[i] = y
    return out


def run_lengths(x, n):
    runs, current, length = [], x[0] > 0, 0
    for v in x:
        if (v > 0) == current:
            length += 1
        else:
            runs.append(length)
            current, length = v > 0, 1
    runs.append(length)
    return runs
