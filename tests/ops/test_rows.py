"""Every row of the op table: types and values against NumPy, derivatives against finite differences, text, interpreter and native code."""

from __future__ import annotations

import numpy as np
import pytest

from adjit.ir.interpreter import run
from adjit.ir.ops import stack
from adjit.ir.ops.base import REGISTRY
from adjit.ir.ops.control import Region
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.types import C64, C128, DTYPES, F32, F64
from adjit.ir.verifier import verify
from tests.ops.cases import CASES, Case
from tests.ops.cases_collective import CASES as COLLECTIVE
from tests.ops.cases_complex import CASES as COMPLEX
from tests.ops.cases_convolution import CASES as CONVOLUTION
from tests.ops.cases_special import CASES as SPECIAL
from tests.ops.cases_spectral import CASES as SPECTRAL
from tests.ops.cases_structure import CASES as STRUCTURE
from tests.ops.harness import Array, Bundle, Row, assert_close, assert_same, assert_same_bits, differences, dot, eager, func_of, several

ROWS: list[Case] = [*CASES, *STRUCTURE, *CONVOLUTION, *SPECIAL, *SPECTRAL, *COMPLEX, *COLLECTIVE]
ELEMENTWISE = [row for row in ROWS if row.domains]

every_row = pytest.mark.parametrize("case", ROWS, ids=repr)
every_elementwise_row = pytest.mark.parametrize("case", ELEMENTWISE, ids=repr)
SMOOTH = [row for row in ROWS if row.smooth and {"f64", "c128"} & {*row.dtypes} and row.differentiable(row.draw(row.widest))]
every_smooth_row = pytest.mark.parametrize("case", SMOOTH, ids=repr)

# put in by passes, or without a result: tested with those who use them
NO_ROW = {
    "attention", "attention_gradient", "copy", "custom_gradient", "fft_parts", "fill", "interleave", "matmul_add", "print",
}  # fmt: skip
EPSILON = {dtype: float(np.finfo(dtype).eps) for dtype in (F32, F64, C64, C128)}
SHAPES = ((), (1,), (0,), (3, 0), (17,), (2, 3, 4))


def test_every_op_has_a_row() -> None:
    used = {stmt.op.name for row in ROWS for dtype in row.dtypes for stmt in func_of(row.call, row.draw(DTYPES[dtype])).stmts}
    of_loops = {name for name, op in REGISTRY.items() if issubclass(op, Region) or op.__module__ == stack.__name__}
    assert sorted(set(REGISTRY) - used - of_loops - NO_ROW) == []


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


@every_row
def test_types_and_values_are_numpys(case: Case) -> None:
    for dtype in case.dtypes:
        args = case.draw(DTYPES[dtype])
        got = eager(case.call, args)
        assert [(r.type.dtype, r.type.shape) for r in func_of(case.call, args).results] == [(a.dtype, a.shape) for a in got]
        if case.numpy is not None:
            with np.errstate(all="ignore"):
                wanted = [np.asarray(a) for a in several(case.numpy(*args))]
            assert_close(got, wanted, f64=1e-13, f32=2e-6, absolute=1)


@every_row
def test_interpreted_is_eager(case: Case) -> None:
    for dtype in case.dtypes:
        args = case.draw(DTYPES[dtype])
        assert_same_bits(run(verify(func_of(case.call, args)), *args), eager(case.call, args))


@every_row
def test_text_round_trip(case: Case) -> None:
    for dtype in case.dtypes:
        args = case.draw(DTYPES[dtype])
        text = print_func(func_of(case.call, args))
        again = parse_func(text)
        assert print_func(again) == text
        assert_same_bits(run(again, *args), eager(case.call, args))


@every_smooth_row
def test_forward_mode_against_finite_differences(case: Case) -> None:
    row = Row(case, case.draw(case.widest))
    assert_close(row.pushed(), differences(lambda t: row.forward(row.moved(t))), f64=1e-8, absolute=1)


