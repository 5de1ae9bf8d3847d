"""Effects are properties of statements: a region has those of its contents, at any depth."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from adjit.ir.effects import Effects, effects
from adjit.ir.parser import parse_func

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ir", "passes", "codegen", "tracer", "runtime", "nn", "compat")
DECLARED = {"can_fail", "can_stop", "effect"}


def test_only_effects_reads_the_op() -> None:
    """`op.can_fail` ignores the contents of a region: only `ir.effects` reads the declarations of classes."""
    asked = []
    for path in (p for package in PACKAGES for p in (ROOT / package).rglob("*.py")):
        if path == ROOT / "ir" / "effects.py":
            continue
        asked += [
            f"{path.relative_to(ROOT)}:{node.lineno}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and node.attr in DECLARED and isinstance(node.ctx, ast.Load)
        ]
    assert not asked, f"use adjit.ir.effects.effects(stmt) instead: {asked}"


INNERMOST = {
    "%y: f64[] = exp %a": Effects(),
    "%y: f64[] = gather %x, %i": Effects(fails=True),
    'assert %p {message="no"}\n%y: f64[] = exp %a': Effects(fails=True, ordered=True),
    'print {template="hi"}\n%y: f64[] = exp %a': Effects(fails=True, ordered=True),
}
AROUND = {
    "alone": ("{}", Effects()),
    "if": ("%o: f64[] = if %p {{\n{}\nyield %y\n}} else {{\nyield %a\n}}", Effects()),
    "else": ("%o: f64[] = if %p {{\nyield %a\n}} else {{\n{}\nyield %y\n}}", Effects()),
    "checkpoint": ("%o: f64[] = checkpoint {{\n{}\nyield %y\n}}", Effects()),
    "for": ("%o: f64[] = for %k in 0..%i carry (%c: f64[] = %a) {{\n{}\nyield %y\n}}", Effects(stops=True)),
    "condition": (
        "%o: f64[] = while carry (%c: f64[] = %a) {{\n{}\n%t: bool[] = less %y, 1.0\ncond %t\n}} do {{\nyield %d\n}}",
        Effects(stops=True),
    ),
    "deep": (
        "%o: f64[] = for %k in 0..%i carry (%c: f64[] = %a) {{\n%q: f64[] = if %p {{\n{}\nyield %y\n}} else {{\nyield %a\n}}\nyield %q\n}}",
        Effects(stops=True),
    ),
}


@pytest.mark.parametrize("inside", INNERMOST)
@pytest.mark.parametrize("around", AROUND)
def test_regions_do_what_is_inside_them(around: str, inside: str) -> None:
    text, own = AROUND[around]
    body = text.format(inside).replace("yield %d", "yield %a")
    func = parse_func(f"func @f(%x: f64[5], %a: f64[], %i: i64[], %p: bool[]) -> () {{\n{body}\nreturn\n}}\n")
    found = [effects(s) for s in func.stmts]
    expected = INNERMOST[inside]
    joined = Effects(*(any(e[k] for e in found) for k in range(3)))
    assert joined == Effects(expected.fails or own.fails, expected.ordered or own.ordered, expected.stops or own.stops)
    assert joined.may_raise == (joined.fails or joined.stops)
