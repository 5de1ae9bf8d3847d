"""What adjit raises.

    AdjitError
    ├── TraceError (TypeError)            a traced value used where a concrete one is needed, a leaked value
    ├── ShapeError (ValueError)           shapes that do not fit
    ├── DTypeError (TypeError)            dtypes that do not fit
    ├── IndexingError (IndexError)        a key that cannot index: of floats, with too many indices
    ├── OutOfBoundsError (IndexError)     an index outside its axis, eager or in native code
    ├── UnsupportedError (NotImplementedError)   a NumPy function or feature that adjit does not have
    ├── GradientError (ValueError)        a gradient that cannot be asked for
    ├── CheckError (AssertionError)       an assertion of the user's that failed, eager or in native code
    ├── SingularMatrixError (np.linalg.LinAlgError)   equations without one solution, eager or in native code
    ├── StateError (RuntimeError)         a variable that is half written
    ├── NonFiniteError (FloatingPointError)      a NaN or an infinity, where somebody looks for the first
    ├── InternalError (RuntimeError)      a bug of adjit: something went wrong inside of the compiler, whatever the program is
    ├── ParseError (ValueError)           IR text that is not IR
    └── VerifyError (ValueError)          IR that breaks a rule of the IR

Each also subclasses the built-in that a caller would catch. `at(location)` adds the user's own line once.
"""

from __future__ import annotations

import builtins
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from numpy.linalg import LinAlgError

if TYPE_CHECKING:
    from .location import Location

E = TypeVar("E", bound="AdjitError")


class AdjitError(Exception):
    """Base of all errors of adjit; `location` is the user's line, where known."""

    location: Location | None = None

    def at(self: E, location: Location | None) -> E:
        """The same error, with the user's line in its message; the first location given stays."""
        if location is not None and self.location is None:
            self.location = location
            self.args = (f"{self.args[0] if self.args else ''}\n  {location.describe()}", *self.args[1:])
        return self


class Detail(int):
    """A number in the message of an error, as 64 bits: `{:unsigned}` is for those of a uint64."""

    def __format__(self, spec: str) -> str:
        return str(int(self) % 2**64) if spec == "unsigned" else format(int(self), spec)


class TraceError(AdjitError, TypeError):
    """A traced value was used where Python needs a concrete one."""


class ShapeError(AdjitError, ValueError):
    """Shapes that do not fit an op."""


class DTypeError(AdjitError, TypeError):
    """Dtypes that do not fit an op."""


class IndexingError(AdjitError, IndexError):
    """A key that cannot index an array."""


class OutOfBoundsError(AdjitError, IndexError):
    """An index outside its axis."""


class UnsupportedError(AdjitError, NotImplementedError):
    """Something that adjit does not do, with what to do instead."""


class GradientError(AdjitError, ValueError):
    """A gradient that cannot be asked for."""


class CheckError(AdjitError, AssertionError):
    """An assertion of the user's that failed, or an exception raised in a traced branch, whose built-in class it then has as well."""


@cache
def raised_as(name: str) -> type[CheckError]:
    """The CheckError that stands for an exception that the user raises in a traced branch: who waits for the built-in of that name gets it.

    Some built-ins cannot be combined with another; for them, and for no name, it is CheckError itself.
    """
    built_in = getattr(builtins, name, None)
    if not isinstance(built_in, type) or not issubclass(built_in, Exception):
        return CheckError
    try:
        return type("CheckError", (CheckError, built_in), {"__doc__": CheckError.__doc__, "__module__": __name__})
    except TypeError:
        return CheckError


class StateError(AdjitError, RuntimeError):
    """A variable that cannot be read now, because it is half written."""


class SingularMatrixError(AdjitError, LinAlgError):
    """Equations without one solution."""


class NonFiniteError(AdjitError, FloatingPointError):
    """A NaN or an infinity that was looked for."""


class InternalError(AdjitError, RuntimeError):
    """A bug of adjit. Its cause is what was raised; its message says where the program is that brought it out."""


class ParseError(AdjitError, ValueError):
    """Text that is not IR."""


class VerifyError(AdjitError, ValueError):
    """A Func that breaks a rule of the IR."""
