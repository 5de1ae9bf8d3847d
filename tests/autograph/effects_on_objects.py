"""Programs that change objects to which others refer."""

# ruff: noqa: B006, B007, B010, E731 - as users write

from __future__ import annotations

import collections

import numpy as np

import adjit as aj
from tests.autograph.effect_table import effect


@effect((np.zeros((0, 2)),), (np.ones((1, 2)),), (np.ones((2, 2)),))
def map0(x):
    return aj.map(lambda r: r * 2, x)


@effect((np.zeros((0, 2)),), (np.ones((1, 2)),))
def scan0(x):
    return aj.scan(lambda c, r: (c + r.sum(), c), 0.0, x)


@effect((np.zeros((0, 2)),), (np.ones((1, 2)),))
def for0(x):
    s = 0.0
    ys = []
    for r in x:
        s = s + r.sum()
        ys.append(s)
    return s, len(ys)


class Node:
    def __init__(self, v, nxt=None):
        self.v = v
        self.nxt = nxt


@effect((1.0,), (-1.0,))
def linked(x):
    a = Node(x)
    b = Node(2.0, a)
    if x > 0:
        b.nxt.v = b.nxt.v * 5
    return a.v + b.v


@effect((1.0,), (-1.0,))
def linked2(x):
    a = Node(x)
    b = Node(2.0, a)

    def deep(n):
        n.nxt.v = n.nxt.v + 1

    if x > 0:
        deep(b)
    return a.v


@effect((3.0,), (0.5,))
def obj_in_list_while(x):
    objs = [Node(x), Node(1.0)]
    while objs[0].v > 1:
        objs[0].v = objs[0].v / 2
        objs[1].v = objs[1].v + 1
    return objs[0].v, objs[1].v


@effect((1.0,), (-1.0,))
def closure_counter(x):
    def make():
        n = [0]

        def inc():
            n[0] += 1
            return n[0]

        return inc

    c = make()
    if x > 0:
        c()
    c()
    return c()


@effect((1.0,), (-1.0,))
def swap(x):
    a = [1.0]
    b = [2.0]
    if x > 0:
        a, b = b, a
    a.append(5.0)
    return sum(a), sum(b)


@effect((1.0,), (-1.0,))
def array_of_attr(x):
    n = Node(np.zeros(3))
    if x > 0:
        n.v[0] = 7.0
    return n.v.sum()


@effect((1.0,), (-1.0,), refused=True)
def array_of_dict(x):
    d = {"a": np.zeros(3)}
    if x > 0:
        d["a"][1] = x
    return d["a"].sum()


@effect((1.0,), (-1.0,))
def arr_inplace_in_branch(x):
    a = np.ones(3)
    if x > 0:
        a += 1
    return a.sum()


@effect((1.0,), (-1.0,))
def arr_inplace_alias_in_branch(x):
    a = np.ones(3)
    b = a
    if x > 0:
        b += 1
    return a.sum()


@effect((4,), (0,), refused=True)
def arr_fill_loop(n):
    a = np.zeros(5)
    for i in range(n):
        a.fill(i)
    return a.sum()


@effect((4,), (0,))
def deque_loop(n):
    d = collections.deque([0.0, 1.0], maxlen=2)
    for i in range(n):
        d.append(d[0] + d[1])
    return d[0], d[1]


@effect((4,), (0,))
def counter_loop(n):
    c = collections.Counter(a=0, b=0)
    for i in range(n):
        c["a"] += 1
        if i % 2 == 0:
            c["b"] += i
    return c["a"], c["b"]


@effect((1.0,), (-1.0,))
def dict_update(x):
    d = {"a": 1.0, "b": 2.0}
    if x > 0:
        d.update(a=x * 3)
    return d["a"] + d["b"]


@effect((1.0,), (-1.0,), refused=True)
def del_key(x):
    d = {"a": 1.0, "b": 2.0}
    if x > 0:
        del d["a"]
    return len(d)


@effect((1.0,), (-1.0,))
def sort_branch(x):
    l = [3.0, 1.0, 2.0]
    if x > 0:
        l.sort()
    return l[0]


@effect((1.0,), (-1.0,))
def try_branch(x):
    log = []
    try:
        if x > 0:
            log.append(1.0)
        else:
            log.append(2.0)
    finally:
        log.append(3.0)
    return log


@effect((1.0,), (-1.0,))
def with_ctx(x):
    class Ctx:
        def __init__(self):
            self.n = 0

        def __enter__(self):
            self.n += 1
            return self

        def __exit__(self, *a):
            self.n += 10

    c = Ctx()
    if x > 0:
        with c:
            pass
    return c.n


@effect((1.0,), (-1.0,), refused=True)
def default_arg(x):
    def f(v, acc=[]):
        acc.append(v)
        return len(acc)

    if x > 0:
        f(1.0)
    return f(2.0)


@effect((1.0,), (-1.0,))
def func_attr(x):
    def f():
        f.calls = f.calls + 1

    f.calls = 0
    if x > 0:
        f()
    return f.calls


@effect((1.0,), (-1.0,))
def nested_if(x):
    a = [0.0]
    b = a
    if x > -5:
        if x > 0:
            b.append(1.0)
        else:
            a[0] = 9.0
    return sum(a), len(b)


@effect((3,), refused=True)
def matrix_rows(n):
    m = [[0.0] * 2 for _ in range(2)]
    r = m[0]
    for i in range(n):
        r[0] = r[0] + 1.0
        m[1][1] = m[1][1] + i
    return m[0][0], m[1][1]


@effect((3,), refused=True)
def shared_rows(n):
    r = [0.0, 0.0]
    m = [r, r]
    for i in range(n):
        m[0][0] = m[0][0] + 1.0
    return m[1][0], r[0]


@effect((1.0,), (-1.0,))
def shared_rows_if(x):
    r = [0.0, 0.0]
    m = [r, r]
    if x > 0:
        m[0][0] = 5.0
    return m[1][0] + r[0]


@effect((1.0,), (-1.0,))
def ret_alias(x):
    a = [x]

    def get():
        return a

    if x > 0:
        get().append(3.0)
    return sum(a)


@effect((1.0,), (-1.0,))
def setattr_call(x):
    n = Node(1.0)
    if x > 0:
        setattr(n, "v", x * 4)
    return n.v


@effect((1.0,), (-1.0,))
def vars_write(x):
    n = Node(1.0)
    if x > 0:
        vars(n)["v"] = x * 4
    return n.v


@effect((1.0,), (-1.0,), refused=True)
def globals_write(x):
    globals()["ZZ"] = 1.0
    if x > 0:
        globals()["ZZ"] = 2.0
    return ZZ  # noqa: F821


@effect((1.0,), (-1.0,), refused=True)
def bytearray_(x):
    b = bytearray(b"ab")
    if x > 0:
        b[0] = 0
    return b[0] + x


@effect((1.0,), (-1.0,))
def memo_generator(x):
    def g():
        i = 0
        while True:
            yield i
            i += 1

    it = g()
    for _ in range(3):
        next(it)
    return next(it) * x


@effect((2.0,))
def while_pop(x):
    q = [x, 2 * x]
    s = 0.0
    while q and x > 0:
        s = s + q.pop()
    return s


@effect((1.0,), (-1.0,), refused=True)
def lam_default(x):
    l = [0.0]
    f = lambda v, l=l: l.append(v)
    if x > 0:
        f(2.0)
    return sum(l)
