"""WebAssembly without a linker: LLVM's object file of a single module, made a module that can be run.

In the object file, code refers to functions, table entries and addresses by numbers that a linker would move. With only one object there
is nothing to move: these numbers are right if the data is at address 0. So what remains is to define what the object imports (memory,
stack pointer, table of functions) and to export the public symbols. The data is followed by the stack, and that by the static buffers:
arguments, state, results and arena, whose sizes are known. Memory for the stacks of loops is added at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adjit.ir.errors import AdjitError, UnsupportedError
from adjit.ir.ops.base import Array
from adjit.ir.target import Target
from adjit.ir.types import TensorType

from . import wrapper
from .interface import ALIGNMENT, Interface
from .program import Program, object_code

PAGE = 65536
FRAMES = 4 * PAGE  # of the stack, for what LLVM itself puts there
CUSTOM, IMPORT, TABLE, MEMORY, GLOBAL, EXPORT, ELEMENTS, DATA = 0, 2, 4, 5, 6, 7, 9, 11  # ids of sections
FUNCTION_KIND, TABLE_KIND, MEMORY_KIND, GLOBAL_KIND = range(4)
SYMBOLS = 8  # sub-section of the linking section
FUNCTION_SYMBOL, DATA_SYMBOL, SECTION_SYMBOL = 0, 1, 3
UNDEFINED, EXPLICIT_NAME = 0x10, 0x40
I32, FUNCREF, CONST, END = 0x7F, 0x70, 0x41, 0x0B

ALLOCATOR = """
; Blocks of 2^class bytes, at least 64, of which the first 16 hold the class. Free blocks of a class are a list; halves of larger ones
; serve the smaller classes.
@heap.free = internal global [32 x ptr] zeroinitializer
declare i32 @llvm.wasm.memory.grow.i32(i32, i32)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.umax.i32(i32, i32)
declare void @llvm.memcpy.p0.p0.i32(ptr, ptr, i32, i1)

define internal ptr @heap.new(i32 %base, i32 %class) nounwind {
  %block = inttoptr i32 %base to ptr
  store i32 %class, ptr %block
  %data = getelementptr i8, ptr %block, i32 16
  ret ptr %data
}

define internal ptr @heap.take(i32 %class) nounwind {
entry:
  %head = getelementptr ptr, ptr @heap.free, i32 %class
  %first = load ptr, ptr %head
  %none = icmp eq ptr %first, null
  br i1 %none, label %make, label %pop
pop:
  %next = load ptr, ptr %first
  store ptr %next, ptr %head
  ret ptr %first
make:
  %large = icmp uge i32 %class, 16
  br i1 %large, label %grow, label %split
grow:
  %shift = sub i32 %class, 16
  %pages = shl i32 1, %shift
  %before = call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %pages)
  %failed = icmp eq i32 %before, -1
  br i1 %failed, label %fail, label %got
got:
  %base = shl i32 %before, 16
  %new = call ptr @heap.new(i32 %base, i32 %class)
  ret ptr %new
split:
  %above = add i32 %class, 1
  %whole = call ptr @heap.take(i32 %above)
  %missing = icmp eq ptr %whole, null
  br i1 %missing, label %fail, label %halve
halve:
  %at = ptrtoint ptr %whole to i32
  %start = sub i32 %at, 16
  %half = shl i32 1, %class
  %middle = add i32 %start, %half
  %spare = call ptr @heap.new(i32 %middle, i32 %class)
  call void @free(ptr %spare)
  %mine = call ptr @heap.new(i32 %start, i32 %class)
  ret ptr %mine
fail:
  ret ptr null
}

define hidden void @free(ptr %data) nounwind {
entry:
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %put
put:
  %class.at = getelementptr i8, ptr %data, i32 -16
  %class = load i32, ptr %class.at
  %head = getelementptr ptr, ptr @heap.free, i32 %class
  %first = load ptr, ptr %head
  store ptr %first, ptr %data
  store ptr %data, ptr %head
  br label %done
done:
  ret void
}

