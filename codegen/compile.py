"""Compile a planned Func to native code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from adjit.ir.cost import assumed_type, nanoseconds
from adjit.ir.effects import effects_of
from adjit.ir.expr import hint_of
from adjit.ir.func import Block, Func
from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import is_symbolic, value_of
from adjit.ir.target import Target
from adjit.ir.work import running_work

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

QUICK = 20_000  # nanoseconds for which other Python threads can wait
ANY_SIZE = 1 << 62


def quick_up_to(block: Block, symbols: Sequence[Axis], target: Target) -> int:
    """A value such that a call takes only microseconds while all symbols are at most that: zero, a power of four, or any size."""
    if not is_bounded(block):
        return 0
    if not symbols:
        return ANY_SIZE if is_quick(block, target) else 0
    quick, n = 0, 4
    while n < ANY_SIZE and is_quick(block, target, partial(value_of, sizes=dict.fromkeys((s.name for s in symbols), n))):
        quick, n = n, 4 * n
    return quick


def is_quick(block: Block, target: Target, size: Callable[[Any], int] = hint_of) -> bool:
    """Whether a call takes only microseconds. Of a long program, only the first statements are looked at."""
    return all(nanoseconds(some, target) < QUICK for some in running_work(block, size))


def is_bounded(block: Block) -> bool:
    """Whether the work of a call is known: loops, calls into Python and waiting for other ranks may take any time."""
    any_time = (s.op.is_loop or s.op.calls_python or (s.results and effects_of(s.op).ordered) for s in block.stmts)
    return not any(any_time) and all(is_bounded(inner) for s in block.stmts for inner in s.blocks)


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
    varying = [t for r, t in zip(func.results, results, strict=True) if any(map(is_symbolic, r.type.shape))]
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
        quick=quick_up_to(func.block, module.symbols, target),
        # results of varying sizes in recycled buffers, and effects that a retry would repeat, need Python
        enterable=not module.hosts and not has_collectives and all(t.nbytes < pooled for t in varying),
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
    from .loops.printer import print_program  # noqa: PLC0415 - only if someone reads it

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
