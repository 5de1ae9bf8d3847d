"""The fast path into native code: a CPython function, generated once, that checks its arguments directly in their structs.

A `Route` is the table of one compiled specialisation: the type of each argument, the locations of variables and constants, and how to build
the results. Arguments and results may be structures of tuples, lists and dicts, stored as nodes in preorder. The entry tries the route of
the last call, if its sizes are the same, and then all routes in turn; it runs the first that matches. A call that matches none (or has
keywords, or is made while some thread is tracing or recording) goes to the Python function that owns the routes. So does a call that would
have to wait for a variable or copy it, and one whose native code fails: it has changed nothing, and Python raises the error.

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
import platform
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from adjit.ir.gate import gate
from adjit.ir.locks import once

from ..cache import image
from ..interrupts.signals import INTERRUPTED, QUIET, RAISED
from ..llvm import toolchain as llvm
from ..llvm.target import current
from ..llvm.workers import Later
from ..native import TOO_SMALL
from . import variable_locks
from .bindings import DICT_KEYS, KIND, Checks, byte, pointer
from .route import RECORD, TAGS, Header, Route, address, slot_offset

LEVELS = (llvm.LEVEL, 0)  # of the entry, and of what it needs in long calls and after errors only
WRITEABLE = 0x501  # flags of an array that is contiguous, aligned and may be written to
TUPLE_ITEMS = 24 if sys.version_info < (3, 14) else 32  # from 3.14 on, after the hash
LAYOUT = {"DICT_KEYS": DICT_KEYS, "KEYS_KIND": KIND, "TUPLE_ITEMS": TUPLE_ITEMS}  # the kind is zero if any key is not a plain string


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
        for route in routes:
            route.begin()
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
    FAILED, LAST, FIRST = 5, 6, 7  # the words that say whether a check has failed and which route the last call took, and the routes

    def __init__(self, routes: Sequence[Route], checks: Checks, held: Sequence[object]) -> None:
        self.routes = tuple(routes)
        self.checks = np.array([word for check in checks for word in check], np.uint64)
        self.held = tuple(held)
        most = max((route.buffers for route in routes), default=0)
        first = address(self.checks)
        header = [id(self), len(routes), most, first, first + self.checks.nbytes, 0, 0]
        self.words = np.array([*header, *(route.address for route in routes)], np.int64)
        self.address = address(self.words)


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
    array_fits = word(8) == id(np.ndarray) and word(16) == address(x) and word(24, ctypes.c_int32) == 2 and dims == [2, 3]
    array_fits = array_fits and word(56) == id(x.dtype) and word(64, ctypes.c_int32) & WRITEABLE == WRITEABLE
    view = x[1:]
    array_fits = array_fits and ctypes.c_int64.from_address(id(view) + 48).value == id(x)
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
    numbers |= {"TOO_SMALL": TOO_SMALL, "QUIET": QUIET, "WRITEABLE": WRITEABLE}
    numbers |= {"FAILED": _Installed.FAILED, "LAST": _Installed.LAST, "FIRST": _Installed.FIRST}
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
