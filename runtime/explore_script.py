"""The command `python -m adjit.explore`: runs a script, and explores a function that it compiled, with the arrays of its first call."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import convention as conventions
from .concrete import ConcreteFunction
from .explore import explore, written


class Watch:
    """Remembers the first call of every compiled function."""

    def __init__(self) -> None:
        self.found: list[tuple[ConcreteFunction, list[Any]]] = []
        self._made: dict[int, ConcreteFunction] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        concretes: Any = ConcreteFunction
        calling: Any = conventions.Convention
        make, run = concretes.__init__, calling.run
        made, found = self._made, self.found

        def init(concrete: Any, *args: Any, **kwargs: Any) -> None:
            make(concrete, *args, **kwargs)
            made[id(concrete.convention)] = concrete

        def first(convention: Any, arrays: list[Any], given: Any = (), observe: Any = None) -> Any:
            concrete = made.pop(id(convention), None)
            if concrete is not None:
                found.append((concrete, [np.array(a) for a in convention.copies(list(arrays), given, every=True)]))
            return run(convention, arrays, given, observe)

        concretes.__init__, calling.run = init, first
        try:
            yield
        finally:
            concretes.__init__, calling.run = make, run

    def chosen(self, name: str) -> tuple[ConcreteFunction, list[Any]]:
        """The function of this name; without a name, the one with the most statements."""
        named = [each for each in self.found if not name or each[0].program.func.name == name]
        if not named:
            known = ", ".join(dict.fromkeys(each[0].program.func.name for each in self.found)) or "none"
            raise SystemExit(f"no compiled function {name!r} was called; these were: {known}")
        return max(named, key=lambda each: len(each[0].program.func.stmts))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m adjit.explore", description=__doc__.split(": ", 1)[1])
    parser.add_argument("script", help="script.py or script.py:function; by default, the largest function that it calls")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    parser.add_argument("--output", default="explore.html", type=Path)
    parser.add_argument("--no-open", action="store_true", help="do not show the page in a browser")
    options = parser.parse_args(arguments)
    script, _, name = options.script.rpartition(":") if ":" in Path(options.script).name else (options.script, "", "")
    watch = Watch()
    with watch.watching():
        execute(script, options.arguments)
    concrete, arrays = watch.chosen(name)
    out = written(explore(concrete, arrays, None), options.output, not options.no_open)
    print(f"@{concrete.program.func.name}: {out}")


def execute(script: str, arguments: Sequence[str]) -> None:
    import runpy  # noqa: PLC0415 - the command alone needs it

    before = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    finally:
        sys.argv, sys.path[:] = before
