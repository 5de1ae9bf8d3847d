"""Layers that Keras lacks, and the main ones of the others, against PyTorch, if it is installed, over the same ten steps of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from tests.nn.layer_cases import CASES, UNITS, Case
from tests.nn.reference import Array, assert_close, random
from tests.nn.test_optimizers import B0, W0, X, Y
from tests.nn.test_optimizers import trained as optimized
from tests.nn.test_ten_steps import MOMENTUM, RATE, STEPS, by_formula, deviation, first_weights, trained

torch = pytest.importorskip("torch")
functional = torch.nn.functional


def convolution(function: str, pads: tuple[int, ...] = (), **options: Any) -> Callable[..., Any]:
    """On [n, h, w, c] and [r, s, in, out], as PyTorch has [n, c, h, w] and [out, in, r, s]; pads are those of the last axis first."""

    def call(x: Any, w: Any, bias: Any = None) -> Any:
        axes = x.ndim - 2
        x = functional.pad(x.movedim(-1, 1), pads)
        out = getattr(functional, function)(x, w.permute(axes + 1, axes, *range(axes)), bias, **options)
        return out.movedim(1, -1)

    return call


def recurrent(name: str, swapped: tuple[int, ...]) -> Callable[..., Any]:
    """Gates in another order: `swapped` puts ours in PyTorch's."""

    def gates(w: Any) -> Any:
        parts = w.split(UNITS, -1)
        return torch.cat([parts[i] for i in swapped], -1)

    def call(x: Any, kernel: Any, inner: Any, bias: Any) -> Any:
        layer = getattr(torch.nn, name)(x.shape[-1], UNITS, batch_first=True, dtype=x.dtype)
        biases = (gates(bias[0]), gates(bias[1])) if bias.ndim == 2 else (gates(bias), torch.zeros_like(bias))
        named = ("weight_ih_l0", gates(kernel).T), ("weight_hh_l0", gates(inner).T), ("bias_ih_l0", biases[0]), ("bias_hh_l0", biases[1])
        return torch.func.functional_call(layer, dict(named), (x,))[0]

    return call


def attention(causal: bool) -> Callable[..., Any]:
    def call(x: Any, *weights: Any) -> Any:
        q, k, v = (torch.einsum("btd,dhs->bhts", x, w) + b[:, None] for w, b in zip(weights[:3], weights[4:7], strict=True))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return torch.einsum("bhts,hsd->btd", out, weights[3]) + weights[7]

    return call


FORMULAS: dict[str, Callable[..., Any]] = {
    "conv2d": lambda *a: torch.relu(convolution("conv2d")(*a)),
    "conv2d, explicit padding, dilated": convolution("conv2d", (2, 1, 1, 0), dilation=(1, 2)),
    "conv2d, groups": convolution("conv2d", groups=2),
    "conv1d, groups": convolution("conv1d", groups=4),
    "conv1d, causal, dilated": convolution("conv1d", (4, 0), dilation=2),
    "transposed conv2d": convolution("conv_transpose2d", stride=2),
    "transposed conv2d, groups, dilated": convolution("conv_transpose2d", groups=2, dilation=2),
    "residual": lambda x, w, b: x + torch.relu(x @ w + b),
    "layer norm": lambda x, g, b: functional.layer_norm(x, (x.shape[-1],), g, b, 1e-3),
    "rms norm": lambda x, g: functional.rms_norm(x, (x.shape[-1],), g, 1e-6),
    "embedding": lambda ids, table: functional.embedding(ids, table),
    "simple rnn, sequences": recurrent("RNN", (0,)),
    "lstm, sequences": recurrent("LSTM", (0, 1, 2, 3)),
    "gru, sequences": recurrent("GRU", (1, 0, 2)),
    "self attention": attention(False),
    "causal attention": attention(True),
    "activation gelu": functional.gelu,
    "activation gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "activation mish": functional.mish,
    "activation hard_silu": functional.hardswish,
}


def trained_in_torch(case: Case, formula: Callable[..., Any], target: Array, dtype: str) -> list[Array]:
    values = [torch.tensor(a.astype(dtype) if a.dtype.kind == "f" else a) for a in (*case.inputs, *first_weights(case)[0])]
    parameters = [v.requires_grad_() for v in values if v.dtype.is_floating_point]
    optimizer = torch.optim.SGD(parameters, RATE, momentum=MOMENTUM)
    wanted = torch.tensor(target.astype(dtype))
    for _ in range(STEPS):
        optimizer.zero_grad()
        ((formula(*values) - wanted) ** 2).mean().backward()
        optimizer.step()
    return [v.detach().numpy() for v in values]


@pytest.mark.parametrize("name", FORMULAS)
def test_layers(name: str) -> None:
    case, target = CASES[name], by_formula(name)[1]
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        theirs = trained_in_torch(case, FORMULAS[name], target, dtype)
        assert deviation(trained(case, target, dtype, compiled=True), theirs) < tolerance


OPTIMIZERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "sgd": (lambda: nn.optimizers.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "nesterov": (lambda: nn.optimizers.SGD(0.1, 0.9, nesterov=True), lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True)),
    "adam": (lambda: nn.optimizers.Adam(0.05, epsilon=1e-12), lambda p: torch.optim.Adam(p, 0.05, eps=1e-12)),
    "amsgrad": (
        lambda: nn.optimizers.Adam(0.05, epsilon=1e-12, amsgrad=True), lambda p: torch.optim.Adam(p, 0.05, eps=1e-12, amsgrad=True)
    ),
    "adamw": (
        lambda: nn.optimizers.AdamW(0.05, weight_decay=0.1, epsilon=1e-12),
        lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.1, eps=1e-12),
    ),
    "rmsprop": (lambda: nn.optimizers.RMSprop(0.05, epsilon=1e-20), lambda p: torch.optim.RMSprop(p, 0.05, alpha=0.9, eps=1e-10)),
    "adagrad": (
        lambda: nn.optimizers.Adagrad(0.5, epsilon=1e-20), lambda p: torch.optim.Adagrad(p, 0.5, initial_accumulator_value=0.1, eps=1e-10)
    ),
    "adadelta": (lambda: nn.optimizers.Adadelta(1.0, epsilon=1e-6), lambda p: torch.optim.Adadelta(p, 1.0, rho=0.95, eps=1e-6)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    """Where the two add their epsilon in different places, it is made negligibly small."""
    ours, theirs = OPTIMIZERS[name]
    w, b = (torch.tensor(a, requires_grad=True) for a in (W0, B0))
    optimizer = theirs([w, b])
    for values in optimized(ours()):
        optimizer.zero_grad()
        ((torch.tensor(X) @ w + b - torch.tensor(Y)) ** 2).mean().backward()
        optimizer.step()
        assert deviation(values, [w.detach().numpy(), b.detach().numpy()]) < 1e-8


def test_ctc() -> None:
    labels, logits = np.random.default_rng(0).integers(1, 6, (4, 7)), random(4, 30, 6)
    labels[1, 3] = labels[1, 2]
    counts, times = np.array([7, 5, 0, 3]), np.array([30, 22, 9, 30])
    value, gradient = aj.function(aj.value_and_grad(lambda x: nn.ctc_loss(labels, x, counts, times).sum()))(logits)
    scores = torch.tensor(logits, requires_grad=True)
    spread = functional.log_softmax(scores, -1).transpose(0, 1)
    loss = functional.ctc_loss(spread, torch.tensor(labels), torch.tensor(times), torch.tensor(counts), reduction="sum")
    loss.backward()
    assert_close(value, loss.item(), 1e-12)
    assert_close(gradient, scores.grad.numpy(), 1e-10)
