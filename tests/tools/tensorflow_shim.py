"""Modules named `tensorflow...` that are made of `adjit.tf`: TensorFlow's own test files import them (see `tensorflow_tests`).

A name is looked up in a table of this file, then in the namespaces of `adjit.tf`. What neither has is a placeholder: importing a test file
never fails, using such a name in a test raises `MissingName`, or `Excluded` where the module is one of `OUT_OF_SCOPE`.
"""

# ruff: noqa: PT009, PT027, SIM905 - the assertions of unittest are what is defined here; lists of names are one text
from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.machinery
import io
import os
import re
import sys
import tempfile
import types
import unittest
import unittest.mock
from typing import Any, ClassVar

import numpy as np

from adjit import tf

V1, GRAPHS = "graphs and sessions of TensorFlow 1", "TensorFlow's graphs"
INTERNALS, DEVICES = "TensorFlow's internals", "devices and distribution of TensorFlow"
HANDLES, FLOW = "resource handles of TensorFlow", "control flow of TensorFlow 1"
TEXT, SPARSE, RAGGED = (f"{what} are out of scope" for what in ("tensors of text", "sparse tensors", "ragged tensors"))

OUT_OF_SCOPE = {  # modules, by a pattern of their names
    r"ragged|structured": RAGGED,
    r"sparse": SPARSE,
    r"string_ops": TEXT,
    r"session|saver|training_util|monitored|importer|meta_graph|framework\.function$|layers\.core|partitioned": V1,
    r"graph_pb2|node_def|attr_value|tensor_pb2|config_pb2|rewriter|full_type|trace_type|capture_container|text_format": GRAPHS,
    r"func_graph|lift_to_graph|wrap_function|tf_optimizer|grappler|graph_util": GRAPHS,
    r"distribut|mirrored|tpu|ps_values|collective|remote|device_lib|cancellation|executor": DEVICES,
    r"pywrap|_pb2|test_ops|_errors_test_helper|forwardprop_util|backprop_util|execute$|memory_checker|record$": INTERNALS,
    r"gen_|list_ops|data_flow_ops|handle_data|while_v2|cond_v2|control_flow_util|control_flow_v2|ref_variable|variable_scope": INTERNALS,
    r"tf_decorator|tf_inspect|function_utils|tf2$|forward_compat|compat\.compat": INTERNALS,
    r"extension_type|composite_tensor|type_spec|cpp_shape": "extension types are out of scope",
    r"pyct|conversion$|converter|function_wrappers|ag_ctx|ag_logging|inspect_utils|special_functions": "AutoGraph's internals",
    r"autograph\.operators": "AutoGraph's internals",
    r"summary|io_ops|logging_ops|lookup": "summaries, files and tables are out of scope",
}
EXCLUDED_NAMES = {
    **dict.fromkeys(
        "Graph get_default_graph reset_default_graph graph_mode placeholder placeholder_with_default Session get_collection "
        "get_collection_ref add_to_collection global_variables trainable_variables enable_eager_execution get_variable "
        "report_uninitialized_variables assert_variables_initialized make_one_shot_iterator PartitionedVariable".split(),
        V1,
    ),
    **dict.fromkeys("Operation container add_exit_callback_to_default_func_graph".split(), GRAPHS),
    **dict.fromkeys("colocate_with create_local_cluster distribute".split(), DEVICES),
    **dict.fromkeys(
        "RegisterGradient XLAControlFlowContext CondContext WhileContext ControlFlowContext Context op_attr_type make_attr "
        "_jvp_dispatch".split(),
        INTERNALS,
    ),
    **dict.fromkeys("merge switch exit next_iteration _Enter ref_select ref_switch ref_merge loop_cond".split(), FLOW),
    **dict.fromkeys(
        "var_handle_op destroy_resource_op read_variable_op assign_variable_op assign_add_variable_op var_is_initialized_op "
        "get_eager_safe_handle_data resource_gather".split(),
        HANDLES,
    ),
    **dict.fromkeys("ConditionalAccumulator FIFOQueue".split(), "queues are out of scope"),
    **dict.fromkeys("RaggedTensor ragged RaggedTensorSpec".split(), RAGGED),
    **dict.fromkeys("SparseTensor sparse SparseTensorSpec".split(), SPARSE),
    **dict.fromkeys("strings as_string string string_to_number".split(), TEXT),
    **dict.fromkeys("variant resource".split(), "variants and resources are out of scope"),
    **dict.fromkeys("qint8 quint8 qint32".split(), "quantised types are out of scope"),
}


class Excluded(unittest.SkipTest):
    """A test that asks for what adjit.tf leaves out on purpose."""


class MissingName(AttributeError):
    """A test that asks for a name that adjit.tf has not."""


def reason(module: str, name: str) -> str | None:
    """Why a name is left out on purpose."""
    if name in EXCLUDED_NAMES:
        return EXCLUDED_NAMES[name]
    return next((why for pattern, why in OUT_OF_SCOPE.items() if re.search(pattern, module)), None)


