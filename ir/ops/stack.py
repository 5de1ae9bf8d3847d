"""Ops on stacks: the values that a loop saved, one element per iteration, and their cotangents.

A loop's `saving` is the only way to fill a stack; the ops here read it, and add to another of the same length. They are differentiable like
all others: the cotangent of a stack is a stack. Indices and lengths are checked, except where the maker of an op guarantees them
(`unchecked`): the backward loop has as many iterations as the forward loop that filled the stack.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..cost import Cost
from ..effects import effects_of
from ..errors import DTypeError, OutOfBoundsError
from ..types import I64, StackType, TensorType
from .base import Array, Op, Registers, Writing, apply, with_attributes

if TYPE_CHECKING:
    from ..func import Stmt
    from ..operand import Operand


class StackOp(Op, abstract=True):
    """An op that accesses stacks; all other ops take arrays only."""

    takes_stacks = True

    def element_of(self, stack: TensorType, index: TensorType) -> TensorType:
        if not isinstance(stack, StackType) or index.shape or index.dtype.kind not in "iu":
            raise DTypeError(f"{self.name}: takes a stack and an integer scalar, not {stack} and {index}")
        return stack.element

    def stack(self, type: TensorType) -> StackType:
        if not isinstance(type, StackType):
            raise DTypeError(f"{self.name}: takes a stack, not {type}")
        return type

    def cost(self, *types: TensorType) -> Cost:
        return Cost(bytes=math.inf)  # the lengths of stacks are known only at run time

    def widened(self, size: int) -> StackOp:
        return self

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return (*args, *results)

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        kernel.on_stack(stmt)


class CheckedStackOp(StackOp, abstract=True):
    """An op that fails if its index is outside of the stack, or its stacks have different lengths."""

    can_fail: ClassVar[bool] = True

    def unchecked(self) -> Self:
        """This op with the guarantee that it cannot fail. The text of the IR does not show this: an op that is parsed is checked."""
        self.__dict__["can_fail"] = False
        return self

    def like(self, op: CheckedStackOp) -> Self:
        """This op, checked if another on the same index is."""
        return self if effects_of(op).fails else self.unchecked()

    @property
    def message(self) -> str:
        """The error message, with a placeholder for the index or length."""
        return f"{self.name}: the stack has no element {{}}"

    def position(self, stack: Any, index: Array) -> int:
        if not 0 <= int(index) < len(stack):
            raise OutOfBoundsError(self.message.format(int(index)))
        return int(index)


class StackRead(CheckedStackOp):
    """Element i: `%x = stack_read %stack, %i`."""

    reads_rows = True

    def infer(self, *types: TensorType) -> TensorType:
        stack, index = types
        return self.element_of(stack, index)

    def evaluate(self, *arrays: Array) -> Any:
        stack, index = arrays
        return stack[self.position(stack, index)]

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("{}[{}]", write.array(args[0]), write.index(args[1]))

    def cost(self, *types: TensorType) -> Cost:
        element = self.infer(*types)
        return Cost(bytes=2.0 * element.nbytes, serial=element.size)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(self, d, args[1]) if i == 0 else None

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(StackAccumulate().like(self), apply(StackZeros(), args[0]), args[1], d) if i == 0 else None


@with_attributes
class StackZeros(StackOp):
    """A stack of zeros as long as another, with the same element type, or the type `element`."""

    element: TensorType | None = None

    differentiable: ClassVar[bool] = False
    can_stop: ClassVar[bool] = True  # for lack of memory

    def infer(self, *types: TensorType) -> TensorType:
        stack = self.stack(types[0])
        return stack if self.element is None else StackType(self.element)

    def evaluate(self, *arrays: Array) -> Any:
        type = self.element
        return [np.zeros_like(x) if type is None else np.zeros(type.shape, type.dtype) for x in arrays[0]]

    def python(self, write: Writing, *args: Operand) -> Any:
        if self.element is None:
            write.new(write("[np.zeros_like(e) for e in {}]", write.array(args[0])))
            return
        shape, dtype = write.value(self.element.shape), write.dtype(self.element.dtype)
        write.new(write("[np.zeros({}, {}) for _ in {}]", shape, dtype, write.array(args[0])))

    def widened(self, size: int) -> StackZeros:
        return self if self.element is None else StackZeros(self.element.with_shape((size, *self.element.shape)))


class StackLength(StackOp):
    """The number of elements of a stack."""

    differentiable: ClassVar[bool] = False

    def infer(self, *types: TensorType) -> TensorType:
        self.stack(types[0])
        return TensorType(I64)

    def evaluate(self, *arrays: Array) -> Any:
        return np.asarray(len(arrays[0]))

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("np.int64(len({}))", write.array(args[0]))


class StackAccumulate(CheckedStackOp):
    """The stack with `x` added to element i: `%s = stack_accumulate %stack, %i, %x`. In place, if the old stack is not read later."""

    in_place: ClassVar[int | None] = 0

    def cost(self, *types: TensorType) -> Cost:
        return Cost(types[2].size, bytes=3.0 * types[2].nbytes)

    def infer(self, *types: TensorType) -> TensorType:
        stack, index, x = types
        if self.element_of(stack, index) != x:
            raise DTypeError(f"stack_accumulate: {x} does not fit {stack}")
        return stack

    def evaluate(self, *arrays: Array) -> Any:
        stack, index, x = arrays
        at = self.position(stack, index)
        return [*stack[:at], stack[at] + x, *stack[at + 1 :]]

    def python(self, write: Writing, *args: Operand) -> Any:
        stack, index, x = args
        given, at = write.array(x), write.index(index)
        out = write.changed(stack, "list({})")
        write.run("{}[{}] = {}", out, at, write("{}[{}] + {}", out, at, given))

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        stack, index, x = tangents[0], args[1], tangents[2]
        if x is None:
            return [stack]
        return [apply(self, apply(StackZeros(), args[0]) if stack is None else stack, index, x)]

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i == 2:
            return apply(StackRead().like(self), d, args[1])
        return d if i == 0 else None


@with_attributes
class StackArray(CheckedStackOp):
    """All elements of a stack that holds `count` of them as one array, without a copy. Inserted by passes, after differentiation."""

    count: int
    differentiable: ClassVar[bool] = False
    reads_rows = True

    @property
    def message(self) -> str:
        return f"stack_array: the stack has {{}} elements, not {self.count}"

    def infer(self, *types: TensorType) -> TensorType:
        element = self.stack(types[0]).element
        return element.with_shape((self.count, *element.shape))

    def evaluate(self, *arrays: Array) -> Any:
        stack: Any = arrays[0]
        if len(stack) != self.count:
            raise OutOfBoundsError(self.message.format(len(stack)))
        return np.stack(stack)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("np.stack({})", write.array(args[0]))


class StackAdd(CheckedStackOp):
    """The elementwise sum of two stacks of equal length, of real or complex floats."""

    in_place: ClassVar[int | None] = 0

    @property
    def message(self) -> str:
        return "stack_add: stacks of different lengths; the second has {}"

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if self.stack(a) != b or not self.stack(a).element.is_inexact:
            raise DTypeError(f"stack_add: takes two stacks of one type of floats, not {a} and {b}")
        return a

    def evaluate(self, *arrays: Array) -> Any:
        a, b = arrays
        if len(a) != len(b):
            raise OutOfBoundsError(self.message.format(len(b)))
        return [x + y for x, y in zip(a, b, strict=True)]

    def python(self, write: Writing, *args: Operand) -> Any:
        write.new(write("[a + b for a, b in zip({}, {})]", *map(write.array, args)))

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        a, b = tangents
        return [apply(self, a, b) if a is not None and b is not None else a if b is None else b]

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d


class StackCopy(StackOp):
    """The stack in separate memory: inserted by `passes.memory.in_place` where an update in place would be visible."""

    can_stop: ClassVar[bool] = True  # for lack of memory

    def infer(self, *types: TensorType) -> TensorType:
        return self.stack(types[0])

    def evaluate(self, *arrays: Array) -> Any:
        return list(arrays[0])

    def python(self, write: Writing, *args: Operand) -> Any:
        write.new(write("list({})", write.array(args[0])))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d


def plus(a: Operand, b: Operand) -> Operand:
    """a + b, for arrays or stacks: how (co)tangents are added. Those of one value have one length."""
    return apply(StackAdd().unchecked(), a, b) if isinstance(a.type, StackType) else a + b


def zeros_like(x: Operand) -> Operand:
    """A zero (co)tangent of `x`."""
    return apply(StackZeros(), x) if isinstance(x.type, StackType) else x.literal(0, x.type)
