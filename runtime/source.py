"""`function.source`: a compiled program as NumPy Python, as text and as functions that a debugger can step through."""

from __future__ import annotations

import ast
import linecache
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.func import Func
from adjit.ir.ops.base import Array
from adjit.ir.source_module import ModuleText, write_module

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

_numbers = count(1)


class Source:
    """A program as Python. `print` it to read it; `forward` and `backward` are its functions, `arguments` what a call takes.

    `forward` returns the results, then what it saves for `backward`, which takes it. The object itself is callable: it takes the arrays of
    the arguments and variables, runs both, and returns the results and the new values of variables.
    """

    def __init__(self, text: ModuleText, arguments: Sequence[Array] = ()) -> None:
        self.text = text.text
        self.constants = text.arrays
        self.arguments = tuple(arguments)
        self.filename = f"<adjit source of {text.whole}, {next(_numbers)}>"
        names = executed(self.text, self.constants, self.filename)
        # without a time stamp, linecache keeps the lines: debuggers and tracebacks show them
        linecache.cache[self.filename] = (len(self.text), None, self.text.splitlines(keepends=True), self.filename)
        self.forward: Callable[..., Any] = names[text.forward]
        self.backward: Callable[..., Any] | None = names[text.backward] if text.backward else None
        self._whole: Callable[..., Any] = names[text.whole]
        # a function keeps the module's globals, and with them all of its functions: the lines are kept as long as any of them
        weakref.finalize(self._whole, linecache.cache.pop, self.filename, None).atexit = False

    def __call__(self, *arrays: Any) -> Any:
        return self._whole(*(arrays or self.arguments))

    def debug(self, *arrays: Any, stdin: Any = None, stdout: Any = None) -> Any:
        """Run it under pdb, which stops at the first line of the backward function (of the only one, if there is no other)."""
        import inspect  # noqa: PLC0415 - debuggers are slow to import, and rarely needed
        import pdb  # noqa: PLC0415 - as above

        first = inspect.unwrap(self.backward or self.forward).__code__
        # commands come from the user, not from a configuration file; pdb does not step into NumPy and its wrappers
        debugger = pdb.Pdb(stdin=stdin, stdout=stdout, nosigint=True, readrc=False, skip=["numpy*", "contextlib"])
        debugger.prompt = "(Pdb) "
        debugger.rcLines = ["continue"]
        start = next(line for _, _, line in first.co_lines() if line and line > first.co_firstlineno + 1)
        debugger.set_break(self.filename, start, temporary=True)
        before = sys.gettrace()
        try:
            return debugger.runcall(self, *arrays)
        finally:
            sys.settrace(before)  # pdb leaves none, which would end a measurement of coverage

    def save(self, path: str | Path) -> Path:
        """Write the module to a file, and its large constants to an `.npz` file beside it."""
        path = Path(path)
        path.write_text(self.text, encoding="utf-8")
        if self.constants:
            arrays: dict[str, Any] = dict(self.constants)
            np.savez(path.with_suffix(".npz"), **arrays)
        return path

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<source of {self.filename[17:-1]}: {len(self.text.splitlines())} lines>"


def executed(text: str, constants: Mapping[str, Array], filename: str) -> dict[str, Any]:
    """Execute a module and return its names. The lines that load constants are left out, since `constants` has them."""
    tree = ast.parse(text)
    loaded = {"constants", *constants} if constants else set()
    tree.body = [s for s in tree.body if not (isinstance(s, ast.Assign) and getattr(s.targets[0], "id", "") in loaded)]
    names: dict[str, Any] = {"__name__": "adjit_source", "__file__": filename, **constants}
    exec(compile(tree, filename, "exec"), names)
    return names


def text_of(concrete: ConcreteFunction, func: Func, halves: tuple[Func, Func | None]) -> ModuleText:
    """The text of a compiled function, from its simplified form and the halves of that. Captured arrays are constants of the module."""
    captured = concrete.program.captures
    params = func.params[len(func.params) - len(captured) :] if captured else ()
    return write_module(func, *halves, {id(p): a for p, a in zip(params, captured, strict=True)})
