"""adjit: NumPy in, native gradients out."""

# ruff: noqa: I001 - one name per line would make this module four times as long
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

import numpy as _np

try:
    from adjit.runtime.collection import collection_paused as _collection_paused
except ModuleNotFoundError as _error:
    if _error.name != "adjit.runtime":
        raise
    raise ImportError(
        f"{__file__}: this checkout has no symbolic links to its packages (a zip archive, or Windows without developer mode): "
        "run `pip install -e .` in it, which needs no links"
    ) from None

with _collection_paused():  # imported objects stay alive: scanning them for garbage would take a tenth of the time
    from adjit.runtime.function import Function, function

from adjit.ir.errors import (
    AdjitError,
    CheckError,
    DTypeError,
    DistributedError,
    GradientError,
    IndexingError,
    InternalError,
    NonFiniteError,
    OutOfBoundsError,
    ParseError,
    ShapeError,
    SingularMatrixError,
    StateError,
    TraceError,
    UnsupportedError,
    VerifyError,
)
from adjit.ir.tracebacks import lookup as _lookup
from adjit.runtime.config import config
from adjit.runtime.leaving import LostGradientWarning
from adjit.runtime.retracing import RetraceWarning
from adjit.runtime.slow_calls import SlowCallWarning
from adjit.runtime.slow_compiling import SlowCompilationWarning
from adjit.runtime.specs import TensorSpec
from adjit.runtime.tape import GradientTape
from adjit.runtime.tensor import Tensor, tensor
from adjit.runtime.transforms import grad, hessian, hvp, jacobian, jvp, linearize, value_and_grad, vjp
from adjit.runtime.variable import Variable
from adjit.tracer.pytree import register_pytree_node, tree_map
from adjit.tracer.surface.elementwise import (
    absolute, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, bitwise_and, bitwise_not, bitwise_or,
    bitwise_xor, cbrt, ceil, copysign, cos, cosh, deg2rad, divide, equal, erf, exp, exp2, expm1, floor, floor_divide, fmax,
    fmin, fmod, greater, greater_equal, heaviside, hypot, isclose, isfinite, isinf, isnan, left_shift, less, less_equal, log, log1p, log2,
    log10, logaddexp, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply, nan_to_num, negative, not_equal,
    positive, power, rad2deg, reciprocal, relu, remainder, right_shift, rint, round, rsqrt, sigmoid, sign, signbit, sin, sinc, sinh,
    softplus, sqrt, square, stop_gradient, subtract, tan, tanh, trunc, where,
)  # fmt: skip
from adjit.tracer.surface.reductions import (
    all, allclose, any, argmax, argmin, array_equal, count_nonzero, cumprod, cumsum, log_softmax, logsumexp, max, mean, min,
    nanmax, nanmean, nanmin, nansum, prod, ptp, softmax, std, sum, var,
)  # fmt: skip
from adjit.tracer.surface.shapes import (
    atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_to, column_stack, concatenate, dstack, expand_dims, flip,
    hstack, matrix_transpose, moveaxis, ravel, repeat, reshape, roll, rot90, squeeze, swapaxes, tile, transpose, unstack,
    vstack,
)  # fmt: skip

