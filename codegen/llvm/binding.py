"""The functions of LLVM that we call, in the shared library that comes with llvmlite.

llvmlite's Python classes are not imported. They would take a third of a warm first call, and are not safe under Ctrl-C: their lock is taken
in Python code and may stay locked, and their destructors may free twice. If the process uses llvmlite for something else (Numba does), it
is the same library: contexts, code generators and linkers are independent, and each side has its own lock.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import nullcontext
from functools import cache
from typing import Any

from adjit.ir.locks import once
from adjit.ir.records import NamedTuple

from . import headroom, residency
from .workers import Later, llvm_lock

OBJECT, PROCESS = 2, 3  # what a library is linked from: object code; the symbols of this process
HANDLE, OUT = ctypes.c_void_p, ctypes.c_void_p  # an object of LLVM; where to write the address of a string
TEXT, INT, FLAG, SIZE = ctypes.c_char_p, ctypes.c_int, ctypes.c_bool, ctypes.c_size_t


class Element(ctypes.Structure):
    """A part of a library to be linked."""

    _fields_ = [("kind", ctypes.c_uint8), ("code", TEXT), ("size", SIZE)]


class LinkName(ctypes.Structure):
    """A name that a library imports or exports."""

    _fields_ = [("name", TEXT), ("address", ctypes.c_uint64)]


class Prototype(NamedTuple):
    result: Any
    arguments: tuple[Any, ...]


PROTOTYPES = {
    "GetVersionInfo": Prototype(ctypes.c_uint, ()),
    "InitializeNativeTarget": Prototype(None, ()),
    "InitializeNativeAsmPrinter": Prototype(None, ()),
    "InitializeNativeAsmParser": Prototype(None, ()),
    "DisposeString": Prototype(None, (HANDLE,)),
    # the machine
    "GetProcessTriple": Prototype(None, (OUT,)),
    "GetHostCPUName": Prototype(None, (OUT,)),
    "GetHostCPUFeatures": Prototype(INT, (OUT,)),
    "GetTargetFromTriple": Prototype(HANDLE, (TEXT, OUT)),
    # target, triple, CPU, features, level, relocation model, code model, whether to print, whether for a JIT, ABI
    "CreateTargetMachine": Prototype(HANDLE, (HANDLE, TEXT, TEXT, TEXT, INT, TEXT, TEXT, INT, INT, TEXT)),
    "DisposeTargetMachine": Prototype(None, (HANDLE,)),
    "CreateTargetMachineData": Prototype(HANDLE, (HANDLE,)),
    "DisposeTargetData": Prototype(None, (HANDLE,)),
    "CopyStringRepOfTargetData": Prototype(None, (HANDLE, OUT)),
    # compiling
    "ContextCreate": Prototype(HANDLE, ()),
    "ContextDispose": Prototype(None, (HANDLE,)),
    "ParseAssembly": Prototype(HANDLE, (HANDLE, TEXT, OUT)),
    "VerifyModule": Prototype(FLAG, (HANDLE, OUT)),
    "TargetMachineEmitToMemory": Prototype(HANDLE, (HANDLE, HANDLE, INT, OUT)),
    "GetBufferStart": Prototype(ctypes.c_void_p, (HANDLE,)),
    "GetBufferSize": Prototype(SIZE, (HANDLE,)),
    "DisposeMemoryBuffer": Prototype(None, (HANDLE,)),
    # linking
    "CreateLLJITCompiler": Prototype(HANDLE, (HANDLE, FLAG, FLAG, OUT)),
    "LLJITDispose": Prototype(None, (HANDLE,)),
    # linker, name, then the elements, imports and exports, each with their count
    "LLJIT_Link": Prototype(HANDLE, (HANDLE, TEXT, HANDLE, SIZE, HANDLE, SIZE, HANDLE, SIZE, OUT)),
    "LLJIT_Dylib_Tracker_Dispose": Prototype(FLAG, (HANDLE, OUT)),
}


@once
def _library() -> ctypes.CDLL:
    headroom.require(headroom.LOADING, "loading LLVM")
    import llvmlite  # noqa: PLC0415 - only when something is compiled or linked
    from llvmlite.utils import get_library_name  # noqa: PLC0415 - as above

    name = get_library_name()
    path = os.path.join(os.path.dirname(llvmlite.__file__), "binding", name)
    if not os.path.exists(path):  # not installed as plain files: llvmlite unpacks it
        from llvmlite.binding import ffi  # noqa: PLC0415 - as above

        path = ffi.lib._name
    library = ctypes.CDLL(path)
    with _lock_of_llvmlite(), llvm_lock:  # the registry of targets is shared
        library.LLVMPY_InitializeNativeTarget()
    residency.give_back(name, always=True)  # the constructors of all that we never use
    return library


@once
def begin_loading() -> Later[ctypes.CDLL]:
    """Load LLVM on a thread, while the first function is traced. If that fails, so will the first use of LLVM, which reports it."""
    return Later(_library)


def _lock_of_llvmlite() -> Any:
    """The lock that llvmlite takes around each call of LLVM, if another package has imported it."""
    binding = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(binding, "lib", None), "_lock", nullcontext())


@cache
def function(name: str) -> Any:
    """A function of LLVM, to be called with `llvm_lock` held unless it only touches what one thread owns."""
    found = getattr(_library(), f"LLVMPY_{name}")
    found.restype, found.argtypes = PROTOTYPES[name]
    return found


def call(name: str, *arguments: Any) -> Any:
    found = function(name)
    with llvm_lock:
        return found(*arguments)


@once
def able_to_compile() -> None:
    """Initialise what only compiling needs: code from the disk cache is linked without it."""
    _library()
    with _lock_of_llvmlite():
        call("InitializeNativeAsmPrinter")
        call("InitializeNativeAsmParser")


@once
def versions() -> str:
    import llvmlite  # noqa: PLC0415 - as above

    number = call("GetVersionInfo")
    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, number.to_bytes(4, 'big').lstrip(bytes(1))))}"
