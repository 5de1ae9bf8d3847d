"""One compiled specialisation of a function: how a call's arrays, variables and captured constants meet the native code.

Owns the binding of variables (by argument position, or the closed-over object itself) and the in-place update of their buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.tracer.trace import Program

from .executable import Call, Executable, prepared
from .recording import listening
from .tensor import Tensor, wrap
from .variable import Store, Variable, updating

if TYPE_CHECKING:
    from adjit.codegen.entry import Node, Route


class ConcreteFunction:
    """A traced program with its native code. `used` is a stamp of the last call, for the bounded cache."""

    __slots__ = (
        "program", "executable", "used", "alias", "alternative",
        "_native", "_types", "_finish", "_variables", "_writes", "_captures", "_closed_over",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        seconds: dict[str, float],
        argument_stores: Sequence[Store],
        closed_over: set[Store],
        threads: int | None = None,
    ) -> None:
        self.program = program
        self.executable = Executable(program.func, seconds, threads)
        self.used = 0
        self.alternative: ConcreteFunction | None = None  # of the same key, for another coincidence of arguments and closed-over variables
        self._native = self.executable.native
        self._types = tuple(r.type for r in program.func.results)
        self._finish = finisher(program)
        self._captures = program.captures
        written = {id(param) for param, _ in program.func.updates}
        params = program.func.params[program.arguments :]
        # (the store itself, or None and the position among the variables given as arguments; whether it is updated)
        self._variables: list[tuple[Store | None, int, bool]] = []
        for cell, param in zip(program.cells, params, strict=False):
            assert isinstance(cell, Store)
            bound = cell in argument_stores and cell not in closed_over
            position = argument_stores.index(cell) if bound else -1
            self._variables.append((None if bound else cell, position, id(param) in written))
        self._writes = any(updated for *_, updated in self._variables)
        self._closed_over = {store: i for i, (store, *_) in enumerate(self._variables) if store is not None}
        self.alias = self.coincidence(argument_stores)

    @property
    def closed_over(self) -> list[Store]:
        """The variables that it reaches other than through an argument."""
        return list(self._closed_over)

    def coincidence(self, argument_stores: Sequence[Store]) -> tuple[int, ...]:
        """For each variable given as an argument, which closed-over variable it is (-1: none)."""
        return tuple(self._closed_over.get(store, -1) for store in argument_stores)

    def run(self, arrays: list[Array], stores: Sequence[Store] = ()) -> Any:
        """Call the native code. `arrays` are those of the traced arguments; the list is used up."""
        if self._variables:
            with updating:
                for store, position, updated in self._variables:
                    owner = stores[position] if store is None else store
                    arrays.append(owner.exclusive() if updated else owner.data)
                if self._writes:
                    arrays += self._captures
                    return self._finish(self._wrapped(self._native(arrays)))
        arrays += self._captures
        return self._finish(self._wrapped(self._native(arrays)))

    def separate(self, arrays: Sequence[Array], stores: Sequence[Store] = ()) -> list[Array]:
        """What a call passes to the native code, with copies of the variables that it writes: running it changes nothing."""
        with updating:
            owners = [(stores[position] if store is None else store, updated) for store, position, updated in self._variables]
            return [*arrays, *(owner.data.copy() if updated else owner.data for owner, updated in owners), *self._captures]

    def route(self, arguments: Sequence[Sequence[Node]], tensor_class: type[Tensor]) -> Route | None:
        """The table by which the native entry runs this specialisation; None where it cannot, or should not hold the GIL for so long.

        `arguments` are the nodes of each; tensors of the result are of `tensor_class`.
        """
        from adjit.codegen.entry import LIST, MAX_BUFFERS, Route  # noqa: PLC0415 - LLVM is loaded by now
        from adjit.codegen.native import Native  # noqa: PLC0415 - LLVM is loaded by now

        from .nodes import result_nodes  # noqa: PLC0415 - LLVM is loaded by now

        program, native = self.program, self._native
        structure = result_nodes(program.out_tree.entries)
        too_many = len(program.func.params) + len(program.func.results) > MAX_BUFFERS
        if structure is None or too_many or program.static or not isinstance(native, Native) or not native.enterable:
            return None
        if any(store is None for store, *_ in self._variables):
            return None
        # while it runs without the GIL, other threads may exchange what variables, lists and dicts hold
        if not native.quick and (self._variables or any(node.keys or node.tag == LIST for nodes in arguments for node in nodes)):
            return None
        variables = [(store, updated) for store, _, updated in self._variables]
        return Route(arguments, variables, self._captures, self._types, structure, tensor_class, native)

    def operands(self, arrays: Sequence[Array], stores: Sequence[Store] = ()) -> list[Array]:
        """Everything that the program takes, for whoever runs it otherwise; nothing here is written to."""
        with updating:
            values = [(stores[position] if store is None else store).data.copy() for store, position, _ in self._variables]
        return [*arrays, *values, *self._captures]

    def finish(self, arrays: Sequence[Array]) -> Any:
        """What a call returns, from the arrays of its results."""
        return self._finish(self._wrapped(arrays))

    def run_recorded(self, leaves: Sequence[Operand], stores: Sequence[Store]) -> Any:
        """The same call, announced to the tapes that listen. `leaves` are the traced arguments as tensors."""
        with updating:
            owners = [stores[position] if store is None else store for store, position, _ in self._variables]
            read = [Variable.of(owner).read_operand() for owner in owners]
            args = (*leaves, *read, *map(wrap, self._captures))
            arrays = [prepared(a.data) for a in args if isinstance(a, Tensor)]
            for i, (owner, (*_, updated)) in enumerate(zip(owners, self._variables, strict=True), len(leaves)):
                if updated:
                    arrays[i] = owner.exclusive()
            results = self._wrapped(self._native(arrays))
        call = Call(self.executable)
        for recorder in listening.recorders:
            recorder.applied(call, args, tuple(results))
        return self._finish(results)

    def _wrapped(self, arrays: Sequence[Array]) -> list[Tensor]:
        out = []
        for array, type in zip(arrays, self._types):
            tensor: Tensor = Tensor.__new__(Tensor)
            tensor.data = array
            tensor.type = type
            out.append(tensor)
        return out


def finisher(program: Program) -> Callable[[list[Tensor]], Any]:
    """`program.rebuild`, as a Python expression where the result is made of tuples, lists and dicts: this is done at every call."""
    entries = program.out_tree.entries
    if program.static or len(entries) > 200 or any(e is not None and e.cls not in (tuple, list, dict, NoneType) for e in entries):
        return program.rebuild
    stack: list[str] = []
    kept: dict[str, Any] = {}
    leaf = program.out_tree.leaves
    for entry in reversed(entries):
        if entry is None:
            leaf -= 1
            stack.append(f"r[{leaf}]")
            continue
        children = [stack.pop() for _ in range(entry.arity)]
        if entry.cls is tuple:
            stack.append(f"({''.join(f'{c}, ' for c in children)})")
        elif entry.cls is list:
            stack.append(f"[{', '.join(children)}]")
        elif entry.cls is NoneType:
            stack.append("None")
        else:
            names = entry.kept[0]
            labels = [f"k{len(kept) + i}" for i in range(len(names))]
            kept.update(zip(labels, names, strict=True))
            stack.append(f"{{{', '.join(f'{k}: {c}' for k, c in zip(labels, children, strict=True))}}}")
    build: Callable[[list[Tensor]], Any] = eval(f"lambda r: {stack[0]}", kept)  # of indices, brackets and our own labels alone
    return build
