"""Datasets inside compiled functions are read at every call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import tf
from adjit.ir.errors import TraceError
from adjit.runtime.slow_calls import SlowCallWarning


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


# ---- the flow of elements


def numbers(dataset: tf.data.Dataset) -> list[object]:
    return [x.numpy().tolist() for x in dataset]


FLOWS = {
    "concatenate": (lambda d: d.concatenate(tf.data.Dataset.range(2)), [0, 1, 2, 3, 0, 1]),
    "flat_map": (lambda d: d.flat_map(lambda x: tf.data.Dataset.range(x)), [0, 0, 1, 0, 1, 2]),
    "unbatch": (lambda d: d.batch(3).unbatch(), [0, 1, 2, 3]),
    "interleave": (lambda d: d.interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), 2), [0, 1, 0, 1, 2, 3, 2, 3]),
    "interleave blocks": (
        lambda d: d.interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(3), 2, block_length=2),
        [0, 0, 1, 1, 0, 1, 2, 2, 3, 3, 2, 3],
    ),
    "window": (lambda d: d.window(2).flat_map(lambda w: w.batch(2)), [[0, 1], [2, 3]]),
    "shifted window": (lambda d: d.window(3, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(3)), [[0, 1, 2], [1, 2, 3]]),
    "strided window": (lambda d: d.window(2, shift=1, stride=2).flat_map(lambda w: w.batch(2)), [[0, 2], [1, 3], [2], [3]]),
    "padded_batch": (lambda d: d.map(lambda x: tf.fill([int(x)], x)).padded_batch(2), [[[0], [1]], [[2, 2, 0], [3, 3, 3]]]),
    "padded_batch value": (
        lambda d: d.map(lambda x: tf.fill([int(x)], x)).padded_batch(4, [4], np.int64(-1)),
        [[[-1, -1, -1, -1], [1, -1, -1, -1], [2, 2, -1, -1], [3, 3, 3, -1]]],
    ),
    "prefetch": (lambda d: d.map(lambda x: x * x).prefetch(2), [0, 1, 4, 9]),
    "prefetch automatic": (lambda d: d.prefetch(tf.data.AUTOTUNE).prefetch(1), [0, 1, 2, 3]),
    "cache": (lambda d: d.cache().repeat(2), [0, 1, 2, 3] * 2),
}


@pytest.mark.parametrize("name", FLOWS)
def test_flow(name: str) -> None:
    change, expected = FLOWS[name]
    dataset = change(tf.data.Dataset.range(4))
    assert numbers(dataset) == numbers(dataset) == expected
    if not name.startswith(("window", "strided", "padded")):

        @tf.function
        def last() -> object:
            found = tf.constant(-1, tf.int64)
            for x in dataset:
                found = tf.reduce_max(x)
            return found

        assert int(last()) == np.max(expected[-1])


def test_windows_of_structures() -> None:
    both = tf.data.Dataset.zip((tf.data.Dataset.range(4), tf.data.Dataset.range(4, 8)))
    first, second = next(iter(both.window(3)))
    assert (numbers(first), numbers(second)) == ([0, 1, 2], [4, 5, 6])


def test_prefetching_reads_ahead_stops_and_passes_errors_on() -> None:
    read: list[int] = []
    third = threading.Event()

    def source() -> Iterator[int]:
        for i in range(1000):
            read.append(i)
            if i == 2:
                third.set()
            yield i

    elements = iter(tf.data.Dataset.from_generator(source, output_types=tf.int32).prefetch(2))
    assert int(next(elements)) == 0
    assert third.wait(60.0)  # without anyone asking for it
    elements.close()  # type: ignore[attr-defined]
    assert len(read) < 10

    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("broken")

    elements = iter(tf.data.Dataset.from_generator(failing, output_types=tf.int32).prefetch(4))
    assert int(next(elements)) == 1
    with pytest.raises(KeyError, match="broken"):
        next(elements)


def test_what_a_flow_refuses() -> None:
    with pytest.raises(TypeError, match="must return a `Dataset` object"):
        list(tf.data.Dataset.range(2).flat_map(lambda x: x))
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit the shape"):
        list(tf.data.Dataset.range(4).map(lambda x: tf.fill([int(x)], x)).padded_batch(4, [2]))
    with pytest.raises(NotImplementedError, match=r"tf\.data\.Dataset\.snapshot"):
        tf.data.Dataset.range(4).snapshot("here")


def test_generators_keep_their_promises() -> None:
    def pairs(count):
        for k in range(int(count)):
            yield [k, k + 0.5], {"y": np.float64(k)}

    spec = (tf.TensorSpec([None], tf.float32), {"y": tf.TensorSpec([], tf.float32)})
    dataset = tf.data.Dataset.from_generator(pairs, args=(2,), output_signature=spec)
    assert dataset.element_spec == spec
    found = list(dataset)
    assert [x.dtype for x, _ in found] == [tf.float32] * 2
    assert [float(y["y"]) for _, y in found] == [0.0, 1.0]

    @tf.function
    def total(numbers):
        out = tf.constant(0, tf.int64)
        for x in numbers:
            out += x
        return out

    assert int(total(tf.data.Dataset.from_generator(lambda: iter([1, 2]), tf.int64))) == 3
    dtypes = (
        tf.data.Dataset.from_generator(lambda: iter([(1, 2)]), output_types=(tf.uint8, tf.float64), output_shapes=((), ()))
    ).element_spec
    assert [one.dtype for one in dtypes] == [tf.uint8, tf.float64]


@pytest.mark.parametrize(
    ("element", "spec"),
    [
        (1.5, tf.TensorSpec([], tf.int32)),
        ([1, 2], tf.TensorSpec([3], tf.int32)),
        ((1, 2), (tf.TensorSpec([], tf.int32),)),
        ({"a": 1}, {"b": tf.TensorSpec([], tf.int32)}),
        ("text", tf.TensorSpec([], tf.float32)),
    ],
)
def test_generators_that_break_them_are_refused(element, spec) -> None:
    with pytest.raises(TypeError, match="`generator` yielded an element"):
        list(tf.data.Dataset.from_generator(lambda: iter([element]), output_signature=spec))
    with pytest.raises(TypeError, match="output_signature"):
        tf.data.Dataset.from_generator(lambda: iter([element]))


def test_parts_of_a_dataset() -> None:
    numbers = tf.data.Dataset.range(7)
    assert [int(x) for x in numbers.shard(3, 1)] == [1, 4]
    assert len(numbers.shard(3, 0)) == 3
    assert [int(x) for x in numbers.take_while(lambda x: x < 3)] == [0, 1, 2]
    assert [int(x) for x in numbers.scan(np.int64(0), lambda s, x: (s + x, s + x))] == [0, 1, 3, 6, 10, 15, 21]
    assert [int(x) for x in numbers.apply(lambda d: d.skip(5))] == [5, 6]
    assert int(numbers.skip(6).get_single_element()) == 6
    for wrong in (numbers, numbers.take(0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Dataset (had|was)"):
            wrong.get_single_element()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Index must be"):
        numbers.shard(2, 2)


class TestIterators:
    """Functions that take elements from an iterator: each call continues where the last one stopped."""

    pytestmark = pytest.mark.filterwarnings("ignore::adjit.runtime.slow_calls.SlowCallWarning")

    @staticmethod
    def numbers() -> Any:
        return iter(tf.data.Dataset.range(6))

    def test_next(self):
        step = tf.function(lambda iterator: 2 * next(iterator))
        one, other = self.numbers(), self.numbers()
        assert [int(step(one)) for _ in range(3)] == [0, 2, 4]
        assert [int(step(other)), int(step(one))] == [0, 6]
        outside = self.numbers()
        step = tf.function(lambda: next(outside))
        assert [int(step()) for _ in range(3)] == [0, 1, 2]

    def test_in_a_loop(self):
        @tf.function
        def total(iterator, n):
            out = tf.constant(0, tf.int64)
            for _ in tf.range(n):
                out += next(iterator)
            return out

        iterator = self.numbers()
        assert [int(total(iterator, tf.constant(3))), int(total(iterator, 2)), int(total(iterator, tf.constant(1)))] == [3, 7, 5]

    def test_all_that_is_left(self):
        @tf.function
        def total(iterator):
            out = tf.constant(0, tf.int64)
            for x in iterator:
                out += x
            return out

        iterator = self.numbers()
        next(iterator)
        next(iterator)
        assert [int(total(iterator)), int(total(iterator))] == [14, 0]

    def test_beside_an_iterator_of_python(self):
        @tf.function
        def total(numbers, iterator):
            out = tf.constant(0, tf.int64)
            for x in numbers:
                out += x
            return out + next(iterator)

        iterator = self.numbers()
        next(iterator)
        assert int(total(iter([10, 20]), iterator)) == 31

    def test_made_in_the_function(self):
        dataset = tf.data.Dataset.range(6)

        @tf.function
        def first(n):
            iterator, out = iter(dataset), tf.constant(0, tf.int64)
            for _ in tf.range(n):
                out += next(iterator)
            return out

        assert [int(first(tf.constant(3))), int(first(tf.constant(4)))] == [3, 6]

    def test_the_end(self):
        iterator = iter(tf.data.Dataset.from_tensor_slices([7]))
        assert iterator.element_spec == tf.TensorSpec([], tf.int32)
        step = tf.function(lambda: iterator.get_next())
        assert int(step()) == 7
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            step()

    def test_gradients_and_variables(self):
        w = tf.Variable(1.0)
        rows = iter(tf.data.Dataset.from_tensor_slices(np.array([2.0, 3.0], "f4")))

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = w * next(rows)
            w.assign_sub(tape.gradient(loss, w))
            return loss

        assert [float(step()), float(step()), float(w)] == [2.0, -3.0, -4.0]

    def test_a_function_of_adjit_raises(self):
        iterator = self.numbers()
        with pytest.raises(TypeError, match=r"step\(next\(iterator\)\)"):
            aj.function(lambda: next(iterator) + 1)()


def test_an_iterator_in_a_function_warns():
    iterator = iter(tf.data.Dataset.range(3))
    step = tf.function(lambda: next(iterator))
    with pytest.warns(SlowCallWarning, match=r"runs op by op(.|\n)*pass them \(`step\(next\(iterator\)\)`\)"):
        step()
