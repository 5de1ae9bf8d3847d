"""Classes, `itertools` and `functools`, and mixed programs."""

# mypy: ignore-errors
from __future__ import annotations

from .support import *


def k01(x, n):
    k = K(x[0])
    if n > 1:
        k.bump(x[1])
    return k.v


def k02(x, n):
    k = K(x[0])
    for _ in range(n):
        k.bump(1)
    return k.twice


def k03(x, n):
    k = K(x[0])
    if n > 1:
        k.twice = x[1]
    return k.v


def k04(x, n):
    k = Sub.make(x[0]).bump(n)
    return k.v + K.neg(k.v * 3)


def k05(x, n):
    s = Sl(x[0], x[1])
    i = 0
    while i < n:
        s.step()
        i += 1
    return s.p


def k06(x, n):
    class Local:
        count = 0

    if n > 1:
        Local.count = Local.count + x[0]
    return Local.count


def k07(x, n):
    h = HasDesc()
    h.z = x[0]
    if n > 1:
        h.z = h.z * 2
    return h.z


def k08(x, n):
    s = St(x[0])
    for i in range(n):
        s.move(0.5)
        s.vel = s.vel * 0.9
    return s.pos, s.vel


def k09(x, n):
    s = St(x[0])
    if n > 1:
        s.log.append(x[1])
    return len(s.log)


def k10(x, n):
    f = Fr(x)
    g = replace(f, b=n)
    return f.b + g.b


def k11(x, n):
    p = P2(x[0], x[1])
    if n > 1:
        p = p._replace(u=x[2])
    return p.u + p.w, p


def k12(x, n):
    c = Color.RED if True else Color.BLUE
    if n > 1:
        c = Color.BLUE
    return x * c.value


def k13(x, n):
    c = [Color.RED, Color.BLUE][len(x) % 2]
    return x * (2 if c is Color.RED else 3) * c.value


def k14(x, n):
    ks = [K(v) for v in x]
    return sorted(ks)[0].v


def k15(x, n):
    return (K(x[0]) + K(x[1]) + n).v


def k16(x, n):
    k = K(x[0])
    setattr(k, "v", x[1])
    if n > 1:
        setattr(k, "v", x[2])
    return getattr(k, "v")


def k17(x, n):
    k = K(x[0])
    vars(k)["v"] = x[1]
    if n > 1:
        k.__dict__["v"] = x[2]
    return k.v


def k18(x, n):
    k = K(x[0])
    k.new = 1.0
    if n > 1:
        del k.new
    return hasattr(k, "new")


def k19(x, n):
    k = K(x[0])
    l = [k]
    for q in l:
        q.v = q.v + n
    return k.v


def k20(x, n):
    a, b = K(x[0]), K(x[1])
    c = a if n > 1 else b
    c.v = c.v * 10
    return a.v, b.v


def k21(x, n):
    a, b = K(x[0]), K(x[1])
    if n > 1:
        a, b = b, a
    a.v = 0.0
    return a.v, b.v


def i01(x, n):
    return list(itertools.accumulate(x))


def i02(x, n):
    return list(itertools.accumulate(x, max))


def i03(x, n):
    return sum(a * b for a, b in itertools.combinations(x, 2))


def i04(x, n):
    return functools.reduce(lambda a, b: a if a > b else b, x)


def i05(x, n):
    return [sum(g) for k, g in itertools.groupby([1, 1, 2], lambda v: v)] * n if False else sum(itertools.chain(x, x))


def i06(x, n):
    return list(itertools.takewhile(lambda v: v < 3, range(9)))[-1] * n


def i07(x, n):
    return list(itertools.takewhile(lambda v: v > 0, x))


def i08(x, n):
    return list(itertools.filterfalse(lambda v: v > 0, x))


def i09(x, n):
    f = functools.partial(lambda a, b, c=1: a * b + c, 2, c=n)
    return f(x)


def i10(x, n):
    @functools.lru_cache
    def f(k):
        return k * 2

    return f(3) * x


