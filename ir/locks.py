"""Locks that survive a fork, and values that are computed once.

A forked child has one thread. A lock held by another thread of the parent would stay locked in it forever, so every lock in adjit is
created here and released in the child unless the forking thread holds it. The data that such a lock protects must then be complete, or be
rebuilt: `once` stores its value only when it is complete; code that needs more handles it itself.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


class Lock(_thread.RLock):  # type: ignore[misc]
    """A lock that a signal handler which raises, as Ctrl-C does, cannot leave locked: `with` holds it in full or not at all.

    From Python 3.14 on, signals are handled after every call of a C function, that of `__enter__` included, before `with` has begun. They
    are not when a property is read, nor when a Python function returns.
    """

    _taken = property(_thread.RLock.acquire)

    def __enter__(self) -> bool:  # type: ignore[override]
        return self._taken  # type: ignore[no-any-return]


def new_lock() -> threading.RLock:
    """A re-entrant lock that is not left locked by a fork."""
    lock: threading.RLock = threading.RLock() if sys.version_info < (3, 14) else Lock()
    _locks.add(lock)
    return lock


def _release_in_child() -> None:
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


class Once(Generic[P, T]):
    """Caches a function's result for each combination of (hashable) arguments; only the first call computes it, others wait."""

    def __init__(self, make: Callable[P, T]) -> None:
        self.__doc__ = make.__doc__
        self._make = make
        self._lock = new_lock()
        self._values: dict[Hashable, T] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (args, *kwargs.items()) if kwargs else args
        try:
            return self._values[key]
        except KeyError:
            pass
        with self._lock:
            if key not in self._values:
                self._values[key] = self._make(*args, **kwargs)
            return self._values[key]

    def is_made(self) -> bool:
        """Whether any value has been computed."""
        return bool(self._values)

    def forget(self) -> None:
        """Drop the cached values: they are computed again at the next call."""
        with self._lock:
            self._values = {}


def once(make: Callable[P, T]) -> Once[P, T]:
    """Decorates the factory of a value that all threads share: a native library, the description of the host."""
    return Once(make)


class Lazy(Generic[S, T]):
    """A property that is computed at first access, and then stored as an attribute. Two threads that access it at once may both compute it.

    `functools.cached_property` of Python 3.11 holds a lock meanwhile, one for all objects of the class: a forked child may find it locked.
    """

    def __init__(self, compute: Callable[[S], T]) -> None:
        self.__doc__ = compute.__doc__
        self._compute = compute
        self._name = compute.__name__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Lazy[S, T]: ...
    @overload
    def __get__(self, instance: S, owner: type[Any]) -> T: ...
    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def lazy(compute: Callable[[S], T]) -> Lazy[S, T]:
    """Decorates a method."""
    return Lazy(compute)
