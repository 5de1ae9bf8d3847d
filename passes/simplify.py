"""Algebraic simplification: a table of exact rewrites, and functions for what depends on attributes.

Exact means: every element keeps its value, for NaN, infinities and both zeros (a NaN's sign and payload are nobody's business). Sums are
the exception that the numerics allow: they may be reassociated, and a sum of zeros have either sign. So `x + 0.0` stays (it turns -0.0 into 0.0), and so does `x * 0.0`.

One walk forwards: operands are simple already when a statement is looked at, and what a rule emits is simplified in turn. Each rule leaves
less to compute, or as much over fewer elements, or the same in the spelling that other rules know; so the walk ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Literal, Operand, fold_literals
from adjit.ir.ops.base import Op, result_types
from adjit.ir.ops.maps import Cast, Map, Mul
from adjit.ir.ops.powers import IntegerPow
from adjit.ir.ops.reduce import Max, Min, Reduce, Sum
from adjit.ir.ops.shape import Broadcast, Flip, Reshape, Slice, Transpose
from adjit.ir.types import DType, TensorType

from .rewrite import Renaming, is_pure
from .rules import LITERAL, head, parse_rules

GUARDS: dict[str, Callable[[Operand], bool]] = {
    "integer": lambda x: x.dtype.kind in "iub",
    "signed": lambda x: x.dtype.kind in "fi",
    "boolean": lambda x: x.dtype.kind == "b",
    "nonzero": lambda x: isinstance(x, Literal) and bool(x.value != 0),
    "zero": lambda x: isinstance(x, Literal) and bool(x.value == 0),
    "finite": lambda x: isinstance(x, Literal) and bool(np.isfinite(x.value)),
    "positive": lambda x: isinstance(x, Literal) and bool(x.value > 0),
    "invertible": lambda x: isinstance(x, Literal) and has_exact_reciprocal(x),
}

RULES = parse_rules(
    """
    add_minus_zero:    add(x, -0.0) => x                                # 0.0 + -0.0 is 0.0, and -0.0 + -0.0 is -0.0
    add_zero:          add(x, 0) => x if integer(x)                     # integers have one zero
    add_negated:       add(x, neg(y)) => sub(x, y)                      # IEEE defines x - y as x + (-y)
    add_add:           add(add(x, C), D) => add(x, add(C, D)) if integer(x)   # integers wrap around, which is associative
    sub_zero:          sub(x, 0.0) => x                                 # x + (-0.0), or an integer's only zero
    sub_from_minus_zero: sub(-0.0, x) => neg(x)                         # -0.0 - x is -x, for both zeros too
    sub_from_zero:     sub(0, x) => neg(x) if integer(x)                # integers have one zero
    sub_itself:        sub(x, x) => 0 if integer(x)                     # no infinity whose difference would be NaN
    sub_negated:       sub(x, neg(y)) => add(x, y)                      # IEEE defines x - y as x + (-y)
    mul_one:           mul(x, 1) => x                                   # exact
    mul_minus_one:     mul(x, -1) => neg(x)                             # only the sign changes
    mul_zero:          mul(x, 0) => 0 if integer(x)                     # no NaN, infinity or sign to keep
    mul_negated:       mul(neg(x), neg(y)) => mul(x, y)                 # signs multiply apart from magnitudes
    mul_negated_by:    mul(neg(x), C) => mul(x, neg(C))                 # signs multiply apart from magnitudes
    mul_mul:           mul(mul(x, C), D) => mul(x, mul(C, D)) if integer(x)   # integers wrap around, which is associative
    div_one:           div(x, 1) => x                                   # exact
    div_minus_one:     div(x, -1) => neg(x)                             # only the sign changes
    div_power_of_two:  div(x, C) => mul(x, div(1, C)) if invertible(C)  # both round the same real number, once
    div_negated:       div(neg(x), neg(y)) => div(x, y)                 # signs divide apart from magnitudes
    neg_neg:           neg(neg(x)) => x                                 # only the sign changes, twice
    neg_sub:           neg(sub(x, y)) => sub(y, x) if integer(x)        # of floats, x - x is 0.0 and its negation -0.0
    neg_mul:           neg(mul(x, C)) => mul(x, neg(C))                 # signs multiply apart from magnitudes
    strong_mul_known:  strong_mul(C, x) => mul(C, x) if nonzero(C)      # no element of C asks for a strong zero
    strong_mul_zero:   strong_mul(C, x) => C if zero(C)                 # that is what it is for
    strong_mul_by:     strong_mul(x, C) => mul(x, C) if finite(C), positive(C)   # 0 * C is that 0, with its sign
    strong_mul_negated: strong_mul(neg(x), y) => neg(strong_mul(x, y))  # a zero keeps its sign through both
    where_true:        where(1, x, y) => x                              # by definition
    where_false:       where(0, x, y) => y                              # by definition
    where_same:        where(c, x, x) => x                              # by definition
    where_not:         where(bitwise_not(c), x, y) => where(c, y, x)    # a bool has two values
    where_where_then:  where(c, where(c, x, y), z) => where(c, x, z)    # y is never chosen
    where_where_else:  where(c, x, where(c, y, z)) => where(c, x, z)    # y is never chosen
    not_not:           bitwise_not(bitwise_not(x)) => x                 # every bit flips twice
    and_itself:        bitwise_and(x, x) => x                           # bit by bit
    or_itself:         bitwise_or(x, x) => x                            # bit by bit
    xor_itself:        bitwise_xor(x, x) => 0                           # bit by bit
    and_zero:          bitwise_and(x, 0) => 0                           # bit by bit
    or_zero:           bitwise_or(x, 0) => x                            # bit by bit
    xor_zero:          bitwise_xor(x, 0) => x                           # bit by bit
    and_true:          bitwise_and(x, 1) => x if boolean(x)             # bit by bit
    or_true:           bitwise_or(x, 1) => 1 if boolean(x)              # bit by bit
    equal_itself:      equal(x, x) => 1 if integer(x)                   # NaN is the one value that differs from itself
    not_equal_itself:  not_equal(x, x) => 0 if integer(x)               # NaN is the one value that differs from itself
    abs_negated:       abs(neg(x)) => abs(x) if signed(x)               # the sign goes anyway; unsigned integers have none
    abs_twice:         abs(abs(x)) => abs(x)                            # the sign is gone already
    maximum_itself:    maximum(x, x) => x                               # NaN too
    minimum_itself:    minimum(x, x) => x                               # NaN too
    detached:          detach(x) => x                                   # it only stops derivatives, which have been taken by now
    """,
    GUARDS,
)


def has_exact_reciprocal(x: Literal) -> bool:
    """Whether x is a power of two (of either sign) and 1 / x exists in its dtype."""
    if x.dtype.kind != "f" or not np.isfinite(x.value) or x.value == 0:
        return False
    with np.errstate(all="ignore"):
        reciprocal = x.dtype.type(1) / x.value
    return abs(np.frexp(x.value)[0]) == 0.5 and bool(np.isfinite(reciprocal)) and bool(reciprocal != 0)


def simplify(func: Func) -> Func:
    rewriter = Rewriter()
    return rewriter.renaming.func(func, rewriter.visit(func.block))


class Rewriter:
    """Walks the statements of a function; rules look at definitions and emit through it."""

    def __init__(self) -> None:
        self.renaming = Renaming()
        self.definitions: dict[int, Stmt] = {}
        self.out: list[Stmt] = []
        self.current: Stmt | None = None

    def visit(self, block: Block) -> list[Stmt]:
        outer, self.out = self.out, []
        for stmt in block.stmts:
            stmt = self.renaming.stmt(stmt)
            if stmt.blocks:
                stmt = stmt.replace(blocks=tuple(map(self._nested, stmt.blocks)))
            self.current = stmt
            new = self._rewritten(stmt)
            if new is None:
                self._append(stmt)
                continue
            self.renaming[stmt.result] = new
            if isinstance(new, Value) and new.name is None and isinstance(stmt.result, Value):
                new.name = stmt.result.name
        done, self.out = self.out, outer
        return done

    def _nested(self, block: Block) -> Block:
        stmts = self.visit(block)
        return Block(block.params, stmts, self.renaming.all(block.results), self.renaming.all(block.saving))

    def _append(self, stmt: Stmt) -> None:
        self.out.append(stmt)
        for result in stmt.results:
            self.definitions[id(result)] = stmt

    def _rewritten(self, stmt: Stmt) -> Operand | None:
        """What takes the place of the statement's result; None where it stays."""
        if len(stmt.results) != 1 or stmt.blocks or not is_pure(stmt.op):
            return None
        heads = tuple([head(a, self.definitions) for a in stmt.args])
        if heads and all(h is LITERAL for h in heads):
            folded = fold_literals(stmt.op, stmt.args)
            if folded is not None:
                return folded
        for rule in RULES.candidates(stmt.op.name, heads):
            new = rule.apply(stmt, self.definitions, self.emit)
            if new is not None:
                return new
        for structural in STRUCTURAL.get(type(stmt.op), ()):
            new = structural(self, stmt)
            if new is not None:
                return new
        return sink_broadcast(self, stmt) if "broadcast" in heads and isinstance(stmt.op, Map) else None

    def emit(self, op: Op, args: tuple[Operand, ...]) -> Operand:
        """The result of `op`, simplified: an operand that is there already, a literal, or that of a new statement."""
        at = self.current
        assert at is not None
        (type,) = result_types(op, [a.type for a in args])
        stmt = Stmt(op, args, (Value(type),), (), at.location, at.phase, at.origin)
        new = self._rewritten(stmt)
        if new is not None:
            return new
        self._append(stmt)
        return stmt.result

    def made_by(self, operand: Operand, op_class: type[Op]) -> Stmt | None:
        """The statement that makes the operand, if it is one of `op_class`."""
        stmt = self.definitions.get(id(operand))
        return stmt if stmt is not None and isinstance(stmt.op, op_class) else None


