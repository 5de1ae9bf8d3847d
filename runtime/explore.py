"""`function.explore`: source, IR, native code, times and memory of a compiled function, linked in one HTML page.

Collects data from inspection, profile, interpreter and code generator as JSON; the page itself is `explore.html`, which needs no library
and no network. The user's text (names, source) is data, and the page writes it as text, never as markup.
"""

from __future__ import annotations

import base64
import json
import linecache
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.codegen.kernel_texts import KernelText, kernel_texts
from adjit.ir.errors import AdjitError, UnsupportedError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.interpreter import run_block
from adjit.ir.location import file_name
from adjit.ir.ops.base import View
from adjit.ir.ops.effects import repeating
from adjit.ir.printer import Annotated, Names, annotated
from adjit.ir.types import F32, F64, StackType

from .inspection import Inspection, count_ops
from .profile import Profile, duration, locations, profile_arrays, size, walk

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

LONGEST_TEXT = 400_000  # characters of the LLVM IR or assembly of one kernel; the rest is left out
MANY = 400  # top-level statements: with more, the graph is not drawn and fewer texts are kept
WORK = 2e8  # operations: the interpreter runs programs up to this size to find the values
BARS = 24  # of a value's histogram
BUDGET = 0.2  # seconds of calls, to measure times
COMMENT = re.compile(r"\s+# (?:(?P<file>[^\s:]+):)?(?P<line>\d+)(?::|$)")  # as `ir.source` writes them


def explore(concrete: ConcreteFunction, arrays: Sequence[Any], function: Any) -> str:
    """Return the page of one compiled function, as HTML. `arrays` are those that its native code takes; only copies of them are changed."""
    timed = profile_arrays(concrete, [np.array(a) for a in arrays], None, BUDGET)
    return page(Collected(concrete, Inspection(concrete, function), timed, arrays).data())


def page(data: dict[str, Any]) -> str:
    template = (Path(__file__).parent / "explore.html").read_text(encoding="utf-8")
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()  # no `<` or quote: nothing in the data can end the script
    return template.replace("/*DATA*/", packed)


def written(html: str, path: str | os.PathLike[str], show: bool) -> Path:
    """Save a page, and show it in the browser."""
    out = Path(path)
    out.write_text(html, encoding="utf-8")
    if show:
        import webbrowser  # noqa: PLC0415 - only to show it

        webbrowser.open(out.resolve().as_uri())
    return out


def framed(html: str) -> str:
    """Return a page as a frame for a notebook, isolated from the notebook's own styles and scripts."""
    return f'<iframe srcdoc="{escape(html)}" sandbox="allow-scripts" style="width:100%;height:780px;border:0"></iframe>'


