"""Attention: `softmax(q kᵀ) v` and its adjoint become two kernels that compute the weights tile by tile, and never store them.

The forward pattern is product, scaling, mask, softmax along rows, product. Scaling and mask are optional, and so is a comparison that keeps
the maximum of the softmax finite. The adjoint is what the derivative rules of these ops emit; it is recognised together
with the forward statements whose results it reads. Nothing is changed if another statement reads a weight, a score or a sum of a row: a
program that returns the weights needs them anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from adjit.ir.func import Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Abs, Add, Div, Neg, Sub
from adjit.ir.ops.attention import PARTS, QUERIES, Attention, AttentionGradient
from adjit.ir.ops.base import Op
from adjit.ir.ops.elementary import Exp
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.logic import Less
from adjit.ir.ops.maps import Copy, Mul, StrongMul, Where
from adjit.ir.ops.reduce import Max, Reduce, Sum
from adjit.ir.ops.shape import Broadcast, Reshape, Transpose
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import is_symbolic

from ..rewrite import like, operands_read
from ..simplify.cleanup import rewrite_blocks

MIN_SIDE = 32  # queries and keys: fewer weights are stored at no cost
ROUNDINGS = 4  # rounding errors by which two forms of one factor, `x / c` and `x * (1 / c)`, may differ


def fuse_attention(func: Func) -> Func:
    return rewrite_blocks(func, _rewritten)


def _rewritten(stmts: list[Stmt], outputs: set[int]) -> list[Stmt] | None:
    """The statements with all attention in them replaced; None if there is none."""
    matching: _Matching | None = None
    replaced: dict[int, list[Stmt]] = {}
    for stmt in stmts:
        if isinstance(stmt.op, Matmul) and _is_wide(stmt.args[0]):
            matching = matching or _Matching(stmts, outputs)
            found = matching.forward(stmt)
            if found is not None:
                replaced |= found.statements(matching)
    if not replaced:
        return None
    return [new for stmt in stmts for new in replaced.get(id(stmt), [stmt])]


def _is_wide(x: Operand) -> bool:
    shape = x.type.shape
    return x.type.is_float and len(shape) >= 2 and not any(map(is_symbolic, shape)) and min(shape[-2:]) >= MIN_SIDE


class _Mismatch(Exception):
    """These statements are not attention."""


class _Found(NamedTuple):
    """The operands of one attention, and the statements that it replaces."""

    q: Operand
    k: tuple[Operand, tuple[int, ...]]  # what is transposed, and how
    v: Operand
    scale: float
    mask: Operand | None
    fill: float
    out: Stmt
    adjoint: _Adjoint | None

    def statements(self, matching: _Matching) -> dict[int, list[Stmt]]:
        """The new statements, by the id of the one whose place they take."""
        emit = _Emitting(self.out)
        q, v = self.q, self.v
        k = emit(Transpose(self.k[1]), self.k[0])
        mask = () if self.mask is None else (self._mask(emit, matching),)
        rows = q.type.with_shape(q.type.shape[:-1])
        total, peak = Value(rows), Value(rows)
        emit.several(Attention(self.scale, self.fill), (q, k, v, *mask), (self.out.result, peak, total))
        made = {id(self.out): emit.stmts}
        if self.adjoint is not None:
            made |= self.adjoint.statements(self, (q, k, v), peak, total, mask)
        return made

    def _mask(self, emit: _Emitting, matching: _Matching) -> Operand:
        """The mask with its last two axes exchanged, copied before it is broadcast, so that rows of queries are contiguous."""
        assert self.mask is not None
        shape, x = self.mask.type.shape, self.mask
        made = matching.definitions.get(id(x))
        if made is not None and isinstance(made.op, Broadcast):
            (x,) = made.args
            x = emit(Reshape((1,) * (len(shape) - x.type.rank) + x.type.shape), x) if x.type.rank < len(shape) else x
        x = emit(Copy(), emit(Transpose(_swapped(range(len(shape)))), x))
        return emit(Broadcast((*shape[:-2], shape[-1], shape[-2])), x)


class _Adjoint(NamedTuple):
    """The adjoint of one attention: the cotangent of its result, and the products that it replaces."""

    d: Operand
    first: Stmt  # the first one that reads the cotangent
    by_q: list[Stmt]
    by_k: list[Stmt]
    by_v: list[Stmt]

    def statements(
        self, found: _Found, operands: tuple[Operand, ...], peak: Operand, total: Operand, mask: tuple[Operand, ...]
    ) -> dict[int, list[Stmt]]:
        emit = _Emitting(self.first)
        one = Literal(1.0, total.type)
        last = (total.type.rank,)
        inverse = emit(Div(), one, total)
        weighted = emit(Sum(last), emit(StrongMul(), self.d, found.out.result))
        delta = emit(Neg(), emit(StrongMul(), weighted, inverse))
        op = AttentionGradient(_parts(operands[0]), found.scale, found.fill)
        args = (*operands, self.d, peak, inverse, delta, *mask)
        dq, dk, dv = (Value(t) for t in op.result_types([x.type for x in args]))
        emit.several(op, args, (dq, dk, dv))
        by = [dq, *(emit(Sum((0,)), x) if op.parts > 1 else emit(Reshape(x.type.shape[1:]), x) for x in (dk, dv))]
        made: dict[int, list[Stmt]] = {id(s): [] for s in (*self.by_q, *self.by_k, *self.by_v)}
        for stmts, x in zip((self.by_q, self.by_k, self.by_v), by, strict=True):
            for stmt in stmts:
                axes = tuple(range(x.type.rank))
                emit(Transpose(_swapped(axes) if stmts is self.by_k else axes), x, result=stmt.result)
        made[id(self.first)] = [*emit.stmts, *([] if id(self.first) in made else [self.first])]
        return made


def _parts(q: Operand) -> int:
    """The number of parts of the derivative: independent of the number of threads, so that results are, too."""
    count, blocks = math.prod(q.type.shape[:-2]), -(-q.type.shape[-2] // QUERIES)
    return max(1, min(-(-PARTS // count), blocks)) if count else 1


class _Emitting:
    """New statements with the location of another one."""

    def __init__(self, model: Stmt) -> None:
        self.model = model
        self.stmts: list[Stmt] = []

    def __call__(self, op: Op, *args: Operand, result: Operand | None = None) -> Operand:
        self.stmts.append(like(self.model, op, args, result=result))
        return self.stmts[-1].result

    def several(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        self.stmts.append(Stmt(op, args, results, (), self.model.location, self.model.phase, self.model.origin))


def _swapped(axes: Iterable[int]) -> tuple[int, ...]:
    *lead, a, b = axes
    return (*lead, b, a)


class _Matching:
    """Recognises attention in one block; `_Mismatch` leaves a pattern as soon as it does not fit."""

    def __init__(self, stmts: list[Stmt], outputs: set[int]) -> None:
        self.definitions = {id(s.results[0]): s for s in stmts if len(s.results) == 1}
        self.readers: dict[int, list[Stmt]] = {}
        for stmt in stmts:
            for key in {id(x) for x in operands_read(stmt)}:
                self.readers.setdefault(key, []).append(stmt)
        self.outputs = outputs
        self.members: dict[int, Stmt] = {}

    # ---- steps

    def made_by(self, x: Operand, *ops: type[Op]) -> Stmt:
        """The statement that makes x, which is then a member of the pattern."""
        stmt = self.definitions.get(id(x))
        if stmt is None or not isinstance(stmt.op, ops):
            raise _Mismatch
        self.members[id(stmt)] = stmt
        return stmt

    def reader(self, x: Operand, *ops: type[Op]) -> Stmt:
        """The one statement with such an op that reads x."""
        found = [s for s in self.readers.get(id(x), ()) if isinstance(s.op, ops)]
        if len(found) != 1:
            raise _Mismatch
        self.members[id(found[0])] = found[0]
        return found[0]

    def turned(self, x: Operand) -> tuple[Operand, tuple[int, ...]]:
        stmt = self.definitions.get(id(x))
        if stmt is not None and isinstance(stmt.op, Transpose):
            return stmt.args[0], stmt.op.axes
        return x, tuple(range(x.type.rank))

    def are_transposed(self, x: Operand, y: Operand) -> bool:
        """Whether y is x with the last two axes exchanged."""
        (a, first), (b, second) = self.turned(x), self.turned(y)
        return a is b and _swapped(first) == second

    def reduced(self, x: Operand, op: type[Reduce]) -> Operand:
        """The operand of a reduction along the rows whose result is seen as a column."""
        column = self.made_by(x, Reshape)
        stmt = self.made_by(column.args[0], op)
        rank = stmt.args[0].type.rank
        if stmt.op.axes != (rank - 1,) or x.type.shape != (*stmt.result.type.shape, 1):  # type: ignore[attr-defined]
            raise _Mismatch
        return stmt.args[0]

    def spread(self, x: Operand) -> Operand:
        """The column that is broadcast along the rows."""
        return self.made_by(x, Broadcast).args[0]

    def expect(self, condition: bool) -> None:
        if not condition:
            raise _Mismatch

    # ---- the patterns

    def forward(self, out: Stmt) -> _Found | None:
        self.members = {id(out): out}
        try:
            return self._forward(out)
        except _Mismatch:
            return None

    def _forward(self, out: Stmt) -> _Found:
        weights, v = out.args
        divided = self.made_by(weights, Div)
        powers, column = divided.args[0], self.spread(divided.args[1])
        self.expect(self.reduced(column, Sum) is powers)
        exponent = self.made_by(self.made_by(powers, Exp).args[0], Sub)
        scores = exponent.args[0]
        self.expect(self._peak_of(self.spread(exponent.args[1])) is scores)
        mask, fill, inner = self._masked(scores)
        scale, product = self._scaled(inner)
        stmt = self.made_by(product, Matmul)
        q, k = stmt.args
        self.expect(q.type.rank == k.type.rank == v.type.rank and _is_wide(product))
        adjoint = None
        if len(self.readers[id(weights)]) > 1:
            adjoint = self._adjoint(out, weights, powers, column, (mask, scale, q, k, v))
        results = {id(s.result) for s in (out, *((*adjoint.by_q, *adjoint.by_k, *adjoint.by_v) if adjoint else ()))}
        for member in self.members.values():
            if id(member.result) not in results:
                self.expect(id(member.result) not in self.outputs)
                self.expect(all(id(s) in self.members for s in self.readers.get(id(member.result), ())))
        root, axes = self.turned(k)
        return _Found(q, (root, _swapped(axes)), v, scale, mask, fill, out, adjoint)

    def _peak_of(self, x: Operand) -> Operand:
        """The operand of which x is the maximum; a maximum that is not finite may have been replaced by 0."""
        stmt = self.definitions.get(id(x))
        if stmt is not None and isinstance(stmt.op, Where):
            self.made_by(x, Where)
            finite, peak, zero = stmt.args
            less = self.made_by(finite, Less)
            self.expect(self.made_by(less.args[0], Abs).args[0] is peak)
            self.expect(_number(less.args[1]) == math.inf and _number(zero) == 0)
            return self.reduced(peak, Max)
        return self.reduced(x, Max)

    def _masked(self, x: Operand) -> tuple[Operand | None, float, Operand]:
        stmt = self.definitions.get(id(x))
        if stmt is None or not isinstance(stmt.op, Where):
            return None, -math.inf, x
        mask, inner, fill = self.made_by(x, Where).args
        value = _number(fill)
        self.expect(not math.isnan(value) and not isinstance(mask, Literal))
        return mask, value, inner

    def _scaled(self, x: Operand) -> tuple[float, Operand]:
        """A factor, and what it multiplies."""
        stmt = self.definitions.get(id(x))
        if stmt is None or not isinstance(stmt.op, Mul | Div):
            return 1.0, x
        a, b = self.made_by(x, Mul, Div).args
        if isinstance(stmt.op, Mul) and isinstance(a, Literal):
            a, b = b, a
        value = _number(b)
        self.expect(math.isfinite(value) and value != 0)
        return value if isinstance(stmt.op, Mul) else 1.0 / value, a

    def _adjoint(
        self, out: Stmt, weights: Operand, powers: Operand, column: Operand, given: tuple[Operand | None, float, Operand, Operand, Operand]
    ) -> _Adjoint:
        mask, scale, q, k, v = given
        negated = self.reader(weights, Neg)
        divided = self.reader(negated.result, Div)
        self.expect(divided.args[0] is negated.result and self.spread(divided.args[1]) is column)
        product = self.reader(divided.result, StrongMul)
        by_weights = product.args[0]
        self.expect(product.args[1] is divided.result)
        total = self.reader(product.result, Sum)
        by_sum = self.reader(self.reader(total.result, Reshape).result, Broadcast)
        self.expect(self.reduced(by_sum.args[0], Sum) is product.result)
        added = self.reader(by_sum.result, Add)
        other = added.args[0] if added.args[1] is by_sum.result else added.args[1]
        direct = self.made_by(other, StrongMul)
        inverse = self.made_by(self.spread(direct.args[1]), Div)
        self.expect(direct.args[0] is by_weights and _number(inverse.args[0]) == 1 and inverse.args[1] is column)
        by_exponent = self.reader(added.result, Mul)
        self.expect({id(a) for a in by_exponent.args} == {id(added.result), id(powers)})
        by_scores = by_exponent.result
        if mask is not None:
            chosen = self.reader(by_scores, Where)
            self.expect(chosen.args[0] is mask and chosen.args[1] is by_scores and _number(chosen.args[2]) == 0)
            by_scores = chosen.result
        if scale != 1.0:
            factor, inner = self._scaled(self.reader(by_scores, Mul, Div).result)
            close = ROUNDINGS * float(np.finfo(q.type.dtype).eps)
            self.expect(inner is by_scores and abs(factor - scale) <= close * abs(scale))
            by_scores = self.reader(by_scores, Mul, Div).result
        first = self.made_by(by_weights, Matmul)
        d = first.args[0]
        self.expect(self.are_transposed(v, first.args[1]))
        by_q, by_k = self._products(by_scores, q, k)
        by_v: list[Stmt] = []
        for turned in (s for s in self.readers[id(weights)] if isinstance(s.op, Transpose)):
            self.members[id(turned)] = turned
            self.expect(turned.op.axes == _swapped(range(weights.type.rank)))  # type: ignore[attr-defined]
            by_v.append(self.reader(turned.result, Matmul))
            self.expect(by_v[-1].args[0] is turned.result and by_v[-1].args[1] is d)
        readers = [s for s in self.readers[id(d)] if id(s) in self.members]
        return _Adjoint(d, readers[0], by_q, by_k, by_v)

    def _products(self, by_scores: Operand, q: Operand, k: Operand) -> tuple[list[Stmt], list[Stmt]]:
        """The products with the cotangent of the scores: cotangents of q, and of k, transposed."""
        by_q, by_k = list[Stmt](), list[Stmt]()
        for stmt in self.readers.get(id(by_scores), ()):
            self.expect(isinstance(stmt.op, Matmul))
            self.members[id(stmt)] = stmt
            a, b = stmt.args
            if a is by_scores and self.are_transposed(k, b):
                by_q.append(stmt)
            else:
                self.expect(b is by_scores and self.are_transposed(q, a))
                by_k.append(stmt)
        self.expect(bool(by_q or by_k))
        return by_q, by_k


def _number(x: Operand) -> float:
    """The value of a literal that is one number everywhere; other operands do not fit any pattern."""
    if not isinstance(x, Literal) or np.ndim(x.value):
        raise _Mismatch
    return float(x.value)
