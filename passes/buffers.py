"""Buffer planning: which value lives where.

Views get no buffer: they are windows on their operand's. A result is computed straight into the array that is returned, an updated parameter
straight into its own buffer where nobody can see the difference, and everything else shares one arena, by liveness, with elementwise results
written over operands that die there.

The rules that make in-place writes safe are in `_may_overwrite`; a parameter is never written before the last statement that may fail.
"""

from __future__ import annotations

from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.layout import Layout
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import View
from adjit.ir.ops.control import Fuse
from adjit.ir.ops.create import Constant, Fill
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.maps import Copy, Map
from adjit.ir.plan import Place, Plan, Window
from adjit.ir.types import row_major

ALIGNMENT = 64


def plan_buffers(func: Func) -> Func:
    """The same Func with copies where a view will not do, and a plan for all its values."""
    windows, stmts, results, updates = _Windows(func).walk()
    func = func.replace(block=Block(func.params, stmts, results, func.block.saving), updates=updates)
    plan = Plan(windows=windows)
    _Placer(func, plan).place()
    return func.replace(plan=plan)


class _Windows:
    """First half: finds every value's window, and inserts the copies that the views, products and results need."""

    def __init__(self, func: Func) -> None:
        self.func = func
        self.stmts: list[Stmt] = []
        self.windows: dict[int, Window] = {}

    def walk(self) -> tuple[dict[int, Window], list[Stmt], list[Operand], list[tuple[Value, Operand]]]:
        for param in self.func.params:
            self.own(param)
        for stmt in self.func.stmts:
            self.visit(stmt)
        taken = {id(p) for p in self.func.params} | {id(s.result) for s in self.stmts if isinstance(s.op, Constant)}
        results = [self.fresh(r, taken) for r in self.func.results]
        updates = [(param, self.fresh(new, taken)) for param, new in self.func.updates]
        return self.windows, self.stmts, results, updates

    def own(self, value: Operand) -> None:
        assert isinstance(value, Value)
        self.windows[id(value)] = Window(value, Layout.contiguous(value.type.shape))

    def visit(self, stmt: Stmt) -> None:
        if isinstance(stmt.op, View):
            self.view(stmt)
            return
        if isinstance(stmt.op, Matmul):
            stmt = stmt.replace(args=tuple(a if self.suits_blas(a) else self.copy(a, stmt) for a in stmt.args))
        self.stmts.append(stmt)
        for result in stmt.results:
            self.own(result)

    def view(self, stmt: Stmt) -> None:
        assert isinstance(stmt.op, View)
        (source,) = stmt.args
        window = self.windows[id(source)]
        layout = stmt.op.view(window.layout, source.type)
        if layout is None:
            source = self.copy(source, stmt)
            window = self.windows[id(source)]
            layout = stmt.op.view(window.layout, source.type)
            assert layout is not None, f"{stmt.op.name} has no layout on a contiguous operand"
        self.stmts.append(stmt.replace(args=(source,)))
        self.windows[id(stmt.result)] = Window(window.root, layout)

    def copy(self, source: Operand, stmt: Stmt | None) -> Value:
        """A contiguous copy, as a fused kernel of one statement."""
        inner, outer = Value(source.type), Value(source.type, getattr(source, "name", None))
        location, phase = (stmt.location, stmt.phase) if stmt else (None, self.stmts[-1].phase if self.stmts else "forward")
        op: Map = Fill(source.value.item(), source.dtype, source.shape) if isinstance(source, Literal) else Copy()
        args = () if isinstance(source, Literal) else (source,)
        body = Block((), [Stmt(op, args, (inner,), location=location, phase=phase)], [inner])
        self.stmts.append(Stmt(Fuse(), (), (outer,), (body,), location, phase))
        self.own(outer)
        return outer

    def suits_blas(self, operand: Operand) -> bool:
        """Whether a product can read the operand's last two axes as they lie: one of them must be consecutive."""
        strides = self.windows[id(operand)].layout.strides
        shape = operand.type.shape
        if len(shape) < 2:
            return True
        rows, columns = strides[-2:]
        m, n = shape[-2:]
        return ((columns == 1 or n == 1) and (rows >= max(n, 1) or m == 1)) or ((rows == 1 or m == 1) and (columns >= max(m, 1) or n == 1))

    def fresh(self, value: Operand, taken: set[int]) -> Operand:
        """A value that covers a buffer of its own, so that the buffer can be the result's: copied if it does not."""
        window = self.windows.get(id(value))
        if window is not None and id(window.root) not in taken:
            whole = window.root.type.size == value.type.size and window.layout == Layout(0, row_major(value.type.shape))
            if whole and window.root.type.dtype == value.type.dtype:
                taken.add(id(window.root))
                return value
        copied = self.copy(value, None)
        taken.add(id(copied))
        return copied


