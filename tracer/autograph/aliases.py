"""Which variables of a function may hold the same array, or views on one: what a write to one of them must ask about."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .names import Usage, children, statements

FRESH = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.JoinedStr, ast.Lambda)  # expressions that give an object of their own


def related_names(body: Sequence[ast.stmt]) -> dict[str, set[str]]:
    """For each name, those that some chain of assignments connects it with (itself is one of them, where there are any)."""
    groups: dict[str, set[str]] = {}
    for stmt in statements(body):
        names = connected(stmt)
        group = names.union(*(groups.get(name, ()) for name in names))
        for name in group:
            groups[name] = group
    return groups


def connected(stmt: ast.stmt) -> set[str]:
    """The names that a statement may leave with a common array."""
    match stmt:
        case ast.Assign(targets=targets, value=value):
            return Usage.of(targets).binds | held(value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return Usage.of(target).binds | held(value)
        case ast.For(target=target, iter=value):
            return Usage.of(target).binds | held(value)
        case ast.Expr(value=ast.Call() as value):  # items.append(y)
            return held(value)
    return set()


def held(node: ast.AST) -> set[str]:
    """The names whose arrays the value of an expression may hold."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Subscript(value=value):
            return held(value)
    if isinstance(node, FRESH):
        return set()
    return set().union(*map(held, children(node)))
