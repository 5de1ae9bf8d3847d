"""Every function that a user passes to adjit is converted when it is traced, by whatever code: layers, losses, transforms, tf.map_fn."""

# ruff: noqa: E731 - as users write

from __future__ import annotations

import functools
import types
from collections.abc import Callable

import numpy as np
import pytest

import adjit as aj
from adjit import nn, tf

T: list[Callable[[], None]] = []


def t(f: Callable[[], None]) -> Callable[[], None]:
    T.append(f)
    return f


def branchy(x):
    if np.sum(x) > 0:
        y = x * 2
    else:
        y = x - 1
    return y


def deco(f):
    @functools.wraps(f)
    def w(*a, **k):
        return f(*a, **k)

    return w


def deco2(f):
    def w(*a, **k):
        return f(*a, **k)

    return w


@deco
@deco2
def decorated(x):
    return branchy(x)


@deco2
def decorated2(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


X = np.ones(3)


def same(f, x=X):
    a = aj.function(lambda x: f(x))(x)
    np.testing.assert_allclose(np.asarray(a), 2 * np.ones_like(np.asarray(a)), err_msg=str(a))


@t
def custom_gradient():
    @aj.custom_gradient
    def f(x):
        if np.sum(x) > 0:
            y = x * 2
        else:
            y = x - 1

        def g(d):
            if np.sum(d) > 0:
                return d * 2
            else:
                return d

        return y, g

    same(f)

    def h(x):
        with aj.GradientTape() as tp:
            tp.watch(x)
            y = np.sum(f(x))
        return tp.gradient(y, x)

    same(h)


@t
def custom_jvp():
    @aj.custom_jvp
    def f(x):
        if np.sum(x) > 0:
            y = x * 2
        else:
            y = x - 1
        return y

    @f.defjvp
    def f_jvp(p, tg):
        (x,) = p
        (d,) = tg
        if np.sum(x) > 0:
            dy = d * 2
        else:
            dy = d
        return f(x), dy

    same(f)
    same(aj.grad(lambda x: np.sum(f(x))))


@t
def checkpoint():
    same(aj.checkpoint(branchy))


@t
def vmap():
    same(lambda x: aj.vmap(branchy)(x), np.ones((2, 3)))


@t
def grad_vmap():
    same(lambda x: aj.vmap(aj.grad(lambda r: np.sum(branchy(r))))(x), np.ones((2, 3)))


@t
def module():
    class M(nn.Module):
        def call(self, x):
            if np.sum(x) > 0:
                y = x * 2
            else:
                y = x - 1
            return y

    m = M()
    same(m)


@t
def module_loop():
    class M(nn.Module):
        def call(self, x):
            s = x * 0
            while s.sum() < 6:
                s = s + 1
            return s

    same(nn.Sequential([M()]))


@t
def module_build():
    class M(nn.Module):
        def build(self, s):
            self.w = self.add_variable("w", (3,), "ones", dtype="float64")

        def call(self, x):
            if np.sum(x) > 0:
                y = x * 2 * self.w
            else:
                y = x - 1
            return y

    m = M()
    same(m)


@t
def lam():
    same(nn.Lambda(branchy))


@t
def lam_inline():
    same(nn.Lambda(lambda x: x * 2 if np.sum(x) > 0 else x - 1))


@t
def activation():
    l = nn.Dense(3, activation=branchy, kernel_initializer=lambda shape, dtype=None: np.eye(3, dtype=dtype))
    same(l, np.ones((2, 3), "f4"))


@t
def activation_layer():
    same(nn.Activation(branchy), np.ones((2, 3), "f4"))


def myloss(y, p):
    if np.sum(p) > 0:
        l = (y - p) ** 2
    else:
        l = abs(y - p)
    return l


@t
def loss():
    m = nn.Sequential([nn.Dense(1)])
    tr = nn.Trainer(m, loss=myloss, optimizer=nn.optimizers.SGD(0.1))
    tr.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), epochs=1, batch_size=4, verbose=0)


