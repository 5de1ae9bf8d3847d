"""All kinds of statements in programs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.programs import (
    grammar_derivatives,
    grammar_elementwise,
    grammar_flow,
    grammar_products,
    grammar_python,
    grammar_reductions,
    grammar_structure,
    grammar_transforms,
)
from tests.programs.draw import Rule, make_program
from tests.programs.program import Program

PARTS: Sequence[tuple[float, list[Rule]]] = [
    (6, grammar_elementwise.RULES),
    (5, grammar_structure.RULES),
    (4, grammar_reductions.RULES),
    (4, grammar_products.RULES),
    (5, grammar_flow.RULES),
    (3, grammar_transforms.RULES),
    (3, grammar_python.RULES),
    (2, grammar_derivatives.RULES),
]
RULES: list[Rule] = [(share * weight / sum(w for w, _ in rules), make) for share, rules in PARTS for weight, make in rules]


def program_of(seed: int) -> Program:
    return make_program(seed, RULES)
