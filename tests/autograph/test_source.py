"""The source that is traced is that of the function that was imported, or none."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import TraceError
from adjit.tracer.autograph.convert import convert
from tests.tracer.running import run_program, trace

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
def test_an_edited_function_is_not_traced_from_the_new_source(path: Path, before: str, after: str, name: str) -> None:
    module = imported(path)
    assert before in MODULE
    write(path, MODULE.replace(before, after))
    with pytest.raises(TraceError, match="has changed since it was imported: import it again"):
        aj.function(getattr(module, name))(X)


TYPED = """
def typed(x):
    if x > 0:
        return x * 2
    return -x
"""


def test_text_given_to_exec_is_found() -> None:
    namespace: dict[str, Any] = {}
    text = TYPED
    exec(text, namespace)
    assert convert(namespace["typed"]) is not namespace["typed"]
    assert run_program(trace(convert(namespace["typed"]), 3.0), 3.0) == 6.0


def test_text_of_another_function_is_not_taken_for_it() -> None:
    namespace: dict[str, Any] = {}
    exec(TYPED.replace("x * 2", "x * 3"), namespace)  # no variable holds this text
    assert convert(namespace["typed"]) is namespace["typed"]


@pytest.mark.parametrize("how", ["-c", "file"])
def test_text_of_the_command_line_and_of_the_input(how: str, tmp_path: Path) -> None:
    program = f"from adjit.tracer.autograph.convert import convert\n{TYPED}\nassert convert(typed) is not typed\n"
    if how == "-c":
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        return
    path = tmp_path / "program.txt"
    path.write_text(program)
    with path.open() as given:
        subprocess.run([sys.executable], stdin=given, check=True, timeout=60)


def test_history_of_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["y = 1", "@mark", "def typed(x):", "    if x > 0:", "        return x * 2", "    return -x", "typed(3)"]
    history = SimpleNamespace(get_current_history_length=lambda: len(lines), get_history_item=lambda i: lines[i - 1])
    monkeypatch.setitem(sys.modules, "readline", history)  # type: ignore[arg-type]
    namespace: dict[str, Any] = {"mark": lambda f: f}
    exec(compile("\n".join(lines[1:6]), "<stdin>", "exec"), namespace)
    del lines[0]
    assert run_program(trace(convert(namespace["typed"]), 3.0), 3.0) == 6.0
