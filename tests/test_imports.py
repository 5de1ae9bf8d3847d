"""No module imports itself through others, late imports included: code that two modules need is in a third one below them.

A late import is for what few programs need, so that `import adjit` stays cheap, and says so in a comment. Those that also close a cycle are
listed here, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("ir", "tracer", "passes", "codegen", "runtime")

ORDER = "the order of complex numbers is made of ops on real ones, and loaded by programs that need it"
SPECTRAL = "singular values are computed by functions of matrices, and loaded by programs that need them"
ALLOWED = {
    ("ir.expr", "ir.bounds"): "comparing two expressions means a proof, which computes with expressions",
    ("ir.func", "ir.printer"): "str(func) loads the printer",
    ("ir.ops.arithmetic", "ir.ops.order"): ORDER,
    ("ir.ops.logic", "ir.ops.order"): ORDER,
    ("ir.ops.reduce", "ir.ops.order"): ORDER,
    ("ir.ops.sort", "ir.ops.order"): ORDER,
    ("tracer.conversion", "tracer.autograph.convert"): "converted functions convert what they call; loaded by the first conversion",
    ("tracer.surface.linalg", "tracer.surface.spectral"): SPECTRAL,
    ("tracer.surface.norms", "tracer.surface.spectral"): SPECTRAL,
    ("codegen.threads.library", "codegen.products.gemm"): "the text of routines that are not on the disk yet",
    ("runtime.inspection", "runtime.explore"): "the page that shows an inspection is loaded when it is asked for",
    ("runtime.random", "runtime.distributions"): "distributions draw random numbers, and are loaded by programs that need them",
}


class Import(NamedTuple):
    target: str
    line: int
    late: bool


def modules() -> dict[str, Path]:
    """All modules, by their names below `adjit`."""
    out = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return out


MODULES = modules()


def imports(name: str) -> Iterator[Import]:
    """The modules that a module imports, at any depth, except for type checkers."""
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text()), False)]
    while pending:
        node, late = pending.pop()
        if isinstance(node, ast.ImportFrom):
            above = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")] if node.level else node.module.split(".")
            module = ".".join(part for part in above if part).removeprefix("adjit.")
            for alias in node.names:
                target = f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module
                if target in MODULES:
                    yield Import(target, node.lineno, late)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += [(child, late) for child in node.orelse]
        else:
            inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            pending += [(child, inside) for child in ast.iter_child_nodes(node)]


GRAPH = {name: list(imports(name)) for name in MODULES}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules that import themselves through others; empty if there are none."""
    left = dict(graph)
    while left:
        free = [name for name, targets in left.items() if not targets & left.keys()]
        if not free:
            break
        for name in free:
            del left[name]
    while left:  # without those that only import a cycle
        unread = left.keys() - {target for targets in left.values() for target in targets}
        if not unread:
            break
        for name in unread:
            del left[name]
    return sorted(left)


def graph_without(allowed: set[tuple[str, str]]) -> dict[str, set[str]]:
    return {name: {i.target for i in found if i.target != name and (name, i.target) not in allowed} for name, found in GRAPH.items()}


def test_no_import_cycles() -> None:
    assert cycle(graph_without(set(ALLOWED))) == []


@pytest.mark.parametrize("edge", ALLOWED, ids="->".join)
def test_allowed_late_imports_are_needed(edge: tuple[str, str]) -> None:
    """Each entry is a late import that closes a cycle: an entry that no longer does is removed."""
    name, target = edge
    found = [i for i in GRAPH[name] if i.target == target]
    assert found
    assert all(i.late for i in found)
    assert cycle(graph_without(ALLOWED.keys() - {edge}))


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_late_imports_give_a_reason(package: str) -> None:
    without = []
    for name, found in GRAPH.items():
        if name.split(".")[0] == package:
            lines = MODULES[name].read_text().splitlines()
            without += [f"{name}:{i.line}" for i in found if i.late and "PLC0415 - " not in lines[i.line - 1]]
    assert without == []
