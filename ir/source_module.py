"""The whole text of a program as a Python module: imports, helpers, constants, and its functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from . import source_helpers
from .effects import block_effects
from .func import Func, Value
from .ops.base import Array
from .records import NamedTuple
from .source import SharedSource, Writer
from .source_names import HELPERS, SourceNames, identifier
from .source_text import assignment, definition, fill, unparse
from .source_text import returned as returned_lines

MANY = 4  # values that forward saves, from which on they are not named one by one where both halves are called
QUIET = '@np.errstate(all="ignore")'


class ModuleText(NamedTuple):
    """A module: its text, the names of its functions, and the constants that are kept beside it."""

    text: str
    forward: str
    backward: str | None
    whole: str
    arrays: dict[str, Array]


def write_module(func: Func, forward: Func, backward: Func | None, constants: Mapping[int, Array]) -> ModuleText:
    """The text of a function whose halves are `forward` and `backward`. `constants` are captured arrays, by the ids of their parameters."""
    module = SharedSource()
    whole = module.names.fresh(identifier(re.sub(r"\W+", "_", func.name).strip("_")) or "program")
    if backward is None or (not forward.outputs() and block_effects(forward.block).is_pure):
        writer = Writer(func if backward else forward, module, {}, constants)
        functions = [function(whole, writer)]
        return ModuleText(assembled(module, functions, func), whole, None, whole, module.arrays)
    names = module.names.fresh("forward"), module.names.fresh("backward")
    first = Writer(forward, module, {}, constants)
    texts = [function(names[0], first)]
    given = {id(p): first.names.of(p) for p in backward.params if id(p) not in constants}
    second = Writer(backward, module, given, constants)
    texts.append(function(names[1], second))
    texts.append(both(whole, names, func, first, second))
    return ModuleText(assembled(module, texts, func), *names, whole, module.arrays)


def function(name: str, writer: Writer) -> str:
    body = writer.body()
    return "\n".join([QUIET, *definition(name, writer.params), *body])


def both(name: str, halves: tuple[str, str], func: Func, first: Writer, second: Writer) -> str:
    """The function that calls both halves and returns the results, then the new values of variables."""
    names = SourceNames(first.names)
    late = {id(r) for s in second.func.stmts for r in s.results}
    outputs = []
    for writer in (first, second):
        block = writer.func.block
        hints = [*block.results, *block.saving, *(p for p, _ in writer.func.updates)]
        outputs.append([writer.names.of(x) if isinstance(x, Value) and writer.names.has(x) else names.fresh("result") for x in hints])
    early = distinct(outputs[0], ())
    later = distinct(outputs[1], early)
    results = [iter(early), iter(later)]
    returned = [next(results[id(r) in late]) for r in func.results]
    updates = []
    for writer, found in ((first, early), (second, later)):
        count = len(writer.func.updates)
        updates += list(zip((id(p) for p, _ in writer.func.updates), found[len(found) - count :]))
    order = dict(updates)
    returned += [order[id(p)] for p, _ in func.updates]
    saved = len(first.func.block.saving)
    start = len(first.func.block.results)
    if saved > MANY:
        early[start : start + saved] = ["*saved" if len(early) > saved else "saved"]
    kept = len(second.params) - saved if saved > MANY else len(second.params)
    calls = [(early, halves[0], first.params), (later, halves[1], second.params[:kept] + ["*saved"] * (saved > MANY))]
    lines = [*definition(name, first.params)]
    for found, half, params in calls:
        call = fill(f"{half}({', '.join(params)})")
        lines += [f"    {line}" for line in (assignment(found, [call], 1) if found else [unparse(call)])]
    return "\n".join([*lines, *(f"    {line}" for line in returned_lines([ast.Name(n) for n in returned], 1))])


def distinct(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Each name once; repeated ones, and those that are taken, with a number."""
    out: list[str] = []
    for name in names:
        unique, number = name, 1
        while unique in out or unique in taken:
            unique, number = f"{name}_{number}", number + 1
        out.append(unique)
    return out


def assembled(module: SharedSource, functions: Sequence[str], func: Func) -> str:
    where = f" from {func.location.file.rsplit('/', 1)[-1]}:{func.location.line}" if func.location else ""
    used = [text for name, text in helper_texts().items() if name in needed(module.used)]
    imports = [f"import {name}" for name in ("math", "sys") if any(re.search(rf"\b{name}\.", t) for t in (*used, *functions))]
    if any("reduce(" in t for t in functions):
        imports.append("from functools import reduce")
    constants = [f"{name} = {text}{'  # fmt: skip' * (len(name) + len(text) > 80)}" for name, text in module.hoisted.items()]
    if module.arrays:
        imports.append("from pathlib import Path")
        constants.append('constants = np.load(Path(__file__).with_suffix(".npz"))')
        constants += [f'{name} = constants["{name}"]' for name in module.arrays]
    head = [f"# written by adjit{where}: needs NumPy only", *imports, *([""] if imports else []), "import numpy as np"]
    parts = ["\n".join(head)]
    if constants:
        parts.append("\n".join(constants))
    return "\n\n".join(parts) + "\n" + "".join(f"\n\n{text}\n" for text in (*used, *module.functions, *functions))


def needed(used: set[str]) -> set[str]:
    """The helpers among these names, with the helpers that they call."""
    out: set[str] = set()
    pending = [name for name in used if name in HELPERS]
    while pending:
        name = pending.pop()
        if name not in out:
            out.add(name)
            pending += [other for other in HELPERS if re.search(rf"\b{other}\(", helper_texts()[name].split("\n", 1)[1])]
    return out


@lru_cache(maxsize=1)
def helper_texts() -> dict[str, str]:
    """The source of each helper, without its annotations."""
    with open(source_helpers.__file__, encoding="utf-8") as file:
        source = file.read()
    out = {}
    lines = source.split("\n")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            out[node.name] = re.sub(r": Any\b|: int(?= =)| -> Any", "", re.sub(r": int = ", "=", text))
    return out
