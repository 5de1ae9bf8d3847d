"""Batching: turns a function of one example into a function of many, along a leading axis. `vmap` is built on it.

Each op has its own batching rule (`Op.batch`). This pass tracks which values differ between examples, and rewrites regions:

- an `if` whose predicate is shared by all examples stays an `if`; otherwise both branches run and a `where` selects. Statements that could
  fail in a branch are prevented from failing for the examples that do not take it (`Op.guarded`);
- a `for` with shared bounds stays a `for`; if the bounds differ, the loop runs for the largest trip count, and finished examples keep
  their carries;
- a `while` runs until all examples have finished; finished examples keep their carries.

A shared stack becomes a batched one once an example adds to it. Does not support fused functions: batch before fusing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.effects import effects
from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.control import For
from adjit.ir.ops.custom import CustomGradient
from adjit.ir.ops.index import Gather, ScatterSet
from adjit.ir.ops.shape import lead, trail
from adjit.ir.ops.stack import StackAccumulate, StackLength, StackOp, StackRead, StackZeros
from adjit.ir.types import BOOL, I64, StackType, TensorType

Marked: TypeAlias = tuple[Operand, bool]  # an operand, and whether it has the leading axis

INDEX = TensorType(I64)


def batch_func(func: Func, batched: Sequence[bool], size: int) -> Func:
    """`@f.vmap`: the parameters marked in `batched` and all results gain a leading axis of length `size`."""
    params = [Value(wide(p.type, size) if has else p.type, p.name) for p, has in zip(func.params, batched, strict=True)]
    if func.updates:
        raise UnsupportedError(f"@{func.name} assigns a variable, which all examples of a batch share; return the value instead")
    with Builder(params) as builder:
        results = [lifted(r, size) for r in batch_block(func.block, params, batched, size)]
        return func.replace(name=f"{func.name}.vmap", block=builder.finish(results), plan=None)


def batch_block(block: Block, args: Sequence[Operand], batched: Sequence[bool], size: int) -> list[Marked]:
    """Emit the block's statements on `args`, of which those marked in `batched` have a leading axis of `size`. Return its results."""
    batcher = Batcher(size)
    batcher.set(block.params, zip(args, batched, strict=True))
    batcher.run(block.stmts)
    return [batcher[r] for r in block.results]


def inline(block: Block, args: Sequence[Operand]) -> list[Operand]:
    """Emit a copy of the block's statements on `args`. Return the block's results."""
    return [result for result, _ in batch_block(block, args, [False] * len(args), 0)]


def wide(type: TensorType, size: int) -> TensorType:
    """The batched type."""
    return StackType(wide(type.element, size)) if isinstance(type, StackType) else type.with_shape((size, *type.shape))


def lifted(marked: Marked, size: int) -> Operand:
    """Repeat a value that all examples share along the leading axis; a value that has the axis is returned unchanged."""
    x, has = marked
    if has:
        return x
    return each_element(wide(x.type, size), lambda row: lead(row, size), x) if isinstance(x.type, StackType) else lead(x, size)


def choose(condition: Operand, a: Operand, b: Operand) -> Operand:
    """Select `a` for the examples where the condition (bool[size]) holds, else `b`."""
    if isinstance(a.type, StackType):
        return each_element(a.type, lambda x, y: choose(condition, x, y), a, b)
    return ops.where(trail(condition, a.type.shape), a, b)


def each_element(type: TensorType, function: Callable[..., Operand], *stacks: Operand) -> Operand:
    """Build a stack of `type` by applying `function` to the elements of stacks of equal length."""
    assert isinstance(type, StackType)
    k, carry = Value(INDEX), Value(type)
    child = child_of(here(), [k, carry])
    with child:
        out = apply(StackAccumulate().unchecked(), carry, k, function(*(apply(StackRead().unchecked(), s, k) for s in stacks)))
    args = (Literal(0, INDEX), apply(StackLength(), stacks[0]), apply(StackZeros(type.element), stacks[0]))
    return here().emit(For(), args, (child.finish([out]),), [type])[0]


