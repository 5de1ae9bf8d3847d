"""Functions called by rewritten code, for updates in place: `x += value`, `x[key] = value`, `x[key] += value`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import TraceError
from adjit.ir.operand import Operand, as_operand

from ..convert import array_of_list, to_operand
from ..frames import user_location
from ..in_place import SYMBOLS, fitted
from ..regions import is_traced
from ..sharing import same_memory, share, written
from ..slices import key_to_write
from ..trace import Splat, Traced, current_trace
from .expressions import traced_key
from .special import COMMON, method, updated


class Augmented:
    """`x += value` on a variable: the in-place operator, and the binary operator that it falls back to."""

    __slots__ = ("python", "plain")

    def __init__(self, python: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]) -> None:
        self.python = python
        self.plain = plain

    def __call__(self, x: Any, value: Any, *, argument: str = "", others: Sequence[Callable[[], Any]] = ()) -> Any:
        """Return the variable's new value. `argument` is its name if the caller has the same array, `others` as for `set_item`."""
        value = storable(x, value)
        if isinstance(x, np.ndarray) and is_traced(value):  # it cannot hold a traced value: the variable gets a new array
            if x.shape:
                check_unseen(x, argument, others, f"{{}} {SYMBOLS[self.plain]} ...")
            out = self.result(x, value)
            trace = current_trace()
            if trace is not None and x.shape:
                trace.overwrite(x, out)
            return out
        if others and isinstance(x, Traced | np.ndarray) and x.shape and current_trace() is not None and in_place(x):
            check_others(x, others, object if isinstance(x, Traced) else Traced)  # NumPy arrays see the update
        out = updated(SYMBOLS[self.plain][:-1], x, value)
        if out is not NotImplemented:
            return out
        out = self.python(x, value)
        if isinstance(x, np.ndarray) and (trace := current_trace()) is not None:
            trace.overwritten.wrote(x)
        return out

    def result(self, x: Any, value: Any) -> Any:
        """Return the new contents of the array, or the new value of anything else."""
        value = storable(x, value)
        if not is_traced(x) and not is_traced(value):
            return self.python(x, value)
        out = self.plain(x, value)
        return fitted(to_operand(x), out, self.plain) if np.shape(x) and in_place(x) else out


def storable(x: Any, value: Any) -> Any:
    """Return a constant as a NumPy array if x is a NumPy array, which can hold it; anything else unchanged."""
    return value.numpy() if isinstance(value, Splat) and isinstance(x, np.ndarray) else value


def in_place(x: Any) -> bool:
    """Whether `x += value` changes an array, rather than giving a variable a new one."""
    return not isinstance(x, Operand) or getattr(x, "in_place", False)


iadd = Augmented(operator.iadd, operator.add)
isub = Augmented(operator.isub, operator.sub)
imul = Augmented(operator.imul, operator.mul)
itruediv = Augmented(operator.itruediv, operator.truediv)
ifloordiv = Augmented(operator.ifloordiv, operator.floordiv)
imod = Augmented(operator.imod, operator.mod)
ipow = Augmented(operator.ipow, operator.pow)
imatmul = Augmented(operator.imatmul, operator.matmul)
iand = Augmented(operator.iand, operator.and_)
ior = Augmented(operator.ior, operator.or_)
ixor = Augmented(operator.ixor, operator.xor)
ilshift = Augmented(operator.ilshift, operator.lshift)
irshift = Augmented(operator.irshift, operator.rshift)


def set_item(x: Any, key: Any, value: Any, *, argument: str = "", others: Sequence[Callable[[], Any]] = ()) -> Any:
    """Perform `x[key] = value` and return the variable's new value: a new array if x is traced or a traced value is involved.

    `others` are variables that are read later, and must not be arrays that NumPy would change as well.
    """
    trace = current_trace()
    if isinstance(x, Operand | np.ndarray):
        value = array_of_list(value)
    functional = (isinstance(x, Operand) and as_operand(x) is x) or (isinstance(x, np.ndarray) and (is_traced(value) or traced_key(key)))
    if not functional or trace is None:
        if trace is not None and isinstance(x, np.ndarray):
            check_others(x, others, Traced)  # NumPy arrays see the write
        own = None if type(x) in COMMON else method(x, "__setitem__")
        if own is not None:
            own(x, key, value)
            return x
        x[key] = value  # tensors and variables raise an error that says what to do instead
        if isinstance(x, np.ndarray) and trace is not None:
            trace.overwritten.wrote(x)
        return x
    check_unseen(x, argument, others)
    target = to_operand(x)
    out = written(trace, target, key_to_write(target, key, value), value)
    trace.overwrite(x, out)
    return out


def update_item(x: Any, key: Any, update: Augmented, value: Any, *, argument: str = "", others: Sequence[Callable[[], Any]] = ()) -> Any:
    """Perform `x[key] += value` and similar."""
    if isinstance(x, Operand | np.ndarray):
        value = array_of_list(value)
    if not traced_key(key):
        compute = update.result if isinstance(x, Operand | np.ndarray) else update  # an array in a dict or list changes, too
        return set_item(x, key, compute(x[key], value), argument=argument, others=others)
    check_unseen(x, argument, others)
    target = to_operand(x)
    at = key_to_write(target, key, value)
    out = ops.updateitem(target, at, lambda items: update.result(items, value))
    trace = current_trace()
    if trace is not None:
        trace.overwrite(x, out)
    return out


def check_unseen(x: Any, argument: str, others: Sequence[Callable[[], Any]], write: str = "{}[...] = ...") -> None:
    """Raise an error for a write to an array that is referenced elsewhere: NumPy would change it there too, but here only x changes."""
    trace = current_trace()
    assert trace is not None
    if argument or any(same_memory(x, given) for given in trace.root().arguments if given.type.shape):
        name = argument or "x"
        raise TraceError(
            f"`{write.format(name)}` would change an argument, which the caller of a traced function does not see; "
            f"copy it first: {name} = {name}.copy()"
        ).at(user_location())
    check_others(x, others)


def check_others(x: Any, others: Sequence[Callable[[], Any]], kind: type = object) -> None:
    for thunk in others:
        try:
            other = thunk()
        except NameError:  # not assigned yet
            continue
        if share(x, other, kind):
            name = thunk.__code__.co_freevars[0]
            raise TraceError(
                f"this write would also change `{name}`, which holds the same array, or a view of it, and is read later; a traced function "
                "gives the variable that is written its own array: use only that variable afterwards, or copy the array first, with .copy()"
            ).at(user_location())


__all__ = [
    "set_item", "update_item", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand", "ior", "ixor", "ilshift",
    "irshift",
]  # fmt: skip
