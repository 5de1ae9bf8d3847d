"""LLVM set-up: the target machine, and text IR to linked native code.

llvmlite is imported by the first compilation, not by `import adjit`. Our kernels are explicit vector code, so no optimisation pipeline
runs: the back end alone gives the same speed at half the compile time. Very large modules get a cheaper back-end level, because instruction
selection and register allocation are super-linear in the size of a basic block.

Every module has an LLVM context of its own, and a machine to itself while it is compiled: threads compile side by side (`workers.py`).
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from adjit.ir.errors import AdjitError
from adjit.ir.locks import new_lock, once
from adjit.ir.target import Target

from ..cache import disk
from . import headroom, residency
from .owned import Owned, free_later
from .workers import are_busy, in_llvm, llvmlite_lock

LEVEL = 2  # of LLVM's back end, unless a module is very large
LINES_AT_LEVEL_2 = 6_000
LINES_AT_LEVEL_1 = 60_000
LIBRARY = "libllvmlite.so"
LIBRARIES = 256  # that one linker links
CODE, PROCESS = 2, 3  # what a library is linked from: object code; the symbols of this process

_serial = itertools.count()
_lock = new_lock()


class Host(NamedTuple):
    """The machine that this process runs on, as LLVM knows it."""

    triple: str
    cpu: str
    features: dict[str, bool]


@once
def host() -> Host:
    features = _text("LLVMPY_GetHostCPUFeatures").split(",")  # as "+avx2,-sse4a"
    known = {name[1:]: name[0] == "+" for name in features if name}
    return Host(_text("LLVMPY_GetProcessTriple"), _text("LLVMPY_GetHostCPUName"), known)


@once
def _llvm() -> Any:
    headroom.require(headroom.LOADING, "loading LLVM")
    import llvmlite.binding as llvm  # noqa: PLC0415 - costs 130 ms: only when something is compiled

    _take_locks_directly(llvm)
    llvm.initialize_native_target()
    residency.give_back(LIBRARY, always=True)  # the constructors of all that we never use
    return llvm


def _take_locks_directly(llvm: Any) -> None:
    """llvmlite takes its lock by a method in Python, where Ctrl-C can come between the lock and the note that it is held: no thread could
    compile any more. It gets a lock whose methods are C here, unless somebody is told whenever it is taken.
    """
    with suppress(AttributeError):  # another version of llvmlite
        library = llvm.ffi.lib
        if not library._lock._cblist:
            lock = _DirectLock()
            with library._lock:
                for function in library._fntab.values():
                    function._lock = lock
                library._lock = lock


class _DirectLock(type(threading.RLock())):  # type: ignore[misc]
    """In place of llvmlite's lock. Whoever registers from now on (Numba measures how long it is held) is not told."""

    def register(self, acquired: Any, released: Any) -> None: ...
    def unregister(self, acquired: Any, released: Any) -> None: ...


@once
def _compiler() -> Any:
    """LLVM with what only compiling needs: code from the disk cache is linked without it."""
    llvm = _llvm()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    return llvm


@once
def versions() -> str:
    import llvmlite  # noqa: PLC0415 - as above

    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, _llvm().llvm_version_info))}"


@cache
def _function(name: str) -> Any:
    """A function of LLVM itself, without what llvmlite does around it in Python: `Owned` needs one that is C."""
    function = getattr(_llvm().ffi.lib, name)
    return getattr(function, "_cfn", function)


def _call(name: str, *arguments: Any) -> Any:
    with llvmlite_lock():
        return _function(name)(*arguments)


class _Message:
    """A string of LLVM's, for functions that return one through an argument. (That of llvmlite may be freed twice after an interrupt.)"""

    def __init__(self) -> None:
        self._pointer = ctypes.c_char_p()
        self._as_parameter_ = ctypes.byref(self._pointer)
        free_later(self, [partial(_function("LLVMPY_DisposeString"), self._pointer)])

    def __str__(self) -> str:
        return (self._pointer.value or b"").decode(errors="replace")


def _text(name: str, *arguments: Any) -> str:
    """What a function writes to its last argument."""
    _call(name, *arguments, text := _Message())
    return str(text)


def _new_machine(target: Target, level: int) -> Owned:
    """As `create_target_machine(cpu=target.cpu, features=target.features, opt=level, jit=True)` of llvmlite."""
    triple = target.triple + "-elf" * (os.name == "nt")  # where the linker knows ELF alone
    texts = [text.encode() for text in (triple, target.cpu, target.features, "default", "jitdefault", "")]
    known = _call("LLVMPY_GetTargetFromTriple", target.triple.encode(), message := _Message())  # lives as long as LLVM
    if not known:
        raise AdjitError(f"LLVM has no code generator for {target.triple}: {message}")
    arguments = (known, *texts[:3], level, *texts[3:5], 0, 1, texts[5])
    with llvmlite_lock():
        machine = Owned(_function("LLVMPY_CreateTargetMachine"), arguments, _function("LLVMPY_DisposeTargetMachine"))
    if not machine:
        raise AdjitError(f"LLVM could not make a code generator for {target.triple}")
    return machine