def going_on(going: Operand, new: Operand, old: Operand) -> Operand:
    """A carry after an iteration that only some examples run. What the others add to a stack was set to zero where it was added."""
    return new if isinstance(new.type, StackType) else choose(going, new, old)


class Batcher:
    """Walks a block and maps each value to its batched form. `active` marks the examples whose results will be read; None means all."""

    def __init__(self, size: int, active: Operand | None = None, table: dict[int, Marked] | None = None) -> None:
        self.size = size
        self.active = active
        self.table: dict[int, Marked] = {} if table is None else table

    def __getitem__(self, x: Operand) -> Marked:
        return self.table.get(id(x), (x, False))

    def set(self, values: Sequence[Operand], marked: Iterable[Marked]) -> None:
        self.table.update(zip(map(id, values), marked, strict=True))

    def inside(self, active: Operand | None) -> Batcher:
        return Batcher(self.size, active, self.table)

    def run(self, stmts: Sequence[Stmt]) -> None:
        builder = here()
        for stmt in stmts:
            with builder.at(stmt.location, stmt.phase, stmt.origin):
                results = stmt.region.batch_region(self, stmt) if stmt.blocks else self.statement(stmt)
            self.set(stmt.results, results)
            for old, (new, _) in zip(stmt.results, results, strict=True):
                if isinstance(new, Value) and new.name is None and isinstance(old, Value):
                    new.name = old.name

    def statement(self, stmt: Stmt) -> list[Marked]:
        marked = [self[a] for a in stmt.args]
        args, has = tuple(x for x, _ in marked), tuple(h for _, h in marked)
        if effects(stmt).fails and self.active is not None:
            args, has = stmt.op.guarded(self.size, self.active, args, has)  # type: ignore[assignment]
        if not any(has) or isinstance(stmt.op, StackLength):
            return [(r, False) for r in here().emit(stmt.op, args)]
        if isinstance(stmt.op, StackOp):
            return [(self.stack_op(stmt.op, marked), True)]
        if isinstance(stmt.op, CustomGradient):
            return self.custom(stmt.op, marked)
        if self.size == 0:  # without examples there is nothing to compute, and the batching rules need not handle size 0
            return [(Literal(0, wide(r.type, 0)), True) for r in stmt.results]
        out = stmt.op.batch(self.size, args, has)
        return [(r, True) for r in (out if isinstance(out, tuple) else (out,))]

    # ---- branches

    def branches(self, stmt: Stmt) -> list[Marked]:
        predicate, differs = self[stmt.args[0]]
        if not differs:
            return self.shared(stmt)
        sides: list[list[Operand]] = []
        for block, taken in zip(stmt.blocks, (predicate, ~predicate), strict=True):
            inner = self.inside(taken if self.active is None else self.active & taken)
            inner.run(block.stmts)
            sides.append([lifted(inner[r], self.size) for r in block.results])
        return [(choose(predicate, a, b), True) for a, b in zip(*sides, strict=True)]

    def shared(self, stmt: Stmt) -> list[Marked]:
        """An `if` whose predicate all examples share, or a `checkpoint`: the same statement, with its blocks batched."""
        children = [self.child() for _ in stmt.blocks]
        for child, block in zip(children, stmt.blocks, strict=True):
            with child:
                self.run(block.stmts)
        has = [any(self[r][1] for r in row) for row in zip(*(b.results for b in stmt.blocks), strict=True)]
        blocks = tuple(self.finish(child, b.results, has) for child, b in zip(children, stmt.blocks, strict=True))
        return self.emit(stmt, [self[a][0] for a in stmt.args], blocks, has)

    # ---- loops

    def for_loop(self, stmt: Stmt) -> list[Marked]:
        start, stop = stmt.args[:2]
        if self[start][1] or self[stop][1]:
            return self.ragged_for(stmt)
        (body,) = stmt.blocks
        inits = [self[x] for x in stmt.args[2:]]
        has = [h for _, h in inits]
        while True:
            index, *params = self.params(body, [False, *has])
            child = self.child([index, *params])
            with child:
                self.set(body.params, zip([index, *params], [False, *has], strict=True))
                self.run(body.stmts)
            found = [h or self[r][1] for h, r in zip(has, body.results, strict=True)]
            if found == has:
                break
            has = found
        block = self.finish(child, body.results, has, body.saving)
        saved = [self[s][1] for s in body.saving]
        args = [self[start][0], self[stop][0], *(lifted(x, self.size) if h else x[0] for x, h in zip(inits, has, strict=True))]
        return self.emit(stmt, args, (block,), has, saved)

    def ragged_for(self, stmt: Stmt) -> list[Marked]:
        """A `for` whose bounds differ: count from 0 to the largest trip count; examples that have finished keep their carries."""
        start, stop, *inits = (lifted(self[a], self.size) for a in stmt.args)
        (body,) = stmt.blocks
        trips = stop - start if self.active is None else ops.where(self.active, stop - start, 0)
        most = trips.max(0) if self.size else Literal(0, INDEX)
        j, *params = self.params(body, [False] + [True] * len(inits))
        child = self.child([j, *params])
        with child:
            going = lead(j, self.size) < trips
            inner = self.inside(going)
            inner.set(body.params, [(start + lead(j, self.size), True), *((p, True) for p in params)])
            inner.run(body.stmts)
            following = [going_on(going, lifted(inner[r], self.size), p) for r, p in zip(body.results, params, strict=True)]
            saving = [lifted(inner[s], self.size) for s in body.saving]
        return self.emit(stmt, [Literal(0, INDEX), most, *inits], (child.finish(following, saving),), [True] * len(inits))

    def while_loop(self, stmt: Stmt) -> list[Marked]:
        condition, body = stmt.blocks
        inits = [self[x] for x in stmt.args]
        has = [h for _, h in inits]
        while self.active is None:
            children = []
            for block in (condition, body):
                params = self.params(block, has)
                children.append(self.child(params))
                with children[-1]:
                    self.set(block.params, zip(params, has, strict=True))
                    self.run(block.stmts)
            if self[condition.results[0]][1]:
                break
            found = [h or self[r][1] for h, r in zip(has, body.results, strict=True)]
            if found == has:
                blocks = (self.finish(children[0], condition.results, [False]), self.finish(children[1], body.results, has, body.saving))
                args = [lifted(x, self.size) if h else x[0] for x, h in zip(inits, has, strict=True)]
                saved = [self[s][1] for s in body.saving]
                return self.emit(stmt, args, blocks, has, saved)
            has = found
        return self.ragged_while(stmt, [lifted(x, self.size) for x in inits])

    def ragged_while(self, stmt: Stmt, inits: list[Operand]) -> list[Marked]:
        """A `while` whose examples finish at different iterations: an extra carry marks those that are still running."""
        condition, body = stmt.blocks
        flags = TensorType(BOOL, (self.size,))
        first = self.holds(condition, inits, self.active)
        outer = [*self.params(condition, [True] * len(inits)), Value(flags, "going")]
        test = self.child(outer)
        with test:
            some = ops.any(outer[-1])
        params, going = self.params(body, [True] * len(inits)), Value(flags, "going")
        child = self.child([*params, going])
        with child:
            inner = self.inside(going)
            inner.set(body.params, [(p, True) for p in params])
            inner.run(body.stmts)
            following = [going_on(going, lifted(inner[r], self.size), p) for r, p in zip(body.results, params, strict=True)]
            saving = [lifted(inner[s], self.size) for s in body.saving]
            following.append(self.holds(condition, following, going))
        blocks = (test.finish([some]), child.finish(following, saving))
        out = self.emit(stmt, [*inits, first], blocks, [True] * (len(inits) + 1))
        return [*out[: len(inits)], *out[len(inits) + 1 :]]

    def holds(self, condition: Block, carries: Sequence[Operand], active: Operand | None) -> Operand:
        """Which of the active examples satisfy a loop's condition."""
        inner = self.inside(active)
        inner.set(condition.params, [(c, True) for c in carries])
        inner.run(condition.stmts)
        out = lifted(inner[condition.results[0]], self.size)
        return out if active is None else active & out

    # ---- user-defined derivatives

    def custom(self, op: CustomGradient, marked: Sequence[Marked]) -> list[Marked]:
        """The op on lifted inputs and values, with its derivative batched."""
        given = op.inputs + op.values
        read, has_read = [x for x, _ in marked[given:]], [h for _, h in marked[given:]]

        def batched(block: Block) -> Block:
            return batch_func(Func(op.function, block), [*has_read, *(True for _ in block.params[len(read) :])], self.size).block

        def make() -> tuple[Block, Block | None]:
            return batched(op.block), None if op.push is None else batched(op.push)

        wide_op = CustomGradient.deferred(op.function, op.inputs, op.values, op.pulled, make)
        args = [*(lifted(x, self.size) for x in marked[:given]), *read]
        return [(r, True) for r in here().emit(wide_op, args)]

    # ---- stacks

    def stack_op(self, op: StackOp, marked: Sequence[Marked]) -> Operand:
        if not isinstance(op, StackRead | StackAccumulate):
            return apply(op.widened(self.size), *(lifted(x, self.size) for x in marked))
        (stack, has_stack), (index, has_index), *rest = marked
        added = [lifted(x, self.size) for x in rest]
        if self.active is not None:
            added = [choose(self.active, x, Literal(0, x.type)) for x in added]
        if not has_index:
            return apply(op, lifted(marked[0], self.size) if rest else stack, index, *added)
        if self.active is not None:
            index = ops.where(self.active, index, 0)
        if isinstance(op, StackRead):
            element = stack.type.element if isinstance(stack.type, StackType) else stack.type
            blank: Operand = Literal(0, element if has_stack else wide(element, self.size))

            def read(k: Operand, out: Operand) -> Operand:
                row = apply(op, stack, apply(Gather(), index, k))
                return apply(ScatterSet(), out, apply(Gather(), row, k) if has_stack else row, k)

            return self.for_each(read, blank)
        stack, (x,) = lifted(marked[0], self.size), added

        def add(k: Operand, out: Operand) -> Operand:
            row = apply(ScatterSet(), Literal(0, x.type), apply(Gather(), x, k), k)
            return apply(op, out, apply(Gather(), index, k), row)

        return self.for_each(add, stack)

    def for_each(self, step: Callable[[Operand, Operand], Operand], init: Operand) -> Operand:
        """Loop over the examples."""
        k, carry = Value(INDEX), Value(init.type)
        child = self.child([k, carry])
        with child:
            out = step(k, carry)
        return here().emit(For(), (Literal(0, INDEX), Literal(self.size, INDEX), init), (child.finish([out]),), [init.type])[0]

    # ---- helpers

    def child(self, params: Sequence[Value] = ()) -> Builder:
        return child_of(here(), params)

    def params(self, block: Block, has: Sequence[bool]) -> list[Value]:
        return [Value(wide(p.type, self.size) if h else p.type, p.name) for p, h in zip(block.params, has, strict=True)]

    def finish(self, child: Builder, results: Sequence[Operand], has: Sequence[bool], saving: Sequence[Operand] = ()) -> Block:
        with child:
            out = [lifted(self[r], self.size) if h else self[r][0] for r, h in zip(results, has, strict=True)]
            return child.finish(out, [self[s][0] for s in saving])

    def emit(
        self, stmt: Stmt, args: Sequence[Operand], blocks: tuple[Block, ...], has: Sequence[bool], saved: Sequence[bool] | None = None
    ) -> list[Marked]:
        """Emit the new region; values saved by its last block follow the yielded ones. `saved` marks which are batched (default: all)."""
        last = blocks[-1]
        results = here().emit(stmt.op, args, blocks, [*(r.type for r in last.results), *(StackType(s.type) for s in last.saving)])
        return list(zip(results, [*has, *([True] * len(last.saving) if saved is None else saved)], strict=True))


def child_of(parent: Builder, params: Sequence[Value] = ()) -> Builder:
    """A builder for a block of a region, at the location of its parent."""
    out = Builder(params, parent)
    out.location, out.phase, out.origin = parent.location, parent.phase, parent.origin
    return out


def here() -> Builder:
    builder = current_builder()
    assert builder is not None
    return builder
