"""The parts of an object file that debuggers and profilers need: its functions, sections and relocations.

Reads 64-bit ELF files of little-endian machines, which is what LLVM's linker takes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from adjit.ir.records import NamedTuple

MAGIC = b"\x7fELF\x02\x01"
SYMTAB, RELA = 2, 4  # types of sections
FUNCTION = 2  # a type of symbols


class Section(NamedTuple):
    name: str
    kind: int
    start: int
    size: int
    link: int  # of a table: the section that it refers to
    info: int  # of relocations: the section that they change


class ElfSymbol(NamedTuple):
    """A symbol: its section, and its offset and size there."""

    name: str
    kind: int
    section: int
    offset: int
    size: int


class Placed(NamedTuple):
    """A function of linked code, and its symbol in the object."""

    symbol: ElfSymbol
    address: int


class Elf:
    """An object file. Other data count as a file without sections."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        self.sections: list[Section] = []
        self.machine = 0
        if code[:6] != MAGIC:
            return
        (self.machine,) = struct.unpack_from("<H", code, 18)
        (table,), (size, count, names) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<HHH", code, 58)
        rows = [struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
        for name, kind, _, _, start, length, link, info, *_ in rows:
            self.sections.append(Section(self._text(rows[names][4] + name), kind, start, length, link, info))

    def _text(self, at: int) -> str:
        return self.code[at : self.code.index(0, at)].decode("utf-8", "replace")

    def symbols(self) -> list[ElfSymbol]:
        found = []
        for table in self.sections:
            if table.kind == SYMTAB:
                for name, info, _, section, offset, size in struct.iter_unpack("<IBBHQQ", self._bytes(table)):
                    text = self._text(self.sections[table.link].start + name)
                    found.append(ElfSymbol(text, info & 15, section, offset, size))
        return found

    def section(self, name: str) -> bytes:
        """The contents of a section; empty if there is none of this name."""
        return next((self._bytes(each) for each in self.sections if each.name == name), b"")

    def relocations(self, name: str) -> dict[int, tuple[int, int]]:
        """The addresses that a section mentions: where in it, and the section and offset that each refers to."""
        symbols = self.symbols()
        found = {}
        for table in self.sections:
            if table.kind == RELA and self.sections[table.info].name == name:
                for at, info, addend in struct.iter_unpack("<QQq", self._bytes(table)):
                    symbol = symbols[info >> 32]
                    found[at] = symbol.section, symbol.offset + addend
        return found

    def placed(self, addresses: Mapping[str, int]) -> Iterator[Placed]:
        """The functions of a linked object, internal ones too: they lie in the same sections as those whose addresses are known."""
        functions = [s for s in self.symbols() if s.kind == FUNCTION and s.section]
        bases = {s.section: addresses[s.name] - s.offset for s in functions if s.name in addresses}
        for s in functions:
            if s.section in bases:
                yield Placed(s, bases[s.section] + s.offset)

    def _bytes(self, section: Section) -> bytes:
        return self.code[section.start : section.start + section.size]
