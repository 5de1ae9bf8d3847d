"""Buffers inside a kernel, viewed with static strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from adjit.ir.types import I64, DType, TensorType, row_major

from ..llvm import memory
from ..llvm.lanes import Reg, Text
from ..loops.ir import Access
from ..sizes import native_size
from .emitter import VectorEmitter


class Strided:
    """A buffer viewed with strides. Implements `adjit.ir.ops.lowering.Window`."""

    written = 1  # number of members that a store writes
    ops = 0  # operations applied to each element when it is stored

    def __init__(self, text: Text, pointer: str, type: TensorType, strides: tuple[int, ...]) -> None:
        self.text = text
        self.pointer = pointer
        self.type = type
        self.strides = strides

    @property
    def access(self) -> Access:
        return Access(self.pointer, self.strides, self.type.dtype)

    @property
    def is_row_major(self) -> bool:
        whole = row_major(self.type.shape)
        return all(n == 1 or s == w for n, s, w in zip(self.type.shape, self.strides, whole, strict=True))

    @property
    def windows(self) -> list[Strided]:
        """The windows of the underlying buffers; those that a store writes come first."""
        return [self]

    @property
    def members(self) -> list[Access]:
        return [window.access for window in self.windows]

    @property
    def pointers(self) -> list[str]:
        return [window.pointer for window in self.windows]

    def put(self, emit: VectorEmitter, value: Reg, load: Callable[[int], Reg], store: Callable[[int, Reg], None]) -> None:
        """Store some elements; `load` and `store` access them in the members."""
        store(0, value)

    def inside(self, text: Text, pointers: Sequence[str]) -> Strided:
        """The same window in another function, where its pointers have these names."""
        (pointer,) = pointers
        return Strided(text, pointer, self.type, self.strides)

    def _seen(self, pointer: str, shape: Sequence[int], strides: Sequence[int]) -> Strided:
        return Strided(self.text, pointer, self.type.with_shape(shape), tuple(strides))

    def slice(self, axis: int, start: int, size: int, step: int = 1) -> Strided:
        shape, strides = list(self.type.shape), list(self.strides)
        start, size, step = map(native_size, (start, size, step))  # attributes of an op
        pointer = memory.element(self.text, self.pointer, self.type.dtype, f"{start * strides[axis]}")
        shape[axis], strides[axis] = size, strides[axis] * step
        return self._seen(pointer, shape, strides)

    def at(self, *index: Reg) -> Strided:
        pointer = self.pointer
        for i, stride in zip(index, self.strides, strict=False):
            pointer = memory.element(self.text, pointer, self.type.dtype, memory.scaled(self.text, i.name, stride))
        return self._seen(pointer, self.type.shape[len(index) :], self.strides[len(index) :])

    def sliding(self, axis: int, count: int, step: int, size: int, dilation: int = 1) -> Strided:
        shape, strides = list(self.type.shape), list(self.strides)
        count, step, size = map(native_size, (count, step, size))
        shape[axis : axis + 1] = [count, size]
        strides[axis : axis + 1] = [strides[axis] * step, strides[axis] * dilation]
        return self._seen(self.pointer, shape, strides)

    def transposed(self, *axes: int) -> Strided:
        shape, strides = ([old[a] for a in axes] for old in (self.type.shape, self.strides))
        return self._seen(self.pointer, shape, strides)

    def expanded(self, axis: int) -> Strided:
        """The window with a new axis of size 1."""
        shape, strides = list(self.type.shape), list(self.strides)
        shape.insert(axis, 1)
        strides.insert(axis, 0)
        return self._seen(self.pointer, shape, strides)


class Private(Strided):
    """Thread-private memory: the first axis is indexed by thread, which `inside` selects."""

    def inside(self, text: Text, pointers: Sequence[str]) -> Strided:
        return Strided(text, pointers[0], self.type, self.strides).at(Reg("%worker", I64))


class Hosted(Strided):
    """The target of a product inside a `fuse` region: the rest of the region is applied to each value that is stored.

    `body(emit, value, load)` returns the elements of the outputs; `load(k)` reads input k at the same position. Every view is applied to
    all members.
    """

    def __init__(
        self, text: Text, dtype: DType, outputs: Sequence[Strided], inputs: Sequence[Strided], body: HostedBody, ops: int, spare: int | None
    ) -> None:
        """`ops`: number of operations in the body. `spare`: index of an output that can hold partial sums until its elements are stored."""
        lead = outputs[0]
        super().__init__(text, lead.pointer, TensorType(dtype, lead.type.shape), lead.strides)
        self.outputs, self.inputs, self.body, self.ops, self.spare = list(outputs), list(inputs), body, ops, spare
        self.written = len(self.outputs)

    @property
    def windows(self) -> list[Strided]:
        return [*self.outputs, *self.inputs]

    def put(self, emit: VectorEmitter, value: Reg, load: Callable[[int], Reg], store: Callable[[int, Reg], None]) -> None:
        for k, result in enumerate(self.body(emit, value, lambda k: load(len(self.outputs) + k))):
            store(k, result)

    def _each(self, view: Callable[[Strided], Strided], text: Text | None = None) -> Hosted:
        outputs, inputs = [view(w) for w in self.outputs], [view(w) for w in self.inputs]
        return Hosted(text or self.text, self.type.dtype, outputs, inputs, self.body, self.ops, self.spare)

    def inside(self, text: Text, pointers: Sequence[str]) -> Strided:
        names = iter(pointers)
        return self._each(lambda w: w.inside(text, [next(names)]), text)

    def slice(self, axis: int, start: int, size: int, step: int = 1) -> Strided:
        return self._each(lambda w: w.slice(axis, start, size, step))

    def at(self, *index: Reg) -> Strided:
        return self._each(lambda w: w.at(*index))

    def sliding(self, axis: int, count: int, step: int, size: int, dilation: int = 1) -> Strided:
        return self._each(lambda w: w.sliding(axis, count, step, size, dilation))

    def transposed(self, *axes: int) -> Strided:
        return self._each(lambda w: w.transposed(*axes))

    def expanded(self, axis: int) -> Strided:
        return self._each(lambda w: w.expanded(axis))


HostedBody: TypeAlias = Callable[[VectorEmitter, Reg, Callable[[int], Reg]], Sequence[Reg]]
