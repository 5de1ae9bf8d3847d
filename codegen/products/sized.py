"""Products with a size that is known only at run time.

What the compiler decides from the sizes of other products is decided here when the product runs, by the same rules: whether it is a
contraction or calls the routine of `gemm.py`. How that cuts the rows and columns is decided by `cutting.py`, for numbers and words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adjit.ir.bounds import proven_sign
from adjit.ir.expr import Expr, evaluated, hint_of, is_static, symbol_names
from adjit.ir.types import TensorType

from ..kernels.window import Hosted, Window
from ..llvm.counted import only_if
from ..llvm.lanes import Text
from . import cutting

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel

FEW = 16  # a small size


def at_most(text: Text, size: Expr, limit: int) -> str:
    """Whether a size is at most a limit: a register, "true" or "false"."""
    sign = proven_sign(limit - size, or_zero=True)
    if sign:
        return "true" if sign > 0 else "false"
    return text.define(f"icmp sle i64 {size}, {limit}")


def is_often(holds: Callable[..., bool], *sizes: Expr) -> bool:
    """Whether a condition holds for the sizes that occurred, or for small ones: otherwise it is not worth code of its own."""
    names = {name for n in sizes for name in symbol_names(n)}
    few = [evaluated(n, dict.fromkeys(names, FEW)) for n in sizes]
    return holds(*map(hint_of, sizes)) or holds(*few)


def both(text: Text, a: str, b: str) -> str:
    if "false" in (a, b):
        return "false"
    return b if a == "true" else a if b == "true" else text.define(f"and i1 {a}, {b}")


def either(text: Text, a: str, b: str) -> str:
    if "true" in (a, b):
        return "true"
    return b if a == "false" else a if b == "false" else text.define(f"or i1 {a}, {b}")


@contextmanager
def otherwise(text: Text, condition: str) -> Iterator[None]:
    """Emit what follows only for what the condition excludes."""
    with only_if(text, text.define(f"xor i1 {condition}, true")):
        yield


def packing_bytes(kernel: LoopKernel, a: TensorType, b: TensorType, threads: int) -> int:
    """Enough for all sizes: the largest block of a for every thread, and a panel of b."""
    k, n, item = a.shape[1], b.shape[1], a.dtype.itemsize
    depth = k if is_static(k) and k < cutting.KC else cutting.KC
    width = cutting.tile_columns(a.dtype, kernel.vector_bytes)
    panel = -(-n // width) * width * depth
    return (panel + threads * cutting.MAX_ROWS * depth) * item + 64 * (threads + 1)


def apart(kernel: LoopKernel, target: Hosted, a: Window, b: Window, threads: int, follows: bool) -> tuple[int, int]:
    """Like `products._apart`: the shape of a temporary matrix for the sums, (0, 0) if none is needed."""
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    if target.spare is not None:
        return 0, 0
    if follows or not is_static(k) or k > cutting.KC:
        return m, n
    width = cutting.tile_columns(dtype, kernel.vector_bytes)
    most = max(1, cutting.SPAN_BYTES // (width * dtype.itemsize)) * width
    return threads * cutting.MAX_ROWS, min(most, -(-n // width) * width) if is_static(n) else most


def follows(kernel: LoopKernel, target: Window, a: Window) -> bool:
    """Like `products._follows`, for the routine: correct for all sizes, and decided by those that occurred."""
    large = hint_of(math.prod(target.type.shape)) * target.type.dtype.itemsize > kernel.target.caches[1]
    return isinstance(target, Hosted) and hint_of(a.type.shape[1]) > cutting.KC and large
