"""Programs with filters, guards, keys, slices and jumps that depend on traced values."""

# ruff: noqa: B007, B012, C416, E731, F841, PERF401 - as users write

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


@effect((1.0,), (-1.0,))
def walrus_returned(x):
    return (z := x * 2) if x > 0 else (z := -x)


@effect((1.0,), (-1.0,))
def walrus_returned_of_a_branch(x):
    if x > -5:
        return (z := x * 2) if x > 0 else (z := -x)
    else:
        return x


@effect((1.0,), (30.0,), (-1.0,))
def walrus_returned_in_a_loop(x):
    for _ in range(3):
        if x > 100:
            return (z := x * 2) if x > 200 else (z := -x)
        x = x * 10
    return x


@effect((1.0,), (-1.0,))
def walrus_and(x):
    if x > -5 and (y := x * 2) > 0:
        return y
    return x


@effect((8.0,), (0.5,))
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


ROW = np.arange(6.0)


@effect(
    (ROW, 2),
)
def sl_neg(x, i):
    return x[i - 1 : i + 1]


@effect(
    (ROW, 3),
)
def sl_over(x, i):
    return x[i : i + 3]


@effect((ROW, 2))
def sl_to(x, i):
    return x[:i]


@effect(
    (ROW, 2),
)
def sl_2d(x, i):
    return x.reshape(2, 3)[:, i - 1 : i + 1]


@effect(
    (ROW, 1),
)
def sl_both(x, i):
    return x.reshape(2, 3)[i : i + 1, i : i + 2]


@effect(
    (ROW, 1),
)
def sl_mask(x, i):
    return x.reshape(2, 3)[i : i + 1][0, ::2]


@effect(
    (ROW, 1),
)
def sl_none(x, i):
    return x[None, i : i + 2].shape[0] * x[i : i + 2]


@effect(
    (ROW, 1),
)
def sl_aug(x, i):
    y = x * 1
    y[i : i + 2] += 5
    return y


@effect(
    (ROW, 1),
)
def sl_2i(x, i):
    j = 2 * i + 1
    return x[j - i : i + 1 + 2]


@effect(
    (ROW,),
)
def comp_static(x):
    return sum([x[i] for i in range(6) if i % 2 == 0])


@effect(
    (ROW,),
)
def comp_nested(x):
    return sum([a * b for a in x if a > 1 for b in (1.0, 2.0) if b < 2])


@effect(
    (ROW,),
)
def comp_in_lambda(x):
    f = lambda v: [u for u in (1.0, 2.0, 3.0) if u < 2.5]
    return sum(f(1)) * x[1]


@effect(
    (ROW,),
)
def comp_in_comp(x):
    return sum([sum([v for v in (1.0, 2.0) if v < w]) for w in (1.5, 3.0)]) * x[1]


@effect(
    (ROW,),
)
def comp_cond_mixed(x):
    n = [v for v in x if v > 1 and v < 4]
    return len(n), n[0]


@effect(
    (ROW,),
)
def comp_closure(x):
    k = 2.0
    out = []
    for i in range(3):
        out.append(sum([v for v in (1.0, 2.0, 3.0) if v > i]))
    return np.array(out) * k * x[1]


@effect((ROW,), (-ROW,))
def match_seq(x):
    match (x[0], 3):
        case (a, b) if a > 0:
            y = a * b
        case (a, 4):
            y = a
        case (a, b) if a < -1:
            y = b * 1.0
        case _:
            y = 7.0
    return y


@effect((2.0,), (-2.0,))
def match_return(x):
    match 1:
        case 0:
            return 0.0
        case n if x > 0:
            return n * x
    return -1.0


@effect((2.0,), (-2.0,))
def maxkey_tuple(x):
    return max([(x, 1.0), (2.5, 2.0)], key=lambda t: t[0] * t[0])


@effect((2.0,), (-2.0,))
def mindef(x):
    return min([v for v in [1.0, x]], default=3.0)


@effect((3,), (0,))
def only_body_after(n):
    t = 0.0
    for i in range(n):
        last = i * 1.0
        t = t + last
    if n > 0:
        t = t + 1
    return t


@effect(
    (2.0,),
)
def iter_class(x):
    class It:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n > 3:
                raise StopIteration
            return self.n * x

    it = It()
    for v in it:
        break
    return sum(it)


@effect(
    (2.0,),
)
def gen_send(x):
    def g():
        t = 0.0
        while True:
            v = yield t
            if v is None:
                return
            t = t + v * x

    c = g()
    next(c)
    c.send(1.0)
    return c.send(2.0)


@effect(
    (2.0,),
)
def gen_deleg(x):
    def a():
        yield x
        yield 2 * x

    def b():
        yield from a()
        yield 3 * x

    return sum(b())


@effect((2.0,), (-2.0,))
def gen_in_branch(x):
    def g(n):
        for i in range(n):
            yield i * x

    if x > 0:
        s = sum(g(3))
    else:
        s = sum(g(4))
    return s


@effect(
    (ROW,),
)
def enum_start(x):
    s = 0.0
    for i, v in enumerate(x, 3):
        s = s + i * v
    return s


@effect(
    (ROW,),
)
def zip_strict(x):
    s = 0.0
    for a, b in zip(x, x[::-1], strict=True):
        s = s + a * b
    return s


@effect(
    (ROW,),
)
def rev(x):
    s = 0.0
    for a in reversed(x):
        s = s * 0.5 + a
    return s
