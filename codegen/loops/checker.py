"""Proves that a loop program is well formed: accesses stay within their buffers, and every element of a domain is computed once.

Runs wherever the verifier of the IR runs (ADJIT_VERIFY=1). Buffers without a known extent, such as those behind pointers that a kernel
computes itself, are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from adjit.ir.bounds import Range, Ranges
from adjit.ir.errors import VerifyError
from adjit.ir.expr import Atom, Expr, minimum, var_of

from .ir import (
    CHUNK,
    CHUNKS,
    LENGTH,
    ROWS,
    START,
    WORK,
    Access,
    Area,
    Call,
    Close,
    Contraction,
    Either,
    Extent,
    Finish,
    Fold,
    Local,
    Loop,
    LoopProgram,
    Merge,
    Nest,
    Node,
    Open,
    Parallel,
    Row,
    Spill,
    Square,
    Vector,
    index_of,
)
from .tile_checker import TileChecker


def check(program: LoopProgram) -> None:
    """Raise a VerifyError that names the rule that the program breaks."""
    Checker(program).all(program.nodes)


def require(condition: bool, message: str) -> None:
    if not condition:
        raise VerifyError(f"loop program: {message}")


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are equal for all sizes; `==` refuses to tell where one is 0 for some sizes only."""
    difference = a - b
    return isinstance(difference, int) and difference == 0


