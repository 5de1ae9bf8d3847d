"""Proofs about expressions from the ranges of their variables: lower bounds, and divisibility."""

from __future__ import annotations

import math

from .expr import Atom, Expr, Monomial, Quotient, SmallerOf, Symbol, Symbolic, Var, leaves, minimum, substituted
from .expr import variable as named
from .records import NamedTuple

EXCESS = "more."  # before the name of a symbol: how much it exceeds its least value


def proven_sign(expr: Expr, or_zero: bool = False) -> int:
    """1 if an expression is positive for all sizes, -1 if it is negative, 0 if neither is proven; with `or_zero`, 0 counts as positive."""
    ranges = Ranges()
    if ranges.at_least(expr, 0 if or_zero else 1):
        return 1
    return -1 if ranges.at_least(-expr, 1) else 0


class Range(NamedTuple):
    """The values of a loop variable: from `low` to `high`, in expressions of the variables around it, and all multiples of `multiple`."""

    low: Expr
    high: Expr
    multiple: int = 1


class Ranges:
    """The variables in scope, from the outermost to the innermost. All other variables are sizes, of at least `least_size`."""

    def __init__(self, least_size: int = 1) -> None:
        self.known: dict[Var, Range] = {}
        self.least_size = least_size

    def limits(self, expr: Expr) -> tuple[int, int] | None:
        """The least and the greatest value of an expression, as far as known, if both are numbers."""
        least, greatest = self.least(expr), self.least(-expr)
        return None if least is None or greatest is None else (least, -greatest)

    def loop(self, start: Expr, stop: Expr, step: int) -> Range:
        """The range of the variable of a loop with at least one iteration."""
        return Range(start, self._last(start, stop, step), math.gcd(step, self.multiple(start)))

    def _last(self, start: Expr, stop: Expr, step: int) -> Expr:
        if isinstance(stop, Symbolic) and stop.constant == 0 and len(stop.terms) == 1:
            ((monomial, factor),) = stop.terms.items()
            if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], SmallerOf):
                least = monomial[0]
                return minimum(self._last(start, least.a, step), self._last(start, least.b, step))
        distance = stop - start
        if isinstance(distance, int):
            return start + (distance - 1) // step * step
        return stop - step if self.multiple(distance) % step == 0 else stop - 1

    def multiple(self, expr: Expr) -> int:
        """A number that the value of an expression is a multiple of; 0 for the expression 0."""
        if isinstance(expr, int):
            return abs(expr)
        out = abs(expr.constant)
        for monomial, factor in expr.terms.items():
            out = math.gcd(out, factor * math.prod(map(self._multiple, monomial)))
        return out

    def _multiple(self, atom: Atom) -> int:
        if isinstance(atom, SmallerOf):
            return math.gcd(self.multiple(atom.a), self.multiple(atom.b))
        return self.known[atom].multiple if isinstance(atom, Var) and atom in self.known else 1

    def at_least(self, expr: Expr, bound: int) -> bool:
        """Whether the expression is proven to be at least `bound`."""
        least = self.least(expr)
        return least is not None and least >= bound

    def least(self, expr: Expr) -> int | None:
        """A lower bound of an expression, if one is found: variables are eliminated one by one, the innermost first."""
        if isinstance(expr, int):
            return expr
        atoms = {atom for monomial in expr.terms for atom in monomial}
        for atom in atoms:
            if isinstance(atom, SmallerOf):
                return self._without_minimum(expr, atom)
        quotients = {atom: set(leaves(atom.dividend)) for atom in atoms if isinstance(atom, Quotient)}
        for variable in reversed(self.known):
            for atom, inside in quotients.items():
                if variable in inside:
                    return self._without_quotient(expr, atom)
            if variable in atoms:
                return self._without_variable(expr, variable)
        common = math.gcd(*expr.terms.values())
        if quotients and common > 1:  # a quotient is an integer, and so is what it is multiplied by
            bound = self.least(Symbolic({monomial: factor // common for monomial, factor in expr.terms.items()}))
            return None if bound is None else common * bound + expr.constant
        if quotients:  # those that contain others first: what is left of them may cancel the others; then those that no symbol multiplies
            chosen = max(quotients, key=lambda atom: (_depth(atom), all(len(m) == 1 for m in expr.terms if atom in m)))
            bounds = [self._without_quotient(expr, chosen), self._without_multiplier(expr, chosen, set().union(*quotients.values()))]
            return max((bound for bound in bounds if bound is not None), default=None)
        for atom in atoms:
            if isinstance(atom, Symbol):
                return self._without_symbol(expr, atom)
        if any(factor < 0 for factor in expr.terms.values()):
            return None  # sizes have no upper bound
        return expr.constant + sum(factor * math.prod(map(self._least_size, monomial)) for monomial, factor in expr.terms.items())

    def _least_size(self, atom: Atom) -> int:
        return 0 if isinstance(atom, Var) and atom.name.startswith(EXCESS) else self.least_size

    def _without_symbol(self, expr: Symbolic, symbol: Symbol) -> int | None:
        """Replace the symbol by its least value plus an excess, which is at least 0, or by its greatest value."""
        excess = named(EXCESS + symbol.name)
        bounds = [self.least(substituted(expr, symbol, symbol.low + excess))]
        if symbol.high is not None and all(factor < 0 for monomial, factor in expr.terms.items() if symbol in monomial):
            bounds.append(self.least(substituted(expr, symbol, symbol.high)))
        return max((b for b in bounds if b is not None), default=None)

    def _without_minimum(self, expr: Symbolic, atom: SmallerOf) -> int | None:
        bounds = [self.least(substituted(expr, atom, value)) for value in (atom.a, atom.b)]
        slope = _slope(expr, atom)
        if slope is not None and self.at_least(-slope, 0):  # either value is an upper bound of the minimum
            return max((b for b in bounds if b is not None), default=None)
        return None if None in bounds else min(b for b in bounds if b is not None)

    def _without_variable(self, expr: Symbolic, variable: Var) -> int | None:
        """The least value of the variable in the terms that grow with it, the greatest in the others; or one of them in all."""
        low, high, _ = self.known[variable]
        terms = [monomial for monomial in expr.terms if variable in monomial]
        together = self._without_factor(expr, variable) if len(terms) > 1 or len(terms[0]) > 1 else None
        if not all(isinstance(atom, Var) for monomial in terms for atom in monomial):
            return together  # other atoms may be negative
        out: Expr = expr.constant
        for monomial, factor in expr.terms.items():
            term: dict[Monomial, int] = {monomial: factor}
            out = out + substituted(Symbolic(term), variable, low if factor > 0 else high)
        apart = self.least(out)
        return max((bound for bound in (together, apart) if bound is not None), default=None)

    def _without_factor(self, expr: Symbolic, variable: Var) -> int | None:
        """The same for all terms together, if their sum grows with the variable, or falls."""
        slope, (low, high, _) = _slope(expr, variable), self.known[variable]
        if slope is None:
            return None
        if self.at_least(slope, 0):
            return self.least(substituted(expr, variable, low))
        return self.least(substituted(expr, variable, high)) if self.at_least(-slope, 0) else None

    def _without_multiplier(self, expr: Symbolic, atom: Quotient, inside: set[Var]) -> int | None:
        """The least value of a symbol that multiplies a quotient, if the expression grows with it; no quotient contains it."""
        for symbol in {each for monomial in expr.terms if atom in monomial for each in monomial}:
            if isinstance(symbol, Symbol) and symbol not in inside:
                slope = _slope(expr, symbol)
                if slope is not None and self.at_least(slope, 0):
                    return self.least(substituted(expr, symbol, symbol.low))
        return None

    def _without_quotient(self, expr: Symbolic, atom: Quotient) -> int | None:
        """divisor * quotient = dividend - remainder, with 0 <= remainder < divisor; and the quotient is an integer."""
        scaled: Expr = expr.constant * atom.divisor
        grows = True  # in all terms
        for monomial, factor in expr.terms.items():
            term: dict[Monomial, int] = {monomial: factor}
            if atom not in monomial:
                scaled = scaled + Symbolic(term) * atom.divisor
                continue
            others = list(monomial)
            others.remove(atom)
            if not all(isinstance(each, Var) for each in others):
                return None  # other atoms may be negative
            grows = grows and factor > 0
            scaled = scaled + substituted(Symbolic(term), atom, atom.dividend - (atom.divisor - 1 if factor > 0 else 0))
        bound = self.least(scaled)
        bounds = [] if bound is None else [-(-bound // atom.divisor)]
        least = self.least(atom.dividend) if grows else None
        rounded = None if least is None else self.least(substituted(expr, atom, least // atom.divisor))
        return max([*bounds, *([] if rounded is None else [rounded])], default=None)


def _slope(expr: Symbolic, atom: Atom) -> Expr | None:
    """The factor of an atom; None if it contains the atom."""
    slope: Expr = 0
    for monomial, factor in expr.terms.items():
        if monomial.count(atom) > 1:
            return None
        if atom in monomial:
            slope = slope + substituted(Symbolic({monomial: factor}), atom, 1)
    return slope


def _depth(atom: Quotient) -> int:
    """How many quotients contain each other."""
    inside = {each for monomial in atom.dividend.terms for each in monomial}
    return 1 + max((_depth(each) for each in inside if isinstance(each, Quotient)), default=0)
