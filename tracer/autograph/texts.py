"""Where the text of a function may be found that is in no file: the command line, the standard input, the history of the prompt, variables.

None of these says that it is the text of this very function: who asks must compare what it compiles to.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType, FrameType

LONGEST = 1 << 20  # characters of a text that is looked at
HISTORY = 2000  # lines of the history that are looked at


def texts_without_file(code: CodeType) -> Iterator[list[str]]:
    """Lines in which the code may stand at its own line numbers, likeliest first."""
    mark = "lambda" if code.co_name == "<lambda>" else f"def {code.co_name}"
    if code.co_filename == "<stdin>":
        yield from whole_input(mark)
        yield from typed(code, mark)
    yield from command(mark)
    yield from variables(mark)


def command(mark: str) -> Iterator[list[str]]:
    """`python -c text`."""
    for option, text in pairwise(sys.orig_argv):
        if option.startswith("-") and option.endswith("c") and mark in text:
            yield text.splitlines(keepends=True)


def whole_input(mark: str) -> Iterator[list[str]]:
    """`python < file`: a file can be read again, a pipe cannot."""
    try:
        text = os.pread(0, LONGEST, 0).decode()
    except (OSError, ValueError):
        return
    if mark in text:
        yield text.splitlines(keepends=True)


def typed(code: CodeType, mark: str) -> Iterator[list[str]]:
    """What was typed at the prompt, as far as `readline` remembers: each statement counts its lines from 1."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    count = readline.get_current_history_length()
    lines = [f"{readline.get_history_item(i) or ''}\n" for i in range(max(1, count - HISTORY), count + 1)]
    for at in range(len(lines) - 1, -1, -1):
        if mark not in lines[at]:
            continue
        # decorators stand above: the statement starts at any of the lines before
        for first in range(at, max(-1, at - 16), -1):
            if first - 1 + code.co_firstlineno <= at:
                yield lines[first : at + 1] if code.co_name == "<lambda>" else lines[first:]


def variables(mark: str) -> Iterator[list[str]]:
    """Texts that variables of running functions, or of their modules, hold: what was given to `exec`, most likely."""
    frame: FrameType | None = sys._getframe(1)
    seen: set[int] = set()
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            if id(scope) not in seen:
                seen.add(id(scope))
                texts = [v for v in list(scope.values()) if type(v) is str and len(v) < LONGEST and mark in v]
                yield from (text.splitlines(keepends=True) for text in texts)
        frame = frame.f_back
