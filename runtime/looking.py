"""How the user's source uses a value that is converted to NumPy or Python: is it only read, and is `float` called explicitly?

Owns the walk from the running frame to the user's line, and the analysis of the expression found there. Without source, the answers are
conservative.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from types import CodeType, ModuleType
from typing import Any

from adjit.ir.location import Location
from adjit.tracer.frames import instruction, user_frame

# Calls that store their arguments: a statement that contains one does more than read.
KEEPING = frozenset({
    "append", "appendleft", "extend", "insert", "add", "update", "setdefault", "fill", "put", "place", "putmask", "copyto", "itemset", "at",
    "__setitem__", "put_along_axis", "fill_diagonal", "assign", "setattr", "send",
})  # fmt: skip
SHOWING = frozenset({"testing", "save", "savez", "savez_compressed", "savetxt"})  # parts of NumPy that write to no array


class Exit:
    """The expression in the user's source where a value is converted to NumPy or Python."""

    def __init__(self) -> None:
        self.frame = user_frame(2)
        self.path = None if self.frame is None else expression(self.frame.f_code, self.frame.f_lasti)

    @property
    def location(self) -> Location | None:
        return None if self.frame is None else instruction(self.frame.f_code, self.frame.f_lasti)[0]

    def only_reads(self) -> bool:
        return self.path is not None and only_reads(self.path) and not self.is_for_numpy()

    def is_statement(self) -> bool:
        """Whether the value is an argument of a call whose result is not used: the call may store the value."""
        return self.path is not None and any(isinstance(node, ast.Expr) for node in self.path)

    def writes(self) -> bool:
        """Whether the value is written to an array."""
        stmt = next((node for node in self.path or [] if isinstance(node, ast.stmt)), None)
        to_item = isinstance(stmt, ast.Assign) and any(isinstance(target, ast.Subscript) for target in stmt.targets)
        return to_item or isinstance(stmt, ast.AugAssign) or self.is_for_numpy()

    def is_for_numpy(self) -> bool:
        """Whether a statement calls a function of NumPy: it would do nothing if it did not write to an array, as with `out=`."""
        for inner, node in pairwise(self.path or []):
            if isinstance(node, ast.Expr) and isinstance(inner, ast.Call) and self.frame is not None:
                if not SHOWING.isdisjoint(n.attr for n in ast.walk(inner.func) if isinstance(n, ast.Attribute)):
                    return False
                name = next((n.id for n in ast.walk(inner.func) if isinstance(n, ast.Name)), "")
                held = self.frame.f_locals.get(name, self.frame.f_globals.get(name))
                module = held.__name__ if isinstance(held, ModuleType) else str(getattr(held, "__module__", None) or type(held).__module__)
                return module.partition(".")[0] == "numpy"
        return False

    def computes(self) -> bool:
        """Whether the number is immediately used in a computation, by an operator or a function of some module (`math.sin(float(x))`)."""
        if self.path is None or self.frame is None:
            return False
        outer = self.path[1]
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and isinstance(outer.func.value, ast.Name):
            return isinstance(self.frame.f_globals.get(outer.func.value.id), ModuleType)
        return isinstance(outer, ast.BinOp | ast.UnaryOp) and not isinstance(getattr(outer, "op", None), ast.Not)

    def names_float(self) -> bool:
        """Whether `float` is called explicitly, rather than by C code that needs a float (`math.sin`)."""
        if self.path is not None:
            return any(isinstance(n, ast.Name) and n.id in ("float", "complex") for n in ast.walk(self.path[0]))
        return self.frame is not None and not {"float", "complex"}.isdisjoint(self.frame.f_code.co_names)


def expression(code: CodeType, offset: int) -> list[ast.AST] | None:
    """Return the expression of an instruction and all that enclose it, innermost first; None if there is no source."""
    span = next((p for i, p in enumerate(code.co_positions()) if i == offset // 2), None)
    tree = parsed(code.co_filename)
    if span is None or tree is None or None in span:
        return None
    line, end_line, column, end_column = span
    start, end = (line, column), (end_line, end_column)
    path: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        path.append(node)
        node = next((child for child in positioned(node) if begin(child) <= start and end <= finish(child)), None)
    return path[::-1] if len(path) > 1 else None


@lru_cache(maxsize=32)
def parsed(filename: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:  # cells with magic commands, templates
        return None


def positioned(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children that have a source position, descending through those that have none (arguments, comprehensions)."""
    for child in ast.iter_child_nodes(node):
        if hasattr(child, "lineno"):
            yield child
        else:
            yield from positioned(child)


def begin(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def finish(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def only_reads(path: list[ast.AST]) -> bool:
    """Whether an expression can only influence what is displayed or which branch the program takes."""
    for inner, node in pairwise(path):
        if isinstance(node, ast.Compare | ast.JoinedStr | ast.Assert | ast.While | ast.If | ast.Raise):
            return True
        if isinstance(node, ast.IfExp) and inner is node.test:
            return True
        if isinstance(node, ast.Lambda):
            return False
        if isinstance(node, ast.Call) and called(node) in KEEPING:
            return False
        if isinstance(node, ast.stmt):
            return isinstance(node, ast.Expr) and not (isinstance(inner, ast.Call) and called(inner) in KEEPING)
    return False


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
