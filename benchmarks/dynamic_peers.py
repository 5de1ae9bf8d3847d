"""The models of `dynamic.py` in PyTorch (`torch.compile(dynamic=True)`) and JAX (`jax.jit`, which compiles each size).

Each maker takes the number of threads and returns, by the name of the model, a function from arrays to a call without arguments.
Raises ImportError if the library is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Bound = Callable[[tuple[Any, ...]], Callable[[], Any]]


def with_torch(threads: int) -> dict[str, Bound]:
    import torch
    from torch.nn import functional

    torch.set_num_threads(threads)

    def differentiated(loss: Callable[..., Any], data: int) -> Callable[..., Any]:
        """The loss and its gradient with respect to all arguments except the first ones."""

        def step(*tensors: Any) -> Any:
            value = loss(*tensors)
            return value, *torch.autograd.grad(value, tensors[data:])

        return step

    def mlp(*tensors: Any) -> Any:
        def loss(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
            return ((torch.relu(x @ w1 + b1) @ w2 + b2 - y) ** 2).sum(-1).mean()

        value, *gradients = differentiated(loss, 2)(*tensors)
        return value, *(w.detach() - 0.01 * d for w, d in zip(tensors[2:], gradients, strict=True))

    def lenet(x: Any, w1: Any, w2: Any, w3: Any) -> Any:
        h = functional.max_pool2d(torch.relu(functional.conv2d(x, w1)), 2)
        h = functional.max_pool2d(torch.relu(functional.conv2d(h, w2)), 2)
        return ((h.flatten(1) @ w3) ** 2).mean()

    def lstm(x: Any, *weights: Any) -> Any:  # the library's own kernel: a loop in Python would be compiled for each length
        zero = x.new_zeros(1, x.shape[1], 32)
        hs, _, _ = torch.lstm(x, (zero, zero), list(weights), False, 1, 0.0, True, False, False)  # type: ignore[attr-defined,unused-ignore]
        return (hs * hs).mean()

    def transformer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        q, k, v = x @ wq, x @ wk, x @ wv
        mixed = torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v
        return ((torch.relu(mixed @ wo) + x) ** 2).mean()

    def bound(step: Callable[..., Any], data: int, order: Callable[[Any], Any] = lambda a: a) -> Bound:
        compiled = torch.compile(step, dynamic=True)

        def bind(arrays: tuple[Any, ...]) -> Callable[[], Any]:
            tensors = [order(torch.tensor(a)).contiguous().requires_grad_(k >= data) for k, a in enumerate(arrays)]
            return lambda: compiled(*tensors)

        return bind

    def channels_first(a: Any) -> Any:
        return a if a.ndim != 4 else a.permute(3, 2, 0, 1) if a.shape[0] == a.shape[1] == 5 else a.permute(0, 3, 1, 2)

    def turned(a: Any) -> Any:
        return a.T if a.ndim == 2 else a

    return {
        "elementwise": bound(lambda x, y: torch.tanh(x * y) + x, 9),
        "softmax": bound(lambda x: torch.softmax(x, -1), 9),
        "mlp": bound(mlp, 2),
        "lenet": bound(differentiated(lenet, 1), 1, channels_first),
        "lstm": bound(differentiated(lstm, 1), 1, turned),
        "transformer": bound(differentiated(transformer, 1), 1),
    }


def with_jax(threads: int) -> dict[str, Bound]:
    """JAX takes its number of threads from the processors that the process may use."""
    import jax
    import jax.numpy as jnp

    def mlp(x: Any, y: Any, *weights: Any) -> Any:
        def loss(w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
            return jnp.mean(jnp.sum((jnp.maximum(x @ w1 + b1, 0) @ w2 + b2 - y) ** 2, -1))

        value, gradients = jax.value_and_grad(loss, (0, 1, 2, 3))(*weights)
        return value, *(w - 0.01 * d for w, d in zip(weights, gradients, strict=True))

    def lenet(x: Any, w1: Any, w2: Any, w3: Any) -> Any:
        h = x
        for w in (w1, w2):
            h = jax.lax.conv_general_dilated(h, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            h = jax.lax.reduce_window(jnp.maximum(h, 0), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.mean((h.reshape(x.shape[0], -1) @ w3) ** 2)

    def lstm(x: Any, w: Any, u: Any) -> Any:
        def step(carry: Any, xt: Any) -> Any:
            h, s = carry
            i, f, o, g = jnp.split(xt @ w + h @ u, 4, -1)
            s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(s)
            return (h, s), h

        zero = jnp.zeros((x.shape[1], 32), jnp.float32)
        _, hs = jax.lax.scan(step, (zero, zero), x)
        return jnp.mean(hs * hs)

    def transformer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        q, k, v = x @ wq, x @ wk, x @ wv
        mixed = jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) * 0.125) @ v
        return jnp.mean((jnp.maximum(mixed @ wo, 0) + x) ** 2)

    def bound(step: Callable[..., Any]) -> Bound:
        compiled = jax.jit(step)

        def bind(arrays: tuple[Any, ...]) -> Callable[[], Any]:
            given = [jnp.asarray(a) for a in arrays]
            return lambda: jax.block_until_ready(compiled(*given))

        return bind

    return {
        "elementwise": bound(lambda x, y: jnp.tanh(x * y) + x),
        "softmax": bound(jax.nn.softmax),
        "mlp": bound(mlp),
        "lenet": bound(jax.value_and_grad(lenet, (1, 2, 3))),
        "lstm": bound(jax.value_and_grad(lstm, (1, 2))),
        "transformer": bound(jax.value_and_grad(transformer, (1, 2, 3, 4))),
    }
