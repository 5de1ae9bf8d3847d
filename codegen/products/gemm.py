"""Matrix products of any size and strides: one blocked, packed, threaded routine per dtype, compiled once per process.

    void adjit_gemm_f32(i64 m, i64 n, i64 k, ptr a, i64 row, i64 column, ptr b, i64 row, i64 column, ptr c, i64 row,
                        ptr work, i64 rows, i64 groups, i64 added, i64 packs, ptr finish, ptr pointers, i64 span, i64 apart,
                        ptr error, i64 threads, ptr run)

c = a @ b, or c += a @ b if `added` is 1, with strides in elements; the columns of c are contiguous.

    void finish(ptr pointers, i64 row, i64 column, i64 m, i64 n, ptr values, i64 stride)

is called, unless it is null, when a block is done, for `span` adjacent tiles at a time, with their m x n values (`stride` is the row
stride) and their position in c: elementwise operations after a product are computed while its values are in the second-level cache
(`epilogue.py`). If `apart` is 1, c is not a matrix but memory in which every worker has a block for these values, which suffices for a
product of one panel.

    void adjit_pack_f32(i64 n, i64 k, ptr b, i64 row, i64 column, ptr packed, i64 threads, ptr run, ptr error)
    void adjit_packed_gemm_f32(...)    with b already packed; its strides are ignored

The usual five loops: panels of b (KC rows) are packed NR columns at a time, blocks of a (`rows` rows, chosen by the caller) are packed MR
rows at a time if `packs` is 1 and read in place otherwise, and a micro-kernel keeps an MR x NR tile of c in registers. Packing pads with
zeros, so that the micro-kernel always processes a full tile; edge tiles are stored through a buffer.

`run` is adjit_parallel or adjit_serial: each pair of a block of a and one of the `groups` of columns is a chunk for the thread pool. A tile
is computed in the same way wherever the cuts are, so results are bitwise identical for any number of threads.

With an `error` record, the routine checks for signals (`polling.py`) and returns early if there is one.
"""

from __future__ import annotations

from adjit.ir.target import Target
from adjit.ir.types import DTYPE_NAMES, DType

from ..interrupts.signals import LOOK
from ..llvm.counted import Loop, only_if
from ..llvm.lanes import LLVM_TYPE, Text
from ..llvm.words import Integer, N, chosen, greatest, least, over
from ..threads import library

ROWS, MANY_ROWS = 6, 12  # rows of a tile; if there are 32 registers for vectors of 64 bytes
VECTORS = 2  # vector registers across a tile
KC = 256  # depth of a panel: MR x KC of a and NR x KC of b stay in the first-level cache
UNROLL = 4
LINE = 64  # bytes of a line of the cache
SIDE_BY_SIDE = 8  # columns of tiles that are packed together: short pieces of distant rows would be read at half the speed
SPAN_BYTES = 2048  # bytes of a row finished at once: long enough for hardware prefetching, and a block stays cached
MAX_ROWS = 192  # rows of a block of a, which stays in the second-level cache
ARGUMENTS = 21
TYPES = "i64, i64, i64, ptr, i64, i64, ptr, i64, i64, ptr, i64, ptr, i64, i64, i64, i64, ptr, ptr, i64, i64, ptr, i64, ptr"
FINISH, POINTERS, SPAN, APART, ERROR = range(16, 21)
DEPTH, START, BUFFER = range(ARGUMENTS, ARGUMENTS + 3)  # values that change from panel to panel, stored after the arguments
FEW_ROWS = 48  # up to here, a is one block, and the columns are divided among the threads instead
PACK_TYPES = "i64, i64, ptr, i64, i64, ptr, i64, ptr, ptr"


def tile_rows(target: Target) -> int:
    """Rows of a tile. A CPU that computes with vectors of 64 bytes in halves is kept busy by few of them."""
    return MANY_ROWS if target.vector_bytes >= 64 and target.vector_registers >= 32 and not target.in_halves else ROWS


def tile_columns(dtype: DType, vector_bytes: int) -> int:
    return VECTORS * vector_bytes // dtype.itemsize


