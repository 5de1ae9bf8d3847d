"""Conversion of a function to one whose control flow can be traced, and the decision what is converted.

A converted function has the user's globals, defaults and closure (the same cells, not copies), file, lines and columns; only its code
differs. Each code object is converted once. Library functions are not converted, nor is anything without source.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from adjit.ir.records import NamedTuple

from ..frames import is_ours
from ..trace import current_trace
from . import operators
from .builtin import overload
from .chance import draws
from .expression_rewriter import AG
from .libraries import in_site_packages, is_adjit, is_library
from .marks import is_marked
from .names import statements
from .placing import placed, with_type_params
from .rewrite import SourceRewriter
from .source import CHANGED, NOT_FOUND, NoSource, in_comprehension, is_edited, lines_of, parse_function, same_program
from .texts import texts_without_file

GENERATOR = 0x20
COROUTINES = 0x80 | 0x100 | 0x200  # coroutine, iterable coroutine, asynchronous generator
REMEMBERED = 4096
WRAPPED = "outer.<locals>."  # prefix of qualified names in the wrapper compiled around a function
CO_FUTURE_ANNOTATIONS = 0x1000000  # `from __future__ import annotations` was in effect


class Converted(NamedTuple):
    """The result of a conversion: the new code, or why there is none."""

    original: CodeType  # kept alive, so that its id stays unique
    code: CodeType | None
    reason: str


_codes: dict[int, Converted] = {}
_functions: WeakKeyDictionary[FunctionType, ReferenceType[Callable[..., Any]]] = WeakKeyDictionary()  # both may hold the key


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with traceable control flow, or the function itself if there is nothing to convert."""
    if isinstance(function, FunctionType):
        kept = _functions.get(function)
        known = None if kept is None else kept()
        if known is None:  # not converted yet, or in a trace that has ended
            known = convert_function(function)
            _functions[function] = ref(known)
        trace = current_trace()
        if trace is not None and isinstance(known, FunctionType) and known is not function:
            trace.root().functions[id(known)] = known
        return known
    if isinstance(function, MethodType):
        inner = convert(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if type(function) is partial:
        return partial(convert(function.func), *function.args, **function.keywords)
    if isinstance(function, type) or is_library(type(function).__module__):
        return function
    call: Any = getattr(type(function), "__call__", None)  # noqa: B004 - the function itself is wanted, not the answer
    new = convert(call) if isinstance(call, FunctionType) else call
    return function if new is call else MethodType(new, function)


def convert_function(function: FunctionType) -> Callable[..., Any]:
    code = function.__code__
    if AG in code.co_freevars:
        return function
    found = _codes.get(id(code)) or remember(code, *convert_code(function))
    if found.code is None:
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[AG] = CellType(operators)
    closure = tuple(cells[name] for name in found.code.co_freevars)
    out = FunctionType(found.code, function.__globals__, function.__name__, function.__defaults__, closure)
    out.__kwdefaults__ = function.__kwdefaults__
    out.__qualname__, out.__module__, out.__doc__ = function.__qualname__, function.__module__, function.__doc__
    out.__dict__.update(function.__dict__)
    return out


def remember(code: CodeType, new: CodeType | None, reason: str) -> Converted:
    if len(_codes) >= REMEMBERED:
        _codes.clear()
    out = _codes[id(code)] = Converted(code, new, reason)
    return out


def convert_code(function: FunctionType) -> tuple[CodeType | None, str]:
    """Return new code for a function, or None and the reason."""
    if is_marked(function.__code__):
        return None, "it is marked do_not_convert"
    if is_library(function.__module__) or in_site_packages(function.__code__):
        return None, f"{function.__module__} is a library, which is traced as it is"
    if is_adjit(function.__globals__.get("__name__")):  # a wrapper with the module name of the function inside, which is converted later
        return None, "it is a wrapper of adjit, which is traced as it is"
    try:
        node = rewritten(function)
    except NoSource as reason:
        return None, str(reason)
    return renamed(compiled(node, function), function.__code__), ""


def compiled(node: ast.FunctionDef, function: FunctionType) -> CodeType:
    """Compile a definition with the location and scope of the function's own."""
    code = function.__code__
    module, depth = wrapped(node, function)
    return found_code(compile(module, code.co_filename, "exec", code.co_flags & CO_FUTURE_ANNOTATIONS, dont_inherit=True), depth)


def rewritten(function: FunctionType) -> ast.FunctionDef:
    """Return the function's definition, rewritten; raises NoSource."""
    code = function.__code__
    if code.co_flags & COROUTINES:
        raise NoSource("coroutines are not converted")
    node = definition_of(function)
    if any(isinstance(n, ast.TryStar) for n in statements(node.body)):
        raise NoSource("`except*` is not converted")
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    whole = SourceRewriter(used, partial(needs_no_conversion, function.__globals__), owner_of(function))
    return whole.function(node, frozenset(code.co_freevars))


def definition_of(function: FunctionType) -> ast.FunctionDef:
    """Return the function's definition, as it was compiled; raises NoSource."""
    code, lines = function.__code__, lines_of(function)
    if lines:
        node = stripped(parse_function(function, lines))
        if is_edited(code.co_filename) and not same_program(code, compiled(deepcopy(node), function)):
            raise NoSource(CHANGED)
        return node
    for found in texts_without_file(code):
        try:
            node = stripped(parse_function(function, found))
            if same_program(code, compiled(deepcopy(node), function)):
                return node
        except (NoSource, SyntaxError):
            continue
    raise NoSource(NOT_FOUND)


def stripped(node: ast.FunctionDef) -> ast.FunctionDef:
    """Remove the parts that are evaluated when the function is defined: decorators, defaults and annotations."""
    node.decorator_list = []
    node.args.defaults, node.args.kw_defaults, node.returns = [], [None] * len(node.args.kwonlyargs), None
    for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
        if arg is not None:
            arg.annotation = None
    return node


def owner_of(function: FunctionType) -> str:
    """Return the name of the class in which a method was defined."""
    path = function.__qualname__.split(".")
    return path[-2] if len(path) > 1 and path[-2] != "<locals>" else ""


def wrapped(node: ast.FunctionDef, function: FunctionType) -> tuple[ast.Module, int]:
    """Wrap the definition in a function that has its free variables; return it with the number of enclosing scopes.

    Private names (`self.__x`) are mangled with the name of their class: if there are any, the definition is placed in a class of that name.
    """
    node.name = "function__0"  # a function that calls itself means the global, or the cell, of its name
    owner = owner_of(function)
    inner: ast.stmt = node
    private = bool(owner) and any(name.startswith(f"_{owner.lstrip('_')}__") for name in all_names(function.__code__))
    if private:
        inner = with_type_params(ast.ClassDef(owner, [], [], [inner], []))
    free = [ast.arg(name) for name in dict.fromkeys((*function.__code__.co_freevars, AG))]
    outer = with_type_params(ast.FunctionDef("outer", ast.arguments([], free, None, [], [], None, []), [inner], [], None))
    return ast.Module([placed(outer, node)], []), 3 if private else 2


def all_names(code: CodeType) -> list[str]:
    out = [*code.co_names, *code.co_varnames]
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            out += all_names(inner)
    return out


def found_code(code: CodeType, depth: int) -> CodeType:
    """Return the function's code from inside the wrapper compiled around it."""
    for _ in range(depth):
        code = next(c for c in code.co_consts if isinstance(c, CodeType))
    return code


def renamed(code: CodeType, original: CodeType) -> CodeType:
    """Restore the user's names: code generated for a part of a function gets the function's name, also in qualified names."""
    consts = tuple(inner_renamed(c, original) for c in code.co_consts)
    return code.replace(co_name=original.co_name, co_qualname=original.co_qualname, co_consts=consts)


def inner_renamed(const: Any, original: CodeType) -> Any:
    if isinstance(const, str):  # a class body stores its qualified name as a constant
        return users_path(const, original) if const.startswith(WRAPPED) else const
    if not isinstance(const, CodeType):
        return const
    if "__" in const.co_name and const.co_name.rpartition("__")[2].isdigit():
        return renamed(const, original)
    consts = tuple(inner_renamed(c, original) for c in const.co_consts)
    return const.replace(co_qualname=users_path(const.co_qualname, original), co_consts=consts)


def users_path(path: str, original: CodeType) -> str:
    """Translate `outer.<locals>.function__0.<locals>.then__1.<locals>.g` to `f.<locals>.g`."""
    parts = path.partition("function__0")[2].split(".<locals>")
    kept = [p for p in parts if not ("__" in p and p.rpartition("__")[2].isdigit())]
    return original.co_qualname + ".<locals>".join(kept) if "function__0" in path else path


# ---- functions that are not converted


def needs_no_conversion(namespace: dict[str, Any], name: str, attributes: Sequence[str]) -> bool:
    """Whether a global name, or an attribute of it, certainly belongs to a library: its calls are not rewritten."""
    if name not in namespace:
        return not attributes and hasattr(builtins, name) and overload(getattr(builtins, name)) is None
    value = namespace[name]
    if isinstance(value, np.vectorize):  # a NumPy object that calls a user's function
        return False
    if isinstance(value, ModuleType):
        found: Any = value
        for attribute in attributes:
            found = getattr(found, attribute, None)
        return bool(attributes) and is_library(value.__name__) and overload(found) is None and not draws(found)
    return not attributes and is_library(getattr(value, "__module__", None)) and overload(value) is None and not draws(value)


def why_not(code: CodeType) -> str | None:
    """Return why a function's code was not converted; None if it was, or if conversion was not attempted."""
    found = _codes.get(id(code))
    return found.reason or None if found is not None else None


def why_not_attempted(frame: FrameType) -> str:
    """Return why the function of a frame was not considered for conversion: calls are only converted in converted code."""
    caller = frame.f_back
    while caller is not None and is_ours(caller):
        caller = caller.f_back
    reason = why_not(caller.f_code) if caller is not None else None
    if caller is None or reason is None:
        return "it is called by code that is not converted: call it in a function of your own"
    return f"it is called by `{caller.f_code.co_name}`, which is not: {reason}"


def undecided() -> str:
    """Explain why the user's running line cannot branch on a traced value, and what to do."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    instead = "choose between values with np.where(condition, a, b), or between functions with aj.cond(condition, f, g)"
    if frame is None:
        return instead
    code = frame.f_code
    if code.co_name == "<genexpr>" or in_comprehension(frame):
        return f"a condition inside a comprehension cannot depend on it: write a loop, or {instead}"
    if code.co_flags & GENERATOR:
        return f"a generator runs while tracing, so its conditions cannot depend on it: make a list in a loop, or {instead}"
    converted = AG in code.co_freevars or any(found.code is code for found in _codes.values())
    reason = why_not(code) or (None if converted else why_not_attempted(frame))
    if reason is not None:
        return f"`{code.co_name}` was not converted to trace `if`, `while`, `and`, `or`, `not` and `assert`: {reason}; or {instead}"
    return f"this construct of Python cannot depend on it: {instead}"


def to_code(function: Callable[..., Any]) -> str:
    """Return the source that is traced in place of the function's own."""
    while type(function) is partial:
        function = function.func
    inner = getattr(function, "__func__", None) or getattr(function, "__wrapped__", None) or function
    if not isinstance(inner, FunctionType | type):
        inner = getattr(type(inner), "__call__", None)  # noqa: B004 - the function itself is wanted, not the answer
    if not isinstance(inner, FunctionType):
        raise TypeError(f"to_code takes a Python function, not {type(function).__name__}")
    try:
        node = rewritten(inner)
    except NoSource as reason:
        raise ValueError(f"{inner.__name__} is not converted: {reason}") from None
    return unparsed(node).strip() + "\n"


def unparsed(node: ast.AST) -> str:
    from .printing import unparse  # noqa: PLC0415 - for people who look; tracing does without

    try:
        text = unparse(node)
        ast.parse(text)
    except (AttributeError, SyntaxError):  # a kind of node that astunparse does not support, or writes as an older Python did
        return ast.unparse(node)
    return text
