"""Every row of the op table, broken by one change each (an extra operand, another type, a wrong attribute): the verifier rejects all."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from adjit.ir.types import DTYPES
from tests.ir.test_mutations import Mutant, names_the_change, refusal, wrong_arity, wrong_attributes, wrong_order, wrong_types
from tests.ops.harness import func_of
from tests.ops.test_rows import ROWS

FAMILIES = [wrong_arity, wrong_attributes, wrong_order, wrong_types]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_every_mutant_is_refused(family: Callable[..., Iterator[Mutant]]) -> None:
    accepted, count = [], 0
    for case in ROWS:
        for mutant in family(func_of(case.call, case.draw(DTYPES[case.dtypes[0]]))):
            count += 1
            if not names_the_change(refusal(mutant.func) or "", mutant):
                accepted.append(f"{case.name}: {mutant.what}: {refusal(mutant.func)}")
    assert not accepted, f"{len(accepted)} of {count}: {accepted[:20]}"
    assert count >= 500
