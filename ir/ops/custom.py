"""`custom_gradient` in the IR: passes values through unchanged, with a user-defined pullback.

    args: inputs, then values, then whatever the pullback reads        results: the values

The pullback is a block without free values: its parameters are the operands that it reads and the cotangents of the results, its results
the cotangents of some of the inputs. Everything that it needs is an operand, so that passes may rename, move and clone the statement.
Derivatives are taken of functions as traced; `passes.autodiff.transparent` then drops the statement, so native code never contains one.

The forward derivative is a second block, of the operands that it reads and the tangents of the inputs. If the user gave none, forward mode
transposes the pullback (`passes.autodiff.transpose`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ..active import current_builder
from ..errors import GradientError, ShapeError
from ..func import Block, Stmt, Value
from ..types import TensorType
from .base import Array, Op, Writing, perform, with_attributes

if TYPE_CHECKING:
    from ..operand import Operand


NO_REVERSE = "its derivative is not linear in the tangents, so that reverse mode cannot follow it"
NO_FORWARD = "its gradient is not linear in the upstream gradients, so that forward mode cannot follow it; use reverse mode (grad, vjp)"

Make: TypeAlias = "Callable[[], tuple[Block, Block | None]]"


@with_attributes
class CustomGradient(Op):
    """Passes its `values` operands through. `pulled` are the positions of the inputs that the block yields cotangents of."""

    takes_stored = True
    is_transparent = True
    function: str  # the name of the user's function
    inputs: int
    values: int
    pulled: tuple[int, ...]
    block: ClassVar[Block]  # per object, and not a field: it is not an attribute in the text of the IR, but follows the operands
    push: ClassVar[Block | None]  # the block for forward mode, if there is one

    name = "custom_gradient"

    @staticmethod
    def of(function: str, inputs: int, values: int, pulled: Sequence[int], block: Block, push: Block | None = None) -> CustomGradient:
        op = CustomGradient(function, inputs, values, tuple(pulled))
        object.__setattr__(op, "block", block)
        object.__setattr__(op, "push", push)
        return op

    @staticmethod
    def deferred(function: str, inputs: int, values: int, pulled: Sequence[int], make: Make) -> CustomGradient:
        """An op whose blocks `make` builds when a derivative is taken: a derivative may contain the function itself."""
        op = Deferred(function, inputs, values, tuple(pulled))
        object.__setattr__(op, "make", make)
        return op

    @staticmethod
    def unknown(function: str, inputs: int, values: int, pulled: Sequence[int]) -> CustomGradient:
        """An op parsed from a text without its derivative."""

        def make() -> tuple[Block, Block | None]:
            raise GradientError(f"{function}: its derivative had not been built when the IR was printed")

        return CustomGradient.deferred(function, inputs, values, pulled, make)

    @property
    def blocks(self) -> tuple[Block, Block | None] | None:
        """Both blocks, if they have been built."""
        known = self.__dict__
        return (known["block"], known["push"]) if "block" in known else None

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        inputs, values, read = types[: self.inputs], types[self.inputs : self.inputs + self.values], types[self.inputs + self.values :]
        if self.blocks is not None:
            floats = [v for v in values if v.is_inexact]
            self.check("pull", self.blocks[0], [*read, *floats], [inputs[i] for i in self.pulled])
            if self.blocks[1] is not None:
                self.check("push", self.blocks[1], [*read, *inputs], floats)
        return values

    def check(self, what: str, block: Block, given: Sequence[TensorType], wanted: Sequence[TensorType]) -> None:
        if [p.type for p in block.params] != [*given] or [r.type for r in block.results] != [*wanted]:
            raise ShapeError(f"custom_gradient: {what} of {self.function} must take ({join(given)}) and return ({join(wanted)})")

    def evaluate(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays[self.inputs : self.inputs + self.values]

    def passed(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args[self.inputs : self.inputs + self.values]

    def python(self, write: Writing, *args: Operand) -> Any:
        nodes = [write.array(x) for x in self.passed(args)]
        return nodes[0] if len(nodes) == 1 else nodes

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        if self.push is None:
            raise GradientError(f"{self.function}: a custom_gradient that was not given its forward derivative by passes.transpose")
        inputs, read = args[: self.inputs], args[self.inputs + self.values :]
        given = [x.literal(0.0, x.type) if d is None else d for x, d in zip(inputs, tangents)]
        found = iter(instantiate(self.push, [*read, *given]))
        return [next(found) if r.type.is_inexact else None for r in results]

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: Sequence[bool]
    ) -> list[Operand | None]:
        read = args[self.inputs + self.values :]
        given = [r.literal(0.0, r.type) if c is None else c for r, c in zip(results, cotangents, strict=True) if r.type.is_inexact]
        out: list[Operand | None] = [None] * len(args)
        for position, d in zip(self.pulled, instantiate(self.block, [*read, *given]), strict=True):
            out[position] = d
        return out


class Deferred(CustomGradient, abstract=True):
    """A `CustomGradient` whose blocks have not been built yet."""

    def __getattr__(self, name: str) -> Any:
        if name not in ("block", "push"):
            raise AttributeError(name)
        block, push = self.__dict__["make"]()
        object.__setattr__(self, "block", block)
        object.__setattr__(self, "push", push)
        return block if name == "block" else push


def join(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types))


def instantiate(block: Block, args: Sequence[Operand]) -> list[Operand]:
    """Emit the statements of a block without free values into the active builder, with `args` for its parameters; return its results."""
    table: dict[int, Operand] = {id(p): a for p, a in zip(block.params, args, strict=True)}
    for stmt in block.stmts:
        operands = tuple(table.get(id(a), a) for a in stmt.args)
        out: Any
        if stmt.blocks:
            builder = current_builder()
            assert builder is not None
            out = builder.emit(stmt.op, operands, tuple(clone(b, table) for b in stmt.blocks), [r.type for r in stmt.results])
        else:
            out = perform(stmt.op, *operands)
        for old, new in zip(stmt.results, out if isinstance(out, tuple) else (out,), strict=True):
            table[id(old)] = new
    return [table.get(id(r), r) for r in block.results]


def clone(block: Block, table: dict[int, Operand]) -> Block:
    """A copy of the block with new values for those that it defines; `table` maps values of the enclosing blocks."""

    def fresh(values: Sequence[Any]) -> tuple[Any, ...]:
        out = tuple(Value(v.type, v.name) for v in values)
        table.update((id(old), new) for old, new in zip(values, out, strict=True))
        return out

    def renamed(operands: Sequence[Operand]) -> tuple[Operand, ...]:
        return tuple(table.get(id(x), x) for x in operands)

    params = fresh(block.params)
    stmts = []
    for stmt in block.stmts:
        args, blocks = renamed(stmt.args), tuple(clone(b, table) for b in stmt.blocks)
        stmts.append(Stmt(stmt.op, args, fresh(stmt.results), blocks, stmt.location, stmt.phase, stmt.origin))
    return Block(params, stmts, renamed(block.results), renamed(block.saving))