@every_smooth_row
def test_reverse_mode_is_the_transpose_of_forward_mode(case: Case) -> None:
    row = Row(case, case.draw(case.widest))
    assert dot(row.cotangents, row.pushed()) == pytest.approx(dot(row.pulled(row.args), row.tangents), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("case", [row for row in SMOOTH if row.second], ids=repr)
def test_second_order_against_finite_differences(case: Case) -> None:
    row = Row(case, case.draw(case.widest))
    bent = differences(lambda t: row.pulled(row.moved(t)))
    assert dot(row.gradient_of_pulled(), row.tangents) == pytest.approx(dot(row.tangents, bent), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("case", [r for r in ROWS if r.wrt == () and "f64" in r.dtypes], ids=repr)
def test_no_derivative_where_the_row_declares_none(case: Case) -> None:
    args = case.draw(F64)
    row = Row(case, args)
    row.wrt = [i for i, a in enumerate(args) if a.dtype.kind == "f"]
    row.tangents = [np.ones_like(args[i]) for i in row.wrt]
    assert all((g == 0).all() for g in (*row.pushed(), *row.pulled(args)))


@every_elementwise_row
def test_shapes(case: Case) -> None:
    """Scalars, empty arrays, and operands that broadcast, against NumPy."""
    dtype = DTYPES[case.dtypes[0]]
    for shape in SHAPES:
        args = case.draw(dtype, shape)
        # NumPy rounds products of complex numbers differently in its vector and scalar loops
        compare = assert_close if dtype.kind == "c" else assert_same
        compare(run(func_of(case.call, args), *args), eager(case.call, args))
        compare_with_numpy(case, args)
    for n in range(len(case.domains) if len(case.domains) > 1 else 0):
        args = [d for i, d in enumerate(case.draw(dtype, (3, 1))) if i == n]
        others = case.draw(dtype, (4,))
        compare_with_numpy(case, [*others[:n], *args, *others[n + 1 :]])


@every_elementwise_row
def test_strides(case: Case) -> None:
    """Transposed, sliced, reversed and read-only arguments.

    NumPy's vector loops take contiguous arguments and its scalar loops strided ones; each is within 4 ULP of the truth by itself.
    """
    base = case.draw(DTYPES[case.dtypes[0]], (6, 8))
    for view in (lambda a: a.T, lambda a: a[::2, 1::3], lambda a: a[::-1, ::-2], locked):
        args = [view(a) for a in base]
        got, wanted = eager(case.call, args), eager(case.call, [np.ascontiguousarray(a) for a in args])
        assert_close(got, wanted, f64=8 * EPSILON[F64], f32=8 * EPSILON[F32])


def locked(a: Array) -> Array:
    copy = a.copy()
    copy.flags.writeable = False
    return copy


def compare_with_numpy(case: Case, args: list[Array]) -> None:
    assert case.numpy is not None
    with np.errstate(all="ignore"):
        assert_close(eager(case.call, args), [np.asarray(case.numpy(*args))], f64=1e-13, f32=2e-6, absolute=1)


@every_row
def test_compiled_is_eager(case: Case) -> None:
    """All dtypes and shapes of a row, and its gradient, in one native function."""
    bundle = Bundle()
    for dtype in case.dtypes:
        bundle.add(case.call, case.draw(DTYPES[dtype]))
    if case.domains:
        for shape in SHAPES:
            bundle.add(case.call, case.draw(DTYPES[case.dtypes[0]], shape))
    values = len(bundle.results)
    for dtype in (F64, F32, C128, C64):
        if dtype in [DTYPES[d] for d in case.dtypes] and case.differentiable(case.draw(dtype)):
            bundle.add_gradient(Row(case, case.draw(dtype)))
    interpreted, compiled = bundle.interpreted_and_compiled()
    if case.exact:
        assert_same_bits(compiled[:values], interpreted[:values])
    assert_close(compiled[:values], interpreted[:values], absolute=1e-3)
    assert_close(compiled[values:], interpreted[values:], absolute=1)
