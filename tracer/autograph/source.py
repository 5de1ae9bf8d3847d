"""The source of a function, as a syntax tree with the user's own lines and columns.

The lines are found through the code object, without `inspect`, which reads and tokenises far more than necessary. They are read when a
function is first traced, not when it is imported: in a file edited since, they may belong to another function.
"""

from __future__ import annotations

import ast
import linecache
import os
from copy import deepcopy
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, FunctionType
from typing import Any

from ..frames import LOADED

NOT_FOUND = "its source is not available (typed at a prompt, read from a pipe, or made by exec): put it in a file"
CHANGED = "its source has changed since it was imported: import it again (importlib.reload, or a new start)"


class NoSource(Exception):
    """Raised if a function cannot be converted; the message gives the reason and ends with what to do."""


def lines_of(function: FunctionType) -> list[str]:
    """Return the lines of the file, or notebook cell, that contains a function; empty if there is none."""
    name = function.__code__.co_filename
    # Any number of texts have these names; from Python 3.13 on, `linecache` returns that of `python -c` for all of them.
    return [] if name in ("<string>", "<stdin>") else linecache.getlines(name, function.__globals__)


def parse_function(function: FunctionType, lines: list[str]) -> ast.FunctionDef:
    """Return the definition of a function found in these lines; raises NoSource."""
    code = function.__code__
    first = code.co_firstlineno
    if not 0 < first <= len(lines):
        raise NoSource(NOT_FOUND)
    if code.co_name == "<lambda>":
        return parse_lambda(code, "".join(lines))
    block = block_of(lines, first, last_line(code))
    indented = block[0][:1] in (" ", "\t")
    try:
        # an extra first line encloses an indented definition, so that columns do not change
        tree = ast.parse(("if True:\n" if indented else "") + "".join(block))
    except SyntaxError:
        raise NoSource(CHANGED) from None
    holder = tree.body[0]
    node = holder.body[0] if indented and isinstance(holder, ast.If) else holder
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name or own_parameters(code) != parameters_in_order(node.args):
        raise NoSource(CHANGED)
    ast.increment_lineno(node, first - (2 if indented else 1))
    return node


def parse_lambda(code: CodeType, source: str) -> ast.FunctionDef:
    """Return a lambda as a definition that returns its body. Of several in a line, it is the innermost whose body spans the code."""
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column]
    found = None
    for node in lambdas(source):
        body = node.body
        start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
        if (
            node.lineno == code.co_firstlineno
            and parameters_in_order(node.args) == own_parameters(code)
            and all(start <= place < end for place in places)
        ):
            found = node
    if found is None:
        raise NoSource(CHANGED)
    node = deepcopy(found)  # the cached tree must not be rewritten
    out = ast.FunctionDef("lambda_", node.args, [ast.copy_location(ast.Return(node.body), node.body)], [], None)
    return ast.copy_location(out, node)


@lru_cache(maxsize=16)
def lambdas(source: str) -> tuple[ast.Lambda, ...]:
    """Return all lambdas of a file, outer ones first. The whole file is parsed, since a lambda may begin in the middle of a statement."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        raise NoSource(CHANGED) from None
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Lambda))


def block_of(lines: list[str], first: int, last: int) -> list[str]:
    """Return lines `first` to `last`, and following lines indented deeper than the first: a body may end in statements without code."""
    depth = indentation(lines[first - 1])
    while last < len(lines):
        line = lines[last]
        if line.strip() and not line.lstrip().startswith("#") and indentation(line) <= depth:
            break
        last += 1
    return lines[first - 1 : last]


def in_comprehension(frame: FrameType) -> bool:
    """Whether a frame is running a list, set or dict comprehension, which has no frame of its own from Python 3.12 on."""
    code = frame.f_code
    if code.co_name.endswith("comp>"):
        return True
    line, _, column, _ = next(islice(code.co_positions(), frame.f_lasti // 2, None))
    if line is None or column is None:
        return False
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename, frame.f_globals)))
    except SyntaxError:
        return False
    comprehensions = (n for n in ast.walk(tree) if isinstance(n, ast.ListComp | ast.SetComp | ast.DictComp))
    return any((n.lineno, n.col_offset) <= (line, column) < (n.end_lineno or 0, n.end_col_offset or 0) for n in comprehensions)


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def last_line(code: CodeType) -> int:
    last = code.co_firstlineno
    for _, end, _, _ in code.co_positions():
        if end is not None and end > last:
            last = end
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            last = max(last, last_line(inner))
    return last


def is_edited(filename: str) -> bool:
    """Whether a file is newer than the import of adjit, so that its contents may differ from what was imported."""
    try:
        return os.stat(filename).st_mtime > LOADED
    except OSError:  # there is no file: a notebook cell
        return False


def same_program(a: CodeType, b: CodeType) -> bool:
    """Whether two code objects do the same, wherever they are. The way a method is looked up is ignored, as it depends on the file."""
    ours, theirs = instructions(a), instructions(b)
    if len(ours) != len(theirs):
        return False
    for (what, x), (other, y) in zip(ours, theirs, strict=True):
        both_code = isinstance(x, CodeType) and isinstance(y, CodeType)
        if what != other or not (same_program(x, y) if both_code else type(x) is type(y) and repr(x) == repr(y)):
            return False
    return True


def instructions(code: CodeType) -> list[tuple[str, Any]]:
    """Return the instructions: their names, constants and operators, and branch targets."""
    import dis  # noqa: PLC0415 - slow to import, and few files are edited while they run

    out: list[tuple[str, Any]] = []
    for instruction in dis.get_instructions(code):
        name = instruction.opname.replace("LOAD_METHOD", "LOAD_ATTR")
        if "JUMP" in name or name == "FOR_ITER":
            out.append((name, None))
        elif isinstance(instruction.argval, str | tuple | CodeType) or "CONST" in name or "_OP" in name or name.startswith("UNARY"):
            out.append((name, instruction.argrepr if "_OP" in name else instruction.argval))
    return out


def own_parameters(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_varnames[:count]


def parameters_in_order(args: ast.arguments) -> tuple[str, ...]:
    """Return the parameters in the order of code objects: `*args` and `**kwargs` last."""
    plain = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return (*plain, *(arg.arg for arg in (args.vararg, args.kwarg) if arg is not None))
