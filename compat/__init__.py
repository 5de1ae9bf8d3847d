"""adjit.tf: TensorFlow's API. Use `from adjit import tf` in place of `import tensorflow as tf`.

Tensors, variables, tapes and functions are adjit's own, with TensorFlow's interface: they print like TensorFlow's, Python floats are
float32, dtypes are never promoted, and `tf.function` traces once for each value of a Python argument. This module lists the names; parts of
TensorFlow that are missing raise an error that says so.
"""

# ruff: noqa: I001 - one name per line would make this module four times as long
from __future__ import annotations

import contextlib as _contextlib
import functools as _functools
import importlib as _importlib
from typing import Any as _Any

from adjit.ir.active import outside_builders as _outside_builders
from adjit.ir.tracebacks import lookup as _lookup
from adjit.runtime.checkpoint import checkpoint as _checkpoint
from adjit.runtime.custom_gradient import custom_gradient as _custom_gradient
from adjit.runtime.recording import suspended as _suspended
from adjit.tracer.trace import current_trace as _current_trace

from . import autodiff as autodiff
from . import autograph as autograph
from . import config as config
from . import data as data
from . import debugging as debugging
from . import dtypes as dtypes
from . import errors as errors
from . import linalg as linalg
from . import math as math
from . import nest as nest
from . import nn as nn
from . import random as random
from . import signal as signal
from . import types as types
from .array import __all__ as _array_names
from .array import *  # noqa: F403 - its `__all__` are names of `tf`
from .array import slice_ as slice
from .autodiff import gradients, hessians
from .callback import numpy_function, py_function
from .control import case, cond, foldl, foldr, map_fn, scan, switch_case, vectorized_map, while_loop
from .debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank
from .dtypes import DType, as_dtype, complex64, complex128, float16, float32, float64, half
from .dtypes import int8, int16, int32, int64, uint8, uint16, uint32, uint64
from .dtypes import bool_ as bool
from .dtypes import float64 as double
from .errors import missing as _missing
from .errors import out_of_scope as _out_of_scope
from .function import function
from .linalg import einsum, matmul, norm, tensordot
from .math import (
    abs, acos, acosh, add, add_n, argmax, argmin, asin, asinh, atan, atan2, atanh, cast, clip_by_global_norm, clip_by_norm, clip_by_value,
    cos, cosh, cumsum, divide, equal, exp, floor, greater, greater_equal, less, less_equal, logical_and, logical_not, logical_or, maximum,
    minimum, multiply, negative, not_equal, pow, reduce_all, reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min,
    reduce_prod, reduce_sum, round, saturate_cast, scalar_mul, sigmoid, sign, sin, sinh, sqrt, square, subtract, tan, tanh, truediv,
)  # fmt: skip
from .module import Module
from .naming import name_scope
from .scattering import IndexedSlices
from .segments import dynamic_partition, dynamic_stitch
from .printing import print
from .shape import TensorShape
from .specs import TensorSpec
from .special import complex
from .tape import GradientTape, UnconnectedGradients
from .tensor import Tensor, convert_to_tensor
from .tensor import dress as _dress
from .tensor_array import TensorArray
from .text import string
from .variable import Variable, VariableAggregation as VariableAggregation, VariableSynchronization as VariableSynchronization

newaxis = None
__version__ = "2.21.0+adjit"  # the TensorFlow version whose behaviour is mirrored


def custom_gradient(f: _Any = None) -> _Any:
    """Define a function with a custom gradient: `f(*args)` returns the result and a function of the upstream gradients."""
    return _custom_gradient(f, _dress, convert_to_tensor)


def executing_eagerly() -> bool:  # type: ignore[valid-type] # `bool` is a dtype here
    """Whether ops run immediately; False inside a function that is being traced."""
    return _current_trace() is None


def device(device_name: _Any) -> _Any:
    """A context manager without effect: there is one device."""
    return _contextlib.nullcontext(device_name)


@_contextlib.contextmanager
def init_scope() -> _Any:
    """Within this context, ops run immediately even while a function is being traced, and no tape records them."""
    with _outside_builders(), _suspended():
        yield


def group(*inputs: _Any, name: str | None = None) -> None:
    """Does nothing: ops run in program order."""


def control_dependencies(control_inputs: _Any) -> _Any:
    """A context manager without effect: effects keep program order."""
    return _contextlib.nullcontext()


def no_op(name: str | None = None) -> None:
    """Does nothing."""


def tuple(tensors: _Any, control_inputs: _Any = None, name: str | None = None) -> list[_Any]:
    """The tensors, as a list: all are computed."""
    return [x if x is None or isinstance(x, IndexedSlices) else convert_to_tensor(x) for x in tensors]


def grad_pass_through(f: _Any) -> _Any:
    """`f`, with the derivative of the identity: the gradient of a result is that of the argument."""

    @_functools.wraps(f)
    def passing(*args: _Any, **kwargs: _Any) -> _Any:
        @custom_gradient
        def through(*operands: _Any) -> _Any:
            def grad(*upstream: _Any, variables: _Any = ()) -> _Any:
                gradients = upstream[0] if len(upstream) == 1 else list(upstream)
                return (gradients, [None] * len(variables)) if variables else gradients

            return f(*operands, **kwargs), grad

        return through(*args)

    return passing


