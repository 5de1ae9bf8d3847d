"""The definition of an op with blocks: one class that defines how it is checked, run, written, differentiated and batched.

Those methods are abstract: a region op that lacks one cannot be defined. Each is written against a protocol of its caller: the verifier
(`Rules`), whatever emits control flow (`ControlFlow`: Python source, native code), reverse mode (`Reverse`), forward mode (`Forward`) and
batching (`Batching`) each offer a few ways to treat blocks, and the op chooses. The passes implement them, as codegen implements `Loops`
for `Op.lower`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..cost import Cost
from ..records import NamedTuple
from .base import REGISTRY, Array, Op, Registers

if TYPE_CHECKING:
    from ..func import Stmt, Value
    from ..operand import Operand
    from .lowering import Batching, ControlFlow, Forward, Reverse, Rules, RunBlock


class Carried(NamedTuple):
    """The values that belong to the i-th result of a region: its initial value, and the parameter and yielded value of each block."""

    initial: tuple[Operand, ...]
    params: tuple[Value, ...]
    yields: tuple[Operand, ...]


class Region(Op, abstract=True):
    """An op with blocks. Regions use values of the enclosing blocks; carried values are block parameters."""

    takes_stored = True
    bounds: ClassVar[int] = 0  # operands before the initial values of a loop's carries
    counters: ClassVar[int] = 0  # parameters of a loop's body before the carries
    can_narrow: ClassVar[bool] = True  # whether single results may be dropped

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        missing = [name for name in dir(cls) if getattr(getattr(cls, name, None), "__isabstractmethod__", False)]
        if missing and not abstract:
            REGISTRY.pop(cls.name, None)
            raise TypeError(f"{cls.__name__}: a region op must define {', '.join(missing)}")

    @abstractmethod
    def check(self, rules: Rules, stmt: Stmt) -> None:
        """The type rule for operands, blocks and results. Statements inside the blocks are checked separately."""

    @abstractmethod
    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]: ...

    @abstractmethod
    def total(self, args: Sequence[Operand], blocks: Sequence[Cost]) -> Cost:
        """What it costs, given the cost of running each block once."""

    @abstractmethod
    def flow(self, control: ControlFlow, stmt: Stmt) -> None:
        """Emit the code that runs the blocks: Python source or native code."""

    @abstractmethod
    def pull_back(self, reverse: Reverse, stmt: Stmt) -> None: ...

    @abstractmethod
    def push_forward(self, forward: Forward, stmt: Stmt) -> Any: ...

    @abstractmethod
    def batch_region(self, batching: Batching, stmt: Stmt) -> Any: ...

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        self.flow(kernel, stmt)  # type: ignore[arg-type]

    def carried(self, stmt: Stmt, i: int) -> Carried:
        """Everything that the i-th result depends on, except the controls."""
        return Carried((), (), tuple(block.results[i] for block in stmt.blocks))

    def controls(self, stmt: Stmt) -> tuple[Operand, ...]:
        """The operands that decide whether, and how many times, the blocks run."""
        return stmt.args
