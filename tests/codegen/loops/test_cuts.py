"""Rows whose number is known only at run time, cut into tiles when the program runs."""

from __future__ import annotations

import pytest

from adjit.codegen.llvm.target import current
from adjit.codegen.loops import cuts
from adjit.codegen.loops.checker import check as check_program
from adjit.codegen.loops.ir import Contraction, Cuts, LoopProgram, Node
from adjit.codegen.loops.printer import print_program
from adjit.codegen.main.module import Module
from adjit.ir import ops
from adjit.ir.errors import VerifyError
from adjit.ir.operand import Operand
from adjit.passes.pipeline import OPTIMIZE
from tests.codegen.symbolic import B, check, func_of


@pytest.mark.parametrize("most", [1, 2, 4, 5, 6, 7, 8, 9, 12, 14, 30])
def test_parts_are_even_and_have_sizes_for_which_there_is_code(most: int) -> None:
    heights = cuts.heights(most)
    for size in range(400):
        parts = [length for count, length in cuts.evenly(size, heights[0]) for _ in range(count)]
        assert sum(parts) == size
        assert set(parts) <= set(heights)
        assert len(parts) == -(-size // heights[0])
        assert not parts or max(parts) - min(parts) <= 1


def layer(x: Operand, w: Operand, b: Operand) -> Operand:
    product = ops.matmul(x, w)
    return ops.tanh(product + ops.broadcast_to(b, product.type.shape)) * product


@pytest.mark.parametrize("columns", [10, 16, 40, 96, 128])
def test_products_of_all_numbers_of_rows(columns: int) -> None:
    check(layer, (B, 70), (70, columns), (columns,), sizes=[*range(2, 45), 100, 300])


def contraction() -> tuple[LoopProgram, Cuts, list[Node]]:
    """A program with cuts, and the list that contains them."""
    target = current().with_threads(1)
    module = Module(OPTIMIZE(func_of(ops.matmul, (B, 20), (20, 32)), target), target)
    module.build()
    (program,) = (p for p in module.programs.values() if any(isinstance(node, Contraction) for node in p.nodes))
    (place,) = (
        node.nodes[0].body if not isinstance(node.nodes[0], Cuts) else node.nodes for node in program.nodes if isinstance(node, Contraction)
    )  # type: ignore[union-attr]
    (node,) = place
    assert isinstance(node, Cuts)
    return program, node, place


def test_broken_cuts_are_rejected() -> None:
    program, node, place = contraction()
    check_program(program)
    smaller = {n: body for n, body in node.bodies.items() if n != 2}
    taller = {n: node.bodies[3 if n == 2 else n] for n in node.bodies}
    for broken in (
        node._replace(bodies=smaller),
        node._replace(bodies=taller),
        node._replace(size=node.size + 1),
        node._replace(axis=1 - node.axis),
    ):
        place[:] = [broken]
        with pytest.raises(VerifyError):
            check_program(program)


def test_cuts_are_printed() -> None:
    program, node, _ = contraction()
    text = print_program("f", program)
    assert f"cut {node.variable} in 0..B {{" in text
    assert "of 14 {" in text or "of 7 {" in text or "of 6 {" in text
    assert "tile 2 x " in text
