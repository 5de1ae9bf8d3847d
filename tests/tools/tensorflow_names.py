"""Replacements for TensorFlow's names that `adjit.tf` spells differently, or that are not public (see `tensorflow_shim`)."""

# ruff: noqa: SIM905 - lists of names are one text
from __future__ import annotations

import contextlib
import functools
import types
import unittest
import unittest.mock
from typing import Any

import numpy as np

from adjit import tf
from adjit.tf.specs import VariableSpec

from .tensorflow_scope import DEVICES, INTERNALS, V1, Excluded
from .tensorflow_testcase import TestCase, arrays


def excluded(why: str) -> Any:
    """A decorator of tests and classes of tests that are left out."""

    def decorate(target: Any = None, **named: Any) -> Any:
        if target is None or isinstance(target, str):
            return decorate
        if isinstance(target, type):
            for name in dir(target):
                if name.startswith("test") and callable(getattr(target, name)):
                    setattr(target, name, decorate(getattr(target, name)))
            return target

        @functools.wraps(target)
        def refuse(self: Any, *args: Any, **named: Any) -> None:
            raise Excluded(f"excluded: {why}")

        return refuse

    return decorate


def unchanged(target: Any = None, **named: Any) -> Any:
    """A decorator that does nothing, with and without arguments."""
    return target if callable(target) and not named else (lambda inner: inner)