class Checker:
    """The rules around nests and contractions, and what is known about variables and buffers."""

    require = staticmethod(require)

    def __init__(self, program: LoopProgram) -> None:
        self.ranges = Ranges()
        self.extents = {**program.extents, WORK: Extent(0, program.work_bytes)} if program.work_bytes else dict(program.extents)
        self.chunks: Parallel | None = None  # around the current node
        self.locals: set[str] = set()
        self.shared: set[Atom] = set()  # variables whose values differ from chunk to chunk
        self.limits: dict[Expr, tuple[int, int]] = {}  # of variables whose ranges are numbers

    def all(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            match node:
                case Nest():
                    _NestChecker(self, node).check()
                case Contraction():
                    TileChecker(self, node).check()
                case Call():
                    for area in (*node.reads, *node.writes):
                        self.area(area)
                case Loop():
                    self.require_whole_range(node, None)
                    require(bool(node.body), f"the loop over {node.variable} is empty")
                    with self.inside(node):
                        self.all(node.body)
                case Parallel():
                    self.parallel(node)
                case Either():
                    self.either(node)
                case Local():
                    self.extents[node.pointer] = Extent(0, node.nbytes)
                    self.locals.add(node.pointer)
                case _:
                    require(False, f"a {type(node).__name__} outside of a nest")

    def either(self, node: Either) -> None:
        few, many = ([n for n in nodes if isinstance(n, Nest)] for nodes in node[2:])
        require(len(few) == len(many) > 0, f"for {node.size} up to {node.limit}, {len(few)} nests rather than {len(many)}")
        for a, b in zip(few, many, strict=True):
            alike = a.order == b.order and all(map(same, a.sizes, b.sizes)) and [*a.accesses] == [*b.accesses]
            require(alike, f"for {node.size} up to {node.limit}, another nest than for more")
        self.all(node.few)
        self.all(node.many)

    def area(self, area: Area) -> None:
        """All elements of an area are within its buffer."""
        loops = [Loop(index_of(axis), 0, size, 1, [], axis) for axis, size in enumerate(area.sizes)]
        with ExitStack() as stack:
            for loop in loops:
                stack.enter_context(self.inside(loop))
            self.require_within(area.access, {axis: loop.variable for axis, loop in enumerate(loops)}, None, 1)

    def parallel(self, node: Parallel) -> None:
        require(self.chunks is None, "chunks inside chunks")
        if node.sized is None:
            require(node.total > 0 and node.rows > 0, f"{node.total} rows in chunks of {node.rows}")
        else:
            require(node.rows == ROWS, f"chunks of {node.rows} rows, and of a number known only at run time")
        chunk = var_of(CHUNK)
        last = node.count - 1 if isinstance(node.count, int) else CHUNKS - 1
        self.chunks, self.shared = node, {chunk}
        if node.sized is not None:
            self.ranges.known[var_of(CHUNKS)] = Range(1, node.sized.most)
        self.ranges.known[chunk] = Range(0, last)
        if isinstance(last, int):
            self.limits[CHUNK] = (0, last)
        if node.part is not None:
            rows = -(-node.part.size // node.part.row)
            require(same(node.total, rows), f"{node.total} rows of {node.part.row} elements, and {rows} make {node.part.size}")
            self.shared.add(var_of(START))
            self.ranges.known[var_of(START)], self.ranges.known[var_of(LENGTH)] = (
                Range(0, node.part.size - 1),
                Range(1, node.part.size - START),
            )
        self.all(node.body)
        del self.ranges.known[chunk]
        self.chunks, self.shared = None, set()

    @contextmanager
    def inside(self, loop: Loop) -> Iterator[None]:
        """Check the bounds of a loop; its variable is in scope inside."""
        require(loop.step >= 1, f"the loop over {loop.variable} has step {loop.step}")
        require(self.ranges.at_least(loop.start, 0), f"the loop over {loop.variable} may begin below 0: {loop.start}")
        some = loop.may_be_empty or self.ranges.at_least(loop.stop - loop.start, 1) or self.is_chunk(loop)
        require(some, f"the loop over {loop.variable} may have no iteration: {loop.start}..{loop.stop}")
        variable = var_of(loop.variable)
        require(variable not in self.ranges.known, f"two nested loops over {loop.variable}")
        if _atoms(loop.start) & self.shared:
            self.shared.add(variable)
        self.ranges.known[variable] = self.ranges.loop(loop.start, loop.stop, loop.step)
        limits = self.ranges.limits(loop.variable)
        if limits is not None:
            self.limits[loop.variable] = limits
        yield
        del self.ranges.known[variable]
        self.limits.pop(loop.variable, None)
        self.shared.discard(variable)

    def is_chunk(self, loop: Loop) -> bool:
        """Whether a loop covers the rows of a chunk: every chunk has some."""
        if self.chunks is None:
            return False
        start = CHUNK * self.chunks.rows
        return loop.start == start and loop.stop == minimum(start + self.chunks.rows, self.chunks.total)

    def require_whole_range(self, loop: Loop, size: Expr | None) -> None:
        """An outer loop runs over all of its axis, of this size, or over all of the rows of a chunk."""
        require(loop.step == 1, f"the loop over {loop.variable} skips elements: step {loop.step}")
        if self.chunks is not None and loop.start != 0:
            whole = self.is_chunk(loop) and size in (None, self.chunks.total)
        else:
            whole = loop.start == 0 and size in (None, loop.stop)
        require(whole, f"the loop over {loop.variable} covers {loop.start}..{loop.stop}, not all of {size}")

    def require_within(self, access: Access, position: dict[int, Expr], inner: int | None, width: Expr) -> None:
        """The elements of an access at a position, `width` of them along the axis `inner`, are inside its buffer."""
        extent = self.extents.get(access.pointer)
        if extent is None or self._is_within(access, extent, position, inner, width):
            return
        first = access.offset + sum(at * access.strides[axis] for axis, at in position.items())
        span = access.strides[inner] * (width - 1) if inner is not None else 0
        ends = (first + span, first) if isinstance(span, int) and span < 0 else (first, first + span)
        low, high = (end * access.dtype.itemsize for end in ends)
        within = self.ranges.at_least(low - extent.start, 0) and self.ranges.at_least(extent.stop - high - access.dtype.itemsize, 0)
        where = f"bytes {low} to {high} of {extent.start}..{extent.stop}"
        require(within, f"an access with strides {access.strides} may be outside of {access.pointer}: {where}")

    def _is_within(self, access: Access, extent: Extent, position: dict[int, Expr], inner: int | None, width: Expr) -> bool:
        """The same for numbers only, which is enough for static sizes, and much quicker."""
        if not isinstance(width, int):
            return False
        low = high = access.offset
        for axis, at in position.items():
            stride = access.strides[axis]
            least, greatest = (at, at) if isinstance(at, int) else self.limits.get(at, (None, None))
            if least is None or greatest is None or not isinstance(stride, int):
                return False
            if axis == inner:
                greatest += width - 1
            low, high = low + min(least * stride, greatest * stride), high + max(least * stride, greatest * stride)
        ends = extent.start, extent.stop
        if not isinstance(low, int) or not isinstance(high, int) or not isinstance(ends[0], int) or not isinstance(ends[1], int):
            return False
        return low * access.dtype.itemsize >= ends[0] and (high + 1) * access.dtype.itemsize <= ends[1]


class _NestChecker:
    """The rules inside one nest."""

    def __init__(self, around: Checker, nest: Nest) -> None:
        self.around = around
        self.nest = nest
        self.inner = nest.order[-1] if nest.order else None
        self.active: dict[int, Expr] = {}  # outer axis -> its position
        self.in_row = False
        self.covered: Expr = 0  # the elements of the row that have been computed so far
        self.row_loops = 0  # number of loops along the innermost axis around the current node
        self.carried: dict[tuple[int, int], int] = {}  # reduction and piece -> width
        self.sums: dict[tuple[int, int], int] = {}
        self.totals: set[int] = set()
        self.slots: set[int] = set()
        self.stored: set[int] = set()  # reductions that have reached their outputs

    def check(self) -> None:
        nest = self.nest
        ranks = {len(a.strides) for a in nest.accesses}
        require(len(ranks) < 2, f"accesses with different numbers of axes: {sorted(ranks)}")
        require(len(set(nest.order)) == len(nest.order) == len(nest.sizes), f"axes {nest.order} with sizes {nest.sizes}")
        for r in nest.reductions:
            require(all(r.output.strides[a] == 0 for a in r.axes), f"the output of {r.op.name} moves along an axis that it reduces")
        self.level(nest.nodes)
        require(not self.totals and not self.slots, f"totals that are never stored: {sorted(self.totals | self.slots)}")
        require(not self.sums, f"sums that are never folded: {sorted(self.sums)}")
        lost = set(range(len(nest.reductions))) - self.stored
        require(not lost, f"reductions that are never stored: {sorted(lost)}")

    def level(self, nodes: Sequence[Node]) -> None:
        """The nodes at one depth of the outer loops: one loop along a further axis, or one row, so that nothing is computed twice."""
        outer = [n for n in nodes if isinstance(n, Row | Square) or (isinstance(n, Loop) and n.axis not in (None, self.inner))]
        require(len(outer) == 1, f"{len(outer)} loops or rows side by side, along {len(self.active)} of the axes {self.nest.order}")
        self.all(nodes)

    def all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            rule = RULES.get(type(node))
            require(rule is not None, f"a {type(node).__name__} inside a nest")
            if rule is not None:
                rule(self, node)
        if any(isinstance(node, Row) for node in nodes):
            size = self.nest.sizes[-1] if self.nest.order else 1
            require(same(self.covered, size), f"a row of {size} elements is computed up to {self.covered}")
            self.in_row = False

    # ---- loops

    def loop(self, loop: Loop) -> None:
        if loop.axis is None or loop.axis == self.inner:
            self.along_row(loop)
            return
        nest = self.nest
        require(loop.axis in nest.order and loop.axis not in self.active, f"a loop over {loop.variable} along axis {loop.axis}")
        self.around.require_whole_range(loop, nest.sizes[nest.order.index(loop.axis)])
        self.active[loop.axis] = loop.variable
        self.body(loop, self.level)
        del self.active[loop.axis]

    def along_row(self, loop: Loop) -> None:
        """A loop along the innermost axis, a vector or a block at a time."""
        self.goes_on_at(loop.start)
        self.covered = loop.variable
        self.row_loops += 1
        self.body(loop, self.all)
        self.row_loops -= 1
        cut = loop.axis is None or any(isinstance(node, Vector) and node.stop is not None for node in loop.body)
        end = minimum(loop.variable + loop.step, loop.stop) if cut else loop.variable + loop.step
        require(same(self.covered, end), f"an iteration over {loop.variable} computes up to {self.covered}, not to {end}")
        whole = cut or self.around.ranges.multiple(loop.stop - loop.start) % loop.step == 0
        require(whole, f"{loop.start}..{loop.stop} is not a whole number of vectors of {loop.step} elements")
        self.covered = loop.stop

    def body(self, loop: Loop, check: Callable[[Sequence[Node]], None]) -> None:
        """The body of a loop: only memory and the carried sums pass from one iteration to the next."""
        keys = {(carry.reduction, carry.piece): carry.width for carry in loop.carries}
        for k, piece in keys:
            require(k < len(self.nest.reductions), f"a sum of reduction {k}, which does not exist")
            require((k, piece) not in self.sums, f"the sum of reduction {k} is overwritten before it is folded")
        before = set(self.totals), set(self.sums), set(self.slots)
        self.carried |= keys
        with self.around.inside(loop):
            check(loop.body)
        for key, width in keys.items():
            require(self.sums.get(key) == width, f"a carried sum of reduction {key[0]} that no vector of its width updates")
            del self.carried[key]
        after = set(self.totals), set(self.sums) - set(keys), set(self.slots)
        require(after == before, f"totals, sums or slots of an iteration over {loop.variable} are not stored in it")

    def goes_on_at(self, start: Expr) -> None:
        require(self.in_row, "elements are computed before their row begins")
        require(same(start, self.covered), f"a row is computed up to {self.covered}, and goes on at {start}")

    # ---- elements

    def row(self, node: Row) -> None:
        missing = [a for a in self.nest.order[:-1] if a not in self.active]
        require(not missing, f"a row begins outside of the loops along the axes {missing}")
        require(min(node.widths, default=0) >= 1, f"vectors of the widths {node.widths}")
        self.in_row, self.covered = True, 0

    def vector(self, node: Vector) -> None:
        self.goes_on_at(node.at)
        require(node.width >= 1, f"a vector of {node.width} elements")
        if node.stop is not None:
            self.part(node, node.stop)
        else:
            self.covered = self.covered + node.width
            self.elements({**self.active, **({} if self.inner is None else {self.inner: node.at})}, node.width)
        for k, r in enumerate(self.nest.reductions):
            width = self.carried.get((k, node.piece))
            require(width in (None, node.width), f"a vector of {node.width} elements for a carried sum of {width}")
            if width is None and self.inner is not None and self.inner not in r.axes:
                self.stored.add(k)  # in memory
                continue
            lost = width is None and (self.row_loops > 0 or (k, node.piece) in self.sums)
            require(not lost, f"the sum of reduction {k} is overwritten before it is folded")
            self.sums[k, node.piece] = node.width

    def part(self, node: Vector, stop: Expr) -> None:
        """A vector that ends before `stop`."""
        inner = self.inner
        require(inner is not None, "a part of a vector in a nest of one element")
        assert inner is not None
        strides = [a.strides[inner] for a in self.nest.accesses]
        require(all(isinstance(s, int) and s in (0, 1) for s in strides), f"a part of a vector with strides {strides}")
        self.covered = minimum(self.covered + node.width, stop)
        self.elements({**self.active, inner: node.at}, stop - node.at)

    def square(self, node: Square) -> None:
        nest = self.nest
        require(nest.sizes[-2:] == [node.side] * 2 and not nest.reductions, f"a square of side {node.side} on axes of {nest.sizes[-2:]}")
        outer, inner = nest.order[-2:]
        require(all(nest.inputs[k].strides[outer] == 1 for k in node.inputs), "a square of an input that is not contiguous")
        for row in (0, node.side - 1):
            self.elements({**self.active, outer: row, inner: 0}, node.side)

    def elements(self, position: dict[int, Expr], width: Expr) -> None:
        """All accesses of the nest are within their buffers for these elements, and no two chunks write the same ones."""
        nest, around = self.nest, self.around
        for k, access in enumerate(nest.accesses):
            if k not in nest.unread:
                around.require_within(access, position, self.inner, width)
            if around.chunks is not None and k >= len(nest.inputs) and access.pointer not in around.locals:
                moving = _atoms(access.offset).union(*(_atoms(at) for axis, at in position.items() if access.strides[axis] != 0))
                require(bool(moving & around.shared), f"all chunks write to the same elements of {access.pointer}")

    # ---- totals

    def open(self, node: Open) -> None:
        require(node.reduction not in self.slots, f"a second slot for reduction {node.reduction}")
        self.slots.add(node.reduction)

    def fold(self, node: Fold) -> None:
        for k in node.reductions:
            require(self.sums.pop((k, 0), None) == node.width, f"reduction {k} has no sum of {node.width} lanes to fold")
            self.totals.add(k)

    def spill(self, node: Spill) -> None:
        require(node.reduction in self.totals and node.reduction in self.slots, f"reduction {node.reduction} has no total, or no slot")
        self.totals.remove(node.reduction)

    def close(self, node: Close) -> None:
        require(node.reduction in self.slots and node.reduction not in self.totals, f"reduction {node.reduction} has no slot")
        self.slots.remove(node.reduction)
        self.totals.add(node.reduction)

    def finish(self, node: Finish) -> None:
        require(node.reduction in self.totals, f"reduction {node.reduction} has no total to store")
        self.totals.remove(node.reduction)
        self.stored.add(node.reduction)

    def merge(self, node: Merge) -> None:
        key = node.reduction, node.vector.piece
        require(self.sums.pop(key, None) == node.vector.width, f"reduction {node.reduction} has no sum to merge")
        self.stored.add(node.reduction)


def _atoms(expr: Expr) -> set[Atom]:
    return set() if isinstance(expr, int) else {atom for monomial in expr.terms for atom in monomial}


RULES: dict[type, Callable[[_NestChecker, Any], None]] = {
    Loop: _NestChecker.loop, Row: _NestChecker.row, Vector: _NestChecker.vector, Square: _NestChecker.square,
    Open: _NestChecker.open, Fold: _NestChecker.fold, Spill: _NestChecker.spill, Close: _NestChecker.close,
    Finish: _NestChecker.finish, Merge: _NestChecker.merge,
}  # fmt: skip
