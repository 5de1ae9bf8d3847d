"""TensorFlow's error classes, and the one rule by which ours become theirs.

An error that adjit raises for bad operands is an `InvalidArgumentError` to users of `adjit.tf`, and stays what it was (a `ShapeError`,
hence a ValueError) to everybody else: `translated` makes it one of both classes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from adjit.ir.errors import (
    AdjitError,
    CheckError,
    DTypeError,
    GradientError,
    IndexingError,
    OutOfBoundsError,
    ShapeError,
    SingularMatrixError,
    TraceError,
    UnsupportedError,
)

F = TypeVar("F", bound=Callable[..., Any])


class OpError(Exception):
    """Base of TensorFlow's errors; made from (node_def, op, message), of which we know the message."""

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "", *details: Any) -> None:
        super().__init__(message or (node_def if isinstance(node_def, str) else ""))
        self.node_def = None if isinstance(node_def, str) else node_def
        self.op = op

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""


class InvalidArgumentError(OpError):
    """Operands that do not fit, or an assertion that does not hold."""


class OutOfRangeError(OpError):
    """An iterator that has ended."""


class UnimplementedError(OpError):
    """Something that TensorFlow does and we do not."""


class FailedPreconditionError(OpError):
    """A system that is not in the state that an operation needs."""


class NotFoundError(OpError):
    """A thing that was asked for and is not there."""


class AbortedError(OpError):
    """An operation that was ended from outside."""


class CancelledError(OpError):
    """An operation that was called off."""


class AlreadyExistsError(OpError):
    """A thing that was to be made and is there."""


class PermissionDeniedError(OpError):
    """Something that the caller must not do."""


class UnavailableError(OpError):
    """A service that does not answer."""


class DataLossError(OpError):
    """Data that cannot be read any more."""


class DeadlineExceededError(OpError):
    """Too late."""


class UnknownError(OpError):
    """Something else."""


class ResourceExhaustedError(OpError):
    """Too little memory."""


class InternalError(OpError):
    """A broken invariant."""


class OutOfScopeError(UnimplementedError, UnsupportedError):
    """A part of TensorFlow that `adjit.tf` does not have, with what to do instead."""


class MissingPartError(OutOfScopeError, AttributeError):
    """A name of TensorFlow's that is not here: `hasattr` says so, too."""


class NoValueError(TraceError, AttributeError):
    """`.numpy()` of a symbolic tensor, which TensorFlow's users know as a missing attribute."""


def _both(theirs: type[OpError], ours: type[AdjitError]) -> type[Exception]:
    return type(theirs.__name__, (theirs, ours), {"__module__": __name__, "__init__": Exception.__init__, "node_def": None, "op": None})


_TRANSLATED: dict[type[BaseException], type[Exception]] = {
    ours: _both(theirs, ours)
    for ours, theirs in {
        ShapeError: InvalidArgumentError,
        DTypeError: InvalidArgumentError,
        IndexingError: InvalidArgumentError,
        OutOfBoundsError: InvalidArgumentError,
        CheckError: InvalidArgumentError,
        SingularMatrixError: InvalidArgumentError,
        GradientError: InvalidArgumentError,
        UnsupportedError: UnimplementedError,
    }.items()
}

OperatorNotAllowedInGraphError = TraceError  # the truth, or the elements, of what is only known at run time
InvalidDType = _TRANSLATED[DTypeError]
InvalidShape = _TRANSLATED[ShapeError]
FailedCheck = _TRANSLATED[CheckError]


def translate(error: BaseException) -> None:
    """Make an error of ours one of TensorFlow's as well; it stays the object that it is."""
    found = _TRANSLATED.get(type(error))
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
    """The function, with errors that users of TensorFlow know."""

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
    """The `__getattr__` of a namespace: what TensorFlow has there and we do not is out of scope."""

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise MissingPartError(None, None, f"{space}.{name} is out of the scope of adjit.tf, or no part of TensorFlow; {instead}")

    return __getattr__
