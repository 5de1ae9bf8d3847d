"""Functions called by rewritten code: conditional expressions, calls, assertions, and in-place updates."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.cost import PLAIN
from adjit.ir.effects import effects
from adjit.ir.errors import TraceError
from adjit.ir.func import Stmt
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.ops.base import perform
from adjit.ir.ops.effects import Assert
from adjit.ir.ops.maps import common_dtype, element_cost
from adjit.ir.types import BOOL, TensorType

from ..branches import emit_if
from ..conversion import convert
from ..convert import arithmetic, is_number, of_rows, to_operand
from ..frames import code_of, raised_at, user_location
from ..growing import TracedList
from ..regions import Attempt, RegionOutput, Wording, is_traced, predicate
from ..sharing import set_memory
from ..sparse_products import is_sparse
from ..trace import Traced, current_trace
from .arrays import array_like, fresh_out, is_numpy, joined
from .builtin import any_, holds_traced, overload
from .chance import checked
from .heap import Heap
from .places import not_followed
from .special import COMMON, compared, method
from .traced_text import TracedText, is_text, join_texts, percent_text, written_out
from .vectorize import vectorized

_PLAIN_NEW: Any = object.__new__
CHEAP = 16  # operations on scalars that are computed unconditionally rather than branched around

# ---- and, or, not, comparisons, conditional expressions


def and_(first: Any, *rest: Callable[[], Any]) -> Any:
    return _decide(first, rest, False)


def or_(first: Any, *rest: Callable[[], Any]) -> Any:
    return _decide(first, rest, True)


def _decide(first: Any, rest: tuple[Callable[[], Any], ...], decisive: bool) -> Any:
    """Return the first value whose truth is `decisive`, or else the last: `and` (False) and `or` (True)."""
    value = truth(first)
    for i, thunk in enumerate(rest):
        if is_traced(value):
            return _decide_at_run_time(value, rest[i:], decisive)
        if bool(value) is decisive:
            return value
        value = truth(thunk()) if i + 1 < len(rest) else thunk()
    return value


def _decide_rest(thunks: tuple[Callable[[], Any], ...], decisive: bool) -> Any:
    return _decide(thunks[0](), thunks[1:], decisive)


def _decide_at_run_time(value: Any, thunks: tuple[Callable[[], Any], ...], decisive: bool) -> Any:
    trace, others = current_trace(), partial(_decide_rest, thunks, decisive)
    assert trace is not None
    test = predicate(value, "`or`" if decisive else "`and`")
    start = Attempt(trace)
    with pure(thunks):
        other = others()
    if as_operand(value).type.dtype == BOOL and is_bool(other) and cheap(trace.stmts[start.count :]):
        if not is_traced(other):
            return test if bool(other) is not decisive else decisive
        return (ops.logical_or if decisive else ops.logical_and)(test, predicate(other, "`or`" if decisive else "`and`"))
    start.undo()
    words = Wording("`or`" if decisive else "`and`", ("on the left", "on the right"))
    sides = [lambda: [value], lambda: [others()]]
    return emit_if(trace, test, sides if decisive else sides[::-1], [RegionOutput("the value")], words)[0]


def is_bool(x: Any) -> bool:
    return isinstance(x, bool | np.bool_) or (isinstance(x, Operand) and as_operand(x).type.dtype == BOOL)


def cheap(stmts: list[Stmt]) -> bool:
    """Whether statements may run unconditionally: they cannot fail, have no side effects, and cost less than a branch."""
    are_scalar = all(s.op.is_elementwise and effects(s).is_pure and s.results[0].type.size == 1 for s in stmts)
    return are_scalar and sum(max(PLAIN, element_cost(s).flops) for s in stmts) <= CHEAP


def truth(value: Any) -> Any:
    """Return the value, or its truth where Python's own way would not do: that of a list which may be empty is known only at run time, and
    `__bool__` of a user's class is converted.
    """
    own = None if type(value) in COMMON else method(value, "__bool__")
    if own is not None:
        return own(value)
    return value.length > 0 if isinstance(value, TracedList) and value.least == 0 < value.most else value


def not_(value: Any) -> Any:
    value = truth(value)
    return ops.logical_not(predicate(value, "`not`")) if is_traced(value) else not value


def compare(left: Any, *rest: Any) -> Any:
    """Evaluate `a < b <= c`: operators are strings, and right sides functions, since those after a false one are not evaluated."""
    symbol, thunk, *more = rest
    right = thunk()
    here = _compared(left, symbol, right)
    return and_(here, lambda: compare(right, *more)) if more else here


def _compared(left: Any, symbol: str, right: Any) -> Any:
    match symbol:
        case "in":
            return contains(right, left)
        case "not in":
            return not_(contains(right, left))
        case "is" | "is not":
            if (isinstance(left, bool) and is_traced(right)) or (isinstance(right, bool) and is_traced(left)):
                raise TraceError(
                    f"`{symbol}` with True or False: a traced value is known only when the function runs, and is neither object; write "
                    "`if x:`, `not x` or `x == True`"
                ).at(user_location())
            return (left is right) == (symbol == "is")
    return compared(symbol, left, right)


class Tried(threading.local):
    """The number of enclosing loops that are tried as loops of the IR, and unrolled if that fails."""

    loops = 0


tried = Tried()


def matches(value: Any, pattern: Any) -> Any:
    """Compare the subject of a `match` with a pattern.

    In a loop that may be unrolled, a pattern that depends on the iteration is left to Python: it makes the iterations differ.
    """
    if tried.loops and is_traced(value):
        raise TraceError("match on a value of the iteration").at(user_location())
    return value == pattern


def contains(container: Any, value: Any) -> Any:
    if is_traced(container):
        return ops.any(as_operand(container) == value)
    own = None if type(container) in COMMON else method(container, "__contains__")
    if own is not None:
        return truth(own(container, value))
    if not isinstance(container, list | tuple | set | frozenset | range) or not (is_traced(value) or any(is_traced(v) for v in container)):
        return value in container
    same = [item is value or (as_operand(item) == value if isinstance(item, Operand) else value == item) for item in container]
    return any_(same)


def if_exp(test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    trace, test = current_trace(), truth(test)
    if trace is None or not is_traced(test):
        return then() if test else other()
    words = Wording("conditional expression", ("before `if`", "after `else`"))
    with pure((then, other)):
        return emit_if(
            trace, test, [lambda: [then()], lambda: [other()]], [RegionOutput("the value of the conditional expression")], words
        )[0]


@contextmanager
def pure(thunks: Sequence[Callable[[], Any]]) -> Iterator[None]:
    """Check that the parts of an expression that may not be evaluated have no side effects; a statement may have them."""
    heap = Heap(thunks) if any(calls_something(thunk) for thunk in thunks) else None
    yield
    if heap is not None:
        for thing in heap.changed():
            raise not_followed(thing.path, thing.value)
        for named in heap.rebound(set()):
            raise not_followed(named.path, named.place.read())


def calls_something(thunk: Callable[[], Any]) -> bool:
    code = code_of(thunk)
    return code is not None and (bool(code.co_names) or any(isinstance(c, CodeType) for c in code.co_consts))


# ---- calls


def callee(function: Any) -> Any:
    """Return what is called in place of a function: its conversion, or the version of a built-in for traced values."""
    found = overload(function)
    if found is not None:
        return found
    trace = current_trace()
    random = None if trace is None else checked(function, trace)
    if random is not None:
        return random
    if isinstance(function, np.vectorize):
        return vectorized(function)
    if isinstance(function, MethodType) and getattr(function, "__name__", None) == "dot" and is_sparse(function.__self__):
        return partial(operator.matmul, function.__self__)  # not all of SciPy's sparse arrays return NotImplemented for the other operand
    if is_numpy(function):
        return array_like(function)
    if isinstance(function, BuiltinFunctionType | type | Operand):
        return constructor(function) if isinstance(function, type) else function
    return convert(function) if callable(function) else function


def constructor(cls: Any) -> Any:
    """Return the class, or a function that creates an instance with its `__init__` converted."""
    init, made_by = vars(cls).get("__init__"), getattr(cls, "__new__", None)
    if current_trace() is None or type(cls) is not type or not isinstance(init, FunctionType) or made_by is not _PLAIN_NEW:
        return cls
    new = convert(init)
    if new is init:
        return cls

    def make(*args: Any, **kwargs: Any) -> Any:
        out: Any = object.__new__(cls)
        new(out, *args, **kwargs)
        return out

    return make


def variables(*named: tuple[str, Callable[[], Any]]) -> dict[str, Any]:
    """Implement `locals()`: return the variables that have a value."""
    out: dict[str, Any] = {}
    for name, read in named:
        try:
            out[name] = read()
        except NameError:
            continue
    return out


# ---- strings


def text(*parts: Any) -> str:
    """Build an f-string from constant parts and values with their conversion and format."""
    if not any(isinstance(part, tuple) and is_text(part[0]) for part in parts):
        return "".join(part if isinstance(part, str) else written_out(*part) for part in parts)
    return join_texts([part[0] if isinstance(part, tuple) and isinstance(part[0], TracedText) else TracedText([part]) for part in parts])


# ---- assertions and exceptions


def percent(template: Any, values: Any) -> Any:
    """`template % values`, where the template is written in the program."""
    return percent_text(template, values) if holds_traced([values]) else template % values


def assert_stmt(test: Any, message: Callable[[], Any] | None = None) -> None:
    test = truth(test)
    if not is_traced(test):
        if not test:
            raise AssertionError(*(() if message is None else (message(),)))
        return
    explained = "assertion failed" if message is None else message()
    fail_unless(explained, "", predicate(test, "`assert`"))


def fail_unless(explained: Any, raises: str, condition: Operand, before: str = "") -> None:
    """Fail at run time unless the condition holds, with a text; numbers of an f-string are those of the run."""
    if not isinstance(explained, TracedText):
        perform(Assert(f"{before}{explained}", raises), condition)
        return
    template, values = explained.with_numbers(Assert.most_values)
    perform(Assert(before + (template if values else template.format()), raises), condition, *values)


def raised(error: Any, caught: bool = False) -> Any:
    """Mark an exception as raised by the user's own code; `caught` if a handler of the same function may catch it."""
    instance = error() if isinstance(error, type) else error
    try:
        instance.adjit_raised = "caught" if caught else "left"
    except AttributeError:
        return error
    return instance


