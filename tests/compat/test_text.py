"""Constants of text: passed through, joined, compared and printed, as in TensorFlow."""

from __future__ import annotations

import io

import numpy as np
import pytest

from adjit import tf


def test_texts_of_constants():
    one, many = tf.constant("Gray wolf"), tf.constant(["a", "b"])
    assert repr(one) == "<tf.Tensor: shape=(), dtype=string, numpy=b'Gray wolf'>"
    assert str(one) == "tf.Tensor(b'Gray wolf', shape=(), dtype=string)"
    assert str(many) == "tf.Tensor([b'a' b'b'], shape=(2,), dtype=string)"
    assert repr(many) == "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'b'], dtype=object)>"
    assert tf.constant("🥳").numpy() == "🥳".encode()
    assert (many.dtype, many.shape, len(many), many[1].numpy()) == (tf.string, (2,), 2, b"b")
    assert tf.constant("a", shape=[2]).numpy().tolist() == [b"a", b"a"]


def test_joined_and_compared():
    assert (tf.constant("a") + "b").numpy() == b"ab"
    assert ("b" + tf.constant(["a", "c"])).numpy().tolist() == [b"ba", b"bc"]
    assert bool(tf.constant("a") == "a")
    assert (tf.constant(["a", "b"]) != "a").numpy().tolist() == [False, True]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a string tensor"):
        tf.constant("a") + 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(tf.constant("a"))


def test_printed():
    stream = io.StringIO()
    tf.print("text:", tf.constant("a"), tf.constant(["b", "c"]), output_stream=stream)
    assert stream.getvalue() == 'text: a ["b" "c"]\n'


def test_functions():
    traced = []

    @tf.function
    def double(a):
        traced.append(a)
        return a + a

    assert double(tf.constant("a")).numpy() == b"aa"
    assert double(tf.constant("b")).numpy() == b"bb"
    assert double(tf.constant("a")).numpy() == b"aa"
    assert len(traced) == 2
    assert int(double(tf.constant(2))) == 4

    @tf.function
    def both(text, x):
        return text, 2.0 * x

    text, y = both(tf.constant("a"), tf.constant(3.0))
    assert (text.numpy(), float(y)) == (b"a", 6.0)


def test_concrete_functions():
    double = tf.function(lambda a: a + a)
    concrete = double.get_concrete_function(tf.constant("a"))
    assert concrete(tf.constant("a")).numpy() == b"aa"
    assert concrete(a=tf.constant("b")).numpy() == b"bb"
    spec = "TensorSpec(shape=(), dtype=tf.string, name=None)"
    assert str(concrete.function_type) == f"(a: {spec}) -> {spec}"
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a string tensor"):
        concrete(tf.constant(1))
    with pytest.raises(TypeError, match="Can not cast"):
        concrete(tf.constant(["a", "b"]))
    from_spec = double.get_concrete_function(tf.TensorSpec(shape=[], dtype=tf.string))
    assert from_spec(tf.constant("c")).numpy() == b"cc"


def test_branches_choose_no_text():
    @tf.function
    def f(x):
        return tf.constant("a") if x > 0.0 else tf.constant("b")

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        f(tf.constant(1.0))


def test_arrays_of_text():
    assert tf.constant(np.array(["a", "bc"])).numpy().tolist() == [b"a", b"bc"]
    with pytest.raises(TypeError, match="dtype string"):
        tf.constant(["a", 1])
