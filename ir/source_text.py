"""Python text of expressions and simple statements, as `ruff format` leaves it.

Owns the templates that ops write themselves with, the unparser (astunparse, with parentheses only where they are needed), and the layout of
lines that are too long. Knows nothing of the IR.
"""

from __future__ import annotations

import ast
import copy
import io
from functools import lru_cache
from typing import Any

from astunparse.unparser import Unparser

WIDTH = 88  # ruff's default

PRECEDENCE: dict[type[ast.AST], int] = {
    ast.BitOr: 5, ast.BitXor: 6, ast.BitAnd: 7, ast.LShift: 8, ast.RShift: 8,
    ast.Add: 9, ast.Sub: 9, ast.Mult: 10, ast.Div: 10, ast.FloorDiv: 10, ast.Mod: 10, ast.MatMult: 10,
}  # fmt: skip
COMPARE, NOT, UNARY, ATOM = 4, 3, 11, 13


class ExpressionPrinter(Unparser):  # type: ignore[misc]
    """Expressions with no more parentheses than Python needs."""

    def wrapped(self, node: ast.expr, least: int) -> None:
        if precedence(node) < least:
            self.write("(")
            self.dispatch(node)
            self.write(")")
        else:
            self.dispatch(node)

    def _BinOp(self, t: ast.BinOp) -> None:  # noqa: N802 - astunparse's names
        level = PRECEDENCE[type(t.op)]
        self.wrapped(t.left, level)
        self.write(f" {self.binop[t.op.__class__.__name__]} ")
        self.wrapped(t.right, level + 1)

    def _UnaryOp(self, t: ast.UnaryOp) -> None:  # noqa: N802
        level = NOT if isinstance(t.op, ast.Not) else UNARY
        self.write("not " if isinstance(t.op, ast.Not) else self.unop[t.op.__class__.__name__])
        self.wrapped(t.operand, level)

    def _Compare(self, t: ast.Compare) -> None:  # noqa: N802
        self.wrapped(t.left, COMPARE + 1)
        for op, right in zip(t.ops, t.comparators):
            self.write(f" {self.cmpops[op.__class__.__name__]} ")
            self.wrapped(right, COMPARE + 1)

    def _Attribute(self, t: ast.Attribute) -> None:  # noqa: N802
        self.wrapped(t.value, ATOM)
        self.write(f".{t.attr}")

    def _Subscript(self, t: ast.Subscript) -> None:  # noqa: N802
        self.wrapped(t.value, ATOM)
        self.write("[")
        if isinstance(t.slice, ast.Tuple) and len(t.slice.elts) > 1:
            self.listed(t.slice.elts)
        else:
            self.dispatch(t.slice)
        self.write("]")

    def _Tuple(self, t: ast.Tuple) -> None:  # noqa: N802
        self.write("(")
        self.listed(t.elts)
        self.write(",)" if len(t.elts) == 1 else ")")

    def listed(self, nodes: list[ast.expr]) -> None:
        for i, node in enumerate(nodes):
            self.write(", " if i else "")
            self.dispatch(node)

    def _Constant(self, t: ast.Constant) -> None:  # noqa: N802
        self.write(quoted(t.value) if isinstance(t.value, str) else "..." if t.value is ... else repr(t.value).replace("e+", "e"))


def precedence(node: ast.expr) -> int:
    if isinstance(node, ast.BinOp):
        return PRECEDENCE[type(node.op)]
    if isinstance(node, ast.UnaryOp):
        return NOT if isinstance(node.op, ast.Not) else UNARY
    if isinstance(node, ast.Compare):
        return COMPARE
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return ATOM - 1  # `1.0.real` needs parentheses
    return ATOM


def quoted(text: str) -> str:
    """A string literal, in the quotes that need fewer escapes, and double ones in doubt."""
    body = "".join(c if c in "'\"" else repr(c)[1:-1] for c in text)
    if text.count('"') > text.count("'"):
        return "'" + body.replace("'", "\\'") + "'"
    return '"' + body.replace('"', '\\"') + '"'


def unparse(node: ast.AST) -> str:
    out = io.StringIO()
    ExpressionPrinter(node, file=out)
    return out.getvalue().strip()


# ---- templates


@lru_cache(maxsize=1024)
def _parsed(template: str, count: int) -> tuple[ast.expr, frozenset[str]]:
    tree = ast.parse(template.format(*(f"__{i}" for i in range(count))), mode="eval").body
    return tree, frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not n.id.startswith("__"))


