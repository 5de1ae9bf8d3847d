"""Activation functions, and their lookup by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.runtime.conversion import handed_over
from adjit.tracer.convert import to_operand
from adjit.tracer.surface import elementwise, reductions

__all__ = [
    "celu", "elu", "exponential", "gelu", "get_activation", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu", "linear",
    "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "softmax", "softplus", "softsign", "swish", "tanh",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # fixed point at mean 0 and variance 1

relu = elementwise.relu
sigmoid = elementwise.sigmoid
softplus = elementwise.softplus
tanh = elementwise.tanh
exponential = elementwise.exp
softmax = reductions.softmax
log_softmax = reductions.log_softmax


def linear(x: Any) -> Operand:
    """Return x itself.

    >>> aj.nn.activations.linear(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-1.,  0.,  2.])
    """
    return to_operand(x)


def relu6(x: Any) -> Operand:
    """Return x clipped to [0, 6].

    >>> aj.nn.activations.relu6(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([0., 0., 2.])
    """
    return ops.clip(to_operand(x), 0.0, 6.0)


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Operand:
    """Return x above 0, `negative_slope * x` below.

    >>> aj.nn.activations.leaky_relu(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-0.2,  0. ,  2. ])
    """
    v = to_operand(x)
    return ops.where(v > 0.0, v, negative_slope * v)


def elu(x: Any, alpha: float = 1.0) -> Operand:
    """Return x above 0, alpha * (exp(x) - 1) below.

    >>> aj.nn.activations.elu(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-0.632,  0.   ,  2.   ])
    """
    v = to_operand(x)
    return ops.where(v > 0.0, v, alpha * ops.expm1(ops.minimum(v, 0.0)))


def celu(x: Any, alpha: float = 1.0) -> Operand:
    """Return x above 0, alpha * (exp(x / alpha) - 1) below.

    >>> aj.nn.activations.celu(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-0.632,  0.   ,  2.   ])
    """
    v = to_operand(x)
    return ops.where(v > 0.0, v, alpha * ops.expm1(ops.minimum(v, 0.0) / alpha))


def selu(x: Any) -> Operand:
    """Return the scaled elu that keeps mean 0 and variance 1 through layers.

    >>> aj.nn.activations.selu(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-1.111,  0.   ,  2.101])
    """
    return SELU_SCALE * elu(x, SELU_ALPHA)


def gelu(x: Any, approximate: bool = False) -> Operand:
    """Return x times the normal distribution function of x; `approximate` uses tanh.

    >>> aj.nn.activations.gelu(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-0.159,  0.   ,  1.954])
    """
    v = to_operand(x)
    if approximate:
        return 0.5 * v * (1.0 + ops.tanh(math.sqrt(2.0 / math.pi) * (v + 0.044715 * (v * v * v))))
    return 0.5 * v * (1.0 + ops.erf(v * math.sqrt(0.5)))


def gelu_tanh(x: Any) -> Operand:
    """gelu, approximated by tanh."""
    return gelu(x, approximate=True)


def silu(x: Any) -> Operand:
    """Return x * sigmoid(x), also called swish.

    >>> aj.nn.activations.silu(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-0.269,  0.   ,  1.762])
    """
    v = to_operand(x)
    return v * ops.sigmoid(v)


def mish(x: Any) -> Operand:
    """Return x * tanh(softplus(x)).

    >>> aj.nn.activations.mish(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-0.303,  0.   ,  1.944])
    """
    v = to_operand(x)
    return v * ops.tanh(ops.softplus(v))


def softsign(x: Any) -> Operand:
    """Return x / (1 + |x|).

    >>> aj.nn.activations.softsign(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-0.5  ,  0.   ,  0.667])
    """
    v = to_operand(x)
    return v / (1.0 + ops.absolute(v))


def log_sigmoid(x: Any) -> Operand:
    """Return log(sigmoid(x)), without overflow.

    >>> aj.nn.activations.log_sigmoid(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-1.313, -0.693, -0.127])
    """
    return -ops.softplus(-to_operand(x))


def hard_sigmoid(x: Any) -> Operand:
    """Return x / 6 + 0.5, clipped to [0, 1].

    >>> aj.nn.activations.hard_sigmoid(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([0.333, 0.5  , 0.833])
    """
    return ops.clip(to_operand(x) * (1.0 / 6.0) + 0.5, 0.0, 1.0)


def hard_silu(x: Any) -> Operand:
    """Return x * hard_sigmoid(x), also called hard swish.

    >>> aj.nn.activations.hard_silu(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-0.333,  0.   ,  1.667])
    """
    v = to_operand(x)
    return v * hard_sigmoid(v)


def hard_tanh(x: Any) -> Operand:
    """Return x clipped to [-1, 1].

    >>> aj.nn.activations.hard_tanh(np.array([-1.0, 0.0, 2.0])).numpy().round(3)
    array([-1.,  0.,  1.])
    """
    return ops.clip(to_operand(x), -1.0, 1.0)


swish, hard_swish = silu, hard_silu

NAMED: dict[str, Callable[..., Operand]] = {
    "celu": celu, "elu": elu, "exponential": exponential, "gelu": gelu, "gelu_tanh": gelu_tanh, "hard_sigmoid": hard_sigmoid,
    "hard_silu": hard_silu, "hard_swish": hard_silu, "hard_tanh": hard_tanh, "leaky_relu": leaky_relu, "linear": linear,
    "log_sigmoid": log_sigmoid, "log_softmax": log_softmax, "mish": mish, "relu": relu, "relu6": relu6, "selu": selu, "sigmoid": sigmoid,
    "silu": silu, "softmax": softmax, "softplus": softplus, "softsign": softsign, "swish": silu, "tanh": tanh,
}  # fmt: skip


def get_activation(what: str | Callable[..., Any] | None, layer: str = "") -> Callable[..., Any]:
    """Return an activation from its name, or the function itself; None is `linear`. Errors name `layer`.

    >>> aj.nn.activations.get_activation("relu")(np.array([-1.0, 2.0]))
    Tensor([0., 2.], f64[2])
    """
    where = f"{layer}: " if layer else ""
    if what is None:
        return linear
    if isinstance(what, str):
        if what not in NAMED:
            near = "".join(f"did you mean {name!r}? " for name in get_close_matches(what, NAMED, 1))
            raise ValueError(f"{where}there is no activation {what!r}; {near}choose one of {', '.join(sorted(NAMED))}")
        return NAMED[what]
    if not callable(what):
        raise TypeError(f"{where}an activation is a name or a function, not {what!r}")
    return handed_over(what)
