"""Simplifications that depend on attributes of ops: views of views, casts of casts, reductions of broadcasts.

Each rule is a function of a statement whose op has a certain class; it returns the operand that replaces the result, or None. Exact in the
sense of `simplify`, which applies them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from adjit.ir.effects import effects_of
from adjit.ir.func import Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add
from adjit.ir.ops.base import Op, View
from adjit.ir.ops.division import Remainder
from adjit.ir.ops.index import ScatterAdd
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.logic import BitwiseAnd
from adjit.ir.ops.maps import Cast, Mul
from adjit.ir.ops.powers import IntegerPow
from adjit.ir.ops.reduce import Max, Min, Reduce, Sum
from adjit.ir.ops.shape import Broadcast, Flip, Pad, Reshape, Slice, Transpose
from adjit.ir.ops.stack import StackAccumulate, StackAdd, StackZeros
from adjit.ir.sizes import at_least
from adjit.ir.types import DType, TensorType

O = TypeVar("O", bound=Op)
R = TypeVar("R", bound=Op)


class Made(NamedTuple, Generic[O]):
    """An op of a known class, its operands and its result."""

    op: O
    args: tuple[Operand, ...]
    result: Operand


class Rewriter(Protocol):
    """The part of the walk that a rule can use: the preceding statements, and a way to emit."""

    def emit(self, op: Op, args: tuple[Operand, ...]) -> Operand: ...
    def made_by(self, operand: Operand, op_class: type[O]) -> Made[O] | None: ...


Structural: TypeAlias = Callable[[Rewriter, Made[O]], "Operand | None"]
STRUCTURAL: dict[type[Op], list[Structural[Any]]] = {}


def structural(*op_classes: type[R]) -> Callable[[Structural[R]], Structural[R]]:
    """Register a rule for statements with ops of these classes."""

    def register(rule: Structural[R]) -> Structural[R]:
        for op_class in op_classes:
            STRUCTURAL.setdefault(op_class, []).append(rule)
        return rule

    return register


@structural(Reshape, Broadcast)
def drop_identity(r: Rewriter, stmt: Made[View]) -> Operand | None:
    """reshape or broadcast to the operand's own shape => x."""
    (x,) = stmt.args
    return x if x.type == stmt.result.type else None


@structural(Reshape)
def join_reshapes(r: Rewriter, stmt: Made[Reshape]) -> Operand | None:
    """reshape(reshape(x)) => reshape(x): both keep the row-major order."""
    inner = r.made_by(stmt.args[0], Reshape)
    return r.emit(stmt.op, inner.args) if inner else None


@structural(Add)
def add_before_padding(r: Rewriter, stmt: Made[Add]) -> Operand | None:
    """add(pad(x), pad(y)) => pad(add(x, y)), for the same padding with zeros: 0 + 0 is 0. Gradients of slices add up like this."""
    x, y = (r.made_by(a, Pad) for a in stmt.args)
    if x is None or y is None or x.op != y.op or x.op.value != 0 or x.args[0].type != y.args[0].type:
        return None
    return r.emit(x.op, (r.emit(stmt.op, (x.args[0], y.args[0])),))


@structural(Add)
def join_neighbours(r: Rewriter, stmt: Made[Add]) -> Operand | None:
    """add(pad(x), pad(y)) => pad(concatenate(x, y)), if x ends along one axis where y begins: gradients of neighbouring slices. x + 0 is x,
    except for the sign of a zero.
    """
    first, second = (r.made_by(a, Pad) for a in stmt.args)
    if first is None or second is None:
        return None
    for x, y in ((first, second), (second, first)):
        p, q = x.op, y.op
        if any((*p.interior, *q.interior)) or not (is_positive_zero(p.value) and is_positive_zero(q.value)):
            return None  # with -0.0, `pad_joined_views` has made the pads of a concatenation
        ends = tuple(low + n for low, n in zip(p.low, x.args[0].type.shape, strict=True))
        apart = [a for a in range(len(ends)) if (p.low[a], p.high[a]) != (q.low[a], q.high[a])]
        if len(apart) == 1 and q.low[apart[0]] == ends[apart[0]]:
            (axis,) = apart
            both = r.emit(Concatenate(axis), (x.args[0], y.args[0]))
            high = tuple(q.high[a] if a == axis else h for a, h in enumerate(p.high))
            return both if not any((*p.low, *high)) else r.emit(Pad(p.low, high, p.interior, p.value), (both,))
    return None


def is_positive_zero(value: complex) -> bool:
    return value == 0 and not np.signbit(np.real(value))


@structural(Remainder)
def mask_low_bits(r: Rewriter, stmt: Made[Remainder]) -> Operand | None:
    """remainder(x, 2**k) => bitwise_and(x, 2**k - 1), for integers: a floored remainder keeps the low bits of negative numbers, too."""
    x, by = stmt.args
    if not isinstance(by, Literal) or by.type.dtype.kind not in "iu":
        return None
    size = int(by.value)
    return r.emit(BitwiseAnd(), (x, Literal(size - 1, by.type))) if size > 0 and size & (size - 1) == 0 else None


