"""The tool distinguishes mutants that tests detect from those that they do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.tools.mutation import MOST_TESTS, varied

ROOT = Path(__file__).parents[2]
RULES = """
def derivative(x):
    return 2 * x

def jvp(x):
    return x + 1

def vjp(x):
    return -x

def linear(x):
    while x > 0:
        x -= 1
    return x
"""
TESTS = """
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import small_rules

def test_checked():
    assert small_rules.derivative(3) == 6

def test_unchecked():
    small_rules.jvp(3)

def test_ends():
    assert small_rules.linear(2) == 0

PARENT = os.getpid()

def test_fails_in_a_fork_without_any_mutant():
    assert small_rules.jvp(1)
    assert os.getpid() == PARENT
"""
SCRIPT = """
import sys
from tests.tools import mutation
mutation.GROUPS["rules"] = mutation.Group([sys.argv[1]], mutation._is_rule, [sys.argv[1]], "nothing")
mutation.SLACK = 1.0, 10.0
sys.exit(mutation.main(["rules", *sys.argv[2:]]))
"""


def test_killed_and_surviving_mutants(tmp_path: Path) -> None:
    (tmp_path / "small_rules.py").write_text(RULES)
    (tmp_path / "test_small_rules.py").write_text(TESTS)
    run = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    survivors = sorted(line.split(" in ")[1] for line in run.stdout.splitlines() if line.startswith("survives"))
    assert survivors == ["jvp: 1 -> 2", "jvp: x + 1 -> x - 1", "linear: 1 -> 2", "vjp: -x -> +x"], run.stdout + run.stderr
    assert "6 of 10 mutants killed" in run.stdout
    assert run.returncode == 1
    control = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), "--control"], cwd=ROOT, capture_output=True, text=True)
    assert "0 of 10 mutants killed" in control.stdout
    assert control.returncode == 0


def test_cases_of_one_test_leave_room_for_others() -> None:
    cases = {f"tests/test_b.py::g[{k}]": 0.1 * k for k in range(6)}
    seconds = cases | {"tests/test_b.py::f": 0.5, "tests/passes/test_cse.py::h": 0.9}
    want = ["tests/passes/test_cse.py::h", *list(cases)[:1], "tests/test_b.py::f", *list(cases)[1:4], *list(cases)[4:]]
    assert varied(seconds, seconds, Path("passes/simplify/cse.py")) == want


def test_all_tests_that_mirror_a_file_come_first() -> None:
    own = {f"tests/passes/test_cse_of_loops.py::f{k}": 1.0 + k for k in range(MOST_TESTS + 3)}
    others = {f"tests/passes/test_cses.py::f{k}": 0.1 for k in range(MOST_TESTS)}
    assert varied(own | others, own | others, Path("passes/simplify/cse.py")) == list(own)
    few = dict(list(own.items())[:3])
    order = varied(few | others, few | others, Path("passes/simplify/cse.py"))
    assert order[:3] == list(few)
    assert len(order) == MOST_TESTS
