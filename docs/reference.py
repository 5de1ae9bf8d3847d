"""The reference pages of the site, generated from the public names and their docstrings when the site is built (a hook of MkDocs)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import adjit as aj

INIT = Path(__file__).resolve().parent.parent / "adjit" / "__init__.py"

# page: title, what it says first, and the groups of `adjit.__all__` (by their comment there) or the modules that it lists
PAGES: dict[str, tuple[str, str, list[str]]] = {
    "functions": ("Functions and derivatives", "What compiles, records and differentiates.", ["functions and their derivatives"]),
    "control": ("Control flow", "Loops and branches as functions; plain Python works too: see [control flow](../control_flow.md).",
                ["control flow"]),
    "arrays": ("Arrays", "NumPy's functions under NumPy's names, for tensors, traced values and plain arrays; results are tensors.", [
                   "array creation", "elementwise", "reductions and scans", "statistics", "grids and polynomials", "shapes", "indexing",
                   "sets, bits and updates", "other names of the array API standard", "images and segments", "products"]),
    "random": ("Random numbers", "A key in, numbers out: no hidden state.", ["aj.random"]),
    "linalg": ("Linear algebra", "The names of `np.linalg`, which work on traced values as well.", ["aj.linalg"]),
    "special": ("Special functions", "The names of `scipy.special`, with derivatives.", ["aj.special"]),
    "nn": ("Networks", "Layers, training, and the parts of both: see the [tour](../nn.md).", [
        "aj.nn", "aj.nn.losses", "aj.nn.optimizers", "aj.nn.schedules", "aj.nn.metrics", "aj.nn.callbacks", "aj.nn.activations",
        "aj.nn.initializers", "aj.nn.regularizers", "aj.nn.constraints"]),
    "errors": ("Errors", "Each also subclasses the built-in exception that a caller would catch.", ["errors"]),
}  # fmt: skip
EXAMPLES = re.compile(r"((?:^>>> .*\n(?:.+(?:\n|$))*\n?)+)", re.MULTILINE)
COUNTERPARTS = {"arrays": ("numpy", "np", "https://numpy.org/doc/stable/reference/generated/numpy.{}.html")}


def groups() -> dict[str, list[str]]:
    """The names of `adjit.__all__`, by the comment above them."""
    text = INIT.read_text(encoding="utf-8").partition("__all__ = [")[2].partition("]")[0]
    parts = re.split(r"^\s*# (.*)$", text, flags=re.MULTILINE)[1:]
    return {title: re.findall(r'"([^"]+)"', names) for title, names in zip(parts[::2], parts[1::2], strict=True)}


def members(part: str) -> Iterator[tuple[str, Any]]:
    """What a page lists: (name, object), without constants, dtypes and modules."""
    if part.startswith("aj"):
        space: Any = aj
        for each in part.split(".")[1:]:
            space = getattr(space, each)
        names = [(f"{part}.{name}", getattr(space, name)) for name in space.__all__]
    else:
        names = [(f"aj.{name}", getattr(aj, name)) for name in groups()[part]]
    found = [(name, v) for name, v in names if callable(v) and not isinstance(v, ModuleType) and str(v.__module__).startswith("adjit")]
    yield from sorted(found, key=lambda each: rank(each[1]))  # otherwise in the order of `__all__`


def rank(value: Any) -> int:
    """Functions come first, since they are what a reader calls; then classes; then warnings and errors."""
    return 0 if not isinstance(value, type) else 2 if issubclass(value, Exception) else 1


def signature(name: str, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, BaseException):
        return name
    try:
        parameters = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(…)"
    bare = [p.replace(annotation=p.empty) for p in parameters.parameters.values()]
    return f"{name}{parameters.replace(parameters=bare, return_annotation=inspect.Signature.empty)}"


def described(value: Any) -> str:
    """A docstring as Markdown: its examples as fenced blocks."""
    text = f"{inspect.getdoc(value) or ''}\n"
    return EXAMPLES.sub(lambda example: f"```pycon\n{example[1].strip()}\n```\n", text).strip()


def methods(value: Any) -> Iterator[tuple[str, Any]]:
    """The public methods that a class documents, itself or in a base class that has no entry of its own."""
    if not isinstance(value, type) or issubclass(value, BaseException):
        return
    known = {id(entry) for space in (aj, aj.nn) for entry in map(space.__dict__.get, space.__all__)}
    for cls in (value, *(base for base in value.__mro__[1:] if id(base) not in known and base.__module__.startswith("adjit.runtime."))):
        for name, member in vars(cls).items():
            if not name.startswith("_") and inspect.isfunction(member) and inspect.getdoc(member):
                yield name, member


def entry(name: str, value: Any, page: str) -> Iterator[str]:
    yield f"### {name} {{ #{name.replace('.', '-')} }}\n\n```python\n{signature(name, value)}\n```\n\n{described(value)}\n"
    if page in COUNTERPARTS:
        module, short, address = COUNTERPARTS[page]
        own = name.rpartition(".")[2]
        if hasattr(__import__(module), own):
            yield f"[`{short}.{own}`]({address.format(own)})\n"
    for method, member in methods(value):
        yield f"- `.{signature(method, member).replace('(self, ', '(').replace('(self)', '()')}`: {described(member).splitlines()[0]}"
    yield ""


def pages() -> Iterator[tuple[str, str]]:
    for file, (title, says, parts) in PAGES.items():
        lines = [f"# {title}\n\n{says}\n"]
        for part in parts:
            if len(parts) > 1:
                lines.append(f"## {part if part.startswith('aj') else part[0].upper() + part[1:]}\n")
            for name, value in members(part):
                lines += entry(name, value, file)
        yield f"reference/{file}.md", "\n".join(lines) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Called by MkDocs with the files of the site."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the tests of this module do without

    for path, text in pages():
        files.append(File.generated(config, path, content=text))
    return files
