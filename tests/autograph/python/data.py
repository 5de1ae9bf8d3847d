"""Aliases, containers, slices and strings."""

# mypy: ignore-errors
from __future__ import annotations

from .support import *


def a01(x, n):
    a = [x[0]]
    b = a
    if n > 1:
        b.append(x[1])
    return sum(a)


def a02(x, n):
    d = {"v": x[0]}
    e = d
    if n > 1:
        e["v"] = e["v"] * 2
    return d["v"]


def a03(x, n):
    a = [[0.0], [0.0]]
    b = a[1]
    for i in range(n):
        b[0] = b[0] + x[0]
    return a[1][0], a[0][0]


def a04(x, n):
    rows = [[0.0]] * 2
    if n > 1:
        rows[0][0] = x[0]
    return rows[1][0]


def a05(x, n):
    p = Pt(x[0], 0)
    ps = [p, p]
    if n > 2:
        ps[0].a = ps[1].a + 1
    return p.a


def a06(x, n):
    def put(lst, v):
        lst.append(v)

    a = []
    for v in x:
        if v > 0:
            put(a, v)
    return len(a)


def a07(x, n):
    y = x.copy()
    z = y
    z += 1
    return y


def a08(x, n):
    y = x.copy()
    v = y[1:3]
    v *= 2
    return y


def a09(x, n):
    y = x.copy()
    v = y[1:3]
    if n > 1:
        v[0] = 7.0
    return y


def a10(x, n):
    a = [1.0, 2.0]
    b = a[:]
    if n > 1:
        b[0] = x[0]
    return a[0] + b[0]


def a11(x, n):
    add = [].append
    a = add.__self__
    if n > 1:
        add(x[0])
    return len(a)


def a12(x, n):
    d = dict(a=1.0)
    g = d.get
    if n > 1:
        d.update(a=x[0])
    return g("a")


def a13(x, n):
    t = ([x[0]], 1)
    if n > 1:
        t[0].append(x[1])
    return t[0][-1]


def a14(x, n):
    o = {"l": []}
    for i in range(n):
        o["l"].append(i)
    return len(o["l"])


def s01(x, n):
    return len(f"{3:>5}") * n


def s02(x, n):
    return {f"k{i}": x[i] for i in range(3)}


def s03(x, n):
    name = "a" + "b" * 2
    return x * name.count("b") + len("%s-%d" % (name, 3))


def s04(x, n):
    msg = "big" if n > 2 else "small"
    return len(msg) * 1.0


def s05(x, n):
    return f"{x.shape} {x.dtype}"


def s06(x, n):
    return f"{x.sum():.2f}"


def s07(x, n):
    return str(n)


def s08(x, n):
    d = {}
    for w in "a b a".split():
        d[w] = d.get(w, 0) + x[0]
    return d


def s09(x, n):
    if n > 2:
        raise ValueError(f"bad {n}")
    return x


def s10(x, n):
    return ",".join(str(i) for i in range(3)), n


def d01(x, n):
    d = {}
    for i in range(3):
        d[i] = x[i]
    if n > 1:
        d[0] = d[0] * 2
    return d


def d02(x, n):
    d = {"a": x[0], "b": x[1]}
    if n > 1:
        d["a"], d["b"] = d["b"], d["a"]
    return d


def d03(x, n):
    d = defaultdict(float)
    for i, v in enumerate(x):
        d[i % 2] += v
    return dict(d)


def d04(x, n):
    d = {"a": x[0]}
    if n > 1:
        d["new"] = x[1]
    return len(d)


def d05(x, n):
    d = {"a": x[0], "b": 1.0}
    if n > 1:
        d.pop("b")
    return sum(d.values())


def d06(x, n):
    d = {"a": x[0]}
    v = d.setdefault("a", 5.0) + d.setdefault("z", x[1])
    return v, sorted(d)


def d07(x, n):
    q = deque(maxlen=3)
    for v in x:
        q.append(v)
    return list(q)


def d08(x, n):
    q = deque([x[0]])
    if n > 1:
        q.appendleft(x[1])
    return q[0]


def d09(x, n):
    q = deque([1.0, 2.0])
    while q:
        v = q.popleft()
    return v * n


def d10(x, n):
    c = Counter("aab")
    if n > 1:
        c["a"] += 1
    return c["a"]


def d11(x, n):
    s = {1, 2}
    if n > 1:
        s.add(3)
    return len(s)


def d12(x, n):
    s = set()
    for i in range(3):
        s.add(i % 2)
    return len(s) * n


def d13(x, n):
    d = {"a": x[0], "b": x[1]}
    for k in d:
        d[k] = d[k] * n
    return d


def d14(x, n):
    d = {"a": {"b": x[0]}}
    i = 0
    while i < n:
        d["a"]["b"] = d["a"]["b"] + 1
        i += 1
    return d["a"]["b"]


def d15(x, n):
    o = OrderedDict(a=x[0], b=x[1])
    if n > 1:
        o.move_to_end("a")
    return list(o)[0]


def d16(x, n):
    c = ChainMap({"a": x[0]}, {"a": 1.0, "b": x[1]})
    return c["a"] + c["b"]


def d17(x, n):
    d = {"a": 1} | {"b": x[0]}
    d |= {"a": n}
    return d


def d18(x, n):
    return n in {1, 3}, n in [2, 3], 2 in {1: 2}


def d19(x, n):
    seen = set()
    s = 0
    for v in [1, 2, 1]:
        if v in seen:
            continue
        seen.add(v)
        s += v * n
    return s


def d20(x, n):
    d = {n: 1.0} if False else {3: x[0]}
    return d.get(3)


def sl01(x, n):
    return x[n % 4]


def sl02(x, n):
    return x[n % 2 : n % 2 + 2]


def sl03(x, n):
    return x[: n % 4]


def sl04(x, n):
    return x[-(n % 3) - 1 :]


def sl05(x, n):
    y = x.copy()
    y[n % 4] = 9.0
    return y


def sl06(x, n):
    y = x.copy()
    y[n % 2 : n % 2 + 2] = 0.0
    return y


def sl07(x, n):
    return x[n % 4 :: -1]


def sl08(x, n):
    return x[:: n % 2 + 1]


def sl09(x, n):
    s = 0.0
    for i in range(n % 4):
        s += x[i] * x[-i]
    return s


def sl10(x, n):
    return [1.0, 2.0, 3.0, 4.0][n % 4]


def sl11(x, n):
    return (x[0], x[1])[n % 2]


def sl12(x, n):
    b = 2
    s = 0
    for i in range(2):
        s = s + x[i * b : (i + 1) * b]
    return s


def sl13(x, n):
    i, s = 0, x[:2] * 0
    while i < n % 3:
        s = s + x[i : i + 2]
        i += 1
    return s


def sl14(x, n):
    y = x.copy()
    k = n % 4
    y[k], y[0] = y[0], y[k]
    return y


def sl15(x, n):
    return "abcd"[n % 4]


def sl16(x, n):
    a = list(x)
    a[n % 4] = 0.0
    return a


def sl17(x, n):
    a = [1, 2, 3]
    del a[0]
    if n > 1:
        a.insert(0, 5)
    return a


def sl18(x, n):
    m = np.outer(x, x)
    return m[n % 4, 1:], m[:, n % 4]
