"""The fast path into native code: a CPython function, generated once, that checks its arguments directly in their structs.

A `Route` is the table of one compiled specialisation: the type of each argument, the locations of variables and constants, and how to build
the results. Arguments and results may be structures of tuples, lists and dicts, stored as nodes in preorder. The entry tries its routes in
turn and runs the first that matches. A call that matches none (or has keywords, or is made while some thread is tracing or recording) goes
to the Python function that owns the routes. So does a call that would have to wait for a variable or copy it, and one whose native code
fails: it has changed nothing, and Python raises the error.

The entry is compiled when a function is called for the second time, on a thread, unless the disk has it; until it is there, calls go
through Python.

Functions that take only microseconds run with the GIL held, and no handler of a signal runs meanwhile. Others release it; meanwhile the
entry holds references to all arrays, the locks of the variables that are written (`variable_locks.py`), and a reference to the routes,
which keep alive everything else that native code uses. The layout of NumPy's and Python's structs is checked when the entry is created; if
it is not the expected one, `available` is False and every call goes through Python.
"""

from __future__ import annotations

import atexit
import ctypes
import enum
import os
import platform
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.expr import Symbol, Symbolic
from adjit.ir.gate import gate
from adjit.ir.locks import once
from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import as_expr, is_symbolic
from adjit.ir.types import TensorType

from ..cache import image
from ..interrupts.signals import INTERRUPTED, QUIET, RAISED, RECORD_WORDS
from ..llvm import toolchain as llvm
from ..llvm.target import current
from ..llvm.workers import Later
from ..native import TOO_SMALL
from . import variable_locks
from .bindings import DICT_KEYS, KIND, Checks, byte, pointer

if TYPE_CHECKING:
    from ..native import Native

MAX_BUFFERS = 4096  # 128 KB on the stack
LARGEST = 2**62
MAX_NODES = 4096  # of an argument, or of the result
MAX_DEPTH = 256
LEVELS = (llvm.LEVEL, 0)  # of the entry, and of what it needs in long calls and after errors only
RECORD = 4  # size in words of a node, a variable, a constant or a result
ARRAY, TUPLE, LIST, DICT, SAME, NOTHING = range(6)  # tags of nodes; array arguments store the address of their dtype instead
TAGS = {"ARRAY": ARRAY, "TUPLE": TUPLE, "LIST": LIST, "DICT": DICT, "SAME": SAME, "NOTHING": NOTHING}
TUPLE_ITEMS = 24 if sys.version_info < (3, 14) else 32  # from 3.14 on, after the hash
LAYOUT = {"DICT_KEYS": DICT_KEYS, "KEYS_KIND": KIND, "TUPLE_ITEMS": TUPLE_ITEMS}  # the kind is zero if any key is not a plain string


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
    LONG = 11  # whether to release the GIL, at some sizes at least
    BUSY = 12  # whether a call that has released the GIL is using the arena
    USED = 13  # whether it was used since Python last asked
    SYMBOLS = 14  # number of sizes that are known only at each call
    SIZES_AT = 15  # the index of the first of them among the buffers; the capacity of the arena and a word follow them
    RANGES = 16  # the smallest and the largest value of each
    CAPACITY = 17  # bytes of the arena
    LACKING = 18  # whether a call would have needed more
    QUICK_UP_TO = 19  # calls keep the GIL if no size that is known only at each call is larger


class Node(NamedTuple):
    """An array, a container of `size` nodes (for a dict, with its `keys`), the `same` object every time, or None.

    An argument has the `type` of an array, or is a `number` of a Python class; a dict has its keys in its own `order` as well.
    """

    tag: int
    size: int = 0
    keys: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    type: TensorType | None = None
    same: object = None
    number: Callable[..., complex] | None = None

    def retyped(self, type: TensorType) -> Node:
        """An array of another type; a Python number stays one."""
        return self if self.type is None else self._replace(type=type)


class VariableSlot(NamedTuple):
    """Where a variable is stored: the object whose `data` slot holds the array, the address of its lock, and whether it is written."""

    store: object
    lock: int
    updated: bool


