"""Sizes that are known only when a program runs: `B`, `2*B-1`, `B*T`.

Owns `Size` (an integer expression over named symbols) and the table of symbols with their ranges. Expressions are in `expr`, proofs from
the ranges in `bounds`, the guards that a trace records in `guards`. Knows no types, ops or programs.

A `Size` stands wherever an `int` can stand in a shape. Sums, differences, products, quotients and remainders of sizes are sizes.
Comparisons are decided by the ranges of the symbols, if they hold for all sizes or for none. Otherwise:

- while a function is traced (`recording`), the answer is the one for the size of the call that is traced (the *hint*), and becomes a guard
  of what is compiled. An equality that holds only for the hint, and every loss of the size (`range(n)`, `int(n)`, an array of NumPy's),
  *pins* its symbols: the program is then one for that size alone, and the pin says why;
- outside of a trace, `==` compares expressions, and everything else raises `NotGeneral`. Decisions that only affect speed use `hint_of`.

`Size` is not a subclass of `int`, since code written in C would take its value without asking; it only says that it is one (`isinstance`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .bounds import Ranges
from .errors import NotGeneral
from .expr import Expr, Monomial, Quotient, Symbol, Symbolic, evaluated, expr_text, symbol_names
from .expr import hint_of as expression_hint
from .guards import at_least_zero, lost, proven, same
from .vocabulary import functions

if TYPE_CHECKING:
    from .func import Func

    Integer = int
else:
    Integer = object

LEAST = 2  # of a symbol: arrays of size 0 and 1 broadcast, and are compiled for themselves


def symbol_text(symbol: Symbol) -> str:
    """`B=64`, `T=12 in 6..31`, as in the head of a function."""
    return f"{symbol.name}={symbol.hint}{range_text(symbol).removeprefix(symbol.name)}"


def range_text(symbol: Symbol) -> str:
    """`T in 6..31`; empty for the usual range."""
    if (symbol.low, symbol.high) == (LEAST, None):
        return ""
    return f"{symbol.name} in {symbol.low}..{'' if symbol.high is None else symbol.high}"


class Symbols:
    """The symbols of one function, and bounds of expressions of them."""

    def __init__(self, symbols: Sequence[Symbol] = ()) -> None:
        self.table: dict[str, Symbol] = {}
        self._least: dict[Symbolic, int | None] = {}
        for symbol in symbols:
            self.add(symbol)

    def add(self, symbol: Symbol) -> Size:
        self.table[symbol.name] = symbol
        return self[symbol.name]

    def new(self, name: str, hint: int) -> Size:
        return self.add(Symbol(name, hint))

    def __getitem__(self, name: str) -> Size:
        return Size(Symbolic({(self.table[name],): 1}), self)

    def limit(self, name: str, low: int | None = None, high: int | None = None) -> None:
        """Narrow the range of a symbol, in all expressions that contain it."""
        symbol = self.table[name]
        if low is not None:
            symbol.low = max(symbol.low, low)
        if high is not None:
            symbol.high = high if symbol.high is None else min(symbol.high, high)
        self._least.clear()

    def least(self, expr: Expr) -> int | None:
        """A lower bound of an expression for all sizes in range, if one is found."""
        if not isinstance(expr, Symbolic):
            return expr
        if expr not in self._least:
            self._least[expr] = Ranges().least(expr)
        return self._least[expr]

    def greatest(self, expr: Expr) -> int | None:
        least = self.least(-expr)
        return None if least is None else -least


# ---- sizes


class Size(Integer):
    """An expression with at least one symbol, which takes part in arithmetic like an int. Make them with `Symbols`."""

    __slots__ = ("expr", "symbols")

    expr: Symbolic
    symbols: Symbols

    if not TYPE_CHECKING:

        def __init__(self, expr: Symbolic, symbols: Symbols) -> None:
            self.expr = expr
            self.symbols = symbols

        @property
        def __class__(self) -> type:
            return int

    else:

        def __new__(cls, expr: Symbolic, symbols: Symbols) -> Size:
            raise NotImplementedError

    @property
    def hint(self) -> int:
        """The value in the call that was traced."""
        return self.expr.hint

    def __repr__(self) -> str:
        return expr_text(self.expr)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return str(self)

    def __hash__(self) -> int:
        return hash(self.expr)

    def __reduce__(self) -> Any:
        raise NotGeneral(f"{self} cannot be pickled")

    # ---- arithmetic

    def _with(self, other: Any, compute: Callable[[Any, Any], Any]) -> Any:
        number = as_expr(other)
        if number is not None:
            return self._sized(compute(self.expr, number))
        return compute(self._value(), other) if type(other) in (float, complex) else NotImplemented

    def _value(self) -> Any:
        """The size as an operand: what is computed with it is computed when the program runs."""
        return functions.size_value(self).weakened()

    def _sized(self, expr: Expr) -> int:
        return Size(expr, self.symbols) if isinstance(expr, Symbolic) else expr

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, list | tuple | str | bytes):
            return other * lost(self, "repeating a sequence")
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self._sized(-self.expr)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __floordiv__(self, other: Any) -> Any:
        number = as_expr(other)
        return NotImplemented if number is None else _divided(self, self.expr, number)

    def __rfloordiv__(self, other: Any) -> Any:
        number = as_expr(other)
        return NotImplemented if number is None else _divided(self, number, self.expr)

    def __mod__(self, other: Any) -> Any:
        return NotImplemented if as_expr(other) is None else self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return NotImplemented if as_expr(other) is None else other - other // self * self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return self._value() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._value()

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if type(other) is int and 0 <= other <= 8 and modulus is None:
            return math.prod([self] * other)
        return self._value() ** other

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        return other ** self._value()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions: with integers, the Python operators; with other operands, the function of the size's value at run time."""
        python = _OPERATORS.get(ufunc.__name__) if method == "__call__" and not options else None
        if python is not None and all(as_expr(x) is not None for x in inputs):
            return python(*(x if type(x) is Size else int(x) for x in inputs))
        return getattr(ufunc, method)(*(x._value() if type(x) is Size else x for x in inputs), **options)

    def __invert__(self) -> Any:
        return -self - 1

    # ---- comparisons

    def __eq__(self, other: object) -> Any:
        number = as_expr(other)
        if number is None:
            return (other.is_integer() and self == int(other)) if type(other) is float else NotImplemented
        return same(self, self.expr - number)

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __ge__(self, other: Any) -> Any:
        if type(other) is float and not math.isfinite(other):
            return other < 0
        number = as_expr(math.ceil(other) if type(other) is float else other)
        return NotImplemented if number is None else at_least_zero(self, self.expr - number)

    def __le__(self, other: Any) -> Any:
        if type(other) is float and not math.isfinite(other):
            return other > 0
        number = as_expr(math.floor(other) if type(other) is float else other)
        return NotImplemented if number is None else at_least_zero(self, number - self.expr)

    def __gt__(self, other: Any) -> Any:
        below = self.__le__(other)
        return below if below is NotImplemented else not below

    def __lt__(self, other: Any) -> Any:
        above = self.__ge__(other)
        return above if above is NotImplemented else not above

    def __bool__(self) -> bool:
        return bool(self != 0)

    # ---- what integers have besides

    def __index__(self) -> int:
        return lost(self, "code that takes only numbers")

    def __int__(self) -> int:
        return lost(self, "int()")

    def __float__(self) -> float:
        return float(lost(self, "float()"))

    def __round__(self, digits: Any = None) -> Any:
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __and__(self, other: Any) -> Any:
        return lost(self, "&") & other

    def __or__(self, other: Any) -> Any:
        return lost(self, "|") | other

    def __xor__(self, other: Any) -> Any:
        return lost(self, "^") ^ other

    def __lshift__(self, other: Any) -> Any:
        return self * 2**other

    def __rshift__(self, other: Any) -> Any:
        return self // 2**other

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __rlshift__(self, other: Any) -> Any:
        return other << lost(self, "<<")

    def __rrshift__(self, other: Any) -> Any:
        return other >> lost(self, ">>")

    def bit_length(self) -> int:
        return lost(self, "bit_length").bit_length()


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "maximum": max, "minimum": min, "negative": operator.neg,
}  # fmt: skip


