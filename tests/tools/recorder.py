"""A pytest plugin that records which tests run which lines of the given files, and the processor time of each test.

`ADJIT_RECORD` is the folder to write to, one file a process; `ADJIT_RECORDED` lists folders of sources, separated by `:`.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import coverage
import pytest

Lines = dict[str, dict[int, list[str]]]  # file, line: tests


class Recorder:
    def __init__(self, into: Path, sources: list[str]) -> None:
        self.into = into
        self.seconds: dict[str, float] = {}
        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=[f"{os.path.realpath(s)}/*" for s in sources])
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, Any]:
        start = time.process_time()
        self.coverage.switch_context(item.nodeid)
        try:
            result = yield
        finally:
            self.coverage.switch_context("")
        self.seconds[item.nodeid] = time.process_time() - start  # a test that fails by itself, or is skipped, judges no mutant
        return result

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines: dict[str, dict[int, list[str]]] = {}
        for file in data.measured_files():
            lines[file] = {line: [test for test in tests if test in self.seconds] for line, tests in data.contexts_by_lineno(file).items()}
        Path(self.into, f"{os.getpid()}.json").write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


def pytest_configure(config: Any) -> None:
    distributing = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")  # this process runs no tests
    if "ADJIT_RECORD" in os.environ and not distributing:
        config.pluginmanager.register(Recorder(Path(os.environ["ADJIT_RECORD"]), os.environ["ADJIT_RECORDED"].split(":")))


def read(folder: Path) -> tuple[Lines, dict[str, float]]:
    """The records of all processes: the tests of each line, and the seconds of each test."""
    lines: Lines = defaultdict(lambda: defaultdict(list))
    seconds: dict[str, float] = {}
    for part in _parts(folder):
        seconds |= part["seconds"]
        for file, of_file in part["lines"].items():
            for line, tests in of_file.items():
                lines[file][int(line)] += tests
    return lines, seconds


def _parts(folder: Path) -> Iterable[Any]:
    return (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
