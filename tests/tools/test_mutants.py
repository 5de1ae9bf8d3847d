"""Every mutant of a small file has results different from the file's, and its description."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType

import pytest

from tests.tools.mutants import mutants

SOURCE = '''
class Rule:
    def derivative(self, x, flag):
        """A docstring, which is not changed."""
        if not flag and x < 3:
            return -x * 2
        assert x + 1
        seen = [n for n, _ in zip(range(x), range(x), strict=True) if n > 1]
        seen.append(True)
        return seen

def other(x):
    return x - 1
'''
CALLS = [(x, flag) for x in range(5) for flag in (False, True)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.py"
    path.write_text(SOURCE)
    return path


def test_every_mutant_is_another_function(file: Path) -> None:
    space: dict[str, type] = {}
    exec(compile(SOURCE, str(file), "exec"), space)
    plain = [space["Rule"].derivative(None, *args) for args in CALLS]  # type: ignore[attr-defined]
    found = list(mutants(file, lambda name: name == "Rule.derivative"))
    for mutant in found:
        changed = FunctionType(mutant.code(), space)
        assert (mutant.function, mutant.first_line) == ("Rule.derivative", 3)
        assert repr([changed(None, *args) for args in CALLS]) != repr(plain), mutant


def test_mutants_describe_their_change(file: Path) -> None:
    found = [(mutant.line, mutant.what) for mutant in mutants(file, lambda name: True)]
    assert found == [
        (5, "negate the condition"),
        (5, "not flag and x < 3 -> not flag or x < 3"),
        (5, "not flag -> not not flag"),
        (5, "x < 3 -> x <= 3"),
        (5, "3 -> 4"),
        (6, "-x * 2 -> -x / 2"),
        (6, "-x -> +x"),
        (6, "2 -> 3"),
        (8, "drop the filter"),
        (8, "n > 1 -> n >= 1"),
        (8, "1 -> 2"),
        (9, "drop the call"),
        (9, "True -> False"),
        (13, "x - 1 -> x + 1"),
        (13, "1 -> 2"),
    ]


def test_the_number_of_a_mutant_does_not_depend_on_what_is_chosen(file: Path) -> None:
    every = [*mutants(file, lambda name: True)]
    assert [*mutants(file, lambda name: name == "other")] == every[-2:]
