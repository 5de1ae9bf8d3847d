"""Integer expressions: sizes that are known when the program runs, and the trip counts, strides and offsets of the loop IR.

An expression is a plain `int`, or a `Symbolic` polynomial of loop variables and sizes. Arithmetic folds at once: a result without variables
is an `int` again, so code that only sees static sizes computes with Python integers and never makes an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Var:
    """A loop variable, or a size that is known when the program runs. Both are at least 0."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Quotient:
    """`dividend // divisor`, for a positive divisor."""

    dividend: Symbolic
    divisor: int

    def __str__(self) -> str:
        return f"({self.dividend})//{self.divisor}"


@dataclass(frozen=True, slots=True)
class Minimum:
    a: Expr
    b: Expr

    def __str__(self) -> str:
        return f"min({self.a}, {self.b})"


Atom: TypeAlias = Var | Quotient | Minimum
Monomial: TypeAlias = tuple[Atom, ...]  # a product of atoms, sorted by their text


class Symbolic:
    """A polynomial with integer coefficients and at least one variable: `terms` maps products of atoms to coefficients other than 0."""

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, terms: dict[Monomial, int], constant: int = 0) -> None:
        self.terms = terms
        self.constant = constant
        self._hash: int | None = None

    def __add__(self, other: Expr) -> Expr:
        if isinstance(other, int):
            return Symbolic(self.terms, self.constant + other) if other else self
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return _folded(terms, self.constant + other.constant)

    __radd__ = __add__

    def __neg__(self) -> Symbolic:
        return Symbolic({monomial: -factor for monomial, factor in self.terms.items()}, -self.constant)

    def __sub__(self, other: Expr) -> Expr:
        return self + -other

    def __rsub__(self, other: Expr) -> Expr:
        return -self + other

    def __mul__(self, other: Expr) -> Expr:
        if isinstance(other, int):
            return Symbolic({m: f * other for m, f in self.terms.items()}, self.constant * other) if other else 0
        terms: dict[Monomial, int] = {}
        for a, x in [*self.terms.items(), ((), self.constant)]:
            for b, y in [*other.terms.items(), ((), other.constant)]:
                monomial = tuple(sorted((*a, *b), key=str))
                terms[monomial] = terms.get(monomial, 0) + x * y
        return _folded(terms, terms.pop((), 0))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Expr:
        if divisor < 1:
            raise ValueError(f"an expression is divided by positive integers only, not by {divisor}")
        if all(factor % divisor == 0 for factor in self.terms.values()):
            return Symbolic({m: f // divisor for m, f in self.terms.items()}, self.constant // divisor)
        return Symbolic({(Quotient(self, divisor),): 1})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbolic) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms.items()), self.constant))
        return self._hash

    def __str__(self) -> str:
        parts = []
        for monomial, factor in self.terms.items():
            product = "*".join(map(str, monomial))
            parts.append(product if factor == 1 else f"-{product}" if factor == -1 else f"{factor}*{product}")
        if self.constant:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


Expr: TypeAlias = int | Symbolic


def _folded(terms: dict[Monomial, int], constant: int) -> Expr:
    terms = {monomial: factor for monomial, factor in terms.items() if factor}
    return Symbolic(terms, constant) if terms else constant


@cache
def variable(name: str) -> Symbolic:
    """The expression that consists of one variable."""
    return Symbolic({(Var(name),): 1})


def var_of(variable: Symbolic) -> Var:
    """The variable of an expression made by `variable`."""
    ((atom,),) = variable.terms
    assert isinstance(atom, Var)
    return atom


def minimum(a: Expr, b: Expr) -> Expr:
    difference = a - b
    if isinstance(difference, int):
        return a if difference <= 0 else b
    return Symbolic({(Minimum(a, b),): 1})


def substituted(expr: Expr, atom: Atom, value: Expr) -> Expr:
    """The expression with `value` for every occurrence of an atom in its terms (but not inside of other atoms)."""
    if isinstance(expr, int):
        return expr
    out: Expr = expr.constant
    for monomial, factor in expr.terms.items():
        product: Expr = factor
        for each in monomial:
            product = product * (value if each == atom else Symbolic({(each,): 1}))
        out = out + product
    return out
