"""Locks that survive a fork, and values that are made once.

A forked child has one thread. A lock that another thread of the parent held would stay locked in it for ever, so every lock of ours is made
here and released in the child unless the forking thread holds it. What such a lock protected must then be whole, or be made again: `once`
stores its value when it is complete, and whatever needs more says so where it is.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.RLock:
    """A re-entrant lock that no fork leaves locked."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _release_in_child() -> None:
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


class Once(Generic[P, T]):
    """What a function gives, for each combination of (hashable) arguments computed by the first call alone: others wait for that."""

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
        """Whether anybody has asked for it."""
        return bool(self._values)

    def forget(self) -> None:
        """Make it again when it is next asked for."""
        with self._lock:
            self._values = {}


def once(make: Callable[P, T]) -> Once[P, T]:
    """Decorates the maker of a value that all threads share: a native library, the description of the host."""
    return Once(make)


class Lazy(Generic[S, T]):
    """A property that is computed when it is first asked for, and then an attribute. Two threads that ask at once may both compute it.

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