def i11(x, n):
    @functools.wraps(i10)
    def f(y):
        return y if n > 1 else -y

    return f(x)


def i12(x, n):
    return [a - b for a, b in itertools.pairwise(x)]


def i13(x, n):
    return list(itertools.compress(x, [1, 0, 1, 0]))


def i14(x, n):
    c = itertools.count(5)
    s = 0
    for v in x:
        s = s + v * next(c)
    return s


def i15(x, n):
    cyc = itertools.cycle([1.0, -1.0])
    return sum(v * next(cyc) for v in x)


def i16(x, n):
    return max(x, key=lambda v: -v), min(x, key=abs)


def i17(x, n):
    return list(itertools.starmap(operator.mul, zip(x, x)))


def i18(x, n):
    @functools.singledispatch
    def f(v):
        return v

    return f(x) * n


def i19(x, n):
    a, b = itertools.tee(x)
    return sum(a) + next(b)


def i20(x, n):
    return list(filter(lambda v: v > 0, x))


def i21(x, n):
    return list(map(lambda a, b: a if a > b else b, x, x[::-1]))


def i22(x, n):
    return operator.itemgetter(1)(x) + operator.attrgetter("v")(K(n))


def i23(x, n):
    return list(enumerate(x, start=2))[1]


def i24(x, n):
    return list(reversed(x))[0] + sum(reversed([1, 2])) * n


def o01(x, n):
    return 0 < n < 3, 1 <= n != 2


def o02(x, n):
    return n if n else 7


def o03(x, n):
    return n or 5, n and 6, not n


def o04(x, n):
    a = b = x[0]
    a += 1
    return a, b


def o05(x, n):
    first, *rest, last = x
    return first, rest, last


def o06(x, n):
    def f(*args, k=1, **kw):
        return sum(args) * k + len(kw)

    return f(*x, k=n, z=1)


def o07(x, n):
    for i in range(3):
        if x[i] > 0:
            r = i
            break
    else:
        r = -1
    return r


def o08(x, n):
    i = 0
    while i < n:
        i += 1
        if i == 2:
            break
    else:
        return -i
    return i


def o09(x, n):
    return isinstance(n, int), isinstance(x, np.ndarray)


def o10(x, n):
    return round(n / 3, 2), divmod(n, 2), pow(n, 2), abs(-n)


def o11(x, n):
    return (n + 1) ** -1.0, n << 1, n & 1, ~n, n % 3, -n // 2


def o12(x, n):
    i = 10
    for i in range(n):
        pass
    return i


def o13(x, n):
    x = x.copy()
    x.sort()
    return x


def o14(x, n):
    y = x
    if n > 1:
        y = y[::-1]
        y = y + 1
    return y, x


def o15(x, n):
    global GG
    GG = 3
    if n > 1:
        GG = 4
    return GG


def o16(x, n):
    return (lambda: (yield_ := n + 1))() if n > 1 else 0


def o17(x, n):
    res = []
    for i in range(3):
        if i % 2:
            continue
        for j in range(3):
            if j > i:
                break
            res.append(i * j * n)
    return res


def o18(x, n):
    s = 0
    i = n
    while i:
        s += i
        i -= 1
    return s


def o19(x, n):
    return type(n)(3) if False else (x.ndim, len(x), x.size)


def o20(x, n):
    a, (b, c) = x[0], (x[1], n)
    (a, b) = (b, a) if n > 1 else (a, b)
    return a, b, c


def o21(x, n):
    return sum(x) if n > 1 else None


def o22(x, n):
    if n > 1:
        return x.sum()


def o23(x, n):
    r = None
    for v in x:
        if v > 0:
            r = v
            break
    return -1.0 if r is None else r


def o24(x, n):
    best, at = -1e9, -1
    for i, v in enumerate(x):
        if v > best:
            best, at = v, i
    return best, at


def o25(x, n):
    s = 0.0
    for v in x:
        if v < 0:
            continue
        if v > 2:
            break
        s += v
    return s
