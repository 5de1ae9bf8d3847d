"""Fusion: elementwise statements of one shape, and reductions of operands of that shape, become one `fuse` region, one loop nest.

The statements are dealt, in order, to a list of items: groups, or single statements that cannot be fused. `ready[v]` says from where on a
value can be read: 2p inside group p itself, when it is computed elementwise there; 2p + 1 after item p, for the results of reductions and
other ops, and for views of them. A statement may join group p when 2p >= ready of all that it reads; otherwise it opens a group at the end.
So no cycle can arise, and nothing is searched: every statement looks at a bounded number of groups.

Views (`transpose`, `broadcast`, `slice`, ...) stay outside: native code reads its operands through their layouts. Constants that cost
nothing to make (`fill`, `iota`) are made again inside each group that reads them. Every elementwise op and reduction ends up in a region, a
lone one too, so that code generation has one case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.base import View
from adjit.ir.ops.control import Fuse
from adjit.ir.ops.maps import Map
from adjit.ir.ops.reduce import Reduce
from adjit.ir.types import Shape, TensorType

from .rewrite import Renaming, is_pure, operands_read

MAX_OPS = 256  # statements in a group: LLVM's back end is super-linear in the size of a basic block
MAX_TENSORS = 48  # tensors that a group reads and writes: each costs an address; a bound on what is known when a statement joins
SMALL = 4096  # elements: below, unrelated statements share a group, for the loop costs more than the traffic that separating would save
RECENT = 4  # groups of one shape that a statement looks back at


def fuse(func: Func) -> Func:
    return func.replace(block=_fused(func.block, func.outputs()))


def _fused(block: Block, outputs: tuple[Operand, ...]) -> Block:
    grouping = _Grouping(outputs)
    for stmt in block.stmts:
        grouping.place(stmt)
    return Block(block.params, grouping.finish(), block.results, block.saving)


def fusible(stmt: Stmt) -> bool:
    return isinstance(stmt.op, Map | Reduce) and len(stmt.results) == 1


def domain(stmt: Stmt) -> TensorType:
    """What the statement's loop nest runs over."""
    return stmt.args[0].type if isinstance(stmt.op, Reduce) else stmt.result.type


def twin(value: Operand) -> Value:
    return Value(value.type, value.name if isinstance(value, Value) else None)


class _Item:
    """A group (with a domain) or a single statement, and the views of what it makes."""

    __slots__ = ("position", "domain", "stmts", "made", "reads", "yields", "views", "inner", "open")

    def __init__(self, position: int, domain: Shape | None) -> None:
        self.position = position
        self.domain = domain
        self.stmts: list[Stmt] = []
        self.made: set[int] = set()
        self.reads: set[int] = set()
        self.yields: set[int] = set()
        self.views: list[Stmt] = []
        self.inner = Renaming()  # values that have another identity inside: what is yielded, and constants made again
        self.open = domain is not None

    def has_room(self, stmt: Stmt) -> bool:
        if not self.open or len(self.stmts) >= MAX_OPS:
            return False
        new = sum(isinstance(a, Value) and id(a) not in self.reads and id(a) not in self.made for a in stmt.args)
        return len(self.reads) + len(self.yields) + new <= MAX_TENSORS

    def finished(self) -> list[Stmt]:
        """The item as it stands in the block: the region, then the views."""
        if self.domain is None:
            return [*self.stmts, *self.views]
        inner = self.inner
        results = [s.result for s in self.stmts if id(s.result) in self.yields]
        for r in results:  # the outer value keeps its identity, so that no statement outside changes
            inner[r] = twin(r)
        stmts = [inner.stmt(s) if id(s.result) not in self.yields else inner.stmt(s).replace(results=(inner[s.result],)) for s in self.stmts]
        first = self.stmts[0]
        backward = all(s.phase == "backward" for s in self.stmts)
        body = Block((), stmts, inner.all(results))
        region = Stmt(Fuse(), (), tuple(results), (body,), first.location, "backward" if backward else "forward", first.origin if backward else None)
        return [region, *self.views] if results else []


