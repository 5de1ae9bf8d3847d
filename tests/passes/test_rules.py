"""The language of rewrite rules: patterns in every order, and which rules are tried on a statement."""

from __future__ import annotations

import pytest

from adjit.passes.simplify.rules import Apply, Number, PatternName, parse_rules
from adjit.passes.simplify.simplify import GUARDS

x, y, z = PatternName("x"), PatternName("y"), PatternName("z")


def patterns(line: str) -> list[Apply]:
    return [rule.pattern for rules in parse_rules(f"rule: {line}  # so", GUARDS).by_op.values() for rule in rules]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("sub(x, 0) => x", [Apply("sub", (x, Number(0.0)))]),
        ("add(x, 0) => x", [Apply("add", (x, Number(0.0))), Apply("add", (Number(0.0), x))]),
        ("add(x, x) => mul(x, 2)", [Apply("add", (x, x))]),
        ("mul(x, y) => mul(y, x)", [Apply("mul", (x, y))]),
        ("mul(C, x) => mul(x, C)", [Apply("mul", (PatternName("C"), x)), Apply("mul", (x, PatternName("C")))]),
        (
            "sub(x, mul(y, neg(z))) => add(x, mul(y, z))",
            [Apply("sub", (x, Apply("mul", each))) for each in ((y, Apply("neg", (z,))), (Apply("neg", (z,)), y))],
        ),
        (
            "add(mul(x, y), mul(x, z)) => mul(x, add(y, z))",
            [Apply("add", (Apply("mul", (x, y)), Apply("mul", (x, z))))],
        ),
        ("sub(x, -0.5) => add(x, 0.5)", [Apply("sub", (x, Number(-0.5)))]),
    ],
)
def test_every_order_that_makes_a_difference(line: str, wanted: list[Apply]) -> None:
    assert patterns(line) == wanted


def test_only_rules_that_may_match_are_tried() -> None:
    table = parse_rules(
        """
        none:    add(x, 0) => x                 # so
        known:   add(x, C) => add(C, x)         # so
        negated: add(x, neg(y)) => sub(x, y)    # so
        any:     add(x, y) => add(y, x)         # so
        """,
        GUARDS,
    )
    tried = {
        heads: {rule.name for rule in table.candidates("add", heads)}
        for heads in (("", ""), ("", 0.0), ("", "a literal"), ("neg", ""), ("exp", "tanh"))
    }
    assert tried == {
        ("", ""): {"any"},
        ("", 0.0): {"none", "known", "any"},
        ("", "a literal"): {"known", "any"},
        ("neg", ""): {"negated", "any"},
        ("exp", "tanh"): {"any"},
    }
    assert table.candidates("mul", ("", "")) == []
