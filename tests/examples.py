"""The examples, for tests of the programs that they compile: each is run until its functions have been called, and then stopped."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from adjit.ir import builder
from adjit.ir.func import Stmt
from adjit.ir.ops.base import Array
from adjit.runtime.concrete import ConcreteFunction
from adjit.runtime.convention import Convention
from adjit.runtime.explore_script import CompileWatch
from adjit.tracer.trace import Trace

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "sweep")  # it computes in other processes
SHORTER = {  # the interpreter is slow: fewer iterations, smaller networks
    "ode_fit": {"STEPS, RATE = 400, 0.03": "STEPS, RATE = 2, 0.03", "[[0, 9, 49, 99, -1]]": "[[0, -1]]"},
    "digits_convnet": {"else 4000": "else 128", "draw(rng, 1000)": "draw(rng, 64)", "else 16\n": "else 4\n", "accuracy > 0.95": "True"},
}
SECONDS = 0.5  # of processor time, from which on an example is stopped


class Enough(BaseException):
    """Stops an example."""


class Captured(NamedTuple):
    """The compiled functions of an example, with the arrays of their first calls, and the lines of the example that computed something."""

    functions: list[tuple[ConcreteFunction, list[Array]]]
    lines: set[int]


@cache
def captured(example: Path) -> Captured:
    watch, run = CompileWatch(), Convention.run
    lines: set[int] = set()
    started = time.process_time()

    def call(self: Convention, arrays: list[Any], given: Any = (), observe: Any = None) -> Any:
        if time.process_time() - started > SECONDS and id(self) in called:
            raise Enough
        called.add(id(self))
        return run(self, arrays, given, observe)

    def made(*args: Any) -> Stmt:
        """Record the running line of the example, according to Python's frame."""
        stmt, frame = Stmt(*args), sys._getframe(1)
        traced = isinstance(frame.f_locals.get("self"), Trace)  # passes create statements, too
        while frame is not None and frame.f_code.co_filename != str(example):
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None and traced and stmt.phase == "forward":
            lines.add(frame.f_lineno)
        return stmt

    called: set[int] = set()
    with contextlib.ExitStack() as stack:
        stack.enter_context(watch.watching())
        stack.enter_context(mock.patch.object(Convention, "run", call))
        stack.enter_context(mock.patch.object(builder, "Stmt", made))
        stack.enter_context(mock.patch.object(sys, "argv", [str(example)]))
        stack.enter_context(mock.patch.object(sys, "path", [str(FOLDER), *sys.path]))
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
    return Captured(watch.found, lines)
