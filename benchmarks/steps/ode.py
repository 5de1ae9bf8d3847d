"""ode: Lotka-Volterra by classical RK4, 1,000 scalar steps, float64; gradient of a loss of the final state by the four parameters."""

from common import Prog

import adjit as aj


def rk4(x, y, p, h):
    a, b, c, d = p[0], p[1], p[2], p[3]

    def slope(x, y):
        return a * x - b * x * y, d * x * y - c * y

    k1, l1 = slope(x, y)
    k2, l2 = slope(x + 0.5 * h * k1, y + 0.5 * h * l1)
    k3, l3 = slope(x + 0.5 * h * k2, y + 0.5 * h * l2)
    k4, l4 = slope(x + h * k3, y + h * l3)
    return x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), y + h / 6.0 * (l1 + 2.0 * l2 + 2.0 * l3 + l4)


def adjit_step(inputs):
    x0, y0, h, n, tx, ty = (inputs[k] for k in ("x0", "y0", "h", "n", "tx", "ty"))

    def loss(p):
        x, y = x0, y0
        for _ in aj.range(n):
            x, y = rk4(x, y, p, h)
        return (x - tx) ** 2 + (y - ty) ** 2

    f = aj.function(aj.value_and_grad(loss))
    p = inputs["p"]
    return Prog(lambda: f(p), list)
