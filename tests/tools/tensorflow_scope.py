"""Parts of TensorFlow that `adjit.tf` leaves out on purpose, by modules and names of TensorFlow (see `tensorflow_tests`)."""

# ruff: noqa: SIM905 - lists of names are one text
from __future__ import annotations

import re
import unittest

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
        "Graph get_default_graph reset_default_graph graph_mode placeholder Session get_collection "
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
    **dict.fromkeys("function_type trace_type".split(), INTERNALS),
    **dict.fromkeys("variant resource".split(), "variants and resources are out of scope"),
    **dict.fromkeys("qint8 quint8 qint32".split(), "quantised types are out of scope"),
}


class Excluded(unittest.SkipTest):
    """A test of a feature that adjit.tf leaves out on purpose."""


def reason(module: str, name: str) -> str | None:
    """Why a name is left out on purpose."""
    if name in EXCLUDED_NAMES:
        return EXCLUDED_NAMES[name]
    return next((why for pattern, why in OUT_OF_SCOPE.items() if re.search(pattern, module)), None)
