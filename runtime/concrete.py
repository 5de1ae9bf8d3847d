"""One compiled specialisation of a function: its program, its native code, and how a call's result is built."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from adjit.ir.func import Func
from adjit.ir.guards import Guard
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, Op
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import TensorType
from adjit.ir.world import world
from adjit.tracer.trace import TracedProgram

from .convention import Convention
from .executable import CompiledCall, Executable, prepared
from .recording import listening
from .stores import Store
from .tensor import Tensor, result_classes, wrap
from .variable import Variable, seen

if TYPE_CHECKING:
    from .signature import Signature

observers: list[Callable[[ConcreteFunction, Signature], None]] = []  # called with each new specialisation and what it is made for


class ConcreteFunction:
    """A traced program with its native code. `used` is the stamp of the last call, for the bounded cache."""

    __slots__ = (
        "program",
        "executable",
        "convention",
        "used",
        "alias",
        "alternative",
        "dropped",
        "guards",
        "effects",
        "_types",
        "_classes",
        "_finish",
        "_closed_over",
    )

    def __init__(
        self,
        program: TracedProgram,
        seconds: dict[str, float],
        argument_stores: Sequence[Store],
        closed_over: set[Store],
        threads: int | None = None,
    ) -> None:
        self.program = program
        self.executable = Executable(program.func, seconds, threads, _exchange(program.func))
        self.convention = _convention(program, self.executable, argument_stores, closed_over)
        self._types = [None if any(map(is_symbolic, t.shape)) else t for t in self.convention.results]  # None: known only at each call
        self._classes = result_classes(program)
        self.used = 0
        self.effects: list[Op] | None = None  # its ops with effects; found when a call fails
        self.guards: tuple[Guard, ...] = ()  # conditions on the sizes of a call, besides being in range
        self.dropped = False  # evicted from the cache: no later call may use it
        self.alternative: ConcreteFunction | None = None  # same key, but arguments and closed-over variables coincide differently
        self._finish = finisher(program)
        self._closed_over = {v.store: i for i, v in enumerate(self.convention.variables) if v.store is not None}
        self.alias = self.coincidence(argument_stores)

    @property
    def closed_over(self) -> list[Store]:
        """Return the variables that the program reaches other than through an argument."""
        return list(self._closed_over)

    def coincidence(self, argument_stores: Sequence[Store]) -> tuple[int, ...]:
        """For each variable passed as an argument, return the index of the same closed-over variable (-1: none)."""
        return tuple(self._closed_over.get(store, -1) for store in argument_stores)

    def run(self, arrays: list[Array], stores: Sequence[Store] = ()) -> Any:
        """Call the native code. `arrays` are those of the traced arguments; the list is consumed."""
        return self._finish(self._wrapped(self.convention.run(arrays, stores)))

    def finish(self, arrays: Sequence[Array]) -> Any:
        """Build a call's return value from the arrays of its results."""
        return self._finish(self._wrapped(arrays))

    def run_recorded(self, leaves: Sequence[Operand], stores: Sequence[Store]) -> Any:
        """Make the same call and report it to the active tapes. `leaves` are the traced arguments as tensors."""
        read: list[Operand] = []

        def observe(owners: list[Store], arrays: list[Array]) -> None:
            for store, data in zip(owners, arrays, strict=True):
                value = seen(store, data)
                read.append(value)
                for recorder in listening.recorders:
                    recorder.read(Variable.of(store), value)

        arrays = [prepared(a.buffer) for a in leaves if isinstance(a, Tensor)]
        results = self._wrapped(self.convention.run(arrays, stores, observe))
        call, args = CompiledCall(self.executable), (*leaves, *read, *map(wrap, self.convention.constants))
        for recorder in listening.recorders:
            recorder.applied(call, args, tuple(results))
        return self._finish(results)

    def _wrapped(self, arrays: Sequence[Array]) -> list[Tensor]:
        out = []
        for array, type, cls in zip(arrays, self._types, self._classes):
            tensor: Tensor = cls.__new__(cls)
            tensor.buffer = array
            tensor.type = TensorType(array.dtype, array.shape) if type is None else type
            out.append(tensor)
        return out


def _exchange(func: Func) -> str | None:
    """Return how the collectives of a function are compiled; None if it has none."""
    if "adjit.ir.ops.collective" not in sys.modules:
        return None
    from .agreement import expected_exchange  # noqa: PLC0415 - few programs have several ranks

    return expected_exchange(func, world())


def _convention(program: TracedProgram, executable: Executable, given: Sequence[Store], closed_over: set[Store]) -> Convention:
    """Return the convention of a function; collectives are compared with those of other ranks before the first call."""
    if executable.exchange is None:
        return Convention(program, executable.native, given, closed_over)
    from .agreement import AgreeingConvention  # noqa: PLC0415 - few programs have several ranks

    return AgreeingConvention(program, executable, given, closed_over)


def finisher(program: TracedProgram) -> Callable[[list[Tensor]], Any]:
    """Return `program.rebuild`, as a Python expression where the result consists of tuples, lists and dicts: it runs at every call."""
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
    build: Callable[[list[Tensor]], Any] = eval(f"lambda r: {stack[0]}", kept)  # made only of indices, brackets and our own labels
    return build
