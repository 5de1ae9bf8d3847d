"""Mutation testing: how many small mistakes in derivative rules and passes does the test suite notice?

    python -m tests.tools.mutation rules --count 200
    python -m tests.tools.mutation passes --count 200 --seed 3

First, the tests run once with a recorder that notes which test calls which function. Then each mutant runs in a fork of a process that has
imported the tests, against the quickest tests that call the mutated function. A mutant is killed when a test fails, hangs or crashes.
Survivors are listed: each is a missing test, or a change that makes no difference (in speed at most).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from tests.tools.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
RULES = ("derivative", "jvp", "vjp", "pull_back", "push_forward", "linear", "transposed")
GROUPS: dict[str, tuple[list[str], list[str]]] = {  # files, and the tests that should hold them
    "rules": (
        ["ir/ops"],
        ["tests/ops", "tests/passes", "tests/runtime/test_surface_gradients.py", "tests/runtime/test_transforms_rows.py"],
    ),
    "passes": (["passes"], ["tests/passes", "tests/ops/test_rows.py", "tests/ops/test_structure.py", "tests/codegen/test_hosts.py"]),
}
# They decide what is worth doing; a mistake there costs time alone, which benchmarks/regression.py watches.
SPEED_ONLY = ("cost", "worth", "pays", "cheap", "profit")
MOST_TESTS = 40
SECONDS = 60


class Recorder:
    """A pytest plugin that notes which of our functions each test calls, and how long it takes."""

    def __init__(self, into: Path) -> None:
        self.into = into
        self.calls: dict[str, dict[str, float]] = defaultdict(dict)
        self._codes: set[CodeType] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, None]:
        self._codes = set()
        start = time.perf_counter()
        sys.setprofile(self._called)
        outcome = yield
        sys.setprofile(None)
        if outcome.excinfo is None:  # a test that fails by itself judges no mutant
            seconds = time.perf_counter() - start
            for code in self._codes:
                self.calls[place(code)][item.nodeid] = seconds

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self._codes.add(frame.f_code)

    def pytest_sessionfinish(self) -> None:
        ours = {at: tests for at, tests in self.calls.items() if at.startswith(str(ROOT)) and "/tests/" not in at}
        self.into.write_text(json.dumps(ours))


def place(code: CodeType) -> str:
    return f"{os.path.realpath(code.co_filename)}:{code.co_firstlineno}"


def record(tests: list[str]) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder, "calls.json")
        command = [sys.executable, "-m", "tests.tools.mutation", "--record", str(into), *tests]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        calls: dict[str, dict[str, float]] = json.loads(into.read_text())
        return calls


def chosen(group: str) -> list[Mutant]:
    folders, _ = GROUPS[group]
    files = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))

    def wanted(name: str) -> bool:
        last = name.split(".")[-1]
        return last.lstrip("_") in RULES if group == "rules" else not any(word in last for word in SPEED_ONLY)

    return [mutant for path in files for mutant in mutants(path, wanted)]


def killed(mutant: Mutant, tests: list[str]) -> bool:
    """Whether one of the tests notices the mutant, in a fork."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            signal.alarm(SECONDS)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            install(mutant)
            status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])
        os._exit(status)
    return os.waitpid(child, 0)[1] != 0


def install(mutant: Mutant) -> None:
    """Exchange the code of the function wherever it is held: by its module, a class, a cache or a decorator."""
    at = f"{os.path.realpath(mutant.path)}:{mutant.first_line}"
    found = [
        f
        for f in gc.get_objects()
        if isinstance(f, FunctionType) and f.__code__.co_firstlineno == mutant.first_line and place(f.__code__) == at
    ]
    if not found:
        raise LookupError(f"{mutant} is not loaded")
    for function in found:
        function.__code__ = mutant.code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", nargs="?", choices=GROUPS)
    parser.add_argument("--count", type=int, default=200, help="how many mutants are tried, drawn from all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["ADJIT_CACHE"] = "0"  # compiled programs of the disk cache would hide mutants of the passes
    os.chdir(ROOT)
    if options.record:
        into, *tests = options.record
        return int(pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[Recorder(Path(into))]))
    calls = record(GROUPS[options.group][1])
    every = chosen(options.group)
    drawn = random.Random(options.seed).sample(every, min(options.count, len(every)))
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", *GROUPS[options.group][1]])  # imports them once, for all forks
    gc.freeze()
    survivors = []
    for number, mutant in enumerate(drawn, 1):
        tests = calls.get(f"{os.path.realpath(mutant.path)}:{mutant.first_line}", {})
        quickest = sorted(tests, key=tests.__getitem__)[:MOST_TESTS]
        if not quickest or not killed(mutant, quickest):
            survivors.append(mutant)
            print(f"survives{'' if quickest else ' (no test calls it)'}: {mutant}", flush=True)
        if number % 25 == 0:
            print(f"{number} of {len(drawn)}: {len(survivors)} survive", flush=True)
    rate = 1 - len(survivors) / len(drawn)
    print(
        f"{options.group}: {len(drawn) - len(survivors)} of {len(drawn)} mutants killed ({rate:.1%}), "
        f"drawn from {len(every)} with seed {options.seed}"
    )
    return int(rate < 0.9)


if __name__ == "__main__":
    sys.exit(main())
