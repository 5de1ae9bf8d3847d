"""The definition of an op: one class holding its type rule, eager evaluation, derivatives and lowering.

Owns `Op`, the registry, and `apply`, the single entry point through which every op is emitted or evaluated. Knows no particular op.

Also defines how `vmap` batches an op (`batch`): usually as the same op with its axes shifted (`widened`).

Derivatives are written per argument: `jvp(i, y, args, d)` pushes a tangent of argument `i` forward, `vjp(i, y, args, d)` pulls a cotangent
of the result back to argument `i`. Both are written in terms of operands, so the same rule serves the eager tape, the adjoint pass and,
applied again, derivatives of any order. None means that no derivative reaches this argument.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, dataclass_transform

import numpy as np

from ..active import current_builder
from ..cost import NARROW, NOTHING, Cost
from ..errors import AdjitError, OutOfBoundsError, UnsupportedError
from ..guards import is_recording
from ..operand import Concrete, Operand, evaluate
from ..sizes import is_symbolic
from ..types import TensorType, computed

if TYPE_CHECKING:
    from ..func import Stmt
    from ..layout import Layout
    from .lowering import Emitter as Emitter
    from .lowering import Loops as Loops
    from .lowering import Reg as Reg
    from .lowering import Registers as Registers
    from .lowering import Window as Window
    from .lowering import Writing as Writing
else:
    Emitter = Loops = Reg = Registers = Window = Writing = Any  # protocols take time to create, and only type checkers need them

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

REGISTRY: dict[str, type[Op]] = {}
C = TypeVar("C", bound=type)
TRACED = 3  # the level of values that are known only when the program runs


@dataclass_transform(eq_default=False)
def with_attributes(cls: C) -> C:
    """Decorate a class of ops: its annotated names are dataclass fields, which `Op.__init__` takes as arguments."""
    if cls.__doc__ is None:
        cls.__doc__ = ""  # otherwise `dataclass` writes one, from a signature that takes it longer than everything else
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
    is_visible: ClassVar[bool] = False  # its effect is visible outside the call: a call that fails afterwards cannot start again
    is_collective: ClassVar[bool] = False  # all ranks of an MPI program take part
    can_fail: ClassVar[bool] = False  # may raise at run time
    can_stop: ClassVar[bool] = False  # may be interrupted, or run out of memory
    arity: ClassVar[int | None] = None  # the number of operands, if the type rule does not check it
    error: ClassVar[type[AdjitError]] = OutOfBoundsError  # what native code raises on failure
    differentiable: ClassVar[bool] = True
    takes_stored: ClassVar[bool] = False  # operands of 16-bit floats, which other ops take as float32
    unread: ClassVar[tuple[int, ...]] = ()  # operands that `evaluate` and `python` ignore, because native code alone needs them
    made_from: ClassVar[dict[int, tuple[str, int]]] = {}  # operands that another op, given by name, computed from a further operand
    # The kind of op: passes and code generation test these properties, rather than its class.
    is_elementwise: ClassVar[bool] = False  # an element of the result depends on the operands' elements at the same position only
    is_reduction: ClassVar[bool] = False  # combines the elements along some axes, in a loop nest over its operand
    is_transparent: ClassVar[bool] = False  # computes nothing: its results are some of its operands, and it only affects derivatives
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
    joins_region: ClassVar[bool] = False  # as a host (`stores_once`), joins the region that first reads it instead of starting one
    in_place: ClassVar[int | None] = None  # the argument that native code may overwrite with the result, if it is not read afterwards

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if cls.name in REGISTRY:
            raise AdjitError(f"two ops are named {cls.name!r}: {REGISTRY[cls.name]} and {cls}")
        if hasattr(cls, "lower") and cls.cost is Op.cost:
            raise AdjitError(f"{cls.name}: an op that lowers itself must declare its cost: define `cost`")
        REGISTRY[cls.name] = cls

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names: tuple[str, ...] = self.__match_args__  # those of the fields
        if not names and not args and not kwargs:
            return
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
            raise FrozenInstanceError(f"{self.name}: ops are immutable: {name!r} cannot be set again")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"{self.name}: ops are immutable: {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = self.__dict__, other.__dict__
        return not mine or all(a is b or told_apart(a) == told_apart(b) for a, b in zip(mine.values(), theirs.values(), strict=True))

    def __hash__(self) -> int:
        values = self.__dict__
        return hash((type(self), *map(told_apart, values.values()))) if values else hash(type(self))

    @property
    def key(self) -> Op | type[Op]:
        """Equal for equal ops, and faster to hash and compare."""
        return self if self.__dict__ else type(self)

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
        raise UnsupportedError(f"{self.name}: this op has no Python source; define `python` beside `evaluate`")

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        raise AdjitError(f"{self.name}: no forward derivative")

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        raise AdjitError(f"{self.name}: no reverse derivative")

    def followed(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The arguments that derivatives pass to, if their type has derivatives."""
        return args

    def passed(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The operands that a transparent op returns as its results."""
        raise AdjitError(f"{self.name}: not a transparent op")

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
        raise UnsupportedError(f"{self.name}: vmap is not supported for this op")

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

    def tables(self, *types: TensorType) -> Mapping[int, Array]:
        """The values of operands that must be these constants, by position: native code reads them, `evaluate` does not."""
        return {}

    def cost(self, *types: TensorType) -> Cost:
        """What native code does for operands of these types, whose sizes are numbers: abstract for an op that lowers itself.

        This is for views and constants, which do nothing, and for effects and regions, whose blocks cost something.
        """
        return NOTHING

    def usual_cost(self, types: Sequence[TensorType], flops: float = 0.0, worst: float = 0.0) -> Cost:
        """The cost of an op that reads all of its operands. Reductions, and products with several columns, are computed in vectors."""
        results = self.result_types(types)
        touched = (*types, *results)
        in_vectors = self.is_reduction or (self.is_product and results[0].shape[-1:] >= (NARROW,))
        serial = 0.0 if in_vectors else max(flops, *(t.size for t in touched))
        return Cost(flops, bytes=sum(t.nbytes for t in touched), serial=serial, worst=worst)

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

    def conjugated(self) -> Op | None:
        """The op that maps the conjugate of its only operand to the conjugate of this op's result, if there is one that passes may use."""
        return None

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...] | None:
        """Operands and results that must be scalars for a statement to run in registers; None if it never does."""
        return None

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        """Compute a statement on scalars in registers, by a method of the kernel."""
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
        return kept(op, args, apply(op, *map(widened, args)))
    if leader.level < TRACED and is_recording() and any(map(holds_size, op.__dict__.values())):
        return perform(op, *args)  # a constant array with a size that is known when the program runs
    out: Operand = leader.apply_op(op, args)
    return out


