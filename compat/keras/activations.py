"""tf.keras.activations."""

from adjit.nn import activations as ours
from adjit.nn.activations import get_activation as get

from .dressing import dress_module

__all__ = [name for name in ours.__all__ if name != "get_activation"]
dress_module(ours, __all__, globals())
__all__ += ["get"]


def __dir__() -> list[str]:
    return __all__
