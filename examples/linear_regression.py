"""Fit a line to noisy points: one compiled training step, called a few hundred times.

python examples/linear_regression.py
"""

import numpy as np

import adjit as aj

SLOPE, OFFSET = np.array([[2.0], [-3.0], [0.5]]), 0.7

rng = np.random.default_rng(0)
x = rng.normal(size=(256, 3))
y = x @ SLOPE + OFFSET + 0.1 * rng.normal(size=(256, 1))

W = aj.Variable(np.zeros((3, 1)), name="W")
b = aj.Variable(np.zeros(1), name="b")


@aj.function
def train_step(x, y, rate):
    with aj.GradientTape() as tape:
        loss = np.mean((x @ W + b - y) ** 2)
    dW, db = tape.gradient(loss, [W, b])
    W.assign_sub(rate * dW)
    b.assign_sub(rate * db)
    return loss


for step in range(201):
    loss = train_step(x, y, 0.05)
    if step % 25 == 0:
        print(f"step {step:3d}   loss {loss:8.5f}   W = {W.numpy().ravel().round(3)}   b = {b.numpy().round(3)}")

exact, *_ = np.linalg.lstsq(np.hstack([x, np.ones((256, 1))]), y, rcond=None)
print(f"least squares:               W = {exact[:3].ravel().round(3)}   b = {exact[3].round(3)}")
