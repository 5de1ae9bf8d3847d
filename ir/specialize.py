"""A function with symbolic sizes as the function for given sizes: every `Size` becomes a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from .errors import ShapeError
from .func import Block, Func, Stmt, Value
from .operand import Literal, Operand
from .ops.base import Op, holds_size
from .ops.custom import CustomGradient
from .sizes import is_symbolic, symbols_of, value_of
from .types import Shape, StackType, TensorType


def sizes_in(func: Func, shapes: Sequence[Shape]) -> dict[str, int]:
    """The values of a function's symbols, given the shapes of the arrays for its parameters."""
    out: dict[str, int] = {}
    for param, shape in zip(func.params, shapes, strict=True):
        for n, given in zip(param.type.shape, shape):
            if is_symbolic(n):
                out.setdefault(str(n), given)
    missing = [name for name in symbols_of(func) if name not in out]
    if missing:
        raise ShapeError(f"@{func.name}: no parameter has an axis whose size is {missing[0]} alone")
    return out


def specialize(func: Func, sizes: Mapping[str, int]) -> Func:
    """The function for these sizes; itself if it has no symbols."""
    return _Specializing(sizes).func(func) if symbols_of(func) else func


class _Specializing:
    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.values: dict[int, Operand] = {}
        self.stmts: dict[int, Stmt] = {}  # by the ids of those that they come from

    def func(self, func: Func) -> Func:
        block = self.block(func.block)
        updates = [(self.value(param), self.operand(new)) for param, new in func.updates]
        return Func(func.name, block, [self.value(g) for g in func.given], updates, func.location)

    def block(self, block: Block) -> Block:
        params = [self.value(p) for p in block.params]
        stmts = [self.stmt(stmt) for stmt in block.stmts]
        return Block(params, stmts, [self.operand(x) for x in block.results], [self.operand(x) for x in block.saving])

    def stmt(self, stmt: Stmt) -> Stmt:
        args = tuple(self.operand(a) for a in stmt.args)
        blocks = tuple(map(self.block, stmt.blocks))
        results = tuple(self.operand(r) for r in stmt.results)
        origin = None if stmt.origin is None else self.stmts.get(id(stmt.origin), stmt.origin)
        new = stmt.replace(op=self.op(stmt.op), args=args, blocks=blocks, results=results, origin=origin)
        self.stmts[id(stmt)] = new
        return new

    def op(self, op: Op) -> Op:
        if isinstance(op, CustomGradient) and op.blocks is not None:
            pull, push = op.blocks
            changes = {f.name: _number(getattr(op, f.name), self.size) for f in fields(op)}
            return CustomGradient.of(**changes, block=self.block(pull), push=None if push is None else self.block(push))
        return numeric(op, self.size)

    def size(self, n: Any) -> int:
        return value_of(n, self.sizes)

    def operand(self, x: Operand) -> Operand:
        if isinstance(x, Literal):
            return Literal(x.value, self.type(x.type))
        return self.value(x)

    def value(self, x: Operand) -> Value:
        if id(x) not in self.values:
            self.values[id(x)] = Value(self.type(x.type), getattr(x, "name", None))
        out = self.values[id(x)]
        assert isinstance(out, Value)
        return out

    def type(self, type: TensorType) -> TensorType:
        return numeric_type(type, self.size)


def numeric(op: Op, size: Callable[[Any], int]) -> Op:
    """The op with numbers for the sizes among its attributes, by `size`."""
    if not any(map(holds_size, op.__dict__.values())):
        return op
    return replace(op, **{f.name: _number(getattr(op, f.name), size) for f in fields(op)})


def numeric_type(type: TensorType, size: Callable[[Any], int]) -> TensorType:
    if isinstance(type, StackType):
        element = numeric_type(type.element, size)
        return type if element is type.element else StackType(element)
    return type.with_shape(tuple(map(size, type.shape))) if any(map(is_symbolic, type.shape)) else type


def _number(value: Any, size: Callable[[Any], int]) -> Any:
    if is_symbolic(value):
        return size(value)
    if isinstance(value, TensorType):
        return numeric_type(value, size)
    if isinstance(value, tuple):
        items = tuple(_number(item, size) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value
