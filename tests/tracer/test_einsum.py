"""Einstein sums against np.einsum: every form of expression, and random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjit.ir.errors import ShapeError
from tests.tracer.running import Eager, plain, run_eager, run_traced, same, trace

random = np.random.default_rng(3)
SIZES = {"i": 2, "j": 3, "k": 4, "l": 2, "m": 1, "b": 2}


def array(labels: str, *lead: int) -> Any:
    return random.standard_normal((*lead, *(SIZES[c] for c in labels)))


FORMS: list[tuple[str, list[Any]]] = [
    ("ij,jk->ik", [array("ij"), array("jk")]),
    ("ij,jk", [array("ij"), array("jk")]),
    ("ij->ji", [array("ij")]),
    ("ij", [array("ij")]),
    ("ba", [random.standard_normal((2, 3))]),
    ("ii->i", [random.standard_normal((3, 3))]),
    ("ii", [random.standard_normal((3, 3))]),
    ("iij->j", [random.standard_normal((3, 3, 2))]),
    ("iii->i", [random.standard_normal((3, 3, 3))]),
    ("ij->", [array("ij")]),
    ("i,i->", [array("i"), array("i")]),
    ("i,j->ij", [array("i"), array("j")]),
    ("i,i->i", [array("i"), array("i")]),
    ("bij,bjk->bik", [array("bij"), array("bjk")]),
    ("bij,bkj->bik", [array("bij"), array("bkj")]),
    ("bi,bi->b", [array("bi"), array("bi")]),
    ("ijk,jil->kl", [array("ijk"), array("jil")]),
    ("ij,jk,kl->il", [array("ij"), array("jk"), array("kl")]),
    ("ij,jk,kl,lb->ib", [array("ij"), array("jk"), array("kl"), array("lb")]),
    ("i,i,i->i", [array("i"), array("i"), array("i")]),
    ("...i,...i->...", [array("i", 5), array("i", 5)]),
    ("...ij,jk->...ik", [array("ij", 2, 3), array("jk")]),
    ("i...,j...->ij...", [array("i").reshape(2, 1), array("j").reshape(3, 1) * np.ones(4)]),
    ("...", [array("ij")]),
    ("...ij->...ji", [array("ij", 3, 2)]),
    ("...i,...j", [array("i", 3), array("j", 3)]),
    (" i j , j k -> i k ", [array("ij"), array("jk")]),
    ("ij,jk->", [array("ij"), array("jk")]),
    ("ij,kl->", [array("ij"), array("kl")]),
    ("mj,j->m", [array("mj"), array("j")]),
    ("ij,ij,ij->", [array("ij"), array("ij"), array("ij")]),
    ("ii,ij,jj->", [random.standard_normal((3, 3)) for _ in range(3)]),
    (",ij->ij", [np.array(2.0), array("ij")]),
    ("ij,jk->ik", [np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)]),
    ("ij->i", [np.arange(6, dtype=np.int32).reshape(2, 3)]),
    ("ij,jk->ik", [array("ij").astype("f4"), array("jk").astype("f4")]),
    ("ij,jk->ik", [array("ij").astype("f4"), array("jk")]),
    ("ij,jk->ik", [np.zeros((0, 3)), array("jk")]),
    ("ij,jk->ik", [np.zeros((2, 0)), np.zeros((0, 4))]),
]


@pytest.mark.parametrize("runner", [run_eager, run_traced], ids=["eager", "traced"])
@pytest.mark.parametrize(("subscripts", "operands"), FORMS, ids=[f"{i}:{f[0]}" for i, f in enumerate(FORMS)])
def test_forms(subscripts: str, operands: list[Any], runner: Any) -> None:
    same(runner(lambda *xs: np.einsum(subscripts, *xs), *operands), np.einsum(subscripts, *operands), subscripts)


def test_interleaved_form_and_options() -> None:
    a, b = array("ij"), array("jk")
    same(run_traced(lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [0, 2]), a, b), a @ b)
    same(run_traced(lambda a, b: np.einsum(a, [0, 1], b, [1, 2]), a, b), a @ b)
    same(run_traced(lambda a: np.einsum(a, [..., 1], [..., 1]), a), a)
    same(
        run_traced(lambda a, b: np.einsum("ij,jk", a, b, optimize=True, dtype="f4"), a, b),
        np.einsum("ij,jk", a, b, dtype="f4", casting="same_kind"),
    )


def test_a_chain_is_contracted_cheaply() -> None:
    """The vector at the end is multiplied in first: no product of two matrices."""
    a, v = np.ones((50, 50)), np.ones(50)
    program = trace(lambda a, b, v: np.einsum("ij,jk,k->i", a, b, v), a, a, v)
    assert max(stmt.results[0].type.size for stmt in program.func.stmts if stmt.op.name == "matmul") == 50


@st.composite
def expressions(draw: st.DrawFn) -> tuple[str, list[Any]]:
    labels = draw(st.lists(st.sampled_from("ijklmb"), min_size=1, max_size=5, unique=True))
    terms = draw(st.lists(st.lists(st.sampled_from(labels), max_size=4).map("".join), min_size=1, max_size=4))
    used = sorted({c for term in terms for c in term})
    output = draw(st.lists(st.sampled_from(used), unique=True).map("".join)) if used else ""
    text = ",".join(terms)
    if draw(st.booleans()):
        text += "->" + output
    return text, [array(term) for term in terms]


@settings(max_examples=200, deadline=None)
@given(expressions())
def test_random_expressions(expression: tuple[str, list[Any]]) -> None:
    subscripts, operands = expression
    same(plain(np.einsum(subscripts, *map(Eager, operands))), np.einsum(subscripts, *operands), subscripts, rtol=1e-9)


WRONG: dict[str, tuple[str, list[Any]]] = {
    "names 2 operands, got 1": ("ij,jk", [array("ij")]),
    "names 3 axes of an operand that has 2": ("ijk", [array("ij")]),
    "names 1 axes of an operand that has 2": ("i", [array("ij")]),
    "has sizes 3 and 2": ("ij,jk", [array("ij"), array("ij")]),
    "sizes 2 and 3 in one operand": ("ii", [array("ij")]),
    "the result names z": ("ij->z", [array("ij")]),
    "occurs twice in the result": ("ij->ii", [array("ij")]),
    "is not made of letters": ("i1", [array("ij")]),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_expressions(message: str) -> None:
    subscripts, operands = WRONG[message]
    with pytest.raises(ShapeError, match=message):
        np.einsum(subscripts, *map(Eager, operands))
