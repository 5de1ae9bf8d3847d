"""The rewriting of functions: statements and expressions that may depend on a traced value become calls of `operators`.

    if x > 0:                 def then__1():
        y = x                     nonlocal y
    else:             ->          y = x
        y = -x                def else__2():
                                  nonlocal y
                                  y = -x
                              ag__.if_stmt(x > 0, then__1, else__2, ('y',))

Variables stay variables of the user's function: the new functions access them with `nonlocal`, and the operators through their cells.
Every new node has the source location of the code that it replaces.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from .aliases import related_names
from .expression_rewriter import AG, Expressions, subscript
from .jumps import Jumps
from .liveness import Liveness
from .names import Usage, array_written, blocks, children, free_names, output, parameters, statements
from .placing import load, placed, store, with_type_params

RESULT = "result"  # the variable of an early return: `result__1`

AUGMENTED: dict[type[ast.operator], str] = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv", ast.Mod: "imod", ast.Pow: "ipow",
    ast.MatMult: "imatmul", ast.BitAnd: "iand", ast.BitOr: "ior", ast.BitXor: "ixor", ast.LShift: "ilshift", ast.RShift: "irshift",
}  # fmt: skip


class SourceRewriter:
    """Rewrites a function, including nested ones. `plain(name, attributes)` recognises library functions, which are not converted."""

    def __init__(self, used: Iterable[str], plain: Callable[[str, Sequence[str]], bool], owner: str = "") -> None:
        self.used = set(used)
        self.plain = plain
        self.unrolled: set[ast.AST] = set()  # loops of comprehensions, which are never tried as loops of the IR
        self.owner = owner.lstrip("_")  # the enclosing class, if any, for mangling private names
        self.count = 0

    def fresh(self, base: str) -> str:
        while True:
            self.count += 1
            name = f"{base}__{self.count}"
            if name not in self.used:
                return name

    def names(self, names: Iterable[str]) -> ast.expr:
        """Return names as the operators find them: `self.__x` in a class `Cell` is `self._Cell__x`."""
        return ast.Tuple([ast.Constant(".".join(map(self.mangled, name.split(".")))) for name in sorted(names)], ast.Load())

    def mangled(self, name: str) -> str:
        return f"_{self.owner}{name}" if self.owner and name.startswith("__") and not name.endswith("__") else name

    def function(self, node: ast.FunctionDef, around: frozenset[str]) -> ast.FunctionDef:
        """`around`: the variables of the enclosing functions."""
        function = (GeneratorRewriter if yields(node) else FunctionRewriter)(self, node, around)
        return function.rewritten()


class FunctionRewriter:
    """Rewrites one function's own statements."""

    def __init__(self, whole: SourceRewriter, node: ast.FunctionDef, around: frozenset[str]) -> None:
        self.whole = whole
        self.node = node
        self.arguments = set(parameters(node.args))
        usage = Usage.of(node.body)
        outer = {name for stmt in statements(node.body) if isinstance(stmt, ast.Nonlocal) for name in stmt.names}
        self.locals = (usage.binds - usage.declared) | self.arguments
        self.variables = self.locals | outer | (around - usage.declared)  # what new functions may access with `nonlocal`
        self.own = self.locals | (free_names(node) & around)  # as returned by `locals()`
        self.globals = usage.declared - outer
        self.rebound = usage.binds
        self.assigned = usage.assigns
        self.appended = usage.appends
        self.related = related_names(node.body)
        jumps = Jumps(whole.fresh, whole.unrolled)
        self.body = jumps.function(node.body, node)
        self.locals |= Usage.of(self.body).binds - usage.declared
        self.variables |= self.locals
        # variables of the enclosing functions must be correct when it returns
        self.live = Liveness(self.body, jumps.stops, jumps.ends, frozenset(self.variables - self.locals), self.own)
        self.stops, self.returns, self.ends = jumps.stops, jumps.returns, jumps.ends
        self.ending: set[str] = set()  # variables of enclosing loops that are assigned at the latest when those end
        self.declared: set[str] = set()  # variables now bound only by new functions
        self.caught = 0  # number of enclosing `try` blocks with handlers
        self.hoisted: list[ast.stmt] = []  # functions called by expressions of the current statement
        self.hoists = True
        self.expressions = Expressions(self)

    def rewritten(self) -> ast.FunctionDef:
        body = self.block(self.body)
        doc = [body.pop(0)] if body and is_text(body[0]) else []
        # an annotation makes a name local to the function, without other effects
        needed = sorted((self.declared & self.locals) - self.arguments)
        top = self.node.body[0]
        local: list[ast.stmt] = [placed(ast.AnnAssign(store(name), ast.Constant("variable"), None, 1), top) for name in needed]
        return self.defined([*doc, *local, *body])

    def defined(self, body: list[ast.stmt]) -> ast.FunctionDef:
        node = self.node
        return placed(with_type_params(ast.FunctionDef(node.name, node.args, body, node.decorator_list, node.returns)), node)

    # ---- statements

    def block(self, stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for stmt in stmts:
            around, self.hoisted = self.hoisted, []
            new = self.statement(stmt)
            out += [*self.hoisted, *new]
            self.hoisted = around
        return out

    def statement(self, stmt: ast.stmt) -> list[ast.stmt]:
        match stmt:
            case ast.If():
                return self.if_(stmt)
            case ast.While():
                return self.while_(stmt)
            case ast.For():
                return self.for_(stmt)
            case ast.With():
                managers = [self.operator("entered", [self.expression(i.context_expr)], i.context_expr) for i in stmt.items]
                if lost := sorted(self.live.unless_suppressed.get(stmt, ())):
                    managers = [self.operator("not_suppressing", [m, ast.Constant(", ".join(lost))], m) for m in managers]
                items = [ast.withitem(m, i.optional_vars) for m, i in zip(managers, stmt.items, strict=True)]
                return [placed(ast.With(items, self.block(stmt.body)), stmt)]
            case ast.Try():
                handlers = [placed(ast.ExceptHandler(h.type, h.name, self.block(h.body)), h) for h in stmt.handlers]
                self.caught += bool(handlers)
                body = self.block(stmt.body)
                self.caught -= bool(handlers)
                return [placed(ast.Try(body, handlers, self.block(stmt.orelse), self.block(stmt.finalbody)), stmt)]
            case ast.Match():
                cases = [ast.match_case(c.pattern, self.guard(c), self.block(c.body)) for c in stmt.cases]
                return [placed(ast.Match(self.expression(stmt.subject), cases), stmt)]
            case ast.FunctionDef():
                inner = self.whole.function(stmt, frozenset(self.variables))
                inner.decorator_list = [self.expression(d) for d in inner.decorator_list]
                return [inner]
            case ast.AsyncFunctionDef() | ast.ClassDef():
                return [stmt]
            case ast.Assert():
                message = [self.thunk(stmt.msg)] if stmt.msg else []
                return [self.call_statement("assert_stmt", [self.expression(stmt.test), *message], stmt)]
            case ast.Raise(exc=ast.expr() as error):
                args = [self.expression(error), *([ast.Constant(True)] if self.caught else [])]
                return [placed(ast.Raise(self.operator("raised", args, error), stmt.cause), stmt)]
            case ast.AugAssign():
                return [self.augmented(stmt)]
            case ast.Assign():
                return self.assign(stmt)
            case ast.Expr(value=ast.Call() as call) if array_written(stmt) in self.locals:
                return [self.write_array(call, stmt)]
        return [self.expressions.visit(stmt)]

    def guard(self, case: ast.match_case) -> ast.expr | None:
        """Rewrite a guard that stays a guard. It reads names of the pattern, so functions for it cannot be defined before the statement."""
        before, self.hoists = self.hoists, False
        try:
            return self.expression(case.guard) if case.guard is not None else None
        finally:
            self.hoists = before

    def if_(self, stmt: ast.If) -> list[ast.stmt]:
        usage = Usage.of([*stmt.body, *stmt.orelse])
        changed = self.changed(usage)
        aliases = self.aliases(usage, stmt, changed)
        after = self.live.of[stmt].after | self.lasting(usage)
        then = self.new_function("then", [], changed | aliases, self.block(stmt.body), stmt.body[0])
        other = self.new_function("else", [], changed, self.block(stmt.orelse), stmt.orelse[0] if stmt.orelse else stmt)
        test = self.expression(stmt.test)
        names = [self.whole.names(changed & after), self.whole.names(changed - after)]
        call = self.call_statement("if_stmt", [test, load(then.name), load(other.name), *trimmed(names)], stmt, stmt.test)
        returns = [name for name, leaves in zip(("then", "else"), self.returns.get(stmt, ()), strict=False) if leaves]
        if len(returns) == 1 and changed & after & self.rebound:
            keyword(call, "returns", ast.Constant(returns[0]))
        self.add_hidden_names(call, usage, changed & after & self.ending, aliases)
        return [then, other, call]

    def while_(self, stmt: ast.While) -> list[ast.stmt]:
        usage = Usage.of(stmt.body)
        changed = self.changed(usage)
        returns: list[ast.stmt] = [placed(ast.Return(self.expression(stmt.test)), stmt.test)]
        test = self.new_function("test", [], set(), returns, stmt.test)
        body = self.new_function("body", [], changed | self.aliases(usage, stmt, changed), self.body_of(stmt), stmt.body[0])
        return [test, body, self.loop_call("while_stmt", [load(test.name), load(body.name)], stmt, stmt.test, changed, usage)]

    def for_(self, stmt: ast.For) -> list[ast.stmt]:
        usage = Usage.of([*stmt.body, stmt.target])
        changed = self.changed(usage)
        item = self.whole.fresh("item")
        start: list[ast.stmt] = self.assign(placed(ast.Assign([stmt.target], load(item)), stmt.target))
        aliases = self.aliases(usage, stmt, changed)
        body = self.new_function("body", [item], changed | aliases, [*start, *self.body_of(stmt)], stmt.body[0])
        return [body, self.loop_call("for_stmt", [self.expression(stmt.iter), load(body.name)], stmt, stmt.iter, changed, usage)]

    def body_of(self, stmt: ast.While | ast.For) -> list[ast.stmt]:
        around, self.ending = self.ending, self.ending | self.ends.get(stmt, set())
        try:
            return self.block(stmt.body)
        finally:
            self.ending = around

    def loop_call(
        self, operator: str, args: list[ast.expr], stmt: ast.While | ast.For, end: ast.expr, changed: set[str], usage: Usage
    ) -> ast.Expr:
        live = self.live.of[stmt]
        carried = changed & (live.head | self.lasting(usage))
        fresh = changed & live.after - carried
        names = [self.whole.names(carried), self.whole.names(fresh), self.whole.names(changed - carried - fresh)]
        call = self.call_statement(operator, [*args, *trimmed(names)], stmt, end)
        if stmt in self.stops:
            keyword(call, "stop", ast.Constant(self.stops[stmt]))
        if usage.outside or stmt in self.whole.unrolled:
            keyword(call, "roll", ast.Constant(False))
        if inner := carried - live.after - self.lasting(usage):
            keyword(call, "inner", self.whole.names(inner))
        if isinstance(stmt, ast.For) and stmt in self.stops and isinstance(stmt.iter, ast.Name | ast.Attribute | ast.Subscript):
            keyword(call, "held", ast.Constant(True))
        self.add_hidden_names(
            call, usage, (carried | fresh) & (self.ending | self.ends.get(stmt, set())), self.aliases(usage, stmt, changed)
        )
        return call

    def add_hidden_names(self, call: ast.Expr, usage: Usage, optional: set[str], aliases: set[str]) -> None:
        """Add to the call the unmodified parameters that the statement appends to, and the names that may have no value yet.

        `aliases` are variables that may hold an object that the statement changes in place.
        """
        arguments = (usage.appends & self.arguments) - self.rebound
        for name, variables in (("arguments", arguments), ("optional", optional), ("aliases", aliases)):
            if variables:
                keyword(call, name, self.whole.names(variables))

    def assign(self, stmt: ast.Assign) -> list[ast.stmt]:
        """Rewrite `a[key] = value` on a local name, which gets a new array if the old one cannot be written; leave others unchanged."""
        if not any(self.writes_item(t) for target in stmt.targets for t in ast.walk(target)):
            return [self.expressions.visit(stmt)]
        if len(stmt.targets) == 1 and self.writes_item(stmt.targets[0]):
            return [self.set_item(stmt.targets[0], self.expression(stmt.value), stmt)]
        value = self.whole.fresh("value")
        out: list[ast.stmt] = [placed(ast.Assign([store(value)], self.expression(stmt.value)), stmt)]
        for target in stmt.targets:
            out += self.unpack(target, load(value), stmt)
        return out

    def unpack(self, target: ast.expr, value: ast.expr, stmt: ast.stmt) -> list[ast.stmt]:
        if self.writes_item(target):
            return [self.set_item(target, value, stmt)]
        if not isinstance(target, ast.Tuple | ast.List) or any(isinstance(t, ast.Starred) for t in target.elts):
            return [placed(ast.Assign([self.expressions.visit(target)], value), stmt)]
        parts = [self.whole.fresh("part") for _ in target.elts]
        out: list[ast.stmt] = [placed(ast.Assign([ast.Tuple([store(p) for p in parts], ast.Store())], value), stmt)]
        for part, inner in zip(parts, target.elts, strict=True):
            out += self.unpack(inner, load(part), stmt)
        return out

    def writes_item(self, target: ast.AST) -> bool:
        return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id in self.locals

    def set_item(self, target: ast.expr, value: ast.expr, stmt: ast.stmt) -> ast.stmt:
        assert isinstance(target, ast.Subscript)
        assert isinstance(target.value, ast.Name)
        name = target.value.id
        args = [load(name), subscript(self.expression(target.slice)), value]
        return self.write("set_item", name, args, stmt)

    def write_array(self, call: ast.Call, stmt: ast.stmt) -> ast.stmt:
        name = array_written(stmt)
        assert name is not None
        is_output = output(stmt) is not None
        args = ast.Tuple([self.expression(arg) for arg in (call.args if is_output else call.args[1:])], ast.Load())
        keywords = [k for k in call.keywords if not (is_output and k.arg == "out")]
        names: list[ast.expr | None] = [None if k.arg is None else ast.Constant(k.arg) for k in keywords]
        options = ast.Dict(names, [self.expression(k.value) for k in keywords])
        return self.write("write_out" if is_output else "write_array", name, [load(name), self.expression(call.func), args, options], stmt)

    def write(self, operator: str, name: str, args: list[ast.expr], stmt: ast.stmt) -> ast.stmt:
        """Rewrite a write to an item of a variable, passing on which variables it must not affect.

        These are the caller, if the variable is an unmodified parameter, and other variables that are read later.
        """
        call = self.operator(operator, args, stmt)
        if name in self.arguments and name not in self.rebound:
            call.keywords.append(placed(ast.keyword("argument", ast.Constant(name)), stmt))
        self.add_aliases(call, name, stmt)
        return placed(ast.Assign([store(name)], call), stmt)

    def add_aliases(self, call: ast.Call, name: str, stmt: ast.stmt) -> None:
        """Add to the call the other variables that may hold the same array and are read later."""
        later = self.live.of[stmt].after if stmt in self.live.of else frozenset()
        others = later & self.locals & self.related.get(name, set()) - {name}
        if others:
            values: list[ast.expr] = [self.thunk(placed(load(other), stmt)) for other in sorted(others)]
            call.keywords.append(placed(ast.keyword("others", ast.Tuple(values, ast.Load())), stmt))

    def augmented(self, stmt: ast.AugAssign) -> ast.stmt:
        operator = AUGMENTED[type(stmt.op)]
        value = self.expression(stmt.value)
        match stmt.target:
            case ast.Name(id=name) if name not in self.globals:
                update = self.operator(operator, [load(name), value], stmt)
                if name in self.arguments and name not in self.assigned:
                    update.keywords.append(placed(ast.keyword("argument", ast.Constant(name)), stmt))
                self.add_aliases(update, name, stmt)
                return placed(ast.Assign([store(name)], update), stmt)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.locals:
                args = [load(name), subscript(self.expression(stmt.target.slice)), self.ag(operator, stmt), value]
                return self.write("update_item", name, args, stmt)
        return placed(ast.AugAssign(self.expressions.visit(stmt.target), stmt.op, value), stmt)

    # ---- new nodes

    def changed(self, usage: Usage) -> set[str]:
        """Return the names that a piece of the function may change: variables, globals, and attributes of objects that existed before."""
        names = usage.binds & (self.variables | self.globals) | usage.changes
        return names | {path for path in usage.attributes if path.partition(".")[0] not in usage.binds}

    def aliases(self, usage: Usage, stmt: ast.stmt, changed: set[str]) -> set[str]:
        """Return variables that are read later and may hold an object that the statement changes in place, directly or by a call."""
        found = set().union(*(self.related.get(name, set()) for name in usage.reads))
        return (found & self.locals & self.live.of[stmt].after) - changed

    def lasting(self, usage: Usage) -> set[str]:
        """Return the names whose changes are visible outside: globals, attributes, and variables with objects changed in place."""
        return (usage.changes - usage.binds) | usage.attributes | self.globals

    def new_function(self, base: str, args: list[str], changed: set[str], body: list[ast.stmt], at: ast.AST) -> ast.FunctionDef:
        head: list[ast.stmt] = []
        own = sorted(changed & self.variables)
        if own:
            head.append(ast.Nonlocal(own))
            self.declared.update(own)
        outer = sorted(changed & self.globals)
        if outer:
            head.append(ast.Global(outer))
        arguments = ast.arguments([], [ast.arg(a) for a in args], None, [], [], None, [])
        name = self.whole.fresh(base)
        return placed(with_type_params(ast.FunctionDef(name, arguments, [*head, *(body or [ast.Pass()])], [], None)), at)

    def expression(self, node: ast.expr) -> ast.expr:
        out: ast.expr = self.expressions.visit(node)
        return out

    def thunk(self, node: ast.expr) -> ast.expr:
        nothing = ast.arguments([], [], None, [], [], None, [])
        return placed(ast.Lambda(nothing, self.expression(node)), node)

    def ag(self, name: str, at: ast.AST) -> ast.expr:
        """Return an operator located at the first line of the code it replaces: a traceback marks the line where a method's name ends."""
        out: ast.Attribute = placed(ast.Attribute(load(AG), name, ast.Load()), at)
        out.end_lineno, out.end_col_offset = out.lineno, out.col_offset
        return out

    def operator(self, name: str, args: list[ast.expr], at: ast.AST) -> ast.Call:
        return placed(ast.Call(self.ag(name, at), args, []), at)

    def call_statement(self, name: str, args: list[ast.expr], stmt: ast.stmt, end: ast.expr | None = None) -> ast.Expr:
        """Return a call located at a statement's first line: a traceback then marks its head, not the whole body."""
        head = ast.Pass(lineno=stmt.lineno, col_offset=stmt.col_offset, end_lineno=stmt.end_lineno, end_col_offset=stmt.end_col_offset)
        if end is not None:
            head.end_lineno, head.end_col_offset = end.end_lineno, end.end_col_offset
        return placed(ast.Expr(self.operator(name, args, head)), head)


class GeneratorRewriter(FunctionRewriter):
    """Rewrites a generator, which yields items on demand: its statements stay Python's, and cannot depend on traced values."""

    def rewritten(self) -> ast.FunctionDef:
        self.hoists = False
        body = [new for stmt in self.node.body for new in self.plain(stmt)]
        return self.defined(body)

    def plain(self, stmt: ast.stmt) -> list[ast.stmt]:
        """Rewrite the expressions of a statement and of the statements nested in it."""
        if isinstance(stmt, ast.FunctionDef):
            return self.statement(stmt)
        if isinstance(stmt, ast.AsyncFunctionDef | ast.ClassDef):
            return [stmt]
        inner = {id(block): [new for s in block for new in self.plain(s)] for block in blocks(stmt)}
        for node in (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
            for name, value in ast.iter_fields(node):
                if isinstance(value, list) and id(value) in inner:
                    setattr(node, name, inner[id(value)])
                elif isinstance(value, ast.expr):
                    setattr(node, name, self.expression(value))
                elif isinstance(value, list) and name not in ("handlers", "cases"):
                    setattr(node, name, [self.expressions.visit(v) if isinstance(v, ast.AST) else v for v in value])
        return [stmt]


def yields(function: ast.FunctionDef) -> bool:
    """Whether a function is a generator."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            todo += children(node)
    return False


def keyword(statement: ast.Expr, name: str, value: ast.expr) -> None:
    assert isinstance(statement.value, ast.Call)
    statement.value.keywords.append(placed(ast.keyword(name, value), statement))


def trimmed(tuples: list[ast.expr]) -> list[ast.expr]:
    """Remove trailing empty tuples, which are the defaults."""
    while tuples and isinstance(tuples[-1], ast.Tuple) and not tuples[-1].elts:
        tuples.pop()
    return tuples


def is_text(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant) and isinstance(stmt.value.value, str)