# ---- rules that depend on attributes; each takes the rewriter and a statement of its op

Structural = Callable[[Rewriter, Stmt], "Operand | None"]
STRUCTURAL: dict[type[Op], list[Structural]] = {}


def structural(*op_classes: type[Op]) -> Callable[[Structural], Structural]:
    def register(rule: Structural) -> Structural:
        for op_class in op_classes:
            STRUCTURAL.setdefault(op_class, []).append(rule)
        return rule

    return register


@structural(Reshape, Broadcast)
def drop_identity(r: Rewriter, stmt: Stmt) -> Operand | None:
    """reshape and broadcast to the shape that is there => x."""
    (x,) = stmt.args
    return x if x.type == stmt.result.type else None


@structural(Reshape)
def join_reshapes(r: Rewriter, stmt: Stmt) -> Operand | None:
    """reshape(reshape(x)) => reshape(x): both keep the row-major order."""
    inner = r.made_by(stmt.args[0], Reshape)
    return r.emit(stmt.op, inner.args) if inner else None


@structural(Broadcast)
def join_broadcasts(r: Rewriter, stmt: Stmt) -> Operand | None:
    """broadcast(broadcast(x)) => broadcast(x): axes are matched from the last in both."""
    inner = r.made_by(stmt.args[0], Broadcast)
    return r.emit(stmt.op, inner.args) if inner else None