def recompute_grad(f: _Any) -> _Any:
    """`f`, with only its arguments stored for the backward pass, which runs it again."""
    return _checkpoint(f)


def ensure_shape(x: _Any, shape: _Any, name: str | None = None) -> _Any:
    """Check that x has the shape, and return it."""
    out = convert_to_tensor(x)
    if not TensorShape(shape).is_compatible_with(out.shape):
        raise errors.InvalidShape(f"Shape of tensor {out.shape} is not compatible with expected shape {TensorShape(shape)}")
    return out


__all__ = [
    *_array_names,
    # tensors, variables, derivatives and functions
    "DType", "GradientTape", "IndexedSlices", "Module", "Tensor", "TensorArray", "TensorShape", "TensorSpec", "UnconnectedGradients",
    "Variable", "VariableAggregation", "VariableSynchronization", "convert_to_tensor", "custom_gradient", "function", "gradients",
    "hessians", "newaxis",
    # namespaces
    "autodiff", "autograph", "config", "data", "debugging", "dtypes", "errors", "linalg", "math", "nest", "nn", "random", "signal",
    "types",
    # dtypes
    "as_dtype", "bool", "complex64", "complex128", "double", "float16", "float32", "float64", "half", "int8", "int16", "int32", "int64",
    "string", "uint8", "uint16", "uint32", "uint64",
    # functions
    "abs", "acos", "acosh", "add", "add_n", "argmax", "argmin", "asin", "asinh", "atan", "atan2", "atanh", "cast", "clip_by_global_norm",
    "clip_by_norm", "clip_by_value", "complex", "cos", "cosh", "cumsum", "divide", "dynamic_partition", "dynamic_stitch", "einsum",
    "equal", "exp", "floor", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_not", "logical_or", "matmul",
    "maximum", "minimum", "multiply", "negative", "norm", "not_equal", "pow", "reduce_all", "reduce_any", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "round", "saturate_cast", "scalar_mul", "sigmoid", "sign",
    "sin", "sinh", "slice", "sqrt", "square", "subtract", "tan", "tanh", "tensordot", "truediv",
    # control flow, effects and contexts
    "Assert", "assert_equal", "assert_greater", "assert_less", "assert_rank", "case", "cond", "control_dependencies", "device",
    "ensure_shape", "executing_eagerly", "foldl", "foldr", "grad_pass_through", "group", "init_scope", "map_fn", "name_scope", "no_op",
    "numpy_function", "print", "py_function", "recompute_grad", "scan", "switch_case", "tuple", "vectorized_map", "while_loop",
]  # fmt: skip

_OUT_OF_SCOPE = {
    "summary": "write logs with a library of your choice",
    "profiler": "use function.inspect(...) to see what is compiled",
    "io": "read files with NumPy",
    "image": "prepare images with NumPy",
    "audio": "prepare audio with NumPy",
    "strings": "keep text in Python",
    "ragged": "pad to one length",
    "RaggedTensor": "pad to one length",
    "sparse": "use dense tensors",
    "SparseTensor": "use dense tensors",
    "SparseTensorSpec": "use dense tensors",
    "RaggedTensorSpec": "pad to one length",
    "distribute": "adjit trains on one machine",
    "tpu": "adjit runs on the CPU",
    "lite": "adjit compiles for the machine it runs on",
    "lookup": "use a dict",
    "feature_column": "prepare features with NumPy",
    "compat": "there is no tf.compat.v1: adjit.tf mirrors TensorFlow 2",
    "raw_ops": "use the functions of tf",
    "experimental": "use adjit's own functions, which take NumPy's spellings",
    "quantization": "use float32",
    "Graph": "tf.function traces what you call",
    "Session": "tf.function traces what you call",
    "placeholder": "use the arguments of a tf.function",
}


_FROM_KERAS = {
    **{name: name for name in ("initializers", "losses", "metrics", "optimizers")},
    "zeros_initializer": "initializers.Zeros",
    "ones_initializer": "initializers.Ones",
    "constant_initializer": "initializers.Constant",
    "random_normal_initializer": "initializers.RandomNormal",
    "random_uniform_initializer": "initializers.RandomUniform",
}


@_lookup
def __getattr__(name: str) -> _Any:
    if name in ("train", "saved_model"):  # load adjit.nn
        return _importlib.import_module(f"{__name__}.{name}")
    if name == "bfloat16":
        return dtypes.found_bfloat16()
    if name == "keras":
        try:
            return _importlib.import_module(f"{__name__}.keras")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.keras":
                raise
            _out_of_scope("tf.keras", "layers, losses and optimizers are in adjit.nn")
    if name in _FROM_KERAS:
        space, _, own = _FROM_KERAS[name].partition(".")
        found = getattr(__getattr__("keras"), space)
        return getattr(found, own) if own else found
    if name in _OUT_OF_SCOPE:
        raise errors.MissingPartError(None, None, f"tf.{name} is out of the scope of adjit.tf; {_OUT_OF_SCOPE[name]}")
    return _missing("tf", "compose it of functions that adjit.tf has, or compute it with NumPy")(name)


def __dir__() -> list[str]:
    return [*__all__, "keras", "saved_model", "train", *_FROM_KERAS]
