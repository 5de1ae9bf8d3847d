"""Packing for the routine of `gemm.py`: panels of b, NR columns at a time, and blocks of a, MR rows at a time.

A packed panel of b is [panel of columns][k][NR], a packed block of a [strip of rows][k][MR]. Contiguous vectors are copied, or transposed
in squares of registers; everything else is gathered element by element. The last panel is filled up with zeros or with its last column,
and not at all where whole vectors are missing: a micro-kernel does not read these.
"""

from __future__ import annotations

from adjit.ir.target import Target
from adjit.ir.types import DTYPE_NAMES, DType

from ..interrupts.signals import LOOK
from ..llvm.counted import CountedLoop, only_if
from ..llvm.lanes import LLVM_TYPE, Text
from ..threads import library
from .cutting import VECTORS, edge_rows, tile_rows

GATHERED = 2  # elements of a row that are gathered at a time: divides MR and NR
FENCED = 2  # after the exchange at this distance, LLVM does not look back: it takes half as long, and finds the same instructions
SIDE_BY_SIDE = 8  # columns of tiles that are packed together: short pieces of distant rows would be read at half the speed
ARGUMENTS = 22  # of the routine, which its chunks read from memory
DEPTH, START, BUFFER = range(ARGUMENTS, ARGUMENTS + 3)  # values that change from panel to panel, stored after the arguments


