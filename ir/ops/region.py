"""The definition of an op with blocks: one class that defines how it is checked, run, written, differentiated and batched.

Those methods are abstract: a region op that lacks one cannot be defined. Each is written against a protocol of its caller: the verifier
(`Rules`), whatever emits control flow (`ControlFlow`: Python source, native code), reverse mode (`Reverse`), forward mode (`Forward`) and
batching (`Batching`) each offer a few ways to treat blocks, and the op chooses. The passes implement them, as codegen implements `Loops`
for `Op.lower`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol

from ..types import TensorType
from .base import REGISTRY, Array, Op, Registers

if TYPE_CHECKING:
    from ..func import Block, Stmt, Value
    from ..operand import Operand


class RunBlock(Protocol):
    """A block as the interpreter passes it to its op: called with the block's parameters, returns its results and saved values."""

    saves: int

    def __call__(self, *arrays: Any) -> tuple[Any, ...]: ...


class Rules(Protocol):
    """The verifier's interface for region ops: each method raises a VerifyError that names the statement."""

    def blocks(self, stmt: Stmt, count: int) -> tuple[Block, ...]:
        """The blocks, after checking their number."""
        ...

    def same_types(self, operands: Sequence[Operand], types: Sequence[TensorType], what: str) -> None: ...
    def yields(self, block: Block, types: Sequence[TensorType], may_save: bool = False) -> None:
        """Check that the block yields values of these types, and saves none unless it may."""
        ...

    def fail(self, message: str) -> NoReturn: ...


class Reverse(Protocol):
    """Reverse mode: propagates the cotangents of a region's results to the values that it reads."""

    def branches(self, stmt: Stmt, may_keep: bool) -> None:
        """Blocks of which one runs, once. `may_keep`: the forward statement may return what the adjoint needs as further results."""
        ...

    def loop(self, stmt: Stmt) -> None:
        """The last block runs repeatedly, on its carries."""
        ...


class Forward(Protocol):
    """Forward mode: the same region with tangents beside the values."""

    def branches(self, stmt: Stmt) -> Any: ...
    def loop(self, stmt: Stmt) -> Any: ...


class Batching(Protocol):
    """`vmap`: the region on a batch of examples."""

    def shared(self, stmt: Stmt) -> Any:
        """The same statement with its blocks batched: all examples run the same blocks."""
        ...

    def branches(self, stmt: Stmt) -> Any: ...
    def for_loop(self, stmt: Stmt) -> Any: ...
    def while_loop(self, stmt: Stmt) -> Any: ...


class ControlFlow(Protocol):
    """What runs a region's blocks: Python source (`ir.source`), the main function and the register kernels of native code."""

    def inline(self, stmt: Stmt) -> None:
        """One block, which runs once."""
        ...

    def branches(self, stmt: Stmt) -> None: ...
    def for_loop(self, stmt: Stmt) -> None: ...
    def while_loop(self, stmt: Stmt) -> None: ...
    def fused(self, stmt: Stmt) -> None:
        """One block that runs once, as one loop nest in native code."""
        ...

    def rows(self, stmt: Stmt) -> None:
        """The same, as loop nests that run row by row."""
        ...


class Carried(NamedTuple):
    """What belongs to the i-th result of a region: its initial value, and the parameter and yielded value of each block."""

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
            raise TypeError(f"{cls.__name__}: a region op without {', '.join(missing)}")

    @abstractmethod
    def check(self, rules: Rules, stmt: Stmt) -> None:
        """The type rule for operands, blocks and results. Statements inside the blocks are checked separately."""

    @abstractmethod
    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]: ...

    @abstractmethod
    def flow(self, control: ControlFlow, stmt: Stmt) -> None:
        """Have the blocks run, in Python source or native code."""

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