def kept(op: Op, args: tuple[Operand, ...], out: Operand) -> Operand:
    """The result of an op for widened operands: again in 16 bits if the op only moves elements of one such dtype, which loses nothing."""
    if not op.only_moves:
        return out
    moved = {x.type.dtype for x in args if x.type.is_float}
    return apply(REGISTRY["cast"](moved.pop()), out) if len(moved) == 1 else out


def widened(x: Operand) -> Operand:
    """x in the dtype in which ops compute: float32 for 16-bit floats, its own otherwise."""
    dtype = computed(x.type.dtype)
    return x if x.type.dtype == dtype else apply(REGISTRY["cast"](dtype), x)


INEXACT = (float, complex)


def told_apart(attribute: Any) -> Any:
    """An attribute; the bits of a negative zero, which equals 0.0 but means something else, and of a NaN, which does not equal itself."""
    if not isinstance(attribute, INEXACT) or (attribute == attribute and attribute != 0):
        return attribute
    if isinstance(attribute, complex):
        return told_apart(attribute.real), told_apart(attribute.imag)
    return attribute if attribute == 0 and math.copysign(1.0, attribute) > 0 else struct.pack("d", attribute)


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
        return kept(op, args, perform(op, *map(widened, args)))
    builder = current_builder()
    if builder is not None:
        out: Operand = builder.apply(op, args)
        return out
    return apply(op, *args) if args else evaluated(op)


def evaluated(op: Op) -> Operand:
    """The result of an op without operands, evaluated now, even while a function is traced."""
    (array,) = evaluate(op, [], [])
    return Concrete(array)


@contextmanager
def nest(k: Loops, shape: Sequence[int]) -> Iterator[list[Reg]]:
    """Nested loops: `with nest(k, shape) as index:` runs the body for every index into `shape`, in row-major order."""
    with ExitStack() as stack:
        yield [stack.enter_context(k.loop(size)) for size in shape]
