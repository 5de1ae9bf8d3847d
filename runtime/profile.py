"""`function.profile`: the time of a compiled call, kernel by kernel, and how close each kernel comes to the machine's peak.

A second version of the native code is compiled with a timer around every kernel and run on the call's own arrays; variables are copied
first, so that profiling a training step does not train. Owns the figures, their table and their export; codegen owns timers, costs and
peaks.
"""

from __future__ import annotations

import json
import linecache
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from adjit.codegen.compile import Timed
from adjit.codegen.main.probes import CLOCK, WHOLE, Run, Site
from adjit.codegen.peaks import Peaks, peaks
from adjit.codegen.traffic import traffic
from adjit.ir.cost import assumed_type
from adjit.ir.func import Func, Stmt, Value
from adjit.ir.location import Location, file_name
from adjit.ir.locks import lazy
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.ir.plan import Plan
from adjit.ir.records import NamedTuple
from adjit.ir.types import F32, F64, DType, StackType
from adjit.ir.work import work

if TYPE_CHECKING:
    from .concrete import ConcreteFunction
    from .signature import Signature

    T = TypeVar("T")

BUDGET = 1.0  # seconds to spend on calls when `repeat` is not given
FEWEST, MOST = 3, 200
RESOLUTION = 5e-8  # seconds: anything shorter is below the clock's resolution, and its rate is meaningless
ROWS = 24  # in the printed table
WIDTH = 46  # of a kernel's name in the table


class KernelProfile(NamedTuple):
    """One kernel in one call: all its figures are sums over `calls`. None where they cannot be derived from types alone."""

    name: str
    phase: str
    locations: tuple[Location, ...]  # the user's lines that it computes
    calls: int
    seconds: float
    operations: float | None
    bytes: float | None
    dtype: DType

    @property
    def gflops(self) -> float | None:
        return self._rate(self.operations)

    @property
    def gbytes(self) -> float | None:
        return self._rate(self.bytes)

    def _rate(self, amount: float | None) -> float | None:
        return None if amount is None or self.seconds < self.calls * RESOLUTION else amount / self.seconds / 1e9


class Memory(NamedTuple):
    """Bytes used while a call runs. `live` is the peak of live arena values, `stacks` the memory saved by loops."""

    arguments: int
    results: int
    arena: int
    live: int
    stacks: int

    @property
    def peak(self) -> int:
        return self.arguments + self.results + self.arena + self.stacks


