"""Pairwise interactions of points: splits a short axis of components, so that everything about a pair is computed in one loop nest.

`d = x[:, None, :] - x[None, :, :]` has three numbers per pair, its length has one: as arrays of two shapes they would be two loop nests,
with an array of all pairs in memory between them, and so would their adjoints. Here each component becomes a separate value with the shape
of the pairs: a reduction over the components is a few additions; one that keeps them is one reduction per component, joined at the end.

Only what is broadcast from much smaller arrays is split; their components are copied first, so that each is contiguous. Arrays that are
read or written whole are left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

from adjit.ir.func import Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import Op
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.maps import Copy
from adjit.ir.ops.reduce import Reduce
from adjit.ir.ops.shape import Broadcast, Reshape, Slice
from adjit.ir.sizes import hint_of, is_symbolic
from adjit.ir.types import Shape, TensorType

from ..rewrite import is_pure, like, operands_read
from ..simplify.cleanup import drop_connected, rewrite_blocks
from .fuse import SPREAD

MAX_COMPONENTS = 4
MIN_SIZE = 4096  # elements: below this, a second loop nest costs almost nothing


def split_components(func: Func) -> Func:
    return rewrite_blocks(func, _split_block)


def _split_block(stmts: list[Stmt], outputs: set[int]) -> list[Stmt] | None:
    for shape, axis in dict.fromkeys(c for s in stmts if (c := _component_axis(s)) is not None):
        split = _Split(stmts, outputs, shape, axis)
        if split.members:
            return split.emitted()
    return None


def _component_axis(stmt: Stmt) -> tuple[Shape, int] | None:
    """The shape and axis that a reduction over components implies."""
    if not isinstance(stmt.op, Reduce) or len(stmt.op.axes) != 1:
        return None
    (axis,), type = stmt.op.axes, stmt.args[0].type
    return (type.shape, axis) if 2 <= _number(type.shape[axis]) <= MAX_COMPONENTS and hint_of(type.size) >= MIN_SIZE else None


def _number(n: int) -> int:
    """The size if it is a number; 0 if it is known only at run time."""
    return 0 if is_symbolic(n) else n


class _Split:
    """The elementwise statements of one shape whose results are read only by each other and by reductions."""

    def __init__(self, stmts: list[Stmt], outputs: set[int], shape: Shape, axis: int) -> None:
        self.stmts = stmts
        self.shape, self.axis = shape, axis
        self.inner = (*shape[:axis], *shape[axis + 1 :])
        self.spread = {id(s.result): s for s in stmts if isinstance(s.op, Broadcast) and s.result.type.shape == shape}
        self.members = {id(s.result): s for s in stmts if self._could_be_member(s)}
        self._drop_what_leaves(outputs)
        self.components: dict[int, list[Operand]] = {}
        self.out: list[Stmt] = []

    # ---- which statements

    def _could_be_member(self, stmt: Stmt) -> bool:
        return stmt.op.is_elementwise and bool(stmt.args) and is_pure(stmt) and stmt.results[0].type.shape == self.shape

    def _drop_what_leaves(self, outputs: set[int]) -> None:
        """Drop statements with an operand or a reader that cannot be split, together with all members connected to them."""
        members = self.members
        leaving = {key for key in members if key in outputs}
        for stmt in self.stmts:
            if id(stmt.results[0]) not in members and not self._can_follow(stmt) if stmt.results else True:
                leaving.update(id(x) for x in operands_read(stmt) if id(x) in members)
        for key, stmt in members.items():
            if not all(id(x) in members or isinstance(x, Literal) or self._is_spread(x) for x in stmt.args):
                leaving.add(key)
        drop_connected(members, leaving)

    def _can_follow(self, stmt: Stmt) -> bool:
        return isinstance(stmt.op, Reduce) and stmt.op.combining is not None and stmt.result.type.dtype == stmt.args[0].type.dtype

    def _is_spread(self, x: Operand) -> bool:
        if id(x) not in self.spread:
            return False
        (source,) = self.spread[id(x)].args
        return self._size_of_axis(source) == 1 or hint_of(source.type.size) * SPREAD <= hint_of(x.type.size)

    def _size_of_axis(self, source: Operand) -> int:
        """Size of the component axis of the broadcast operand: 1 if it has no such axis, or one element for all components."""
        axis = self.axis - (len(self.shape) - source.type.rank)
        return source.type.shape[axis] if axis >= 0 else 1

    # ---- the new statements

    def emitted(self) -> list[Stmt]:
        for stmt in self.stmts:
            if stmt.results and id(stmt.results[0]) in self.members:
                columns = zip(*(self._split(a, stmt) for a in stmt.args), strict=True)
                self.components[id(stmt.result)] = [self._emit(stmt, stmt.op, args, stmt.result) for args in columns]
            elif isinstance(stmt.op, Reduce) and id(stmt.args[0]) in self.members:
                self._reduce(stmt, stmt.op)
            else:
                self.out.append(stmt)
        return self.out

    def _emit(self, model: Stmt, op: Op, args: Iterable[Operand], named: Operand | None = None, result: Operand | None = None) -> Value:
        self.out.append(like(model, op, args, named, result))
        return self.out[-1].results[0]  # type: ignore[return-value]

    def _split(self, x: Operand, reader: Stmt) -> list[Operand]:
        count = self.shape[self.axis]
        if isinstance(x, Literal):
            return [Literal(x.value, x.type.with_shape(self.inner))] * count
        if id(x) not in self.components:
            made = self.spread[id(x)]
            (source,) = made.args
            aligned = self._emit(made, Reshape((1,) * (len(self.shape) - source.type.rank) + source.type.shape), (source,))
            if self._size_of_axis(source) == 1:
                self.components[id(x)] = [self._broadcast(made, self._without_axis(made, aligned))] * count
            else:
                self.components[id(x)] = [self._broadcast(made, self._component(made, aligned, k)) for k in range(count)]
        return self.components[id(x)]

    def _component(self, made: Stmt, x: Value, k: int) -> Value:
        starts, stops = [0] * x.type.rank, list(x.type.shape)
        starts[self.axis], stops[self.axis] = k, k + 1
        one = self._emit(made, Slice(tuple(starts), tuple(stops), (1,) * x.type.rank), (x,))
        return self._emit(made, Copy(), (self._without_axis(made, one),))

    def _without_axis(self, made: Stmt, x: Value) -> Value:
        return self._emit(made, Reshape((*x.type.shape[: self.axis], *x.type.shape[self.axis + 1 :])), (x,))

    def _broadcast(self, made: Stmt, x: Value) -> Value:
        return x if x.type.shape == self.inner else self._emit(made, Broadcast(self.inner), (x,), made.result)

    def _reduce(self, stmt: Stmt, op: Reduce) -> None:
        parts = self.components[id(stmt.args[0])]
        axes = tuple(a - (a > self.axis) for a in op.axes if a != self.axis)
        if self.axis not in op.axes:
            self._join(stmt, op, [self._emit(stmt, type(op)(axes), (p,), stmt.result) for p in parts])
            return
        assert op.combining is not None  # see `_can_follow`
        total = parts[0]
        for k, part in enumerate(parts[1:], 2):
            last = k == len(parts) and not axes
            total = self._emit(stmt, op.combining, (total, part), stmt.result, stmt.result if last else None)
        if axes:
            self._emit(stmt, type(op)(axes), (total,), result=stmt.result)

    def _join(self, stmt: Stmt, op: Reduce, parts: list[Value]) -> None:
        """One reduction per component, concatenated along the component axis of the result."""
        at = self.axis - sum(a < self.axis for a in op.axes)
        shape: TensorType = parts[0].type
        expanded = (*shape.shape[:at], 1, *shape.shape[at:])
        self._emit(stmt, Concatenate(at), [self._emit(stmt, Reshape(expanded), (p,)) for p in parts], result=stmt.result)
