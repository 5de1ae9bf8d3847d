"""The cost of an op, as far as its types determine it: the single source for passes, code generator and profiler.

The unit is one simple operation on one element, such as an addition. An elementwise op does not declare its cost: it is found by counting
what its lowering emits (`Counting`), so that the cost of a newly added op is known too. Ops that lower themselves to loops define
`Op.operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .records import NamedTuple
from .sizes import hint_of, is_symbolic
from .types import BOOL, I64, DType, TensorType

PLAIN = 1  # an addition, a comparison, a selection
DIVISION = 3  # a floating-point division or a square root
ITERATIONS = 20  # of a loop that ends when its elements have converged
MATH = 8  # a function of the vector math library, or an integer division


def assumed_type(t: TensorType) -> TensorType:
    """The type with sizes that occurred instead of those that are known only at run time: costs are estimates."""
    return t.with_shape([hint_of(n) for n in t.shape]) if any(map(is_symbolic, t.shape)) else t


class Work(NamedTuple):
    """The work of an elementwise op per element: the number of operations, and the length of the longest dependency chain."""

    operations: int
    latency: int


class Counted(NamedTuple):
    """A register of `Counting`: its dtype, and the length of the dependency chain that computes it."""

    dtype: DType
    ready: int


class Counting:
    """An `Emitter` that counts operations. Those not listed here cost `PLAIN`."""

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

    def iterate(self, limit: int, state: Sequence[Counted], step: Callable[..., tuple[Counted, Sequence[Counted]]]) -> list[Counted]:
        before, start = self.operations, max(x.ready for x in state)
        _, results = step(*state)
        repeated = min(limit, ITERATIONS) - 1
        self.operations += repeated * (self.operations - before)
        return [Counted(x.dtype, x.ready + repeated * (x.ready - start)) for x in results]

    def where_any(self, condition: Counted, compute: Callable[[], Sequence[Counted]], otherwise: Sequence[Counted]) -> list[Counted]:
        return [self.select(condition, new, old) for new, old in zip(compute(), otherwise, strict=True)]

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
