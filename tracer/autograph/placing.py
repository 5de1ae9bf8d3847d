"""New nodes of a syntax tree, at the source location of old ones."""

from __future__ import annotations

import ast
from typing import TypeVar

from .names import children

N = TypeVar("N", bound=ast.AST)
D = TypeVar("D", ast.FunctionDef, ast.ClassDef)


def placed(node: N, at: ast.AST) -> N:
    """Give `node`, and every node in it without a location, the source location of `at`."""
    place = {name: getattr(at, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
    todo: list[ast.AST] = [node]
    while todo:
        found = todo.pop()
        if "lineno" in found._attributes:
            if hasattr(found, "lineno"):
                continue
            for name, value in place.items():
                setattr(found, name, value)
        todo.extend(children(found))
    return node


def with_type_params(node: D) -> D:
    """Set `type_params`, which Python 3.12 requires and earlier versions lack."""
    if "type_params" in node._fields:
        node.type_params = getattr(node, "type_params", [])  # type: ignore[attr-defined]
    return node


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())