def _divided(size: Size, dividend: Expr, divisor: Expr) -> int:
    """`dividend // divisor`; `size` is either of them."""
    exact = _quotient(dividend, divisor)
    if exact is not None:
        return size._sized(exact)
    if isinstance(divisor, Symbolic):
        small = _small_quotient(size._sized(dividend), size._sized(divisor))
        if small is not None:
            return small
        return expression_hint(dividend) // lost(Size(divisor, size.symbols), "a division")
    if divisor == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    assert isinstance(dividend, Symbolic)
    if divisor < 0:
        dividend, divisor = -dividend, -divisor
    # floor((d*q + r) / d) = q + floor(r / d)
    whole = Symbolic({m: f // divisor for m, f in dividend.terms.items() if f // divisor}, dividend.constant // divisor)
    rest = Symbolic({m: f % divisor for m, f in dividend.terms.items() if f % divisor}, dividend.constant % divisor)
    inner: Expr = 0
    if rest.terms:
        common = math.gcd(divisor, rest.constant, *rest.terms.values())
        scaled = Symbolic({m: f // common for m, f in rest.terms.items()}, rest.constant // common)
        inner = Symbolic({(Quotient(scaled, divisor // common),): 1})
    return size._sized(whole + inner if whole.terms else inner + whole.constant)


def _small_quotient(dividend: int, divisor: int) -> int | None:
    """The quotient of a dividend that is smaller than the divisor."""
    if hint_of(divisor) > hint_of(dividend) >= 0 and dividend >= 0 and dividend < divisor:
        return 0
    if -hint_of(divisor) <= hint_of(dividend) < 0 and dividend < 0 and -dividend <= divisor:
        return -1
    return None


def _quotient(dividend: Expr, divisor: Expr) -> Expr | None:
    """The polynomial by which the divisor has to be multiplied to give the dividend, if there is one."""
    if not isinstance(divisor, Symbolic):
        divides = (
            divisor != 0 and isinstance(dividend, Symbolic) and not any(n % divisor for n in (*dividend.terms.values(), dividend.constant))
        )
        if not divides:
            return None
        assert isinstance(dividend, Symbolic)
        return Symbolic({m: f // divisor for m, f in dividend.terms.items()}, dividend.constant // divisor)
    out: Expr = 0
    rest = dividend
    head, factor = _leading(divisor)
    while isinstance(rest, Symbolic):
        monomial, coefficient = _leading(rest)
        left = list(monomial)
        for atom in head:
            if atom not in left:
                return None
            left.remove(atom)
        if coefficient % factor:
            return None
        part: Expr = Symbolic({tuple(left): coefficient // factor}) if left else coefficient // factor
        out, rest = out + part, rest - part * divisor
    return None if rest else out


def _leading(expr: Symbolic) -> tuple[Monomial, int]:
    return max(expr.terms.items(), key=lambda term: (len(term[0]), [str(atom) for atom in term[0]]))


def as_expr(n: object) -> Expr | None:
    """An integer as an expression; None for anything else."""
    kind = type(n)
    if kind is int:
        return n  # type: ignore[return-value]
    if kind is Size:
        return n.expr  # type: ignore[attr-defined,no-any-return]
    if isinstance(n, int):
        return int(n)
    index = getattr(n, "__index__", None)  # NumPy's integers
    return int(n) if index is not None and kind.__module__ == "numpy" and not getattr(n, "shape", ()) else None  # type: ignore[call-overload]


# ---- questions


def is_symbolic(n: object) -> bool:
    return type(n) is Size


def hint_of(n: int) -> int:
    """A size as a number, for decisions that do not change what is computed."""
    return n.hint if type(n) is Size else n


def value_of(n: int, sizes: Mapping[str, int]) -> int:
    """A size as a number, for given values of the symbols."""
    return evaluated(n.expr, sizes) if type(n) is Size else n


def at_least(a: int, b: int) -> bool:
    """Whether a >= b is proven for all sizes."""
    difference = a - b
    return proven(difference.symbols, difference.expr) is True if type(difference) is Size else difference >= 0


def maximum(a: int, b: int) -> int:
    """Return the larger one. Python's `max` compares them, and the result may depend on the sizes; this one does not."""
    return a if at_least(a, b) else b if at_least(b, a) else max(a, b)


def minimum(a: int, b: int) -> int:
    return b if at_least(a, b) else a if at_least(b, a) else min(a, b)


def symbols_of(func: Func) -> dict[str, Symbol]:
    """The symbols of a function, in order of first appearance in the types of its parameters."""
    out: dict[str, Symbol] = {}
    for param in func.params:
        for n in param.type.shape:
            if type(n) is Size:
                out.update((name, n.symbols.table[name]) for name in symbol_names(n.expr) if name not in out)
    return out
