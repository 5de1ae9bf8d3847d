"""Releases the memory of LLVM's own code and heap while nothing is being compiled.

Loading llvmlite runs hundreds of constructors all over its 80 MB of machine code, and every compilation executes much of it. The pages stay
mapped, and count as memory of the process, although they are only a copy of the file: releasing them costs a millisecond, and pages needed
again come from the file cache. Memory that LLVM allocated and freed is released too, if the allocator supports it. On systems other than
Linux, nothing is released.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
import time
from contextlib import suppress

from adjit.ir.locks import once

DONTNEED = 4  # madvise: drop the pages; unmodified file pages are read again when accessed
LOAD, WRITE = 1, 2  # of an ELF segment: its type, and a flag
REST = 0.25  # minimum seconds between two releases, so that programs that compile all the time are not slowed down

_last = 0.0


def give_back(library: str, always: bool = False) -> None:
    """Drop the code and constant pages of a loaded library, given by its file name, and release free heap memory."""
    global _last
    if sys.platform != "linux" or not (always or time.monotonic() - _last > REST):
        return
    if not always:
        _last = time.monotonic()
    if _is_traced():
        return
    process = ctypes.CDLL(None)
    for start, size in _unwritten(library):
        process.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), DONTNEED)
    trim = getattr(process, "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(ctypes.c_size_t(0))


def _is_traced() -> bool:
    """Whether a debugger is attached: the breakpoints that it has set are in these pages, and would be lost with them."""
    with suppress(OSError), open("/proc/self/status", "rb") as status:
        return any(line.startswith(b"TracerPid:") and line.split()[1] != b"0" for line in status)
    return False


@once
def _unwritten(library: str) -> list[tuple[int, int]]:
    """Start and size of the segments that are never written, not even by the linker: code and constants, identical to the file."""
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            span, _, offset, *rest = line.split()
            if rest[-1].endswith(f"/{library}") and int(offset, 16) == 0:
                base = int(span.split("-")[0], 16)
                return [(base + at, size) for at, size in _segments(rest[-1])]
    return []


def _segments(path: str) -> list[tuple[int, int]]:
    """Addresses of the read-only segments of a 64-bit ELF file, in whole pages; none for other files."""
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            return []
        table, entry, count = (*struct.unpack_from("<Q", header, 32), *struct.unpack_from("<HH", header, 54))
        file.seek(table)
        entries = [struct.unpack_from("<IIQQQQQ", file.read(entry)) for _ in range(count)]
    spans = [(at, at + size) for kind, flags, _, at, _, _, size in entries if kind == LOAD and not flags & WRITE]
    page = mmap.PAGESIZE
    whole = [(-(-start // page) * page, stop // page * page) for start, stop in spans]
    return [(start, stop - start) for start, stop in whole if start < stop]
