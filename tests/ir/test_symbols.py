"""Decisions about expressions of sizes hold for every size, or are refused."""

from __future__ import annotations

import itertools
import operator
import random
from typing import Any

import pytest

from adjit.ir.errors import NotGeneral
from adjit.ir.expr import Expr, Symbol, Symbolic, hint_of, minimum
from adjit.ir.sizes import Symbols

SIZES = (2, 3, 7, 8, 64, 1000)
B, T = (Symbolic({(Symbol(name, hint=hint),): 1}) for name, hint in (("B", 5), ("T", 12)))


def drawn(rng: random.Random, depth: int = 3) -> str:
    """A random expression, as Python text."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["B", "T", str(rng.randint(0, 9))])
    match rng.choice("++--**/%<"):
        case "/" | "%" as op:
            return f"({drawn(rng, depth - 1)}){'//' if op == '/' else '%'}{rng.randint(1, 9)}"
        case "<":
            return f"minimum({drawn(rng, depth - 1)}, {drawn(rng, depth - 1)})"
        case op:
            return f"({drawn(rng, depth - 1)} {op} {drawn(rng, depth - 1)})"


def value(text: str, b: int, t: int) -> int:
    return int(eval(text, {"B": b, "T": t, "minimum": min, "min": min}))


def both(rng: random.Random) -> tuple[str, Any, str, Any]:
    names = {"B": B, "T": T, "minimum": minimum}
    a, b = drawn(rng), drawn(rng)
    return a, eval(a, dict(names)), b, eval(b, dict(names))


def test_decisions_hold_for_all_sizes() -> None:
    rng, decided = random.Random(0), 0
    for _ in range(300):
        a, x, b, y = both(rng)
        for compare in (operator.lt, operator.le, operator.gt, operator.ge):
            try:
                answer = compare(x, y)
            except NotGeneral:
                continue
            decided += 1
            for sizes in itertools.product(SIZES, SIZES):
                assert compare(value(a, *sizes), value(b, *sizes)) == answer, (a, b, sizes)
    assert decided > 400


def test_an_expression_is_read_back_from_its_text() -> None:
    rng = random.Random(1)
    for _ in range(200):
        text, x, _, _ = both(rng)
        for sizes in itertools.product(SIZES, SIZES):
            assert value(str(x), *sizes) == value(text, *sizes), (text, str(x))
        assert hint_of(x) == value(text, 5, 12)


@pytest.mark.parametrize("decide", [lambda: B > 5, lambda: B - 2 == 0, lambda: bool(B - 2), lambda: range(B), lambda: B < T])
def test_what_depends_on_the_size_is_refused(decide: Any) -> None:
    with pytest.raises(NotGeneral):
        decide()


def test_what_holds_for_all_sizes() -> None:
    assert B >= 2
    assert B * T > B
    assert B != 1
    assert B - 1 > 0
    assert -(-B // 8) >= 1
    wide: Expr = Symbolic({(Symbol("N", low=6, high=31),): 1})
    assert 32 - wide > 0
    assert f"{784 * B + 3}" == '%"784*B + 3"'


def test_sizes_of_types_compute_with_expressions() -> None:
    size = Symbols().new("B", 5)
    assert size * B == B * size == B * B
    assert size - B == B - size == 0
    assert size + B == 2 * B
    assert size == B
