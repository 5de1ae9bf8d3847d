"""tf.nn: activations, losses on logits, convolutions and a few layer functions; all are safe for large arguments."""

from __future__ import annotations

import math
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.ir.types import I64
from adjit.tracer.surface import indexing, reductions

from . import random as _random
from .convolution import *  # noqa: F403 - its `__all__` are names of `tf.nn`
from .errors import InvalidShape, missing, out_of_scope
from .listing import public_names
from .math import in_top_k as in_top_k
from .math import l2_normalize as l2_normalize
from .math import log_sigmoid as log_sigmoid
from .math import log_softmax as log_softmax
from .math import sigmoid as sigmoid
from .math import softmax as softmax
from .math import softplus as softplus
from .math import softsign as softsign
from .math import tanh as tanh
from .math import top_k as top_k
from .tensor import check_dtypes, convert_to_tensor, pair
from .wrapping import axes_of, floating, public, unary

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

relu = unary(ops.relu, "relu", argument="features")
relu6 = unary(lambda x: ops.minimum(ops.relu(x), 6), "relu6", argument="features")
selu = unary(
    lambda x: SELU_SCALE * ops.where(ops.greater(x, 0.0), x, SELU_ALPHA * ops.expm1(ops.minimum(x, 0.0))), "selu", True, "features"
)


@public
def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Any:
    x = floating("leaky_relu", features)
    return ops.where(ops.greater(x, 0.0), x, x * alpha)


@public
def elu(features: Any, name: str | None = None) -> Any:
    x = floating("elu", features)
    return ops.where(ops.greater(x, 0.0), x, ops.expm1(ops.minimum(x, 0.0)))


@public
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Any:
    x = floating("gelu", features)
    if approximate:
        return 0.5 * x * (1.0 + ops.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))


@public
def silu(features: Any, beta: float = 1.0) -> Any:
    x = floating("silu", features)
    return x * ops.sigmoid(x * beta)


swish = silu


@public
def crelu(features: Any, axis: int = -1, name: str | None = None) -> Any:
    x = convert_to_tensor(features)
    return ops.concatenate([ops.relu(x), ops.relu(ops.neg(x))], axis)


# ---- losses


@public
def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: str | None = None) -> Any:
    """max(x, 0) - x z + log(1 + exp(-|x|)), for logits x and labels z."""
    x, z = _logits_and_labels("sigmoid_cross_entropy_with_logits", logits, labels)
    if x.type.shape != z.type.shape:
        raise InvalidShape(f"`logits` and `labels` must have the same shape, received ({x.type.shape} vs {z.type.shape}).")
    return ops.softplus(x) - x * z


@public
def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Any:
    x, z = _logits_and_labels("weighted_cross_entropy_with_logits", logits, labels)
    return (1.0 - z) * x + (1.0 + (pos_weight - 1.0) * z) * ops.softplus(ops.neg(x))


@public
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Any:
    if isinstance(labels, Operand) and labels.type.dtype.kind in "iu":
        labels = ops.cast(labels, floating("softmax_cross_entropy_with_logits", logits).type.dtype)
    x, z = _logits_and_labels("softmax_cross_entropy_with_logits", logits, labels)
    return ops.neg(ops.sum(z * reductions.log_softmax(x, axis), axis))


@public
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """The cross-entropy of classes given by index."""
    x, classes = floating("sparse_softmax_cross_entropy_with_logits", logits), convert_to_tensor(labels)
    if classes.type.shape != x.type.shape[:-1]:
        raise InvalidShape(
            "`labels.shape` must equal `logits.shape` except for the last dimension. "
            f"Received: labels.shape={classes.shape} and logits.shape={x.shape}"
        )
    chosen = ops.reshape(ops.cast(classes, I64), (*classes.type.shape, 1))
    picked = indexing.take_along_axis(reductions.log_softmax(x, -1), chosen, axis=-1)
    return ops.neg(ops.reshape(picked, classes.type.shape))


@public
def l2_loss(t: Any, name: str | None = None) -> Any:
    """Half the sum of squares."""
    return ops.sum(ops.square(convert_to_tensor(t))) * 0.5


@public
def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Any:
    if compute_full_loss:
        out_of_scope("log_poisson_loss(compute_full_loss=True)", "add Stirling's approximation yourself")
    c, z = pair("log_poisson_loss", log_input, targets)
    return ops.exp(c) - z * c


def _logits_and_labels(what: str, logits: Any, labels: Any) -> tuple[Any, Any]:
    if logits is None or labels is None:
        raise ValueError(f"Both labels and logits must be provided: {what}(labels=..., logits=...)")
    x = floating(what, logits)
    z = convert_to_tensor(labels, dtype_hint=x.dtype)
    check_dtypes(what, x, z)
    return x, z


# ---- layers


@public
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    if data_format is not None and data_format.startswith("NC"):
        out_of_scope("data_format='NC...'", "put the channels last")
    return convert_to_tensor(value) + convert_to_tensor(bias)


@public
def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None) -> Any:
    """x with a fraction `rate` of its elements set to 0, and the others scaled up."""
    t = floating("dropout", x)
    if isinstance(rate, float | int):
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
        if rate == 0:
            return t
    shape = t.type.shape if noise_shape is None else tuple(n if s is None else s for n, s in zip(t.type.shape, noise_shape, strict=True))
    keep = ops.greater_equal(*pair("dropout", _random.uniform(shape, dtype=t.dtype, seed=seed), rate))
    return ops.where(ops.broadcast_to(keep, t.type.shape), t / (1.0 - rate), 0.0)


@public
def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> tuple[Operand, Operand]:
    """Mean and variance."""
    t = floating("moments", x)
    axis = axes_of(axes)
    return reductions.mean(t, axis, keepdims=keepdims), reductions.var(t, axis, keepdims=keepdims)


@public
def batch_normalization(x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None) -> Any:
    t = floating("batch_normalization", x)
    factor = ops.rsqrt(convert_to_tensor(variance) + variance_epsilon)
    if scale is not None:
        factor = factor * scale
    out = (t - mean) * factor
    return out if offset is None else out + offset


@public
def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Any:
    if max_norm is not None:
        out_of_scope("embedding_lookup(max_norm=...)", "use tf.clip_by_norm on the result")
    return indexing.take(convert_to_tensor(params), convert_to_tensor(ids), axis=0)


@public
def zero_fraction(value: Any, name: str | None = None) -> Any:
    x = convert_to_tensor(value)
    return ops.cast(ops.sum(ops.cast(ops.equal(x, 0), I64)), convert_to_tensor(0.0).type.dtype) / max(x.type.size, 1)


__getattr__ = missing("tf.nn", "layers, recurrent cells and further losses are in adjit.nn")


def __dir__() -> list[str]:
    return public_names(globals())
