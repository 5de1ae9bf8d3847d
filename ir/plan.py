"""The memory plan: where values are stored in native memory. The contract between the buffer planner and the code generator.

Every value has a window: a root value that owns a buffer, and the layout of the value's elements in it. Every root has a place.

Three kinds of places are known only while a loop runs. A `view` is a row of an array or an element of a stack, read in place: its address
is computed at the statement. A `slot` is the newest element of the stack that a loop saves the value on, a `row` the row of the array that
a loop writes the value into: the value is computed directly there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import ParseError
from .layout import Layout
from .records import NamedTuple

if TYPE_CHECKING:
    from .func import Value
    from .operand import Operand

ALIGNMENT = 64  # bytes: the alignment of every buffer in the arena
STACK_BYTES = 24  # the handle of a stack: data, count, capacity
KINDS = ("arena", "sized", "param", "result", "constant", "view", "slot", "row")


class Place:
    """A buffer: a byte offset in the arena, or the number of a parameter, a result, a constant, a view, a slot, a row, or of a `sized`
    buffer, which follows the arena and whose size is known only at run time.
    """

    __slots__ = ("index", "kind")

    def __init__(self, kind: str, index: int) -> None:
        self.kind, self.index = kind, index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.kind == other.kind and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.kind, self.index))

    def __str__(self) -> str:
        return f"{self.kind}+{self.index}"

    @staticmethod
    def parse(text: str) -> Place:
        kind, _, index = text.partition("+")
        if kind not in KINDS or not index.isdigit():
            raise ParseError(f"not a place: {text!r} (expected one like arena+128)")
        return Place(kind, int(index))


class BufferView(NamedTuple):
    root: Value
    layout: Layout

    def is_whole(self, value: Operand) -> bool:
        """Whether the value is the whole buffer, with its elements in row-major order."""
        return self.root.type.size == value.type.size and self.layout == Layout.contiguous(value.type.shape)


class Plan:
    """Keyed by the identity of values, which the Func keeps alive."""

    def __init__(
        self, arena_bytes: int = 0, places: dict[int, Place] | None = None, *, registers: set[int] | None = None,
        sized: list[int] | None = None,
    ) -> None:  # fmt: skip
        self.arena_bytes = arena_bytes
        self.places = {} if places is None else places
        self.windows: dict[int, BufferView] = {}
        self.rows: set[int] = set()  # ids of roots inside `rows`: their buffers hold one row at a time, on the stack
        self.registers = set() if registers is None else registers  # ids of region statements that run in registers, without buffers inside
        self.sized = [] if sized is None else sized  # bytes of the buffers whose sizes are known only at run time

    def place(self, value: Value) -> Place:
        return self.places[id(self.windows[id(value)].root)]
