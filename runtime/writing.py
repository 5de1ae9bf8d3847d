"""Writes to the elements of tensors: `x[key] = value`, outside of compiled functions.

The arrays behind tensors never change while anybody else can see them. A write gives the tensor a changed copy of its array, or changes the
array itself if nothing but this tensor refers to it, which the reference count says. So whatever shares the memory keeps its value: arrays
from `numpy()` and DLPack, variables, constants of compiled functions, other tensors, native code that is running on another thread.

Two things refer to tensors rather than to their arrays:

- Tapes. What a tape has recorded of a tensor is handed to another object with the old value, and the write is recorded as an op whose
  result is the tensor. Where that is not possible the write raises an error.
- The user's own views. `x[0][1] = v` and `y = x[1:]; y[0] += v` change `x`, as in NumPy: all tensors that are views of the same memory are
  moved to a copy of it, which is written to. To find them is slow. Results of other functions may share memory with their arguments where
  those of NumPy do not; their arrays are marked as read-only, and a write to one of them raises an error as long as the other exists.
  A write to `x` itself leaves its views as they were.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from opcode import opmap
from sys import getrefcount
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.errors import GradientError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, apply
from adjit.ir.ops.shape import Reshape
from adjit.tracer.arrays import immutable
from adjit.tracer.convert import array_of_list
from adjit.tracer.frames import user_location
from adjit.tracer.slices import key_to_write

from .log import TapeLog, logs
from .recording import listening

if TYPE_CHECKING:
    from .tensor import Tensor

COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()  # whether reference counts are exact
MISFITS = (IndexError, OverflowError, TypeError, ValueError)  # the general way says what is wrong

_tensor: type[Tensor]
_materialize: Callable[[Any], Tensor]


def equip(tensor: type[Tensor], materialize: Callable[[Any], Tensor]) -> None:
    """Name the class of tensors, whose module imports this one, and its function that makes them of other constants."""
    global _tensor, _materialize
    _tensor, _materialize = tensor, materialize


def write(x: Tensor, key: Any, value: Any) -> None:
    """Perform `x[key] = value`."""
    if current_builder() is not None:
        immutable("x[index] = value", "x = x.at[index].set(value)")
    recorded = [log for log in list(logs) if log.knows(x)] if logs else []
    check_recorded(x, recorded)
    others = sharing(x)
    if not others and not listening.recorders and not recorded and written_by_numpy(x, key, value):
        return
    before = again(x)
    for log in recorded:
        log.replace(x, before)
    new = become(before, ops.setitem(before, key_to_write(before, key, value), array_of_list(value)), value)
    for recorder in listening.recorders:
        recording: TapeLog | None = getattr(recorder, "log", None)
        if recording is not None:
            recording.rename(new, x)
    if others:
        moved([x, *others])
        x.buffer[...] = new.buffer
    else:
        x.buffer = new.buffer


def update(x: Tensor, out: Tensor, frame: FrameType) -> Tensor:
    """Perform `x += v`, of which `out` is the result. If x is a view of another tensor, that changes too; else `out` replaces x."""
    if current_builder() is None and not stored_back(frame) and sharing(x):
        write(x, ..., out)
        return x
    return out


def stored_back(frame: FrameType) -> bool:
    """Whether a frame assigns the result of the running operator to an item or an attribute: `y[1:] += v` writes to y itself then."""
    code, k = frame.f_code.co_code, frame.f_lasti + 2
    while code[k] == opmap["CACHE"]:
        k += 2
    return code[k] == opmap["SWAP"]


# ---- memory


def is_alone(x: Tensor) -> bool:
    """Whether no other object refers to the memory of a tensor, which then may be written to."""
    if getrefcount(x.buffer) != 2 or not COUNTS:  # the tensor's own reference, and the argument's
        return False
    flags = x.buffer.flags
    return x.buffer.base is None and flags.owndata and flags.writeable


def written_by_numpy(x: Tensor, key: Any, value: Any) -> bool:
    """Let NumPy write, if it does what the op would do: numbers and arrays of the same dtype, at indices that it knows."""
    known, key = known_key(key)
    if not known:
        return False
    dtype = x.buffer.dtype
    if isinstance(value, Operand):
        value = getattr(value, "buffer", None)
    if type(value) is np.ndarray:
        if value.dtype != dtype:
            return False
    elif type(value) not in (bool, int, float, complex) or not np.can_cast(type(value), dtype, "same_kind"):
        return False
    try:
        if is_alone(x):
            x.buffer[key] = value
        else:
            changed = np.array(x.buffer)
            changed[key] = value
            x.buffer = changed
    except MISFITS:
        return False
    return True


def known_key(key: Any) -> tuple[bool, Any]:
    """Whether a key consists of what NumPy takes, and the key with arrays in the place of tensors."""
    if type(key) is tuple:
        parts = [known_key(part) for part in key]
        return all(known for known, _ in parts), tuple(part for _, part in parts)
    if isinstance(key, Operand):
        key = getattr(key, "buffer", None)
        return key is not None, key
    if type(key) is slice:
        return not any(isinstance(part, Operand) for part in (key.start, key.stop, key.step)), key
    return type(key) is int or key is None or key is Ellipsis or type(key) is np.ndarray, key


def sharing(x: Tensor) -> list[Tensor]:
    """Return the other tensors that are views of the memory of one that is a view, and that NumPy's write would change as well."""
    if not isinstance(x.buffer.base, np.ndarray):
        return []
    owner = memory(x)
    if COUNTS and x.buffer.base is owner and getrefcount(owner) == 3:  # references of the view, the variable and the argument
        return []
    family = [t for t in gc.get_objects() if issubclass(type(t), _tensor) and t is not x and memory(t) is owner]
    if not any(overlap(x.buffer, other.buffer) for other in family):
        return []
    arrays = {id(t.buffer) for t in (x, *family)}
    is_certain = len(arrays) == len(family) + 1 and all(t.buffer.flags.writeable for t in (x, *family))
    if not is_certain or not (owner.flags.forc and owner.flags.owndata) or any(log.knows(t) for log in list(logs) for t in family):
        raise UnsupportedError(
            f"x[index] = value: this tensor ({x.type}) has memory in common with another one ({family[0].type}), which NumPy might change "
            "as well; write to that one itself (x[i, j] = v rather than x[i][j] = v), or to a copy: x[i].copy()"
        ).at(user_location())
    return family


