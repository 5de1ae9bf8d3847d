"""`reduce_scatter` and `all_gather` through the windows of ranks, in place of MPI's.

Both exchange chunks, with one meeting for each (`routines.py`). To reduce, a rank copies the parts for others to its window, and sums its
own part of all windows; to gather, it copies its own part, and reads those of the others. A window is filled again when all have passed the
following meeting.
"""

from __future__ import annotations

from adjit.ir.types import DTYPES
from adjit.ir.world import World

from .routines import shared_text
from .sums import choosing
from .windows import CHUNK, INPUT
from .writing import VECTOR


def text(name: str, collective: str, dtype: str, ranks: World, slow: str) -> str:
    """A routine of n elements a rank, through windows or by the routine `slow`."""
    body = _scattering(dtype, ranks) if collective == "reduce_scatter" else _gathering(dtype, ranks)
    return "\n".join([shared_text(dtype, ranks), body, choosing(name, dtype, slow, ranks.size, "exchange")])


def _loop(dtype: str, most: int, body: str) -> str:
    """@exchange(to, from, n): the body for chunks of %m elements at %base, with the number of an exchange and the offset of its buffer."""
    return f"""define internal void @exchange(ptr %to, ptr %from, i64 %n) {{
start:
  br label %chunks
chunks:
  %base = phi i64 [ 0, %start ], [ %base.next, %chunk ]
  %rest = sub i64 %n, %base
  %m = call i64 @llvm.umin.i64(i64 %rest, i64 {most // DTYPES[dtype].itemsize})
  %done = icmp eq i64 %m, 0
  br i1 %done, label %end, label %chunk
chunk:
  %number = call i64 @next()
  %shift = call i64 @turn(i64 %number, i64 {CHUNK})
  %offset = add i64 %shift, {INPUT}
  %bytes = mul i64 %m, {DTYPES[dtype].itemsize}
{body}
  %base.next = add i64 %base, %m
  br label %chunks
end:
  ret void
}}"""


def _element(name: str, pointer: str, dtype: str, row: int) -> str:
    """The address of the chunk in a row of n elements."""
    return f"""  %{name}.row = mul i64 %n, {row}
  %{name}.at = add i64 %{name}.row, %base
  %{name}.byte = mul i64 %{name}.at, {DTYPES[dtype].itemsize}
  %{name} = getelementptr i8, ptr {pointer}, i64 %{name}.byte"""


def _scattering(dtype: str, ranks: World) -> str:
    own, others = ranks.rank, [r for r in range(ranks.size) if r != ranks.rank]
    part = CHUNK // ranks.size // VECTOR * VECTOR  # bytes for each rank
    sends = "\n".join(
        f"""{_element(f"from{r}", "%from", dtype, r)}
  %into{r} = getelementptr i8, ptr %window, i64 {r * part}
  call void @write(ptr %into{r}, ptr %from{r}, i64 %bytes)"""
        for r in others
    )
    body = f"""  %window = call ptr @place(i64 {own}, i64 %offset)
{sends}
  call void @meet(i64 %number)
{_element("mine", "%from", dtype, own)}
{_element("target", "%to", dtype, 0)}
  %terms = add i64 %offset, {own * part}
  call void @add(ptr %target, i64 %m, ptr %mine, i64 %terms)"""
    return _loop(dtype, part, body)


def _gathering(dtype: str, ranks: World) -> str:
    own, others = ranks.rank, [r for r in range(ranks.size) if r != ranks.rank]
    takes = "\n".join(
        f"""{_element(f"to{r}", "%to", dtype, r)}
  %window{r} = call ptr @place(i64 {r}, i64 %offset)
  %taken{r} = call ptr @memmove(ptr %to{r}, ptr %window{r}, i64 %bytes)"""
        for r in others
    )
    body = f"""  %window = call ptr @place(i64 {own}, i64 %offset)
{_element("mine", "%from", dtype, 0)}
  call void @write(ptr %window, ptr %mine, i64 %bytes)
{_element("target", "%to", dtype, own)}
  %kept = call ptr @memmove(ptr %target, ptr %mine, i64 %bytes)
  call void @meet(i64 %number)
{takes}"""
    return _loop(dtype, CHUNK, body)
