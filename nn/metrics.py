"""Metrics: values accumulated over batches. Their state is stored in variables, so updating them is part of a compiled step.

accuracy = metrics.SparseCategoricalAccuracy()
accuracy.update_state(labels, predictions)      # or accuracy(labels, predictions), which also returns the result
float(accuracy.result()); accuracy.reset_state()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import F64
from adjit.runtime.conversion import as_called
from adjit.tracer.convert import to_operand, to_operands

from . import accuracies, losses
from .confusion import AUC, Precision, Recall
from .metric import Metric

__all__ = [
    "Metric", "Mean", "Sum", "Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "SparseCategoricalAccuracy",
    "TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy", "MeanSquaredError", "RootMeanSquaredError", "MeanAbsoluteError",
    "BinaryCrossentropy", "CategoricalCrossentropy", "SparseCategoricalCrossentropy", "Precision", "Recall", "AUC", "get_metric",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class Average(Metric):
    """Base of metrics that are weighted means."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.total, self.count = self.add_state("total"), self.add_state("count")

    def gather(self, values: Any, sample_weight: Any = None) -> None:
        x = to_operand(values).astype(F64)
        if sample_weight is None:
            self.total.assign_add(ops.sum(x))
            self.count.assign_add(1.0 * x.size)
            return
        _, weight = to_operands(x, sample_weight)
        weight = weight.astype(F64)
        if weight.ndim > x.ndim and weight.type.shape[x.ndim :] == (1,) * (weight.ndim - x.ndim):
            weight = ops.reshape(weight, weight.type.shape[: x.ndim])
        if weight.type.shape != x.type.shape[: weight.ndim]:
            raise ShapeError(f"{self.name}: weights {weight.type} do not fit the values {x.type}")
        weight = ops.broadcast_to(ops.reshape(weight, weight.type.shape + (1,) * (x.ndim - weight.ndim)), x.type.shape)
        self.total.assign_add(ops.sum(x * weight))
        self.count.assign_add(ops.sum(weight))

    def result(self) -> Operand:
        count = self.count.read_operand()
        return ops.where(ops.equal(count, 0.0), 0.0, self.total / ops.where(ops.equal(count, 0.0), 1.0, count))


class Mean(Average):
    """The weighted mean of all values.

    >>> metric = aj.nn.metrics.Mean()
    >>> metric.update_state(np.array([1.0, 3.0]))
    >>> float(metric.result())
    2.0
    """

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        self.gather(values, sample_weight)


