"""Integer expressions: sizes that are known when the program runs, and the trip counts, strides and offsets of the loop IR.

An expression is a plain `int`, or a `Symbolic` polynomial of loop variables and sizes. Arithmetic folds at once: a result without variables
is an `int` again, so code that only sees static sizes computes with Python integers and never makes an object.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from .errors import NotGeneral, Undecided


class Var:
    """A loop variable, or a size that is known when the program runs. Both are at least 0. Equal if the names are."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


class Symbol(Var):
    """A size of the program's arguments, from `low` to `high` (None: no limit). `hint` is its value in the call that was traced."""

    __slots__ = ("high", "hint", "low")

    def __init__(self, name: str, hint: int = 64, low: int = 2, high: int | None = None) -> None:
        self.name, self.hint, self.low, self.high = name, hint, low, high


class Quotient:
    """`dividend // divisor`, for a positive divisor."""

    __slots__ = ("dividend", "divisor")
    __match_args__ = ("dividend", "divisor")

    def __init__(self, dividend: Symbolic, divisor: int) -> None:
        self.dividend, self.divisor = dividend, divisor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.divisor == other.divisor and self.dividend == other.dividend

    def __hash__(self) -> int:
        return hash((self.dividend, self.divisor))

    def __str__(self) -> str:
        return f"({self.dividend!s})//{self.divisor}"


class SmallerOf:
    __slots__ = ("a", "b")
    __match_args__ = ("a", "b")

    def __init__(self, a: Expr, b: Expr) -> None:
        self.a, self.b = a, b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SmallerOf) and (self.a, self.b) == (other.a, other.b)

    def __hash__(self) -> int:
        return hash((self.a, self.b))

    def __str__(self) -> str:
        return f"min({self.a!s}, {self.b!s})"


Atom: TypeAlias = Var | Quotient | SmallerOf
Monomial: TypeAlias = tuple[Atom, ...]  # a product of atoms, sorted by their text


class Symbolic:
    """A polynomial with integer coefficients and at least one variable: `terms` maps products of atoms to coefficients other than 0."""

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, terms: dict[Monomial, int], constant: int = 0) -> None:
        self.terms = terms
        self.constant = constant
        self._hash: int | None = None

    def __add__(self, other: Expr) -> Expr:
        other = _operand(other)
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
        negated: Expr = -_operand(other)
        return self + negated

    def __rsub__(self, other: Expr) -> Expr:
        return -self + other

    def __mul__(self, other: Expr | float) -> Expr:
        other = math.ceil(other) if isinstance(other, float) else _operand(other)  # floats are estimates
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
        if type(divisor) is not int:
            raise NotGeneral(f"{self!s} divided by {divisor!s}")
        if divisor < 1:
            raise ValueError(f"an expression is divided by positive integers only, not by {divisor}")
        if all(factor % divisor == 0 for factor in self.terms.values()):
            return Symbolic({m: f // divisor for m, f in self.terms.items()}, self.constant // divisor)
        if all(factor < 0 for factor in self.terms.values()):  # native code divides numbers that are not negative
            return -((-self + (divisor - 1)) // divisor)
        return Symbolic({(Quotient(self, divisor),): 1})

    def __mod__(self, divisor: int) -> Expr:
        return self - self // divisor * divisor

    # ---- decisions: those that the ranges of the symbols do not make for all sizes are refused

    def __eq__(self, other: object) -> bool:
        """Whether both are equal for all sizes. Whether a size is 0 is a decision: code omitted for 0 is needed for other sizes."""
        other = _operand(other)
        if isinstance(other, Symbolic):
            return self.constant == other.constant and self.terms == other.terms
        if isinstance(other, int) and other == 0 and self.is_of_symbols:
            from .bounds import proven_sign  # noqa: PLC0415 - which computes with expressions itself

            return proven_sign(self) == 0 and self._refuse("is 0")
        return False

    def __lt__(self, other: Expr) -> bool:
        return not self >= other

    def __gt__(self, other: Expr) -> bool:
        return not self <= other

    def __le__(self, other: Expr) -> bool:
        return self._is_positive(other - self, f"is at most {other!s}")

    def __ge__(self, other: Expr) -> bool:
        return self._is_positive(self - other, f"is at least {other!s}")

    def _is_positive(self, difference: Expr, what: str) -> bool:
        from .bounds import proven_sign  # noqa: PLC0415 - which computes with expressions itself

        sign = proven_sign(difference, or_zero=True)
        return sign > 0 if sign else self._refuse(what, difference)

    def __bool__(self) -> bool:
        return self != 0

    def __abs__(self) -> Expr:
        return self if self >= 0 else -self

    def __index__(self) -> int:
        self._refuse("is one number")
        raise AssertionError

    def _refuse(self, what: str, expr: Expr | None = None) -> bool:
        """`expr` is at least 0 if the answer is yes."""
        message = f"whether {self!s} {what} depends on the size"
        raise NotGeneral(message) if expr is None else Undecided(message, expr)

    @property
    def is_of_symbols(self) -> bool:
        """Whether it has no loop variables, so that it is the same during a whole call."""
        return all(isinstance(atom, Symbol) for atom in leaves(self))

    @property
    def hint(self) -> int:
        """Its value for the sizes of the traced call: for decisions that affect only speed."""
        return self.constant + sum(factor * _product(monomial) for monomial, factor in self.terms.items())

    def __format__(self, spec: str) -> str:
        """An expression of sizes only, as an operand in LLVM's text: every function defines those that it mentions under such names."""
        return f'%"{self!s}"' if self.is_of_symbols else str(self)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms.items()), self.constant))
        return self._hash

    def __str__(self) -> str:
        parts = []
        for monomial, factor in self.terms.items():
            alone = factor == 1 and len(monomial) == 1
            product = "*".join(f"({atom})" if isinstance(atom, Quotient) and not alone else str(atom) for atom in monomial)
            parts.append(product if factor == 1 else f"-{product}" if factor == -1 else f"{factor}*{product}")
        if self.constant:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


