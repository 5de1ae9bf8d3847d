"""Closures, generators, `:=`, comprehensions and recursion."""

# mypy: ignore-errors
from __future__ import annotations

from .support import *


def c01(x, n):
    total = 0.0

    def add(v):
        nonlocal total
        if v > 0:
            total += v
        return total

    for v in x:
        add(v)
    return total


def c02(x, n):
    fs = [lambda y, k=k: y * k for k in range(3)]
    if n > 1:
        return fs[2](x)
    return fs[1](x)


def c03(x, n):
    fs = []
    for k in range(3):
        fs.append(lambda y: y + k)
    return fs[0](x) + fs[2](x)


def c04(x, n):
    count = 0

    def step():
        nonlocal count
        count += 1
        return count

    while step() < n:
        pass
    return count


def c05(x, n):
    def make():
        s = x.sum()

        def get():
            return s

        def put(v):
            nonlocal s
            s = v

        return get, put

    get, put = make()
    if n > 2:
        put(get() * 2)
    return get()


def c06(x, n):
    a = 1.0

    def f():
        def g():
            nonlocal a
            a = a * 2

        if x[0] > 0:
            g()

    for _ in range(n):
        f()
    return a


def c07(x, n):
    y = x

    def f():
        return y * 2

    y = x + 1
    return f()


def c08(x, n):
    acc = []

    def visit(v):
        if v > 0:
            acc.append(v)
        else:
            acc.append(-v * 2)

    for v in x:
        visit(v)
    return np.stack(acc)


def c09(x, n):
    f = lambda v: v if v > 0 else -v
    return sum(map(f, x))


def c10(x, n):
    def rec(k):
        return 1.0 if k == 0 else x[0] * rec(k - 1)

    return rec(3) + n


def g01(x, n):
    def gen():
        for v in x:
            if v > 0:
                yield v
            else:
                yield v * 0

    return sum(gen())


def g02(x, n):
    def gen(k):
        while k > 0:
            yield k
            k -= 1

    s = 0
    for v in gen(4):
        s += v * n
    return s


def g03(x, n):
    def gen():
        got = yield 1
        yield got * 2

    g = gen()
    a = next(g)
    b = g.send(x.sum())
    return a + b


def g04(x, n):
    def inner():
        yield x[0]
        yield x[1]

    def outer():
        yield from inner()
        yield n * 1.0

    return list(outer())


def g05(x, n):
    it = iter(x)
    a = next(it)
    b = next(it)
    return a * 10 + b + sum(it)


def g06(x, n):
    it = iter([1.0, 2.0, 3.0])
    s = 0.0
    for v in it:
        s += v
        if v == 2.0:
            break
    return s + sum(it) * n


def g07(x, n):
    return sum(v * w for v, w in zip(x, x[::-1]) if v is not None)


def g08(x, n):
    def gen():
        try:
            yield x[0]
            yield x[1]
        finally:
            log.append("done")

    log = []
    for v in gen():
        break
    del v
    return len(log) * n


def g09(x, n):
    def fib():
        a, b = 0, 1
        while True:
            yield a
            a, b = b, a + b

    return [v * n for v in itertools.islice(fib(), 6)]


def g10(x, n):
    it = (v for v in range(5))
    s = 0
    while True:
        v = next(it, None)
        if v is None:
            break
        s += v * n
    return s


def w01(x, n):
    if (s := x.sum()) > 0:
        return s
    return -s * 2


def w02(x, n):
    i = 0
    while (i := i + 1) < n:
        pass
    return i


def w03(x, n):
    return [y for v in x if (y := v * 2) is not None][-1] + y


def w04(x, n):
    return (a := n * 2) + (a if a > 4 else (a := a + 1)) + a


def w05(x, n):
    return (p := x[0]) > 0 and (q := x[1]) > 0, p


def w06(x, n):
    y = (z := x[0] * 2) if n > 1 else (z := x[1] * 3)
    return y, z


def w07(x, n):
    if not (k := n % 2):
        k = 5
    return k * x


def f01(x, n):
    return sum([v for v in x if v > 0])


def f02(x, n):
    return len([v for v in x if v > 0])


def f03(x, n):
    return [v * 2 for v in [1, 2, 3] if v < n]


def f04(x, n):
    return {k: v for k, v in zip("abc", x)}


def f05(x, n):
    return sum(i * j for i in range(3) for j in range(i) if i * j != n)


def f06(x, n):
    return max([v for v in x if v > -100])


def f07(x, n):
    return sum(v for row in np.stack([x, x + 1]) for v in row if v > 0)


def f08(x, n):
    return [[v * w for w in x] for v in x][1][2]


def f09(x, n):
    return any(v > 1 for v in x), all(v > -9 for v in x)


def f10(x, n):
    return sorted([v for v in x if v != 0.0])[0]


def r01(x, n):
    def go(k, acc):
        return acc if k == 0 else go(k - 1, acc + x[k % 4])

    return go(5, 0.0)


def r02(x, n):
    def total(t):
        return sum(total(v) for v in t) if isinstance(t, list) else t

    return total([x[0], [x[1], [x[2]]], n])


def r03(x, n):
    def ack(k):
        return k if k < 2 else ack(k - 1) + ack(k - 2)

    return ack(7) * n


def r04(x, n):
    def fact(k):
        if k <= 1:
            return 1
        return k * fact(k - 1)

    return fact(n)


def r05(x, n):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    return even(4), n
