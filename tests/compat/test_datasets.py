"""Datasets inside of compiled functions are read at every call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import adjit as aj
from adjit import tf
from adjit.ir.errors import TraceError


def counting() -> tf.data.Dataset:
    state = [0.0]

    def produce() -> Iterator[float]:
        for _ in range(3):
            state[0] += 10.0
            yield state[0]

    return tf.data.Dataset.from_generator(produce, output_signature=tf.TensorSpec((), tf.float32))


def total_of(dataset):
    def total():
        s = tf.constant(0.0)
        for x in dataset:
            s = s + x
        return s

    return total


def test_generator() -> None:
    total = tf.function(total_of(counting()))
    assert [float(total()) for _ in range(3)] == [60.0, 150.0, 240.0]
    assert total.experimental_get_tracing_count() == 1


def test_in_a_function_that_a_function_calls() -> None:
    inner = tf.function(total_of(counting()))
    outer = tf.function(lambda x: inner() * x)
    assert float(inner()) == 60.0
    assert [float(outer(tf.constant(2.0))) for _ in range(2)] == [300.0, 480.0]


@pytest.mark.parametrize("length", [0, 1, 2, 100])
def test_lengths(length: int) -> None:
    data = np.arange(length, dtype="f4")
    total = total_of(tf.data.Dataset.from_tensor_slices(data))
    assert float(tf.function(total)()) == float(total()) == data.sum()


def test_rest_of_another_shape_and_enumeration() -> None:
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(14.0, dtype="f4").reshape(7, 2), np.arange(7))).batch(3)

    def weighted():
        s = tf.constant(0.0)
        for i, (x, y) in enumerate(dataset):
            s = s + tf.reduce_sum(x) * float(i) + tf.cast(tf.reduce_sum(y), tf.float32)
        return s

    assert float(tf.function(weighted)()) == float(weighted())


def test_shuffled_order_is_another_at_each_call() -> None:
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(50.0, dtype="f4")).shuffle(50, seed=1)

    @tf.function
    def last():
        s = tf.constant(0.0)
        for x in dataset:
            s = x
        return s

    assert len({float(last()) for _ in range(5)}) > 1


def test_refused() -> None:
    with pytest.raises(TraceError, match="decorate the function with tf"):
        aj.function(total_of(counting()))()
    with pytest.raises(TraceError, match=r"use take\(count\)"):
        tf.function(total_of(counting().repeat()))()