Expr: TypeAlias = int | Symbolic


def leaves(expr: Expr) -> Iterator[Var]:
    """The variables of an expression, and of what its atoms are made of."""
    if isinstance(expr, int):
        return
    for atom in {atom for monomial in expr.terms for atom in monomial}:
        match atom:
            case Quotient():
                yield from leaves(atom.dividend)
            case SmallerOf():
                yield from (*leaves(atom.a), *leaves(atom.b))
            case _:
                yield atom


def _product(monomial: Monomial) -> int:
    out = 1
    for atom in monomial:
        match atom:
            case Quotient():
                out *= atom.dividend.hint // atom.divisor
            case SmallerOf():
                out *= min(hint_of(atom.a), hint_of(atom.b))
            case Symbol():
                out *= atom.hint
            case _:
                raise TypeError(f"{atom} has no hint")
    return out


def hint_of(expr: Expr) -> int:
    return expr if isinstance(expr, int) else expr.hint


def is_static(*sizes: object) -> bool:
    """Whether these are all numbers."""
    return not any(isinstance(n, Symbolic) for n in sizes)


def _operand(n: Any) -> Any:
    """A number or an expression; of a `Size` (`ir/sizes.py`), its expression."""
    return n if type(n) is int or type(n) is Symbolic else getattr(n, "expr", n)


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
    return Symbolic({(SmallerOf(a, b),): 1})


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


# ---- names, values, text


def evaluated(expr: Expr, sizes: Mapping[str, int]) -> int:
    if not isinstance(expr, Symbolic):
        return expr
    return expr.constant + sum(f * math.prod(_atom_value(atom, sizes) for atom in m) for m, f in expr.terms.items())


def _atom_value(atom: Atom, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, Var):
        return sizes[atom.name]
    if isinstance(atom, Quotient):
        return evaluated(atom.dividend, sizes) // atom.divisor
    return min(evaluated(atom.a, sizes), evaluated(atom.b, sizes))


def symbol_names(expr: Expr) -> list[str]:
    """The symbols of an expression, in order of appearance."""
    if not isinstance(expr, Symbolic):
        return []
    found: dict[str, None] = {}
    for monomial in expr.terms:
        for atom in monomial:
            parts = [atom.dividend] if isinstance(atom, Quotient) else [atom.a, atom.b] if isinstance(atom, SmallerOf) else []
            found.update(dict.fromkeys([atom.name] if isinstance(atom, Var) else [n for p in parts for n in symbol_names(p)]))
    return list(found)


def expr_text(expr: Expr) -> str:
    """`2*B-1`, `B*T`, `(B+1)//2`: valid Python, the same for equal expressions."""
    if not isinstance(expr, Symbolic):
        return str(expr)
    parts = sorted(((m, f) for m, f in expr.terms.items()), key=lambda term: (-len(term[0]), [_atom_text(atom, True) for atom in term[0]]))
    texts = [_term_text(monomial, factor) for monomial, factor in parts] + ([str(expr.constant)] if expr.constant else [])
    return "+".join(texts).replace("+-", "-")


def _term_text(monomial: Monomial, factor: int) -> str:
    alone = len(monomial) == 1 and factor == 1
    product = "*".join(sorted(_atom_text(atom, not alone) for atom in monomial))
    return product if factor == 1 else f"-{product}" if factor == -1 else f"{factor}*{product}"


def _atom_text(atom: Atom, wrapped: bool) -> str:
    if isinstance(atom, Var):
        return atom.name
    if isinstance(atom, SmallerOf):
        return f"min({expr_text(atom.a)},{expr_text(atom.b)})"
    dividend = expr_text(atom.dividend)
    text = f"{dividend if is_symbol(atom.dividend) and dividend.isidentifier() else f'({dividend})'}//{atom.divisor}"
    return f"({text})" if wrapped else text


def without_common_symbols(expr: Expr) -> Expr:
    """An expression of the same sign: divided by the symbols, which are positive, that all of its terms contain."""
    if not isinstance(expr, Symbolic) or expr.constant:
        return expr
    first, *others = expr.terms
    for atom in first:
        if isinstance(atom, Symbol) and atom.low > 0 and all(atom in monomial for monomial in others):
            terms: dict[Monomial, int] = {}
            for monomial, factor in expr.terms.items():
                rest = list(monomial)
                rest.remove(atom)
                terms[tuple(rest)] = factor
            return without_common_symbols(_folded(terms, terms.pop((), 0)))
    return expr


def is_symbol(expr: Symbolic) -> bool:
    """Whether a symbol is the only atom of an expression with one term."""
    ((monomial, _), *others) = expr.terms.items()
    return not others and len(monomial) == 1 and isinstance(monomial[0], Var)
