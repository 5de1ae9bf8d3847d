"""Per-thread state while modules call each other: the training mode, and terms added to the loss."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["added_losses", "collecting_losses", "is_training", "training_mode"]


class _Calls(threading.local):
    training: bool | None = None
    losses: list[Any] | None = None  # terms that layers have added to the loss since the outermost call began


_calls = _Calls()


def is_training() -> bool:
    """Return whether the current call is in training mode: the value of the nearest enclosing `training=`, or False.

    >>> aj.nn.is_training()
    False
    >>> with aj.nn.training_mode(True):
    ...     print(aj.nn.is_training())
    ...
    True
    """
    return bool(_calls.training)


@contextmanager
def training_mode(training: bool | None) -> Iterator[None]:
    """Return a context in which module calls are in training mode, or not; None leaves the mode unchanged.

    >>> with aj.nn.training_mode(True):
    ...     print(aj.nn.is_training())
    True
    """
    before = _calls.training
    if training is not None:
        _calls.training = bool(training)
    try:
        yield
    finally:
        _calls.training = before


def added_losses() -> list[Any] | None:
    """The list to which layers add loss terms; None outside any call."""
    return _calls.losses


@contextmanager
def collecting_losses() -> Iterator[list[Any] | None]:
    """Collect the loss terms added within the outermost call; None for nested calls."""
    if _calls.losses is not None:
        yield None
        return
    _calls.losses = []
    try:
        yield _calls.losses
    finally:
        _calls.losses = None
