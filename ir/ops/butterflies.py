"""Small discrete Fourier transforms in registers: the butterflies of a larger transform.

A number is a pair of registers, its real and imaginary part. Transforms are forward, without a factor: y[j] = sum x[k] exp(-2πi jk/r).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from .base import Emitter, Reg

Number: TypeAlias = "tuple[Reg, Reg]"


def dft(emit: Emitter, xs: Sequence[Number]) -> list[Number]:
    """The transform of 2, 4, 8 or an odd number of elements."""
    if len(xs) == 1:
        return list(xs)
    if len(xs) == 2:
        a, b = xs
        return [add(emit, a, b), sub(emit, a, b)]
    if len(xs) == 4:
        return dft4(emit, xs)
    return dft8(emit, xs) if len(xs) == 8 else odd(emit, xs)


def add(emit: Emitter, a: Number, b: Number) -> Number:
    return emit.add(a[0], b[0]), emit.add(a[1], b[1])


def sub(emit: Emitter, a: Number, b: Number) -> Number:
    return emit.sub(a[0], b[0]), emit.sub(a[1], b[1])


def mul(emit: Emitter, a: Number, b: Number) -> Number:
    re = emit.mad(a[0], b[0], emit.neg(emit.mul(a[1], b[1])))
    return re, emit.mad(a[0], b[1], emit.mul(a[1], b[0]))


def over_i(emit: Emitter, a: Number) -> Number:
    """a / i, which is -ia."""
    return a[1], emit.neg(a[0])


def dft4(emit: Emitter, xs: Sequence[Number]) -> list[Number]:
    a, b, c, d = xs
    even, odd_ = add(emit, a, c), add(emit, b, d)
    (p, q), (r, s) = sub(emit, a, c), sub(emit, b, d)
    return [
        add(emit, even, odd_),
        (emit.add(p, s), emit.sub(q, r)),
        sub(emit, even, odd_),
        (emit.sub(p, s), emit.add(q, r)),
    ]


def dft8(emit: Emitter, xs: Sequence[Number]) -> list[Number]:
    """Two transforms of four, of the even and the odd elements; the eighth roots cost two products each."""
    even, odd_ = dft4(emit, xs[::2]), dft4(emit, xs[1::2])
    half = emit.like(xs[0][0], math.sqrt(0.5))
    (a, b), (c, d) = odd_[1], odd_[3]
    turned = [
        odd_[0],
        (emit.mul(emit.add(a, b), half), emit.mul(emit.sub(b, a), half)),
        over_i(emit, odd_[2]),
        (emit.mul(emit.sub(d, c), half), emit.neg(emit.mul(emit.add(c, d), half))),
    ]
    return [*(add(emit, e, o) for e, o in zip(even, turned)), *(sub(emit, e, o) for e, o in zip(even, turned))]


def odd(emit: Emitter, xs: Sequence[Number]) -> list[Number]:
    """An odd number of elements: sums and differences of x[k] and x[r - k] share the products of y[j] and y[r - j]."""
    r, first = len(xs), xs[0]
    sums = [add(emit, xs[k], xs[r - k]) for k in range(1, r // 2 + 1)]
    differences = [sub(emit, xs[k], xs[r - k]) for k in range(1, r // 2 + 1)]
    total = first
    for s in sums:
        total = add(emit, total, s)
    out: list[Number] = [total] + [first] * (r - 1)
    for j in range(1, r // 2 + 1):
        angles = [2 * math.pi * (j * k % r) / r for k in range(1, r // 2 + 1)]
        even = [combined(emit, first[part], [s[part] for s in sums], map(math.cos, angles)) for part in (0, 1)]
        side = [combined(emit, None, [d[part] for d in differences], map(math.sin, angles)) for part in (0, 1)]
        out[j] = emit.add(even[0], side[1]), emit.sub(even[1], side[0])
        out[r - j] = emit.sub(even[0], side[1]), emit.add(even[1], side[0])
    return out


def combined(emit: Emitter, start: Reg | None, xs: Sequence[Reg], factors: map[float]) -> Reg:
    total = start
    for x, factor in zip(xs, factors):
        c = emit.like(x, factor)
        total = emit.mul(x, c) if total is None else emit.mad(x, c, total)
    return total
