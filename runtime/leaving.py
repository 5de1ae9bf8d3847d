"""Conversions of values watched by a tape to NumPy or plain Python, where no tape can follow them.

Three questions decide, in this order:

1. Is the value only read? Comparisons, the conditions of `if`, `while` and `assert`, f-strings, and expression statements
   (`print(float(loss))`, a call of a logger or a plot) cannot influence the result and are always allowed, unless they write to an array
   (a call of NumPy), store the value, or the same number later enters a recorded op. So are `bool()`, `int()` and indices, which have no
   derivatives; they never reach this module.
2. Is it inside `grad` or another transform? There, everything else raises immediately, with the user's line.
3. Inside a plain tape, numbers may be extracted explicitly (`float(x)`, `.item()`, `.tolist()`, `.numpy()`) and stored; it is an error if
   that same number or array later enters a recorded op. A number that is used at once in a computation (`float(x) ** 2`), or a value
   that is converted implicitly (`np.array([x, 1.0])`, `math.sin(x)`), raises.

Inside a function with a derivative of its own (`custom_gradient`, `custom_vjp`), all of this is allowed: nothing is differentiated there.

`config.lost_gradient` selects between an error and a warning. The remedy is always `stop_gradient`.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias
from typing import Literal as OneOf

from adjit.ir.errors import GradientError
from adjit.ir.location import Location
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.tracer.frames import user_level
from adjit.tracer.scipy_names import advice

from .config import config
from .recording import listening

Kind = OneOf["array", "number", "named"]  # by NumPy or similar; by float() or C code that needs a float; by a method


Taken: TypeAlias = tuple[object, Location | None]  # a value extracted from a tape, kept alive so that its id stays unique, and where


class LostGradientWarning(UserWarning):
    """A value being differentiated passed through NumPy or Python, where nothing is recorded: its influence from there on is ignored."""


def leaving(x: Operand, kind: Kind, out: Any = None) -> None:
    """Handle the conversion of a tensor to `out`, a NumPy array or a Python number. Call this only while a tape is recording."""
    watching = []
    for recorder in reversed(listening.recorders):
        if recorder.excuses:
            recorder.left(x, None, out)
            break
        if recorder.watches(x):
            watching.append(recorder)
    if not watching:
        return
    from .looking import Exit  # noqa: PLC0415 - it reads sources, for which it needs `ast`

    exit = Exit()
    location = exit.location
    if exit.only_reads():
        for recorder in watching if out is not None and exit.is_statement() else ():
            recorder.left(x, location, out)
        return
    named = kind == "named" or (kind == "number" and exit.names_float())
    if named and not exit.computes() and not any(recorder.strict for recorder in watching):
        for recorder in watching:
            recorder.left(x, location, out)
        return
    for recorder in watching:
        recorder.left(x, location, None)
    may = " (a compiled function, as aj.function(aj.grad(f)), may write to its arrays)" if exit.writes() else ""
    report(f"a value ({x.type}) that is being differentiated is converted to NumPy or Python: its gradient would be lost{may}", location)


def entering(x: object) -> None:
    """Handle a Python number or array that enters an op: an error if it was extracted from a tape that is still recording."""
    for recorder in reversed(listening.recorders):
        if recorder.excuses:
            return
        taken = recorder.taken(x)
        if taken is not None:
            from .looking import Exit  # noqa: PLC0415 - as above

            line = f" at line {taken[1].line}" if taken[1] is not None else ""
            report(f"a value that was converted{line} is used here as a constant: its gradient would be lost", Exit().location)


def report(what: str, location: Location | None) -> None:
    message = (
        f"{what}; use functions of NumPy or adjit on the tensors themselves (np.stack makes an array of them), or mark it as a constant: "
        f"convert aj.stop_gradient(x){advice()}"
    )
    if config.lost_gradient == "raise":
        raise GradientError(message).at(location)
    place = f" ({location.short})" if location is not None else ""
    warnings.warn(message + place, LostGradientWarning, stacklevel=user_level())


def memory_of(array: Array) -> int:
    """Return a key for the memory of an array, shared by all views of it."""
    return id(array if array.base is None else array.base)
