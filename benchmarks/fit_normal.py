"""Fits the coefficients in ir/ops/normal.py: the normal quantile function in its centre and its tail, and a logarithm.

    python benchmarks/fit_normal.py

Rational approximations of least relative error, by weighted linear least squares in 40 digits (Lawson's iteration adjusts the weights
towards the minimax fit; using the denominator of the previous step makes the problem linear).
"""

from __future__ import annotations

from collections.abc import Sequence

import mpmath as mp

mp.mp.dps = 40
SPLIT, TAIL = mp.mpf("0.375"), mp.mpf("1.4375")


def quantile_from_centre(c: mp.mpf) -> mp.mpf:
    return mp.sqrt(2) * mp.erfinv(2 * c)


def quantile_from_tail(p: mp.mpf) -> mp.mpf:
    """Newton's iteration on the logarithm of the upper tail."""
    z = mp.sqrt(-2 * mp.log(p))
    for _ in range(60):
        tail = mp.erfc(z / mp.sqrt(2)) / 2
        step = (mp.log(tail) - mp.log(p)) * tail / (-mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi))
        z -= step
        if abs(step) < mp.mpf(10) ** -35:
            return z
    raise ArithmeticError(f"no quantile for {p}")


def nodes(low: mp.mpf, high: mp.mpf, n: int = 80) -> list[mp.mpf]:
    return [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]


def fit(xs: Sequence[mp.mpf], ys: Sequence[mp.mpf], above: int, below: int) -> tuple[mp.mpf, list[mp.mpf], list[mp.mpf]]:
    """The largest relative error, and the coefficients of numerator and denominator, constants first."""
    n = len(xs)
    weights, denominators = [mp.mpf(1)] * n, [mp.mpf(1)] * n
    best = None
    for iteration in range(20):
        matrix, right = mp.matrix(n, above + 1 + below), mp.matrix(n, 1)
        for row, (x, y) in enumerate(zip(xs, ys, strict=True)):
            w = mp.sqrt(weights[row]) / (denominators[row] * y)
            for i in range(above + 1):
                matrix[row, i] = w * x**i
            for j in range(1, below + 1):
                matrix[row, above + j] = -w * y * x**j
            right[row] = w * y
        solution = mp.lu_solve(matrix.T * matrix, matrix.T * right)
        p = [solution[i] for i in range(above + 1)]
        q = [mp.mpf(1)] + [solution[above + j] for j in range(1, below + 1)]
        denominators = [mp.polyval(q[::-1], x) for x in xs]
        errors = [abs(mp.polyval(p[::-1], x) / d / y - 1) for x, y, d in zip(xs, ys, denominators, strict=True)]
        if best is None or max(errors) < best[0]:
            best = max(errors), p, q
        if iteration > 2:
            weights = [w * e for w, e in zip(weights, errors, strict=True)]
            total = sum(weights)
            weights = [max(w * n / total, mp.mpf(10) ** -12) for w in weights]
    assert best is not None
    return best


def report(name: str, xs: Sequence[mp.mpf], ys: Sequence[mp.mpf], above: int, below: int) -> None:
    error, p, q = fit(xs, ys, above, below)
    print(f"{name}: relative error {mp.nstr(error, 3)}")
    for coefficients in (p, q) if below else (p,):
        print(f"    ({', '.join(repr(float(c)) for c in coefficients)})")


def main() -> None:
    squares = nodes(mp.mpf(0), ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2)
    logarithm = [(2 * mp.atanh(mp.sqrt(w)) / mp.sqrt(w) - 2) / w for w in squares]
    distances = [mp.sqrt(y) for y in nodes(mp.mpf(0), SPLIT**2)]
    centre = [quantile_from_centre(c) / c for c in distances]
    for name, bits, log_degree, centre_degrees, tail_degrees in (("float32", 32, 3, (3, 3), (4, 3)), ("float64", 64, 7, (6, 6), (8, 7))):
        report(f"{name} logarithm", squares, logarithm, log_degree, 0)
        report(f"{name} centre", [SPLIT**2 - c * c for c in distances], centre, *centre_degrees)
        roots = nodes(mp.sqrt(-mp.log(mp.mpf("0.5") - SPLIT)), mp.sqrt((bits + 1) * mp.log(2)))
        report(f"{name} tail", [r - TAIL for r in roots], [quantile_from_tail(mp.exp(-r * r)) for r in roots], *tail_degrees)


if __name__ == "__main__":
    main()
