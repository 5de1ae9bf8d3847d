"""The definition of an op: one class holding its type rule, eager evaluation, derivatives and lowering.

Owns `Op`, the registry, and `apply`, the single entry point through which every op is emitted or evaluated. Knows no particular op.

Also defines how `vmap` batches an op (`batch`): usually as the same op with its axes shifted (`widened`).

Derivatives are written per argument: `jvp(i, y, args, d)` pushes a tangent of argument `i` forward, `vjp(i, y, args, d)` pulls a cotangent
of the result back to argument `i`. Both are written in terms of operands, so the same rule serves the eager tape, the adjoint pass and,
applied again, derivatives of any order. None means that no derivative reaches this argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, dataclass_transform

import numpy as np

from ..active import current_builder
from ..errors import AdjitError, OutOfBoundsError, UnsupportedError
from ..operand import Concrete, Operand, evaluate
from ..sizes import is_recording, is_symbolic
from ..types import DType, TensorType, computed

if TYPE_CHECKING:
    from ..func import Stmt
    from ..layout import Layout
    from .reduce import Reduce

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Reg: TypeAlias = Any

REGISTRY: dict[str, type[Op]] = {}
C = TypeVar("C", bound=type)
TRACED = 3  # the level of values that are known only when the program runs


@dataclass_transform(eq_default=False)
def with_attributes(cls: C) -> C:
    """Decorate a class of ops: its annotated names are dataclass fields, which `Op.__init__` takes as arguments."""
    dataclass(init=False, eq=False, repr=False)(cls)
    return cls


@with_attributes
class Op:
    """A primitive operation. Attributes are dataclass fields, from which equality, hashing, printing and parsing follow.

    Construction, equality, hashing and immutability are implemented here once, rather than generated for each class, which would take a
    third of the time of `import adjit`.
    """

    name: ClassVar[str] = ""
    # What the op does besides computing: declared here, queried on statements (`ir.effects`).
    effect: ClassVar[bool] = False  # ordered with other effects, never removed, never duplicated
    can_fail: ClassVar[bool] = False  # may raise at run time
    can_stop: ClassVar[bool] = False  # may be interrupted, or run out of memory
    arity: ClassVar[int | None] = None  # the number of operands, if the type rule does not check it
    error: ClassVar[type[AdjitError]] = OutOfBoundsError  # what native code raises on failure
    differentiable: ClassVar[bool] = True
    takes_stored: ClassVar[bool] = False  # operands of 16-bit floats, which other ops take as float32
    unread: ClassVar[tuple[int, ...]] = ()  # operands that `evaluate` and `python` ignore, because native code alone needs them
    made_from: ClassVar[dict[int, tuple[str, int]]] = {}  # operands that another op, given by name, computed from a further operand
    # What kind of op it is: passes and code generation ask for these, rather than for its class.
    is_elementwise: ClassVar[bool] = False  # an element of the result depends on the operands' elements at the same position only
    is_reduction: ClassVar[bool] = False  # combines the elements along some axes, in a loop nest over its operand
    is_view: ClassVar[bool] = False  # the result is the operand read through another layout
    is_constant: ClassVar[bool] = False  # an array that is part of the program
    is_product: ClassVar[bool] = False  # a sum of products, which runs near the peak of the machine
    is_control: ClassVar[bool] = False  # its blocks are control flow: an `if`, a loop, a checkpoint
    is_nest: ClassVar[bool] = False  # its block is one loop nest of native code
    is_loop: ClassVar[bool] = False  # its last block runs repeatedly, on values that it carries
    takes_stacks: ClassVar[bool] = False  # operands that are stacks, which other ops do not take
    calls_python: ClassVar[bool] = False  # native code calls back
    only_moves: ClassVar[bool] = False  # copies elements of its operands, and computes nothing
    reads_rows: ClassVar[bool] = False  # reads rows of its first operand, or elements of a stack, at indices known at run time
    sets_rows: ClassVar[bool] = False  # replaces rows of its first operand by the second, at indices known at run time
    shifts: ClassVar[bool] = False  # in a loop nest, reads its operand at other positions than it computes
    writes_strided: ClassVar[bool] = False  # native code can store the result through any strides
    joins_region: ClassVar[bool] = False  # as a host (`stores_once`), joins the region that first reads it, rather than begin one
    in_place: ClassVar[int | None] = None  # the argument that native code may overwrite with the result, if it is not read afterwards

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if cls.name in REGISTRY:
            raise AdjitError(f"two ops are named {cls.name!r}: {REGISTRY[cls.name]} and {cls}")
        if hasattr(cls, "lower") and cls.operations is Op.operations:
            raise AdjitError(f"{cls.name}: an op that lowers itself must say what it costs: define `operations`")
        REGISTRY[cls.name] = cls

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names: tuple[str, ...] = self.__match_args__  # those of the fields
        values = self.__dict__
        values.update(zip(names, args, strict=False))
        if len(args) == len(names) and not kwargs:
            return
        if len(args) > len(names) or not kwargs.keys().isdisjoint(values) or not kwargs.keys() <= set(names):
            raise TypeError(f"{self.name}: the attributes are {', '.join(names) or 'none'}; {args} and {kwargs} do not match them")
        for name in names[len(args) :]:
            values[name] = kwargs[name] if name in kwargs else self._default(name)

    def _default(self, name: str) -> Any:
        default = self.__dataclass_fields__[name].default
        if default is MISSING:
            raise TypeError(f"{self.name}: the attribute {name!r} is missing")
        return default

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            raise FrozenInstanceError(f"{self.name}: {name!r} is set once, when the op is made")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"{self.name}: {name!r} stays")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.attributes())})"

    def infer(self, *types: TensorType) -> TensorType | tuple[TensorType, ...]:
        """The result's type (a tuple of types for an op with several results); raises ShapeError or DTypeError."""
        raise AdjitError(f"{self.name}: no type rule")

    def result_types(self, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """`infer` as a tuple, for any number of results."""
        out = self.infer(*types)
        return out if isinstance(out, tuple) else (out,)

    def evaluate(self, *arrays: Array) -> Any:
        """Eager NumPy evaluation: the reference for everything else."""
        raise AdjitError(f"{self.name}: no eager evaluation")

    def python(self, write: Writing, *args: Operand) -> Any:
        """The same as an expression of NumPy Python (`ir.source`): a node, or one per result; None if it was written as statements."""
        raise UnsupportedError(f"{self.name}: this op does not say how it is written in Python; define `python` beside `evaluate`")

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        raise AdjitError(f"{self.name}: no forward derivative")

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        raise AdjitError(f"{self.name}: no reverse derivative")

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: Sequence[bool]
    ) -> list[Operand | None]:
        """Cotangents of the needed arguments, given those of the results. Ops with several results override this."""
        (y,), (d,) = results, cotangents
        if d is None or not self.differentiable:
            return [None] * len(args)
        # The cotangent of an argument that is changed in place is usually `d` changed in place: the other arguments read `d` first.
        order = range(len(args)) if self.in_place is None else range(len(args) - 1, -1, -1)
        found = {i: self.vjp(i, y, args, d) for i in order if needed[i]}
        return [found.get(i) for i in range(len(args))]

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        """Tangents of the results, given those of the arguments (None: zero)."""
        (y,) = results
        total: Operand | None = None
        if self.differentiable:
            for i, d in enumerate(tangents):
                part = None if d is None else self.jvp(i, y, args, d)
                if part is not None:
                    total = part if total is None else total + part
        return [total]

    def widened(self, size: int) -> Op:
        """The same op for operands that all have an extra leading axis of `size`: ops that name axes or shapes adjust them."""
        raise UnsupportedError(f"{self.name}: vmap does not know how to batch it")

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        """The results for `size` examples at once, along a leading axis. Arguments that are not `batched` are shared by all."""
        repeat = REGISTRY["broadcast"]
        wide = (a if has else apply(repeat((size, *a.type.shape)), a) for a, has in zip(args, batched, strict=True))
        return apply(self.widened(size), *wide)

    def guard(self, *types: TensorType) -> tuple[Op, slice]:
        """For an op that may fail: an op on some of its operands that fails in the same cases, used if the result is not needed."""
        return self, slice(None)

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        """Arguments with which the op does not fail on examples that are not `active` (bool[size]), whose results are not read."""
        return args, batched

    def operations(self, args: Sequence[TensorType], results: Sequence[TensorType]) -> float:
        """Simple operations on elements that native code performs; 0 for an op that computes nothing."""
        return 0.0

    def slowest(self, *types: TensorType) -> float:
        """The factor by which native code may exceed its usual time, if that depends on the values of its operands."""
        return 1.0

    def splat(self, *values: Any) -> Any:
        """The one value that fills the whole result if every operand is filled with one value; None if this does not apply."""
        return None

    def stores_once(self, *types: TensorType) -> bool:
        """Whether its native code stores every element of the result once and does not read it: a `fuse` region can continue there."""
        return False

    @property
    def position_axis(self) -> int | None:
        """The axis along which it needs the positions of elements, if any."""
        return None

    def factors(self, args: tuple[Operand, ...]) -> tuple[Operand, Operand] | None:
        """The matrices that a product of matrices multiplies; None for another op."""
        return None

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...] | None:
        """Operands and results that must be scalars for a statement to run in registers; None if it never does."""
        return None

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        """Have a kernel compute a statement on scalars, one of the kernel's ways."""
        raise UnsupportedError(f"{self.name} does not run in registers").at(stmt.location)

    def attributes(self) -> list[tuple[str, Any]]:
        return [(f.name, getattr(self, f.name)) for f in fields(self)]


