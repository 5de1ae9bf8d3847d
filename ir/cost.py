"""What an op costs, as far as its types tell: the only place where passes, code generator and profiler learn it.

The unit is one plain operation on one element, such as an addition. An elementwise op does not say what it costs: it is found by counting
what its lowering emits (`Counting`), so that an op which somebody adds is known from the start. Ops that lower themselves to loops define
`Op.operations`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .types import BOOL, I64, DType

PLAIN = 1  # an addition, a comparison, a choice
DIVISION = 3  # a floating division or a square root
MATH = 8  # a function of the vector math library, an integer division


class Work(NamedTuple):
    """What an elementwise op does for one element: all operations, and the longest chain of them that depend on each other."""

    operations: int
    latency: int


class Counted(NamedTuple):
    """A register of `Counting`: its dtype, and the operations that it waits for."""

    dtype: DType
    ready: int


class Counting:
    """An `Emitter` that counts. Operations that are not listed here are plain."""

    COSTS = {"fdiv": DIVISION, "sqrt": DIVISION, "idiv": MATH, "irem": MATH, "call": MATH, "bitcast": 0}  # noqa: RUF012

    def __init__(self) -> None:
        self.operations = 0

    def const(self, dtype: DType, value: object) -> Counted:
        return Counted(dtype, 0)

    def like(self, x: Counted, value: object) -> Counted:
        return Counted(x.dtype, 0)

    def index(self, axis: int) -> Counted:
        return Counted(I64, 0)

    def strict(self) -> Counting:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        cost = self.COSTS.get(name, PLAIN)

        def operation(*operands: Any) -> Counted:
            registers = [x for x in operands if isinstance(x, Counted)]
            self.operations += cost
            given = next((x for x in operands if isinstance(x, np.dtype)), None)
            dtype = BOOL if name in ("compare", "unordered") else given or registers[-1].dtype
            return Counted(dtype, cost + max(x.ready for x in registers))

        return operation
