"""Updates of single rows: `x - c * scatter_add(0, u, i)` becomes `scatter_add(x, -c * u, i)`, which reads and writes only the rows of `i`.

This is a step of gradient descent on a table of which a batch reads some rows. A row that no index selects has no gradient, and stays as it
is whatever the factor: a factor that is not finite gives NaN only in the rows that are read, and negative zeros stay negative.
"""

from __future__ import annotations

from collections import Counter

from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add, Neg, Sub
from adjit.ir.ops.base import apply
from adjit.ir.ops.index import ScatterAdd
from adjit.ir.ops.maps import Mul
from adjit.ir.ops.shape import Broadcast
from adjit.ir.records import NamedTuple

from ..rewrite import Renaming, operands_read


def scatter_updates(func: Func) -> Func:
    if not func.block.contains(ScatterAdd):
        return func
    renaming = Renaming()
    stmts = _Block(func.block, func.updates).rewritten(renaming)
    return renaming.func(func, stmts) if renaming.table else func


class _Scaled(NamedTuple):
    """A `scatter_add` to zeros, times scalars (None: minus one), applied in order; and the results of these statements."""

    scatter: Stmt
    factors: tuple[Operand | None, ...]
    values: tuple[Operand, ...]

    def times(self, factor: Operand | None, value: Operand) -> _Scaled:
        return _Scaled(self.scatter, (*self.factors, factor), (*self.values, value))

    def updates(self) -> Operand:
        """The rows to add, times all factors."""
        out = self.scatter.args[1]
        for factor in self.factors:
            out = (
                -out
                if factor is None
                else out * (factor.value if isinstance(factor, Literal) else ops.broadcast_to(factor, out.type.shape))
            )
        return out


class _Block:
    def __init__(self, block: Block, updates: tuple[tuple[Operand, Operand], ...] = ()) -> None:
        self.block = block
        self.uses = Counter(id(x) for stmt in block.stmts for x in operands_read(stmt))
        self.uses.update(map(id, (*block.results, *block.saving, *(new for _, new in updates))))
        self.makers = {id(stmt.result): stmt for stmt in block.stmts if len(stmt.results) == 1}

    def rewritten(self, renaming: Renaming) -> list[Stmt]:
        out: list[Stmt] = []
        dropped: set[int] = set()
        for old in self.block.stmts:
            stmt = renaming.stmt(old)
            if stmt.blocks:
                stmt = stmt.replace(blocks=tuple(renaming.body(b, _Block(b).rewritten(renaming)) for b in stmt.blocks))
            found = self._update(old) if isinstance(old.op, Add | Sub) else None
            if found is None:
                out.append(stmt)
                continue
            x, scaled = found
            with Builder([]) as builder, builder.at(stmt.location, stmt.phase, stmt.origin):
                renaming[old.result] = apply(scaled.scatter.op, renaming[x], *renaming.all((scaled.updates(), *scaled.scatter.args[2:])))
            out += builder.stmts
            dropped.update(map(id, scaled.values))
        return [stmt for stmt in out if not dropped or not any(id(r) in dropped for r in stmt.results)]

    def _update(self, stmt: Stmt) -> tuple[Operand, _Scaled] | None:
        """The array that a sum or difference adds scaled rows to, and those."""
        x, y = stmt.args
        minus = isinstance(stmt.op, Sub)
        for base, other in [(x, y)] if minus else [(x, y), (y, x)]:
            scaled = self._scaled(other)
            if scaled is not None and base is not other:
                return base, scaled._replace(factors=(*scaled.factors, None)) if minus else scaled
        return None

    def _scaled(self, y: Operand) -> _Scaled | None:
        maker = self.makers.get(id(y))
        if maker is None or self.uses[id(y)] != 1 or not y.type.is_float:
            return None
        if isinstance(maker.op, ScatterAdd):
            first = maker.args[0]
            return _Scaled(maker, (), (y,)) if isinstance(first, Literal) and first.value == 0 else None
        if isinstance(maker.op, Neg):
            inner = self._scaled(maker.args[0])
            return inner and inner.times(None, y)
        if isinstance(maker.op, Mul):
            for a, b in (maker.args, maker.args[::-1]):
                factor, inner = self._scalar(a), self._scaled(b)
                if factor is not None and inner is not None:
                    return inner.times(factor, y)
        return None

    def _scalar(self, x: Operand) -> Operand | None:
        """The one number that fills an operand."""
        maker = self.makers.get(id(x))
        if maker is not None and isinstance(maker.op, Broadcast) and maker.args[0].type.size == 1:
            return maker.args[0]
        return x if isinstance(x, Literal) else None
