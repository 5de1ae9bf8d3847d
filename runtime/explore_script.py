"""The command `python -m adjit.explore`: runs a script, and explores a function that it compiled, with the arrays of its first call."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from adjit.ir.ops.base import Array
from adjit.ir.sizes import is_symbolic

from .concrete import ConcreteFunction, observers
from .config import config
from .explore import explore, written
from .signature import Signature


class CompileWatch:
    """Stores every function that is compiled for one size, with the arrays of the call that it was compiled for."""

    def __init__(self) -> None:
        self.found: list[tuple[ConcreteFunction, list[Array]]] = []

    def __call__(self, concrete: ConcreteFunction, signature: Signature) -> None:
        if any(is_symbolic(n) for p in concrete.program.func.params for n in p.type.shape):
            return
        arrays = concrete.convention.copies([np.array(a) for a in signature.arrays], signature.stores, every=True)
        self.found.append((concrete, arrays))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Observe what is compiled, by default for one size each, since the page shows the values of one call."""
        dynamic, config.dynamic = config.dynamic, False
        observers.append(self)
        try:
            yield
        finally:
            observers.remove(self)
            config.dynamic = dynamic

    def chosen(self, name: str) -> tuple[ConcreteFunction, list[Array]]:
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
    watch = CompileWatch()
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
    except KeyboardInterrupt:
        print("interrupted: explores what was called so far", file=sys.stderr)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    finally:
        sys.argv, sys.path[:] = before