class _Placer:
    """Second half: gives every root a place."""

    def __init__(self, func: Func, plan: Plan) -> None:
        self.func = func
        self.plan = plan
        self.last_use: dict[int, int] = {}
        self.made_at: dict[int, int] = {}
        for at, stmt in enumerate(func.stmts):
            for result in stmt.results:
                self.made_at[id(result)] = at
            if not isinstance(stmt.op, View):
                for value in _reads(stmt):
                    self.last_use[id(self.root(value))] = at

    def root(self, value: Operand) -> Value:
        return self.plan.windows[id(value)].root

    def place(self) -> None:
        places = self.plan.places
        for index, param in enumerate(self.func.params):
            places[id(param)] = Place("param", index)
        for index, result in enumerate(self.func.results):
            places[id(self.root(result))] = Place("result", index)
        safe_from = max((at for at, s in enumerate(self.func.stmts) if s.op.can_fail), default=-1)
        for param, new in self.func.updates:
            root = self.root(new)
            if id(root) not in places and self.made_at[id(root)] > safe_from and self._may_overwrite(param, root):
                places[id(root)] = places[id(param)]
        ending = len(self.func.stmts)
        for _, new in self.func.updates:
            self.last_use[id(self.root(new))] = ending
        self._fill_arena()

    def _may_overwrite(self, old: Value, new: Value) -> bool:
        """Whether `new` can be written into the buffer of `old`: nobody reads it later, and the statement that makes `new` reads it only
        at the element that it is about to write."""
        at = self.made_at[id(new)]
        if old.type != new.type and (old.type.size != new.type.size or old.type.dtype != new.type.dtype):
            return False
        if self.last_use.get(id(old), -1) > at:
            return False
        return self.last_use.get(id(old), -1) < at or self._elementwise(self.func.stmts[at], old, new)

    def _elementwise(self, stmt: Stmt, old: Value, new: Value) -> bool:
        if not isinstance(stmt.op, Fuse):
            return False
        (body,) = stmt.blocks
        inner = next(i for r, i in zip(stmt.results, body.results, strict=True) if r is new)
        made = next(s for s in body.stmts if s.result is inner)
        if not isinstance(made.op, Map):
            return False
        identity = Layout.contiguous(new.type.shape)
        return all(self.plan.windows[id(v)].layout == identity for v in body.free() if self.root(v) is old)

    def _fill_arena(self) -> None:
        places = self.plan.places
        arena = _Arena()
        dying: dict[int, list[Value]] = {}
        for at, stmt in enumerate(self.func.stmts):
            if isinstance(stmt.op, View):
                continue
            for result in stmt.results:
                assert isinstance(result, Value)
                if id(result) in places:
                    continue
                if isinstance(stmt.op, Constant):
                    places[id(result)] = Place("constant", at)
                    continue
                heirs = dying.get(at, [])
                heir = next((k for k, v in enumerate(heirs) if self.made_at[id(v)] < at and self._may_overwrite(v, result)), None)
                if heir is not None:
                    places[id(result)] = places[id(heirs.pop(heir))]
                else:
                    places[id(result)] = Place("arena", arena.take(result.type.nbytes))
                dying.setdefault(max(self.last_use.get(id(result), at), at), []).append(result)
            for value in dying.pop(at, ()):
                arena.give(places[id(value)].index, value.type.nbytes)
        self.plan.arena_bytes = arena.high


def _reads(stmt: Stmt) -> list[Value]:
    """Values of the function that a statement reads, those inside its regions included."""
    outer = [a for a in stmt.args if isinstance(a, Value)]
    for block in stmt.blocks:
        outer += block.free()
    return outer


class _Arena:
    """Offsets in one growing buffer: exact fits first, then the smallest free gap that is large enough."""

    def __init__(self) -> None:
        self.high = 0
        self.gaps: dict[int, int] = {}  # offset -> size
        self.ends: dict[int, int] = {}  # end -> offset
        self.by_size: dict[int, set[int]] = {}

    def take(self, nbytes: int) -> int:
        size = _rounded(nbytes)
        fit = size if self.by_size.get(size) else min((s for s, at in self.by_size.items() if at and s > size), default=None)
        if fit is None:
            offset = self.high
            self.high += size
            return offset
        offset = min(self.by_size[fit])
        self._remove(offset)
        if fit > size:
            self._add(offset + size, fit - size)
        return offset

    def give(self, offset: int, nbytes: int) -> None:
        size = _rounded(nbytes)
        if offset + size in self.gaps:
            size += self._remove(offset + size)
        if offset in self.ends:
            start = self.ends[offset]
            size += self._remove(start)
            offset = start
        self._add(offset, size)

    def _add(self, offset: int, size: int) -> None:
        self.gaps[offset] = size
        self.ends[offset + size] = offset
        self.by_size.setdefault(size, set()).add(offset)

    def _remove(self, offset: int) -> int:
        size = self.gaps.pop(offset)
        del self.ends[offset + size]
        self.by_size[size].discard(offset)
        if not self.by_size[size]:
            del self.by_size[size]
        return size


def _rounded(nbytes: int) -> int:
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
