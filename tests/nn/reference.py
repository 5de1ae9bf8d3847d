"""Shared by the tests of nn: layers run eagerly and compiled, gradients by differences, and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjit as aj
from adjit import nn

Array = np.ndarray[Any, np.dtype[Any]]


def value_and_gradients(module: nn.Module, *args: Any, weights: Any = None, **kwargs: Any) -> tuple[Any, list[Any]]:
    """A weighted sum of the outputs, and its gradients by the floating arguments and by all trainable variables."""
    floats = [a for a in args if a.type.is_float]
    with aj.GradientTape() as tape:
        for a in floats:
            tape.watch(a)
        out = module(*args, **kwargs)
        total = (out * (1.0 if weights is None else weights)).sum()
    return out, tape.gradient(total, [*floats, *module.trainable_variables])


def training_step(model: nn.Module, optimizer: nn.optimizers.Optimizer) -> Callable[..., Any]:
    """A step that reduces the outputs of a model."""

    def step(x: Any) -> Any:
        with aj.GradientTape() as tape:
            loss = np.mean(model(x, training=True) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return aj.function(step)


def check_layer(module: nn.Module, *arrays: Array, wanted: Array | None = None, tolerance: float = 1e-9, **kwargs: Any) -> Array:
    """Check a value against `wanted`, eager = compiled, gradients against finite differences, in float64. Returns the value."""
    args = [aj.tensor(a) for a in arrays]
    shape = module(*args, **kwargs).shape
    state = module.get_weights()
    weights = np.random.default_rng(5).normal(size=shape)
    out, gradients = value_and_gradients(module, *args, weights=weights, **kwargs)
    module.set_weights(state)
    compiled_out, compiled = aj.function(lambda *a: value_and_gradients(module, *a, weights=weights, **kwargs))(*args)
    module.set_weights(state)
    assert_close(compiled_out, out, tolerance)
    for a, b in zip(compiled, gradients, strict=True):
        assert_close(a, b, tolerance)
    if wanted is not None:
        assert_close(out, wanted, tolerance)
    check_differences(module, arrays, weights, gradients, state, kwargs)
    return np.asarray(out)


def check_differences(module: nn.Module, arrays: Any, weights: Array, gradients: list[Any], state: list[Array], kwargs: Any) -> None:
    """Each gradient along a random direction, against central differences."""
    rng = np.random.default_rng(6)
    floats = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    def total(*inputs: Array) -> float:
        return float(np.sum(np.asarray(module(*inputs, **kwargs)) * weights))

    step = 1e-5
    for number, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        values = []
        for sign in (1, -1):
            module.set_weights(state)
            inputs = list(arrays)
            if number < len(floats):
                inputs[floats[number]] = inputs[floats[number]] + sign * step * direction
            else:
                variable = module.trainable_variables[number - len(floats)]
                variable.assign_add(sign * step * direction)
            values.append(total(*inputs))
        module.set_weights(state)
        slope = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(np.sum(np.asarray(gradient) * direction), slope, rtol=1e-6, atol=1e-6)


def assert_close(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def randomized(module: nn.Module, *example: Any, seed: int = 3, **kwargs: Any) -> Any:
    """The module, built, with random numbers in all floating variables."""
    module(*example, **kwargs)
    rng = np.random.default_rng(seed)
    for variable in module.variables:
        if variable.dtype.kind == "f":
            variable.assign(rng.uniform(0.2, 1.0, variable.shape) * rng.choice([-1.0, 1.0], variable.shape) * 0.5)
    return module


def raises_with(error: type[Exception], *words: str) -> Callable[..., Any]:
    """`with raises_with(ValueError, "a", "b"):` - an error whose message and notes contain all the words."""
    import contextlib

    import pytest

    @contextlib.contextmanager
    def context() -> Any:
        with pytest.raises(error) as info:
            yield
        text = str(info.value) + "\n".join(getattr(info.value, "__notes__", []))
        missing = [word for word in words if word not in text]
        assert not missing, f"{missing} not in: {text}"

    return context()  # type: ignore[return-value]
