"""Programs with filters, guards, keys, slices and jumps that depend on traced values."""

# ruff: noqa: B007, B012, F841 - as users write

from __future__ import annotations

import numpy as np

import adjit as aj
from tests.autograph.effect_table import effect

A = np.array([1.0, -2.0, 3.0, 4.0])


@effect((A,), (-A,))
def comp_filter(x):
    return sum([v for v in x if v > 0])


@effect((A,), (-A,))
def gen_filter(x):
    return sum(v for v in x if v > 0)


@effect(
    (A,),
)
def comp_filter_len(x):
    return len([v * 2 for v in x if v > 0])


@effect(
    (A,),
)
def list_filter(x):
    ys = [v for v in x if v > 0]
    return max(ys)


@effect((1.0,), (-1.0,))
def match_guard(x):
    match 3:
        case n if x > 0:
            y = n * 1.0
        case _:
            y = 0.0
    return y


@effect((1.0, 2.0), (-3.0, 2.0))
def max_key(x, y):
    return max([x, y], key=lambda v: v * v)


@effect((1.0, 2.0), (-3.0, 2.0))
def min_key(x, y):
    return min(x, y, key=abs)


@effect((3,), (1,))
def only_body(n):
    for i in range(n):
        y = i * 2.0
    return y


@effect((3,), (1,), refused=True)
def only_body_key(n):
    d = {}
    for i in range(n):
        d["a"] = i * 2.0
    return d["a"]


@effect((5.0,), (0.5,))
def while_only_body(x):
    while x > 1:
        y = x
        x = x / 2
    return x


@effect((1.0,), (-1.0,))
def jump_finally(x):
    s = 0.0
    for i in range(3):
        try:
            if x > 0:
                s = s + 1
        finally:
            if i == 1:
                break
    return s


@effect((1.0,), (-1.0,))
def return_finally(x):
    try:
        y = x * 2
    finally:
        return x + 1


@effect((1.0,), (-1.0,))
def walrus_ternary(x):
    y = (z := x * 2) if x > 0 else (z := -x)
    return y + z


@effect((1.0,), (-1.0,), refused=True)
def walrus_and(x):
    if x > -5 and (y := x * 2) > 0:
        return y
    return x


@effect((8.0,), (0.5,), refused=True)
def list_while(x):
    ys = []
    while x > 1:
        ys.append(x)
        x = x / 2
    return sum(ys), len(ys)


@effect((3.0,), refused=True)
def recursion(x):
    def f(n):
        return 1.0 if n <= 0 else n * f(n - 1)

    return f(x)


D = np.arange(20.0).reshape(10, 2)


@effect((2,), (0,))
def minibatch(i):
    b = 3
    return D[i * b : (i + 1) * b].sum()


@effect((D, 2), (D, 1))
def minibatch2(d, i):
    return d[i * 3 : (i + 1) * 3]


@effect((D, 2), (D, 1))
def minibatch3(d, i):
    return d[i : i + 4, 1]


@effect(
    (D,),
)
def minibatch_loop(d):
    s = 0.0
    for i in aj.range(3):
        s = s + d[i * 3 : i * 3 + 3].mean()
    return s


@effect(
    (D, 1),
)
def minibatch_set(d, i):
    d = d.copy()
    d[i * 2 : i * 2 + 2] = 0.0
    return d


@effect((2.0, 3), (2.0, 0))
def nonlocal_loop(x, n):
    t = 0.0

    def run():
        nonlocal t
        for i in range(n):
            t = t + x

    run()
    return t


@effect((np.zeros((0, 2)),), (np.ones((1, 2)),))
def rows0(x):
    s = 0.0
    for r in x:
        s = s + r.sum()
    return s
