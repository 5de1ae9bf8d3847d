"""How long statements take, roughly: enough to tell a call that a user may want to interrupt from one that is over before that.

Counted in operations of a product, of which a core does about twenty in a nanosecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.control import Fuse
from adjit.ir.ops.convolution import Convolution, Convolve, ConvolveFilter
from adjit.ir.ops.factor import Cholesky, Qr, Slogdet
from adjit.ir.ops.linalg import Matmul, MatmulAdd
from adjit.ir.ops.lu import Lu
from adjit.ir.ops.maps import Map
from adjit.ir.ops.solve import SolveWith
from adjit.ir.ops.sort import Argsort

COMPUTED = 4.0  # an element of a result inside of a kernel
READ = 16.0  # an element that a kernel walks over
SORTED = 512.0
WRITTEN = 1.0  # an element of what is as large as all that is walked over: memory bounds how many there are


def duration(stmt: Stmt) -> float:
    """Of one statement. Loops have no bound, and are not asked for here."""
    match stmt.op:
        case Matmul() | MatmulAdd():
            return 2.0 * stmt.result.type.size * stmt.args[-2].type.shape[-1]
        case Convolution() as op:
            w = stmt.result if isinstance(op, ConvolveFilter) else stmt.args[1]
            d = stmt.result if isinstance(op, Convolve) else stmt.args[isinstance(op, ConvolveFilter)]
            return 2.0 * d.type.size * math.prod(w.type.shape[:-1])
        case Cholesky() | Qr() | Slogdet() | Lu() | SolveWith():
            return 4.0 * _largest(stmt.args) * stmt.args[0].type.shape[-1]
        case Argsort():
            return SORTED * stmt.result.type.size
        case Map():
            return WRITTEN * stmt.result.type.size
        case Fuse():
            return _fused(stmt)
        case _:
            return READ * max(_largest(stmt.args), _largest(stmt.results)) + sum(duration(s) for block in stmt.blocks for s in block.stmts)


def _fused(stmt: Stmt) -> float:
    inner = stmt.blocks[0].stmts
    products = sum(duration(s) for s in inner if isinstance(s.op, Matmul | MatmulAdd | Convolution))
    walked = _largest([r for s in inner for r in (*s.results, *s.args)])
    if walked == _largest(stmt.results):
        return products + WRITTEN * walked
    return products + (READ + COMPUTED * len(inner)) * walked


def _largest(values: Iterable[Operand]) -> int:
    return max((x.type.size for x in values), default=0)
