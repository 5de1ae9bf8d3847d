"""Selection: the first or last few positions of a sorted row, without sorting the row.

The row is cut into groups, whose largest keys are found on all threads. The `count`-th largest of these is a lower limit for the selected
elements: those above it are in fewer than `count` groups, and are sorted; elements equal to it fill up what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..types import BOOL, I64, U8, DType, TensorType, normalize_axis
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, apply, nest, with_attributes
from .create import iota
from .index import Gather
from .maps import cast
from .radix import UNSIGNED, lower_by_digits, ordered_bits
from .reduce import Max
from .sort import Argsort
from .triangle import part

__all__ = ["select", "top_k"]

if TYPE_CHECKING:
    from ..operand import Operand

RARE = 16  # a selection of more than one element out of this many sorts instead
LEAST = 1024  # elements of a row: shorter ones are sorted


@with_attributes
class Select(Op):
    """The first `count` positions of `argsort`, or the last ones: indices along an axis, in the same order."""

    axis: int
    count: int
    last: bool = False
    descending: bool = False

    differentiable = False

    @property
    def whole(self) -> Argsort:
        return Argsort(self.axis, self.descending)

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        axis = normalize_axis(self.axis, x.rank, self.name)
        if x.dtype.kind not in "iuf":
            raise DTypeError(f"select: takes real numbers, not {x}")
        if not 0 <= self.count <= x.shape[axis]:
            raise ShapeError(f"select: {self.count} positions of {x} along axis {axis}, which has {x.shape[axis]}")
        return TensorType(I64, (*x.shape[:axis], self.count, *x.shape[axis + 1 :]))

    def evaluate(self, *arrays: Array) -> Array:
        order, n = self.whole.evaluate(*arrays), arrays[0].shape[self.axis]
        kept = slice(n - self.count, n) if self.last else slice(0, self.count)
        return np.ascontiguousarray(order[(slice(None),) * self.axis + (kept,)])

    def python(self, write: Writing, *args: Operand) -> Any:
        order = self.whole.python(write, *args)
        n = args[0].type.shape[self.axis]
        kept = f"{n - self.count}:{n}" if self.last else f":{self.count}"
        return write(f"{{}}[{':, ' * self.axis}{kept}]", order)

    def widened(self, size: int) -> Select:
        return replace(self, axis=self.axis + 1)

    def cost(self, *types: TensorType) -> Cost:
        visits = 2.0 * types[0].size
        return self.usual_cost(types, visits, worst=7.0 * visits)  # all elements are looked at again if many are equal

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        order = [a for a in range(x.type.rank) if a != self.axis] + [self.axis]
        out, x = out.transposed(*order), x.transposed(*order)
        *lines, n = x.type.shape
        if not out.type.size:
            return
        if n < LEAST or self.count * RARE > n:
            positions = k.scratch(TensorType(I64, x.type.shape))
            Argsort(x.type.rank - 1, self.descending).lower(k, positions, x)
            k.copy(out, positions.slice(x.type.rank - 1, n - self.count if self.last else 0, self.count))
            return
        selection = RowSelection(k, n, self.count, self.last, self.descending, x.type.dtype)
        with nest(k, lines) as line:
            selection.find(out.at(*line), x.at(*line))


class RowSelection:
    """A selection from rows of n elements, and its scratch memory. Keys are larger the sooner an element is selected."""

    def __init__(self, k: Loops, n: int, count: int, last: bool, descending: bool, dtype: DType) -> None:
        self.k, self.n, self.count, self.last, self.descending = k, n, count, last, descending
        self.key = UNSIGNED[dtype.itemsize]
        self.width = max(16, 1 << ((n // count).bit_length() // 2))
        self.groups = -(-n // self.width)
        most = (count - 1) * self.width + 1
        self.largest = k.scratch(TensorType(self.key, (self.groups,)))
        self.order = k.scratch(TensorType(I64, (self.groups,)))
        self.keys = k.scratch(TensorType(self.key, (most,)))
        self.above, self.sorted = (k.scratch(TensorType(I64, (most,))) for _ in range(2))
        self.equal = k.scratch(TensorType(I64, (count,)))
        self.found = k.scratch(TensorType(I64, (1,)))

    def find(self, out: Window, row: Window) -> None:
        k, emit, zero = self.k, self.k.scalar, self.k.scalar.const(I64, 0)
        self.find_largest(row)
        lower_by_digits(k, self.order, self.largest, descending=True)
        limit = k.load(self.largest, k.load(self.order, emit.const(I64, self.count - 1)))
        k.store(self.found, zero, zero)
        self.each_group("gt", limit, lambda i: self.take_above(row, i, limit))
        above = k.load(self.found, zero)
        missing = emit.sub(emit.like(above, self.count), above)
        k.store(self.found, zero, zero)
        with k.loop(at_most(k, missing, 1)):
            self.each_group("ge", limit, lambda i: self.take_equal(row, i, limit, missing), missing)
        lower_by_digits(k, self.sorted, self.keys, descending=not self.last, count=above)
        self.give(out, above, missing)

    def key_of(self, row: Window, i: Reg) -> Reg:
        return self.as_key(self.k.scalar, self.k.load(row, i))

    def as_key(self, emit: Emitter, x: Reg) -> Reg:
        bits = ordered_bits(emit, x, self.key, self.descending)
        return bits if self.last else emit.xor(bits, emit.like(bits, (1 << 8 * self.key.itemsize) - 1))

    def find_largest(self, row: Window) -> None:
        """The largest key of each group, the last of which may be shorter."""
        k, full, rest = self.k, *divmod(self.n, self.width)

        def largest(target: Window, group: Window) -> None:
            k.reduce(Max((0,)), self.as_key, target, [group])

        def body(i: Reg, largests: Window, row: Window) -> None:
            largest(part(largests, i, 1), part(row, k.scalar.mul(i, k.scalar.like(i, self.width)), self.width))

        k.each(full, 8.0 * self.n, body, self.largest, row)
        if rest:
            largest(self.largest.slice(0, full, 1), row.slice(0, full * self.width, rest))

    def each_group(self, predicate: str, limit: Reg, body: Callable[[Reg], None], missing: Reg | None = None) -> None:
        """Call `body(i)` for the elements of groups whose largest key is above (or equal to) the limit; in reverse order for the last ones
        that are `missing`, and only while some are.
        """
        k, emit, zero = self.k, self.k.scalar, self.k.scalar.const(I64, 0)
        backwards = missing is not None and self.last
        with k.loop(self.groups) as g:
            group = emit.sub(emit.like(g, self.groups - 1), g) if backwards else g
            inside = emit.compare(predicate, k.load(self.largest, group), limit)
            if missing is not None:
                inside = emit.and_(inside, emit.compare("lt", k.load(self.found, zero), missing))
            start = emit.mul(group, emit.like(group, self.width))
            size = at_most(k, emit.sub(emit.like(start, self.n), start), self.width)
            with k.loop(emit.select(inside, size, zero)) as e:
                offset = emit.sub(emit.sub(size, emit.like(size, 1)), e) if backwards else e
                body(emit.add(start, offset))

    def take_above(self, row: Window, i: Reg, limit: Reg) -> None:
        """Append an element whose key is above the limit; others are overwritten by the next."""
        k, emit, zero = self.k, self.k.scalar, self.k.scalar.const(I64, 0)
        key, place = self.key_of(row, i), k.load(self.found, zero)
        k.store(self.keys, key, place)
        k.store(self.above, i, place)
        k.store(self.found, advanced(k, place, emit.compare("gt", key, limit)), zero)

    def take_equal(self, row: Window, i: Reg, limit: Reg, missing: Reg) -> None:
        """The same for one that equals the limit, while some are missing. The last ones are stored from the end."""
        k, emit, zero = self.k, self.k.scalar, self.k.scalar.const(I64, 0)
        found = k.load(self.found, zero)
        takes = emit.and_(emit.compare("eq", self.key_of(row, i), limit), emit.compare("lt", found, missing))
        with k.loop(advanced(k, zero, takes)):
            k.store(self.equal, i, emit.sub(emit.sub(missing, emit.like(missing, 1)), found) if self.last else found)
        k.store(self.found, advanced(k, found, takes), zero)

    def give(self, out: Window, above: Reg, missing: Reg) -> None:
        """Equal elements come first among the last ones, and last among the first ones."""
        k, emit = self.k, self.k.scalar
        zero = emit.const(I64, 0)
        equal = emit.select(emit.compare("gt", missing, zero), missing, zero)
        taken = emit.sub(emit.like(equal, self.count), equal)
        with k.loop(equal) as i:
            k.store(out, k.load(self.equal, i), i if self.last else emit.add(taken, i))
        skipped = emit.sub(above, taken) if self.last else zero
        with k.loop(taken) as i:
            place = k.load(self.sorted, emit.add(skipped, i))
            k.store(out, k.load(self.above, place), emit.add(equal, i) if self.last else i)


def at_most(k: Loops, x: Reg, limit: int) -> Reg:
    """The smaller one; for a limit of 1, whether x is positive, as a number of iterations."""
    most = k.scalar.like(x, limit)
    return k.scalar.select(k.scalar.compare("lt", x, most), x, most)


def advanced(k: Loops, x: Reg, condition: Reg) -> Reg:
    """x + 1 if the condition holds."""
    return k.scalar.select(condition, k.scalar.add(x, k.scalar.like(x, 1)), x)


def select(x: Operand, count: int, axis: int = -1, last: bool = False, descending: bool = False) -> Operand:
    """The first (or last) `count` positions of `argsort(x, axis, descending)`."""
    axis = normalize_axis(axis, x.ndim, "select")
    return apply(Select(axis, count, last, descending), cast(x, U8) if x.dtype == BOOL else x)


def top_k(x: Operand, count: int, axis: int = -1) -> tuple[Operand, Operand]:
    """The largest elements along an axis, in descending order, and their positions. Derivatives go back to these."""
    axis = normalize_axis(axis, x.ndim, "top_k")
    order = select(x, count, axis, descending=True)
    return apply(Gather(), x, *(order if a == axis else iota(order.shape, a) for a in range(x.ndim))), order
