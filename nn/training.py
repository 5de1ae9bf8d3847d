"""Trainer: fits a model to data. A step (forward, backward, update and metrics) is one compiled function, called once per batch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.arrays import plain_array
from adjit.ir.errors import AdjitError, OutOfBoundsError
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.ir.tracebacks import boundary
from adjit.runtime.conversion import as_called
from adjit.runtime.tape import GradientTape
from adjit.runtime.variable import Variable
from adjit.tracer.convert import to_operand
from adjit.tracer.frames import user_level
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
from .steps import CompiledStep
from .weights import WeightsError, load, read_metadata, save

if TYPE_CHECKING:
    from .ranks import Ranks

__all__ = ["Trainer", "TrainingError"]


class TrainingError(AdjitError, ArithmeticError):
    """Raised when training fails: the loss is NaN or infinite."""


class Trainer:
    """Fits `model` to data with a loss (a name, a function of labels and predictions, or a `Loss`), an optimizer and metrics.

    Training is deterministic: a model created after `nn.set_seed` and a `fit` with a seed give the same bits in every run. Override
    `train_step` to change what a step does; it is compiled: once for batches of `batch_size` examples, and once for all other sizes.

    With `distributed`, all ranks of an MPI program train one model: each takes its part of every batch, and the step averages gradients and
    metrics over the ranks (`adjit.distributed`). Weights start as those of rank 0, which alone prints and saves. With `shards`, results do
    not depend on the number of ranks. With `shard_optimizer`, each rank keeps and updates a slice of the optimizer's state.

    >>> x = np.linspace(-1, 1, 32, dtype="f4").reshape(32, 1)
    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", aj.nn.optimizers.SGD(0.5))
    >>> history = trainer.fit(x, 3 * x + 1, epochs=50, verbose=0)
    >>> history["loss"][-1] < 1e-3
    True
    """

    @boundary
    def __init__(
        self, model: Module, loss: Any, optimizer: Any = "adam", metrics: Iterable[Any] = (), compiled: bool = True,
        distributed: bool = False, shards: int | None = None, shard_optimizer: bool = False,
    ) -> None:  # fmt: skip
        self.model = model
        self.loss = get_loss(loss)
        self.optimizer = get_optimizer(optimizer)
        self.metrics: list[Metric] = [get_metric(m) for m in metrics]
        self.unweighted: Sequence[Metric] = ()  # the metrics that ignore the weights of examples
        self.mean_loss = metric_classes.Mean("loss")
        self.stop_training = False
        self.epoch = 0  # epochs completed
        self.step = 0  # batches completed in this epoch
        self.compiled = compiled
        self._resumes = False  # whether the next `fit` continues in the middle of an epoch
        self._ranks = self._joined(distributed, shards, shard_optimizer)
        self._synchronized = self._ranks is None
        self.recompile()

    def _joined(self, distributed: bool, shards: int | None, shard_optimizer: bool) -> Ranks | None:
        if not distributed:
            if shards is not None or shard_optimizer:
                raise ValueError(f"Trainer: {'shard_optimizer' if shards is None else 'shards'} is an option of distributed=True")
            return None
        from .ranks import Ranks  # noqa: PLC0415 - few programs have several ranks

        ranks = Ranks(shards)
        if shard_optimizer:
            ranks.shard(self.optimizer)
        return ranks

    @property
    def is_main(self) -> bool:
        """Whether this process prints and saves: one of several ranks does."""
        return self._ranks is None or self._ranks.rank == 0

    def recompile(self) -> None:
        """Discard the compiled steps: needed after layers were frozen, unfrozen or changed."""
        self._train = self._compiled(self.train_step)
        self._test = self._compiled(self.test_step)
        self._predict = self._compiled(self.predict_step)

    def _compiled(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return CompiledStep(step, dynamic=self._ranks is None) if self.compiled else step

    def _expect(self, step: Callable[..., Any], size: int) -> None:
        """Let a compiled step have a program of its own for batches of this size."""
        if isinstance(step, CompiledStep):
            step.usual = size

    # ---- steps: each is one native function

    def train_step(self, x: Any, y: Any, sample_weight: Any) -> Any:
        """Update the model with one batch and return the loss. Override it for another kind of training."""
        loss, gradients = self.averaged(self.loss_and_gradients, x, y, sample_weight)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
        return loss

    def loss_and_gradients(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, list[Any]]:
        """Return the loss of a batch and its gradients with respect to the trainable variables; also updates the metrics."""
        with GradientTape() as tape:
            predictions = self.model(x, training=True)
            loss = self.compute_loss(y, predictions, sample_weight)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.update_metrics(loss, y, predictions, sample_weight)
        return loss, gradients

    def averaged(self, fn: Callable[..., Any], *batch: Any) -> Any:
        """The result of `fn` for a batch: with `distributed`, the mean over all ranks, each of which has a part of it."""
        if self._ranks is None:
            return fn(*batch)
        return self._ranks.averaged(fn, self._sums(), batch)

    def _sums(self) -> list[Variable]:
        return [variable for metric in (self.mean_loss, *self.metrics) for variable in metric.sums]

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
        self.mean_loss.update_state(loss, 1.0 * examples[0] if examples else 1.0)
        for metric in self.metrics:
            update = as_called(metric.update_state)
            weighs = sample_weight is not None and not any(metric is each for each in self.unweighted)
            if weighs and takes(type(metric).update_state, "sample_weight"):
                update(y, predictions, sample_weight=sample_weight)
            else:
                update(y, predictions)

    # ---- loops

    @boundary
    def fit(
        self, x: Any, y: Any = None, *, batch_size: int | None = None, epochs: int = 1, validation_data: Any = None,
        validation_split: float = 0.0, validation_batch_size: int | None = None, sample_weight: Any = None,
        callbacks: Sequence[Callback] = (), shuffle: bool = True, seed: int = 0, steps_per_epoch: int | None = None,
        initial_epoch: int | None = None, verbose: int | None = None, on_nan: str = "raise", validation_steps: int | None = None,
        validation_freq: int | Iterable[int] = 1,
    ) -> History:  # fmt: skip
        """Train from epoch `initial_epoch` (by default, those completed so far) to `epochs`; returns the history of losses and metrics.

        `x` is an array (or a structure of arrays) with labels `y`, or an iterable of batches (x, y). The order of examples in an epoch
        depends only on `seed` and the epoch number, so that a restored run continues as if it had not been interrupted.

        Validation takes place after every `validation_freq` epochs, or after those listed in it, counted from 1. It takes
        `validation_steps` batches, if that is given.

        With `distributed`, all ranks are given the same data. `batch_size` is that of all ranks together; a smaller last batch is shortened
        so that it can be cut into equal parts.
        """
        if on_nan not in ("raise", "ignore"):
            raise ValueError(f"fit: on_nan is 'raise' or 'ignore', not {on_nan!r}")
        if validation_split:
            (x, y, sample_weight), validation_data = split(x, y, sample_weight, validation_split)
        parts = None if self._ranks is None else self._ranks.parts
        batches = Batches(x, y, sample_weight, batch_size, shuffle, seed, steps_per_epoch, parts=parts)
        checking = None
        if validation_data is not None:
            vx, vy, vw = unpacked("validation", validation_data)
            checking = Batches(vx, vy, vw, validation_batch_size or batch_size, what="validation", steps=validation_steps)
        validated = epochs_of(validation_freq)
        if batches.source is None:
            self._expect(self._train, min(batches.batch_size, batches.size))
        history, logs = History(), dict[str, float]()
        self.stop_training = False
        if initial_epoch is None and self.epoch >= epochs > 0:
            warnings.warn(
                f"fit: epochs={epochs} is the number of the last epoch, and {self.epoch} have been trained: nothing is done; give a larger "
                "number, or initial_epoch=0 to count anew",
                stacklevel=user_level(),
            )
        self.epoch = self.epoch if initial_epoch is None else initial_epoch
        self.step, self._resumes = (self.step if self._resumes and initial_epoch is None else 0), False
        for callback in callbacks:
            callback.trainer = self
            callback.on_train_begin()
        while self.epoch < epochs and not self.stop_training:
            checked = checking if validated(self.epoch + 1) else None
            logs = self._train_epoch(batches, epochs, callbacks, verbose, on_nan, checked)
            self.epoch, self.step = self.epoch + 1, 0
            for callback in callbacks:
                callback.on_epoch_end(self.epoch - 1, logs)
            history.append(self.epoch - 1, logs)  # including values that callbacks have added
        self.optimizer.finalize_variable_values(self.model.trainable_variables)
        for callback in callbacks:
            callback.on_train_end(logs)
        return history

    def _train_epoch(
        self, batches: Batches, epochs: int, callbacks: Sequence[Callback], verbose: int | None, on_nan: str, checking: Batches | None
    ) -> dict[str, float]:
        for callback in callbacks:
            callback.on_epoch_begin(self.epoch)
        first = self.step
        if not first:
            self.reset_metrics()
        progress = Progress(f"epoch {self.epoch + 1}/{epochs}", batches.length, verbose if self.is_main else 0, first)
        for step, (x, y, weight) in enumerate(batches.epoch(self.epoch, first), first):
            for callback in callbacks:
                callback.on_batch_begin(step)
            try:
                loss = self.train_on_batch(x, y, weight)
            except OutOfBoundsError as error:
                error.add_note(self._which_integers(step, x, y))
                raise
            if not math.isfinite(loss) and on_nan == "raise":
                raise TrainingError(self._why_not_finite(loss, step, x, y))
            logs = {"loss": loss}
            self.step = step + 1
            progress.step(logs)
            for callback in callbacks:
                callback.on_batch_end(step, logs)
            if self.stop_training:
                break
        results = self.results()
        if checking is not None:
            results.update({f"val_{name}": value for name, value in self._evaluate(checking, callbacks).items()})
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
            return f"{told}: NaN or infinity in {' and '.join(bad)} of the batch; clean the data"
        told += f"; no longer finite are {', '.join(broken[:5])}{', ...' if len(broken) > 5 else ''}" if broken else ""
        return f"{told}; lower the learning rate, clip gradients (global_clipnorm=1.0), or pass on_nan='ignore'"

    @boundary
    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Perform one update and return the loss of the batch. With `distributed`, `x` and `y` are this rank's part of it."""
        if not self._synchronized:
            self._synchronize(x)
        return self.loss_of(self._train(x, y, sample_weight))

    def loss_of(self, returned: Any) -> float:
        """The loss of a batch, from what `train_step` or `test_step` returned."""
        return float(returned)

    @boundary
    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The loss of a batch; with `distributed`, of this rank's alone."""
        return self.loss_of(self._test(x, y, sample_weight))

    @boundary
    def evaluate(
        self, x: Any, y: Any = None, *, batch_size: int | None = None, sample_weight: Any = None, verbose: int = 0,
        callbacks: Sequence[Callback] = (), steps: int | None = None,
    ) -> dict[str, float]:  # fmt: skip
        """The loss and metrics on data (its first `steps` batches), as a dict by name."""
        for callback in callbacks:
            callback.trainer = self
        results = self._evaluate(Batches(x, y, sample_weight, batch_size, what="evaluate", steps=steps), callbacks)
        if verbose:
            print("  ".join(f"{name} {value:.4g}" for name, value in results.items()))
        return results

    def _evaluate(self, batches: Batches, callbacks: Sequence[Callback] = ()) -> dict[str, float]:
        for callback in callbacks:
            callback.on_test_begin()
        results = self._tested(batches)
        for callback in callbacks:
            callback.on_test_end(results)
        return results

    def _tested(self, batches: Batches) -> dict[str, float]:
        self.reset_metrics()
        if batches.source is None:
            self._expect(self._test, batches.batch_size)
        if self._ranks is not None:
            return self._evaluate_together(batches, self._ranks)
        for x, y, weight in batches.epoch():
            self.test_on_batch(x, y, weight)
        return self.results()

    def _evaluate_together(self, batches: Batches, ranks: Ranks) -> dict[str, float]:
        """Each rank takes some of the batches; what they add to the metrics is summed in the order of the batches."""
        rows = []
        for k, (x, y, weight) in enumerate(batches.epoch()):
            if not self._synchronized:
                self._synchronize(x)
            if k % ranks.size == ranks.rank:
                self._test(x, y, weight)
                rows.append((k, [v.numpy().copy() for v in self._sums()]))
                self.reset_metrics()
        for variable, total in zip(self._sums(), ranks.total(rows) or (), strict=True):
            variable.assign(total)
        return self.results()

    def _synchronize(self, x: Any) -> None:
        """Create the variables, if they do not exist yet, and give them the values of rank 0."""
        assert self._ranks is not None
        if not self.model.built or not self.model.variables:
            self.model(tree_map(lambda a: a[:1], x), training=False)
        if not self.optimizer.built and self.model.trainable_variables:
            self.optimizer.build(self.model.trainable_variables)
        with self._ranks.whole_state(self.optimizer):
            self._ranks.synchronize(self._saved(True))
        self._synchronized = True

    @boundary
    def predict(
        self, x: Any, *, batch_size: int | None = None, steps: int | None = None, callbacks: Sequence[Callback] = ()
    ) -> Any:  # fmt: skip
        """The model's outputs for data (its first `steps` batches), as arrays."""
        batches = Batches(x, batch_size=batch_size, what="predict", steps=steps)
        if batches.source is None:
            self._expect(self._predict, batches.batch_size)
        for callback in callbacks:
            callback.trainer = self
            callback.on_predict_begin()
        parts = [tree_map(np.asarray, self._predict(batch)) for batch, *_ in batches.epoch()]
        for callback in callbacks:
            callback.on_predict_end()
        return tree_map(lambda *columns: np.concatenate(columns, 0), *parts)

    def reset_metrics(self) -> None:
        for metric in (self.mean_loss, *self.metrics):
            metric.reset_state()

    def results(self) -> dict[str, float]:
        return {metric.name: float(np.asarray(metric.result())) for metric in (self.mean_loss, *self.metrics)}

    # ---- checkpoints

    def _saved(self, metrics: bool) -> dict[str, Any]:
        """The contents of a file; metrics in the middle of an epoch only."""
        out: dict[str, Any] = {"model": self.model, "optimizer": self.optimizer}
        return {**out, "metrics": [self.mean_loss, *self.metrics]} if metrics else out

    @boundary
    def save(self, path: Any, metadata: Mapping[str, str] | None = None) -> None:
        """Write the model, the optimizer and the position: epochs completed, and steps and metrics of the current epoch.

        With `distributed`, rank 0 writes the file; with `shard_optimizer`, all ranks must call this, since rank 0 collects the state.
        """
        if self._ranks is None:
            self._save(path, metadata)
        else:
            with self._ranks.whole_state(self.optimizer):
                if self.is_main:
                    self._save(path, metadata)

    def _save(self, path: Any, metadata: Mapping[str, str] | None) -> None:
        position = {"epoch": str(self.epoch), "step": str(self.step)}
        save(path, self._saved(self.step > 0), {**(metadata or {}), **position})

    @boundary
    def restore(self, path: Any, example: Any = None) -> None:
        """Continue from a file written by `save`. A model that is not built yet is called once on `example`, a batch of inputs.

        With `distributed`, rank 0 reads the file.
        """
        if example is not None:
            self.model(example, training=False)
        if not self.optimizer.built:
            self.optimizer.build(self.model.trainable_variables)
        if self._ranks is None:
            position = self._restored(path)
        else:
            with self._ranks.whole_state(self.optimizer):
                position = self._ranks.agreed(self._attempted(path) if self.is_main else None)
                self._ranks.synchronize(self._saved(True))
            self._synchronized = True
        self.epoch, self.step = position
        self._resumes = True

    def _attempted(self, path: Any) -> Any:
        """Return the position in training, or the error, which all ranks raise."""
        try:
            return self._restored(path)
        except Exception as error:
            return error

    def _restored(self, path: Any) -> tuple[int, int]:
        metadata = read_metadata(path)
        epoch, step = (_number(path, name, metadata.get(name, "0")) for name in ("epoch", "step"))
        load(path, self._saved(step > 0))
        return epoch, step


def _number(path: Any, name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise WeightsError(f"{path} is not a trainer's file: its {name} is {text[:40]!r}")
    return int(text)


def epochs_of(frequency: int | Iterable[int]) -> Callable[[int], bool]:
    """Whether an epoch, counted from 1, is one of every `frequency` epochs, or among those listed."""
    if not isinstance(frequency, int):
        return frozenset(frequency).__contains__
    if frequency < 1:
        raise ValueError(f"fit: validation_freq is a positive number of epochs, or a list of epochs, not {frequency}")
    return lambda epoch: epoch % frequency == 0


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
