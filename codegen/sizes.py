"""Sizes that are known only when the program runs, in native code.

Inside the code generator such a size is a `Symbolic` expression of the program's symbols. In LLVM's text it is a register named after it,
`%"784*B"`; every function computes those that it mentions when it is entered, from the table `%sizes` of the symbols' values. What depends
on a size in another way than this raises `NotGeneral`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import cast

from adjit.ir.bounds import proven_sign
from adjit.ir.expr import Expr, Quotient, SmallerOf
from adjit.ir.sizes import Size
from adjit.ir.types import Shape, TensorType

SIZES = "%sizes"
MENTIONED = re.compile(r'%"([^"]+)"')
OPCODES: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}


def native_size(n: int) -> int:
    """A size as the code generator computes with it: an `int`, or an expression, which is typed as an `int` although it is none."""
    return cast(int, n.expr) if type(n) is Size else n


def native_shape(shape: Sequence[int]) -> Shape:
    return tuple(map(native_size, shape))


def native_type(t: TensorType) -> TensorType:
    return t.with_shape(native_shape(t.shape))


def may_be_empty(n: Expr) -> bool:
    """Whether an axis of this size may have no elements."""
    return n == 0 if isinstance(n, int) else proven_sign(n) < 1


def upper(a: Expr, b: Expr) -> Expr:
    """A size that is large enough for both."""
    difference = a - b
    if proven_sign(difference, or_zero=True) > 0:
        return a
    return b if proven_sign(-difference, or_zero=True) > 0 else a + b


def safe_size(expr: Expr) -> int:
    """A number, such that the expression is computed without overflow if all its symbols are at most that: a power of two."""
    bits = 62
    while bits > 1 and _magnitude(expr, 1 << bits) >= 1 << 62:
        bits -= 1
    return 1 << bits


def _magnitude(expr: Expr, size: int) -> int:
    """More than any part of an expression is, if all its symbols are at most `size`."""
    if isinstance(expr, int):
        return abs(expr)
    total = abs(expr.constant)
    for monomial, factor in expr.terms.items():
        product = abs(factor)
        for atom in monomial:
            parts = [atom.dividend] if isinstance(atom, Quotient) else [atom.a, atom.b] if isinstance(atom, SmallerOf) else []
            product *= max([_magnitude(part, size) for part in parts], default=size)
        total += product
    return total


def definitions(lines: Iterable[str], symbols: Sequence[str]) -> list[str]:
    """Instructions that define the sizes which a function mentions."""
    if not symbols:
        return []
    names = dict.fromkeys(name for line in lines for name in MENTIONED.findall(line))
    writer = _Writer(symbols)
    for name in names:
        writer.write(name)
    return writer.lines


class _Writer:
    def __init__(self, symbols: Sequence[str]) -> None:
        self.symbols = list(symbols)
        self.lines: list[str] = []
        self.count = 0
        self.known: dict[str, str] = {}  # text of an expression -> its register

    def write(self, name: str) -> None:
        tree = ast.parse(name, mode="eval").body
        key = ast.unparse(tree)
        if key in self.known:
            self.lines.append(f'%"{name}" = add i64 {self.known[key]}, 0')
        else:
            self.value(tree, f'%"{name}"')

    def value(self, tree: ast.expr, name: str = "") -> str:
        """The register or literal that holds the value of an expression."""
        if isinstance(tree, ast.Constant):
            return str(tree.value)
        key = ast.unparse(tree)
        if key not in self.known:
            self.known[key] = self.defined(name or self.fresh(), tree)
        return self.known[key]

    def fresh(self) -> str:
        self.count += 1
        return f"%size{self.count}"

    def defined(self, name: str, tree: ast.expr) -> str:
        match tree:
            case ast.Name(symbol):
                at = self.put(self.fresh(), f"getelementptr i64, ptr {SIZES}, i64 {self.symbols.index(symbol)}")
                return self.put(name, f"load i64, ptr {at}")
            case ast.UnaryOp(ast.USub(), operand):
                return self.put(name, f"sub i64 0, {self.value(operand)}")
            case ast.BinOp(a, ast.FloorDiv(), ast.Constant(divisor)):
                return self.quotient(name, self.value(a), int(cast(int, divisor)))
            case ast.BinOp(a, op, b):
                return self.put(name, f"{OPCODES[type(op)]} i64 {self.value(a)}, {self.value(b)}")
            case ast.Call(ast.Name("min"), [a, b]):
                x, y = self.value(a), self.value(b)
                less = self.put(self.fresh(), f"icmp slt i64 {x}, {y}")
                return self.put(name, f"select i1 {less}, i64 {x}, i64 {y}")
        raise ValueError(f"not a size: {ast.unparse(tree)}")

    def quotient(self, name: str, dividend: str, divisor: int) -> str:
        """Rounded down, whatever the sign of the dividend."""
        if divisor & (divisor - 1) == 0:
            return self.put(name, f"ashr i64 {dividend}, {divisor.bit_length() - 1}")
        whole = self.put(self.fresh(), f"sdiv i64 {dividend}, {divisor}")
        rest = self.put(self.fresh(), f"srem i64 {dividend}, {divisor}")
        below = self.put(self.fresh(), f"ashr i64 {rest}, 63")
        return self.put(name, f"add i64 {whole}, {below}")

    def put(self, name: str, instruction: str) -> str:
        self.lines.append(f"{name} = {instruction}")
        return name
