"""Train a recurrent network to remember: a Python loop over time, with sequences of different lengths.

    python examples/rnn.py

Each sequence consists of random numbers, two of which are marked; the network, which sees one number at a time, has to return the sum of
the two at the end. The loop runs for as many steps as the longest sequence of the batch: a traced number, so one compiled step works for
batches of every length. Gated units (a GRU, written out) carry the numbers through time, and the gradient back.
"""

import time

import numpy as np

import adjit as aj

UNITS, BATCH, LONGEST, STEPS, RATE = 24, 64, 30, 1000, 0.01

rng = np.random.default_rng(0)


def matrix(rows, columns, name):
    return aj.Variable((rng.normal(size=(rows, columns)) / np.sqrt(rows)).astype("f4"), name=name)


gates = matrix(2 + UNITS, 2 * UNITS, "gates")
candidate = matrix(2 + UNITS, UNITS, "candidate")
bias = aj.Variable(np.zeros(3 * UNITS, "f4"), name="bias")
readout = matrix(UNITS, 1, "readout")
params = [gates, candidate, bias, readout]
moments = [(aj.Variable(np.zeros_like(p), trainable=False), aj.Variable(np.zeros_like(p), trainable=False)) for p in params]


def sequences(longest):
    """Numbers with marks, padded to LONGEST; the length of each sequence, and the sum of its two marked numbers."""
    lengths = rng.integers(longest // 2, longest + 1, BATCH)
    x = np.zeros((LONGEST, BATCH, 2), "f4")
    x[..., 0] = rng.uniform(-1, 1, (LONGEST, BATCH))
    for k, length in enumerate(lengths):
        x[rng.choice(length, 2, replace=False), k, 1] = 1.0
    return x, lengths, (x[..., 0] * x[..., 1]).sum(0)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def remembered(xs, lengths):
    """The network's output for each sequence. A sequence that has ended keeps its state."""
    h = np.zeros((BATCH, UNITS), "f4")
    for t in range(np.max(lengths)):
        both = np.concatenate([xs[t], h], axis=1)
        reset, update = np.split(sigmoid(both @ gates + bias[: 2 * UNITS]), 2, axis=1)
        new = np.tanh(np.concatenate([xs[t], reset * h], axis=1) @ candidate + bias[2 * UNITS :])
        goes_on = (t < lengths)[:, None]
        h = np.where(goes_on, h + update * (new - h), h)
    return (h @ readout)[:, 0]


@aj.function
def train_step(xs, lengths, sums, k):
    with aj.GradientTape() as tape:
        loss = np.mean((remembered(xs, lengths) - sums) ** 2)
    for p, (m, v), g in zip(params, moments, tape.gradient(loss, params), strict=True):
        norm = np.sqrt(np.sum(g * g))
        if norm > 1.0:
            g = g / norm
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.999 * v + 0.001 * g * g)
        p.assign_sub(RATE * (1.0 - 0.9 * k / STEPS) * (m / (1.0 - 0.9**k)) / (np.sqrt(v / (1.0 - 0.999**k)) + 1e-8))
    return loss


def main():
    begin = time.perf_counter()
    losses = []
    for k in range(STEPS):
        longest = int(rng.integers(6, 8 + (LONGEST - 8) * min(1.0, 2 * k / STEPS) + 1))
        losses.append(float(train_step(*sequences(longest), k + 1.0)))
        if k == 0:
            first = time.perf_counter() - begin
    total = time.perf_counter() - begin

    print("mean squared error while training, on a logarithmic scale (guessing the mean gives 0.67)\n")
    for k, value in enumerate(np.array(losses).reshape(20, -1).mean(1)):
        print(f"  step {k * STEPS // 20:5}  {value:7.4f}  {'#' * max(1, round(15 * np.log10(value / 1e-4)))}")
    xs, lengths, sums = sequences(LONGEST)
    answers = aj.function(remembered)(xs, lengths).numpy()
    print("\nsequences of up to 30 numbers that it has not seen: two marked numbers, their sum, and the answer\n")
    for k in range(6):
        marked = xs[xs[:, k, 1] == 1, k, 0]
        print(f"  length {lengths[k]:2}:  {marked[0]:+.3f} {marked[1]:+.3f} = {sums[k]:+.3f}   {answers[k]:+.3f}")
    print(f"\n{STEPS} steps in {total:.1f} s, {train_step.trace_count} compiled version ({first:.1f} s) for all lengths")


if __name__ == "__main__":
    main()
