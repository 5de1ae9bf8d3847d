"""tf.keras.callbacks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from adjit.nn import callbacks as ours
from adjit.nn.history import History

__all__ = [
    "CSVLogger", "Callback", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "ModelCheckpoint", "ReduceLROnPlateau",
    "TerminateOnNaN",
]  # fmt: skip


class EarlyStopping(ours.EarlyStopping):
    """Stops when the value has not improved for `patience` epochs."""

    def __init__(
        self, monitor: str = "val_loss", min_delta: float = 0.0, patience: int = 0, verbose: int = 0, mode: str = "auto",
        baseline: float | None = None, restore_best_weights: bool = False, start_from_epoch: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(monitor, patience, min_delta, mode, restore_best_weights, baseline, start_from_epoch)
        self.verbose = verbose

    def on_train_end(self, logs: Mapping[str, float]) -> None:
        super().on_train_end(logs)
        if self.verbose and self.stopped_epoch >= 0:
            print(f"epoch {self.stopped_epoch + 1}: early stopping; the best was epoch {self.best_epoch + 1}")


class ModelCheckpoint(ours.ModelCheckpoint):
    """Saves after every epoch, or with `save_best_only` when the value improved. Epochs count from 1 in file names."""

    first_epoch = 1

    def __init__(
        self, filepath: Any, monitor: str = "val_loss", verbose: int = 0, save_best_only: bool = False, save_weights_only: bool = False,
        mode: str = "auto", save_freq: str | int = "epoch", initial_value_threshold: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(filepath, monitor, save_best_only, save_weights_only, mode, save_freq, initial_value_threshold)
        self.verbose = verbose

    def _save(self, epoch: int, logs: Any) -> None:
        super()._save(epoch, logs)
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: saving model to {self.path.format(epoch=epoch + 1, **logs)}")


class ReduceLROnPlateau(ours.ReduceLROnPlateau):
    """Multiplies the learning rate by `factor` when the value has not improved for `patience` epochs."""

    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0, mode: str = "auto",
        min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(monitor, factor, patience, min_delta, min_lr, mode, cooldown)
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        before = logs["learning_rate"] = float(self.trainer.optimizer.learning_rate)
        super().on_epoch_end(epoch, logs)
        after = float(self.trainer.optimizer.learning_rate)
        if self.verbose and after != before:
            print(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {after}.")


class LearningRateScheduler(ours.LearningRateScheduler):
    """Sets the learning rate at the beginning of each epoch: `schedule(epoch)` or `schedule(epoch, rate)`."""

    def __init__(self, schedule: Any, verbose: int = 0) -> None:
        super().__init__(schedule)
        self.verbose = verbose

    def on_epoch_begin(self, epoch: int) -> None:
        super().on_epoch_begin(epoch)
        if self.verbose:
            rate = float(self.trainer.optimizer.learning_rate)
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        logs["learning_rate"] = float(self.trainer.optimizer.learning_rate)


class CSVLogger(ours.CSVLogger):
    """Writes a line per epoch to a CSV file."""

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        super().__init__(filename, separator, append)


class Callback:
    """Base of user-defined callbacks: override the methods of interest; `self.model` is the model.

    Values that `on_epoch_end` adds to its `logs` are stored in the history, as in Keras.
    """

    model: Any = None
    params: Any = None

    def set_model(self, model: Any) -> None:
        self.model = model

    def set_params(self, params: Any) -> None:
        self.params = params

    def on_train_begin(self, logs: Any = None) -> None: ...
    def on_train_end(self, logs: Any = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None: ...
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None: ...
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None: ...
    def on_test_begin(self, logs: Any = None) -> None: ...
    def on_test_end(self, logs: Any = None) -> None: ...
    def on_predict_begin(self, logs: Any = None) -> None: ...
    def on_predict_end(self, logs: Any = None) -> None: ...

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """The older name of `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """The older name of `on_train_batch_end`."""


class LambdaCallback(Callback):
    """Calls functions instead of overridden methods."""

    def __init__(
        self, on_epoch_begin: Any = None, on_epoch_end: Any = None, on_train_begin: Any = None, on_train_end: Any = None,
        on_train_batch_begin: Any = None, on_train_batch_end: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        functions = {name: value for name, value in locals().items() if name.startswith("on_")} | others
        for name, function in functions.items():
            if not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback has no {name!r}")
            if function is not None:
                setattr(self, name, function)


class TerminateOnNaN(Callback):
    """Stops when the loss is NaN or infinite. Without it, `fit` raises an error that names the step and the variables."""

    def __init__(self, raise_error: bool = False) -> None:
        self.raise_error = raise_error

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if not math.isfinite((logs or {}).get("loss", 0.0)):
            if self.raise_error:
                raise RuntimeError(f"NaN or Inf loss encountered at batch {batch}")
            print(f"batch {batch}: invalid loss, terminating training")
            self.model.stop_training = True


class Adapter(ours.Callback):
    """Adapts a Keras callback to a trainer."""

    def __init__(self, inner: Callback) -> None:
        self.inner = inner
        own = (getattr(inner, "on_train_batch_end", None), getattr(inner, "on_batch_end", None))
        self.wants_results = any(getattr(method, "__func__", method) not in IDLE for method in own)

    def on_train_begin(self) -> None:
        self.inner.on_train_begin({})

    def on_train_end(self, logs: Mapping[str, float]) -> None:
        self.inner.on_train_end(dict(logs))

    def on_epoch_begin(self, epoch: int) -> None:
        self.inner.on_epoch_begin(epoch, {})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self.inner.on_epoch_end(epoch, logs)

    def on_batch_begin(self, batch: int) -> None:
        self.inner.on_train_batch_begin(batch, {})
        self.inner.on_batch_begin(batch, {})

    def on_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        if self.wants_results:  # reading the metrics after each batch takes time
            results = self.trainer.results()
            self.inner.on_train_batch_end(batch, results)
            self.inner.on_batch_end(batch, results)

    def on_test_begin(self) -> None:
        self.inner.on_test_begin({})

    def on_test_end(self, logs: Mapping[str, float]) -> None:
        self.inner.on_test_end(dict(logs))

    def on_predict_begin(self) -> None:
        self.inner.on_predict_begin({})

    def on_predict_end(self) -> None:
        self.inner.on_predict_end({})


IDLE = (Callback.on_train_batch_end, Callback.on_batch_end)  # not overridden in a callback that does not use batches


def adapted(callback: Any, model: Any, params: Any = None) -> ours.Callback:
    if isinstance(callback, ours.Callback):
        return callback
    callback.set_model(model)
    callback.set_params(params or {})
    return Adapter(callback)


def __dir__() -> list[str]:
    return __all__
