"""Functions, models and tensors in another process: by name if they can be imported, by value otherwise."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn, tf


@aj.function
def tripled(x: Any) -> Any:
    return x * 3.0


class Model:
    def __init__(self) -> None:
        self.w = aj.Variable(2.0)

    @aj.function
    def scaled(self, x: Any) -> Any:
        return self.w * x


def test_by_name() -> None:
    for _ in range(3):  # the native entry gives the function another class
        tripled(np.ones(2))
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    assert pickle.loads(pickle.dumps(Model.scaled)) is Model.scaled
    method = pickle.loads(pickle.dumps(Model().scaled))
    assert float(method(3.0)) == 6.0


def test_local_functions_need_a_pickler_that_carries_code() -> None:
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pickle.dumps(aj.function(lambda x: x))


def test_models() -> None:
    model = nn.Sequential([nn.Dense(4, activation="relu"), nn.Dense(1)])
    x = np.ones((2, 3), np.float32)
    expected = model(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model))(x), expected)


PROGRAM = """
import pickle, subprocess, sys
import cloudpickle, numpy as np
import adjit as aj
from adjit import nn, tf

k = 3.0

@aj.function
def scaled(x):
    return x * k

@aj.function(static=["n"])
def factorial(x, n):
    return x if n == 0 else factorial(x, n - 1) * n

@tf.function
def doubled(x):
    return x * 2.0

class Model:
    def __init__(self):
        self.w = aj.Variable(2.0)
    @aj.function
    def call(self, x):
        return self.w * x

def made(c):
    return aj.function(lambda x: x * c)

for _ in range(3):
    scaled(2.0)
assert pickle.loads(pickle.dumps(scaled)) is scaled
model = Model()
things = scaled, factorial, doubled, model, model.call, made(aj.tensor(5.0)), aj.function(aj.grad(lambda x: x * x)), aj.tensor([1.0])
sys.stdout.buffer.write(cloudpickle.dumps(things))
"""
READER = """
import pickle, sys
scaled, factorial, doubled, model, method, closed, gradient, tensor = pickle.load(sys.stdin.buffer)
out = [scaled(2.0), factorial(1.0, 4), doubled(2.0), model.call(3.0), method(3.0), closed(2.0), gradient(3.0), tensor[0]]
print([float(x) for x in out])
"""


def test_by_value(tmp_path: Path) -> None:
    """Functions of `__main__`, closures, functions that call themselves."""
    pytest.importorskip("cloudpickle")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    sent = subprocess.run([sys.executable, str(path)], capture_output=True, check=True).stdout
    got = subprocess.run([sys.executable, "-c", READER], input=sent, capture_output=True, check=True).stdout
    assert got.decode().strip() == "[6.0, 24.0, 4.0, 6.0, 6.0, 10.0, 6.0, 1.0]"


def test_options_come_along() -> None:
    from adjit.runtime.pickling import blank

    for function in (aj.function(tripled.python_function, static=["x"], max_traces=3), tf.function(lambda x: x)):
        copy = blank(function.kind)
        copy.__setstate__(function._arguments())
        assert copy._arguments() == function._arguments()
