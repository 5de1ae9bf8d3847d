"""What the native entry computes from the sizes of a call: the shapes of the results, and whether the program accepts these sizes.

A list of instructions for a machine with a stack of numbers, each with one operand. The entry runs it only if the sizes are not those of
the previous call of the route.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from adjit.ir.expr import Atom, Expr, Quotient, SmallerOf, Symbol, Symbolic
from adjit.ir.guards import Guard
from adjit.ir.sizes import as_expr
from adjit.ir.types import Shape

from ..sizes import safe_size

DEPTH = 32  # numbers on the stack


class Step(enum.IntEnum):
    """An instruction: what it does with its operand and the numbers at the top of the stack."""

    STEP_END = 0
    STEP_NUMBER = 1  # push it
    STEP_SIZE = 2  # push the size with this number
    STEP_SUM = 3
    STEP_PRODUCT = 4
    STEP_QUOTIENT = 5  # by the operand, rounded down
    STEP_SMALLER = 6
    STEP_STORE = 7  # as this number of the shapes
    STEP_NOT_NEGATIVE = 8  # the condition that a guard states
    STEP_NOT_ZERO = 9


class Formulas:
    """The instructions for the shapes of results and for guards."""

    def __init__(self, symbols: Sequence[Symbol], shapes: Sequence[Shape], guards: Sequence[Guard]) -> None:
        self.shapes: list[int] = []  # those of all results one after the other; sizes that are computed are 0
        self.places: dict[Shape, int] = {}  # of each shape among them
        self._names = [symbol.name for symbol in symbols]
        self._words: list[list[int]] = []
        self._largest = 1 << 62  # size for which nothing overflows
        self._depth = self._deepest = 0
        for shape in shapes:
            if shape not in self.places:
                self._shape(shape)
        for guard in guards:
            self._top(guard.expr)
            self._put(Step.STEP_NOT_NEGATIVE if guard.relation == ">=" else Step.STEP_NOT_ZERO)
        self.ranges = [[s.low, self._largest if s.high is None else min(s.high, self._largest)] for s in symbols]
        self.code = [*self._words, [Step.STEP_END, 0]]
        self.fits = self._deepest <= DEPTH

    def _shape(self, shape: Shape) -> None:
        self.places[shape] = len(self.shapes)
        for n in shape:
            expr = as_expr(n)
            if isinstance(expr, Symbolic):
                self._top(expr)
                self._put(Step.STEP_STORE, len(self.shapes))
            self.shapes.append(0 if isinstance(expr, Symbolic) else n)

    def _top(self, expr: Expr) -> None:
        self._largest = min(self._largest, safe_size(expr))
        self._push(expr)

    def _push(self, expr: Expr) -> None:
        if not isinstance(expr, Symbolic):
            self._put(Step.STEP_NUMBER, expr)
            return
        first = True
        for monomial, factor in expr.terms.items():
            for k, atom in enumerate(monomial):
                self._push_atom(atom)
                if k:
                    self._put(Step.STEP_PRODUCT)
            if factor != 1:
                self._put(Step.STEP_NUMBER, factor)
                self._put(Step.STEP_PRODUCT)
            if not first:
                self._put(Step.STEP_SUM)
            first = False
        if expr.constant:
            self._put(Step.STEP_NUMBER, expr.constant)
            self._put(Step.STEP_SUM)

    def _push_atom(self, atom: Atom) -> None:
        match atom:
            case Symbol(name):
                self._put(Step.STEP_SIZE, self._names.index(name))
            case Quotient(dividend, divisor):
                self._push(dividend)
                self._put(Step.STEP_QUOTIENT, divisor)
            case SmallerOf(a, b):
                self._push(a)
                self._push(b)
                self._put(Step.STEP_SMALLER)
            case _:
                raise TypeError(f"{atom} is not known when a call begins")

    def _put(self, step: Step, operand: int = 0) -> None:
        self._words.append([step, operand])
        pushed = step in (Step.STEP_NUMBER, Step.STEP_SIZE)
        self._depth += 1 if pushed else 0 if step == Step.STEP_QUOTIENT else -1
        self._deepest = max(self._deepest, self._depth)


NUMBERS = {"STACK": DEPTH + 2} | {step.name: int(step) for step in Step}

TEXT = """
; runs the formulas of a route on the sizes of a call: stores the shapes of the results, and whether such calls release the GIL; false if
; the program is not for these sizes
define internal i1 @settle(ptr %route) nounwind {
entry:
  %stack = alloca [STACK x i64], align 16
  %start = getelementptr i64, ptr %stack, i64 2 ; the two numbers below the first one are read, and not used
  %formulas = item %route[FORMULAS]
  %sizes = item %route[SIZES]
  %shapes = item %route[SHAPES]
  %symbols = word %route[SYMBOLS]
  %quick.up.to = word %route[QUICK_UP_TO]
  br label %next
next:
  %step = phi ptr [%formulas, %entry], [%step.next, %push], [%step.next, %unary], [%step.next, %binary], [%step.next, %drop]
  %top = phi ptr [%start, %entry], [%above, %push], [%top, %unary], [%below, %binary], [%below, %drop] ; the first free place
  %code = word %step[0]
  %operand = word %step[1]
  %step.next = getelementptr i64, ptr %step, i64 2
  %above = getelementptr i64, ptr %top, i64 1
  %below = getelementptr i64, ptr %top, i64 -1
  %second = getelementptr i64, ptr %top, i64 -2
  %a = load i64, ptr %second
  %b = load i64, ptr %below
  switch i64 %code, label %finished [i64 STEP_NUMBER, label %push
                                     i64 STEP_SIZE, label %size
                                     i64 STEP_SUM, label %sum
                                     i64 STEP_PRODUCT, label %product
                                     i64 STEP_QUOTIENT, label %quotient
                                     i64 STEP_SMALLER, label %smaller
                                     i64 STEP_STORE, label %store
                                     i64 STEP_NOT_NEGATIVE, label %not.negative
                                     i64 STEP_NOT_ZERO, label %not.zero]
size:
  %its.size = word %sizes[%operand]
  br label %push
push:
  %pushed = phi i64 [%operand, %next], [%its.size, %size]
  store i64 %pushed, ptr %top
  br label %next
sum:
  %total = add i64 %a, %b
  br label %binary
product:
  %times = mul i64 %a, %b
  br label %binary
smaller:
  %less = icmp slt i64 %a, %b
  %least = select i1 %less, i64 %a, i64 %b
  br label %binary
binary:
  %of.both = phi i64 [%total, %sum], [%times, %product], [%least, %smaller]
  store i64 %of.both, ptr %second
  br label %next
quotient:
  %whole = sdiv i64 %b, %operand
  %rest = srem i64 %b, %operand
  %lower = ashr i64 %rest, 63
  %rounded.down = add i64 %whole, %lower
  br label %unary
unary:
  store i64 %rounded.down, ptr %below
  br label %next
store:
  %shape.at = getelementptr i64, ptr %shapes, i64 %operand
  store i64 %b, ptr %shape.at
  br label %drop
not.negative:
  %negative = icmp slt i64 %b, 0
  br i1 %negative, label %no, label %drop
not.zero:
  %zero = icmp eq i64 %b, 0
  br i1 %zero, label %no, label %drop
drop:
  br label %next
finished:
  %long.at = getelementptr i64, ptr %route, i64 LONG
  br label %each
each:
  %s = phi i64 [0, %finished], [%s.next, %look]
  %s.more = icmp slt i64 %s, %symbols
  br i1 %s.more, label %look, label %quick
look:
  %n = word %sizes[%s]
  %s.next = add i64 %s, 1
  %is.large = icmp sgt i64 %n, %quick.up.to
  br i1 %is.large, label %long, label %each
quick:
  store i64 0, ptr %long.at
  ret i1 true
long:
  store i64 1, ptr %long.at
  ret i1 true
no:
  ret i1 false
}
"""