class Placeholder:
    """A name that is not there: it can be imported, named, inherited from and put into tables of parameters, but not used."""

    def __init__(self, module: str, name: str) -> None:
        self.__dict__["_name"] = (module, name)

    def _refuse(self) -> Any:
        module, name = self._name
        why = reason(module, name)
        raise Excluded(f"excluded: {why} ({module}.{name})") if why else MissingName(f"adjit.tf has no {module}.{name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if _importing:
            return Placeholder(*self._name)
        return self._refuse()

    def __call__(self, *args: Any, **named: Any) -> Any:
        if _importing:
            return args[0] if len(args) == 1 and callable(args[0]) and not named else Placeholder(*self._name)
        return self._refuse()

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __getitem__(self, key: Any) -> Any:
        return Placeholder(*self._name) if _importing else self._refuse()

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


class _Refusing(type):
    """The class of placeholders for classes: `isinstance` is False, making one raises."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if _importing or "placeholder" not in cls.__dict__:
            return super().__call__()
        return cls.placeholder._refuse()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or name == "placeholder":
            raise AttributeError(name)
        return Placeholder(*cls.placeholder._name) if _importing else cls.placeholder._refuse()


def placeholder(module: str, name: str) -> Any:
    """What stands for a missing name: a class if it is spelt like one."""
    found = Placeholder(module, name)
    return _Refusing(name, (), {"placeholder": found}) if name[:1].isupper() and not name.isupper() else found


_importing = False


@contextlib.contextmanager
def importing() -> Any:
    """While a test file is imported, placeholders may be called: they decorate, and fill tables of parameters."""
    global _importing
    _importing = True
    try:
        yield
    finally:
        _importing = False


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


def arrays(value: Any) -> Any:
    """Tensors, variables and structures of them as NumPy values."""
    if isinstance(value, dict):
        return (
            type(value)({key: arrays(item) for key, item in value.items()})
            if type(value) in (dict,)
            else {k: arrays(v) for k, v in value.items()}
        )
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(arrays, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(arrays, value))
    if hasattr(value, "numpy") and not isinstance(value, type):
        return value.numpy()
    return value


def _absltest() -> Any:
    from absl.testing import absltest

    return absltest.TestCase


class TestCase(_absltest()):  # type: ignore[misc]
    """The assertions of `tf.test.TestCase`."""

    maxDiff = None

    def setUp(self) -> None:
        super().setUp()
        tf.random.set_seed(87654321)
        np.random.seed(87654321)  # noqa: NPY002 - what TensorFlow's tests draw from

    def evaluate(self, value: Any) -> Any:
        return arrays(value)

    def run(self, result: Any = None) -> Any:
        return super().run(result)

    @contextlib.contextmanager
    def session(self, *args: Any, **named: Any) -> Any:
        if named.get("graph") is not None:
            raise Excluded(f"excluded: {V1}")
        yield types.SimpleNamespace(run=self._run_in_session, graph=None)

    cached_session = test_session = session

    def _run_in_session(self, value: Any, feed_dict: Any = None, **named: Any) -> Any:
        if feed_dict:
            raise Excluded(f"excluded: {V1}")
        return arrays(value)

    def get_temp_dir(self) -> str:
        return tempfile.mkdtemp()

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        np.testing.assert_array_equal(np.asarray(arrays(a)), np.asarray(arrays(b)), err_msg=str(msg or ""), strict=False)
        self.assertEqual(np.shape(arrays(a)), np.shape(arrays(b)))

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        self.assertFalse(np.array_equal(np.asarray(arrays(a)), np.asarray(arrays(b))), msg)

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:
        a, b = arrays(a), arrays(b)
        if isinstance(a, dict):
            self.assertEqual(set(a), set(b))
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
        elif isinstance(a, (list, tuple)) and any(isinstance(item, (list, tuple, dict, np.ndarray)) for item in a):
            self.assertEqual(len(a), len(b))
            for left, right in zip(a, b, strict=True):
                self.assertAllClose(left, right, rtol, atol, msg)
        else:
            if np.asarray(a).dtype == np.float16 or np.asarray(b).dtype == np.float16:
                rtol, atol = max(rtol, 1e-3), max(atol, 1e-3)
            self.assertEqual(np.shape(a), np.shape(b))
            np.testing.assert_allclose(a, b, rtol, atol, err_msg=str(msg or ""))

    def assertAllCloseAccordingToType(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3, **named: Any
    ) -> None:
        half = np.asarray(arrays(a)).dtype == np.float16 or np.asarray(arrays(b)).dtype == np.float16
        self.assertAllClose(a, b, half_rtol if half else rtol, half_atol if half else atol)

    def assertAllLess(self, a: Any, limit: Any) -> None:
        self.assertTrue(np.all(np.asarray(arrays(a)) < arrays(limit)))

    def assertAllEqualNested(self, a: Any, b: Any) -> None:
        for left, right in zip(tf.nest.flatten(a), tf.nest.flatten(b), strict=True):
            self.assertAllEqual(left, right)

    def assertShapeEqual(self, array: Any, tensor: Any, msg: Any = None) -> None:
        self.assertEqual(tuple(np.shape(array)), tuple(tensor.shape), msg)

    def assertArrayNear(self, a: Any, b: Any, err: float, msg: Any = None) -> None:
        for left, right in zip(a, b, strict=True):
            self.assertNear(left, right, err)

    def assertNear(self, a: Any, b: Any, err: float, msg: Any = None) -> None:
        self.assertLessEqual(abs(arrays(a) - arrays(b)), err)

    def assertRaisesWithPredicateMatch(self, kind: Any, check: Any) -> Any:
        return self.assertRaisesRegex(kind, check) if isinstance(check, str) else self.assertRaises(kind)

    def assertRaisesOpError(self, message: str) -> Any:
        return self.assertRaisesRegex(tf.errors.OpError, message)

    def assertDeviceEqual(self, *args: Any) -> None:
        raise Excluded(f"excluded: {DEVICES}")

    def assertProtoEquals(self, *args: Any, **named: Any) -> None:
        raise Excluded(f"excluded: {GRAPHS}")

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: Any) -> Any:
        kept, name = io.StringIO(), "stderr" if stream is sys.stderr else "stdout"
        with unittest.mock.patch.object(sys, name, kept):
            yield types.SimpleNamespace(contents=kept.getvalue)


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
    """`while_loop` of TensorFlow 1: a list of one result is that result, unless the same structure is asked for."""
    out = tf.while_loop(cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory, maximum_iterations, name)
    return out if return_same_structure else _unpacked(out)


def _gradients_function(f: Any, params: Any = None, values: bool = False) -> Any:
    def call(*args: Any, dy: Any = None) -> Any:
        args = tuple(tf.convert_to_tensor(arg) for arg in args)
        chosen = range(len(args)) if params is None else [f.__code__.co_varnames.index(p) if isinstance(p, str) else p for p in params]
        with tf.GradientTape() as tape:
            for k in chosen:
                tape.watch(args[k])
            y = f(*args)
        grads = tape.gradient(y, [args[k] for k in chosen], output_gradients=dy)
        return (y, grads) if values else grads

    return call


def _implicit_grad(f: Any, values: bool = False) -> Any:
    def call(*args: Any, **named: Any) -> Any:
        with tf.GradientTape() as tape:
            y = f(*args, **named)
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
    "EagerTensor": tf.Tensor,
    "ResourceVariable": tf.Variable,
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
    "scatter_sub": lambda ref, indices, updates, **named: ref.scatter_sub(tf.IndexedSlices(updates, indices)),
}
BY_MODULE = {
    ("cond", "cond"): _cond,
    ("control_flow_ops", "cond"): _cond,
    ("while_loop", "while_loop"): _while_loop,
    ("control_flow_ops", "while_loop"): _while_loop,
    ("random_seed", "set_random_seed"): tf.random.set_seed,
    ("config", "run_functions_eagerly"): lambda flag: tf.config.run_functions_eagerly(flag),
    ("api", "tf_convert"): lambda f, *args, **named: tf.autograph.to_graph(f),
}
SPACES = ["", *"math nn linalg random autodiff nest errors data dtypes debugging autograph signal config train saved_model types".split()]


def find(module: str, name: str) -> Any:
    """What a test file gets for a name of one of TensorFlow's modules."""
    last = module.rpartition(".")[2]
    if (last, name) in BY_MODULE:
        return BY_MODULE[last, name]
    if name in SPECIAL:
        return SPECIAL[name]
    if not reason(module, name):
        for spelling in (name, name.removesuffix("_v2"), name.removeprefix("random_")):
            for space in SPACES if spelling != name.removeprefix("random_") or spelling == name else ("random",):
                try:
                    return getattr(getattr(tf, space) if space else tf, spelling)
                except (AttributeError, tf.errors.UnimplementedError):
                    continue
    return placeholder(module, name)


PACKAGES = re.compile(
    r"tensorflow\.(python|core)(\.(ops|framework|eager|platform|util|client|training|saved_model|checkpoint|module|data|layers|compat"
    r"|distribute|grappler|function|protobuf|data\.(experimental\.)?(ops|experimental)|ops\.(ragged|structured|parallel_for|losses|linalg)"
    r"|eager\.polymorphic_function|function\.(capture|trace_type)|autograph(\.(core|impl|lang|operators|pyct|utils|tests))?))?"
)


class _Facade(types.ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or PACKAGES.fullmatch(self.__name__):
            raise AttributeError(name)  # `from package import module` then imports the module
        if name == "test" or (name in ("compat", "v1", "v2") and self.__name__ in ("tensorflow", "tensorflow.compat")):
            return __import__("importlib").import_module(f"{self.__name__}.{name}")
        return find(self.__name__, name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`import tensorflow...` gives facades; test files of `folder` are files."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] != "tensorflow":
            return None
        file = os.path.join(self.folder, *name.split(".")) + ".py"
        if os.path.exists(file):
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return _Facade(spec.name)

    def exec_module(self, module: Any) -> None: ...