@t
def losscls():
    class L(nn.losses.Loss):
        def call(self, y, p):
            return myloss(y, p)

        def __call__(self, y, p, sample_weight=None):
            if np.sum(p) > 0:
                l = np.mean((y - p) ** 2)
            else:
                l = np.mean(abs(y - p))
            return l

    m = nn.Sequential([nn.Dense(1)])
    tr = nn.Trainer(m, loss=L(), optimizer=nn.optimizers.SGD(0.1))
    tr.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), epochs=1, batch_size=4, verbose=0)


@t
def metric():
    def acc(y, p):
        if np.sum(p) > 0:
            l = np.mean((y - p) ** 2)
        else:
            l = np.mean(abs(y - p))
        return l

    m = nn.Sequential([nn.Dense(1)])
    tr = nn.Trainer(m, loss="mse", optimizer=nn.optimizers.SGD(0.1), metrics=[acc])
    tr.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), epochs=1, batch_size=4, verbose=0)


@t
def trainer_step():
    class T2(nn.Trainer):
        def train_step(self, *a):
            if np.sum(a[0]) > 0:
                z = 1.0
            else:
                z = 0.0
            return super().train_step(*a) * z

    m = nn.Sequential([nn.Dense(1)])
    tr = T2(m, loss="mse", optimizer=nn.optimizers.SGD(0.1))
    tr.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), epochs=1, batch_size=4, verbose=0)


@t
def regularizer():
    def reg(w):
        if np.sum(w) > 0:
            r = np.sum(w * w)
        else:
            r = np.sum(abs(w))
        return r

    m = nn.Sequential([nn.Dense(1, kernel_regularizer=reg)])
    tr = nn.Trainer(m, loss="mse", optimizer=nn.optimizers.SGD(0.1))
    tr.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), epochs=1, batch_size=4, verbose=0)


@t
def schedule():
    m = nn.Sequential([nn.Dense(1)])

    def s(step):
        if step > 1:
            r = 0.1
        else:
            r = 0.2
        return r

    tr = nn.Trainer(m, loss="mse", optimizer=nn.optimizers.SGD(s))
    tr.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), epochs=1, batch_size=4, verbose=0)


@t
def keras_layer():
    class L(tf.keras.layers.Layer):
        def call(self, x):
            if tf.reduce_sum(x) > 0:
                y = x * 2
            else:
                y = x - 1
            return y

    l = L()
    np.testing.assert_allclose(tf.function(lambda x: l(x))(tf.ones(3)), 2 * np.ones(3))


@t
def keras_model():
    class L(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.d = tf.keras.layers.Dense(1)

        def call(self, x):
            if tf.reduce_sum(x) > 0:
                y = x * 2
            else:
                y = x - 1
            return self.d(y)

    m = L()
    m.compile("sgd", "mse")
    m.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), epochs=1, verbose=0)


@t
def keras_lambda():
    m = tf.keras.Sequential([tf.keras.layers.Lambda(lambda x: x * 2 if tf.reduce_sum(x) > 0 else x), tf.keras.layers.Dense(1)])
    m.compile("sgd", myloss)
    m.fit(np.ones((8, 3), "f4"), np.ones((8, 1), "f4"), epochs=1, verbose=0)


@t
def tf_map_fn():
    f = lambda r: r * 2 if tf.reduce_sum(r) > 0 else r - 1
    np.testing.assert_allclose(tf.function(lambda x: tf.map_fn(f, x))(tf.ones((2, 3))), 2 * np.ones((2, 3)))
    np.testing.assert_allclose(tf.function(lambda x: tf.vectorized_map(f, x))(tf.ones((2, 3))), 2 * np.ones((2, 3)))


@t
def tf_scan():
    def f(a, r):
        if tf.reduce_sum(r) > 0:
            o = a + r
        else:
            o = a
        return o

    np.testing.assert_allclose(tf.function(lambda x: tf.scan(f, x))(tf.ones((2, 3)))[-1], 2 * np.ones(3))
    np.testing.assert_allclose(tf.function(lambda x: tf.foldl(f, x))(tf.ones((2, 3))), 2 * np.ones(3))


@t
def tf_while():
    def b(i, s):
        if i > 0:
            s = s + 1
        else:
            s = s + 1
        return i + 1, s

    np.testing.assert_allclose(tf.function(lambda x: tf.while_loop(lambda i, s: i < 1 and i < 2, b, (0, x)))(tf.ones(3))[1], 2 * np.ones(3))


