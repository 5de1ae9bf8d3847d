"""Matrix products of any size and strides: one blocked, packed, threaded routine per dtype, compiled once per process.

    void adjit_gemm_f32(i64 m, i64 n, i64 k, ptr a, i64 row, i64 column, ptr b, i64 row, i64 column, ptr c, i64 row,
                        ptr work, i64 rows, i64 groups, i64 added, i64 packs, ptr finish, ptr pointers, i64 span, i64 apart,
                        ptr error, ptr copy, i64 threads, ptr run)

c = a @ b, or c += a @ b if `added` is 1, with strides in elements; the columns of c are contiguous.

    void finish(ptr pointers, i64 row, i64 column, i64 m, i64 n, ptr values, i64 stride)

is called, unless it is null, when a block is done, for `span` adjacent tiles at a time, with their m x n values (`stride` is the row
stride) and their position in c: elementwise operations after a product are computed while its values are in the second-level cache
(`epilogue.py`). If `apart` is 1, c is not a matrix but memory in which every worker has a block for these values, which suffices for a
product of one panel.

If `copy` is not null, the last panel also writes c there, with the same strides, past the cache: to memory that other cores read.

    void adjit_pack_f32(i64 n, i64 k, ptr b, i64 row, i64 column, ptr packed, i64 threads, ptr run, ptr error)
    void adjit_packed_gemm_f32(...)    with b already packed; its strides are ignored

Tiles at edges (`Edge`) are functions that are looked up in a table. They are compiled for the programs whose sizes have such edges; until
then the table holds the whole tiles, which compute the same.

The usual five loops: panels of b (up to `most_depth` rows) are packed NR columns at a time, blocks of a (`rows` rows, chosen by the caller)
are packed MR rows at a time if `packs` is 1 and read in place otherwise, and a micro-kernel (`micro.py`) keeps an MR x NR tile of c in
registers. Packing fills up the last tile, so that a micro-kernel always processes whole vectors, one or two of them; edges are stored with
masks.

`run` is adjit_parallel or adjit_serial: each pair of a block of a and one of the `groups` of columns is a chunk for the thread pool. A tile
is computed in the same way wherever the cuts are, so results are bitwise identical for any number of threads.

With an `error` record, the routine checks for signals (`polling.py`) and returns early if there is one.
"""

from __future__ import annotations

from adjit.ir.target import Target
from adjit.ir.types import DType

from ..llvm.counted import CountedLoop, only_if
from ..llvm.lanes import Text
from ..threads import library
from ..threads.library import Edge
from .cutting import BEHIND, VECTORS, most_depth
from .micro import TYPES as TILE_TYPES
from .micro import UNROLL, Micro
from .panels import ARGUMENTS, BUFFER, DEPTH, SIDE_BY_SIDE, START

TYPES = "i64, i64, i64, ptr, i64, i64, ptr, i64, i64, ptr, i64, ptr, i64, i64, i64, i64, ptr, ptr, i64, i64, ptr, ptr, i64, ptr"
FINISH, POINTERS, SPAN, APART, ERROR, COPY = range(16, 22)
PAST_CACHE = "!0 = !{i32 1}"
PACK_TYPES = "i64, i64, ptr, i64, i64, ptr, i64, ptr, ptr"


def gemm_ir(dtype: DType, target: Target, is_packed: bool = False) -> str:
    """The text of the routine for a dtype of `library.NAMES`, or of the two routines for factors that are packed in advance."""
    gemm = _Gemm(dtype, target, in_one=True)
    packed = [gemm.pack()] if is_packed else []
    return gemm.module([*gemm.micros(), gemm.turned(), gemm.pack_columns(), gemm.pack_b(), gemm.block(), gemm.routine(is_packed), *packed])


