"""`break`, `continue` and early `return` turned into flags and branches, so that every block has a single exit.

What follows a branch that always jumps moves into the other branch; only after a more deeply nested jump is it guarded by a flag:

    if c:            if c:                       if a:                 if a:
        return x  ->     ret = x                     if b:         ->      if b:
    y = f(x)         else:                               break                 stop = True
    return y             y = f(x); ret = y           s = s + 1             else:
                     return ret                  t = t + 1                 s = s + 1
                                                                       if not stop:
                                                                           t = t + 1
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy

from adjit.ir.records import NamedTuple

from .names import Usage, blocks, statements
from .patterns import GUARDS, opened, repeats, without_guards
from .placing import load, placed, store
from .source import NoSource


class Leave(ast.Pass):
    """Placeholder statement: leave the enclosing block, since the function has returned."""


class LoopFlags(NamedTuple):
    stop: str
    skip: str


class Jumps:
    """Lowers one function's body. Then `stops` holds the flag that ends each loop early, and `result` the name of the return value."""

    def __init__(self, fresh: Callable[[str], str], unrolled: set[ast.AST]) -> None:
        self.fresh = fresh
        self.unrolled = unrolled  # loops that stay a sequence of iterations
        self.stops: dict[ast.AST, str] = {}
        self.ends: dict[ast.AST, set[str]] = {}  # for each loop: variables assigned however it ends, by a `break` or its `else`
        self.returns: dict[ast.AST, tuple[bool, bool]] = {}  # for each `if`: which branches leave the function
        self.result: str | None = None
        self.done = ""
        self.set: dict[str, list[ast.Assign]] = {}  # the assignments of each flag
        self.read: set[str] = set()

    def function(self, body: Sequence[ast.stmt], at: ast.AST) -> list[ast.stmt]:
        returns = [node for node in statements(body) if isinstance(node, ast.Return)]
        # what follows a branch that raises moves into the other branch, including a final `return`
        moved = any(isinstance(node, ast.Raise) for node in statements(body))
        if all(node is body[-1] and not moved for node in returns):
            return self.cleaned(self.block(body, None).stmts)
        self.result, self.done = self.fresh("result"), self.fresh("done")
        whole = list(body)
        if not always_jumps(whole):
            whole.append(placed(ast.Return(ast.Constant(None)), body[-1]))
        lowered = self.cleaned([self.flag(self.done, False, body[0]), *self.block(whole, None).stmts])
        return [*lowered, placed(ast.Return(load(self.result)), body[-1])]

    # ---- statements

    def block(self, stmts: Sequence[ast.stmt], loop: LoopFlags | None) -> Lowered:
        """Return the statements without jumps, and the flags that may be set at their end."""
        out: list[ast.stmt] = []
        todo = list(stmts)
        flags: set[str] = set()
        while todo:
            stmt = todo.pop(0)
            spread = self.spread(stmt)
            if spread is not None:
                todo[:0] = spread
                continue
            match stmt:
                case ast.Break():
                    assert loop
                    return Lowered([*out, self.flag(loop.stop, True, stmt)], flags | {loop.stop})
                case ast.Continue():
                    assert loop
                    return Lowered([*out, self.flag(loop.skip, True, stmt)], flags | {loop.skip})
                case ast.Return() if self.result:
                    value = stmt.value or placed(ast.Constant(None), stmt)
                    out += [placed(ast.Assign([store(self.result)], value), stmt), self.flag(self.done, True, stmt)]
                    return self.left(out, flags, loop, stmt)
                case Leave():
                    return self.left(out, flags, loop, stmt)
                case ast.If():
                    branch, rest = self.branch(stmt, todo, loop)
                    out.append(branch.stmt)
                    flags |= branch.flags
                    if rest is None:
                        return Lowered(out, flags)
                    todo = rest
                case ast.While() | ast.For():
                    before, lowered, after = self.loop(stmt)
                    out += [*before, lowered]
                    todo = after + ([] if endless(stmt) else todo)
                    if any(isinstance(node, ast.Return) for node in statements(stmt.body)):
                        if todo or loop is not None:
                            self.read.add(self.done)
                            todo.insert(0, placed(ast.If(load(self.done), [placed(Leave(), stmt)], []), stmt))
                        else:
                            flags.add(self.done)
                case ast.With():
                    inside = self.block(stmt.body, loop)
                    out.append(placed(ast.With(stmt.items, inside.stmts), stmt))
                    flags |= inside.flags
                    todo = self.guarded(todo, inside.flags, always_jumps(stmt.body, raising=False))
                case ast.Try():
                    lowered, inner = self.attempt(stmt, loop)
                    out.append(lowered)
                    flags |= inner
                    todo = self.guarded(todo, inner, False)
                case ast.Match():
                    cases = [(case, self.block(case.body, loop)) for case in stmt.cases]
                    inner = set().union(*(lowered.flags for _, lowered in cases))
                    out.append(placed(ast.Match(stmt.subject, [ast.match_case(c.pattern, c.guard, body.stmts) for c, body in cases]), stmt))
                    flags |= inner
                    todo = self.guarded(todo, inner, False)
                case _:
                    out.append(stmt)
        return Lowered(out, flags)

    def spread(self, stmt: ast.stmt) -> list[ast.stmt] | None:
        """Expand conditional expressions and `and`, `or` that bind names, and `match`, to `if` statements; None for other statements."""
        match stmt:
            case ast.If(test=ast.BoolOp() as test) if may_bind(test):
                first, rest = parted(test)
                inner: list[ast.stmt] = [placed(ast.If(rest, stmt.body, stmt.orelse), stmt)]
                if isinstance(test.op, ast.And):
                    return [placed(ast.If(first, inner, deepcopy(stmt.orelse)), stmt)]
                return [placed(ast.If(first, deepcopy(stmt.body), inner), stmt)]
            case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test)) if may_bind(test):
                return [placed(ast.If(test, stmt.orelse or [placed(ast.Pass(), stmt)], stmt.body), stmt)]
            case ast.Return(value=ast.IfExp() | ast.BoolOp() as value) if may_bind(value):
                name = self.fresh("chosen")
                return [placed(ast.Assign([store(name)], value), stmt), placed(ast.Return(load(name)), stmt)]
            case ast.Assign(value=ast.BoolOp() as value) | ast.Expr(value=ast.BoolOp() as value) if may_bind(value):
                first, rest = parted(value)
                name = self.fresh("chosen")
                more: list[ast.stmt] = [placed(ast.Assign([store(name)], rest), stmt)]
                sides = (more, []) if isinstance(value.op, ast.And) else ([placed(ast.Pass(), stmt)], more)
                stmt.value = placed(load(name), stmt)
                return [placed(ast.Assign([store(name)], first), stmt), placed(ast.If(load(name), *sides), stmt), placed(stmt, stmt)]
            case ast.Assign(value=ast.IfExp() as value) | ast.Expr(value=ast.IfExp() as value):
                if not may_bind(value):
                    return None
                copies = [deepcopy(stmt), deepcopy(stmt)]
                for side, chosen in zip(copies, (value.body, value.orelse), strict=True):
                    side.value = chosen
                return [placed(ast.If(value.test, [copies[0]], [copies[1]]), stmt)]
            case ast.Match(subject=subject, cases=given):
                cases = [opened(case, self.fresh) for case in given]
                if all(case.guard is None for case in cases):
                    return None
                if repeats(cases) > GUARDS:  # comparisons stay guards
                    return None if cases == given else [placed(ast.Match(subject, cases), stmt)]
                name = self.fresh("subject")
                return [placed(ast.Assign([store(name)], subject), subject), without_guards(name, cases, stmt)]
            case ast.Try(finalbody=last) if jumps(last):
                handled = [s for handler in stmt.handlers for s in handler.body]
                return None if jumps([*stmt.body, *stmt.orelse, *handled]) else self.swallowing(stmt)
        return None

    def swallowing(self, stmt: ast.Try) -> list[ast.stmt]:
        """Lower a `try` with a jump in its `finally`: if the jump is taken, the exception is discarded."""
        caught, error = self.fresh("caught"), self.fresh("error")
        inner: list[ast.stmt] = [placed(ast.Try(stmt.body, stmt.handlers, stmt.orelse, []), stmt)] if stmt.handlers else stmt.body
        keep = placed(ast.Assign([store(caught)], load(error)), stmt)
        handler = placed(ast.ExceptHandler(load("BaseException"), error, [keep]), stmt)
        missed = placed(ast.Compare(load(caught), [ast.IsNot()], [ast.Constant(None)]), stmt)
        return [
            placed(ast.Assign([store(caught)], ast.Constant(None)), stmt),
            placed(ast.Try(inner, [handler], [], []), stmt),
            *stmt.finalbody,
            placed(ast.If(missed, [placed(ast.Raise(load(caught), None), stmt)], []), stmt),
        ]

    def left(self, out: list[ast.stmt], flags: set[str], loop: LoopFlags | None, at: ast.stmt) -> Lowered:
        """Handle the code after a return: the enclosing loop, if any, stops too."""
        if loop is None:
            return Lowered(out or [placed(ast.Pass(), at)], flags | {self.done})
        return Lowered([*out, self.flag(loop.stop, True, at)], flags | {loop.stop})

    def branch(self, stmt: ast.If, rest: list[ast.stmt], loop: LoopFlags | None) -> tuple[Branch, list[ast.stmt] | None]:
        """Return the lowered `if`, and the statements still to be lowered after it; None if there are none in this block."""
        then_jumps, else_jumps = always_jumps(stmt.body), always_jumps(stmt.orelse)
        absorbed = bool(rest) and then_jumps != else_jumps
        then = self.block(stmt.body + rest if absorbed and else_jumps else stmt.body, loop)
        other = self.block(stmt.orelse + rest if absorbed and then_jumps else stmt.orelse, loop)
        lowered = placed(ast.If(stmt.test, then.stmts, other.stmts), stmt)
        self.returns[lowered] = (always_returns(stmt.body), always_returns(stmt.orelse))
        flags = then.flags | other.flags
        if absorbed or (then_jumps and else_jumps):
            return Branch(lowered, flags), None
        return Branch(lowered, flags), self.guarded(rest, flags, False)

    def guarded(self, rest: list[ast.stmt], flags: set[str], jumps: bool) -> list[ast.stmt]:
        """Return the statements that follow one that may have jumped, guarded by its flags."""
        if jumps or not rest:
            return []
        if not flags:
            return rest
        self.read |= flags
        at = rest[0]
        clear = [placed(ast.UnaryOp(ast.Not(), load(flag)), at) for flag in sorted(flags)]
        test = clear[0] if len(clear) == 1 else placed(ast.BoolOp(ast.And(), list(clear)), at)
        return [placed(ast.If(test, rest, []), at)]

    def loop(self, stmt: ast.While | ast.For) -> tuple[list[ast.stmt], ast.stmt, list[ast.stmt]]:
        """Return the statements before the loop, the loop, and the statements after it that are still to be lowered."""
        if isinstance(stmt, ast.While) and Usage.of(stmt.test).binds:
            return self.binding_loop(stmt)
        flags = LoopFlags(self.fresh("stop"), self.fresh("skip"))
        body = self.block(stmt.body, flags).stmts
        if flags.skip in self.set and flags.skip in self.read:
            body.insert(0, self.flag(flags.skip, False, stmt.body[0]))
        lowered: ast.While | ast.For
        if isinstance(stmt, ast.While):
            lowered = placed(ast.While(stmt.test, body, []), stmt)
        else:
            lowered = placed(ast.For(stmt.target, stmt.iter, body, []), stmt)
            if stmt in self.unrolled:
                self.unrolled.add(lowered)
        if stmt.orelse:
            self.ends[lowered] = (assigned(stmt.orelse) & assigned_at_breaks(stmt.body)) - Usage.of(stmt.body).reads
        before: list[ast.stmt] = []
        after = list(stmt.orelse)
        if flags.stop in self.set:
            before.append(self.flag(flags.stop, False, stmt))
            self.stops[lowered] = flags.stop
            self.read.add(flags.stop)
            after = self.guarded(after, {flags.stop}, False)
        return before, lowered, after

    def binding_loop(self, stmt: ast.While) -> tuple[list[ast.stmt], ast.stmt, list[ast.stmt]]:
        """Lower a `while` whose condition binds names with `:=`: it moves into the body, since only that may change variables."""
        ended = self.fresh("ended")
        leave = [placed(ast.Assign([store(ended)], ast.Constant(True)), stmt.test), placed(ast.Break(), stmt.test)]
        inside = placed(ast.If(stmt.test, stmt.body, leave), stmt)
        before, lowered, _ = self.loop(placed(ast.While(ast.Constant(True), [inside], []), stmt))
        after: list[ast.stmt] = [placed(ast.If(load(ended), stmt.orelse, []), stmt.orelse[0])] if stmt.orelse else []
        return [placed(ast.Assign([store(ended)], ast.Constant(False)), stmt), *before], lowered, after

    def attempt(self, stmt: ast.Try, loop: LoopFlags | None) -> tuple[ast.Try, set[str]]:
        if any(map(leaves_loop, stmt.finalbody)):
            raise NoSource("a `break` or `continue` in `finally` after another jump in its `try` is not converted: move one of them")
        body, last = self.block(stmt.body, loop), self.block(stmt.finalbody, loop)
        orelse = self.block(self.guarded(list(stmt.orelse), body.flags, always_jumps(stmt.body)), loop)
        handlers = [(h, self.block(h.body, loop)) for h in stmt.handlers]
        flags = body.flags | last.flags | orelse.flags
        flags = flags.union(*(b.flags for _, b in handlers))
        caught = [placed(ast.ExceptHandler(h.type, h.name, b.stmts), h) for h, b in handlers]
        return placed(ast.Try(body.stmts, caught, orelse.stmts, last.stmts), stmt), flags

    # ---- flags

    def flag(self, name: str, value: bool, at: ast.AST) -> ast.Assign:
        assign = placed(ast.Assign([store(name)], ast.Constant(value)), at)
        self.set.setdefault(name, []).append(assign)
        return assign

    def cleaned(self, stmts: list[ast.stmt]) -> list[ast.stmt]:
        """Remove assignments of flags that are never read."""
        idle = {id(assign) for name, assigns in self.set.items() if name not in self.read for assign in assigns}
        return list(_without(stmts, idle)) if idle else stmts


