"""Programs that change objects in branches and loops, through other names, functions and containers."""

# ruff: noqa: B007, F841 - as users write

from __future__ import annotations

import collections
import types

import numpy as np

import adjit as aj
from tests.autograph.effect_table import effect


@effect((1.0,), (-1.0,))
def alias_list(x):
    a = [x]
    b = a
    if x > 0:
        b.append(2.0)
    return sum(a), len(b)


@effect((1.0,), (-1.0,), refused=True)
def bound(x):
    a = [x]
    add = a.append
    if x < 0:
        add(10.0)
    return sum(a)


@effect((1.0,), (-1.0,))
def copyto(x):
    a = np.zeros(2)
    if x < 0:
        np.copyto(a, 5.0)
    return a[0] + x


@effect((1.0,), (-1.0,))
def fill(x):
    a = np.zeros(2)
    if x < 0:
        a.fill(5.0)
    return a[0] + x


@effect((1.0,), (-1.0,))
def addout(x):
    a = np.zeros(2)
    if x < 0:
        np.add(a, 3.0, out=a)
    return a[0] + x


@effect((1.0,), (-1.0,), refused=True)
def deq(x):
    d = collections.deque([x, 2.0])
    if x < 0:
        d.append(3.0)
    return sum(d)


@effect((1.0,), (-1.0,))
def deq2(x):
    d = collections.deque([x, 2.0], maxlen=2)
    if x < 0:
        d.append(3.0)
    return d[0] * 2 + d[1]


@effect((1.0,), (-1.0,))
def counter(x):
    c = collections.Counter()
    c["a"] = 1
    if x < 0:
        c["a"] += 1
    return c["a"] + x


@effect((1.0,), (-1.0,))
def counter2(x):
    c = collections.Counter("aab")
    if x < 0:
        c.update("a")
    return c["a"] + x


class K:
    n = 0


@effect((1.0,), (-1.0,))
def classattr(x):
    K.n = 0
    if x < 0:
        K.n += 1
    return K.n + x


class K2:
    n = 0

    def step(self):
        type(self).n += 1


@effect((1.0,), (-1.0,))
def classattr2(x):
    K2.n = 0
    k = K2()
    if x < 0:
        k.step()
    return K2.n + x


@effect((1.0,), (-1.0,), refused=True)
def nextit(x):
    it = iter([1.0, 2.0])
    if x < 0:
        y = next(it)
    else:
        y = 0.0
    return next(it) + x + y


@effect((1.0,), (-1.0,), refused=True)
def gen_next(x):
    g = (i * 1.0 for i in range(5))
    y = 0.0
    if x < 0:
        y = next(g)
    return next(g) + x + y


@effect((np.ones(3),), refused=True)
def zy(x):
    y = x * 1.0
    z = y
    z += 1
    return y, z


@effect((np.ones(3),), refused=True)
def zyview(x):
    y = x * 1.0
    z = y[1:]
    z += 1
    return y, z


class S:
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n

    def step(self):
        self.n = self.n * 0.5


@effect((8.0,), (0.5,))
def slots_while(x):
    s = S(x)
    while s.n > 1:
        s.step()
    return s.n


@effect((1.0,), (-1.0,))
def loc(x):
    y = 2.0
    if x > 0:
        y = 3.0
    return sorted(locals())


@effect((1.0,), (-1.0,))
def loc2(x):
    y = 2.0
    if x > 0:
        y = locals()["x"]
    return locals()["y"]


@effect((1.0,), (-1.0,), refused=True)
def container(x):
    a = [x]
    d = {"k": a}
    if x > 0:
        d["k"].append(1.0)
    return sum(a), len(d["k"])


@effect((1.0,), (-1.0,))
def container2(x):
    a = [x, 1.0]
    d = {"k": a}
    if x > 0:
        d["k"][1] = 5.0
    return sum(a) + d["k"][1]


def push(l, v):
    l.append(v)


@effect((1.0,), (-1.0,))
def helper(x):
    a = [x]
    if x > 0:
        push(a, 2.0)
    return sum(a)


@effect((1.0,), (-1.0,))
def helper_alias(x):
    a = [x]
    b = a
    if x > 0:
        push(a, 2.0)
    return sum(b)


G = [0.0]


@effect((1.0,), (-1.0,))
def glob(x):
    G[0] = 0.0
    if x > 0:
        G[0] = x * 2
    return G[0]


cnt = 0


def bump():
    global cnt
    cnt += 1


@effect((1.0,), (-1.0,))
def globnum(x):
    global cnt
    cnt = 0
    if x > 0:
        bump()
    return cnt + x


@effect((1.0, 3), (-1.0, 0))
def nonloc(x, n):
    t = 0.0

    def add(v):
        nonlocal t
        t = t + v

    for i in range(n):
        add(x)
    return t


@effect((1.0,), (-1.0,))
def nonloc_if(x):
    t = 0.0

    def add(v):
        nonlocal t
        t = t + v

    if x > 0:
        add(x)
    return t


@effect((1.0, 3), (-1.0, 0))
def alias_loop(x, n):
    a = [x, 0.0]
    b = a
    for i in range(n):
        b[1] = b[1] + x
    return a[1]


