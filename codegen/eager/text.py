"""The LLVM text of eager calls: operators, indices and functions of NumPy on tensors of one float dtype.

Each function checks its operands directly in their structs, computes with the loop of NumPy's ufunc on their memory, and wraps the result.
Under a tape it adds an entry to the log. Two small numbers stand for something else than an object: DECLINED for a call that is left to
Python, NOTHING for an op of which the log needs no entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..entry.text import spelled
from . import compute, notes, numpy_functions, protocols, views
from .layout import INFIX, NUMBERS, PREFIX

DECLARATIONS = """
declare ptr @PyType_GenericAlloc(ptr, i64)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare ptr @PyThreadState_GetDict()
declare ptr @PyEval_GetGlobals()
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i32 @PySet_Add(ptr, ptr)
declare i32 @PyList_Append(ptr, ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i32 @PyUnicode_Compare(ptr, ptr)
declare ptr @PyObject_GetItem(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @PyErr_Clear()
declare void @Py_DecRef(ptr)
declare ptr @adjit_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @adjit_copy(ptr, i32)
declare ptr @adjit_from_scalar(ptr, ptr)
declare ptr @adjit_select(ptr, ptr, ptr)
declare ptr @adjit_join(ptr, i32)
declare ptr @adjit_turn(ptr, ptr)
"""

STUB = """
define ptr @adjit_{name}({parameters}) nounwind {{
entry:
  %out = call ptr @{kind}(ptr @adjit_table_{name}, {parameters})
  ret ptr %out
}}
"""


def eager_ir(objects: list[str], numbers: Mapping[str, int]) -> str:
    """The text, for objects and tables of these names. `numbers` are offsets of slots."""
    outside = "".join(f"@{name} = external global i8\n" for name in objects)
    stubs = [STUB.format(name=name, kind="prefix", parameters="ptr %x") for name in PREFIX]
    stubs += [STUB.format(name=name, kind="infix", parameters="ptr %x, ptr %y") for name in INFIX]
    parts = (compute, notes, protocols, numpy_functions, views)
    text = "".join([outside, DECLARATIONS, *[part.TEXT for part in parts], *stubs])
    for word, number in (("DECLINED", 1), ("NOTHING", 2)):
        for before in ("ptr ", ", "):
            text = text.replace(before + word, f"{before}inttoptr (i64 {number} to ptr)")
    return spelled(text, {**NUMBERS, **numbers})
