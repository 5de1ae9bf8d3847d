"""What is under way on a thread while modules call each other: whether it is training, and what was added to the loss."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["added_losses", "collecting_losses", "is_training", "training_mode"]


class _Calls(threading.local):
    training: bool | None = None
    losses: list[Any] | None = None  # what layers have added to the loss, since the outermost call began


_calls = _Calls()


def is_training() -> bool:
    """Whether the call under way is for training: what the nearest call with `training=` said, else False."""
    return bool(_calls.training)


@contextmanager
def training_mode(training: bool | None) -> Iterator[None]:
    """Calls of modules inside are for training, or not; None leaves it as it is."""
    before = _calls.training
    if training is not None:
        _calls.training = bool(training)
    try:
        yield
    finally:
        _calls.training = before


def added_losses() -> list[Any] | None:
    """Where layers add to the loss; None outside of any call."""
    return _calls.losses


@contextmanager
def collecting_losses() -> Iterator[list[Any] | None]:
    """What is added to the loss inside, for the outermost call; None for those within it."""
    if _calls.losses is not None:
        yield None
        return
    _calls.losses = []
    try:
        yield _calls.losses
    finally:
        _calls.losses = None
