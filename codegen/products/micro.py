"""The micro-kernel of `gemm.py`: a tile of c, whose sums stay in registers.

One function serves rows of a that are packed and rows that are read in place, since what follows the sums is most of its text, and the
first product of a process waits for LLVM to compile it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..llvm.counted import CountedLoop, only_if
from ..llvm.lanes import Text
from .cutting import MORE_ROWS, VECTORS
from .panels import Panels

UNROLL = 4  # steps of a panel at a time, with the lowest tiles; depths of panels are multiples of it
LINE = 64  # bytes of a line of the cache
TYPES = "ptr, i64, ptr, i64, ptr, i64, i64, i64, i1, i1, ptr"
Sums = list[list[str]]  # by row and vector
Place = Callable[[Text, str, int, int], str]  # of an element of a: the first step of an iteration, a step in it, and a row


class Micro(Panels):
    def micro(self, height: int, vectors: int) -> str:
        """Rows of a are packed as [k][MR] if `packed`, and `row` apart otherwise; b is packed as [k][NR]. c is not added to if `first`.

        Edge tiles have fewer rows or columns: what is missing is zeros, or repeats the last one, and its results are discarded.
        """
        text = Text(self.target)
        with CountedLoop(text, "0", "%m", trips=height) as rows:  # c is needed once the sums are complete
            row = self.at(text, "%c", text.define(f"mul i64 {rows.index}, %ldc"))
            for at in range(0, vectors * self.lanes, LINE // self.dtype.itemsize):
                text.put(f"call void @llvm.prefetch.p0(ptr {self.at(text, row, str(at))}, i32 1, i32 3, i32 1)")
        sums = self.sums(text, height, vectors)
        is_copied = text.define("icmp ne ptr %copy, null")
        if vectors == VECTORS:
            full = text.define(f"icmp eq i64 %m, {height}")
            wide = text.define(f"icmp eq i64 %n, {vectors * self.lanes}")
            inside, edge = text.fresh_label(), text.fresh_label()
            text.put(f"br i1 {text.define(f'and i1 {full}, {wide}')}, label %{inside}, label %{edge}")
            text.start(inside)
            self.store_whole(text, sums, is_copied)
            text.put("ret void")
            text.start(edge)
        self.store_edge(text, sums, is_copied)
        text.put("ret void")
        params = "ptr %a, i64 %row, ptr %b, i64 %depth, ptr %c, i64 %ldc, i64 %m, i64 %n, i1 %first, i1 %packed, ptr %copy"
        return self.function(f"{self.within} void @{self.micro_name(height, vectors)}({params})", text)

    def micro_name(self, height: int, vectors: int) -> str:
        return f"tile{height}x{vectors}_{self.name}"

    def sums(self, text: Text, height: int, vectors: int) -> Sums:
        """The sums of a tile. Whole iterations read a in the way that suits it; the steps that are left read both kinds alike."""
        unroll = 1 if vectors < VECTORS else UNROLL if height < MORE_ROWS else UNROLL // 2
        whole = text.define(f"and i64 %depth, -{unroll}")
        last = text.define("sub i64 %m, 1")
        packed, plain, after = (text.fresh_label() for _ in range(3))
        text.put(f"br i1 %packed, label %{packed}, label %{plain}")
        ways = []
        for label in (packed, plain):
            text.start(label)
            place = self.strided(text, height, last) if label == plain else self.in_strip
            sums = self.steps(text, [["zeroinitializer"] * vectors for _ in range(height)], "0", whole, unroll, place)
            ways.append((text.block, sums))
            text.jump(after)
        text.start(after)
        (one, first), (other, second) = ways
        vector = self.vector
        sums = [
            [text.define(f"phi {vector} [{x}, %{one}], [{y}, %{other}]") for x, y in zip(*rows, strict=True)]
            for rows in zip(first, second, strict=True)
        ]
        if unroll == 1:
            return sums
        across, along = text.define("select i1 %packed, i64 1, i64 %row"), text.define(f"select i1 %packed, i64 {self.mr}, i64 1")
        return self.steps(text, sums, whole, "%depth", 1, self.strided(text, height, last, across, along))

    def in_strip(self, text: Text, k: str, step: int, row: int) -> str:
        """Where an element of a packed strip is."""
        return self.at(text, self.at(text, "%a", text.define(f"mul i64 {k}, {self.mr}")), str(step * self.mr + row))

    def strided(self, text: Text, height: int, last: str, across: str = "%row", along: str = "1") -> Place:
        """Where an element of one of `height` rows is, which are `across` apart. Rows that are missing are the last one."""
        rows = [self.at(text, "%a", text.define(f"mul i64 {across}, {self.smin(text, str(r), last)}")) for r in range(height)]

        def place(text: Text, k: str, step: int, row: int) -> str:
            index = text.define(f"mul i64 {k}, {along}") if along != "1" else text.define(f"add i64 {k}, {step}")
            return self.at(text, rows[row], index)

        return place

    def steps(self, text: Text, sums: Sums, start: str, stop: str, step: int, place: Place) -> Sums:
        """Rank-one updates of the tile for k in start..stop, `step` at a time; none if start >= stop."""
        height, vectors = len(sums), range(len(sums[0]))
        before, head, inside, after = text.block, *(text.fresh_label() for _ in range(3))
        text.jump(head)
        text.start(head)
        k = text.fresh()
        phis = [[text.fresh() for _ in row] for row in sums]
        line = len(text.lines)
        text.lines += [""] * (1 + height * len(vectors))
        text.put(f"br i1 {text.define(f'icmp slt i64 {k}, {stop}')}, label %{inside}, label %{after}")
        text.start(inside)
        b = self.at(text, "%b", text.define(f"mul i64 {k}, {self.nr}"))
        now = phis
        for u in range(step):
            columns = [self.load(text, self.at(text, b, str(u * self.nr + v * self.lanes))) for v in vectors]
            rows = []
            for r in range(height):
                one = text.define(f"load {self.scalar}, ptr {place(text, k, u, r)}")
                first = text.define(f"insertelement {self.vector} poison, {self.scalar} {one}, i64 0")
                all_ = text.define(f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer")
                rows.append([self.fused(text, all_, columns[v], now[r][v]) for v in vectors])
            now = rows
        following = text.define(f"add i64 {k}, {step}")
        text.lines[line] = f"{k} = phi i64 [{start}, %{before}], [{following}, %{text.block}]"
        for r in range(height):
            for v in vectors:
                line += 1
                text.lines[line] = f"{phis[r][v]} = phi {self.vector} [{sums[r][v]}, %{before}], [{now[r][v]}, %{text.block}]"
        text.jump(head)
        text.start(after)
        return phis

    def fused(self, text: Text, a: str, b: str, c: str) -> str:
        v = self.vector
        return text.define(f"call {v} {self.fma}({v} {a}, {v} {b}, {v} {c})")

    # ---- storing a tile

    def store_whole(self, text: Text, sums: Sums, is_copied: str) -> None:
        before, add, whole_tile = text.block, text.fresh_label(), text.fresh_label()
        text.put(f"br i1 %first, label %{whole_tile}, label %{add}")
        text.start(add)
        old = [self.load(text, place) for place in self.vectors_of(text, "%c", "%ldc", sums)]
        flat = [value for row in sums for value in row]
        added = [text.define(f"fadd {self.vector} {new}, {value}") for new, value in zip(flat, old, strict=True)]
        text.jump(whole_tile)
        text.start(whole_tile)
        totals = [text.define(f"phi {self.vector} [{x}, %{before}], [{y}, %{add}]") for x, y in zip(flat, added, strict=True)]
        for value, place in zip(totals, self.vectors_of(text, "%c", "%ldc", sums), strict=True):
            self.store(text, value, place)
        with only_if(text, is_copied), CountedLoop(text, "0", "%m", trips=len(sums)) as rows:
            index = text.define(f"mul i64 {rows.index}, %ldc")
            for v in range(VECTORS):
                from_, to = (self.at(text, self.at(text, corner, index), str(v * self.lanes)) for corner in ("%c", "%copy"))
                text.put(f"store {self.vector} {self.load(text, from_)}, ptr {to}, {self.past_cache}")

    def store_edge(self, text: Text, sums: Sums, is_copied: str) -> None:
        """The same for the first %m rows and %n columns of a tile, by way of a copy on the stack: few tiles are at an edge."""
        width = len(sums[0]) * self.lanes
        slot = text.reserve(f"[{len(sums) * width} x {self.scalar}], align {self.lanes * self.dtype.itemsize}")
        for value, place in zip((x for row in sums for x in row), self.vectors_of(text, slot, str(width), sums), strict=True):
            self.store(text, value, place)
        masks = [self.mask(text, "%n", v) for v in range(len(sums[0]))]
        read = [self.only(text, mask, text.define("xor i1 %first, true")) for mask in masks]
        with CountedLoop(text, "0", "%m", trips=len(sums)) as rows:
            from_ = self.at(text, slot, text.define(f"mul i64 {rows.index}, {width}"))
            to = self.at(text, "%c", text.define(f"mul i64 {rows.index}, %ldc"))
            for v, mask in enumerate(masks):
                value, place = self.load(text, self.at(text, from_, str(v * self.lanes))), self.at(text, to, str(v * self.lanes))
                total = text.define(f"fadd {self.vector} {value}, {self.masked_load(text, place, read[v])}")
                self.masked_store(text, total, place, mask)
        with only_if(text, is_copied), CountedLoop(text, "0", "%m") as rows, CountedLoop(text, "0", "%n") as columns:
            place = text.define(f"add i64 {text.define(f'mul i64 {rows.index}, %ldc')}, {columns.index}")
            copied = text.define(f"load {self.scalar}, ptr {self.at(text, '%c', place)}")
            text.put(f"store {self.scalar} {copied}, ptr {self.at(text, '%copy', place)}")

    def vectors_of(self, text: Text, corner: str, stride: str, sums: Sums) -> list[str]:
        """The places of all vectors of a tile, row by row."""
        places = []
        for r, row in enumerate(sums):
            corner = self.at(text, corner, stride) if r else corner
            places += [self.at(text, corner, str(v * self.lanes)) if v else corner for v in range(len(row))]
        return places

    @property
    def past_cache(self) -> str:
        """How a vector is stored to memory that other cores read. Parts of lines would be written one by one."""
        is_line = self.nr * self.dtype.itemsize >= LINE
        return f"align {self.target.vector_bytes}, !nontemporal !0" if is_line else f"align {self.align}"