def memory(x: Tensor) -> Any:
    """The array that owns the memory of a tensor."""
    array = getattr(x, "buffer", None)
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def moved(family: Sequence[Tensor]) -> None:
    """Give all views of some memory a copy of it."""
    owner = memory(family[0])
    copied = owner.copy("K")
    start = owner.__array_interface__["data"][0]
    for x in family:
        view = x.buffer
        at = view.__array_interface__["data"][0] - start
        flat = copied.reshape(-1, order="A") if copied.size else copied
        x.buffer = copied if view is owner else np.ndarray(view.shape, view.dtype, flat, at, view.strides)


def overlap(a: Array, b: Array) -> bool:
    """Whether two arrays have elements in common."""
    return np.may_share_memory(a, b) and np.shares_memory(a, b)


# ---- what else a tensor is


def again(x: Tensor) -> Tensor:
    """A new object with the array of a tensor."""
    out: Tensor = object.__new__(type(x))
    out.buffer = x.buffer
    return out


def apart(x: Tensor, view: bool) -> Tensor:
    """A tensor equal to another one, of which nobody knows yet: what a function returns that has nothing to compute.

    Recorded by the tapes that watch the other. As a view it is written to as a view is; otherwise it is a copy.
    """
    if current_builder() is not None:  # nobody writes to it, and traces know it by identity
        return x
    if any(recorder.watches(x) for recorder in listening.recorders):
        out: Tensor = apply(Reshape(x.buffer.shape), x)  # type: ignore[assignment] # of tensors
    else:
        out = again(x)
    out.buffer = x.buffer.view() if view else x.buffer.copy()
    return out


# ---- tapes


def check_recorded(x: Tensor, recorded: Sequence[TapeLog]) -> None:
    """Raise an error for a write to a tensor of which a tape needs the value, or that a tape would not see."""
    active = [getattr(recorder, "log", None) for recorder in listening.recorders]
    for log in recorded:
        why = log.why_kept(x, any(log is each for each in active))
        if why:
            raise GradientError(f"x[index] = value: {why}; write to a copy: x = x.copy()").at(user_location())
    if any(log is None and not recorder.excuses for log, recorder in zip(active, listening.recorders, strict=True)):
        raise UnsupportedError(
            "x[index] = value: inside of aj.checkpoint or aj.vmap, eager code that is being differentiated cannot be followed through "
            "writes; use x = x.at[index].set(value)"
        ).at(user_location())


def become(before: Tensor, new: Any, value: Any) -> Tensor:
    """Return the result of a write as a tensor that nothing else refers to."""
    if new is before or new is value:
        new = apply(Reshape(before.buffer.shape), new)
    return _materialize(new)
