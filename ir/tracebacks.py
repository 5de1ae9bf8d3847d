"""Tracebacks that end at the user's line.

An error passes through many functions of adjit before it reaches the user's code; their frames are of no use to users. Public entry points
(calls of compiled functions, transforms, tapes, operators) are boundaries: they remove adjit's frames, and those of libraries that adjit
called, from what passes through them. `config.full_tracebacks` shows everything. Errors that look like bugs of adjit keep all frames.

A boundary leaves no frame of its own either: a bare `raise` continues with the traceback that the exception has by then.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

from .environment import is_set
from .errors import AdjitError, InternalError

P = ParamSpec("P")
R = TypeVar("R")

UNINTENDED = (KeyError, AttributeError, AssertionError, NameError)  # adjit never raises these for users, except as an AdjitError
CONVERSIONS = frozenset({
    "__float__", "__int__", "__bool__", "__complex__", "__index__", "__len__", "__iter__", "__format__", "__array__", "__setitem__",
    "__delitem__", "__getitem__",
})  # fmt: skip
LIBRARIES = frozenset({"numpy", "llvmlite", *sys.stdlib_module_names} - {"__main__"})


class Shown:
    """Whether tracebacks keep adjit's own frames."""

    full = is_set("ADJIT_FULL_TRACEBACKS")


shown = Shown()


def package_of(frame: FrameType) -> str:
    """The top-level package of a frame's module. The constructor that `namedtuple` generates has a module name of its own."""
    name = str(frame.f_globals.get("__name__", ""))
    return "collections" if name.startswith("namedtuple_") else name.partition(".")[0]


def trim(error: BaseException) -> None:
    """Remove adjit's frames from the traceback of an error, and from those of the errors that led to it."""
    if shown.full:
        return
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen or is_bug(each):
            continue
        seen.add(id(each))
        each.__traceback__ = trimmed(each.__traceback__)
        pending += [each.__cause__, None if each.__suppress_context__ else each.__context__]


def is_bug(error: BaseException) -> bool:
    """Whether an error shows that adjit is wrong, rather than the user's program: then its frames are needed to find out why."""
    if isinstance(error, AdjitError):
        return isinstance(error, InternalError)
    last = next(reversed(list(entries(error.__traceback__))), None)
    return isinstance(error, UNINTENDED) and last is not None and package_of(last.tb_frame) == "adjit"


def trimmed(traceback: TracebackType | None) -> TracebackType | None:
    """The same traceback without the frames of adjit and of what it called, up to the next frame of the user's."""
    kept: list[TracebackType] = []
    inside = False
    for entry in entries(traceback):
        package = package_of(entry.tb_frame)
        inside = package == "adjit" or (inside and package in LIBRARIES)
        if not inside:
            kept.append(entry)
    out: TracebackType | None = None
    for entry in reversed(kept):
        out = TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


def entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a public function: errors leave it without frames of adjit's."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return call


def ended(function: FunctionType) -> FunctionType:
    """The function as a boundary. It has the name and the globals of the original, by which profilers and tools see what it is."""
    end = trim

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            end(error)
            raise

    code = call.__code__.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    out = FunctionType(code, function.__globals__, function.__name__, None, call.__closure__)
    functools.update_wrapper(out, function)
    return out


def ends(function: FunctionType) -> bool:
    return function.__code__.co_filename == __file__


def end_at_callers(namespace: dict[str, Any], names: Iterable[str] | None = None) -> None:
    """Make functions of a module boundaries: all public ones that it defines, or those with the given names."""
    for name in [name for name in namespace if not name.startswith("_")] if names is None else names:
        found = namespace[name]
        if type(found) is FunctionType and found.__module__ == namespace["__name__"] and not ends(found):
            namespace[name] = ended(found)


def methods_end_at_callers(cls: type, names: Iterable[str] | None = None) -> None:
    """Make methods of a class boundaries: those by which Python converts and asks its objects, and all public ones, or some."""
    for name, found in list(vars(cls).items()):
        public = not name.startswith("_") if names is None else name in names
        if type(found) is FunctionType and (public or name in CONVERSIONS):
            setattr(cls, name, ended(found))


def lookup(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a `__getattr__`: the AttributeError that it raises itself ends at the line of the user who wrote the name."""

    @functools.wraps(function)
    def look_up(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            *_, last = entries(error.__traceback__)
            if last.tb_frame.f_code.co_name == "__getattr__" and not shown.full:
                error.__traceback__ = None
            raise

    return look_up
