"""Calls that bypass Python: short functions of plain arrays, which take microseconds, enter native code directly.

Owns the decision which specialisations get a route (see `codegen.entry`), and the replacement of a function's `__call__` by the native
entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.locks import new_lock
from adjit.ir.types import NUMBERS

from .signature import SCALARS
from .tensor import Tensor, WeakTensor

if TYPE_CHECKING:
    from adjit.codegen.entry.entry import Entry
    from adjit.codegen.entry.route import Route

    from .concrete import ConcreteFunction
    from .function import Function

MAX_ROUTES = 8
PATIENCE = 20  # calls through Python while the entry is compiled: a busy caller leaves too little of the GIL to the thread that compiles


class Shortcut:
    """The native entry of one function, once it has a specialisation that qualifies."""

    def __init__(self, function: Function, tensor_class: type[Tensor] = Tensor, weak_class: type[Tensor] = WeakTensor) -> None:
        """The classes are those of tensors taken and returned. If weakly typed ones have none of their own, Python numbers are static."""
        self._function = function
        self._classes = tensor_class, weak_class
        self._plain = (np.ndarray, Tensor, tensor_class, *((*NUMBERS, *SCALARS, weak_class) if weak_class is not tensor_class else ()))
        self._entry: Entry | None = None
        self._routes: list[tuple[ConcreteFunction, Route]] = []
        self._lock = new_lock()
        self._delayed = 0  # calls that went through Python because the entry was not compiled yet

    def add(self, args: tuple[Any, ...], concrete: ConcreteFunction) -> None:
        """Add a route for a specialisation if it and the arguments of its call qualify."""
        from adjit.codegen.entry.entry import available, is_ready  # noqa: PLC0415 - LLVM is loaded by now; `import adjit` does without

        from .nodes import argument_nodes  # noqa: PLC0415 - the same

        if not available() or any(known is concrete for known, _ in self._routes):
            return
        arguments = [nodes for nodes in (argument_nodes(a, self._plain) for a in args) if nodes is not None]
        route = concrete.convention.route(arguments, self._classes, concrete.guards) if len(arguments) == len(args) else None
        if route is None:
            return
        with self._lock:
            if concrete.dropped or any(known is concrete for known, _ in self._routes):  # another thread added it first
                return
            # those for one size come first: they are as fast or faster
            self._routes = sorted([(concrete, route), *self._routes[: MAX_ROUTES - 1]], key=lambda known: known[0].convention.is_general)
            if self._entry is not None:
                self._install()
            elif is_ready():
                self._create()

    def grow(self, concrete: ConcreteFunction) -> None:
        """Give the route of a specialisation for all sizes, if there is one, the arena of a call for which its own was too small.

        Called after that call, which went through Python and has allocated the arena: otherwise each of the two paths would have its own.
        """
        for known, route in self._routes:
            if known is concrete and route.is_lacking():
                with self._lock:
                    route.grow()

    def _exchange_call(self, entry: Entry) -> None:
        """Replace `__call__`. Python looks it up on the class, so each function gets a class of its own."""
        cls = type(self._function)
        members = {"__call__": entry.call, "__module__": cls.__module__, "__doc__": cls.__doc__}
        self._function.__class__ = type(cls.__name__, (cls,), members)

    def used(self) -> list[ConcreteFunction]:
        """Return the specialisations that the native entry has run since the last call of this method."""
        return [concrete for concrete, route in self._routes if route.was_used()]

    def drop(self, concrete: ConcreteFunction | None = None) -> None:
        """Remove one specialisation, or all."""
        with self._lock:
            self._routes = [] if concrete is None else [(c, r) for c, r in self._routes if c is not concrete]
            if self._entry is not None:
                self._install()

    def refresh(self) -> None:
        """Before a call that goes through Python: create the native entry if it has been compiled meanwhile, or start compiling it.

        After `PATIENCE` such calls, the caller waits for it. If the entry found a name outside of the function elsewhere than expected, its
        address is updated.
        """
        if self._entry is None:
            if self._routes:
                self._create_if_ready()
        elif self._entry.is_outdated():
            with self._lock:
                self._install()

    def _create_if_ready(self) -> None:
        from adjit.codegen.entry.entry import begin, is_ready  # noqa: PLC0415 - LLVM is loaded by now; `import adjit` does without

        if not is_ready():
            begin()
            self._delayed += 1
            if self._delayed < PATIENCE:
                return
        with self._lock:  # waits if it is still being compiled
            if self._entry is None:
                self._create()

    def _create(self) -> None:
        from adjit.codegen.entry.entry import Entry  # noqa: PLC0415 - LLVM is loaded by now; `import adjit` does without

        self._entry = Entry(self._function._slow_path, self._function._name)
        self._install()
        self._exchange_call(self._entry)

    def _install(self) -> None:
        assert self._entry is not None
        checks = self._function._outside.checks()
        routes = [route for _, route in self._routes] if checks is not None else []
        self._entry.install(routes, checks or [], self._function._outside.kept())
