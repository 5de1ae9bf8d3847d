"""Rows of the op table for shapes, joins, reductions, scans, indexing, products, creation and effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Concrete, Operand
from adjit.ir.ops.base import Array, apply
from adjit.ir.ops.index import CheckIndex, Gather, ScatterAdd, ScatterSet
from adjit.ir.ops.join import SetSlice
from adjit.ir.ops.scan import Cumprod, Cumsum, Recurrence
from adjit.ir.ops.solve import apply_solve
from adjit.ir.types import I64
from tests.ops.cases import Case

Maker = Callable[[np.random.Generator], Array]


def normal(*shape: int) -> Maker:
    return lambda rng: np.asarray(rng.normal(size=shape))


def given(values: Any, dtype: Any = None) -> Maker:
    return lambda rng: np.array(values, dtype)


def regular(*shape: int) -> Maker:
    """Matrices that are far from singular."""
    return lambda rng: rng.normal(size=shape) + 4 * np.eye(shape[-1])


def positive(*shape: int) -> Maker:
    """Positive definite matrices."""

    def make(rng: np.random.Generator) -> Array:
        a = rng.normal(size=(*shape, shape[-1]))
        return np.asarray(a @ np.swapaxes(a, -1, -2) + 2 * np.eye(shape[-1]))

    return make


def row(name: str, call: Callable[..., Any], numpy: Callable[..., Any] | None, *makers: Maker, **more: Any) -> Case:
    return Case(name, call, numpy, arrays=lambda rng: [make(rng) for make in makers], **more)


def fixed(name: str, call: Callable[..., Any], numpy: Callable[..., Any] | None, *makers: Maker, **more: Any) -> Case:
    """A row for its values alone: of integers, or of floats where a derivative by finite differences means nothing."""
    return row(name, call, numpy, *makers, dtypes=("f64",), smooth=False, **more)


MATRIX = normal(3, 4)
CUBE = normal(2, 3, 4)
ZEROS = given([[1.5, 0.0, -2.0, 3.0], [0.0, 2.0, 0.0, 1.0], [1.0, -1.0, 0.5, 2.0]])
ROWS = given([2, 0, 2, -1])
COLUMNS = given([1, 3, 1, 0], np.int32)
PIVOTS = given([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [3.0, 1.0, 0.0]])
WITH_NAN = given([[1, np.nan, 2], [np.nan, 0, 1], [-np.inf, -np.inf, -np.inf], [3, 3, np.inf]])


# ---- oracles


def set_window(x: Array, u: Array) -> Array:
    out = x.copy()
    out[0:3:2, 1:4] = u
    return out


def scatter_add(x: Array, u: Array, *indices: Array) -> Array:
    out = x.copy()
    np.add.at(out, indices, u)
    return out


def scatter_set(x: Array, u: Array, *indices: Array) -> Array:
    out = x.copy()
    out[indices] = u
    return out


def recurrence(a: Array, b: Array) -> Array:
    out = b.copy()
    for t in range(1, len(b)):
        out[t] += a[t] * out[t - 1]
    return out


def exclusive(x: Array) -> Array:
    return np.concatenate([np.zeros_like(x[:1]), np.cumsum(x[:-1], 0, dtype=x.dtype)])


SHAPES = [
    row("broadcast", lambda x: ops.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), normal(3, 1)),
    row("broadcast_after_one", lambda x: ops.broadcast_to(x, (1, 3, 4)), lambda x: np.broadcast_to(x, (1, 3, 4)), normal(3, 1)),
    row("broadcast_scalar", lambda x: ops.broadcast_to(x, (2, 0)), lambda x: np.broadcast_to(x, (2, 0)), normal()),
    row("reshape", lambda x: ops.reshape(x, (2, -1)), lambda x: x.reshape(2, -1), MATRIX),
    row("transpose", lambda x: ops.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1), CUBE),
    row("transpose_reshape", lambda x: ops.reshape(ops.transpose(x), -1), lambda x: x.T.reshape(-1), CUBE),
    row("slice", lambda x: ops.slice_(x, [slice(1, 3), slice(0, 4, 3)]), lambda x: x[1:3, 0:4:3], MATRIX),
    row("slice_reversed", lambda x: ops.slice_(x, [slice(None, None, -2), slice(2, None, -1)]), lambda x: x[::-2, 2::-1], MATRIX),
    row("slice_empty", lambda x: ops.slice_(x, [slice(2, 1)]), lambda x: x[2:1], MATRIX),
    row("flip", lambda x: ops.flip(x, (0, 1)), np.flip, MATRIX),
    row("pad", lambda x: ops.pad(x, (1, 0), (0, 2)), lambda x: np.pad(x, ((1, 0), (0, 2))), MATRIX),
    row("pad_value", lambda x: ops.pad(x, (1,), (2,), (0,), 7), lambda x: np.pad(x, (1, 2), constant_values=7), normal(3)),
    row(
        "pad_interior", lambda x: ops.pad(x, (1,), (0,), (2,)),
        lambda x: np.array([0, x[0], 0, 0, x[1], 0, 0, x[2]], x.dtype), normal(3),
    ),
    row("pad_empty", lambda x: ops.pad(x, (1,), (2,), (3,)), lambda x: np.zeros(3, x.dtype), normal(0)),
    fixed(
        "pad_bools", lambda x: ops.pad(x, (1,), (2,), None, True), lambda x: np.pad(x, (1, 2), constant_values=True), given([False, True]),
    ),
]  # fmt: skip

JOINS = [
    row("concatenate", lambda *xs: ops.concatenate(xs, -1), lambda *xs: np.concatenate(xs, 1), MATRIX, normal(3, 0), normal(3, 2)),
    row("concatenate_itself", lambda x: ops.concatenate([x, x], None), lambda x: np.concatenate([x, x], None), MATRIX),
    fixed(
        "concatenate_mixed",
        lambda *xs: ops.concatenate(xs),
        lambda *xs: np.concatenate(xs),
        given([1], np.int8),
        given([True]),
        given([0.5]),
    ),
    row("set_slice", lambda x, u: apply(SetSlice((0, 1), (3, 4), (2, 1)), x, u), set_window, MATRIX, normal(2, 3)),
]

SORTS = [
    row("sort", lambda x: ops.sort(x), lambda x: np.sort(x), normal(3, 7)),
    row("sort_middle", lambda x: ops.sort(x, 1), lambda x: np.sort(x, 1), CUBE),
    row("sort_descending", lambda x: ops.sort(x, 0, True), lambda x: -np.sort(-x, 0), normal(8, 2)),
    row("sort_one", lambda x: ops.sort(x), lambda x: x, normal(2, 1)),
    row("sort_empty", lambda x: ops.sort(x), lambda x: x, normal(2, 0)),
    fixed("argsort", ops.argsort, lambda x: np.argsort(x, kind="stable"), WITH_NAN, wrt=()),
    fixed("argsort_ties", ops.argsort, lambda x: np.argsort(x, kind="stable"), given([[3, 1, 3, 1, 2, 1], [0, 0, 0, -1, -1, 5]]), wrt=()),
    fixed("argsort_descending", lambda x: ops.argsort(x, -1, True), lambda x: np.argsort(-x, kind="stable"), WITH_NAN, wrt=()),
    fixed(
        "argsort_descending_ties", lambda x: ops.argsort(x, 0, True), lambda x: np.argsort(~x, 0, kind="stable"),
        given([0, 255, 7, 255, 0, 3, 7], np.uint8), wrt=(),
    ),
    fixed("select_first", lambda x: ops.select(x, 2), lambda x: np.argsort(x, kind="stable")[..., :2], WITH_NAN, wrt=()),
    fixed(
        "select_last", lambda x: ops.select(x, 3, 0, last=True), lambda x: np.argsort(x, 0, kind="stable")[-3:],
        given([[3, 1], [1, 3], [3, 3], [1, 3], [2, 0]]), wrt=(),
    ),
    fixed(
        "select_of_many", lambda x: ops.select(x, 5, descending=True), lambda x: np.argsort(~x, kind="stable")[:5],
        given(np.arange(1500) * 37 % 101, np.int16), wrt=(),
    ),
    row("top_k", lambda x: ops.top_k(x, 2), lambda x: (-np.sort(-x)[..., :2], np.argsort(-x)[..., :2]), normal(3, 4)),
    fixed("argsort_of_bools", ops.argsort, lambda x: np.argsort(x, kind="stable"), given([True, False, True, False]), wrt=()),
    fixed("argsort_long", ops.argsort, lambda x: np.argsort(x, kind="stable"), given(np.arange(300) * 37 % 101, np.int16), wrt=()),
]  # fmt: skip

REDUCTIONS = [
    row("sum", lambda x: ops.sum(x, (0, 2), True), lambda x: x.sum((0, 2), keepdims=True), CUBE),
    row("sum_of_nothing", lambda x: ops.sum(x, 1), lambda x: x.sum(1), normal(2, 0)),
    row("prod", lambda x: ops.prod(x, 1), lambda x: x.prod(1), MATRIX),
    row("prod_with_zeros", lambda x: ops.prod(x, 1), lambda x: x.prod(1), ZEROS),
    row("prod_of_all", lambda x: ops.prod(x, None, True), lambda x: x.prod(keepdims=True), normal(2, 3, 1)),
    row("prod_outer", lambda x: ops.prod(x, (0, 2)), lambda x: x.prod((0, 2)), normal(2, 3, 3)),
    row("prod_of_nothing", lambda x: ops.prod(x, 0), lambda x: x.prod(0), normal(0, 2)),
    row("prod_of_scalar", ops.prod, lambda x: x, normal()),
    row("max", lambda x: ops.max(x, 0), lambda x: x.max(0), MATRIX),
    row("min", lambda x: ops.min(x, (0, 1), True), lambda x: x.min(keepdims=True), MATRIX),
    fixed("max_with_nan", lambda x: ops.max(x, 1), lambda x: x.max(1), WITH_NAN),
    fixed("min_with_nan", lambda x: ops.min(x, 0), lambda x: x.min(0), WITH_NAN),
    fixed("max_of_ints", lambda x: ops.max(x, 0), lambda x: x.max(0), given([[3, -5], [2, 7]], np.int8)),
    fixed("min_of_unsigned", ops.min, np.min, given([3, 200], np.uint8)),
    fixed("max_of_bools", lambda x: ops.max(x, 1), lambda x: x.max(1), given([[True, False], [False, False]])),
    fixed("max_of_no_columns", lambda x: ops.max(x, 0), lambda x: x.max(0), normal(3, 0)),
    fixed("sum_of_bools", ops.sum, np.sum, given([True, True, False])),
    fixed("sum_of_small_ints", lambda x: ops.sum(x, 0), lambda x: x.sum(0), given(np.full((300, 2), 100), np.int8)),
    fixed("prod_of_unsigned", ops.prod, np.prod, given(np.full(5, 200), np.uint8)),
    fixed("any", lambda x: ops.any(x, 0), lambda x: x.any(0), given([[0.0, np.nan], [0.0, 0.0]]), wrt=()),
    fixed("all", lambda x: ops.all(x, 1, True), lambda x: x.all(1, keepdims=True), given([[1, 0], [2, 3]]), wrt=()),
    fixed("any_of_nothing", ops.any, np.any, given([], bool), wrt=()),
    fixed("all_of_nothing", lambda x: ops.all(x, 0), lambda x: x.all(0), given(np.zeros((0, 2)), bool), wrt=()),
    fixed("argmax", lambda x: ops.argmax(x, 1), lambda x: x.argmax(1), WITH_NAN, wrt=()),
    fixed("argmin", lambda x: ops.argmin(x, 0, True), lambda x: x.argmin(0, keepdims=True), WITH_NAN, wrt=()),
    fixed("argmax_middle", lambda x: ops.argmax(x, 1), lambda x: x.argmax(1), CUBE, wrt=()),
    fixed("argmax_of_all", lambda x: ops.argmax(x), np.argmax, given([[1, 9], [9, 2]], np.uint64), wrt=()),
    fixed("argmin_of_bools", lambda x: ops.argmin(x, -1), lambda x: x.argmin(-1), given([[True, False], [True, True]]), wrt=()),
    fixed("argmax_of_no_rows", lambda x: ops.argmax(x, 1), lambda x: x.argmax(1), normal(0, 3), wrt=()),
]

SCANS = [
    row("cumsum", lambda x: ops.cumsum(x, 0), lambda x: x.cumsum(0), MATRIX),
    row("cumsum_last", lambda x: ops.cumsum(x, -1), lambda x: x.cumsum(-1), normal(2, 1, 5)),
    row("cumsum_flat", ops.cumsum, lambda x: x.cumsum(), MATRIX),
    row("cumsum_exclusive", lambda x: apply(Cumsum(0, False, True), x), exclusive, MATRIX),
    row("cumsum_reverse", lambda x: apply(Cumsum(1, True), x), lambda x: x[:, ::-1].cumsum(1)[:, ::-1], MATRIX),
    row("cumsum_reverse_exclusive", lambda x: apply(Cumsum(0, True, True), x), lambda x: exclusive(x[::-1])[::-1], MATRIX),
    row("cumsum_empty", lambda x: ops.cumsum(x, 1), lambda x: x, normal(2, 0)),
    row("cumsum_one", lambda x: ops.cumsum(x, 0), lambda x: x, normal(1, 2)),
    fixed("cumsum_of_bools", ops.cumsum, np.cumsum, given([True, True, False])),
    row("cumprod", lambda x: ops.cumprod(x, 1), lambda x: x.cumprod(1), MATRIX),
    row("cumprod_with_zeros", lambda x: ops.cumprod(x, 1), lambda x: x.cumprod(1), ZEROS),
    row("cumprod_reverse", lambda x: apply(Cumprod(0, True), x), lambda x: x[::-1].cumprod(0)[::-1], ZEROS),
    row("cumprod_empty", lambda x: ops.cumprod(x, 0), lambda x: x, normal(0, 2)),
    fixed("cumprod_of_ints", ops.cumprod, np.cumprod, given(np.arange(1, 7), np.int16)),
    row("recurrence", lambda a, b: apply(Recurrence(0), a, b), recurrence, MATRIX, normal(3, 4)),
    row(
        "recurrence_reverse",
        lambda a, b: apply(Recurrence(0, True), a, b),
        lambda a, b: recurrence(a[::-1], b[::-1])[::-1],
        MATRIX,
        ZEROS,
    ),
]

INDEXING = [
    row("gather", lambda x, i: apply(Gather(), x, i), lambda x, i: x[i], MATRIX, ROWS),
    row("gather_points", lambda x, i, j: apply(Gather(), x, i, j), lambda x, i, j: x[i, j], MATRIX, ROWS, COLUMNS),
    row("gather_one", lambda x, i: apply(Gather(), x, i), lambda x, i: x[i], MATRIX, given(-3, np.int8)),
    row("gather_matrix", lambda x, i: apply(Gather(), x, i), lambda x, i: x[i], normal(3), given([[0, 1], [2, 1]], np.uint8)),
    row("gather_none", lambda x, i: apply(Gather(), x, i), lambda x, i: x[i], MATRIX, given([], int)),
    row("scatter_add", lambda x, u, i: apply(ScatterAdd(), x, u, i), scatter_add, MATRIX, normal(4, 4), ROWS),
    row("scatter_add_points", lambda x, u, i, j: apply(ScatterAdd(), x, u, i, j), scatter_add, MATRIX, normal(4), ROWS, COLUMNS),
    row("scatter_set", lambda x, u, i: apply(ScatterSet(), x, u, i), scatter_set, MATRIX, normal(4, 4), ROWS),
    row("scatter_set_points", lambda x, u, i, j: apply(ScatterSet(), x, u, i, j), scatter_set, MATRIX, normal(4), ROWS, COLUMNS),
    fixed(
        "scatter_set_of_ints",
        lambda x, u, i: apply(ScatterSet(), x, u, i),
        scatter_set,
        given([0, 1, 2]),
        given([7, 8, 9]),
        given([1, 2, 1]),
    ),
    row("getitem_basic", lambda x: ops.getitem(x, (1, None, slice(None, None, -1))), lambda x: x[1, None, ::-1], MATRIX),
    row("getitem_mixed", lambda x: ops.getitem(x, (slice(None), [0, 2], 1)), lambda x: x[:, [0, 2], 1], CUBE),
    row("getitem_apart", lambda x: ops.getitem(x, ([1, 0], slice(1, 3), [2, 2])), lambda x: x[[1, 0], 1:3, [2, 2]], CUBE),
    row("getitem_traced", lambda x, i: ops.getitem(x, (..., i, slice(2))), lambda x, i: x[..., i, :2], CUBE, given(-1)),
    row(
        "setitem_window",
        lambda x, u: ops.setitem(x, (slice(None, None, 2), slice(3, 0, -1)), u),
        lambda x, u: windowed(x, u, False),
        MATRIX,
        normal(3),
    ),
    row(
        "additem_window",
        lambda x, u: ops.additem(x, (slice(None, None, 2), slice(3, 0, -1)), u),
        lambda x, u: windowed(x, u, True),
        MATRIX,
        normal(3),
    ),
]


def windowed(x: Array, u: Array, add: bool) -> Array:
    out = x.copy()
    out[::2, 3:0:-1] = out[::2, 3:0:-1] + u if add else u
    return out


PRODUCTS = [
    row(f"matmul_{'x'.join(map(str, a))}_{'x'.join(map(str, b))}", ops.matmul, np.matmul, normal(*a), normal(*b))
    for a, b in [
        ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,)), ((2, 4, 3), (3, 2)),
        ((4, 3), (2, 1, 3, 2)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 0), (0, 3)), ((0,), (0,)), ((0, 2), (2,)), ((0, 2, 3), (1, 3, 2)),
    ]
] + [
    fixed("matmul_of_ints", ops.matmul, np.matmul, given([[0, 1, 2], [3, 4, 5]]), given([1, 2, 3], np.int8)),
    fixed("matmul_of_bools", ops.matmul, np.matmul, given([[True, False], [False, False]]), given([[True], [True]])),
]  # fmt: skip

EQUATIONS = [
    row("solve", ops.solve, np.linalg.solve, regular(3, 3), normal(3, 2)),
    row("solve_vector", ops.solve, np.linalg.solve, regular(4, 4), normal(4)),
    row("solve_stack", ops.solve, np.linalg.solve, regular(2, 3, 3), normal(3, 1)),
    row("solve_none", ops.solve, np.linalg.solve, normal(0, 0), normal(0, 2)),
    row("solve_pivots", ops.solve, np.linalg.solve, PIVOTS, normal(3, 3)),
    row("solve_transposed", lambda a, b: apply_solve(a, b, True), lambda a, b: np.linalg.solve(a.T, b), PIVOTS, normal(3, 2)),
    *(
        row(f"solve_triangular_{name}", lambda a, b, s=settings: ops.solve_triangular(a, b, **s), None, a, b)
        for name, settings, a, b in [
            ("lower", {}, regular(3, 3), normal(3, 2)),
            ("upper", {"upper": True}, regular(3, 3), normal(3)),
            ("transposed", {"transposed": True}, regular(2, 3, 3), normal(3, 1)),
            ("upper_transposed", {"upper": True, "transposed": True}, regular(3, 3), normal(3, 4)),
            ("unit", {"unit": True}, normal(4, 4), normal(4, 2)),
            ("upper_unit", {"upper": True, "unit": True, "transposed": True}, normal(3, 3), normal(2, 3, 2)),
            ("none", {}, normal(0, 0), normal(0, 2)),
        ]
    ),
    fixed("solve_of_ints", ops.solve, np.linalg.solve, given([[2, 1], [1, 3]]), given([1, 2])),
]

FACTORS = [
    fixed("lu", ops.lu, lambda a: np.array([[3, 1, 0], [0, 2, 1], [1 / 3, -1 / 6, 1 / 6], [2, 1, 0]]), PIVOTS),
    fixed("lu_stack", ops.lu, None, normal(2, 1, 4, 4)),
    fixed("lu_none", ops.lu, lambda a: np.zeros((1, 0)), normal(0, 0)),
    fixed("lu_singular", ops.lu, lambda a: np.array([[2.0, 4.0], [0.5, 0.0], [1, 0]]), given([[1.0, 2.0], [2.0, 4.0]])),
    row("cholesky", ops.cholesky, np.linalg.cholesky, positive(4)),
    row("cholesky_stack", ops.cholesky, np.linalg.cholesky, positive(2, 3)),
    row("cholesky_none", ops.cholesky, np.linalg.cholesky, normal(0, 0)),
    row("slogdet", ops.slogdet, lambda a: tuple(np.linalg.slogdet(a)), regular(3, 3)),
    row("slogdet_stack", ops.slogdet, lambda a: tuple(np.linalg.slogdet(a)), normal(2, 3, 3)),
    row("slogdet_pivots", ops.slogdet, lambda a: tuple(np.linalg.slogdet(a)), PIVOTS),
    row("slogdet_none", ops.slogdet, lambda a: tuple(np.linalg.slogdet(a)), normal(0, 0)),
    row("qr", ops.qr, lambda a: tuple(np.linalg.qr(a)), normal(5, 3)),
    row("qr_square", ops.qr, lambda a: tuple(np.linalg.qr(a)), regular(2, 3, 3)),
    row("qr_wide", ops.qr, lambda a: tuple(np.linalg.qr(a)), normal(2, 4)),
    fixed("qr_done", ops.qr, lambda a: tuple(np.linalg.qr(a)), given([[-2.0, 1.0], [0.0, 3.0], [0.0, 0.0]])),
    fixed("qr_none", ops.qr, lambda a: tuple(np.linalg.qr(a)), normal(3, 0)),
]

CREATION = [
    fixed("constant", lambda x: x + Concrete(np.array([1, 2, 3])), lambda x: x + np.array([1, 2, 3]), given([1, 2, 3])),
    fixed("size", lambda x: x + ops.size_value(3), lambda x: x + 3, given(np.zeros((2, 3), int))),
    fixed("iota", lambda x: x + ops.iota((2, 3), 1), lambda x: x + np.arange(3), given(np.zeros((2, 3), int))),
    fixed("full", lambda x: x + ops.full((2,), 3, "i16"), lambda x: x + np.full(2, 3, "i2"), given([1, 2], np.int16)),
    fixed("one_hot", lambda i: ops.one_hot(i, 3, "f32"), lambda i: np.eye(3, dtype="f4")[i], given([[0, 2], [1, 1]], np.uint8)),
    fixed("one_hot_outside", lambda i: ops.one_hot(i, 3), lambda i: np.zeros((2, 3)), given([-1, 3])),
    row("eye", lambda x: x + ops.eye(3, 4, -1, x.dtype), lambda x: x + np.eye(3, 4, -1, x.dtype), MATRIX),
    fixed("arange", lambda x: x * ops.arange(10, 0, -3), lambda x: x * np.arange(10, 0, -3), given(np.arange(4))),
    fixed("arange_of_floats", lambda x: x * ops.arange(0.5, 2, 0.4), lambda x: x * np.arange(0.5, 2, 0.4), given(np.arange(4))),
]


def checked(x: Operand) -> Operand:
    ops.check(ops.all(x < 100.0), "all below 100")
    return x * x


def checked_index(x: Operand) -> Operand:
    apply(CheckIndex("gather", x.type), ops.cast(ops.sign(x), I64))
    return x * x


EFFECTS = [
    row("assert", checked, lambda x: x * x, MATRIX),
    row("check_index", checked_index, lambda x: x * x, MATRIX),
]

CASES: list[Case] = [*SHAPES, *JOINS, *SORTS, *REDUCTIONS, *SCANS, *INDEXING, *PRODUCTS, *EQUATIONS, *FACTORS, *CREATION, *EFFECTS]
