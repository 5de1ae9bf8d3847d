"""The lines of an object's instructions, from its table in DWARF 4 (`.debug_line`), which `debug_lines.py` has asked LLVM for.

The table is a program for a small machine with an address, a file and a line: its opcodes change these and append rows.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from adjit.ir.records import NamedTuple

from .elf import Elf

VERSION = 4
TABLE = ".debug_line"
COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN = 1, 2, 3, 4, 5  # the standard opcodes with an effect on rows
CONST_ADD_PC, FIXED_ADVANCE_PC = 8, 9
END_SEQUENCE, SET_ADDRESS = 1, 2  # extended opcodes


class LineRow(NamedTuple):
    """Instructions from this offset of a section, up to that of the next row, come from this line; line 0 is no line in particular."""

    section: int
    offset: int
    file: str
    line: int
    column: int


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def unpack(self, layout: str) -> int:
        (value,) = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return int(value)

    def unsigned(self) -> int:
        """A LEB128 number: seven bits a byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self.unpack("B")
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self) -> int:
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        end = self.data.index(0, self.at)
        found, self.at = self.data[self.at : end], end + 1
        return os.fsdecode(found)

    def texts(self) -> Iterator[str]:
        """Strings up to an empty one."""
        while text := self.text():
            yield text


def rows_of(elf: Elf) -> list[LineRow]:
    """All rows, in the order of the table."""
    data, places = elf.section(TABLE), elf.relocations(TABLE)
    rows: list[LineRow] = []
    at = 0
    while at < len(data):
        unit = _Reader(data, at)
        at = unit.unpack("I") + unit.at
        version = unit.unpack("H")
        assert version == VERSION, f"a line table of DWARF {version}"
        rows += _run(unit, at, places)
    return rows


def _run(unit: _Reader, end: int, places: dict[int, tuple[int, int]]) -> Iterator[LineRow]:
    """The rows of one unit, whose header is read from after its version on."""
    program = unit.unpack("I") + unit.at
    step, _, _, base, width, first = (unit.unpack(layout) for layout in "BBBbBB")
    operands = [unit.unpack("B") for _ in range(first - 1)]
    folders = ["", *unit.texts()]
    files = [os.path.join(folders[folder], name) for name, folder in _files(unit)]
    unit.at = program
    section, offset, file, line, column = 0, 0, 1, 1, 0
    while unit.at < end:
        opcode = unit.unpack("B")
        if opcode >= first:
            advance, change = divmod(opcode - first, width)
            offset += step * advance
            line += base + change
            yield LineRow(section, offset, files[file - 1], line, column)
        elif opcode == 0:
            following = unit.unsigned() + unit.at
            kind = unit.unpack("B")
            if kind == END_SEQUENCE:
                section, offset, file, line, column = 0, 0, 1, 1, 0
            elif kind == SET_ADDRESS:
                section, offset = places[unit.at]
            unit.at = following
        elif opcode == COPY:
            yield LineRow(section, offset, files[file - 1], line, column)
        elif opcode == ADVANCE_PC:
            offset += step * unit.unsigned()
        elif opcode == ADVANCE_LINE:
            line += unit.signed()
        elif opcode == SET_FILE:
            file = unit.unsigned()
        elif opcode == SET_COLUMN:
            column = unit.unsigned()
        elif opcode == CONST_ADD_PC:
            offset += step * ((255 - first) // width)
        elif opcode == FIXED_ADVANCE_PC:
            offset += unit.unpack("H")
        else:
            for _ in range(operands[opcode - 1]):
                unit.unsigned()


def _files(unit: _Reader) -> Iterator[tuple[str, int]]:
    """Names of files, and the numbers of their folders."""
    for name in unit.texts():
        folder, _, _ = unit.unsigned(), unit.unsigned(), unit.unsigned()
        yield name, folder
