"""The exceptions that adjit raises.

    AdjitError
    ├── TraceError (TypeError)            a traced value used where a concrete one is needed, a leaked value
    ├── ShapeError (ValueError)           shapes that do not fit
    │   └── AxisError (IndexError)        an axis that an array does not have
    ├── DTypeError (TypeError)            dtypes that do not fit
    ├── IndexingError (IndexError)        a key that cannot index: of floats, with too many indices
    ├── OutOfBoundsError (IndexError)     an index outside its axis, eager or in native code
    ├── UnsupportedError (NotImplementedError)   a NumPy function or feature that adjit does not support
    ├── GradientError (ValueError)        an invalid request for a gradient
    ├── CheckError (AssertionError)       a user's assertion that failed, eager or in native code
    ├── SingularMatrixError (np.linalg.LinAlgError)   equations without a unique solution, eager or in native code
    ├── StateError (RuntimeError)         a variable that is only partly written
    ├── DistributedError (RuntimeError)   MPI failed or is not available, or ranks run different programs
    ├── NonFiniteError (FloatingPointError)      a NaN or an infinity, if checks for them are on
    ├── InternalError (RuntimeError)      a bug in adjit: an unexpected failure inside the compiler
    ├── NotGeneral (NotImplementedError)  a step that has no code for all sizes; the program is then compiled for the sizes of the call
    │   └── Undecided                     a decision that depends on a size; the program is then compiled for sizes with the same outcome
    ├── ParseError (ValueError)           text that is not valid IR
    └── VerifyError (ValueError)          IR that breaks a rule of the IR

Each also subclasses the built-in that a caller would catch. `at(location)` adds the user's line, once.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.linalg import LinAlgError

if TYPE_CHECKING:
    from .location import Location

E = TypeVar("E", bound="AdjitError")


class AdjitError(Exception):
    """Base of all adjit errors; `location` is the user's line, if known."""

    location: Location | None = None

    def at(self: E, location: Location | None) -> E:
        """The same error, with the user's line in its message; the first location given is kept."""
        if location is not None and self.location is None:
            self.location = location
            self.args = (f"{self.args[0] if self.args else ''}\n  {location.describe()}", *self.args[1:])
        return self


class Detail(int):
    """A 64-bit word in an error message. `{:unsigned}` formats it as a uint64, `{:f32!r:>8}` as the number of dtype f32 that it holds,
    with a conversion and a format of its own.
    """

    def __format__(self, spec: str) -> str:
        if "!" not in spec:
            return str(int(self) % 2**64) if spec == "unsigned" else format(int(self), spec)
        name, _, rest = spec.partition("!")
        conversion, _, spec = rest.partition(":")
        value = number_of(int(self), name)
        conversions: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}
        return format(conversions[conversion](value) if conversion else value, spec)


def number_of(word: int, name: str) -> Any:
    """The number of a dtype ("f32", "i64", "bool") whose bits are in a 64-bit word."""
    bits = np.array(word, np.int64)
    if name == "bool":
        return np.bool_(word)
    kind, size = name[0], int(name[1:]) // 8
    whole = bits.astype(f"{'i' if kind == 'f' else kind}{size}")
    return (whole.view(f"f{size}") if kind == "f" else whole)[()]


class NotGeneral(AdjitError, NotImplementedError):
    """An operation that native code for all sizes at once does not support."""


class Undecided(NotGeneral):
    """A decision with different outcomes for different sizes in their ranges: whether `expr` is at least 0."""

    def __init__(self, message: str, expr: Any) -> None:
        super().__init__(message)
        self.expr = expr


class TraceError(AdjitError, TypeError):
    """A traced value was used where Python needs a concrete one."""


class ShapeError(AdjitError, ValueError):
    """Shapes that do not fit an op."""


class AxisError(ShapeError, IndexError):
    """An axis that an array does not have: NumPy's error of that name is both as well."""


class DTypeError(AdjitError, TypeError):
    """Dtypes that do not fit an op."""


class IndexingError(AdjitError, IndexError):
    """A key that cannot index an array."""


class OutOfBoundsError(AdjitError, IndexError):
    """An index outside its axis."""


class SizeWanted(TraceError):
    """Raised if a trace needs a size that depends on values, and does not know which size to assume."""


class UnplannedError(TraceError):
    """Raised where a function does what no program can do that is planned before it runs, but eager code can."""


class VaryingSizeError(UnplannedError):
    """Raised where the size of an array may differ in each run of a traced branch or loop: no program can plan memory for it."""


for _each in (SizeWanted, UnplannedError, VaryingSizeError):
    _each.__name__ = "TraceError"  # the class that users see and catch


class UnsupportedError(AdjitError, NotImplementedError):
    """Something that adjit does not support, with what to do instead."""


class GradientError(AdjitError, ValueError):
    """An invalid request for a gradient."""


class CheckError(AdjitError, AssertionError):
    """A user's assertion that failed, or an exception raised in a traced branch, which then also subclasses the built-in raised."""


class CapacityError(CheckError):
    """A list in a compiled function has more items than its capacity; the function is traced again with a larger one."""


class FoundSizeError(CheckError):
    """An array in a compiled function has another size than the call has assumed; the call starts again with the actual size."""


_OWN = {error.__name__: error for error in (CapacityError, FoundSizeError)}


@cache
def raised_as(name: str) -> type[CheckError]:
    """The CheckError class for an exception that the user raises in a traced branch: it can be caught as the built-in of that name.

    Some built-ins cannot be combined with another class; for them, and for an empty name, it is CheckError itself.
    """
    if name in _OWN:
        return _OWN[name]
    built_in = getattr(builtins, name, None)
    if not isinstance(built_in, type) or not issubclass(built_in, Exception):
        return CheckError
    own = {"__doc__": CheckError.__doc__, "__module__": CheckError.__module__, "__str__": Exception.__str__}  # KeyError's is a repr
    try:
        return type("CheckError", (CheckError, built_in), own)
    except TypeError:
        return CheckError


class StateError(AdjitError, RuntimeError):
    """A variable that cannot be read now, because it is only partly written."""


class SingularMatrixError(AdjitError, LinAlgError):
    """Equations without a unique solution."""


class DistributedError(AdjitError, RuntimeError):
    """A failure of MPI, or ranks that do not run the same program."""


class NonFiniteError(AdjitError, FloatingPointError):
    """A NaN or an infinity that was checked for."""


class InternalError(AdjitError, RuntimeError):
    """A bug in adjit. Its cause is the original exception; its message names a file with the program that triggered it."""


class ParseError(AdjitError, ValueError):
    """Text that is not IR."""


class VerifyError(AdjitError, ValueError):
    """A Func that breaks a rule of the IR."""


for _class in (AdjitError, *AdjitError.__subclasses__()):  # tracebacks show the name by which users import them
    _class.__module__ = "adjit"