def names_in(template: str, count: int) -> frozenset[str]:
    """The names that a template uses besides its operands."""
    return _parsed(template, count)[1]


class _Filling(ast.NodeTransformer):
    def __init__(self, nodes: tuple[ast.expr, ...]) -> None:
        self.nodes = nodes

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802 - ast's name
        return self.nodes[int(node.id[2:])] if node.id.startswith("__") else node

    def visit_Subscript(self, node: ast.Subscript) -> Any:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 1:  # x[(i,)] selects what x[i] does
            node.slice = node.slice.elts[0]
        return node


def fill(template: str, *nodes: ast.expr) -> ast.expr:
    """The expression of a template with `{}` for every operand, in order."""
    out: ast.expr = _Filling(nodes).visit(copy.deepcopy(_parsed(template, len(nodes))[0]))
    return out


def literal(value: Any) -> ast.expr:
    """A Python number, string, or tuple or list of them."""
    if isinstance(value, tuple | list):
        kind = ast.Tuple if isinstance(value, tuple) else ast.List
        return kind([literal(v) for v in value], ast.Load())
    if isinstance(value, complex):
        return fill("complex({}, {})", literal(value.real), literal(value.imag))
    if isinstance(value, float) and value != value:
        return fill("np.nan")
    if isinstance(value, float) and abs(value) == float("inf"):
        return fill("np.inf") if value > 0 else fill("-np.inf")
    if isinstance(value, int | float) and not isinstance(value, bool) and repr(value).startswith("-"):
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


# ---- lines


def joined(nodes: list[ast.expr]) -> str:
    return ", ".join(map(unparse, nodes))


def assignment(targets: list[str], value: list[ast.expr], indent: int) -> list[str]:
    """`a, b = x, y`, on as many lines as ruff would use."""
    line = f"{', '.join(targets)} = {joined(value)}"
    if fits(line, indent):
        return [line]
    if len(value) == len(targets) > 1:
        left = ", ".join(targets)
        if fits(f"{left} = (", indent):
            return exploded(f"{left} = (", [unparse(v) for v in value], ")", indent)
    if len(value) == 1:
        return broken(f"{', '.join(targets)} = " if len(targets) == 1 else "", targets, value[0], indent)
    return [f"{line}  # fmt: skip"]


def broken(head: str, targets: list[str], value: ast.expr, indent: int) -> list[str]:
    """An assignment of one long value: a call with its arguments on lines of their own."""
    plain = isinstance(value, ast.Call) and not any(isinstance(n, ast.Call) for n in ast.walk(value.func))  # no chain of methods
    if head and plain and isinstance(value, ast.Call) and fits(f"{head}{unparse(value.func)}(", indent):
        arguments = [unparse(a) for a in value.args] + [f"{k.arg}={unparse(k.value)}" for k in value.keywords]
        return bracketed(f"{head}{unparse(value.func)}(", arguments, ")", indent)
    line = f"{', '.join(targets)} = {unparse(value)}"
    if not head and isinstance(value, ast.Call) and fits(f") = {unparse(value)}", indent):
        return exploded("(", targets, f") = {unparse(value)}", indent)
    return [f"{line}  # fmt: skip"]


def bracketed(head: str, items: list[str], tail: str, indent: int) -> list[str]:
    """The contents of brackets on one line of their own if they fit, else on one line each."""
    line = ", ".join(items)
    if fits(line, indent + 1):
        return [head, f"    {line}", tail]
    return exploded(head, items, tail, indent)


def exploded(head: str, items: list[str], tail: str, indent: int) -> list[str]:
    lines = [f"    {item}," for item in items]
    if all(fits(f"{item},", indent + 1) for item in items):
        return [head, *lines, tail]
    return [f"{head}{', '.join(items)}{tail}  # fmt: skip"]


def returned(value: list[ast.expr], indent: int) -> list[str]:
    line = f"return {joined(value)}".strip()
    if len(value) == 1 and isinstance(value[0], ast.Tuple):
        line = f"return {unparse(value[0])}"
    if fits(line, indent):
        return [line]
    return exploded("return (", [unparse(v) for v in value], ")", indent) if len(value) > 1 else [f"{line}  # fmt: skip"]


def definition(name: str, params: list[str]) -> list[str]:
    line = f"def {name}({', '.join(params)}):"
    return [line] if fits(line, 0) else bracketed(f"def {name}(", params, "):", 0)


def fits(line: str, indent: int) -> bool:
    return len(line) + 4 * indent <= WIDTH
