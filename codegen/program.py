"""Native code for a traced Func: from the disk if the same program was compiled before, otherwise through the passes.

Cheap to import: the modules that optimise, emit LLVM IR and compile are imported only if the program is not on disk.
"""

from __future__ import annotations

from collections.abc import Callable

from adjit.ir.func import Func
from adjit.ir.target import Target

from .cache import image
from .native import Native
from .products import tuning


def native_code(func: Func, optimized: Callable[[], Func], target: Target) -> Native:
    """Native code for a traced Func; `optimized` returns the Func after the passes."""
    key = image.key_of(func, (*target.settings, target.exchange, str(target.ranks), tuning.settings(target)), target.debug_lines)
    found = image.load(key)
    if found is None:
        foresee(func, target)
        return compiled(optimized(), target, key, func)
    return Native(func, found, lambda: compiled(optimized(), target, traced=func).texts(), target, {})


def compiled(func: Func, target: Target, key: bytes | None = None, traced: Func | None = None) -> Native:
    """Compile an optimised Func; `traced` is the one it came from, whose types callers use."""
    from .compile import compile_func  # noqa: PLC0415 - see above

    return compile_func(func, target, key=key, traced=traced)


def foresee(func: Func, target: Target) -> None:
    """Start compiling the routines that a traced Func is certain to need, while the passes still run."""
    from .entry import entry  # noqa: PLC0415 - see above
    from .products import products  # noqa: PLC0415 - see above

    if func.updates:
        entry.begin_locks()
    products.foresee(func, target)


def loops_text(func: Func, target: Target) -> str:
    """The loop programs of the kernels of an optimised Func, as text."""
    from .compile import loops_text  # noqa: PLC0415 - see above

    return loops_text(func, target)
