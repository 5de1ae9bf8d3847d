"""What an op is: one class holding its type rule, eager evaluation, derivatives and lowering.

Owns: `Op`, the registry, and `apply`, the one door through which every op is emitted or evaluated.
Refuses: knowing any particular op.

Owns, too, what `vmap` makes of an op (`batch`): mostly the same op with its axes moved on (`widened`).

Derivatives are written per argument: `jvp(i, y, args, d)` pushes a tangent of argument `i` forward, `vjp(i, y, args, d)` pulls a cotangent
of the result back to argument `i`. Both are written in terms of operands, so the same rule serves the eager tape, the adjoint pass and,
applied again, derivatives of any order. None means: no derivative reaches this argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np

from ..errors import AdjitError, OutOfBoundsError, UnsupportedError
from ..types import DType, TensorType

if TYPE_CHECKING:
    from ..layout import Layout
    from ..operand import Operand
    from .reduce import Reduce

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Reg: TypeAlias = Any

REGISTRY: dict[str, type[Op]] = {}


@dataclass(eq=False, repr=False)
class Op:
    """A primitive operation. Attributes are dataclass fields, so equality, hashing, printing and parsing come free.

    Equality and the like are written here once, rather than generated for each class, and so is that attributes never change: that would
    be a quarter of `import adjit`.
    """

    name: ClassVar[str] = ""
    # What the op does besides computing: declared here, asked of statements (`ir.effects`).
    effect: ClassVar[bool] = False  # ordered with other effects, never removed, never duplicated
    can_fail: ClassVar[bool] = False  # may raise at run time
    can_stop: ClassVar[bool] = False  # may be interrupted, or run out of memory
    arity: ClassVar[int | None] = None  # the number of operands, where the type rule does not count them
    error: ClassVar[type[AdjitError]] = OutOfBoundsError  # what native code raises when it does
    differentiable: ClassVar[bool] = True
    in_place: ClassVar[int | None] = None  # the argument that native code may change into the result, if nobody reads it afterwards

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
        """The result's type (a tuple of types for an op of several results); raises ShapeError or DTypeError."""
        raise AdjitError(f"{self.name}: no type rule")

    def evaluate(self, *arrays: Array) -> Any:
        """Eager NumPy evaluation: the oracle for everything else."""
        raise AdjitError(f"{self.name}: no eager evaluation")

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        raise AdjitError(f"{self.name}: no forward derivative")

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        raise AdjitError(f"{self.name}: no reverse derivative")

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: Sequence[bool]
    ) -> list[Operand | None]:
        """Cotangents of the needed arguments, given those of the results. Ops of several results override this."""
        (y,), (d,) = results, cotangents
        if d is None or not self.differentiable:
            return [None] * len(args)
        # The cotangent of what an op changes in place is mostly `d` changed in place: the others read `d` first.
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
        """The same op for operands that all have one more leading axis, of `size`: ops that name axes or shapes move them on."""
        raise UnsupportedError(f"{self.name}: vmap does not know how to batch it")

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        """The results for `size` examples at once, along a leading axis. Arguments that are not `batched` are shared by all."""
        from .shape import lead  # noqa: PLC0415 - shapes are ops, and ops are defined here

        return apply(self.widened(size), *(a if has else lead(a, size) for a, has in zip(args, batched, strict=True)))

    def guard(self, *types: TensorType) -> tuple[Op, slice]:
        """Of an op that may fail: the op on some of its operands that fails alike, where nobody wants the result."""
        return self, slice(None)

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        """Arguments with which the op does not fail on examples that are not `active` (bool[size]), of which nobody reads the results."""
        return args, batched

    def operations(self, args: Sequence[TensorType], results: Sequence[TensorType]) -> float:
        """Plain operations on elements that native code performs; 0 for an op that computes nothing."""
        return 0.0

    def slowest(self, *types: TensorType) -> float:
        """How many times as long as usual native code may take, where the values of its operands decide."""
        return 1.0

    def splat(self, *values: Any) -> Any:
        """The one value that fills the whole result when every operand is filled with one value; None when it is not that simple."""
        return None

    def stores_once(self, *types: TensorType) -> bool:
        """Whether its native code stores every element of the result once, and does not read it: a `fuse` region can go on from there."""
        return False

    def attributes(self) -> list[tuple[str, Any]]:
        return [(f.name, getattr(self, f.name)) for f in fields(self)]


class View(Op, abstract=True):
    """An op whose result is its operand read through another layout: no code, no copy, where `view` finds one."""

    arity = 1

    def view(self, layout: Layout, source: TensorType) -> Layout | None:
        """Where the result's elements lie in the operand's buffer; None when only a copy will do."""
        raise AdjitError(f"{self.name}: no layout")

    def splat(self, *values: Any) -> Any:
        return values[0]

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(self, d)


