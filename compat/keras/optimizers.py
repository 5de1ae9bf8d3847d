"""tf.keras.optimizers."""

from adjit.nn import schedules
from adjit.nn.optimizers import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, Nadam, Optimizer, RMSprop
from adjit.nn.optimizers import get_optimizer as get

schedules.LearningRateSchedule = schedules.Schedule  # type: ignore[attr-defined] # Keras' name of the base

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Nadam", "Optimizer", "RMSprop", "get", "schedules"]
