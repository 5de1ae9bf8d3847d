"""Cases that the rows of the op table do not cover: ties, duplicates, NumPy's kinds of keys, run-time failures, and error messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir import ops
from adjit.ir.errors import CheckError, DTypeError, IndexingError, OutOfBoundsError, ShapeError, TraceError
from adjit.ir.interpreter import run
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.base import Array, apply
from adjit.ir.ops.index import Gather, ScatterSet
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.cases import Case
from tests.ops.harness import Row, assert_close, eager, func_of

RNG = np.random.default_rng(7)


def everywhere(call: Callable[..., Any], arrays: Sequence[Array]) -> tuple[Array, ...]:
    """The results of a function: eager, and the same interpreted and compiled."""
    results = eager(call, arrays)
    func = func_of(call, arrays)
    assert_close(run(func, *arrays), results)
    assert_close(compile_func(OPTIMIZE(func))([np.array(a, order="C") for a in arrays]), results)
    return results


def gradient(call: Callable[..., Any], *arrays: Array) -> list[Array]:
    """Of the sum of the result, by reverse mode, interpreted and compiled."""
    row = Row(Case("case", call), arrays)
    row.cotangents = [np.ones_like(c) for c in row.cotangents]
    func = row.pullback_func()
    given = [*arrays, *row.cotangents]
    results = list(run(func, *given))
    assert_close(compile_func(OPTIMIZE(func))([np.array(a, order="C") for a in given]), results)
    return results


def test_ties_share_the_gradient_equally() -> None:
    (d,) = gradient(lambda x: ops.max(x, 1), np.array([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0], [5.0, 1.0, 1.0]]))
    np.testing.assert_array_equal(d, [[0.5, 0.5, 0], [1 / 3] * 3, [1, 0, 0]])
    (d,) = gradient(lambda x: ops.min(x), np.array([[2.0, 1.0], [1.0, 3.0]]))
    np.testing.assert_array_equal(d, [[0, 0.5], [0.5, 0]])
    (d,) = gradient(lambda x: ops.max(x), np.array([1.0, np.nan, 3.0]))
    np.testing.assert_array_equal(d, [0, 1, 0])


def test_only_the_last_write_has_a_gradient() -> None:
    i = np.array([0, 1, 0, 0])
    x, u = gradient(lambda x, u, i: apply(ScatterSet(), x, u, i), np.ones(3), np.ones(4), i)
    np.testing.assert_array_equal(x, [0, 0, 1])
    np.testing.assert_array_equal(u, [0, 1, 0, 1])


def test_gathered_duplicates_add_up() -> None:
    (d,) = gradient(lambda x, i: apply(Gather(), x, i), np.ones(3), np.array([1, 1, -2, 0]))
    np.testing.assert_array_equal(d, [1, 3, 0])


BASE = RNG.normal(size=(3, 4, 5))
MASK = BASE > 0
KEYS = [
    0, -1, (1, 2, 3), slice(None, None, -2), (..., 1), (None, 0, ..., None), [0, 2], ([0, 1], ..., [1, 2], slice(None)),
    (slice(None), [0, 1], ..., [1, 2]), (0, slice(None), [1, 2]), (slice(None), 0, [1, 2]), (slice(None), np.array(0), None, [1, 2]),
    (slice(2, 0, -1), [[0, 1], [2, 3]], slice(1, 4, 2)), ([[0], [1]], [0, 1, 2]), MASK, (slice(None), MASK[0]),
    (slice(None), MASK[0, :, 0], slice(0, 2)), ([],), (slice(3, 1),), (slice(None), [[-1]], None, slice(None, None, -1)),
    (MASK[:, 0, 0], 0), (slice(5, 0, -3), slice(-1, None), slice(None, None, 7)), (), ..., None,
    (np.uint8(1), np.array([0, 3], np.uint16)), ([2, 2, 0], slice(None, None, -1), [1, 1, 1]),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_have_numpys_meaning(key: Any) -> None:
    wanted = BASE[key]
    (value,) = everywhere(lambda x: [ops.getitem(x, key)], [BASE])
    np.testing.assert_array_equal(value, wanted, strict=True)
    update = RNG.normal(size=wanted.shape)
    written, added = everywhere(lambda x, u: [ops.setitem(x, key, u), ops.additem(x, key, u)], [BASE, update])
    expected = BASE.copy()
    expected[key] = update
    np.testing.assert_array_equal(written, expected)
    expected = BASE.copy()
    np.add.at(expected, key, update)
    np.testing.assert_allclose(added, expected, rtol=1e-14)
    (scalar,) = everywhere(lambda x: [ops.setitem(x, key, 2)], [BASE])
    expected = BASE.copy()
    expected[key] = 2
    np.testing.assert_array_equal(scalar, expected)


def test_updates_broadcast_and_are_cast() -> None:
    x = np.arange(6).reshape(2, 3)
    (value,) = everywhere(lambda x, u: [ops.setitem(x, (slice(None), 1), u)], [x, np.array([[[2.7]]])])
    np.testing.assert_array_equal(value, [[0, 2, 2], [3, 2, 5]])


def test_a_traced_index_out_of_bounds_raises_in_native_code() -> None:
    x, i = np.arange(3.0), np.array([0, 1])
    func = func_of(lambda x, i: [ops.getitem(x, i)], [x, i])
    native = compile_func(OPTIMIZE(func))
    np.testing.assert_array_equal(native([x, np.array([-3, 2])])[0], [0, 2])
    for bad in (3, -4):
        with pytest.raises(OutOfBoundsError, match=rf"index {bad} is out of bounds for axis 0 of f64\[3\], of size 3"):
            native([x, np.array([0, bad])])
        with pytest.raises(OutOfBoundsError, match=rf"index {bad} is out of bounds"):
            run(func, x, np.array([0, bad]))


def operand(*shape: int) -> Operand:
    return as_operand(np.ones(shape))


@pytest.mark.parametrize(
    ("thunk", "error", "message"),
    [
        (lambda: ops.getitem(operand(3), 3), OutOfBoundsError, r"\[3\] of f64\[3\]: index 3 is out of bounds for axis 0 of size 3"),
        (lambda: ops.getitem(operand(3), [1, -4]), OutOfBoundsError, "index -4 is out of bounds for axis 0 of size 3"),
        (lambda: ops.getitem(operand(3), (0, slice(1))), IndexingError, r"\[0, :1\] of f64\[3\]: too many indices"),
        (lambda: ops.getitem(operand(3), (..., ...)), IndexingError, "ellipsis"),
        (lambda: ops.getitem(operand(3), [np.nan]), IndexingError, r"indices must be integers or bools, not f64\[1\]"),
        (lambda: ops.getitem(operand(3), "a"), IndexingError, "'a' is not an index"),
        (lambda: ops.getitem(operand(3), np.ones(2, bool)), IndexingError, r"mask of shape \[2\]"),
        (lambda: ops.getitem(operand(3), slice(None, None, 0)), ShapeError, "step"),
        (lambda: ops.setitem(operand(3, 2), 0, np.ones(3)), ShapeError, r"f64\[3\] does not fit \[0\] of f64\[3,2\]"),
        (lambda: ops.additem(as_operand(np.arange(3)), 0, 0.5), DTypeError, "float cannot be added to i64"),
        (lambda: ops.matmul(operand(3, 4), operand(5)), ShapeError, r"inner sizes differ: f64\[3,4\] @ f64\[5\] \(4 != 5\)"),
        (lambda: ops.matmul(operand(), operand(5)), ShapeError, "scalar operand"),
        (lambda: ops.matmul(operand(2, 1, 3), operand(3, 3, 1)), ShapeError, "do not broadcast"),
        (lambda: ops.max(operand(2, 0), 1), ShapeError, r"max: axis 1 of f64\[2,0\] is empty"),
        (lambda: ops.argmin(operand(0)), ShapeError, "argmin|arg_min"),
        (lambda: ops.concatenate([]), ShapeError, "at least one"),
        (lambda: ops.concatenate([operand(2, 3), operand(3, 2)]), ShapeError, "differ in more than axis 0"),
        (lambda: ops.pad(operand(2), (-1,), (0,)), ShapeError, "negative"),
        (lambda: ops.pad(as_operand(np.zeros(2, np.int8)), (1,), (0,), (0,), 300), DTypeError, r"300 does not fit i8\[2\]"),
        (lambda: ops.slice_(operand(2), [slice(1), slice(1)]), ShapeError, "2 slices"),
        (lambda: ops.check(as_operand(np.False_), "x is {bad}"), CheckError, "x is {bad}"),
        (lambda: ops.check(operand(2) > 0), ShapeError, "all"),
        (lambda: ops.arange(0, 1, 0), ShapeError, "step not zero"),
    ],
)
def test_errors_name_the_argument(thunk: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        thunk()


def test_a_traced_mask_is_refused() -> None:
    with pytest.raises(TraceError, match="where"):
        func_of(lambda x: [ops.getitem(x, x > 0)], [np.ones(3)])


def test_assert_in_native_code() -> None:
    def checked(x: Operand) -> list[Operand]:
        ops.check(ops.all(x > 0), "all of {x} > 0")
        return [x + 1.0]

    native = compile_func(OPTIMIZE(func_of(checked, [np.ones(3)])))
    np.testing.assert_array_equal(native([np.ones(3)])[0], [2, 2, 2])
    with pytest.raises(CheckError, match=r"all of \{x\} > 0"):
        native([np.array([1.0, 0.0, 1.0])])


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    ops.print_("x = {}, y = {:.2f}", as_operand(np.arange(3)), as_operand(np.float64(0.5)))
    assert capsys.readouterr().out == "x = [0 1 2], y = 0.50\n"
    func = func_of(lambda x: [ops.print_("{}", x), x][1:], [np.ones(2)])
    run(func, np.ones(2))
    assert capsys.readouterr().out == "[1. 1.]\n"
    compile_func(OPTIMIZE(func))([np.ones(2)])
    assert capsys.readouterr().out == "[1. 1.]\n"
    with pytest.raises(ShapeError, match="arguments"):
        ops.print_("{} {}", operand(2))


def test_negative_zero_pads_as_itself() -> None:
    (out,) = everywhere(lambda x: ops.pad(x, (1,), (0,), None, -0.0), [np.array([0.0, 1.0])])
    np.testing.assert_array_equal(np.signbit(out), [True, False, False])


def test_arange_rounds_as_numpy() -> None:
    for bounds in ((0.1, 7.3, 0.1), (5,), (2, 9, 2), (-1.5, -9, -0.7), (3, 3), (4, 1)):
        (out,) = eager(lambda bounds=bounds: ops.arange(*bounds), [])
        np.testing.assert_array_equal(out, np.arange(*bounds), strict=True)
