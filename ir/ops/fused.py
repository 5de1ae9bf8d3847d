"""Regions that group statements for native code: `fuse`, one loop nest, and `rows`, loop nests that run row by row.

Both mean the same as the statements alone. Passes create them, after differentiation and batching.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..cost import Cost
from ..effects import effects
from ..errors import GradientError, UnsupportedError
from ..sizes import at_least
from ..types import BOOL, Shape, TensorType
from .base import Array, View
from .maps import Map
from .reduce import Reduce
from .region import Region
from .shape import Broadcast, Pad, Reshape, Slice, Transpose

if TYPE_CHECKING:
    from ..func import Block, Stmt
    from ..operand import Operand
    from .lowering import Batching, ControlFlow, Forward, Reverse, Rules, RunBlock


class Group(Region, abstract=True):
    """One block, without parameters, that runs once."""

    def interpret(self, blocks: Sequence[RunBlock], *arrays: Array) -> tuple[Any, ...]:
        return blocks[0]()

    def check_block(self, rules: Rules, stmt: Stmt) -> Block:
        (body,) = rules.blocks(stmt, 1)
        rules.same_types(stmt.args, [], "its operands")
        rules.same_types(body.params, [], "the parameters of its block")
        rules.yields(body, [r.type for r in stmt.results])
        if len({id(r) for r in body.results}) < len(body.results):
            rules.fail("it yields one value twice")
        return body

    def total(self, args: Sequence[Operand], blocks: Sequence[Cost]) -> Cost:
        return blocks[0]

    def pull_back(self, reverse: Reverse, stmt: Stmt) -> None:
        raise GradientError(f"{self.name}: derivatives are taken before statements are fused").at(stmt.location)

    def push_forward(self, forward: Forward, stmt: Stmt) -> Any:
        raise GradientError(f"{self.name}: derivatives are taken before statements are fused").at(stmt.location)

    def batch_region(self, batching: Batching, stmt: Stmt) -> Any:
        raise UnsupportedError(f"{self.name}: functions are batched before their statements are fused").at(stmt.location)


class Fuse(Group):
    """`%a, %b = fuse { ... yield %x, %y }`: the statements inside become one loop nest over one domain.

    One of them may be the host, an op that stores each element of its result once (a convolution, say): the others, all elementwise, are
    computed where it stores.
    """

    is_nest = True

    def flow(self, control: ControlFlow, stmt: Stmt) -> None:
        control.fused(stmt)

    def check(self, rules: Rules, stmt: Stmt) -> None:
        body = self.check_block(rules, stmt)
        made = {id(r) for s in body.stmts for r in s.results}
        if any(id(r) not in made for r in body.results):
            rules.fail("it yields a value that is not computed inside")
        host = hosted_by(stmt)
        if host is not None:
            self._check_hosted(rules, body, host)
            return
        domains = set()
        for inner in body.stmts:
            if not isinstance(inner.op, Map | Reduce | Pad) or effects(inner).ordered or len(inner.results) != 1:
                rules.fail(f"{inner.op.name} is not allowed inside fuse: only elementwise ops, reductions and pads without effects are")
            domains.add(loop_domain(inner).shape)
        if len(domains) > 1:
            rules.fail(f"its statements run over different domains: {', '.join(map(str, sorted(domains)))}")
        self._check_reads(rules, body, made)

    def _check_reads(self, rules: Rules, body: Block, made: set[int]) -> None:
        """Inside the loop nest, a reduction has no value yet, and a pad reads elements other than the current one."""
        reduced = {id(s.results[0]): s for s in body.stmts if isinstance(s.op, Reduce)}
        pads = [s for s in body.stmts if isinstance(s.op, Pad)]
        for inner in body.stmts:
            if any(id(a) in reduced for a in inner.args):
                rules.fail(f"{inner.op.name} reads the result of a reduction inside its fuse")
        for pad in pads:
            if not is_border(pad) or id(pad.args[0]) in made:
                rules.fail("a pad inside fuse must put a border around an array from outside")
        if any(map(cuts, pads)) and any(s.op.position_axis is not None for s in body.stmts):
            rules.fail("iota is not allowed inside fuse with a pad: positions are not counted box by box")

    def _check_hosted(self, rules: Rules, body: Block, host: Stmt) -> None:
        for inner in body.stmts:
            alike = isinstance(inner.op, Map) and inner.results[0].type.shape == host.results[0].type.shape
            if inner is not host and (not alike or effects(inner).ordered):
                allowed = "only elementwise ops of its result's shape are"
                rules.fail(f"{inner.op.name} is not allowed inside fuse with {host.op.name}: {allowed}")


class Rows(Group):
    """`%a = rows { ... yield %x }`: the `fuse` regions inside run one after the other on each row (each index of the first axis), so
    that intermediate values stay in the cache.
    """

    can_narrow = False

    def flow(self, control: ControlFlow, stmt: Stmt) -> None:
        control.rows(stmt)

    def check(self, rules: Rules, stmt: Stmt) -> None:
        body = self.check_block(rules, stmt)
        members = [s for s in body.stmts if isinstance(s.op, Fuse)]
        if not members or hosted_by(members[0]) is not None or not members[0].blocks or not members[0].blocks[0].stmts:
            rules.fail("it has no fuse region to run row by row")
        rows = loop_domain(members[0].blocks[0].stmts[0]).shape[:1]
        aligned: set[int] = set()
        for inner in body.stmts:
            if isinstance(inner.op, View):
                if len(inner.args) != 1 or id(inner.args[0]) not in aligned or not keeps_rows(inner):
                    rules.fail(f"{inner.op.name} inside rows must keep the first axis of a member's result")
            elif not isinstance(inner.op, Fuse) or not runs_by_rows(inner, rows):
                rules.fail(f"{inner.op.name} is not allowed inside rows: only views and fuse regions over {list(rows)} rows, without pads")
            aligned.update(id(r) for r in inner.results)
        made = {id(r) for s in members for r in s.results}
        if any(id(r) not in made for r in body.results):
            rules.fail("it yields a value that no fuse region inside computes")


def hosted_by(stmt: Stmt) -> Stmt | None:
    """The host of a `fuse` region."""
    return next((s for s in stmt.blocks[0].stmts if s.op.stores_once(*(a.type for a in s.args))), None)


def loop_domain(stmt: Stmt) -> TensorType:
    """The iteration domain of an elementwise statement, reduction or pad; a scalar's for a statement without results."""
    over = stmt.args if stmt.op.is_reduction else stmt.results
    return over[0].type if over else TensorType(BOOL)


