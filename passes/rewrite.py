"""Shared by the passes: renaming of values, and rewriting of statements.

Owns `Renaming`, how statements are copied, narrowed and walked. Ops themselves say what they are (a view, a loop): see `ir.ops.base`.
Makes no optimisation decisions: those belong to the passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from adjit.ir.effects import cannot_repeat, effects, effects_of
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Op

# Ops whose two operands may be exchanged without changing a bit of the result. `maximum` and `minimum` are not among them: of 0.0 and -0.0
# they may return either.
COMMUTATIVE = frozenset({"add", "mul", "equal", "not_equal", "bitwise_and", "bitwise_or", "bitwise_xor"})


def is_pure(stmt: Stmt) -> bool:
    """Whether the statement may be moved freely, as long as its operands are available."""
    return effects(stmt).is_pure


class Renaming:
    """Replaces values by other operands, in statements and the blocks inside them."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table: dict[int, Operand] = {}

    def __setitem__(self, old: Operand, new: Operand) -> None:
        self.table[id(old)] = self.table.get(id(new), new)

    def __getitem__(self, operand: Operand) -> Operand:
        return self.table.get(id(operand), operand)

    def all(self, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        table = self.table
        return tuple([table.get(id(x), x) for x in operands])

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its operands renamed (not the blocks inside it); the same object if nothing changes."""
        table = self.table
        for a in stmt.args:
            if id(a) in table:
                return stmt.replace(args=self.all(stmt.args))
        return stmt

    def block(self, block: Block) -> Block:
        """The block with every operand renamed, at every depth."""
        stmts = [
            self.stmt(stmt).replace(blocks=tuple(map(self.block, stmt.blocks))) if stmt.blocks else self.stmt(stmt) for stmt in block.stmts
        ]
        return self.body(block, stmts)

    def body(self, block: Block, stmts: Sequence[Stmt]) -> Block:
        """`block` with a new body, whose results are renamed."""
        return Block(block.params, stmts, self.all(block.results), self.all(block.saving))

    def func(self, func: Func, stmts: Sequence[Stmt]) -> Func:
        """`func` with a new body, whose results and updates are renamed."""
        return func.replace(block=self.body(func.block, stmts), updates=tuple((param, self[new]) for param, new in func.updates))


def narrowed(stmt: Stmt, keep: Sequence[int], blocks: Sequence[Block]) -> Stmt:
    """A region statement with only the results `keep`; `blocks` are the new bodies, still with all parameters and results."""
    if not stmt.op.is_loop:
        cut = [Block(b.params, b.stmts, [b.results[i] for i in keep]) for b in blocks]
        return stmt.replace(results=tuple(stmt.results[i] for i in keep), blocks=tuple(cut))
    *tests, body = blocks
    carries = len(body.results)
    slots = [i for i in keep if i < carries]

    def kept(items: Sequence[Value]) -> list[Value]:
        first = len(items) - carries
        return [*items[:first], *(items[first + i] for i in slots)]

    saving = [body.saving[i - carries] for i in keep if i >= carries]
    narrow = Block(kept(body.params), body.stmts, [body.results[i] for i in slots], saving)
    cut = [*(Block(kept(b.params), b.stmts, b.results) for b in tests), narrow]
    return stmt.replace(args=tuple(kept(stmt.args)), results=tuple(stmt.results[i] for i in keep), blocks=tuple(cut))  # type: ignore[arg-type]


def like(model: Stmt, op: Op, args: Iterable[Operand], named: Operand | None = None, result: Operand | None = None) -> Stmt:
    """A statement with the location and phase of another; its result is new, with the name of `named`, unless `result` is given."""
    operands = tuple(args)
    if result is None:
        (type,) = op.result_types([a.type for a in operands])
        result = Value(type, named.name if isinstance(named, Value) else None)
    return Stmt(op, operands, (result,), (), model.location, model.phase, model.origin)


def walk(block: Block) -> Iterator[Stmt]:
    """Every statement; those of nested blocks follow the statement that contains them."""
    pending = [iter(block.stmts)]
    while pending:
        stmt = next(pending[-1], None)
        if stmt is None:
            pending.pop()
            continue
        yield stmt
        if stmt.blocks:
            pending.extend(iter(b.stmts) for b in reversed(stmt.blocks))


def silenced(stmts: Iterable[Stmt]) -> list[Stmt]:
    """The statements without prints and checks, at any depth: for a run that repeats one in which these have already happened."""
    out = []
    for stmt in stmts:
        if happens_once(stmt):
            continue
        if effects(stmt).ordered:
            blocks = [Block(b.params, silenced(b.stmts), b.results, b.saving) for b in stmt.blocks]
            stmt = stmt.replace(blocks=tuple(blocks))
        out.append(stmt)
    return out


def happens_once(stmt: Stmt) -> bool:
    """Whether a run that repeats this statement leaves it out: a print, a check. One with results can be neither repeated nor left out."""
    if not effects_of(stmt.op).ordered:
        return False
    if stmt.results:
        raise cannot_repeat(stmt.op).at(stmt.location)
    return True


def operands_read(stmt: Stmt) -> Iterator[Operand]:
    """The values that a statement reads from outside: its arguments and the free values of its blocks."""
    yield from stmt.args
    for block in stmt.blocks:
        yield from block.free()
