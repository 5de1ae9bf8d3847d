"""Which variables of a function may hold the same array, or views of one: a write to one of them checks the others."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .names import Usage, children, statements

FRESH = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.JoinedStr, ast.Lambda)  # expressions that create a new object


def related_names(body: Sequence[ast.stmt]) -> dict[str, set[str]]:
    """Map each name to those connected to it by assignments (including itself, if there are any)."""
    groups: dict[str, set[str]] = {}
    for stmt in statements(body):
        names = connected(stmt)
        group = names.union(*(groups.get(name, ()) for name in names))
        for name in group:
            groups[name] = group
    return groups


def connected(stmt: ast.stmt) -> set[str]:
    """Return the names that may share an array after a statement."""
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
    """Return the names whose arrays the value of an expression may hold."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Subscript(value=value):
            return held(value)
    if isinstance(node, FRESH):
        return set()
    return set().union(*map(held, children(node)))
