"""The elementwise operations after a product, as a function that `gemm.py` calls to write finished blocks to the outputs.

The gemm routine is compiled once for all products; this function is specific to the `fuse` region that the product hosts. It reads a block
of the product and the region's other inputs at the same position, and stores the region's results there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjit.ir.expr import is_static

from ..kernels.emitter import VectorEmitter
from ..kernels.window import Hosted, Strided
from ..llvm import memory
from ..llvm.counted import CountedLoop, only_if
from ..llvm.lanes import Reg, Text
from ..loops.nest import MEDIUM_BODY
from ..sizes import SIZES
from . import cutting

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel

PARAMETERS = "ptr %pointers, i64 %row, i64 %column, i64 %m, i64 %n, ptr %values, i64 %stride"
NONE = ("null", "null")


def epilogue(kernel: LoopKernel, target: Strided, terms: int = 1) -> tuple[str, str]:
    """The function for a target and its table of pointers; two nulls if the target stores products unchanged.

    With several `terms`, its argument `values` is a table of as many blocks, whose sum it takes.
    """
    if not isinstance(target, Hosted):
        return NONE
    text = kernel.helper_text()
    corner = []
    for k, member in enumerate(target.windows):
        pointer = text.define(f"load ptr, ptr {text.define(f'getelementptr ptr, ptr %pointers, i64 {k}')}")
        corner.append(_moved(text, _moved(text, member.inside(text, [pointer]), "%row", 0), "%column", 1))
    blocks = ["%values"]
    if terms > 1:
        blocks = [text.define(f"load ptr, ptr {text.define(f'getelementptr ptr, ptr %values, i64 {k}')}") for k in range(terms)]
    _rows(text, target, corner, blocks, kernel.vector_bytes)
    pointers = target.pointers
    if kernel.symbols:
        text.slots += [f"{SIZES}.at = getelementptr ptr, ptr %pointers, i64 {len(pointers)}", f"{SIZES} = load ptr, ptr {SIZES}.at"]
        pointers = [*pointers, SIZES]
    return kernel.add_helper("finish", PARAMETERS, text), memory.table(kernel.text, pointers)


def _moved(text: Text, window: Strided, index: str, axis: int) -> Strided:
    """The window behind a pointer that is moved along an axis."""
    step = window.strides[axis]
    if step == 0:
        return window
    return window.inside(text, [memory.element(text, window.pointer, window.type.dtype, memory.scaled(text, index, step))])


def _rows(text: Text, target: Hosted, corner: list[Strided], blocks: list[str], vector_bytes: int) -> None:
    """Emit all rows, several vectors at a time. Only blocks at the right edge of the whole result are not a whole number of tiles wide."""
    tile, size = cutting.tile_columns(target.type.dtype, vector_bytes), target.type.shape[1]
    step = tile if target.ops <= MEDIUM_BODY else tile // cutting.VECTORS
    rest = size % step if is_static(size) else None
    whole = text.define(f"and i64 %n, -{step}")
    is_wide, is_ragged = (text.define(f"icmp ne i64 {n}, 0") for n in (whole, text.define(f"sub i64 %n, {whole}")))
    with CountedLoop(text, "0", "%m") as rows:
        here = [_moved(text, a, rows.index, 0) for a in corner]
        offset = text.define(f"mul i64 {rows.index}, %stride")
        values = [memory.element(text, block, target.type.dtype, offset) for block in blocks]
        if rest is None or size >= step:
            with only_if(text, is_wide), CountedLoop(text, "0", whole, step) as columns:
                _elements(text, target, here, values, columns.index, step)
        if rest is None:
            with only_if(text, is_ragged), CountedLoop(text, whole, "%n") as columns:
                _elements(text, target, here, values, columns.index, 1)
        elif rest:
            with only_if(text, is_ragged):
                _elements(text, target, here, values, whole, rest)


def _elements(text: Text, target: Hosted, here: list[Strided], values: list[str], start: str, width: int) -> None:
    loaded: dict[int, Reg] = {}

    def load(k: int) -> Reg:
        if k not in loaded:
            loaded[k] = memory.load(text, here[k].pointer, here[k].type.dtype, start, here[k].strides[1], width)
        return loaded[k]

    def store(k: int, value: Reg) -> None:
        memory.store(text, here[k].pointer, value, start, here[k].strides[1], width)

    emit = VectorEmitter(text, width)
    total, *others = (memory.load(text, block, target.type.dtype, start, 1, width) for block in values)
    for value in others:
        total = emit.add(total, value)
    target.put(emit, total, load, store)
