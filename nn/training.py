"""Trainer: fits a model to data. A step (forward, backward, update and metrics) is one compiled function, called once per batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from adjit.ir.arrays import plain_array
from adjit.ir.errors import AdjitError, OutOfBoundsError
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.runtime.conversion import as_called
from adjit.runtime.function import Function
from adjit.runtime.tape import GradientTape
from adjit.tracer.convert import to_operand
from adjit.tracer.pytree import flatten, tree_map

from . import metrics as metric_classes
from .callbacks import Callback
from .data import Batches, unpacked
from .history import History
from .losses import get_loss
from .metrics import Metric, get_metric
from .module import Module, takes
from .optimizers import get_optimizer
from .progress import Progress
from .weights import WeightsError, load, read_metadata, save

__all__ = ["Trainer", "TrainingError"]


class TrainingError(AdjitError, ArithmeticError):
    """Raised when training fails: the loss is NaN or infinite."""


class Trainer:
    """Fits `model` to data with a loss (a name, a function of labels and predictions, or a `Loss`), an optimizer and metrics.

    Training is deterministic: a model created after `nn.set_seed` and a `fit` with a seed give the same bits in every run. Override
    `train_step` to change what a step does; it is compiled.
    """

    def __init__(self, model: Module, loss: Any, optimizer: Any = "adam", metrics: Iterable[Any] = (), compiled: bool = True) -> None:
        self.model = model
        self.loss = get_loss(loss)
        self.optimizer = get_optimizer(optimizer)
        self.metrics: list[Metric] = [get_metric(m) for m in metrics]
        self.mean_loss = metric_classes.Mean("loss")
        self.stop_training = False
        self.epoch = 0  # epochs completed
        self.compiled = compiled
        self.recompile()

    def recompile(self) -> None:
        """Discard the compiled steps: needed after layers were frozen, unfrozen or changed."""
        self._train = self._compiled(self.train_step)
        self._test = self._compiled(self.test_step)
        self._predict = self._compiled(self.predict_step)

    def _compiled(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return Function(step, name=step.__name__) if self.compiled else step

    # ---- steps: each is one native function

    def train_step(self, x: Any, y: Any, sample_weight: Any) -> Any:
        """Update the model with one batch and return the loss. Override it for another kind of training."""
        with GradientTape() as tape:
            predictions = self.model(x, training=True)
            loss = self.compute_loss(y, predictions, sample_weight)
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self.update_metrics(loss, y, predictions, sample_weight)
        return loss

    def test_step(self, x: Any, y: Any, sample_weight: Any) -> Any:
        predictions = self.model(x, training=False)
        loss = self.compute_loss(y, predictions, sample_weight)
        self.update_metrics(loss, y, predictions, sample_weight)
        return loss

    def predict_step(self, x: Any) -> Any:
        return self.model(x, training=False)

    def compute_loss(self, y: Any, predictions: Any, sample_weight: Any) -> Operand:
        """The loss of predictions, including penalties of regularizers and terms added by layers."""
        compute = as_called(self.loss)
        value = compute(y, predictions) if sample_weight is None else compute(y, predictions, sample_weight=sample_weight)
        loss = to_operand(value)
        if loss.shape:
            raise TypeError(f"the loss is {loss.type}, not one number: give it a reduction, or return its mean")
        for extra in self.model.losses:
            loss = loss + to_operand(extra).astype(loss.type.dtype)
        return loss

    def update_metrics(self, loss: Any, y: Any, predictions: Any, sample_weight: Any) -> None:
        examples = flatten(predictions)[0][0].shape[:1]
        self.mean_loss.update_state(loss, float(examples[0] if examples else 1))
        for metric in self.metrics:
            update = as_called(metric.update_state)
            if sample_weight is not None and takes(type(metric).update_state, "sample_weight"):
                update(y, predictions, sample_weight=sample_weight)
            else:
                update(y, predictions)

    # ---- loops

    def fit(
        self, x: Any, y: Any = None, *, batch_size: int | None = None, epochs: int = 1, validation_data: Any = None,
        validation_split: float = 0.0, validation_batch_size: int | None = None, sample_weight: Any = None,
        callbacks: Sequence[Callback] = (), shuffle: bool = True, seed: int = 0, steps_per_epoch: int | None = None,
        initial_epoch: int | None = None, verbose: int | None = None, on_nan: str = "raise",
    ) -> History:  # fmt: skip
        """Train from epoch `initial_epoch` (by default, those completed so far) to `epochs`; returns the history of losses and metrics.

        `x` is an array (or a structure of arrays) with labels `y`, or an iterable of batches (x, y). The order of examples in an epoch
        depends only on `seed` and the epoch number, so that a restored run continues as if it had not been interrupted.
        """
        if on_nan not in ("raise", "ignore"):
            raise ValueError(f"fit: on_nan is 'raise' or 'ignore', not {on_nan!r}")
        if validation_split:
            (x, y, sample_weight), validation_data = split(x, y, sample_weight, validation_split)
        batches = Batches(x, y, sample_weight, batch_size, shuffle, seed, steps_per_epoch)
        checking = None
        if validation_data is not None:
            vx, vy, vw = unpacked("validation", validation_data)
            checking = Batches(vx, vy, vw, validation_batch_size or batch_size, what="validation")
        history, logs = History(), dict[str, float]()
        self.stop_training = False
        self.epoch = self.epoch if initial_epoch is None else initial_epoch
        for callback in callbacks:
            callback.trainer = self
            callback.on_train_begin()
        while self.epoch < epochs and not self.stop_training:
            logs = self._train_epoch(batches, epochs, callbacks, verbose, on_nan, checking)
            history.append(self.epoch, logs)
            self.epoch += 1
            for callback in callbacks:
                callback.on_epoch_end(self.epoch - 1, logs)
        for callback in callbacks:
            callback.on_train_end(logs)
        return history

    def _train_epoch(
        self, batches: Batches, epochs: int, callbacks: Sequence[Callback], verbose: int | None, on_nan: str, checking: Batches | None
    ) -> dict[str, float]:
        for callback in callbacks:
            callback.on_epoch_begin(self.epoch)
        self.reset_metrics()
        progress = Progress(f"epoch {self.epoch + 1}/{epochs}", batches.length, verbose)
        for step, (x, y, weight) in enumerate(batches.epoch(self.epoch)):
            try:
                loss = self.train_on_batch(x, y, weight)
            except OutOfBoundsError as error:
                error.add_note(self._which_integers(step, x, y))
                raise
            if not math.isfinite(loss) and on_nan == "raise":
                raise TrainingError(self._why_not_finite(loss, step, x, y))
            logs = {"loss": loss}
            progress.step(logs)
            for callback in callbacks:
                callback.on_batch_end(step, logs)
        results = self.results()
        if checking is not None:
            results.update({f"val_{name}": value for name, value in self._evaluate(checking).items()})
        progress.end(results)
        return results

    def _which_integers(self, step: int, x: Any, y: Any) -> str:
        """Describe the integers of a batch: labels and inputs of embeddings are the indices that can be out of bounds."""
        arrays = [(name, plain_array(leaf)) for name, part in (("x", x), ("y", y)) for leaf in flatten(part)[0]]
        told = [f"{name} holds {a.min()} to {a.max()}" for name, a in arrays if a.dtype.kind in "iu" and a.size]
        return f"  step {step} of epoch {self.epoch + 1}: {', '.join(told)}; classes and rows of a table are numbered from 0"

    def _why_not_finite(self, loss: float, step: int, x: Any, y: Any) -> str:
        bad = [name for name, value in (("x", x), ("y", y)) if any(not finite(leaf) for leaf in flatten(value)[0])]
        broken = [path for path, variable in self.model.named_variables() if not finite(variable)]
        told = f"the loss is {loss} at step {step} of epoch {self.epoch + 1}"
        if bad:
            return f"{told}: the batch's {' and '.join(bad)} hold NaN or infinity; clean the data"
        told += f"; no longer finite are {', '.join(broken[:5])}{', ...' if len(broken) > 5 else ''}" if broken else ""
        return f"{told}; lower the learning rate, clip gradients (global_clipnorm=1.0), or pass on_nan='ignore'"

    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Perform one update and return the loss of the batch."""
        return float(self._train(x, y, sample_weight))

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The loss of a batch."""
        return float(self._test(x, y, sample_weight))

    def evaluate(
        self, x: Any, y: Any = None, *, batch_size: int | None = None, sample_weight: Any = None, verbose: int = 0
    ) -> dict[str, float]:
        """The loss and metrics on data, as a dict by name."""
        results = self._evaluate(Batches(x, y, sample_weight, batch_size, what="evaluate"))
        if verbose:
            print("  ".join(f"{name} {value:.4g}" for name, value in results.items()))
        return results

    def _evaluate(self, batches: Batches) -> dict[str, float]:
        self.reset_metrics()
        for x, y, weight in batches.epoch():
            self._test(x, y, weight)
        return self.results()

    def predict(self, x: Any, *, batch_size: int | None = None) -> Any:
        """The model's outputs for data, as arrays."""
        parts = [tree_map(np.asarray, self._predict(batch)) for batch, *_ in Batches(x, batch_size=batch_size, what="predict").epoch()]
        return tree_map(lambda *columns: np.concatenate(columns, 0), *parts)

    def reset_metrics(self) -> None:
        for metric in (self.mean_loss, *self.metrics):
            metric.reset_state()

    def results(self) -> dict[str, float]:
        return {metric.name: float(np.asarray(metric.result())) for metric in (self.mean_loss, *self.metrics)}

    # ---- checkpoints

    def save(self, path: Any, metadata: Mapping[str, str] | None = None) -> None:
        """Write the model, the optimizer and the number of completed epochs."""
        save(path, {"model": self.model, "optimizer": self.optimizer}, {**(metadata or {}), "epoch": str(self.epoch)})

    def restore(self, path: Any, example: Any = None) -> None:
        """Continue from a file written by `save`. A model that is not built yet is called once on `example`, a batch of inputs."""
        if example is not None:
            self.model(example, training=False)
        if not self.optimizer.built:
            self.optimizer.build(self.model.trainable_variables)
        epoch = read_metadata(path).get("epoch", "0")
        if not (epoch.isascii() and epoch.isdigit() and len(epoch) < 19):
            raise WeightsError(f"{path} is no file of a trainer: its epoch is {epoch[:40]!r}")
        load(path, {"model": self.model, "optimizer": self.optimizer})
        self.epoch = int(epoch)


def split(x: Any, y: Any, weight: Any, share: float) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """Split off the last `share` of arrays for validation."""
    if not 0.0 < share < 1.0:
        raise ValueError(f"fit: validation_split is a share between 0 and 1, not {share}")
    batches = Batches(x, y, weight)
    if batches.source is not None:
        raise TypeError("fit: validation_split takes arrays; give validation_data with an iterable of batches")
    at = batches.size - max(1, round(batches.size * share))
    if at < 1:
        raise ValueError(f"fit: validation_split={share} of {batches.size} examples leaves none to train on")
    first, last = tree_map(lambda a: a[:at], batches.data), tree_map(lambda a: a[at:], batches.data)
    return first, last


def finite(x: Any) -> bool:
    array: Array = np.asarray(x)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
