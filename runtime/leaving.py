"""What happens when a value that a tape watches leaves for NumPy or plain Python, where no tape can follow.

Three questions decide, in this order:

1. Does the user only look at it? Comparisons, the tests of `if`, `while` and `assert`, f-strings, and statements whose value nobody takes
   (`print(float(loss))`, a call of a logger or a plot) cannot feed the result. They are always allowed. So are `bool()`, `int()` and
   indices, which have no derivatives; they never come here.
2. Is it inside of `grad` or another transform? There everything else raises, at once and with the user's line.
3. Inside of a plain tape, numbers may be taken out by name (`float(x)`, `.item()`, `.tolist()`, `.numpy()`) and kept, and it is an error
   when that very number or array comes back into a recorded op. What is computed with on the spot (`float(x) ** 2`), or leaves without
   being named (`np.array([x, 1.0])`, `math.sin(x)`), raises.

`config.lost_gradient` says whether an error is one, or a warning. The remedy is always `stop_gradient`.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias
from typing import Literal as OneOf

from adjit.ir.errors import GradientError
from adjit.ir.location import Location
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array

from .config import config
from .recording import listening

Way = OneOf["array", "number", "named"]  # asked for by NumPy or the like; by float() or something in C that wants a float; by a method


Taken: TypeAlias = tuple[object, Location | None]  # what was taken out of a tape, held so that its identity stays its own, and where


class LostGradientWarning(UserWarning):
    """A value that is differentiated went through NumPy or Python, where nothing is recorded: its influence from there on is left out."""


def leaving(x: Operand, way: Way, out: Any = None) -> None:
    """A tensor becomes `out`, a NumPy array or a Python number. Call this only while somebody listens."""
    watching = [recorder for recorder in listening.recorders if recorder.watches(x)]
    if not watching:
        return
    from .looking import Exit  # noqa: PLC0415 - it reads sources, for which it needs `ast`

    exit = Exit()
    if exit.only_looks():
        return
    location = exit.location
    named = way == "named" or (way == "number" and exit.names_float())
    if named and not exit.computes() and not any(recorder.strict for recorder in watching):
        for recorder in watching:
            recorder.left(x, location, out)
        return
    for recorder in watching:
        recorder.left(x, location, None)
    report(f"a {x.type} value that is being differentiated leaves for NumPy or Python here, and its gradient would be lost", location)


def coming_back(x: object) -> None:
    """A Python number or an array enters an op: an error if it was taken out of a tape that is still recording."""
    for recorder in listening.recorders:
        taken = recorder.taken(x)
        if taken is not None:
            from .looking import Exit  # noqa: PLC0415 - as above

            line = f" at line {taken[1].line}" if taken[1] is not None else ""
            report(f"what was taken out of the tape{line} comes back as a constant, and its gradient would be lost", Exit().location)


def report(what: str, location: Location | None) -> None:
    message = (
        f"{what}; compute with functions of NumPy or adjit on the tensors themselves (np.stack makes an array of them), or say that it is "
        "a constant: take it out of aj.stop_gradient(x)"
    )
    if config.lost_gradient == "raise":
        raise GradientError(message).at(location)
    place = f" ({location.file.rpartition('/')[2]}:{location.line})" if location is not None else ""
    warnings.warn(message + place, LostGradientWarning, stacklevel=4)


def memory_of(array: Array) -> int:
    """What tells the memory of an array, and of all views on it."""
    return id(array if array.base is None else array.base)
