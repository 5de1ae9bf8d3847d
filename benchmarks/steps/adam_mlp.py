"""A ReLU MLP with Adam, written as a user would write it: the training step of tiny_mlp, mnist_mlp and ../first_call.py."""

import numpy as np

import adjit as aj

LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8


class Trainer:
    """Parameters, Adam's moments and one compiled `step()` that updates all of them and returns the loss."""

    def __init__(self, weights, biases, x, y, classify):
        self.initial = [array for layer in zip(weights, biases, strict=True) for array in layer]
        self.params = [aj.Variable(array.copy(), name=f"p{i}") for i, array in enumerate(self.initial)]
        self.means = [aj.Variable(np.zeros_like(array), name=f"m{i}") for i, array in enumerate(self.initial)]
        self.squares = [aj.Variable(np.zeros_like(array), name=f"v{i}") for i, array in enumerate(self.initial)]
        self.time = aj.Variable(np.float32(0.0), name="t")
        loss_of = cross_entropy if classify else squared_error

        @aj.function
        def train(x, y):
            with aj.GradientTape() as tape:
                loss = loss_of(forward(self.params, x), y)
            gradients = tape.gradient(loss, self.params)
            self.time.assign_add(1.0)
            c1 = 1.0 / (1.0 - BETA1**self.time)
            c2 = 1.0 / (1.0 - BETA2**self.time)
            for p, m, v, g in zip(self.params, self.means, self.squares, gradients, strict=True):
                m.assign(BETA1 * m + (1.0 - BETA1) * g)
                v.assign(BETA2 * v + (1.0 - BETA2) * g * g)
                p.assign_sub(LEARNING_RATE * (m * c1) / (np.sqrt(v * c2) + EPSILON))
            return loss

        self.train = train
        self.step = lambda: train(x, y)

    def reset(self):
        for p, m, v, array in zip(self.params, self.means, self.squares, self.initial, strict=True):
            p.assign(array)
            m.assign(np.zeros_like(array))
            v.assign(np.zeros_like(array))
        self.time.assign(0.0)

    def outputs(self, loss):
        return [loss, *(p.numpy() for p in self.params)]


def forward(params, x):
    *hidden, w, b = params
    for i in range(0, len(hidden), 2):
        x = np.maximum(x @ hidden[i] + hidden[i + 1], 0.0)
    return x @ w + b


def squared_error(prediction, y):
    return np.mean((prediction - y) ** 2)


def cross_entropy(logits, labels):
    picked = logits[np.arange(logits.shape[0]), labels]
    return np.mean(aj.logsumexp(logits, axis=1) - picked)
