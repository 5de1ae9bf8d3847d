"""tf.keras.utils: the few functions that training needs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from adjit import nn
from adjit.ir.ops.base import Array

from .own_steps import packed, unpacked
from .saving import register_keras_serializable

__all__ = [
    "pack_x_y_sample_weight", "register_keras_serializable", "set_random_seed", "to_categorical", "unpack_x_y_sample_weight",
]  # fmt: skip


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """A batch as `fit` passes it to `train_step`."""
    return packed(x, y, sample_weight)


def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """The inputs, labels and weights of a batch; None for missing ones."""
    return unpacked(data)


def to_categorical(x: Any, num_classes: int | None = None) -> Array:
    """Class indices as one-hot rows."""
    labels = np.asarray(x, np.int64)
    if labels.shape[-1:] == (1,) and labels.ndim > 1:
        labels = labels[..., 0]
    return np.eye(int(labels.max()) + 1 if num_classes is None else num_classes, dtype=np.float32)[labels]


def set_random_seed(seed: int) -> None:
    """Seed the random numbers of Python, NumPy and adjit: models created afterwards are the same in every run."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - Keras' documented behaviour
    nn.set_seed(seed)


def __dir__() -> list[str]:
    return __all__
