"""Types, promotion and shape rules against NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.ops.checks import check_type
from adjit.ir.types import (
    BOOL,
    DTYPE_NAMES,
    DTYPES,
    F32,
    F64,
    I32,
    I64,
    U8,
    StackType,
    TensorType,
    as_dtype,
    as_shape,
    broadcast_shapes,
    checked_type,
    float_dtype,
    kept_shape,
    matmul_shape,
    normalize_axes,
    normalize_axis,
    promote,
    reduced_shape,
    resolve_reshape,
    row_major,
    strided_size,
    weak_example,
)

shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)
dtypes = st.sampled_from([dtype for dtype in DTYPES.values() if dtype.kind != "V" and dtype != np.float16])  # those of computations


def test_the_look_of_types() -> None:
    assert str(TensorType(F32, (128, 784))) == "f32[128,784]"
    assert str(TensorType(BOOL)) == "bool[]"
    x = TensorType(F64, [2, 3])
    assert (x.rank, x.size, x.nbytes, x.is_float) == (2, 6, 48, True)
    assert x.with_dtype(I32) == TensorType(I32, (2, 3))
    assert x.with_shape((6,)) == TensorType(F64, (6,))


def test_equal_types_hash_equally() -> None:
    a, b = (TensorType(as_dtype(code), (3,)) for code in ("l", "q"))
    assert a == b
    assert hash(a) == hash(b)
    assert TensorType(F32) != TensorType(F64)
    assert TensorType(F32) != "f32[]"


def test_dtypes_have_our_names_and_numpys() -> None:
    assert as_dtype("f32") == as_dtype("float32") == as_dtype(np.float32) == F32
    assert as_dtype(float) == F64
    for bad, message in (
        ("no", "'no' is not a dtype"),
        (np.clongdouble, "is not supported"),
        (">f8", "swap its bytes"),
        (object, "not supported"),
    ):
        with pytest.raises(DTypeError, match=message):
            as_dtype(bad)


def test_every_spelling_that_numpy_knows_means_what_it_means_there() -> None:
    for spelling in {*np.sctypeDict} - {"a"} | {*DTYPES, *(kind + size for kind in "iuf" for size in "1248"), *"?bBhHiIlLqQfd"}:
        try:
            wanted = np.dtype(spelling)
        except TypeError:
            continue
        if wanted in DTYPE_NAMES:
            assert as_dtype(spelling) == wanted, spelling
        else:
            with pytest.raises(DTypeError):
                as_dtype(spelling)


@given(dtypes, dtypes)
def test_promotion_is_numpys(a: np.dtype[Any], b: np.dtype[Any]) -> None:
    assert promote(a, b) == np.result_type(a, b)


def test_weak_scalars_give_way() -> None:
    assert promote(F32, 1.0) == F32
    assert promote(U8, 1) == U8
    assert promote(U8, 1.0) == F64
    assert promote(F32, weak_example(F64)) == F32
    assert promote(I32, weak_example(I64)) == I32
    assert promote(I32, weak_example(BOOL)) == I32
    assert [float_dtype(d) for d in (F32, I32, BOOL)] == [F32, F64, F64]


@given(st.lists(shapes, min_size=1, max_size=3))
def test_broadcasting_is_numpys(some: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*some)
    except ValueError:
        with pytest.raises(ShapeError, match=r"add: shapes .* do not broadcast"):
            broadcast_shapes("add", *some)
    else:
        assert broadcast_shapes("add", *some) == expected


@given(shapes, st.lists(st.integers(-1, 6), max_size=3))
def test_reshape_is_numpys(shape: tuple[int, ...], target: list[int]) -> None:
    try:
        expected = np.zeros(shape).reshape(target).shape
    except ValueError:
        with pytest.raises(ShapeError, match="reshape"):
            resolve_reshape(shape, target)
    else:
        assert resolve_reshape(shape, target) == expected


def test_reshape_takes_integers() -> None:
    assert resolve_reshape((2, 3), 6) == (6,)
    assert resolve_reshape((2, 3), (np.int64(3), -1)) == (3, 2)
    with pytest.raises(ShapeError, match="Python integers"):
        resolve_reshape((2, 3), (1.5,))


@given(shapes, shapes)
def test_matmul_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    batched = (len(a) > 2 or len(b) > 2) and (len(a) != len(b) or a[:-2] != b[:-2])
    try:
        expected = np.matmul(np.zeros(a), np.zeros(b)).shape
    except ValueError:
        with pytest.raises(ShapeError, match="matmul"):
            matmul_shape(a, b)
    else:
        if batched:  # broadcasting is explicit in the IR
            with pytest.raises(ShapeError, match="matmul"):
                matmul_shape(a, b)
        else:
            assert matmul_shape(a, b) == expected


@given(st.integers(0, 4).flatmap(lambda rank: st.tuples(st.just(rank), st.lists(st.integers(-rank, max(rank - 1, -rank)), max_size=3))))
def test_axes(case: tuple[int, list[int]]) -> None:
    rank, axes = case
    shape = tuple(range(2, 2 + rank))
    try:
        expected = np.zeros(shape).sum(tuple(axes))
        kept = np.zeros(shape).sum(tuple(axes), keepdims=True)
    except ValueError:
        with pytest.raises(ShapeError):
            normalize_axes(axes, rank, "sum")
    else:
        sorted_axes = normalize_axes(axes, rank, "sum")
        assert sorted_axes == tuple(sorted(a % rank for a in axes))
        assert reduced_shape(shape, sorted_axes) == np.shape(expected)
        assert kept_shape(shape, sorted_axes) == kept.shape


def test_axes_errors() -> None:
    assert normalize_axes(None, 3, "sum") == (0, 1, 2)
    assert normalize_axes(-1, 3, "sum") == (2,)
    with pytest.raises(ShapeError, match="axis named twice"):
        normalize_axes((0, -3), 3, "sum")
    with pytest.raises(ShapeError, match="axis 3 is out of range for rank 3"):
        normalize_axis(3, 3, "sum")
    with pytest.raises(ShapeError, match="must be a Python integer"):
        normalize_axis(0.5, 3, "sum")


def test_shapes_from_users() -> None:
    assert as_shape(3, "zeros") == (3,)
    assert as_shape([2, np.int32(3)], "zeros") == (2, 3)
    with pytest.raises(ShapeError, match="zeros: negative dimension"):
        as_shape((2, -1), "zeros")
    with pytest.raises(ShapeError, match="Python integers"):
        as_shape("ab", "zeros")
    with pytest.raises(ShapeError, match="is too large"):
        checked_type(F64, (2**40, 2**40), "zeros")
    assert checked_type(F64, (2, 3), "zeros") == TensorType(F64, (2, 3))


@given(st.integers(0, 5), st.integers(0, 9), st.integers(1, 3))
def test_strided_size_is_that_of_a_slice(start: int, stop: int, step: int) -> None:
    assert strided_size(start, stop, step) == len(range(start, stop, step))


@given(shapes.filter(lambda s: 0 not in s))
def test_row_major(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape)
    assert all(n == 1 or ours * 8 == theirs for n, ours, theirs in zip(shape, row_major(shape), array.strides, strict=True))


@pytest.mark.parametrize(
    ("type", "message"),
    [
        (TensorType(np.dtype("f2"), ()), None),
        (TensorType(np.dtype("M8[s]"), ()), "is not a dtype of the IR"),
        (TensorType(F64, (1,) * 65), "is not a shape: up to"),
        (TensorType(F64, (2, -1)), "none below 0"),
        (TensorType(F64, (2**62,)), "is too large"),
        (StackType(TensorType(F64, (2**62,))), "is too large"),
    ],
)
def test_types_that_native_code_cannot_hold(type: TensorType, message: str | None) -> None:
    if message is None:
        check_type(type)
        return
    with pytest.raises((DTypeError, ShapeError), match=message):
        check_type(type)
