"""Calls that TensorFlow refuses are refused, with its error classes and the core of its messages."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit.tf as tf

ONE = tf.constant(1)


def appends(items):
    items.append(items[0])
    return items


def replaces(params):
    params["w"] = params["w"] * 2.0


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: tf.clip_by_value(tf.zeros([2, 3, 1]), tf.constant([-1.0, -2.0]), 2.0),
        ValueError,
        "Shapes .2, 3, 1. and .2, 3, 2. are incomp",
    ),
    (lambda: tf.one_hot([0, 1], 3, on_value=np.float64(1), off_value=np.float32(0)), TypeError, "of on_value does not match dtype"),
    (lambda: tf.split([1, 2, 3, 4], [2, 2], num=3), tf.errors.InvalidArgumentError, "must be 1-D and have the same elements as outputs"),
    (lambda: tf.switch_case(1, [lambda: 1, lambda: 2]), TypeError, "'branch_index' must be a Tensor, got <class 'int'>"),
    (lambda: tf.switch_case(ONE, {0: lambda: 1, 2: lambda: 2}), ValueError, r"must form contiguous range of \[0 to 2\) but found \{0, 2\}"),
    (
        lambda: tf.switch_case(ONE, [(0, lambda: 1), (0, lambda: 2)]),
        ValueError,
        r"must form contiguous range of .0 to 2. but found .0, 0.",
    ),
    (lambda: tf.switch_case(ONE, {"a": lambda: 1}), TypeError, "key must be a Python `int`, got <class 'str'>"),
    (lambda: tf.switch_case(ONE, {0: 1}), TypeError, "fn for key 0 must be callable"),
    (lambda: tf.map_fn(lambda x: x, []), ValueError, "elems must be a Tensor or .possibly nested. sequence of Tensors"),
    (lambda: tf.map_fn(lambda x: x, 1), ValueError, r"Elements in elems must be 1\+ dimensional Tensors, not scalars"),
    (lambda: tf.map_fn(lambda x: (x, x), np.arange(3), dtype=[tf.int64] * 2), TypeError, "two structures don't have the same nested"),
    (lambda: tf.while_loop(lambda i, j: i < 3, lambda i, j: (i, j, j), (0, 1)), ValueError, "two structures don't have the same nested"),
    (lambda: len(tf.constant(1.0)), TypeError, r"Scalar tensor has no `len\(\)`"),
    (lambda: tf.TensorShape([3, 5]).merge_with([3, 4]), ValueError, r"Shapes \(3, 5\) and \(3, 4\) are not compatible"),
    (lambda: tf.function(appends)([tf.constant(1.0)]), ValueError, r"appends\(items\) should not modify its Python input arguments"),
    (
        lambda: tf.function(replaces)({"w": tf.constant(1.0)}),
        ValueError,
        r"replaces\(params\) should not modify its Python input",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_copy_of_an_argument_may_be_modified() -> None:
    @tf.function
    def doubled(items):
        items = list(items)
        items.append(items[0] * 2.0)
        return items

    assert [float(x) for x in doubled([tf.constant(1.0)])] == [1.0, 2.0]


def test_structures_that_fit() -> None:
    a, b = tf.map_fn(lambda x: (x, -x), tf.constant([1.0, 2.0]), fn_output_signature=(tf.float32, tf.float32))
    np.testing.assert_array_equal(a, -b)
    assert int(tf.switch_case(ONE, [(1, lambda: 10), (0, lambda: 20)])) == 10
    assert int(tf.switch_case(tf.constant(7), [lambda: 10, lambda: 20], default=lambda: 30)) == 30


def test_shapes_and_specs() -> None:
    assert tf.TensorShape([3, None]).merge_with([None, 4]) == [3, 4]
    assert tf.TensorShape([3, 5]).most_specific_compatible_shape([3, 4]) == [3, None]
    spec = tf.TensorSpec([1, None], tf.int32, "a")
    assert tf.TensorSpec.from_spec(spec) == spec
    assert tf.TensorSpec.from_spec(spec, name="b").name == "b"
    assert weakref.ref(reference := ONE.ref())() is reference


X, K = tf.constant([1.0, 2.0]), tf.constant([1, 2])


def sums_floats_and_integers(n):
    total = 0.0
    for i in tf.range(n):
        total = total + i
    return total


# what eager code and functions refuse alike: the classes of TensorFlow 2.21
MISTAKES: list[tuple[Callable[[Any, Any], Any], type[Exception]]] = [
    (lambda x, k: x + k, TypeError),
    (lambda x, k: k + 1.5, TypeError),
    (lambda x, k: x + tf.cast(x, tf.float64), TypeError),
    (lambda x, k: tf.stack([x, k]), TypeError),
    (lambda x, k: tf.where(k > 1, x, k), TypeError),
    (lambda x, k: tf.einsum("i,i->", x, k), TypeError),
    (lambda x, k: tf.logical_and(k > 1, k), TypeError),
    (lambda x, k: tf.logical_or(k, k), TypeError),
    (lambda x, k: tf.sqrt(k), TypeError),
    (lambda x, k: x[x[0]], TypeError),
    (lambda x, k: x[0.0], TypeError),
    (lambda x, k: tf.zeros([2.5]), TypeError),
    (lambda x, k: tf.matmul(x[None], x[None]), tf.errors.InvalidArgumentError),
    (lambda x, k: tf.reduce_sum(x, axis=1), tf.errors.InvalidArgumentError),
    (lambda x, k: k // (k - 1), tf.errors.InvalidArgumentError),
    (lambda x, k: k % (k - 2), tf.errors.InvalidArgumentError),
    (lambda x, k: tf.math.floordiv(k, 0), tf.errors.InvalidArgumentError),
    (lambda x, k: sums_floats_and_integers(k[1]), TypeError),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("call", "error"), MISTAKES)
def test_mistakes_are_refused(call: Callable[[Any, Any], Any], error: type[Exception], compiled: bool) -> None:
    with pytest.raises(error):
        (tf.function(call) if compiled else call)(X, K)


def test_integer_division() -> None:
    for call in (lambda a, b: (a // b, a % b), tf.function(lambda a, b: (a // b, a % b))):
        quotient, rest = call(tf.constant([7, -7]), tf.constant([2, 2]))
        assert (quotient.numpy().tolist(), rest.numpy().tolist()) == ([3, -4], [1, 1])
        quotient, rest = call(tf.constant(7.0), tf.constant(0.0))
        assert np.isinf(quotient.numpy())
        assert np.isnan(rest.numpy())


def test_loops_over_ranges_give_tensors_of_their_dtype() -> None:
    @tf.function
    def f(n):
        last = tf.constant(0, n.dtype)
        for i in tf.range(n):
            last = i
        return last

    for dtype in (tf.int32, tf.int64):
        assert f(tf.constant(3, dtype)).dtype == dtype