@effect((1.0,))
def alias_loop_append(x):
    a = [x]
    b = a
    for i in aj.range(3):
        b.append(x * i)
    return sum(a), len(b)


@effect((1.0,), refused=True)
def bound_loop_append(x):
    a = [x]
    add = a.append
    for i in aj.range(3):
        add(x * i)
    return sum(a)


@effect((1.0,))
def bound_plain_loop(x):
    a = [x]
    add = a.append
    for i in range(100):
        add(x * i)
    return sum(a)


@effect((1.0,))
def it_place(x):
    it = iter([x, 2 * x, 3 * x])
    for v in it:
        break
    return sum(it)


@effect((1.0,), refused=True)
def it_place2(x):
    it = iter([x, 2 * x, 3 * x, 4 * x])
    for v in it:
        if v == 2:
            break
    return sum(it)


@effect((1.0,))
def it_next_loop(x):
    it = iter(range(200))
    s = 0.0
    for i in range(100):
        s = s + next(it) * x
    return s + next(it)


@effect((1.0,), (-1.0,), refused=True)
def ternary_effect(x):
    a = [x]
    y = a.append(1.0) if x > 0 else None
    return sum(a)


@effect((1.0,), (-1.0,), refused=True)
def and_effect(x):
    a = [x]
    x > 0 and a.append(1.0)
    return sum(a)


@effect((1.0,), (-1.0,))
def ns(x):
    s = types.SimpleNamespace(v=1.0)

    def f():
        s.v = s.v + x

    if x > 0:
        f()
    return s.v


@effect((1.0,), (-1.0,), refused=True)
def sets(x):
    s = {1}
    if x > 0:
        s.add(2)
    return len(s) + x


@effect((1.0,), (-1.0,))
def tup(x):
    t = ([x], 1)
    if x > 0:
        t[0].append(2.0)
    return sum(t[0])


@effect((1.0,), (-1.0,))
def rebound_then_alias(x):
    a = [x]
    b = [0.0]
    if x > 0:
        b = a
        b.append(3.0)
    return sum(a) + sum(b)


@effect((1.0,), (-1.0,))
def arr_alias(x):
    a = np.zeros(3)
    b = a
    if x > 0:
        b[0] = 1.0
    return a.sum() + b.sum()


@effect((1.0,), (-1.0,))
def arr_view(x):
    a = np.zeros(3)
    b = a[:2]
    if x > 0:
        b[0] = 1.0
    return a.sum() + b.sum()


@effect((1.0,), (-1.0,), refused=True)
def arr_in_list(x):
    a = np.zeros(3)
    l = [a]
    if x > 0:
        l[0][0] = 1.0
    return a.sum()


@effect((1.0,), (-1.0,))
def shuffle(x):
    l = [1.0, 2.0]
    if x > 0:
        l.reverse()
    return l[0] + x


@effect((1.0,), (-1.0,))
def defaultd(x):
    d = collections.defaultdict(float)
    d["a"] += 1.0
    if x > 0:
        d["a"] += x
    return d["a"]


@effect((1.0,), (-1.0,))
def newkey(x):
    d = {}
    if x > 0:
        d["a"] = x
    else:
        d["a"] = 0.0
    return d["a"]


@effect((1.0,), (-1.0,), refused=True)
def newkey_one(x):
    d = {}
    if x > 0:
        d["a"] = x
    return d.get("a", 7.0)


class Acc:
    def __init__(self):
        self.t = 0

    def add(self, v):
        self.t += v


@effect((1.0, 3), (2.0, 0))
def acc_loop(x, n):
    a = Acc()
    for i in range(n):
        a.add(x)
    return a.t


@effect((1.0,), (-2.0,))
def acc_if(x):
    a = Acc()
    if x > 0:
        a.add(x)
    return a.t


@effect((1.0,), (-2.0,), refused=True)
def acc_new_attr(x):
    a = Acc()
    if x > 0:
        a.u = x
    return hasattr(a, "u")


@effect((2.0,), refused=True)
def gen_if(x):
    def g():
        if x > 0:
            yield 1
        yield 2

    return sum(g())


@effect((2.0,))
def gen_while(x):
    def g():
        i = 0
        while i < 3:
            yield x * i
            i += 1

    return sum(list(g()))


@effect((2.0,))
def gen_return(x):
    def g():
        for i in range(10):
            if i == 3:
                return
            yield x * i

    return sum(g())


def outer_gen(x, n):
    for i in range(n):
        if i == 1:
            continue
        y = yield x * i


@effect((2.0,))
def gen_top(x):
    return sum(outer_gen(x, 4))


@effect((3.0,))
def lst_pop_while(x):
    st = [1.0, 2.0, 3.0]
    s = 0.0
    while st:
        s = s + st.pop() * x
    return s


@effect((3.0,))
def zip_it(x):
    z = zip([1, 2, 3], [x, x, x])
    for a, b in z:
        if a == 2:
            break
    return sum(a * b for a, b in z)


@effect((3.0,), (0.0,), refused=True)
def break_traced_iter(x):
    it = iter([1.0, 2.0, 3.0])
    for a in it:
        if a * x > 3:
            break
    return sum(it)
