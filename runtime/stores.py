"""The state behind variables, and the synchronisation of its readers and writers.

A store holds an array; readers need only a reference to it. A referenced array is never written: compiled steps write into a store's array
in place only when nothing else refers to it, and otherwise copy it first (`Store.exclusive`). While a step runs, without the GIL, it holds
the locks of the stores that it writes (`codegen/entry/variable_locks.py`), and readers of those stores wait.

Waiting threads poll, with a pause that grows with the time waited. They form a queue: the first reserves what it waits for, so that no
other thread takes it first. No thread waits while holding a lock, so there is no deadlock; where a thread would wait for itself (a signal
handler that reads what the interrupted step is writing), an error is raised instead.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from adjit.codegen.entry.variable_locks import BROKEN, HELD, OWN, TORN, LockWords
from adjit.ir.errors import StateError
from adjit.ir.forks import Stage, before_fork
from adjit.ir.gate import gate
from adjit.ir.locks import new_lock
from adjit.ir.ops.base import Array
from adjit.ir.types import TensorType

if TYPE_CHECKING:
    from adjit.codegen.entry.variable_locks import Locks

    from .variable import Variable

PATIENCE = 60.0  # seconds that a fork waits for steps of other threads
LONGEST_PAUSE = 0.005

_numbers = count()
_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_exchanging = new_lock()  # held while the array of a store is replaced
_starting = new_lock()  # held while a call takes its locks through Python; a fork holds it, so that no call starts
_queue: list[int] = []  # ids of the waiting threads
_ALONE = 3  # references to an array that is not shared: the store's, that of the list in `exclusive`, and the argument
_counts_show_sharing = getattr(sys, "_is_gil_enabled", lambda: True)()  # whether reference counts show that an array is shared


class Store:
    """The state of a variable: an array that owns its memory. Several `Variable` objects may share one store."""

    __slots__ = ("data", "type", "name", "trainable", "owner", "number", "lock", "address", "constraint", "__weakref__")

    def __init__(self, data: Array, name: str | None, trainable: bool, owner: Variable) -> None:
        self.data = separate(data)
        self.type = TensorType(data.dtype, data.shape)
        self.name = name
        self.trainable = trainable
        self.number = next(_numbers)  # in order of creation
        self.owner = weakref.ref(owner)  # the variable created by the user, returned wherever a variable of this store is requested
        self.constraint: Callable[[Any], Any] | None = None  # applied by optimizers to the value after each update
        self.lock = LockWords()
        self.address = ctypes.addressof(self.lock)
        _stores.add(self)

    def read(self) -> Array:
        """Return the array; it is not written to while the caller refers to it."""
        if self in _rewound.arrays:
            return _rewound.arrays[self]
        data = self.data  # read before the lock is checked: a step that starts later sees the reference, and copies
        return self._when_written() if self.lock.holder else data

    def assign(self, data: Array, expected: Array | None = None) -> bool:
        """Replace the array, unless it is no longer the `expected` one; return whether it was replaced.

        A running step has read the previous array and writes to that one: the effect is as if the step had finished first.
        """
        if self in _rewound.arrays:
            _rewound.arrays[self] = data
            return True
        with _exchanging:
            if expected is not None and self.data is not expected:
                return False
            self._replace(data)
            if self.lock.holder == TORN:
                self.lock.holder = 0
            return True

    def _replace(self, data: Array) -> None:
        self.data = data

    def takes(self, shape: Sequence[int]) -> bool:
        """Whether arrays of a shape can be assigned."""
        return self.type.shape == tuple(shape)

    def exclusive(self) -> Array:
        """Return the array for writing: copied first if a tensor, a view or another variable refers to it. Call with the lock held."""
        if self in _rewound.arrays:
            data = _rewound.arrays[self] = _rewound.arrays[self].copy()
            return data
        while True:
            held = [self.data]  # from 3.14 on, Python may not count a local variable as a reference; an item always counts
            if _counts_show_sharing and sys.getrefcount(held[0]) <= _ALONE:
                return held[0]
            data = held.pop()
            copy = data.copy()
            if self.assign(copy, expected=data):  # else it was assigned meanwhile
                return copy

    def _when_written(self) -> Array:
        found: list[Array] = []

        def attempt(insist: bool) -> bool:
            data, holder = self.data, self.lock.holder
            if holder == TORN or holder == threading.get_ident():
                raise unreadable([self])
            if not holder:
                found.append(data)
            return not holder

        wait_for(attempt, lambda whether: setattr(self.lock, "reserved", whether))
        return found[0]


class OpenStore(Store):
    """The state of a variable whose shape may change: `limits` are the sizes of its axes, None for any; or None for any shape."""

    __slots__ = ("limits",)

    def __init__(self, data: Array, name: str | None, trainable: bool, owner: Variable, limits: Sequence[int | None] | None) -> None:
        super().__init__(data, name, trainable, owner)
        self.limits = limits

    def _replace(self, data: Array) -> None:
        self.data = data
        if data.shape != self.type.shape:
            self.type = TensorType(data.dtype, data.shape)

    def takes(self, shape: Sequence[int]) -> bool:
        limits = self.limits
        return limits is None or (
            len(limits) == len(shape) and all(n is None or n == given for n, given in zip(limits, shape, strict=True))
        )


def separate(data: Array) -> Array:
    """Return an array as a store keeps it: writable, row-major, and owning its memory, so that its reference count shows sharing."""
    flags = data.flags
    fine = data.base is None and flags.owndata and flags.c_contiguous and flags.aligned and flags.writeable
    return data if fine else data.copy(order="C")


# ---- several stores at a time


class Claim:
    """The locks of all variables of one call. `table` is read by native code; `held` is a word owned by each call."""

    __slots__ = ("stores", "updated", "table", "count", "reads")

    def __init__(self, stores: list[Store], updated: Sequence[bool]) -> None:
        self.stores = stores
        self.updated = updated
        self.count = len(stores)
        self.reads = not all(updated)
        words = [word for store, writes in zip(stores, updated, strict=True) for word in (store.address, writes)]
        self.table = (ctypes.c_int64 * len(words))(*words)

    def take(self, held: ctypes.c_int64) -> None:
        """Take all locks, waiting as long as needed. The caller releases them in one C call, since an exception may occur at any time."""
        if self._attempt(held, False):
            return
        locks = _locks()
        wait_for(lambda insist: self._attempt(held, insist), lambda whether: locks.reserve(self.table, self.count, whether))

    def _attempt(self, held: ctypes.c_int64, insist: bool) -> bool:
        with _starting:
            status = _locks().hold(self.table, self.count, threading.get_ident(), insist, held)
        if status in (OWN, BROKEN):
            raise unreadable(self.stores)
        return bool(status == HELD)

    def values(self) -> list[Array]:
        """Return the arrays that the stores hold. Call with the locks held."""
        return [_rewound.arrays.get(store, store.data) for store in self.stores]

    def arrays(self) -> list[Array]:
        """Return the arrays that the call reads and those it writes. Call with the locks held."""
        then = _rewound.arrays
        return [
            store.exclusive() if writes else then.get(store, store.data) if then else store.data
            for store, writes in zip(self.stores, self.updated, strict=True)
        ]


def snapshot(stores: Sequence[Store]) -> list[Array]:
    """Return a consistent snapshot of several stores: taken between two steps of other threads, never in the middle of one."""
    arrays = [store.read() for store in stores]
    if _rewound.arrays or all(s.data is a and not s.lock.holder for s, a in zip(stores, arrays, strict=True)):
        return arrays
    claim, held = Claim(list(stores), [False] * len(stores)), ctypes.c_int64(0)
    release = _locks().release
    try:
        claim.take(held)
        return claim.values()
    finally:
        release(claim.table, claim.count, 1, held)


def wait_for(attempt: Callable[[bool], bool], reserve: Callable[[int], None]) -> None:
    """Retry until `attempt` succeeds. The first thread in the queue reserves what it waits for; only its attempts may take it."""
    me = threading.get_ident()
    started = time.monotonic()
    try:
        _queue.append(me)
        while not attempt(_queue[0] == me):
            if _queue[0] == me:
                reserve(1)
            time.sleep(min((time.monotonic() - started) / 8, LONGEST_PAUSE))
    finally:  # an interrupt here may leave a reservation, which costs time until the next waiting thread removes it
        try:
            if _queue[0] == me:
                reserve(0)
        finally:
            _queue.remove(me)


def unreadable(stores: Sequence[Store]) -> StateError:
    me = threading.get_ident()
    store = next((s for s in stores if s.lock.holder in (TORN, me)), stores[0])
    label = f"variable {store.name!r}" if store.name else f"a variable of type {store.type}"
    if store.lock.holder == TORN:
        return StateError(f"{label} was half written by another thread when this process was forked; assign it before it is read")
    return StateError(f"{label} is being written by the call that this code interrupts; it can be read when that has returned")


def _locks() -> Locks:
    from adjit.codegen.entry.entry import locks  # noqa: PLC0415 - LLVM is loaded by now; `import adjit` does without

    return locks()


# ---- earlier values


class _Rewound(threading.local):
    arrays: dict[Store, Array] = {}  # noqa: RUF012 - never changed: each thread that rewinds has its own


_rewound = _Rewound()


@contextmanager
def rewound(values: Mapping[Store, Array]) -> Iterator[None]:
    """Give variables these values inside the block, on this thread."""
    before = _rewound.arrays
    _rewound.arrays = {**before, **values}
    try:
        yield
    finally:
        _rewound.arrays = before


# ---- forks


def _before_fork() -> None:
    """Let the steps of other threads finish: otherwise the child would find half-written variables."""
    gate.close()  # no step starts through the native entry
    _starting.acquire()  # or through Python
    deadline = time.monotonic() + PATIENCE
    while _foreign() and time.monotonic() < deadline:
        time.sleep(0.0005)


def _after_fork() -> None:
    _starting.release()
    gate.open()


def _after_fork_in_child() -> None:
    for store in _foreign():
        store.lock.holder = TORN
    for store in list(_stores):
        store.lock.reserved = 0
    _queue[:] = [thread for thread in _queue if thread == threading.get_ident()]
    _after_fork()


def _foreign() -> list[Store]:
    """Return the stores that steps of other threads are writing."""
    mine = (0, TORN, threading.get_ident())
    return [store for store in list(_stores) if store.lock.holder not in mine]


before_fork(Stage.STEPS, _before_fork)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