if _TYPE_CHECKING:
    from adjit import nn as nn, tf as tf
    from adjit.tracer.autograph.items import range
    from adjit.tracer.autograph.marks import do_not_convert
    from adjit.tracer.joining import stack
    from adjit.runtime.checkpoint import checkpoint
    from adjit.runtime.custom_gradient import custom_gradient
    from adjit.runtime.custom_jvp import custom_jvp
    from adjit.runtime.custom_vjp import custom_vjp
    from adjit.runtime.inspection import Inspection
    from adjit.runtime import distributed as distributed, implicit as implicit, random as random, scientific as scipy
    from adjit.runtime.sparse import sparse_hessian, sparse_jacobian
    from adjit.runtime.tune import tune
    from adjit.runtime.vmap import vmap
    from adjit.tracer.control import cond, fori_loop, map, scan, switch, while_loop
    from adjit.tracer.surface.array_api import (
        acos, acosh, asin, asinh, atan, atan2, atanh, bitwise_invert, bitwise_left_shift, bitwise_right_shift, bool, can_cast, clip, concat,
        conj, cumulative_prod, cumulative_sum, empty, empty_like, finfo, from_dlpack, iinfo, imag, isdtype, permute_dims, pow,
        real, result_type,
    )  # fmt: skip
    from adjit.tracer.surface import fft as fft, linalg as linalg, special as special
    from adjit.tracer.surface.complex_numbers import angle
    from adjit.tracer.surface.choices import choose, piecewise, select
    from adjit.tracer.surface.create import (
        arange, asarray, astype, cast, eye, full, full_like, identity, linspace, meshgrid, ones, ones_like, tri, zeros, zeros_like,
    )  # fmt: skip
    from adjit.tracer.surface.indexing import (
        argsort, delete, diag, diagonal, diff, insert, interp, isin, ix_, lexsort, one_hot, searchsorted, sort,
        take, take_along_axis, top_k, trace, tril, triu, unravel_index,
    )  # fmt: skip
    from adjit.tracer.surface.linalg import matrix_power
    from adjit.tracer.surface.norms import norm
    from adjit.tracer.surface.padding import pad
    from adjit.tracer.surface.products import cross, dot, inner, kron, matmul, outer, tensordot, vdot, vecdot
    from adjit.tracer.surface.special import i0
    from adjit.tracer.surface.bits import (
        bitwise_count, frexp, gcd, lcm, ldexp, nextafter, packbits, ravel_multi_index, spacing, unpackbits,
    )  # fmt: skip
    from adjit.tracer.surface.calculus import geomspace, gradient, logspace, polyder, polyfit, polyint, trapezoid, unwrap, vander
    from adjit.tracer.surface.einsum import einsum, einsum_path
    from adjit.tracer.surface.images import avg_pool, conv1d, conv2d, conv3d, conv_transpose, max_pool
    from adjit.tracer.surface.polynomials import convolve, correlate, poly, polyadd, polydiv, polymul, polysub, polyval, roots
    from adjit.tracer.surface.segments import segment_max, segment_mean, segment_min, segment_prod, segment_sum
    from adjit.tracer.surface.sets import (
        argwhere, compress, extract, flatnonzero, intersect1d, nonzero, setdiff1d, setxor1d, trim_zeros, union1d, unique, unique_all,
        unique_counts, unique_inverse, unique_values,
    )  # fmt: skip
    from adjit.tracer.surface.histograms import bincount, digitize, histogram, histogram2d, histogram_bin_edges, histogramdd
    from adjit.tracer.surface.statistics import (
        average, corrcoef, cov, median, nanargmax, nanargmin, nanmedian, nanpercentile, nanprod, nanquantile, nanstd, nanvar, percentile,
        quantile,
    )  # fmt: skip
    from adjit.tracer.surface.splitting import array_split, split
    from adjit.tracer.surface.trees import ravel_pytree, tree_flatten, tree_leaves, tree_structure, tree_unflatten
    from adjit.tracer.surface.updates import apply_along_axis, apply_over_axes, fill_diagonal, place, put, put_along_axis, putmask

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

abs = absolute
array = constant = tensor

bool_ = _np.bool_
float32, float64 = _np.float32, _np.float64
complex64, complex128 = _np.complex64, _np.complex128
int8, int16, int32, int64 = _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
pi, e, inf, nan, newaxis = _np.pi, _np.e, _np.inf, _np.nan, None

