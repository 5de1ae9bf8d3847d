"""Contractions of two windows: sums of products over shared axes, as in `np.einsum`, computed in tiles held in registers.

Unlike `gemm.py`, which packs its operands, this reads them in place, with any strides: the windows of a convolution overlap in memory, and
a packed copy would be many times the size of the image. A tile consists of a few rows, along one or two axes of the result, times one to
three vectors along another axis. The summed axes are inner loops that carry the tile. Tiles are cut evenly, so that none has too few rows
to keep the multipliers busy.

The target may overlap itself too when products are added to it: a tile adds one row after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from adjit.ir.errors import AdjitError, NotGeneral
from adjit.ir.expr import hint_of, is_static

from ..kernels.emitter import VectorEmitter
from ..llvm import memory
from ..llvm.counted import Loop
from ..llvm.lanes import Reg
from .gemm import only_if

if TYPE_CHECKING:
    from ..kernels.kernels import LoopKernel
    from ..kernels.window import Window

VECTORS = 2  # per row of a tile; the last tile may have three
LISTED = 4  # tiles up to which they are unrolled, if a tile has rows along two axes
ELEMENT, VECTOR, TARGET = range(3)  # operands: loaded by element, loaded by vector, and the members of the target


def contract(kernel: LoopKernel, spec: str, target: Window, a: Window, b: Window, accumulate: bool) -> None:
    """target = (or +=) the contraction `spec`: "ij,ik,kj" names the axes of target, a and b; axes that target lacks are summed over."""
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
    _Contraction(kernel, labels, sizes, (target, a, b), accumulate).emit()


def evenly(size: int, most: int) -> list[tuple[int, int]]:
    """Cut `size` into as few parts of at most `most` as possible: [(count, length), ...], with at most two different lengths."""
    parts = -(-size // most)
    short, longer = divmod(size, parts)
    return [(count, length) for count, length in ((longer, short + 1), (parts - longer, short)) if count]


class _Contraction:
    """One contraction while it is emitted. A position in all operands is a list of pointers; a row of a tile, a list of offsets from it."""

    def __init__(
        self, kernel: LoopKernel, labels: list[str], sizes: dict[str, int], windows: tuple[Window, Window, Window], accumulate: bool
    ) -> None:
        self.text = kernel.text
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
        if self.vector is not None and self.strides[VECTOR][self.vector] == 0:
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
        sharing = [label for label in others if self.strides[VECTOR][label] == 0 and worth(label)[1]]
        self.second = sharing[0] if sharing and self.row is not None and self.strides[VECTOR][self.row] == 0 else None
        others.sort(key=lambda label: -hint_of(self.strides[TARGET][label]))
        self.outer = [label for label in others if self.strides[VECTOR][label]]
        self.inner = [label for label in others if not self.strides[VECTOR][label]]  # all of these read the same vectors
        self.summed.sort(key=lambda label: -max(abs(hint_of(s[label])) for s in self.strides[:TARGET]))

    def _height(self, vectors: int) -> int:
        """Rows of a tile, such that its sums, the vectors and one element fill the registers."""
        return (self.registers - 1 - vectors) // vectors

    # ---- the loops

    def emit(self) -> None:
        at = list(self.pointers)
        with ExitStack() as stack:
            for label in self.outer:
                at = self._moved(at, label, stack.enter_context(Loop(self.text, "0", f"{self.sizes[label]}")).index)
            for widths, here in self._columns(at):
                self._rows(here, widths)

    def _moved(self, at: Sequence[str], label: str, index: str) -> list[str]:
        out = []
        for pointer, dtype, strides in zip(at, self.dtypes, self.strides, strict=False):
            step = strides[label]
            out.append(memory.element(self.text, pointer, dtype, memory.scaled(self.text, index, step)) if step else pointer)
        return out

    def _columns(self, at: list[str]) -> Iterator[tuple[list[int], list[str]]]:
        """Blocks along the vector axis: as many whole blocks of VECTORS vectors as possible, then one that may have one vector more."""
        if self.vector is None:
            yield [1], at
            return
        size = self.sizes[self.vector]
        vectors = -(-size // self.lanes)
        last = 1 if vectors == 1 else VECTORS + vectors % VECTORS
        if vectors > last or (size % self.lanes == 0 and last == VECTORS):
            last = last if size % self.lanes or last != VECTORS else 0
            yield from self._loop(at, self.vector, 0, (vectors - last) // VECTORS, VECTORS * self.lanes, [self.lanes] * VECTORS)
        if last:
            start = (vectors - last) * self.lanes
            rest = size - start
            widths = [self.lanes] * (rest // self.lanes) + ([rest % self.lanes] if rest % self.lanes else [])
            yield widths, self._moved(at, self.vector, str(start))

    def _loop(self, at: list[str], label: str, start: int, count: int, step: int, what: list[int]) -> Iterator[tuple[list[int], list[str]]]:
        """Yield `what` at `count` positions along an axis."""
        if count == 1:
            yield what, self._moved(at, label, str(start))
        else:
            with Loop(self.text, str(start), str(start + count * step), step) as loop:
                yield what, self._moved(at, label, loop.index)

    def _rows(self, at: list[str], widths: list[int]) -> None:
        """Emit the tiles of one block of columns: along one axis, or along two if one alone is too short for a tile."""
        height = self._height(len(widths))
        if self.row is None:
            self._tile(at, [{}], widths)
            return
        short = is_static(self.sizes[self.row]) and self.sizes[self.row] * 2 <= height and self.second is not None
        inner = [label for label in self.inner if not (short and label == self.second)]
        with ExitStack() as stack:
            for label in inner:
                at = self._moved(at, label, stack.enter_context(Loop(self.text, "0", f"{self.sizes[label]}")).index)
            if not short:
                self._along(at, self.row, [{}], height, widths)
                return
            assert self.second is not None
            line = [{self.row: i} for i in range(self.sizes[self.row])]
            if not is_static(self.sizes[self.second]) or self.sizes[self.second] * len(line) > LISTED * height:
                self._along(at, self.second, line, height // len(line), widths)
                return
            rows = [{**r, self.second: j} for j in range(self.sizes[self.second]) for r in line]
            for count, length in evenly(len(rows), height):
                for _ in range(count):
                    self._tile(at, rows[:length], widths)
                    del rows[:length]

    def _along(self, at: list[str], label: str, line: list[dict[str, int]], height: int, widths: list[int]) -> None:
        """Emit tiles of `line` at up to `height` adjacent positions along an axis."""
        if not is_static(self.sizes[label]):
            self._along_any(at, label, line, height, widths)
            return
        start = 0
        for count, length in evenly(self.sizes[label], height):
            rows = [{**r, label: j} for j in range(length) for r in line]
            for _, here in self._loop(at, label, start, count, length, widths):
                self._tile(here, rows, widths)
            start += count * length

    def _along_any(self, at: list[str], label: str, line: list[dict[str, int]], height: int, widths: list[int]) -> None:
        """The same for a size that is known only at run time: as many whole tiles as possible, then lower ones."""
        text, start, size = self.text, "0", f"{self.sizes[label]}"
        while height:
            rows = [{**r, label: j} for j in range(height) for r in line]
            left = text.define(f"sub i64 {size}, {start}")
            whole = text.define(f"mul i64 {text.define(f'udiv i64 {left}, {height}')}, {height}")
            stop = text.define(f"add i64 {start}, {whole}")
            with only_if(text, text.define(f"icmp slt i64 {start}, {stop}")), Loop(text, start, stop, height) as loop:
                self._tile(self._moved(at, label, loop.index), rows, widths)
            start, height = stop, height // 2

    # ---- one tile

    def _tile(self, at: list[str], rows: list[dict[str, int]], widths: list[int]) -> None:
        emitters = [VectorEmitter(self.text, width) for width in widths]
        zeros = [emit.const(self.dtype, 0.0) for emit in emitters]
        offsets = [[sum(s[label] * i for label, i in row.items()) for s in self.strides] for row in rows]
        sums = self._sum(0, at, [list(zeros) for _ in rows], offsets, emitters)
        loaded: dict[tuple[int, int, int], Reg] = {}
        for line, row in zip(sums, offsets, strict=True):
            column = 0
            for emit, value in zip(emitters, line, strict=True):
                self._store(at, row, column, emit, value, loaded)
                column += emit.width

    def _store(
        self, at: list[str], row: list[int], column: int, emit: VectorEmitter, value: Reg, loaded: dict[tuple[int, int, int], Reg]
    ) -> None:
        """Store some elements of a tile. `loaded` caches what the target has read for it: a bias is the same for every row."""

        def place(k: int) -> tuple[int, int]:
            across = self.strides[k][self.vector] if self.vector is not None else 1
            return row[k] + column * across, across

        def load(member: int) -> Reg:
            k = TARGET + member
            offset, across = place(k)
            key = k, offset, emit.width
            if key in loaded:
                return loaded[key]
            pointer = memory.element(self.text, at[k], self.dtypes[k], f"{offset}")
            found = memory.load(self.text, pointer, self.dtypes[k], "0", across, emit.width)
            if member >= self.target.written:  # written members may have changed since
                loaded[key] = found
            return found

        def store(member: int, result: Reg) -> None:
            k = TARGET + member
            offset, across = place(k)
            memory.store(self.text, memory.element(self.text, at[k], self.dtypes[k], f"{offset}"), result, "0", across, emit.width)

        if self.accumulate:
            value = emit.add(load(0), value)
        self.target.put(emit, value, load, store)

    def _sum(
        self, depth: int, at: list[str], sums: list[list[Reg]], offsets: list[list[int]], emitters: list[VectorEmitter]
    ) -> list[list[Reg]]:
        """Emit the loops over the summed axes, outermost first; they carry the tile."""
        if depth == len(self.summed):
            return self._products(at, sums, offsets, emitters)
        label = self.summed[depth]
        with Loop(self.text, "0", f"{self.sizes[label]}") as loop:
            kinds = [emit.type(self.dtype) for emit in emitters]
            carried = [[Reg(loop.carry(kind, s.name), self.dtype) for kind, s in zip(kinds, line, strict=True)] for line in sums]
            after = self._sum(depth + 1, self._stepped(at, label, loop.index), carried, offsets, emitters)
            for before, following in zip(carried, after, strict=True):
                for x, y in zip(before, following, strict=True):
                    loop.feed(x.name, y.name)
        return after

    def _stepped(self, at: list[str], label: str, index: str) -> list[str]:
        """Advance the factors along a summed axis; the target does not move."""
        return [*self._moved(at[:TARGET], label, index), *at[TARGET:]]

    def _products(self, at: list[str], sums: list[list[Reg]], offsets: list[list[int]], emitters: list[VectorEmitter]) -> list[list[Reg]]:
        """Add a product to every sum of the tile. (Twelve of them take longer than the loop overhead, so unrolling gains nothing.)"""
        across = [s[self.vector] if self.vector is not None else 0 for s in self.strides]
        load = self._loader(at, across)
        out = []
        for line, row in zip(sums, offsets, strict=True):
            following, column = [], 0
            for emit, total in zip(emitters, line, strict=True):
                x, y = (load(k, row[k] + column * across[k], emit.width) for k in (ELEMENT, VECTOR))
                following.append(emit.add(total, emit.mul(x, y)))
                column += emit.width
            out.append(following)
        return out

    def _loader(self, at: list[str], across: list[int]) -> Callable[[int, int, int], Reg]:
        """A function that loads `width` elements of an operand at an offset, emitting each load once."""
        text, dtype, loaded = self.text, self.dtype, dict[tuple[int, int, int], Reg]()

        def load(operand: int, offset: int, width: int) -> Reg:
            key = (operand, offset, width)
            if key not in loaded:
                place = memory.element(text, at[operand], dtype, f"{offset}")
                if across[operand] == 0:
                    one = memory.load(text, place, dtype, "0", 1, 1) if width == 1 else load(operand, offset, 1)
                    loaded[key] = memory.splat(text, one, width)
                else:
                    loaded[key] = memory.load(text, place, dtype, "0", across[operand], width)
            return loaded[key]

        return load
