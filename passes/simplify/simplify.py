"""Algebraic simplification: a table of exact rewrites; those that depend on attributes of ops are in `structural`.

Exact means that every element keeps its value, including NaN, infinities and both zeros (the sign and payload of a NaN are unspecified). So
`x + 0.0` stays (it turns -0.0 into 0.0), and so does `x * 0.0`. Sums are the exception that the numerics allow: they may be reassociated,
and a sum of zeros may have either sign.

One forward walk: operands have been simplified when a statement is visited, and what a rule emits is simplified in turn. Each rule leaves
less to compute, or as much over fewer elements, or an equivalent form that other rules match; so the walk terminates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Literal, Operand, fold_literals
from adjit.ir.ops.base import Op

from ..rewrite import Renaming, is_pure
from .rules import parse_rules
from .structural import STRUCTURAL, Made, O, sink_broadcast

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
    mul_negated_one:   mul(neg(x), y) => neg(mul(x, y))                 # signs multiply apart from magnitudes; sums take the neg up
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
    """,
    GUARDS,
)


def has_exact_reciprocal(x: Literal) -> bool:
    """Whether x is a power of two (of either sign) and 1 / x is representable in its dtype."""
    if x.dtype.kind != "f" or not np.isfinite(x.value) or x.value == 0:
        return False
    with np.errstate(all="ignore"):
        reciprocal = x.dtype.type(1) / x.value
    return abs(np.frexp(x.value)[0]) == 0.5 and bool(np.isfinite(reciprocal)) and bool(reciprocal != 0)


def simplify(func: Func) -> Func:
    """Return the function itself if there is nothing to simplify."""
    rewriter = Simplifier()
    stmts = rewriter.visit(func.block)
    return rewriter.renaming.func(func, stmts) if rewriter.renaming.table else func


class Simplifier:
    """Walks the statements of a function; rules query definitions and emit statements through it."""

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
        return self.renaming.body(block, self.visit(block))

    def _append(self, stmt: Stmt) -> None:
        self.out.append(stmt)
        for result in stmt.results:
            self.definitions[id(result)] = stmt

    def _rewritten(self, stmt: Stmt) -> Operand | None:
        """The operand that replaces the statement's result; None if it stays."""
        if len(stmt.results) != 1 or stmt.blocks or not is_pure(stmt):
            return None
        heads = RULES.heads(stmt, self.definitions)
        if stmt.args and all(isinstance(a, Literal) for a in stmt.args):
            folded = fold_literals(stmt.op, stmt.args)
            if folded is not None:
                return folded
        for rule in RULES.candidates(stmt.op.name, heads):
            new = rule.apply(stmt, self.definitions, self.emit)
            if new is not None:
                return new
        for structural in STRUCTURAL.get(type(stmt.op), ()):
            new = structural(self, Made(stmt.op, stmt.args, stmt.result))
            if new is not None:
                return new
        return sink_broadcast(self, stmt) if "broadcast" in heads and stmt.op.is_elementwise else None

    def emit(self, op: Op, args: tuple[Operand, ...]) -> Operand:
        """The result of `op`, simplified: an existing operand, a literal, or the result of a new statement."""
        at = self.current
        assert at is not None
        (type,) = op.result_types([a.type for a in args])
        stmt = Stmt(op, args, (Value(type),), (), at.location, at.phase, at.origin)
        new = self._rewritten(stmt)
        if new is not None:
            return new
        self._append(stmt)
        return stmt.result

    def made_by(self, operand: Operand, op_class: type[O]) -> Made[O] | None:
        """The statement that defines the operand, if its op is an `op_class`."""
        stmt = self.definitions.get(id(operand))
        return Made(stmt.op, stmt.args, stmt.result) if stmt is not None and isinstance(stmt.op, op_class) else None
