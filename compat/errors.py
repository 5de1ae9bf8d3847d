"""TensorFlow's error classes, and the translation of adjit's errors into them.

An error that adjit raises for bad operands is an `InvalidArgumentError` to users of `adjit.tf`, and also keeps its original class (a
`ShapeError`, hence a ValueError): `translated` gives it a class that derives from both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from adjit.ir.errors import (
    AdjitError,
    AxisError,
    CheckError,
    DTypeError,
    GradientError,
    IndexingError,
    OutOfBoundsError,
    ShapeError,
    SingularMatrixError,
    TraceError,
    UnsupportedError,
    VaryingSizeError,
)
from adjit.ir.tracebacks import lookup

from .listing import public_names

F = TypeVar("F", bound=Callable[..., Any])


class OpError(Exception):
    """Base of TensorFlow's errors; constructed from (node_def, op, message), of which only the message is known."""

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "", *details: Any) -> None:
        super().__init__(message or (node_def if isinstance(node_def, str) else ""))
        self.node_def = None if isinstance(node_def, str) else node_def
        self.op = op

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""


class InvalidArgumentError(OpError):
    """Operands that do not match, or an assertion that fails."""


class OutOfRangeError(OpError):
    """An exhausted iterator."""


class UnimplementedError(OpError):
    """A feature of TensorFlow that adjit does not implement."""


class FailedPreconditionError(OpError):
    """The system is not in the state that an operation requires."""


class NotFoundError(OpError):
    """A requested object does not exist."""


class AbortedError(OpError):
    """An operation that was aborted."""


class CancelledError(OpError):
    """An operation that was cancelled."""


class AlreadyExistsError(OpError):
    """An object to be created already exists."""


class PermissionDeniedError(OpError):
    """The caller lacks permission."""


class UnavailableError(OpError):
    """A service is unavailable."""


class DataLossError(OpError):
    """Data is lost or corrupt."""


class DeadlineExceededError(OpError):
    """A deadline expired."""


class UnknownError(OpError):
    """An unknown error."""


class ResourceExhaustedError(OpError):
    """Out of memory."""


class InternalError(OpError):
    """A broken invariant."""


class OutOfScopeError(UnimplementedError, UnsupportedError):
    """A part of TensorFlow that `adjit.tf` does not implement; the message suggests an alternative."""


class MissingPartError(OutOfScopeError, AttributeError):
    """A name of TensorFlow that is missing here; `hasattr` returns False for it."""


class NoValueError(TraceError, AttributeError):
    """`.numpy()` of a symbolic tensor; in TensorFlow this attribute is missing."""


def _both(theirs: type[OpError], ours: type[BaseException]) -> type[Exception]:
    return type(theirs.__name__, (theirs, ours), {"__module__": __name__, "__init__": Exception.__init__, "node_def": None, "op": None})


_TRANSLATED: dict[type[BaseException], type[Exception]] = {
    ours: _both(theirs, ours)
    for ours, theirs in {
        ShapeError: InvalidArgumentError,
        DTypeError: InvalidArgumentError,
        IndexingError: InvalidArgumentError,
        AxisError: InvalidArgumentError,
        OutOfBoundsError: InvalidArgumentError,
        CheckError: InvalidArgumentError,
        SingularMatrixError: InvalidArgumentError,
        GradientError: InvalidArgumentError,
        UnsupportedError: UnimplementedError,
    }.items()
}

# an index of a wrong type is a TypeError there
_TRANSLATED[IndexingError] = type("InvalidArgumentError", (_TRANSLATED[IndexingError], TypeError), {"__module__": __name__})

# for branches and loops, TensorFlow raises a ValueError, and a TypeError where dtypes differ
_TRANSLATED[TraceError] = type("TraceError", (TraceError, ValueError), {"__module__": "adjit", "__doc__": TraceError.__doc__})
_TRANSLATED[VaryingSizeError] = type("TraceError", (VaryingSizeError, _TRANSLATED[TraceError]), {"__module__": "adjit"})

OperatorNotAllowedInGraphError = TraceError  # the truth value, or iteration, of a value that is known only at run time
InaccessibleTensorError = _TRANSLATED[TraceError]  # a value of another trace
InvalidDType = _TRANSLATED[DTypeError]
InvalidShape = _TRANSLATED[ShapeError]
FailedCheck = _TRANSLATED[CheckError]


def translate(error: BaseException) -> None:
    """Make an adjit error also an instance of a TensorFlow error; the object stays the same."""
    kind = type(error)
    if kind not in _TRANSLATED and isinstance(error, CheckError) and not isinstance(error, OpError):
        _TRANSLATED[kind] = _both(InvalidArgumentError, kind)  # one that is also the built-in exception that was raised
    found = _TRANSLATED.get(kind)
    if found is not None:
        error.__class__ = found


@contextmanager
def translating() -> Iterator[None]:
    try:
        yield
    except AdjitError as error:
        translate(error)
        raise


def translated(function: F) -> F:
    """Decorate a function so that its errors are TensorFlow's."""

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except AdjitError as error:
            translate(error)
            raise

    return public  # type: ignore[return-value]


def out_of_scope(what: str, instead: str) -> NoReturn:
    raise OutOfScopeError(None, None, f"{what} is out of the scope of adjit.tf; {instead}")


def missing(space: str, instead: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a namespace: names that TensorFlow has and adjit does not are out of scope."""

    @lookup
    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise MissingPartError(None, None, f"{space}.{name} is out of the scope of adjit.tf, or not part of TensorFlow; {instead}")

    return __getattr__


def __dir__() -> list[str]:
    return [*(name for name in public_names(globals()) if name.endswith("Error")), "InaccessibleTensorError"]
