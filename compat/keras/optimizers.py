"""tf.keras.optimizers."""

from adjit.nn.optimizers import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, Nadam, Optimizer, RMSprop
from adjit.nn.optimizers import get_optimizer as get

from . import schedules

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Nadam", "Optimizer", "RMSprop", "get", "schedules"]


def __dir__() -> list[str]:
    return __all__
