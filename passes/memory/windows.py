"""First half of buffer planning: finds every value's window (the buffer that holds it, and its layout there).

Copies are inserted where a view is not enough: a reshape that no strides express; a result, update or carry that must have its own buffer.
What a loop reads at its counter, a row of an array or an element of a stack, is also a window, on memory whose address is known by then.
Parts that are concatenated are computed directly inside the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.layout import Layout
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import View
from adjit.ir.ops.control import Fuse, Rows
from adjit.ir.ops.create import Fill
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.maps import Copy, Map
from adjit.ir.plan import BufferView, Place, Plan
from adjit.ir.sizes import hint_of

from .in_place import Roots, changed_stacks, changes_in_place, is_array, is_stack
from .lookups import outlived

RUN = 16  # contiguous elements that a part of a concatenation must have: a kernel writes them as vectors


class Windows:
    def __init__(self, func: Func) -> None:
        self.func = func
        self.plan = Plan()
        self.stmts: list[Stmt] = []
        self.made: set[int] = set()  # roots that the current block defines itself and that are not yet taken
        self.stack_roots = Roots(is_stack)
        self.changed = changed_stacks(func)
        self.views = 0
        self.viewed: set[int] = set()  # roots that other values are windows on
        self.makers: dict[int, Stmt] = {}  # of roots that one kernel computes

    def planned(self) -> tuple[Func, Plan]:
        for param in self.func.params:
            self.own(param)
        self.made = set()
        self.visit_all(self.func.stmts, self.func.results)
        results = [self.fresh(r) for r in self.func.results]
        updates = [(param, self.fresh(new)) for param, new in self.func.updates]
        block = Block(self.func.params, self.stmts, results, self.func.block.saving)
        return self.func.replace(block=block, updates=updates), self.plan

    def own(self, value: Operand) -> None:
        """Give the value its own buffer; a stack occupies the memory of its root."""
        assert isinstance(value, Value)
        if is_stack(value):
            self.plan.windows[id(value)] = BufferView(self.stack_roots.of(value), Layout.contiguous(value.type.shape))
            return
        self.plan.windows[id(value)] = BufferView(value, Layout.contiguous(value.type.shape))
        self.made.add(id(value))

    def visit_all(self, stmts: Sequence[Stmt], last: Sequence[Operand]) -> None:
        """`last` are read at the end of the block."""
        copied = outlived(stmts, last)
        for stmt in stmts:
            if stmt.op.is_view:
                self.view(stmt)
            elif self.is_lookup(stmt) and id(stmt.result) not in copied:
                self.look(stmt)
            elif isinstance(stmt.op, Concatenate) and run_length(stmt, stmt.op.axis) >= RUN and any(map(self.can_move, stmt.args)):
                self.join(stmt, stmt.op.axis)
            elif isinstance(stmt.op, Rows):
                self.visit_rows(stmt)
            elif stmt.op.is_control and not fits_registers(stmt):
                self.visit_loop(stmt) if stmt.op.is_loop else self.visit_if(stmt)
            else:
                self.visit(stmt)

    def visit(self, stmt: Stmt) -> None:
        self.stmts.append(stmt)
        if stmt.op.is_control:
            self.plan.registers.add(id(stmt))
            self.memory_inside(stmt, Roots(is_array))
            return
        self.stack_roots.leave(stmt)
        for result in stmt.results:
            self.own(result)
            self.makers[id(result)] = stmt
            if stmt.op.is_constant:
                self.made.discard(id(result))

    def view(self, stmt: Stmt) -> None:
        assert isinstance(stmt.op, View)
        (source,) = stmt.args
        window = self.plan.windows[id(source)]
        layout = stmt.op.view(window.layout, source.type)
        if layout is None:
            source = self.copy(source, stmt)
            window = self.plan.windows[id(source)]
            layout = stmt.op.view(window.layout, source.type)
            assert layout is not None, f"{stmt.op.name} has no layout on a contiguous operand"
        self.stmts.append(stmt.replace(args=(source,)))
        self.plan.windows[id(stmt.result)] = BufferView(window.root, layout)
        self.viewed.add(id(window.root))

    def is_lookup(self, stmt: Stmt) -> bool:
        """Whether a statement reads memory that stays unchanged while the result is live: one row of an array, or a stack that nothing
        is added to. The buffer planner keeps the array alive for as long.
        """
        if not stmt.op.reads_rows or not is_array(stmt.result):
            return False
        if is_stack(stmt.args[0]):
            return id(self.stack_roots.of(stmt.args[0])) not in self.changed
        return isinstance(stmt.args[0], Value) and not stmt.args[1].type.shape

    def look(self, stmt: Stmt) -> None:
        self.stmts.append(stmt)
        source, *indices = stmt.args
        strides = self.plan.windows[id(source)].layout.strides[len(indices) :]
        layout = Layout.contiguous(stmt.result.type.shape) if is_stack(source) else Layout(0, strides)
        assert isinstance(stmt.result, Value)
        self.plan.windows[id(stmt.result)] = BufferView(stmt.result, layout)
        self.plan.places[id(stmt.result)] = Place("view", self.views)
        self.views += 1

    def join(self, stmt: Stmt, axis: int) -> None:
        """A concatenation: its parts become windows on it, and the statement itself becomes a no-op."""
        assert isinstance(stmt.result, Value)
        self.own(stmt.result)
        strides = Layout.contiguous(stmt.result.type.shape).strides
        start, parts = 0, []
        for x in stmt.args:
            part = x if self.can_move(x) else self.copy(x, stmt)
            self.made.discard(id(part))
            self.plan.windows[id(part)] = BufferView(stmt.result, Layout(start * strides[axis], strides))
            start += part.type.shape[axis]
            parts.append(part)
        self.stmts.append(stmt.replace(args=tuple(parts)))

    def can_move(self, x: Operand) -> bool:
        """Whether a value can be computed elsewhere: this block computes it, with a kernel that writes through any strides, and no value
        is a window on it.
        """
        maker = self.makers.get(id(x))
        if maker is None or id(x) not in self.made or id(x) in self.viewed:
            return False
        if maker.op.is_nest:
            (block,) = maker.blocks
            made = {id(s.result): s.op for s in block.stmts}
            inner = next(i for r, i in zip(maker.results, block.results, strict=True) if r is x)
            last = made.get(id(inner))
            return last is not None and last.is_elementwise and all(op.writes_strided for op in made.values())
        return maker.op.writes_strided

    # ---- regions

    def memory_inside(self, stmt: Stmt, arrays: Roots, is_outermost: bool = True) -> None:
        """Give windows to the values in memory of a register region: stacks, and arrays that it changes element by element. The others are
        scalars, without buffers.
        """
        if stmt.op.is_loop:
            self.stack_roots.enter(stmt)
            arrays.enter(stmt, keeps_first=not is_outermost)
        for block in stmt.blocks:
            self.remember(block.params, arrays)
            for inner in block.stmts:
                self.memory_inside(inner, arrays, is_outermost=False)
        self.stack_roots.leave(stmt)
        arrays.leave(stmt)
        if is_outermost:
            for result in stmt.results:
                if not is_array(result):
                    self.own(result)
        self.remember(stmt.results, arrays)

    def remember(self, values: Iterable[Operand], arrays: Roots) -> None:
        """Record the windows of stacks and arrays inside a register region."""
        for value in values:
            if is_stack(value):
                self.own(value)
            elif is_array(value):
                root = arrays.of(value)
                if id(root) not in self.plan.windows:
                    self.own(root)
                self.plan.windows[id(value)] = self.plan.windows[id(root)]

    def visit_rows(self, stmt: Stmt) -> None:
        """Results are computed directly in their own buffers; other values get a buffer of one row."""
        (block,) = stmt.blocks
        for result in stmt.results:
            self.own(result)
        outer_stmts, outer_made = self.stmts, self.made
        self.stmts, self.made = [], set()
        leaving = {id(inner): result for inner, result in zip(block.results, stmt.results, strict=True)}
        for inner in block.stmts:
            if inner.op.is_view:
                self.view(inner)
                continue
            self.stmts.append(inner)
            for value in inner.results:
                self.own(value)
                if id(value) in leaving:
                    self.plan.windows[id(value)] = self.plan.windows[id(leaving[id(value)])]
        stmts, self.stmts, self.made = self.stmts, outer_stmts, outer_made
        made = (id(r) for s in stmts if not s.op.is_view for r in s.results)  # by members, and by copies that views needed
        self.plan.rows.update(i for i in made if i not in leaving)
        self.stmts.append(stmt.replace(blocks=(Block((), stmts, block.results),)))

    def visit_if(self, stmt: Stmt) -> None:
        """An `if`, or the one block of a `checkpoint`."""
        blocks = tuple(self.inside(block, []) for block in stmt.blocks)
        stmt = stmt.replace(blocks=blocks)
        self.stmts.append(stmt)
        self.stack_roots.leave(stmt)
        for result in stmt.results:
            self.own(result)

    def visit_loop(self, stmt: Stmt) -> None:
        """The carries are the body's parameters; the condition's parameters and the results are windows on them."""
        body = stmt.blocks[-1]
        carries = body.params[len(body.params) - len(body.results) :]
        self.stack_roots.enter(stmt)
        for param in body.params:
            self.own(param)
        for test in stmt.blocks[:-1]:
            for param, carry in zip(test.params, carries, strict=True):
                self.plan.windows[id(param)] = self.plan.windows[id(carry)]
        self.stmts.append(stmt.replace(blocks=tuple(self.inside(b, list(carries) if b is body else []) for b in stmt.blocks)))
        for result, carry in zip(stmt.results, carries, strict=False):
            self.plan.windows[id(result)] = self.plan.windows[id(carry)]
        self.stack_roots.leave(stmt)
        for stack in stmt.results[len(carries) :]:
            self.own(stack)

    def inside(self, block: Block, carries: list[Value]) -> Block:
        """A block with its copies; values that a loop's body yields have their own buffers, except carries that do not change."""
        outer_stmts, outer_made = self.stmts, self.made
        self.stmts, self.made = [], set()
        self.visit_all(block.stmts, (*block.results, *block.saving))
        results: list[Operand] = list(block.results)
        for k, carry in enumerate(carries):
            if results[k] is not carry and not is_stack(carry):
                results[k] = self.fresh(results[k])
        out = Block(block.params, self.stmts, results, block.saving)
        self.stmts, self.made = outer_stmts, outer_made
        return out

    # ---- copies

    def copy(self, source: Operand, stmt: Stmt | None) -> Value:
        """A contiguous copy, as a fused kernel of one statement."""
        inner, outer = Value(source.type), Value(source.type, getattr(source, "name", None))
        location, phase = (stmt.location, stmt.phase) if stmt else (None, self.stmts[-1].phase if self.stmts else "forward")
        op: Map = Fill(source.value.item(), source.type.dtype, source.type.shape) if isinstance(source, Literal) else Copy()
        args = () if isinstance(source, Literal) else (source,)
        body = Block((), [Stmt(op, args, (inner,), location=location, phase=phase)], [inner])
        self.stmts.append(Stmt(Fuse(), (), (outer,), (body,), location, phase))
        self.own(outer)
        return outer

    def fresh(self, value: Operand) -> Operand:
        """The value itself if it covers a buffer that this block defines and nothing else has taken; otherwise a copy."""
        window = self.plan.windows.get(id(value))
        if window is not None and id(window.root) in self.made and covers(window, value):
            self.made.discard(id(window.root))
            return value
        return self.copy(value, None)