class Collected:
    """The contents of one page."""

    def __init__(self, concrete: ConcreteFunction, seen: Inspection, timed: Profile, arrays: Sequence[Any]) -> None:
        self.seen = seen
        self.timed = timed
        self.arrays = arrays
        self.traced: Func = concrete.program.func
        self.optimized: Func = concrete.executable.optimized
        self.target = concrete.executable.target
        self.files: list[str] = []
        self.kernels = kernel_texts(self.optimized, self.target)
        self.of_stmt = {id(stmt): i for i, kernel in enumerate(self.kernels) for stmt in kernel.stmts}
        self._printed: dict[int, Annotated] = {}  # by the id of a Func, which `seen` keeps

    def printed(self, func: Func) -> Annotated:
        if id(func) not in self._printed:
            self._printed[id(func)] = annotated(func)
        return self._printed[id(func)]

    def data(self) -> dict[str, Any]:
        forward, backward = self.seen.halves
        few = len(self.optimized.stmts) <= MANY
        stages = {"forward": forward, "backward": backward, "optimized": self.optimized, "traced": self.traced}
        irs = {name: self.lines(func) for name, func in stages.items() if func is not None}
        passes = [{"name": name, "ops": count_ops(func.block), "lines": self.printed(func).lines} for name, func in self.seen.stages]
        best = self.timed.peaks
        return {
            "name": self.traced.name,
            "facts": self.facts(),
            "stages": irs,
            "passes": deltas(passes),
            "kernels": [self.kernel(i, kernel) for i, kernel in enumerate(self.kernels)],
            "profile": self.profile(),
            "peaks": {"f32": best.operations[F32] / 1e9, "f64": best.operations[F64] / 1e9, "bytes": best.bytes / 1e9},
            "graph": self.graph() if few else None,
            "memory": self.memory(),
            "values": self.values(),
            "python": self.python(),
            "files": [self.file(name) for name in self.files],
        }

    def facts(self) -> list[str]:
        seconds = self.seen.seconds
        m = self.timed.memory
        return [
            f"{duration(self.timed.seconds)} a call",
            f"{count_ops(self.traced.block)} ops traced, {len(self.kernels)} kernels",
            " · ".join(f"{stage} {duration(s)}" for stage, s in seconds.items()),
            f"{size(m.peak)} of memory, {size(m.arena)} of it arena",
        ]

    # ---- source

    def place(self, file: str, line: int) -> str:
        """Return the key of a line of the user's source, by which all panes are linked."""
        if file not in self.files:
            self.files.append(file)
        return f"{self.files.index(file)}:{line}"

    def places(self, stmts: Iterable[Stmt]) -> list[str]:
        found = {(p.file, p.line) for stmt in stmts for p in locations(stmt)}
        return [self.place(*each) for each in sorted(found)]

    def file(self, name: str) -> dict[str, Any]:
        """The lines of a file that compute, and those around them."""
        number = self.files.index(name)
        used = sorted({int(k.partition(":")[2]) for k in self.used() if k.startswith(f"{number}:")})
        lines = linecache.getlines(name)
        start, stop = (max(1, used[0] - 4), used[-1] + 3) if used else (1, 0)
        if self.traced.location is not None and self.traced.location.file == name:
            start = min(start, self.traced.location.line)
        shown = [line.rstrip("\n") for line in lines[start - 1 : stop]]
        return {"name": file_name(name), "first": start, "lines": shown, "times": self.times(number)}

    def used(self) -> set[str]:
        return set(self.places(s for stmt in self.traced.stmts for s in walk(stmt)))

    def times(self, number: int) -> dict[str, float]:
        """Microseconds by line: the time of a kernel is divided among the lines that it computes."""
        out: dict[str, float] = {}
        for kernel in self.timed.kernels:
            for p in kernel.locations:
                key = self.place(p.file, p.line)
                if key.startswith(f"{number}:"):
                    line = key.partition(":")[2]
                    out[line] = out.get(line, 0.0) + kernel.seconds * 1e6 / len(kernel.locations)
        return out

    def lines(self, func: Func) -> list[dict[str, Any]]:
        """The lines of an IR text, with the source line and the phase of the statement that each shows."""
        text = self.printed(func)
        out: list[dict[str, Any]] = [{"t": line} for line in text.lines]
        for stmt in (s for top in func.stmts for s in walk(top)):
            keys = self.places([stmt]) if stmt.op.name in ("fuse", "rows") else self.own(stmt)
            out[text.line_of[id(stmt)]] |= {"k": keys, "p": stmt.phase}
        return out

    def own(self, stmt: Stmt) -> list[str]:
        return [self.place(stmt.location.file, stmt.location.line)] if stmt.location is not None else []

    def python(self) -> list[dict[str, Any]]:
        """The program as Python: each line belongs to the source line in the comment before it."""
        home = self.traced.location.file if self.traced.location else ""
        out: list[dict[str, Any]] = []
        keys: list[str] = []
        phase = ""
        for line in self.source().splitlines():
            if line and not line.startswith(" "):
                keys, phase = [], "backward" if line.startswith("def backward") else "forward" if line.startswith("def ") else phase
            comment = COMMENT.match(line)
            if comment is not None:
                file = next((f for f in self.files if os.path.basename(f) == comment["file"]), home) if comment["file"] else home
                keys = [self.place(file, int(comment["line"]))]
            out.append({"t": line, "k": keys, "p": phase} if keys else {"t": line})
        return out

    def source(self) -> str:
        try:
            return self.seen.source
        except UnsupportedError as error:
            return f"# {error}\n"

    # ---- kernels

    def kernel(self, number: int, kernel: KernelText) -> dict[str, Any]:
        return {
            "name": kernel.name,
            "ops": names_of(kernel.stmts[0]) if kernel.stmts else "",
            "phase": kernel.stmts[0].phase if kernel.stmts else "forward",
            "keys": self.places(kernel.stmts),
            "llvm": clipped(kernel.llvm),
            "asm": clipped(kernel.asm),
            "places": [place and self.place(*place) for place in kernel.places],
            "calls": len(kernel.stmts),
        }

    def profile(self) -> list[dict[str, Any]]:
        out = []
        for kernel, stmt in zip(self.timed.kernels, self.timed.stmts, strict=True):
            out.append({
                "name": kernel.name, "phase": kernel.phase, "us": kernel.seconds * 1e6, "calls": kernel.calls,
                "gflops": kernel.gflops, "gbytes": kernel.gbytes, "dtype": "f64" if kernel.dtype == F64 else "f32",
                "intensity": kernel.operations / kernel.bytes if kernel.operations and kernel.bytes else None,
                "keys": [self.place(p.file, p.line) for p in kernel.locations],
                "kernel": self.of_stmt.get(id(stmt)),
            })  # fmt: skip
        return out

    def graph(self) -> dict[str, Any]:
        """The statements of the optimised program as a graph, in layers by their distance from the parameters."""
        names = Names()
        made: dict[int, int] = {}
        nodes: list[dict[str, Any]] = []
        edges: set[tuple[int, int]] = set()
        for p in self.optimized.params:
            made[id(p)] = len(nodes)
            nodes.append({"t": names.of(p), "s": str(p.type), "p": "param", "d": 0, "k": []})
        for stmt in self.optimized.stmts:
            sources = sorted({made[id(x)] for x in reads(stmt) if id(x) in made})
            if isinstance(stmt.op, View) and sources:
                made.update((id(r), sources[0]) for r in stmt.results)
                continue
            depth = 1 + max((nodes[i]["d"] for i in sources), default=0)
            nodes.append({
                "t": names_of(stmt), "s": " ".join(str(r.type) for r in stmt.results), "p": stmt.phase, "d": depth,
                "k": self.places([stmt]), "n": self.of_stmt.get(id(stmt)),
            })  # fmt: skip
            edges |= {(i, len(nodes) - 1) for i in sources}
            made.update((id(r), len(nodes) - 1) for r in stmt.results)
        return {"nodes": nodes, "edges": sorted(edges)}

    def memory(self) -> dict[str, Any]:
        """The buffers of the arena, each with its offset and the first and last statement that use it."""
        plan = self.optimized.plan
        spans: dict[int, list[int]] = {}
        roots: dict[int, Value] = {}
        makers: dict[int, Stmt] = {}
        for at, stmt in enumerate(self.optimized.stmts):
            for inner in walk(stmt):
                for value in (*inner.results, *inner.args):
                    window = plan.windows.get(id(value))
                    place = None if window is None else plan.places.get(id(window.root))
                    if window is not None and place is not None and place.kind == "arena" and not isinstance(window.root.type, StackType):
                        key = id(window.root)
                        roots[key] = window.root
                        makers.setdefault(key, stmt)
                        spans.setdefault(key, [at, at])[1] = at
        buffers = [
            {
                "t": roots[key].name or str(roots[key].type), "s": str(roots[key].type), "a": first, "b": last,
                "o": plan.places[key].index, "n": roots[key].type.nbytes, "k": self.places([makers[key]]), "p": makers[key].phase,
            }
            for key, (first, last) in spans.items()
        ]  # fmt: skip
        live = self.timed.live()
        return {"buffers": buffers, "bytes": plan.arena_bytes, "count": max(1, len(self.optimized.stmts)), "live": live}

    # ---- values

    def values(self) -> dict[str, Any]:
        """The values of the traced program in this call, by their names in the text of the IR."""
        if not self.is_cheap():
            return {}
        found: dict[int, dict[str, Any]] = {}
        arrays: dict[int, Any] = {}

        def observe(stmt: Stmt, _: Sequence[Any], results: Sequence[Any]) -> None:
            arrays.update(zip(map(id, stmt.results), results, strict=True))
            found.update((id(v), figures(a)) for v, a in zip(stmt.results, results, strict=True) if isinstance(a, np.ndarray))

        def interpreted(func: Func) -> None:
            """Run the statements that were not run before as part of another stage."""
            arrays.update(zip(map(id, func.params), self.arrays))
            found.update(zip(map(id, func.params), map(figures, self.arrays)))
            new = [s for s in func.stmts if not s.results or any(id(r) not in arrays for r in s.results)]
            run_block(Block((), new, ()), (), arrays, observe)

        out: dict[str, Any] = {}
        forward, backward = self.seen.halves
        try:
            with repeating(), np.errstate(all="ignore"):
                interpreted(self.traced)
                out["traced"] = self.named(self.traced, found)
                interpreted(self.seen.simplified)
        except AdjitError:  # a failed check: the call itself raises, and the values up to there are shown
            return out
        return out | {name: self.named(half, found) for name, half in (("forward", forward), ("backward", backward)) if half is not None}

    def named(self, func: Func, found: dict[int, dict[str, Any]]) -> dict[str, Any]:
        """Return the figures of values, by their names in the text."""
        names = self.printed(func).names
        values = [*func.params, *(r for top in func.stmts for s in walk(top) for r in s.results)]
        return {names.of(v): found[id(v)] for v in values if id(v) in found}

    def is_cheap(self) -> bool:
        amounts = [kernel.operations or 0.0 for kernel in self.timed.kernels]
        return sum(amounts) < WORK and sum(kernel.calls for kernel in self.timed.kernels) < 20_000