@structural(Concatenate)
def join_concatenates(r: Rewriter, stmt: Made[Concatenate]) -> Operand | None:
    """concatenate(concatenate(x, y), z) => concatenate(x, y, z), along one axis."""
    parts: list[Operand] = []
    for arg in stmt.args:
        inner = r.made_by(arg, Concatenate)
        parts += inner.args if inner is not None and inner.op == stmt.op else [arg]
    return r.emit(stmt.op, tuple(parts)) if len(parts) > len(stmt.args) else None


@structural(Broadcast)
def join_broadcasts(r: Rewriter, stmt: Made[Broadcast]) -> Operand | None:
    """broadcast(broadcast(x)) => broadcast(x): both align axes from the last."""
    inner = r.made_by(stmt.args[0], Broadcast)
    return r.emit(stmt.op, inner.args) if inner else None


@structural(Broadcast)
def broadcast_without_unit_axes(r: Rewriter, stmt: Made[Broadcast]) -> Operand | None:
    """broadcast(reshape(x)) => broadcast(x), if the reshape only adds leading axes of size 1: broadcasting does that itself."""
    inner = r.made_by(stmt.args[0], Reshape)
    if inner is None:
        return None
    (x,) = inner.args
    shape = inner.result.type.shape
    return r.emit(stmt.op, (x,)) if shape == (1,) * (len(shape) - x.type.rank) + x.type.shape else None


@structural(Transpose)
def join_transposes(r: Rewriter, stmt: Made[Transpose]) -> Operand | None:
    """transpose(transpose(x)) => transpose(x), or x if they cancel."""
    if stmt.op.axes == tuple(range(len(stmt.op.axes))):
        return stmt.args[0]
    inner = r.made_by(stmt.args[0], Transpose)
    if inner is None:
        return None
    return r.emit(Transpose(tuple(inner.op.axes[a] for a in stmt.op.axes)), inner.args)


@structural(Transpose)
def transpose_of_unit_axes(r: Rewriter, stmt: Made[Transpose]) -> Operand | None:
    """transpose(x) => reshape(x), if the axes longer than 1 keep their order: no element moves."""
    (x,) = stmt.args
    long = [a for a in stmt.op.axes if x.type.shape[a] != 1]
    return r.emit(Reshape(stmt.result.type.shape), (x,)) if long == sorted(long) else None


@structural(Flip)
def join_flips(r: Rewriter, stmt: Made[Flip]) -> Operand | None:
    """flip(flip(x)) => flip along the axes that occur once, or x."""
    inner = r.made_by(stmt.args[0], Flip)
    if inner is None:
        return None
    axes = tuple(sorted(set(stmt.op.axes) ^ set(inner.op.axes)))
    return r.emit(Flip(axes), inner.args) if axes else inner.args[0]


@structural(Slice)
def join_slices(r: Rewriter, stmt: Made[Slice]) -> Operand | None:
    """slice(slice(x)) => slice(x), or x if the whole is selected."""
    (x,) = stmt.args
    if stmt.result.type == x.type:
        return x
    inner = r.made_by(x, Slice)
    if inner is None or stmt.result.type.size == 0:
        return None
    starts = tuple(b + s * k for b, s, k in zip(inner.op.starts, stmt.op.starts, inner.op.steps))
    steps = tuple(k * m for k, m in zip(inner.op.steps, stmt.op.steps))
    stops = tuple(b + (n - 1) * k + 1 for b, k, n in zip(starts, steps, stmt.result.type.shape))
    return r.emit(Slice(starts, stops, steps), inner.args)


@structural(IntegerPow)
def small_powers(r: Rewriter, stmt: Made[IntegerPow]) -> Operand | None:
    """integer_pow(x) => x for the first power, 1 for the zeroth: for NaN too, as in IEEE 754."""
    if stmt.op.n == 1:
        return stmt.args[0]
    return Literal(1, stmt.result.type) if stmt.op.n == 0 else None


@structural(Cast)
def join_casts(r: Rewriter, stmt: Made[Cast]) -> Operand | None:
    """cast(cast(x)) => cast(x), if the first is lossless, so that the second sees the same numbers."""
    (x,) = stmt.args
    target = stmt.result.type.dtype
    if x.type.dtype == target:
        return x
    inner = r.made_by(x, Cast)
    if inner is None:
        return None
    source, between = inner.args[0].type.dtype, x.type.dtype
    if not is_lossless(source, between):
        return None
    # Floats saturate where integers wrap around: between two integer dtypes this makes a difference, unless every value fits.
    if between.kind in "fc" and source.kind in "iu" and target.kind in "iu" and not is_lossless(source, target):
        return None
    return r.emit(stmt.op, inner.args)


def is_lossless(source: DType, target: DType) -> bool:
    """Whether `target` can represent every value of `source`; NumPy's "safe" casts let int64 lose digits in float64."""
    if source == target or source.kind == "b":
        return True
    if source.kind in "iu" and target.kind in "fc":  # the mantissa has more than half of a float's bits, and not all
        return source.itemsize < np.finfo(target).dtype.itemsize
    return target.kind != "b" and bool(np.can_cast(source, target, "safe"))


