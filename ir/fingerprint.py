"""A Func as bytes: fast to compute, the same in every process, and different whenever the native code could differ.

Names of values, and lines of statements that cannot fail, are left out: they affect only error messages and printed text.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from typing import Any

import numpy as np

from .effects import effects_of
from .func import Block, Func, Stmt
from .operand import Literal, Operand
from .ops.base import Op
from .sizes import is_symbolic, symbol_text, symbols_of
from .types import TensorType

PLAIN = {type(None), bool, int, float, str, bytes}
VERSION = 2  # of marshal: the last version whose output does not depend on which objects are shared


def fingerprint(func: Func, lines: bool = False) -> bytes | None:
    """The fingerprint; None for a Func with an op that is not plain data: two that look equal may differ.

    With `lines`, those of all statements are included.
    """
    out = _Fingerprint(lines)
    try:
        out.block(func.block)
    except TypeError:
        return None
    out.words += [len(func.given), len(func.updates), *map(out.operand, func.given)]
    for param, new in func.updates:
        out.words += [out.operand(param), out.operand(new)]
    out.described += [symbol_text(symbol) for symbol in symbols_of(func).values()]
    return marshal.dumps((out.words, out.described), VERSION)


class _Fingerprint:
    """`words` are numbers; an op, a literal or a type is written out (`described`) at its first occurrence, and numbered."""

    def __init__(self, lines: bool) -> None:
        self._lines = lines
        self.words: list[int] = []
        self.described: list[Any] = []
        self._ops: dict[Op | type[Op], int] = {}  # of ops without attributes, by class
        self._literals: dict[tuple[TensorType, bytes], int] = {}
        self._values: dict[int, int] = {}

    def block(self, block: Block) -> None:
        self.described += [str(p.type) for p in block.params]
        self._number(block.params)
        self.words += [len(block.params), len(block.stmts), len(block.results), len(block.saving)]
        for stmt in block.stmts:
            self.stmt(stmt)
        self.words += map(self.operand, (*block.results, *block.saving))

    def stmt(self, stmt: Stmt) -> None:
        op = stmt.op
        key = op.key
        number = self._ops.get(key)
        if number is None:
            number = self._ops[key] = len(self._ops)
            self.described.append((op.name, *(plain(value) for _, value in op.attributes())))
        self.words += [number, stmt.phase == "backward", len(stmt.args), len(stmt.results), len(stmt.blocks)]
        self.words += map(self.operand, stmt.args)
        if self._lines or effects_of(op).fails:
            self.described.append(stmt.location and tuple(stmt.location))
        for block in stmt.blocks:
            self.block(block)
        self._number(stmt.results)

    def operand(self, x: Operand) -> int:
        """Values are numbered from 0 up, literals from -1 down."""
        if not isinstance(x, Literal):
            return self._values[id(x)]
        key = x.type, x.value.tobytes()
        number = self._literals.get(key)
        if number is None:
            number = self._literals[key] = -1 - len(self._literals)
            self.described.append((str(x.type), key[1]))
        return number

    def _number(self, values: Sequence[Operand]) -> None:
        for value in values:
            self._values[id(value)] = len(self._values)


def plain(value: Any) -> Any:
    """An attribute of an op in a form that marshal can write; TypeError if it is not plain data."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, np.generic):
        return value.dtype.str, value.tobytes()
    if isinstance(value, np.dtype | TensorType) or is_symbolic(value):
        return str(value)
    raise TypeError(f"{value!r} is not plain data")
