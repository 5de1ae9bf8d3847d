"""Rows of the op table for complex numbers: ops for them only, and rows of other ops that take them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Concrete, Literal
from adjit.ir.ops.fft import fft
from adjit.ir.types import TensorType
from tests.ops.cases import CASES as ELEMENTWISE
from tests.ops.cases import FLOATS, Case, Domain, binary, unary
from tests.ops.cases_convolution import CASES as CONVOLUTION
from tests.ops.cases_structure import CASES as STRUCTURE
from tests.ops.cases_structure import MATRIX, normal, row

COMPLEX = ("c128", "c64")
NEAR = Domain(-1.0, 1.0)  # away from the poles of the tangents

# Functions of real numbers that are 0 on one side of a cut are tried away from it; integer and bool rows have no complex sibling.
TAKE_COMPLEX = [
    "add", "sub", "mul", "div", "strong_mul", "neg", "power", "power_negative", "power_0", "power_1", "power_2", "power_3", "power_7",
    "power_-1", "power_-3", "power_0.5", "power_-0.5", "power_1.5", "power_2.0", "square", "absolute", "round", "round_2", "exp", "exp2",
    "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "equal", "not_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf",
    "isfinite", "isclose", "stop_gradient", "broadcast", "broadcast_scalar", "reshape", "transpose", "transpose_reshape", "slice",
    "slice_reversed", "slice_empty", "flip", "pad", "pad_value", "pad_interior", "pad_empty", "concatenate", "concatenate_itself",
    "set_slice", "sum", "sum_of_nothing", "prod", "prod_with_zeros", "prod_of_all", "prod_outer", "prod_of_nothing", "prod_of_scalar",
    "cumsum", "cumsum_last", "cumsum_flat", "cumsum_exclusive", "cumsum_reverse", "cumsum_reverse_exclusive", "cumsum_empty",
    "cumsum_one", "cumprod", "cumprod_with_zeros", "cumprod_reverse", "cumprod_empty", "recurrence", "recurrence_reverse", "gather",
    "gather_points", "gather_one", "gather_matrix", "gather_none", "scatter_add", "scatter_add_points", "scatter_set",
    "scatter_set_points", "getitem_basic", "getitem_mixed", "getitem_apart", "getitem_traced", "setitem_window", "additem_window", "eye",
]  # fmt: skip

PRODUCTS = [case for case in STRUCTURE if case.name.startswith("matmul_") and not case.name.startswith("matmul_of")]
KNOWN = {case.name: case for case in (*ELEMENTWISE, *STRUCTURE)}

OWN = [
    unary("real", ops.real, np.real, dtypes=COMPLEX),
    unary("imag", ops.imag, np.imag, dtypes=COMPLEX),
    unary("conj", ops.conj, np.conjugate, dtypes=COMPLEX),
    unary("imag_of_real", ops.imag, np.imag, dtypes=FLOATS, wrt=()),
    unary("sign_complex", ops.sign, np.sign, dtypes=COMPLEX),
    binary("complex", ops.from_parts, lambda a, b: (a + a.dtype.type(1) * b * 1j).astype(np.result_type(a, 1j)), dtypes=FLOATS),
    *(
        unary(f"cast_complex_to_{name}", lambda x, d=d: ops.astype(x, d), lambda x, d=d: x.real.astype(d) if d.kind == "f" else x.astype(d),
              dtypes=COMPLEX, smooth=name in ("f64", "c128"))
        for name, d in (("f32", np.dtype("f4")), ("f64", np.dtype("f8")), ("c64", np.dtype("c8")), ("c128", np.dtype("c16")))
    ),
    unary("cast_complex_to_i64", lambda x: ops.astype(x, np.dtype("i8")), lambda x: x.real.astype("i8"), dtypes=COMPLEX, wrt=()),
    unary("times_i", lambda x: 1j * x, lambda x: x.dtype.type(0) + 1j * x, dtypes=(*FLOATS, *COMPLEX)),
    row("constant_complex", lambda x: x + Concrete(np.array([1j, 2, 3, 4 - 1j])), lambda x: x + np.array([1j, 2, 3, 4 - 1j]), MATRIX,
        dtypes=("c128",)),
    row("where_complex", lambda x, y: ops.where(ops.real(x) > 0, x, y * (1 + 2j)), lambda x, y: np.where(x.real > 0, x, y * (1 + 2j)),
        MATRIX, MATRIX, dtypes=COMPLEX),
    row("pad_complex_value", lambda x: ops.pad(x, (1, 0), (0, 2), None, 2 - 1j),
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=2 - 1j), MATRIX, dtypes=COMPLEX),
    row("literal_complex", lambda x: x * Literal(complex(-0.0, float("inf")), TensorType(x.dtype, x.shape)),
        lambda x: x * x.dtype.type(complex(-0.0, float("inf"))), MATRIX, dtypes=COMPLEX, smooth=False, wrt=()),
]  # fmt: skip

FOURIER = [
    row(f"fft_{'x'.join(map(str, shape))}_{axis}{'_inverse' * inverse}", lambda z, a=axis, i=inverse: fft(z, a, i, 0.5),
        lambda z, a=axis, i=inverse: 0.5 * (np.fft.ifft(z, axis=a, norm="forward") if i else np.fft.fft(z, axis=a)),
        normal(*shape), dtypes=COMPLEX)
    for shape, axis, inverse in [
        ((1,), 0, False), ((2, 2), 1, False), ((8,), 0, True), ((60,), 0, False), ((13,), 0, True), ((17,), 0, False), ((19, 3), 0, True),
        ((64,), 0, True), ((98,), 0, False), ((5, 12), 1, False), ((12, 5), 0, True), ((20, 16), 1, True), ((3, 4, 6), 1, False),
        ((2, 1, 81), 2, False), ((18, 18), 1, False), ((0, 3), 1, False),
    ]
]  # fmt: skip

CASES: list[Case] = [
    *OWN,
    *FOURIER,
    *(
        replace(case, name=f"{case.name}_complex", dtypes=COMPLEX, domains=(NEAR,) if case.name in ("tan", "tanh") else case.domains)
        for case in [*(KNOWN[name] for name in TAKE_COMPLEX), *PRODUCTS, *(c for c in CONVOLUTION if "conv" in c.name)]
    ),
]
