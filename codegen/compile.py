"""Compile a planned Func to native code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from adjit.ir.cost import assumed_type
from adjit.ir.effects import effects_of
from adjit.ir.expr import hint_of
from adjit.ir.func import Block, Func
from adjit.ir.ops.base import Array, Op
from adjit.ir.records import NamedTuple
from adjit.ir.specialize import type_at
from adjit.ir.target import Target
from adjit.ir.types import TensorType

from . import routines
from .cache.image import Axis, Image, store
from .llvm.parts import Texts
from .llvm.target import current
from .main import callbacks as host
from .main import stacks
from .main.module import Module
from .native import MAIN, Native, pooled_from

if TYPE_CHECKING:
    from .main.probes import Probes, Run

QUICK = 200_000  # units of `work`: about twenty microseconds, for which other Python threads can wait
PER_BYTE = 0.5  # work of reading or writing a byte of an array that no cache holds
SCALAR = 4.0  # work of an operation in a loop that computes one element after the other
NARROW = 8  # columns of a product from which it is computed in whole vectors
ANY_SIZE = 1 << 62


def quick_up_to(block: Block, symbols: Sequence[Axis]) -> int:
    """A value such that a call takes only microseconds while all symbols are at most that: zero, a power of four, or any size."""
    if not symbols:
        return ANY_SIZE if work(block) < QUICK else 0
    quick, n = 0, 4
    while n < ANY_SIZE and work(block, partial(type_at, sizes=dict.fromkeys((symbol.name for symbol in symbols), n))) < QUICK:
        quick, n = n, 4 * n
    return quick


def work(block: Block, sized: Callable[[TensorType], TensorType] = assumed_type, in_memory: bool = True) -> float:
    """A rough upper bound of the time of a call, to separate calls of microseconds, which keep the GIL, from longer ones.

    The unit is a tenth of a nanosecond: one operation of a vector loop. Values of the block are `in_memory`, unless it is the body of a
    kernel. Loops, calls into Python and waiting for other ranks may take any time. `sized` fills in the sizes that are known only at run
    time.
    """
    total = 0.0
    for stmt in block.stmts:
        op = stmt.op
        if op.is_loop or op.calls_python or (stmt.results and effects_of(op).ordered):
            return math.inf
        if op.is_view:
            continue
        total += sum(work(inner, sized, in_memory and not op.is_nest) for inner in stmt.blocks)
        free = [x for inner in stmt.blocks for x in inner.free()]
        args, results = [sized(x.type) for x in (*stmt.args, *free)], [sized(x.type) for x in stmt.results]
        if in_memory:
            total += PER_BYTE * sum(t.nbytes for t in (*args, *results))
        if not stmt.blocks:
            moved = max((t.size for t in (*args, *results)), default=0)
            total += max(op.operations(args, results) or 0.0, moved) * op.slowest(*args) * (1.0 if _in_vectors(op, results) else SCALAR)
    return total


def _in_vectors(op: Op, results: Sequence[TensorType]) -> bool:
    """Whether native code computes several elements of a result at a time. Sorts, factorisations and scans compute one after the other,
    and so do products whose results have few columns.
    """
    return op.is_elementwise or op.is_reduction or (op.is_product and results[0].shape[-1:] >= (NARROW,))


class Built(NamedTuple):
    """Compiled code before linking, the LLVM texts it was made from, and the Python functions that it calls."""

    image: Image
    texts: list[str]
    hosts: dict[str, Any]


def built(func: Func, target: Target, probes: Probes | None = None) -> Built:
    module = Module(func, target, probes)
    module.build()
    results = [assumed_type(r.type) for r in func.results]
    pooled = pooled_from(results)
    exports = [MAIN, *([stacks.RELEASE] if module.handles else []), *([probes.log_name] if probes is not None else [])]
    exports += module.functions.values() if target.debug_lines else ()  # for `perf.py`
    has_collectives = any(map(routines.is_of_mpi, module.imports))
    image = Image(
        tuple(module.parts.objects()),
        tuple(exports),
        tuple(sorted(module.imports)),
        tuple(module.failures),
        hint_of(module.memory_bytes),
        module.buffer_count,
        quick=quick_up_to(func.block, module.symbols),
        # results in recycled buffers, and effects that a retry would repeat, need Python
        enterable=not module.hosts and not has_collectives and all(t.nbytes < pooled for t in results),
        memory=str(module.memory_bytes),
        exchanges=exchanges(func.block) if has_collectives else "",
        symbols=module.symbols,
    )
    return Built(image, module.parts.texts, {host.symbol(k): host.HostFunction(fn) for k, fn in enumerate(module.hosts)})


def exchanges(block: Block) -> str:
    """The collectives of an optimised block, and the branches and loops around them. Those that passes have moved have numbers."""
    out = []
    for stmt in block.stmts:
        inside = [exchanges(inner) for inner in stmt.blocks]
        if any(inside):
            out.append(f"{stmt.op.name} {{ {' | '.join(inside)} }}")
        elif stmt.op.is_collective:
            types = " ".join(str(x.type) for x in stmt.results)
            out.append(f"{stmt.op.name} {types} {' '.join(f'{name}={x}' for name, x in stmt.op.attributes())}".rstrip())
    return "; ".join(out)


def loops_text(func: Func, target: Target) -> str:
    """The loop programs of the kernels of an optimised Func."""
    from .loops.printer import print_program  # noqa: PLC0415 - for those who read it

    module = Module(func, target)
    module.parts = Texts(target, module.level)  # nothing is compiled
    module.build()
    return "\n".join(print_program(name, program) for name, program in module.programs.items())


def compile_func(
    func: Func, target: Target | None = None, threads: int | None = None, key: bytes | None = None, traced: Func | None = None
) -> Native:
    """Native code for an optimised Func, for this process's target unless another is given; `threads` limits those of large kernels.

    With a `key`, the code is stored on disk, unless it calls Python functions, which belong to this process. `traced` is the Func before
    the passes, with the types that callers use: complex results are real arrays with a further axis in `func`.
    """
    target = (target or current()).with_threads(threads)
    image, texts, hosts = built(func, target)
    if key is not None and not hosts:
        store(key, image)
    return Native(traced or func, image, lambda: texts, target, hosts)


class Timed(Native):
    """Native code with a clock around every kernel, for profiles. Only one call at a time: the log belongs to the code."""

    def __init__(self, func: Func, target: Target) -> None:
        from .main.probes import Probes  # noqa: PLC0415 - for profiles

        self.probes = Probes()
        image, texts, hosts = built(func, target, self.probes)
        super().__init__(func, image, lambda: texts, target, hosts)

    def run(self, arrays: Sequence[Array]) -> Run:
        """Run the code; return the recorded log."""
        self(arrays)
        return self.probes.take(self._library.address[self.probes.log_name])
