"""Tensors, variables, dtypes and shapes print as TensorFlow prints them; so does tf.print."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from adjit import tf

TEXTS = [
    # value, str, repr
    (6.0, "tf.Tensor(6.0, shape=(), dtype=float32)", "<tf.Tensor: shape=(), dtype=float32, numpy=6.0>"),
    (
        [1.0, 2.0],
        "tf.Tensor([1. 2.], shape=(2,), dtype=float32)",
        "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>",
    ),
    (
        [[1, 2], [3, 4]],
        "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)",
        "<tf.Tensor: shape=(2, 2), dtype=int32, numpy=\narray([[1, 2],\n       [3, 4]], dtype=int32)>",
    ),
    (True, "tf.Tensor(True, shape=(), dtype=bool)", "<tf.Tensor: shape=(), dtype=bool, numpy=True>"),
    ([1.5e-10, 1e10], "tf.Tensor([1.5e-10 1.0e+10], shape=(2,), dtype=float32)", None),
    (
        np.zeros(0, "f4"),
        "tf.Tensor([], shape=(0,), dtype=float32)",
        "<tf.Tensor: shape=(0,), dtype=float32, numpy=array([], dtype=float32)>",
    ),
    (np.zeros(2000, "f4"), "tf.Tensor([0. 0. 0. ... 0. 0. 0.], shape=(2000,), dtype=float32)", None),
]


@pytest.mark.parametrize(("value", "text", "representation"), TEXTS, ids=[t[1][:40] for t in TEXTS])
def test_tensor(value: Any, text: str, representation: str | None) -> None:
    x = tf.constant(value)
    assert str(x) == text
    assert f"{x}" == str(np.asarray(x))
    if representation is not None:
        assert repr(x) == representation


def test_results_of_every_kind_print_alike() -> None:
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v**2
    compiled = tf.function(lambda x: (x * 2, {"a": [x + 1]}))
    out, nested = compiled(tf.constant(3.0))
    for x in (tape.gradient(y, v), out, v + v, v * 2 * 1.0, tf.reduce_sum([1.0, 5.0]), nested["a"][0] + 2, tf.constant([6.0, 1.0])[0]):
        assert repr(x) == "<tf.Tensor: shape=(), dtype=float32, numpy=6.0>"


def test_variable() -> None:
    assert repr(tf.Variable(3.0)) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>"
    w = tf.Variable([[1.0, 2.0]], name="w")
    assert str(w) == "<tf.Variable 'w:0' shape=(1, 2) dtype=float32, numpy=array([[1., 2.]], dtype=float32)>"
    v = tf.Variable([1, 2], name="n")
    assert (v.name, v.dtype, v.shape) == ("n:0", tf.int32, (2,))
    assert repr(pickle.loads(pickle.dumps(v))) == repr(copy.deepcopy(v)) == repr(v)


def test_numpy_returns_scalars_and_copies() -> None:
    x = tf.constant([1.0, 2.0])
    array = x.numpy()
    array[0] = 9
    assert x.numpy().tolist() == [1.0, 2.0]
    assert type(tf.constant(3.0).numpy()) is np.float32
    assert f"{tf.Variable(2.0).numpy():.4f}" == "2.0000"


def test_dtype_and_shape() -> None:
    x = tf.zeros([2, 3])
    assert (str(x.dtype), repr(x.dtype), x.dtype.name) == ("<dtype: 'float32'>", "tf.float32", "float32")
    assert x.dtype == tf.float32 == np.float32
    assert tf.as_dtype("int32") is tf.int32
    assert tf.as_dtype(float) is tf.float32
    assert tf.zeros([1], tf.float64).dtype is tf.float64
    assert tf.float32.is_floating
    assert tf.int8.is_integer
    assert (tf.int8.min, tf.int8.max) == (-128, 127)
    assert (str(x.shape), repr(x.shape), x.shape.as_list(), x.shape.rank) == ("(2, 3)", "TensorShape([2, 3])", [2, 3], 2)
    assert str(tf.TensorShape([None, 2])) == "(None, 2)"
    assert isinstance(x.shape[:1].concatenate([4]), tf.TensorShape)
    assert repr(tf.TensorSpec([None], tf.int32)) == "TensorSpec(shape=(None,), dtype=tf.int32, name=None)"


def test_the_repr_of_symbolic_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    @tf.function
    def f(x):
        print(x, x.dtype, x.shape.as_list())
        return x

    f(tf.constant([1.0]))
    f(tf.constant([2.0]))
    assert capsys.readouterr().out == "Tensor(\"x:0\", shape=(1,), dtype=float32) <dtype: 'float32'> [1]\n"


PRINTED = [
    ((tf.constant([1.0, 2.0]),), "[1 2]\n"),
    (("a", tf.constant(3), 1.0, True, None), "a 3 1.0 True None\n"),
    ((tf.constant([[1.0, 2.0], [3.0, 4.0]]),), "[[1 2]\n [3 4]]\n"),
    ((tf.range(20),), "[0 1 2 ... 17 18 19]\n"),
    ((tf.constant(1 / 3), tf.constant(1e20)), "0.333333343 1e+20\n"),
    (({"b": tf.constant(1.5)},), "{'b': 1.5}\n"),
]


@pytest.mark.parametrize(("values", "text"), PRINTED)
def test_print(values: tuple[Any, ...], text: str) -> None:
    stream = io.StringIO()
    tf.print(*values, output_stream=stream)
    assert stream.getvalue() == text


@pytest.mark.parametrize(("values", "text"), PRINTED)
def test_print_inside_of_a_function(values: tuple[Any, ...], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    @tf.function
    def f():
        tf.print(*values)

    for _ in range(2):
        f()
        assert capsys.readouterr().err == text


def test_text_alone_is_printed_in_every_run_of_the_branch_taken(capsys: pytest.CaptureFixture[str]) -> None:
    @tf.function
    def f(n):
        for i in tf.range(n):
            if i % 2 == 0:
                tf.print("even", end="; ", output_stream=sys.stdout)
            else:
                tf.print("odd", i, [i, {"i": i}], sep="|", output_stream=sys.stdout)

    f(tf.constant(3))
    assert capsys.readouterr().out == "even; odd|1|[1, {'i': 1}]\neven; "
    f(tf.constant(1))
    assert capsys.readouterr().out == "even; "


def test_scalars_show_their_value_in_full_where_tensorflow_does() -> None:
    assert repr(tf.constant(0.1)) == "<tf.Tensor: shape=(), dtype=float32, numpy=0.10000000149011612>"
    assert repr(tf.Variable(0.1)) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=0.10000000149011612>"
    assert str(tf.constant(0.1)) == "tf.Tensor(0.1, shape=(), dtype=float32)"
