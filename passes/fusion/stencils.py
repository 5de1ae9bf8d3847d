"""Gradients of shifted slices: padded values are recomputed at each shifted position, in one loop nest, rather than stored.

The adjoint of `x[1:] - x[:-1]` is the sum of two padded arrays. One loop nest would compute the arrays and another add them, with the
arrays stored in between. Here the elementwise statements behind a pad move into the larger domain, `pad(f(a, b))` becoming
`where(inside, f(pad(a), pad(b)), constant)`, once per shift; a slice that is padded again is a shifted window of its operand. `inside`
is a pad of `true`, so native code knows its value in every box of the domain, and neither computes nor tests it.

Applied if everything that reads those statements can follow, and if the recomputation costs less than the memory traffic that it saves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

from adjit.ir.func import Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import Op
from adjit.ir.ops.fused import is_border
from adjit.ir.ops.maps import Where, element_cost
from adjit.ir.ops.reduce import Reduce
from adjit.ir.ops.shape import Broadcast, Pad, Slice
from adjit.ir.sizes import hint_of
from adjit.ir.target import USUAL, Target
from adjit.ir.types import BOOL, Shape, TensorType

from ..rewrite import is_pure, like, operands_read
from ..simplify.cleanup import drop_connected, rewrite_blocks
from ..targeted import for_target
from .fuse import MAX_BOXED, count_boxes

MAX_STATEMENTS = 100  # that are recomputed together
MAX_SHIFTS = 16
MAX_SHAPES = 16  # pairs of shapes considered: keeps the pass linear
BUDGET = 12  # operations that cost less than a store and a load


@for_target
def shift_stencils(func: Func, target: Target = USUAL) -> Func:
    return rewrite_blocks(func, partial(_shift_block, target))


def _shift_block(target: Target, stmts: list[Stmt], outputs: set[int]) -> list[Stmt] | None:
    """Skips results small enough for the L1 cache, where there is nothing to gain."""
    pads = [s for s in stmts if is_border(s) and isinstance(s.args[0], Value) and hint_of(s.result.type.size) >= target.near]
    shapes = dict.fromkeys((s.args[0].type.shape, s.result.type.shape) for s in pads)
    for small, large in itertools.islice(shapes, MAX_SHAPES):
        shifting = _Shifting(stmts, outputs, small, large)
        if shifting.pays():
            return shifting.emitted()
    return None


def _work(stmt: Stmt) -> float:
    return element_cost(stmt).flops


class _Shifting:
    """The elementwise statements of one shape behind pads to another shape, and their readers."""

    def __init__(self, stmts: list[Stmt], outputs: set[int], small: Shape, large: Shape) -> None:
        self.stmts = stmts
        self.small, self.large = small, large
        self.grown = {axis for axis in range(len(small)) if small[axis] != large[axis]}
        self.views = {id(s.result): s for s in stmts if isinstance(s.op, Slice | Broadcast)}
        self.maps = {id(s.result): s for s in stmts if self._is_member(s)}
        self.pads = [(s, s.op) for s in stmts if isinstance(s.op, Pad) and self._is_pad(s)]
        self.reductions = [s for s in stmts if self._is_reduction(s)]
        self._keep_what_can_follow(outputs)
        self.made: dict[tuple[int, Shape], Operand] = {}
        self.out: list[Stmt] = []

    # ---- which statements

    def _is_member(self, s: Stmt) -> bool:
        return s.op.is_elementwise and bool(s.args) and is_pure(s) and s.results[0].type.shape == self.small

    def _is_pad(self, s: Stmt) -> bool:
        return is_border(s) and id(s.args[0]) in self.maps and s.result.type.shape == self.large

    def _is_reduction(self, s: Stmt) -> bool:
        return isinstance(s.op, Reduce) and id(s.args[0]) in self.maps and self.grown <= set(s.op.axes)

    def _keep_what_can_follow(self, outputs: set[int]) -> None:
        """Keep only connected members that no other statement reads: these would have to be stored anyway."""
        following = {id(s.results[0]) for s in (*self.maps.values(), *(s for s, _ in self.pads), *self.reductions)}
        staying = [id(x) for s in self.stmts if not s.results or id(s.results[0]) not in following for x in operands_read(s)]
        drop_connected(self.maps, [*outputs, *staying])
        unwanted = dict(self.maps)
        drop_connected(unwanted, [id(s.args[0]) for s, _ in self.pads])
        self.maps = {key: s for key, s in self.maps.items() if key not in unwanted}
        self.pads = [(s, pad) for s, pad in self.pads if id(s.args[0]) in self.maps]
        self.reductions = [s for s in self.reductions if id(s.args[0]) in self.maps]

    def pays(self) -> bool:
        """Whether computing everything once per shift costs less than the memory traffic saved."""
        if not 0 < len(self.maps) <= MAX_STATEMENTS or len(self.shifts()) > MAX_SHIFTS:
            return False
        self.home = min(self.shifts(), key=self._work_at)
        if self._work_at(self.home) - sum(map(_work, self.maps.values())) > BUDGET * len(self.pads):
            return False
        return self._boxes() * len(self.maps) * len(self.shifts()) <= MAX_BOXED  # or it would be several nests, with stores between them

    def _boxes(self) -> int:
        """The number of boxes into which the pads of all shifts cut the large domain."""
        read = [view for s in self.maps.values() for x in s.args if (view := self.views.get(id(x))) is not None]
        sources = [(view.op, view.args[0].type.shape) for view in read if isinstance(view.op, Slice)]
        cuts: set[tuple[int, int]] = set()
        for low in self.shifts():
            cuts |= {(axis, end) for axis, at in enumerate(low) for end in (at, at + self.small[axis])}
            for window, shape in sources:
                for axis, (start, at, size) in enumerate(zip(window.starts, low, shape, strict=True)):
                    cuts |= {(axis, at - start), (axis, at - start + size)}
        return count_boxes((axis, end) for axis, end in cuts if 0 < end < self.large[axis])

    def shifts(self) -> list[Shape]:
        return list(dict.fromkeys(pad.low for _, pad in self.pads))

    def _work_at(self, home: Shape) -> float:
        """The work of all shifts, with the reductions computed at shift `home`."""
        total = 0.0
        for shift in self.shifts():
            roots = [s.args[0] for s, pad in self.pads if pad.low == shift]
            total += sum(map(_work, self._behind([*roots, *(s.args[0] for s in self.reductions if shift == home)])))
        return total

    def _behind(self, roots: list[Operand]) -> Iterator[Stmt]:
        seen: set[int] = set()
        while roots:
            key = id(roots.pop())
            if key in self.maps and key not in seen:
                seen.add(key)
                roots += self.maps[key].args
                yield self.maps[key]

    # ---- the new statements

    def emitted(self) -> list[Stmt]:
        pads = {id(s): pad for s, pad in self.pads}
        reductions = {id(s) for s in self.reductions}
        for stmt in self.stmts:
            if id(stmt) in pads:
                pad = pads[id(stmt)]
                self._within(stmt, stmt.args[0], pad.low, pad.value, stmt.result)
            elif isinstance(stmt.op, Reduce) and id(stmt) in reductions:
                value = stmt.op.identity(stmt.result.type.dtype)
                self._emit(stmt, stmt.op, (self._within(stmt, stmt.args[0], self.home, value),), stmt.result)
            else:
                self.out.append(stmt)
        return self.out

    def _emit(self, model: Stmt, op: Op, args: tuple[Operand, ...], result: Operand | None = None) -> Value:
        self.out.append(like(model, op, args, model.result, result))
        return self.out[-1].results[0]  # type: ignore[return-value]

    def _within(self, model: Stmt, x: Operand, low: Shape, value: float | int | bool, result: Operand | None = None) -> Value:
        """`x` at its position in the large domain, and the value around it."""
        inside = self._pad(model, Literal(True, TensorType(BOOL, self.small)), low, False)
        around = Literal(value, x.type.with_shape(self.large))
        return self._emit(model, Where(), (inside, self._moved(x, low), around), result)

    def _pad(self, model: Stmt, x: Operand, low: Shape, value: float | bool) -> Operand:
        high = tuple(n - at - m for n, at, m in zip(self.large, low, x.type.shape, strict=True))
        return self._emit(model, Pad(low, high, (0,) * len(low), value), (x,)) if any((*low, *high)) else x

    def _moved(self, x: Operand, low: Shape) -> Operand:
        """A value over the large domain that equals `x` at the elements of `x`, and is arbitrary elsewhere."""
        if isinstance(x, Literal):
            return Literal(x.value, x.type.with_shape(self.large))
        if (id(x), low) not in self.made:
            stmt = self.maps.get(id(x))
            if stmt is not None:
                self.made[id(x), low] = self._emit(stmt, stmt.op, tuple(self._moved(a, low) for a in stmt.args))
            else:
                self.made[id(x), low] = self._source(x, low)
        return self.made[id(x), low]

    def _source(self, x: Operand, low: Shape) -> Operand:
        view = self.views.get(id(x))
        if view is not None and isinstance(view.op, Slice) and set(view.op.steps) <= {1}:
            return self._window(view, tuple(start - at for start, at in zip(view.op.starts, low, strict=True)))
        if view is not None and isinstance(view.op, Broadcast) and self._is_even(view.args[0].type.shape):
            return self._emit(view, Broadcast(self.large), view.args)
        model = next(s for s in self.maps.values() if any(a is x for a in s.args))
        return self._pad(model, x, low, x.type.dtype.type(0).item())

    def _is_even(self, shape: Shape) -> bool:
        """Whether the broadcast operand is constant along all axes that grow."""
        lead = len(self.small) - len(shape)
        return all(axis < lead or shape[axis - lead] == 1 for axis in self.grown)

    def _window(self, view: Stmt, start: tuple[int, ...]) -> Operand:
        """The large domain as a window on the operand of a slice, padded with constants where it extends beyond it."""
        (source,) = view.args
        starts = tuple(max(0, at) for at in start)
        stops = tuple(min(at + n, size) for at, n, size in zip(start, self.large, source.type.shape, strict=True))
        whole = not any(starts) and stops == source.type.shape
        inner = source if whole else self._emit(view, Slice(starts, stops, (1,) * len(starts)), (source,))
        return self._pad(view, inner, tuple(a - b for a, b in zip(starts, start, strict=True)), source.type.dtype.type(0).item())