class View(Op, abstract=True):
    """An op whose result is its operand read through another layout: no code and no copy, if `view` finds one."""

    arity = 1
    takes_stored = True
    is_view = True
    only_moves = True

    def view(self, layout: Layout, source: TensorType) -> Layout | None:
        """The layout of the result's elements in the operand's buffer; None if a copy is needed."""
        raise AdjitError(f"{self.name}: no layout")

    def splat(self, *values: Any) -> Any:
        return values[0]

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return (*args, *results)

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        kernel.same(stmt)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(self, d)


def apply(op: Op, *args: Operand) -> Operand:
    """Emit or evaluate `op`, depending on its operands: on IR values it emits, on tensors it evaluates.

    Returns one operand for an op with one result; for the few ops with several (or no) results a tuple, despite the annotation.
    """
    leader, stored = args[0], False
    for arg in args:
        if arg.level > leader.level:
            leader = arg
        if arg.type.is_stored:
            stored = True
    if stored and not op.takes_stored:
        return apply(op, *map(widened, args))
    if leader.level < TRACED and is_recording() and any(map(holds_size, op.__dict__.values())):
        return perform(op, *args)  # a constant array with a size that is known when the program runs
    out: Operand = leader.apply_op(op, args)
    return out


def widened(x: Operand) -> Operand:
    """x in the dtype in which its numbers are computed."""
    dtype = computed(x.type.dtype)
    return x if x.type.dtype == dtype else apply(REGISTRY["cast"](dtype), x)


