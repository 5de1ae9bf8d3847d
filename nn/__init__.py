"""Layers, losses, optimizers and training. A training step written with them compiles to one native function.

    model = nn.Sequential([nn.Dense(64, activation="relu"), nn.Dense(10)])
    trainer = nn.Trainer(model, nn.losses.SparseCategoricalCrossentropy(from_logits=True), nn.optimizers.Adam(), metrics=["accuracy"])
    history = trainer.fit(images, labels, epochs=5)
"""

from . import activations, initializers, losses, metrics, optimizers, schedules
from .core import Activation, Dense, Dropout, Embedding, Flatten, Input, Lambda, Reshape, Residual, Sequential
from .gradients import ExponentialMovingAverage, clip_by_global_norm, clip_by_norm, clip_by_value, global_norm
from .initializers import set_seed
from .module import Module, is_training, training_mode
from .normalization import BatchNorm, LayerNorm, RMSNorm

__all__ = [
    # parts
    "activations", "initializers", "losses", "metrics", "optimizers", "schedules",
    # modules
    "Module", "is_training", "set_seed", "training_mode",
    # layers
    "Activation", "BatchNorm", "Dense", "Dropout", "Embedding", "Flatten", "Input", "Lambda", "LayerNorm", "RMSNorm", "Reshape", "Residual",
    "Sequential",
    # gradients
    "ExponentialMovingAverage", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm",
]  # fmt: skip
