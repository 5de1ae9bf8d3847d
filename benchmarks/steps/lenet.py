"""lenet: two convolutions with max-pooling, three dense layers, cross-entropy, one step of SGD on 64 images of 28 x 28, float32."""

import numpy as np
from common import Prog

import adjit as aj
from adjit import nn

RATE = 0.01
NAMES = ("k1", "c1", "k2", "c2", "w1", "b1", "w2", "b2", "w3", "b3")


class LeNet(nn.Module):
    def __init__(self):
        self.first = nn.Conv2D(6, 5, padding="same", activation="relu")
        self.second = nn.Conv2D(16, 5, padding="valid", activation="relu")
        self.pool = nn.MaxPool2D(2)
        self.dense = [nn.Dense(120, activation="relu"), nn.Dense(84, activation="relu"), nn.Dense(10)]

    def call(self, x):
        x = self.pool(self.first(x))
        x = self.pool(self.second(x))
        x = x.reshape(x.shape[0], -1)
        for layer in self.dense:
            x = layer(x)
        return x


def adjit_step(inputs):
    x, y = inputs["x"], inputs["y"]
    model = LeNet()
    model(x)  # creates the variables
    variables = model.trainable_variables

    def reset():
        for variable, name in zip(variables, NAMES):
            variable.assign(inputs[name])

    @aj.function
    def step(x, y):
        with aj.GradientTape() as tape:
            logits = model(x)
            loss = np.mean(aj.logsumexp(logits, axis=1) - logits[np.arange(x.shape[0]), y])
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(RATE * gradient)
        return loss

    reset()
    return Prog(lambda: step(x, y), lambda loss: [loss, *(v.numpy() for v in variables)], reset)
