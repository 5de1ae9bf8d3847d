"""The machines that code is exported for, by name."""

from __future__ import annotations

from adjit.ir.errors import UnsupportedError
from adjit.ir.target import Target

from ..llvm.target import LEVELS, current, described, names_of
from ..threads.pool import has_threads

HOST, ARM, WASM = "host", "aarch64-linux", "wasm32"
NAMES = (HOST, *LEVELS, ARM, WASM)
WASM_FEATURES = "+bulk-memory,+bulk-memory-opt,+mutable-globals,+nontrapping-fptoint,+sign-ext,+simd128"  # of every browser since 2023


def named(name: str, threads: int) -> Target:
    """The target of a name; its code does not depend on Python."""
    if name == HOST:
        target = current()
    elif name in LEVELS:
        target = described("x86_64-unknown-linux-gnu", name, {}, names_of(name))
    elif name == ARM:
        target = described("aarch64-unknown-linux-gnu", "generic", {}, frozenset())
    elif name == WASM:
        target = Target("wasm32-unknown-unknown", "generic", WASM_FEATURES, 16, 16, fma=False, rounding=True)
    else:
        raise UnsupportedError(f"export: unknown target {name!r}; choose one of {', '.join(NAMES)}")
    if threads > 1 and not has_threads(target.triple):
        raise UnsupportedError(f"export: threads={threads} is not supported for {name}, which has no thread pool; use threads=1")
    return target._replace(threads=threads, hosted=False)
