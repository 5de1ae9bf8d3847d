"""Every layer over ten steps of training, against formulas in NumPy whose gradients are taken by differences; compiled and eager.

Both the variables of a layer and its floating inputs are trained, so that layers without variables are tested, too.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from tests.nn.layer_cases import CASES, Case
from tests.nn.reference import Array, random

STEPS, RATE, MOMENTUM = 10, 0.125, 0.5  # exact in any precision


def first_weights(case: Case) -> tuple[list[Array], list[bool]]:
    """Values for the floating variables of the layer, and which of them are trained."""
    layer = case.make(nn, dtype="float64")
    layer(*case.inputs, **case.call)
    rng = np.random.default_rng(3)
    variables = [v for v in layer.variables if v.dtype.kind == "f"]
    trained = [any(v is t for t in layer.trainable_variables) for v in variables]
    order = sorted(range(len(variables)), key=lambda i: not trained[i])
    values = [rng.uniform(0.1, 0.5, v.shape) * (1.0 if "variance" in v.name else rng.choice([-1.0, 1.0], v.shape)) for v in variables]
    return [values[i] for i in order], [trained[i] for i in order]


def floating_variables(layer: Any) -> list[Any]:
    return [*layer.trainable_variables, *(v for v in layer.non_trainable_variables if np.dtype(v.dtype).kind == "f")]


@functools.cache
def by_formula(name: str) -> tuple[list[Array], Array]:
    """Inputs and weights after ten steps of the formula, and the target of the loss."""
    case = CASES[name]
    weights, trained = first_weights(case)
    state = [*case.inputs, *weights, *case.extra()]
    moving = [*(a.dtype.kind == "f" for a in case.inputs), *trained, *(False for _ in case.extra())]
    target = random(*case.formula(*state).shape, seed=7)

    def loss() -> float:
        return float(np.mean((case.formula(*state) - target) ** 2))

    state = [np.array(a) for a in state]
    velocities = [np.zeros(a.shape) for a in state]
    for _ in range(STEPS):
        gradients = [differences(loss, a) if m else None for a, m in zip(state, moving, strict=True)]
        kept = [] if case.update is None else case.update(*state)
        for array, velocity, gradient in zip(state, velocities, gradients, strict=True):
            if gradient is not None:
                velocity *= MOMENTUM
                velocity -= RATE * gradient
                array += velocity
        for array, value in zip(state[len(state) - len(kept) :], kept, strict=True):
            array[...] = value
    return state[: len(case.inputs) + len(weights)], target


def differences(loss: Any, array: Array, step: float = 1e-5) -> Array:
    """The gradient of a loss with respect to an array that it reads, by central differences of each element."""
    out = np.zeros(array.shape)
    for at in np.ndindex(*array.shape):
        value = array[at]
        ends = []
        for sign in (1, -1):
            array[at] = value + sign * step
            ends.append(loss())
        array[at] = value
        out[at] = (ends[0] - ends[1]) / (2 * step)
    return out


def trained(case: Case, target: Array, dtype: str, compiled: bool) -> list[Array]:
    """Inputs and weights after ten steps of the layer."""
    layer = case.make(nn, dtype=dtype)
    inputs = [aj.Variable(a.astype(dtype), name="x") if a.dtype.kind == "f" else a for a in case.inputs]
    layer(*inputs, training=False, **{k: v for k, v in case.call.items() if k != "training"})
    for variable, value in zip(floating_variables(layer), first_weights(case)[0], strict=True):
        variable.assign(value.astype(dtype))
    optimizer = nn.optimizers.SGD(RATE, momentum=MOMENTUM)
    wanted = target.astype(dtype)
    variables = [*(x for x in inputs if isinstance(x, aj.Variable)), *layer.trainable_variables]

    def step() -> None:
        with aj.GradientTape() as tape:
            loss = np.mean((layer(*inputs, **case.call) - wanted) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    run = aj.function(step) if compiled else step
    for _ in range(STEPS):
        run()
    return [np.asarray(v) for v in (*inputs, *floating_variables(layer))]


def deviation(got: Sequence[Array], wanted: Sequence[Array]) -> float:
    return max(float(np.max(np.abs(a - b))) for a, b in zip(got, wanted, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_ten_steps(name: str) -> None:
    wanted, target = by_formula(name)
    case = CASES[name]
    assert deviation(wanted, [*case.inputs, *first_weights(case)[0]]) > 1e-3, "nothing was trained"
    compiled = trained(case, target, "float64", compiled=True)
    assert deviation(compiled, wanted) < 1e-9
    assert deviation(trained(case, target, "float64", compiled=False), compiled) < 1e-12
    if case.in_float32:
        assert deviation(trained(case, target, "float32", compiled=True), wanted) < 1e-5


def test_every_layer_has_a_row() -> None:
    made: set[str] = set()

    class Recording:
        def __getattr__(self, name: str) -> Any:
            made.add(name)
            return getattr(nn, name)

    for case in CASES.values():
        case.make(Recording(), dtype="float64")
    layers = {name for name in nn.__all__ if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)}
    assert layers - made == {"Module", "ExponentialMovingAverage", "InputLayer"}  # no layers, and what Input makes
