"""Chooses which product of a sum to fuse: a * b + c * d has one multiply-add, which can absorb either product.

LLVM absorbs the first. In a chain of dependent operations, such as the body of a loop on scalars, it is better to absorb the product whose
factors are ready last: the other one is computed in the meantime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adjit.ir.func import Block, Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.arithmetic import Add, Sub
from adjit.ir.ops.maps import Mul, element_cost
from adjit.ir.records import NamedTuple

from ..llvm.lanes import Reg
from .emitter import VectorEmitter


class Product(NamedTuple):
    a: Reg
    b: Reg
    ready: float  # time at which both factors are available


class MultiplyAdds:
    """Tracks the elementwise statements of one kernel."""

    def __init__(self, block: Block, emit: VectorEmitter) -> None:
        self.uses = Counter(id(x) for x in block.uses())
        self.emit = emit
        self.ready: dict[int, float] = {}
        self.products: dict[int, Product] = {}  # those that only one statement reads

    def scalar(self, stmt: Stmt, regs: Sequence[Reg]) -> Reg:
        """Emit native code for a statement on registers."""
        op, result = stmt.op, stmt.result
        start = max((self.ready.get(id(a), 0) for a in stmt.args), default=0)
        self.ready[id(result)] = start + element_cost(stmt).latency
        if result.type.is_float and isinstance(op, Mul) and self.uses[id(result)] == 1:
            self.products[id(result)] = Product(regs[0], regs[1], start)
        elif result.type.is_float and isinstance(op, Add | Sub):
            choices = [k for k, a in enumerate(stmt.args) if id(a) in self.products]
            if choices:
                return self.fused(stmt, min(choices, key=lambda k: self.time(stmt.args, k)), regs)
        out: Reg = op.scalar(self.emit, *regs)  # type: ignore[attr-defined]
        return out

    def time(self, args: Sequence[Operand], k: int) -> float:
        """The earliest start of a sum that absorbs the product that is its k-th operand."""
        return max(self.products[id(args[k])].ready, self.ready.get(id(args[1 - k]), 0))

    def fused(self, stmt: Stmt, k: int, regs: Sequence[Reg]) -> Reg:
        a, b, ready = self.products[id(stmt.args[k])]
        other = regs[1 - k]
        self.ready[id(stmt.result)] = max(ready, self.ready.get(id(stmt.args[1 - k]), 0)) + 1
        if isinstance(stmt.op, Sub):
            a, other = (self.emit.neg(a), other) if k == 1 else (a, self.emit.neg(other))
        return self.emit.intrinsic("fmuladd", a, b, other)
