"""Contractions of two windows: sums of products over shared axes, as in `np.einsum`, computed in tiles held in registers.

Unlike `gemm.py`, which packs its operands, this reads them in place, with any strides: the windows of a convolution overlap in memory, and
a packed copy would be many times the size of the image. A tile consists of a few rows, along one or two axes of the result, times one to
three vectors along another axis. The summed axes are inner loops that carry the tile. Tiles are cut evenly, so that none has too few rows
to keep the multipliers busy. What is decided here is a node of the loop IR (`loops.ir.Contraction`).

The target may overlap itself too when products are added to it: a tile adds one row after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adjit.ir.errors import AdjitError, NotGeneral
from adjit.ir.expr import Expr, hint_of, is_static

from ..loops import cuts
from ..loops.ir import Access, Contraction, Cuts, Factor, Loop, Node, Tile, index_of
from ..sizes import may_be_empty

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel
    from ..kernels.window import Strided

VECTORS = 2  # per row of a tile; the last tile may have three
LISTED = 4  # tiles up to which they are unrolled, if a tile has rows along two axes
STREAMED = 1 << 14  # bytes of a factor that stays in the first cache while the rows of the result pass by
SCATTERED = 4  # rows of a tile at most whose vectors are not contiguous in the target: storing these takes much code
TARGET = len(Factor)  # index of the first member of the target among the operands

Rows = list[dict[str, int]]  # of a tile: distances along axes


def contract(kernel: LoopKernel, spec: str, target: Strided, a: Strided, b: Strided, accumulate: bool) -> None:
    """target = (or +=) the contraction `spec`: "ij,ik,kj" names the axes of target, a and b; axes that target lacks are summed over."""
    labels = spec.split(",")
    sizes: dict[str, int] = {}
    for names, window in zip(labels, (target, a, b), strict=True):
        for label, size in zip(names, window.type.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise AdjitError(f"contraction {spec}: axis {label} has the sizes {sizes[label]} and {size}")
    if any(is_static(n) and n == 0 for n in target.type.shape):
        return
    if 0 in (size for label, size in sizes.items() if label not in labels[0]):
        if not accumulate:
            kernel.fill(target, 0)
        return
    kernel.run_node(_Plan(kernel, labels, sizes, (target, a, b), accumulate).node())


class _Plan:
    """The decisions about one contraction: the order of its axes, and how the result is cut into tiles."""

    def __init__(
        self, kernel: LoopKernel, labels: list[str], sizes: dict[str, int], windows: tuple[Strided, Strided, Strided], accumulate: bool
    ) -> None:
        self.dtype = windows[0].type.dtype
        self.accumulate = accumulate
        self.lanes = kernel.vector_bytes // self.dtype.itemsize
        self.registers = kernel.target.vector_registers
        self.sizes = {label: size for label, size in sizes.items() if size != 1}
        self.target, *factors = windows
        operands = [*zip(labels[1:], factors, strict=True), *((labels[0], window) for window in self.target.windows)]
        self.strides = []
        for names, window in operands:
            walk = dict(zip(names, window.strides, strict=True))
            self.strides.append({label: walk.get(label, 0) for label in self.sizes})
        self.pointers = [window.pointer for _, window in operands]
        self.dtypes = [window.type.dtype for _, window in operands]
        self.kept = [label for label in self.sizes if label in labels[0]]
        self.summed = [label for label in self.sizes if label not in labels[0]]
        for group in (self.kept, self.summed):
            self._merge(group)
        self._choose()
        self.axes = [*self.kept, *self.summed]

    # ---- choice of axes

    def _merge(self, group: list[str]) -> None:
        """Merge pairs of axes that are contiguous in every operand."""
        merged = True
        while merged:
            merged = False
            for outer in group:
                for inner in group:
                    if outer == inner or not is_static(self.sizes[outer], self.sizes[inner]):
                        continue
                    if all(s[outer] == s[inner] * self.sizes[inner] for s in self.strides):
                        self.sizes[inner] *= self.sizes[outer]
                        group.remove(outer)
                        merged = True
                        break
                if merged:
                    break

    def _choose(self) -> None:
        """Choose the vector axis, the candidates for the rows of a tile, best first, and the order of the other axes."""

        def smooth(label: str) -> float:
            *operands, target = (s[label] for s in self.strides[: TARGET + 1])
            return ((2.0 if target == 1 else 0.0) + sum(s in (0, 1) for s in operands)) * min(self.sizes[label], self.lanes)

        fixed = [label for label in self.kept if is_static(self.sizes[label], *(s[label] for s in self.strides))]
        if self.kept and not fixed:
            raise NotGeneral("a product none of whose axes has a size and strides that are known before it runs")
        self.vector = max(fixed, key=smooth, default=None)
        if self.vector is not None and self.strides[Factor.VECTOR][self.vector] == 0:
            self.strides[:TARGET] = self.strides[1::-1]
            self.pointers[:TARGET] = self.pointers[1::-1]
        across = self.strides[TARGET][self.vector] * (self.sizes[self.vector] - 1) if self.vector is not None else 0

        def worth(label: str) -> tuple[int, bool, int]:
            """Values shared by rows are loaded once; rows that do not overlap are independent; nearby rows share cache lines."""
            element, vector, target = (s[label] for s in self.strides[: TARGET + 1])
            reuse = 2 if vector == 0 else 1 if element == 0 else 0
            return min(hint_of(self.sizes[label]), self._height(VECTORS)) * (1 + reuse), abs(target) > across, -abs(hint_of(element))

        rest = sorted((label for label in self.kept if label != self.vector), key=worth, reverse=True)
        self.row = rest[0] if rest else None
        others = rest[1:]
        sharing = [label for label in others if self.strides[Factor.VECTOR][label] == 0 and worth(label)[1]]
        self.second = sharing[0] if sharing and self.row is not None and self.strides[Factor.VECTOR][self.row] == 0 else None
        others.sort(key=lambda label: -hint_of(self.strides[TARGET][label]))
        self.outer = [label for label in others if self.strides[Factor.VECTOR][label]]
        self.inner = [label for label in others if not self.strides[Factor.VECTOR][label]]  # all of these read the same vectors
        self.summed.sort(key=lambda label: -max(abs(hint_of(s[label])) for s in self.strides[:TARGET]))

    def _height(self, vectors: int) -> int:
        """Rows of a tile, such that its sums, the vectors and one element fill the registers; fewer, if elements are stored one by one."""
        most = (self.registers - 1 - vectors) // vectors
        return most if self.vector is None or self.strides[TARGET][self.vector] == 1 else min(most, SCATTERED)

    # ---- the loops

    def node(self) -> Contraction:
        accesses = [
            Access(pointer, tuple(strides[label] for label in self.axes), dtype)
            for pointer, strides, dtype in zip(self.pointers, self.strides, self.dtypes, strict=True)
        ]
        nodes = self._columns()
        for label in reversed(self.outer):
            nodes = [self._whole(label, nodes)]
        return Contraction(
            sizes=[self.sizes[label] for label in self.axes],
            factors=(accesses[Factor.ELEMENT], accesses[Factor.VECTOR]),
            members=accesses[TARGET:],
            written=self.target.written,
            store=self.target.put,
            dtype=self.dtype,
            adding=self.accumulate,
            vector=None if self.vector is None else self.axes.index(self.vector),
            summed=tuple(map(self.axes.index, self.summed)),
            nodes=nodes,
        )

    def _loop(self, label: str, start: Expr, stop: Expr, step: int, body: list[Node], empty: bool = False) -> Loop:
        axis = self.axes.index(label)
        return Loop(index_of(axis), start, stop, step, body, axis, may_be_empty=empty)

    def _whole(self, label: str, body: list[Node]) -> Loop:
        return self._loop(label, 0, self.sizes[label], 1, body, empty=may_be_empty(self.sizes[label]))

    def _columns(self) -> list[Node]:
        """Blocks along the vector axis: as many whole blocks of VECTORS vectors as possible, then one that may have one vector more."""
        if self.vector is None:
            return self._rows([1])
        if self._streams():
            return self._bands()
        size, out = self.sizes[self.vector], list[Node]()
        vectors = -(-size // self.lanes)
        last = 1 if vectors == 1 else VECTORS + vectors % VECTORS
        if vectors > last or (size % self.lanes == 0 and last == VECTORS):
            last = last if size % self.lanes or last != VECTORS else 0
            block = VECTORS * self.lanes
            out.append(self._loop(self.vector, 0, (vectors - last) // VECTORS * block, block, self._rows([self.lanes] * VECTORS)))
        if last:
            start = (vectors - last) * self.lanes
            rest = size - start
            widths = [self.lanes] * (rest // self.lanes) + ([rest % self.lanes] if rest % self.lanes else [])
            out.append(self._loop(self.vector, start, size, rest, self._rows(widths)))
        return out

    def _streams(self) -> bool:
        """Whether the second factor stays in the first cache: then the result, which may not, is written a few whole rows at a time."""
        if self.vector is None or self.row is None or self.second is not None or self.inner or self.outer:
            return False
        sizes = [self.sizes[label] for label in (self.row, self.vector, *self.summed)]
        if not is_static(*sizes) or self.strides[Factor.VECTOR][self.row] or self.strides[TARGET][self.vector] != 1:
            return False
        factor = math.prod(sizes[1:]) * self.dtype.itemsize
        return sizes[0] > self._height(VECTORS) and sizes[1] >= 2 * VECTORS * self.lanes and factor <= STREAMED

    def _bands(self) -> list[Node]:
        """Bands of rows, and in each of them the tiles from left to right."""
        assert self.vector is not None
        assert self.row is not None
        size, block, out, start = self.sizes[self.vector], VECTORS * self.lanes, list[Node](), 0
        whole = size - size % block
        last = [self.lanes] * (size % block // self.lanes) + [n for n in (size % self.lanes,) if n]
        for count, length in cuts.evenly(self.sizes[self.row], self._height(VECTORS)):
            stop = start + count * length
            tiles: list[Node] = [self._loop(self.vector, 0, whole, block, [self._repeated(self.row, [{}], length, [self.lanes] * VECTORS)])]
            if last:
                tiles.append(self._loop(self.vector, whole, size, size - whole, [self._repeated(self.row, [{}], length, last)]))
            out.append(self._loop(self.row, start, stop, length, tiles))
            start = stop
        return out

    def _rows(self, widths: list[int]) -> list[Node]:
        """The tiles of one block of columns: along one axis, or along two if one alone is too short for a tile."""
        height = self._height(len(widths))
        if self.row is None:
            return [self._tile([{}], widths)]
        short = is_static(self.sizes[self.row]) and self.sizes[self.row] * 2 <= height and self.second is not None
        nodes = self._pairs(height, widths) if short else self._along(self.row, [{}], height, widths)
        for label in reversed([label for label in self.inner if not (short and label == self.second)]):
            nodes = [self._whole(label, nodes)]
        return nodes

    def _pairs(self, height: int, widths: list[int]) -> list[Node]:
        """Tiles with rows along two axes, all of the first one."""
        assert self.row is not None
        assert self.second is not None
        line = [{self.row: i} for i in range(self.sizes[self.row])]
        if not is_static(self.sizes[self.second]) or self.sizes[self.second] * len(line) > LISTED * height:
            return self._along(self.second, line, height // len(line), widths)
        rows = [{**r, self.second: j} for j in range(self.sizes[self.second]) for r in line]
        out: list[Node] = []
        for count, length in cuts.evenly(len(rows), height):
            for _ in range(count):
                out.append(self._tile(rows[:length], widths))
                del rows[:length]
        return out

    def _along(self, label: str, line: Rows, height: int, widths: list[int]) -> list[Node]:
        """Tiles of `line` at up to `height` adjacent positions along an axis."""
        size = self.sizes[label]
        if not is_static(size):
            return self._along_any(label, line, height, widths)
        out, start = list[Node](), 0
        for count, length in cuts.evenly(size, height):
            stop = start + count * length
            out.append(self._loop(label, start, stop, length, [self._repeated(label, line, length, widths)]))
            start = stop
        return out

    def _along_any(self, label: str, line: Rows, height: int, widths: list[int]) -> list[Node]:
        """The same for a size that is known only at run time, when it is cut into tiles of some of these heights."""
        axis = self.axes.index(label)
        bodies: dict[int, list[Node]] = {rows: [self._repeated(label, line, rows, widths)] for rows in cuts.heights(height)}
        return [Cuts(index_of(axis), self.sizes[label], axis, bodies)]

    def _repeated(self, label: str, line: Rows, length: int, widths: list[int]) -> Tile:
        return self._tile([{**r, label: j} for j in range(length) for r in line], widths)

    def _tile(self, rows: Sequence[dict[str, int]], widths: list[int]) -> Tile:
        return Tile(tuple(tuple((self.axes.index(label), i) for label, i in row.items()) for row in rows), tuple(widths))
