"""Names of native functions for Linux's `perf`, in the file where it looks for those of compiled code: /tmp/perf-PID.map.

Written for programs that record the user's lines. GDB needs nothing of this: LLVM's linker registers each object with it.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

SYMTAB, FUNCTION = 2, 2  # the type of a section, and of a symbol


class Symbol(NamedTuple):
    """A function of an object: its section, and where in it the function lies."""

    name: str
    section: int
    offset: int
    size: int


def write(program: str, objects: Iterable[bytes], addresses: Mapping[str, int]) -> None:
    """Append the functions of a linked program, if the file can be written. `addresses` has some function of every object."""
    if sys.platform != "linux":
        return
    lines = "".join(f"{at:x} {size:x} {program}.{name}\n" for code in objects for name, at, size in placed(code, addresses))
    with suppress(OSError):  # as for a link that somebody else has put there
        file = os.open(f"/tmp/perf-{os.getpid()}.map", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, lines.encode("utf-8", "replace"))
        finally:
            os.close(file)


def placed(code: bytes, addresses: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Name, address and size of the functions of an object, internal ones too: they lie in the same sections as those that are known."""
    found = list(functions(code))
    bases = {s.section: addresses[s.name] - s.offset for s in found if s.name in addresses}
    for s in found:
        if s.section in bases:
            yield s.name, bases[s.section] + s.offset, s.size


def functions(code: bytes) -> Iterator[Symbol]:
    """The functions that an object defines; none if it is not a 64-bit ELF file of a little-endian machine."""
    if code[:6] != b"\x7fELF\x02\x01":
        return
    (table,), (size, count) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
    for _, kind, _, _, start, length, names, *_ in sections:
        if kind != SYMTAB:
            continue
        strings = sections[names][4]
        for at in range(start, start + length, 24):
            name, info, _, section, offset, nbytes = struct.unpack_from("<IBBHQQ", code, at)
            if info & 15 == FUNCTION and section:
                first = strings + name
                yield Symbol(code[first : code.index(0, first)].decode(), section, offset, nbytes)
