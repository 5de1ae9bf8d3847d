"""The choice of how a matrix product is computed: in place, as a contraction, or by the routine of `gemm.py`, which packs its factors.

The rules also take sizes that are known only at run time: what they do not decide at compile time is a condition that the kernel tests.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from adjit.ir.bounds import proven_sign
from adjit.ir.expr import Expr, evaluated, hint_of, is_static, symbol_names
from adjit.ir.records import NamedTuple
from adjit.ir.target import Target
from adjit.ir.types import TensorType

from ..kernels.window import Strided
from ..llvm.lanes import Text
from ..llvm.words import Truth

SMALL = 14_000  # multiplications: up to here, packing costs more than it saves, whatever the strides
PARALLEL = 1_000_000  # multiplications: from here on, waking the other threads pays off
NEAR = 1 << 16  # bytes of b: up to here it is not packed, since it stays in the cache anyway
NEAR_ROWS = 1 << 21  # bytes of such an a, which is read once for every tile across
NARROW = 96  # bytes in a row of b: up to here, the tiles of the routine would be half empty
NARROW_FACTOR = 1 << 18  # bytes of such a b that stay in the cache while rows of a pass by
LOW, SHORT_SUM = 32, 64  # rows of a and products in a sum: up to here, packing b costs more than reading it in place several times
DEEP = 128  # products in a sum: the least for a panel that is read in place
MOST_PANELS = 8  # each has code of its own
DEEP_ROWS = {4: 4, 8: 1}  # rows of a for each row of such a panel, by the size of a number: with more, packing costs less
FEW = 4  # a small size


class Near(NamedTuple):
    """Bytes of a right factor up to which it is read in place, by any product and by one with few rows."""

    of_any: int
    of_low: int
    apart: int | None = None  # bytes: rows of the result, times the power of two in their distance, must be fewer


def near_factors(target: Target) -> Near:
    """Factors that the caches of a CPU deliver as fast as its tiles multiply. Tiles of 12 rows and of full width usually wait for the L2
    cache. Where they do not, rows of the result that displace each other from that cache displace the factor as well.
    """
    few_registers, second = target.vector_registers < 32, target.caches[1]
    if target.wide_cache and not few_registers:
        return Near(2 * second, 1 << 22, 2 * second)
    return Near(1 << 20 if target.in_halves else 1 << 17, 1 << 17 if few_registers else 1 << 22)


def is_small(
    m: Expr, n: Expr, k: Expr, itemsize: int, is_contiguous: bool, at_most: Callable[[Any, int], bool | Truth] = operator.le
) -> bool | Truth:
    """Whether a product of [m,k] and [k,n] is too small for packing to pay off; `is_contiguous` are the rows of the right factor."""
    multiplications = m * n * k
    small = at_most(multiplications, SMALL)
    if not is_contiguous:
        return small
    return small | (at_most(multiplications, PARALLEL - 1) & at_most(k * n * itemsize, NEAR))


def packs_factor(a: TensorType, b: TensorType, strides: tuple[int, ...], near: Near) -> bool:
    """Whether the right factor, with these strides, is packed."""
    (m, k), n = a.shape, b.shape[1]
    in_place = is_static(m, n, k) and is_near(m, n, k, b.dtype.itemsize, strides[1] == 1, near=near)
    return pays_to_pack(a, b, strides) and not in_place


def pays_to_pack(a: TensorType, b: TensorType, strides: tuple[int, ...]) -> bool:
    """Whether the right factor, with these strides, and the whole product are large enough for packing to pay off."""
    (m, k), n = map(hint_of, a.shape), hint_of(b.shape[1])
    return a.dtype.kind == "f" and 1 not in (m, n) and not is_small(m, n, k, b.dtype.itemsize, strides[1] == 1)


def is_near(
    m: Expr,
    n: Expr,
    k: Expr,
    itemsize: int,
    is_contiguous: bool,
    at_most: Callable[[Any, int], bool | Truth] = operator.le,
    *,
    near: Near,
) -> bool | Truth:
    """Whether the caches serve tiles of both factors as fast as packed ones. The routine would also fill up its last tile with zeros.

    Tiles with more rows read b less often, and a product with few rows reads each element of b only a few times: a slower cache is enough.
    """
    if not is_contiguous:
        return False
    left, right = m * k * itemsize, k * n * itemsize
    of_any = at_most(right, near.of_any)
    if near.apart is not None:
        of_any = of_any & at_most(m * power_of_two(n * itemsize), near.apart - 1)
    return at_most(left, NEAR_ROWS) & (of_any | (at_most(m, LOW) & at_most(right, near.of_low)))


def near_depth(a: TensorType, b: TensorType, strides: tuple[int, ...], target: Target) -> int:
    """Rows of the panels of b that stay in the cache, for a product that is computed in place, panel by panel; 0 if b is packed.

    To add the products of panels to the result costs the more the lower they are; to pack b costs the more the fewer rows a has.
    """
    (m, k), n, near = a.shape, b.shape[1], near_factors(target)
    itemsize = b.dtype.itemsize
    if near.apart is None or not is_static(m, k, n) or strides[1] != 1:
        return 0
    if m * power_of_two(n * itemsize) >= target.caches[1]:
        return 0
    count = -(-k * n * itemsize // target.caches[1])
    depth = -(-k // count)
    return depth if count <= MOST_PANELS and depth >= max(DEEP, m // DEEP_ROWS.get(itemsize, 1)) else 0


def power_of_two(n: Expr) -> int:
    """The largest power of two that divides n; 1 if n is known only at run time."""
    return n & -n if isinstance(n, int) else 1


def reads_in_place(a: TensorType, b: TensorType, strides: tuple[int, ...]) -> bool:
    """Whether a product that is large enough for packing is computed in place all the same."""
    if not is_static(*a.shape, *b.shape):
        return False
    (m, k), n = a.shape, b.shape[1]
    return bool(is_low_or_narrow(m, n, k, b.dtype.itemsize, strides[1] == 1))


def is_low_or_narrow(
    m: Expr, n: Expr, k: Expr, itemsize: int, is_contiguous: bool, at_most: Callable[[Any, int], bool | Truth] = operator.le
) -> bool | Truth:
    """Whether the result is so narrow that the tiles of the routine would be half empty, or so low that each packed element would be read
    only a few times.
    """
    if not is_contiguous:
        return False
    width = n * itemsize
    is_narrow = at_most(width, NARROW) | (at_most(m, LOW) & at_most(width, 2 * NARROW))
    return (is_narrow & at_most(k * width, NARROW_FACTOR)) | (at_most(m, LOW) & at_most(k, SHORT_SUM))


def is_in_place_when_run(text: Text, target: Strided, a: Strided, b: Strided) -> tuple[bool | Truth, bool]:
    """Whether a product with a size that is known only at run time is computed in place, and whether it may be large then.

    False as well if a contraction is not worth its code.
    """
    (m, k), n, itemsize, is_contiguous = a.type.shape, b.type.shape[1], b.type.dtype.itemsize, b.strides[1] == 1
    if not is_static(n, b.strides[1], *(w.strides[1] for w in target.windows)):
        return False, False  # the columns of a contraction are cut into vectors at compile time

    def at_most(size: Expr, limit: int) -> bool | Truth:
        sign = proven_sign(limit - size, or_zero=True)
        return sign > 0 if sign else Truth(text, text.define(f"icmp sle i64 {size}, {limit}"))

    of_large: list[Callable[..., bool | Truth]] = [is_low_or_narrow, partial(is_near, near=near_factors(text.target))]
    rules = [rule for rule in (is_small, *of_large) if is_often(partial(rule, itemsize=itemsize, is_contiguous=is_contiguous), m, n, k)]
    holds = [rule(m, n, k, itemsize, is_contiguous, at_most) for rule in rules]
    return functools.reduce(operator.or_, holds, False), any(rule in rules for rule in of_large)


def is_often(holds: Callable[..., bool | Truth], *sizes: Expr) -> bool:
    """Whether a condition holds for the sizes of the traced call, or for small ones: otherwise it is not worth code of its own."""
    names = {name for n in sizes for name in symbol_names(n)}
    few = [evaluated(n, dict.fromkeys(names, FEW)) for n in sizes]
    return bool(holds(*map(hint_of, sizes)) or holds(*few))
