"""Control flow as Python statements: `if`, `for`, `while`, and blocks that run once.

A loop's carries are variables that the body assigns; a carry, the value that it starts from and the loop's result are one variable wherever
nothing else reads them. Values that a loop saves are appended to lists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from .func import Block, Stmt, Value
from .operand import Literal, Operand
from .source_names import identifier
from .source_text import assignment, unparse

if TYPE_CHECKING:
    from .source_names import SourceNames


class Regions:
    """The part of `Writer` that region ops call."""

    lines: list[str]
    indent: int
    names: SourceNames
    left: dict[int, int]
    inlined: dict[int, Any]
    weak: set[int]
    shapes: dict[int, Any]
    fresh: set[int]
    wanted: dict[int, Operand]
    latest: dict[str | None, Operand]
    saved: dict[int, list[Value]]
    block_at: tuple[Block, int]

    if TYPE_CHECKING:

        def write_block(self, block: Block) -> None: ...
        def indented(self, lines: Sequence[str]) -> list[str]: ...
        def nested(self) -> AbstractContextManager[list[str]]: ...
        def push(self, stack: Value, element: Operand) -> None: ...
        def result(self, x: Operand) -> ast.expr: ...
        def array(self, x: Operand) -> ast.expr: ...
        def index(self, x: Operand) -> ast.expr: ...
        def is_pending(self, name: str) -> bool: ...
        def is_param(self, x: Operand) -> bool: ...
        def variable(self, value: Operand) -> str: ...

    def inline(self, stmt: Stmt) -> None:
        """A block that runs once, here."""
        (body,) = stmt.blocks
        self.write_block(body)
        self.assign(stmt.results, body.results)

    def fused(self, stmt: Stmt) -> None:
        self.inline(stmt)

    def rows(self, stmt: Stmt) -> None:
        self.inline(stmt)

    def branches(self, stmt: Stmt) -> None:
        """`if`, `else`."""
        condition = self.array(stmt.args[0])
        self.take(stmt.args)
        results = [r for r in stmt.results if self.left.get(id(r))]
        for r in results:
            self.variable(r)
        parts = []
        for block in stmt.blocks:
            outputs = (*block.results, *block.saving)
            chosen = [x for r, x in zip(stmt.results, outputs, strict=True) if self.left.get(id(r))]
            self.want(chosen, results, block)
            with self.nested() as lines:
                self.write_block(block)
                self.assign(results, chosen)
                self.take([x for r, x in zip(stmt.results, outputs, strict=True) if not self.left.get(id(r))])
                parts.append(list(lines))
        yes, no = parts
        if not yes:
            yes, no, condition = no, [], ast.UnaryOp(ast.Not(), condition)
        self.lines += [*self.indented([f"if {unparse(condition)}:"]), *(yes or self.indented(["    pass"]))]
        if no:
            self.lines += [*self.indented(["else:"]), *no]

    def for_loop(self, stmt: Stmt) -> None:
        (body,) = stmt.blocks
        start, stop = stmt.args[:2]
        bounds = [unparse(self.index(x)) for x in (start, stop)]
        if isinstance(start, Literal) and not start.value:
            del bounds[0]
        counter, carries = body.params[0], body.params[1:]
        self.start(stmt, stmt.args[2:], carries, body)
        self.take(stmt.args[:2])
        self.weak.add(id(counter))
        name = "_"
        if self.left.get(id(counter)):
            self.names.prefer(counter, counter.name or "k")
            name = self.names.of(counter)
        with self.repeated(stmt.blocks), self.nested() as lines:
            self.iteration(body, carries, stmt.results[len(carries) :])
            inner = list(lines)
        self.lines += [*self.indented([f"for {name} in range({', '.join(bounds)}):"]), *(inner or self.indented(["    pass"]))]

    def while_loop(self, stmt: Stmt) -> None:
        condition, body = stmt.blocks
        self.start(stmt, stmt.args, body.params, body)
        for c, p in zip(body.params, condition.params, strict=True):
            self.names.share(p, c)
        with self.repeated(stmt.blocks):
            with self.nested() as lines:
                self.write_block(condition)
                test = self.array(condition.results[0])
                self.take(condition.results)
                prepared = list(lines)
            with self.nested() as lines:
                self.iteration(body, body.params, stmt.results[len(body.params) :])
                inner = list(lines)
        if not prepared:
            self.lines += [*self.indented([f"while {unparse(test)}:"]), *(inner or self.indented(["    pass"]))]
            return
        stop = unparse(ast.UnaryOp(ast.Not(), test))
        self.lines += [*self.indented(["while True:"]), *prepared, *self.indented([f"    if {stop}:", "        break"]), *inner]

    # ---- carries

    def start(self, stmt: Stmt, initial: Sequence[Operand], carries: Sequence[Value], body: Block) -> None:
        """Assign the carries, and make the lists for what the loop saves."""
        targets: list[Operand] = []
        values: list[Operand] = []
        for c, x, r in zip(carries, initial, stmt.results):
            own = isinstance(x, Value) and id(x) not in self.inlined and self.left.get(id(x)) == 1 and id(x) not in self.weak
            own = own and id(x) not in self.shapes and not self.is_param(x) and not self.is_pending(self.names.of(x))
            if own and not self.names.has(c):
                self.names.share(c, x)
            else:
                self.names.prefer(c, identifier_of(c, r, x))
                targets.append(c)
                values.append(x)
            if (isinstance(x, Literal) or (own and id(x) in self.fresh)) and self.stays_fresh(c, body):
                self.fresh.add(id(c))
        self.assign(targets, values)
        self.take([x for x in initial if not any(x is v for v in values)])
        for c in carries:
            self.latest[c.name] = c
        for r, c in zip(stmt.results, carries):
            self.latest[getattr(r, "name", None)] = r
            self.names.share(r, c)
            if id(c) in self.fresh:
                self.fresh.add(id(r))
        for stack, element in zip(stmt.results[len(carries) :], body.saving, strict=True):
            name = getattr(element, "name", None)
            self.names.prefer(stack, f"{name}_stack" if name and name.isidentifier() else "stack0")
            self.lines += self.indented([f"{self.names.of(stack)} = []"])

    @contextmanager
    def repeated(self, blocks: Sequence[Block]) -> Iterator[None]:
        """Keep the variables that a loop reads from around it: its next iteration reads them again, so its body may not reuse them."""
        outside = [x for block in blocks for x in block.free() if id(x) not in self.inlined]
        for x in outside:
            self.left[id(x)] = self.left.get(id(x), 0) + 1
        yield
        self.take(outside)

    def stays_fresh(self, carry: Value, body: Block) -> bool:
        """Whether a carry is only ever an array that one op of the body changes in place."""
        at = len(body.params) - len(body.results)
        following = next(v for c, v in zip(body.params[at:], body.results, strict=True) if c is carry)
        makers = [s for s in body.stmts if s.op.in_place is not None and any(r is following for r in s.results)]
        once = self.left.get(id(carry)) == 1 and self.left.get(id(following)) == 1
        return once and any(s.args[s.op.in_place or 0] is carry for s in makers)

    def iteration(self, body: Block, carries: Sequence[Value], stacks: Sequence[Operand]) -> None:
        inside = {id(r) for s in body.stmts for r in s.results}
        for stack, element in zip(stacks, body.saving, strict=True):
            assert isinstance(stack, Value)
            if id(element) in inside:
                self.saved.setdefault(id(element), []).append(stack)
            else:
                self.push(stack, element)
        self.want(body.results, carries, body)
        self.write_block(body)
        self.assign(carries, body.results)

    def want(self, values: Sequence[Operand], targets: Sequence[Operand], block: Block) -> None:
        """Compute each value in the variable that it ends up in, if it is computed in the block and yielded once."""
        inside = {id(r) for s in block.stmts for r in s.results}
        ids = [id(v) for v in values]
        for v, target in zip(values, targets, strict=True):
            if id(v) in inside and ids.count(id(v)) == 1:
                self.wanted[id(v)] = target

    def assign(self, targets: Sequence[Operand], values: Sequence[Operand]) -> None:
        """Assign all at once; on lines of their own, if none reads what another writes."""
        pairs = [(self.names.of(t), self.result(v)) for t, v in zip(targets, values, strict=True)]
        self.take(values)
        pairs = [(name, node) for name, node in pairs if not (isinstance(node, ast.Name) and node.id == name)]
        written = {name for name, _ in pairs}
        reads = [{n.id for n in ast.walk(node) if isinstance(n, ast.Name)} for _, node in pairs]
        if any(r & (written - {name}) for r, (name, _) in zip(reads, pairs)):
            self.lines += self.indented(assignment([name for name, _ in pairs], [node for _, node in pairs], self.indent))
            return
        for name, node in pairs:
            self.lines += self.indented(assignment([name], [node], self.indent))

    def take(self, operands: Sequence[Operand]) -> None:
        for x in operands:
            self.left[id(x)] = self.left.get(id(x), 0) - 1


def identifier_of(*values: Operand) -> str:
    return next((identifier(n) for n in (getattr(v, "name", None) for v in values) if n), "t0") or "t0"