@contextmanager
def raising() -> Iterator[None]:
    """Make a branch that ends in `raise` fail at run time, not while it is traced."""
    try:
        yield
    except BaseException as error:
        trace = current_trace()
        how = getattr(error, "adjit_raised", None)
        if how is None or trace is None:
            raise
        if not isinstance(error, Exception):
            raise TraceError(
                f"a traced branch raises {type(error).__name__}: whether it does is only known when the function runs, and compiled code "
                "raises only subclasses of Exception; return a flag, and raise it outside of the function"
            ).at(raised_at(error.__traceback__)) from None
        if how == "caught":
            raise TraceError(
                f"a traced branch raises {type(error).__name__} inside `try`: whether it does is only known when the function runs, and "
                "nothing can catch it there; move the code of the handler into the branch"
            ).at(raised_at(error.__traceback__)) from error
        built_in = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
        explained = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], TracedText) else error
        fail_unless(explained, built_in, Literal(False, TensorType(BOOL)), f"{type(error).__name__}: ")
        trace.stmts[-1] = trace.stmts[-1].replace(location=raised_at(error.__traceback__))
        trace.dead_end = True


# ---- items


def get_item(x: Any, key: Any) -> Any:
    """Evaluate `x[key]`. With a traced index, a NumPy array or a list of numbers and arrays is a constant to select from."""
    if isinstance(x, Traced):
        return x[key]
    own = None if type(x) in COMMON else method(x, "__getitem__")
    if own is not None:
        return own(x, key)
    if x is np.r_ or x is np.c_:
        return joined(x, key)
    constant = isinstance(x, np.ndarray) or (type(x) in (list, tuple) and is_numeric(x))
    if not constant or not traced_key(key):
        return x[key]
    if isinstance(x, np.ndarray):
        out = to_operand(x)[key]
        if isinstance(out, Traced):
            set_memory(out, (x,))
        return out
    items = arithmetic(*x)
    dtype = common_dtype(*items)
    out = of_rows([ops.cast(to_operand(item), dtype) for item in items])[key]
    if isinstance(out, Traced) and all(map(is_number, items)):
        out.weak = True  # like the Python numbers that it is selected from
    return out


def is_numeric(x: Any) -> bool:
    """Whether a list or tuple can be converted to an array."""
    if isinstance(x, list | tuple):
        return bool(x) and all(map(is_numeric, x))
    return isinstance(x, np.ndarray | np.generic | Operand | bool | int | float | complex)


def traced_key(key: Any) -> bool:
    if isinstance(key, slice):
        key = (key.start, key.stop, key.step)
    return any(map(traced_key, key)) if isinstance(key, tuple | list) else is_traced(key)


__all__ = [
    "and_", "assert_stmt", "callee", "compare", "fresh_out", "get_item", "if_exp", "matches", "not_", "or_", "percent", "raised", "text",
    "truth", "variables",
]  # fmt: skip
