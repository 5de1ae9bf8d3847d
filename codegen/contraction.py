"""Contractions of two windows: sums of products over shared axes, as `np.einsum` writes them, in tiles held in registers.

Where `gemm.py` packs its operands, this reads them where they lie, through any strides: the windows of a convolution overlap in memory,
and a copy of them would be many times the image. A tile is ROWS positions of one axis of the result times up to VECTORS vectors of another;
the axes that are summed away are loops inside, with the tile as their carried values.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from adjit.ir.errors import AdjitError
from adjit.ir.types import DType

from . import memory
from .emitter import VectorEmitter
from .lanes import Reg
from .nest import Loop

if TYPE_CHECKING:
    from .kernels import LoopKernel, Window

ROWS = 6  # of a tile: with two vectors each, the sums fill twelve of sixteen registers
VECTORS = 2
UNROLL = 4  # steps of the innermost summed axis at a time


def contract(kernel: LoopKernel, spec: str, target: Window, a: Window, b: Window, accumulate: bool) -> None:
    """target = (or +=) the contraction `spec`: "ij,ik,kj" names the axes of target, a and b; what target lacks is summed over."""
    labels = spec.split(",")
    sizes: dict[str, int] = {}
    for names, window in zip(labels, (target, a, b), strict=True):
        for label, size in zip(names, window.type.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise AdjitError(f"contraction {spec}: axis {label} has the sizes {sizes[label]} and {size}")
    if target.type.size == 0:
        return
    if 0 in sizes.values():
        if not accumulate:
            kernel.fill(target, 0)
        return
    strides = [dict(zip(names, window.strides, strict=True)) for names, window in zip(labels, (target, a, b), strict=True)]
    _Contraction(kernel, labels[0], sizes, strides, (target.pointer, a.pointer, b.pointer), target.type.dtype, accumulate).emit()


class _Contraction:
    """One contraction while it is written. Operands are numbered: 0 the target, 1 what is loaded by element, 2 by vector."""

    def __init__(
        self, kernel: LoopKernel, kept: str, sizes: dict[str, int], strides: list[dict[str, int]], pointers: tuple[str, str, str],
        dtype: DType, accumulate: bool,
    ) -> None:  # fmt: skip
        self.text = kernel.text
        self.dtype = dtype
        self.accumulate = accumulate
        self.lanes = kernel.vector_bytes // dtype.itemsize
        self.sizes = {label: size for label, size in sizes.items() if size > 1}
        self.strides = [{label: s.get(label, 0) for label in self.sizes} for s in strides]
        self.pointers = list(pointers)
        self.kept = [label for label in self.sizes if label in kept]
        self.summed = [label for label in self.sizes if label not in kept]
        for group in (self.kept, self.summed):
            self._merge(group)
        self._choose()

    # ---- which axes

    def _merge(self, group: list[str]) -> None:
        """Two axes that every operand walks as one become one."""
        merged = True
        while merged:
            merged = False
            for outer in group:
                for inner in group:
                    if outer != inner and all(s[outer] == s[inner] * self.sizes[inner] for s in self.strides):
                        self.sizes[inner] *= self.sizes[outer]
                        group.remove(outer)
                        merged = True
                        break
                if merged:
                    break

    def _choose(self) -> None:
        """The axis along vectors, the one along the rows of a tile, and the order of the others."""

        def smooth(label: str) -> float:
            target, *operands = (s[label] for s in self.strides)
            return ((2.0 if target == 1 else 0.0) + sum(s in (0, 1) for s in operands)) * min(self.sizes[label], self.lanes)

        self.vector = max(self.kept, key=smooth, default=None)
        if self.vector is not None and self.strides[2][self.vector] == 0:
            self.strides[1:] = self.strides[:0:-1]
            self.pointers[1:] = self.pointers[:0:-1]
        rest = [label for label in self.kept if label != self.vector]

        def shared(label: str) -> tuple[int, int]:  # what the rows of a tile share is loaded once
            reuse = 2 if self.strides[2][label] == 0 else 1 if self.strides[1][label] == 0 else 0
            return min(self.sizes[label], ROWS) * (1 + reuse), self.strides[0][label]

        self.row = max(rest, key=shared, default=None)
        self.outer = sorted((label for label in rest if label != self.row), key=lambda label: -self.strides[0][label])
        self.summed.sort(key=lambda label: -max(abs(self.strides[1][label]), abs(self.strides[2][label])))

    # ---- the loops

    def emit(self) -> None:
        at = list(self.pointers)
        with ExitStack() as stack:
            for label in self.outer:
                loop = stack.enter_context(Loop(self.text, "0", str(self.sizes[label])))
                at = self._moved(at, label, loop.index)
            self._columns(at)

    def _moved(self, at: Sequence[str], label: str, index: str) -> list[str]:
        out = []
        for pointer, strides in zip(at, self.strides, strict=True):
            step = strides[label]
            out.append(memory.element(self.text, pointer, self.dtype, memory.scaled(self.text, index, step)) if step else pointer)
        return out

    def _columns(self, at: Sequence[str]) -> None:
        """Blocks of up to VECTORS vectors along the vector axis: whole ones in a loop, then what is left."""
        if self.vector is None:
            self._rows(at, [1])
            return
        size, block = self.sizes[self.vector], VECTORS * self.lanes
        whole = size // block * block
        if whole == block:
            self._rows(at, [self.lanes] * VECTORS)
        elif whole:
            with Loop(self.text, "0", str(whole), block) as loop:
                self._rows(self._moved(at, self.vector, loop.index), [self.lanes] * VECTORS)
        if size > whole:
            rest = size - whole
            widths = [self.lanes] * (rest // self.lanes) + ([rest % self.lanes] if rest % self.lanes else [])
            self._rows(self._moved(at, self.vector, str(whole)), widths)

    def _rows(self, at: Sequence[str], widths: list[int]) -> None:
        """Tiles along the row axis: whole ones in a loop, then a lower one."""
        if self.row is None:
            self._tile(at, 1, widths)
            return
        size = self.sizes[self.row]
        whole = size // ROWS * ROWS
        if whole == ROWS:
            self._tile(at, ROWS, widths)
        elif whole:
            with Loop(self.text, "0", str(whole), ROWS) as loop:
                self._tile(self._moved(at, self.row, loop.index), ROWS, widths)
        if size > whole:
            self._tile(self._moved(at, self.row, str(whole)), size - whole, widths)

    # ---- one tile

    def _tile(self, at: Sequence[str], rows: int, widths: list[int]) -> None:
        emitters = [VectorEmitter(self.text, width) for width in widths]
        zeros = [emit.const(self.dtype, 0.0) for emit in emitters]
        sums = self._sum(0, list(at), [list(zeros) for _ in range(rows)], emitters)
        down = self.strides[0][self.row] if self.row is not None else 0
        across = self.strides[0][self.vector] if self.vector is not None else 1
        for r, line in enumerate(sums):
            column = 0
            for emit, value in zip(emitters, line, strict=True):
                place = memory.element(self.text, at[0], self.dtype, str(r * down + column * across))
                if self.accumulate:
                    value = emit.add(memory.load(self.text, place, self.dtype, "0", across, emit.width), value)
                memory.store(self.text, place, value, "0", across, emit.width)
                column += emit.width

    def _sum(self, depth: int, at: list[str], sums: list[list[Reg]], emitters: list[VectorEmitter]) -> list[list[Reg]]:
        """The loops over summed axes, from the outermost; the tile is carried through them."""
        if depth == len(self.summed):
            return self._products(at, 0, sums, emitters)
        label = self.summed[depth]
        size = self.sizes[label]
        step = UNROLL if depth == len(self.summed) - 1 else 1
        whole = size // step * step
        if whole > step:
            with Loop(self.text, "0", str(whole), step) as loop:
                kinds = [emit.type(self.dtype) for emit in emitters]
                carried = [[Reg(loop.carry(kind, s.name), self.dtype) for kind, s in zip(kinds, line, strict=True)] for line in sums]
                here = [at[0], *self._moved(at, label, loop.index)[1:]]
                after = carried
                for u in range(step):
                    after = self._products(here, u, after, emitters) if step > 1 else self._sum(depth + 1, here, after, emitters)
                for before, following in zip(carried, after, strict=True):
                    for x, y in zip(before, following, strict=True):
                        loop.feed(x.name, y.name)
            sums = after
        else:
            whole = 0
        for k in range(whole, size):
            here = [at[0], *self._moved(at, label, str(k))[1:]]
            sums = self._sum(depth + 1, here, sums, emitters)
        return sums

    def _products(self, at: list[str], u: int, sums: list[list[Reg]], emitters: list[VectorEmitter]) -> list[list[Reg]]:
        """Every sum of the tile plus its product, `u` steps along the innermost summed axis."""
        text, dtype = self.text, self.dtype
        steps = [s[self.summed[-1]] * u if self.summed else 0 for s in self.strides]
        down = [s[self.row] if self.row is not None else 0 for s in self.strides]
        across = [s[self.vector] if self.vector is not None else 0 for s in self.strides]
        loaded: dict[tuple[int, int, int], Reg] = {}

        def load(operand: int, offset: int, width: int) -> Reg:
            key = (operand, offset, width)
            if key not in loaded:
                place = memory.element(text, at[operand], dtype, str(offset))
                if across[operand] == 0:
                    one = memory.load(text, place, dtype, "0", 1, 1) if width == 1 else load(operand, offset, 1)
                    loaded[key] = memory.splat(text, one, width)
                else:
                    loaded[key] = memory.load(text, place, dtype, "0", across[operand], width)
            return loaded[key]

        out = []
        for r, line in enumerate(sums):
            following, column = [], 0
            for emit, total in zip(emitters, line, strict=True):
                x, y = (load(k, steps[k] + r * down[k] + column * across[k], emit.width) for k in (1, 2))
                following.append(emit.add(total, emit.mul(x, y)))
                column += emit.width
            out.append(following)
        return out
