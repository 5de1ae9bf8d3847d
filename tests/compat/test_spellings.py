"""TensorFlow's functions, against its own results: values, dtypes and gradients, eager and compiled.

`tensorflow.json` holds rows of an expression, and what TensorFlow 2.21 gave for it: dtype, value, and the gradient of the sum of its
squares by `x` (null: not differentiable, or unconnected). No TensorFlow is needed here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjit import tf

ROWS = json.loads((Path(__file__).parent / "tensorflow.json").read_text(encoding="utf-8"))

INPUTS = {
    "x": [[1.5, -2.0, 0.25], [-0.5, 3.0, 0.75]],
    "p": [[0.5, 1.0, 2.0], [3.0, 0.25, 1.5]],
    "u": [[0.5, -0.25, 0.1], [-0.9, 0.3, 0.75]],
    "i": [1, 2, 3, 5],
    "b": [[True, False, True], [False, False, True]],
}

EAGER_ONLY = ("tf.unique(", "tf.where([")  # their shapes depend on values

UNCONNECTED = {"tf.sign(x)"}  # a zero gradient of TensorFlow's that is None here, as that of all functions made of steps


def value_and_gradient(expression: str, inputs: dict[str, Any]) -> tuple[Any, Any]:
    with tf.GradientTape() as tape:
        tape.watch(inputs["x"])
        y = eval(expression, {"tf": tf, **inputs})
        squares = tf.reduce_sum(y * y) if y.dtype.is_floating else None
    return y, None if squares is None else tape.gradient(squares, inputs["x"])


def check(row: list[Any], y: Any, gradient: Any) -> None:
    expression, dtype, value, slope = row
    assert isinstance(y, tf.Tensor)
    assert y.dtype.name == dtype
    assert y.shape == np.shape(value)
    if y.dtype.is_floating:
        np.testing.assert_allclose(y.numpy(), value, rtol=2e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(y.numpy(), value)
    if expression in UNCONNECTED:
        slope = None
    assert (gradient is None) == (slope is None), expression
    if slope is not None:
        np.testing.assert_allclose(gradient.numpy(), slope, rtol=5e-5, atol=5e-6)


def inputs() -> dict[str, Any]:
    return {name: tf.constant(value) for name, value in INPUTS.items()}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_eagerly(row: list[Any]) -> None:
    check(row, *value_and_gradient(row[0], inputs()))


@pytest.mark.parametrize("row", [row for row in ROWS if not row[0].startswith(EAGER_ONLY)], ids=lambda row: row[0])
def test_compiled(row: list[Any]) -> None:
    check(row, *tf.function(lambda given: value_and_gradient(row[0], given))(inputs()))
