"""Writes `adjit/__init__.pyi` and `adjit/typed/`: the public functions as users' type checkers see them.

    python tests/tools/stubs.py

Functions of adjit take and return operands; tensors and traced values are two kinds of them. Users write `-> aj.Tensor`, and in a
compiled function a traced value represents the tensor. So the stubs have `Tensor` where the implementation has `Operand`; they are
generated, so that each signature is written once. `adjit/typed` exists for type checkers only.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_overloads

import numpy as np

import adjit as aj

ROOT = Path(__file__).resolve().parents[2]
HEADER = "# Written by tests/tools/stubs.py; see there. Do not edit.\n"
NAMESPACES = ["fft", "linalg", "random", "special"]
MODULES = ["distributed", "implicit", "scipy"]  # the checkers read them as they are
VOCABULARY = {
    "Any": "typing",
    "NamedTuple": "typing",
    "overload": "typing",
    "Callable": "collections.abc",
    "Iterable": "collections.abc",
    "Sequence": "collections.abc",
    "SimpleNamespace": "types",
    "DType": "adjit.ir.types",
    "TreeDef": "adjit.tracer.pytree",
    "Tensor": "adjit.runtime.tensor",
}
BUILTINS = {"bool", "int", "float", "complex", "str", "list", "tuple", "dict", "None", "builtins"}


class Stub:
    """The text of one module, and the names that its annotations need."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.names: set[str] = set()
        self.classes: dict[str, str] = {}
        self.lines: list[str] = []

    def annotation(self, text: Any, of: Callable[..., Any]) -> str:
        text = re.sub(r"\bOperand\b", "Tensor", str(text))
        for name in sorted(set(re.findall(r"(?<![\w.\"])[A-Za-z_]\w*", text)) - BUILTINS):
            found = inspect.unwrap(of).__globals__.get(name)
            if name in VOCABULARY:
                self.names.add(name)
            elif isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
                self.named_tuple(found)
            else:
                raise ValueError(f"{of.__module__}.{of.__name__}: {name} of its signature is not in VOCABULARY")
        return re.sub(r"(?<!\.)\bbool\b", "builtins.bool", text)  # the array API has a `bool` of its own

    def named_tuple(self, of: type) -> None:
        self.names.add("NamedTuple")
        place = import_module(of.__module__).__dict__
        fields = {
            name: re.sub(r"\bOperand\b", "Tensor", getattr(kind, "__forward_arg__", str(kind))) for name, kind in of.__annotations__.items()
        }
        self.names |= {name for kind in fields.values() for name in VOCABULARY if re.search(rf"\b{name}\b", kind)}
        assert place[of.__name__] is of
        self.classes[of.__name__] = "\n".join([f"class {of.__name__}(NamedTuple):", *(f"    {n}: {k}" for n, k in fields.items())])

    def parameters(self, of: Callable[..., Any]) -> Iterator[str]:
        last = None
        for p in inspect.signature(of).parameters.values():
            if last is p.POSITIONAL_ONLY is not p.kind:
                yield "/"
            if p.kind is p.KEYWORD_ONLY and last not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
                yield "*"
            kind = "Any" if p.annotation is p.empty else self.annotation(p.annotation, of)
            mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            yield f"{mark}{p.name}: {kind}" + ("" if p.default is p.empty else " = ...")
            last = p.kind
        if last is inspect.Parameter.POSITIONAL_ONLY:
            yield "/"

    def function(self, name: str, of: Callable[..., Any]) -> None:
        self.names.add("Any")
        overloads = get_overloads(of)
        self.names |= {"overload"} if overloads else set()
        for each in overloads or [of]:
            result = self.annotation(inspect.signature(each).return_annotation, each)
            self.lines.append("@overload\n" * bool(overloads) + f"def {name}({', '.join(self.parameters(each))}) -> {result}: ...")

    def taken(self, name: str, value: Any, of: str) -> None:
        """A name that is imported as it is."""
        self.imports.add(f"from {of} import {getattr(value, '__name__', name)} as {name}")

    def text(self) -> str:
        by_module: dict[str, list[str]] = {}
        for name in sorted(self.names):
            by_module.setdefault(VOCABULARY[name], []).append(name)
        imports = [f"from {module} import {', '.join(names)}" for module, names in sorted(by_module.items())]
        imports = [line for line in imports if f"{line} as Tensor" not in self.imports]  # exported anyway
        parts = [HEADER + "import builtins", *imports, *sorted(self.imports), "", *self.classes.values(), "", *self.lines]
        return "\n".join(parts) + "\n"


def says_operand(f: Callable[..., Any]) -> bool:
    return any(map(mentions_operand, get_overloads(f) or [f]))


def mentions_operand(f: Callable[..., Any]) -> bool:
    s = inspect.signature(f)
    return any("Operand" in str(a) for a in [s.return_annotation, *(p.annotation for p in s.parameters.values())]) or (
        re.fullmatch(r"[A-Z]\w+", str(s.return_annotation)) is not None and hasattr(f.__globals__.get(str(s.return_annotation)), "_fields")
    )


def namespace(module: ModuleType) -> str:
    stub = Stub()
    listed = getattr(module, "__all__", None) or dir(module)
    for name in sorted(set(listed)):
        value = getattr(module, name)
        if name.startswith("_") or isinstance(value, ModuleType) or not getattr(value, "__module__", "").startswith("adjit"):
            continue
        if inspect.isfunction(value):
            stub.function(name, value)
    return stub.text()


def package() -> str:
    stub = Stub()
    for name in sorted(aj.__all__):
        value = getattr(aj, name)
        if name in NAMESPACES:
            stub.imports.add(f"from adjit.typed import {name} as {name}")
        elif name in MODULES:
            stub.imports.add(f"from adjit.runtime import {Path(value.__file__).parent.name if name == 'scipy' else name} as {name}")
        elif inspect.isfunction(value) and says_operand(value):
            stub.function(name, value)
        elif isinstance(value, type) and issubclass(value, np.generic):
            stub.imports.add("import numpy as np")
            stub.lines.append(f"{name} = np.{value.__name__}")
        elif inspect.isfunction(value) or isinstance(value, type):
            stub.taken(name, value, defined_in(value))
        elif name == "config":
            stub.taken(name, value, "adjit.runtime.config")
        else:
            stub.lines.append(f"{name}: {type(value).__name__ if value is not None else 'None'}")
    stub.imports.add("from adjit import nn as nn, tf as tf")
    stub.lines += ["__version__: str", "__array_api_version__: str", "def __array_namespace_info__() -> Any: ..."]
    return stub.text()


def defined_in(value: Any) -> str:
    """The module that defines a class or function; those of errors are shown as `adjit`."""
    name = str(value.__module__)
    return "adjit.ir.errors" if name == "adjit" else name


def stubs() -> dict[Path, str]:
    typed = ROOT / "adjit" / "typed"
    found = {ROOT / "adjit" / "__init__.pyi": package(), typed / "__init__.pyi": HEADER}
    return found | {typed / f"{name}.pyi": namespace(getattr(aj, name)) for name in NAMESPACES}


if __name__ == "__main__":
    for path, text in stubs().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    sys.exit(0)
