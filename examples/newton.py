"""Differentiate through a Newton solver: Kepler's equation for many planets at once, iterated to a tolerance.

    python examples/newton.py

The position of a planet with eccentricity e at mean anomaly M follows from E - e sin E = M. There is no closed form for E: a `while` loop
finds it. The implicit function theorem is not needed: the compiled gradient goes through the iterations, and agrees with the theorem to the
last digits.
"""

import time

import numpy as np

import adjit as aj

PLANETS = 1000


def anomaly(M, e):
    """E with E - e sin E = M, for whole vectors: the loop ends when the slowest element has converged."""
    E = M + e * np.sin(M)
    step = E
    count = 0
    while np.max(np.abs(step)) > 1e-13:
        step = (E - e * np.sin(E) - M) / (1.0 - e * np.cos(E))
        E = E - step
        count += 1
        if count > 50:
            break
    return E, count


def distance(M, e):
    """The distance from the sun, in units of the semi-major axis."""
    E, _ = anomaly(M, e)
    return 1.0 - e * np.cos(E)


@aj.function
def sensitivity(M, e):
    """The derivatives of the distances with respect to anomaly and eccentricity: reverse mode through the loop."""
    return aj.grad(lambda M, e: np.sum(distance(M, e)), (0, 1))(M, e)


@aj.function
def curvature(M, e):
    """Second derivatives: reverse over reverse, through the same loop."""
    return aj.grad(lambda M: np.sum(aj.grad(lambda M: np.sum(distance(M, e)))(M)))(M)


def main():
    M = np.linspace(0.0, 2.0 * np.pi, PLANETS)
    e = np.linspace(0.05, 0.9, PLANETS)
    E, count = (x.numpy() for x in aj.function(anomaly)(M, e))
    print(f"{PLANETS} equations solved in {count} iterations; the largest residual is {np.abs(E - e * np.sin(E) - M).max():.1e}\n")

    dM, de = (g.numpy() for g in sensitivity(M, e))
    slope = 1.0 / (1.0 - e * np.cos(E))  # dE/dM, by the implicit function theorem
    theorem = e * np.sin(E) * slope, e * np.sin(E) ** 2 * slope - np.cos(E)
    print("derivative of the distance          through the loop    by the theorem     largest difference")
    for name, ours, theirs in (("by the mean anomaly", dM, theorem[0]), ("by the eccentricity", de, theorem[1])):
        print(f"  {name:30} {ours[700]:18.14f} {theirs[700]:18.14f}  {np.abs(ours - theirs).max():.1e}")
    second = curvature(M, e).numpy()
    exact = e * slope**2 * (np.cos(E) - e * np.sin(E) ** 2 * slope)
    print(f"  {'twice by the mean anomaly':30} {second[700]:18.14f} {exact[700]:18.14f}  {np.abs(second - exact).max():.1e}\n")

    begin = time.perf_counter()
    for _ in range(200):
        sensitivity(M, e)
    print(f"a gradient of all of them takes {(time.perf_counter() - begin) / 200 * 1e6:.0f} us\n")

    print("a comet (e = 0.9) through one orbit, at equal times: it hurries past the sun\n")
    M = np.linspace(0.0, 2.0 * np.pi, 61)
    E = aj.function(anomaly)(M, np.full(61, 0.9))[0].numpy()
    rows = [[" "] * 72 for _ in range(15)]
    for x, y in zip(np.cos(E), np.sqrt(1 - 0.81) * np.sin(E), strict=True):
        rows[7 - round(15 * y)][round(35 + 33 * x)] = "o"
    rows[7][round(35 + 33 * 0.9)] = "*"
    print("\n".join("".join(row).rstrip() for row in rows))


if __name__ == "__main__":
    main()
