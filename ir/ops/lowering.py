"""The protocols that ops are written against, for type checkers and readers; nothing imports this module when a program runs.

`Writing` is Python source (`Op.python`), `Emitter` straight-line native code (`Map.scalar`), `Loops` and `Window` loop nests over memory
(`Op.lower`), `Registers` a kernel on scalars (`Op.run_in_registers`). `codegen` and `ir.source` implement them; those for regions are
implemented by the verifier, the passes, `codegen` and `ir.source`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

if TYPE_CHECKING:
    from ..func import Block, Stmt
    from ..operand import Operand
    from ..types import DType, TensorType
    from .base import Array
    from .reduce import Reduce

Reg: TypeAlias = Any  # a value in native code, opaque to ops


class Writing(Protocol):
    """Writes Python source; implemented by `ir.source`. Nodes are those of `ast`, and opaque here."""

    def __call__(self, template: str, *nodes: Any) -> Any:
        """An expression: each `{}` in the template is replaced by a node, in order."""
        ...

    def elementwise(self, template: str, *args: Operand) -> Any:
        """The same for the operands of an elementwise op, which NumPy broadcasts."""
        ...

    def elements(self, *args: Operand) -> list[Any]:
        """The operands of an elementwise op."""
        ...

    def array(self, x: Operand) -> Any:
        """An operand with its own shape and dtype."""
        ...

    def index(self, x: Operand) -> Any:
        """An integer operand, as an index or a bound."""
        ...

    def indices(self, *args: Operand) -> list[Any]:
        """Operands that index together."""
        ...

    def atom(self, x: Operand) -> Any:
        """An operand that the expression reads several times."""
        ...

    def inside(self, x: Operand) -> Stmt | None:
        """The statement of an operand whose expression is written only here."""
        ...

    def value(self, value: Any) -> Any:
        """A Python number or string, or a tuple or list of them."""
        ...

    def dtype(self, dtype: DType) -> Any: ...
    def constant(self, array: Array) -> Any: ...
    def filled(self, value: Any, dtype: DType, shape: Sequence[int]) -> Any:
        """A new array filled with one value."""
        ...

    def hoist(self, hint: str, node: Any) -> Any:
        """A constant of the module."""
        ...

    def formula(self, op: Any, *args: Operand) -> Any:
        """An elementwise op as a function that its lowering is written out in."""
        ...

    def loose(self, node: Any, shape: Sequence[int]) -> Any:
        """A result that is smaller than its type: its readers broadcast it."""
        ...

    def run(self, template: str, *nodes: Any) -> None:
        """Write a line."""
        ...

    def new(self, node: Any) -> Any:
        """A variable for the result, which following lines change."""
        ...

    def changed(self, x: Operand, copy: str) -> Any:
        """The variable of an operand that following lines change into the result; of a copy of it, if it is read elsewhere."""
        ...

    def temporary(self, hint: str, node: Any) -> Any: ...
    def named(self, hint: str, node: Any) -> Any: ...


class Registers(Protocol):
    """A kernel that computes on scalars in registers; implemented by codegen. Regions run by `ControlFlow`, which it offers as well."""

    def elementwise(self, stmt: Stmt) -> None: ...
    def same(self, stmt: Stmt) -> None:
        """The result of an op that changes nothing on a single element."""
        ...

    def gather(self, stmt: Stmt) -> None: ...
    def scatter(self, stmt: Stmt) -> None: ...
    def check_index(self, stmt: Stmt) -> None: ...
    def on_stack(self, stmt: Stmt) -> None: ...


class Emitter(Protocol):
    """Straight-line native code on several elements at a time; implemented by codegen. `Reg`s are opaque here.

    Predicates are eq, ne, lt, le, gt, ge. `call` calls the vector math library by name: exp, log, tanh, ...
    """

    def const(self, dtype: DType, value: float | int | bool) -> Reg: ...
    def like(self, x: Reg, value: float | int | bool) -> Reg: ...
    def add(self, a: Reg, b: Reg) -> Reg: ...
    def sub(self, a: Reg, b: Reg) -> Reg: ...
    def mul(self, a: Reg, b: Reg) -> Reg: ...
    def fdiv(self, a: Reg, b: Reg) -> Reg: ...
    def neg(self, a: Reg) -> Reg: ...
    def fma(self, a: Reg, b: Reg, c: Reg) -> Reg: ...
    def mad(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """a * b + c, rounded once or twice, whichever is faster."""
        ...

    def fabs(self, a: Reg) -> Reg: ...
    def copysign(self, magnitude: Reg, sign: Reg) -> Reg: ...
    def sqrt(self, a: Reg) -> Reg: ...
    def floor(self, a: Reg) -> Reg: ...
    def ceil(self, a: Reg) -> Reg: ...
    def rint(self, a: Reg) -> Reg: ...
    def trunc(self, a: Reg) -> Reg: ...
    def compare(self, predicate: str, a: Reg, b: Reg) -> Reg: ...
    def unordered(self, a: Reg, b: Reg) -> Reg: ...
    def select(self, condition: Reg, a: Reg, b: Reg) -> Reg: ...
    def and_(self, a: Reg, b: Reg) -> Reg: ...
    def or_(self, a: Reg, b: Reg) -> Reg: ...
    def xor(self, a: Reg, b: Reg) -> Reg: ...
    def shl(self, a: Reg, b: Reg) -> Reg: ...
    def shr(self, a: Reg, b: Reg) -> Reg: ...
    def bitcast(self, a: Reg, dtype: DType) -> Reg: ...
    def idiv(self, a: Reg, b: Reg) -> Reg: ...
    def irem(self, a: Reg, b: Reg) -> Reg: ...
    def convert(self, a: Reg, dtype: DType) -> Reg: ...
    def call(self, function: str, *args: Reg) -> Reg: ...
    def iterate(self, limit: int, state: Sequence[Reg], step: Callable[..., tuple[Reg, Sequence[Reg]]]) -> list[Reg]:
        """`done, state = step(*state)` until all elements are done, at most `limit` times. Elements that are done keep their state."""
        ...

    def where_any(self, condition: Reg, compute: Callable[[], Sequence[Reg]], otherwise: Sequence[Reg]) -> list[Reg]:
        """`compute()` where the condition holds, else `otherwise`; computed only if the condition holds for some element."""
        ...

    def strict(self) -> Emitter:
        """The same emitter without contraction: every operation rounds, as in NumPy."""
        ...

    def index(self, axis: int) -> Reg:
        """The i64 position of these elements along an axis of the domain."""
        ...


class Window(Protocol):
    """A native buffer accessed through a layout; the operand of `lower`. Axes and sizes are static."""

    @property
    def type(self) -> TensorType: ...
    @property
    def strides(self) -> tuple[int, ...]:
        """Distances in memory, in elements, between neighbours along each axis."""
        ...

    @property
    def is_row_major(self) -> bool: ...

    def slice(self, axis: int, start: int, size: int, step: int = 1) -> Window: ...
    def at(self, *index: Reg) -> Window:
        """Drop leading axes by fixing them at run-time indices (i64 registers)."""
        ...

    def sliding(self, axis: int, count: int, step: int, size: int, dilation: int = 1) -> Window:
        """An axis as two: `count` positions, `step` apart, each with `size` elements, `dilation` apart; they may overlap."""
        ...

    def transposed(self, *axes: int) -> Window: ...


class Loops(Protocol):
    """Loop nests over windows; implemented by codegen. Scalar arithmetic goes through `scalar`."""

    @property
    def scalar(self) -> Emitter: ...
    def loop(self, size: int | Reg) -> Any:
        """`with k.loop(n) as i:` runs the body for i = 0 .. n-1; `i` is an i64 register, and so is n if it is known at run time only."""
        ...

    def fold(self, size: int, initial: Reg, step: Callable[[Reg, Reg], Reg]) -> None:
        """`value = step(i, value)` for i = 0 .. size-1, starting from `initial`, with the value in a register."""
        ...

    def each(self, size: int, work: float, body: Callable[..., None], *windows: Window) -> None:
        """`body(i, *windows)` for i = 0 .. size-1, independent of each other: on all threads, if `work` operations in total are worth it.
        The windows are all that the body may use.
        """
        ...

    def call(self, body: Callable[..., None], *windows: Window, **settings: Hashable) -> None:
        """`body(k, *windows, **settings)` as a function: calls with equal settings, on windows of equal shapes and strides, share its code.
        The windows are all that the body may use.
        """
        ...

    def is_large(self, work: float) -> bool:
        """Whether this many operations are worth several threads."""
        ...

    def lanes(self, dtype: DType) -> int:
        """The number of elements in a vector."""
        ...

    def interleave(self, target: Window, a: Window, b: Window) -> None:
        """The last axis of the target, of size 2, gets an element of each source."""
        ...

    def tile_width(self, dtype: DType) -> int:
        """The width of a contraction's tile, in elements."""
        ...

    def load(self, source: Window, *index: Reg) -> Reg: ...
    def store(self, target: Window, value: Reg, *index: Reg) -> None: ...
    def copy(self, target: Window, source: Window) -> None: ...
    def accumulate(self, target: Window, source: Window) -> None:
        """target += source"""
        ...

    def fill(self, target: Window, value: float | int | bool) -> None: ...
    def matmul(self, target: Window, a: Window, b: Window, accumulate: bool = False, brief: bool = False) -> None:
        """target = a @ b, or target += a @ b. `brief` calls a routine that all kernels share, so that many shapes need little code."""
        ...

    def product(
        self,
        target: Window,
        a: Window,
        b: Window,
        m: Reg | None = None,
        n: Reg | None = None,
        k: Reg | None = None,
        accumulate: bool = False,
    ) -> None:
        """target = a @ b, or target += a @ b, for float matrices of at most the windows' sizes: the first m rows of target and a, n columns
        of target and b, k columns of a and rows of b, as i64 registers. The columns of target are contiguous. If a size is 0, nothing is
        stored.
        """
        ...

    def scratch(self, type: TensorType) -> Window:
        """Scratch memory of the kernel, in row-major order, until it ends. Must be allocated outside loops."""
        ...

    def private(self, type: TensorType) -> Window:
        """Scratch memory to be passed to the body of `each`, where it is private to the thread."""
        ...

    def contract(self, spec: str, target: Window, a: Window, b: Window, accumulate: bool = False) -> None:
        """target = (or +=) a sum of products, in the notation of `np.einsum`: "ij,ik,kj" names the axes of target, a and b."""
        ...

    def map(self, function: Callable[..., Sequence[Reg]], targets: Sequence[Window], sources: Sequence[Window]) -> None:
        """`function(emit, *elements of sources)` computes the elements of the targets, all windows of one shape; targets do not overlap."""
        ...

    def reduce(self, op: Reduce, function: Callable[..., Reg], target: Window, sources: Sequence[Window]) -> None:
        """Combine `function(emit, *elements of sources)` over all elements by `op`, into the first element of the target."""
        ...

    def sweep(
        self,
        function: Callable[..., Sequence[Reg]],
        targets: Sequence[Window],
        totals: Sequence[tuple[type[Reduce], Window]],
        sources: Sequence[Window],
    ) -> None:
        """`function(emit, *elements of sources)` computes the elements of the targets, then one for each of the totals, which combine
        them along the first axis.
        """
        ...

    def has_lapack(self) -> bool: ...
    def lapack(self, routine: str, dtype: DType, *args: str | int | Window, complex: bool = False) -> Reg:
        """Call a routine of LAPACK, named without its first letter, on scratch memory; returns whether it reported a failure.
        With `complex`, its numbers are pairs of floats of the dtype."""
        ...

    def collective(self, name: str, target: Window, source: Window, count: int, root: int) -> None:
        """Call a collective of MPI on row-major copies of the windows, or on themselves; leave the native function if it fails."""
        ...

    def sum_deferred(self, target: Window, source: Window, rows: int) -> None:
        """Complete the deferred sums over all ranks of a row-major array, `rows` rows at a time, and store them."""
        ...

    def summed_product(self, target: Window, a: Window, b: Window) -> None:
        """Store the sum over all ranks of one machine of a product of float matrices, on one thread, block by block."""
        ...

    def fail_if(self, condition: Reg, what: str, *details: Reg) -> None:
        """Leave the native function if `condition` holds; the runtime raises `what`, formatted with the details (i64 registers)."""
        ...


# ---- regions


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
    """The code that runs a region's blocks: Python source (`ir.source`), the main function and the register kernels of native code."""

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
