"""OpenBLAS, from the library bundled with NumPy's wheel or from the scipy-openblas wheel. It is found by its symbols, never by path.

Products are cut into strips that run on adjit's own threads, so OpenBLAS itself must use a single thread meanwhile. Its thread count is
global to the process: `adjit_blas_enter` sets it to 1, and `adjit_blas_leave` restores it when the last running product has ended.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adjit.ir.locks import once
from adjit.ir.target import Target
from adjit.ir.types import F32, F64, DType

from ..llvm import toolchain as llvm

SYMBOLS = (("scipy_cblas_{}gemm64_", "i64"), ("scipy_cblas_{}gemm", "i32"), ("cblas_{}gemm64_", "i64"), ("cblas_{}gemm", "i32"))
LAPACK = ("ssyevd", "dsyevd", "sgesdd", "dgesdd", "cheevd", "zheevd", "cgesdd", "zgesdd", "sgeev", "dgeev", "cgeev", "zgeev")
PREFIX = "adjit_blas_"  # of the names under which native code imports the routines
GET, SET = "adjit_openblas_get_num_threads", "adjit_openblas_set_num_threads"
ENTER, LEAVE = PREFIX + "enter", PREFIX + "leave"
GATE = f"""
@lock = internal global i32 0
@users = internal global i64 0
@before = internal global i32 0
declare i32 @{GET}()
declare void @{SET}(i32)
define internal void @take() nounwind {{
entry:
  br label %again
again:
  %old = atomicrmw xchg ptr @lock, i32 1 acquire
  %busy = icmp ne i32 %old, 0
  br i1 %busy, label %again, label %taken
taken:
  ret void
}}
define void @{ENTER}() nounwind {{
entry:
  call void @take()
  %users = load i64, ptr @users
  %more = add i64 %users, 1
  store i64 %more, ptr @users
  %first = icmp eq i64 %users, 0
  br i1 %first, label %alone, label %done
alone:
  %threads = call i32 @{GET}()
  store i32 %threads, ptr @before
  call void @{SET}(i32 1)
  br label %done
done:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}}
define void @{LEAVE}() nounwind {{
entry:
  call void @take()
  %users = load i64, ptr @users
  %fewer = sub i64 %users, 1
  store i64 %fewer, ptr @users
  %last = icmp eq i64 %fewer, 0
  br i1 %last, label %alone, label %done
alone:
  %threads = load i32, ptr @before
  call void @{SET}(i32 %threads)
  br label %done
done:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}}
"""


class Blas(NamedTuple):
    """Addresses of cblas_?gemm, its integer type, the functions that get and set the number of threads, and routines of LAPACK."""

    address: dict[DType, int]
    index_type: str
    source: str
    threads: dict[str, int]
    lapack: dict[str, int]  # by the names under which native code imports them; none, if one is missing


def _libraries() -> Iterator[Path]:
    root = Path(np.__file__).parent
    for folder in (root.parent / "numpy.libs", root / ".dylibs", root / ".libs"):
        yield from sorted(folder.glob("*openblas*"))
    for name in ("scipy_openblas64", "scipy_openblas32"):
        try:
            package = importlib.import_module(name)
        except ImportError:
            continue
        yield from sorted(Path(package.get_lib_dir()).glob("*openblas*"))


@once
def find() -> Blas | None:
    """The first library that has all the symbols; None if there is none."""
    for path in _libraries():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for pattern, index_type in SYMBOLS:
            control = pattern.replace("cblas_{}gemm", "openblas_{}_num_threads")
            try:
                address = {dtype: _address(library, pattern.format(letter)) for dtype, letter in ((F32, "s"), (F64, "d"))}
                threads = {name: _address(library, control.format(verb)) for name, verb in ((GET, "get"), (SET, "set"))}
            except AttributeError:
                continue
            return Blas(address, index_type, path.name, threads, _lapack(library, pattern))
    return None


def _lapack(library: ctypes.CDLL, pattern: str) -> dict[str, int]:
    """Addresses of LAPACK's routines, whose names have the prefix and suffix of BLAS's."""
    prefix, suffix = ("scipy_" if pattern.startswith("scipy_") else ""), ("_64_" if pattern.endswith("64_") else "_")
    try:
        return {PREFIX + name: _address(library, f"{prefix}{name}{suffix}") for name in LAPACK}
    except AttributeError:
        return {}


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def symbol(dtype: DType) -> str:
    return PREFIX + ("sgemm" if dtype == F32 else "dgemm")


def addresses(target: Target) -> dict[str, int]:
    return _addresses(Target(target.triple, target.cpu, target.features))


@once
def _addresses(target: Target) -> dict[str, int]:
    """Addresses of the routines that native code imports."""
    found = find()
    if found is None:
        return {}
    gate = llvm.Library([llvm.assemble(GATE, target, level=0)], [ENTER, LEAVE], found.threads)
    _keep.append(gate)
    return {symbol(dtype): found.address[dtype] for dtype in (F32, F64)} | found.lapack | gate.address


_keep: list[llvm.Library] = []
