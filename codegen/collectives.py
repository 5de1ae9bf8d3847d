"""Collectives of MPI, called from native code.

Programs import routines with names and parameters of our own, which are the same for every MPI library, rank and number of ranks: their
images can be cached and shared. What differs (the library's handles, the width of its types) is in the routines, which are compiled in each
process. Without MPI there is one rank, and the routines copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adjit.ir.locks import once
from adjit.ir.target import Target
from adjit.ir.types import DTYPE_NAMES, DTYPES, I64
from adjit.ir.world import World, world

from . import routines
from .kernels.window import Strided
from .llvm import toolchain as llvm
from .llvm.lanes import Reg
from .shared import blocks, parts, sums, windows, writing

if TYPE_CHECKING:
    from .kernels.loop_kernel import LoopKernel

PREFIX = routines.MPI
PARAMETERS = "ptr, ptr, i64, i32"  # target, source, elements, root
ROUTINE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
SLOTS = 64  # reductions that may be in progress at the same time
HERE = 1  # returned by `sum_deferred`: MPI has computed the sums, which are at the source
MOVE = "adjit_memmove"
COPY = f"""  %same = icmp eq ptr %to, %from
  %all = mul i64 %n, {{itemsize}}
  %bytes = select i1 %same, i64 0, i64 %all
  %end = call ptr @{MOVE}(ptr %to, ptr %from, i64 %bytes)"""
# The functions of MPI, and their arguments: to, from (the address that stands for "in place", if both are one), n, type, op, root, comm
CALLS = {
    "all_reduce": ("MPI_Allreduce", "from to n type op comm"),
    "start_all_reduce": ("MPI_Iallreduce", "from to n type op comm request"),
    "defer_all_reduce": ("MPI_Iallreduce", "from to n type op comm request"),
    "finish_all_reduce": ("MPI_Wait", "request status"),
    "broadcast_from": ("MPI_Bcast", "to n type root comm"),
    "reduce_to": ("MPI_Reduce", "from to n type op root comm"),
    "all_gather": ("MPI_Allgather", "from n type to n type comm"),
    "reduce_scatter": ("MPI_Reduce_scatter_block", "from to n type op comm"),
    "all_to_all": ("MPI_Alltoall", "from n type to n type comm"),
}
# what ranks of one machine exchange through memory that they share
SHARED = ("all_reduce", "start_all_reduce", "defer_all_reduce", "sum_deferred", "reduce_scatter", "all_gather")


def call(kernel: LoopKernel, name: str, target: Strided, source: Strided, count: int, root: int) -> Reg:
    """Emit a call; returns MPI's error code as an i64, 0 for success."""
    text, routine = kernel.text, f"{PREFIX}{name}.{DTYPE_NAMES[target.type.dtype]}"
    text.declares.add(f"declare i32 @{routine}({PARAMETERS})")
    kernel.imports.add(routine)
    code = text.define(f"call i32 @{routine}(ptr {target.pointer}, ptr {source.pointer}, i64 {count}, i32 {root})")
    return Reg(text.define(f"sext i32 {code} to i64"), I64)


def sum_deferred(kernel: LoopKernel, target: Strided, source: Strided, rows: int) -> None:
    """Sum `rows` rows at a time, and store the sums to the target, which may be a region that uses them.

    Every part is an exchange in which all ranks take part, so none may leave before the last: signals are checked afterwards.
    """
    type, looks = source.type, kernel.text.may_look
    rows = min(rows, type.shape[0])
    buffer = kernel.scratch(type.with_shape((rows, *type.shape[1:])))
    count, rest = divmod(type.shape[0], rows)
    kernel.text.may_look = False

    def part(target: Strided, source: Strided, buffer: Strided) -> None:
        pointer = _summed(kernel, buffer, source, type.size)
        sums = Strided(kernel.text, pointer, source.type, source.strides)
        work = float(source.type.size * (1 + target.ops))
        if kernel.threads > 1 and kernel.is_large(work):
            kernel.each(source.type.shape[0], work, lambda i, to, made: kernel.copy(to.at(i), made.at(i)), target, sums)
        else:
            kernel.copy(target, sums)

    to, made = (w.slice(0, 0, count * rows).sliding(0, count, rows, rows) for w in (target, source))
    with kernel.loop(count) as i:
        part(to.at(i), made.at(i), buffer)
    if rest:
        to, made = (w.slice(0, count * rows, rest) for w in (target, source))
        part(to, made, buffer.slice(0, 0, rest))
    kernel.text.may_look = looks


