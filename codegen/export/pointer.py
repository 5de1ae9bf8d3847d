"""A program as one C function of this process, which takes no arena: it has its working memory on the stack, or allocates it.

Forms of the function, by their C types:

    int (const double *x, double y, double *out, …)     results through pointers; returns 0, or the code of an error
    double (double x, double y)                         scalars only: returns the result, or NaN if there was an error
    double (double x, double y, void *)                 the same with data that is ignored, as SciPy and GSL pass it
    double (int n, double *x)                           the arguments in an array, as SciPy's `quad` and `nquad` pass them
    double (int n, double *x, void *)
    int (double *x, intptr_t n, double *out, void *)    an array and a scalar result, for `scipy.ndimage.generic_filter`; returns 1, or 0
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjit.ir.errors import UnsupportedError
from adjit.ir.ops.base import Array
from adjit.ir.target import Target
from adjit.ir.types import F64

from ..llvm import toolchain, whole
from ..llvm.memory import memory_type
from ..main.stacks import RELEASE
from ..native import MAIN
from . import wrapper
from .interface import ALIGNMENT, C_TYPES, Interface, InterfaceSlot
from .program import Program

NAME = "adjit_pointer"
ON_STACK = 1 << 14  # bytes of working memory that may be on the stack: threads of other languages may have small ones
IGNORED = "void *"
NAN = "0x7FF8000000000000"
FAILED, DONE = "failed", "done"  # labels


class Form(NamedTuple):
    """How the function is called: C types of its parameters, its result, and how it ends after success and after failure."""

    result: str
    params: tuple[str, ...]
    arguments: Callable[[list[str]], list[str]]  # appends instructions, returns pointers to the arguments
    results: Callable[[list[str]], list[str]]
    success: list[str]
    failure: list[str]

    @property
    def signature(self) -> str:
        return f"{self.result} ({', '.join(self.params)})"


def pointer(made: Program, interface: Interface, constants: Sequence[Array], target: Target, signature: str | None) -> Any:
    """A function of ctypes, with attributes `pointer`, `signature` and `errors`; it keeps the code alive."""
    form = _form(interface, bool(made.errors) or made.has_release, signature)
    texts = [*made.texts, "\n".join([wrapper.ALIGN, wrapper.captured(constants), _text(made, form, interface, constants)])]
    code = whole.compiled(texts, target, made.level, [NAME], jit=True)
    library = toolchain.Library([toolchain.Object(b"", code)], [NAME], {})
    kind = ctypes.CFUNCTYPE(_ctype(form.result), *map(_ctype, form.params))
    function: Any = kind(library.address[NAME])
    function.pointer, function.signature = library.address[NAME], form.signature
    function.errors = tuple(text.decode() for text in interface.errors)
    function._library = library
    return function


def _text(made: Program, form: Form, interface: Interface, constants: Sequence[Array]) -> str:
    size = interface.arena_bytes
    lines = [f"%result = alloca [{max(8, len(interface.results) * 8)} x i8], align 8"]
    on_stack = size <= ON_STACK and not made.has_release
    if on_stack:
        lines.append(f"%arena = alloca [{size} x i8], align {ALIGNMENT}")
    else:
        lines += [f"%arena = call ptr @calloc(i64 1, i64 {size})", "%none = icmp eq ptr %arena, null"]
        lines += [f"br i1 %none, label %{FAILED}, label %go", "go:"]
    lines += ["%start = call ptr @adjit_aligned(ptr %arena)", f"%memory = getelementptr i8, ptr %start, i64 {interface.head_bytes}"]
    pointers = [*form.arguments(lines), *(f"@captured{k}" for k in range(len(constants))), *form.results(lines)]
    lines += wrapper.table(pointers)
    lines.append(f"%code = call i64 @{MAIN}(ptr %table, ptr %memory, ptr %start)")
    if made.has_release:
        lines.append(f"call void @{RELEASE}(ptr %memory)")
    if not on_stack:
        lines.append("call void @free(ptr %arena)")
    before = "go" if not on_stack else "entry"
    lines += ["%ok = icmp eq i64 %code, 0", f"br i1 %ok, label %{DONE}, label %{FAILED}", f"{FAILED}:"]
    incoming = ", ".join([*(["[-1, %entry]"] if not on_stack else []), f"[%code, %{before}]"])
    lines += [f"%failure = phi i64 {incoming}", "%short = trunc i64 %failure to i32", *form.failure, f"{DONE}:", *form.success]
    params = ", ".join(f"{_llvm_type(p)} %p{k}" for k, p in enumerate(form.params))
    declared = [f"declare i64 @{MAIN}(ptr, ptr, ptr)"]
    if made.has_release:
        declared.append(f"declare void @{RELEASE}(ptr)")
    if not on_stack:
        declared += ["declare ptr @calloc(i64, i64)", "declare void @free(ptr)"]
    return "\n".join([*declared, wrapper.function(f"{_llvm_type(form.result)} @{NAME}({params})", lines)])


# ---- forms


def _form(interface: Interface, may_fail: bool, signature: str | None) -> Form:
    if signature is None:
        is_value = _are_scalars(interface.arguments) and len(interface.results) == 1 and _are_scalars(interface.results)
        return _by_value(interface, ()) if is_value and (not may_fail or _is_float(interface)) else _by_code(interface)
    wanted = _normal(signature)
    for form in _known(interface):
        if _normal(form.signature) == wanted:
            if may_fail and form.result != "int" and not _is_float(interface):
                raise UnsupportedError(f"address: {signature} cannot report errors, and this function may fail")
            return form
    possible = "; ".join(form.signature for form in _known(interface))
    raise UnsupportedError(f"address: {signature!r} does not fit this function; possible are {possible}")


def _known(interface: Interface) -> list[Form]:
    forms = [_by_code(interface)]
    if len(interface.results) != 1 or not _are_scalars(interface.results):
        return forms
    arguments, is_double = interface.arguments, all(s.type.dtype == F64 for s in (*interface.arguments, *interface.results))
    if _are_scalars(arguments):
        forms += [_by_value(interface, ()), _by_value(interface, (IGNORED,))]
    is_vector = len(arguments) == 1 and arguments[0].type.shape != ()
    if is_double and (is_vector or _are_scalars(arguments)):
        forms += [_packed(interface, is_vector, more) for more in ((), (IGNORED,))]
    if is_double and is_vector:
        forms.append(_filter())
    return forms


def _by_code(interface: Interface) -> Form:
    given = tuple(C_TYPES[s.type.dtype] if s.type.shape == () else f"const {C_TYPES[s.type.dtype]} *" for s in interface.arguments)
    out = tuple(f"{C_TYPES[s.type.dtype]} *" for s in interface.results)
    results = [f"%p{len(given) + k}" for k in range(len(out))]
    return Form("int", given + out, lambda lines: _stored(lines, interface), lambda lines: results, ["ret i32 0"], ["ret i32 %short"])


def _by_value(interface: Interface, more: tuple[str, ...]) -> Form:
    given = tuple(C_TYPES[s.type.dtype] for s in interface.arguments)
    return _valued(interface, (*given, *more), lambda lines: _stored(lines, interface))


def _packed(interface: Interface, is_vector: bool, more: tuple[str, ...]) -> Form:
    def arguments(lines: list[str]) -> list[str]:
        lines += [f"%x{k} = getelementptr double, ptr %p1, i64 {k}" for k in range(len(interface.arguments))]
        return [f"%x{k}" for k in range(len(interface.arguments))]

    return _valued(interface, ("int", "double *", *more), arguments)


def _filter() -> Form:
    params = ("double *", "intptr_t", "double *", IGNORED)
    return Form("int", params, lambda lines: ["%p0"], lambda lines: ["%p2"], ["ret i32 1"], ["ret i32 0"])


def _valued(interface: Interface, params: tuple[str, ...], arguments: Callable[[list[str]], list[str]]) -> Form:
    dtype = interface.results[0].type.dtype
    kind = memory_type(dtype)
    success = [f"%value = load {kind}, ptr %result", f"ret {kind} %value"]
    failure = [f"ret {kind} {NAN if dtype.kind == 'f' else '0'}"]
    return Form(C_TYPES[dtype], params, arguments, lambda lines: ["%result"], success, failure)


def _stored(lines: list[str], interface: Interface) -> list[str]:
    return [wrapper.argument_pointer(lines, slot.type, f"p{k}") for k, slot in enumerate(interface.arguments)]


def _are_scalars(slots: Sequence[InterfaceSlot]) -> bool:
    return all(slot.type.shape == () for slot in slots)


def _is_float(interface: Interface) -> bool:
    return len(interface.results) == 1 and interface.results[0].type.dtype.kind == "f"


def _normal(signature: str) -> str:
    """A signature in its normal form."""
    plain = re.sub(r"\b(const|unsigned char)\b", lambda m: "" if m[0] == "const" else "uint8_t", signature)
    for name, meaning in (("npy_intp", "intptr_t"), ("Py_ssize_t", "intptr_t"), ("int32_t", "int")):
        plain = re.sub(rf"\b{name}\b", meaning, plain)
    return re.sub(r"\s+", "", plain)


BY_NAME = {text: dtype for dtype, text in C_TYPES.items()}


def _llvm_type(text: str) -> str:
    if text.endswith("*"):
        return "ptr"
    return {"int": "i32", "intptr_t": "i64"}.get(text) or memory_type(BY_NAME[text])


def _ctype(text: str) -> Any:
    if text == IGNORED:
        return ctypes.c_void_p
    if text.endswith("*"):
        return ctypes.POINTER(_ctype(text.removesuffix("*").removeprefix("const ").strip()))
    if text in ("int", "intptr_t"):
        return ctypes.c_int if text == "int" else ctypes.c_ssize_t
    return np.ctypeslib.as_ctypes_type(BY_NAME[text])
