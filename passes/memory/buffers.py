"""Buffer planning: decides which buffer holds each value.

Views get no buffer: they are windows on their operand's. A result is computed directly into the returned array, an updated parameter
directly into its own buffer if this cannot be observed, a loop's next carry directly into the carry's buffer, and everything else shares
one arena, by liveness, with elementwise results written over operands that die there. Regions that fit into registers get no buffers
inside.

`windows.py` finds the windows and inserts the copies that they need; this pass then places every buffer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from adjit.ir.cost import nanoseconds
from adjit.ir.effects import effects
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.layout import Layout
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.control import hosted_by
from adjit.ir.plan import ALIGNMENT, STACK_BYTES, BufferView, Place, Plan
from adjit.ir.records import record
from adjit.ir.sizes import is_symbolic
from adjit.ir.target import USUAL, Target
from adjit.ir.work import work

from ..rewrite import walk
from ..targeted import for_target
from .in_place import is_array, is_stack, make_stacks_private
from .sized import Sized
from .windows import Windows

BRIEF = 4e8  # nanoseconds at the end of a call, by the upper bound, during which it is not interrupted: in fact about half as long


@for_target
def plan_buffers(func: Func, target: Target = USUAL) -> Func:
    """The same Func with copies where a view is not enough, and a plan for all its values."""
    func, plan = Windows(make_stacks_private(func)).planned()
    _Placer(func, plan, target).place()
    return func.replace(plan=plan)


@record
class _LoopSpan:
    """A span of positions that runs repeatedly: a value that is defined before it and read in it lives until its end."""

    start: int
    end: int = -1


class _Placer:
    """Positions number the statements in textual order, including those in regions; `last_use` is where a buffer may be released."""

    def __init__(self, func: Func, plan: Plan, target: Target) -> None:
        self.func = func
        self.plan = plan
        self.target = target
        self.clock = 0
        self.loops: list[_LoopSpan] = []
        self.order: list[tuple[int, Stmt, Value]] = []  # position, defining statement, root: buffers in the order in which they become live
        self.made_at: Counter[int] = Counter()  # 0: there from the start
        self.makers: dict[int, Stmt] = {}
        self.uses: list[tuple[int, int, tuple[_LoopSpan, ...]]] = []
        self.reads: Counter[int] = Counter()  # last position, without extension to the end of loops; 0: not read
        self.last_use: Counter[int] = Counter()
        self.last_failure = 0
        self.working: list[tuple[int, Stmt]] = []  # statements that compute, with their positions
        self.carried: list[tuple[Value, Value, int]] = []  # a carry, its next value, and where the loop's body last reads the carry
        self.hosts: dict[int, Value] = {}  # roots placed in another's buffer: a branch's yield in the result's, a next carry in the carry's
        self.looked: dict[int, Value] = {}  # the arrays that views refer to
        self.slots = 0
        self.collected: list[tuple[Operand, Stmt]] = []  # what only a `scatter_set` of a loop reads, and that statement

    def root(self, value: Operand) -> Value:
        """The value whose memory this value occupies; for a view, the array that it refers to."""
        root = self.plan.windows[id(value)].root
        while id(root) in self.looked:
            root = self.looked[id(root)]
        return root

    def is_view(self, value: Operand) -> bool:
        place = self.plan.places.get(id(self.plan.windows[id(value)].root))
        return place is not None and place.kind == "view"

    def place(self) -> None:
        places = self.plan.places
        for index, param in enumerate(self.func.params):
            places[id(param)] = Place("param", index)
        self.walk(self.func.block)
        for index, result in enumerate(self.func.results):
            places[id(self.root(result))] = Place("result", index)
        self.settle()
        self.place_ahead()
        kept = max(self.last_failure, self.last_interruption()) if self.func.updates else 0
        for param, new in self.func.updates:
            root = self.root(new)
            if id(root) not in places and self.made_at[id(root)] > kept and self.may_overwrite(param, root):
                places[id(root)] = places[id(param)]
        for _, new in self.func.updates:
            self.last_use[id(self.root(new))] = self.clock + 1  # written to the variables after the last statement
        self.fill_arena()

    def last_interruption(self) -> int:
        """The last statement during which a call may be interrupted: what follows is short, and may write to variables."""
        left = 0.0
        for at, stmt in reversed(self.working):
            left += nanoseconds(work(stmt), self.target)
            if left > BRIEF:
                return at
        return 0

    def place_ahead(self) -> None:
        """If a result is computed in place of an operand, place the operand in the result's buffer."""
        places = self.plan.places
        for at, stmt, root in reversed(self.order):
            place = places.get(id(root))
            if place is None or place.kind != "result" or stmt.op.in_place is None:
                continue
            source = stmt.args[stmt.op.in_place]
            old = self.plan.windows.get(id(source))
            if old is None or id(old.root) in places or id(old.root) not in self.made_at or old.root.type != root.type:
                continue
            dies_here = self.last_use[id(old.root)] == at and self.may_overwrite(old.root, root)
            maker = self.makers[id(old.root)].op
            if dies_here and not maker.is_constant and not maker.is_loop:
                places[id(old.root)] = place

    # ---- the walk: where values are defined and read

    def walk(self, block: Block) -> None:
        for stmt in block.stmts:
            if stmt.op.is_view:
                continue
            self.clock += 1
            if effects(stmt).may_raise:
                self.last_failure = self.clock
            if not stmt.op.is_control:
                self.working.append((self.clock, stmt))
            if stmt.op.reads_rows and self.is_view(stmt.result):
                self.read(stmt.args)
                self.looked[id(stmt.result)] = self.root(stmt.args[0])
            elif not stmt.op.is_control or id(stmt) in self.plan.registers:
                self.read(_reads(stmt))
                self.make(stmt, [*stmt.results, *self.arrays_inside(stmt)])
            elif stmt.op.is_loop:
                self.visit_loop(stmt)
            else:
                self.visit_if(stmt)

    def arrays_inside(self, stmt: Stmt) -> list[Operand]:
        """Arrays that loops inside a register region carry, in separate memory."""
        if id(stmt) not in self.plan.registers:
            return []
        return [p for inner in walk(Block((), [stmt], ())) for block in inner.blocks for p in block.params if is_array(p)]

    def make(self, stmt: Stmt, values: Iterable[Operand]) -> None:
        for value in values:
            if is_stack(value):
                continue  # placed in advance, for the whole call
            root = self.root(value)
            if id(root) not in self.made_at:  # the parts of a concatenation are computed one by one
                self.made_at[id(root)] = self.clock
                self.makers[id(root)] = stmt
                self.order.append((self.clock, stmt, root))

    def read(self, values: Iterable[Operand]) -> None:
        for value in values:
            if isinstance(value, Value) and not is_stack(value):
                root = id(self.root(value))
                self.uses.append((root, self.clock, tuple(self.loops)))
                self.reads[root] = self.clock

    def visit_if(self, stmt: Stmt) -> None:
        self.read(stmt.args)
        self.make(stmt, stmt.results)
        for block in stmt.blocks:
            self.walk(block)
            self.clock += 1
            self.read(block.results)
            for result, value in zip(stmt.results, block.results, strict=True):
                if not is_stack(result):
                    self.host(result, value, since=self.made_at[id(result)])
        self.read(stmt.results)

    def host(self, result: Operand, value: Operand, since: int) -> None:
        """Let a branch compute the value that it yields in the buffer of the result."""
        window = self.plan.windows.get(id(value))
        if window is None or id(window.root) in self.hosts or self.made_at[id(window.root)] <= since:
            return
        if self.is_whole(window, value):
            assert isinstance(result, Value)
            self.hosts[id(window.root)] = result

    def visit_loop(self, stmt: Stmt) -> None:
        self.read(stmt.args)
        body = stmt.blocks[-1]
        self.make(stmt, [*body.params, *stmt.results[len(body.results) :]])
        loop = _LoopSpan(self.clock)
        self.loops.append(loop)
        for block in stmt.blocks:
            self.walk(block)
            self.clock += 1
            self.read(block.results)
        self.read(v for v in body.saving if not any(v is p for p in body.params))  # parameters were saved when the iteration began
        self.take_slots(body, loop)
        loop.end = self.clock
        for carry, following in zip(body.params[len(body.params) - len(body.results) :], body.results, strict=True):
            if following is not carry and not is_stack(carry):
                self.carried.append((carry, self.root(following), self.reads[id(carry)]))
        self.read(body.params)
        self.loops.pop()
        self.collect(body)

    def collect(self, body: Block) -> None:
        """Arrays that a loop only writes rows into; a value that goes into two of them cannot be computed in both."""
        uses = Counter(map(id, body.uses()))
        writes = [stmt for stmt in body.stmts if stmt.op.sets_rows]
        written = Counter(id(stmt.args[1]) for stmt in writes)
        for stmt in writes:
            carry, value = stmt.args[:2]
            if uses[id(carry)] == written[id(value)] == 1:
                self.collected.append((carry, stmt))

    def take_slots(self, body: Block, loop: _LoopSpan) -> None:
        """Compute values that a loop saves directly on its stack."""
        for value in body.saving:
            window = self.plan.windows.get(id(value))
            if window is None or id(window.root) in self.plan.places or self.made_at[id(window.root)] <= loop.start:
                continue
            if not any(value is p for p in body.params) and is_array(value) and self.is_whole(window, value):
                self.plan.places[id(window.root)] = Place("slot", self.slots)
                self.slots += 1

    def is_whole(self, window: BufferView, value: Operand) -> bool:
        """Whether the value is the whole result of one plain statement, so that it can be computed elsewhere."""
        maker = self.makers[id(window.root)]
        plain = maker.op.is_nest or not (maker.blocks or maker.op.is_constant)
        return plain and window.is_whole(value)

    def settle(self) -> None:
        """Find last uses, including reads in the next iteration of loops; then carries and branches that can share buffers."""
        for root, at, loops in self.uses:
            until = next((loop.end for loop in loops if loop.start > self.made_at[root]), at)
            self.last_use[root] = max(self.last_use[root], until)
        for carry, following, last_read in self.carried:
            if self._overwrites(carry, following, last_read):
                self.hosts[id(following)] = carry
                self.host_changes(carry, following, last_read)
        for row, (array, stmt) in enumerate(self.collected):
            self.take_row(row, array, stmt)

    def host_changes(self, carry: Value, following: Value, last_read: int) -> None:
        """If a loop changes a carry by several statements in place, keep what is between them in the carry's buffer as well."""
        between = self.changes(carry, following)
        if between and self._overwrites(carry, between[0], last_read):
            self.hosts.update((id(old), carry) for old in between)

    def changes(self, carry: Value, following: Value) -> list[Value]:
        """The values between a carry and its next value, each of which can overwrite the one before; none if there is no such chain."""
        later: dict[int, Value] = {}  # what overwrites a value
        left = [following]
        while left:
            new = left.pop()
            for old in self.changed_by(self.makers[id(new)]):
                if old is carry:
                    chain = []
                    while new is not following:
                        chain.append(new)
                        new = later[id(new)]
                    return chain
                free = id(old) not in self.hosts and id(old) not in self.plan.places and id(old) not in later
                if free and self.made_at[id(old)] > self.made_at[id(carry)] and self.may_overwrite(old, new):
                    later[id(old)] = new
                    left.append(old)
        return []

    def changed_by(self, stmt: Stmt) -> list[Value]:
        """The values that a statement may be able to change in place."""
        if stmt.op.is_nest:
            return [self.root(v) for v in stmt.blocks[0].free()]
        source = None if stmt.op.in_place is None else stmt.args[stmt.op.in_place]
        return [self.root(source)] if isinstance(source, Value) else []

    def take_row(self, row: int, carry: Operand, stmt: Stmt) -> None:
        """Compute a row that a loop writes into an array directly there, if the array is changed in place and the row is known by then."""
        _, value, *indices = stmt.args
        window = self.plan.windows[id(value)]
        if self.hosts.get(id(stmt.result)) is not carry or id(window.root) in self.plan.places or not is_array(value):
            return
        at = self.made_at[id(window.root)]
        known = all(isinstance(i, Literal) or self.made_at.get(id(self.root(i)), at) < at for i in indices)
        if known and not indices[0].type.shape and at > self.made_at[id(carry)] and self.is_whole(window, value):
            self.plan.places[id(window.root)] = Place("row", row)

    # ---- sharing

    def may_overwrite(self, old: Value, new: Value) -> bool:
        """Whether `new` can be written into the buffer of `old`: `old` is not read later, and the statement that computes `new` reads it
        only at the element that it is about to write.
        """
        return self._overwrites(old, new, self.last_use[id(old)])

    def _overwrites(self, old: Value, new: Value, last_read: int) -> bool:
        at = self.made_at[id(new)]
        if old.type.size != new.type.size or old.type.dtype != new.type.dtype or last_read > at:
            return False
        return last_read < at or self.elementwise(self.makers[id(new)], old, new)

    def elementwise(self, stmt: Stmt, old: Value, new: Value) -> bool:
        if stmt.op.in_place is not None:
            window = self.plan.windows[id(stmt.args[stmt.op.in_place])]
            others = [a for k, a in enumerate(stmt.args) if k != stmt.op.in_place]
            exact = window.root is old and window.layout == Layout.contiguous(new.type.shape)
            return exact and all(self.root(a) is not old for a in others)
        if not stmt.op.is_nest:
            return False
        (body,) = stmt.blocks
        if all(r is not new for r in stmt.results):
            return False  # it computes only a part of `new`
        host = hosted_by(stmt)
        if host is not None and any(self.root(a) is old for a in host.args if isinstance(a, Value)):
            return False
        inner = next(i for r, i in zip(stmt.results, body.results, strict=True) if r is new)
        made = next((s for s in body.stmts if s.result is inner), None)
        if made is None or not (made.op.is_elementwise or made is host):
            return False
        identity = Layout.contiguous(new.type.shape)
        if any(self.root(s.args[0]) is old for s in body.stmts if s.op.shifts and isinstance(s.args[0], Value)):
            return False  # read at other positions than it is written
        return all(self.plan.windows[id(v)].layout == identity and not self.is_view(v) for v in body.free() if self.root(v) is old)

    # ---- the arena

    def fill_arena(self) -> None:
        places = self.plan.places
        arena, sized = _Arena(), Sized()
        for stack in {id(w.root): w.root for w in self.plan.windows.values() if is_stack(w.root)}.values():
            places[id(stack)] = Place("arena", arena.take(STACK_BYTES))
        dying: dict[int, list[Value]] = {}
        constants = 0
        now = 0
        for at, stmt, root in self.order:
            for moment in range(now, at):
                for value in dying.pop(moment, ()):
                    place = places[id(value)]
                    if place.kind == "arena":
                        arena.give(place.index, value.type.nbytes)
                    elif place.kind == "sized":
                        sized.give(place.index)
            now = at
            if id(root) in places:
                continue
            if stmt.op.is_constant:
                places[id(root)] = Place("constant", constants)
                constants += 1
                continue
            if id(root) in self.hosts:
                places[id(root)] = places[id(self.hosts[id(root)])]
                continue
            heirs = dying.get(at, [])
            heir = next((k for k, v in enumerate(heirs) if self.made_at[id(v)] < at and self.may_overwrite(v, root)), None)
            if heir is not None:
                places[id(root)] = places[id(heirs.pop(heir))]
            elif is_symbolic(root.type.nbytes):
                places[id(root)] = Place("sized", sized.take(root.type.nbytes))
            else:
                places[id(root)] = Place("arena", arena.take(root.type.nbytes))
            dying.setdefault(max(self.last_use[id(root)], at), []).append(root)
        self.plan.arena_bytes, self.plan.sized = arena.high, sized.sizes


