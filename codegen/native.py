"""Compiled code that can be called with arrays. Cheap to import: a program from the disk cache runs without loading the compiler."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from adjit.ir.errors import AdjitError, Detail
from adjit.ir.func import Func
from adjit.ir.locks import lazy
from adjit.ir.ops.base import Array
from adjit.ir.sizes import is_symbolic
from adjit.ir.target import Target
from adjit.ir.types import DType, TensorType

from . import routines
from .cache.image import Axis, Image
from .elements import data_addresses
from .interrupts import signals
from .llvm import toolchain as llvm
from .llvm.owned import free_after
from .products import blas
from .threads import library

LARGE, HUGE = 1 << 18, 1 << 26  # bytes of a result whose buffers are kept for the next call
MANY, PART = 1 << 20, 1 << 14  # if all results together are this large, those of `PART` bytes too: the allocator gives their memory back
KEPT = 2  # buffers of each: the caller often holds one result while the next is computed
MAIN = "adjit_main"
TOO_SMALL = -4  # nothing has happened yet: the arena is too small, or the sizes are so large that only Python can compute what is needed
LIMIT = 1 << 47  # bytes: more than any memory
RAISED = -3  # a Python function that native code called has raised; see `Raised`


class Raised(threading.local):
    """The exception of such a function, on its way through native code to the caller."""

    error: BaseException | None = None


raised = Raised()


class Native:
    """A compiled Func. Call it with arrays in the order of the parameters; parameters in `updates` are overwritten in place."""

    def __init__(
        self, func: Func, image: Image, texts: Callable[[], list[str]], target: Target, hosts: Mapping[str, ctypes._FuncPointer]
    ) -> None:
        """`func`: the Func as traced, or after the passes; `hosts`: Python functions that native code calls."""
        self.name = func.name
        self.target = target
        self.failures = image.failures
        self.arena_bytes = image.arena_bytes
        self.result_types = tuple(r.type for r in func.results)
        self.quick_up_to = image.quick
        self.enterable = image.enterable
        self.exchanges = image.exchanges
        self.texts = texts  # LLVM IR of the parts
        self._hosts = hosts
        callbacks = {name: ctypes.cast(fn, ctypes.c_void_p).value or 0 for name, fn in hosts.items()}
        self._library = llvm.Library(image.objects, image.exports, addresses(image.imports, target) | callbacks)
        if target.debug_lines:
            from .llvm import perf  # noqa: PLC0415 - only for these programs

            perf.write(self.name, (each.code for each in image.objects), self._library.address)
        llvm.rest(always=bool(image.symbols))  # no other size will be compiled
        self.address = self._library.address[MAIN]
        self._main = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(self.address)
        self._arenas: list[Array] = []
        self.symbols = image.symbols
        fixed = [not any(map(is_symbolic, t.shape)) for t in self.result_types]
        self._sized = sized_types(self.symbols, [t for t, is_fixed in zip(self.result_types, fixed, strict=True) if not is_fixed])
        self._axes = [(symbol.param, symbol.axis) for symbol in self.symbols]
        self._memory: Callable[..., int] = sized(self.symbols, image.memory)
        least = pooled_from([t for t, is_fixed in zip(self.result_types, fixed, strict=True) if is_fixed])
        self._results = [
            (t, is_fixed, deque[Array]() if not is_fixed or least <= t.nbytes <= HUGE else None)
            for t, is_fixed in zip(self.result_types, fixed, strict=True)
        ]
        self._count = image.buffer_count
        self._varies = not all(fixed)
        self._table = ctypes.c_void_p * (self._count + len(self.symbols) + 2)

    def entry_pools(self) -> list[list[Array]]:
        """Two buffers for each large result whose size is known, for calls through the native entry, and no others.

        Those of the calls through Python until now are among them: otherwise there would be twice as many.
        """
        out: list[list[Array]] = []
        for type, is_fixed, pool in self._results:
            out.append([])
            if pool is None or not is_fixed:
                continue
            with suppress(IndexError):
                while len(out[-1]) < KEPT:
                    out[-1].append(pool.popleft())
            out[-1] += [np.empty(type.nbytes, np.uint8) for _ in range(KEPT - len(out[-1]))]
        return out

    @property
    def llvm(self) -> str:
        """The LLVM IR of all parts."""
        return "\n".join(self.texts())

    @lazy
    def asm(self) -> str:
        return "\n".join(llvm.assembly(text, self.target) for text in self.texts())

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        if self.symbols:
            return self._call_sized(arrays)
        results = [made(t, pool) for t, _, pool in self._results]
        if len(arrays) + len(results) != self._count:  # native code would read beyond the end of the table
            raise AdjitError(f"@{self.name} takes {self._count - len(results)} arrays, not {len(arrays)}")
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = self.new_arena()
        *given, memory = data_addresses((*arrays, *results, arena))
        table = (ctypes.c_void_p * self._count)(*given)
        error = (ctypes.c_int64 * signals.RECORD_WORDS)()
        try:
            code = self._main(table, memory, error)
        finally:
            self._arenas.append(arena)
        if code:
            self._raise(code, list(error))
        return results

    def _call_sized(self, arrays: Sequence[Array]) -> list[Array]:
        """A call of code for all sizes: the table of buffers continues with the sizes, and the capacity of the arena."""
        sizes = [arrays[param].shape[axis] for param, axis in self._axes]
        if self._varies:
            shapes = iter(self._sized(*sizes))
            results = [made(t, pool) if is_fixed else any_sized(t.dtype, pool, *next(shapes)) for t, is_fixed, pool in self._results]
        else:
            results = [made(t, pool) for t, _, pool in self._results]
        if len(arrays) + len(results) != self._count:
            raise AdjitError(f"@{self.name} takes {self._count - len(results)} arrays, not {len(arrays)}")
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = self.new_arena()
        *given, memory = data_addresses((*arrays, *results, arena))
        table = self._table(*given, *sizes, arena.nbytes)
        error = (ctypes.c_int64 * signals.RECORD_WORDS)()
        try:
            code = self._main(table, memory, error)
            if code == TOO_SMALL:
                arena = self._grown(arena, sizes)
                table[-2], table[-1] = arena.nbytes, 1  # it is large enough
                code = self._main(table, data_addresses((arena,))[0], error)
        finally:
            self._arenas.append(arena)
        if code:
            self._raise(code, list(error))
        return results

    def memory_for(self, sizes: Sequence[int]) -> int:
        """Bytes of the arena that a call with these values of the symbols needs."""
        return self._memory(*sizes)

    def _grown(self, arena: Array, sizes: list[int]) -> Array:
        """An arena that suffices for these sizes: larger than needed, since other sizes may follow."""
        need = self.memory_for(sizes)
        if need > LIMIT:
            given = ", ".join(f"{symbol.name} = {size}" for symbol, size in zip(self.symbols, sizes, strict=True))
            raise MemoryError(f"@{self.name} would need {need:.3g} bytes of memory for {given}")
        return arena if need <= arena.nbytes else self.new_arena(max(need, min(need * 3 // 2, need + HUGE)))

    def forget_results(self) -> None:
        """Give up the buffers of earlier results: later ones are somewhere else in memory."""
        for _, _, pool in self._results:
            if pool is not None:
                pool.clear()

    def taken_arena(self, more_than: int) -> Array | None:
        """Return the arena that a call through Python used last, for the caller to keep, if it has more bytes than that."""
        try:
            arena = self._arenas.pop()
        except IndexError:
            return None
        if arena.nbytes > more_than:
            return arena
        self._arenas.append(arena)
        return None

    def new_arena(self, nbytes: int | None = None) -> Array:
        """Memory for one call at a time."""
        nbytes = self.arena_bytes if nbytes is None else nbytes
        raw = np.zeros(nbytes + 64, np.uint8)  # zero: stacks are empty
        start = data_addresses((raw,))[0]
        shift = -start % 64
        release = self._library.address.get(routines.RELEASE)
        arena = raw[shift : shift + nbytes]
        if release is not None:  # the memory is kept until then: NumPy 2.5 frees it before it calls back for weak references
            free_after(arena, [partial(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release), start + shift)], self._library, raw)
        return arena

    def _raise(self, code: int, details: list[int]) -> None:
        if self.exchanges:
            from . import collectives  # noqa: PLC0415 - imports the code generator, which programs from the disk cache do not need

            collectives.settle(self.target)
        if code == signals.INTERRUPTED:
            _restore(*details[signals.RAISED :][:3])
        if code == RAISED and raised.error is not None:
            error, raised.error = raised.error, None
            raise error
        if code == routines.OUT_OF_MEMORY:
            raise MemoryError(f"@{self.name}: not enough memory for what a loop saves for its backward pass; use checkpoint= for the loop")
        failure = self.failures[code - 1]
        raise failure.error(failure.message.format(*map(Detail, details))).at(failure.location)


def sized_types(symbols: Sequence[Axis], types: Sequence[TensorType]) -> Callable[..., Sequence[tuple[tuple[int, ...], int]]]:
    """A function from the values of the symbols to the shapes of these types, and their sizes in bytes."""
    shapes = ["".join(f"{n!s}, " for n in t.shape) for t in types]
    nbytes = ["*".join(f"({n!s})" for n in (t.dtype.itemsize, *t.shape)) for t in types]
    each = "".join(f"(({shape}), {size}), " for shape, size in zip(shapes, nbytes, strict=True))
    made: Callable[..., Sequence[tuple[tuple[int, ...], int]]] = sized(symbols, f"({each})")
    return made


def sized(symbols: Sequence[Axis], text: str) -> Any:
    """A function from the values of the symbols to that of an expression."""
    return eval(f"lambda {', '.join(symbol.name for symbol in symbols)}: {text}", {"min": min})


def _restore(*exception: int) -> None:
    """Raise what the handler of a signal raised while native code ran: its type, value and traceback, which this takes over."""
    restore = ctypes.pythonapi.PyErr_Restore
    restore.restype, restore.argtypes = None, [ctypes.c_void_p] * 3
    restore(*exception)  # functions of `pythonapi` raise what is set when they return


def pooled_from(types: Sequence[TensorType]) -> int:
    """The size in bytes from which results use buffers that are reused once they have no other references.

    Fresh memory costs a page fault every few kilobytes.
    """
    return PART if sum(t.nbytes for t in types) >= MANY else LARGE


def made(type: TensorType, pool: deque[Array] | None) -> Array:
    return np.empty(type.shape, type.dtype) if pool is None else recycled(type, pool)


def recycled(type: TensorType, pool: deque[Array]) -> Array:
    """An array on a buffer of the pool that no array, tensor or view refers to any more; on a new one if there is none."""
    for _ in range(len(pool)):
        try:
            taken = [pool.popleft()]  # taken out while we look, so that no other thread takes it too
        except IndexError:
            break
        array = taken[0].view(type.dtype).reshape(type.shape) if is_free(taken) else None
        pool.append(taken[0])
        if array is not None:
            return array
    buffer = np.empty(type.nbytes, np.uint8)
    if len(pool) < KEPT:
        pool.append(buffer)
    return buffer.view(type.dtype).reshape(type.shape)


def is_free(taken: list[Array]) -> bool:
    """Whether only the list refers to the buffer in it. Items of lists always count as references; from 3.14 on, variables may not."""
    return sys.getrefcount(taken[0]) == 2  # the list, and the argument


def any_sized(dtype: DType, pool: deque[Array] | None, shape: tuple[int, ...], nbytes: int) -> Array:
    """A result whose size differs from call to call; a large one is on a buffer of the pool."""
    if pool is None or not LARGE <= nbytes <= HUGE:
        return np.empty(shape, dtype)
    for _ in range(len(pool)):
        try:
            taken = [pool.popleft()]
        except IndexError:
            break
        if not nbytes <= taken[0].size <= 4 * nbytes:
            continue  # dropped: the sizes have changed
        array = taken[0][:nbytes].view(dtype).reshape(shape) if is_free(taken) else None
        pool.append(taken[0])
        if array is not None:
            return array
    buffer = np.empty(nbytes, np.uint8)
    if len(pool) < KEPT:
        pool.append(buffer)
    return buffer.view(dtype).reshape(shape)


def addresses(names: Sequence[str], target: Target) -> dict[str, int]:
    """The addresses of the routines that a program imports."""
    of_blas = [name for name in names if name.startswith(blas.PREFIX)]
    of_mpi = [name for name in names if routines.is_of_mpi(name)]
    found = library.addresses((name for name in names if name not in of_blas and name not in of_mpi), target)
    found |= {name: blas.addresses(target)[name] for name in of_blas}
    if not of_mpi:
        return found
    from . import collectives  # noqa: PLC0415 - imports the code generator, which programs from the disk cache do not need

    return found | collectives.addresses(of_mpi, target)
