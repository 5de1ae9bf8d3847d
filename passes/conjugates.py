"""Moves conjugations from the results of Fourier transforms to their operands: conj(fft(x)) is the inverse transform of conj(x).

Gradients conjugate both the operands and the results of transforms. An operand is computed by elementwise code, which can also conjugate
it, or it is a conjugate already; a result would have to be read and written once more. Called by `passes.complex`.
"""

from __future__ import annotations

from collections import Counter

from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.complex import Conj

from .rewrite import like, walk

CONJ = Conj()


def conjugate_operands(func: Func) -> Func:
    uses: Counter[int] = Counter()
    for stmt in walk(func.block):
        uses.update(map(id, stmt.args))
        uses.update(id(x) for block in stmt.blocks for x in (*block.results, *block.saving))
    uses.update(map(id, (*func.results, *func.block.saving, *(new for _, new in func.updates))))
    return func.replace(block=conjugated(func.block, uses))


def conjugated(block: Block, uses: Counter[int]) -> Block:
    made = {id(result): stmt for stmt in block.stmts for result in stmt.results}
    replaced: dict[int, list[Stmt]] = {}
    for stmt in block.stmts:
        chain = transforms_of(stmt.args[0], made, uses) if stmt.op == CONJ else []
        if chain:
            first = made.get(id(chain[0].args[0]))
            known = first.args[0] if first is not None and first.op == CONJ and id(first) not in replaced else None
            replaced[id(stmt)] = []
            replaced |= turned(chain, stmt, known)
    if not replaced and not any(stmt.blocks for stmt in block.stmts):
        return block
    stmts: list[Stmt] = []
    for stmt in block.stmts:
        blocks = tuple(conjugated(b, uses) for b in stmt.blocks)
        stmts += replaced.get(id(stmt), [stmt.replace(blocks=blocks) if blocks else stmt])
    return Block(block.params, stmts, block.results, block.saving)


def transforms_of(x: Operand, made: dict[int, Stmt], uses: Counter[int]) -> list[Stmt]:
    """The transforms that made x, the first one first; nothing else reads their results."""
    chain: list[Stmt] = []
    while (stmt := made.get(id(x))) is not None and stmt.op.conjugated() is not None and uses[id(x)] == 1:
        chain.insert(0, stmt)
        x = stmt.args[0]
    return chain


def turned(chain: list[Stmt], conjugation: Stmt, known: Operand | None) -> dict[int, list[Stmt]]:
    """New statements for a chain of transforms, so that its last result is that of the conjugation; `known` is its operand conjugated."""
    out: list[Stmt]
    if known is not None:
        operand, out = known, []
    else:
        conjugate = like(chain[0], CONJ, chain[0].args)
        operand, out = conjugate.result, [conjugate]
    replaced = {}
    for i, stmt in enumerate(chain):
        op = stmt.op.conjugated()
        assert op is not None
        new = like(stmt, op, [operand], result=conjugation.result if i == len(chain) - 1 else None)
        replaced[id(stmt)] = [*out, new]
        operand, out = new.result, []
    return replaced
