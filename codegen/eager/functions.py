"""Eager calls in native code: tables of ufuncs, and the functions that replace methods of tensors.

Owns how they are built, and the check that this Python and this NumPy have the expected layouts. `runtime/quick.py` defines the semantics
of the methods; its functions handle everything that native code declines.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjit.ir.locks import once
from adjit.ir.ops.base import Op
from adjit.ir.records import NamedTuple
from adjit.ir.types import BOOL, F32, F64

from ..cache import image
from ..entry import entry
from ..entry.bindings import pointer
from ..llvm import toolchain as llvm
from ..llvm.target import current
from ..llvm.workers import Later
from . import layout
from .layout import COMPARISONS, INFIX, PREFIX

CHARS = {F64: "d", F32: "f"}  # of a ufunc's types
EXACTLY = frozenset({np.add, np.subtract, np.multiply, np.divide, *(getattr(np, name) for name in COMPARISONS)})
ADD_REDUCE = np.add.reduce  # each access makes another object
WRAPPED, WRAPPER, METH_FASTCALL, METH_KEYWORDS = 40, 24, 0x80, 0x02  # offsets in a slot wrapper and its definition; kinds of functions
# the functions of NumPy's C interface, by their places in its table
NUMPY = {"adjit_copy": 85, "adjit_from_scalar": 61, "adjit_new_array": 94, "adjit_turn": 123, "adjit_join": 168, "adjit_select": 185}
PYTHON = [
    "PyType_GenericAlloc", "PyType_IsSubtype", "PyThreadState_GetDict", "PyEval_GetGlobals", "PyDict_GetItem", "PyDict_GetItemWithError",
    "PyDict_SetItem", "PySet_Add", "PyList_Append", "PyTuple_New", "PyLong_FromVoidPtr", "PyLong_FromLongLong",
    "PyLong_AsLongLongAndOverflow", "PyUnicode_Compare", "PyObject_GetItem", "PyObject_Vectorcall", "PyErr_Clear", "Py_DecRef",
]  # fmt: skip
SLOTS: dict[str, str] = {  # the methods that are slots of Python's, and the native function of each
    "__neg__": "negative", "__abs__": "absolute", "__matmul__": "matmul", "__rmatmul__": "matmul", "__pow__": "power", "__rpow__": "power",
    "__getitem__": "item", "__add__": "add", "__radd__": "add", "__sub__": "subtract", "__rsub__": "subtract", "__mul__": "multiply",
    "__rmul__": "multiply", "__truediv__": "divide", "__rtruediv__": "divide",
    **dict.fromkeys(("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"), "compare"),
}  # fmt: skip
EXPORTS = [f"adjit_{name}" for name in (*dict.fromkeys(SLOTS.values()), "transpose", "ufunc", "function")]


class Quick(NamedTuple):
    """A NumPy function that native code computes: its op, the number of the op in a structure, and the Python methods."""

    function: Any
    op: Op
    number: int
    is_linear: bool
    method: Callable[..., Any] | None = None
    reflected: Callable[..., Any] | None = None


class Surroundings(NamedTuple):
    """The parts of the runtime that native code uses: objects by name, and offsets of slots."""

    objects: Mapping[str, object]
    addresses: Mapping[str, int]
    offsets: Mapping[str, int]


class _Method(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class _Attribute(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("get", ctypes.c_void_p), ("set", ctypes.c_void_p),
        ("doc", ctypes.c_char_p), ("closure", ctypes.c_void_p),
    )  # fmt: skip


@once
def available() -> bool:
    """Whether this Python and this NumPy have the layouts that native code expects."""
    if not entry.available():
        return False
    return (
        all(map(_is_known_ufunc, (np.add, np.negative, np.less))) and all(_is_known_slot(name) for name in SLOTS) and _is_known_container()
    )


def _is_known_ufunc(ufunc: np.ufunc) -> bool:
    at = id(ufunc)
    counts = [ctypes.c_int.from_address(at + offset).value for offset in (16, 20, 24, 48)]
    if counts != [ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes]:
        return False
    kinds = bytes(np.dtype(char).num for char in "".join(ufunc.types).replace("->", ""))
    return ctypes.string_at(pointer(at + 56)).decode() == ufunc.__name__ and ctypes.string_at(pointer(at + 64), len(kinds)) == kinds


def _is_known_slot(name: str) -> bool:
    """Whether NumPy's slot wrapper equals the result of `PyDescr_NewWrapper` for its definition."""
    base = _definition(name)
    is_named = ctypes.string_at(pointer(base)).decode() == name
    return is_named and (name != "__getitem__" or pointer(base + WRAPPER) == pointer(_definition("__iadd__") + WRAPPER))


