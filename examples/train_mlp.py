"""Train a classifier on three spirals, with Adam written by hand, and show the IR of the step.

    python examples/train_mlp.py

Everything from the forward pass to the update of all parameters and moments is one native function. The script draws the loss curve and the
regions that the network has learnt, and prints the beginnings of the forward and backward IR.
"""

import time
from itertools import pairwise

import numpy as np

import adjit as aj

ARMS, POINTS, STEPS, BATCH = 3, 300, 800, 128
SIZES = (2, 64, 64, ARMS)
RATE, BETA1, BETA2, EPSILON = 3e-3, 0.9, 0.999, 1e-8


def spirals(rng):
    """Points on the arms of a spiral, and the index of each point's arm."""
    radius = np.tile(np.linspace(0.05, 1.0, POINTS), ARMS)
    arm = np.repeat(np.arange(ARMS), POINTS)
    angle = 4.0 * radius + arm * (2.0 * np.pi / ARMS) + 0.15 * rng.normal(size=radius.size)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype(np.float32), arm


rng = np.random.default_rng(0)
points, labels = spirals(rng)

params = []
for i, (n, m) in enumerate(pairwise(SIZES)):
    params.append(aj.Variable((rng.normal(size=(n, m)) * np.sqrt(2.0 / n)).astype(np.float32), name=f"W{i}"))
    params.append(aj.Variable(np.zeros(m, np.float32), name=f"b{i}"))
means = [aj.Variable(np.zeros_like(p), trainable=False, name=f"{p.name}.mean") for p in params]
squares = [aj.Variable(np.zeros_like(p), trainable=False, name=f"{p.name}.square") for p in params]
time_step = aj.Variable(np.float32(0.0), trainable=False, name="t")


def network(x):
    *hidden, W, b = params
    for i in range(0, len(hidden), 2):
        x = np.maximum(x @ hidden[i] + hidden[i + 1], 0.0)
    return x @ W + b


@aj.function
def train_step(x, y):
    with aj.GradientTape() as tape:
        logits = network(x)
        chosen = logits[np.arange(x.shape[0]), y]
        loss = np.mean(aj.logsumexp(logits, axis=1) - chosen)
    gradients = tape.gradient(loss, params)
    time_step.assign_add(1.0)
    rate = RATE * np.sqrt(1.0 - BETA2**time_step) / (1.0 - BETA1**time_step)
    for p, m, v, g in zip(params, means, squares, gradients, strict=True):
        m.assign(BETA1 * m + (1.0 - BETA1) * g)
        v.assign(BETA2 * v + (1.0 - BETA2) * g * g)
        p.assign_sub(rate * m / (np.sqrt(v) + EPSILON))
    return loss


@aj.function
def predict(x):
    return np.argmax(network(x), axis=1)


def curve(values, width=72, height=12):
    """A line chart of the logarithm of the values, in characters."""
    bins = np.array([np.mean(part) for part in np.array_split(np.asarray(values), width)])
    logs = np.log10(bins)
    low, high = logs.min(), logs.max()
    rows = np.round((logs - low) / (high - low) * (height - 1)).astype(int)
    for row in range(height - 1, -1, -1):
        label = f"{10 ** (low + (high - low) * row / (height - 1)):8.4f}"
        print(f"{label} |" + "".join("*" if r == row else " " for r in rows))
    print(" " * 9 + "+" + "-" * width)


def picture(width=60, height=26):
    """The class that the network predicts at each position."""
    grid = np.stack(np.meshgrid(np.linspace(-1.2, 1.2, width), np.linspace(1.2, -1.2, height)), -1).reshape(-1, 2).astype(np.float32)
    for line in predict(grid).numpy().reshape(height, width):
        print("          " + "".join(".o#"[k] for k in line))


def beginning(text, lines=14):
    kept = [line if len(line) <= 130 else f"{line[:127]}..." for line in text.splitlines()]
    return "\n".join([*kept[:lines], f"  ... {len(kept) - lines} more lines"] if len(kept) > lines else kept)


def main():
    start = time.perf_counter()
    losses = []
    for step in range(STEPS):
        batch = rng.integers(0, len(labels), BATCH)
        losses.append(train_step(points[batch], labels[batch]))
        if step == 0:
            print(f"first call (trace, differentiate, optimise, compile, run): {time.perf_counter() - start:.2f} s")
            start = time.perf_counter()
    seconds = time.perf_counter() - start
    losses = [float(loss) for loss in losses]
    accuracy = np.mean(predict(points).numpy() == labels)
    print(f"{STEPS - 1} more steps in {seconds:.2f} s: {seconds / (STEPS - 1) * 1e6:.0f} µs a step\n")
    print(f"loss: {losses[0]:.3f} -> {np.mean(losses[-50:]):.4f}, accuracy {accuracy:.1%}\n")
    curve(losses)
    print()
    picture()
    seen = train_step.inspect(points[:BATCH], labels[:BATCH])
    print("\nthe step, forward:\n" + beginning(seen.forward))
    print("\nand backward:\n" + beginning(seen.backward))
    first, last = seen.passes[0], seen.passes[-1]
    print(f"\n{first.ops} ops traced, {last.ops} after optimisation; {seen.arena_bytes:,} bytes of intermediate memory")


if __name__ == "__main__":
    main()