class _Grouping:
    """Deals the statements of one block to items."""

    def __init__(self, outputs: tuple[Operand, ...]) -> None:
        self.outputs = outputs
        self.final = {id(x) for x in outputs}
        self.lead: list[Stmt] = []  # views of what is there before the block begins
        self.items: list[_Item] = []
        self.ready: dict[int, int] = {}
        self.home: dict[int, _Item] = {}  # value -> the item that makes it, or after which it is viewed
        self.readers: dict[tuple[int, Shape], _Item] = {}  # value, domain -> the last group of that domain that reads it
        self.recent: dict[Shape, deque[_Item]] = {}
        self.free_to_make: dict[int, Stmt] = {}  # value -> the statement that makes it from nothing

    def place(self, stmt: Stmt) -> None:
        if fusible(stmt):
            if not any(isinstance(a, Value) for a in stmt.args) and is_pure(stmt.op):
                self.free_to_make[id(stmt.result)] = stmt
            else:
                self._join(stmt)
        elif isinstance(stmt.op, View) and len(stmt.args) == 1 and is_pure(stmt.op):
            self._view(stmt)
        else:
            self._alone(stmt)

    def finish(self) -> list[Stmt]:
        for operand in self.outputs:
            self._escapes(operand)
        return [*self.lead, *(stmt for item in self.items for stmt in item.finished())]

    def _join(self, stmt: Stmt) -> None:
        over = domain(stmt)
        values = [a for a in stmt.args if isinstance(a, Value)]
        group = (self._find(stmt, over, values) if is_pure(stmt.op) else None) or self._new(over.shape)
        group.open = group.open and is_pure(stmt.op)
        for value in values:
            if id(value) in group.made:
                continue
            constant = self.free_to_make.get(id(value))
            if constant is not None:
                group.inner[value] = twin(value)
                group.stmts.append(constant.replace(results=(group.inner[value],)))
                group.made.add(id(value))
                continue
            self._escapes(value)
            group.reads.add(id(value))
            self.readers[id(value), over.shape] = group
        self._add(group, stmt)

    def _add(self, group: _Item, stmt: Stmt) -> None:
        result = stmt.result
        group.stmts.append(stmt)
        group.made.add(id(result))
        self.home[id(result)] = group
        self.ready[id(result)] = 2 * group.position + isinstance(stmt.op, Reduce)
        if id(result) in self.final:
            group.yields.add(id(result))

    def _find(self, stmt: Stmt, over: TensorType, values: list[Value]) -> _Item | None:
        """The group that this statement joins."""
        earliest = max((self.ready.get(id(v), -1) for v in values), default=-1)
        for group in self._candidates(over, values):
            if group.domain == over.shape and 2 * group.position >= earliest and group.has_room(stmt):
                return group
        return None

    def _candidates(self, over: TensorType, values: list[Value]) -> Iterator[_Item]:
        """Groups by what joining them saves: the trip of an operand through memory, a second read of it, a loop."""
        for value in values:
            if id(value) in self.home:
                yield self.home[id(value)]
        for value in values:
            if (id(value), over.shape) in self.readers:
                yield self.readers[id(value), over.shape]
        if over.size <= SMALL:
            yield from reversed(self.recent.get(over.shape, ()))

    def _view(self, stmt: Stmt) -> None:
        (source,) = stmt.args
        self._escapes(source)
        item = self.home.get(id(source))
        if item is None:
            self.lead.append(stmt)
            return
        item.views.append(stmt)
        self.home[id(stmt.result)] = item
        self.ready[id(stmt.result)] = 2 * item.position + 1

    def _alone(self, stmt: Stmt) -> None:
        for operand in operands_read(stmt):
            self._escapes(operand)
        item = self._new(None)
        if stmt.blocks and not isinstance(stmt.op, Fuse):
            stmt = stmt.replace(blocks=tuple(_fused(b, (*b.results, *b.saving)) for b in stmt.blocks))
        item.stmts.append(stmt)
        for result in stmt.results:
            self.home[id(result)] = item
            self.ready[id(result)] = 2 * item.position + 1

    def _escapes(self, operand: Operand) -> None:
        """The value is read outside of the group that computes it: it is yielded, and made first if it is not there yet."""
        maker = self.free_to_make.get(id(operand))
        if maker is not None and id(operand) not in self.home:
            self._add(self._new(maker.result.type.shape), maker)
        item = self.home.get(id(operand))
        if item is not None and id(operand) in item.made:
            item.yields.add(id(operand))

    def _new(self, shape: Shape | None) -> _Item:
        item = _Item(len(self.items), shape)
        self.items.append(item)
        if shape is not None:
            self.recent.setdefault(shape, deque(maxlen=RECENT)).append(item)
        return item
