"""A planned Func to native code that can be called with arrays."""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from collections import deque
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from adjit.ir.func import Block, Func
from adjit.ir.ops.base import Array, View
from adjit.ir.ops.control import For, Region, While
from adjit.ir.ops.effects import Print
from adjit.ir.ops.linalg import Matmul, MatmulAdd
from adjit.ir.ops.maps import FloatUnary
from adjit.ir.types import TensorType

from . import host, library, llvm, products, stacks
from .kernels import MATH_COST
from .module import Module
from .probes import LOG, Probes, Run

DETAILS = 8  # i64 words that a failing kernel may leave for the message
LARGE, HUGE = 1 << 18, 1 << 26  # bytes of results whose buffers are kept for the next call
KEPT = 2  # buffers of each: the caller often holds one result while the next is computed
QUICK = 200_000  # operations: about twenty microseconds, which other Python threads can wait for


class Native:
    """A compiled Func. Call it with arrays in the order of the parameters; parameters in `updates` are overwritten in place."""

    def __init__(
        self, func: Func, target: llvm.Target | None = None, threads: int | None = None, probes: Probes | None = None
    ) -> None:
        self.target = target or llvm.host()
        threads = threads or library.threads()
        module = Module(func, self.target, probes, threads)
        module.build()
        self._texts = module.parts.texts
        self.failures = module.failures
        self.name = func.name
        self.arena_bytes = module.plan.arena_bytes + module.packing.bytes + module.work_bytes
        self.result_types = tuple(r.type for r in func.results)
        self.quick = work(func.block) < QUICK
        # whether the native entry may run it: results from recycled buffers, and effects that a second try would repeat, need Python
        self.enterable = not module.hosts and all(t.nbytes < LARGE for t in self.result_types)
        entries = ["adjit_main", stacks.RELEASE] if module.handles else ["adjit_main"]
        entries += [LOG] if probes is not None else []
        self._hosts = {host.symbol(k): host.HostFunction(fn) for k, fn in enumerate(module.hosts)}
        callbacks = {name: ctypes.cast(fn, ctypes.c_void_p).value or 0 for name, fn in self._hosts.items()}
        imports = _addresses(module.imports, threads) | callbacks
        self._library = llvm.Library(module.parts.codes(), entries, imports)
        llvm.rest()
        self.address = self._library.address["adjit_main"]
        self._main = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(self.address)
        self._arenas: list[Array] = []
        # large results come from buffers that are used again once nobody holds them: fresh memory costs a page fault every few kilobytes
        self._results = [(t, deque[Array]() if LARGE <= t.nbytes <= HUGE else None) for t in self.result_types]
        self._count = module.buffer_count

    @property
    def llvm(self) -> str:
        """The LLVM IR of all parts."""
        return "\n".join(self._texts)

    @cached_property
    def asm(self) -> str:
        return "\n".join(llvm.assembly(text, self.target) for text in self._texts)

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        results = [np.empty(t.shape, t.dtype) if pool is None else recycled(t, pool) for t, pool in self._results]
        table = (ctypes.c_void_p * self._count)(*[a.__array_interface__["data"][0] for a in (*arrays, *results)])
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = self.new_arena()
        error = (ctypes.c_int64 * DETAILS)()
        try:
            code = self._main(table, arena.__array_interface__["data"][0], error)
        finally:
            self._arenas.append(arena)
        if code:
            self._raise(code, list(error))
        return results

    def new_arena(self) -> Array:
        """Memory for one call at a time."""
        raw = np.zeros(self.arena_bytes + 64, np.uint8)  # zero: stacks are empty
        start = raw.__array_interface__["data"][0]
        shift = -start % 64
        release = self._library.address.get(stacks.RELEASE)
        if release is not None:
            weakref.finalize(raw, _release, self._library, release, start + shift).atexit = False
        return raw[shift : shift + self.arena_bytes]

    def _raise(self, code: int, details: list[int]) -> None:
        if code == stacks.INTERRUPTED:
            raise KeyboardInterrupt
        if code == stacks.OUT_OF_MEMORY:
            raise MemoryError(f"@{self.name}: no memory to save what the backward pass of a loop needs; give the loop a checkpoint=")
        failure = self.failures[code - 1]
        raise failure.error(failure.message.format(*details)).at(failure.location)


def _release(library: llvm.Library, function: int, arena: int) -> None:
    """Free the stacks of an arena. The library is an argument so that its code is still there."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(arena)


def recycled(type: TensorType, pool: deque[Array]) -> Array:
    """An array on a buffer of the pool that no array, tensor or view refers to any more; on a new one if there is none."""
    for _ in range(len(pool)):
        try:
            buffer = pool.popleft()  # taken out while we look, so that no other thread takes it too
        except IndexError:
            break
        free = sys.getrefcount(buffer) == 2  # `buffer`, and the argument
        array = buffer.view(type.dtype).reshape(type.shape) if free else None
        pool.append(buffer)
        if array is not None:
            return array
    buffer = np.empty(type.nbytes, np.uint8)
    if len(pool) < KEPT:
        pool.append(buffer)
    return buffer.view(type.dtype).reshape(type.shape)


def work(block: Block) -> float:
    """A rough count of operations, to tell calls of microseconds from longer ones. A loop and what Python does may take any time."""
    total = 0.0
    for stmt in block.stmts:
        if isinstance(stmt.op, For | While | Print):
            return math.inf
        if isinstance(stmt.op, Matmul | MatmulAdd):
            total += stmt.args[-2].type.size * stmt.result.type.shape[-1] if stmt.result.type.shape else stmt.args[-2].type.size
        elif isinstance(stmt.op, Region):
            total += sum(map(work, stmt.blocks))
        elif not isinstance(stmt.op, View):
            size = max((x.type.size for x in (*stmt.args, *stmt.results)), default=0)
            total += size * (MATH_COST if isinstance(stmt.op, FloatUnary) else 1)
    return total


def _addresses(names: set[str], threads: int) -> dict[str, int]:
    """Where the routines are that a module imports."""
    blas = {name for name in names if name.startswith(products.BLAS)}
    found = library.addresses(names - blas, threads)
    return found | {name: products.blas_addresses()[name] for name in blas}


def compile_func(func: Func, target: llvm.Target | None = None, threads: int | None = None) -> Native:
    """Native code for a Func that has been through the optimisation pipeline; `threads` bounds those of large kernels."""
    return Native(func, target, threads)


class Timed(Native):
    """The same with a clock around every kernel, for profiles. One call at a time: the log belongs to the code."""

    def __init__(self, func: Func, target: llvm.Target | None = None, threads: int | None = None) -> None:
        self.probes = Probes()
        super().__init__(func, target, threads, self.probes)

    def run(self, arrays: Sequence[Array]) -> Run:
        """Call it, and give what was noted."""
        self(arrays)
        return self.probes.take(self._library.address[LOG])
