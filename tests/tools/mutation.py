"""Mutation testing: how many small mistakes in derivative rules and passes does the test suite notice?

    python -m tests.tools.mutation rules
    python -m tests.tools.mutation passes --count 200 --seed 3 --jobs 2
    python -m tests.tools.mutation passes --tests tests/passes --count 0
    python -m tests.tools.mutation costs
    python -m tests.tools.mutation rules --count 20 --control

First, the tests run once with a recorder that notes which test runs which line (`--recorded FOLDER` keeps the record, or uses the one that
is there). Then each mutant runs in a fork of a process that has collected the tests, against tests that run the changed line: a few cases
of each, those that mirror the file and the quickest first.
A mutant is killed when a test fails, crashes, or takes much more processor time than without it; a test that kills must pass, in a fork,
without the mutant. Survivors are listed: each is a missing test, or a change that makes no difference (in speed at most). Those that were
read and make none are rows of `equivalent.py`, with the reason, and are not drawn.
With `--control`, functions are exchanged for themselves: all survive, if the tool works.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol

from tests.tools import recorder
from tests.tools.equivalent import is_equivalent
from tests.tools.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
RULES = ("derivative", "jvp", "vjp", "pull_back", "push_forward", "linear", "transposed")
# They decide which optimisations are worthwhile: a mistake only costs time. The group `costs` has them, and the files that estimate work.
SPEED_ONLY = ("cost", "worth", "pays", "cheap", "profit")
ESTIMATES = ("cost.py", "work.py", "traffic.py", "_work_at", "_boxes", "_saves_traffic")  # files, and functions of other files


class Group(NamedTuple):
    """Files, which of their functions are changed, the tests that should notice, and those of them that could not (for `-k`)."""

    files: list[str]
    wanted: Callable[[Path, str], bool]
    tests: list[str]
    without: str


def _is_rule(path: Path, name: str) -> bool:
    return name.lstrip("_") in RULES


def _is_cost(path: Path, name: str) -> bool:
    return bool({path.name, name} & {*ESTIMATES}) or any(word in name for word in SPEED_ONLY)


GROUPS = {
    "rules": Group(
        ["ir/ops"],
        _is_rule,
        ["tests/ops", "tests/passes", "tests/runtime/test_surface_gradients.py", "tests/runtime/test_transforms_rows.py"],
        "test_types_and_values_are_numpys or test_text_round_trip or test_interpreted_is_eager or test_shapes or test_strides",
    ),
    "passes": Group(
        ["passes"],
        lambda path, name: not _is_cost(path, name),
        [
            "tests/passes",
            "tests/ops/test_rows.py",
            "tests/ops/test_structure.py",
            "tests/codegen/test_hosts.py",
            "tests/runtime/test_sparse.py",
            "tests/runtime/test_complex.py",
            "tests/runtime/test_custom_vjp.py",
            "tests/runtime/test_transforms.py",
            "tests/tracer/test_fft.py",
            "tests/tracer/test_complex_order.py",
            "tests/tracer/test_complex_factors.py",
        ],
        "test_strides",
    ),
    "costs": Group(
        ["ir", "passes", "codegen"],
        _is_cost,
        [
            "tests/test_decisions.py",
            "tests/ir/test_cost.py",
            "tests/passes",
            "tests/codegen/test_parallel.py",
            "tests/codegen/loops",
            "tests/runtime/test_profile.py",
        ],
        "test_every_row_against_a_loop",
    ),
}
ACHIEVED = "test_achieved.py"  # the result of all passes together on whole programs
MOST_TESTS = 40
CASES = 4  # of one test function, before those of others
SLACK = (20.0, 10.0)  # a mutant may take this many seconds of processor time, and this many times what its tests take without it


def chosen(group: Group) -> list[Mutant]:
    files = sorted(path for folder in group.files for path in (ROOT / folder).rglob("*.py"))
    return [
        mutant
        for path in files
        for mutant in mutants(path, lambda name, path=path: group.wanted(path, name.split(".")[-1]))  # type: ignore[misc]
        if not is_equivalent(mutant, ROOT)
    ]


def record(group: Group, into: Path, options: list[str]) -> None:
    """Run the tests once, and write down which lines each of them runs."""
    into.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"ADJIT_RECORD": str(into), "ADJIT_RECORDED": ":".join(group.files)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.tools.recorder", *options, *group.tests]
    subprocess.run([*command, "-k", f"not ({group.without})"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)


class Verdict(NamedTuple):
    killed: bool
    test: str  # that ran last
    why: str


class Judge:
    """A pytest plugin that runs, instead of all tests once, the tests of each mutant in a fork."""

    def __init__(self, drawn: list[Mutant], lines: recorder.Lines, seconds: dict[str, float], jobs: int, control: bool) -> None:
        self.drawn, self.lines, self.seconds, self.jobs, self.control = drawn, lines, seconds, jobs, control
        self.survivors: list[Mutant] = []
        self.kills: Counter[str] = Counter()
        self._running: dict[int, tuple[Mutant, int]] = {}
        self._sound: dict[str, bool] = {}
        self._done = 0

    def pytest_runtestloop(self, session: Any) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        for path in {mutant.path for mutant in self.drawn if mutant.path.is_relative_to(ROOT)}:  # some are imported when first used
            importlib.import_module(".".join(("adjit", *path.relative_to(ROOT).with_suffix("").parts)))
        gc.collect()
        self.functions = functions_by_place()
        gc.freeze()
        for mutant in self.drawn:
            functions = self.functions_of(mutant)
            tests = self.tests_of(mutant)
            if not functions or not tests:
                self._survives(mutant, " (no test runs it)" if functions else " (not loaded)")
                continue
            if len(self._running) == self.jobs:
                self._wait()
            child, said = self._fork(tests, mutant, functions)
            self._running[child] = mutant, said
        while self._running:
            self._wait()
        return True

    def functions_of(self, mutant: Mutant) -> list[FunctionType]:
        return self.functions.get((os.path.realpath(mutant.path), mutant.first_line), [])

    def tests_of(self, mutant: Mutant) -> list[str]:
        of_file = self.lines.get(os.path.realpath(mutant.path), {})
        before = (of_file.get(line, []) for line in range(mutant.line, mutant.first_line, -1))  # the line, or where its statement begins
        of_line = {*next(filter(None, before), [])} & self.items.keys()
        return varied(of_line - {test for test, sound in self._sound.items() if not sound}, self.seconds, mutant.path)

    def _fork(self, tests: list[str], mutant: Mutant | None, functions: list[FunctionType]) -> tuple[int, int]:
        heard, said = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child:
            os.close(said)
            return child, heard
        status = 2
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            limit = int(SLACK[0] + SLACK[1] * sum(self.seconds[test] for test in tests))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            if mutant is not None:
                code = mutant.code(changed=not self.control)
                for function in functions:
                    function.__code__ = code
            status = 0
            for test in tests:
                os.write(said, f"{test}\n".encode())
                if any(report.failed for report in runtestprotocol(self.items[test], log=False, nextitem=None)):
                    status = 1
                    break
        finally:
            os._exit(status)

    def _wait(self) -> None:
        child, status = os.wait()
        mutant, heard = self._running.pop(child)
        verdict = _verdict(status, heard)
        if verdict.killed and not self._passes(verdict.test):
            child, heard = self._fork(
                self.tests_of(mutant), mutant, self.functions_of(mutant)
            )  # once more, without the test that fails by itself
            self._running[child] = mutant, heard
            return
        self.kills[verdict.why] += verdict.killed
        if not verdict.killed:
            self._survives(mutant, f" ({verdict.why})" if verdict.why else "")
        self._tell()

    def _passes(self, test: str) -> bool:
        """Whether a test passes by itself."""
        if test not in self._sound:
            child, heard = self._fork([test], None, [])
            self._sound[test] = not _verdict(os.waitpid(child, 0)[1], heard).killed
        return self._sound[test]

    def _survives(self, mutant: Mutant, why: str) -> None:
        self.survivors.append(mutant)
        print(f"survives{why}: {mutant}", flush=True)

    def _tell(self) -> None:
        self._done += 1
        if self._done % 25 == 0:
            print(f"{self._done} of {len(self.drawn)}: {len(self.survivors)} survive", flush=True)


def varied(tests: Iterable[str], seconds: dict[str, float], path: Path) -> list[str]:
    """A few cases of every test function, those of the file's own tests first, and quick ones before others; then a few more of each.

    The quickest of all would be many cases of one test, and of a line that all programs run, tests of anything else.
    Of a file's own tests, a few cases of each are among them, however many tests there are; of the others, as many as there is room for.
    """
    mirrors = (f"test_{path.stem}", f"test_{path.parent.name}")  # tests/passes/test_simplify.py tests the files of passes/simplify
    turns: Counter[str] = Counter()
    order = []
    for test in sorted(tests, key=seconds.__getitem__):
        file = Path(test.partition("::")[0]).name
        function = test if file == ACHIEVED else test.partition("[")[0]  # each of its cases is another program
        stem = file.removesuffix(".py")
        is_own = any(stem == m or stem.startswith(f"{m}_") for m in mirrors) or (file == ACHIEVED and path.is_relative_to(ROOT / "passes"))
        order.append((turns[function] // CASES, not is_own, turns[function], seconds[test], test))
        turns[function] += 1
    wanted = sum(turn == 0 and not is_other for turn, is_other, *_ in order)
    return [test for *_, test in sorted(order)][: max(MOST_TESTS, wanted)]


def _verdict(status: int, heard: int) -> Verdict:
    with os.fdopen(heard) as said:
        last = ["", *said.read().splitlines()][-1]
    if os.WIFSIGNALED(status):
        return Verdict(True, last, f"by signal {os.WTERMSIG(status)}")
    code = os.WEXITSTATUS(status)
    return Verdict(code == 1, last, {0: "", 1: "by a failure", 2: "cannot be installed"}[code])


def functions_by_place() -> dict[tuple[str, int], list[FunctionType]]:
    """All function objects, whether held by a module, a class, a cache or a decorator, by file and first line."""
    found = defaultdict(list)
    for f in gc.get_objects():  # those that are frozen are not among them
        if isinstance(f, FunctionType):
            found[os.path.realpath(f.__code__.co_filename), f.__code__.co_firstlineno].append(f)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--count", type=int, default=200, help="how many mutants are tried, drawn from all; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument("--control", action="store_true", help="change nothing: whatever is killed is a mistake of this tool")
    parser.add_argument("--tests", nargs="+", help="the tests that judge, instead of all that could notice")
    parser.add_argument("--files", nargs="+", default=[], help="draw mutants of these files alone")
    parser.add_argument("--recorded", type=Path, help="folder of the record of the tests' lines")
    parser.add_argument("--pytest", default="", help="options of the recording run, as '-p tests.tools.sample --sample 20'")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    group = GROUPS[options.group]
    group = group._replace(tests=options.tests or group.tests)
    folder = options.recorded or Path(tempfile.mkdtemp(prefix="adjit-mutation-"))
    if not any(folder.glob("*.json")):
        record(group, folder, [*(("-n", str(options.jobs)) if options.jobs > 1 else ()), *options.pytest.split()])
    lines, seconds = recorder.read(folder)
    every = [m for m in chosen(group) if not options.files or m.path.relative_to(ROOT).as_posix() in options.files]
    drawn = random.Random(options.seed).sample(every, min(options.count or len(every), len(every)))
    judge = Judge(drawn, lines, seconds, options.jobs, options.control)
    pytest.main(["-s", "-p", "no:cacheprovider", "-p", "no:terminal", *group.tests], plugins=[judge])
    killed = sum(judge.kills.values())
    if killed + len(judge.survivors) != len(drawn):
        sys.exit("not all mutants were tried")
    how = ", ".join(f"{n} {why}" for why, n in judge.kills.items() if n)
    print(
        f"{options.group}: {killed} of {len(drawn)} mutants killed ({killed / len(drawn):.1%}; {how}), "
        f"drawn from {len(every)} with seed {options.seed}"
    )
    return int(killed > 0 if options.control else killed < 0.9 * len(drawn))


if __name__ == "__main__":
    sys.exit(main())
