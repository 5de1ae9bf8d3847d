"""Context managers, exceptions and `match`."""

# mypy: ignore-errors
from __future__ import annotations

from .support import *


def m01(x, n):
    box = [0.0]
    with Add(box, x[0]):
        box[0] = box[0] + 1
    return box[0]


def m02(x, n):
    box = [0.0]
    if n > 1:
        with Add(box, x[0]):
            pass
    return box[0]


def m03(x, n):
    box = [x.sum() * 0]
    for i in range(n):
        with Add(box, x[1]):
            pass
    return box[0]


def m04(x, n):
    with Swallow():
        raise KeyError
    return x


def m05(x, n):
    @contextlib.contextmanager
    def scope(v):
        log.append(v)
        yield v * 2
        log.append(-v)

    log = []
    with scope(x[0]) as y:
        log.append(y)
    return log


def m06(x, n):
    with contextlib.suppress(ValueError):
        if n > 2:
            raise ValueError("big")
        return x * 2
    return x


def m07(x, n):
    with contextlib.ExitStack() as st:
        box = [x[0]]
        st.callback(lambda: box.append(x[1]))
    return box


def m08(x, n):
    box = [1.0]
    for i in range(3):
        with Add(box, x[i]):
            if x[i] > 0:
                continue
            box[0] = box[0] - 1
    return box[0]


def t01(x, n):
    y = x.sum()
    try:
        y = y * 2
    finally:
        y = y + 1
    return y


def t02(x, n):
    log = []
    for i in range(4):
        try:
            if i == 2:
                break
            log.append(i * n)
        finally:
            log.append(-i)
    return log


def t03(x, n):
    def f():
        try:
            return x[0]
        finally:
            log.append(1)

    log = []
    return f() + len(log)


def t04(x, n):
    s = 0.0
    i = 0
    while i < n:
        try:
            s = s + x[0]
        finally:
            i += 1
    return s, i


def t05(x, n):
    try:
        d = {"a": 1}["b"]
    except KeyError as e:
        d = len(e.args[0])
    return d * x


def t06(x, n):
    try:
        if n > 2:
            raise ValueError("n")
        r = x
    except ValueError:
        r = -x
    return r


def t07(x, n):
    try:
        pass
    except ValueError:
        r = 1
    else:
        r = x * 2
    finally:
        q = 3
    return r * q


def t08(x, n):
    s = 0
    for v in x:
        try:
            if v < 0:
                raise ValueError
            s = s + v
        except ValueError:
            s = s - 10
    return s


def t09(x, n):
    try:
        try:
            raise KeyError("a")
        finally:
            y = x + 1
    except KeyError:
        y = y * 2
    return y


def t10(x, n):
    i = 0
    while True:
        try:
            i += 1
            if i >= n:
                break
        finally:
            i += 10
    return i


def q01(x, n):
    match n:
        case 0:
            return x
        case 1 | 2:
            return x * 2
        case _:
            return x * 3


def q02(x, n):
    match (n, x[0]):
        case (1, v):
            return v
        case (k, v) if k > 2:
            return v * 2
        case (k, v):
            return v * k


def q03(x, n):
    match Pt(x[0], n):
        case Pt(a=u, b=2):
            return u
        case Pt(a=u, b=w):
            return u * w


def q04(x, n):
    match {"k": n, "v": x}:
        case {"k": 3, "v": w}:
            return w
        case {"v": w, **rest}:
            return w * len(rest)


def q05(x, n):
    match [x[0], x[1], x[2]]:
        case [a, *rest] if a > 0:
            return rest[-1]
        case [a, *rest]:
            return rest[0]


def q06(x, n):
    r = 0
    for i in range(4):
        match i:
            case 1:
                continue
            case 3:
                break
            case k:
                r += k * n
    return r


def q07(x, n):
    match n > 2:
        case True:
            return x
        case False:
            return -x


def e01(x, n):
    if x[0] > 100:
        raise ValueError("too big")
    return x


def e02(x, n):
    assert n > 0, f"n={n}"
    return x / n


def e03(x, n):
    for v in x:
        if v < -50:
            raise ArithmeticError("v")
    return x.sum()


def e04(x, n):
    l = [1.0, 2.0, 3.0]
    return l[n]


def e05(x, n):
    d = {0: 1.0, 1: 2.0}
    return d[n]


def e06(x, n):
    try:
        v = [10.0, 20.0][n]
    except IndexError:
        v = -1.0
    return v


def e07(x, n):
    try:
        v = {0: 1.0, 3: 2.0}[n]
    except KeyError:
        v = -1.0
    return v


def e08(x, n):
    return 10 // (n - 3)


def e09(x, n):
    try:
        r = 10 // (n - 3)
    except ZeroDivisionError:
        r = 99
    return r


def e10(x, n):
    if n > 1:
        y = x
    return y


def e11(x, n):
    for i in range(n):
        y = x * i
    return y


def e12(x, n):
    return int("12") + n, int(n), float(n)


def e13(x, n):
    class MyErr(Exception):
        pass

    try:
        if n > 2:
            raise MyErr
        out = 1
    except MyErr:
        out = 2
    return out