def _summed(kernel: LoopKernel, buffer: Strided, source: Strided, total: int) -> str:
    """Emit a call that completes some of the `total` sums of an array; returns a pointer to them."""
    text, routine = kernel.text, f"{PREFIX}sum_deferred.{DTYPE_NAMES[source.type.dtype]}"
    text.declares.add(f"declare i32 @{routine}({PARAMETERS})")
    kernel.imports.add(routine)
    code = text.define(f"call i32 @{routine}(ptr {buffer.pointer}, ptr {source.pointer}, i64 {source.type.size}, i32 {total})")
    return text.define(f"select i1 {text.define(f'icmp eq i32 {code}, {HERE}')}, ptr {source.pointer}, ptr {buffer.pointer}")


def addresses(names: Sequence[str], target: Target) -> dict[str, int]:
    """The addresses of the routines."""
    plain = Target(target.triple, target.cpu, target.features)
    return {name: (_block_routine if blocks.is_routine(name) else _routine)(name, plain) for name in names}


def _block_routine(name: str, target: Target) -> int:
    return _block_routines(blocks.dtype_of(name), target)[name]


@once
def _block_routines(dtype: str, target: Target) -> dict[str, int]:
    text, names = blocks.text(dtype, world()), blocks.names(dtype)
    loaded = llvm.Library([llvm.Object(names[0].encode(), llvm.compiled(text, target, llvm.LEVEL))], names, writing.imports())
    _keep.append(loaded)
    return loaded.address


@once
def _routine(name: str, target: Target) -> int:
    collective, _, dtype = name.removeprefix(PREFIX).partition(".")
    ranks = world()
    is_shared = ranks.mpi is not None and collective in SHARED and windows.is_possible(ranks)
    if collective == "sum_deferred":
        text = sums.deferred_text(name, dtype, ranks, HERE) if is_shared else complete(name)
        imports, level = writing.imports() if is_shared else {}, llvm.LEVEL
    elif ranks.mpi is None:
        text, imports, level = copying(name, DTYPES[dtype].itemsize), {MOVE: _memmove()}, 0
    else:
        function, _ = CALLS[collective]
        library = ctypes.CDLL(ranks.mpi.__file__)  # its symbols include those of the library that it is linked with
        imports = {function: ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0, MOVE: _memmove()}
        text, level = calling(name, ranks), 0
        if is_shared:
            by_mpi = f"{name}.by_mpi"
            text = calling(name, ranks, by_mpi) + through_windows(name, collective, dtype, ranks, by_mpi)
            imports |= writing.imports()
            level = llvm.LEVEL
    # not kept on disk: the handles of some libraries are addresses, which differ from run to run
    loaded = llvm.Library([llvm.Object(name.encode(), llvm.compiled(text, target, level))], [name], imports)
    _keep.append(loaded)
    return loaded.address[name]


def through_windows(name: str, collective: str, dtype: str, ranks: World, slow: str) -> str:
    """A routine that exchanges data through shared memory, or by the routine `slow`."""
    if collective in ("all_reduce", "start_all_reduce"):
        return sums.text(name, dtype, ranks, slow)
    if collective == "defer_all_reduce":
        return sums.deferring_text(name, dtype, slow)
    return parts.text(name, collective, dtype, ranks, slow)


class Requests:
    """The requests of reductions that have been started, in slots of eight bytes, each of which holds a handle or "null"."""

    def __init__(self, mpi: Any) -> None:
        self.null = mpi._handleof(mpi.REQUEST_NULL) & (2 ** (8 * mpi._sizeof(mpi.REQUEST_NULL)) - 1)
        self.slots = (ctypes.c_uint64 * SLOTS)(*[self.null] * SLOTS)
        self.status = (ctypes.c_uint64 * 16)()  # more than a status of any library

    def pending(self) -> list[int]:
        return [slot for slot in range(SLOTS) if self.slots[slot] != self.null]


