"""The data of the loop IR: accesses, reductions, nests, contractions and the nodes inside them.

    parallel chunk in 0..32 {
      nest in %p0[32*i0 + i1], out %p1[i0] {
        for i0 in 4*chunk..min(4*chunk + 4, 128) {
          row x16
          for i1 in 0..32 step 16 carry sum0 x16 {
            vector i1 x16 { %0 = load %p0; %1 = tanh %0; reduce sum0, %1 }
          }
          total0 = fold sum0 x16
          out0 = total0
        }
      }
    }

A reduction number k passes through up to four places: a vector of partial sums (`Carry`, filled by `Vector`), the scalar total that its
lanes are folded into (`Fold`), a slot on the stack for totals that span several rows or blocks (`Open`, `Spill`, `Close`), and its element
of the output (`Finish`). Nodes are data: they hold no LLVM text and no decisions that are still to be made.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from adjit.ir.expr import Expr, Symbolic, variable
from adjit.ir.ops.reduce import Reduce
from adjit.ir.records import NamedTuple, record
from adjit.ir.types import DType

if TYPE_CHECKING:
    from ..kernels.emitter import VectorEmitter
    from ..llvm.lanes import Reg

CHUNK = variable("chunk")  # the number of a chunk inside `Parallel`
START, LENGTH = variable("start"), variable("length")  # the elements of a chunk, if it is a part of a single axis
ROWS, CHUNKS = variable("rows"), variable("chunks")  # rows of a chunk, and chunks, where they are known only at run time
WORK = "%work"  # the scratch memory of a kernel


def index_of(axis: int) -> Symbolic:
    """The variable of the loop along an axis of a nest."""
    return variable(f"i{axis}")


def static(size: Expr) -> int:
    """A size or a stride that must be known before the program runs."""
    assert isinstance(size, int)
    return size


class Access(NamedTuple):
    """A buffer as accessed by a nest. In elements: a stride for each axis of the domain, and the offset of the first element."""

    pointer: str
    strides: tuple[Expr, ...]
    dtype: DType
    offset: Expr = 0

    def moved(self, start: Sequence[Expr]) -> Access:
        """The same access, beginning at another position of the domain."""
        return self._replace(offset=self.offset + sum(at * stride for at, stride in zip(start, self.strides, strict=True)))


class Extent(NamedTuple):
    """The bytes of a buffer that may be accessed, relative to its pointer: from `start`, which is 0 or less, up to `stop`."""

    start: Expr
    stop: Expr


@record
class Reduction:
    """A reduction over `axes` of the domain, along which the strides of the output are 0."""

    op: Reduce
    axes: tuple[int, ...]
    output: Access
    adding: bool = False  # to the current contents of the output


@record
class Chunk:
    """The arguments of a nest's body: `width` elements. `load(k)` reads input k, `put(k, reg)` writes output k."""

    emit: VectorEmitter
    load: Callable[[int], Reg]
    put: Callable[[int, Reg], None]
    reduce: Callable[[int, Reg], None]


Body: TypeAlias = Callable[[Chunk], None]


# ---- nodes inside a nest


class Row(NamedTuple):
    """The innermost axis begins: addresses, and inputs that are constant along it, are computed here, the latter in vectors of `widths`."""

    widths: tuple[int, ...]


class Vector(NamedTuple):
    """The body, for `width` elements from position `at` of the innermost axis. Its sums go to the carries with the same `piece`.

    With a `stop`, only for those before that position: other lanes are neither loaded nor stored, and do not count in sums.
    """

    at: Expr
    width: int
    piece: int = 0
    stop: Expr | None = None


class Square(NamedTuple):
    """The body, for all elements of a square of the two innermost axes; these inputs are loaded along the other axis and transposed."""

    side: int
    inputs: tuple[int, ...]


class Open(NamedTuple):
    """Reserve a slot for the total of a reduction and initialise it with the identity."""

    reduction: int


class Fold(NamedTuple):
    """Combine the lanes of the sums of these reductions into their totals."""

    reductions: tuple[int, ...]
    width: int


class Spill(NamedTuple):
    """Combine the total of a reduction into its slot."""

    reduction: int


class Close(NamedTuple):
    """The total of a reduction becomes that in its slot."""

    reduction: int


class Finish(NamedTuple):
    """Store a total as an element of the output, or combine it with the element that is there."""

    reduction: int
    adding: bool


class Merge(NamedTuple):
    """Combine the carried vector of a piece of the row into the output."""

    reduction: int
    vector: Vector


class Carry(NamedTuple):
    """A vector of partial sums that a loop carries from one iteration to the next, starting from the identity."""

    reduction: int
    piece: int
    width: int


@record
class Loop:
    """`for variable = start; variable < stop; variable += step`, along an axis of the nest, if any."""

    variable: Symbolic
    start: Expr
    stop: Expr
    step: int
    body: list[Node]
    axis: int | None = None
    carries: tuple[Carry, ...] = ()
    may_be_empty: bool = False  # whether the first iteration must be guarded


