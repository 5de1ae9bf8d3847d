"""Helpers for the workloads at real sizes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

rng = np.random.default_rng(0)


def peer(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Workload(NamedTuple):
    name: str
    ours: Callable[[], Any]
    peers: dict[str, Callable[[], Any]]


def tensors(torch: Any, arrays: Any, requires_grad: bool = False) -> list[Any]:
    return [torch.tensor(array, requires_grad=requires_grad) for array in arrays]


def jitted(jax: Any, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """Return a call of a compiled JAX function that waits for its results."""
    on_device = jax.tree.map(jax.numpy.asarray, args)
    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*on_device))
