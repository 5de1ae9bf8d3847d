"""tf.keras.callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjit.nn import callbacks as ours
from adjit.nn.callbacks import CSVLogger, EarlyStopping, LearningRateScheduler, ModelCheckpoint, ReduceLROnPlateau
from adjit.nn.history import History

__all__ = [
    "CSVLogger", "Callback", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "ModelCheckpoint", "ReduceLROnPlateau",
    "TerminateOnNaN",
]  # fmt: skip


class Callback:
    """Base of your own listeners: override what is of interest; `self.model` is the model."""

    model: Any = None

    def set_model(self, model: Any) -> None:
        self.model = model

    def on_train_begin(self, logs: Any = None) -> None: ...
    def on_train_end(self, logs: Any = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None: ...
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None: ...


class LambdaCallback(Callback):
    """Functions in place of methods."""

    def __init__(self, **functions: Any) -> None:
        for name, function in functions.items():
            if not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback has no {name!r}")
            if function is not None:
                setattr(self, name, function)


class TerminateOnNaN(Callback):
    """Nothing to do: `fit` raises when the loss is NaN, and says where."""


class Adapter(ours.Callback):
    """A listener of Keras' kind, for a trainer."""

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
