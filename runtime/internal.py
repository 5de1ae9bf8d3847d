"""Reporting of bugs in adjit: failures inside the passes or code generation are not the user's fault.

Owns the report: an `InternalError` that names the user's function and line, and a file with the traced program to attach to a bug report.
Errors raised by the user's own Python code (a custom gradient called while differentiating, a signal handler) and by the machine (out of
memory, a full disk) propagate unchanged.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from adjit.ir.errors import AdjitError, InternalError, NotGeneral, UnsupportedError
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.location import Location
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import LIBRARIES, entries, package_of
from adjit.tracer.trace import Trace, current_trace

P = ParamSpec("P")
R = TypeVar("R")

OF_THE_MACHINE = (MemoryError, OSError, RecursionError, Warning)


@contextmanager
def compiling(func: Func) -> Iterator[None]:
    """Guard passes and code generation. The trace has already checked types, so `UnsupportedError` is the only expected adjit error."""
    try:
        yield
    except (UnsupportedError, InternalError, NotGeneral, *OF_THE_MACHINE):
        raise
    except Exception as error:
        if any(map(is_users, frames_of(error.__traceback__))):  # Python runs a signal's handler between any two instructions
            raise
        raise report(error, func) from error


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """Guard a pass that runs during tracing or on the statements of an eager tape. It may call the user's functions."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (AdjitError, *OF_THE_MACHINE):
            raise
        except Exception as error:
            frames = list(frames_of(error.__traceback__))
            if any(map(is_users, frames)) or (isinstance(error, TypeError | ValueError) and is_of_runtime(frames[-1])):
                raise
            trace = current_trace()
            raise report(error, None if trace is None else so_far(trace)) from error

    return call


@guarded
def backpropagate(
    stmts: Sequence[Stmt], targets: Sequence[Operand], seeds: Sequence[Operand], sources: Sequence[Operand]
) -> list[Operand | None]:
    from adjit.passes.autodiff import reverse  # noqa: PLC0415 - keeps the passes out of `import adjit`

    return reverse.backpropagate(stmts, targets, seeds, sources)


@guarded
def push_forward(stmts: Sequence[Stmt], sources: Sequence[Operand], tangents: Sequence[Operand]) -> dict[int, Operand]:
    from adjit.passes.autodiff import forward  # noqa: PLC0415 - as above

    return forward.push_forward(stmts, sources, tangents)


def frames_of(traceback: TracebackType | None) -> Iterator[FrameType]:
    return (entry.tb_frame for entry in entries(traceback))


def is_users(frame: FrameType) -> bool:
    return package_of(frame) not in LIBRARIES | {"adjit"}


def is_of_runtime(frame: FrameType) -> bool:
    """Whether the error is raised by `runtime` for users, such as for a custom gradient without its keyword argument."""
    return str(frame.f_globals.get("__name__", "")).startswith("adjit.runtime.")


def so_far(trace: Trace) -> Func:
    """Return the part of a function traced so far; values of enclosing traces are free in it."""
    root = trace.root()
    return Func(root.name, Block(list(root.arguments), list(root.stmts), []))


# ---- the report


def report(error: Exception, func: Func | None) -> InternalError:
    import traceback  # noqa: PLC0415 - only reports of bugs need it

    at = traceback.extract_tb(error.__traceback__)[-1]
    source = at.filename.replace(os.sep, "/").rpartition("/adjit/")[2]
    lines = [f"this is a bug in adjit, not in your program: {type(error).__name__}: {error} ({source}:{at.lineno})"]
    if func is not None:
        lines.append(f"  while compiling @{func.name}")
        path = written("".join(traceback.format_exception(error)), func)
        if path is not None:
            lines.append(f"  the traced program is in {path}: please report this message, with that file, as an issue of adjit")
    return InternalError("\n".join(lines)).at(place_of(list(frames_of(error.__traceback__)), func))


def place_of(frames: list[FrameType], func: Func | None) -> Location | None:
    """Return the user's line: that of the statement being processed, or else where the function begins."""
    for frame in reversed(frames):
        for value in frame.f_locals.values():
            if isinstance(value, Stmt) and value.location is not None:
                return value.location
    return None if func is None else func.location


def written(trace: str, func: Func) -> str | None:
    """Write the program and the traceback to a file and return its path; None if it cannot be written."""
    import platform  # noqa: PLC0415 - only reports of bugs need them
    import tempfile  # noqa: PLC0415 - as above

    about = f"Python {platform.python_version()}, NumPy {sys.modules['numpy'].__version__}, {platform.machine()}"
    try:
        text = str(func)
    except Exception as another:  # the program itself may be what is broken
        text = f"# it cannot be printed: {another!r}\n"
    try:
        handle, path = tempfile.mkstemp(prefix="adjit-bug-", suffix=".ir")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n".join(f"# {line}" for line in (about, *trace.splitlines())) + f"\n\n{text}")
    except OSError:
        return None
    return path