def run_length(stmt: Stmt, axis: int) -> int:
    """How many elements of the smallest part are contiguous in a concatenation."""
    return min(hint_of(math.prod(x.type.shape[axis:])) for x in stmt.args)


def covers(window: BufferView, value: Operand) -> bool:
    """Whether the value occupies its whole buffer, in order."""
    root = window.root.type
    return root.dtype == value.type.dtype and window.is_whole(value)


def fits_registers(stmt: Stmt) -> bool:
    """Whether a region can run in registers as one kernel: it computes on scalars only, and reads and writes elements of stacks and
    arrays.
    """
    return is_made_of_scalars(stmt) and changes_in_place(stmt)


def is_made_of_scalars(stmt: Stmt) -> bool:
    for block in stmt.blocks:
        if not all(_is_scalar(x) or is_array(x) for x in (*block.params, *block.results)) or not all(map(_is_scalar, block.saving)):
            return False
        for inner in block.stmts:
            if inner.blocks:
                if not is_made_of_scalars(inner):
                    return False
            elif (needed := inner.op.scalars(inner.args, inner.results)) is None or not all(map(_is_scalar, needed)):
                return False
    return True


def _is_scalar(x: Operand) -> bool:
    """Whether a value, or each element of a stack, is a scalar."""
    return x.type.size == 1