@structural(Sum)
def join_sums(r: Rewriter, stmt: Made[Sum]) -> Operand | None:
    """sum(sum(x)) => sum(x) over all the axes: reassociated."""
    inner = r.made_by(stmt.args[0], Sum)
    if inner is None:
        return None
    (x,) = inner.args
    left = [a for a in range(x.type.rank) if a not in inner.op.axes]
    return r.emit(Sum(tuple(sorted((*inner.op.axes, *(left[a] for a in stmt.op.axes))))), (x,))


@structural(Sum, Max, Min)
def reduce_unit_axes(r: Rewriter, stmt: Made[Reduce]) -> Operand | None:
    """A sum, max or min along axes of size 1 => reshape(x): there is only one element to combine."""
    (x,) = stmt.args
    if any(x.type.shape[a] != 1 for a in stmt.op.axes):
        return None
    return r.emit(Reshape(stmt.result.type.shape), (x,))


@structural(Sum, Max, Min)
def reduce_reshaped(r: Rewriter, stmt: Made[Reduce]) -> Operand | None:
    """A sum, max or min of all elements of reshape(x) or transpose(x) => that of x: their order does not matter."""
    inner: Made[Any] | None = r.made_by(stmt.args[0], Reshape) or r.made_by(stmt.args[0], Transpose)
    if inner is None or stmt.result.type.shape or not inner.args[0].type.rank:
        return None
    (x,) = inner.args
    return r.emit(type(stmt.op)(tuple(range(x.type.rank))), (x,))


@structural(Sum, Max, Min)
def reduce_broadcast(r: Rewriter, stmt: Made[Reduce]) -> Operand | None:
    """sum(broadcast(x)) => sum(x) * count: multiplication replaces adding equal terms, and rounds once. max and min need no factor."""
    inner = r.made_by(stmt.args[0], Broadcast)
    if inner is None or 0 in inner.result.type.shape:
        return None
    (x,) = inner.args
    wide = inner.result.type.shape
    lead = len(wide) - x.type.rank
    repeated = [a for a in stmt.op.axes if wide[a] != 1 and (a < lead or x.type.shape[a - lead] == 1)]
    if not repeated:
        return None
    own = tuple(a - lead for a in stmt.op.axes if a >= lead)
    part = r.emit(type(stmt.op)(own), (x,)) if own else x
    if isinstance(stmt.op, Sum):
        count = inner.result.type.with_shape([wide[a] for a in repeated]).size
        part = r.emit(Mul(), (part, Literal(count, part.type)))
    return part if part.type == stmt.result.type else r.emit(Broadcast(stmt.result.type.shape), (part,))


def sink_broadcast(r: Rewriter, stmt: Stmt) -> Operand | None:
    """op(broadcast(x), broadcast(y), literal) => broadcast(op(x, y, literal)): elementwise ops compute equal elements once."""
    source: TensorType | None = None
    args: list[Operand] = []
    for arg in stmt.args:
        inner = r.made_by(arg, Broadcast)
        if inner is not None:
            (x,) = inner.args
            if source is not None and x.type.shape != source.shape:
                return None
            source = x.type
            args.append(x)
        elif isinstance(arg, Literal):
            args.append(arg)
        else:
            return None
    if source is None or not at_least(stmt.result.type.size, source.size + 1):
        return None
    small = [Literal(a.value, a.type.with_shape(source.shape)) if isinstance(a, Literal) else a for a in args]
    return r.emit(Broadcast(stmt.result.type.shape), (r.emit(stmt.op, tuple(small)),))


@structural(StackAdd)
def add_in_place(r: Rewriter, stmt: Made[StackAdd]) -> Operand | None:
    """stack_add(x, stack_accumulate(stack_zeros, i, d)) => stack_accumulate(x, i, d): adds one element instead of all."""
    a, b = stmt.args
    if effects_of(stmt.op).fails:  # the lengths may differ
        return None
    for x, other in ((a, b), (b, a)):
        if r.made_by(other, StackZeros):
            return x
        made = r.made_by(other, StackAccumulate)
        zeros = None if made is None else r.made_by(made.args[0], StackZeros)
        if made is not None and zeros is not None:
            return r.emit(made.op, (x, *made.args[1:]))
    return None


@structural(Add)
def scatter_into_sum(r: Rewriter, stmt: Made[Add]) -> Operand | None:
    """add(x, scatter_add(0, u, i)) => scatter_add(x, u, i): only the elements that change are read and written.

    Negative zeros in the rest of x stay negative.
    """
    a, b = stmt.args
    for x, other in ((a, b), (b, a)):
        made = r.made_by(other, ScatterAdd)
        if made and isinstance(made.args[0], Literal) and made.args[0].value == 0:
            return r.emit(ScatterAdd(), (x, *made.args[1:]))
    return None