_machines: defaultdict[tuple[Target, int], list[Owned]] = defaultdict(list)  # that nobody uses at the moment


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
        data = Owned(_function("LLVMPY_CreateTargetMachineData"), (machine,), _function("LLVMPY_DisposeTargetData"))
        return _text("LLVMPY_CopyStringRepOfTargetData", data)


@lru_cache(maxsize=1)
def _linker(generation: int) -> Owned:
    """The linker; call with `_lock` held.

    LLVM keeps 9 kB of each library that was ever linked until the linker itself goes, so there is a new one now and then. Its libraries
    keep it.
    """
    triple, cpu, _ = host()
    machine = _new_machine(Target(triple, cpu), 2)
    arguments = (machine, False, False, message := _Message())
    with llvmlite_lock():
        linker = Owned(_function("LLVMPY_CreateLLJITCompiler"), arguments, _function("LLVMPY_LLJITDispose"))
    if not linker:
        raise AdjitError(f"LLVM could not make a linker: {message}")
    return linker


@contextmanager
def _parsed(text: str, target: Target) -> Iterator[Any]:
    """The module of a text, in a context of its own, which frees it when the block ends."""
    _compiler()
    text = f'target triple = "{target.triple}"\ntarget datalayout = "{_layout(target)}"\n{text}'
    with llvmlite_lock():
        context = Owned(_function("LLVMPY_ContextCreate"), (), _function("LLVMPY_ContextDispose"))
    module = _call("LLVMPY_ParseAssembly", context, text.encode(), message := _Message())
    if not module or _call("LLVMPY_VerifyModule", module, message := _Message()):  # it would abort the process further on
        raise AdjitError(f"the code generator made invalid LLVM IR: {message}")
    yield module


ASSEMBLY, OBJECT = range(2)  # what LLVM emits


def _emit(machine: Owned, module: Any, kind: int) -> bytes:
    """As `emit_object` of llvmlite, which would hold a lock meanwhile: other threads could not compile."""
    arguments = (machine, module, kind, message := _Message())
    buffer = Owned(_function("LLVMPY_TargetMachineEmitToMemory"), arguments, _function("LLVMPY_DisposeMemoryBuffer"))
    if not buffer:
        raise AdjitError(f"LLVM could not compile a module: {message}")
    return ctypes.string_at(_call("LLVMPY_GetBufferStart", buffer), _call("LLVMPY_GetBufferSize", buffer))


def level_for(text: str) -> int:
    lines = text.count("\n")
    return LEVEL if lines <= LINES_AT_LEVEL_2 else 1 if lines <= LINES_AT_LEVEL_1 else 0


class Object(NamedTuple):
    """Object code, and the name under which the disk keeps it."""

    key: bytes
    code: bytes


def assemble(text: str, target: Target, level: int | None = None) -> Object:
    """Object code of a module, at the level that suits its size unless told otherwise."""
    level = level_for(text) if level is None else level
    key = disk.key(text, *target.key, f"level {level}", versions())
    return Object(key, disk.cached(key, lambda: compiled(text, target, level)))


@in_llvm
def compiled(text: str, target: Target, level: int) -> bytes:
    headroom.require(headroom.COMPILING + headroom.PER_BYTE * len(text), "compiling a function")
    with _machine(target, level) as machine, _parsed(text, target) as module:
        return _emit(machine, module, OBJECT)


@in_llvm
def assembly(text: str, target: Target) -> str:
    """The same as readable assembly."""
    with _machine(target, level_for(text)) as machine, _parsed(text, target) as module:
        return _emit(machine, module, ASSEMBLY).decode()


def rest() -> None:
    """Something has been compiled: LLVM's code may leave memory until the next time, unless a thread is still at work."""
    if not are_busy():
        residency.give_back(LIBRARY)


class Library:
    """Linked native code; its addresses are valid while it lives."""

    @in_llvm
    def __init__(self, objects: Iterable[Object], exports: Iterable[str], imports: Mapping[str, int]) -> None:
        headroom.require(headroom.LINKING, "linking compiled code")
        link = _function("LLVMPY_LLJIT_Link")
        element, symbol = link.argtypes[2]._type_, link.argtypes[4]._type_
        parts = [each.code for each in objects]
        elements = [element(PROCESS, b"", 0), *(element(CODE, code, len(code)) for code in parts)]
        imported = [symbol(name.encode(), address) for name, address in imports.items()]
        exported = [symbol(name.encode(), 0) for name in exports]
        tables = [(kind * len(table))(*table) for kind, table in ((element, elements), (symbol, imported), (symbol, exported))]
        lists = [each for table in tables for each in (table, len(table))]
        with _lock:
            serial = next(_serial)
            arguments = (_linker(serial // LIBRARIES), b"adjit%d" % serial, *lists, message := _Message())
            unload = _function("LLVMPY_LLJIT_Dylib_Tracker_Dispose")
            with llvmlite_lock():
                self._tracker = Owned(link, arguments, unload, ctypes.pointer(ctypes.c_char_p()))
        if not self._tracker:
            raise AdjitError(f"LLVM could not link a library: {message}")
        self.address = {each.name.decode(): int(each.address) for each in tables[-1]}
