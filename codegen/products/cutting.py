"""How the routine of `gemm.py` cuts a product, and the memory that it needs for that.

The rules for rows, groups and spans work on numbers, and on sizes that are known only at run time (`llvm/words.py`).
"""

from __future__ import annotations

from typing import cast

from adjit.ir.expr import is_static
from adjit.ir.target import Target
from adjit.ir.types import DType

from ..llvm.words import Integer, N, chosen, decided, greatest, least, over
from ..threads.library import Edge

ROWS = 6  # rows of a tile, with 16 registers for vectors
MORE_ROWS, MANY_ROWS = 8, 12  # with 32 of 64 bytes, if the CPU computes with them in halves; at once
VECTORS = 2  # vector registers across a tile
DEPTH, MORE_DEPTH = 256, 384  # of a panel: a strip of a stays in the first-level cache; with tiles of 12 rows, adding to c costs more
SPAN_BYTES = 2048  # bytes of a row finished at once: long enough for hardware prefetching, and a block stays cached
CANDIDATES = 256  # sizes of parts that are compared, about
PARTS, FEWEST = 32, 16  # parts of a product that is computed in place, on all threads; rows of one of these, so that tiles are high
MAX_ROWS = 192  # rows of a block of a, which stays in the second-level cache
BEHIND = 16  # elements after a packed block of a that packing may overwrite: a vector at most
FEW_TILES = 2  # in a block: if there are fewer for each thread, a is one block, and the columns are divided among the threads instead


def tile_rows(target: Target) -> int:
    """Rows of a tile. A CPU that computes with vectors of 64 bytes in halves is kept busy by few of them; 8 rows divide most sizes."""
    if target.vector_bytes < 64 or target.vector_registers < 32:
        return ROWS
    return MORE_ROWS if target.in_halves else MANY_ROWS


def most_depth(target: Target) -> int:
    """The maximum rows of a panel of b: there are as few panels as possible."""
    return MORE_DEPTH if tile_rows(target) == MANY_ROWS else DEPTH


def edge_rows(target: Target) -> int:
    """Rows of the tiles at the lower edge that have few of them."""
    return tile_rows(target) // 2 if tile_rows(target) > ROWS else ROWS


def tile_columns(dtype: DType, vector_bytes: int) -> int:
    return VECTORS * vector_bytes // dtype.itemsize


def edges_of(m: int, n: int, dtype: DType, target: Target) -> list[Edge]:
    """The tiles for edges that a product uses, or may use if its sizes are known only at run time."""
    mr, low, nr = tile_rows(target), edge_rows(target), tile_columns(dtype, target.vector_bytes)
    few_rows = low < mr and (not is_static(m) or 0 < m % mr <= low)
    few_columns = not is_static(n) or 0 < n % nr <= nr // VECTORS
    return [Edge(dtype, is_low) for is_low, is_used in ((True, few_rows), (False, few_columns)) if is_used]


def block_rows(m: N, threads: int, target: Target) -> N:
    """Rows of a block of a: no larger than the cache holds, and cut so that no thread gets much more work than the others."""
    mr = tile_rows(target)
    whole = least(MAX_ROWS, over(m, mr) * mr)
    if threads == 1:
        return whole

    def even() -> N:
        best, fewest = whole, greatest(1, over(m, MAX_ROWS * threads))  # blocks of each thread
        for more in range(4):
            rows = least(MAX_ROWS, greatest(FEW_TILES * mr, over(m, (fewest + more) * threads * mr) * mr))
            best = chosen(_longest(m, rows, threads) <= _longest(m, best, threads), rows, best)
        return best

    return cast(N, decided(m < FEW_TILES * mr * threads, lambda: whole, even))


def column_groups(m: N, n: N, rows: N, threads: int, dtype: DType, vector_bytes: int) -> Integer:
    """Number of column groups, for products with fewer blocks of rows than threads."""
    if threads == 1:
        return 1
    panels = over(n, tile_columns(dtype, vector_bytes))

    def several() -> Integer:
        blocks = over(m, rows)
        return chosen(blocks < threads, least(panels, over(2 * threads, blocks)), 1)

    return decided(m <= rows, lambda: least(2 * threads, panels), several)


def _longest(m: N, rows: N, threads: int) -> N:
    """Number of rows that the busiest thread computes."""
    return over(over(m, rows), threads) * rows


def work_bytes(n: int, k: int, rows: int, threads: int, dtype: DType, target: Target) -> int:
    """Memory for the packed panel of b, and for one packed block of a per thread."""
    nr, most = tile_columns(dtype, target.vector_bytes), most_depth(target)
    depth = k if is_static(k) and k < most else most
    panel = -(-n // nr) * nr * depth
    return (panel + threads * (rows * depth + BEHIND)) * dtype.itemsize + 64 * (threads + 1)


def span_tiles(n: N, dtype: DType, vector_bytes: int) -> N:
    """Number of adjacent tiles that are finished at once."""
    nr = tile_columns(dtype, vector_bytes)
    return least(max(1, SPAN_BYTES // (nr * dtype.itemsize)), over(n, nr))


def most_rows(m: int, threads: int, target: Target) -> int:
    """`block_rows`, or the most that it can be if m is known only at run time."""
    return block_rows(m, threads, target) if is_static(m) else MAX_ROWS


def most_columns(n: int, dtype: DType, vector_bytes: int) -> int:
    """Columns that are finished at once, or the most that they can be if n is known only at run time."""
    nr = tile_columns(dtype, vector_bytes)
    return (span_tiles(n, dtype, vector_bytes) if is_static(n) else max(1, SPAN_BYTES // (nr * dtype.itemsize))) * nr


def packed_bytes(n: int, k: int, dtype: DType, vector_bytes: int) -> int:
    nr = tile_columns(dtype, vector_bytes)
    return -(-n // nr) * nr * k * dtype.itemsize


def part_size(size: int, unit: int, threads: int) -> int:
    """Rows, or columns in multiples of vectors (`unit`), of the equal parts of a product that is computed in place.

    The busiest thread, to which the rows left over are added, has as few as possible; of several such sizes the largest one is chosen.
    """
    most = max(-(-size // (PARTS * unit)) * unit, 2 * FEWEST if unit == 1 else unit)
    sizes = range(max(most // 2 // unit * unit, FEWEST if unit == 1 else unit), most + 1, max(1, most // unit // CANDIDATES) * unit)
    return min(reversed(sizes), key=lambda step: -(-(size // step) // threads) * step + size % step)
