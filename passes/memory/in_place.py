"""Memory that is updated in place: stacks, copied where an update would be visible through another value; and arrays in register regions.

After this pass `stack_accumulate` and `stack_add` overwrite their first operand, and a loop the initial values of its carries: if the old
stack is read later, the operand is a copy. Values that share memory have the same root. `Roots` derives the roots from the statements
alone; the buffer planner queries it again.

A region that runs in registers may carry arrays, and read and write single elements of them, under the same rules. For regions the pass
only checks the rules (`changes_in_place`): a region that breaks them gets planned buffers and copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.stack import StackCopy
from adjit.ir.records import NamedTuple
from adjit.ir.types import StackType

from ..autodiff.activity import carried_params, initial_carries
from ..rewrite import like, walk


def is_stack(x: Operand) -> bool:
    return isinstance(x.type, StackType)


def is_array(x: Operand) -> bool:
    """Whether it does not fit into a register."""
    return x.type.size != 1 and not is_stack(x)


class Roots:
    """Which values share memory. Statements are added in order; a loop before its body and after it."""

    def __init__(self, holds: Callable[[Operand], bool]) -> None:
        self.holds = holds
        self.table: dict[int, Value] = {}

    def of(self, value: Operand) -> Value:
        assert isinstance(value, Value)
        return self.table.setdefault(id(value), value)

    def enter(self, loop: Stmt, keeps_first: bool = True) -> None:
        """Carried values occupy the memory of their initial values; separate memory if `keeps_first` is false."""
        body = carried_params(loop, loop.blocks[-1])
        if keeps_first:
            self._share(body, initial_carries(loop))
        for block in loop.blocks[:-1]:
            self._share(carried_params(loop, block), body)

    def leave(self, stmt: Stmt) -> None:
        """Add the results of a statement whose blocks have been walked."""
        if stmt.op.in_place is not None:
            self._share(stmt.results, stmt.args[stmt.op.in_place : stmt.op.in_place + 1])
        elif stmt.op.is_loop:
            carried = carried_params(stmt, stmt.blocks[-1])
            self._share(stmt.results[: len(carried)], carried)
        elif stmt.blocks:
            for result, *yields in zip(stmt.results, *(b.results for b in stmt.blocks), strict=True):
                if self.holds(result) and self.same(yields):
                    self._share([result], yields[:1])

    def same(self, values: Sequence[Operand]) -> bool:
        return all(isinstance(v, Value) and self.of(v) is self.of(values[0]) for v in values)

    def _share(self, values: Sequence[Operand], others: Sequence[Operand]) -> None:
        for value, other in zip(values, others, strict=True):
            if self.holds(value) and isinstance(other, Value):
                self.table[id(value)] = self.of(other)


class _Place(NamedTuple):
    """A position in the text, with the enclosing loops and the branches that lead to it."""

    clock: int
    loops: tuple[int, ...]
    branches: tuple[tuple[int, int], ...]

    def excludes(self, other: _Place) -> bool:
        """Whether the two are in different branches of one `if`."""
        taken = dict(self.branches)
        return any(taken.get(region, branch) != branch for region, branch in other.branches)


class _Uses:
    """Where the tracked values are defined and used."""

    def __init__(self, block: Block, holds: Callable[[Operand], bool]) -> None:
        self.holds = holds
        self.defined: dict[int, tuple[int, ...]] = {}  # the loops around the definition
        self.used: dict[int, list[_Place]] = {}
        self.places: dict[int, _Place] = {}  # of statements, by id
        self.values: dict[int, Value] = {}
        self._clock = 0
        self._block(block, (), ())

    def _block(self, block: Block, loops: tuple[int, ...], branches: tuple[tuple[int, int], ...]) -> None:
        self._define(block.params, loops)
        for stmt in block.stmts:
            self._clock += 1
            here = self.places[id(stmt)] = _Place(self._clock, loops, branches)
            self._use(stmt.args, here)
            inside = (*loops, id(stmt)) if stmt.op.is_loop else loops
            for k, inner in enumerate(stmt.blocks):
                self._block(inner, inside, branches if inside is not loops else (*branches, (id(stmt), k)))
            self._define(stmt.results, loops)
        self._clock += 1
        self._use((*block.results, *block.saving), _Place(self._clock, loops, branches))

    def _define(self, values: Iterable[Operand], loops: tuple[int, ...]) -> None:
        for v in values:
            if self.holds(v):
                assert isinstance(v, Value)
                self.defined[id(v)] = loops
                self.values[id(v)] = v

    def _use(self, values: Iterable[Operand], place: _Place) -> None:
        for v in values:
            if self.holds(v):
                self.used.setdefault(id(v), []).append(place)

    def sees(self, value: Value, change: _Place) -> bool:
        """Whether the value is used after a change of its memory: later in the text, or in the next iteration of a loop that it enters from
        outside.
        """
        outside = set(self.defined.get(id(value), ()))
        for use in self.used.get(id(value), ()):
            again = any(loop not in outside for loop in use.loops if loop in change.loops)
            if again or (use.clock > change.clock and not use.excludes(change)):
                return True
        return False


def make_stacks_private(func: Func) -> Func:
    if not any(is_stack(r) for s in walk(func.block) for r in s.results):
        return func
    return func.replace(block=_Privacy(func.block, is_stack).block(func.block))


def changed_stacks(func: Func) -> set[int]:
    """The roots of stacks that some statement changes in place: elements read from them must be copied."""
    roots, changed = Roots(is_stack), set()

    def visit(block: Block) -> None:
        for stmt in block.stmts:
            if stmt.op.is_loop:
                roots.enter(stmt)
            for inner in stmt.blocks:
                visit(inner)
            if stmt.op.in_place is not None and is_stack(stmt.args[stmt.op.in_place]):
                changed.add(id(roots.of(stmt.args[stmt.op.in_place])))
            roots.leave(stmt)

    visit(func.block)
    return changed


def changes_in_place(region: Stmt) -> bool:
    """Whether a region can make all its changes to arrays in place. Initial values of its carries are copied."""
    around = Block((), [region], ())
    privacy = _Privacy(around, is_array, region)
    privacy.block(around)
    return not privacy.copied


class _Privacy:
    """Inserts the copies. The loop `outermost` already carries copies."""

    def __init__(self, block: Block, holds: Callable[[Operand], bool], outermost: Stmt | None = None) -> None:
        self.uses = _Uses(block, holds)
        self.roots = Roots(holds)
        self.holds = holds
        self.outermost = outermost
        self.known = dict(self.uses.values)  # values not in here come from outside, and may not be changed
        self.copied = False

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block.stmts:
            place = self.uses.places[id(stmt)]
            changed = stmt.op.in_place
            if changed is not None and self.holds(stmt.args[changed]):
                args = list(stmt.args)
                args[changed] = self._private(args[changed], place, stmt, out)
                stmt = stmt.replace(args=tuple(args))
            elif stmt.op.is_loop:
                stmt = self._loop(stmt, place, out)
            elif stmt.blocks:
                stmt = stmt.replace(blocks=tuple(map(self.block, stmt.blocks)))
                yields = zip(stmt.results, *(b.results for b in stmt.blocks), strict=True)
                self.copied |= any(self.holds(result) and not self.roots.same(values) for result, *values in yields)
            self.roots.leave(stmt)
            out.append(stmt)
        return Block(block.params, out, block.results, block.saving)

    def _loop(self, stmt: Stmt, place: _Place, out: list[Stmt]) -> Stmt:
        body = stmt.blocks[-1]
        inits = list(initial_carries(stmt))
        inside = _Place(place.clock, (*place.loops, id(stmt)), place.branches)
        is_outermost = stmt is self.outermost
        taken: list[Value] = []  # memory of the preceding carries: two carries with the same initial value must not share memory
        for slot, (init, param) in enumerate(zip(inits, carried_params(stmt, body), strict=True)):
            if self.holds(init) and isinstance(init, Value) and not is_outermost:
                if any(self.roots.of(init) is root for root in taken):
                    inits[slot] = self._copy(init, stmt, out)
                elif body.results[slot] is not param:
                    inits[slot] = self._private(init, inside, stmt, out)
                taken.append(self.roots.of(inits[slot]))
        stmt = stmt.replace(args=(*stmt.args[: len(stmt.args) - len(inits)], *inits))
        self.roots.enter(stmt, keeps_first=not is_outermost)
        blocks = [self.block(b) for b in stmt.blocks]
        return stmt.replace(blocks=(*blocks[:-1], self._yielding_own(stmt, blocks[-1])))

    def _yielding_own(self, loop: Stmt, body: Block) -> Block:
        """Copy yielded values from other memory before they are moved into the carry's: that memory may belong to another carry."""
        stmts, results = list(body.stmts), list(body.results)
        for slot, param in enumerate(carried_params(loop, body)):
            if self.holds(param) and not self.roots.same([param, results[slot]]):
                results[slot] = self._copy(results[slot], loop, stmts)
        return Block(body.params, stmts, results, body.saving)

    def _private(self, stack: Operand, change: _Place, stmt: Stmt, out: list[Stmt]) -> Operand:
        """The stack itself if a change of its memory cannot be observed; otherwise a copy."""
        root = self.roots.of(stack)
        sharing = [v for v in self.uses.values.values() if id(v) in self.roots.table and self.roots.of(v) is root]
        if id(root) not in self.known or any(self.uses.sees(v, change) for v in sharing):
            return self._copy(stack, stmt, out)
        return stack

    def _copy(self, stack: Operand, stmt: Stmt, out: list[Stmt]) -> Value:
        self.copied = True
        copy = Value(stack.type, getattr(stack, "name", None))
        self.known[id(copy)] = copy
        out.append(like(stmt, StackCopy(), (stack,), result=copy))
        return copy
