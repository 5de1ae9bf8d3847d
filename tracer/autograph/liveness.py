"""Which variables are read after a statement: these are the results of a traced branch or loop.

Runs on bodies without jumps (after `jumps`): every block then has one entry and one exit. Reading the name of a local function counts as
reading its free variables.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from adjit.ir.records import NamedTuple

from .names import Usage, free_names, statements
from .patterns import is_irrefutable

Names = frozenset[str]


class Live(NamedTuple):
    """The names read after a statement; for a loop, also those that its condition or an iteration may read before binding them."""

    after: Names
    head: Names = frozenset()


class Liveness:
    """`of[node]` is the liveness at every `if`, `while`, `for` and assignment of a body."""

    def __init__(
        self, body: Sequence[ast.stmt], stops: dict[ast.AST, str], ends: dict[ast.AST, set[str]], always: Names, own: set[str]
    ) -> None:
        """`always` are live at the end; `own` are all variables, as returned by `locals()`."""
        self.of: dict[ast.AST, Live] = {}
        self.stops = stops
        self.ends = ends
        self.own = own
        self.captured = captured_names(body)
        self.unless_suppressed: dict[ast.With, Names] = {}  # lost to traced regions of the block if it suppresses an exception
        self.caught: Names = frozenset()  # read if a statement raises, by the handlers and `finally` around it
        self.block(body, always)

    def reads(self, usage: Usage) -> Names:
        out = usage.reads | self.own if usage.scope else set(usage.reads)
        todo = [name for name in out if name in self.captured]
        while todo:
            more = self.captured[todo.pop()] - out
            out |= more
            todo += [name for name in more if name in self.captured]
        return frozenset(out)

    def block(self, stmts: Sequence[ast.stmt], after: Names) -> Names:
        after |= self.caught
        for stmt in reversed(stmts):
            after = self.statement(stmt, after) | self.caught
        return after

    def statement(self, stmt: ast.stmt, after: Names) -> Names:
        match stmt:
            case ast.If():
                self.of[stmt] = Live(after)
                return self.expression(stmt.test, self.block(stmt.body, after) | self.block(stmt.orelse, after))
            case ast.While() | ast.For():
                return self.loop(stmt, after)
            case ast.With():
                return self.managed(stmt, after)
            case ast.Try():
                return self.attempt(stmt, after)
            case ast.Match():
                rest = after  # what is read if no case so far matches
                for case in reversed(stmt.cases):
                    body = self.block(case.body, after) - Usage.of(case.pattern).binds
                    if case.guard or not is_irrefutable(case.pattern):
                        body |= rest | self.reads(Usage.of([case.pattern, *([case.guard] if case.guard else [])]))
                    rest = body
                return self.reads(Usage.of(stmt.subject)) | rest
            case ast.Return():
                return self.expression(stmt, frozenset())
            case ast.AugAssign():
                self.of[stmt] = Live(after)
                return after | self.reads(Usage.of(stmt))
            case ast.Assign() | ast.Expr():
                self.of[stmt] = Live(after)
        return self.expression(stmt, after)

    def attempt(self, stmt: ast.Try, after: Names) -> Names:
        """Handle `try`. An exception may leave the body anywhere: names that handlers and `finally` read stay live throughout it."""
        outer = self.caught
        last = self.block(stmt.finalbody, after)
        self.caught = outer | self.block(stmt.finalbody, frozenset())  # an exception that is not caught propagates after it
        handlers = [self.handler(h, last) for h in stmt.handlers]
        done = self.block(stmt.orelse, last)
        self.caught = self.caught.union(*handlers)
        entered = self.block(stmt.body, done)
        self.caught = outer
        last = self.block(stmt.finalbody, after)  # again, so that `of` has the liveness of the normal exit
        return entered

    def managed(self, stmt: ast.With, after: Names) -> Names:
        """Handle `with`. After `suppress`, the program continues after the block, wherever it raised. Other context managers rarely
        suppress: they are assumed not to, and checked at run time (`NotSuppressing`).
        """
        outer = self.caught
        self.caught |= after
        inside = self.block(stmt.body, after)
        self.caught = outer
        if not any(suppresses(item.context_expr) for item in stmt.items):
            cautious = {node: self.of[node] for node in statements(stmt.body) if isinstance(node, ast.If | ast.While | ast.For)}
            inside = self.block(stmt.body, after)
            dropped = (Usage.of(node).binds & (live.after - self.of[node].after) for node, live in cautious.items())
            self.unless_suppressed[stmt] = frozenset().union(*dropped)
        for item in reversed(stmt.items):
            inside = self.expression(item, inside)
        return inside

    def handler(self, handler: ast.ExceptHandler, after: Names) -> Names:
        inside = self.block(handler.body, after) - ({handler.name} if handler.name else set())
        return inside | self.reads(Usage.of(handler.type)) if handler.type else inside

    def expression(self, node: ast.AST, after: Names) -> Names:
        usage = Usage.of(node)
        return (after - usage.binds) | self.reads(usage)

    def loop(self, stmt: ast.While | ast.For, after: Names) -> Names:
        stop = {self.stops[stmt]} if stmt in self.stops else set()
        targets = Usage.of(stmt.target).binds if isinstance(stmt, ast.For) else set()
        head = after | stop
        while True:
            trip = self.block(stmt.body, head) - targets
            if isinstance(stmt, ast.While):
                trip |= self.reads(Usage.of(stmt.test))
            if trip <= head:
                break
            head |= trip
        ends = self.ends.get(stmt, set())  # their previous values do not matter
        trip, head = trip - ends, head - ends
        self.of[stmt] = Live(after, trip | stop)
        if isinstance(stmt, ast.While):
            return head
        return (trip | stop if self.runs(stmt.iter) else head) | self.reads(Usage.of(stmt.iter))

    def runs(self, iterable: ast.expr) -> bool:
        """Whether a loop is certain to have an iteration, as over `range(3)`: names that its body binds need no value before it."""
        match iterable:
            case ast.Call(func=ast.Name("range"), args=[ast.Constant(int(count))], keywords=[]):
                return count > 0 and "range" not in self.own
        return False


def suppresses(manager: ast.expr) -> bool:
    """Whether a context manager is `contextlib.suppress`, after which the program continues wherever its body raised."""
    match manager:
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name)):
            return name == "suppress"
    return False


def captured_names(body: Sequence[ast.stmt]) -> dict[str, set[str]]:
    """Map each name bound to a local function to the free variables of such functions."""
    out: dict[str, set[str]] = {}
    for node in statements(body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                out.setdefault(node.name, set()).update(free_names(node))
            case ast.Assign(targets=targets, value=ast.Lambda() as function):
                for target in targets:
                    if isinstance(target, ast.Name):
                        out.setdefault(target.id, set()).update(free_names(function))
    return out