def result_types(op: Op, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """`op.infer` as a tuple, whatever the number of results."""
    out = op.infer(*types)
    return out if isinstance(out, tuple) else (out,)


def apply(op: Op, *args: Operand) -> Operand:
    """Emit or evaluate `op`, whichever its operands are made for: an IR value emits, a tensor evaluates.

    Gives one operand for an op of one result; for the few ops of several (or no) results, a tuple, whatever the annotation says.
    """
    leader = args[0]
    for arg in args:
        if arg.level > leader.level:
            leader = arg
    out: Operand = leader.apply_op(op, args)
    return out


def perform(op: Op, *args: Operand) -> Operand:
    """Emit `op` where a builder is active, else evaluate it: for ops whose operands do not say which.

    Those are ops without operands, and effects, which belong to every run of a traced function even if their operands are constants.
    """
    from ..builder import perform_op  # noqa: PLC0415 - the builder emits ops, and ops find the builder

    out: Operand = perform_op(op, args)
    return out


class Emitter(Protocol):
    """Straight-line native code on several elements at a time; implemented by codegen. `Reg`s are opaque here.

    Predicates are eq, ne, lt, le, gt, ge. `call` reaches the vector math library by name: exp, log, tanh, ...
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
    def strict(self) -> Emitter:
        """The same emitter without contraction: every operation rounds, as NumPy's do."""
        ...

    def index(self, axis: int) -> Reg:
        """The i64 position of these elements along an axis of the domain."""
        ...


class Window(Protocol):
    """A native buffer seen through a layout; what `lower` works on. Axes and sizes are static."""

    @property
    def type(self) -> TensorType: ...
    def slice(self, axis: int, start: int, size: int, step: int = 1) -> Window: ...
    def at(self, *index: Reg) -> Window:
        """Drop leading axes by fixing them at run-time indices (i64 registers)."""
        ...

    def sliding(self, axis: int, count: int, step: int, size: int, dilation: int = 1) -> Window:
        """An axis as two: `count` positions `step` apart, and `size` elements `dilation` apart from each; they may overlap."""
        ...

    def transposed(self, *axes: int) -> Window: ...


class Loops(Protocol):
    """Loop nests over windows; implemented by codegen. Scalar arithmetic goes through `scalar`."""

    @property
    def scalar(self) -> Emitter: ...
    def loop(self, size: int) -> Any:
        """`with k.loop(n) as i:` runs the body for i = 0 .. n-1; `i` is an i64 register."""
        ...

    def fold(self, size: int, initial: Reg, step: Callable[[Reg, Reg], Reg]) -> None:
        """`value = step(i, value)` for i = 0 .. size-1, from the initial one, with the value in a register."""
        ...

    def each(self, size: int, work: float, body: Callable[..., None], *windows: Window) -> None:
        """`body(i, *windows)` for i = 0 .. size-1, which do not depend on each other: on all threads, where `work` operations in all are
        worth it. The windows are all that the body may use."""
        ...

    def call(self, body: Callable[..., None], *windows: Window, **settings: Hashable) -> None:
        """`body(k, *windows, **settings)` as a function: calls with equal settings, on windows of equal shapes and strides, share its code.
        The windows are all that the body may use."""
        ...

    def is_large(self, work: float) -> bool:
        """Whether so many operations are worth several threads."""
        ...

    def tile_width(self, dtype: DType) -> int:
        """Elements that a tile of a contraction is wide."""
        ...

    def load(self, source: Window, *index: Reg) -> Reg: ...
    def store(self, target: Window, value: Reg, *index: Reg) -> None: ...
    def copy(self, target: Window, source: Window) -> None: ...
    def accumulate(self, target: Window, source: Window) -> None:
        """target += source"""
        ...

    def fill(self, target: Window, value: float | int | bool) -> None: ...
    def matmul(self, target: Window, a: Window, b: Window, accumulate: bool = False, brief: bool = False) -> None:
        """target = a @ b, or target += a @ b. `brief`: by a routine that all kernels share, so that many shapes are little code."""
        ...

    def scratch(self, type: TensorType) -> Window:
        """Memory of the kernel's own, in row-major order, until it ends. Asked for outside of loops."""
        ...

    def private(self, type: TensorType) -> Window:
        """The same for the body of `each`, to be handed to it: there, memory that the thread has to itself."""
        ...

    def contract(self, spec: str, target: Window, a: Window, b: Window, accumulate: bool = False) -> None:
        """target = (or +=) a sum of products, as `np.einsum` writes it: "ij,ik,kj" names the axes of target, a and b."""
        ...

    def map(self, function: Callable[..., Sequence[Reg]], targets: Sequence[Window], sources: Sequence[Window]) -> None:
        """`function(emit, *elements of sources)` gives the elements of the targets, all windows of one shape; targets do not overlap."""
        ...

    def reduce(self, op: Reduce, function: Callable[..., Reg], target: Window, sources: Sequence[Window]) -> None:
        """All of `function(emit, *elements of sources)`, combined by `op` to the first element of the target."""
        ...

    def fail_if(self, condition: Reg, what: str, *details: Reg) -> None:
        """Leave the native function when `condition` holds; the runtime raises with `what` formatted with the details (i64 registers)."""
        ...


@contextmanager
def nest(k: Loops, shape: Sequence[int]) -> Iterator[list[Reg]]:
    """Loops around loops: `with nest(k, shape) as index:` runs the body for every index into `shape`, in row-major order."""
    with ExitStack() as stack:
        yield [stack.enter_context(k.loop(size)) for size in shape]