def figures(array: Any) -> dict[str, Any]:
    """The shape of an array, its range, what is wrong with it, and its first elements."""
    a = np.asarray(array)
    out: dict[str, Any] = {"type": f"{a.dtype}{list(a.shape)}", "head": [short(x) for x in a.reshape(-1)[:6]]}
    if a.dtype.kind == "f" and a.size:
        finite = a[np.isfinite(a)]
        out["nan"], out["inf"] = int(np.isnan(a).sum()), int(np.isinf(a).sum())
        if finite.size:
            out |= {"min": short(finite.min()), "max": short(finite.max()), "mean": short(finite.mean(dtype=np.float64))}
            low, high = float(finite.min()), float(finite.max())
            if 0.0 < high - low < np.inf:
                shares = (finite.astype(np.float64) - low) / (high - low)
                out["bars"] = np.bincount(np.minimum(shares * BARS, BARS - 1).astype(np.int64).reshape(-1), minlength=BARS).tolist()
    elif a.size and a.dtype.kind in "iu":
        out |= {"min": short(a.min()), "max": short(a.max())}
    return out


def short(x: Any) -> str:
    return f"{x:.5g}" if np.asarray(x).dtype.kind in "fc" else str(x)


def reads(stmt: Stmt) -> list[Any]:
    return [*stmt.args, *(v for block in stmt.blocks for v in block.free())]


def names_of(stmt: Stmt) -> str:
    """Return the names of a statement's ops, including those in its blocks, in order."""
    inner = [s.op.name for s in walk(stmt) if not s.blocks and s is not stmt]
    return f"{stmt.op.name}: {' '.join(inner)}" if inner else stmt.op.name


def clipped(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}\n… {len(text) - LONGEST_TEXT} more characters"


def deltas(passes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the passes with each text as a list of numbers, which refer to lines of the previous pass and to its own new lines."""
    before: list[str] = []
    for entry in passes:
        places: dict[str, list[int]] = {}
        for number, line in enumerate(before):
            places.setdefault(line, []).append(number)
        lines: list[str] = entry.pop("lines")
        entry["lines"] = [(places[line].pop(0) if places.get(line) else line) for line in lines]
        before = lines
    return passes
