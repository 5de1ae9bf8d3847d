"""Descriptions of compiled code for Linux's `perf`, for programs that record the user's lines.

- Names of functions, in the text file where it looks for them: /tmp/perf-PID.map.
- Names, instructions and lines, in a binary file jit-PID.dump, which `perf inject --jit` makes into object files with debug information.
  Its format is specified in the sources of Linux (tools/perf/Documentation/jitdump-specification.txt). `perf record` finds the file because
  this process maps it as executable. CPython writes one for its own functions to /tmp, so ours is in a folder beside that.

GDB needs none of this: LLVM's linker registers each object with it.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import stat
import struct
import sys
import tempfile
import threading
import time
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter

from adjit.ir.locks import new_lock

from .elf import Elf, Placed
from .line_table import LineRow, rows_of

APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
REWRITE = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
JITDUMP, VERSION = 0x4A695444, 1  # "JiTD"
LOAD, LINES = 0, 2  # kinds of records
HEADER, RECORD = struct.Struct("<IIIIIIQQ"), struct.Struct("<IIQ")

_lock = new_lock()


def write(program: str, objects: Iterable[bytes], addresses: Mapping[str, int]) -> None:
    """Tell perf about the functions of a linked program. `addresses` has some function of every object."""
    if sys.platform != "linux":
        return
    parsed = [Elf(code) for code in objects]
    functions = [(elf, list(elf.placed(addresses))) for elf in parsed]
    names = "".join(f"{at.address:x} {at.symbol.size:x} {program}.{at.symbol.name}\n" for _, found in functions for at in found)
    _append(f"/tmp/perf-{os.getpid()}.map", names.encode("utf-8", "replace"))
    with _lock:
        dump = _current_dump(parsed[0].machine) if parsed else None
        if dump is not None:
            for elf, found in functions:
                dump.add(program, found, rows_of(elf))


def _append(path: str, content: bytes) -> None:
    with suppress(OSError):  # such as a link that another user has created there
        file = os.open(path, APPEND, 0o600)
        try:
            os.write(file, content)
        finally:
            os.close(file)


class JitDump:
    """The binary file of one process."""

    def __init__(self, folder: str, machine: int) -> None:
        self.pid = os.getpid()
        self.path = os.path.join(folder, f"jit-{self.pid}.dump")
        self._numbers = itertools.count()
        file = os.open(self.path, REWRITE, 0o600)
        try:
            os.write(file, HEADER.pack(JITDUMP, VERSION, HEADER.size, machine, 0, self.pid, time.monotonic_ns(), 0))
            # perf records the name of a file when code is mapped from it
            self._map = mmap.mmap(file, HEADER.size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        finally:
            os.close(file)

    def add(self, program: str, functions: Iterable[Placed], rows: Iterable[LineRow]) -> None:
        lines = defaultdict(list)
        for row in sorted(rows, key=attrgetter("section", "offset")):  # stable: the last of several at one place counts
            if row.line:
                lines[row.section].append(row)
        records = b"".join(record for function in functions for record in self._records(program, function, lines[function.symbol.section]))
        _append(self.path, records)

    def _records(self, program: str, function: Placed, rows: Sequence[LineRow]) -> Iterator[bytes]:
        """The records of a function; `rows` are those of its section, in order."""
        symbol, address = function
        start, stop = (bisect_left(rows, offset, key=attrgetter("offset")) for offset in (symbol.offset, symbol.offset + symbol.size))
        within = rows[start:stop]
        if within:  # they come before the code that they belong to
            last = within[-1]._replace(offset=symbol.offset + symbol.size)  # for perf, lines end at the last entry
            yield _record(LINES, struct.pack("<QQ", address, len(within) + 1) + b"".join(_entries(function, [*within, last])))
        where = self.pid, threading.get_native_id(), address, address, symbol.size, next(self._numbers)
        name = f"{program}.{symbol.name}".encode("utf-8", "replace")
        yield _record(LOAD, struct.pack("<IIQQQQ", *where) + name + b"\0" + ctypes.string_at(address, symbol.size))


def _record(kind: int, content: bytes) -> bytes:
    return RECORD.pack(kind, RECORD.size + len(content), time.monotonic_ns()) + content


def _entries(function: Placed, rows: Iterable[LineRow]) -> Iterator[bytes]:
    for row in rows:
        address = function.address + row.offset - function.symbol.offset
        yield struct.pack("<QII", address, row.line, row.column) + os.fsencode(row.file) + b"\0"


_dump: JitDump | None = None
_failed = False


def _current_dump(machine: int) -> JitDump | None:
    """The file of this process, which a fork does not inherit. If it cannot be created, a warning says so once."""
    global _dump, _failed
    if _dump is not None and _dump.pid != os.getpid():
        _dump = None
    if _dump is None and not _failed:
        try:
            _dump = JitDump(_folder(), machine)
        except OSError as error:
            _failed = True
            warnings.warn(
                f"perf will not show the lines of compiled functions: {error}. Another TMPDIR may help", RuntimeWarning, stacklevel=2
            )
    return _dump


def _folder() -> str:
    """A folder that only this user can access; `perf inject` puts object files there too."""
    path = os.path.join(tempfile.gettempdir(), f"adjit-perf-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{path} belongs to another user, or others may write to it")
    return path
