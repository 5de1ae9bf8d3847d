"""What an op with blocks is: one class that says how it is checked, run, differentiated and batched.

Those five are abstract: a region op that forgets one cannot be defined. What a region does is written in the vocabulary of whoever asks:
the verifier (`Rules`), reverse mode (`Reverse`), forward mode (`Forward`) and batching (`Batching`) each offer a few ways to treat blocks,
and the op chooses. The passes implement them, as codegen implements `Loops` for `Op.lower`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ..types import TensorType
from .base import Array, Op

if TYPE_CHECKING:
    from ..func import Block, Stmt
    from ..operand import Operand


class RunBlock(Protocol):
    """A block as the interpreter hands it to its op: called with the block's parameters, gives its results and what it saves."""

    saves: int

    def __call__(self, *arrays: Any) -> tuple[Any, ...]: ...


class Rules(Protocol):
    """The verifier, as a region op sees it: each of these raises a VerifyError that names the statement."""

    def blocks(self, stmt: Stmt, count: int) -> tuple[Block, ...]:
        """The blocks, if there are so many."""
        ...

    def same_types(self, operands: Sequence[Operand], types: Sequence[TensorType], what: str) -> None: ...
    def yields(self, block: Block, types: Sequence[TensorType], may_save: bool = False) -> None:
        """The block yields values of these types, and saves none unless it may."""
        ...

    def fail(self, message: str) -> NoReturn: ...


class Reverse(Protocol):
    """Reverse mode: brings the cotangents of a region's results to what it reads."""

    def branches(self, stmt: Stmt, may_keep: bool) -> None:
        """Blocks of which one runs, once. `may_keep`: the forward statement may give what the adjoint needs as further results."""
        ...

    def loop(self, stmt: Stmt) -> None:
        """The last block runs again and again, on what it carries."""
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


class Region(Op, abstract=True):
    """An op with blocks. Regions use values of the blocks around them; what they carry is in block parameters."""

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        missing = [name for name in dir(cls) if getattr(getattr(cls, name, None), "__isabstractmethod__", False)]
        if missing and not abstract:
            from .base import REGISTRY  # noqa: PLC0415 - what is refused is not registered

            REGISTRY.pop(cls.name, None)
            raise TypeError(f"{cls.__name__}: a region op without {', '.join(missing)}")

    @abstractmethod
    def check(self, rules: Rules, stmt: Stmt) -> None:
        """The type rule: of operands, blocks and results. What stands inside the blocks is checked by itself."""

    @abstractmethod
    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]: ...

    @abstractmethod
    def pull_back(self, reverse: Reverse, stmt: Stmt) -> None: ...

    @abstractmethod
    def push_forward(self, forward: Forward, stmt: Stmt) -> Any: ...

    @abstractmethod
    def batch_region(self, batching: Batching, stmt: Stmt) -> Any: ...