@t
def tf_cond():
    def a(x):
        if tf.reduce_sum(x) > 0:
            y = x * 2
        else:
            y = x
        return y

    np.testing.assert_allclose(tf.function(lambda x: tf.cond(x[0] > 0, lambda: a(x), lambda: x))(tf.ones(3)), 2 * np.ones(3))


@t
def tf_module():
    class M(tf.Module):
        def __call__(self, x):
            if tf.reduce_sum(x) > 0:
                y = x * 2
            else:
                y = x - 1
            return y

    m = M()
    np.testing.assert_allclose(tf.function(lambda x: m(x))(tf.ones(3)), 2 * np.ones(3))

    class M2(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self, x):
            if tf.reduce_sum(x) > 0:
                y = x * 2
            else:
                y = x - 1
            return y

    m2 = M2()
    np.testing.assert_allclose(tf.function(m2.__call__)(tf.ones(3)), 2 * np.ones(3))


@t
def tf_custom_gradient():
    @tf.custom_gradient
    def f(x):
        if tf.reduce_sum(x) > 0:
            y = x * 2
        else:
            y = x - 1

        def g(d):
            if tf.reduce_sum(d) > 0:
                r = d * 2
            else:
                r = d
            return r

        return y, g

    np.testing.assert_allclose(tf.function(f)(tf.ones(3)), 2 * np.ones(3))

    @tf.function
    def h(x):
        with tf.GradientTape() as tp:
            tp.watch(x)
            y = f(x)
        return tp.gradient(y, x)

    np.testing.assert_allclose(h(tf.ones(3)), 2 * np.ones(3))


@t
def decorators():
    same(decorated)
    same(decorated2)


@t
def partials():
    def f(a, x):
        if np.sum(x) > 0:
            return x * a
        return x

    same(functools.partial(f, 2.0))
    same(functools.partial(functools.partial(f), 2))


@t
def callables():
    class C:
        def __call__(self, x):
            if np.sum(x) > 0:
                return x * 2
            return x

        def m(self, x):
            if np.sum(x) > 0:
                return x * 2
            return x

        @staticmethod
        def s(x):
            if np.sum(x) > 0:
                return x * 2
            return x

        @classmethod
        def c(cls, x):
            if np.sum(x) > 0:
                return x * 2
            return x

    c = C()
    same(c)
    same(c.m)
    same(C.s)
    same(C.c)
    same(c.c)
    aj.function(c)(X)
    aj.function(c.m)(X)


@t
def lambdas_in_a_line():
    fs = [lambda x: x * 2 if np.sum(x) > 0 else x, lambda x: x * 3 if np.sum(x) > 0 else x, lambda x: x * 2 if np.sum(x) > 0 else x]
    same(fs[0])
    same(fs[2])
    a, b = (lambda x: x * 2 if np.sum(x) > 0 else x), (lambda x: x * 2 if np.sum(x) > 0 else x)
    same(a)
    same(b)


@t
def constructor():
    class P:
        def __init__(self, x):
            if np.sum(x) > 0:
                self.y = x * 2
            else:
                self.y = x

    same(lambda x: P(x).y)


@t
def reduce_():
    same(lambda x: functools.reduce(lambda a, b: a + b if np.sum(b) > 0 else a, [x, x]))


@t
def scan_map():
    same(lambda x: aj.map(branchy, x), np.ones((2, 3)))


@t
def optimizer_minimize():
    v = aj.Variable(np.ones(3))

    def objective():
        if np.sum(v) > 0:
            r = np.sum(v * v)
        else:
            r = np.sum(v)
        return r

    o = nn.optimizers.SGD(0.1)
    aj.function(lambda: o.minimize(objective, [v]))()


@t
def method_of_a_callable_without_a_name():
    class Scaled:
        def __call__(self, factor, x):
            return branchy(x) * factor

    scaled = types.MethodType(Scaled(), 3.0)
    np.testing.assert_array_equal(aj.function(lambda x: scaled(x))(np.ones(2)), [6.0, 6.0])


@pytest.mark.parametrize("case", T, ids=lambda f: f.__name__)
def test_handed_over(case: Callable[[], None]) -> None:
    case()
