"""The positional parameters of Keras' layers and metrics, where those of `adjit.nn` have another order."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

LAYERS: dict[str, str] = {
    **dict.fromkeys(["AveragePooling1D", "AveragePooling2D", "MaxPooling1D", "MaxPooling2D"], "pool_size strides padding data_format name"),
    "BatchNormalization": (
        "axis momentum epsilon center scale beta_initializer gamma_initializer moving_mean_initializer "
        "moving_variance_initializer beta_regularizer gamma_regularizer beta_constraint gamma_constraint renorm renorm_clipping "
        "renorm_momentum synchronized"
    ),
    **dict.fromkeys(
        ["Conv1D", "Conv2D"],
        "filters kernel_size strides padding data_format dilation_rate groups activation use_bias kernel_initializer "
        "bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint",
    ),
    **dict.fromkeys(
        ["Conv1DTranspose", "Conv2DTranspose"],
        "filters kernel_size strides padding output_padding data_format dilation_rate activation use_bias kernel_initializer "
        "bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint",
    ),
    "Dense": (
        "units activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer "
        "kernel_constraint bias_constraint lora_rank lora_alpha quantization_config"
    ),
    "Embedding": (
        "input_dim output_dim embeddings_initializer embeddings_regularizer embeddings_constraint mask_zero weights lora_rank "
        "lora_alpha quantization_config"
    ),
    "Flatten": "data_format",
    "GRU": (
        "units activation recurrent_activation use_bias kernel_initializer recurrent_initializer bias_initializer "
        "kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint "
        "bias_constraint dropout recurrent_dropout seed return_sequences return_state go_backwards stateful unroll reset_after "
        "use_cudnn"
    ),
    **dict.fromkeys(
        ["GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D"], "data_format keepdims"
    ),
    "LSTM": (
        "units activation recurrent_activation use_bias kernel_initializer recurrent_initializer bias_initializer "
        "unit_forget_bias kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint "
        "recurrent_constraint bias_constraint dropout recurrent_dropout seed return_sequences return_state go_backwards stateful "
        "unroll use_cudnn"
    ),
    "LayerNormalization": (
        "axis epsilon center scale beta_initializer gamma_initializer beta_regularizer gamma_regularizer beta_constraint gamma_constraint"
    ),
    "MultiHeadAttention": (
        "num_heads key_dim value_dim dropout use_bias output_shape attention_axes sliding_window flash_attention "
        "kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer kernel_constraint "
        "bias_constraint use_gate seed"
    ),
    "SimpleRNN": (
        "units activation use_bias kernel_initializer recurrent_initializer bias_initializer kernel_regularizer "
        "recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint bias_constraint "
        "dropout recurrent_dropout return_sequences return_state go_backwards stateful unroll seed"
    ),
    "UpSampling2D": "size data_format interpolation",
    "ZeroPadding2D": "padding data_format",
    "DepthwiseConv2D": (
        "kernel_size strides padding depth_multiplier data_format dilation_rate activation use_bias depthwise_initializer "
        "bias_initializer depthwise_regularizer bias_regularizer activity_regularizer depthwise_constraint bias_constraint"
    ),
    "SeparableConv2D": (
        "filters kernel_size strides padding data_format dilation_rate depth_multiplier activation use_bias depthwise_initializer "
        "pointwise_initializer bias_initializer depthwise_regularizer pointwise_regularizer bias_regularizer activity_regularizer "
        "depthwise_constraint pointwise_constraint bias_constraint"
    ),
}
METRICS: dict[str, str] = {
    "AUC": "num_thresholds curve summation_method name dtype thresholds multi_label num_labels label_weights from_logits",
    **dict.fromkeys(
        [
            "Accuracy",
            "CategoricalAccuracy",
            "Mean",
            "MeanAbsoluteError",
            "MeanSquaredError",
            "RootMeanSquaredError",
            "SparseCategoricalAccuracy",
            "Sum",
        ],
        "name dtype",
    ),
    "BinaryAccuracy": "name dtype threshold",
    "BinaryCrossentropy": "name dtype from_logits label_smoothing",
    "CategoricalCrossentropy": "name dtype from_logits label_smoothing axis",
    "Metric": "dtype name",
    **dict.fromkeys(["Precision", "Recall"], "thresholds top_k class_id name dtype"),
    "SparseCategoricalCrossentropy": "name dtype from_logits ignore_class axis",
    "SparseTopKCategoricalAccuracy": "k name dtype from_sorted_ids",
    "TopKCategoricalAccuracy": "k name dtype",
}


def in_order(owner: str, names: str, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Positional arguments by the names that Keras gives them, with the options."""
    order = names.split()
    if len(args) > len(order):
        raise TypeError(f"{owner} takes {', '.join(order)} by position, but {len(args)} values were given")
    given = dict(zip(order, args, strict=False))
    for name in given.keys() & options.keys():
        raise TypeError(f"{owner} is given {name!r} twice, by position and by name")
    return {**given, **options}


def ordered(name: str, names: str, init: Callable[..., None], shown: Callable[..., None] | None = None) -> Callable[..., None]:
    """Wrap `init`, which takes all arguments by name, to accept Keras' positional arguments. `shown` has the signature to display."""
    shown = shown or init

    @functools.wraps(shown)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        init(self, **in_order(name, names, args, options))

    __init__.__signature__ = reordered(inspect.signature(shown), names.split())  # type: ignore[attr-defined] # shown by help()
    return __init__


def in_keras_order(cls: type[Any]) -> Any:
    """Class decorator: positional arguments in the order of Keras."""
    cls.__init__ = ordered(cls.__name__, LAYERS[cls.__name__], cls.__init__)
    return cls


def reordered(own: inspect.Signature, order: list[str]) -> inspect.Signature:
    """A signature with these parameters first; all others are keyword-only."""
    first, *parameters = own.parameters.values()
    mine = {p.name: p for p in parameters if p.kind is not p.VAR_KEYWORD}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    out = [mine[n].replace(kind=kind) if n in mine else inspect.Parameter(n, kind, default=None) for n in order]
    more = [p.replace(kind=p.KEYWORD_ONLY) for name, p in mine.items() if name not in order]
    return own.replace(parameters=[first, *out, *more, *(p for p in parameters if p.kind is p.VAR_KEYWORD)])
