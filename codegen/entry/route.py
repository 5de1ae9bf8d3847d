"""Routes: the tables by which the native entry (`entry.py`) calls one compiled specialisation."""

from __future__ import annotations

import ctypes
import enum
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.expr import Symbol
from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import NUMBERS, TensorType

from ..elements import data_addresses
from ..interrupts.signals import QUIET, RECORD_WORDS

if TYPE_CHECKING:
    from ..native import Native
    from .formulas import Formulas

MAX_BUFFERS = 4096  # 128 KB on the stack
MAX_NODES = 4096  # of an argument, or of the result
MAX_DEPTH = 256
RECORD = 4  # size in words of a node, a variable, a constant or a result
ARRAY, TUPLE, LIST, DICT, SAME, NOTHING = range(6)  # tags of nodes; array arguments store the address of their dtype instead
TAGS = {"ARRAY": ARRAY, "TUPLE": TUPLE, "LIST": LIST, "DICT": DICT, "SAME": SAME, "NOTHING": NOTHING}


class Header(enum.IntEnum):
    """The first words of a route."""

    ARGUMENTS = 0  # number of each
    VARIABLES = 1
    CONSTANTS = 2
    RESULTS = 3
    MAIN = 4  # address of the native code
    ARENA = 5
    DETAILS = 6  # the error record
    TENSOR_CLASS = 7
    DATA_SLOT = 8
    TYPE_SLOT = 9
    STRUCTURE = 10  # the nodes of the result
    LONG = 11  # whether to release the GIL; if that depends on sizes, at those of the last call
    BUSY = 12  # whether a call that has released the GIL is using the arena
    USED = 13  # whether it was used since Python last read this
    SYMBOLS = 14  # number of sizes that are known only at each call
    SIZES_AT = 15  # the index of the first of them among the buffers; the capacity of the arena and a word follow them
    RANGES = 16  # the smallest and the largest value of each
    CAPACITY = 17  # bytes of the arena
    LACKING = 18  # whether a call would have needed more
    QUICK_UP_TO = 19  # calls keep the GIL if no size that is known only at each call is larger
    NODES = 20  # the tables of arguments
    LAST_NODES = 21  # the same, with the sizes of the last call
    RECORDS = 22  # the tables of variables, constants and results
    SIZES = 23  # of the last call
    FORMULAS = 24  # for what follows from sizes
    SHAPES = 25  # of the results of the last call
    WEAK_CLASS = 26  # of tensors that represent Python numbers
    POOLS = 27  # for each result two buffers, or zeros, if any of them is large


class Node(NamedTuple):
    """An array, a container of `size` nodes (for a dict, with its `keys`), the `same` object every time, or None.

    An argument has the `type` of an array, or is a number of the Python class `cls`; a dict has its keys in its own `order` as well. The
    tensor of a result is of class `cls`.
    """

    tag: int
    size: int = 0
    keys: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    type: TensorType | None = None
    same: object = None
    cls: Callable[..., Any] | None = None

    def retyped(self, type: TensorType) -> Node:
        """An array of another type; a Python number stays one."""
        return self if self.type is None else self._replace(type=type)


class VariableSlot(NamedTuple):
    """Where a variable is stored: the object whose `data` slot holds the array, the address of its lock, and whether it is written."""

    store: object
    lock: int
    updated: bool


