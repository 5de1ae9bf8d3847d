"""Losses: functions that return a loss for each example, and classes that reduce those to one number.

    mean_squared_error(y_true, y_pred)          # one value per example: the mean over the last axis
    MeanSquaredError()(y_true, y_pred)          # their mean
    MeanSquaredError(reduction="sum")(y_true, y_pred, sample_weight=w)

The functions are in `loss_functions.py`; this module has the classes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import as_dtype
from adjit.runtime.conversion import as_called
from adjit.tracer.convert import to_operands

from .loss_functions import (
    EPSILON,
    binary_crossentropy,
    categorical_crossentropy,
    categorical_hinge,
    cosine_similarity,
    ctc,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)  # fmt: skip
from .recorded import Recorded

__all__ = [
    "Loss", "MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredLogarithmicError", "Huber", "LogCosh",
    "Hinge", "SquaredHinge", "CategoricalHinge", "Poisson", "KLDivergence", "CosineSimilarity", "BinaryCrossentropy",
    "CategoricalCrossentropy", "SparseCategoricalCrossentropy", "CTC", "mean_squared_error", "mean_absolute_error",
    "mean_absolute_percentage_error", "mean_squared_logarithmic_error", "huber", "log_cosh", "hinge", "squared_hinge",
    "categorical_hinge", "poisson", "kl_divergence", "cosine_similarity", "binary_crossentropy", "categorical_crossentropy",
    "sparse_categorical_crossentropy", "ctc", "get_loss", "reduce_loss",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "none")


def reduce_loss(losses: Any, sample_weight: Any = None, reduction: str = "sum_over_batch_size") -> Operand:
    """Return the weighted and reduced losses of examples.

    "sum_over_batch_size" divides the sum by their number, "mean" by the sum of weights.

    >>> aj.nn.losses.reduce_loss(np.array([1.0, 3.0]), sample_weight=np.array([1.0, 0.0]), reduction="mean")
    Tensor(1., f64[])
    """
    (values,) = to_operands(losses)
    weight: Operand | None = None
    if sample_weight is not None:
        values, weight = to_operands(values, sample_weight)
        weight = weight.astype(values.type.dtype)
        if weight.ndim == values.ndim + 1 and weight.type.shape[-1] == 1:
            weight = ops.reshape(weight, weight.type.shape[:-1])
        if weight.ndim > values.ndim or (weight.type.shape != values.type.shape[: weight.ndim] and weight.type.shape not in ((), (1,))):
            raise ShapeError(f"sample_weight {weight.type} does not fit the losses {values.type}: one weight an example")
        if weight.ndim < values.ndim and weight.ndim:
            weight = ops.reshape(weight, weight.type.shape + (1,) * (values.ndim - weight.ndim))
        weight = ops.broadcast_to(weight, values.type.shape)
        values = values * weight
    if reduction == "none":
        return values
    total = ops.sum(values)
    if reduction == "sum":
        return total
    if reduction == "mean" and weight is not None:
        return total / ops.maximum(ops.sum(weight), EPSILON)
    return total * (1.0 / max(1, values.size))


class Loss(Recorded):
    """Base of losses: `call(y_true, y_pred)` returns one value per example; calling the loss weights and reduces them.

    >>> class Cubed(aj.nn.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return np.mean(np.abs(y_true - y_pred) ** 3, axis=-1)
    ...
    >>> Cubed()(np.array([[1.0]]), np.array([[3.0]]))
    Tensor(8., f64[])
    """

    function: ClassVar[Callable[..., Operand]]

    def __init__(self, *args: Any, **options: Any) -> None:
        """Options of the function come first, in its order, then `reduction="sum_over_batch_size"`, `name` and `dtype`, of the result."""
        names = self.option_names()
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}, but {len(args)} values were given")
        options = {**dict(zip(names, args, strict=False)), **options}
        for option in options:
            if option not in names:
                raise TypeError(f"{type(self).__name__} has no option {option!r}; it has {', '.join(names)}")
        reduction = options.pop("reduction", "sum_over_batch_size")
        self.reduction = "none" if reduction is None else reduction
        self.name = options.pop("name", None) or type(self).__name__
        dtype = options.pop("dtype", None)
        self.dtype = None if dtype is None else as_dtype(np.dtype(dtype))
        self.options = options
        if self.reduction not in REDUCTIONS:
            raise ValueError(f"{type(self).__name__}: there is no reduction {reduction!r}; choose one of {', '.join(REDUCTIONS)}")

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        function = getattr(cls, "function", None)
        code = None if function is None else getattr(function, "__wrapped__", function).__code__  # errors end at a wrapper
        return (*(code.co_varnames[2 : code.co_argcount] if code else ()), "reduction", "name", "dtype")

    def call(self, y_true: Any, y_pred: Any) -> Operand:
        return type(self).function(y_true, y_pred, **self.options)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operand:
        out = reduce_loss(as_called(self.call)(y_true, y_pred), sample_weight, self.reduction)
        return out if self.dtype is None else out.astype(self.dtype)

    def __repr__(self) -> str:
        options = "".join(f", {k}={v!r}" for k, v in self.options.items())
        return f"{type(self).__name__}(reduction={self.reduction!r}{options})"


def _class(name: str, function: Callable[..., Operand], doc: str) -> type[Loss]:
    return type(name, (Loss,), {"function": staticmethod(function), "__doc__": doc, "__module__": __name__})


MeanSquaredError = _class(
    "MeanSquaredError",
    mean_squared_error,
    """The mean of squared errors.

    >>> aj.nn.losses.MeanSquaredError()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.065)
    """,
)
MeanAbsoluteError = _class(
    "MeanAbsoluteError",
    mean_absolute_error,
    """The mean of absolute errors.

    >>> aj.nn.losses.MeanAbsoluteError()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.25)
    """,
)
MeanAbsolutePercentageError = _class(
    "MeanAbsolutePercentageError",
    mean_absolute_percentage_error,
    """The mean of absolute errors, in per cent of the labels.

    >>> aj.nn.losses.MeanAbsolutePercentageError()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(100000015.0)
    """,
)
MeanSquaredLogarithmicError = _class(
    "MeanSquaredLogarithmicError",
    mean_squared_logarithmic_error,
    """The mean of squared errors of log(1 + value).

    >>> aj.nn.losses.MeanSquaredLogarithmicError()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.0298)
    """,
)
Huber = _class(
    "Huber",
    huber,
    """Half the square of errors up to `delta`, linear beyond.

    >>> aj.nn.losses.Huber()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.0325)
    """,
)
LogCosh = _class(
    "LogCosh",
    log_cosh,
    """The mean of log(cosh(error)).

    >>> aj.nn.losses.LogCosh()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.0321)
    """,
)
Poisson = _class(
    "Poisson",
    poisson,
    """The negative log-likelihood of a Poisson distribution, up to a constant.

    >>> aj.nn.losses.Poisson()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.6283)
    """,
)
Hinge = _class(
    "Hinge",
    hinge,
    """The hinge loss, for labels -1 and 1.

    >>> aj.nn.losses.Hinge()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.75)
    """,
)
SquaredHinge = _class(
    "SquaredHinge",
    squared_hinge,
    """The squared hinge loss, for labels -1 and 1.

    >>> aj.nn.losses.SquaredHinge()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.765)
    """,
)
CategoricalHinge = _class(
    "CategoricalHinge",
    categorical_hinge,
    """The hinge loss of one-hot labels.

    >>> aj.nn.losses.CategoricalHinge()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.5)
    """,
)
CosineSimilarity = _class(
    "CosineSimilarity",
    cosine_similarity,
    """The negative cosine of the angle between labels and predictions.

    >>> aj.nn.losses.CosineSimilarity()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(-0.9615)
    """,
)
KLDivergence = _class(
    "KLDivergence",
    kl_divergence,
    """The Kullback-Leibler divergence of the predicted distribution from the true one.

    >>> aj.nn.losses.KLDivergence()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.3567)
    """,
)
BinaryCrossentropy = _class(
    "BinaryCrossentropy",
    binary_crossentropy,
    """Cross-entropy of labels 0 and 1.

    >>> aj.nn.losses.BinaryCrossentropy()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.2899)
    """,
)
CategoricalCrossentropy = _class(
    "CategoricalCrossentropy",
    categorical_crossentropy,
    """Cross-entropy of one-hot labels.

    >>> aj.nn.losses.CategoricalCrossentropy()(np.array([[0.0, 1.0]]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.2513)
    """,
)
SparseCategoricalCrossentropy = _class(
    "SparseCategoricalCrossentropy",
    sparse_categorical_crossentropy,
    """Cross-entropy of labels that are class numbers.

    >>> aj.nn.losses.SparseCategoricalCrossentropy()(np.array([1]), np.array([[0.2, 0.7]])).numpy().round(4)
    np.float64(0.2513)
    """,
)
CTC = _class(
    "CTC",
    ctc,
    """Connectionist temporal classification: the loss of labels whose positions in time are not known.

    >>> aj.nn.losses.CTC()(np.array([[1, 2]]), np.zeros((1, 4, 3), "f4")).numpy().round(3)
    np.float32(1.686)
    """,
)

NAMED: dict[str, Callable[..., Operand]] = {
    "mean_squared_error": mean_squared_error, "mse": mean_squared_error, "mean_absolute_error": mean_absolute_error,
    "mae": mean_absolute_error, "mean_absolute_percentage_error": mean_absolute_percentage_error, "mape": mean_absolute_percentage_error,
    "mean_squared_logarithmic_error": mean_squared_logarithmic_error, "msle": mean_squared_logarithmic_error, "ctc": ctc,
    "huber": huber, "log_cosh": log_cosh, "logcosh": log_cosh, "poisson": poisson, "hinge": hinge, "squared_hinge": squared_hinge,
    "categorical_hinge": categorical_hinge, "cosine_similarity": cosine_similarity, "kl_divergence": kl_divergence, "kld": kl_divergence,
    "binary_crossentropy": binary_crossentropy, "categorical_crossentropy": categorical_crossentropy,
    "sparse_categorical_crossentropy": sparse_categorical_crossentropy,
}  # fmt: skip


class Reduced:
    """A loss that returns one number and takes weights of examples: the result of `get_loss`, which returns it unchanged."""

    def __init__(self, compute: Callable[[Any, Any, Any], Operand]) -> None:
        self.compute = compute

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operand:
        return self.compute(y_true, y_pred, sample_weight)


def summed(losses: Any, weights: Any = None) -> Callable[..., Operand]:
    """The sum of the losses of several outputs: a list or dict of losses, in the structure of the labels and predictions."""
    keys = list(losses) if isinstance(losses, dict) else list(range(len(losses)))
    parts = {key: get_loss(losses[key]) for key in keys}
    factors = {key: 1.0 if weights is None else float(weights[key]) for key in keys}

    def loss(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operand:
        for what, values in (("labels", y_true), ("predictions", y_pred)):
            if not isinstance(values, dict | list | tuple) or len(values) != len(keys):
                raise ShapeError(f"the losses are for the outputs {', '.join(map(str, keys))}, but the {what} have another structure")
        terms = [factors[key] * part(y_true[key], y_pred[key], sample_weight=sample_weight) for key, part in parts.items()]
        return functools.reduce(ops.add, terms)

    return Reduced(loss)


def get_loss(what: Any, weights: Any = None) -> Callable[..., Operand]:
    """A loss that returns one number: from its name, a function of (y_true, y_pred), or itself; a list or dict for several outputs.

    >>> aj.nn.losses.get_loss("mse")(np.array([[1.0]]), np.array([[3.0]]))
    Tensor(4., f64[])
    """
    if isinstance(what, list | tuple | dict):
        return summed(what, weights)
    if weights is not None:
        raise TypeError("weights of losses are for a list or a dict of losses, one for each output")
    if isinstance(what, Loss | Reduced):
        return what
    if isinstance(what, type) and issubclass(what, Loss):
        return what()
    if isinstance(what, str):
        if what not in NAMED:
            raise ValueError(f"there is no loss {what!r}; choose one of {', '.join(NAMED)}")
        what = NAMED[what]
    if not callable(what):
        raise TypeError(f"a loss is a name or a function of (y_true, y_pred), not {what!r}")
    return Reduced(lambda y_true, y_pred, sample_weight: reduce_loss(to_operands(as_called(what)(y_true, y_pred))[0], sample_weight))