def _definition(name: str) -> int:
    """The address of Python's definition of a slot, to which every slot wrapper refers."""
    return pointer(id(vars(np.ndarray)[name]) + WRAPPED)


def _is_known_container() -> bool:
    part = slice(1, None, 3)
    bounds = [pointer(id(part) + offset) for offset in (16, 24, 32)]
    return bounds == [id(part.start), id(None), id(part.step)] and pointer(id(sys.modules) + 16) == len(sys.modules)


class EagerCalls:
    """Native code for some ufuncs and products. It is kept until the process ends."""

    def __init__(self, ufuncs: Sequence[Quick], products: Sequence[Quick], sums: Sequence[tuple[Op, int]], around: Surroundings) -> None:
        """`products`: those of `@` and of `np.dot`. `sums`: the op of a sum of all elements and its number, for each rank."""
        self.is_installed = False
        self.replaced: dict[str, Any] = {}  # the methods of the class before, None for those that it inherited
        self._kept: list[Any] = [ufuncs, products, sums, around]
        tables = {f.function.__name__: self._table(f) for f in (*ufuncs, *products)}
        rows = [word for f in ufuncs if f.function is not np.square for word in (id(f.function), tables[f.function.__name__])]
        self._addresses = {
            **{f"adjit_table_{name}": tables[name] for name in (*PREFIX, *INFIX, "square", "matmul", "dot")},
            "adjit_ufuncs": self._words([*rows, 0, 0]),
            "adjit_comparisons": self._words([tables[name] for name in COMPARISONS]),
            "adjit_sums": self._words([self._table(Quick(ADD_REDUCE, op, number, False)) for op, number in sums]),
            **around.addresses, **{name: id(x) for name, x in (_constants() | dict(around.objects)).items()},
        }  # fmt: skip
        names = sorted(self._addresses)
        versions = f"of Python {sys.version}, NumPy {np.__version__}"
        self._name = f"eager calls {versions}, {sorted(around.offsets.items())}, {names}"

        def text() -> str:
            from .text import eager_ir  # noqa: PLC0415 - what is on the disk need not be written again

            return eager_ir(names, around.offsets)

        stored = image.stored_routine(self._name, current())
        self._later = Later(lambda: stored or image.routine(self._name, text, current(), llvm.LEVEL))
        atexit.register(self._later.wait)  # LLVM must not be running when its library is unloaded

    def is_ready(self) -> bool:
        return self._later.is_done()

    def install(self, cls: type, attributes: Sequence[str]) -> None:
        """Replace methods of a class, and these attributes of NumPy's protocols, by native functions."""
        library = llvm.Library([self._later.result()], EXPORTS, self._imports())
        self._kept.append(library)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._kept))
        self.replaced = {name: vars(cls).get(name) for name in (*SLOTS, *attributes)}
        for name, function in SLOTS.items():
            setattr(cls, name, _made("PyDescr_NewWrapper", cls, ctypes.c_void_p(_definition(name)), library.address[f"adjit_{function}"]))
        for name in attributes:
            setattr(cls, name, self._attribute(cls, name, library.address))
        self.is_installed = True

    def _attribute(self, cls: type, name: str, address: Mapping[str, int]) -> Any:
        if name == "T":
            attribute = _Attribute(name.encode(), address["adjit_transpose"], None, None, None)
            self._kept.append(attribute)
            return _made("PyDescr_NewGetSet", cls, ctypes.byref(attribute))
        call = address[{"__array_ufunc__": "adjit_ufunc", "__array_function__": "adjit_function"}[name]]
        method = _Method(name.encode(), call, METH_FASTCALL | METH_KEYWORDS, None)
        self._kept.append(method)
        return _made("PyDescr_NewMethod", cls, ctypes.byref(method))

    def _imports(self) -> dict[str, int]:
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        table = (ctypes.c_void_p * 300).from_address(get(np._core._multiarray_umath._ARRAY_API, None))  # type: ignore[attr-defined]
        imports = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in PYTHON}
        return imports | {name: table[at] or 0 for name, at in NUMPY.items()} | self._addresses

    def _table(self, function: Quick) -> int:
        words = [0] * layout.WORDS
        ufunc = function.function
        if isinstance(ufunc, np.ufunc) and not ufunc.signature:
            for at, dtype in ((0, F64), (4, F32)):
                words[at : at + 4] = _loop(ufunc, CHARS[dtype])
            words[layout.FLAGS] |= layout.IS_BINARY * (ufunc.nin == 2)
        for at, x in (
            (layout.OP, function.op),
            (layout.NUMBER, function.number),
            (layout.METHOD, function.method),
            (layout.REFLECTED, function.reflected),
        ):
            words[at] = id(x)
        words[layout.FUNCTION] = id(ufunc)
        words[layout.FLAGS] |= (
            layout.FOLLOWS * function.op.differentiable | layout.IS_LINEAR * function.is_linear | layout.IS_EXACT * (ufunc in EXACTLY)
        )
        return self._words(words)

    def _words(self, words: Sequence[int]) -> int:
        array = np.array(words, np.int64)
        self._kept.append(array)
        return int(array.__array_interface__["data"][0])


