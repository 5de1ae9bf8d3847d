"""Run TensorFlow's own test files with `adjit.tf` instead of TensorFlow.

    python -m tests.tools.tensorflow_tests FOLDER [FILE ...] [--out ROWS.json] [--show]

FOLDER is a checkout of TensorFlow, or holds some of its test files at their paths (`tensorflow/python/eager/backprop_test.py`; those of
AutoGraph need `reference_test_base.py`); it is only read. It needs `absl-py`, and `ml_dtypes` for bfloat16. Every file runs in a process of
its own; those of `tensorflow_files.txt` unless some are named. A test that fails is `excluded`, with a reason, if it is on the list of
`tensorflow_excluded.txt`, or asks for something that `tensorflow_scope` names as out of scope; `--all` shows what the list hides.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import logging
import os
import re
import signal
import subprocess
import sys
import traceback
import unittest
import unittest.mock
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from tests.tools.tensorflow_scope import TEXT

SECONDS = 60  # of processor time, for one test
OUTCOMES = ("passed", "failed", "wording", "excluded", "skipped")  # wording: the right class of error, with another text
EXCLUDED = Path(__file__).with_name("tensorflow_excluded.txt")
FILES = Path(__file__).with_name("tensorflow_files.txt")


class _TooLong(BaseException):
    """A test took more than SECONDS."""


def _too_long(*args: Any) -> None:
    raise _TooLong


def exclusions() -> list[tuple[str, str]]:
    """Pairs of a pattern of test names (or of their text, after `text:`) and a reason."""
    rows, why = [], ""
    for line in EXCLUDED.read_text().splitlines():
        if line.startswith("# "):
            why = line[2:].strip()
        elif line.strip():
            rows.append((line.strip(), why))
    return rows


def _reason(test: Any, file: str, rows: list[tuple[str, str]]) -> str | None:
    method = getattr(type(test), test._testMethodName)
    name = f"{file}::{type(test).__name__}.{test._testMethodName}{getattr(method, '__x_params_repr__', '')}"
    text = ""
    for pattern, why in rows:
        if pattern.startswith("text:"):
            if not text:
                text = _text(test)
            if re.search(pattern[5:].strip(), text):
                return f"{why} ({re.search(pattern[5:].strip(), text)[0]})"
        elif re.search(pattern, name):
            return f"{why} ({pattern})"
    return None


def _text(test: Any) -> str:
    method = getattr(type(test), test._testMethodName)
    while hasattr(method, "__wrapped__"):
        method = method.__wrapped__
    try:
        return inspect.getsource(method)
    except (OSError, TypeError):
        return ""


def _flat(suite: Any) -> Any:
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _flat(item)
        else:
            yield item


class _Result(unittest.TestResult):
    """One row for each test: name, outcome, the last lines of its error."""

    def __init__(self, file: str, exclusions: list[tuple[str, str]]) -> None:
        super().__init__()
        self.file, self.rows, self.exclusions = file, {}, exclusions

    def _row(self, test: Any, outcome: str, detail: str = "", trace: str = "") -> None:
        test = getattr(test, "test_case", test)
        key = f"{self.file}::{type(test).__name__}.{test._testMethodName}"
        if key not in self.rows or self.rows[key]["outcome"] == "passed":
            self.rows[key] = {"test": key, "outcome": outcome, "detail": detail, "trace": trace}

    def addSuccess(self, test: Any) -> None:
        self._row(test, "passed")

    def addSkip(self, test: Any, reason: str) -> None:
        self._row(test, "excluded" if reason.startswith("excluded: ") else "skipped", reason)

    def addFailure(self, test: Any, err: Any) -> None:
        found = re.search(r"excluded: ([^\n]*)", str(err[1]))  # raised in a test that compares errors
        if "a tensor of strings" in str(err[1]) and "out of the scope" in str(err[1]):
            found = re.match("(.*)", TEXT)
        why = found[1].strip() if found is not None else _reason(getattr(test, "test_case", test), self.file, self.exclusions)
        if why is not None:
            self._row(test, "excluded", f"excluded: {why}")
            return
        short, long = traceback.format_exception_only(err[1]), traceback.format_exception(*err)
        right_class = isinstance(err[1], AssertionError) and re.match(r'".*" does not match "', str(err[1]), re.S)
        self._row(test, "wording" if right_class else "failed", "".join(short)[:1500], "".join(long)[-4000:])

    addError = addFailure

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.addFailure(test, err)


def worker(folder: str, file: str, only: str | None, everything: bool) -> list[dict[str, Any]]:
    """Rows of one file."""
    from adjit.runtime.retracing import RetraceWarning
    from tests.tools import tensorflow_shim

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", RetraceWarning)
    logging.captureWarnings(True)  # TensorFlow warns by logging
    sys.modules.setdefault("google", unittest.mock.MagicMock(__path__=[]))  # protocol buffers
    for name in ("google.protobuf", "google.protobuf.text_format"):
        sys.modules.setdefault(name, unittest.mock.MagicMock())
    sys.meta_path.insert(0, tensorflow_shim.Finder(folder))
    with tensorflow_shim.importing():
        module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    result = _Result(file, [] if everything else exclusions())
    signal.signal(signal.SIGPROF, _too_long)
    for test in _flat(unittest.defaultTestLoader.loadTestsFromModule(module)):
        if (only and not re.search(only, str(test))) or test._testMethodName == "test_session":
            continue
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            test.run(result)
        except _TooLong:
            result._row(test, "failed", f"took more than {SECONDS} s")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return list(result.rows.values())


def main() -> None:
    """Run the files of the command line, or all under FOLDER."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="*", help="paths below FOLDER; those of tensorflow_files.txt unless given")
    parser.add_argument("--only", metavar="REGEX", help="tests whose name matches")
    parser.add_argument("--out", type=Path, metavar="ROWS.json")
    parser.add_argument("--show", action="store_true", help="print what failed, with the error")
    parser.add_argument("--all", action="store_true", help="do not use the list of exclusions: see what it hides")
    parser.add_argument("--trace", action="store_true", help="print tracebacks")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        rows = worker(str(args.folder), args.files[0], args.only, args.all)
        sys.stdout.write("\x1e" + json.dumps(rows))
        sys.stdout.flush()
        os._exit(0)
    files = args.files or [file for file in FILES.read_text().split() if (args.folder / file).exists()]
    everything, total = [], Counter[str]()
    for file in files:
        command = [sys.executable, "-m", "tests.tools.tensorflow_tests", str(args.folder), file, "--worker"]
        command += (["--only", args.only] if args.only else []) + (["--all"] if args.all else [])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "\x1e" not in done.stdout:
            everything.append(
                {"test": file, "outcome": "failed", "detail": "the file did not run: " + done.stderr[-1500:], "trace": done.stderr[-4000:]}
            )
        else:
            everything += json.loads(done.stdout.rpartition("\x1e")[2])
        count = Counter(row["outcome"] for row in everything if row["test"].startswith(file))
        total.update(count)
        print(f"{file}: " + ", ".join(f"{count[key]} {key}" for key in OUTCOMES), flush=True)
        if args.show or args.trace:
            for row in everything:
                if row["test"].startswith(file) and row["outcome"] in ("failed", "wording"):
                    print(f"  {row['test'].partition('::')[2]}: {row['trace' if args.trace else 'detail'].strip()}")
    if args.out:
        args.out.write_text(json.dumps(everything, indent=1))
    print("all: " + ", ".join(f"{total[key]} {key}" for key in OUTCOMES))
    for why, count in Counter(row["detail"].partition(" (")[0] for row in everything if row["outcome"] == "excluded").most_common():
        print(f"  {count} {why}")


if __name__ == "__main__":
    main()