# Loaded on first access, so that `import adjit` stays cheap, and kept.
_CONTROL = "adjit.tracer.control"
_LATE = {
    "nn": "adjit.nn", "tf": "adjit.tf", "special": "adjit.tracer.surface.special", "implicit": "adjit.runtime.implicit",
    "distributed": "adjit.runtime.distributed", "Inspection": "adjit.runtime.inspection",
    "scipy": "adjit.runtime.scientific", "random": "adjit.runtime.random", "vmap": "adjit.runtime.vmap",
    "fft": "adjit.tracer.surface.fft", "linalg": "adjit.tracer.surface.linalg",
    "cond": _CONTROL, "switch": _CONTROL, "while_loop": _CONTROL, "fori_loop": _CONTROL, "scan": _CONTROL, "map": _CONTROL,
    "range": "adjit.tracer.autograph.items", "do_not_convert": "adjit.tracer.autograph.marks", "checkpoint": "adjit.runtime.checkpoint",
    "custom_gradient": "adjit.runtime.custom_gradient", "custom_jvp": "adjit.runtime.custom_jvp",
    "custom_vjp": "adjit.runtime.custom_vjp",
    "stack": "adjit.tracer.joining", "tune": "adjit.runtime.tune",
    "sparse_jacobian": "adjit.runtime.sparse", "sparse_hessian": "adjit.runtime.sparse",
    **{name: f"adjit.tracer.surface.{module}" for module, names in {
        "array_api": """acos acosh asin asinh atan atan2 atanh bitwise_invert bitwise_left_shift bitwise_right_shift bool can_cast clip
            concat conj cumulative_prod cumulative_sum empty empty_like finfo from_dlpack iinfo imag isdtype permute_dims pow real
            result_type __array_namespace_info__""",
        "special": "i0",
        "complex_numbers": "angle",
        "choices": "choose piecewise select",
        "create": "arange asarray astype cast eye full full_like identity linspace meshgrid ones ones_like tri zeros zeros_like",
        "indexing": """argsort delete diag diagonal diff insert interp isin ix_ lexsort one_hot searchsorted sort take
            take_along_axis top_k trace tril triu unravel_index""",
        "linalg": "matrix_power",
        "norms": "norm",
        "padding": "pad",
        "products": "cross dot inner kron matmul outer tensordot vdot vecdot",
        "calculus": "geomspace gradient logspace polyder polyfit polyint trapezoid unwrap vander",
        "einsum": "einsum einsum_path",
        "histograms": "bincount digitize histogram histogram2d histogram_bin_edges histogramdd",
        "statistics": """average corrcoef cov median nanargmax nanargmin nanmedian nanpercentile nanprod nanquantile nanstd nanvar
            percentile quantile""",
        "bits": "bitwise_count frexp gcd lcm ldexp nextafter packbits ravel_multi_index spacing unpackbits",
        "images": "avg_pool conv1d conv2d conv3d conv_transpose max_pool",
        "segments": "segment_max segment_mean segment_min segment_prod segment_sum",
        "polynomials": "convolve correlate poly polyadd polydiv polymul polysub polyval roots",
        "sets": """argwhere compress extract flatnonzero intersect1d nonzero setdiff1d setxor1d trim_zeros union1d unique unique_all
            unique_counts unique_inverse unique_values""",
        "splitting": "array_split split",
        "trees": "ravel_pytree tree_flatten tree_leaves tree_structure tree_unflatten",
        "updates": "apply_along_axis apply_over_axes fill_diagonal place put put_along_axis putmask",
    }.items() for name in names.split()},
}  # fmt: skip


