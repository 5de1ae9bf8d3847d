"""Callbacks of a trainer: the base class and the usual ones."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from adjit.ir.ops.base import Array

from .weights import save

if TYPE_CHECKING:
    from .training import Trainer

__all__ = ["Callback", "EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau", "LearningRateScheduler", "CSVLogger", "LambdaCallback"]


def __dir__() -> list[str]:
    return __all__


Logs = Mapping[str, float]


class Callback:
    """Base of callbacks: override the methods of interest. `self.trainer` is the trainer; `self.trainer.stop_training = True` stops it.

    >>> class Shout(aj.nn.Callback):
    ...     def on_epoch_end(self, epoch, logs):
    ...         print("epoch", epoch)
    ...
    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", "sgd")
    >>> _ = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=2, verbose=0, callbacks=[Shout()])
    epoch 0
    epoch 1
    """

    trainer: Trainer

    def on_train_begin(self) -> None: ...
    def on_train_end(self, logs: Logs) -> None: ...
    def on_epoch_begin(self, epoch: int) -> None: ...
    def on_epoch_end(self, epoch: int, logs: Logs) -> None: ...
    def on_batch_begin(self, batch: int) -> None: ...
    def on_batch_end(self, batch: int, logs: Logs) -> None: ...
    def on_test_begin(self) -> None: ...
    def on_test_end(self, logs: Logs) -> None: ...
    def on_predict_begin(self) -> None: ...
    def on_predict_end(self) -> None: ...


class Monitor(Callback):
    """Base of callbacks that compare a value with the best so far. `mode` is "min", "max", or "auto": max for accuracies and the like."""

    def __init__(self, monitor: str = "val_loss", mode: str = "auto", min_delta: float = 0.0) -> None:
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{type(self).__name__}: mode is auto, min or max, not {mode!r}")
        rising = any(word in monitor for word in ("acc", "auc", "precision", "recall"))
        self.monitor, self.sign = monitor, -1.0 if mode == "max" or (mode == "auto" and rising) else 1.0
        self.min_delta = abs(min_delta)
        self.best = math.inf

    def on_train_begin(self) -> None:
        self.best = math.inf

    def better(self, logs: Logs, than: float) -> bool:
        """Whether the value is better than a number by more than `min_delta`."""
        return self.sign * logs[self.monitor] < self.sign * than - self.min_delta

    def improved(self, logs: Logs) -> bool:
        """Whether the value is better than the best by more than `min_delta`; if so, it becomes the best."""
        if self.monitor not in logs:
            raise KeyError(
                f"{type(self).__name__} monitors {self.monitor!r}, which is not among {', '.join(logs)}; "
                "give validation data, or monitor another value"
            )
        value = self.sign * logs[self.monitor]
        if not value < self.best - self.min_delta:
            return False
        self.best = value
        return True


class EarlyStopping(Monitor):
    """Stops when the value has not improved for `patience` epochs; `restore_best_weights` restores the best weights.

    With a `baseline`, only an epoch that is better than it resets the patience. Epochs before `start_from_epoch` do not count.

    >>> stop = aj.nn.EarlyStopping(monitor="loss", patience=1, min_delta=1e9)
    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", "sgd")
    >>> history = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=9, verbose=0, callbacks=[stop])
    >>> len(history["loss"])
    2
    """

    def __init__(
        self, monitor: str = "val_loss", patience: int = 0, min_delta: float = 0.0, mode: str = "auto", restore_best_weights: bool = False,
        baseline: float | None = None, start_from_epoch: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(monitor, mode, min_delta)
        self.patience, self.restore = patience, restore_best_weights
        self.baseline, self.start_from_epoch = baseline, start_from_epoch
        self.wait, self.stopped_epoch, self.best_epoch = 0, -1, -1
        self.weights: list[Array] | None = None

    def on_train_begin(self) -> None:
        super().on_train_begin()
        self.wait, self.stopped_epoch, self.weights = 0, -1, None

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        if epoch < self.start_from_epoch:
            return
        if self.improved(logs):
            self.best_epoch = epoch
            if self.restore:
                self.weights = self.trainer.model.get_weights()
            if self.baseline is None or self.better(logs, self.baseline):
                self.wait = 0
            else:
                self.wait += 1
            return
        self.wait += 1
        if self.wait >= max(1, self.patience):
            self.stopped_epoch = epoch
            self.trainer.stop_training = True

    def on_train_end(self, logs: Logs) -> None:
        if self.weights is not None:
            self.trainer.model.set_weights(self.weights)


class ModelCheckpoint(Monitor):
    """Saves after every epoch, or with `save_best_only` when the value improved. The path may be a template: "run-{epoch}-{val_loss:.2f}".

    The first value to improve on is `initial_value_threshold`, if that is given. With `save_freq` = n, it saves after every n steps
    instead: a run that is restored continues after the last saved step.
    The optimizer is saved as well, unless `save_weights_only`: `trainer.restore(path)` continues from there.

    >>> import tempfile, os
    >>> folder = tempfile.mkdtemp()
    >>> save = aj.nn.ModelCheckpoint(os.path.join(folder, "run-{epoch}.safetensors"))
    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", "sgd")
    >>> _ = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=2, verbose=0, callbacks=[save])
    >>> len(os.listdir(folder))
    2
    """

    first_epoch = 0  # the epoch number in the name of the first file

    def __init__(
        self, path: Any, monitor: str = "val_loss", save_best_only: bool = False, save_weights_only: bool = False, mode: str = "auto",
        save_freq: str | int = "epoch", initial_value_threshold: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(monitor, mode)
        self.initial = math.inf if initial_value_threshold is None else self.sign * initial_value_threshold
        self.path, self.best_only, self.weights_only = os.fspath(path), save_best_only, save_weights_only
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1 or save_best_only):
            raise ValueError(
                f"{type(self).__name__}: save_freq is 'epoch' or, without save_best_only, a number of steps, not {save_freq!r}"
            )
        self.every = save_freq if isinstance(save_freq, int) else None
        self.count = 0  # steps since the last save

    def on_train_begin(self) -> None:
        self.best = self.initial

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        if self.every is not None:
            return
        if self.best_only and not self.improved(logs):
            return
        self._save(epoch, logs)

    def on_batch_end(self, batch: int, logs: Logs) -> None:
        self.count += 1
        if self.every is not None and self.count >= self.every:
            self.count = 0
            self._save(self.trainer.epoch, logs)

    def _save(self, epoch: int, logs: Logs) -> None:
        path = self.path.format(epoch=epoch + self.first_epoch, **logs)
        if not self.weights_only:
            self.trainer.save(path)
        elif self.trainer.is_main:
            save(path, self.trainer.model)


class ReduceLROnPlateau(Monitor):
    """Multiplies the learning rate by `factor` when the value has not improved for `patience` epochs.

    After that, `cooldown` epochs do not count.

    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", aj.nn.optimizers.SGD(0.1))
    >>> slower = aj.nn.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, factor=0.5, min_delta=1e9)
    >>> _ = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=2, verbose=0, callbacks=[slower])
    >>> round(float(trainer.optimizer.learning_rate), 3)
    0.05
    """

    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, min_delta: float = 1e-4, min_lr: float = 0.0,
        mode: str = "auto", cooldown: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(monitor, mode, min_delta)
        self.factor, self.patience, self.min_lr, self.wait = factor, patience, min_lr, 0
        self.cooldown, self.resting = cooldown, 0

    def on_train_begin(self) -> None:
        super().on_train_begin()
        self.wait = self.resting = 0

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        if self.resting:
            self.resting, self.wait = self.resting - 1, 0
        if self.improved(logs):
            self.wait = 0
            return
        if self.resting:
            return
        self.wait += 1
        if self.wait >= self.patience:
            optimizer, self.wait, self.resting = self.trainer.optimizer, 0, self.cooldown
            if optimizer.schedule is not None:
                raise ValueError(f"{type(self).__name__}: the learning rate of {optimizer.name} follows a schedule; use one or the other")
            optimizer.learning_rate = max(self.min_lr, float(optimizer.learning_rate) * self.factor)


class LearningRateScheduler(Callback):
    """Sets the learning rate at the beginning of each epoch: `schedule(epoch)` or `schedule(epoch, rate)`.

    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", aj.nn.optimizers.SGD(0.1))
    >>> halve = aj.nn.callbacks.LearningRateScheduler(lambda epoch, rate: 0.1 / 2**epoch)
    >>> _ = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=2, verbose=0, callbacks=[halve])
    >>> round(float(trainer.optimizer.learning_rate), 3)
    0.05
    """

    def __init__(self, schedule: Callable[..., float]) -> None:
        self.schedule = schedule

    def on_epoch_begin(self, epoch: int) -> None:
        optimizer = self.trainer.optimizer
        code = getattr(self.schedule, "__code__", None)
        both = code is not None and code.co_argcount >= 2
        optimizer.learning_rate = float(self.schedule(epoch, float(optimizer.learning_rate)) if both else self.schedule(epoch))


class CSVLogger(Callback):
    """Writes a line per epoch to a CSV file.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "log.csv")
    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", "sgd")
    >>> _ = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=2, verbose=0, callbacks=[aj.nn.callbacks.CSVLogger(path)])
    >>> path.read_text().split()[0]
    'epoch,loss'
    """

    def __init__(self, path: Any, separator: str = ",", append: bool = False) -> None:
        self.path, self.separator, self.append = path, separator, append

    def on_train_begin(self) -> None:
        self.header = not (self.append and os.path.exists(self.path))
        if not self.append and self.trainer.is_main:
            open(self.path, "w", encoding="utf-8").close()

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        if not self.trainer.is_main:
            return
        with open(self.path, "a", encoding="utf-8") as file:
            if self.header:
                file.write(self.separator.join(["epoch", *logs]) + "\n")
                self.header = False
            file.write(self.separator.join([str(epoch), *(repr(float(v)) for v in logs.values())]) + "\n")


class LambdaCallback(Callback):
    """Calls functions instead of overridden methods.

    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", "sgd")
    >>> shout = aj.nn.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print("epoch", epoch))
    >>> _ = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=2, verbose=0, callbacks=[shout])
    epoch 0
    epoch 1
    """

    def __init__(
        self, on_epoch_begin: Callable[[int], Any] | None = None, on_epoch_end: Callable[[int, Logs], Any] | None = None,
        on_batch_end: Callable[[int, Logs], Any] | None = None, on_train_begin: Callable[[], Any] | None = None,
        on_train_end: Callable[[Logs], Any] | None = None, on_batch_begin: Callable[[int], Any] | None = None,
        on_test_begin: Callable[[], Any] | None = None, on_test_end: Callable[[Logs], Any] | None = None,
    ) -> None:  # fmt: skip
        for name, function in list(locals().items()):
            if name != "self" and function is not None:
                setattr(self, name, function)
