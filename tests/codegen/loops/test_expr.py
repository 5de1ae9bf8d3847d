"""Expressions against the integers that they represent."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from adjit.ir.bounds import Range, Ranges
from adjit.ir.expr import Expr, Quotient, SmallerOf, Symbolic, Var, minimum, variable

NAMES = ("a", "b", "n")


def value(expr: Expr, values: dict[str, int]) -> int:
    if isinstance(expr, int):
        return expr
    total = expr.constant
    for monomial, factor in expr.terms.items():
        for atom in monomial:
            match atom:
                case Var(name):
                    factor *= values[name]
                case Quotient(dividend, divisor):
                    factor *= value(dividend, values) // divisor
                case SmallerOf(x, y):
                    factor *= min(value(x, values), value(y, values))
        total += factor
    return total


def built(tree: Any, leaf: Any) -> Any:
    """A tree of operations on leaves: variables as expressions, or as numbers."""
    match tree:
        case int():
            return tree
        case str():
            return leaf(tree)
        case ("+", x, y):
            return built(x, leaf) + built(y, leaf)
        case ("-", x, y):
            return built(x, leaf) - built(y, leaf)
        case ("*", x, y):
            return built(x, leaf) * built(y, leaf)
        case ("//", x, n):
            return built(x, leaf) // n
        case ("min", x, y):
            a, b = built(x, leaf), built(y, leaf)
            return min(a, b) if isinstance(a, int) and isinstance(b, int) else minimum(a, b)
    raise AssertionError(tree)


def drawn(rng: random.Random, depth: int) -> Any:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([rng.randint(-9, 9), rng.choice(NAMES)])
    kind = rng.choice(("+", "-", "*", "//", "min"))
    return kind, drawn(rng, depth - 1), rng.randint(1, 7) if kind == "//" else drawn(rng, depth - 1)


def samples() -> Iterator[tuple[Any, dict[str, int]]]:
    rng = random.Random(0)
    for _ in range(1000):
        yield drawn(rng, 3), {name: rng.randint(1, 20) for name in NAMES}


def test_arithmetic_is_that_of_integers() -> None:
    for tree, values in samples():
        expr = built(tree, variable)
        assert value(expr, values) == built(tree, values.__getitem__), tree
        assert isinstance(expr, int) or expr.terms, "a number that was not folded"


def test_proven_bounds_hold() -> None:
    """`a` in 1..n and `b` in 1..min(2 a, 20) are loop variables, n is a size."""
    a, n = variable("a"), variable("n")
    ranges, proven = Ranges(), 0
    ranges.known[Var("a")] = Range(1, n)
    ranges.known[Var("b")] = Range(1, minimum(2 * a, 20))
    for tree, values in samples():
        values["a"] = min(values["a"], values["n"])
        values["b"] = min(values["b"], 2 * values["a"], 20)
        expr = built(tree, variable)
        least, multiple, exact = ranges.least(expr), ranges.multiple(expr), value(expr, values)
        assert least is None or least <= exact, (tree, values)
        assert exact % multiple == 0 if multiple else exact == 0, (tree, values)
        proven += least is not None
    assert proven > 300


def test_equal_expressions_have_one_form() -> None:
    a, b = variable("a"), variable("b")
    assert (a + b) * (a - b) == a * a - b * b
    assert a * b - b * a == 0
    assert (4 * a + 8) // 4 == a + 2
    assert minimum(a + 1, a) == a
    assert isinstance(a, Symbolic)
    assert str(minimum(4 * a + 4, 128)) == "min(4*a + 4, 128)"


def test_bounds_of_blocks_are_exact() -> None:
    """for block in 0..96 step 32, for i in block..min(block + 32, 96) step 16: the last i is 80."""
    ranges, block, i = Ranges(), variable("block"), variable("i")
    ranges.known[Var("block")] = ranges.loop(0, 96, 32)
    ranges.known[Var("i")] = ranges.loop(block, minimum(block + 32, 96), 16)
    assert ranges.limits(i) == (0, 80)
    assert ranges.multiple(i) == 16


def test_bounds_of_sizes_at_run_time() -> None:
    """Row i of n rows of 784 elements ends within n * 784 elements, but the row after it may not."""
    ranges, i, n = Ranges(), variable("i"), variable("n")
    ranges.known[Var("i")] = ranges.loop(0, n, 1)
    assert ranges.at_least(784 * n - (784 * i + 783) - 1, 0)
    assert not ranges.at_least(784 * n - (784 * (i + 1) + 783) - 1, 0)