def is_border(stmt: Stmt) -> bool:
    """Whether a pad only puts constants around its operand: a loop nest can then read the operand in place, and constants elsewhere."""
    return isinstance(stmt.op, Pad) and not any(stmt.op.interior) and stmt.args[0].type.size > 0


def cuts(stmt: Stmt) -> set[tuple[int, int]]:
    """Where a pad's operand begins and ends inside the domain, for at least some sizes: axes and positions."""
    if not is_border(stmt):
        return set()
    assert isinstance(stmt.op, Pad)
    ends = ((axis, at) for axis, (low, n) in enumerate(zip(stmt.op.low, stmt.args[0].type.shape)) for at in (low, low + n))
    shape = stmt.results[0].type.shape
    return {(axis, at) for axis, at in ends if not at_least(0, at) and not at_least(at, shape[axis])}


def keeps_rows(view: Stmt) -> bool:
    """Whether a view of a member's result has the same rows."""
    op, shape, result = view.op, view.args[0].type.shape, view.results[0].type.shape
    if not result or not shape or result[0] != shape[0]:
        return False
    if isinstance(op, Broadcast):
        return len(shape) == len(result)
    if isinstance(op, Transpose):
        return op.axes[0] == 0
    if isinstance(op, Slice):
        return op.starts[0] == 0 and op.steps[0] == 1
    return isinstance(op, Reshape)


def runs_by_rows(stmt: Stmt, rows: Shape) -> bool:
    """Whether a fused region can run row by row: over this many rows, with no reduction along them."""
    inside = stmt.blocks[0].stmts if stmt.blocks else ()
    plain = bool(inside) and all(isinstance(s.op, Map | Reduce) and len(s.results) == 1 for s in inside)
    return plain and all(
        loop_domain(s).shape[:1] == rows and bool(rows) and not (isinstance(s.op, Reduce) and 0 in s.op.axes) for s in inside
    )
