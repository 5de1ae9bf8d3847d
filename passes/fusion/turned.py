"""Products that are only read transposed are computed transposed: `(xᵀ b)ᵀ` becomes `bᵀ x`.

Adjoints of products with a transposed operand have the first form. The second is written in the order in which it is read, without a copy,
and its right factor is contiguous. Products whose left factor is not a transposed view stay: their right factor would become one.
"""

from __future__ import annotations

from adjit.ir.func import Func, Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.shape import Transpose

from ..rewrite import like, operands_read
from ..simplify.cleanup import rewrite_blocks

MATMUL = Matmul()


def turn_products(func: Func) -> Func:
    return rewrite_blocks(func, _rewritten) if func.block.contains(Matmul) else func


def _rewritten(stmts: list[Stmt], outputs: set[int]) -> list[Stmt] | None:
    """The statements with all such products replaced; None if there are none."""
    made = {id(s.results[0]): s for s in stmts if len(s.results) == 1}
    reads: dict[int, int] = {}
    for stmt in stmts:
        for x in operands_read(stmt):
            reads[id(x)] = reads.get(id(x), 0) + 1
    turned: dict[int, list[Stmt]] = {}
    for stmt in stmts:
        product = made.get(id(stmt.args[0])) if _swaps(stmt) else None
        if product is None or product.op != MATMUL:
            continue
        left = made.get(id(product.args[0]))
        is_read_elsewhere = reads[id(product.result)] > 1 or id(product.result) in outputs
        if left is None or not _swaps(left) or is_read_elsewhere or product.args[1].type.rank != product.result.type.rank:
            continue
        if id(left) in turned:  # a product by now, no longer a view
            continue
        other = like(stmt, Transpose(_swapped(product.args[1])), (product.args[1],))
        turned[id(product)] = []
        turned[id(stmt)] = [other, like(product, MATMUL, (other.result, left.args[0]), result=stmt.result)]
    return [new for stmt in stmts for new in turned.get(id(stmt), [stmt])] if turned else None


def _swaps(stmt: Stmt) -> bool:
    """Whether a statement exchanges the last two axes, and nothing else."""
    return len(stmt.args) == 1 and stmt.args[0].type.rank > 1 and stmt.op == Transpose(_swapped(stmt.args[0]))


def _swapped(x: Operand) -> tuple[int, ...]:
    *lead, a, b = range(x.type.rank)
    return (*lead, b, a)