class Route:
    """The table of one specialisation, and everything that native code uses while it runs. `Entry.install` keeps routes alive."""

    def __init__(
        self,
        arguments: Sequence[Sequence[Node]],
        variables: Sequence[VariableSlot],
        constants: Sequence[Any],
        results: Sequence[TensorType],
        structure: Sequence[Node],
        tensor_class: type,
        native: Native,
        symbols: Mapping[str, Symbol] | None = None,
    ) -> None:
        """`structure`: the nodes of the result. `symbols`: the sizes that are known only at each call, in the order of native code."""
        self._native = native
        self._symbols = symbols or {}
        self._kept: list[Any] = [arguments, variables, constants, results, structure, tensor_class]
        error = (ctypes.c_int64 * RECORD_WORDS)()
        error[QUIET] = 1  # until a call releases the GIL
        nodes = np.array([word for node in structure for word in self._node(node)], np.int64)
        ranges = np.array([n for s in self._symbols.values() for n in (s.low, LARGEST if s.high is None else s.high)], np.int64)
        self._kept += [error, nodes, ranges]
        sizes_at = sum(node.tag == ARRAY for given in arguments for node in given) + len(variables) + len(constants) + len(results)
        self.buffers = sizes_at + len(self._symbols) + 2
        header = dict.fromkeys(Header, 0) | {
            Header.ARGUMENTS: len(arguments), Header.VARIABLES: len(variables), Header.CONSTANTS: len(constants),
            Header.RESULTS: len(results), Header.MAIN: native.address, Header.DETAILS: ctypes.addressof(error),
            Header.TENSOR_CLASS: id(tensor_class), Header.DATA_SLOT: slot_offset(tensor_class, "buffer"),
            Header.TYPE_SLOT: slot_offset(tensor_class, "type"), Header.STRUCTURE: _address(nodes),
            Header.LONG: int(bool(symbols) or not native.quick_up_to), Header.SYMBOLS: len(self._symbols),
            Header.SIZES_AT: sizes_at, Header.RANGES: _address(ranges), Header.QUICK_UP_TO: native.quick_up_to,
        }  # fmt: skip
        words = [header[field] for field in Header]
        for node in (node for given in arguments for node in given):
            words += self._node(node)
        for store, lock, updated in variables:
            words += [id(store) + slot_offset(type(store), "data"), int(updated), lock, 0]
        for array in constants:
            words += [_address(array), 0, 0, 0]
        for result in results:
            words += self._result(result)
        self.words = np.array(words, np.int64)
        self.address = _address(self.words)
        self._arenas: list[Array] = []  # the last one, and those that a running call may use
        self._use_arena(native.new_arena())
        _routes.add(self)

    def was_used(self) -> bool:
        """Whether the route was used since the last time this was asked."""
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
        self.words[Header.ARENA] = _address(arena)
        self.words[Header.CAPACITY] = arena.nbytes  # the last one: an entry that sees only one of the two may use less than there is
        if not self.words[Header.BUSY]:
            del self._arenas[:-1]

    def _node(self, node: Node) -> list[int]:
        if node.tag == ARRAY:
            return [0, id(node.number), 0, 0] if node.type is None else self._argument(node.type)
        keys, order = (np.array([id(key) for key in names], np.int64) for names in (node.keys, node.order))
        self._kept += [keys, order]
        return [node.tag, id(node.same) if node.tag == SAME else node.size, _address(keys), _address(order)]

    def _argument(self, type: TensorType) -> list[int]:
        """An array, or a NumPy scalar in place of one without axes."""
        return [*self._array(type)[:3], 0 if type.shape else id(np.dtype(type.dtype).type)]

    def _array(self, type: TensorType) -> list[int]:
        numbers = list(self._symbols)
        sizes = [~numbers.index(str(n)) if is_symbolic(n) else n for n in type.shape]
        dims, dtype = np.array(sizes, np.int64), np.dtype(type.dtype)
        self._kept += [dims, dtype]
        return [id(dtype), len(dims), _address(dims), id(type)]

    def _result(self, type: TensorType) -> list[int]:
        if not any(map(is_symbolic, type.shape)):
            return self._array(type)
        formulas = np.array([formula(n, list(self._symbols)) for n in type.shape], np.int64)
        dtype = np.dtype(type.dtype)
        self._kept += [formulas, dtype]
        return [id(dtype), type.rank, _address(formulas), 0]


def formula(n: int, symbols: Sequence[str]) -> list[int] | None:
    """A size as a number and the factors of the symbols; None if it is not a sum of them."""
    expr = as_expr(n)
    if not isinstance(expr, Symbolic):
        return [n, *(0 for _ in symbols)]
    if not all(len(monomial) == 1 and isinstance(monomial[0], Symbol) for monomial in expr.terms):
        return None
    factors = {str(monomial[0]): factor for monomial, factor in expr.terms.items()}
    return [expr.constant, *(factors.get(name, 0) for name in symbols)]


