"""The calling convention of one compiled specialisation: what native code takes besides the arguments, and how a call obtains it.

A single description (`Convention`) serves both kinds of call: through Python, and through the native entry, whose table is built by
`route`. Native code takes the arrays of the arguments, those of the variables, and the captured constants, in this order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from adjit.ir.errors import StateError
from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import symbols_of
from adjit.ir.types import TensorType
from adjit.tracer.trace import TracedProgram

from .executable import NativeCode
from .stores import Claim, OpenStore, Store, separate, snapshot

if TYPE_CHECKING:
    from adjit.codegen.entry.route import Node, Route
    from adjit.ir.guards import Guard


class ReshapedError(StateError):
    """A variable no longer has the shape that the program was compiled for: a call of the function traces it again."""

    def __init__(self) -> None:
        super().__init__(
            "a variable has another shape now than when this program was compiled; call the function itself, which is traced again"
        )


class Bound(NamedTuple):
    """A variable of the program: either a closed-over store, or a `position` among the variables passed as arguments."""

    store: Store | None
    position: int
    updated: bool
    given: TensorType | None  # if its shape may change: the type that the program takes
    result: int | None  # if the program changes its shape: the result that is its new value

    def found(self, given: Sequence[Store]) -> Store:
        return given[self.position] if self.store is None else self.store


class Convention:
    """How a specialisation is called."""

    __slots__ = ("native", "variables", "constants", "results", "is_general", "_program", "_updated", "_claim", "_release", "_is_open")

    def __init__(self, program: TracedProgram, native: NativeCode, given: Sequence[Store], closed_over: set[Store]) -> None:
        """`given` are the variables among the arguments of the traced call."""
        self.native = native
        self.constants = program.captures
        self.results: tuple[TensorType, ...] = tuple(r.type for r in program.func.results)
        self.is_general = bool(symbols_of(program.func))  # whether sizes are known only at each call
        self._program = program
        written = {id(param) for param, _ in program.func.updates}
        apart = {id(cell): k - len(program.reshaped) for k, cell in enumerate(program.reshaped)}
        self.variables: list[Bound] = []
        for cell, param in zip(program.cells, program.func.params[program.arguments :], strict=False):
            assert isinstance(cell, Store)
            is_argument = cell in given and cell not in closed_over
            store, position = (None, given.index(cell)) if is_argument else (cell, -1)
            needed = param.type if isinstance(cell, OpenStore) else None
            self.variables.append(Bound(store, position, id(param) in written or id(cell) in apart, needed, apart.get(id(cell))))
        self._is_open = any(v.given is not None for v in self.variables)
        self._updated = [v.updated for v in self.variables]
        self._claim = None if any(v.store is None for v in self.variables) else Claim(self.stores(()), self._updated)
        if self.variables:
            from adjit.codegen.entry.entry import locks  # noqa: PLC0415 - LLVM is loaded by now; `import adjit` does without

            self._release = locks().release

    def stores(self, given: Sequence[Store]) -> list[Store]:
        """Return the variables of a call; `given` are those among its arguments."""
        return [v.found(given) for v in self.variables]

    def run(
        self, arrays: list[Array], given: Sequence[Store] = (), observe: Callable[[list[Store], list[Array]], None] | None = None
    ) -> list[Array]:
        """Call the native code and return its results. `arrays` is consumed. `observe` receives the variable values that the call reads."""
        if not self.variables:
            arrays += self.constants
            return self.native(arrays)
        claim = self._claim or Claim(self.stores(given), self._updated)
        release, table, count, held = self._release, claim.table, claim.count, ctypes.c_int64(0)
        try:
            claim.take(held)
            if observe is not None:
                observe(claim.stores, claim.values())
            taken = claim.arrays()
            if self._is_open:
                self._check(taken)
            arrays += taken
            arrays += self.constants
            if claim.reads:
                release(table, count, 0, held)  # writers will see that these arrays are referenced, and copy
            return self._assigned(claim.stores, self.native(arrays)) if self._is_open else self.native(arrays)
        finally:  # a single C call, which no signal can precede
            release(table, count, 1, held)

    def fits(self, given: Sequence[Store]) -> bool:
        """Whether the variables of a call have the shapes that the program was compiled for."""
        return not self._is_open or all(v.given is None or v.given.shape == v.found(given).type.shape for v in self.variables)

    def _check(self, arrays: Sequence[Array]) -> None:
        if any(v.given is not None and v.given.shape != array.shape for v, array in zip(self.variables, arrays, strict=True)):
            raise ReshapedError()

    def _assigned(self, stores: Sequence[Store], results: list[Array]) -> list[Array]:
        """Give variables the results that are their new values. Call with the locks held."""
        for v, store in zip(self.variables, stores, strict=True):
            if v.result is not None:
                store.assign(separate(results[v.result]))
        return results

    def agree(self) -> None:
        """Compare the program with those of other ranks, before the first call."""

    def agreed(self, number: int) -> int:
        """The number of rank 0, if other ranks take part in the calls."""
        return number

    def copies(self, arrays: Sequence[Array], given: Sequence[Store] = (), every: bool = False) -> list[Array]:
        """Return the arrays passed to the native code, with copies of the variables that it writes (or of `every` variable)."""
        held = snapshot(self.stores(given))
        self._check(held)
        return [*arrays, *(a.copy() if every or v.updated else a for v, a in zip(self.variables, held, strict=True)), *self.constants]

    def route(self, arguments: Sequence[Sequence[Node]], classes: tuple[type, type], guards: Sequence[Guard]) -> Route | None:
        """Return the table by which the native entry makes this call, or None if it cannot.

        `arguments` holds the nodes of each argument; `classes` are those of tensors, and of the weakly typed ones
        that represent Python numbers; `guards` are conditions on the sizes.
        """
        from adjit.codegen.entry.route import ARRAY, MAX_BUFFERS, Route, VariableSlot, varies  # noqa: PLC0415 - LLVM is loaded by now
        from adjit.codegen.native import Native  # noqa: PLC0415 - LLVM is loaded by now

        from .nodes import result_nodes  # noqa: PLC0415 - LLVM is loaded by now

        program, native = self._program, self.native
        if program.static:
            return None
        structure = result_nodes(program.out_tree.entries, [classes[weak] for weak in program.weak])
        symbols = symbols_of(program.func)
        too_many = len(program.func.params) + len(program.func.results) + len(symbols) + 2 > MAX_BUFFERS
        if structure is None or too_many or self._is_open or not isinstance(native, Native) or not native.enterable:
            return None
        formulas = None
        if self.is_general:  # the nodes hold the sizes of one call
            from adjit.codegen.entry.formulas import Formulas  # noqa: PLC0415 - only for such programs

            formulas = Formulas(list(symbols.values()), [type.shape for type in self.results if varies(type)], guards)
            if not formulas.fits:
                return None
            types = iter([param.type for param in program.func.params[: program.arguments]])
            arguments = [[node.retyped(next(types)) if node.tag == ARRAY else node for node in nodes] for nodes in arguments]
        places = [VariableSlot(v.store, v.store.address, v.updated) for v in self.variables if v.store is not None]
        if len(places) < len(self.variables):
            return None
        return Route(arguments, places, self.constants, self.results, structure, classes, native, symbols, formulas)
