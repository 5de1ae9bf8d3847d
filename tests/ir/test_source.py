"""Python source of the IR: every op, loops and branches, expected texts, and the bits of the interpreter."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjit.ir import source_helpers
from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Func
from adjit.ir.ops import late
from adjit.ir.ops.base import REGISTRY, Op
from adjit.ir.ops.control import Region
from adjit.ir.ops.maps import Map
from adjit.ir.parser import parse_func
from adjit.ir.source_module import HELPERS, helper_texts, write_module
from adjit.ir.source_text import quoted
from adjit.ir.types import DTYPES
from tests.ir.source_checks import check_func, check_halves
from tests.ops.cases import Case
from tests.ops.cases_collective import CASES as COLLECTIVE
from tests.ops.harness import Row, func_of
from tests.ops.test_rows import ROWS as EVERY_ROW
from tests.ops.test_rows import SMOOTH as EVERY_SMOOTH_ROW

late.load(late.FUNCTIONS)

ROWS, SMOOTH = ([row for row in rows if row not in COLLECTIVE] for rows in (EVERY_ROW, EVERY_SMOOTH_ROW))  # those need MPI


def formatted(folder: Path) -> str:
    """The changes that `ruff format` would make in the files of a folder."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", "--no-cache", str(folder)]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if out.returncode == 0 else out.stdout + out.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("source")


def save(folder: Path, name: str, text: str) -> None:
    (folder / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}.py").write_text(text, encoding="utf-8")


# ---- ops


def test_every_op_has_python_source() -> None:
    silent = [
        name
        for name, op in REGISTRY.items()
        if not issubclass(op, Region) and (op.python is Op.python or (op.python is Map.python and not op.numpy))  # type: ignore[attr-defined]
    ]
    assert silent == []


def test_an_op_that_does_not_is_refused_by_name() -> None:
    class Unwritten(Op, abstract=True):
        name = "unwritten"

    func = parse_func("func @f(%x: f64[2]) -> f64[2] {\n  %y: f64[2] = tanh %x\n  return %y\n}\n")
    (stmt,) = func.stmts
    other = Func("f", type(func.block)(func.params, [stmt.replace(op=Unwritten())], func.results))
    with pytest.raises(UnsupportedError, match="unwritten: this op has no Python source"):
        write_module(other, other, None, {})


@pytest.mark.parametrize("case", ROWS, ids=repr)
def test_rows_compute_the_same_bits(case: Case, folder: Path) -> None:
    for dtype in case.dtypes:
        args = case.draw(DTYPES[dtype])
        source = check_func(func_of(case.call, args), args)
        save(folder, f"{case.name}_{dtype}", source.text)


@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_gradients_of_rows_compute_the_same_bits(case: Case, folder: Path) -> None:
    row = Row(case, case.draw(DTYPES["f64" if "f64" in case.dtypes else case.dtypes[0]]))
    source = check_func(row.pullback_func(), [*row.args, *row.cotangents])
    save(folder, f"{case.name}_gradient", source.text)
    narrow = Row(case, case.draw(DTYPES[case.dtypes[-1]]))
    if "f32" in case.dtypes and narrow.wrt:
        check_func(narrow.pullback_func(), [*narrow.args, *narrow.cotangents])


def test_texts_of_rows_are_formatted(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) > len(ROWS)
    assert formatted(folder) == ""


# ---- helpers


def test_helpers_are_few_and_readable() -> None:
    assert len(HELPERS) <= 16
    assert set(helper_texts()) == HELPERS
    for name, text in helper_texts().items():
        assert text.split("\n")[1].lstrip().startswith('"""'), f"{name} has no docstring"
        assert ": Any" not in text
        names: dict[str, Any] = {"np": np, "math": __import__("math")}
        exec("\n".join(helper_texts().values()), names)
        assert callable(names[name])


