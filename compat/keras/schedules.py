"""tf.keras.optimizers.schedules."""

from adjit.nn.schedules import *  # noqa: F403 - all of its names are Keras'
from adjit.nn.schedules import Schedule as LearningRateSchedule
from adjit.nn.schedules import __all__ as ours

__all__ = [*ours, "LearningRateSchedule"]


def __dir__() -> list[str]:
    return __all__
