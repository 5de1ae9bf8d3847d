"""How the source is organised: dependencies on op classes, lengths of files, and names.

Passes and code generation test the properties of an op, rather than its class: an op that someone adds by the recipe of
`docs/architecture.md` is then treated like the built-in ones. The counts may only fall: a new test of a class is better a property in
`ir/ops/base.py`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjit.ir.ops.base import REGISTRY, Op

ROOT = Path(__file__).parent.parent
COMPILER = ("ir", "tracer", "passes", "codegen", "runtime")  # `nn` and `compat` spell the names of other libraries

# Calls of `isinstance` with a registered op class, and with any, such as `Reduce`. There were 183 and 268, 43 and 62 before.
MOST_LINES = 500  # of a file; tables of tests may be longer
MOST = {"passes": (81, 104), "codegen": (11, 18)}


def imported_ops(tree: ast.Module) -> set[str]:
    """Names of classes that a module imports from the ops."""
    froms = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("adjit.ir.ops"))
    return {alias.asname or alias.name for n in froms for alias in n.names if alias.name[0].isupper() and not alias.name.isupper()}


def classes_asked_for(tree: ast.Module) -> Iterator[set[str]]:
    """The classes of each `isinstance` in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            yield {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}


@pytest.mark.parametrize("package", MOST)
def test_op_classes_are_rarely_tested(package: str) -> None:
    registered = {op.__name__ for op in REGISTRY.values()}
    known = registered | {base.__name__ for op in REGISTRY.values() for base in op.__mro__ if issubclass(base, Op)}
    concrete = every = 0
    for path in (ROOT / package).rglob("*.py"):
        tree = ast.parse(path.read_text())
        ops = imported_ops(tree) & known
        for classes in classes_asked_for(tree):
            every += bool(classes & ops)
            concrete += bool(classes & ops & registered)
    most = MOST[package]
    assert concrete <= most[0], "test a property of the op (see `Op` in ir/ops/base.py), rather than its class"
    assert every <= most[1], "test a property of the op (see `Op` in ir/ops/base.py), rather than its class"


def test_a_class_name_means_one_thing() -> None:
    defined = defaultdict(list)
    for path in (path for package in COMPILER for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: places for name, places in defined.items() if len(places) > 1} == {}


ESTIMATE = re.compile(r"cost|cheap|heavy|light|slow|expensive|duration|weight|flops|work", re.IGNORECASE)
OPS = {op.__name__ for op in REGISTRY.values()}


def op_names(node: ast.AST) -> set[str]:
    """The op classes that a node mentions, as names or attributes of modules; those of Python's `ast` have some of the same names."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    attributes = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and ast.unparse(n.value) != "ast"}
    return OPS & (names | attributes)


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def cost_tables(tree: ast.Module) -> Iterator[int]:
    """Lines that may be a second cost model: numbers by op, or classes of ops under a name that refers to costs.

    The names of a few ops have other meanings, too: `i1` is a Bessel function, and a type of LLVM.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and node.keys and all(map(is_number, node.values)):
            texts = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if 2 * len(texts & set(REGISTRY)) > len(texts) or any(key is not None and op_names(key) for key in node.keys):
                yield node.lineno
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and ESTIMATE.search(t.id) for t in node.targets):
            if not isinstance(node.value, ast.Call) and op_names(node.value):
                yield node.lineno
        elif isinstance(node, ast.FunctionDef) and ESTIMATE.search(node.name) and op_names(ast.Module(node.body, [])):
            yield node.lineno


@pytest.mark.parametrize(
    "text", ["COSTLY = (Exp, Log)", "x = {Exp: 8, Add: 1}", "x = {'exp': 8.0}", "def is_cheap(s):\n    return isinstance(s.op, Exp)"]
)
def test_cost_tables_are_found(text: str) -> None:
    assert list(cost_tables(ast.parse(text)))


def test_only_ops_define_costs() -> None:
    """By `Op.cost`, from which `ir/work.py` and `nanoseconds` derive all estimates."""
    paths = [path for package in COMPILER for path in (ROOT / package).rglob("*.py")]
    readers = [path for path in paths if path != ROOT / "ir" / "cost.py" and ROOT / "ir" / "ops" not in path.parents]
    assert [f"{path.relative_to(ROOT)}:{line}" for path in readers for line in cost_tables(ast.parse(path.read_text()))] == []


@pytest.mark.parametrize("package", [*COMPILER, "nn", "compat", "tests"])
def test_files_are_short(package: str) -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in (ROOT / package).rglob("*.py")}
    most = MOST_LINES + 200 if package == "tests" else MOST_LINES
    assert {name: count for name, count in lines.items() if count > most} == {}
