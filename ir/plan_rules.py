"""Verifies a plan, independently of the planner: every value has memory inside its buffer that nothing else uses while it is live.

- Buffers lie inside their memory: the arena, a parameter, a result. Arena offsets are aligned.
- Windows stay inside their buffers.
- Two buffers that share memory are never live at the same time. A statement may overwrite what it reads for the last time only if it reads
  each element before it writes it: elementwise, or because its op changes that operand in place. A value that a block yields may be
  computed directly in its destination.
- Only an update writes to a parameter's memory; one that is computed there is computed after the last statement that may raise, so that a
  call that raises has changed no variable.

Statements are numbered in textual order. A statement at n reads at time 2n and writes at 2n + 1; the end of a block counts as a statement.
Values that are defined before a loop and read in it live until its end. `verify` runs this for a Func that has a plan; its cost is that of
one walk, and of comparing each buffer with the others that are live at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

from .effects import effects
from .errors import NotGeneral
from .func import Block, Func, Stmt, Value
from .layout import Layout
from .operand import Operand
from .ops.base import View
from .ops.control import For, Fuse, Rows, While, hosted_by
from .ops.create import Constant
from .ops.maps import Map
from .ops.shape import Pad
from .plan import ALIGNMENT, STACK_BYTES, BufferView, Place, Plan
from .printer import print_name
from .records import NamedTuple
from .sizes import at_least, maximum, minimum
from .types import StackType

Fail = Callable[[str, Stmt | None], NoReturn]
BOUNDED = ("arena", "sized", "param", "result")  # kinds of places that are memory of a known size


class Piece(NamedTuple):
    """An interval of time in which a root's memory holds a value, and the statement that begins it."""

    start: int
    end: int
    root: Value
    stmt: Stmt | None
    sources: tuple[int, ...] = ()  # ids of roots that may already be in that memory: what is yielded or carried into it


def verify_plan(func: Func, fail: Fail) -> None:
    if func.plan is not None:
        _PlanRules(func, fail).check()


