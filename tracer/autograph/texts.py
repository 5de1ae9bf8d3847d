"""Sources of functions that are not in a file: the command line, standard input, the history of the prompt, variables.

None of these is certain to be the source of the given function: the caller must compare the compiled code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType, FrameType

LONGEST = 1 << 20  # characters of a text to search
HISTORY = 2000  # lines of the history to search


def texts_without_file(code: CodeType) -> Iterator[list[str]]:
    """Yield lines that may contain the code at its own line numbers, most likely first."""
    mark = "lambda" if code.co_name == "<lambda>" else f"def {code.co_name}"
    if code.co_filename == "<stdin>":
        yield from whole_input(mark)
        yield from typed(code, mark)
    yield from command(mark)
    yield from variables(mark)


def command(mark: str) -> Iterator[list[str]]:
    """Yield the text of `python -c text`."""
    for option, text in pairwise(sys.orig_argv):
        if option.startswith("-") and option.endswith("c") and mark in text:
            yield text.splitlines(keepends=True)


def whole_input(mark: str) -> Iterator[list[str]]:
    """Yield the input of `python < file`: a file can be read again, a pipe cannot."""
    try:
        text = os.pread(0, LONGEST, 0).decode()
    except (OSError, ValueError):
        return
    if mark in text:
        yield text.splitlines(keepends=True)


def typed(code: CodeType, mark: str) -> Iterator[list[str]]:
    """Yield the input at the prompt, as far as `readline` stores it: the lines of each statement count from 1."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    count = readline.get_current_history_length()
    lines = [f"{readline.get_history_item(i) or ''}\n" for i in range(max(1, count - HISTORY), count + 1)]
    for at in range(len(lines) - 1, -1, -1):
        if mark not in lines[at]:
            continue
        # decorators come first: the statement may start at any of the preceding lines
        for first in range(at, max(-1, at - 16), -1):
            if first - 1 + code.co_firstlineno <= at:
                yield lines[first : at + 1] if code.co_name == "<lambda>" else lines[first:]


def variables(mark: str) -> Iterator[list[str]]:
    """Yield strings held by variables of running functions or their modules: probably the argument of `exec`."""
    frame: FrameType | None = sys._getframe(1)
    seen: set[int] = set()
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            if id(scope) not in seen:
                seen.add(id(scope))
                texts = [v for v in list(scope.values()) if type(v) is str and len(v) < LONGEST and mark in v]
                yield from (text.splitlines(keepends=True) for text in texts)
        frame = frame.f_back
