"""Turns small arrays in loops into scalars, so that the loop runs in registers.

A loop on a state of three numbers is written with a vector of three: every op would be a kernel, which every iteration would call. Here
each element becomes a separate value. Ops that only move elements (views, `concatenate`, `pad`, ...) are resolved at compile time and cost
nothing; stacks of small arrays become stacks of scalars. A loop is converted only as a whole, and only if it then consists of scalars; a
stack only if every loop that reads it is converted too.

Arrays that are too large, or are indexed at run time, may occur beside them: ops on them become ops on single elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from adjit.ir.cost import MATH
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add
from adjit.ir.ops.base import Array, Op
from adjit.ir.ops.index import Gather, Scatter
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.maps import Map, Mul
from adjit.ir.ops.reduce import Reduce
from adjit.ir.ops.shape import Pad, Reshape, Slice
from adjit.ir.ops.stack import StackLength, StackZeros
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import I64, StackType, TensorType

from ..memory.in_place import is_stack
from ..memory.windows import is_made_of_scalars
from ..rewrite import Renaming, like, operands_read, walk
from ..simplify.cleanup import cleaned

MAX_SIZE = 16  # elements of an array that is unpacked
MAX_STATEMENTS = 1000  # per loop, after unpacking: bounds compile time
MAX_MATH = 16  # calls of the vector math library per loop: with more, a kernel that computes several at a time is faster


class _Refused(Exception):
    """This loop is left unchanged; not an error."""


def unpack_small_arrays(func: Func) -> Func:
    kept: set[int] = set()  # first results of loops that must stay, because their stacks are read whole
    while True:
        attempt = _Function(kept)
        block = attempt.block(func.block)
        if not attempt.stacks_read_whole:
            break
        kept |= attempt.stacks_read_whole
    if not attempt.unpacked:
        return func
    return cleaned(func.replace(block=block))


def is_packed(x: Operand) -> bool:
    """Whether a value is an array to unpack, or a stack of such arrays."""
    return bool(x.type.shape) and not is_symbolic(x.type.size) and 0 < x.type.size <= MAX_SIZE


def scalar_type(x: Operand) -> TensorType:
    element = TensorType(x.type.dtype)
    return StackType(element) if is_stack(x) else element


class _Function:
    """One attempt at all loops of a function."""

    def __init__(self, kept: set[int]) -> None:
        self.kept = kept
        self.stacks: dict[int, list[Operand]] = {}  # a stack of small arrays -> its stacks of scalars
        self.maker: dict[int, int] = {}  # a stack -> the first result of the loop that builds it
        self.stacks_read_whole: set[int] = set()
        self.unpacked = False

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block.stmts:
            if stmt.op.is_loop:
                out.extend(self._loop(stmt))
            elif isinstance(stmt.op, StackLength) and id(stmt.args[0]) in self.stacks:
                out.append(stmt.replace(args=(self.stacks[id(stmt.args[0])][0],)))
            elif stmt.op.takes_stacks and id(stmt.args[0]) in self.stacks and is_stack(stmt.result) and is_packed(stmt.result):
                loop = _Unpacking(self.stacks, stmt)
                loop.statement(stmt)
                out.extend((*loop.before, *loop.out))
                self._made(stmt, loop, self.maker[id(stmt.args[0])])
            else:
                self._read_whole(stmt)
                out.append(stmt.replace(blocks=tuple(map(self.block, stmt.blocks))) if stmt.blocks else stmt)
        return Block(block.params, out, block.results, block.saving)

    def _loop(self, stmt: Stmt) -> list[Stmt]:
        if not stmt.results or id(stmt.results[0]) in self.kept or not _has_small_arrays(stmt):
            self._read_whole(stmt)
            return [stmt]
        loop = _Unpacking(self.stacks, stmt)
        try:
            loop.statement(stmt)
            if not is_made_of_scalars(loop.out[-1]):
                raise _Refused
            loop.pack([r for r in stmt.results if not is_stack(r)])
        except _Refused:
            self._read_whole(stmt)
            return [stmt]
        self.unpacked = True
        self._made(stmt, loop, id(stmt.results[0]))
        return [*loop.before, *loop.out]

    def _made(self, stmt: Stmt, loop: _Unpacking, maker: int) -> None:
        for result in stmt.results:
            if is_stack(result) and is_packed(result):
                self.stacks[id(result)] = loop.elements(result)
                self.maker[id(result)] = maker

    def _read_whole(self, stmt: Stmt) -> None:
        self.stacks_read_whole.update(self.maker[id(x)] for x in operands_read(stmt) if id(x) in self.stacks)


def _has_small_arrays(stmt: Stmt) -> bool:
    values = (x for b in stmt.blocks for x in (*b.params, *(r for s in b.stmts for r in s.results)))
    return any(is_packed(x) for x in values) or any(_has_small_arrays(s) for b in stmt.blocks for s in b.stmts)


def _indexed_arrays(loop: Stmt) -> set[int]:
    """Arrays that stay whole because they are indexed at run time, and all values that they are carried to and from."""
    whole: set[int] = set()
    groups: list[list[Operand]] = []
    for stmt in walk(Block((), [loop], ())):
        if isinstance(stmt.op, Gather):
            whole.add(id(stmt.args[0]))
        elif isinstance(stmt.op, Scatter):
            whole |= {id(stmt.args[0]), id(stmt.result)}
        elif stmt.blocks:
            flows = ((stmt.results[i], stmt.region.carried(stmt, i)) for i in range(len(stmt.results)))
            groups += [[result, *flow.initial, *flow.params, *flow.yields] for result, flow in flows if not is_stack(result)]
    before = None
    while len(whole) != before:
        before = len(whole)
        for group in groups:
            if any(id(x) in whole for x in group):
                whole.update(map(id, group))
    return whole


class _Unpacking:
    """Rewrites one loop, statement by statement. `before` precedes the loop: elements of the arrays that it reads."""

    def __init__(self, stacks: dict[int, list[Operand]], stmt: Stmt) -> None:
        self.packs: dict[int, list[Operand]] = dict(stacks)
        self.scalars = Renaming()
        self.before: list[Stmt] = []
        self.out: list[Stmt] = []
        self.current = stmt
        self.count = self.math = 0
        self.inside: set[int] = set()  # values that the loop computes and that stay whole
        self.whole = _indexed_arrays(stmt)

    # ---- operands

    def emit(self, op: Op, args: Sequence[Operand], type: TensorType, into: list[Stmt] | None = None, result: Value | None = None) -> Value:
        self.count += 1
        self.math += isinstance(op, Map) and op.element_cost(*(x.type.dtype for x in args)).latency >= MATH
        if self.count > MAX_STATEMENTS or self.math > MAX_MATH:
            raise _Refused
        value = Value(type) if result is None else result
        (self.out if into is None else into).append(like(self.current, op, args, result=value))
        return value

    def elements(self, x: Operand) -> list[Operand]:
        """The elements of an array as scalars, in row-major order."""
        if not x.type.shape:
            return [self.scalars[x]]
        if isinstance(x, Literal):
            return [Literal(x.value, scalar_type(x))] * x.type.size
        if id(x) not in self.packs:
            if id(x) in self.inside or is_stack(x) or not is_packed(x):
                raise _Refused
            flat = self.emit(Reshape((x.type.size,)), (x,), x.type.with_shape((x.type.size,)), self.before)
            self.packs[id(x)] = [self._element(flat, k) for k in range(x.type.size)]
        return self.packs[id(x)]

    def _element(self, flat: Value, k: int) -> Value:
        one = self.emit(Slice((k,), (k + 1,), (1,)), (flat,), flat.type.with_shape((1,)), self.before)
        return self.emit(Reshape(()), (one,), flat.type.with_shape(()), self.before)

    def is_unpacked(self, x: Operand) -> bool:
        return is_packed(x) and id(x) not in self.whole

    def set(self, result: Operand, elements: list[Operand]) -> None:
        if result.type.shape:
            self.packs[id(result)] = elements
        else:
            self.scalars[result] = elements[0]

    def pack(self, results: Iterable[Operand]) -> None:
        """Reassemble results after the loop."""
        for result in results:
            if self.is_unpacked(result):
                assert isinstance(result, Value)
                one = result.type.with_shape((1,))
                parts = [self.emit(Reshape((1,)), (e,), one) for e in self.elements(result)]
                flat = parts[0] if len(parts) == 1 else self.emit(Concatenate(0), parts, result.type.with_shape((len(parts),)))
                self.emit(Reshape(result.type.shape), (flat,), result.type, result=result)

    # ---- statements

    def block(self, block: Block) -> Block:
        outer, self.out = self.out, []
        params = self.fresh(block.params)
        for stmt in block.stmts:
            self.statement(stmt)
        stmts, self.out = self.out, outer
        return Block(params, stmts, self.flat(block.results), self.flat(block.saving))

    def flat(self, operands: Sequence[Operand]) -> list[Operand]:
        return [e for x in operands for e in (self.elements(x) if self.is_unpacked(x) else [self.scalars[x]])]

    def fresh(self, values: Sequence[Operand]) -> list[Value]:
        """Scalars for the values defined here; values that stay whole keep their identity."""
        out: list[Value] = []
        for value in values:
            assert isinstance(value, Value)
            if self.is_unpacked(value):
                new = [Value(scalar_type(value), value.name) for _ in range(value.type.size)]
                self.packs[id(value)] = list(new)
                out += new
            else:
                self.inside.add(id(value))
                out.append(value)
        return out

    def statement(self, stmt: Stmt) -> None:
        outer, self.current = self.current, stmt
        op = stmt.op
        if stmt.blocks:
            args = self.flat(stmt.args)
            blocks = tuple(map(self.block, stmt.blocks))
            self.count += 1
            self.out.append(stmt.replace(args=tuple(args), blocks=blocks, results=tuple(self.fresh(stmt.results))))
        elif isinstance(op, Gather | Scatter):
            self.indexed(stmt)
        elif not any(x.type.shape for x in (*stmt.args, *stmt.results)):
            self.count += 1
            self.out.append(self.scalars.stmt(stmt))
        elif not all(is_packed(x) or not x.type.shape for x in (*stmt.args, *stmt.results)) or len(stmt.results) != 1:
            raise _Refused
        else:
            self.set(stmt.result, self.unpacked(stmt))
        self.current = outer

    def unpacked(self, stmt: Stmt) -> list[Operand]:
        op, result = stmt.op, stmt.result
        if id(result) in self.whole:  # computed element by element, it would have to be reassembled before it is indexed
            raise _Refused
        if op.takes_stacks:
            return self.on_stacks(stmt)
        if not stmt.args:
            return [Literal(x, scalar_type(result)) for x in op.evaluate().ravel()]
        if op.only_moves:
            return self.moved(stmt)
        if isinstance(op, Reduce) and op.combining is not None and stmt.args[0].type.size:
            rows = np.moveaxis(numbered(stmt.args[0]), op.axes, range(-len(op.axes), 0)).reshape(result.type.size, -1)
            x = self.elements(stmt.args[0])
            return [self.combined(op.combining, [x[k] for k in row]) for row in rows]
        if isinstance(op, Matmul) and all(a.type.rank <= 2 for a in stmt.args):
            return self.product(stmt)
        if isinstance(op, Map) and stmt.args and not hasattr(op, "shape"):
            columns = zip(*(self.elements(a) for a in stmt.args), strict=True)
            return [self.mapped(op, column, scalar_type(result)) for column in columns]
        raise _Refused

    def mapped(self, op: Op, args: tuple[Operand, ...], type: TensorType) -> Operand:
        if isinstance(op, Add) and self.current.phase == "backward":
            # The gradient of one element was padded with zeros: adding them changes nothing except the sign of a zero.
            for a, b in (args, args[::-1]):
                if isinstance(a, Literal) and a.value == 0:
                    return b
        return self.emit(op, args, type)

    def combined(self, op: Op, xs: list[Operand]) -> Operand:
        """Combine all of them pairwise, which gives the shortest dependency chain."""
        while len(xs) > 1:
            pairs = [self.emit(op, pair, xs[0].type) for pair in zip(xs[::2], xs[1::2])]
            xs = [*pairs, *xs[len(pairs) * 2 :]]
        return xs[0]

    def product(self, stmt: Stmt) -> list[Operand]:
        a, b = stmt.args
        summed = a.type.shape[-1]
        left = numbered(a).reshape(-1, summed)
        right = numbered(b).reshape(summed, -1)
        xs, ys, type = self.elements(a), self.elements(b), scalar_type(stmt.result)
        pairs = (list(zip(row, column)) for row in left for column in right.T)
        return [self.combined(Add(), [self.emit(Mul(), (xs[i], ys[j]), type) for i, j in each]) for each in pairs]

    def moved(self, stmt: Stmt) -> list[Operand]:
        """Find where an op moves its elements by evaluating it on their numbers."""
        known: list[Operand] = []
        numbers = []
        for a in stmt.args:
            numbers.append(numbered(a) + len(known))
            known += self.elements(a)
        op = stmt.op
        if isinstance(op, Pad):
            op = replace(op, value=len(known))
            known.append(Literal(stmt.op.value, scalar_type(stmt.result)))  # type: ignore[attr-defined]
        return [known[k] for k in np.asarray(op.evaluate(*numbers)).ravel()]

    def on_stacks(self, stmt: Stmt) -> list[Operand]:
        """Apply the op to each stack of scalars; the index, and the length, are the same for all."""
        op, first = stmt.op, stmt.args[0]
        if isinstance(op, StackLength) or (isinstance(op, StackZeros) and op.element is not None):
            op = StackZeros(TensorType(stmt.result.type.dtype)) if isinstance(op, StackZeros) else op
            return [self.emit(op, self.elements(first)[:1], scalar_type(stmt.result)) for _ in range(stmt.result.type.size)]
        columns = [self.elements(a) if is_packed(a) else [self.scalars[a]] * stmt.result.type.size for a in stmt.args]
        return [self.emit(stmt.op, args, scalar_type(stmt.result)) for args in zip(*columns, strict=True)]

    def indexed(self, stmt: Stmt) -> None:
        """Element by element: rows of operands that are not indexed are indexed too."""
        x, *rest = stmt.args
        if isinstance(stmt.op, Gather) and (id(stmt.result) in self.whole or (stmt.result.type.shape and not is_packed(stmt.result))):
            raise _Refused  # a row that is indexed in turn, or is too large to be unpacked where it is read, would have to be reassembled
        updates, indices = (rest[0], rest[1:]) if isinstance(stmt.op, Scatter) else (None, rest)
        rows = numbered_shape(x.type.shape[len(indices) :])
        places = list(np.ndindex(rows.shape))
        chosen = list(zip(*(self.elements(i) for i in indices), strict=True))
        target = x
        elements: list[Operand] = []
        values = iter(()) if updates is None else iter(self.elements(updates))
        for at in chosen:
            for place in places:
                index = (*at, *(Literal(k, TensorType(I64)) for k in place))
                if updates is None:
                    elements.append(self.emit(stmt.op, (self.scalars[target], *index), scalar_type(stmt.result)))
                else:
                    target = self.emit(stmt.op, (self.scalars[target], next(values), *index), x.type)
        if updates is None:
            self.set(stmt.result, elements)
        else:
            self.inside.add(id(stmt.result))
            self.scalars[stmt.result] = target


def numbered(x: Operand) -> Array:
    return numbered_shape(x.type.shape)


def numbered_shape(shape: tuple[int, ...]) -> Array:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)