define hidden ptr @realloc(ptr %old, i64 %size) nounwind {
entry:
  %most = icmp ugt i64 %size, 1073741808
  br i1 %most, label %fail, label %small
small:
  %short = trunc i64 %size to i32
  %last = add i32 %short, 15
  %zeros = call i32 @llvm.ctlz.i32(i32 %last, i1 false)
  %bits = sub i32 32, %zeros
  %class = call i32 @llvm.umax.i32(i32 %bits, i32 6)
  %fresh = icmp eq ptr %old, null
  br i1 %fresh, label %first, label %again
first:
  %one = call ptr @heap.take(i32 %class)
  ret ptr %one
again:
  %had.at = getelementptr i8, ptr %old, i32 -16
  %had = load i32, ptr %had.at
  %fits = icmp ule i32 %class, %had
  br i1 %fits, label %keep, label %move
keep:
  ret ptr %old
move:
  %new = call ptr @heap.take(i32 %class)
  %none = icmp eq ptr %new, null
  br i1 %none, label %fail, label %copy
copy:
  %block = shl i32 1, %had
  %bytes = sub i32 %block, 16
  call void @llvm.memcpy.p0.p0.i32(ptr %new, ptr %old, i32 %bytes, i1 false)
  call void @free(ptr %old)
  ret ptr %new
fail:
  ret ptr null
}
"""


WIDE = "__multi3"  # what LLVM calls for products of 128 bits
PRODUCT = f"""
define hidden void @{WIDE}(ptr %out, i64 %a, i64 %a.high, i64 %b, i64 %b.high) nounwind {{
  %a0 = and i64 %a, 4294967295
  %a1 = lshr i64 %a, 32
  %b0 = and i64 %b, 4294967295
  %b1 = lshr i64 %b, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %carry = lshr i64 %p00, 32
  %middle = add i64 %p10, %carry
  %middle.low = and i64 %middle, 4294967295
  %middle.high = lshr i64 %middle, 32
  %other = add i64 %p01, %middle.low
  %other.high = lshr i64 %other, 32
  %low = mul i64 %a, %b
  %top0 = add i64 %p11, %middle.high
  %top1 = add i64 %top0, %other.high
  %cross0 = mul i64 %a, %b.high
  %cross1 = mul i64 %a.high, %b
  %top2 = add i64 %top1, %cross0
  %high = add i64 %top2, %cross1
  store i64 %low, ptr %out
  %out.high = getelementptr i64, ptr %out, i64 1
  store i64 %high, ptr %out.high
  ret void
}}
"""


class Place(NamedTuple):
    """An array in the static buffers of a module."""

    name: str
    type: TensorType
    address: int


class WasmModule(NamedTuple):
    """A WebAssembly module, and the addresses in its memory."""

    code: bytes
    arguments: list[Place]
    state: list[Place]
    results: list[Place]
    state_address: int
    arena: int


def module(made: Program, interface: Interface, constants: Sequence[Array], target: Target) -> WasmModule:
    uses_wide = any("i128" in text or "mul.with.overflow.i64" in text for text in made.texts)
    more = [*([ALLOCATOR] if any("@realloc(" in text for text in made.texts) else []), *([PRODUCT] if uses_wide else [])]
    parsed = _Object(object_code(made, interface, constants, target, more, [WIDE] if uses_wide else []))
    stack = _aligned(parsed.data_end + FRAMES + sum(map(_reserved, made.texts)))
    at = stack

    def buffer(nbytes: int) -> int:
        nonlocal at
        address, at = at, _aligned(at + nbytes)
        return address

    arguments = [Place(s.name, s.type, buffer(s.type.nbytes)) for s in interface.arguments]
    state_address = buffer(interface.state_bytes)
    state = [Place(f.name, f.type, state_address + f.offset) for f in interface.fields]
    results = [Place(s.name, s.type, buffer(s.type.nbytes)) for s in interface.results]
    arena = buffer(interface.arena_bytes)
    return WasmModule(parsed.finished(wrapper.public(interface), stack, -(-at // PAGE)), arguments, state, results, state_address, arena)


def _reserved(text: str) -> int:
    """Bytes of the stack slots of all functions: no function is active twice, so a call never has more."""
    scalars = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "float": 4, "ptr": 4}
    found = re.findall(r"= alloca (?:\[(\d+) x )?<?(?:(\d+) x )?(\w+)", text)
    return sum(int(count or 1) * int(lanes or 1) * scalars.get(kind, 8) + ALIGNMENT for count, lanes, kind in found)


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT) * ALIGNMENT


class _Reader:
    """Reads the binary format."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """An unsigned integer in LEB128."""
        out = shift = 0
        while True:
            byte = self.byte()
            out |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return out

    def signed(self) -> int:
        start = self.at
        out = self.number()
        bits = 7 * (self.at - start)
        return out - (1 << bits) if self.data[self.at - 1] & 64 else out

    def bytes(self) -> bytes:
        size = self.number()
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self) -> str:
        return self.bytes().decode()

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


class _Object:
    """The sections of an object file."""

    def __init__(self, code: bytes) -> None:
        self.head = code[:8]
        self.sections = list(_sections(code))
        self.functions: dict[str, int] = {}
        self.segments = [segment for body in self._bodies(DATA) for segment in _segments(body)]
        self.data: dict[str, int] = {}
        for body in self._bodies(CUSTOM):
            reader = _Reader(body)
            if reader.name() == "linking":
                self._read_symbols(reader)
        for body in self._bodies(IMPORT):
            self._read_imports(_Reader(body))

    @property
    def elements(self) -> int:
        """The size of the table of functions whose addresses are taken."""
        end = 1
        for body in self._bodies(ELEMENTS):
            reader = _Reader(body)
            for _ in range(reader.number()):
                start, count = _start(reader), reader.number()
                end = max(end, start + count)
                for _ in range(count):
                    reader.number()
        return end

    @property
    def data_end(self) -> int:
        return max((start + size for start, size in self.segments), default=0)

    def _bodies(self, kind: int) -> list[bytes]:
        return [body for each, body in self.sections if each == kind]

    def _read_imports(self, reader: _Reader) -> None:
        for _ in range(reader.number()):
            _, name, kind = reader.name(), reader.name(), reader.byte()
            if kind == TABLE_KIND:
                reader.byte()
                _limits(reader)
            elif kind == MEMORY_KIND:
                _limits(reader)
            elif kind == GLOBAL_KIND and name == "__stack_pointer":
                reader.at += 2
            else:
                raise UnsupportedError(f"export: code for wasm32 needs {name}, which is not to be had")

    def _read_symbols(self, reader: _Reader) -> None:
        reader.number()  # version
        while reader.more:
            kind, body = reader.byte(), _Reader(reader.bytes())
            if kind != SYMBOLS:
                continue
            for _ in range(body.number()):
                self._read_symbol(body)

    def _read_symbol(self, body: _Reader) -> None:
        kind, flags = body.byte(), body.number()
        if kind == DATA_SYMBOL:
            name = body.name()
            if not flags & UNDEFINED:
                segment, offset, _ = body.number(), body.number(), body.number()
                self.data[name] = self.segments[segment][0] + offset
            return
        index = body.number()
        if kind != SECTION_SYMBOL and (not flags & UNDEFINED or flags & EXPLICIT_NAME):
            name = body.name()
            if kind == FUNCTION_SYMBOL:
                self.functions[name] = index

    def finished(self, public: Sequence[str], stack: int, pages: int) -> bytes:
        """The module: a stack that ends at an address, and so many pages of memory."""
        addresses = [self.data[name] for name in public if name in self.data]
        exports = [_name("memory") + bytes([MEMORY_KIND, 0])]
        count = 1  # the stack pointer is the first global
        for name in public:
            if name in self.data:
                exports.append(_name(name) + bytes([GLOBAL_KIND]) + _leb(count))
                count += 1
            else:
                exports.append(_name(name) + bytes([FUNCTION_KIND]) + _leb(self.functions[name]))
        added = {
            TABLE: _vector([bytes([FUNCREF, 0]) + _leb(self.elements)]),
            MEMORY: _vector([b"\0" + _leb(pages)]),
            GLOBAL: _vector([_global(stack, True), *(_global(address, False) for address in addresses)]),
            EXPORT: _vector(exports),
        }
        out = self.head
        for kind, body in self.sections:
            if kind in (CUSTOM, IMPORT):
                continue
            for each in [k for k in added if k < (9 if kind == 12 else kind)]:  # the count of data segments, 12, comes after the elements
                out += _section(each, added.pop(each))
            out += _section(kind, body)
        return out


def _sections(code: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(code)
    reader.at = 8
    while reader.more:
        yield reader.byte(), reader.bytes()


def _segments(body: bytes) -> Iterator[tuple[int, int]]:
    """Address and size of the data segments."""
    reader = _Reader(body)
    for _ in range(reader.number()):
        start = _start(reader)
        yield start, len(reader.bytes())


def _start(reader: _Reader) -> int:
    """Where a segment of data or elements begins."""
    if reader.number() != 0 or reader.byte() != CONST:
        raise AdjitError("export: LLVM made a segment of an unknown kind")
    start = reader.signed()
    reader.byte()  # the end of the expression
    return start


def _limits(reader: _Reader) -> None:
    has_maximum = reader.byte() & 1
    for _ in range(1 + has_maximum):
        reader.number()


def _leb(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _signed_leb(number: int) -> bytes:
    """Of an address, as an i32."""
    out = bytearray()
    while True:
        byte, number = number & 127, number >> 7
        if number == 0 and not byte & 64:
            return bytes([*out, byte])
        out.append(byte | 128)


def _name(text: str) -> bytes:
    return _leb(len(text.encode())) + text.encode()


def _vector(items: Sequence[bytes]) -> bytes:
    return _leb(len(items)) + b"".join(items)


def _section(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + _leb(len(body)) + body


def _global(value: int, mutable: bool) -> bytes:
    return bytes([I32, mutable, CONST]) + _signed_leb(value) + bytes([END])
