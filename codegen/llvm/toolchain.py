"""LLVM set-up: the target machine, and text IR to linked native code.

LLVM is loaded by the first compilation (`binding.py`), not by `import adjit`. Our kernels are explicit vector code, so no optimisation
pipeline runs: the back end alone gives the same speed at half the compile time. Very large modules get a cheaper back-end level, because
instruction selection and register allocation are super-linear in the size of a basic block.

Every module has an LLVM context of its own, and a machine to itself while it is compiled: threads compile side by side (`workers.py`).
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from adjit.ir.errors import AdjitError
from adjit.ir.locks import new_lock, once
from adjit.ir.records import NamedTuple
from adjit.ir.target import Target

from ..cache import disk
from . import headroom, residency
from .binding import OBJECT, PROCESS, Element, LinkName, able_to_compile, call, function, versions
from .owned import Owned, free_later
from .workers import are_busy, in_llvm, llvm_lock

LEVEL = 2  # of LLVM's back end, unless a module is very large
LINES_AT_LEVEL_2 = 6_000
LINES_AT_LEVEL_1 = 60_000
LIBRARY = "libllvmlite.so"
LIBRARIES = 256  # maximum number of libraries that one linker links

_serial = itertools.count()
_lock = new_lock()


class Host(NamedTuple):
    """The machine that this process runs on, as a target of LLVM."""

    triple: str
    cpu: str
    features: dict[str, bool]


@once
def host() -> Host:
    features = _text("GetHostCPUFeatures").split(",")  # as "+avx2,-sse4a"
    known = {name[1:]: name[0] == "+" for name in features if name}
    return Host(_text("GetProcessTriple"), _text("GetHostCPUName"), known)


class _Message:
    """A string of LLVM's, for functions that return one through an argument. (That of llvmlite may be freed twice after an interrupt.)"""

    def __init__(self) -> None:
        self._pointer = ctypes.c_char_p()
        self._as_parameter_ = ctypes.byref(self._pointer)
        free_later(self, [partial(function("DisposeString"), self._pointer)])

    def __str__(self) -> str:
        return (self._pointer.value or b"").decode(errors="replace")


def _text(name: str, *arguments: Any) -> str:
    """The text that a function writes to its last argument."""
    call(name, *arguments, text := _Message())
    return str(text)


def _new_machine(target: Target, level: int) -> Owned:
    """As `create_target_machine(cpu=target.cpu, features=target.features, opt=level, jit=True)` of llvmlite."""
    triple = target.triple + "-elf" * (os.name == "nt")  # where the linker supports only ELF
    texts = [text.encode() for text in (triple, target.cpu, target.features, "default", "jitdefault", "")]
    known = call("GetTargetFromTriple", target.triple.encode(), message := _Message())  # lives as long as LLVM
    if not known:
        raise AdjitError(f"LLVM has no code generator for {target.triple}: {message}")
    arguments = (known, *texts[:3], level, *texts[3:5], 0, 1, texts[5])
    with llvm_lock:
        machine = Owned(function("CreateTargetMachine"), arguments, function("DisposeTargetMachine"))
    if not machine:
        raise AdjitError(f"LLVM could not make a code generator for {target.triple}")
    return machine


_machines: defaultdict[tuple[Target, int], list[Owned]] = defaultdict(list)  # not in use


@contextmanager
def _machine(target: Target, level: int) -> Iterator[Owned]:
    """A code generator, for one thread at a time."""
    try:
        machine = _machines[target, level].pop()
    except IndexError:
        machine = _new_machine(target, level)
    try:
        yield machine
    finally:
        _machines[target, level].append(machine)


@once
def _layout(target: Target) -> str:
    with _machine(target, 2) as machine:
        data = Owned(function("CreateTargetMachineData"), (machine,), function("DisposeTargetData"))
        return _text("CopyStringRepOfTargetData", data)


@lru_cache(maxsize=1)
def _linker(generation: int) -> Owned:
    """The linker; call with `_lock` held.

    LLVM keeps 9 kB for each library ever linked until the linker itself is freed, so a new linker is made now and then. Its libraries
    keep it alive.
    """
    triple, cpu, _ = host()
    machine = _new_machine(Target(triple, cpu), 2)
    arguments = (machine, False, False, message := _Message())
    with llvm_lock:
        linker = Owned(function("CreateLLJITCompiler"), arguments, function("LLJITDispose"))
    if not linker:
        raise AdjitError(f"LLVM could not make a linker: {message}")
    return linker