@once
def _requests() -> Requests:
    return Requests(world().mpi)


def settle(target: Target) -> None:
    """Wait for reductions that an interrupted call has started but not finished: they would write to memory in use."""
    if not _requests.is_made():
        return
    for slot in _requests().pending():
        name = f"{PREFIX}finish_all_reduce.f32"
        ROUTINE(addresses([name], target)[name])(None, None, 0, slot)


def prepare(target: Target) -> None:
    """Choose how to sum over the ranks of one machine. All ranks call it at the same time; only the first call has an effect."""
    name = f"{PREFIX}all_reduce.f32"
    add = ROUTINE(addresses([name], target)[name])
    windows.prepare(world(), lambda to, source, count: int(add(to, source, count, 0)))


def calling(name: str, ranks: World, called: str = "") -> str:
    """A routine that calls MPI, on the communicator of all ranks. `called`: its name, if that is not `name`."""
    collective, _, dtype = name.removeprefix(PREFIX).partition(".")
    function, order = CALLS[collective]
    mpi = ranks.mpi
    kind = mpi.BYTE if dtype == "bool" else _datatype(mpi, dtype)
    values = {
        "to": "ptr %to",
        "from": "ptr %send",
        "n": "i32 %count",
        "root": "i32 %root",
        "type": handle(mpi, kind),
        "op": handle(mpi, mpi.SUM),
        "comm": handle(mpi, ranks.comm),
    }
    if "request" in order:
        values["request"] = "ptr %request"
        values["status"] = f"ptr inttoptr (i64 {ctypes.addressof(_requests().status)} to ptr)"
    slots = ctypes.addressof(_requests().slots) if "request" in values else 0
    place = f"ptr inttoptr (i64 {int(mpi.IN_PLACE)} to ptr)"
    if function == "MPI_Iallreduce":  # its operand may be overwritten before the sum is complete
        send = f"""{COPY.format(itemsize=DTYPES[dtype].itemsize)}
  %send = getelementptr i8, {place}, i64 0"""
    else:
        send = f"""  %same = icmp eq ptr %to, %from
  %send = select i1 %same, {place}, ptr %from"""
    arguments = [values[word] for word in order.split()]
    types = ", ".join(argument.partition(" ")[0] for argument in arguments)
    return f"""declare i32 @{function}({types})
declare ptr @{MOVE}(ptr, ptr, i64)
define i32 @{called or name}(ptr %to, ptr %from, i64 %n, i32 %root) nounwind {{
  %count = trunc i64 %n to i32
{send}
  %slot = zext i32 %root to i64
  %request = getelementptr i64, ptr inttoptr (i64 {slots} to ptr), i64 %slot
  %code = call i32 @{function}({", ".join(arguments)})
  ret i32 %code
}}
"""


def handle(mpi: Any, thing: Any) -> str:
    """A handle as an argument: an int in MPICH's ABI, a pointer in Open MPI's and in the standard one."""
    value = mpi._handleof(thing)
    return f"i32 {value & 0xFFFFFFFF}" if mpi._sizeof(thing) == 4 else f"ptr inttoptr (i64 {value} to ptr)"


def _datatype(mpi: Any, dtype: str) -> Any:
    return mpi.Datatype.fromcode(DTYPES[dtype].char)


def copying(name: str, itemsize: int) -> str:
    """The routine for a single rank without MPI."""
    return f"""declare ptr @{MOVE}(ptr, ptr, i64)
define i32 @{name}(ptr %to, ptr %from, i64 %n, i32 %root) nounwind {{
{COPY.format(itemsize=itemsize)}
  ret i32 0
}}
"""


def complete(name: str) -> str:
    """The routine for deferred sums that MPI has made."""
    return f"define i32 @{name}({PARAMETERS}) {{\n  ret i32 {HERE}\n}}\n"


def _memmove() -> int:
    return ctypes.cast(ctypes.memmove, ctypes.c_void_p).value or 0


_keep: list[llvm.Library] = []
