"""Which names a piece of Python reads, binds and changes in the scope of its function.

Nested functions and comprehensions are separate scopes: only their free variables count as read here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from ..numpy_table import MUTATING

# Methods that change Python's containers in place.
GROWING = ("append", "extend")
CHANGING = ("add", "clear", "discard", "insert", "pop", "popitem", "remove", "reverse", "setdefault", "sort", "update")

SCOPED = {"locals": 0, "vars": 0, "dir": 0, "eval": 1, "exec": 1}  # functions that use the caller's variables -> number of their arguments

Function = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def children(node: ast.AST) -> list[ast.AST]:
    """Return `ast.iter_child_nodes` as a list: most of the time of a conversion is spent here."""
    out: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            out.append(value)
        elif isinstance(value, list):
            out += [item for item in value if isinstance(item, ast.AST)]
    return out


class Usage:
    """Names of one scope. `changes` are names read whose object is changed in place: `a[i] = x`, `a.append(x)`.

    `attributes` are those that are set or changed in place, as dotted paths: `self.h = x`, `self.cache[k] = x`.
    """

    __slots__ = ("reads", "binds", "assigns", "changes", "appends", "attributes", "outside", "declared", "scope")

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.binds: set[str] = set()
        self.assigns: set[str] = set()  # bound, other than by `x += value`
        self.changes: set[str] = set()
        self.appends: set[str] = set()
        self.attributes: set[str] = set()
        self.outside = False  # whether objects change in ways that are not tracked
        self.declared: set[str] = set()  # global and nonlocal
        self.scope = False  # whether all variables may be read, by `locals()` or similar

    @staticmethod
    def of(nodes: ast.AST | Iterable[ast.AST]) -> Usage:
        usage = Usage()
        for node in [nodes] if isinstance(nodes, ast.AST) else nodes:
            usage.visit(node)
        return usage

    def visit(self, node: ast.AST) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            for child in children(node):
                self.visit(child)

    def visit_name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.reads.add(node.id)
        else:
            self.binds.add(node.id)
            self.assigns.add(node.id)

    def visit_augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)
            self.binds.add(node.target.id)
        else:
            self.visit(node.target)
        self.visit(node.value)

    def visit_store(self, node: ast.Subscript | ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.change(node)
        for child in children(node):
            self.visit(child)

    def change(self, node: ast.expr) -> None:
        """Record that the value of an expression is changed in place or (for an attribute) replaced."""
        while isinstance(node, ast.Subscript):
            node = node.value
        path = dotted_path(node)
        if len(path) > 1:
            self.attributes.add(".".join(path))
        elif path:
            self.changes.add(path[0])
        else:
            self.outside = True

    def visit_call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(value=held, attr=method) if method in GROWING or method in CHANGING:
                self.change(held)
                if isinstance(held, ast.Name):
                    self.appends.add(held.id)
                self.outside |= method not in GROWING
            case ast.Name(id=name) if name in SCOPED and len(node.args) <= SCOPED[name]:
                self.scope = True
        for child in children(node):
            self.visit(child)

    def visit_statement(self, node: ast.Expr) -> None:
        written = array_written(node)
        if written is not None:
            self.changes.add(written)
        self.visit(node.value)

    def visit_function(self, node: Function | ast.Lambda) -> None:
        if not isinstance(node, ast.Lambda):
            self.binds.add(node.name)
            for decorator in node.decorator_list:
                self.visit(decorator)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self.reads |= free_names(node)

    def visit_class(self, node: ast.ClassDef) -> None:
        inner = Usage()
        for child in children(node):
            inner.visit(child)
        self.reads |= inner.reads
        self.binds.add(node.name)

    def visit_comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        inner = Usage()
        targets = Usage()
        for generator in node.generators:
            targets.visit(generator.target)
            inner.visit(generator.iter)
            for test in generator.ifs:
                inner.visit(test)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            inner.visit(part)
        self.reads |= inner.reads - targets.binds
        self.binds |= inner.binds  # `:=` binds outside a comprehension
        self.assigns |= inner.assigns
        self.outside |= inner.outside
        self.scope |= inner.scope
        self.changes |= inner.changes - targets.binds
        self.appends |= inner.appends - targets.binds
        self.attributes |= inner.attributes

    def visit_import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.binds.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)

    def visit_named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.binds.add(node.name)
        for child in children(node):
            self.visit(child)

    def visit_mapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.binds.add(node.rest)
        for child in children(node):
            self.visit(child)

    def visit_declaration(self, node: ast.Global | ast.Nonlocal) -> None:
        self.declared.update(node.names)


_HANDLERS: dict[type[ast.AST], Any] = {
    ast.Name: Usage.visit_name, ast.AugAssign: Usage.visit_augmented, ast.Subscript: Usage.visit_store, ast.Attribute: Usage.visit_store,
    ast.Expr: Usage.visit_statement, ast.Call: Usage.visit_call, ast.FunctionDef: Usage.visit_function,
    ast.AsyncFunctionDef: Usage.visit_function, ast.Lambda: Usage.visit_function, ast.ClassDef: Usage.visit_class,
    ast.ListComp: Usage.visit_comprehension, ast.SetComp: Usage.visit_comprehension, ast.DictComp: Usage.visit_comprehension,
    ast.GeneratorExp: Usage.visit_comprehension, ast.Import: Usage.visit_import, ast.ImportFrom: Usage.visit_import,
    ast.ExceptHandler: Usage.visit_named, ast.MatchAs: Usage.visit_named, ast.MatchStar: Usage.visit_named,
    ast.MatchMapping: Usage.visit_mapping, ast.Global: Usage.visit_declaration, ast.Nonlocal: Usage.visit_declaration,
}  # fmt: skip


def dotted_path(node: ast.expr) -> list[str]:
    """Return ["np", "linalg", "norm"] for `np.linalg.norm`; empty if it is not such a path."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def array_written(stmt: ast.stmt) -> str | None:
    """Return the variable that a statement like `np.put(x, i, v)`, `np.add.at(x, i, v)` or `np.add(a, b, out=x)` writes to."""
    out = output(stmt)
    if out is not None:
        return out
    match stmt:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr=method), args=[ast.Name(id=name), *_])):
            return name if method in MUTATING or (method == "at" and isinstance(held, ast.Attribute)) else None
    return None


def output(stmt: ast.stmt) -> str | None:
    """Return the variable that a statement `f(..., out=x)` names."""
    match stmt:
        case ast.Expr(value=ast.Call(keywords=keywords)):
            return next((k.value.id for k in keywords if k.arg == "out" and isinstance(k.value, ast.Name)), None)
    return None


def parameters(args: ast.arguments) -> list[str]:
    every = (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg)
    return [arg.arg for arg in every if arg is not None]


def free_names(node: Function | ast.Lambda) -> set[str]:
    """Return the free variables of a function."""
    usage = Usage.of([node.body] if isinstance(node, ast.Lambda) else node.body)
    own = usage.binds - usage.declared | set(parameters(node.args))
    return (usage.reads | usage.declared) - own


def statements(stmts: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of one scope, including nested blocks, but not those of nested functions and classes."""
    stack = list(stmts)
    while stack:
        stmt = stack.pop()
        yield stmt
        if not isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for block in blocks(stmt):
                stack.extend(block)


def blocks(stmt: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the statement lists nested in a statement."""
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(stmt, name, None)
        if isinstance(inner, list) and inner:
            yield inner
    for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
        yield part.body