@contextmanager
def _parsed(text: str, target: Target) -> Iterator[Any]:
    """The module of a text, in a context of its own, which frees it when the block ends."""
    able_to_compile()
    text = f'target triple = "{target.triple}"\ntarget datalayout = "{_layout(target)}"\n{text}'
    with llvm_lock:
        context = Owned(function("ContextCreate"), (), function("ContextDispose"))
    module = call("ParseAssembly", context, text.encode(), message := _Message())
    if not module or call("VerifyModule", module, message := _Message()):  # invalid IR would abort the process later
        raise AdjitError(f"the code generator made invalid LLVM IR: {message}")
    yield module


ASSEMBLY, CODE = range(2)  # what LLVM emits


def _emit(machine: Owned, module: Any, kind: int) -> bytes:
    """As `emit_object` of llvmlite, which would hold a lock meanwhile: other threads could not compile."""
    arguments = (machine, module, kind, message := _Message())
    buffer = Owned(function("TargetMachineEmitToMemory"), arguments, function("DisposeMemoryBuffer"))
    if not buffer:
        raise AdjitError(f"LLVM could not compile a module: {message}")
    return ctypes.string_at(call("GetBufferStart", buffer), call("GetBufferSize", buffer))


def level_for(text: str) -> int:
    lines = text.count("\n")
    return LEVEL if lines <= LINES_AT_LEVEL_2 else 1 if lines <= LINES_AT_LEVEL_1 else 0


class Object(NamedTuple):
    """Object code, and the name under which it is stored on disk."""

    key: bytes
    code: bytes


def assemble(text: str, target: Target, level: int | None = None) -> Object:
    """Object code of a module, at the level that suits its size unless `level` is given."""
    level = level_for(text) if level is None else level
    key = disk.key(text, *target.key, f"level {level}", versions())
    return Object(key, disk.cached(key, lambda: compiled(text, target, level)))


@in_llvm
def compiled(text: str, target: Target, level: int) -> bytes:
    headroom.require(headroom.COMPILING + headroom.PER_BYTE * len(text), "compiling a function")
    with _machine(target, level) as machine, _parsed(text, target) as module:
        return _emit(machine, module, CODE)


@in_llvm
def assembly(text: str, target: Target, level: int = LEVEL) -> str:
    """The same as readable assembly; `level` is the highest to use."""
    with _machine(target, min(level, level_for(text))) as machine, _parsed(text, target) as module:
        out = _emit(machine, module, ASSEMBLY).decode()
    if not target.debug_lines:
        return out
    from .debug_lines import without_tables  # noqa: PLC0415 - only for these programs

    return without_tables(out)


def rest(always: bool = False) -> None:
    """Release the memory of LLVM's code after a compilation, unless a thread is still compiling. `always`: also if it was just released."""
    if not are_busy():
        residency.give_back(LIBRARY, always)


class Library:
    """Linked native code; its addresses are valid while it lives."""

    @in_llvm
    def __init__(self, objects: Iterable[Object], exports: Iterable[str], imports: Mapping[str, int]) -> None:
        headroom.require(headroom.LINKING, "linking compiled code")
        parts = [each.code for each in objects]
        elements = [Element(PROCESS, b"", 0), *(Element(OBJECT, code, len(code)) for code in parts)]
        imported = [LinkName(name.encode(), address) for name, address in imports.items()]
        exported = [LinkName(name.encode(), 0) for name in exports]
        tables = [_table(Element, elements), _table(LinkName, imported), _table(LinkName, exported)]
        lists = [each for table in tables for each in (table, len(table))]
        with _lock:
            serial = next(_serial)
            arguments = (_linker(serial // LIBRARIES), b"adjit%d" % serial, *lists, message := _Message())
            link, unload = function("LLJIT_Link"), function("LLJIT_Dylib_Tracker_Dispose")
            with llvm_lock:
                self._tracker = Owned(link, arguments, unload, ctypes.pointer(ctypes.c_char_p()))
        if not self._tracker:
            raise AdjitError(f"LLVM could not link a library: {message}")
        self.address = {each.name.decode(): int(each.address) for each in tables[-1]}


def _table(kind: Any, rows: list[Any]) -> Any:
    return (kind * len(rows))(*rows)
