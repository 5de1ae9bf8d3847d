"""Rewriting of expressions: those that branch, and calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .names import SCOPED, Usage, dotted_path, parameters
from .placing import load, placed, store, with_type_params

if TYPE_CHECKING:
    from .rewrite import FunctionRewriter

AG = "ag__"  # the name of the operators in rewritten code
# functions whose result nothing else refers to, as `out=np.zeros(3)`
NEW = [[name] for name in ("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like")]
EAGER = frozenset({"sum", "min", "max", "list", "tuple", "sorted"})
LISTS = (ast.List, ast.Tuple, ast.ListComp)
COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in",
}  # fmt: skip


ORDERED = frozenset({"<", "<=", ">", ">=", "==", "!="})
SIGNS: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


class Expressions(ast.NodeTransformer):
    """Rewrites expressions that branch, and calls."""

    def __init__(self, function: FunctionRewriter) -> None:
        self.function = function
        self.bound: set[str] = set()  # by enclosing lambdas and comprehensions

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:  # noqa: N802
        """Rewrite a comprehension with a filter as a loop that contains a branch, since the filter may depend on traced values."""
        inner = Usage.of(node)
        filtered = any(generator.ifs for generator in node.generators) and not any(g.is_async for g in node.generators)
        if not filtered or not self.function.hoists or inner.binds or inner.reads & self.bound or binds([node]):
            return self.comprehension(node)
        return self.filtered(node)

    def filtered(self, node: ast.ListComp) -> ast.expr:
        whole = self.function.whole
        out, name = whole.fresh("list"), whole.fresh("listcomp")
        append = placed(ast.Attribute(load(out), "append", ast.Load()), node.elt)
        body: list[ast.stmt] = [placed(ast.Expr(ast.Call(append, [node.elt], [])), node.elt)]
        for generator in reversed(node.generators):
            for test in reversed(generator.ifs):
                body = [placed(ast.If(test, body, []), test)]
            loop = placed(ast.For(generator.target, generator.iter, body, []), generator.iter)
            whole.unrolled.add(loop)
            body = [loop]
        first: list[ast.stmt] = [placed(ast.Assign([store(out)], ast.List([], ast.Load())), node)]
        last: list[ast.stmt] = [placed(ast.Return(load(out)), node)]
        nothing = ast.arguments([], [], None, [], [], None, [])
        made = placed(with_type_params(ast.FunctionDef(name, nothing, [*first, *body, *last], [], None)), node)
        self.function.hoisted.append(whole.function(made, frozenset(self.function.variables)))
        return placed(ast.Call(load(name), [], []), node)

    def comprehension(self, node: Any) -> ast.expr:
        before, self.bound = self.bound, self.bound | set().union(*(Usage.of(g.target).binds for g in node.generators))
        try:
            return self.visited(node)
        finally:
            self.bound = before

    visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # noqa: N802 - the name that ast gives it
        if binds(node.values[1:]):
            return self.visited(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        first, *rest = node.values
        return self.function.operator(name, [self.visit(first), *map(self.function.thunk, rest)], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        if isinstance(node.op, ast.Not):
            return self.function.operator("not_", [self.visit(node.operand)], node)
        if isinstance(node.operand, ast.Constant):
            return node
        return self.function.operator("unary", [ast.Constant(SIGNS[type(node.op)]), self.visit(node.operand)], node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:  # noqa: N802
        member = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        identity = any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) and any(map(is_bool, [node.left, *node.comparators]))
        if (len(node.ops) == 1 and not member and not identity) or binds(node.comparators):
            new = self.visited(node)
            symbol = COMPARED[type(node.ops[0])]
            if len(node.ops) > 1 or symbol not in ORDERED:
                return new
            assert isinstance(new, ast.Compare)
            return self.function.operator("compared", [ast.Constant(symbol), new.left, *new.comparators], node)
        args: list[ast.expr] = [self.visit(node.left)]
        for op, right in zip(node.ops, node.comparators, strict=True):
            args += [ast.Constant(COMPARED[type(op)]), self.function.thunk(right)]
        return self.function.operator("compare", args, node)

    def visit_Matches(self, node: ast.Compare) -> ast.expr:  # noqa: N802
        return self.function.operator("matches", [self.visit(node.left), self.visit(node.comparators[0])], node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:  # noqa: N802
        if binds([node.body, node.orelse]):
            return self.visited(node)
        args = [self.visit(node.test), self.function.thunk(node.body), self.function.thunk(node.orelse)]
        return self.function.operator("if_exp", args, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802
        function = self.function
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp(elt=item, generators=generators) as items]) if name in EAGER:
                if any(generator.ifs for generator in generators):  # the function processes all items at once
                    node.args = [placed(ast.ListComp(item, generators), items)]
        writes_to_new = any(
            k.arg == "out" and isinstance(k.value, ast.Call) and dotted_path(k.value.func)[-1:] in NEW for k in node.keywords
        )
        path, called = dotted_path(node.func), node.func
        if isinstance(called, ast.Attribute):  # a method: it is the call that is rewritten
            called.value, node.func = self.visit(called.value), ast.Constant(None)
        new = self.visited(node)
        assert isinstance(new, ast.Call)
        new.func = called if isinstance(called, ast.Attribute) else new.func
        if len(path) == 1 and path[0] in SCOPED and path[0] not in function.variables and len(node.args) <= SCOPED[path[0]]:
            return self.scoped(path[0], new)
        if writes_to_new:
            new.func = function.operator("fresh_out", [new.func], node.func)
            return new
        if path == ["super"] and not node.args:
            first = next(iter(parameters(function.node.args)), None)
            new.args = [placed(load("__class__"), node), placed(load(first), node)] if first else []
            return new
        lists = any(isinstance(arg, LISTS) or (isinstance(arg, ast.Name) and arg.id in function.appended) for arg in node.args)
        if path and path[0] not in function.variables and function.whole.plain(path[0], path[1:]) and not lists:
            return new
        new.func = function.operator("callee", [new.func], node.func)
        return new

    def scoped(self, name: str, call: ast.Call) -> ast.expr:
        """Rewrite `locals()` and similar, which refer to the variables of the original function wherever they are called in it."""
        read = {v: self.function.thunk(placed(load(v), call)) for v in sorted(self.function.own)}
        found = self.function.operator("variables", [ast.Tuple([ast.Constant(v), thunk], ast.Load()) for v, thunk in read.items()], call)
        if name in ("eval", "exec"):
            call.args += [placed(ast.Call(load("globals"), [], []), call), found]
            return call
        return placed(ast.Call(load("sorted"), [found], []), call) if name == "dir" else found

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:  # noqa: N802
        """Rewrite indexing: the index of an array or list that is not traced may be traced."""
        new = self.visited(node)
        assert isinstance(new, ast.Subscript)
        if not isinstance(node.ctx, ast.Load):
            return new
        return self.function.operator("get_item", [new.value, subscript(new.slice)], node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:  # noqa: N802
        new = self.visited(node)
        if (
            isinstance(new, ast.BinOp)
            and isinstance(new.op, ast.Mod)
            and isinstance(new.left, ast.Constant)
            and isinstance(new.left.value, str)
        ):
            return self.function.operator("percent", [new.left, new.right], node)
        assert isinstance(new, ast.BinOp)
        return self.function.operator("binary", [ast.Constant(SYMBOLS[type(new.op)]), new.left, new.right], node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802
        """Rewrite an attribute that is read: it may be a property. Private names are mangled by Python, and stay as they are."""
        path, private = dotted_path(node), node.attr.startswith("__") and not node.attr.endswith("__")
        known = path and path[0] not in self.function.variables and self.function.whole.plain(path[0], path[1:])
        new = self.visited(node)
        if not isinstance(node.ctx, ast.Load) or private or known:
            return new
        assert isinstance(new, ast.Attribute)
        return self.function.operator("attribute", [new.value, ast.Constant(new.attr)], node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:  # noqa: N802
        """Rewrite an f-string; nested formats are left to Python."""
        if any(isinstance(n, ast.JoinedStr) and any(isinstance(v, ast.FormattedValue) for v in n.values) for n in formats(node)):
            return self.visited(node)
        parts: list[ast.expr] = []
        for part in node.values:
            if not isinstance(part, ast.FormattedValue):
                parts.append(part)
                continue
            spec = "".join(v.value for v in part.format_spec.values) if isinstance(part.format_spec, ast.JoinedStr) else ""  # type: ignore[attr-defined]
            conversion = chr(part.conversion) if part.conversion > 0 else ""
            parts.append(ast.Tuple([self.visit(part.value), ast.Constant(conversion), ast.Constant(spec)], ast.Load()))
        return self.function.operator("text", parts, node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:  # noqa: N802
        before, self.bound = self.bound, self.bound | set(parameters(node.args))
        try:
            return self.visited(node)
        finally:
            self.bound = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:  # noqa: N802
        return node

    def visited(self, node: ast.expr) -> ast.expr:
        out = self.generic_visit(node)
        assert isinstance(out, ast.expr)
        return out


def formats(node: ast.JoinedStr) -> list[ast.expr]:
    """Return the formats of an f-string's values."""
    return [part.format_spec for part in node.values if isinstance(part, ast.FormattedValue) and part.format_spec is not None]


def is_bool(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def binds(nodes: Sequence[ast.expr]) -> bool:
    """Whether moving expressions into a new function would change their meaning."""
    return any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for node in nodes for n in ast.walk(node))


def subscript(node: ast.expr) -> ast.expr:
    """Return the contents of the brackets as an expression: `1:n` becomes slice(1, n)."""
    match node:
        case ast.Slice():
            parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
            return placed(ast.Call(placed(ast.Attribute(load(AG), "slice", ast.Load()), node), list(parts), []), node)
        case ast.Tuple():
            return placed(ast.Tuple([subscript(e) for e in node.elts], ast.Load()), node)
    return node
