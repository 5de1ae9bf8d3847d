"""The source that is traced is that of the function that was imported, or none."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import TraceError

MODULE = '''from __future__ import annotations

import adjit as aj


class Scale:
    __factor = 2.0

    def up(self, x: aj.Tensor, /, k=1, *rest, z=None, **more):
        """Of positive sums only."""
        if aj.sum(x) > 0:
            return x * self.__factor
        return x


def closed(c):
    def inner(x):
        total = x * 0
        for i in aj.range(3):
            total = total + (lambda y: y * c)(x) if i > 0 else total
        return total
    return inner


choose = lambda x: x + 1 if aj.sum(x) > 0 else x


def plain(x):
    if aj.sum(x) > 0:
        return x * 2
    return x
'''

X = np.ones(2)


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    soon = time.time() + 1
    os.utime(path, (soon, soon))  # younger than adjit, on every clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    out = tmp_path / "edited.py"
    write(out, MODULE)
    return out


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("edited", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(module: ModuleType) -> list[float]:
    functions = (module.Scale().up, module.closed(3.0), module.choose, module.plain)
    return [float(aj.function(f)(X)[0]) for f in functions]


def test_a_file_that_is_young_but_was_not_edited(path: Path) -> None:
    assert results(imported(path)) == [2.0, 6.0, 2.0, 2.0]


def test_an_edit_elsewhere_changes_nothing(path: Path) -> None:
    module = imported(path)
    write(path, MODULE + "\n\ndef another(x):\n    return x\n")
    assert results(module) == [2.0, 6.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("return x * 2", "return x + 2", "plain"),
        ("return x * 2", "return x * 3", "plain"),
        ("    if aj.sum(x) > 0:\n        return x * 2", "    if aj.max(x) > 0:\n        return x * 2", "plain"),
        ("import adjit as aj\n", "import adjit as aj\n\n\ndef plain(x):\n    return x\n", "plain"),
        ("choose = lambda x: x + 1 if", "choose = lambda x: x - 1 if", "choose"),
    ],
)
def test_an_edited_function_is_not_traced_as_what_it_was_not(path: Path, before: str, after: str, name: str) -> None:
    module = imported(path)
    assert before in MODULE
    write(path, MODULE.replace(before, after))
    with pytest.raises(TraceError, match="has changed since it was imported: import it again"):
        aj.function(getattr(module, name))(X)