class Profile:
    """The cost of one call; `print` it for a table, `save` it to view it in Perfetto or chrome://tracing."""

    def __init__(self, func: Func, twin: Timed, runs: Sequence[Run], plain: Sequence[float], arguments: int) -> None:
        self.name = func.name
        self.repeat = len(runs)
        self.seconds = statistics.median(plain)  # of a call of the code without timers
        self._func = func
        self._target = twin.target
        self._sites = twin.probes.sites
        self._fastest = min(runs, key=lambda run: int(run.nanoseconds[WHOLE]))
        results = sum(t.nbytes for t in twin.result_types)
        self.memory = Memory(arguments, results, twin.arena_bytes, max(self._live, default=0), max(run.stack_bytes for run in runs))
        clock = statistics.median(int(run.nanoseconds[CLOCK]) for run in runs)
        times = np.median([run.nanoseconds - clock * run.calls for run in runs], axis=0)
        found = [
            (self._kernel(site, max(0.0, float(times[k])) / 1e9, int(self._fastest.calls[k])), site.stmt)
            for k, site in enumerate(self._sites)
            if k not in (WHOLE, CLOCK) and self._fastest.calls[k]
        ]
        found.sort(key=lambda each: -each[0].seconds)
        self.kernels = [kernel for kernel, _ in found]
        self.stmts = [stmt for _, stmt in found]  # of each kernel; None for a copy

    def _kernel(self, site: Site, seconds: float, calls: int) -> KernelProfile:
        stmt = site.stmt
        if site.copied is not None or stmt is None:
            assert site.copied is not None
            each: tuple[float | None, ...] = (0.0, 2.0 * assumed_type(site.copied).nbytes)
        else:
            flops = work(stmt).flops
            each = (flops if math.isfinite(flops) else None, traffic(stmt, self._func.plan))
        operations, moved = (None if x is None else x * calls for x in each)
        doubles = stmt is not None and any(x.type.dtype == F64 for x in (*stmt.results, *stmt.args))
        phase = "forward" if stmt is None else stmt.phase
        return KernelProfile(name_of(site), phase, locations(stmt), calls, seconds, operations, moved, F64 if doubles else F32)

    @lazy
    def peaks(self) -> Peaks:
        """The machine's peak rates, measured once per process."""
        return peaks(self._target)

    @lazy
    def _live(self) -> list[int]:
        return live_bytes(self._func)

    def live(self) -> list[int]:
        """Live bytes of the arena during each top-level statement."""
        return self._live

    # ---- text

    def __str__(self) -> str:
        best = self.peaks
        inside = sum(kernel.seconds for kernel in self.kernels)
        head = f"@{self.name}: {duration(self.seconds)} a call (median of {self.repeat}), "
        head += f"{duration(inside)} of it in {len(self.kernels)} kernels"
        machine = (
            f"this machine, {best.threads} thread{'s' * (best.threads > 1)}: {best.operations[F32] / 1e9:.1f} GFLOP/s in f32, "
            f"{best.operations[F64] / 1e9:.1f} in f64, {best.bytes / 1e9:.1f} GB/s"
        )
        m = self.memory
        memory = (
            f"memory: {size(m.peak)} at most: arguments and variables {size(m.arguments)}, results {size(m.results)}, "
            f"arena {size(m.arena)} (values alive in it {size(m.live)})" + (f", saved by loops {size(m.stacks)}" if m.stacks else "")
        )
        width = min(WIDTH, max((len(k.name) for k in self.kernels), default=0))
        columns = f"{'time':>9} {'share':>6} {'calls':>6} {'GFLOP/s':>8} {'peak':>5} {'GB/s':>7} {'peak':>5}"
        columns += f"  {'phase':<8}  {'kernel':<{width}}  lines"
        rows = [self._row(kernel, inside, width) for kernel in self.kernels[:ROWS]]
        rest = self.kernels[ROWS:]
        if rest:
            seconds = sum(kernel.seconds for kernel in rest)
            rows.append(f"{duration(seconds):>9} {seconds / (inside or 1):>6.1%}  and {len(rest)} more kernels")
        return "\n".join([head, machine, memory, "", columns, *rows])

    def _row(self, kernel: KernelProfile, inside: float, width: int) -> str:
        rates = rate(kernel.gflops, self.peaks.operations[kernel.dtype], 8) + " " + rate(kernel.gbytes, self.peaks.bytes, 7)
        where = f"{lines(kernel.locations)}  {source(kernel.locations)}".rstrip()
        figures = f"{duration(kernel.seconds):>9} {kernel.seconds / (inside or 1):>6.1%} {kernel.calls:>6} {rates}"
        return f"{figures}  {kernel.phase:<8}  {shortened(kernel.name, width):<{width}}  {where}".rstrip()

    def __repr__(self) -> str:
        return f"<profile of @{self.name}: {duration(self.seconds)}, {len(self.kernels)} kernels>"

    def _repr_html_(self) -> str:
        """In notebooks: the table."""
        return f"<pre>{escape(str(self))}</pre>"

    # ---- export

    def trace(self) -> dict[str, Any]:
        """Return the fastest call as Chrome trace events: a slice for each kernel, and the live bytes of the arena."""
        (_, _, start), *events = self._fastest.events.tolist()  # the first event is the timer's own
        common = {"pid": os.getpid(), "tid": 1}
        whole = max(int(self._fastest.nanoseconds[WHOLE]), *(ended - start for *_, ended in events), 0) / 1e3
        out: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", **common, "args": {"name": "adjit"}},
            {"name": "thread_name", "ph": "M", **common, "args": {"name": f"@{self.name}"}},
            {"name": f"@{self.name}", "cat": "call", "ph": "X", "ts": 0, "dur": whole, **common},
        ]
        kernels = {k: self._kernel(self._sites[k], 0.0, 1) for k in {event[0] for event in events} - {WHOLE}}
        places = {k: [place.describe() for place in kernel.locations] for k, kernel in kernels.items()}
        top = top_level(self._func)
        for number, began, ended in events:
            if number == WHOLE:
                continue
            kernel, at = kernels[number]._replace(seconds=(ended - began) / 1e9), (began - start) / 1e3
            figures = {"GFLOP/s": kernel.gflops, "GB/s": kernel.gbytes, "lines": places[number]}
            slice_ = {"ph": "X", "ts": at, "dur": (ended - began) / 1e3, **common}
            out.append({"name": kernel.name, "cat": kernel.phase, **slice_, "args": figures})
            stmt = self._sites[number].stmt
            if id(stmt) in top:
                live = {"bytes": self._live[top[id(stmt)]]}
                out.append({"name": "alive in the arena", "ph": "C", "ts": at, **common, "args": live})
        return {"traceEvents": out, "displayTimeUnit": "ns", "otherData": {"memory": self.memory._asdict(), "seconds": self.seconds}}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `trace` to a file for https://ui.perfetto.dev or chrome://tracing."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.trace(), file)


def profile(concrete: ConcreteFunction, signature: Signature, repeat: int | None) -> Profile:
    """Compile the timed version, run both, and collect the figures."""
    if repeat is not None and repeat < 1:
        raise ValueError(f"profile: repeat must be at least 1, not {repeat}")
    return profile_arrays(concrete, concrete.convention.copies(signature.arrays, signature.stores), repeat)


