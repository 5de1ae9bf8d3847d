"""The log of an eager tape: an entry for each op, and the structure that the entries form.

Entries are written as ops are called, with as little work as possible: an argument may be a Python number, and operands of an elementwise
op may have different shapes, as NumPy broadcasts them. When a derivative is requested, `statements` converts the entries to statements of
the IR, with literals and broadcasts.

The structure describes the entries except for the numbers in the arrays: the op of each, and where its arguments come from. Tapes of equal
structure have the same backward program (see `backward.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from itertools import count
from typing import Any, ClassVar, TypeAlias
from weakref import WeakSet

import numpy as np

from adjit.ir.func import Stmt
from adjit.ir.location import Location
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.ops.arithmetic import Add, Div, Sub
from adjit.ir.ops.base import REGISTRY, Op, with_attributes
from adjit.ir.ops.maps import Mul
from adjit.ir.ops.shape import Broadcast
from adjit.ir.types import TensorType, as_dtype

Entry: TypeAlias = tuple[Op, tuple[Any, ...], tuple[Operand, ...]]  # op, arguments (operands and Python numbers), results
Ref: TypeAlias = Hashable  # where an argument comes from: the number of a watched value, or what is known of a constant

OPS = 10_000  # whose numbers are remembered

LINEAR: tuple[type[Op], ...] = (Add, Sub, Mul, Div)  # their rules do not depend on the value of a literal: programs take it as a parameter


@with_attributes
class Chain(Op, abstract=True):
    """Several ops of one operand, one after the other, as a single entry, such as those of an index."""

    parts: tuple[Op, ...]

    name: ClassVar[str] = "chain"


class TapeLog:
    """The entries of one tape, and the values that it watches."""

    __slots__ = ("entries", "structure", "numbers", "roots", "lost", "taken", "places", "constants", "is_plain", "__weakref__")

    def __init__(self) -> None:
        logs.add(self)
        self.entries: list[Entry] = []
        self.structure: list[Hashable] = []
        # by id, the numbers of watched values: that of the entry that computed it, or -1, -2, … for those that `watch` was called with
        self.numbers: dict[int, Ref] = {}
        self.roots: list[Operand] = []  # the latter; as the entries, they keep ids unique
        self.lost: dict[int, Operand] = {}  # values that depend on watched ones without a derivative
        self.taken: dict[int, Any] = {}  # numbers and arrays that were extracted, by id
        self.places: dict[int, Location | None] = {}  # the user's lines of entries with results that have no derivatives
        self.constants: set[int] = set()  # ids of tensors that were arguments before they were watched
        self.is_plain = True  # whether the structure describes all entries: not if one of them is a user's function

    def watch(self, x: Operand) -> None:
        if id(x) not in self.numbers:
            # a value watched only now was an argument of earlier entries: derivatives reach those too, which the structure does not express
            self.is_plain = self.is_plain and isinstance(x, Concrete) and id(x) not in self.constants
            self.roots.append(x)
            self.numbers[id(x)] = -len(self.roots)

    def add(self, op: Op, args: tuple[Any, ...], results: tuple[Operand, ...]) -> None:
        """Note an op on some watched value. Results of a floating-point type are watched from here on."""
        at = len(self.entries)
        if REGISTRY.get(op.name) is not type(op) or not all(isinstance(a, Concrete | Literal) for a in args):
            self.is_plain = False
        numbers = self.numbers
        sources = [numbers[id(a)] if id(a) in numbers else self.constant(op, a) for a in args]
        if self.is_plain:
            self.structure.append((number_of(op), *sources))
        self.entries.append((op, args, results))
        several = len(results) > 1
        for k, result in enumerate(results):
            if result.type.is_inexact:
                self.numbers[id(result)] = (at + 1, k) if several else at + 1

    def constant(self, op: Op, x: Any) -> Ref:
        """The entry of the structure for an argument that is not watched."""
        if isinstance(x, Concrete):
            self.constants.add(id(x))
            return (x.buffer.dtype.num, x.buffer.shape)
        if isinstance(op, LINEAR):
            return None
        return (x.type, x.value.tobytes()) if isinstance(x, Literal) else (type(x), np.float64(x).tobytes())

    # ---- writes to the elements of a tensor that is known here

    def knows(self, x: Operand) -> bool:
        return id(x) in self.numbers or id(x) in self.constants or id(x) in self.lost

    def mentions(self, x: Operand) -> list[int]:
        """The positions of the entries that have `x` among their arguments or results."""
        known = self.numbers.get(id(x))
        number = known[0] if isinstance(known, tuple) else known
        first = number - 1 if isinstance(number, int) and number > 0 else 0  # that of the entry which computed it
        entries = self.entries
        return [k for k in range(first, len(entries)) if any(a is x for a in entries[k][1]) or any(r is x for r in entries[k][2])]

    def why_kept(self, x: Operand, recording: bool) -> str:
        """Why `x` itself must keep its value, if it must."""
        if any(root is x for root in self.roots):
            return "derivatives by this tensor may be requested, which are those at its present value"
        if not recording and (id(x) in self.numbers or id(x) in self.lost):
            return "a tape that no longer records has recorded this tensor, and would not know of the write"
        ops = [self.entries[k][0] for k in self.mentions(x)]
        if any(not isinstance(op, Chain) and REGISTRY.get(op.name) is not type(op) for op in ops):
            return "a function with a derivative of its own, or a compiled one, has it among its arguments or results"
        return ""

    def replace(self, x: Operand, other: Operand) -> None:
        """Let another tensor with the same value take the place of `x` in everything recorded so far."""
        for k in self.mentions(x):
            op, args, results = self.entries[k]
            self.entries[k] = (op, tuple(other if a is x else a for a in args), tuple(other if r is x else r for r in results))
        if id(x) in self.numbers:
            self.numbers[id(other)] = self.numbers.pop(id(x))
        if id(x) in self.constants:
            self.constants.discard(id(x))
            self.constants.add(id(other))
        if self.lost.pop(id(x), None) is not None:
            self.lost[id(other)] = other

    def rename(self, new: Operand, x: Operand) -> None:
        """Let `x` be the result of the last op, which was `new`."""
        if id(new) in self.numbers or id(new) in self.lost:
            self.replace(new, x)

    def statements(self) -> list[Stmt]:
        out: list[Stmt] = []
        for at, (op, args, results) in enumerate(self.entries):
            out += expanded(op, tuple(operand(a, results[0].type) for a in args), results, evaluated, self.numbers)
            if at in self.places:
                out[-1].location = self.places[at]
        return out


logs: WeakSet[TapeLog] = WeakSet()  # those that exist

_numbers: dict[Op, int] = {}
_next = count(1)


def number_of(op: Op) -> int:
    """Return a number for an op. Different ops never have the same number; equal ops do, unless many others came in between."""
    found = _numbers.get(op)
    if found is None:
        if len(_numbers) >= OPS:
            _numbers.clear()
        found = _numbers.setdefault(op, next(_next))
    return found


LINEAR_NUMBERS = frozenset(number_of(op()) for op in LINEAR)


def operand(x: Any, type: TensorType) -> Operand:
    """Return an argument as an operand. `type` is that of the result; a number gets its dtype and shape."""
    return x if isinstance(x, Operand) else Literal(x, type)


def evaluated(op: Op, x: Operand) -> Operand:
    """A view of a tensor."""
    assert isinstance(x, Concrete)
    out = object.__new__(type(x))
    out.buffer = op.evaluate(x.buffer)
    out.type = TensorType(as_dtype(out.buffer.dtype), out.buffer.shape)
    return out


def expanded(
    op: Op,
    args: tuple[Operand, ...],
    results: tuple[Operand, ...],
    view: Callable[[Op, Operand], Operand],
    watched: Container[int] | None = None,
) -> Sequence[Stmt]:
    """Return the statements of an entry; `view` creates intermediate values. Given `watched`, statements on constants are left out."""
    out: list[Stmt] = []
    if isinstance(op, Chain):
        (x,) = args
        for part in op.parts[:-1]:
            x, before = view(part, x), x
            out.append(Stmt(part, (before,), (x,)))
        return [*out, Stmt(op.parts[-1], (x,), results)]
    if op.is_elementwise:
        shape = results[0].type.shape
        if any(a.type.shape != shape for a in args):
            spread = Broadcast(shape)
            wide = tuple(a if a.type.shape == shape else view(spread, a) for a in args)
            out = [
                Stmt(spread, (a,), (w,)) for a, w in zip(args, wide, strict=True) if a is not w and (watched is None or id(a) in watched)
            ]
            args = wide
    out.append(Stmt(op, args, results))
    return out
