"""Products with a size that is known only at run time.

What the compiler decides from the sizes of other products is decided here when the product runs, by the same rules: whether it is a
contraction or calls the routine of `gemm.py`, on how many threads, and how that cuts the rows and columns.
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
from ..llvm.lanes import Text
from . import gemm

if TYPE_CHECKING:
    from ..kernels.kernels import LoopKernel

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
    with gemm.only_if(text, text.define(f"xor i1 {condition}, true")):
        yield


class Cut:
    """How the routine cuts a product: the rows of a block of a, groups of columns and the tiles that are finished at once, as operands."""

    def __init__(self, kernel: LoopKernel, a: TensorType, b: TensorType, threads: int) -> None:
        self.text, self.target = kernel.text, kernel.target
        self.text.declares |= {f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("smin", "smax")}
        (m, _), n, width = a.shape, b.shape[1], gemm.tile_columns(a.dtype, kernel.vector_bytes)
        panels = self._over(f"{n}", str(width))
        most = max(1, gemm.SPAN_BYTES // (width * a.dtype.itemsize))
        self.span = self._least(panels, str(most))
        self.rows = self._rows(f"{m}", threads)
        self.groups = self._groups(f"{m}", panels, threads)

    def _define(self, instruction: str) -> str:
        return self.text.define(instruction)

    def _over(self, a: str, b: str) -> str:
        """a / b, rounded up."""
        above = self._define(f"add i64 {a}, {self._define(f'sub i64 {b}, 1')}")
        return self._define(f"udiv i64 {above}, {b}")

    def _least(self, a: str, b: str) -> str:
        return self._define(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def _chosen(self, condition: str, a: str, b: str) -> str:
        return self._define(f"select i1 {condition}, i64 {a}, i64 {b}")

    def _rows(self, m: str, threads: int) -> str:
        """Like `gemm.block_rows`."""
        mr = gemm.tile_rows(self.target)
        best = whole = self._least(str(gemm.MAX_ROWS), self._multiple(m, mr, mr))
        if threads == 1:
            return whole
        for blocks in (threads, 2 * threads, 3 * threads, 4 * threads):
            rows = self._define(f"call i64 @llvm.smax.i64(i64 {4 * gemm.ROWS}, i64 {self._multiple(m, blocks * mr, mr)})")
            rows = self._least(str(gemm.MAX_ROWS), rows)
            better = self._define(f"icmp sle i64 {self._longest(m, rows, threads)}, {self._longest(m, best, threads)}")
            best = self._chosen(better, rows, best)
        return self._chosen(self._define(f"icmp sle i64 {m}, {gemm.FEW_ROWS}"), whole, best)

    def _multiple(self, m: str, part: int, mr: int) -> str:
        return self._define(f"mul i64 {self._over(m, str(part))}, {mr}")

    def _longest(self, m: str, rows: str, threads: int) -> str:
        return self._define(f"mul i64 {self._over(self._over(m, rows), str(threads))}, {rows}")

    def _groups(self, m: str, panels: str, threads: int) -> str:
        """Like `gemm.column_groups`."""
        if threads == 1:
            return "1"
        blocks = self._over(m, self.rows)
        few = self._define(f"icmp slt i64 {blocks}, {threads}")
        return self._chosen(few, self._least(panels, self._over(str(2 * threads), blocks)), "1")


def packing_bytes(kernel: LoopKernel, a: TensorType, b: TensorType, threads: int) -> int:
    """Enough for all sizes: the largest block of a for every thread, and a panel of b."""
    k, n, item = a.shape[1], b.shape[1], a.dtype.itemsize
    depth = k if is_static(k) and k < gemm.KC else gemm.KC
    width = gemm.tile_columns(a.dtype, kernel.vector_bytes)
    panel = -(-n // width) * width * depth
    return (panel + threads * gemm.MAX_ROWS * depth) * item + 64 * (threads + 1)


def apart(kernel: LoopKernel, target: Hosted, a: Window, b: Window, threads: int, follows: bool) -> tuple[int, int]:
    """Like `products._apart`: the shape of a temporary matrix for the sums, (0, 0) if none is needed."""
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    if target.spare is not None:
        return 0, 0
    if follows or not is_static(k) or k > gemm.KC:
        return m, n
    width = gemm.tile_columns(dtype, kernel.vector_bytes)
    most = max(1, gemm.SPAN_BYTES // (width * dtype.itemsize)) * width
    return threads * gemm.MAX_ROWS, min(most, -(-n // width) * width) if is_static(n) else most


def follows(kernel: LoopKernel, target: Window, a: Window) -> bool:
    """Like `products._follows`, for the routine: correct for all sizes, and decided by those that occurred."""
    large = hint_of(math.prod(target.type.shape)) * target.type.dtype.itemsize > kernel.target.caches[1]
    return isinstance(target, Hosted) and hint_of(a.type.shape[1]) > gemm.KC and large