def test_ops_evaluate_with_the_helpers() -> None:
    x = np.array([-800.0, 0.0, 3.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(REGISTRY["sigmoid"]().evaluate(x), source_helpers.sigmoid(x))
        np.testing.assert_array_equal(REGISTRY["strong_mul"]().evaluate(x, 1 / x), source_helpers.strong_mul(x, 1 / x))


# ---- texts


def body(text: str, arrays: list[Any]) -> str:
    """The body of the function that an IR text becomes, after its bits were checked."""
    source = check_func(parse_func(text), arrays)
    return source.text.split("def f(", 1)[1].split("\n", 1)[1]


def test_carries_are_variables_of_their_own() -> None:
    text = """
    func @f(%x: f64[], %n: i64[]) -> f64[] {
      %y: f64[] = for %k in 0..%n carry (%c: f64[] = %x) {
        %t: f64[] = mul %c, 0.5
        yield %t
      }
      return %y
    }
    """
    assert body(text, [np.float64(3.0), np.int64(4)]) == "    c = x\n    for _ in range(n):\n        c = c * 0.5\n    return c\n"


def test_carries_that_exchange_are_assigned_at_once() -> None:
    text = """
    func @f(%x: f64[], %y: f64[]) -> (f64[], f64[]) {
      %p: f64[], %q: f64[] = for %k in 0..3 carry (%a: f64[] = %x, %b: f64[] = %y) {
        yield %b, %a
      }
      return %p, %q
    }
    """
    assert "        a, b = b, a\n" in body(text, [np.float64(1.0), np.float64(2.0)])


def test_a_pending_expression_is_not_overtaken() -> None:
    text = """
    func @f(%x: f64[3]) -> (f64[3], f64[3]) {
      %w: f64[3] = tanh %x
      %half: f64[3] = mul %w, 0.5
      %y: f64[3] = for %k in 0..2 carry (%c: f64[3] = %w) {
        %t: f64[3] = mul %c, 3.0
        yield %t
      }
      %z: f64[3] = sub %half, 1.0
      return %y, %z
    }
    """
    for each in (text, text.replace("%half", "%0").replace("%z", "%1")):
        body(each, [np.array([1.0, 2.0, 3.0])])


def test_in_place_changes_are_not_seen_by_others() -> None:
    text = """
    func @f(%x: f64[4], %i: i64[2], %u: f64[2]) -> (f64[4], f64[4], f64[4]) {
      %a: f64[4] = scatter_set %x, %u, %i
      %b: f64[4] = scatter_add %a, %u, %i
      %c: f64[4] = scatter_add %b, %u, %i
      %d: f64[4] = neg %a
      return %c, %d, %x
    }
    """
    out = body(text, [np.arange(4.0), np.array([1, 3]), np.array([5.0, 6.0])])
    assert out.count("np.array(") == 2  # a copy of x, and one of what is still read: the last is changed in place


def test_stacks_of_loops_are_lists_changed_in_place() -> None:
    text = """
    func @f(%x: f64[2]) -> f64[2] {
      %y: f64[2], %s: stack<f64[2]> = for %k in 0..3 carry (%c: f64[2] = %x) {
        %n: f64[2] = mul %c, %c
        yield %n saving %c
      }
      %z: stack<f64[2]> = stack_zeros %s
      %w: stack<f64[2]> = for %j in 0..3 carry (%d: stack<f64[2]> = %z) {
        %e: f64[2] = stack_read %s, %j
        %g: stack<f64[2]> = stack_accumulate %d, %j, %e
        yield %g
      }
      %r: f64[2] = stack_read %w, 2:i64[]
      return %r
    }
    """
    out = body(text, [np.array([1.5, 2.0])])
    assert "z[j] = z[j] + e" in out
    assert "list(" not in out


def test_counters_of_loops_have_the_dtype_of_the_ir() -> None:
    text = """
    func @f(%n: i64[]) -> (f32[], bool[], i64[]) {
      %y: f32[], %b: bool[], %m: i64[] = for %k in 0..%n carry (%c: f32[] = 0.0, %d: bool[] = true, %e: i64[] = 0) {
        %t: f32[] = cast %k
        %u: f32[] = add %c, %t
        %p: bool[] = less %k, 2
        %q: bool[] = bitwise_not %p
        %s: i64[] = sub 3, %k
        yield %u, %q, %s
      }
      return %y, %b, %m
    }
    """
    body(text, [np.int64(5)])


def test_names_are_the_users() -> None:
    text = """
    func @f(%W: f64[2,3], %lambda: f64[3], %np: f64[3]) -> (f64[3], f64[3]) {
      %W.bar: f64[3] = mul %lambda, %np
      %W.bar.bar: f64[3] = mul %W.bar, %W.bar
      return %W.bar, %W.bar.bar
    }
    """
    source = check_func(parse_func(text), [np.ones((2, 3)), np.arange(3.0), np.arange(3.0)]).text
    assert "def f(W, lambda1, np1):" in source
    assert "    dW = lambda1 * np1\n    ddW = dW * dW\n" in source


def test_literals_keep_their_dtype() -> None:
    text = """
    func @f(%p: bool[2], %x: f32[2]) -> (f32[2], f64[2], i8[2], f32[2]) {
      %a: f32[2] = where %p, 0.1, 1.0
      %b: f64[2] = where %p, 0.1, -0.0
      %c: i8[2] = where %p, -3, 4
      %d: f32[2] = mul %x, 0.1
      return %a, %b, %c, %d
    }
    """
    out = body(text, [np.array([True, False]), np.array([1.0, 3.0], "f4")])
    assert "np.where(p, 0.1, -0.0)" in out
    assert "np.where(p, np.float32(0.1), np.float32(1.0))" in out
    assert "x * 0.1" in out


@pytest.mark.parametrize("text", ["plain", "it's", 'say "so"', "both ' and \"", "a\nb\\c\t", "</script>{}", "é\x00\u2028"])
def test_strings_are_quoted(text: str) -> None:
    assert eval(quoted(text)) == text


def test_effects_keep_their_order_and_their_errors(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    func @f(%x: f64[3], %i: i64[]) -> f64[] {
      print %i {template="at {}", end="!\\n"}
      %y: f64[] = gather %x, %i
      %p: bool[] = greater %y, 0.0
      assert %p {message="it's \\"bad\\"", raises="ValueError"}
      return %y
    }
    """
    source = check_func(parse_func(text), [np.arange(1.0, 4.0), np.int64(2)])
    assert capsys.readouterr().out == "at 2!\n" * 2
    with pytest.raises(ValueError, match='it\'s "bad"'):
        source(np.zeros(3), np.int64(0))
    assert capsys.readouterr().out == "at 0!\n"
    with pytest.raises(IndexError):
        source(np.zeros(3), np.int64(7))
    assert capsys.readouterr().out == "at 7!\n"


def test_halves_of_control_flow_in_control_flow() -> None:
    from adjit.passes.autodiff.adjoint import value_and_grad_func

    text = """
    func @f(%x: f64[3]) -> f64[] {
      %y: f64[3] = for %k in 0..4 carry (%c: f64[3] = %x) {
        %s: f64[] = sum %c {axes=[0]}
        %p: bool[] = greater %s, 1.0
        %r: f64[3] = if %p {
          %a: f64[3], %n: i64[] = while carry (%d: f64[3] = %c, %m: i64[] = 0) {
            %t: bool[] = less %m, 2
            cond %t
          } do {
            %e: f64[3] = sin %d
            %q: i64[] = add %m, 1
            yield %e, %q
          }
          yield %a
        } else {
          %b: f64[3] = exp %c
          yield %b
        }
        yield %r
      }
      %z: f64[] = sum %y {axes=[0]}
      return %z
    }
    """
    func = value_and_grad_func(parse_func(text))
    for seed in range(3):
        check_halves(func, [np.random.default_rng(seed).normal(size=3)])
