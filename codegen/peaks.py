"""Peak performance of this machine, measured: multiply-adds on registers, and a triad a = b + s * c over arrays larger than most caches.

Both run on the threads that large kernels use, once per process. `profile` compares kernels with them.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np

from adjit.ir.locks import once
from adjit.ir.records import NamedTuple
from adjit.ir.target import Target
from adjit.ir.types import F32, F64, DType

from .llvm import toolchain as llvm
from .llvm.lanes import LLVM_TYPE
from .threads import library

ACCUMULATORS = 12  # hides the latency of two pipelines; fits in sixteen registers
TURNS = 20_000
TRIAD_FLOATS = 8 << 20  # an array of 32 MB
CHUNKS = 8  # per thread
ATTEMPTS = 25, 6  # the fastest counts: a disturbed run does not measure the machine


class Peaks(NamedTuple):
    """Operations per second by dtype and bytes per second, on `threads` threads."""

    operations: dict[DType, float]
    bytes: float
    threads: int


@once
def peaks(target: Target) -> Peaks:
    width = target.vector_bytes
    dtypes = (F32, F64)
    text = "".join([*(_multiply_adds(dtype, width // dtype.itemsize) for dtype in dtypes), _triad(width // 4)])
    names = [f"peak_{LLVM_TYPE[d]}" for d in dtypes]
    native = llvm.Library([llvm.assemble(text, target)], [*names, "triad"], {})
    chunks, threads = CHUNKS * target.threads, target.threads
    runner = library.runner(threads)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    run = kind(library.addresses([runner], target)[runner])

    def best(name: str, argument: int, attempts: int) -> float:
        return _best(lambda: run(native.address[name], argument, chunks, None, threads), attempts)

    operations = {}
    for dtype, name in zip(dtypes, names, strict=True):
        out = np.zeros((1 + chunks) * 64, np.uint8)
        done = 2.0 * ACCUMULATORS * TURNS * (width // dtype.itemsize) * chunks
        operations[dtype] = done / best(name, out.ctypes.data, ATTEMPTS[0])
    arrays = [np.ones(TRIAD_FLOATS, np.float32) for _ in range(3)]
    table = (ctypes.c_int64 * 4)(*(a.ctypes.data for a in arrays), TRIAD_FLOATS // chunks)
    moved = 3.0 * 4 * (TRIAD_FLOATS // chunks // (4 * (width // 4)) * (4 * (width // 4))) * chunks
    return Peaks(operations, moved / best("triad", ctypes.addressof(table), ATTEMPTS[1]), threads)


def _best(call: Callable[[], None], attempts: int) -> float:
    times = []
    for _ in range(attempts):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _multiply_adds(dtype: DType, lanes: int) -> str:
    """A chain of multiply-adds; `contract` lets the back end fuse them if the machine has FMA, and they are separate otherwise."""
    f, names = LLVM_TYPE[dtype], range(ACCUMULATORS)
    v = f"<{lanes} x {f}>"
    phis = "\n".join(f"  %a{k} = phi {v} [%x, %entry], [%b{k}, %loop]" for k in names)
    steps = "\n".join(f"  %m{k} = fmul contract {v} %a{k}, %x\n  %b{k} = fadd contract {v} %m{k}, %y" for k in names)
    sums = "\n".join(f"  %s{k + 1} = fadd {v} {f'%s{k}' if k else '%x'}, %b{k}" for k in names)
    return f"""
define void @peak_{f}(ptr %out, i64 %chunk, i64 %worker) nounwind {{
entry:
  %x = load {v}, ptr %out, align 4
  %y.at = getelementptr i8, ptr %out, i64 {64 - dtype.itemsize * lanes}
  %y = load {v}, ptr %y.at, align 4
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i.next, %loop]
{phis}
{steps}
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, {TURNS}
  br i1 %more, label %loop, label %done
done:
{sums}
  %row = add i64 %chunk, 1
  %at = getelementptr [64 x i8], ptr %out, i64 %row
  store {v} %s{ACCUMULATORS}, ptr %at, align 4
  ret void
}}
"""


def _triad(lanes: int) -> str:
    """The chunk-th part of `a = b + 3 c`; the table holds the addresses of a, b, c and the number of elements per part."""
    v, step = f"<{lanes} x float>", 4 * lanes
    three = f"<{', '.join(['float 3.0'] * lanes)}>"
    body = "\n".join(
        f"""  %j{u} = add i64 %i, {u * lanes}
  %b{u}.at = getelementptr float, ptr %b, i64 %j{u}
  %c{u}.at = getelementptr float, ptr %c, i64 %j{u}
  %a{u}.at = getelementptr float, ptr %a, i64 %j{u}
  %b{u} = load {v}, ptr %b{u}.at, align 4
  %c{u} = load {v}, ptr %c{u}.at, align 4
  %m{u} = fmul contract {v} %c{u}, {three}
  %s{u} = fadd contract {v} %b{u}, %m{u}
  store {v} %s{u}, ptr %a{u}.at, align 4"""
        for u in range(4)
    )
    return f"""
define void @triad(ptr %table, i64 %chunk, i64 %worker) nounwind {{
entry:
  %a = load ptr, ptr %table
  %b.slot = getelementptr ptr, ptr %table, i64 1
  %b = load ptr, ptr %b.slot
  %c.slot = getelementptr ptr, ptr %table, i64 2
  %c = load ptr, ptr %c.slot
  %size.slot = getelementptr i64, ptr %table, i64 3
  %size = load i64, ptr %size.slot
  %whole = sdiv i64 %size, {step}
  %length = mul i64 %whole, {step}
  %first = mul i64 %chunk, %size
  %last = add i64 %first, %length
  br label %loop
loop:
  %i = phi i64 [%first, %entry], [%i.next, %loop]
{body}
  %i.next = add i64 %i, {step}
  %more = icmp slt i64 %i.next, %last
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