def gemm_parts(dtype: DType, target: Target) -> list[str]:
    """The routine as two texts, which are compiled at the same time: the tiles, and what calls them."""
    gemm = _Gemm(dtype, target)
    return [
        gemm.module([gemm.micro(gemm.mr, VECTORS)]),
        gemm.module([*gemm.tables(), gemm.turned(), gemm.pack_columns(), gemm.pack_b(), gemm.block(), gemm.routine(False)]),
    ]


def packed_part(dtype: DType, target: Target) -> str:
    """The routines for factors that are packed in advance, which call the functions of `gemm_parts`."""
    gemm = _Gemm(dtype, target)
    called = [f"declare void @{name}(ptr, i64, i64)" for name in (gemm.packs_b, gemm.multiplies)]
    return gemm.module([*called, gemm.routine(True), gemm.pack()])


def edge_part(edge: Edge, target: Target) -> str:
    """A tile for edges, and `void adjit_…(ptr table)`, which puts it into the table of `gemm_parts`."""
    gemm = _Gemm(edge.dtype, target)
    shape = gemm.shape_of(edge.is_low)
    install = f"""define void @{library.EDGE_NAMES[edge]}(ptr %table) nounwind {{
  %place = getelementptr ptr, ptr %table, i64 {int(edge.is_low)}
  store ptr @{gemm.micro_name(*shape)}, ptr %place
  ret void
}}"""
    return gemm.module([gemm.micro(*shape), install])