def _unpacked(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _cond(
    pred: Any, true_fn: Any = None, false_fn: Any = None, name: Any = None, strict: bool = False, fn1: Any = None, fn2: Any = None
) -> Any:
    """`cond` of TensorFlow 1: a list of one result is that result, unless strict."""
    out = tf.cond(pred, true_fn or fn1, false_fn or fn2)
    return out if strict else _unpacked(out)


def _while_loop(
    cond: Any, body: Any, loop_vars: Any, shape_invariants: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: Any = None, maximum_iterations: Any = None, return_same_structure: bool = False,
) -> Any:  # fmt: skip
    """`while_loop` of TensorFlow 1: a list of one result is that result, unless `return_same_structure` is set."""
    out = tf.while_loop(cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory, maximum_iterations, name)
    return out if return_same_structure else _unpacked(out)


def _gradients_function(f: Any, params: Any = None, values: bool = False) -> Any:
    def call(*args: Any, dy: Any = None) -> Any:
        args = tuple(tf.identity(arg) for arg in args)  # one object twice is two arguments
        chosen = range(len(args)) if params is None else [f.__code__.co_varnames.index(p) if isinstance(p, str) else p for p in params]
        with tf.GradientTape() as tape:
            for k in chosen:
                tape.watch(args[k])
            y = f(*args)
        if y is None:
            raise ValueError("Cannot differentiate a function that returns None; did you forget to return a value from f?")
        grads = tape.gradient(y, [args[k] for k in chosen], output_gradients=dy)
        return (y, grads) if values else grads

    return call


def _implicit_grad(f: Any, values: bool = False) -> Any:
    def call(*args: Any, **named: Any) -> Any:
        with tf.GradientTape() as tape:
            y = f(*args, **named)
        if y is None:  # a function of the tool, not of adjit.tf
            raise ValueError("Cannot differentiate a function that returns None; did you forget to return a value from f?")
        watched = tape.watched_variables()
        if not watched:
            raise ValueError("No trainable variables were accessed while the function was being computed.")
        pairs = list(zip(tape.gradient(y, watched), watched, strict=True))
        return (y, pairs) if values else pairs

    return call


def _compute_gradient(f: Any, x: Any, delta: float | None = None) -> Any:
    """Jacobians of f by the tape and by differences (`gradient_checker_v2.compute_gradient`)."""
    xs = [tf.convert_to_tensor(value) for value in x]
    theory, numeric = [], []
    for k, at in enumerate(xs):
        one = functools.partial(lambda k, value: f(*xs[:k], value, *xs[k + 1 :]), k)
        with tf.GradientTape() as tape:
            tape.watch(at)
            y = one(at)
        base, size = at.numpy(), y.numpy().size
        step = delta or (1e-3 if base.dtype == np.float32 else 1e-5)
        by_tape = tape.jacobian(y, at)
        theory.append(np.zeros((size, base.size)) if by_tape is None else by_tape.numpy().reshape(size, base.size))
        columns = np.zeros((size, base.size))
        for i in range(base.size):
            move = np.zeros(base.size, base.dtype)
            move[i] = step
            up, down = (one(tf.constant(base + s * move.reshape(base.shape))).numpy().ravel().astype(np.float64) for s in (1, -1))
            columns[:, i] = (up - down) / (2 * step)
        numeric.append(columns)
    return theory, numeric


def _max_error(theory: Any, numeric: Any) -> float:
    return max((float(np.max(np.abs(a - b))) for a, b in zip(theory, numeric, strict=True) if a.size), default=0.0)


def _with_dependencies(dependencies: Any, output: Any, name: Any = None) -> Any:
    return tf.identity(output)


class _EagerTensors(type):
    """`ops.EagerTensor`, whose constructor takes a device."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, tf.Tensor)

    def __call__(cls, value: Any, device: str, dtype: Any = None) -> Any:
        return tf.convert_to_tensor(value, dtype)


class EagerTensor(metaclass=_EagerTensors):
    """The class of eager tensors in TensorFlow's internals."""


class FunctionCache:
    """The traces of one function, which TensorFlow's internals store separately from it."""

    def __init__(self) -> None:
        self.function: Any = None

    def __len__(self) -> int:
        return 0 if self.function is None else int(self.function.experimental_get_tracing_count())


class TracingOptions:
    """The options of `tracing_compilation` for a function; here, the `tf.function` with these options."""

    made: dict[Any, Any] = {}  # noqa: RUF012 - by the Python function

    def __init__(
        self, python_function: Any, name: str = "f", polymorphic_type: Any = None, default_values: Any = None, autograph: bool = False,
        reduce_retracing: bool = False, function_cache: Any = None, attributes: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        if attributes or others:
            raise Excluded(f"excluded: {INTERNALS} (options {[*(attributes or {}), *others]} of tracing_compilation)")
        if python_function not in self.made:
            self.made[python_function] = tf.function(
                python_function, getattr(polymorphic_type, "signature", None), autograph, reduce_retracing=reduce_retracing
            )
        self.function = self.made[python_function]
        if function_cache is not None:
            function_cache.function = self.function


def _make_function_type(python_function: Any, input_signature: Any) -> Any:
    def bind(args: Any, kwargs: Any, defaults: Any) -> Any:
        return types.SimpleNamespace(args=args, kwargs=kwargs)

    return types.SimpleNamespace(signature=input_signature, bind_with_defaults=bind), None


def _make_decorator(target: Any, decorator: Any, *args: Any, **named: Any) -> Any:
    return functools.wraps(target)(decorator)


def _dense(value: Any) -> Any:
    return np.asarray(arrays(value))


SPECIAL: dict[str, Any] = {
    "TestCase": TestCase,
    "TensorFlowTestCase": TestCase,
    "main": lambda *args: None,
    "mock": unittest.mock,
    "Benchmark": object,
    "googletest": unittest,
    **dict.fromkeys(("run_v1_only", "run_deprecated_v1", "deprecated_graph_mode_only", "disable_control_flow_v2"), excluded(V1)),
    "run_gpu_only": excluded(DEVICES),
    **dict.fromkeys(
        "run_in_graph_and_eager_modes run_all_in_graph_and_eager_modes run_v2_only enable_control_flow_v2 with_control_flow_v2 "
        "assert_no_new_tensors assert_no_new_pyobjects_executing_eagerly assert_no_garbage_created disable_xla disable_tfrt "
        "enable_output_all_intermediates build_as_function_and_v1_graph also_run_as_tf_function run_without_tensor_float_32_only "
        "enable_quantized_dtypes_training with_eager_op_as_function".split(),
        unchanged,
    ),
    "use_gpu": contextlib.nullcontext,
    "device": lambda *args, **named: contextlib.nullcontext(),
    "deterministic_ops": contextlib.nullcontext,
    "is_gpu_available": lambda *args, **named: False,
    "is_xla_enabled": lambda: False,
    "gpu_device_name": lambda: "",
    "is_built_with_gpu_support": lambda: False,
    "AbstractGradientTape": lambda use_tape, persistent=False: tf.GradientTape(persistent=persistent),
    "eager_mode": contextlib.nullcontext,
    "ensure_initialized": lambda: None,
    "context": lambda: types.SimpleNamespace(
        device_name="", _context_handle=None, num_gpus=lambda: 0, executing_eagerly=tf.executing_eagerly
    ),
    "LogicalDeviceConfiguration": lambda *args, **named: None,
    "set_logical_device_configuration": lambda *args, **named: None,
    "list_physical_devices": lambda *args: ["CPU"],
    "list_logical_devices": lambda *args: ["CPU"],
    "get_logical_device_configuration": lambda *args: None,
    "async_clear_error": lambda: None,
    "anonymous_name": lambda: "",
    "EagerTensor": EagerTensor,
    "ResourceVariable": tf.Variable,
    "VariableSpec": VariableSpec,
    "BaseResourceVariable": tf.Variable,
    "VariableV1": tf.Variable,
    "VariableAggregationV2": tf.VariableAggregation,
    "DatasetV2": tf.data.Dataset,
    "DatasetV1": tf.data.Dataset,
    "unknown_shape": lambda rank=None: tf.TensorShape(None if rank is None else [None] * rank),
    "global_variables_initializer": lambda: None,
    "local_variables_initializer": lambda: None,
    "initialize_all_variables": lambda: None,
    "gradients_function": _gradients_function,
    "val_and_grad_function": functools.partial(_gradients_function, values=True),
    "implicit_grad": _implicit_grad,
    "implicit_val_and_grad": functools.partial(_implicit_grad, values=True),
    "compute_gradient": _compute_gradient,
    "max_error": _max_error,
    "with_dependencies": _with_dependencies,
    "_to_numpy": _dense,
    "print_v2": tf.print,
    "placeholder_with_default": lambda value, shape, **named: tf.convert_to_tensor(value),  # as in TensorFlow, without a graph
    "as_bytes": lambda text: text if isinstance(text, bytes) else text.encode(),
    "is_nested": lambda value: isinstance(value, (list, tuple, dict)),
    "where_v2": tf.where,
    "div_no_nan": tf.math.divide_no_nan,
    "floor_div": tf.math.floordiv,
    "realdiv": tf.math.truediv,
    "mul": tf.multiply,
    "tensor_equals": tf.equal,
    "tensor_not_equals": tf.not_equal,
    "convert_n_to_tensor": lambda values, dtype=None, **named: [tf.convert_to_tensor(value, dtype) for value in values],
    "is_tfrt_enabled": lambda: False,
    "name_scope": lambda name, *args, **named: tf.name_scope(name),
    "gather_v2": tf.gather,
    "squeeze_v2": tf.squeeze,
    "expand_dims_v2": tf.expand_dims,
    "assign": lambda ref, value, **named: ref.assign(value),
    "assign_add": lambda ref, value, **named: ref.assign_add(value),
    "assign_sub": lambda ref, value, **named: ref.assign_sub(value),
    "scatter_update": lambda ref, indices, updates, **named: ref.scatter_update(tf.IndexedSlices(updates, indices)),
    "scatter_add": lambda ref, indices, updates, **named: ref.scatter_add(tf.IndexedSlices(updates, indices)),
    **{
        f"scatter_nd_{how}": lambda ref, indices, updates, how=how, **named: getattr(ref, f"scatter_nd_{how}")(indices, updates)
        for how in ("add", "sub", "update")
    },
    "scatter_sub": lambda ref, indices, updates, **named: ref.scatter_sub(tf.IndexedSlices(updates, indices)),
}
BY_MODULE = {
    ("cond", "cond"): _cond,
    ("control_flow_ops", "cond"): _cond,
    ("while_loop", "while_loop"): _while_loop,
    ("control_flow_ops", "while_loop"): _while_loop,
    ("cond_v2", "cond_v2"): tf.cond,
    ("cond_v2", "indexed_case"): lambda index, branches, **named: tf.switch_case(index, list(branches)),
    ("while_v2", "while_loop"): lambda *args, return_same_structure=True, **named: _while_loop(
        *args, return_same_structure=return_same_structure, **named
    ),
    ("data_flow_ops", "dynamic_partition"): tf.dynamic_partition,
    ("data_flow_ops", "dynamic_stitch"): tf.dynamic_stitch,
    ("data_flow_ops", "parallel_dynamic_stitch"): tf.dynamic_stitch,
    **({("dtypes", "bfloat16"): tf.bfloat16} if hasattr(tf, "bfloat16") else {}),  # needs ml_dtypes
    ("tf2", "enabled"): lambda: True,
    ("control_flow_util", "ENABLE_CONTROL_FLOW_V2"): True,
    ("function_cache", "FunctionCache"): FunctionCache,
    ("function_type_utils", "make_function_type"): _make_function_type,
    ("tracing_compilation", "TracingOptions"): TracingOptions,
    ("tracing_compilation", "call_function"): lambda args=None, kwargs=None, tracing_options=None: tracing_options.function(
        *(args or ()), **(kwargs or {})
    ),
    ("tracing_compilation", "trace_function"): lambda args=None, kwargs=None, tracing_options=None: (
        tracing_options.function.get_concrete_function(*(args or ()), **(kwargs or {}))
    ),
    ("directives", "set_element_type"): lambda *args, **named: None,  # lists take what is appended
    ("directives", "set_loop_options"): tf.autograph.experimental.set_loop_options,
    ("tf_decorator", "make_decorator"): _make_decorator,
    ("core", "_NotOkStatusException"): ZeroDivisionError,  # never raised
    ("random_seed", "set_random_seed"): tf.random.set_seed,
    ("config", "run_functions_eagerly"): lambda flag: tf.config.run_functions_eagerly(flag),
    ("api", "tf_convert"): lambda f, *args, **named: tf.autograph.to_graph(f),
}
