"""Printing and asserting inside compiled functions: at every run, in order, with the values of that run."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj


def test_prints_at_every_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    @aj.function
    def f(x):
        print("x is", x)
        total = 0.0
        for k in aj.range(2):
            total = total + x[k]
            print("after", k, total)
        print(x[::-1], "reversed")
        return total

    for x in (np.arange(3.0), np.arange(3.0) + 1):
        f(x)
        total = x.cumsum()
        expected = f"x is {x}\nafter 0 {total[0]}\nafter 1 {total[1]}\n{x[::-1]} reversed\n"
        assert capsys.readouterr().out == expected


def test_only_the_branch_taken_prints(capsys: pytest.CaptureFixture[str]) -> None:
    @aj.function
    def f(x):
        if x.sum() > 2:
            print("large", x.sum())
        return x * 2

    f(np.ones(2))
    assert capsys.readouterr().out == ""
    f(np.ones(2) * 5)
    assert capsys.readouterr().out == "large 10.0\n"


def test_a_failing_run_prints_once_and_names_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    @aj.function
    def f(x):
        print("checking", x.sum())
        assert x.sum() < 100, "too much"
        return x * 2

    f(np.ones(2))
    capsys.readouterr()
    with pytest.raises(AssertionError, match="too much") as caught:
        f(np.ones(2) * 1000)
    assert "test_print.py" in str(caught.value)
    assert capsys.readouterr().out == "checking 2000.0\n"


def test_f_strings_show_the_values_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    @aj.function
    def f(x, name):
        loss = x.sum()
        text = f"{name}: {loss:8.3f} {{{x}}}"
        print(f"loss {loss}", text, f"{loss!s:>6}", f"{1.5:.2f}", sep=" | ")
        return loss

    for x in (np.ones(2), np.ones(2) * 2):
        f(x, "run")
        total = x.sum()
        assert capsys.readouterr().out == f"loss {total} | run: {total:8.3f} {{{x}}} | {total!s:>6} | 1.50\n"


@pytest.mark.one_size("prints a shape")
def test_an_f_string_that_is_not_printed_is_refused() -> None:
    """Its text would be that of the trace, at every call."""
    with pytest.raises(aj.TraceError, match="text of a traced value is known only when the function runs"):
        aj.function(lambda x: (x, f"{x.sum()} and {x.shape}"))(np.ones(2))
    assert aj.function(lambda x: (x, f"{x.shape}"))(np.ones(2))[1] == "(2,)"

    with pytest.raises(TypeError, match="only numbers take one"):
        aj.function(lambda x: print(f"{x:.2f}"))(np.ones(2))