def holds_size(attribute: Any) -> bool:
    """Whether an attribute is, or contains, a size that is known only when the program runs."""
    if isinstance(attribute, tuple):
        return any(map(holds_size, attribute))
    return is_symbolic(attribute) or (isinstance(attribute, TensorType) and holds_size(attribute.shape))


def perform(op: Op, *args: Operand) -> Operand:
    """Emit `op` if a builder is active, else evaluate it: for ops whose operands do not decide this.

    These are ops without operands, and effects, which belong to every run of a traced function even if their operands are constants.
    """
    if not op.takes_stored and any(x.type.is_stored for x in args):
        args = tuple(map(widened, args))
    builder = current_builder()
    if builder is not None:
        out: Operand = builder.apply(op, args)
        return out
    return apply(op, *args) if args else evaluated(op)


def evaluated(op: Op) -> Operand:
    """The result of an op without operands, evaluated now, even while a function is traced."""
    (array,) = evaluate(op, [], [])
    return Concrete(array)


class Writing(Protocol):
    """Python source, as ops write it; implemented by `ir.source`. Nodes are those of `ast`, and opaque here."""

    def __call__(self, template: str, *nodes: Any) -> Any:
        """An expression: `{}` in the template stands for the nodes, in order."""
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
        """A result that is smaller than its type: those who read it broadcast it."""
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

    def fail_if(self, condition: Reg, what: str, *details: Reg) -> None:
        """Leave the native function if `condition` holds; the runtime raises `what`, formatted with the details (i64 registers)."""
        ...


@contextmanager
def nest(k: Loops, shape: Sequence[int]) -> Iterator[list[Reg]]:
    """Nested loops: `with nest(k, shape) as index:` runs the body for every index into `shape`, in row-major order."""
    with ExitStack() as stack:
        yield [stack.enter_context(k.loop(size)) for size in shape]