class Route:
    """The table of one specialisation, and everything that native code uses while it runs. `Entry.install` keeps routes alive.

    The sizes of the last call, and the values computed from them, are stored: most calls have the same sizes, and need not compute them
    again.
    """

    def __init__(
        self,
        arguments: Sequence[Sequence[Node]],
        variables: Sequence[VariableSlot],
        constants: Sequence[Any],
        results: Sequence[TensorType],
        structure: Sequence[Node],
        classes: tuple[type, type],
        native: Native,
        symbols: Mapping[str, Symbol] | None = None,
        formulas: Formulas | None = None,
    ) -> None:
        """`structure`: the nodes of the result. `classes`: those of tensors, and of weakly typed ones. `symbols`: the sizes that are known
        only at each call, in the order of native code, and `formulas` what follows from them.
        """
        self._native = native
        self._symbols = symbols or {}
        self._kept: list[Any] = [arguments, variables, constants, results, structure, *classes]
        error = (ctypes.c_int64 * RECORD_WORDS)()
        error[QUIET] = 1  # until a call releases the GIL
        nodes = [node for given in arguments for node in given]
        shape_of_result = np.array([word for node in structure for word in self._node(node)], np.int64)
        shapes = np.array(formulas.shapes if formulas is not None else [], np.int64)
        self._kept += [error, shape_of_result, shapes]
        sizes_at = sum(node.tag == ARRAY for node in nodes) + len(variables) + len(constants) + len(results)
        self.buffers = sizes_at + len(self._symbols) + 2
        header = dict.fromkeys(Header, 0) | {
            Header.ARGUMENTS: len(arguments), Header.VARIABLES: len(variables), Header.CONSTANTS: len(constants),
            Header.RESULTS: len(results), Header.MAIN: native.address, Header.DETAILS: ctypes.addressof(error),
            Header.TENSOR_CLASS: id(classes[0]), Header.WEAK_CLASS: id(classes[1]), Header.STRUCTURE: address(shape_of_result),
            Header.DATA_SLOT: slot_offset(classes[0], "buffer"), Header.TYPE_SLOT: slot_offset(classes[0], "type"),
            Header.LONG: int(not native.quick_up_to), Header.SYMBOLS: len(self._symbols), Header.SIZES_AT: sizes_at,
            Header.QUICK_UP_TO: native.quick_up_to, Header.SHAPES: address(shapes),
        }  # fmt: skip
        records = [[id(store) + slot_offset(type(store), "data"), int(updated), lock, 0] for store, lock, updated in variables]
        records += [[address(array), 0, 0, 0] for array in constants]
        records += [self._result(result, formulas, address(shapes)) for result in results]
        self._is_begun = False
        given = [self._node(node) for node in nodes]
        tables = {Header.NODES: given, Header.LAST_NODES: given, Header.RECORDS: records}
        tables[Header.POOLS] = [[0, 0] for _ in results]
        if formulas is not None:
            tables[Header.LAST_NODES] = [_last(node, words) for node, words in zip(nodes, given, strict=True)]
            tables |= {Header.SIZES: [[0] * len(self._symbols)], Header.RANGES: formulas.ranges, Header.FORMULAS: formulas.code}
        self.words = np.array([*header.values(), *(word for table in tables.values() for words in table for word in words)], np.int64)
        self.address = address(self.words)
        at = self.address + 8 * len(Header)
        for field, table in tables.items():
            self.words[field] = at
            at += 8 * sum(map(len, table))
        self._arenas: list[Array] = []  # the last one, and those that a running call may use
        self._use_arena(native.new_arena())
        _routes.add(self)

    def begin(self) -> None:
        """Called before the native entry uses the route first: the memory of calls through Python until now is used from here on."""
        if self._is_begun:
            return
        self._is_begun = True
        arena = self._native.taken_arena(int(self.words[Header.CAPACITY]) - 1)
        if arena is not None:
            self._use_arena(arena)
        pools = self._native.entry_pools()
        self._kept.append([buffer for pool in pools for buffer in pool])  # their only reference, while no result is on them
        at = (int(self.words[Header.POOLS]) - self.address) // 8
        for k, pool in enumerate(pools):
            self.words[at + 2 * k : at + 2 * k + len(pool)] = list(map(id, pool))

    def was_used(self) -> bool:
        """Whether the route was used since the last call of this method."""
        used = bool(self.words[Header.USED])
        self.words[Header.USED] = 0
        return used

    def after_fork(self) -> None:
        """Replace the arena of a call that was running in another thread, which does not exist in this process."""
        if self.words[Header.BUSY]:
            self._use_arena(self._native.new_arena())
            self.words[Header.BUSY] = 0

    def is_lacking(self) -> bool:
        """Whether a call would have needed a larger arena."""
        return bool(self.words[Header.LACKING])

    def grow(self) -> None:
        """Replace an arena that was too small for the sizes of earlier calls, which Python has made, by one that suffices for them.

        By one thread at a time: the arena and its capacity are two words.
        """
        if self.is_lacking():
            arena = self._native.taken_arena(int(self.words[Header.CAPACITY]))
            if arena is not None:
                self._use_arena(arena)
                self.words[Header.LACKING] = 0

    def _use_arena(self, arena: Array) -> None:
        """Replace the arena. A call that has read the previous one is `BUSY` until it is over; later ones use this one."""
        self._arenas.append(arena)
        self.words[Header.ARENA] = address(arena)
        self.words[Header.CAPACITY] = arena.nbytes  # the last one: an entry that sees only one of the two may use less than there is
        if not self.words[Header.BUSY]:
            del self._arenas[:-1]

    def _node(self, node: Node) -> list[int]:
        if node.tag == ARRAY:
            return self._argument(node.type) if node.type is not None else self._class(node.cls)
        keys, order = (np.array([id(key) for key in names], np.int64) for names in (node.keys, node.order))
        self._kept += [keys, order]
        return [node.tag, id(node.same) if node.tag == SAME else node.size, address(keys), address(order)]

    def _class(self, cls: Any) -> list[int]:
        """A Python number, or the weakly typed tensor of this dtype that represents one; or the tensor of a result."""
        dtype = NUMBERS.get(cls)
        self._kept += [cls, dtype]
        return [0, id(cls), 0 if dtype is None else id(dtype), 0]

    def _argument(self, type: TensorType) -> list[int]:
        """An array, or a NumPy scalar in place of one without axes."""
        return [*self._array(type)[:3], 0 if type.shape else id(np.dtype(type.dtype).type)]

    def _array(self, type: TensorType) -> list[int]:
        numbers = list(self._symbols)
        sizes = [~numbers.index(str(n)) if is_symbolic(n) else n for n in type.shape]
        if varies(type):  # the sizes of the last call follow
            sizes += [0 if is_symbolic(n) else n for n in type.shape]
        dims, dtype = np.array(sizes, np.int64), np.dtype(type.dtype)
        self._kept += [dims, dtype]
        return [id(dtype), type.rank, address(dims), id(type)]

    def _result(self, type: TensorType, formulas: Formulas | None, shapes: int) -> list[int]:
        """A result whose shape varies has no type: Python determines it when it is needed."""
        if formulas is None or not varies(type):
            return self._array(type)
        dtype = np.dtype(type.dtype)
        self._kept.append(dtype)
        return [id(dtype), type.rank, shapes + 8 * formulas.places[type.shape], 0]


def varies(type: TensorType) -> bool:
    return any(map(is_symbolic, type.shape))


def _last(node: Node, words: list[int]) -> list[int]:
    """The words of a node with the sizes of the last call, which follow the others."""
    if node.type is None or not varies(node.type):
        return words
    descr, rank, dims, scalar = words
    return [descr, rank, dims + 8 * rank, scalar]


_routes: weakref.WeakSet[Route] = weakref.WeakSet()


def _after_fork() -> None:
    for route in list(_routes):
        route.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def address(array: Array) -> int:
    return data_addresses((array,))[0]


def slot_offset(cls: type, name: str) -> int:
    """The offset of a slot in the objects of a class with `__slots__`; a subclass may have a property of the same name."""
    holder = next(c for c in cls.__mro__ if isinstance(vars(c).get(name), MemberDescriptorType))
    member = ctypes.c_void_p.from_address(id(vars(holder)[name]) + 40).value or 0
    return int(ctypes.c_ssize_t.from_address(member + 16).value)