class _Gemm(Micro):
    def module(self, parts: list[str]) -> str:
        return "\n".join([*sorted(self.declares), *parts, PAST_CACHE])

    # ---- the tiles

    def micros(self) -> list[str]:
        """The micro-kernels: for whole tiles, for edges with few rows, and for edges of a single vector."""
        return [self.micro(*shape) for shape in sorted({(self.mr, VECTORS), (self.low, VECTORS), (self.mr, 1)})]

    def shape_of(self, is_low: bool) -> tuple[int, int]:
        return (self.low, VECTORS) if is_low else (self.mr, 1)

    def tables(self) -> list[str]:
        """The table of the tiles for edges, which are the whole ones at first, and the declaration of these."""
        whole = self.micro_name(self.mr, VECTORS)
        return [f"declare hidden void @{whole}({TILE_TYPES})", f"@{self.edges} = global [2 x ptr] [ptr @{whole}, ptr @{whole}]"]

    def edge_micro(self, text: Text, is_low: bool) -> str:
        if self.in_one:
            return f"@{self.micro_name(*self.shape_of(is_low))}"
        return text.define(f"load ptr, ptr {text.define(f'getelementptr ptr, ptr @{self.edges}, i64 {int(is_low)}')}")

    # ---- a block of a times the packed panel of b

    def block(self) -> str:
        """Multiply a block of a, packed as [k][MR] into this worker's buffer unless its rows are read in place."""
        text = Text(self.target)
        m, n, row, column, ldc, rows, groups, packs, depth, started = (
            self.argument(text, k) for k in (0, 1, 4, 5, 10, 12, 13, 15, DEPTH, START)
        )
        a, c, b, work, finish, pointers, error = (self.pointer_argument(text, k) for k in (3, 9, 11, BUFFER, FINISH, POINTERS, ERROR))
        span, copy = self.argument(text, SPAN), self.pointer_argument(text, COPY)
        is_copied = text.define(f"icmp ne ptr {copy}, null")
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
        per_worker = text.define(f"add i64 {text.define(f'mul i64 {rows}, {depth}')}, {BEHIND}")
        packed = self.at(text, work, text.define(f"mul i64 %worker, {per_worker}"))
        source = self.at(text, a, text.define(f"mul i64 {top}, {row}"))
        own = text.define(f"mul i64 %worker, {rows}")
        target = text.define(f"mul i64 {ldc}, {text.define(f'select i1 {is_apart}, i64 {own}, i64 {top}')}")

        is_packed = text.define(f"icmp ne i64 {packs}, 0")
        with only_if(text, is_packed), CountedLoop(text, "0", height, self.mr) as loop:
            count = self.smin(text, text.define(f"sub i64 {height}, {loop.index}"), str(self.mr))
            from_ = self.at(text, source, text.define(f"mul i64 {loop.index}, {row}"))
            into = self.at(text, packed, text.define(f"mul i64 {loop.index}, {depth}"))
            self.pack_rows(text, from_, row, column, into, count, depth)
        thin = self.edge_micro(text, is_low=False)
        by_height = [f"@{self.micro_name(self.mr, VECTORS)}", self.edge_micro(text, is_low=True)]
        strips = text.define(f"select i1 {is_packed}, ptr {packed}, ptr {source}")
        between = text.define(f"select i1 {is_packed}, i64 {depth}, i64 {row}")  # distance between strips, divided by MR
        with CountedLoop(text, left_most, right_most, span) as wide:
            left = text.define(f"mul i64 {wide.index}, {self.nr}")
            inside = text.define(f"add i64 {target}, {left}")
            corner = self.at(text, c, text.define(f"select i1 {is_apart}, i64 {target}, i64 {inside}"))
            side_by_side = self.smin(text, span, text.define(f"sub i64 {right_most}, {wide.index}"))
            with CountedLoop(text, "0", side_by_side) as across:
                self.look(text, error)
                right = text.define(f"mul i64 {across.index}, {self.nr}")
                at = text.define(f"add i64 {left}, {right}")
                columns = self.smin(text, text.define(f"sub i64 {n}, {at}"), str(self.nr))
                is_thin = text.define(f"icmp sle i64 {columns}, {self.lanes}")
                micro, low = (text.define(f"select i1 {is_thin}, ptr {thin}, ptr {wide_enough}") for wide_enough in by_height)
                panel = self.at(text, b, text.define(f"mul i64 {at}, {depth}"))
                first_tile = self.at(text, corner, right)
                first_copy = self.at(text, copy, text.define(f"add i64 {target}, {at}"))
                with CountedLoop(text, "0", height, self.mr) as loop:
                    count = self.smin(text, text.define(f"sub i64 {height}, {loop.index}"), str(self.mr))
                    strip = self.at(text, strips, text.define(f"mul i64 {loop.index}, {between}"))
                    tile = self.at(text, first_tile, text.define(f"mul i64 {loop.index}, {ldc}"))
                    copied = self.at(text, first_copy, text.define(f"mul i64 {loop.index}, {ldc}"))
                    copied = text.define(f"select i1 {is_copied}, ptr {copied}, ptr null")
                    where = f"ptr {strip}, i64 {row}, ptr {panel}, i64 {depth}, ptr {tile}, i64 {ldc}"
                    fits = text.define(f"select i1 {text.define(f'icmp sle i64 {count}, {self.low}')}, ptr {low}, ptr {micro}")
                    text.put(f"call void {fits}({where}, i64 {count}, i64 {columns}, i1 {first}, i1 {is_packed}, ptr {copied})")
            with only_if(text, text.define(f"icmp ne ptr {finish}, null")):
                width = text.define(f"mul i64 {side_by_side}, {self.nr}")
                columns = self.smin(text, width, text.define(f"sub i64 {n}, {left}"))
                place = f"ptr {pointers}, i64 {top}, i64 {left}, i64 {height}, i64 {columns}"
                text.put(f"call void {finish}({place}, ptr {corner}, i64 {ldc})")
        text.put("ret void")
        return self.function(f"{self.shared}void @{self.multiplies}(ptr %args, i64 %chunk, i64 %worker)", text)

    # ---- the routine

    def panel_depth(self, text: Text) -> str:
        """Rows of a panel, equal for all panels but the last."""
        count = self.tiles(text, "%k", most_depth(self.target))
        last = text.define(f"sub i64 {count}, 1")
        even = text.define(f"udiv i64 {text.define(f'add i64 %k, {last}')}, {count}")
        return text.define(f"and i64 {text.define(f'add i64 {even}, {UNROLL - 1}')}, -{UNROLL}")

    def routine(self, is_packed: bool) -> str:
        """Process panels of b, of equal depth, one after the other."""
        text = Text(self.target)
        args = text.reserve(f"[{ARGUMENTS + 3} x i64]")
        names = ["%m", "%n", "%k", "%a", "%ar", "%ac", "%b", "%br", "%bc", "%c", "%cr", "%work", "%rows", "%groups", "%added", "%packs"]
        names += ["%finish", "%pointers", "%span", "%apart", "%error", "%copy"]
        kinds = ["ptr" if name in ("%a", "%b", "%c", "%work", "%finish", "%pointers", "%error", "%copy") else "i64" for name in names]

        def put(k: int, kind: str, value: str) -> None:
            text.put(f"store {kind} {value}, ptr {text.define(f'getelementptr i64, ptr {args}, i64 {k}')}")

        for k, (kind, name) in enumerate(zip(kinds, names, strict=True)):
            put(k, kind, name)
        panels, packs = self.tiles(text, "%n", self.nr), self.tiles(text, "%n", SIDE_BY_SIDE * self.nr)
        upper = text.define(f"add i64 %m, {text.define('sub i64 %rows, 1')}")
        blocks = text.define(f"mul i64 {text.define(f'udiv i64 {upper}, %rows')}, %groups")
        width, step = text.define(f"mul i64 {panels}, {self.nr}"), self.panel_depth(text)
        with CountedLoop(text, "0", "%k", step) as loop:
            depth = self.smin(text, text.define(f"sub i64 %k, {loop.index}"), step)
            put(3, "ptr", self.at(text, "%a", text.define(f"mul i64 {loop.index}, %ac")))
            put(DEPTH, "i64", depth)
            put(START, "i64", text.define(f"add i64 {loop.index}, %added"))
            is_last = text.define(f"icmp sge i64 {text.define(f'add i64 {loop.index}, {step}')}, %k")
            put(FINISH, "ptr", text.define(f"select i1 {is_last}, ptr %finish, ptr null"))
            put(COPY, "ptr", text.define(f"select i1 {is_last}, ptr %copy, ptr null"))
            if is_packed:
                put(11, "ptr", self.at(text, "%b", text.define(f"mul i64 {width}, {loop.index}")))
                put(BUFFER, "ptr", "%work")
            else:
                put(6, "ptr", self.at(text, "%b", text.define(f"mul i64 {loop.index}, %br")))
                used = text.define(f"mul i64 {width}, {depth}")
                put(BUFFER, "ptr", self.at(text, "%work", text.define(f"and i64 {text.define(f'add i64 {used}, 15')}, -16")))
                text.put(f"call void %run(ptr @{self.packs_b}, ptr {args}, i64 {packs}, ptr %error, i64 %threads)")
            text.put(f"call void %run(ptr @{self.multiplies}, ptr {args}, i64 {blocks}, ptr %error, i64 %threads)")
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
        with CountedLoop(text, "0", "%k", step) as loop:
            put(6, f"ptr {self.at(text, '%b', text.define(f'mul i64 {loop.index}, %row'))}")
            put(11, f"ptr {self.at(text, '%packed', text.define(f'mul i64 {loop.index}, {width}'))}")
            put(DEPTH, f"i64 {self.smin(text, text.define(f'sub i64 %k, {loop.index}'), step)}")
            text.put(f"call void %run(ptr @{self.packs_b}, ptr {args}, i64 {packs}, ptr %error, i64 %threads)")
            self.look(text, "%error")
        text.put("ret void")
        header = "i64 %n, i64 %k, ptr %b, i64 %row, i64 %column, ptr %packed, i64 %threads, ptr %run, ptr %error"
        return self.function(f"void @{library.PACK_NAMES[self.dtype]}({header})", text)