@_lookup
def __getattr__(name: str) -> _Any:
    if name in _LATE:
        from importlib import import_module  # noqa: PLC0415 - see above

        found = import_module(_LATE[name])
        if name not in ("nn", "tf", "special", "fft", "linalg", "distributed", "implicit", "random", "scipy"):
            found = getattr(found, name)
        globals()[name] = found
        return found
    from adjit.runtime.hints import hint  # noqa: PLC0415 - see above

    raise AttributeError(f"module 'adjit' has no attribute {name!r}{hint(name, __dir__())}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "nn", "tf"]


__all__ = [
    # functions and their derivatives
    "Function", "GradientTape", "Inspection", "LostGradientWarning", "RetraceWarning", "SlowCallWarning", "SlowCompilationWarning",
    "Tensor", "TensorSpec",
    "Variable", "config", "constant", "function", "grad", "hessian", "hvp", "jacobian", "jvp", "linearize", "random", "ravel_pytree",
    "register_pytree_node", "stop_gradient", "tensor", "tree_flatten", "tree_leaves", "tree_map", "tree_structure", "tree_unflatten",
    "tune", "value_and_grad", "vjp", "vmap",
    "distributed", "implicit", "scipy", "sparse_hessian", "sparse_jacobian",
    # control flow
    "checkpoint", "cond", "custom_gradient", "custom_jvp", "custom_vjp", "do_not_convert", "fori_loop", "map", "range", "scan",
    "switch", "while_loop",
    # errors
    "AdjitError", "CheckError", "DTypeError", "DistributedError", "GradientError", "IndexingError", "InternalError", "NonFiniteError",
    "OutOfBoundsError", "ParseError", "ShapeError", "SingularMatrixError", "StateError", "TraceError", "UnsupportedError", "VerifyError",
    # dtypes and constants
    "bool_", "complex64", "complex128", "e",
    "float32", "float64", "inf", "int8", "int16", "int32", "int64", "nan", "newaxis", "pi", "uint8", "uint16", "uint32",
    "uint64",
    # array creation
    "arange", "array", "asarray", "eye", "full", "full_like", "geomspace", "identity", "linspace", "logspace", "meshgrid", "ones",
    "ones_like", "tri", "zeros", "zeros_like",
    # elementwise
    "abs", "absolute", "add", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "astype", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "cast", "cbrt", "ceil", "clip", "copysign", "cos", "cosh", "deg2rad", "divide", "equal",
    "erf", "exp", "exp2", "expm1", "floor", "floor_divide", "fmax", "fmin", "fmod", "greater", "greater_equal", "heaviside", "hypot",
    "isclose", "isfinite", "isinf", "isnan", "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nan_to_num", "negative", "not_equal",
    "power", "rad2deg", "reciprocal", "relu", "remainder", "right_shift", "rint", "round", "rsqrt", "select", "sigmoid", "sign", "signbit",
    "sin", "sinc", "sinh", "softplus", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "where",
    # reductions and scans
    "all", "allclose", "any", "argmax", "argmin", "array_equal", "average", "count_nonzero", "cumprod", "cumsum", "log_softmax",
    "logsumexp", "max", "mean", "min", "nanmax", "nanmean", "nanmin", "nansum", "norm", "prod", "ptp", "softmax", "std", "sum",
    "trapezoid", "var",
    # statistics
    "bincount", "corrcoef", "cov", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd", "median", "nanargmax",
    "nanargmin", "nanmedian", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nanvar",
    "percentile", "quantile",
    # grids and polynomials
    "gradient", "polyder", "polyfit", "polyint", "unwrap", "vander",
    # shapes
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "column_stack", "concatenate", "dstack",
    "expand_dims", "flip", "hstack", "matrix_transpose", "moveaxis", "pad", "ravel", "repeat", "reshape", "roll", "rot90", "split",
    "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack", "vstack",
    # indexing
    "argsort", "choose", "compress", "delete", "diag", "diagonal", "diff", "insert", "interp", "isin", "ix_", "lexsort", "one_hot",
    "piecewise",
    "searchsorted", "sort", "take", "take_along_axis", "top_k", "trace", "tril", "triu", "unravel_index",
    # sets, bits and updates
    "apply_along_axis", "apply_over_axes", "argwhere", "bitwise_count", "extract", "fill_diagonal", "flatnonzero", "frexp", "gcd", "i0",
    "intersect1d",
    "lcm", "ldexp", "nextafter", "nonzero", "packbits", "place", "poly", "polyadd", "polydiv", "polymul", "polysub", "roots", "put",
    "put_along_axis", "putmask", "ravel_multi_index", "setdiff1d", "setxor1d", "spacing", "trim_zeros", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unpackbits",
    # other names of the array API standard
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "bool",
    "can_cast", "concat", "conj", "cumulative_prod", "cumulative_sum", "empty", "empty_like", "finfo", "from_dlpack", "iinfo", "imag",
    "isdtype", "permute_dims", "positive", "pow", "real", "result_type",
    # images and segments
    "avg_pool", "conv1d", "conv2d", "conv3d", "conv_transpose", "max_pool", "segment_max", "segment_mean", "segment_min", "segment_prod",
    "segment_sum",
    # products
    "convolve", "correlate", "cross", "dot", "einsum", "einsum_path", "inner", "kron", "linalg", "matmul", "matrix_power", "outer",
    "fft", "polyval", "special", "tensordot",
    "vdot", "vecdot",
]  # fmt: skip
