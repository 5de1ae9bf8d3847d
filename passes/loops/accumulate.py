"""Computes products that are added to a loop's accumulator directly into it: `total + a @ b` becomes one `matmul_add`, in place.

Gradients of weights inside loops are such sums: without this, each iteration writes a product, reads it again, and reads and writes the
total.
"""

from __future__ import annotations

from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.arithmetic import Add
from adjit.ir.ops.linalg import Matmul, MatmulAdd
from adjit.ir.sizes import hint_of

MIN_WORK = 4096  # multiplications: a separate routine does not pay off for smaller products


def accumulate_products(func: Func) -> Func:
    return func.replace(block=_walked(func.block, ()))


def _walked(block: Block, carries: tuple[Operand, ...]) -> Block:
    uses: dict[int, int] = {}
    for operand in block.uses() if carries else ():
        uses[id(operand)] = uses.get(id(operand), 0) + 1
    accumulators = {id(c) for c in carries if uses.get(id(c)) == 1}  # read by the sum alone, so that the old total is not needed
    products: dict[int, Stmt] = {}
    taken: set[int] = set()
    out: list[Stmt] = []
    for stmt in block.stmts:
        if stmt.blocks:
            inner = stmt.blocks
            loop = stmt.op.is_loop
            stmt = stmt.replace(blocks=tuple(_walked(b, b.params if loop and b is inner[-1] else ()) for b in inner))
        elif carries and isinstance(stmt.op, Matmul) and uses.get(id(stmt.result)) == 1 and _is_large(stmt):
            products[id(stmt.result)] = stmt
        elif isinstance(stmt.op, Add):
            for total, product in (stmt.args, stmt.args[::-1]):
                if id(total) in accumulators and id(product) in products:
                    made = products[id(product)]
                    taken.add(id(made))
                    stmt = stmt.replace(op=MatmulAdd(), args=(total, *made.args))
                    break
        out.append(stmt)
    return Block(block.params, [s for s in out if id(s) not in taken], block.results, block.saving)


def _is_large(stmt: Stmt) -> bool:
    a, b = (x.type for x in stmt.args)
    return a.is_float and a.rank == b.rank == 2 and hint_of(a.size * b.shape[1]) >= MIN_WORK
