"""Layers, losses, optimizers and training. A training step written with them compiles to one native function.

model = nn.Sequential([nn.Dense(64, activation="relu"), nn.Dense(10)])
trainer = nn.Trainer(model, nn.losses.SparseCategoricalCrossentropy(from_logits=True), nn.optimizers.Adam(), metrics=["accuracy"])
history = trainer.fit(images, labels, epochs=5)
"""

# ruff: noqa: I001 - one name per line would make this module four times as long
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import NoReturn as _NoReturn

from adjit.ir.tracebacks import lookup as _lookup

from . import activations, callbacks, constraints, initializers, losses, metrics, optimizers, regularizers, schedules
from .attention import MultiHeadAttention
from .convolutional import (
    AvgPool1D, AvgPool2D, Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, DepthwiseConv2D, GlobalAvgPool1D, GlobalAvgPool2D,
    GlobalMaxPool1D, GlobalMaxPool2D, MaxPool1D, MaxPool2D, UpSampling2D, ZeroPadding2D,
)  # fmt: skip
from .core import Activation, Dense, Dropout, Embedding, Flatten, InputLayer, Lambda, Masking, Reshape, Residual, Sequential
from .calls import is_training, training_mode
from .callbacks import Callback, EarlyStopping, ModelCheckpoint
from .ctc import ctc_loss
from .functional import Input, Model
from .gradients import ExponentialMovingAverage, clip_by_global_norm, clip_by_norm, clip_by_value, global_norm
from .history import History
from .initializers import set_seed
from .lbfgs import LBFGS
from .module import Module
from .normalization import BatchNorm, LayerNorm, RMSNorm
from .recurrent import GRU, LSTM, Bidirectional, SimpleRNN
from .training import Trainer, TrainingError
from .weights import WeightsError, load, read_arrays, read_metadata, save, write_arrays

__all__ = [
    # parts
    "activations", "callbacks", "constraints", "initializers", "losses", "metrics", "optimizers", "regularizers", "schedules",
    # modules
    "Input", "Model", "Module", "is_training", "set_seed", "training_mode",
    # layers
    "Activation", "AvgPool1D", "AvgPool2D", "BatchNorm", "Bidirectional", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Dense",
    "DepthwiseConv2D", "Dropout", "Embedding", "Flatten", "GRU", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalMaxPool1D",
    "GlobalMaxPool2D", "InputLayer", "LSTM", "Lambda", "LayerNorm", "Masking", "MaxPool1D", "MaxPool2D", "MultiHeadAttention", "RMSNorm",
    "Reshape", "Residual", "Sequential", "SimpleRNN", "UpSampling2D", "ZeroPadding2D",
    # gradients
    "ExponentialMovingAverage", "LBFGS", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm",
    # losses that are not a `Loss`
    "ctc_loss",
    # training
    "Callback", "EarlyStopping", "History", "ModelCheckpoint", "Trainer", "TrainingError",
    # weights
    "WeightsError", "load", "read_arrays", "read_metadata", "save", "write_arrays",
]  # fmt: skip


_PARTS = ("optimizers", "losses", "metrics", "activations", "callbacks", "initializers", "regularizers", "schedules", "constraints")
_ELSEWHERE = {
    "Linear": "A linear layer is nn.Dense(units)",
    "Conv2d": "It is nn.Conv2D(filters, size)",
    "MaxPool2d": "It is nn.MaxPool2D(size)",
    "ReLU": "It is nn.Activation('relu'), or activation='relu' of a layer",
    "functional": "Functions are in nn.activations and nn.losses; aj.tf.nn has conv2d and pooling",
    "Parameter": "A variable is aj.Variable(value); a module owns those among its attributes",
    "ModuleList": "A list of modules is an attribute like any other",
    "CrossEntropyLoss": "It is nn.losses.SparseCategoricalCrossentropy(from_logits=True)",
    "MSELoss": "It is nn.losses.MeanSquaredError()",
    "optim": "Optimizers are in nn.optimizers",
    "layers": "Layers are in nn itself: nn.Dense(units)",
}

if not _TYPE_CHECKING:  # type checkers report missing names themselves

    @_lookup
    def __getattr__(name: str) -> _NoReturn:
        """Raise an error for a missing name; for names of other frameworks, it says what to use instead."""
        found = [part for part in _PARTS if name in dir(globals()[part])]
        from adjit.runtime.hints import hint  # noqa: PLC0415 - only for this error

        instead = f". It is nn.{found[0]}.{name}" if found else f". {_ELSEWHERE[name]}" if name in _ELSEWHERE else hint(name, __all__)
        raise AttributeError(f"module 'adjit.nn' has no attribute {name!r}{instead}")


def __dir__() -> list[str]:
    return __all__
