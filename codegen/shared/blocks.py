"""Blocks of products that ranks of one machine exchange through their windows: see `products/summed.py`.

A block is an exchange like others, with a number (`routines.py`). Ranks meet before the first block and after the last, so that other
exchanges may use the same memory. In between a rank writes block e, publishes e, and adds up block e - 1: it waits until all have
published e - 1. They have then added up block e - 3, so that a block may be written where the fourth one before it was.

A rank reads the blocks of all others. With many ranks, that is more than what `sums` reads, where each adds up one slice.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from adjit.ir.types import DTYPES
from adjit.ir.world import World

from .routines import shared_text
from .windows import CHUNK, INPUT, WINDOW, table

PREFIX = "adjit_mpi_block_"
MEET, ROOM, SEND, WAIT = ROUTINES = ("meet", "room", "send", "wait")
LATER = 1  # blocks that are computed before one is added up
TURNS = 2 * LATER + 2  # blocks in a window
BYTES = 96 * 2048  # of a block
MOST_RANKS = 4
assert TURNS * BYTES <= 2 * CHUNK


def is_routine(name: str) -> bool:
    return name.startswith(PREFIX)


def text(dtype: str, ranks: World) -> str:
    """The routines for a dtype. A single rank adds up nothing, in memory of its own."""
    if ranks.size == 1 and not table.windows[0]:
        _kept.append(mmap.mmap(-1, WINDOW))
        table.windows[0] = ctypes.addressof(ctypes.c_char.from_buffer(_kept[0]))
    name = {routine: f"{PREFIX}{routine}.{dtype}" for routine in ROUTINES}
    blocks = "\n".join(
        f"""  %block{r} = {"getelementptr i8, ptr %own, i64 0" if r == ranks.rank else f"call ptr @place(i64 {r}, i64 %offset)"}
  %at{r} = getelementptr ptr, ptr %table, i64 {r}
  store ptr %block{r}, ptr %at{r}"""
        for r in range(ranks.size)
    )
    return f"""{shared_text(dtype, ranks)}
define internal i64 @offset(i64 %number) {{
  %turn = urem i64 %number, {TURNS}
  %shift = mul i64 %turn, {BYTES}
  %offset = add i64 %shift, {INPUT}
  ret i64 %offset
}}
define void @{name[MEET]}() nounwind {{
  %number = call i64 @next()
  call void @meet(i64 %number)
  ret void
}}
define ptr @{name[ROOM]}() nounwind {{
  %last = call i64 @last()
  %number = add i64 %last, 1
  %offset = call i64 @offset(i64 %number)
  %room = call ptr @place(i64 {ranks.rank}, i64 %offset)
  ret ptr %room
}}
define void @{name[SEND]}() nounwind {{
  fence seq_cst
  %number = call i64 @next()
  call void @publish(i64 %number)
  ret void
}}
define void @{name[WAIT]}(ptr %table, ptr %own, i64 %back) nounwind {{
  %last = call i64 @last()
  %number = sub i64 %last, %back
  call void @wait(i64 %number)
  %offset = call i64 @offset(i64 %number)
{blocks}
  ret void
}}"""


def names(dtype: str) -> list[str]:
    return [f"{PREFIX}{routine}.{dtype}" for routine in ROUTINES]


def dtype_of(name: str) -> str:
    dtype = name.rpartition(".")[2]
    assert dtype in DTYPES
    return dtype


_kept: list[Any] = []