_routes: weakref.WeakSet[Route] = weakref.WeakSet()


def _after_fork() -> None:
    for route in list(_routes):
        route.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Entry:
    """A callable that takes the fast path of the first matching route, and calls `python` if none matches."""

    def __init__(self, python: Callable[..., Any], name: str) -> None:
        self._table = _Table((2,), np.int64)
        self._table[:] = [id(python), 0]
        self._table.kept = [python]
        self.call: Callable[..., Any] = _new_function()(ctypes.addressof(_definition(name)), self._table, None)

    def install(self, routes: Sequence[Route], checks: Checks = (), held: Sequence[object] = ()) -> None:
        """Try these routes, in this order, if `checks` hold, which need the objects `held`.

        The previous routes are freed when no call uses them any more.
        """
        installed, kept = _Installed(routes, checks, held), self._table.kept
        kept.append(installed)  # in this order, the table is valid wherever an interrupt ends this
        self._table[1] = installed.address
        del kept[1:-1]

    def is_outdated(self) -> bool:
        """Whether a check has failed since the routes were installed."""
        installed = self._table.kept[-1]
        return isinstance(installed, _Installed) and bool(installed.words[_Installed.FAILED])


class _Installed:
    """An immutable list of routes: the entry holds a reference to it for the duration of a call."""

    __slots__ = ("routes", "checks", "held", "words", "address")
    FAILED = 5  # the word that says that a check has failed

    def __init__(self, routes: Sequence[Route], checks: Checks, held: Sequence[object]) -> None:
        self.routes = tuple(routes)
        self.checks = np.array([word for check in checks for word in check], np.uint64)
        self.held = tuple(held)
        most = max((route.buffers for route in routes), default=0)
        first = _address(self.checks)
        header = [id(self), len(routes), most, first, first + self.checks.nbytes, 0]
        self.words = np.array([*header, *(route.address for route in routes)], np.int64)
        self.address = _address(self.words)


class _Table(np.ndarray[Any, np.dtype[np.int64]]):
    """The `self` of the entry: the Python function and the routes. As a Python object, it keeps alive what they point to."""

    kept: list[Any]


