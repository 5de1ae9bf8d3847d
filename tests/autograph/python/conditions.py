"""Side effects in conditions, and properties of traced values that a program can test."""

# mypy: ignore-errors
from __future__ import annotations

from .support import *


def z01(x, n):
    k = Cn()
    while k.step() < n:
        pass
    return k.c


def z02(x, n):
    l = []

    def grow():
        l.append(1.0)
        return len(l)

    while grow() < n:
        pass
    return len(l)


def z03(x, n):
    d = {"c": 0}

    def step():
        d["c"] += 1
        return d["c"]

    while step() < n:
        pass
    return d["c"]


def z04(x, n):
    c = 0

    def step():
        nonlocal c
        c += 1
        return c

    if n > 1 and step() > 0:
        return c
    return -c


def z05(x, n):
    c = 0

    def step():
        nonlocal c
        c += 1
        return c

    y = step() if n > 1 else 0
    return c, y


def z06(x, n):
    c = 0

    def step():
        nonlocal c
        c += 1
        return c

    y = [step() for v in x if v > 0]
    return c


def z07(x, n):
    k = Cn()
    y = n > 1 and k.step()
    return k.c


def z08(x, n):
    k = Cn()
    y = k.step() if n > 1 else -1
    return k.c, y


def z09(x, n):
    k = Cn()
    r = 0 < n < k.step()
    return k.c, r


def z10(x, n):
    c = 0

    def step(by):
        nonlocal c
        c += by
        return c

    while not step(1) >= n and step(0) < 10:
        step(0)
    return c


def z11(x, n):
    it = iter([1, 2, 3, 4, 5])
    while next(it) < n:
        pass
    return next(it)


def z12(x, n):
    k = Cn()
    for i in range(n):
        if k.step() > 1 and x[0] > 0:
            break
    return k.c


def z13(x, n):
    arr = np.zeros(1)

    def step():
        arr[0] += 1
        return arr[0]

    while step() < n:
        pass
    return arr[0]


def z14(x, n):
    s = 0.0

    def add(v):
        nonlocal s
        s = s + v
        return True

    ok = all(add(v) for v in x)
    return s


def z15(x, n):
    s = 0.0

    def add(v):
        nonlocal s
        s = s + v
        return v > 0

    ok = any(add(v) for v in x)
    return s


def z16(x, n):
    l = []
    l.append(x[0]) if n > 1 else l.append(x[1])
    return l[0], len(l)


def z17(x, n):
    l = []
    n > 1 and l.append(x[0])
    return len(l)


def z18(x, n):
    k = Cn()
    while k.c < n and k.step():
        k.step()
    return k.c


def z19(x, n):
    k = Cn()
    x = [v for v in x if k.step() > 0]
    return k.c


def z20(x, n):
    k = Cn()
    m = {0: k.step, 1: lambda: -1}
    return m[1]() + k.c


def z21(x, n):
    def f(v=[]):
        v.append(1)
        return len(v)

    f()
    return f() * 1.0 * 0 + n


def z22(x, n):
    c = 0

    def dec(g):
        def w(*a):
            nonlocal c
            c += 1
            return g(*a)

        return w

    @dec
    def h(v):
        return v * 2

    y = x[0]
    for _ in range(n):
        y = h(y)
    return c, y


def z23(x, n):
    a = 0

    def outer():
        def inner():
            nonlocal a
            a = a + 1
            return a

        return inner

    f = outer()
    while f() < n:
        pass
    return a


def z24(x, n):
    s = 0.0
    for v in (y * 2 for y in x if y > 0):
        s += v
    return s


def z25(x, n):
    st = [n]
    s = 0
    while st:
        k = st.pop()
        s = s + k
        if s < 0:
            st.append(k - 1)
    return s


def z26(x, n):
    i = 0
    while True:
        i += 1
        if i > n:
            return i


def z27(x, n):
    for i in range(5):
        for j in range(5):
            if i * j > n:
                return i, j
    return -1, -1


def z28(x, n):
    lo, hi = 0.0, 10.0
    while hi - lo > 1e-3:
        mid = (lo + hi) / 2
        if mid * mid > n + 1:
            hi = mid
        else:
            lo = mid
    return round(lo, 2)


def z29(x, n):
    a, b = 48, n + 1
    while b:
        a, b = b, a % b
    return a


def z30(x, n):
    digits = []
    k = n + 12
    while k > 0:
        digits.append(k % 10)
        k //= 10
    return len(digits)


def z31(x, n):
    y = x.copy()
    for i in range(len(y)):
        for j in range(len(y) - 1 - i):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
    return y


def z32(x, n):
    return str(x.sum()) + "a"


def z33(x, n):
    return {"a": f"{n}"}


def z34(x, n):
    return repr(n) == "3"


def z35(x, n):
    d = {f"k{n}": 1}
    return d


def z36(x, n):
    return "%d" % n


def z37(x, n):
    return "{}".format(n)


def z38(x, n):
    return ("a" + str(n)) == "a3"


def z39(x, n):
    return isinstance(n, (int, float)), isinstance(x[0], float), isinstance(n * 1.0, float), isinstance(n > 1, bool)


def z40(x, n):
    return x if isinstance(n, int) else -x


def z41(x, n):
    return type(n) is int


def z42(x, n):
    return type(n).__name__


def z43(x, n):
    return callable(n), hasattr(n, "real"), hasattr(x, "shape")


def z44(x, n):
    return n is None, n == None, x is x


def z45(x, n):
    return id(n) == id(n), n is n


def z46(x, n):
    return hash((1, 2)) == hash((1, 2)), n


def z47(x, n):
    return bin(5), n


def z48(x, n):
    return len(str(n))


def z49(x, n):
    return int(f"{n}")


def z50(x, n):
    import logging

    logging.getLogger("q").info("n %s", n)
    return n
