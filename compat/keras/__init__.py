"""tf.keras: adjit.nn under Keras' names. Its layers, losses, optimizers and metrics return tensors with TensorFlow's interface.

Supports `Sequential`, models by subclassing `Model`, and models from symbolic inputs: `Model(inputs, outputs)`.
"""

from . import activations, callbacks, composed, constraints, initializers, layers, losses, metrics, models, optimizers, regularizers, utils
from .layers import Input
from .models import Model, Sequential

__version__ = "3.0.0"  # the version whose names and defaults are mirrored

for _name in composed.__all__:
    setattr(layers, _name, getattr(composed, _name))

__all__ = [
    "Input", "Model", "Sequential", "activations", "callbacks", "constraints", "initializers", "layers", "losses", "metrics", "models",
    "optimizers", "regularizers", "utils",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