class Lowered(NamedTuple):
    stmts: list[ast.stmt]
    flags: set[str]


class Branch(NamedTuple):
    stmt: ast.If
    flags: set[str]


def may_bind(node: ast.expr) -> bool:
    """Whether an expression binds names in a part that is not always evaluated."""
    match node:
        case ast.BoolOp(values=[_, *rest]):
            return bool(Usage.of(rest).binds)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return bool(Usage.of([body, orelse]).binds) or may_bind(test)
    return False


def parted(node: ast.BoolOp) -> tuple[ast.expr, ast.expr]:
    """Split `a and b and c` into the first operand and the rest, as one expression."""
    first, *rest = node.values
    return first, rest[0] if len(rest) == 1 else placed(ast.BoolOp(node.op, rest), node)


def _without(stmts: Sequence[ast.stmt], idle: set[int]) -> Iterator[ast.stmt]:
    for stmt in stmts:
        if id(stmt) in idle:
            continue
        for node in (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
            for field in ("body", "orelse", "finalbody"):
                inner = getattr(node, field, None)
                if isinstance(inner, list) and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    kept = list(_without(inner, idle))
                    if inner and not kept and field != "orelse":
                        kept = [placed(ast.Pass(), inner[0])]
                    setattr(node, field, kept)
        yield stmt


def assigned(stmts: Sequence[ast.stmt]) -> set[str]:
    """Return the names that the block certainly assigns if it runs to its end."""
    out: set[str] = set()
    for stmt in stmts:
        match stmt:
            case ast.If():
                out |= assigned(stmt.body) & assigned(stmt.orelse)
            case ast.With():
                out |= assigned(stmt.body)
            case ast.Assign() | ast.AnnAssign(value=ast.expr()):
                out |= Usage.of(stmt).binds
    return out


def assigned_at_breaks(stmts: Sequence[ast.stmt]) -> set[str]:
    """Return the names certainly assigned before every `break` of the enclosing loop, in the same iteration."""
    found: list[set[str]] = []

    def look(block: Sequence[ast.stmt], before: set[str]) -> None:
        for i, stmt in enumerate(block):
            known = before | assigned(block[:i])
            if isinstance(stmt, ast.Break):
                found.append(known)
            for inner in inner_blocks(stmt):
                look(inner, known)

    look(stmts, set())
    return set.intersection(*found) if found else set()


def inner_blocks(stmt: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a statement in which `break` refers to the enclosing loop."""
    if not isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for block in blocks(stmt):
            if not isinstance(stmt, ast.While | ast.For) or block is not stmt.body:
                yield block


def always_jumps(stmts: Sequence[ast.stmt], raising: bool = True) -> bool:
    """Whether control always leaves the block before its end. A `with` block may suppress exceptions, but no other jump."""
    for stmt in stmts:
        match stmt:
            case ast.Break() | ast.Continue() | ast.Return() | Leave():
                return True
            case ast.Raise() if raising:
                return True
            case ast.If() if always_jumps(stmt.body, raising) and always_jumps(stmt.orelse, raising):
                return True
            case ast.With() if always_jumps(stmt.body, raising=False):
                return True
            case ast.While() if endless(stmt):
                return True
    return False


def always_returns(stmts: Sequence[ast.stmt]) -> bool:
    """Whether the block always ends in `return`: its variables are not read afterwards."""
    return bool(stmts) and (
        isinstance(stmts[-1], ast.Return | Leave)
        or (isinstance(stmts[-1], ast.If) and always_returns(stmts[-1].body) and always_returns(stmts[-1].orelse))
        or (isinstance(stmts[-1], ast.With) and always_returns(stmts[-1].body))
    )


def jumps(stmts: Sequence[ast.stmt]) -> bool:
    """Whether a jump may leave the block."""
    return any(isinstance(s, ast.Return) for s in statements(stmts)) or any(map(leaves_loop, stmts))


def leaves_loop(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Break | ast.Continue) or any(leaves_loop(s) for block in inner_blocks(stmt) for s in block)


def endless(stmt: ast.stmt) -> bool:
    """Whether this is a `while True` without a `break` of its own: only `return` and `raise` leave it."""
    return isinstance(stmt, ast.While) and isinstance(stmt.test, ast.Constant) and bool(stmt.test.value) and not breaks(stmt.body)


def breaks(stmts: Sequence[ast.stmt]) -> bool:
    """Whether there is a `break` of the loop that encloses these statements."""
    return any(isinstance(stmt, ast.Break) or any(map(breaks, inner_blocks(stmt))) for stmt in stmts)
