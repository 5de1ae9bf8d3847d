"""tf.name_scope, and the names of modules and variables."""

from __future__ import annotations

import pytest

from adjit import tf


def current() -> str:
    with tf.name_scope("x") as path:
        return path.removesuffix("x/")


class Layer(tf.Module):
    def __init__(self, name=None):
        super().__init__(name)
        self.inner = None
        with self.name_scope:
            self.w = tf.Variable(1.0, name="w")

    @tf.Module.with_name_scope
    def __call__(self, x):
        if self.inner is None:
            self.inner = tf.Variable(2.0, name="inner")
        if x > 0.0:
            x = x * self.inner
        return x


def test_paths():
    with tf.name_scope("a") as a, tf.name_scope("b") as b, tf.name_scope(a) as again, tf.name_scope("") as root:
        assert (a, b, again, root) == ("a/", "a/b/", "a/", "")
    assert current() == ""
    with pytest.raises(ValueError, match="must be a string"):
        tf.name_scope(None)


def test_variables_are_named_after_scopes():
    with tf.name_scope("outer"):
        assert tf.Variable(1.0, name="v").name == "outer/v:0"
        assert tf.Variable(1.0).name == "outer/Variable:0"
    assert tf.Variable(1.0, name="v").name == "v:0"
    assert tf.Variable(1.0).name == "Variable:0"


def test_modules():
    assert Layer().name == "layer"
    assert Layer().name_scope.name == "layer/"
    with tf.name_scope("outer"):
        made = Layer("first")
    assert made.name_scope.name == "outer/first/"
    assert made.name_scope is made.name_scope
    assert made.w.name == "outer/first/w:0"
    with pytest.raises(ValueError, match="not a valid module name"):
        tf.Module(name="$wrong")


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_methods_in_their_scope(wrap):
    layer = Layer()
    assert float(wrap(layer)(tf.constant(3.0))) == 6.0
    assert float(wrap(layer)(tf.constant(-3.0))) == -3.0
    assert layer.inner.name == "layer/inner:0"
    assert current() == ""


def test_errors_leave_the_scope():
    class Wrong(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self):
            raise KeyError

    with pytest.raises(KeyError):
        Wrong()()
    assert current() == ""