class Sum(Metric):
    """The sum of all values.

    >>> metric = aj.nn.metrics.Sum()
    >>> metric.update_state(np.array([1.0, 3.0]))
    >>> float(metric.result())
    4.0
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.total = self.add_state("total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        x = to_operand(values).astype(F64)
        self.total.assign_add(ops.sum(x if sample_weight is None else x * to_operand(sample_weight).astype(F64)))

    def result(self) -> Operand:
        return self.total.read_operand()


class MeanOf(Average):
    """The mean of a function of labels and predictions."""

    def __init__(self, function: Callable[..., Any], name: str | None = None, **options: Any) -> None:
        super().__init__(name)
        self.function, self.options = function, options

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.gather(as_called(self.function)(y_true, y_pred, **self.options), sample_weight)


# ---- accuracies


class Accuracy(MeanOf):
    """The fraction of predicted labels that are correct.

    >>> metric = aj.nn.metrics.Accuracy()
    >>> metric.update_state(np.array([1, 2, 3]), np.array([1, 2, 0]))
    >>> round(float(metric.result()), 4)
    0.6667
    """

    def __init__(self, name: str | None = "accuracy") -> None:
        super().__init__(accuracies.equal_labels, name)


class BinaryAccuracy(MeanOf):
    """The fraction of predictions on the right side of a threshold.

    >>> metric = aj.nn.metrics.BinaryAccuracy()
    >>> metric.update_state(np.array([0, 1, 1]), np.array([0.2, 0.7, 0.4]))
    >>> round(float(metric.result()), 4)
    0.6667
    """

    def __init__(self, name: str | None = "binary_accuracy", threshold: float = 0.5) -> None:
        super().__init__(accuracies.binary_accuracy, name, threshold=threshold)


class CategoricalAccuracy(MeanOf):
    """The share of examples whose largest prediction is that of the class of the one-hot label.

    >>> metric = aj.nn.metrics.CategoricalAccuracy()
    >>> metric.update_state(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.5
    """

    def __init__(self, name: str | None = "categorical_accuracy") -> None:
        super().__init__(accuracies.categorical_accuracy, name)


class SparseCategoricalAccuracy(MeanOf):
    """The share of examples whose largest prediction is that of the label's class.

    >>> metric = aj.nn.metrics.SparseCategoricalAccuracy()
    >>> metric.update_state(np.array([1, 0]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.5
    """

    def __init__(self, name: str | None = "sparse_categorical_accuracy") -> None:
        super().__init__(accuracies.sparse_categorical_accuracy, name)


class TopKCategoricalAccuracy(MeanOf):
    """The share of examples whose prediction for the class of the one-hot label is among the k largest.

    >>> metric = aj.nn.metrics.TopKCategoricalAccuracy(k=1)
    >>> metric.update_state(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.5
    """

    def __init__(self, k: int = 5, name: str | None = "top_k_categorical_accuracy") -> None:
        super().__init__(accuracies.top_k_categorical_accuracy, name, k=k)


class SparseTopKCategoricalAccuracy(MeanOf):
    """The share of examples whose prediction for the label's class is among the k largest.

    >>> metric = aj.nn.metrics.SparseTopKCategoricalAccuracy(k=1)
    >>> metric.update_state(np.array([1, 0]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.5
    """

    def __init__(self, k: int = 5, name: str | None = "sparse_top_k_categorical_accuracy") -> None:
        super().__init__(accuracies.sparse_top_k_categorical_accuracy, name, k=k)


# ---- errors


class MeanSquaredError(MeanOf):
    """The mean of squared errors.

    >>> metric = aj.nn.metrics.MeanSquaredError()
    >>> metric.update_state(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.2125
    """

    def __init__(self, name: str | None = "mean_squared_error") -> None:
        super().__init__(losses.mean_squared_error, name)


class RootMeanSquaredError(MeanSquaredError):
    """The root of the mean of squared errors.

    >>> metric = aj.nn.metrics.RootMeanSquaredError()
    >>> metric.update_state(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.461
    """

    def __init__(self, name: str | None = "root_mean_squared_error") -> None:
        super().__init__(name)

    def result(self) -> Operand:
        return ops.sqrt(super().result())


class MeanAbsoluteError(MeanOf):
    """The mean of absolute errors.

    >>> metric = aj.nn.metrics.MeanAbsoluteError()
    >>> metric.update_state(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.425
    """

    def __init__(self, name: str | None = "mean_absolute_error") -> None:
        super().__init__(losses.mean_absolute_error, name)


class BinaryCrossentropy(MeanOf):
    """Cross-entropy of labels 0 and 1.

    >>> metric = aj.nn.metrics.BinaryCrossentropy()
    >>> metric.update_state(np.array([0, 1, 1]), np.array([0.2, 0.7, 0.4]))
    >>> round(float(metric.result()), 4)
    0.4987
    """

    def __init__(self, name: str | None = "binary_crossentropy", from_logits: bool = False, label_smoothing: float = 0.0) -> None:
        super().__init__(losses.binary_crossentropy, name, from_logits=from_logits, label_smoothing=label_smoothing)


class CategoricalCrossentropy(MeanOf):
    """Cross-entropy of one-hot labels.

    >>> metric = aj.nn.metrics.CategoricalCrossentropy()
    >>> metric.update_state(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.5838
    """

    def __init__(
        self, name: str | None = "categorical_crossentropy", from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
    ) -> None:
        super().__init__(losses.categorical_crossentropy, name, from_logits=from_logits, label_smoothing=label_smoothing, axis=axis)


class SparseCategoricalCrossentropy(MeanOf):
    """Cross-entropy of labels that are class numbers.

    >>> metric = aj.nn.metrics.SparseCategoricalCrossentropy()
    >>> metric.update_state(np.array([1, 0]), np.array([[0.2, 0.7], [0.4, 0.6]]))
    >>> round(float(metric.result()), 4)
    0.5838
    """

    def __init__(
        self, name: str | None = "sparse_categorical_crossentropy", from_logits: bool = False, ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(losses.sparse_categorical_crossentropy, name, from_logits=from_logits, ignore_class=ignore_class, axis=axis)


NAMED: dict[str, Callable[[], Metric]] = {
    "binary_accuracy": BinaryAccuracy, "categorical_accuracy": CategoricalAccuracy,
    "sparse_categorical_accuracy": SparseCategoricalAccuracy, "top_k_categorical_accuracy": TopKCategoricalAccuracy,
    "sparse_top_k_categorical_accuracy": SparseTopKCategoricalAccuracy, "mse": lambda: MeanSquaredError("mse"),
    "mean_squared_error": MeanSquaredError, "mae": lambda: MeanAbsoluteError("mae"), "mean_absolute_error": MeanAbsoluteError,
    "root_mean_squared_error": RootMeanSquaredError, "binary_crossentropy": BinaryCrossentropy,
    "categorical_crossentropy": CategoricalCrossentropy, "sparse_categorical_crossentropy": SparseCategoricalCrossentropy,
    "precision": Precision, "recall": Recall, "auc": AUC,
}  # fmt: skip


class AutoAccuracy(MeanOf):
    """Binary, categorical or sparse accuracy, chosen by the shapes of labels and predictions."""

    def __init__(self, name: str | None = "accuracy") -> None:
        super().__init__(accuracies.automatic_accuracy, name)


def get_metric(what: Any) -> Metric:
    """Return a metric from its name ("accuracy" depends on the shapes), a function of (y_true, y_pred), its class, or an instance.

    >>> aj.nn.metrics.get_metric("accuracy")
    <AutoAccuracy 'accuracy', 2 numbers in 2 variables>
    """
    if isinstance(what, Metric):
        return what
    if isinstance(what, type) and issubclass(what, Metric):
        return what()
    if what in ("accuracy", "acc"):
        return AutoAccuracy(str(what))
    if isinstance(what, str) and what in NAMED:
        return NAMED[what]()
    if callable(what):
        return MeanOf(what, getattr(what, "__name__", None))
    raise ValueError(f"there is no metric {what!r}; choose one of accuracy, {', '.join(NAMED)}")
