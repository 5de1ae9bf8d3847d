"""The location of the running op in the user's source, and the name that the user gives its result.

Owns the walk from an op out of adjit, NumPy and contextlib to the user's frame, and the analysis of that frame's bytecode. It costs a few
microseconds per op: the meaning of an instruction is looked up once per code object.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from itertools import islice
from opcode import opmap
from types import CodeType, FrameType, TracebackType
from typing import Any

from adjit.ir.errors import InternalError
from adjit.ir.location import Location
from adjit.ir.records import NamedTuple
from adjit.ir.tracebacks import entries, package_of

BETWEEN = ("adjit", "numpy", "contextlib", "functools", "collections")  # packages with frames between an op and the user's line
LIBRARY = os.path.dirname(os.__file__) + os.sep
REMEMBERED = 2048  # code objects; the table keeps them alive, so it is cleared when it grows past this

_CACHE = opmap["CACHE"]
_EXTENDED_ARG = opmap["EXTENDED_ARG"]
_STORE_LOCAL = opmap["STORE_FAST"]
_STORE_CELL = opmap["STORE_DEREF"]
_STORE_NAMED = (opmap["STORE_NAME"], opmap["STORE_GLOBAL"])
_STORE_TWO = tuple(opmap[name] for name in ("STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST") if name in opmap)  # Python 3.13: two in one

LOADED = time.time()  # time of `import adjit`: files older than this still have the contents that were imported

_inside: dict[str, bool] = {}
_tables: dict[int, tuple[CodeType, dict[int, tuple[Location, str | None]]]] = {}


class CallSite(NamedTuple):
    """A place in the user's source. `callee` is the first adjit frame below it: one object per call in the user's code."""

    location: Location
    name: str | None
    callee: FrameType | None


def user_site(depth: int = 1) -> CallSite | None:
    """Return the innermost user frame outside the `depth` nearest frames; None if all frames belong to adjit."""
    callee: FrameType | None = None
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if not (_inside.get(frame.f_globals.get("__name__", "")) or is_ours(frame)):  # table lookup first: this runs for every op
            location, name = instruction(frame.f_code, frame.f_lasti)
            return CallSite(location, name, callee)
        callee, frame = frame, frame.f_back
    return None


def user_location() -> Location | None:
    """Return the user's line that is running: outside of installed libraries, if there is one."""
    frame = user_frame(2)
    return None if frame is None else instruction(frame.f_code, frame.f_lasti)[0]


def user_frame(depth: int) -> FrameType | None:
    """Return the innermost frame that belongs neither to adjit nor to an installed library; of the latter, if there are only those."""
    frame: FrameType | None = sys._getframe(depth)
    nearest = None
    while frame is not None:
        if not is_ours(frame):
            nearest = nearest or frame
            if not is_installed(frame.f_code.co_filename):
                return frame
        frame = frame.f_back
    return nearest


def is_installed(filename: str) -> bool:
    return "site-packages" in filename or "dist-packages" in filename or filename.startswith((LIBRARY, "<frozen"))


def user_level() -> int:
    """Return the `stacklevel` of the user's own line, as seen from the caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and is_ours(frame):
        frame, level = frame.f_back, level + 1
    return level


def raised_at(traceback: TracebackType | None) -> Location | None:
    """Return the innermost user line that an exception passed through: outside of installed libraries, if there is one."""
    entered = [entry for entry in entries(traceback) if not is_ours(entry.tb_frame)]
    own = [entry for entry in entered if not is_installed(entry.tb_frame.f_code.co_filename)]
    last = (own or entered)[-1:]
    return instruction(last[0].tb_frame.f_code, last[0].tb_lasti)[0] if last else None


def recurs_at(traceback: TracebackType | None) -> Location | None:
    """Return the user's line that occurs most often in a traceback: that of an infinite recursion, wherever it was stopped."""
    entered = [entry for entry in entries(traceback) if not is_ours(entry.tb_frame)]
    lines = Counter(instruction(entry.tb_frame.f_code, entry.tb_lasti)[0] for entry in entered)
    return lines.most_common(1)[0][0] if lines else None


