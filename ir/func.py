"""The IR itself: values, statements, blocks and functions.

    Func  = name, block, given, updates            one per compiled function
    Block = params, stmts, results, saving         also the region of `if`, `for`, `while` and `fuse`
    Stmt  = results, op, args, blocks              with the user's location, the phase and the origin
    arg   = Value | Literal

A region may use values of the enclosing blocks. Everything is immutable once built: passes build new Funcs and may share statements between
them. A value has no pointer to its definition; passes that need one build a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import Literal as OneOf

from .active import current_builder
from .effects import Effects
from .errors import TraceError
from .location import Location
from .operand import Operand
from .ops.base import Op
from .types import TensorType

if TYPE_CHECKING:
    from .ops.region import Region

Phase: TypeAlias = OneOf["forward", "backward"]


class Value(Operand):
    """A value of the IR. `name` is a hint from the user's source; the printer makes it unique."""

    __slots__ = ("type", "name")
    level = 3

    def __init__(self, type: TensorType, name: str | None = None) -> None:
        self.type = type
        self.name = name

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        builder = current_builder()
        if builder is None:
            raise TraceError(f"{op.name}: a traced value of type {self.type} was used outside of the function that traced it")
        return builder.apply(op, args)

    def __bool__(self) -> bool:
        raise TraceError(f"the truth of a traced value of type {self.type} is not known while tracing")

    def __repr__(self) -> str:
        return f"%{self.name or '?'}: {self.type}"


class Stmt:
    """`results = op args {blocks}`. The eager tape records statements too, with tensors in place of values."""

    __slots__ = ("op", "args", "results", "blocks", "location", "phase", "origin")

    def __init__(
        self,
        op: Op,
        args: tuple[Operand, ...],
        results: tuple[Operand, ...],
        blocks: tuple[Block, ...] = (),
        location: Location | None = None,
        phase: Phase = "forward",
        origin: Stmt | None = None,
    ) -> None:
        self.op = op
        self.args = args
        self.results = results
        self.blocks = blocks
        self.location = location
        self.phase: Phase = phase
        self.origin = origin  # the forward statement that a backward one belongs to

    @property
    def result(self) -> Operand:
        return self.results[0]

    @property
    def region(self) -> Region:
        """The op of a statement with blocks."""
        return self.op  # type: ignore[return-value]

    def replace(self, **changes: Any) -> Stmt:
        return Stmt(**{**{slot: getattr(self, slot) for slot in self.__slots__}, **changes})

    def __repr__(self) -> str:
        return f"{', '.join(map(repr, self.results))} = {self.op.name} {', '.join(map(repr, self.args))}"


class Block:
    """Statements in order, with the block's parameters and results. `saving` are further results, for the backward counterpart only."""

    __slots__ = ("params", "stmts", "results", "saving", "_free", "_effects", "_op_classes")

    def __init__(self, params: Sequence[Value], stmts: Sequence[Stmt], results: Sequence[Operand], saving: Sequence[Operand] = ()) -> None:
        self.params = tuple(params)
        self.stmts = tuple(stmts)
        self.results = tuple(results)
        self.saving = tuple(saving)
        self._free: tuple[Value, ...] | None = None
        self._effects: Effects | None = None
        self._op_classes: frozenset[type[Op]] | None = None

    def uses(self) -> Iterator[Operand]:
        """Every operand that this block reads, including nested blocks, in order."""
        for stmt in self.stmts:
            yield from stmt.args
            for block in stmt.blocks:
                yield from block.uses()
        yield from self.results
        yield from self.saving

    def op_classes(self) -> frozenset[type[Op]]:
        """The classes of all ops in this block, at any depth; cached, since blocks are immutable."""
        if self._op_classes is None:
            inside = [block.op_classes() for stmt in self.stmts for block in stmt.blocks]
            self._op_classes = frozenset({type(stmt.op) for stmt in self.stmts}).union(*inside)
        return self._op_classes

    def contains(self, *classes: type[Op]) -> bool:
        """Whether an op of one of these classes occurs, at any depth."""
        return any(issubclass(found, classes) for found in self.op_classes())

    def free(self) -> tuple[Value, ...]:
        """Values of the enclosing blocks that this block uses, in order of first use."""
        if self._free is None:
            self._free = self._find_free()
        return self._free

    def _find_free(self) -> tuple[Value, ...]:
        defined: set[int] = set()
        self._defined(defined)
        seen: dict[int, Value] = {}
        for use in self.uses():
            if isinstance(use, Value) and id(use) not in defined:
                seen.setdefault(id(use), use)
        return tuple(seen.values())

    def count(self) -> int:
        """The number of statements, with those of inner blocks."""
        return count(self.stmts)

    def _defined(self, into: set[int]) -> None:
        into.update(map(id, self.params))
        for stmt in self.stmts:
            into.update(map(id, stmt.results))
            for block in stmt.blocks:
                block._defined(into)


def count(stmts: Iterable[Stmt]) -> int:
    """The number of statements, with those of their blocks."""
    return sum(1 + sum(block.count() for block in stmt.blocks) for stmt in stmts)


class Func:
    """A whole function. `given` are parameters saved by the forward function; `updates` are those overwritten at the end (variables).

    `writes` are the values of another shape that were assigned to variables on the way: what is read of a variable after that.
    """

    __slots__ = ("name", "block", "given", "updates", "location", "plan", "writes")

    def __init__(
        self,
        name: str,
        block: Block,
        given: Sequence[Value] = (),
        updates: Sequence[tuple[Value, Operand]] = (),
        location: Location | None = None,
        plan: Any = None,
        writes: Sequence[tuple[Value, Operand]] = (),
    ) -> None:
        self.name = name
        self.block = block
        self.writes = tuple(writes)
        self.given = tuple(given)
        self.updates = tuple(updates)
        self.location = location
        self.plan = plan  # set by passes.buffers: where each value is stored

    @property
    def params(self) -> tuple[Value, ...]:
        return self.block.params

    @property
    def stmts(self) -> tuple[Stmt, ...]:
        return self.block.stmts

    @property
    def results(self) -> tuple[Operand, ...]:
        return self.block.results

    def outputs(self) -> tuple[Operand, ...]:
        """Everything that must be computed: results, saved values, and the new values of updated parameters."""
        return (*self.block.results, *self.block.saving, *(new for _, new in self.updates))

    def replace(self, **changes: Any) -> Func:
        return Func(**{**{slot: getattr(self, slot) for slot in self.__slots__}, **changes})

    def __str__(self) -> str:
        from .printer import print_func  # noqa: PLC0415 - the printer depends on the IR; the IR only provides str()

        return print_func(self)
