"""LLVM set-up: the target machine, and text IR to linked native code.

llvmlite is imported by the first compilation, not by `import adjit`. Our kernels are explicit vector code, so no optimisation pipeline
runs: the back end alone gives the same speed at half the compile time. Very large modules get a cheaper back-end level, because instruction
selection and register allocation are super-linear in the size of a basic block.

Every module has an LLVM context of its own, and a machine to itself while it is compiled: threads compile side by side (`workers.py`).
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, NamedTuple

from adjit.ir.errors import AdjitError
from adjit.ir.locks import new_lock, once
from adjit.ir.target import Target

from ..cache import disk as cache
from . import headroom, residency
from .workers import are_busy, in_llvm

LEVEL = 2  # of LLVM's back end, unless a module is very large
LINES_AT_LEVEL_2 = 6_000
LINES_AT_LEVEL_1 = 60_000
LIBRARY = "libllvmlite.so"
LIBRARIES = 256  # that one linker links

_serial = itertools.count()
_lock = new_lock()


class Host(NamedTuple):
    """The machine that this process runs on, as LLVM knows it."""

    triple: str
    cpu: str
    features: dict[str, bool]


@once
def host() -> Host:
    llvm = _llvm()
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features()))


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


def _new_machine(target: Target, level: int) -> Any:
    return _llvm().Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, jit=True, codemodel="jitdefault"
    )


_machines: defaultdict[tuple[Target, int], list[Any]] = defaultdict(list)  # that nobody uses at the moment


@contextmanager
def _machine(target: Target, level: int) -> Iterator[Any]:
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
        return str(machine.target_data)


@lru_cache(maxsize=1)
def _jit(generation: int) -> Any:
    """The linker; call with `_lock` held.

    LLVM keeps 9 kB of each library that was ever linked until the linker itself goes, so there is a new one now and then.
    """
    triple, cpu, _ = host()
    return _llvm().create_lljit_compiler(_new_machine(Target(triple, cpu), 2))


@contextmanager
def _parsed(text: str, target: Target) -> Iterator[Any]:
    """The module of a text, in a context of its own."""
    llvm = _compiler()
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(f'target triple = "{target.triple}"\ntarget datalayout = "{_layout(target)}"\n{text}', context)
        module.verify()  # an invalid module would abort the process further on
    except RuntimeError as error:
        raise AdjitError(f"the code generator made invalid LLVM IR: {error}") from None
    with context, module:
        yield module


def _emit(machine: Any, module: Any) -> bytes:
    """Object code, as `machine.emit_object(module)`; but llvmlite would hold a lock meanwhile, and other threads could not compile."""
    ffi = _llvm().ffi
    emit = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    with ffi.OutputString() as message:
        buffer = getattr(emit, "_cfn", emit)(machine, module, 1, message)
        if not buffer:
            raise AdjitError(f"LLVM could not compile a module: {message}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


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
    key = cache.key(text, *target.key, f"level {level}", versions())
    return Object(key, cache.cached(key, lambda: compiled(text, target, level)))


@in_llvm
def compiled(text: str, target: Target, level: int) -> bytes:
    headroom.require(headroom.COMPILING + headroom.PER_BYTE * len(text), "compiling a function")
    with _machine(target, level) as machine, _parsed(text, target) as module:
        return _emit(machine, module)


@in_llvm
def assembly(text: str, target: Target) -> str:
    """The same as readable assembly."""
    with _machine(target, level_for(text)) as machine, _parsed(text, target) as module:
        return str(machine.emit_assembly(module))


def rest() -> None:
    """Something has been compiled: LLVM's code may leave memory until the next time, unless a thread is still at work."""
    if not are_busy():
        residency.give_back(LIBRARY)


class Library:
    """Linked native code; its addresses are valid while it lives."""

    @in_llvm
    def __init__(self, objects: Iterable[Object], exports: Iterable[str], imports: Mapping[str, int]) -> None:
        llvm = _llvm()
        headroom.require(headroom.LINKING, "linking compiled code")
        with _lock:
            builder = llvm.JITLibraryBuilder().add_current_process()
            for each in objects:
                builder.add_object_img(each.code)
            for name, address in imports.items():
                builder.import_symbol(name, address)
            names = list(exports)
            for name in names:
                builder.export_symbol(name)
            serial = next(_serial)
            linker = _jit(serial // LIBRARIES)
            self._tracker = builder.link(linker, f"adjit{serial}")
            self._linker = linker  # lives as long as the last of its libraries
            self.address = {name: int(self._tracker[name]) for name in names}