def is_from_outside(error: Exception) -> bool:
    """Whether an exception was not caused by the code that it passed through: lack of memory, a bug in adjit, or an exception raised by a
    signal handler, which Python runs between any two instructions.
    """
    return isinstance(error, MemoryError | InternalError) or is_from_handler(error)


def is_from_handler(error: Exception) -> bool:
    """Whether a signal handler raised an exception."""
    return any(is_handler(entry.tb_frame) for entry in entries(error.__traceback__))


def is_handler(frame: FrameType) -> bool:
    """Whether a frame is that of a signal handler, the only function that is called with the frame below it as an argument."""
    below = frame.f_back
    if below is None:
        return False
    return any(x is below or (type(x) is tuple and any(item is below for item in x)) for x in frame.f_locals.values())


def definition(function: Any) -> Location | None:
    """Return where a Python function (or the one inside a wrapper) starts; None if it has no Python code."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = code_of(function)
    return Location(code.co_filename, code.co_firstlineno, 1, code.co_name) if code else None


def code_of(function: Any) -> CodeType | None:
    """Return the code of a function, a bound method, a `functools.partial` or a callable object."""
    for _ in range(16):
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            return code
        inner = getattr(function, "__func__", None) or getattr(function, "func", None) or getattr(function, "__wrapped__", None)
        if inner is None and not isinstance(function, type):
            inner = type(function).__dict__.get("__call__")
        if inner is None or inner is function:
            return None
        function = inner
    return None


def is_ours(frame: FrameType) -> bool:
    """Whether a frame belongs to adjit, or to a library between adjit and the user.

    Modules are recognised by name, not by folder: in an editable install, adjit's folders may be next to the user's.
    """
    module = frame.f_globals.get("__name__", "")
    found = _inside.get(module)
    if found is None:
        found = _inside[module] = isinstance(module, str) and package_of(frame) in BETWEEN
    return found


def instruction(code: CodeType, offset: int) -> tuple[Location, str | None]:
    """Return the location of the instruction at a bytecode offset, and the name that its result is directly assigned to, if any."""
    entry = _tables.get(id(code))
    if entry is None or entry[0] is not code:
        if len(_tables) >= REMEMBERED:
            _tables.clear()
        entry = _tables[id(code)] = (code, {})
    known = entry[1].get(offset)
    if known is None:
        known = entry[1][offset] = (location_in(code, offset), assigned_name(code, offset))
    return known


def location_in(code: CodeType, offset: int) -> Location:
    line, _, column, _ = next(islice(code.co_positions(), max(offset, 0) // 2, None), (None, None, None, None))
    return Location(code.co_filename, line or code.co_firstlineno, 0 if column is None else column + 1, code.co_name)


def assigned_name(code: CodeType, offset: int) -> str | None:
    """Return the variable that the instruction after the one at `offset` stores to."""
    if offset < 0:
        return None
    ops = code.co_code
    at, extended = offset + 2, 0
    while at < len(ops) and ops[at] in (_CACHE, _EXTENDED_ARG):
        extended = (extended | ops[at + 1]) << 8 if ops[at] == _EXTENDED_ARG else 0
        at += 2
    if at >= len(ops):
        return None
    op, arg = ops[at], extended | ops[at + 1]
    if op in _STORE_NAMED:
        return code.co_names[arg]
    if op in _STORE_TWO:
        op, arg = _STORE_LOCAL, arg >> 4
    if op == _STORE_LOCAL:
        return code.co_varnames[arg] if arg < len(code.co_varnames) else None
    return cell_name(code, arg) if op == _STORE_CELL else None


def cell_name(code: CodeType, arg: int) -> str | None:
    """Return the name of a closure variable: closed-over arguments share their slot; other cells and free variables follow the locals."""
    own = [name for name in code.co_cellvars if name not in code.co_varnames]
    names = (*code.co_varnames, *own, *code.co_freevars)
    return names[arg] if arg < len(names) else None
