"""Lines of the user's source in LLVM text, for debuggers, profilers and the explorer page. Off unless the target enables it.

While a function is emitted, `Marked` ends each instruction with a comment that numbers its location. `annotated` turns these comments into
the debug metadata of LLVM once a module is complete:

    %v4 = fadd float %v3, %v2 ;@17      ->      %v4 = fadd float %v3, %v2, !dbg !9

Kernels that differ only in their lines are different functions. Functions without any marked instruction, such as vector math that is
called and products of matrices, get no metadata.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from adjit.ir.location import Location

from .marks import locations

MARK = re.compile(r" ;@(\d+)$")
FILE = re.compile(r'^\t\.file\t(\d+) "((?:[^"\\]|\\.)*)"(?: "((?:[^"\\]|\\.)*)")?', re.MULTILINE)
LOC = re.compile(r"\t\.loc\t(\d+) (\d+)")
DIRECTIVE = re.compile(r"\t\.file\t|\.L(?:tmp|func_begin|func_end)\d+:")
KERNEL = re.compile(r"^define hidden (?=\w+ @k\d+\()")
HEADER = re.compile(r"^define .*@([\w.$]+)\(.* \{$")

Place: TypeAlias = tuple[str, int]  # a file, and a line of it


def owner(name: str) -> str:
    """The kernel that a function is part of: bodies of threads are `k3.chunk0`."""
    return name.partition(".")[0]


def annotated(text: str) -> str:
    """A module's text with debug metadata instead of marks."""
    lines = text.split("\n")
    first = _first_lines(lines)
    out, data = [], _Metadata()
    scope, here = -1, None
    inside = False
    for line in lines:
        header = HEADER.match(line)
        if header is not None:
            inside, here = True, first.get(header[1]) or first.get(owner(header[1]))
            scope = -1 if here is None else data.function(header[1], here)
            line = _visible(line)
            out.append(line if here is None else f"{line[:-2]} !dbg !{scope} {{")
        elif not inside or here is None or not line or line.endswith(":"):
            out.append(line)
        elif line == "}":
            inside = False
            out.append(line)
        else:
            mark = MARK.search(line)
            if mark is not None:
                line, here = line[: mark.start()], locations[int(mark[1])]
            out.append(f"{line}, !dbg !{data.place(here, scope)}")
    return "\n".join([*out, *(data.lines() if data.unit else [])])


def _first_lines(lines: Iterable[str]) -> dict[str, Location]:
    """The first location in each function that has one."""
    found: dict[str, Location] = {}
    name = ""
    for line in lines:
        header = HEADER.match(line)
        if header is not None:
            name = header[1]
        elif name not in found and (mark := MARK.search(line)) is not None:
            found[name] = locations[int(mark[1])]
    return found


def _visible(header: str) -> str:
    """Kernels are exported, so that their addresses can be found."""
    return KERNEL.sub("define ", header)


class _Metadata:
    """The metadata of one module, numbered from 1 on: !0 is the weight of branches (`stopping.py`)."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.known: dict[tuple[object, ...], int] = {}
        self.unit = ""

    def add(self, node: str) -> int:
        self.nodes.append(node)
        return len(self.nodes)

    def file(self, name: str) -> int:
        if ("file", name) not in self.known:
            folder, base = os.path.split(name)
            self.known["file", name] = self.add(f'!DIFile(filename: "{_escaped(base)}", directory: "{_escaped(folder)}")')
        return self.known["file", name]

    def function(self, symbol: str, at: Location) -> int:
        """A subprogram, named after the user's function and the kernel. Every one belongs to the unit of the first one's file."""
        file = self.file(at.file)
        if not self.unit:
            kind = "isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug"
            # it has no folder: files that lie in the unit's own folder would be listed without theirs in the table of lines
            whole = self.add(f'!DIFile(filename: "{_escaped(at.file)}", directory: "")')
            unit = self.add(f'distinct !DICompileUnit(language: DW_LANG_Python, file: !{whole}, producer: "adjit", {kind})')
            self.unit = f"!{unit}"
            self.type = self.add("!DISubroutineType(types: null)")
        name = f"{at.function}.{symbol}" if at.function else symbol
        flags = f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {self.unit}"
        where = f"scope: !{file}, file: !{file}, line: {at.line}, type: !{self.type}, scopeLine: {at.line}"
        scope = self.add(f'distinct !DISubprogram(name: "{_escaped(name)}", {where}, {flags})')
        self.known["scope", scope, at.file] = scope
        return scope

    def place(self, at: Location, function: int) -> int:
        key = at.file, at.line, at.column, function
        if key not in self.known:
            scope = self.scope(at.file, function)
            self.known[key] = self.add(f"!DILocation(line: {at.line}, column: {at.column}, scope: !{scope})")
        return self.known[key]

    def scope(self, file: str, function: int) -> int:
        """The function, or a part of it that comes from another file."""
        key = "scope", function, file
        if key not in self.known:
            self.known[key] = self.add(f"!DILexicalBlockFile(scope: !{function}, file: !{self.file(file)}, discriminator: 0)")
        return self.known[key]

    def lines(self) -> list[str]:
        version, dwarf = self.add('!{i32 2, !"Debug Info Version", i32 3}'), self.add('!{i32 7, !"Dwarf Version", i32 4}')
        head = [f"!llvm.dbg.cu = !{{{self.unit}}}", f"!llvm.module.flags = !{{!{version}, !{dwarf}}}"]
        return [*head, *(f"!{k} = {node}" for k, node in enumerate(self.nodes, 1)), ""]


def without_tables(assembly: str) -> str:
    """Assembly up to the debug sections: its lines are in the `.loc` directives."""
    return assembly.partition("\t.section\t.debug_")[0]


def files_of(assembly: str) -> dict[str, str]:
    """The files of an assembly text by their numbers, as `.loc` directives mention them."""
    return {m[1]: os.path.join(*(_unescaped(part) for part in (m[2], m[3]) if part is not None)) for m in FILE.finditer(assembly)}


def located(lines: Iterable[str], files: Mapping[str, str]) -> list[tuple[str, Place | None]]:
    """The lines of a function's assembly, without directives of debug information, each with the line of source that it comes from."""
    out: list[tuple[str, Place | None]] = []
    here: Place | None = None
    for line in lines:
        at = LOC.match(line)
        if at is not None:
            here = (files[at[1]], int(at[2])) if at[2] != "0" else None  # line 0: of no line in particular
        elif not DIRECTIVE.match(line):
            out.append((line, here if line.startswith("\t") else None))
    return out


def _unescaped(text: str) -> str:
    """A string of assembly: bytes that are not plain are written as three octal digits."""
    raw = re.sub(rb"\\([0-7]{3}|.)", lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else m[1], text.encode())
    return raw.decode("utf-8", "surrogateescape")


def _escaped(text: str) -> str:
    """A string of LLVM: everything but plain characters as two hexadecimal digits for each byte."""
    plain = "".join(map(chr, range(32, 127))).replace('"', "").replace("\\", "")
    return "".join(c if c in plain else "".join(f"\\{b:02X}" for b in c.encode("utf-8", "surrogateescape")) for c in text)
