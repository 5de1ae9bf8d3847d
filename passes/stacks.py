"""Stacks that are updated in place: copies where an update would be seen through another value.

`stack_accumulate` and `stack_add` write over their first operand, and a loop over what it starts to carry, once this pass is done: where
the old stack is read later, the operand is a copy. Values that share memory have one root. What the roots are follows from the statements
alone, by `StackRoots`; the buffer planner asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.control import For, While
from adjit.ir.ops.stack import StackAccumulate, StackAdd, StackCopy
from adjit.ir.types import StackType

from .activity import carried_params, initial_carries
from .rewrite import walk


def is_stack(x: Operand) -> bool:
    return isinstance(x.type, StackType)


class StackRoots:
    """Who shares memory with whom; told of statements in their order, of a loop before its body and after."""

    def __init__(self) -> None:
        self.table: dict[int, Value] = {}

    def of(self, stack: Operand) -> Value:
        assert isinstance(stack, Value)
        return self.table.setdefault(id(stack), stack)

    def enter(self, loop: Stmt) -> None:
        """Carried stacks lie where their first values do."""
        for block in loop.blocks:
            self._share(carried_params(loop, block), initial_carries(loop))

    def leave(self, stmt: Stmt) -> None:
        """The results of a statement whose blocks have been walked."""
        if isinstance(stmt.op, StackAccumulate | StackAdd):
            self._share(stmt.results, stmt.args[:1])
        elif isinstance(stmt.op, For | While):
            carried = carried_params(stmt, stmt.blocks[-1])
            self._share(stmt.results[: len(carried)], carried)
        elif stmt.blocks:
            for result, *yields in zip(stmt.results, *(b.results for b in stmt.blocks), strict=True):
                if is_stack(result) and all(self.of(y) is self.of(yields[0]) for y in yields):
                    self._share([result], yields[:1])

    def _share(self, values: Sequence[Operand], others: Sequence[Operand]) -> None:
        for value, other in zip(values, others, strict=True):
            if is_stack(value):
                self.table[id(value)] = self.of(other)


class _Place(NamedTuple):
    """A position in the text, with the loops around it and the branches that lead to it."""

    clock: int
    loops: tuple[int, ...]
    branches: tuple[tuple[int, int], ...]

    def excludes(self, other: _Place) -> bool:
        """Whether the two lie in different branches of one `if`."""
        taken = dict(self.branches)
        return any(taken.get(region, branch) != branch for region, branch in other.branches)


class _Uses:
    """Where stacks are defined and used."""

    def __init__(self, func: Func) -> None:
        self.defined: dict[int, tuple[int, ...]] = {}  # the loops around the definition
        self.used: dict[int, list[_Place]] = {}
        self.places: dict[int, _Place] = {}  # of statements, by id
        self.values: dict[int, Value] = {}
        self._clock = 0
        self._block(func.block, (), ())

    def _block(self, block: Block, loops: tuple[int, ...], branches: tuple[tuple[int, int], ...]) -> None:
        self._define(block.params, loops)
        for stmt in block.stmts:
            self._clock += 1
            here = self.places[id(stmt)] = _Place(self._clock, loops, branches)
            self._use(stmt.args, here)
            inside = (*loops, id(stmt)) if isinstance(stmt.op, For | While) else loops
            for k, inner in enumerate(stmt.blocks):
                self._block(inner, inside, branches if inside is not loops else (*branches, (id(stmt), k)))
            self._define(stmt.results, loops)
        self._clock += 1
        self._use((*block.results, *block.saving), _Place(self._clock, loops, branches))

    def _define(self, values: Iterable[Operand], loops: tuple[int, ...]) -> None:
        for v in values:
            if isinstance(v, Value) and is_stack(v):
                self.defined[id(v)] = loops
                self.values[id(v)] = v

    def _use(self, values: Iterable[Operand], place: _Place) -> None:
        for v in values:
            if is_stack(v):
                self.used.setdefault(id(v), []).append(place)

    def sees(self, value: Value, change: _Place) -> bool:
        """Whether the value is used after a change of its memory: further on, or on the next trip of a loop that it comes into from outside."""
        outside = set(self.defined.get(id(value), ()))
        for use in self.used.get(id(value), ()):
            again = any(loop not in outside for loop in use.loops if loop in change.loops)
            if again or (use.clock > change.clock and not use.excludes(change)):
                return True
        return False


def make_stacks_private(func: Func) -> Func:
    if not any(is_stack(r) for s in walk(func.block) for r in s.results):
        return func
    return func.replace(block=_Privacy(func).block(func.block))


class _Privacy:
    def __init__(self, func: Func) -> None:
        self.uses = _Uses(func)
        self.roots = StackRoots()

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block.stmts:
            place = self.uses.places[id(stmt)]
            if isinstance(stmt.op, StackAccumulate | StackAdd):
                stmt = stmt.replace(args=(self._private(stmt.args[0], place, stmt, out), *stmt.args[1:]))
            elif isinstance(stmt.op, For | While):
                stmt = self._loop(stmt, place, out)
            elif stmt.blocks:
                stmt = stmt.replace(blocks=tuple(map(self.block, stmt.blocks)))
            self.roots.leave(stmt)
            out.append(stmt)
        return Block(block.params, out, block.results, block.saving)

    def _loop(self, stmt: Stmt, place: _Place, out: list[Stmt]) -> Stmt:
        body = stmt.blocks[-1]
        inits = list(initial_carries(stmt))
        inside = _Place(place.clock, (*place.loops, id(stmt)), place.branches)
        for slot, (init, param) in enumerate(zip(inits, carried_params(stmt, body), strict=True)):
            if is_stack(init) and body.results[slot] is not param:
                inits[slot] = self._private(init, inside, stmt, out)
        stmt = stmt.replace(args=(*stmt.args[: len(stmt.args) - len(inits)], *inits))
        self.roots.enter(stmt)
        blocks = [self.block(b) for b in stmt.blocks]
        return stmt.replace(blocks=(*blocks[:-1], self._yielding_own(stmt, blocks[-1])))

    def _yielding_own(self, loop: Stmt, body: Block) -> Block:
        """What lies elsewhere is copied before it is brought into the carry's memory: it may be that of another carry."""
        stmts, results = list(body.stmts), list(body.results)
        for slot, param in enumerate(carried_params(loop, body)):
            if is_stack(param) and self.roots.of(results[slot]) is not self.roots.of(param):
                results[slot] = self._copy(results[slot], loop, stmts)
        return Block(body.params, stmts, results, body.saving)

    def _private(self, stack: Operand, change: _Place, stmt: Stmt, out: list[Stmt]) -> Operand:
        """The stack itself, if nobody sees that its memory is changed; else a copy."""
        root = self.roots.of(stack)
        sharing = [v for v in self.uses.values.values() if id(v) in self.roots.table and self.roots.of(v) is root]
        if any(self.uses.sees(v, change) for v in sharing):
            return self._copy(stack, stmt, out)
        return stack

    def _copy(self, stack: Operand, stmt: Stmt, out: list[Stmt]) -> Value:
        copy = Value(stack.type, getattr(stack, "name", None))
        out.append(Stmt(StackCopy(), (stack,), (copy,), (), stmt.location, stmt.phase, stmt.origin))
        return copy
