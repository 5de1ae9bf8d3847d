"""The compiled specialisations of one function: found by signature, or by the quick key of a call through Python.

Owns the bound on their number and the order of their use: the least recently used is evicted first. Calls through the native entry set no
stamp; the entry's list of them is read before anything is evicted. Neither traces nor compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from adjit.ir.locks import new_lock

if TYPE_CHECKING:
    from .concrete import ConcreteFunction
    from .shortcut import Shortcut

MAX_QUICK = 4096  # quick keys: programs for all sizes have one for every size

_stamps = count(1)


class Specializations(dict[Hashable, "ConcreteFunction"]):
    """Specialisations by the keys of their signatures. `quick` has the same ones by the keys that `signature.probe` computes."""

    def __init__(self, limit: int, shortcut: Shortcut) -> None:
        super().__init__()
        self.quick: dict[tuple[Any, ...], ConcreteFunction] = {}
        self.lock = new_lock()  # held while the specialisations change
        self._limit = limit
        self._shortcut = shortcut

    def use(self, concrete: ConcreteFunction) -> None:
        """Note that a call runs this specialisation."""
        concrete.used = next(_stamps)

    def use_entered(self) -> None:
        """Note the calls that the native entry has run since this was last called. The lock must be held."""
        for concrete in self._shortcut.used():
            self.use(concrete)

    def versions(self, key: Hashable) -> Iterator[ConcreteFunction]:
        """Yield the specialisations of one key, the latest first: they differ in which arguments and variables are the same object."""
        found = self.get(key)
        while found is not None:
            yield found
            found = found.alternative

    def add(self, key: Hashable, concrete: ConcreteFunction) -> None:
        """Add a specialisation; if there are too many, evict those of the least recently used key."""
        with self.lock:
            concrete.alternative = self.get(key)
            self[key] = concrete
            if len(self) > self._limit:
                self.use_entered()
                self.use(concrete)
                self._evict(min(self, key=lambda k: self[k].used))
            else:
                self.use(concrete)

    def remember(self, quick: tuple[Any, ...], concrete: ConcreteFunction) -> None:
        """Let later calls find a specialisation by its quick key, unless it has been evicted meanwhile."""
        with self.lock:
            if not concrete.dropped:
                if len(self.quick) >= MAX_QUICK:
                    self.quick.clear()
                self.quick[quick] = concrete

    def evict(self, is_unwanted: Callable[[ConcreteFunction], bool]) -> None:
        """Evict the keys whose latest specialisation is unwanted."""
        with self.lock:
            for key in [key for key, latest in self.items() if is_unwanted(latest)]:
                self._evict(key)

    def _evict(self, key: Hashable) -> None:
        """Evict the specialisations of a key. Running calls keep what they need."""
        for gone in self.versions(key):
            gone.dropped = True
            self._shortcut.drop(gone)
        del self[key]
        self.quick = {k: c for k, c in self.quick.items() if not c.dropped}
