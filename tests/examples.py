"""The examples, for tests that look at what they compile: each is run until its functions have been called, and then stopped."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from adjit.runtime.concrete import ConcreteFunction
from adjit.runtime.convention import Convention

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if not path.stem.startswith("export_"))  # those write code for others to call
WITHOUT_FUNCTIONS = {"inspect_ir"}  # it looks at its function without calling it
SHORTER = {  # the interpreter is slow: fewer iterations, smaller networks
    "ode_fit": {"STEPS, RATE = 400, 0.03": "STEPS, RATE = 2, 0.03", "[[0, 9, 49, 99, -1]]": "[[0, -1]]"},
    "digits_convnet": {"else 4000": "else 128", "draw(rng, 1000)": "draw(rng, 64)", "else 16\n": "else 4\n", "accuracy > 0.95": "True"},
}
SECONDS = 0.5  # of processor time, from which on an example is stopped


class Enough(BaseException):
    """Stops an example."""


@cache
def captured(example: Path) -> list[tuple[ConcreteFunction, list[Any]]]:
    """The compiled functions of an example, with the arrays of their first calls."""
    made: dict[int, ConcreteFunction] = {}
    found: list[tuple[ConcreteFunction, list[Any]]] = []
    seen: set[int] = set()
    make, run = ConcreteFunction.__init__, Convention.run
    started = time.process_time()

    def init(self: ConcreteFunction, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        made[id(self.convention)] = self

    def call(self: Convention, arrays: list[Any], given: Any = (), observe: Any = None) -> Any:
        if id(self) in made and id(self) not in seen:
            seen.add(id(self))
            found.append((made[id(self)], [np.array(a) for a in self.copies(list(arrays), given, every=True)]))
        elif time.process_time() - started > SECONDS:
            raise Enough
        return run(self, arrays, given, observe)

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(ConcreteFunction, "__init__", init))
        stack.enter_context(mock.patch.object(Convention, "run", call))
        stack.enter_context(mock.patch.object(sys, "argv", [str(example)]))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(contextlib.suppress(Enough))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        code = example.read_text(encoding="utf-8")
        for long, short in SHORTER.get(example.stem, {}).items():
            assert long in code, f"{example}: {long!r} is not there any more"
            code = code.replace(long, short)
        exec(compile(code, str(example), "exec"), {"__name__": "__main__", "__file__": str(example)})
    return found
