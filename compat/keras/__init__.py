"""tf.keras: Keras' spellings of adjit.nn. Its layers, losses, optimizers and metrics, giving tensors in TensorFlow's dress.

There are `Sequential`, models by subclassing `Model`, and models of symbolic inputs: `Model(inputs, outputs)`.
"""

from . import activations, callbacks, initializers, layers, losses, metrics, models, optimizers, regularizers, utils
from .layers import Input
from .models import Model, Sequential

__version__ = "3.0.0"  # whose names and defaults these are

__all__ = [
    "Input", "Model", "Sequential", "activations", "callbacks", "initializers", "layers", "losses", "metrics", "models", "optimizers",
    "regularizers", "utils",
]  # fmt: skip
