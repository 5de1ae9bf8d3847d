"""Calls of LAPACK's routines in the library that `blas.py` finds, which must hold them under matching names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjit.ir.types import BOOL, F32, DType

from ..kernels.window import Strided
from ..llvm.lanes import Reg
from . import blas, tuning

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel


def is_found() -> bool:
    """Whether native code calls LAPACK; ADJIT_BLAS=own prevents it."""
    found = blas.find()
    return found is not None and bool(found.lapack) and found.index_type == "i64" and not tuning.is_own()


def call(kernel: LoopKernel, routine: str, dtype: DType, *args: str | int | Strided, complex: bool = False) -> Reg:
    """Emit a call, on numbers of the dtype or complex ones of it; letters and sizes are passed by reference, as Fortran does.

    Returns whether the routine reported a failure.
    """
    letter = "sdcz"[2 * complex + (dtype != F32)]
    text, name = kernel.text, blas.PREFIX + letter + routine
    pointers = []
    for arg in args:
        if isinstance(arg, Strided):
            pointers.append(arg.pointer)
            continue
        ty, value = ("i8", ord(arg)) if isinstance(arg, str) else ("i64", arg)
        slot = text.reserve(ty)
        text.put(f"store {ty} {value}, ptr {slot}")
        pointers.append(slot)
    info = text.reserve("i64")
    text.put(f"store i64 0, ptr {info}")
    letters = sum(isinstance(arg, str) for arg in args)  # Fortran passes the length of each at the end
    types = ", ".join(["ptr"] * (len(args) + 1) + ["i64"] * letters)
    text.declares |= {f"declare void @{name}({types})", f"declare void @{blas.ENTER}()", f"declare void @{blas.LEAVE}()"}
    kernel.imports |= {name, blas.ENTER, blas.LEAVE}
    text.put(f"call void @{blas.ENTER}()")
    text.put(f"call void @{name}({', '.join([*(f'ptr {p}' for p in (*pointers, info)), *['i64 1'] * letters])})")
    text.put(f"call void @{blas.LEAVE}()")
    return Reg(text.define(f"icmp ne i64 {text.define(f'load i64, ptr {info}')}, 0"), BOOL)
