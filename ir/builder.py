"""Appends statements to a block. Operators on IR values emit into the innermost active builder.

with Builder(params) as b:
    y = x * x + 1.0
block = b.finish([y])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .active import enter, leave
from .errors import AdjitError, TraceError
from .func import Block, Phase, Stmt, Value
from .location import Location
from .operand import Concrete, Literal, Operand, fold_literals
from .ops.base import Array, Op
from .ops.create import Constant
from .ops.shape import Broadcast
from .types import TensorType

INLINE_CONSTANT = 16  # elements: larger arrays are captured as parameters rather than printed in the IR


IN_STATEMENTS = (Value, Literal)  # the classes of operands


class Emitting:
    """What `Builder.at` returns. Not a generator, which takes twice as long: the adjoint pass enters one for each statement."""

    __slots__ = ("builder", "place", "before")

    def __init__(self, builder: Builder, *place: Any) -> None:
        self.builder, self.place = builder, place

    def __enter__(self) -> None:
        builder = self.builder
        self.before = (builder.location, builder.phase, builder.origin)
        builder.location, builder.phase, builder.origin = self.place

    def __exit__(self, *exc: object) -> None:
        builder = self.builder
        builder.location, builder.phase, builder.origin = self.before


class Builder:
    """Collects the statements of one block."""

    value_class: type[Value] = Value

    def __init__(self, params: Sequence[Value] = (), parent: Builder | None = None) -> None:
        self.params = list(params)
        self.stmts: list[Stmt] = []
        self.parent = parent
        self.location: Location | None = None
        self.phase: Phase = "forward"
        self.origin: Stmt | None = None
        self.capture: Callable[[Array], Operand] | None = parent.capture if parent else None
        # turns all arrays into parameters, including small ones
        self.adopt: Callable[[Concrete], Operand] | None = parent.adopt if parent else None

    def __enter__(self) -> Builder:
        enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave()

    def at(self, location: Location | None, phase: Phase, origin: Stmt | None) -> Emitting:
        """Statements emitted inside get this location, phase and forward statement."""
        return Emitting(self, location, phase, origin)

    def around(self) -> Iterator[Builder]:
        """This builder and its enclosing builders, innermost first."""
        builder: Builder | None = self
        while builder is not None:
            yield builder
            builder = builder.parent

    def overwrite(self, old: Operand | Array, new: Operand) -> None:
        """Note that `y += 1` and the like have given an array new contents; a trace checks that the old value is not used again."""
        if self.parent is not None:
            self.parent.overwrite(old, new)

    def found_size(self, count: Operand, otherwise: str) -> int:
        """A traced integer as the size of an array; only traces of whole functions know which ones to assume."""
        raise TraceError(otherwise)

    def place(self) -> tuple[Location | None, str | None]:
        """Location and name for the statement about to be emitted; the tracer finds both in the user's frame."""
        return self.location, None

    def apply(self, op: Op, args: tuple[Operand, ...]) -> Any:
        """Emit `op` (or fold it, on literals) and return its result or results."""
        folded = fold_literals(op, args)
        if folded is not None:
            return folded
        results = self.emit(op, args)
        return results[0] if len(results) == 1 else results

    def emit(
        self, op: Op, args: Sequence[Operand], blocks: tuple[Block, ...] = (), types: Sequence[TensorType] | None = None
    ) -> tuple[Value, ...]:
        """Append a statement. `types` are given for ops with regions, inferred otherwise."""
        location, name = self.place()
        try:
            operands = tuple([a if isinstance(a, IN_STATEMENTS) else self.constant(a) for a in args])
            if types is None:
                types = op.result_types([a.type for a in operands])
        except AdjitError as error:
            raise error.at(location) from None
        results = tuple([self.value_class(t, name) for t in types])
        self.stmts.append(Stmt(op, operands, results, blocks, location, self.phase, self.origin))
        return results

    def stand_in(self, operand: Operand) -> Operand:
        """The operand that represents a constant in the IR: itself, unless derivatives are taken with respect to it."""
        return operand

    def constant(self, operand: Operand) -> Operand:
        """Represent a concrete array in the IR: as a literal if uniform, a small constant, or a captured parameter."""
        if not isinstance(operand, Concrete):
            raise TraceError(f"{operand!r} cannot be part of the IR: only traced values, literals and arrays can")
        if self.adopt is not None:
            return self.adopt(operand)
        data = operand.buffer
        once = unrepeated(data)
        if is_uniform(once):
            return Literal(data.flat[0], operand.type)
        if once.size < data.size and data.size > INLINE_CONSTANT:
            return self.emit(Broadcast(data.shape), (self.constant(Concrete(once)),))[0]
        if data.size > INLINE_CONSTANT and self.capture is not None:
            return self.capture(data)
        return self.emit(Constant.of(data), ())[0]

    def finish(self, results: Sequence[Operand], saving: Sequence[Operand] = ()) -> Block:
        operands, saved = ([x if isinstance(x, Value | Literal) else self.constant(x) for x in xs] for xs in (results, saving))
        return Block(self.params, self.stmts, operands, saved)


def unrepeated(data: Array) -> Array:
    """One element along each axis on which a broadcast repeats it."""
    return data[tuple(slice(1) if stride == 0 else slice(None) for stride in data.strides)] if 0 in data.strides else data


def is_uniform(data: Array) -> bool:
    """Whether one value fills the array, bitwise: zeros of both signs are different values."""
    if data.size <= 1:
        return data.size == 1
    first = data.flat[0]
    if not (data == first).all():
        return False
    if data.dtype.kind == "c":
        return is_uniform(data.real) and is_uniform(data.imag)
    signs = np.signbit(data) if data.dtype.kind == "f" and first == 0 else None
    return signs is None or bool(signs.any() == signs.all())