class Cuts(NamedTuple):
    """All of an axis whose size is known only at run time, in parts of sizes that are decided then (`loops/cuts.py`).

    `bodies` has what is computed for a part of each size that occurs.
    """

    variable: Symbolic
    size: Expr
    axis: int
    bodies: dict[int, list[Node]]


# ---- nests, contractions, and what is around them


@record
class Nest:
    """Loops over a domain that load inputs, compute a few elements at a time, and store or reduce the results."""

    inputs: list[Access]
    outputs: list[Access]
    reductions: list[Reduction]
    body: Body
    order: list[int]  # axes from the outermost loop to the innermost
    sizes: list[Expr]  # of these axes
    nodes: list[Node]
    aliased: frozenset[int] = frozenset()  # outputs that share a buffer with an input, which are stored last
    row: Symbolic | None = None  # position on an additional first axis, which is looped over outside of the nest
    unread: frozenset[int] = frozenset()  # inputs that the body does not load

    @property
    def accesses(self) -> Iterator[Access]:
        yield from self.inputs
        yield from self.outputs
        for r in self.reductions:
            yield r.output


class Tile(NamedTuple):
    """Some rows of the result of a contraction, times vectors: sums that stay in registers while the summed axes are looped over.

    A row is given by its distance from the position of the loops, along one or two axes. The vectors of these `widths` lie next to each
    other along the vector axis; without such an axis, a tile has a single column.
    """

    rows: tuple[tuple[tuple[int, int], ...], ...]  # for each: axes and distances
    widths: tuple[int, ...]


class Factor(enum.IntEnum):
    """The factors of a contraction, by how tiles load them."""

    ELEMENT = 0  # one element for a row, if it does not move along the vector axis
    VECTOR = 1


Store: TypeAlias = "Callable[[VectorEmitter, Reg, Callable[[int], Reg], Callable[[int, Reg], None]], None]"


@record
class Contraction:
    """Sums of products of two factors over some axes of a domain, as in `np.einsum`, computed in tiles.

    The target consists of several members: `store(emit, value, load, store)` computes from the sums what is stored in those that are
    `written`, which come first, and may load elements of any of them.
    """

    sizes: list[Expr]
    factors: tuple[Access, Access]  # see `Factor`
    members: list[Access]
    written: int
    store: Store
    dtype: DType  # of factors and sums
    adding: bool  # to the current contents of the first member
    vector: int | None  # the axis of vectors
    summed: tuple[int, ...]  # axes, from the outermost loop to the innermost
    nodes: list[Node]  # loops and cuts along the other axes, and tiles

    @property
    def accesses(self) -> list[Access]:
        return [*self.factors, *self.members]


class Area(NamedTuple):
    """The elements of a buffer that a routine may access."""

    access: Access
    sizes: tuple[Expr, ...]


class Call(NamedTuple):
    """A call of a routine that is not a part of the kernel: one that programs share, or one of a library."""

    routine: str
    arguments: tuple[tuple[str, str | Expr], ...]  # types, and values or registers
    reads: tuple[Area, ...]
    writes: tuple[Area, ...]


class Local(NamedTuple):
    """A buffer of one thread, under a name that accesses refer to: on the stack, or, if its size is an expression, in the scratch memory,
    where those of all threads begin at `offset`.
    """

    pointer: str
    nbytes: Expr
    offset: Expr = 0


@record
class Parallel:
    """`rows` of `total` rows at a time, on all threads, in any order: the number of the chunk is the variable CHUNK."""

    total: Expr
    rows: Expr
    body: list[Node]
    sized: Sizing | None = None  # how the rows of a chunk follow from sizes that are known only at run time
    part: Part | None = None  # what a row is, if rows are parts of a single axis

    @property
    def count(self) -> Expr:
        return -(-self.total // self.rows) if isinstance(self.rows, int) else CHUNKS


class Either(NamedTuple):
    """Two ways to compute the same: `few` if a size is at most `limit` when the program runs, otherwise `many`."""

    size: Expr
    limit: int
    few: list[Node]
    many: list[Node]


class Part(NamedTuple):
    """Rows of `row` elements of an axis of `size` elements; the last one may be shorter. A chunk has LENGTH elements from START on."""

    size: Expr
    row: int


class Sizing(NamedTuple):
    """The operations of all rows; the numbers of operations from which several threads, and one chunk, pay off; and the most chunks."""

    operations: Expr
    parallel_from: int
    least: int
    most: int


Node: TypeAlias = (
    Loop | Cuts | Row | Vector | Square | Open | Fold | Spill | Close | Finish | Merge | Nest | Tile | Contraction | Call | Local
    | Parallel | Either
)  # fmt: skip


class LoopProgram:
    """The loops of one kernel, in order, its buffers as far as their extents are known, and the size of its scratch memory."""

    def __init__(self, nodes: list[Node] | None = None, extents: dict[str, Extent] | None = None, work_bytes: Expr = 0) -> None:
        self.nodes: list[Node] = [] if nodes is None else nodes
        self.extents: dict[str, Extent] = {} if extents is None else extents
        self.work_bytes = work_bytes