class _MethodDefinition(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


METH_FASTCALL, METH_KEYWORDS = 0x80, 0x02


@once
def _definition(name: str) -> _MethodDefinition:
    """How Python calls an entry of this name. It is never freed: a built-in function reads its definition while it is deallocated, and the
    garbage collector, or Python when it exits, may have cleared everything that the function refers to by then.
    """
    definition = _MethodDefinition(name.encode(), _entry_address(), METH_FASTCALL | METH_KEYWORDS, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    return definition


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def slot_offset(cls: type, name: str) -> int:
    """The offset of a slot in the objects of a class with `__slots__`; a subclass may have a property of the same name."""
    holder = next(c for c in cls.__mro__ if isinstance(vars(c).get(name), MemberDescriptorType))
    member = ctypes.c_void_p.from_address(id(vars(holder)[name]) + 40).value or 0
    return int(ctypes.c_ssize_t.from_address(member + 16).value)


class _Probe:
    __slots__ = ("first", "second")

    def __init__(self, second: object) -> None:
        self.second = second


@once
def available() -> bool:
    """Whether this Python and this NumPy have the struct layouts that the entry expects."""
    known = platform.python_implementation() == "CPython" and (3, 11) <= sys.version_info[:2] <= (3, 14)
    if not known or ctypes.sizeof(ctypes.c_void_p) != 8 or getattr(sys, "_is_gil_enabled", lambda: True)() is False:
        return False
    x = np.zeros((2, 3), np.float32)
    at = id(x)

    def word(offset: int, kind: Any = ctypes.c_int64) -> int:
        return int(kind.from_address(at + offset).value)

    dims = [ctypes.c_int64.from_address(word(32) + 8 * k).value for k in range(2)]
    array_fits = word(8) == id(np.ndarray) and word(16) == _address(x) and word(24, ctypes.c_int32) == 2 and dims == [2, 3]
    array_fits = array_fits and word(56) == id(x.dtype) and word(64, ctypes.c_int32) & 257 == 257
    probe = _Probe(x)
    slots_fit = ctypes.c_int64.from_address(id(probe) + slot_offset(_Probe, "second")).value == id(x)
    number = 2.5
    float_fits = ctypes.c_double.from_address(id(number) + 16).value == number
    pair, items = (x, number), [x, number]
    tuple_fits = [ctypes.c_int64.from_address(id(pair) + at).value for at in (16, TUPLE_ITEMS, TUPLE_ITEMS + 8)] == [2, id(x), id(number)]
    size, where = (ctypes.c_int64.from_address(id(items) + at).value for at in (16, 24))
    list_fits = size == 2 and [ctypes.c_int64.from_address(where + at).value for at in (0, 8)] == [id(x), id(number)]
    kinds = [_kind_of_keys(d) for d in ({"a": x}, {}, {1: x}, {"a": x, 1: x})]
    return array_fits and slots_fit and float_fits and tuple_fits and list_fits and kinds == [1, 1, 0, 0]


def _kind_of_keys(d: dict[Any, Any]) -> int:
    return byte(pointer(id(d) + DICT_KEYS) + KIND)


@once
def _new_function() -> Any:
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make


def is_ready() -> bool:
    """Whether functions can get an entry without waiting: it is loaded, on disk, or compiled already."""
    return _library.is_made() or _on_disk() is not None or (begin.is_made() and begin().is_done())


@once
def begin() -> Later[list[llvm.Object]]:
    """Start compiling the entry: it takes longer than a small function, and the first call of a function does not need it."""
    later = Later(lambda: [image.routine(*part, current(), level) for part, level in zip(_parts(), LEVELS, strict=True)])
    atexit.register(later.wait)  # LLVM must not be running when its library is unloaded
    return later


@once
def begin_locks() -> Later[llvm.Object]:
    """Start compiling the functions that take the locks of variables."""

    def assembled() -> llvm.Object:
        from .text import spelled  # noqa: PLC0415 - in the thread that compiles

        return image.routine("variable locks", lambda: spelled(variable_locks.TEXT, variable_locks.NUMBERS), current(), 0)

    return Later(assembled)


@once
def locks() -> variable_locks.Locks:
    """The functions that take the locks of variables, for calls that go through Python."""
    library = llvm.Library([begin_locks().result()], variable_locks.EXPORTS, {})
    _kept.append(library)
    return variable_locks.Locks(library.address)


def _parts() -> list[tuple[str, Callable[[], str]]]:
    """Name and text of the objects of the entry, which depend on the layouts of this Python and NumPy."""
    numbers = {"RECORD": RECORD, "HEADER": len(Header), "INTERRUPTED": INTERRUPTED, "RAISED": RAISED}
    numbers |= {"TOO_SMALL": TOO_SMALL, "QUIET": QUIET}
    numbers |= TAGS | LAYOUT | variable_locks.NUMBERS | {field.name: int(field) for field in Header}

    def text(name: str) -> str:
        from . import text  # noqa: PLC0415 - what is on the disk need not be written again

        return str(getattr(text, name)(numbers))

    versions = f"of Python {sys.version}, NumPy {np.__version__}"
    return [(f"{name} {versions}", partial(text, name)) for name in ("entry_ir", "rare_ir")]


@once
def _on_disk() -> list[llvm.Object] | None:
    found = [image.stored_routine(name, current()) for name, _ in _parts()]
    return None if None in found else [each for each in found if each is not None]


@once
def _library() -> llvm.Library:
    library = llvm.Library(_on_disk() or begin().result(), ["adjit_entry"], _imports())
    llvm.rest()  # usually the last compilation in a program with a single function
    return library


_kept: list[llvm.Library] = []


def _imports() -> dict[str, int]:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    numpy_api = (ctypes.c_void_p * 300).from_address(get(capsule, None))
    names = ["PyType_GenericAlloc", "PyTuple_New", "PyList_New", "PyDict_New", "PyDict_Size", "PyDict_GetItem", "PyDict_SetItem"]
    names += ["PyDict_Next", "PyUnicode_Compare", "PyObject_Vectorcall", "Py_DecRef", "Py_IncRef", "PyErr_Restore"]
    names += ["PyLong_AsLongLongAndOverflow"]
    names += ["PyEval_SaveThread", "PyEval_RestoreThread", "PyThread_get_thread_ident"]
    imports = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names}
    imports |= {f"adjit_{cls.__name__}_type": id(cls) for cls in (int, tuple, list, dict)}
    imports |= {"adjit_array_type": id(np.ndarray), "adjit_none": id(None)}
    return imports | {"adjit_gate": gate.address, "adjit_new_array": numpy_api[94] or 0}  # PyArray_NewFromDescr


def _entry_address() -> int:
    return _library().address["adjit_entry"]
