"""What the files of workloads at real sizes share."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

rng = np.random.default_rng(0)


def peer(name: str) -> Any:
    """A module that may not be installed: None then."""
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
    """A call of a function of JAX, compiled, that waits for its results."""
    on_device = jax.tree.map(jax.numpy.asarray, args)
    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*on_device))
