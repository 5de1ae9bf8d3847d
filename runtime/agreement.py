"""Agreement of ranks: the first call of a compiled function with collectives compares these across all ranks.

Ranks that call different collectives would wait for each other forever, or exchange the wrong data. Everything else may differ: rank 0 may
print, and each rank may use its number. The collectives are compared in program order, with their types and attributes, and the branches
and loops around them. Rank 0 collects the descriptions by point-to-point messages, which do not interfere with collectives, and gives up
after a time: a rank that does not call the function at all must not leave the others waiting. Collectives that an earlier call has compared
are not compared again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from adjit.codegen import collectives
from adjit.codegen.shared import blocks, windows
from adjit.ir.environment import value
from adjit.ir.errors import DistributedError
from adjit.ir.func import Block, Func
from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple
from adjit.ir.target import EXCHANGES, OVERLAPPED, SHARED
from adjit.ir.world import World, world
from adjit.tracer.trace import TracedProgram

from .convention import Convention
from .executable import Executable
from .stores import Store

TAG = 30017  # of messages on the communicator of all ranks
PAUSE = 0.0005  # seconds between two polls for a message, growing to the longest
LONGEST_PAUSE = 0.05
NOTICE = 30.0  # seconds after which waiting is reported


class Line(NamedTuple):
    """A collective, or a branch or loop that contains some."""

    text: str
    location: str


class Description(NamedTuple):
    """The program that a rank is about to run."""

    name: str
    lines: tuple[Line, ...]


def has_collectives(func: Func) -> bool:
    return any(True for _ in _lines(func.block, ""))


def _lines(block: Block, indent: str) -> Iterator[Line]:
    for stmt in block.stmts:
        where = "" if stmt.location is None else f" ({stmt.location})"
        if stmt.op.is_collective:
            attributes = ", ".join(f"{name}={x}" for name, x in stmt.op.attributes())
            yield Line(f"{indent}{stmt.op.name}({', '.join([str(stmt.args[0].type), *([attributes] if attributes else [])])})", where)
        for i, inner in enumerate(stmt.blocks):
            inside = list(_lines(inner, indent + "  "))
            if inside:
                yield Line(f"{indent}{stmt.op.name}" + (f", block {i + 1}" if len(stmt.blocks) > 1 else ""), where)
                yield from inside


def described(func: Func) -> Description:
    return Description(func.name, tuple(_lines(func.block, "")))


def expected_exchange(func: Func, ranks: World) -> str | None:
    """How the collectives of a traced Func are compiled, unless the ranks agree on something simpler; None if it has none."""
    if ranks.size == 1 or not has_collectives(func):
        return None
    is_shared = ranks.size <= blocks.MOST_RANKS and windows.is_expected(ranks, os.environ)
    return SHARED if is_shared else OVERLAPPED


class AgreeingConvention(Convention):
    """The convention of a function with collectives: its first call compares them with those of all other ranks."""

    __slots__ = ("_executable", "_agreed")

    def __init__(self, program: TracedProgram, executable: Executable, given: Sequence[Store], closed_over: set[Store]) -> None:
        super().__init__(program, executable.native, given, closed_over)
        self._executable = executable
        self._agreed = False

    def run(
        self, arrays: list[Array], given: Sequence[Store] = (), observe: Callable[[list[Store], list[Array]], None] | None = None
    ) -> list[Array]:
        self.agree()
        return super().run(arrays, given, observe)

    def agree(self) -> None:
        if self._agreed:
            return
        mine = described(self._program.func)
        if not is_agreed(self._executable, _key(mine)):
            compare(mine, world())
            collectives.prepare(self.native.target)
            agree_on_exchange(self._executable, world())
            _agreed[_key(mine)] = (self._executable.target.exchange, self._executable.native.exchanges)
        self.native = self._executable.native
        self._agreed = True

    def agreed(self, number: int) -> int:
        return int(world().comm.bcast(number))


_agreed: dict[tuple[str, ...], tuple[str, str]] = {}  # collectives that all ranks have compared: how they were compiled, and their order


def is_agreed(executable: Executable, key: tuple[str, ...]) -> bool:
    """Whether native code runs the same collectives, in the same order, as a function that all ranks have compared.

    A rank whose part of a batch is smaller calls the function with types of its own: the other ranks would not take part in a comparison.
    """
    if key not in _agreed:
        return False
    exchange, order = _agreed[key]
    if executable.target.exchange != exchange:
        executable.compile_with(exchange)
    return executable.native.exchanges == order


def agree_on_exchange(executable: Executable, ranks: World) -> None:
    """Compile again, on all ranks, unless native code runs the same collectives in the same order on all.

    Passes start some collectives early and fuse others into kernels, depending on the rest of the program, which may differ between ranks:
    one of them may print a gradient. Without these passes, the order is that of the program, which has been compared.
    """
    while True:
        ways, orders = zip(*ranks.comm.allgather((executable.target.exchange, executable.native.exchanges)), strict=True)
        lowest = min(map(EXCHANGES.index, ways))
        is_possible = len(set(orders)) == 1 and (EXCHANGES[lowest] != SHARED or windows.is_used())
        if len(set(ways)) == 1:
            if is_possible or not lowest:
                return
            lowest -= 1
        executable.compile_with(EXCHANGES[lowest])


def compare(mine: Description, ranks: World) -> None:
    """Raise a DistributedError, on every rank that takes part, unless all ranks have the same collectives."""
    comm, limit = ranks.comm, float(value("ADJIT_RANKS_TIMEOUT") or 300.0)
    if ranks.rank:
        comm.send(mine, 0, TAG)
        (problem,) = _received(comm, [0], f"rank {ranks.rank} has reached the first call of {mine.name}", limit)
    else:
        problem = None
        try:
            theirs = _received(comm, range(1, ranks.size), f"rank 0 has reached the first call of {mine.name}", limit)
            problem = next((difference(mine, other, rank) for rank, other in enumerate(theirs, 1) if _key(other) != _key(mine)), None)
        except DistributedError as error:
            problem = str(error)
        for rank in range(1, ranks.size):
            comm.isend(problem, rank, TAG).Free()
    if problem is not None:
        raise DistributedError(problem)


def _received(comm: Any, sources: Sequence[int], place: str, limit: float) -> list[Any]:
    """A message of each rank."""
    found: dict[int, Any] = {}
    started, pause, told = time.monotonic(), PAUSE, False
    while len(found) < len(sources):
        for rank in sources:
            if rank not in found and comm.iprobe(source=rank, tag=TAG):
                found[rank] = comm.recv(source=rank, tag=TAG)
        missing = ", ".join(str(rank) for rank in sources if rank not in found)
        waited = time.monotonic() - started
        if missing and waited > limit:
            raise DistributedError(
                f"{place}, and rank {missing} did not within {limit:g} s (ADJIT_RANKS_TIMEOUT): all ranks must call the same functions "
                "with collectives, with arguments of the same types"
            )
        if missing and waited > min(NOTICE, limit / 2) and not told:
            told = True
            print(f"adjit: {place}, and has waited for rank {missing} for {waited:.0f} s", file=sys.stderr, flush=True)
        if missing:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
    return [found[rank] for rank in sources]


def _key(what: Description) -> tuple[str, ...]:
    return (what.name, *(line.text for line in what.lines))


def difference(mine: Description, other: Description, rank: int) -> str:
    """The first difference between what ranks 0 and `rank` run."""
    if mine.name != other.name:
        return f"ranks call different functions with collectives: {mine.name} on rank 0, {other.name} on rank {rank}"
    for a, b in zip(mine.lines, other.lines, strict=False):
        if a.text != b.text:
            return f"{mine.name}: {_described(a)} on rank 0, but {_described(b)} on rank {rank}"
    longer, count = (mine, len(other.lines)) if len(mine.lines) > len(other.lines) else (other, len(mine.lines))
    where, without = (0, rank) if longer is mine else (rank, 0)
    return f"{mine.name}: {_described(longer.lines[count])} on rank {where} has no counterpart on rank {without}"


def _described(line: Line) -> str:
    return f"{line.text.strip()}{line.location}"
