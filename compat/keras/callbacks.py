"""tf.keras.callbacks."""

from __future__ import annotations

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
        restore_best_weights: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(monitor, patience, min_delta, mode, restore_best_weights)
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
        mode: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(filepath, monitor, save_best_only, save_weights_only, mode)


class ReduceLROnPlateau(ours.ReduceLROnPlateau):
    """Multiplies the learning rate by `factor` when the value has not improved for `patience` epochs."""

    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0, mode: str = "auto",
        min_delta: float = 1e-4, min_lr: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(monitor, factor, patience, min_delta, min_lr, mode)


class LearningRateScheduler(ours.LearningRateScheduler):
    """Sets the learning rate at the beginning of each epoch: `schedule(epoch)` or `schedule(epoch, rate)`."""

    def __init__(self, schedule: Any, verbose: int = 0) -> None:
        super().__init__(schedule)


class CSVLogger(ours.CSVLogger):
    """Writes a line per epoch to a CSV file."""

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        super().__init__(filename, separator, append)


class Callback:
    """Base of user-defined callbacks: override the methods of interest; `self.model` is the model."""

    model: Any = None

    def set_model(self, model: Any) -> None:
        self.model = model

    def on_train_begin(self, logs: Any = None) -> None: ...
    def on_train_end(self, logs: Any = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None: ...
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None: ...


class LambdaCallback(Callback):
    """Calls functions instead of overridden methods."""

    def __init__(self, **functions: Any) -> None:
        for name, function in functions.items():
            if not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback has no {name!r}")
            if function is not None:
                setattr(self, name, function)


class TerminateOnNaN(Callback):
    """Does nothing: `fit` raises when the loss is NaN, and says where."""


class Adapter(ours.Callback):
    """Adapts a Keras callback to a trainer."""

    def __init__(self, inner: Callback) -> None:
        self.inner = inner

    def on_train_begin(self) -> None:
        self.inner.on_train_begin({})

    def on_train_end(self, logs: Mapping[str, float]) -> None:
        self.inner.on_train_end(dict(logs))

    def on_epoch_begin(self, epoch: int) -> None:
        self.inner.on_epoch_begin(epoch, {})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self.inner.on_epoch_end(epoch, dict(logs))

    def on_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        self.inner.on_train_batch_end(batch, dict(logs))


def adapted(callback: Any, model: Any) -> ours.Callback:
    if isinstance(callback, ours.Callback):
        return callback
    callback.set_model(model)
    return Adapter(callback)
