"""What an op costs, as far as its types determine it, and how long that takes: the single source for passes, code generator and profiler.

`Op.cost` answers for an op, `ir.work` for statements, whose blocks cost something too, and `nanoseconds` turns either into a time: what
holds the GIL, checks for signals, or runs on several threads is decided by it.

The unit of work is one simple operation on one element, such as an addition. An elementwise op does not declare its cost: it is found by
counting what its lowering emits (`Counting`), so that the cost of a newly added op is known too. Ops that lower themselves to loops define
`Op.cost`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .records import NamedTuple
from .sizes import hint_of, is_symbolic
from .types import BOOL, I64, DType, TensorType

if TYPE_CHECKING:
    from .target import Target  # compiling imports it

PLAIN = 1  # an addition, a comparison, a selection
DIVISION = 3  # a floating-point division or a square root
ITERATIONS = 20  # of a loop that ends when its elements have converged
MATH = 8  # a function of the vector math library, or an integer division
NARROW = 8  # columns of a product from which it is computed in whole vectors

# Nanoseconds, at about 3 GHz.
IN_VECTORS = 0.1  # an operation on one element of a vector of `VECTOR` bytes
VECTOR = 32
ONE_BY_ONE = 0.4  # an operation in a loop that computes one element after the other
CHAINED = 1.0  # an operation that waits for the result of another
PER_BYTE = 0.05  # a byte of an array that no cache holds


def assumed_type(t: TensorType) -> TensorType:
    """The type with sizes that occurred instead of those that are known only at run time: costs are estimates."""
    return t.with_shape([hint_of(n) for n in t.shape]) if any(map(is_symbolic, t.shape)) else t


class Cost(NamedTuple):
    """What native code does for one op, or for several.

    `latency` is that of one element, which vectors compute at the same time as others: only elementwise ops have it. `worst` is what the
    values of the operands may require besides.
    """

    flops: float = 0.0  # simple operations on elements
    latency: float = 0.0  # of the longest chain of operations that depend on each other
    bytes: float = 0.0  # read and written: operands and results, once each
    serial: float = 0.0  # elements that are computed or moved one after the other, rather than in vectors
    worst: float = 0.0  # further operations, one after the other

    def then(self, other: Cost) -> Cost:
        """Of both, one after the other."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))

    def either(self, other: Cost) -> Cost:
        """An upper bound of both."""
        return Cost(*map(max, self, other))

    def times(self, n: float) -> Cost:
        return Cost(*(n * x if x else 0.0 for x in self))


NOTHING = Cost()


def nanoseconds(cost: Cost, target: Target) -> float:
    """A rough upper bound of the time on one core."""
    narrow = max(1.0, VECTOR / target.vector_bytes)
    throughput = IN_VECTORS * narrow * cost.flops + ONE_BY_ONE * (cost.serial + cost.worst) + PER_BYTE * cost.bytes
    return max(throughput, CHAINED * cost.latency)


def flops_in(duration: float) -> int:
    """The number of operations that vector code performs in a number of nanoseconds."""
    return round(duration / IN_VECTORS)


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
