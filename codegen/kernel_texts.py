"""LLVM IR and assembly of a compiled function, kernel by kernel, with the statements that each kernel computes."""

from __future__ import annotations

import re
from functools import partial

from adjit.ir.func import Func, Stmt
from adjit.ir.records import NamedTuple
from adjit.ir.target import Target

from .kernels.kernel import Kernel
from .llvm import toolchain as llvm
from .llvm.debug_lines import Place, files_of, located, owner
from .llvm.parts import Texts
from .llvm.workers import Later
from .main.module import Module

LABEL = re.compile(r"^([A-Za-z_][\w.$]*):", re.MULTILINE)
NOISE = re.compile(r"\t\.(?:cfi|size|type|p2align|section|globl|hidden|text|file|ident|addrsig)")
DEFINED = re.compile(r"^define [^@]*@([\w.$]+)\(", re.MULTILINE)


class KernelText(NamedTuple):
    """A kernel: its function, and the statements that call it."""

    name: str
    stmts: tuple[Stmt, ...]
    llvm: str
    asm: str
    places: tuple[Place | None, ...] = ()  # the line of source of each line of the assembly, if lines are recorded


class RecordingModule(Module):
    """A module that remembers which statement calls which function."""

    def __init__(self, func: Func, target: Target) -> None:
        super().__init__(func, target)
        self.parts = Texts(target, self.level)
        self.calls: dict[str, list[Stmt]] = {}

    def function(self, kernel: Kernel) -> str:
        name = super().function(kernel)
        if self.stmt is not None:
            self.calls.setdefault(name, []).append(self.stmt)
        return name


def kernel_texts(func: Func, target: Target) -> list[KernelText]:
    """The kernels of an optimised Func, in the order of their first calls. Generates its code anew, without compiling objects."""
    module = RecordingModule(func, target)
    module.build()
    sources: dict[str, list[str]] = {}
    codes: dict[str, list[tuple[str, Place | None]]] = {}
    assemblies = [Later(partial(llvm.assembly, text, target, module.level)) for text in module.parts.texts]
    for text, assembly in zip(module.parts.texts, assemblies, strict=True):
        for name, part in cut(text, DEFINED):
            sources.setdefault(owner(name), []).append(part.split("\n}\n", 1)[0] + "\n}")
        code = assembly.result()
        files = files_of(code) if target.debug_lines else {}
        for name, part in cut(code, LABEL):
            lines = [line for line in part.splitlines() if not NOISE.match(line) and line.strip()]
            known = codes.setdefault(owner(name), [])
            known += [("", None)] * bool(known) + (located(lines, files) if files else [(line, None) for line in lines])
    return [_text(name, stmts, sources.get(name, []), codes.get(name, [])) for name, stmts in module.calls.items()]


def _text(name: str, stmts: list[Stmt], source: list[str], code: list[tuple[str, Place | None]]) -> KernelText:
    places = tuple(place for _, place in code)
    return KernelText(name, tuple(stmts), "\n\n".join(source), "\n".join(line for line, _ in code), places if any(places) else ())


def cut(text: str, head: re.Pattern[str]) -> list[tuple[str, str]]:
    """The parts of a text that begin with a head, with its name."""
    found = list(head.finditer(text))
    ends = [*(m.start() for m in found[1:]), len(text)]
    return [(m[1], text[m.start() : end]) for m, end in zip(found, ends)]