@structural(Broadcast)
def broadcast_without_unit_axes(r: Rewriter, stmt: Stmt) -> Operand | None:
    """broadcast(reshape(x)) => broadcast(x), where the reshape only adds leading axes of size 1: broadcasting does that itself."""
    inner = r.made_by(stmt.args[0], Reshape)
    if inner is None:
        return None
    (x,) = inner.args
    shape = inner.result.type.shape
    lead = len(shape) - x.type.rank
    if lead < 0 or shape != (1,) * lead + x.type.shape:
        return None
    return r.emit(stmt.op, (x,))


@structural(Transpose)
def join_transposes(r: Rewriter, stmt: Stmt) -> Operand | None:
    """transpose(transpose(x)) => transpose(x), or x where they undo each other."""
    assert isinstance(stmt.op, Transpose)
    if stmt.op.axes == tuple(range(len(stmt.op.axes))):
        return stmt.args[0]
    inner = r.made_by(stmt.args[0], Transpose)
    if inner is None:
        return None
    assert isinstance(inner.op, Transpose)
    return r.emit(Transpose(tuple(inner.op.axes[a] for a in stmt.op.axes)), inner.args)


@structural(Transpose)
def transpose_of_unit_axes(r: Rewriter, stmt: Stmt) -> Operand | None:
    """transpose(x) => reshape(x), where the axes longer than 1 keep their order: no element moves."""
    assert isinstance(stmt.op, Transpose)
    (x,) = stmt.args
    long = [a for a in stmt.op.axes if x.type.shape[a] != 1]
    return r.emit(Reshape(stmt.result.type.shape), (x,)) if long == sorted(long) else None


@structural(Flip)
def join_flips(r: Rewriter, stmt: Stmt) -> Operand | None:
    """flip(flip(x)) => flip along the axes named once, or x."""
    assert isinstance(stmt.op, Flip)
    inner = r.made_by(stmt.args[0], Flip)
    if inner is None:
        return None
    assert isinstance(inner.op, Flip)
    axes = tuple(sorted(set(stmt.op.axes) ^ set(inner.op.axes)))
    return r.emit(Flip(axes), inner.args) if axes else inner.args[0]


