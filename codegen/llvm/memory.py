"""Loads and stores of several elements at a time, through any stride. Bools are bytes in memory and `i1` in registers."""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir.types import BOOL, I32, DType

from .lanes import LLVM_TYPE, Reg, Text


def memory_type(dtype: DType) -> str:
    return "i8" if dtype == BOOL else LLVM_TYPE[dtype]


def constant_bytes(name: str, data: bytes | bytearray) -> str:
    """The definition of a global constant with these bytes."""
    spelled = "\\" + data.hex("\\") if data else ""
    return f'{name} = internal constant [{len(data)} x i8] c"{spelled}", align 64'


def element(text: Text, pointer: str, dtype: DType, index: str) -> str:
    """Address of `pointer[index]`."""
    return pointer if index == "0" else text.define(f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {index}")


def table(text: Text, pointers: Sequence[str]) -> str:
    """Store pointers in a table on the stack, for a function that takes any number of them."""
    out = text.reserve(f"[{max(1, len(pointers))} x ptr]")
    for k, pointer in enumerate(pointers):
        text.put(f"store ptr {pointer}, ptr {text.define(f'getelementptr ptr, ptr {out}, i64 {k}')}")
    return out


def scaled(text: Text, index: str, stride: int) -> str:
    """index * stride, simplified where possible."""
    if index == "0" or stride == 1:
        return index
    return f"{int(index) * stride}" if index.isdigit() else text.define(f"mul i64 {index}, {stride}")


def plus(text: Text, index: str, amount: int) -> str:
    if amount == 0:
        return index
    return str(int(index) + amount) if index.lstrip("-").isdigit() else text.define(f"add i64 {index}, {amount}")


def load(text: Text, pointer: str, dtype: DType, index: str, stride: int, width: int) -> Reg:
    """Elements index, index+1, ... (times stride) as one register of `width` lanes."""
    scalar = memory_type(dtype)
    if width == 1 or stride in (1, -1):
        first = plus(text, scaled(text, index, stride), -(width - 1)) if stride == -1 and width > 1 else scaled(text, index, stride)
        vector = scalar if width == 1 else f"<{width} x {scalar}>"
        name = text.define(f"load {vector}, ptr {element(text, pointer, dtype, first)}, align {dtype.itemsize}")
        if stride == -1 and width > 1:
            order = ", ".join(f"i32 {k}" for k in range(width - 1, -1, -1))
            name = text.define(f"shufflevector {vector} {name}, {vector} poison, <{width} x i32> <{order}>")
    elif stride == 0:
        return splat(text, load(text, pointer, dtype, "0", 1, 1), width)
    elif stride == 2:  # two overlapping loads, which end with the last element
        vector = f"<{width} x {scalar}>"
        start = element(text, pointer, dtype, scaled(text, index, stride))
        places = [element(text, start, dtype, at) for at in ("0", str(width - 1))]
        halves = [text.define(f"load {vector}, ptr {place}, align {dtype.itemsize}") for place in places]
        order = ", ".join(f"i32 {2 * lane if 2 * lane < width else 2 * lane + 1}" for lane in range(width))
        name = text.define(f"shufflevector {vector} {halves[0]}, {vector} {halves[1]}, <{width} x i32> <{order}>")
    else:
        vector, name = f"<{width} x {scalar}>", "poison"
        start = element(text, pointer, dtype, scaled(text, index, stride))
        for lane in range(width):
            one = text.define(f"load {scalar}, ptr {element(text, start, dtype, f'{lane * stride}')}, align {dtype.itemsize}")
            name = text.define(f"insertelement {vector} {name}, {scalar} {one}, i64 {lane}")
    if dtype == BOOL:
        zero = "0" if width == 1 else "zeroinitializer"
        name = text.define(f"icmp ne {vector} {name}, {zero}")
    return Reg(name, dtype)


def store(text: Text, pointer: str, value: Reg, index: str, stride: int, width: int) -> None:
    scalar, dtype, name = memory_type(value.dtype), value.dtype, value.name
    vector = scalar if width == 1 else f"<{width} x {scalar}>"
    if dtype == BOOL:
        bits = "i1" if width == 1 else f"<{width} x i1>"
        name = text.define(f"zext {bits} {name} to {vector}")
    if width == 1 or stride == 1:
        store_ascending(text, element(text, pointer, dtype, scaled(text, index, stride)), name, dtype, width)
        return
    start = element(text, pointer, dtype, scaled(text, index, stride))
    for lane in range(width):
        one = text.define(f"extractelement {vector} {name}, i64 {lane}")
        text.put(f"store {scalar} {one}, ptr {element(text, start, dtype, f'{lane * stride}')}, align {dtype.itemsize}")


def store_ascending(text: Text, place: str, name: str, dtype: DType, width: int) -> None:
    """Store adjacent elements, a vector of the CPU at a time: LLVM would store the parts of a wider one in another order.

    For arrays beyond the second-level cache that takes up to 1.7 times as long (Cascade Lake, 64 bytes).
    """
    scalar, lanes = memory_type(dtype), max(1, text.target.vector_bytes // dtype.itemsize)
    if width <= lanes:
        text.put(f"store {scalar if width == 1 else f'<{width} x {scalar}>'} {name}, ptr {place}, align {dtype.itemsize}")
        return
    for first in range(0, width, lanes):
        count = min(lanes, width - first)
        order = ", ".join(f"i32 {lane}" for lane in range(first, first + count))
        part = text.define(f"shufflevector <{width} x {scalar}> {name}, <{width} x {scalar}> poison, <{count} x i32> <{order}>")
        text.put(f"store <{count} x {scalar}> {part}, ptr {element(text, place, dtype, str(first))}, align {dtype.itemsize}")


def lanes_before(text: Text, index: str, stop: str, width: int) -> Reg:
    """Which lanes of a vector are elements before `stop`, if the first one is element number `index`."""
    text.declares.add("declare i64 @llvm.smin.i64(i64, i64)")
    left = text.define(f"call i64 @llvm.smin.i64(i64 {text.define(f'sub i64 {stop}, {index}')}, i64 {width})")
    count = splat(text, Reg(text.define(f"trunc i64 {left} to i32"), I32), width)
    lanes = ", ".join(f"i32 {lane}" for lane in range(width))
    return Reg(text.define(f"icmp slt <{width} x i32> <{lanes}>, {count.name}"), BOOL)


def load_lanes(text: Text, pointer: str, dtype: DType, index: str, width: int, mask: Reg) -> Reg:
    """Elements index, index+1, ... of the lanes in a mask, and zeros: memory behind the other lanes is not accessed."""
    vector, bits, callee = _masked(text, "load", dtype, width)
    given = f"ptr {element(text, pointer, dtype, index)}, i32 {dtype.itemsize}, {bits} {mask.name}, {vector} zeroinitializer"
    name = text.define(f"call {vector} {callee}({given})")
    return Reg(text.define(f"icmp ne {vector} {name}, zeroinitializer") if dtype == BOOL else name, dtype)


def store_lanes(text: Text, pointer: str, value: Reg, index: str, width: int, mask: Reg) -> None:
    vector, bits, callee = _masked(text, "store", value.dtype, width)
    name = text.define(f"zext {bits} {value.name} to {vector}") if value.dtype == BOOL else value.name
    place = element(text, pointer, value.dtype, index)
    text.put(f"call void {callee}({vector} {name}, ptr {place}, i32 {value.dtype.itemsize}, {bits} {mask.name})")


def _masked(text: Text, what: str, dtype: DType, width: int) -> tuple[str, str, str]:
    """The types of a vector and its mask, and LLVM's function that loads or stores some lanes."""
    scalar, bits = memory_type(dtype), f"<{width} x i1>"
    vector, letter = f"<{width} x {scalar}>", {"float": "f32", "double": "f64"}.get(scalar, scalar)
    callee = f"@llvm.masked.{what}.v{width}{letter}.p0"
    given = f"{vector} {callee}(ptr, i32, {bits}, {vector})" if what == "load" else f"void {callee}({vector}, ptr, i32, {bits})"
    text.declares.add(f"declare {given}")
    return vector, bits, callee


def store_pairs(text: Text, target: str, sources: Sequence[str], dtype: DType, index: str, lanes: int) -> None:
    """Store vector number `index` of two contiguous buffers, element by element in turn."""
    at, scalar = scaled(text, index, lanes), memory_type(dtype)
    a, b = (load(text, pointer, dtype, at, 1, lanes).name for pointer in sources)
    order = ", ".join(f"i32 {lane}, i32 {lane + lanes}" for lane in range(lanes))
    vector, wide = f"<{lanes} x {scalar}>", f"<{2 * lanes} x {scalar}>"
    both = text.define(f"shufflevector {vector} {a}, {vector} {b}, <{2 * lanes} x i32> <{order}>")
    text.put(f"store {wide} {both}, ptr {element(text, target, dtype, scaled(text, at, 2))}, align {dtype.itemsize}")


def transposed(text: Text, rows: Sequence[Reg]) -> list[Reg]:
    """Transpose a square matrix of vectors, whose size is a power of two: by halves, then quarters, and so on."""
    width, dtype = len(rows), rows[0].dtype
    vector, names, half = f"<{width} x {LLVM_TYPE[dtype]}>", [r.name for r in rows], width // 2
    while half:
        swapped = list(names)
        for k in range(width):
            if k & half:
                continue
            a, b = names[k], names[k + half]
            for place, keep in ((k, 0), (k + half, half)):  # blocks of `half` lanes: those off the diagonal are exchanged
                lanes = [(lane & ~half) | keep if not lane & half else width + ((lane & ~half) | keep) for lane in range(width)]
                order = ", ".join(f"i32 {lane}" for lane in lanes)
                swapped[place] = text.define(f"shufflevector {vector} {a}, {vector} {b}, <{width} x i32> <{order}>")
        names, half = swapped, half // 2
    return [Reg(name, dtype) for name in names]


def splat(text: Text, value: Reg, width: int) -> Reg:
    """A scalar broadcast to all lanes."""
    if width == 1:
        return value
    scalar = LLVM_TYPE[value.dtype]
    vector = f"<{width} x {scalar}>"
    one = text.define(f"insertelement {vector} poison, {scalar} {value.name}, i64 0")
    return Reg(text.define(f"shufflevector {vector} {one}, {vector} poison, <{width} x i32> zeroinitializer"), value.dtype)