class Panels:
    """The instructions of the routine for one dtype and target, and its packing."""

    def __init__(self, dtype: DType, target: Target, in_one: bool = False) -> None:
        """`in_one`: everything is in one text, rather than in parts that call each other and are compiled when they are needed."""
        self.target = target
        self.in_one = in_one
        self.within, self.shared = ("internal", "internal ") if in_one else ("hidden", "")  # linkage
        self.dtype = dtype
        self.name = DTYPE_NAMES[dtype]
        self.lanes = target.vector_bytes // dtype.itemsize
        self.nr = VECTORS * self.lanes
        self.mr, self.low = tile_rows(target), edge_rows(target)
        self.packs_b, self.multiplies, self.edges = library.INNER_NAMES[dtype]
        self.scalar = LLVM_TYPE[dtype]
        self.vector = f"<{self.lanes} x {self.scalar}>"
        self.align = dtype.itemsize
        fma = f"llvm.fmuladd.v{self.lanes}f{dtype.itemsize * 8}"
        self.fma = f"@{fma}"
        three = ", ".join([self.vector] * 3)
        self.declares = {f"declare {self.vector} @{fma}({three})", "declare i64 @llvm.smin.i64(i64, i64)"}
        self.declares.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        kind = f"v{self.lanes}f{dtype.itemsize * 8}.p0"
        self.masked = f"llvm.masked.load.{kind}", f"llvm.masked.store.{kind}"
        self.bits = f"<{self.lanes} x i1>"
        self.fence = f"llvm.arithmetic.fence.v{self.lanes}f{dtype.itemsize * 8}"
        self.declares.add(f"declare {self.vector} @{self.fence}({self.vector})")
        self.declares.add(f"declare {self.vector} @{self.masked[0]}(ptr, i32, {self.bits}, {self.vector})")
        self.declares.add(f"declare void @{self.masked[1]}({self.vector}, ptr, i32, {self.bits})")
        if target.hosted:
            self.declares.add(f"declare i1 @{LOOK}(ptr)")

    # ---- short instruction sequences

    def at(self, text: Text, base: str, index: str) -> str:
        return text.define(f"getelementptr {self.scalar}, ptr {base}, i64 {index}")

    def load(self, text: Text, pointer: str) -> str:
        return text.define(f"load {self.vector}, ptr {pointer}, align {self.align}")

    def store(self, text: Text, value: str, pointer: str) -> None:
        text.put(f"store {self.vector} {value}, ptr {pointer}, align {self.align}")

    def mask(self, text: Text, count: str, vector: int) -> str:
        """Which lanes of a vector belong to the first `count` elements."""
        order = ", ".join(f"i64 {vector * self.lanes + lane}" for lane in range(self.lanes))
        kind = f"<{self.lanes} x i64>"
        first = text.define(f"insertelement {kind} poison, i64 {count}, i64 0")
        all_ = text.define(f"shufflevector {kind} {first}, {kind} poison, <{self.lanes} x i32> zeroinitializer")
        return text.define(f"icmp slt {kind} <{order}>, {all_}")

    def only(self, text: Text, mask: str, condition: str) -> str:
        """The mask if a condition holds, otherwise none of its lanes."""
        return text.define(f"select i1 {condition}, {self.bits} {mask}, {self.bits} zeroinitializer")

    def masked_load(self, text: Text, pointer: str, mask: str) -> str:
        """Some lanes of a vector, and zeros."""
        given = f"ptr {pointer}, i32 {self.align}, {self.bits} {mask}, {self.vector} zeroinitializer"
        return text.define(f"call {self.vector} @{self.masked[0]}({given})")

    def masked_store(self, text: Text, value: str, pointer: str, mask: str) -> None:
        text.put(f"call void @{self.masked[1]}({self.vector} {value}, ptr {pointer}, i32 {self.align}, {self.bits} {mask})")

    def argument(self, text: Text, k: int) -> str:
        return text.define(f"load i64, ptr {text.define(f'getelementptr i64, ptr %args, i64 {k}')}")

    def pointer_argument(self, text: Text, k: int) -> str:
        return text.define(f"load ptr, ptr {text.define(f'getelementptr i64, ptr %args, i64 {k}')}")

    def smin(self, text: Text, a: str, b: str) -> str:
        return text.define(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def tiles(self, text: Text, count: str, size: int) -> str:
        """ceil(count / size)"""
        return text.define(f"udiv i64 {text.define(f'add i64 {count}, {size - 1}')}, {size}")

    def look(self, text: Text, error: str) -> None:
        """Return if a signal has interrupted the call."""
        if not self.target.hosted:
            return
        look, leave, go = (text.fresh_label() for _ in range(3))
        text.put(f"br i1 {text.define(f'icmp ne ptr {error}, null')}, label %{look}, label %{go}")
        text.start(look)
        text.put(f"br i1 {text.define(f'call i1 @{LOOK}(ptr {error})')}, label %{leave}, label %{go}")
        text.start(leave)
        text.put("ret void")
        text.start(go)

    @staticmethod
    def function(header: str, text: Text) -> str:
        body = "\n".join([*text.slots, *text.lines])
        return f"define {header} nounwind {{\nentry:\n{body}\n}}\n"

    # ---- packing

    def pack_b(self) -> str:
        """Chunk: pack SIDE_BY_SIDE times NR columns of the current panel of b. Contiguous rows are read through all of them."""
        text = Text(self.target)
        n, depth, row, column = (self.argument(text, k) for k in (1, DEPTH, 7, 8))
        b, packed = self.pointer_argument(text, 6), self.pointer_argument(text, 11)
        first = text.define(f"mul i64 %chunk, {SIDE_BY_SIDE}")
        left = text.define(f"mul i64 {first}, {self.nr}")
        whole = text.define(f"icmp sle i64 {text.define(f'add i64 {left}, {SIDE_BY_SIDE * self.nr}')}, {n}")
        rows, each, done = (text.fresh_label() for _ in range(3))
        plain = text.define(f"and i1 {whole}, {text.define(f'icmp eq i64 {column}, 1')}")
        text.put(f"br i1 {plain}, label %{rows}, label %{each}")
        text.start(rows)
        source, target = self.at(text, b, left), self.at(text, packed, text.define(f"mul i64 {left}, {depth}"))
        apart = text.define(f"mul i64 {depth}, {self.nr}")
        targets = [self.at(text, target, text.define(f"mul i64 {apart}, {k}")) for k in range(SIDE_BY_SIDE)]
        with CountedLoop(text, "0", depth) as loop:
            from_ = self.at(text, source, text.define(f"mul i64 {loop.index}, {row}"))
            below = text.define(f"mul i64 {loop.index}, {self.nr}")
            for k, column_ in enumerate(targets):
                self.copy_row(text, self.at(text, from_, str(k * self.nr)), self.at(text, column_, below))
        text.jump(done)
        text.start(each)
        panels = self.tiles(text, n, self.nr)
        stop = self.smin(text, text.define(f"add i64 {first}, {SIDE_BY_SIDE}"), panels)
        with CountedLoop(text, first, stop) as loop:
            text.put(f"call void @pack_columns_{self.name}(ptr %args, i64 {loop.index})")
        text.jump(done)
        text.start(done)
        text.put("ret void")
        return self.function(f"{self.shared}void @{self.packs_b}(ptr %args, i64 %chunk, i64 %worker)", text)

    def copy_row(self, text: Text, source: str, target: str, masks: list[str] | None = None) -> None:
        for v in range(VECTORS):
            from_, to = (self.at(text, pointer, str(v * self.lanes)) for pointer in (source, target))
            self.store(text, self.load(text, from_) if masks is None else self.masked_load(text, from_, masks[v]), to)

    def pack_columns(self) -> str:
        """Pack NR columns of the current panel of b, row by row."""
        text = Text(self.target)
        n, depth, row, column = (self.argument(text, k) for k in (1, DEPTH, 7, 8))
        b, packed = self.pointer_argument(text, 6), self.pointer_argument(text, 11)
        first = text.define(f"mul i64 %index, {self.nr}")
        width = self.smin(text, text.define(f"sub i64 {n}, {first}"), str(self.nr))
        source = self.at(text, b, text.define(f"mul i64 {first}, {column}"))
        target = self.at(text, packed, text.define(f"mul i64 {first}, {depth}"))
        whole = text.define(f"icmp eq i64 {width}, {self.nr}")
        plain = text.define(f"icmp eq i64 {column}, 1")
        turned = text.define(f"icmp eq i64 {row}, 1")
        rows, copy, edge, ask, turn, gather, done = (text.fresh_label() for _ in range(7))
        text.put(f"br i1 {plain}, label %{rows}, label %{ask}")
        text.start(rows)
        masks = [self.mask(text, width, v) for v in range(VECTORS)]
        text.put(f"br i1 {whole}, label %{copy}, label %{edge}")
        for label, of_row in ((copy, None), (edge, masks)):
            text.start(label)
            with CountedLoop(text, "0", depth) as loop:
                from_ = self.at(text, source, text.define(f"mul i64 {loop.index}, {row}"))
                self.copy_row(text, from_, self.at(text, target, text.define(f"mul i64 {loop.index}, {self.nr}")), of_row)
            text.jump(done)
        text.start(ask)
        text.put(f"br i1 {turned}, label %{turn}, label %{gather}")
        text.start(turn)
        blocks = text.define(f"and i64 {depth}, -{self.lanes}")
        self.transpose(text, source, column, target, blocks, width)
        transposed = text.block
        text.jump(gather)
        text.start(gather)
        start = text.define(f"phi i64 [0, %{ask}], [{blocks}, %{transposed}]")
        self.gather(text, source, column, row, target, width, start, depth, self.nr)
        text.jump(done)
        text.start(done)
        text.put("ret void")
        return self.function(f"internal void @pack_columns_{self.name}(ptr %args, i64 %index)", text)

    def transpose(self, text: Text, source: str, stride: str, target: str, depth: str, width: str) -> None:
        """target[k][j] = source[j * stride + k], a square of vectors at a time; depth is a multiple of the vector length, and may be 0.

        The last of `width` columns is repeated to fill up a square.
        """
        with only_if(text, text.define(f"icmp sgt i64 {depth}, 0")):
            last = text.define(f"sub i64 {width}, 1")
            with CountedLoop(text, "0", width, self.lanes) as across:
                first, to = self.at(text, source, text.define(f"mul i64 {across.index}, {stride}")), self.at(text, target, across.index)
                self.turn(text, first, stride, text.define(f"sub i64 {last}, {across.index}"), to, self.nr, depth)

    def turn(self, text: Text, source: str, stride: str, last: str | int, target: str, step: int, depth: str) -> None:
        text.put(f"call void @turn_{self.name}(ptr {source}, i64 {stride}, i64 {last}, ptr {target}, i64 {step}, i64 {depth})")

    def turned(self) -> str:
        """A function that transposes squares: target[k * step + j] = source[j * stride + k]. Row `last` is used for all rows after it.

        Its text is the longest part of packing, and serves both factors.
        """
        text = Text(self.target)
        rows = [self.smin(text, "%last", str(j)) for j in range(self.lanes)]
        starts = [self.at(text, "%source", text.define(f"mul i64 {j}, %stride")) for j in rows]
        with CountedLoop(text, "0", "%depth", self.lanes) as along:
            to = self.at(text, "%target", text.define(f"mul i64 {along.index}, %step"))
            for k, column in enumerate(self.transposed(text, [self.load(text, self.at(text, start, along.index)) for start in starts])):
                self.store(text, column, self.at(text, to, text.define(f"mul i64 %step, {k}")))
        text.put("ret void")
        params = "ptr %source, i64 %stride, i64 %last, ptr %target, i64 %step, i64 %depth"
        return self.function(f"internal void @turn_{self.name}({params})", text)

    def transposed(self, text: Text, rows: list[str]) -> list[str]:
        """Transpose a square of vectors: halves, quarters, … of two rows are exchanged, with one or two instructions each."""
        n = self.lanes
        for distance in (1 << bit for bit in range(n.bit_length() - 1)):
            keep = [lane if not lane & distance else lane - distance + n for lane in range(n)]
            give = [lane + distance if not lane & distance else lane + n for lane in range(n)]
            pairs = [(rows[i & ~distance], rows[i | distance], give if i & distance else keep) for i in range(n)]
            rows = [self.shuffled(text, *pair) for pair in pairs]
            if distance == FENCED < n // 2:
                rows = [text.define(f"call {self.vector} @{self.fence}({self.vector} {row})") for row in rows]
        return rows

    def shuffled(self, text: Text, a: str, b: str, lanes: list[int]) -> str:
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        return text.define(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.lanes} x i32> <{order}>")

    def gather(self, text: Text, source: str, stride: str, step: str, target: str, count: str, start: str, stop: str, size: int) -> None:
        """target[k][j] = source[j * stride + k * step] for k in start..stop and j in 0..size, with the last of `count` columns repeated."""
        with only_if(text, text.define(f"icmp slt i64 {start}, {stop}")):
            last = text.define(f"sub i64 {count}, 1")
            with CountedLoop(text, start, stop) as loop:
                from_ = self.at(text, source, text.define(f"mul i64 {loop.index}, {step}"))
                to = self.at(text, target, text.define(f"mul i64 {loop.index}, {size}"))
                with CountedLoop(text, "0", str(size), GATHERED) as group:
                    for j in range(GATHERED):
                        column = text.define(f"add i64 {group.index}, {j}")
                        place = text.define(f"mul i64 {stride}, {self.smin(text, column, last)}")
                        value = text.define(f"load {self.scalar}, ptr {self.at(text, from_, place)}")
                        text.put(f"store {self.scalar} {value}, ptr {self.at(text, to, column)}")

    def pack_rows(self, text: Text, source: str, row: str, column: str, target: str, count: str, depth: str) -> None:
        """target[k][r] = source[r * row + k * column]: full contiguous columns are copied, contiguous rows transposed in
        squares, which overlap the following columns, and may write BEHIND elements after the last.
        """
        copy, ask, turn, gather, done = (text.fresh_label() for _ in range(5))
        full = text.define(f"icmp eq i64 {count}, {self.mr}")
        plain = text.define(f"and i1 {full}, {text.define(f'icmp eq i64 {row}, 1')}")
        text.put(f"br i1 {plain}, label %{copy}, label %{ask}")
        text.start(copy)
        with CountedLoop(text, "0", depth) as loop:
            column_ = f"<{self.mr} x {self.scalar}>, ptr {self.at(text, source, text.define(f'mul i64 {loop.index}, {column}'))}"
            to = self.at(text, target, text.define(f"mul i64 {loop.index}, {self.mr}"))
            value = text.define(f"load {column_}, align {self.align}")
            text.put(f"store <{self.mr} x {self.scalar}> {value}, ptr {to}, align {self.align}")
        text.jump(done)
        text.start(ask)
        blocks = text.define(f"and i64 {depth}, -{self.lanes}")
        whole = text.define(f"icmp eq i64 {column}, 1")
        some = text.define(f"and i1 {whole}, {text.define(f'icmp sgt i64 {blocks}, 0')}")
        before = text.block
        text.put(f"br i1 {some}, label %{turn}, label %{gather}")
        text.start(turn)
        last = text.define(f"sub i64 {count}, 1")
        for group in reversed(range(0, self.mr, self.lanes)):  # what overlaps the columns of the others, and of what follows, comes first
            from_ = self.at(text, source, text.define(f"mul i64 {row}, {group}"))
            self.turn(text, from_, row, text.define(f"sub i64 {last}, {group}"), self.at(text, target, str(group)), self.mr, blocks)
        turned = text.block
        text.jump(gather)
        text.start(gather)
        start = text.define(f"phi i64 [0, %{before}], [{blocks}, %{turned}]")
        self.gather(text, source, row, column, target, count, start, depth, self.mr)
        text.jump(done)
        text.start(done)
