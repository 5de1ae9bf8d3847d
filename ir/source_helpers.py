"""The functions that a program written as NumPy Python may call, besides NumPy's own: their text is copied into it, where it is used.

Ops evaluate with the same functions, so that the text and the interpreter compute the same bits. Each function is complete in itself, up to
others of this file, and uses NumPy and `math` only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def strong_mul(d: Any, p: Any) -> Any:
    """d * p, but 0 where d is 0, even if p is infinite or NaN."""
    return np.where(d == 0, d, d * p)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, x.dtype.type(1)) / (1 + e)


def logit(p: Any) -> Any:
    """log(p / (1 - p)); around 1/2, where it is small, by the distance from it, which is exact."""
    middle = np.log1p((2 * p - 1) / (1 - p))
    is_middle = np.abs(p - p.dtype.type(0.5)) < 0.25
    return np.where(is_middle, middle, np.log(p) - np.log1p(-p))


def erf(x: Any) -> Any:
    """The error function, elementwise."""
    return np.fromiter(map(math.erf, x.flat), x.dtype, x.size).reshape(x.shape)


def saturate(x: Any, dtype: Any) -> Any:
    """Floats to integers: truncated, clamped to the range of dtype, NaN becomes 0."""
    info = np.iinfo(dtype)
    wide = np.nan_to_num(np.trunc(x), nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = wide <= info.min, wide >= info.max
    inside = np.where(low | high, 0, wide).astype(dtype)
    return np.where(low, info.min, np.where(high, info.max, inside)).astype(dtype)


def recurrence(a: Any, b: Any, axis: Any) -> Any:
    """y[t] = b[t] + a[t] * y[t - 1] along an axis."""
    a, out = np.moveaxis(a, axis, 0), np.array(np.moveaxis(b, axis, 0))
    for t in range(1, len(out)):
        out[t] += a[t] * out[t - 1]
    return np.moveaxis(out, 0, axis)


def windows(sizes: Any, places: Any, strides: Any, dilations: Any) -> Any:
    """For each place in a window, the index of that place in all windows."""
    for place in np.ndindex(*places):
        starts = [p * d for p, d in zip(place, dilations)]
        ends = [(n - 1) * s + 1 if n else 0 for n, s in zip(sizes, strides)]
        stops = [a + n for a, n in zip(starts, ends)]
        yield (slice(None), *map(slice, starts, stops, strides))


def convolve(x: Any, w: Any, strides: Any, dilations: Any, groups: Any) -> Any:
    """Images [batch, *sizes, channels], filters [*sizes, channels/groups, features]."""
    spans = [(r - 1) * d + 1 for r, d in zip(w.shape, dilations)]
    sizes = [max(n - r + s, 0) // s for n, r, s in zip(x.shape[1:], spans, strides)]
    count = math.prod(w.shape[:-2])
    filters = w.reshape(count, w.shape[-2], groups, w.shape[-1] // groups)
    out = np.zeros((x.shape[0], *sizes, *filters.shape[-2:]), x.dtype)
    for part, filter in zip(windows(sizes, w.shape[:-2], strides, dilations), filters):
        channels = x[part].reshape(*out.shape[:-2], groups, w.shape[-2])
        out += np.einsum("...gc,cgk->...gk", channels, filter, optimize=True)
    return out.reshape(*out.shape[:-2], w.shape[-1])


def convolve_input(d: Any, w: Any, strides: Any, dilations: Any, groups: Any, sizes: Any) -> Any:
    """The cotangent of the images of `convolve`, for that of its result."""
    count = math.prod(w.shape[:-2])
    filters = w.reshape(count, w.shape[-2], groups, w.shape[-1] // groups)
    features = d.reshape(*d.shape[:-1], *filters.shape[-2:])
    out = np.zeros((d.shape[0], *sizes, w.shape[-2] * groups), d.dtype)
    places = windows(d.shape[1:-1], w.shape[:-2], strides, dilations)
    for part, filter in zip(places, filters):
        meets = np.einsum("...gk,cgk->...gc", features, filter, optimize=True)
        out[part] += meets.reshape(*d.shape[:-1], out.shape[-1])
    return out


def convolve_filter(x: Any, d: Any, strides: Any, dilations: Any, groups: Any, sizes: Any) -> Any:
    """The cotangent of the filters of `convolve`, for that of its result."""
    channels, features = x.shape[-1] // groups, d.shape[-1] // groups
    rows = d.reshape(math.prod(d.shape[:-1]), groups, features)
    out = np.zeros((math.prod(sizes), channels, groups, features), x.dtype)
    places = windows(d.shape[1:-1], sizes, strides, dilations)
    for number, part in enumerate(places):
        met = x[part].reshape(len(rows), groups, channels)
        out[number] = np.einsum("mgc,mgk->cgk", met, rows, optimize=True)
    return out.reshape(*sizes, channels, d.shape[-1])


def unpooled(parts: Any, sizes: Any, window: Any, strides: Any) -> Any:
    """Adds every part, the elements at one place of all windows, to what they come from."""
    out = np.zeros((parts[0].shape[0], *sizes, parts[0].shape[-1]), parts[0].dtype)
    places = windows(parts[0].shape[1:-1], window, strides, (1,) * len(window))
    for place, part in zip(places, parts):
        out[place] += part
    return out


def lu_factors(a: Any, block: int = 48) -> Any:
    """LU factors in one array; the row below holds pivots, counted from their row."""
    n = a.shape[-1]
    out = np.zeros((*a.shape[:-2], n + 1, n), a.dtype)
    out[..., :n, :] = a
    for m in out.reshape(-1, n + 1, n) if a.size else ():
        for start in range(0, n, block):
            stop = min(start + block, n)
            for i in range(start, stop):
                m[n, i] = ahead = int(np.argmax(np.abs(m[i:n, i])))
                m[[i, i + ahead]] = m[[i + ahead, i]]
                m[i + 1 : n, i] /= m[i, i] or 1
                row, column = m[i, i + 1 : stop], m[i + 1 : n, i]
                m[i + 1 : n, i + 1 : stop] -= np.outer(column, row)
            for i in range(start + 1, stop):
                m[i, stop:] -= m[i, start:i] @ m[start:i, stop:]
            m[stop:n, stop:] -= m[stop:n, start:stop] @ m[start:stop, stop:]
    return out


def row_exchanges(factors: Any) -> Any:
    """The permutation matrices q with q @ a = l @ u, from what `lu_factors` gives for a."""
    n = factors.shape[-1]
    out = np.zeros((*factors.shape[:-2], n, n), factors.dtype)
    for at in np.ndindex(factors.shape[:-2]):
        matrix, exchanges = out[at], factors[at][n]
        matrix[range(n), range(n)] = 1.0
        for i, ahead in enumerate(exchanges.astype(int)):
            other = i + ahead if 0 < ahead < n - i else i
            matrix[[i, other]] = matrix[[other, i]]
    return out


def random_bits(k0: Any, k1: Any, x0: Any, x1: Any, dtype: Any) -> Any:
    """Threefry-2x32, 20 rounds, for keys (k0, k1) and counters (x0, x1) of uint32."""
    u = np.uint32
    keys = (k0, k1, k0 ^ k1 ^ u(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << u(r) | x1 >> u(32 - r)) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + u(group + 1))
    return x0 if dtype == u else x0.astype(dtype) | x1.astype(dtype) << dtype(32)


def uniform(bits: Any, low: Any, high: Any) -> Any:
    """low + (high - low) * u for random bits, with u in [0, 1) of full precision."""
    forms = {4: (np.float32, np.int32, 24), 8: (np.float64, np.int64, 53)}
    dtype, signed, fraction = forms[bits.itemsize]
    whole = bits >> bits.dtype.type(8 * bits.itemsize - fraction)
    u = whole.astype(signed).astype(dtype) * dtype(2.0**-fraction)
    return low + u * (high - low)


def normal(bits: Any, form: Any) -> Any:
    """The quantile function of the normal distribution on random bits.

    form: the dtype, the signed integer of its width, and fitted coefficients.
    """
    dtype, signed, fraction, root_half, split, start, logarithm, centre, tail = form
    width = 8 * bits.itemsize
    largest = bits.dtype.type((1 << (width - 1)) - 1)

    def ratio(polynomials: Any, x: Any) -> Any:
        above, below = (horner(c, x) for c in polynomials)
        return above / below

    def horner(coefficients: Any, x: Any) -> Any:
        total = dtype(coefficients[-1])
        for c in coefficients[-2::-1]:
            total = total * x + dtype(c)
        return total

    def log(x: Any) -> Any:
        i, shift = x.view(signed), signed(fraction)
        k = i - signed(root_half) >> shift
        f = (i - (k << shift)).view(dtype)
        s = (f - dtype(1)) / (f + dtype(1))
        correction = s * (s * s * horner(logarithm, s * s))
        return k.astype(dtype) * dtype(np.log(2.0)) + (s + s + correction)

    def fraction_of(m: Any) -> Any:
        return (m.astype(signed).astype(dtype) + dtype(0.5)) * dtype(2.0**-width)

    magnitude = bits & largest
    p, c = fraction_of(magnitude), fraction_of(largest - magnitude)
    near = c * ratio(centre, dtype(split**2) - c * c)
    far = ratio(tail, np.sqrt(-log(p)) - dtype(start))
    z = np.where(c < dtype(split), near, far)
    return (z.view(bits.dtype) | bits & ~largest).view(dtype)
