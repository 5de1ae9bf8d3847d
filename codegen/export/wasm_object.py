"""Reads the WebAssembly object file that LLVM makes of one module, and completes it to a module that can be run.

See `wasm.py` for what an object file lacks, and why nothing needs to be moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adjit.ir.errors import AdjitError, UnsupportedError

CUSTOM, IMPORT, TABLE, MEMORY, GLOBAL, EXPORT, ELEMENTS, DATA = 0, 2, 4, 5, 6, 7, 9, 11  # ids of sections
FUNCTION_KIND, TABLE_KIND, MEMORY_KIND, GLOBAL_KIND = range(4)
SYMBOLS = 8  # sub-section of the linking section
FUNCTION_SYMBOL, DATA_SYMBOL, SECTION_SYMBOL = 0, 1, 3
UNDEFINED, EXPLICIT_NAME = 0x10, 0x40
I32, FUNCREF, CONST, END = 0x7F, 0x70, 0x41, 0x0B


class _WasmReader:
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


class ObjectFile:
    """The sections of an object file."""

    def __init__(self, code: bytes) -> None:
        self.head = code[:8]
        self.sections = list(_sections(code))
        self.functions: dict[str, int] = {}
        self.segments = [segment for body in self._bodies(DATA) for segment in _segments(body)]
        self.data: dict[str, int] = {}
        for body in self._bodies(CUSTOM):
            reader = _WasmReader(body)
            if reader.name() == "linking":
                self._read_symbols(reader)
        for body in self._bodies(IMPORT):
            self._read_imports(_WasmReader(body))

    @property
    def elements(self) -> int:
        """The size of the table of functions whose addresses are taken."""
        end = 1
        for body in self._bodies(ELEMENTS):
            reader = _WasmReader(body)
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

    def _read_imports(self, reader: _WasmReader) -> None:
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
                raise UnsupportedError(f"export: code for wasm32 needs {name}, which is not available")

    def _read_symbols(self, reader: _WasmReader) -> None:
        reader.number()  # version
        while reader.more:
            kind, body = reader.byte(), _WasmReader(reader.bytes())
            if kind != SYMBOLS:
                continue
            for _ in range(body.number()):
                self._read_symbol(body)

    def _read_symbol(self, body: _WasmReader) -> None:
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
        """The finished module. `stack`: the address at which the stack ends; `pages`: the size of its memory."""
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
    reader = _WasmReader(code)
    reader.at = 8
    while reader.more:
        yield reader.byte(), reader.bytes()


def _segments(body: bytes) -> Iterator[tuple[int, int]]:
    """Address and size of the data segments."""
    reader = _WasmReader(body)
    for _ in range(reader.number()):
        start = _start(reader)
        yield start, len(reader.bytes())


def _start(reader: _WasmReader) -> int:
    """Where a segment of data or elements begins."""
    if reader.number() != 0 or reader.byte() != CONST:
        raise AdjitError("export: LLVM made a segment of an unknown kind")
    start = reader.signed()
    reader.byte()  # the end of the expression
    return start


def _limits(reader: _WasmReader) -> None:
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
    """An address as a signed i32 in LEB128."""
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