def profile_arrays(concrete: ConcreteFunction, given: Sequence[Array], repeat: int | None, budget: float = BUDGET) -> Profile:
    """The same for the arrays that the native code takes; those of variables are changed."""
    concrete.convention.agree()
    func = concrete.executable.optimized
    twin, native = Timed(func, concrete.executable.target), concrete.executable.native
    # interleaved, so that disturbances of the machine affect both alike
    both = repeated(lambda: (twin.run(given), elapsed(lambda: native(given))), repeat, budget, concrete.convention.agreed)
    runs, plain = zip(*both, strict=True)
    return Profile(func, twin, runs, plain, sum(a.nbytes for a in given))


def repeated(call: Callable[[], T], repeat: int | None, budget: float, agreed: Callable[[int], int] = int) -> list[T]:
    """Return the results of `repeat` calls, or of as many as fit the budget; the first two calls warm the caches and are not counted.

    `agreed` makes it the same number for all that take part.
    """
    call()
    began = time.perf_counter()
    call()
    if repeat is None:
        repeat = int(min(MOST, max(FEWEST, budget / (time.perf_counter() - began))))
    return [call() for _ in range(agreed(repeat))]


def elapsed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# ---- names and source lines of kernels


def name_of(site: Site) -> str:
    if site.copied is not None:
        return f"copy {site.copied}"
    stmt = site.stmt
    assert stmt is not None
    if stmt.blocks:
        return f"{stmt.op.name}: {' '.join(s.op.name for s in walk(stmt) if s is not stmt and not s.blocks)}"
    return f"{stmt.op.name} {' '.join(str(x.type) for x in stmt.args)}".rstrip()


def walk(stmt: Stmt) -> Iterator[Stmt]:
    """Yield a statement and all statements nested in it."""
    yield stmt
    for block in stmt.blocks:
        for inner in block.stmts:
            yield from walk(inner)


def locations(stmt: Stmt | None) -> tuple[Location, ...]:
    """Return the lines of a statement and of all that were fused into it, in source order."""
    found = {(s.location.file, s.location.line): s.location for s in (walk(stmt) if stmt is not None else ()) if s.location is not None}
    return tuple(found[key] for key in sorted(found))


def lines(places: Sequence[Location]) -> str:
    """Format locations: `model.py:12,14`."""
    files: dict[str, list[str]] = {}
    for place in places:
        files.setdefault(file_name(place.file), []).append(str(place.line))
    return " ".join(f"{file}:{','.join(numbers)}" for file, numbers in files.items())


def source(places: Sequence[Location]) -> str:
    return shortened(linecache.getline(places[0].file, places[0].line).strip(), 60) if places else ""


# ---- memory


def top_level(func: Func) -> dict[int, int]:
    """Map each statement, at any depth, to the position of the top-level statement that contains it."""
    return {id(inner): k for k, stmt in enumerate(func.stmts) for inner in walk(stmt)}


def live_bytes(func: Func) -> list[int]:
    """Return the live bytes of the arena during each top-level statement."""
    plan: Plan = func.plan
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    roots: dict[int, Value] = {}

    def use(values: Sequence[Operand], at: int) -> None:
        for value in values:
            window = plan.windows.get(id(value)) if isinstance(value, Value) else None
            place = plan.places.get(id(window.root)) if window is not None else None  # values in registers or on the stack have no place
            if window is not None and place is not None and place.kind == "arena" and not isinstance(window.root.type, StackType):
                key = id(window.root)
                roots[key], last[key] = window.root, at
                first.setdefault(key, at)

    for at, stmt in enumerate(func.stmts):
        for inner in walk(stmt):
            use((*inner.args, *inner.results), at)
            for block in inner.blocks:
                use((*block.params, *block.results, *block.saving), at)
    use(func.outputs(), max(0, len(func.stmts) - 1))
    changes = [0] * (max(1, len(func.stmts)) + 1)
    until: dict[int, int] = {}  # arena offset -> position where its last value died
    for key, root in sorted(roots.items(), key=lambda item: first[item[0]]):
        offset = plan.places[key].index
        start = max(first[key], until.get(offset, -1) + 1)  # a statement that writes in place counts the buffer once
        if start <= last[key]:
            changes[start] += root.type.nbytes
            changes[last[key] + 1] -= root.type.nbytes
            until[offset] = last[key]
    total: list[int] = np.cumsum(changes[:-1], dtype=np.int64).tolist()
    return total


# ---- figures as text


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def size(count: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.2f} {unit}"
    return f"{count} B"


def rate(value: float | None, peak: float, width: int) -> str:
    """Format a rate in billions per second, and its share of the peak."""
    return f"{'-':>{width}} {'-':>5}" if value is None or value == 0 else f"{value:>{width}.1f} {value * 1e9 / peak:>5.0%}"


def shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