def _reads(stmt: Stmt) -> Sequence[Operand]:
    """Values that a statement reads, including those inside its regions."""
    return [*stmt.args, *(v for block in stmt.blocks for v in block.free())]


class _Arena:
    """Offsets in one growing buffer: the smallest free gap that is large enough, the first of several."""

    def __init__(self) -> None:
        self.high = 0
        self.gaps: dict[int, int] = {}  # offset -> size
        self.ends: dict[int, int] = {}  # end -> offset
        self.by_size: dict[int, set[int]] = {}

    def take(self, nbytes: int) -> int:
        size = _rounded(nbytes)
        fit = min((s for s in self.by_size if s >= size), default=None)
        if fit is None:
            offset = self.high
            self.high += size
            return offset
        offset = min(self.by_size[fit])
        self._remove(offset)
        if fit > size:
            self._add(offset + size, fit - size)
        return offset

    def give(self, offset: int, nbytes: int) -> None:
        size = _rounded(nbytes)
        if offset + size in self.gaps:
            size += self._remove(offset + size)
        if offset in self.ends:
            start = self.ends[offset]
            size += self._remove(start)
            offset = start
        self._add(offset, size)

    def _add(self, offset: int, size: int) -> None:
        self.gaps[offset] = size
        self.ends[offset + size] = offset
        self.by_size.setdefault(size, set()).add(offset)

    def _remove(self, offset: int) -> int:
        size = self.gaps.pop(offset)
        del self.ends[offset + size]
        self.by_size[size].discard(offset)
        if not self.by_size[size]:
            del self.by_size[size]
        return size


def _rounded(nbytes: int) -> int:
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