class _PlanRules:
    def __init__(self, func: Func, fail: Fail) -> None:
        self.func = func
        self.plan: Plan = func.plan
        self.fail = fail
        self.clock = 0
        self.loops: list[tuple[int, list[int]]] = []  # the start of each enclosing loop, and the times of its end, filled in later
        self.written: dict[int, tuple[int, Stmt | None]] = {}
        self.reads: dict[int, list[tuple[int, tuple[tuple[int, list[int]], ...]]]] = {}
        self.roots: dict[int, Value] = {}
        self.looked: dict[int, Value] = {}  # rows that are read in place -> the array
        self.late: list[Piece] = []  # what is written at the end of blocks
        self.early: dict[int, int] = {}  # carries that change -> the time until which the body reads the old value
        self.last_raise = -1

    def named(self, value: Operand) -> str:
        return f"{print_name(self.func, value)}: {value.type}"

    def check(self) -> None:
        func = self.func
        for k, param in enumerate(func.params):
            if self.plan.windows.get(id(param)) is not None and self.plan.places.get(id(param)) != Place("param", k):
                self.fail(f"parameter {k} is not in its own memory, but at {self.plan.places.get(id(param))}", None)
            self.write([param], None, -1)
        self.block(func.block)
        self.clock += 1
        end = 2 * self.clock
        self.read([*func.outputs()], end)
        self.overlaps(list(self.pieces()), end)

    # ---- the walk

    def block(self, block: Block) -> None:
        for stmt in block.stmts:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        self.clock += 1
        now = 2 * self.clock
        if effects(stmt).may_raise and not self.has_blocks(stmt):
            self.last_raise = now
        if isinstance(stmt.op, View):
            self.window(stmt.results[0], stmt)
            return
        self.read(stmt.args, now)
        if not self.has_blocks(stmt):
            for block in stmt.blocks:
                self.read(block.free(), now)
                for value in self.planned(block):
                    self.window(value, stmt)
            self.write([*stmt.results, *self.inside(stmt)], stmt, now + 1)
        elif isinstance(stmt.op, For | While):
            self.loop(stmt, now)
        else:
            self.branches(stmt)

    def has_blocks(self, stmt: Stmt) -> bool:
        """Whether its blocks are part of the text order: not those of loop nests and of register regions."""
        return bool(stmt.blocks) and not isinstance(stmt.op, Fuse | Rows) and id(stmt) not in self.plan.registers

    def inside(self, stmt: Stmt) -> Iterator[Operand]:
        """Arrays that a register region keeps in memory."""
        for block in stmt.blocks if id(stmt) in self.plan.registers else ():
            yield from self.planned(block)

    def planned(self, block: Block) -> Iterator[Operand]:
        """The values of a block, at every depth, that have windows."""
        yield from (p for p in block.params if id(p) in self.plan.windows)
        for stmt in block.stmts:
            for inner in stmt.blocks:
                yield from self.planned(inner)
            yield from (r for r in stmt.results if id(r) in self.plan.windows)

    def branches(self, stmt: Stmt) -> None:
        for block in stmt.blocks:
            self.block(block)
            self.clock += 1
            self.read(block.results, 2 * self.clock)
        yields = list(zip(*(b.results for b in stmt.blocks), strict=True))
        self.write(stmt.results, stmt, 2 * self.clock + 1, [self.sources(y) for y in yields] if yields else [])

    def loop(self, stmt: Stmt, now: int) -> None:
        body = stmt.blocks[-1]
        inits = stmt.args[len(stmt.args) - len(body.results) :]
        carries = body.params[len(body.params) - len(body.results) :]
        extra = body.params[: len(body.params) - len(carries)]
        for param in (p for block in stmt.blocks[:-1] for p in block.params):
            self.window(param, stmt)
        self.write(extra, stmt, now + 1)
        self.write(carries, stmt, now + 1, [self.sources([x]) for x in inits])
        self.loops.append((now + 1, []))
        self.clock += 1
        params = {id(p) for p in body.params}
        self.read([x for x in body.saving if id(x) in params], 2 * self.clock)  # parameters are saved when an iteration begins
        for block in stmt.blocks:
            self.block(block)
            self.clock += 1
            self.read([*block.results, *(x for x in block.saving if id(x) not in params)], 2 * self.clock)
        _, ends = self.loops.pop()
        ends.append(2 * self.clock)
        for carry, following in zip(carries, body.results, strict=True):
            root = self.root(carry)
            if root is None or following is carry or isinstance(carry.type, StackType):
                continue
            inner = [t for t, _ in self.reads.get(id(root), ()) if t > now]
            self.early[id(root)] = max(inner, default=now + 1)
            self.late.append(Piece(2 * self.clock + 1, -1, root, stmt, self.sources([following])))
        for result, carry in zip(stmt.results, carries, strict=False):
            here, there = self.window(result, stmt), self.window(carry, stmt)
            if here.root is not there.root or here.layout != there.layout:
                self.fail("a loop's result is not in the memory of its carry", stmt)
        self.write(stmt.results[len(carries) :], stmt, 2 * self.clock + 1)
        for k, following in enumerate(body.results):
            for j, carry in enumerate(carries):
                if k != j and following is not carry and self.share(following, carry):
                    self.fail("the next value of a carry is in the memory of another carry", stmt)

    # ---- reading and writing

    def root(self, value: Operand) -> Value | None:
        window = self.plan.windows.get(id(value))
        root = None if window is None else window.root
        while root is not None and id(root) in self.looked:
            root = self.looked[id(root)]
        return root

    def sources(self, values: Iterable[Operand]) -> tuple[int, ...]:
        return tuple(id(root) for root in map(self.root, values) if root is not None)

    def share(self, a: Operand, b: Operand) -> bool:
        one, other = self.root(a), self.root(b)
        return one is not None and other is not None and self.plan.places.get(id(one)) == self.plan.places.get(id(other)) is not None

    def read(self, values: Sequence[Operand], now: int) -> None:
        for value in values:
            root = self.root(value)
            if root is not None:
                self.reads.setdefault(id(root), []).append((now, tuple(self.loops)))

    def write(self, values: Sequence[Operand], stmt: Stmt | None, now: int, sources: Sequence[tuple[int, ...]] = ()) -> None:
        for k, value in enumerate(values):
            window = self.window(value, stmt)
            place = self.plan.places.get(id(window.root))
            if place is not None and place.kind == "view" and stmt is not None:
                source = self.root(stmt.args[0])
                if source is not None:
                    self.looked[id(window.root)] = source
                continue
            if id(window.root) in self.written:
                continue
            self.roots[id(window.root)] = window.root
            self.written[id(window.root)] = now, stmt
            self.buffer(window.root, place, stmt)
            if sources:
                self.late.append(Piece(now, now, window.root, stmt, sources[k]))

    # ---- places

    def window(self, value: Operand, stmt: Stmt | None) -> BufferView:
        window = self.plan.windows.get(id(value))
        if window is None:
            self.fail(f"{self.named(value)} has no place", stmt)
        root, layout = window
        place = self.plan.places.get(id(root))
        if place is None and id(root) not in self.plan.rows:
            self.fail(f"{self.named(value)} lies in {self.named(root)}, which has no place", stmt)
        if len(layout.strides) != value.type.rank or root.type.dtype != value.type.dtype:
            self.fail(f"{self.named(value)} does not fit the memory of {self.named(root)}", stmt)
        if (place is None or place.kind != "view") and value.type.size and not isinstance(value.type, StackType):
            steps = [s * (n - 1) for s, n in zip(layout.strides, value.type.shape, strict=True)]
            try:
                low, high = (layout.offset + sum(pick(0, s) for s in steps) for pick in (minimum, maximum))
            except NotGeneral:  # the direction of a view is not proven for all sizes
                return window
            if at_least(-1, low) or at_least(high, root.type.size):
                self.fail(f"{self.named(value)} reaches from element {low} to {high} of {self.named(root)}", stmt)
        return window

    def buffer(self, root: Value, place: Place | None, stmt: Stmt | None) -> None:
        if place is None:
            return
        nbytes = size_of(root)
        if place.kind == "arena":
            if place.index % ALIGNMENT:
                self.fail(f"{self.named(root)} lies at {place}, which is not a multiple of {ALIGNMENT}", stmt)
            if place.index + nbytes > self.plan.arena_bytes:
                self.fail(f"{self.named(root)} lies at {place}, and the arena ends at {self.plan.arena_bytes}", stmt)
        elif place.kind == "sized":
            if place.index >= len(self.plan.sized) or not at_least(self.plan.sized[place.index], nbytes):
                self.fail(f"{self.named(root)} lies at {place}, which is too small for it", stmt)
        elif place.kind in ("param", "result"):
            owners = self.func.params if place.kind == "param" else self.func.results
            if place.index >= len(owners) or not at_least(owners[place.index].type.nbytes, nbytes):
                self.fail(f"{self.named(root)} lies at {place}, which is too small for it", stmt)
        elif place.kind == "constant" and (stmt is None or not isinstance(stmt.op, Constant)):
            self.fail(f"{self.named(root)} lies at {place}, but is not a constant", stmt)

    # ---- lifetimes

    def pieces(self) -> Iterator[Piece]:
        for key, root in self.roots.items():
            start, stmt = self.written[key]
            if isinstance(root.type, StackType):
                yield Piece(-1, 2 * self.clock + 1, root, stmt)  # live for the whole call
                continue
            last = max((self.until(start, t, loops) for t, loops in self.reads.get(key, ())), default=start)
            sources = next((p.sources for p in self.late if p.root is root and p.start == start), ())
            again = next((p for p in self.late if p.root is root and p.end < 0), None)
            if again is None:
                yield Piece(start, max(start, last), root, stmt, sources)
            else:
                yield Piece(start, max(start, self.early[key]), root, stmt, sources)
                yield Piece(again.start, max(again.start, last), root, again.stmt, again.sources)

    def until(self, start: int, time: int, loops: tuple[tuple[int, list[int]], ...]) -> int:
        """A value that is defined before a loop and read in it lives until the loop ends."""
        return next((ends[0] for began, ends in loops if began > start and ends), time)

    def overlaps(self, pieces: list[Piece], end: int) -> None:
        updated = {id(param): new for param, new in self.func.updates}
        spaces: dict[object, list[tuple[int, int, Piece]]] = {}
        for piece in pieces:
            place = self.plan.places.get(id(piece.root))
            if place is None or place.kind not in BOUNDED:
                continue
            first = place.index if place.kind == "arena" else 0
            spaces.setdefault(place.kind if place.kind == "arena" else place, []).append((first, first + size_of(piece.root), piece))
            if place.kind == "param" and piece.root is not self.func.params[place.index]:
                self.in_variable(piece, place, updated)
        for found in spaces.values():
            self.sweep(sorted(found, key=lambda item: item[2].start))

    def in_variable(self, piece: Piece, place: Place, updated: dict[int, Operand]) -> None:
        param = self.func.params[place.index]
        new = updated.get(id(param))
        if new is None:
            self.fail(f"{self.named(piece.root)} is written to {place}, which is not updated", piece.stmt)
        final = self.root(new)
        if final is None or self.plan.places.get(id(final)) != place:
            self.fail(f"{self.named(piece.root)} is written to {place}, and the update comes from elsewhere", piece.stmt)
        if piece.start <= self.last_raise:
            self.fail(f"{self.named(piece.root)} is written to {place} before a statement that may raise", piece.stmt)

    def sweep(self, items: list[tuple[int, int, Piece]]) -> None:
        alive: list[tuple[int, int, Piece]] = []
        for low, high, piece in items:
            alive = [item for item in alive if item[2].end >= piece.start - 1]
            for start, stop, other in alive:
                if start < high and low < stop and other.root is not piece.root and not self.follows(piece, other):
                    self.fail(f"{self.named(piece.root)} is written over {self.named(other.root)}, which is still read", piece.stmt)
            alive.append((low, high, piece))

    def follows(self, piece: Piece, other: Piece) -> bool:
        """Whether a written value may overwrite one that the same statement reads for the last time."""
        if other.end != piece.start - 1:
            return False
        if id(other.root) in piece.sources:
            return self.plan.places[id(other.root)] == self.plan.places[id(piece.root)]
        return piece.stmt is not None and not self.has_blocks(piece.stmt) and self.in_place(piece.stmt, other.root, piece.root)

    def in_place(self, stmt: Stmt, old: Value, new: Value) -> bool:
        if stmt.op.in_place is not None:
            window = self.plan.windows[id(stmt.args[stmt.op.in_place])]
            others = [a for k, a in enumerate(stmt.args) if k != stmt.op.in_place]
            return window.root is old and all(self.root(a) is not old for a in others)
        if not isinstance(stmt.op, Fuse) or not any(r is new for r in stmt.results):
            return False
        (body,) = stmt.blocks
        host = hosted_by(stmt)
        inner = next(i for r, i in zip(stmt.results, body.results, strict=True) if r is new)
        made = next(s for s in body.stmts if s.results[0] is inner)
        elsewhere = [*(a for s in body.stmts if isinstance(s.op, Pad) for a in s.args), *(host.args if host else ())]
        if not (isinstance(made.op, Map) or made is host) or any(self.root(a) is old for a in elsewhere):
            return False
        whole = Layout.contiguous(new.type.shape)
        return all(self.plan.windows[id(v)].layout == whole for v in body.free() if self.root(v) is old)


def size_of(root: Value) -> int:
    return STACK_BYTES if isinstance(root.type, StackType) else root.type.nbytes
