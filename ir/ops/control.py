"""Control flow: `if`, `for`, `while` and `checkpoint`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..cost import Cost
from ..operand import Literal, Operand
from ..types import BOOL, I64, StackType, TensorType
from .base import Array, with_attributes
from .fused import Fuse, Rows, hosted_by
from .region import Carried, Region

__all__ = ["Checkpoint", "For", "Fuse", "If", "Region", "Rows", "While", "hosted_by"]

if TYPE_CHECKING:
    from ..func import Block, Stmt
    from .lowering import Batching, ControlFlow, Forward, Reverse, Rules, RunBlock

CONDITION, INDEX = TensorType(BOOL), TensorType(I64)
SCHEDULES = ("none", "sqrt", "binomial")  # of checkpoints; or an iteration count


class If(Region):
    """`%r = if %p { ... yield %a } else { ... yield %b }`."""

    is_control = True

    def check(self, rules: Rules, stmt: Stmt) -> None:
        rules.same_types(stmt.args, [CONDITION], "its operands")
        for block in rules.blocks(stmt, 2):
            rules.same_types(block.params, [], "the parameters of its blocks")
            rules.yields(block, [r.type for r in stmt.results])

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]() if arrays[0] else blocks[1]()

    def total(self, args: Sequence[Operand], blocks: Sequence[Cost]) -> Cost:
        return blocks[0].either(blocks[1])

    def flow(self, control: ControlFlow, stmt: Stmt) -> None:
        control.branches(stmt)

    def pull_back(self, reverse: Reverse, stmt: Stmt) -> None:
        reverse.branches(stmt, may_keep=True)

    def push_forward(self, forward: Forward, stmt: Stmt) -> Any:
        return forward.branches(stmt)

    def batch_region(self, batching: Batching, stmt: Stmt) -> Any:
        return batching.branches(stmt)


class Checkpoint(Region):
    """`%r = checkpoint { ... yield %x }`: runs the block; reverse mode recomputes it rather than store its values."""

    is_control = True

    def check(self, rules: Rules, stmt: Stmt) -> None:
        (body,) = rules.blocks(stmt, 1)
        rules.same_types(stmt.args, [], "its operands")
        rules.same_types(body.params, [], "the parameters of its block")
        rules.yields(body, [r.type for r in stmt.results])

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]()

    def total(self, args: Sequence[Operand], blocks: Sequence[Cost]) -> Cost:
        return blocks[0]

    def flow(self, control: ControlFlow, stmt: Stmt) -> None:
        control.inline(stmt)

    def pull_back(self, reverse: Reverse, stmt: Stmt) -> None:
        reverse.branches(stmt, may_keep=False)

    def push_forward(self, forward: Forward, stmt: Stmt) -> Any:
        return forward.branches(stmt)

    def batch_region(self, batching: Batching, stmt: Stmt) -> Any:
        return batching.shared(stmt)


class LoopRegion(Region, abstract=True):
    """The last block is the body. Each value that it saves becomes one stack, in results after the carries."""

    checkpoint: str | int
    is_control = True
    is_loop = True
    can_stop: ClassVar[bool] = True  # by Ctrl-C, or for lack of memory for saved values

    def check_body(self, rules: Rules, stmt: Stmt, body: Block, params: Sequence[TensorType], carried: Sequence[TensorType]) -> None:
        if not self.has_schedule():
            rules.fail(f'checkpoint must be "none", "sqrt", "binomial" or a number of iterations, not {self.checkpoint!r}')
        rules.same_types(body.params, params, "the parameters of its body")
        rules.yields(body, carried, may_save=True)
        rules.same_types(stmt.results, [*carried, *(StackType(x.type) for x in body.saving)], "its results")

    def has_schedule(self) -> bool:
        how = self.checkpoint
        return how in SCHEDULES if isinstance(how, str) else type(how) is int and how > 0

    def pull_back(self, reverse: Reverse, stmt: Stmt) -> None:
        reverse.loop(stmt)

    def push_forward(self, forward: Forward, stmt: Stmt) -> Any:
        return forward.loop(stmt)

    def carried(self, stmt: Stmt, i: int) -> Carried:
        body = stmt.blocks[-1]
        carries = len(body.results)
        if i >= carries:
            return Carried((), (), (body.saving[i - carries],))
        params = (block.params[-carries:][i] for block in stmt.blocks)
        return Carried((stmt.args[self.bounds + i],), tuple(params), (body.results[i],))


@with_attributes
class For(LoopRegion):
    """`%r = for %k in %start..%stop carry (%c = %init) { ... yield %next }`: k counts up by one. args: start, stop, *init.

    `checkpoint` bounds the memory that reverse mode uses.
    """

    checkpoint: str | int = "none"
    bounds = 2
    counters = 1

    def controls(self, stmt: Stmt) -> tuple[Operand, ...]:
        return stmt.args[:2]

    def check(self, rules: Rules, stmt: Stmt) -> None:
        (body,) = rules.blocks(stmt, 1)
        carried = [a.type for a in stmt.args[2:]]
        rules.same_types(stmt.args, [INDEX, INDEX, *carried], "its operands")
        self.check_body(rules, stmt, body, [INDEX, *carried], carried)

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        start, stop, *carry = arrays
        trips = (blocks[0](start.dtype.type(k), *carry) for k in range(int(start), int(stop)))
        return _gathered(carry, trips, blocks[-1].saves)

    def total(self, args: Sequence[Operand], blocks: Sequence[Cost]) -> Cost:
        start, stop = args[:2]
        if not (isinstance(start, Literal) and isinstance(stop, Literal)):
            return blocks[0].times(math.inf)
        return blocks[0].times(max(0, int(stop.value) - int(start.value)))

    def flow(self, control: ControlFlow, stmt: Stmt) -> None:
        control.for_loop(stmt)

    def batch_region(self, batching: Batching, stmt: Stmt) -> Any:
        return batching.for_loop(stmt)


@with_attributes
class While(LoopRegion):
    """`%r = while carry (%c = %init) { ... cond %p } do { ... yield %next }`. args: *init; blocks: condition, body."""

    checkpoint: str | int = "none"

    def controls(self, stmt: Stmt) -> tuple[Operand, ...]:
        return stmt.blocks[0].results

    def check(self, rules: Rules, stmt: Stmt) -> None:
        condition, body = rules.blocks(stmt, 2)
        carried = [a.type for a in stmt.args]
        rules.same_types(condition.params, carried, "the parameters of its condition")
        rules.yields(condition, [CONDITION])
        self.check_body(rules, stmt, body, carried, carried)

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        carry = list(arrays)
        trips = (blocks[1](*carry) for _ in iter(lambda: bool(blocks[0](*carry)[0]), False))
        return _gathered(carry, trips, blocks[-1].saves)

    def total(self, args: Sequence[Operand], blocks: Sequence[Cost]) -> Cost:
        return blocks[0].then(blocks[1]).times(math.inf)

    def flow(self, control: ControlFlow, stmt: Stmt) -> None:
        control.while_loop(stmt)

    def batch_region(self, batching: Batching, stmt: Stmt) -> Any:
        return batching.while_loop(stmt)


def _gathered(carry: list[Array], trips: Iterable[tuple[Any, ...]], saves: int) -> tuple[Any, ...]:
    """Run the iterations, which read `carry`; return the final carries, then a list of elements for each stack."""
    stacks: list[list[Any]] = [[] for _ in range(saves)]
    for out in trips:
        carry[:] = out[: len(carry)]
        for stack, element in zip(stacks, out[len(carry) :], strict=True):
            stack.append(element)
    return (*carry, *stacks)
