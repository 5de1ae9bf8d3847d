"""A traced Func to native code: from the disk where a program like it was compiled before, otherwise by way of the passes.

Light to import: what optimises, writes LLVM IR and compiles is loaded when the disk does not have the program.
"""

from __future__ import annotations

from collections.abc import Callable

from adjit.ir.func import Func

from . import image, library, llvm, tuning
from .native import Native


def native_code(func: Func, optimized: Callable[[], Func], threads: int | None = None) -> Native:
    """Native code for a traced Func; `optimized` gives what the passes make of it."""
    threads = threads or library.threads()
    key = image.key_of(func, (*llvm.host().key, str(threads), tuning.settings()))
    found = image.load(key)
    if found is None:
        foresee(func)
        return compiled(optimized(), threads, key)
    return Native(func, found, lambda: compiled(optimized(), threads).texts(), threads, {})


def compiled(func: Func, threads: int | None, key: bytes | None = None) -> Native:
    from .compile import compile_func  # noqa: PLC0415 - see above

    return compile_func(func, None, threads, key)


def foresee(func: Func) -> None:
    """Have LLVM begin with the routines that a traced Func is certain to need, while the passes still run."""
    from . import entry, products  # noqa: PLC0415 - see above

    if entry.available():
        entry.begin()
    products.foresee(func)