@structural(Slice)
def join_slices(r: Rewriter, stmt: Stmt) -> Operand | None:
    """slice(slice(x)) => slice(x), and x where it takes everything."""
    assert isinstance(stmt.op, Slice)
    (x,) = stmt.args
    if stmt.result.type == x.type:
        return x
    inner = r.made_by(x, Slice)
    if inner is None or stmt.result.type.size == 0:
        return None
    assert isinstance(inner.op, Slice)
    starts = tuple(b + s * k for b, s, k in zip(inner.op.starts, stmt.op.starts, inner.op.steps))
    steps = tuple(k * m for k, m in zip(inner.op.steps, stmt.op.steps))
    stops = tuple(b + (n - 1) * k + 1 for b, k, n in zip(starts, steps, stmt.result.type.shape))
    return r.emit(Slice(starts, stops, steps), inner.args)


@structural(IntegerPow)
def small_powers(r: Rewriter, stmt: Stmt) -> Operand | None:
    """integer_pow(x) => x for the first power, 1 for the zeroth: of NaN too, as IEEE has it."""
    assert isinstance(stmt.op, IntegerPow)
    if stmt.op.n == 1:
        return stmt.args[0]
    return Literal(1, stmt.result.type) if stmt.op.n == 0 else None


@structural(Cast)
def join_casts(r: Rewriter, stmt: Stmt) -> Operand | None:
    """cast(cast(x)) => cast(x), where the first loses nothing, so that the second sees the same numbers."""
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
    # Floats saturate where integers wrap around: on the way from integer to integer that is a difference, unless everything fits.
    if between.kind == "f" and source.kind in "iu" and target.kind in "iu" and not is_lossless(source, target):
        return None
    return r.emit(stmt.op, inner.args)


def is_lossless(source: DType, target: DType) -> bool:
    """Whether every value of `source` is one of `target`; NumPy's "safe" casts let int64 lose digits in float64."""
    if source == target or source.kind == "b":
        return True
    if source.kind in "iu" and target.kind == "f":
        return source.itemsize * 8 - (source.kind == "i") <= np.finfo(target).nmant + 1
    return target.kind != "b" and bool(np.can_cast(source, target, "safe"))


@structural(Sum)
def join_sums(r: Rewriter, stmt: Stmt) -> Operand | None:
    """sum(sum(x)) => sum(x) over all the axes: reassociated."""
    assert isinstance(stmt.op, Sum)
    inner = r.made_by(stmt.args[0], Sum)
    if inner is None:
        return None
    assert isinstance(inner.op, Sum)
    (x,) = inner.args
    left = [a for a in range(x.type.rank) if a not in inner.op.axes]
    return r.emit(Sum(tuple(sorted((*inner.op.axes, *(left[a] for a in stmt.op.axes))))), (x,))


@structural(Sum, Max, Min)
def reduce_unit_axes(r: Rewriter, stmt: Stmt) -> Operand | None:
    """A sum, max or min along axes of size 1 => reshape(x): there is one element to combine."""
    assert isinstance(stmt.op, Reduce)
    (x,) = stmt.args
    if any(x.type.shape[a] != 1 for a in stmt.op.axes):
        return None
    return r.emit(Reshape(stmt.result.type.shape), (x,))


@structural(Sum, Max, Min)
def reduce_reshaped(r: Rewriter, stmt: Stmt) -> Operand | None:
    """A sum, max or min of all elements of reshape(x) or transpose(x) => that of x: whatever their order."""
    assert isinstance(stmt.op, Reduce)
    inner = r.made_by(stmt.args[0], Reshape) or r.made_by(stmt.args[0], Transpose)
    if inner is None or stmt.result.type.shape or not inner.args[0].type.rank:
        return None
    (x,) = inner.args
    return r.emit(type(stmt.op)(tuple(range(x.type.rank))), (x,))


@structural(Sum, Max, Min)
def reduce_broadcast(r: Rewriter, stmt: Stmt) -> Operand | None:
    """sum(broadcast(x)) => sum(x) * count: equal terms are added by multiplying, which rounds once. Of max and min, once is enough."""
    assert isinstance(stmt.op, Reduce)
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
    if source is None or source.size >= stmt.result.type.size or "shape" in dict(stmt.op.attributes()):
        return None
    small = [Literal(a.value, a.type.with_shape(source.shape)) if isinstance(a, Literal) else a for a in args]
    return r.emit(Broadcast(stmt.result.type.shape), (r.emit(stmt.op, tuple(small)),))
