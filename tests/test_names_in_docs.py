"""Paths, modules and classes that documents and comments mention exist, and the list of passes in docs/architecture.md is that of the code.

A name counts if it is in backquotes: a path (`passes/pipeline.py`, or its end: `pipeline.py`), a dotted name that begins with a package
(`ir.cost`, `adjit.nn`), or, in the two pages for contributors, the name of a class, a function or an attribute.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import adjit
from adjit.passes.pipeline import OPTIMIZE

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("adjit", "ir", "tracer", "passes", "codegen", "runtime", "nn", "compat")
FOLDERS = (*PACKAGES, "tests", "docs", "benchmarks", "examples", ".ci")
PAGES = ("README.md", "CONTRIBUTING.md", "docs", "benchmarks")
CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
PATH = re.compile(r"\.?[\w-]+(?:/[\w.-]+)*(?:\.(?:py|pyi|md|toml)|/)")
DOTTED = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
LINK = re.compile(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)")
ELSEWHERE = {  # of other projects, and names with a part to be filled in; the last one, which ADR 12 describes, is no longer there
    "steps/NAME.py", "run.py", "nn.Parameter", "nn.Linear", "nn.Conv2d", "array-api/", "tensorflow/python/eager/backprop_test.py",
    "reference_test_base.py", "products/sized.py",
}  # fmt: skip


@cache
def ends_of_paths() -> frozenset[str]:
    """Every file and folder of the repository, relative to each of the folders that contain it."""
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)
    parts = [path.relative_to(ROOT).parts for path in (*inside, *ROOT.iterdir())]
    return frozenset("/".join(each[k:]) for each in parts for k in range(len(each)))


@cache
def is_importable(name: str) -> bool:
    """Whether a dotted name is a module of adjit, or an attribute of one."""
    parts = name.removeprefix("adjit.").split(".")
    if parts[0] in adjit.__all__:  # and not the module of the same name, which would take its place: adjit.tune
        return hasattr(adjit, parts[0])
    for k in range(len(parts), -1, -1):
        try:
            found = importlib.import_module(".".join(["adjit", *parts[:k]]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[k:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def quoted(text: str) -> Iterator[str]:
    for code in CODE.finditer(text):
        yield from (word.rstrip(".:") for word in re.split(r"[,\s]+", code[1].strip()))


def missing(text: str) -> list[str]:
    """The paths and dotted names of a text that do not exist."""
    words = [word for word in quoted(text) if word not in ELSEWHERE]
    paths = [word for word in words if PATH.fullmatch(word) and word.rstrip("/") not in ends_of_paths()]
    return paths + [word for word in words if DOTTED.fullmatch(word) and not PATH.fullmatch(word) and not is_importable(word)]


def pages() -> list[Path]:
    return sorted(page for start in PAGES for page in ((ROOT / start).rglob("*.md") if (ROOT / start).is_dir() else [ROOT / start]))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_pages_exist(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    assert missing(text) == []
    found = LINK.findall(CODE.sub("", text))
    links = [link for link in found if "://" not in link and not link.startswith(("reference/", "live/"))]  # generated
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("package", [*PACKAGES, "tests", "benchmarks", "examples"])
def test_names_in_comments_exist(package: str) -> None:
    paths = [path for path in (ROOT / package).rglob("*.py") if path != Path(__file__)]
    found = {str(path.relative_to(ROOT)): missing(path.read_text(encoding="utf-8")) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


@cache
def defined_names() -> frozenset[str]:
    """The names of all modules, classes, functions, parameters, attributes and constants of the packages."""
    out: set[str] = set()
    for path in (path for folder in (*PACKAGES, ".ci") for path in (ROOT / folder).rglob("*.py")):
        out.add(path.stem)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                out.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                out.add(node.id)
            elif isinstance(node, ast.arg):
                out.add(node.arg)
            elif isinstance(node, ast.Attribute):
                out.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                out.add(node.value)  # names of ops and kinds of statements
    return frozenset(out)


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_names_in_pages_for_contributors(page: str) -> None:
    text = FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))
    lists = (re.split(r",\s+", code) for code in CODE.findall(text))
    names = {name for names in lists if all(re.fullmatch(r"[A-Za-z_]\w*(\.\w+)?", name) for name in names) for name in names}
    parts = {part for name in names if not DOTTED.fullmatch(name) and not PATH.fullmatch(name) for part in name.split(".")}
    assert sorted(parts - defined_names() - {"mypy", "np", *dir(builtins)}) == []


def test_passes_in_their_order() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.search(r"`(drop_transparent[^`]*)`", text)
    assert listed is not None
    assert [name.strip() for name in listed[1].split(",")] == [name.partition(".")[0] for name in OPTIMIZE.passes]


def test_missing_paths_are_found() -> None:
    text = "See `ir/no_such_file.py`, `passes.no_such_pass`, `ir/types.py` and `ir.types.TensorType`."
    assert missing(text) == ["ir/no_such_file.py", "passes.no_such_pass"]