def block_rows(m: N, threads: int, target: Target) -> N:
    """Rows of a block of a: no larger than the cache holds, and cut so that no thread gets much more work than the others."""
    mr = tile_rows(target)
    best = whole = least(MAX_ROWS, over(m, mr) * mr)
    if threads == 1:
        return whole
    for blocks in (threads, 2 * threads, 3 * threads, 4 * threads):
        rows = least(MAX_ROWS, greatest(4 * ROWS, over(m, blocks * mr) * mr))
        best = chosen(_longest(m, rows, threads) <= _longest(m, best, threads), rows, best)
    return chosen(m <= FEW_ROWS, whole, best)


def column_groups(m: N, n: N, rows: N, threads: int, dtype: DType, vector_bytes: int) -> Integer:
    """Number of column groups, for products with fewer blocks of rows than threads."""
    if threads == 1:
        return 1
    blocks, panels = over(m, rows), over(n, tile_columns(dtype, vector_bytes))
    return chosen(blocks < threads, least(panels, over(2 * threads, blocks)), 1)


def _longest(m: N, rows: N, threads: int) -> N:
    """Number of rows that the busiest thread computes."""
    return over(over(m, rows), threads) * rows


def work_bytes(n: int, k: int, rows: int, threads: int, dtype: DType, vector_bytes: int) -> int:
    """Memory for the packed panel of b, and for one packed block of a per thread."""
    nr, depth = tile_columns(dtype, vector_bytes), min(k, KC)
    panel = -(-n // nr) * nr * depth
    return (panel + threads * rows * depth) * dtype.itemsize + 64 * (threads + 1)


def span_tiles(n: N, dtype: DType, vector_bytes: int) -> N:
    """Number of adjacent tiles that are finished at once."""
    nr = tile_columns(dtype, vector_bytes)
    return least(max(1, SPAN_BYTES // (nr * dtype.itemsize)), over(n, nr))


def packed_bytes(n: int, k: int, dtype: DType, vector_bytes: int) -> int:
    nr = tile_columns(dtype, vector_bytes)
    return -(-n // nr) * nr * k * dtype.itemsize


def gemm_ir(dtype: DType, target: Target, is_packed: bool = False) -> str:
    """The text of the routine for a dtype of `library.NAMES`, or of the two routines for factors that are packed in advance."""
    gemm = _Gemm(dtype, target)
    routines = [gemm.routine(is_packed), *([gemm.pack()] if is_packed else [])]
    return "\n".join([*sorted(gemm.declares), *gemm.micros(), gemm.pack_columns(), gemm.pack_b(), gemm.block(), *routines])


class _Gemm:
    def __init__(self, dtype: DType, target: Target) -> None:
        self.target = target
        self.dtype = dtype
        self.name = DTYPE_NAMES[dtype]
        self.lanes = target.vector_bytes // dtype.itemsize
        self.nr = VECTORS * self.lanes
        self.mr = tile_rows(target)
        self.scalar = LLVM_TYPE[dtype]
        self.vector = f"<{self.lanes} x {self.scalar}>"
        self.align = dtype.itemsize
        fma = f"llvm.fmuladd.v{self.lanes}f{dtype.itemsize * 8}"
        self.fma = f"@{fma}"
        three = ", ".join([self.vector] * 3)
        self.declares = {f"declare {self.vector} @{fma}({three})", "declare i64 @llvm.smin.i64(i64, i64)"}
        self.declares.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        if target.hosted:
            self.declares.add(f"declare i1 @{LOOK}(ptr)")

    # ---- short instruction sequences

    def at(self, text: Text, base: str, index: str) -> str:
        return text.define(f"getelementptr {self.scalar}, ptr {base}, i64 {index}")

    def load(self, text: Text, pointer: str) -> str:
        return text.define(f"load {self.vector}, ptr {pointer}, align {self.align}")

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

    # ---- the micro-kernel

    def micros(self) -> list[str]:
        """The micro-kernels; wide tiles also have one for edges with few rows."""
        heights = [self.mr, *([ROWS] if self.mr > ROWS else [])]
        return [self.micro(packed, height) for packed in (False, True) for height in heights]

    def micro(self, packed: bool, height: int) -> str:
        """A tile of c, from a packed as [k][MR] or MR rows read in place (`row` apart), and b packed as [k][NR]; added to c unless `first`.

        Edge tiles have fewer rows or columns: missing rows are zeros, or repeat the last one, and their results are discarded.
        """
        text = Text(self.target)
        tile = text.reserve(f"[{height * self.nr} x {self.scalar}]")
        last = text.define("sub i64 %m, 1")
        for r in range(height):  # c is needed once the sums are complete
            row = self.at(text, "%c", text.define(f"mul i64 %ldc, {self.smin(text, str(r), last)}"))
            for at in range(0, self.nr, LINE // self.dtype.itemsize):
                text.put(f"call void @llvm.prefetch.p0(ptr {self.at(text, row, str(at))}, i32 1, i32 3, i32 1)")
        self.rows = None
        if not packed:
            self.rows = [self.at(text, "%a", text.define(f"mul i64 %row, {self.smin(text, str(r), last)}")) for r in range(height)]
        whole = text.define(f"and i64 %depth, -{UNROLL}")
        acc = [["zeroinitializer"] * VECTORS for _ in range(height)]
        acc = self.steps(text, acc, "0", whole, UNROLL)
        acc = self.steps(text, acc, whole, "%depth", 1)
        full = text.define(f"icmp eq i64 %m, {height}")
        wide = text.define(f"icmp eq i64 %n, {self.nr}")
        both = text.define(f"and i1 {full}, {wide}")
        inside, edge, fresh, add, done = (text.fresh_label() for _ in range(5))
        text.put(f"br i1 {both}, label %{inside}, label %{edge}")
        text.start(inside)
        text.put(f"br i1 %first, label %{fresh}, label %{add}")
        for label, adding in ((fresh, False), (add, True)):
            text.start(label)
            for r in range(height):
                row = self.at(text, "%c", text.define(f"mul i64 %ldc, {r}"))
                for v in range(VECTORS):
                    target, value = self.at(text, row, str(v * self.lanes)), acc[r][v]
                    if adding:
                        value = text.define(f"fadd {self.vector} {value}, {self.load(text, target)}")
                    text.put(f"store {self.vector} {value}, ptr {target}, align {self.align}")
            text.jump(done)
        text.start(edge)
        for r in range(height):
            for v in range(VECTORS):
                target = self.at(text, tile, str(r * self.nr + v * self.lanes))
                text.put(f"store {self.vector} {acc[r][v]}, ptr {target}, align {self.align}")
        with Loop(text, "0", "%m") as rows:
            source = self.at(text, tile, text.define(f"mul i64 {rows.index}, {self.nr}"))
            row = self.at(text, "%c", text.define(f"mul i64 {rows.index}, %ldc"))
            with Loop(text, "0", "%n") as columns:
                value = text.define(f"load {self.scalar}, ptr {self.at(text, source, columns.index)}")
                target = self.at(text, row, columns.index)
                before = text.define(f"load {self.scalar}, ptr {target}")
                kept = text.define(f"select i1 %first, {self.scalar} 0.0, {self.scalar} {before}")
                text.put(f"store {self.scalar} {text.define(f'fadd {self.scalar} {value}, {kept}')}, ptr {target}")
        text.jump(done)
        text.start(done)
        text.put("ret void")
        params = "ptr %a, i64 %row, ptr %b, i64 %depth, ptr %c, i64 %ldc, i64 %m, i64 %n, i1 %first"
        return self.function(f"internal void @{self.micro_name(packed, height)}({params})", text)

    def chosen_micro(self, text: Text, is_packed: str, height: int) -> str:
        names = (self.micro_name(packed, height) for packed in (True, False))
        return text.define(f"select i1 {is_packed}, {', '.join(f'ptr @{name}' for name in names)}")

    def micro_name(self, packed: bool, height: int) -> str:
        return f"{'packed' if packed else 'plain'}{height}_{self.name}"

    def steps(self, text: Text, acc: list[list[str]], start: str, stop: str, step: int) -> list[list[str]]:
        """Rank-one updates of the tile for k in start..stop, `step` at a time; none if start >= stop."""
        height = len(acc)
        before, head, inside, after = text.block, *(text.fresh_label() for _ in range(3))
        text.jump(head)
        text.start(head)
        k = text.fresh()
        phis = [[text.fresh() for _ in row] for row in acc]
        line = len(text.lines)
        text.lines += [""] * (1 + height * VECTORS)
        text.put(f"br i1 {text.define(f'icmp slt i64 {k}, {stop}')}, label %{inside}, label %{after}")
        text.start(inside)
        b = self.at(text, "%b", text.define(f"mul i64 {k}, {self.nr}"))
        a = self.at(text, "%a", text.define(f"mul i64 {k}, {self.mr}"))
        now = phis
        for u in range(step):
            along = text.define(f"add i64 {k}, {u}")
            columns = [self.load(text, self.at(text, b, str(u * self.nr + v * self.lanes))) for v in range(VECTORS)]
            rows = []
            for r in range(height):
                place = self.at(text, a, str(u * self.mr + r)) if self.rows is None else self.at(text, self.rows[r], along)
                one = text.define(f"load {self.scalar}, ptr {place}")
                first = text.define(f"insertelement {self.vector} poison, {self.scalar} {one}, i64 0")
                all_ = text.define(f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer")
                rows.append([self.fused(text, all_, columns[v], now[r][v]) for v in range(VECTORS)])
            now = rows
        following = text.define(f"add i64 {k}, {step}")
        text.lines[line] = f"{k} = phi i64 [{start}, %{before}], [{following}, %{text.block}]"
        for r in range(height):
            for v in range(VECTORS):
                line += 1
                text.lines[line] = f"{phis[r][v]} = phi {self.vector} [{acc[r][v]}, %{before}], [{now[r][v]}, %{text.block}]"
        text.jump(head)
        text.start(after)
        return phis

    def fused(self, text: Text, a: str, b: str, c: str) -> str:
        v = self.vector
        return text.define(f"call {v} {self.fma}({v} {a}, {v} {b}, {v} {c})")

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
        with Loop(text, "0", depth) as loop:
            from_ = self.at(text, source, text.define(f"mul i64 {loop.index}, {row}"))
            below = text.define(f"mul i64 {loop.index}, {self.nr}")
            for k, column_ in enumerate(targets):
                self.copy_row(text, self.at(text, from_, str(k * self.nr)), self.at(text, column_, below))
        text.jump(done)
        text.start(each)
        panels = self.tiles(text, n, self.nr)
        stop = self.smin(text, text.define(f"add i64 {first}, {SIDE_BY_SIDE}"), panels)
        with Loop(text, first, stop) as loop:
            text.put(f"call void @pack_columns_{self.name}(ptr %args, i64 {loop.index})")
        text.jump(done)
        text.start(done)
        text.put("ret void")
        return self.function(f"internal void @pack_b_{self.name}(ptr %args, i64 %chunk, i64 %worker)", text)

    def copy_row(self, text: Text, source: str, target: str) -> None:
        for v in range(VECTORS):
            self.store(text, self.load(text, self.at(text, source, str(v * self.lanes))), self.at(text, target, str(v * self.lanes)))

    def pack_columns(self) -> str:
        """Pack NR columns of the current panel of b, row by row, padded with zeros."""
        text = Text(self.target)
        n, depth, row, column = (self.argument(text, k) for k in (1, DEPTH, 7, 8))
        b, packed = self.pointer_argument(text, 6), self.pointer_argument(text, 11)
        first = text.define(f"mul i64 %index, {self.nr}")
        width = self.smin(text, text.define(f"sub i64 {n}, {first}"), str(self.nr))
        source = self.at(text, b, text.define(f"mul i64 {first}, {column}"))
        target = self.at(text, packed, text.define(f"mul i64 {first}, {depth}"))
        whole = text.define(f"icmp eq i64 {width}, {self.nr}")
        plain = text.define(f"and i1 {whole}, {text.define(f'icmp eq i64 {column}, 1')}")
        turned = text.define(f"and i1 {whole}, {text.define(f'icmp eq i64 {row}, 1')}")
        copy, ask, turn, gather, done = (text.fresh_label() for _ in range(5))
        text.put(f"br i1 {plain}, label %{copy}, label %{ask}")
        text.start(copy)
        with Loop(text, "0", depth) as loop:
            from_ = self.at(text, source, text.define(f"mul i64 {loop.index}, {row}"))
            self.copy_row(text, from_, self.at(text, target, text.define(f"mul i64 {loop.index}, {self.nr}")))
        text.jump(done)
        text.start(ask)
        text.put(f"br i1 {turned}, label %{turn}, label %{gather}")
        text.start(turn)
        blocks = text.define(f"and i64 {depth}, -{self.lanes}")
        self.transpose(text, source, column, target, blocks)
        text.jump(gather)
        text.start(gather)
        start = text.define(f"phi i64 [0, %{ask}], [{blocks}, %{self.before(text, gather)}]")
        self.gather(text, source, column, row, target, width, start, depth, self.nr)
        text.jump(done)
        text.start(done)
        text.put("ret void")
        return self.function(f"internal void @pack_columns_{self.name}(ptr %args, i64 %index)", text)

    @staticmethod
    def before(text: Text, label: str) -> str:
        """The block whose jump to `label` was emitted last: the one just closed."""
        line = len(text.lines) - 1
        while text.lines[line] != f"br label %{label}":
            line -= 1
        while not text.lines[line].endswith(":"):
            line -= 1
        return text.lines[line][:-1]

    def store(self, text: Text, value: str, pointer: str) -> None:
        text.put(f"store {self.vector} {value}, ptr {pointer}, align {self.align}")

    def transpose(self, text: Text, source: str, stride: str, target: str, depth: str) -> None:
        """target[k][j] = source[j * stride + k], a square of vectors at a time; depth is a multiple of the vector length, and may be 0."""
        head, after = text.fresh_label(), text.fresh_label()
        text.put(f"br i1 {text.define(f'icmp sgt i64 {depth}, 0')}, label %{head}, label %{after}")
        text.start(head)
        with Loop(text, "0", str(self.nr), self.lanes) as across, Loop(text, "0", depth, self.lanes) as along:
            from_ = self.at(text, self.at(text, source, text.define(f"mul i64 {across.index}, {stride}")), along.index)
            to = self.at(text, self.at(text, target, across.index), text.define(f"mul i64 {along.index}, {self.nr}"))
            rows = [self.load(text, self.at(text, from_, text.define(f"mul i64 {stride}, {j}"))) for j in range(self.lanes)]
            for k, column in enumerate(self.transposed(text, rows)):
                self.store(text, column, self.at(text, to, str(k * self.nr)))
        text.jump(after)
        text.start(after)

    def transposed(self, text: Text, rows: list[str]) -> list[str]:
        """Transpose a square of vectors: halves, quarters, … of two rows are exchanged, with one or two instructions each."""
        n = self.lanes
        for distance in (1 << bit for bit in range(n.bit_length() - 1)):
            keep = [lane if not lane & distance else lane - distance + n for lane in range(n)]
            give = [lane + distance if not lane & distance else lane + n for lane in range(n)]
            pairs = [(rows[i & ~distance], rows[i | distance], give if i & distance else keep) for i in range(n)]
            rows = [self.shuffled(text, *pair) for pair in pairs]
        return rows

    def shuffled(self, text: Text, a: str, b: str, lanes: list[int]) -> str:
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        return text.define(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.lanes} x i32> <{order}>")

    def gather(self, text: Text, source: str, stride: str, step: str, target: str, count: str, start: str, stop: str, size: int) -> None:
        """target[k][j] = source[j * stride + k * step] for k in start..stop and j in 0..count, zero for j in count..size."""
        head, after = text.fresh_label(), text.fresh_label()
        text.put(f"br i1 {text.define(f'icmp slt i64 {start}, {stop}')}, label %{head}, label %{after}")
        text.start(head)
        offsets, inside = [], []
        for j in range(size):
            inside.append(text.define(f"icmp sgt i64 {count}, {j}"))
            offsets.append(text.define(f"select i1 {inside[j]}, i64 {text.define(f'mul i64 {stride}, {j}')}, i64 0"))
        with Loop(text, start, stop) as loop:
            from_ = self.at(text, source, text.define(f"mul i64 {loop.index}, {step}"))
            to = self.at(text, target, text.define(f"mul i64 {loop.index}, {size}"))
            for j in range(size):
                value = text.define(f"load {self.scalar}, ptr {self.at(text, from_, offsets[j])}")
                kept = text.define(f"select i1 {inside[j]}, {self.scalar} {value}, {self.scalar} 0.0")
                text.put(f"store {self.scalar} {kept}, ptr {self.at(text, to, str(j))}")
        text.jump(after)
        text.start(after)

    def pack_rows(self, text: Text, source: str, row: str, column: str, target: str, count: str, depth: str) -> None:
        """target[k][r] = source[r * row + k * column]: full contiguous columns are copied, contiguous rows transposed in squares."""
        copy, ask, turn, gather, done = (text.fresh_label() for _ in range(5))
        full = text.define(f"icmp eq i64 {count}, {self.mr}")
        plain = text.define(f"and i1 {full}, {text.define(f'icmp eq i64 {row}, 1')}")
        text.put(f"br i1 {plain}, label %{copy}, label %{ask}")
        text.start(copy)
        with Loop(text, "0", depth) as loop:
            column_ = f"<{self.mr} x {self.scalar}>, ptr {self.at(text, source, text.define(f'mul i64 {loop.index}, {column}'))}"
            to = self.at(text, target, text.define(f"mul i64 {loop.index}, {self.mr}"))
            value = text.define(f"load {column_}, align {self.align}")
            text.put(f"store <{self.mr} x {self.scalar}> {value}, ptr {to}, align {self.align}")
        text.jump(done)
        text.start(ask)
        whole = text.define(f"and i1 {full}, {text.define(f'icmp eq i64 {column}, 1')}")
        groups = range(0, self.mr, self.lanes)
        over = len(groups) * self.lanes - self.mr  # columns are stored as whole vectors, overlapping the next columns, which must exist
        blocks = text.define(f"and i64 {text.define(f'sub i64 {depth}, {-(-over // self.mr)}')}, -{self.lanes}")
        some = text.define(f"and i1 {whole}, {text.define(f'icmp sgt i64 {blocks}, 0')}")
        before = text.block
        text.put(f"br i1 {some}, label %{turn}, label %{gather}")
        text.start(turn)
        with Loop(text, "0", blocks, self.lanes) as loop:
            from_ = self.at(text, source, loop.index)
            to = self.at(text, target, text.define(f"mul i64 {loop.index}, {self.mr}"))
            lines = [min(r, self.mr - 1) for r in range(self.mr + over)]
            rows = [self.load(text, self.at(text, from_, text.define(f"mul i64 {row}, {r}"))) for r in lines]
            squares = [self.transposed(text, rows[group : group + self.lanes]) for group in groups]
            for k in range(self.lanes):
                for group, square in zip(groups, squares, strict=True):
                    self.store(text, square[k], self.at(text, to, str(k * self.mr + group)))
        turned = text.block
        text.jump(gather)
        text.start(gather)
        start = text.define(f"phi i64 [0, %{before}], [{blocks}, %{turned}]")
        self.gather(text, source, row, column, target, count, start, depth, self.mr)
        text.jump(done)
        text.start(done)

    # ---- a block of a times the packed panel of b

    def block(self) -> str:
        """Multiply a block of a, packed as [k][MR] into this worker's buffer unless the caller wants its rows read in place."""
        text = Text(self.target)
        m, n, row, column, ldc, rows, groups, packs, depth, started = (
            self.argument(text, k) for k in (0, 1, 4, 5, 10, 12, 13, 15, DEPTH, START)
        )
        a, c, b, work, finish, pointers, error = (self.pointer_argument(text, k) for k in (3, 9, 11, BUFFER, FINISH, POINTERS, ERROR))
        span = self.argument(text, SPAN)
        is_apart = text.define(f"icmp ne i64 {self.argument(text, APART)}, 0")
        first = text.define(f"icmp eq i64 {started}, 0")
        top = text.define(f"mul i64 {text.define(f'udiv i64 %chunk, {groups}')}, {rows}")
        panels = self.tiles(text, n, self.nr)
        above = text.define(f"sub i64 {text.define(f'add i64 {panels}, {groups}')}, 1")
        share = text.define(f"udiv i64 {above}, {groups}")
        left_most = text.define(f"mul i64 {text.define(f'urem i64 %chunk, {groups}')}, {share}")
        right_most = self.smin(text, text.define(f"add i64 {left_most}, {share}"), panels)
        some, none = text.fresh_label(), text.fresh_label()
        text.put(f"br i1 {text.define(f'icmp slt i64 {left_most}, {right_most}')}, label %{some}, label %{none}")
        text.start(none)
        text.put("ret void")
        text.start(some)
        height = self.smin(text, text.define(f"sub i64 {m}, {top}"), rows)
        packed = self.at(text, work, text.define(f"mul i64 %worker, {text.define(f'mul i64 {rows}, {depth}')}"))
        source = self.at(text, a, text.define(f"mul i64 {top}, {row}"))
        own = text.define(f"mul i64 %worker, {rows}")
        target = text.define(f"mul i64 {ldc}, {text.define(f'select i1 {is_apart}, i64 {own}, i64 {top}')}")

        is_packed = text.define(f"icmp ne i64 {packs}, 0")
        with only_if(text, is_packed), Loop(text, "0", height, self.mr) as loop:
            count = self.smin(text, text.define(f"sub i64 {height}, {loop.index}"), str(self.mr))
            from_ = self.at(text, source, text.define(f"mul i64 {loop.index}, {row}"))
            into = self.at(text, packed, text.define(f"mul i64 {loop.index}, {depth}"))
            self.pack_rows(text, from_, row, column, into, count, depth)
        micro, low = (self.chosen_micro(text, is_packed, h) for h in (self.mr, ROWS))
        strips = text.define(f"select i1 {is_packed}, ptr {packed}, ptr {source}")
        between = text.define(f"select i1 {is_packed}, i64 {depth}, i64 {row}")  # distance between strips, divided by MR
        with Loop(text, left_most, right_most, span) as wide:
            left = text.define(f"mul i64 {wide.index}, {self.nr}")
            inside = text.define(f"add i64 {target}, {left}")
            corner = self.at(text, c, text.define(f"select i1 {is_apart}, i64 {target}, i64 {inside}"))
            side_by_side = self.smin(text, span, text.define(f"sub i64 {right_most}, {wide.index}"))
            with Loop(text, "0", side_by_side) as across:
                self.look(text, error)
                right = text.define(f"mul i64 {across.index}, {self.nr}")
                at = text.define(f"add i64 {left}, {right}")
                columns = self.smin(text, text.define(f"sub i64 {n}, {at}"), str(self.nr))
                panel = self.at(text, b, text.define(f"mul i64 {at}, {depth}"))
                first_tile = self.at(text, corner, right)
                with Loop(text, "0", height, self.mr) as loop:
                    count = self.smin(text, text.define(f"sub i64 {height}, {loop.index}"), str(self.mr))
                    strip = self.at(text, strips, text.define(f"mul i64 {loop.index}, {between}"))
                    tile = self.at(text, first_tile, text.define(f"mul i64 {loop.index}, {ldc}"))
                    where = f"ptr {strip}, i64 {row}, ptr {panel}, i64 {depth}, ptr {tile}, i64 {ldc}"
                    fits = text.define(f"select i1 {text.define(f'icmp sle i64 {count}, {ROWS}')}, ptr {low}, ptr {micro}")
                    text.put(f"call void {fits}({where}, i64 {count}, i64 {columns}, i1 {first})")
            with only_if(text, text.define(f"icmp ne ptr {finish}, null")):
                width = text.define(f"mul i64 {side_by_side}, {self.nr}")
                columns = self.smin(text, width, text.define(f"sub i64 {n}, {left}"))
                place = f"ptr {pointers}, i64 {top}, i64 {left}, i64 {height}, i64 {columns}"
                text.put(f"call void {finish}({place}, ptr {corner}, i64 {ldc})")
        text.put("ret void")
        return self.function(f"internal void @block_{self.name}(ptr %args, i64 %chunk, i64 %worker)", text)

    # ---- the routine

    def panel_depth(self, text: Text) -> str:
        """Rows of a panel, equal for all panels but the last."""
        count = self.tiles(text, "%k", KC)
        last = text.define(f"sub i64 {count}, 1")
        even = text.define(f"udiv i64 {text.define(f'add i64 %k, {last}')}, {count}")
        return text.define(f"and i64 {text.define(f'add i64 {even}, {UNROLL - 1}')}, -{UNROLL}")

    def routine(self, is_packed: bool) -> str:
        """Process panels of up to KC rows of b, of equal depth, one after the other."""
        text = Text(self.target)
        args = text.reserve(f"[{ARGUMENTS + 3} x i64]")
        names = ["%m", "%n", "%k", "%a", "%ar", "%ac", "%b", "%br", "%bc", "%c", "%cr", "%work", "%rows", "%groups", "%added", "%packs"]
        names += ["%finish", "%pointers", "%span", "%apart", "%error"]
        kinds = ["ptr" if name in ("%a", "%b", "%c", "%work", "%finish", "%pointers", "%error") else "i64" for name in names]

        def put(k: int, kind: str, value: str) -> None:
            text.put(f"store {kind} {value}, ptr {text.define(f'getelementptr i64, ptr {args}, i64 {k}')}")

        for k, (kind, name) in enumerate(zip(kinds, names, strict=True)):
            put(k, kind, name)
        panels, packs = self.tiles(text, "%n", self.nr), self.tiles(text, "%n", SIDE_BY_SIDE * self.nr)
        upper = text.define(f"add i64 %m, {text.define('sub i64 %rows, 1')}")
        blocks = text.define(f"mul i64 {text.define(f'udiv i64 {upper}, %rows')}, %groups")
        width, step = text.define(f"mul i64 {panels}, {self.nr}"), self.panel_depth(text)
        with Loop(text, "0", "%k", step) as loop:
            depth = self.smin(text, text.define(f"sub i64 %k, {loop.index}"), step)
            put(3, "ptr", self.at(text, "%a", text.define(f"mul i64 {loop.index}, %ac")))
            put(DEPTH, "i64", depth)
            put(START, "i64", text.define(f"add i64 {loop.index}, %added"))
            is_last = text.define(f"icmp sge i64 {text.define(f'add i64 {loop.index}, {step}')}, %k")
            put(FINISH, "ptr", text.define(f"select i1 {is_last}, ptr %finish, ptr null"))
            if is_packed:
                put(11, "ptr", self.at(text, "%b", text.define(f"mul i64 {width}, {loop.index}")))
                put(BUFFER, "ptr", "%work")
            else:
                put(6, "ptr", self.at(text, "%b", text.define(f"mul i64 {loop.index}, %br")))
                used = text.define(f"mul i64 {width}, {depth}")
                put(BUFFER, "ptr", self.at(text, "%work", text.define(f"and i64 {text.define(f'add i64 {used}, 15')}, -16")))
                text.put(f"call void %run(ptr @pack_b_{self.name}, ptr {args}, i64 {packs}, ptr %error, i64 %threads)")
            text.put(f"call void %run(ptr @block_{self.name}, ptr {args}, i64 {blocks}, ptr %error, i64 %threads)")
            self.look(text, "%error")
        text.put("ret void")
        header = ", ".join(f"{kind} {name}" for kind, name in zip([*kinds, "i64", "ptr"], [*names, "%threads", "%run"], strict=True))
        return self.function(f"void @{(library.PACKED_NAMES if is_packed else library.NAMES)[self.dtype]}({header})", text)

    def pack(self) -> str:
        """Pack all panels of b, one after the other."""
        text = Text(self.target)
        args = text.reserve(f"[{ARGUMENTS + 3} x i64]")

        def put(k: int, value: str) -> None:
            text.put(f"store {value}, ptr {text.define(f'getelementptr i64, ptr {args}, i64 {k}')}")

        for k, value in ((1, "i64 %n"), (7, "i64 %row"), (8, "i64 %column")):
            put(k, value)
        panels, packs = self.tiles(text, "%n", self.nr), self.tiles(text, "%n", SIDE_BY_SIDE * self.nr)
        width, step = text.define(f"mul i64 {panels}, {self.nr}"), self.panel_depth(text)
        with Loop(text, "0", "%k", step) as loop:
            put(6, f"ptr {self.at(text, '%b', text.define(f'mul i64 {loop.index}, %row'))}")
            put(11, f"ptr {self.at(text, '%packed', text.define(f'mul i64 {loop.index}, {width}'))}")
            put(DEPTH, f"i64 {self.smin(text, text.define(f'sub i64 %k, {loop.index}'), step)}")
            text.put(f"call void %run(ptr @pack_b_{self.name}, ptr {args}, i64 {packs}, ptr %error, i64 %threads)")
            self.look(text, "%error")
        text.put("ret void")
        header = "i64 %n, i64 %k, ptr %b, i64 %row, i64 %column, ptr %packed, i64 %threads, ptr %run, ptr %error"
        return self.function(f"void @{library.PACK_NAMES[self.dtype]}({header})", text)
