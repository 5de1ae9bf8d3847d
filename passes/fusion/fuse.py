"""Fusion: elementwise statements of one shape, and reductions of operands of that shape, become one `fuse` region, one loop nest.

The statements are assigned, in order, to a list of items: groups, or single statements that cannot be fused. `ready[v]` is the position
from which a value can be read: 2p inside group p itself, if it is computed elementwise there; 2p + 1 after item p, for the results of
reductions and other ops, and for views of them. A statement may join group p if 2p >= ready of all that it reads; otherwise it starts a
group at the end. So no cycle can arise, and no search is needed: every statement looks at a bounded number of groups. A statement that
reads elements of two groups merges them, if nothing between them reads the results of the first.

Statements join the earliest group that computes their operands. If only a later group reads the result, they then sink into that one,
provided that this saves memory traffic: `1 - y*y` of a `tanh` is computed in the backward loop, from the y that is stored anyway. If
several groups read a value that is cheap to compute from their operands, each recomputes it: the differences of all pairs are never stored.

Views (`transpose`, `broadcast`, `slice`, ...) stay outside: native code reads its operands through their layouts. Constants that cost
nothing (`fill`, `iota`) are duplicated in each group that reads them. A pad can be a member too: the loop nest reads its operand from
memory, and uses the constant around it, box by box of the domain. Every elementwise op, reduction and pad ends up in a region, even if it
is alone, so that code generation has only one case.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import combinations

from adjit.ir.cost import MATH, PLAIN
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.control import Fuse
from adjit.ir.ops.fused import cuts as cuts_made_by
from adjit.ir.ops.fused import is_border, loop_domain
from adjit.ir.ops.maps import element_cost
from adjit.ir.ops.shape import Broadcast
from adjit.ir.sizes import at_least, hint_of
from adjit.ir.types import Shape, TensorType

from ..rewrite import Renaming, is_pure, operands_read

MAX_OPS = 256  # statements per group: LLVM's back end is super-linear in the size of a basic block
MAX_SMALL_OPS = 96  # the same for small domains, whose tensors stay in the L1 cache, so that storing and loading cost almost nothing
MAX_TENSORS = 48  # tensors that a group reads and writes, as far as known when a statement joins: each needs an address
SMALL = 4096  # elements: below this, unrelated statements share a group, since a loop costs more than the traffic saved by separating
SPREAD = 4  # a broadcast to at least this many times the size reads almost nothing
MAX_HOSTED = 12  # statements in a group with a host
RECENT = 4  # groups of one shape that a statement considers, most recent first
MAX_BOXED = 600  # statements, counted once per box into which the pads of a group cut its domain: each box has its own code

ELSEWHERE = -1  # a reader that is not a group
BEFORE = -1  # the position before all groups


def fuse(func: Func) -> Func:
    return func.replace(block=_fused(func.block, func.outputs()))


def _fused(block: Block, outputs: tuple[Operand, ...]) -> Block:
    grouping = _Grouping(outputs)
    for stmt in block.stmts:
        grouping.place(stmt)
    return Block(block.params, grouping.finish(), block.results, block.saving)


def fusible(stmt: Stmt) -> bool:
    return ((stmt.op.is_elementwise or stmt.op.is_reduction) and len(stmt.results) == 1) or is_border(stmt)


def values_of(stmt: Stmt) -> list[Value]:
    return [a for a in stmt.args if isinstance(a, Value)]


def count_boxes(cuts: Iterable[tuple[int, int]]) -> int:
    """The number of boxes of a domain that is cut at these positions of its axes."""
    return math.prod(n + 1 for n in Counter(axis for axis, _ in cuts).values())


def are_ordered(cuts: Iterable[tuple[int, int]]) -> bool:
    """Whether the order of the cuts along each axis is the same for all sizes: the boxes between them are then known."""
    return all(axis != other or at_least(a, b) or at_least(b, a) for (axis, a), (other, b) in combinations(cuts, 2))


def twin(value: Operand) -> Value:
    return Value(value.type, value.name if isinstance(value, Value) else None)


def is_plain(stmt: Stmt) -> bool:
    """Whether recomputing a value costs less than storing and loading it."""
    return stmt.op.is_elementwise and element_cost(stmt).flops <= PLAIN


class _Item:
    """A group (with a domain) or a single statement, and the views of its results."""

    __slots__ = (
        "position", "domain", "host", "constants", "sunk", "stmts", "made", "reads", "yields", "views", "inner", "open", "most", "cuts",
    )  # fmt: skip

    def __init__(self, position: int, domain: Shape | None) -> None:
        self.position = position
        self.domain = domain
        self.host: Stmt | None = None
        self.constants: list[Stmt] = []
        self.sunk: list[Stmt] = []  # in reverse order
        self.stmts: list[Stmt] = []
        self.made: set[int] = set()
        self.reads: set[int] = set()
        self.yields: set[int] = set()
        self.views: list[Stmt] = []
        self.inner = Renaming()  # values with another identity inside the region: yielded values and duplicated constants
        self.open = domain is not None
        self.most = MAX_SMALL_OPS if domain is not None and hint_of(math.prod(domain)) <= SMALL else MAX_OPS
        self.cuts: set[tuple[int, int]] = set()  # axis and position where a pad begins or ends

    def has_room(self, stmt: Stmt, values: list[Value]) -> bool:
        """Whether the statement, which reads these values, may join the group without exceeding its limits."""
        if not self.open or len(self.stmts) + len(self.sunk) >= self.most or (self.host is not None and not self._can_follow(stmt)):
            return False
        tensors = len(self.reads) + len(self.yields)
        for value in values:
            if id(value) not in self.reads and id(value) not in self.made:
                tensors += 1
        return tensors <= MAX_TENSORS

    def has_boxes_for(self, stmts: list[Stmt]) -> bool:
        """Whether the pads of these statements and of the group leave few enough boxes, and no statement counts positions in them."""
        cuts = self.cuts.union(*map(cuts_made_by, stmts))
        if not cuts:
            return True
        if any(s.op.position_axis is not None for s in (*self.constants, *stmts)):
            return False
        return count_boxes(cuts) * (len(self.stmts) + len(self.sunk) + len(stmts)) <= MAX_BOXED and are_ordered(cuts)

    def has_room_for(self, other: _Item, stmt: Stmt) -> bool:
        """Whether both groups, and the statement that connects them, would form a group that is not too large."""
        if not self.open or not other.open or self.host or other.host or self.views or len(self.stmts) + len(other.stmts) >= self.most:
            return False
        new = {id(v) for v in values_of(stmt)} - self.made - other.made
        tensors = len(self.reads | other.reads | new) + len(self.yields | other.yields)
        return tensors <= MAX_TENSORS and self.has_boxes_for([*other.constants, *other.stmts, stmt])

    def _can_follow(self, stmt: Stmt) -> bool:
        """Whether the statement can be computed where the host stores: code emitted once per vector of a tile must be short."""
        inside = [*self.stmts, *self.sunk, stmt]
        return stmt.op.is_elementwise and len(inside) <= MAX_HOSTED and sum(element_cost(s).latency >= MATH for s in inside) <= 1

    def make_again(self, constant: Stmt) -> None:
        value = constant.result
        if id(value) not in self.made:
            self.inner[value] = twin(value)
            self.constants.append(constant.replace(results=(self.inner[value],)))
            self.made.add(id(value))
            self.cuts |= cuts_made_by(constant)

    def finished(self) -> list[Stmt]:
        """The item as it appears in the block: the region, then the views."""
        if self.domain is None:
            return [*self.stmts, *self.views]
        if self.stmts == [self.host]:
            return [*self.stmts, *self.views]
        inner = self.inner
        body = [*self.constants, *reversed(self.sunk), *self.stmts]
        results = [s.result for s in body if id(s.result) in self.yields]
        if not results:
            return []
        for r in results:  # the outer value keeps its identity, so that no statement outside changes
            inner[r] = twin(r)
        stmts = [inner.stmt(s).replace(results=inner.all(s.results)) if id(s.result) in self.yields else inner.stmt(s) for s in body]
        first = body[0]
        backward = all(s.phase == "backward" for s in body)
        block = Block((), stmts, inner.all(results))
        phase, origin = ("backward", first.origin) if backward else ("forward", None)
        return [Stmt(Fuse(), (), tuple(results), (block,), first.location, phase, origin), *self.views]  # type: ignore[arg-type]


class _Grouping:
    """Assigns the statements of one block to items."""

    def __init__(self, outputs: tuple[Operand, ...]) -> None:
        self.outputs = outputs
        self.final = {id(x) for x in outputs}
        self.lead: list[Stmt] = []  # views of values defined before the block
        self.sizes = _Item(BEFORE, ())  # numbers that depend on sizes only
        self.sizes.open = False  # to others
        self.items: list[_Item] = []
        self.ready: dict[int, int] = {}
        self.home: dict[int, _Item] = {}  # value -> the item that computes it, or after which it is viewed
        self.uses: dict[int, dict[int, int]] = {}  # value -> the number of reads by the groups at each position
        self.readers: dict[tuple[int, Shape], _Item] = {}  # value, domain -> the last group of that domain that reads it
        self.recent: dict[Shape, deque[_Item]] = {}
        self.free_to_make: dict[int, Stmt] = {}  # value -> the statement that computes it without operands
        self.small: set[int] = set()  # values broadcast from much smaller ones: reading them costs almost nothing

    def place(self, stmt: Stmt) -> None:
        if fusible(stmt):
            if not values_of(stmt) and not stmt.op.is_reduction:
                self.free_to_make[id(stmt.result)] = stmt
            elif self._follows_from_sizes(stmt):
                self._number(stmt)
            else:
                self._join(stmt)
        elif stmt.op.stores_once(*(a.type for a in stmt.args)) and not stmt.op.joins_region:  # see hosts.py
            self._host(stmt)
        elif stmt.op.is_view and len(stmt.args) == 1 and is_pure(stmt):
            self._view(stmt)
        else:
            self._alone(stmt)

    def finish(self) -> list[Stmt]:
        for operand in self.outputs:
            self._leaves(operand)
        self._sink()
        return [*self.lead, *(stmt for item in (self.sizes, *self.items) for stmt in item.finished())]

    # ---- assigning statements to groups

    def _join(self, stmt: Stmt) -> None:
        over, values, pads = loop_domain(stmt), values_of(stmt), is_border(stmt)
        if pads:
            for value in values:
                self._leaves(value)
        group = self._find(stmt, over, values, pads) or self._new(over.shape)
        made_again = [] if pads else [v for v in values if id(v) in self.free_to_make]
        for value in made_again:  # before any merge: a group that counts positions has no room for one with pads
            group.make_again(self.free_to_make[id(value)])
        for value in values:
            if pads:
                group.reads.add(id(value))
            elif id(value) not in self.free_to_make:
                maker = self.home.get(id(value))
                if maker is not None and maker is not group and not self._reduces(maker, values):
                    self._merge(maker, group, stmt)
                self._used(value, group)
        if pads:
            group.cuts |= cuts_made_by(stmt)
        group.stmts.append(stmt)
        self._made(group, stmt)

    def _follows_from_sizes(self, stmt: Stmt) -> bool:
        """Whether a statement computes a number from sizes alone, such as the factor of a mean."""
        if stmt.result.type.rank or not stmt.op.is_elementwise:
            return False
        return all(id(v) in self.sizes.made or (id(v) in self.free_to_make and v.type.rank == 0) for v in values_of(stmt))

    def _number(self, stmt: Stmt) -> None:
        """Compute a number before everything else: otherwise its readers would have to wait for all other statements of its group."""
        for value in values_of(stmt):
            if id(value) not in self.sizes.made:
                self._make_constant(self.free_to_make[id(value)])
        self.sizes.stmts.append(stmt)
        self._made(self.sizes, stmt)

    def _reduces(self, group: _Item, values: list[Value]) -> bool:
        """Whether one of these is a reduction of the group: a reduction over no axes has the shape of the domain."""
        return any(self.home.get(id(v)) is group and self.ready[id(v)] % 2 for v in values)

    def _made(self, group: _Item, stmt: Stmt) -> None:
        result = stmt.result
        group.made.add(id(result))
        self.home[id(result)] = group
        self.ready[id(result)] = 2 * group.position + stmt.op.is_reduction
        if id(result) in self.final:
            group.yields.add(id(result))

    def _find(self, stmt: Stmt, over: TensorType, values: list[Value], pads: bool) -> _Item | None:
        """The group that this statement joins, or None."""
        earliest = max([self.ready.get(id(v), -1) for v in values], default=-1)
        earliest |= pads  # the operand of a pad must be in memory
        for group in self._candidates(over, values):
            joins = group.host is None or any(id(v) in group.made for v in values)
            if joins and group.domain == over.shape and 2 * group.position >= earliest and self._fits(stmt, values, group):
                return group
        return None

    def _fits(self, stmt: Stmt, values: list[Value], group: _Item) -> bool:
        """Whether there is room for the statement; one that needs positions cannot join a group with a host, which has none."""
        if not group.has_room(stmt, values):
            return False
        constants = [self.free_to_make[id(v)] for v in values if id(v) in self.free_to_make]
        if group.host is not None and any(s.op.position_axis is not None for s in constants):
            return False
        return (not group.cuts and not constants and not is_border(stmt)) or group.has_boxes_for([stmt, *constants])

    def _candidates(self, over: TensorType, values: list[Value]) -> Iterator[_Item]:
        """Candidate groups, by what joining them saves: storing and loading an operand, a second read of it, a loop."""
        for value in values:
            if id(value) in self.home:
                yield self.home[id(value)]
        for value in values:
            if (id(value), over.shape) in self.readers:
                yield self.readers[id(value), over.shape]
        if hint_of(over.size) <= SMALL:
            yield from reversed(self.recent.get(over.shape, ()))

    def _merge(self, first: _Item, group: _Item, by: Stmt) -> None:
        """Merge an earlier group into this one, if they have the same domain and no other item reads the results of the first yet."""
        if first.domain != group.domain or not first.has_room_for(group, by):
            return
        both = {first.position, group.position}
        constants = first.made & self.free_to_make.keys()
        if constants & first.yields:
            return
        for stmt in first.stmts:
            read = self.uses.get(id(stmt.result), {}).keys()
            if not read <= both or (read and stmt.op.is_reduction):
                return
        for key in constants:
            group.make_again(self.free_to_make[key])
        for stmt in first.stmts:
            self._made(group, stmt)
            uses = self.uses.get(id(stmt.result))
            if uses is not None:
                self.uses[id(stmt.result)] = {group.position: sum(uses.values())}
        for key in first.reads:
            uses = self.uses[key]
            if first.position in uses:
                uses[group.position] = uses.get(group.position, 0) + uses.pop(first.position)
                self.readers[key, group.domain] = group  # type: ignore[index]
        group.cuts |= first.cuts
        group.reads = (group.reads | first.reads) - group.made
        group.stmts = first.stmts + group.stmts
        first.stmts, first.constants, first.open = [], [], False

    def _view(self, stmt: Stmt) -> None:
        (source,) = stmt.args
        if id(source) in self.small or (
            isinstance(stmt.op, Broadcast) and hint_of(source.type.size) * SPREAD <= hint_of(stmt.result.type.size)
        ):
            self.small.add(id(stmt.result))
        self._leaves(source)
        item = self.home.get(id(source))
        if item is None:
            self.lead.append(stmt)
            return
        item.views.append(stmt)
        self.home[id(stmt.result)] = item
        self.ready[id(stmt.result)] = 2 * item.position + 1

    def _alone(self, stmt: Stmt) -> None:
        for operand in operands_read(stmt):
            self._leaves(operand)
        item = self._new(None)
        if stmt.op.is_control:
            stmt = stmt.replace(blocks=tuple(_fused(b, (*b.results, *b.saving)) for b in stmt.blocks))
        item.stmts.append(stmt)
        for result in stmt.results:
            self.home[id(result)] = item
            self.ready[id(result)] = 2 * item.position + 1

    def _host(self, stmt: Stmt) -> None:
        """Open a group for this statement, which elementwise statements that read its result can join."""
        for operand in stmt.args:
            self._leaves(operand)
        group = _Item(len(self.items), stmt.result.type.shape)
        self.items.append(group)
        group.host = stmt
        group.stmts.append(stmt)
        self._made(group, stmt)

    def _new(self, shape: Shape | None) -> _Item:
        item = _Item(len(self.items), shape)
        self.items.append(item)
        if shape is not None:
            self.recent.setdefault(shape, deque(maxlen=RECENT)).append(item)
        return item

    # ---- readers of values

    def _count(self, operand: Operand, position: int) -> None:
        counts = self.uses.setdefault(id(operand), {})
        counts[position] = counts.get(position, 0) + 1

    def _used(self, value: Value, reader: _Item) -> None:
        """Record that a group reads the value: the group that computes it, if a different one, has to yield it."""
        self._count(value, reader.position)
        maker = self.home.get(id(value))
        if id(value) in reader.made:
            return
        reader.reads.add(id(value))
        assert reader.domain is not None
        self.readers[id(value), reader.domain] = reader
        if maker is not None and id(value) in maker.made:
            maker.yields.add(id(value))

    def _leaves(self, operand: Operand) -> None:
        """Record that the value is read outside groups: it is yielded, and emitted first if it has not been yet."""
        constant = self.free_to_make.get(id(operand))
        if constant is not None and id(operand) not in self.home:
            self._make_constant(constant)
        self._count(operand, ELSEWHERE)
        maker = self.home.get(id(operand))
        if maker is not None and id(operand) in maker.made:
            maker.yields.add(id(operand))

    def _make_constant(self, constant: Stmt) -> None:
        group = self._new(constant.result.type.shape) if constant.result.type.rank else self.sizes
        group.constants.append(constant)
        self._made(group, constant)

    # ---- sinking

    def _sink(self) -> None:
        """Move statements into the one later group that reads their results, in reverse order, so that whole chains follow."""
        for item in reversed(self.items):
            if item.domain is None:
                continue
            kept: list[Stmt] = []
            for stmt in reversed(item.stmts):
                target = self._only_reader(stmt, item)
                if target is not None and self._fits(stmt, values_of(stmt), target) and self._saves_traffic(stmt, item, target):
                    self._move(stmt, item, target)
                else:
                    kept.append(stmt)
            item.stmts = kept[::-1]
            for stmt in kept:
                self._recompute(stmt, item)

    def _only_reader(self, stmt: Stmt, item: _Item) -> _Item | None:
        uses = self.uses.get(id(stmt.result), ())
        if len(uses) != 1 or not stmt.op.is_elementwise:
            return None
        (position,) = uses
        if position in (ELSEWHERE, item.position):
            return None
        return self.items[position]

    def _saves_traffic(self, stmt: Stmt, item: _Item, target: _Item) -> bool:
        """Whether the target's extra reads of operands, and stores for them, cost less than storing and loading the result.

        Equal cost is enough if the operand can follow: its own operands may already be in the target.
        """
        cost, can_follow = 0, True
        for value, count in Counter(map(id, values_of(stmt))).items():
            if self._is_free(value, target):
                continue
            is_stored = value not in item.made or value in item.yields
            cost += 1 if is_stored else 2
            is_hosts = item.host is not None and value == id(item.host.result)
            can_follow = can_follow and not is_stored and not is_hosts and self.uses[value] == {item.position: count}
        return cost < 2 or (cost == 2 and can_follow)

    def _is_free(self, value: int, target: _Item) -> bool:
        return value in target.reads or value in target.made or value in self.free_to_make or value in self.small

    def _recompute(self, stmt: Stmt, item: _Item) -> None:
        """Recompute a value that costs almost nothing in every later group that reads it, rather than store and load it."""
        if id(stmt.result) not in item.yields or id(stmt.result) in self.final or not is_plain(stmt):
            return
        uses = self.uses.get(id(stmt.result), {})
        if ELSEWHERE in uses:
            return
        targets = [self.items[position] for position in uses if position != item.position]
        # the recomputed value must be bitwise equal (a maximum is compared with the elements it was taken over): all operands are read from
        # memory everywhere, so that no multiplication in one of the groups can be contracted with this op
        values = [id(v) for v in values_of(stmt)]
        if any(v in item.made for v in values):  # constants too: a group makes those that it reads
            return
        for t in targets:
            if not self._fits(stmt, values_of(stmt), t) or not all(self._is_free(v, t) and v not in t.made for v in values):
                return
        item.yields.discard(id(stmt.result))
        for target in targets:
            target.reads.discard(id(stmt.result))
            target.made.add(id(stmt.result))
            target.inner[stmt.result] = twin(stmt.result)
            target.sunk.append(stmt.replace(results=(target.inner[stmt.result],)))
            del uses[target.position]
            for value in values_of(stmt):
                self._used(value, target)

    def _move(self, stmt: Stmt, item: _Item, target: _Item) -> None:
        result = id(stmt.result)
        item.yields.discard(result)
        target.reads.discard(result)
        target.made.add(result)
        target.sunk.append(stmt)
        self.home[result] = target
        for value in values_of(stmt):
            if id(value) in self.free_to_make:
                target.make_again(self.free_to_make[id(value)])
                continue
            uses = self.uses[id(value)]
            uses[item.position] -= 1
            if not uses[item.position]:
                del uses[item.position]
            self._used(value, target)
