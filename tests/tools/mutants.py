"""Mutants of a source file: the same program with one small mistake in one function.

A mutant replaces an operator, negates a condition, shifts a constant, swaps the arms of a choice, or drops a call. What only
reports errors (`raise`, `assert`, `zip(…, strict=True)`), annotations and default arguments stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """One mistake in one function."""

    path: Path
    function: str
    first_line: int  # of the function, decorators included, as its code object has it
    line: int
    what: str
    number: int  # among the mutants of the file

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function}: {self.what}"

    @property
    def text(self) -> str:
        """The line that is changed, as it is written."""
        return self.path.read_text(encoding="utf-8").splitlines()[self.line - 1].strip()

    def code(self, changed: bool = True) -> CodeType:
        """The function, compiled with the mistake or, as a control, without."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        changes = (node for _, function in _functions(tree.body, "") for node in _candidates(function) for _ in _changes_once(node))
        if changed:
            next(islice(changes, self.number, None))  # made in `tree`, and not undone, since the generator is not resumed
        return next(code for code in _codes(compile(tree, str(self.path), "exec")) if code.co_firstlineno == self.first_line)


def mutants(path: Path, chosen: Callable[[str], bool]) -> Iterator[Mutant]:
    """All mutants of the functions whose qualified name is `chosen`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    number = 0
    for name, function in _functions(tree.body, ""):
        first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        for node in _candidates(function):
            for what in _changes_once(node):
                if chosen(name):
                    yield Mutant(path, name, first, _line(node), what, number)
                number += 1


def _line(node: ast.AST) -> int:
    line: int = (node.target if isinstance(node, ast.comprehension) else node).lineno  # type: ignore[attr-defined]
    return line


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions of a module and methods of its classes; functions inside functions belong to those."""
    for node in body:
        if isinstance(node, FUNCTIONS):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")


def _candidates(function: ast.AST) -> Iterator[ast.AST]:
    """Every node of a function's body that affects its result."""
    stack: list[ast.AST] = list(reversed(function.body))  # type: ignore[attr-defined]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue
        yield node
        skipped = {"annotation", "returns", "args", "decorator_list"} if isinstance(node, (*FUNCTIONS, ast.AnnAssign)) else set()
        fields = (value for name, value in ast.iter_fields(node) if name not in skipped)
        children = (child for value in fields for child in (value if isinstance(value, list) else [value]))
        stack += reversed([child for child in children if isinstance(child, ast.AST)])


def _changes_once(node: ast.AST) -> Iterator[str]:
    """Make each change of a node in turn, and undo it before the next."""
    for what, undo in _changes(node):
        yield what
        undo()


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Make each change of a node in turn; the caller undoes it before the next."""
    match node:
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in SWAPPED:
            yield _set(node, "op", SWAPPED[type(node.op)]())
        case ast.Compare() if type(node.ops[0]) in SWAPPED:
            yield _set(node, "ops", [SWAPPED[type(node.ops[0])](), *node.ops[1:]])
        case ast.UnaryOp(op=ast.USub()):
            yield _set(node, "op", ast.UAdd())
        case ast.UnaryOp(op=ast.Not()):
            yield _set(node, "operand", ast.copy_location(ast.UnaryOp(ast.Not(), node.operand), node.operand))
        case ast.If() | ast.While() | ast.IfExp():
            yield _set(node, "test", ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test), "negate the condition")
        case ast.comprehension() if node.ifs:
            yield _set(node, "ifs", node.ifs[1:], "drop the filter")
        case ast.Constant(value=bool()):
            yield _set(node, "value", not node.value)
        case ast.Constant(value=int() | float()):
            yield _set(node, "value", node.value + 1)
        case ast.Expr(value=ast.Call()):
            yield _set(node, "value", ast.copy_location(ast.Constant(None), node), "drop the call")


def _set(node: ast.AST, field: str, value: object, what: str = "") -> tuple[str, Callable[[], None]]:
    before = getattr(node, field)
    said = ast.unparse(node) if not isinstance(node, ast.stmt | ast.comprehension) else what
    setattr(node, field, value)
    after = ast.unparse(ast.fix_missing_locations(node)) if not isinstance(node, ast.stmt | ast.comprehension) else ""
    return (f"{said} -> {after}" if after else what or type(node).__name__), lambda: setattr(node, field, before)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
