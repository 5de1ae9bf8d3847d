"""NumPy's and the Array API's functions, composed from the primitives of `adjit.ir.ops`; also adjit's public functions.

Arguments may be operands, NumPy arrays, lists or scalars. Operands are positional-only; all other parameters have NumPy's names, order and
defaults, which `tracer.numpy_table` relies on. `PUBLIC` maps names to functions; some go by two names, NumPy's and the Array API's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import create, einsum, elementwise, indexing, linalg, reductions, shapes

PUBLIC: dict[str, Callable[..., Any]] = {
    name: getattr(module, name)
    for module, names in {
        elementwise: """exp expm1 exp2 log log1p log2 log10 sqrt rsqrt square cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh
            arccosh arctanh erf sigmoid relu softplus absolute negative positive reciprocal sign floor ceil trunc rint round isnan
            isinf isfinite isclose signbit deg2rad rad2deg sinc add subtract multiply divide floor_divide remainder power
            float_power maximum minimum fmax fmin fmod arctan2 hypot logaddexp logaddexp2 copysign heaviside divmod modf equal
            not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or
            bitwise_xor bitwise_not left_shift right_shift clip where select nan_to_num astype cast stop_gradient""",
        reductions: """sum prod max min any all argmax argmin count_nonzero cumsum cumprod mean var std ptp average nansum nanmean nanmax
            nanmin logsumexp softmax log_softmax norm allclose array_equal trapezoid""",
        shapes: """reshape ravel transpose matrix_transpose swapaxes moveaxis squeeze expand_dims atleast_1d atleast_2d atleast_3d
            broadcast_to broadcast_arrays concatenate stack unstack hstack vstack dstack column_stack append split array_split
            hsplit vsplit dsplit flip fliplr flipud rot90 roll tile repeat pad""",
        indexing: "take take_along_axis searchsorted interp tril triu diagonal trace diag diagflat one_hot diff ediff1d",
        create: "full zeros ones full_like zeros_like ones_like eye identity arange linspace meshgrid tri asarray",
        linalg: "matmul dot vdot vecdot inner outer tensordot kron cross multi_dot matrix_power convolve correlate polyval block",
        einsum: "einsum",
    }.items()
    for name in names.split()
}

ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "bitwise_invert": "bitwise_not", "concat": "concatenate", "degrees": "rad2deg", "invert": "bitwise_not",
    "permute_dims": "transpose", "pow": "power", "radians": "deg2rad",
}  # fmt: skip
PUBLIC.update({name: PUBLIC[target] for name, target in ALIASES.items()})
