"""Buffers inside a kernel, seen through static strides."""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir.types import I64, TensorType

from . import memory
from .lanes import Reg, Text
from .memory import Access


class Window:
    """A buffer, seen through strides. Implements `adjit.ir.ops.base.Window`."""

    def __init__(self, text: Text, pointer: str, type: TensorType, strides: tuple[int, ...]) -> None:
        self.text = text
        self.pointer = pointer
        self.type = type
        self.strides = strides

    @property
    def access(self) -> Access:
        return Access(self.pointer, self.strides, self.type.dtype)

    @property
    def pointers(self) -> list[str]:
        return [self.pointer]

    def inside(self, text: Text, pointers: Sequence[str]) -> Window:
        """The same window in another function, where its pointers have these names."""
        (pointer,) = pointers
        return Window(text, pointer, self.type, self.strides)

    def _seen(self, pointer: str, shape: Sequence[int], strides: Sequence[int]) -> Window:
        return Window(self.text, pointer, self.type.with_shape(shape), tuple(strides))

    def slice(self, axis: int, start: int, size: int, step: int = 1) -> Window:
        shape, strides = list(self.type.shape), list(self.strides)
        pointer = memory.element(self.text, self.pointer, self.type.dtype, str(start * strides[axis]))
        shape[axis], strides[axis] = size, strides[axis] * step
        return self._seen(pointer, shape, strides)

    def at(self, *index: Reg) -> Window:
        pointer = self.pointer
        for i, stride in zip(index, self.strides, strict=False):
            pointer = memory.element(self.text, pointer, self.type.dtype, memory.scaled(self.text, i.name, stride))
        return self._seen(pointer, self.type.shape[len(index) :], self.strides[len(index) :])

    def sliding(self, axis: int, count: int, step: int, size: int, dilation: int = 1) -> Window:
        shape, strides = list(self.type.shape), list(self.strides)
        shape[axis : axis + 1] = [count, size]
        strides[axis : axis + 1] = [strides[axis] * step, strides[axis] * dilation]
        return self._seen(self.pointer, shape, strides)

    def transposed(self, *axes: int) -> Window:
        shape, strides = ([old[a] for a in axes] for old in (self.type.shape, self.strides))
        return self._seen(self.pointer, shape, strides)

    def expanded(self, axis: int) -> Window:
        """With a new axis of size 1."""
        shape, strides = list(self.type.shape), list(self.strides)
        shape.insert(axis, 1)
        strides.insert(axis, 0)
        return self._seen(self.pointer, shape, strides)


class Private(Window):
    """Memory that every thread has its own of: the first axis is that of the threads, until `inside` knows which one it is."""

    def inside(self, text: Text, pointers: Sequence[str]) -> Window:
        return Window(text, pointers[0], self.type, self.strides).at(Reg("%worker", I64))