def _loop(ufunc: np.ufunc, char: str) -> list[int]:
    """The loop of a ufunc for one dtype, its data, and the dtype and size of results; zeros if it has none."""
    for at, kinds in enumerate(ufunc.types):
        given, _, out = kinds.partition("->")
        if given == char * ufunc.nin and out in (char, "?"):
            result = BOOL if out == "?" else np.dtype(char)
            return [pointer(pointer(id(ufunc) + 32) + 8 * at), pointer(pointer(id(ufunc) + 40) + 8 * at), id(result), result.itemsize]
    return [0, 0, 0, 0]


def _constants() -> dict[str, object]:
    """The objects of Python and NumPy to which the text refers."""
    classes = {f"adjit_{cls.__name__}_type": cls for cls in (int, float, str, tuple, list, dict, slice)}
    dtypes = {"adjit_f64": F64, "adjit_f32": F32, "adjit_bool": BOOL, "adjit_f64_number": F64.num, "adjit_f32_number": F32.num}
    words = {"adjit_call": sys.intern("__call__"), "adjit_name": sys.intern("__name__"), "adjit_axis": sys.intern("axis"), "adjit_two": 2}
    single = {"adjit_none": None, "adjit_not_implemented": NotImplemented, "adjit_ellipsis": Ellipsis, "adjit_modules": sys.modules}
    calls = {
        "adjit_dot": np.dot,
        "adjit_where": np.where,
        "adjit_concatenate": np.concatenate,
        "adjit_sum": np.sum,
        "adjit_reshape": np.reshape,
    }
    calls |= {"adjit_add_reduce": ADD_REDUCE, "adjit_array_reshape": np.ndarray.reshape}
    return {"adjit_array_type": np.ndarray, **classes, **dtypes, **words, **single, **calls}


def _made(maker: str, cls: type, *arguments: Any) -> Any:
    """A descriptor created by a function of Python's C API."""
    make = getattr(ctypes.pythonapi, maker)
    make.restype = ctypes.py_object
    return make(ctypes.py_object(cls), *[ctypes.c_void_p(x) if isinstance(x, int) else x for x in arguments])
