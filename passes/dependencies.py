"""Which elements of a function's results depend on which elements of one parameter: the pattern of its Jacobian, from the IR.

Elementwise ops, movements of data, reductions, products and reads and writes at known indices are exact, element by element. For other ops
the pattern is a superset: every element of a result depends on whatever any element of an operand does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import Array
from adjit.ir.ops.index import Gather, Scatter
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.logic import Detach
from adjit.ir.ops.maps import Map
from adjit.ir.ops.scan import Scan
from adjit.ir.ops.shape import Pad
from adjit.ir.types import TensorType

from .rewrite import walk
from .simplify.trips import known_trips

LARGEST = 200_000_000  # entries of a pattern: a larger one counts as dense
TRIPS = 64  # iterations of a loop that are analysed


class Pattern:
    """A set of pairs (row, column), as sorted integers `row * columns + column`."""

    __slots__ = ("columns", "keys")

    def __init__(self, columns: int, keys: Array) -> None:
        self.columns = columns
        self.keys = keys

    @classmethod
    def of(cls, columns: int, rows: Array, cols: Array) -> Pattern:
        return cls(columns, distinct(rows * columns + cols))

    @property
    def rows(self) -> Array:
        return self.keys // self.columns

    @property
    def cols(self) -> Array:
        return self.keys % self.columns

    def moved(self, source: Array) -> Pattern:
        """The pattern whose row r is row `source[r]` of this one, or empty if `source[r]` is negative."""
        first = source * self.columns
        starts, ends = np.searchsorted(self.keys, first), np.searchsorted(self.keys, first + self.columns)
        counts = np.where(source < 0, 0, ends - starts)
        total = int(counts.sum())
        if total > LARGEST:
            raise too_dense()
        index = np.arange(total) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
        shift = (np.arange(source.size) - source) * self.columns
        return Pattern(self.columns, self.keys[index] + np.repeat(shift, counts))

    def gathered(self, target: Array) -> Pattern:
        """The pattern in which row r of this one is added to row `target[r]`."""
        return Pattern.of(self.columns, target[self.rows], self.cols) if self.keys.size else self


def too_dense() -> UnsupportedError:
    return UnsupportedError("the derivative is dense: its pattern has too many entries; use aj.jacobian, or products with vectors")


def distinct(keys: Array) -> Array:
    """The keys sorted, without duplicates. A stable sort merges sorted parts; np.unique hashes, which takes ten times as long."""
    keys = np.sort(keys, kind="stable")
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if keys.size else keys


def union(columns: int, patterns: Sequence[Pattern]) -> Pattern:
    filled: list[Array] = []
    for p in patterns:
        if p.keys.size and not any(np.array_equal(p.keys, known) for known in filled):
            filled.append(p.keys)
    if len(filled) < 2:
        return Pattern(columns, filled[0] if filled else np.zeros(0, np.int64))
    return Pattern(columns, distinct(np.concatenate(filled)))


class Dependencies:
    """The patterns and the known values of a block. `uses_values`: an index that was read depends on a parameter's value."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.patterns: dict[int, Pattern] = {}
        self.known: dict[int, Array] = {}
        self.varying: set[int] = set()  # known values that depend on parameters
        self.uses_values = False
        self.none = Pattern(columns, np.zeros(0, np.int64))

    def of(self, x: Operand) -> Pattern:
        return self.patterns.get(id(x), self.none)

    def value(self, x: Operand) -> Array | None:
        return x.array() if isinstance(x, Literal) else self.known.get(id(x))

    def run(self, block: Block) -> None:
        for stmt in block.stmts:
            self.learn(stmt)
            self.propagate(stmt)

    def learn(self, stmt: Stmt) -> None:
        """Evaluate integers and bools whose operands are known: they may become indices."""
        if stmt.blocks or len(stmt.results) != 1 or not isinstance(stmt.result.type, TensorType):
            return
        values = [v for v in map(self.value, stmt.args) if v is not None]
        if stmt.result.type.dtype.kind == "f" or len(values) < len(stmt.args):
            return
        with np.errstate(all="ignore"):
            out = np.asarray(stmt.op.evaluate(*values))
        self.known[id(stmt.result)] = np.broadcast_to(out, stmt.result.type.shape)
        if any(id(x) in self.varying for x in stmt.args):
            self.varying.add(id(stmt.result))

    def propagate(self, stmt: Stmt) -> None:
        given = [self.of(x) for x in stmt.op.followed(stmt.args)]
        if stmt.op.is_loop and self.loop(stmt):
            return
        if stmt.op.is_control and not stmt.op.is_loop:
            self.branches(stmt)
        elif stmt.blocks:
            self.everything(stmt, [*given, *(self.of(x) for block in stmt.blocks for s in walk(block) for x in s.args)])
        elif not any(p.keys.size for p in given) or isinstance(stmt.op, Detach) or not stmt.op.differentiable:
            return
        elif len(stmt.results) == 1 and isinstance(stmt.result.type, TensorType):
            if stmt.result.type.dtype.kind == "f":
                found = self.one(stmt, given)
                self.patterns[id(stmt.result)] = self.spread(stmt, given) if found is None else found
        else:
            self.everything(stmt, given)

    def one(self, stmt: Stmt, given: Sequence[Pattern]) -> Pattern | None:
        """The pattern of the one result of a statement; None if it is not known exactly."""
        op = stmt.op
        if isinstance(op, Map):
            return self.none if has_no_derivative(op) else union(self.columns, given)
        if op.only_moves:
            return self.move(stmt, given)
        if isinstance(op, Scatter):
            return self.scatter(stmt, given)
        if op.is_reduction:
            return given[0].gathered(kept_axes(stmt.args[0].type.shape, reduced_axes(stmt)))
        if isinstance(op, Matmul):
            return self.product(stmt, given)
        if isinstance(op, Scan) and len(stmt.args) == 1:
            target = kept_axes(stmt.args[0].type.shape, (op.axis % stmt.args[0].type.rank,))
            return given[0].gathered(target).moved(target)
        return None

    def move(self, stmt: Stmt, given: Sequence[Pattern]) -> Pattern | None:
        """Evaluate the op on labels in place of elements: they show where each element of the result comes from."""
        op: Any = replace(stmt.op, value=0.0) if isinstance(stmt.op, Pad) else stmt.op
        labels, start, starts = [], 1, []
        for x in stmt.args:
            if x.type.dtype.kind == "f":
                labels.append(start + np.arange(x.type.size, dtype=np.float64).reshape(x.type.shape))
                starts.append(start)
                start += x.type.size
            else:
                index = self.index(x)
                if index is None:
                    return None
                labels.append(index)
                starts.append(start)
        found = np.asarray(op.evaluate(*labels)).ravel().astype(np.int64)
        parts = []
        for x, pattern, first in zip(stmt.args, given, starts, strict=True):
            if pattern.keys.size:
                inside = (found >= first) & (found < first + x.type.size)
                parts.append(pattern.moved(np.where(inside, found - first, -1)))
        return union(self.columns, parts)

    def scatter(self, stmt: Stmt, given: Sequence[Pattern]) -> Pattern | None:
        x, _, *indices = stmt.args
        known = [v for v in map(self.index, indices) if v is not None]
        if len(known) < len(indices):
            return None
        labels = np.arange(x.type.size, dtype=np.int64).reshape(x.type.shape)
        target = np.asarray(Gather().evaluate(labels, *known)).ravel()
        return union(self.columns, [given[0], given[1].gathered(target)])

    def product(self, stmt: Stmt, given: Sequence[Pattern]) -> Pattern:
        """An element of a product depends on a row of the left factor and on a column of the right one."""
        a, b = (x.type.shape for x in stmt.args)
        out = stmt.result.type.shape
        parts = []
        for pattern, shape, axis, new in ((given[0], a, len(a) - 1, -1), (given[1], b, max(len(b) - 2, 0), -2)):
            left = tuple(n for i, n in enumerate(shape) if i != axis)
            source = np.arange(math.prod(left)).reshape(left)
            if len(a) > 1 and len(b) > 1:
                source = np.expand_dims(source, new)
            parts.append(pattern.gathered(kept_axes(shape, (axis,))).moved(np.broadcast_to(source, out).ravel()))
        return union(self.columns, parts)

    def index(self, x: Operand) -> Array | None:
        value = self.value(x)
        if value is not None and id(x) in self.varying:
            self.uses_values = True
        return value

    def branches(self, stmt: Stmt) -> None:
        """The union over the blocks of an `if` or `checkpoint`, which have no parameters."""
        found: list[list[Pattern]] = []
        for block in stmt.blocks:
            self.run(block)
            found.append([self.of(r) for r in (*block.results, *block.saving)])
        for result, patterns in zip(stmt.results, zip(*found, strict=False), strict=False):
            self.patterns[id(result)] = union(self.columns, patterns)

    def loop(self, stmt: Stmt) -> bool:
        """Find the patterns of a loop's carries, iteration by iteration, until they no longer grow; False if that would take too long."""
        body, count = stmt.blocks[-1], len(stmt.blocks[-1].results)
        if len(stmt.results) != count or not all(isinstance(r.type, TensorType) for r in stmt.results):
            return False  # it stores a stack
        params, carried = body.params[len(body.params) - count :], [self.of(x) for x in stmt.args[len(stmt.args) - count :]]
        trips = known_trips(stmt)
        for done in range(TRIPS):
            if trips is not None and done == trips.length:
                break
            self.patterns.update({id(p): c for p, c in zip(params, carried, strict=True)})
            self.run(body)
            following = [self.of(r) for r in body.results]
            if trips is None:  # it may end after any iteration
                following = [union(self.columns, pair) for pair in zip(carried, following, strict=True)]
            if all(np.array_equal(a.keys, b.keys) for a, b in zip(carried, following, strict=True)):
                break
            carried = following
        else:
            return False
        self.patterns.update({id(r): c for r, c in zip(stmt.results, carried, strict=True)})
        return True

    def spread(self, stmt: Stmt, given: Sequence[Pattern]) -> Pattern:
        """Every element of the results depends on everything that the operands depend on."""
        cols = distinct(np.concatenate([p.cols for p in given]))
        size = stmt.result.type.size
        if size * cols.size > LARGEST:
            raise too_dense()
        return Pattern(self.columns, (np.arange(size)[:, None] * self.columns + cols).ravel())

    def everything(self, stmt: Stmt, given: Sequence[Pattern]) -> None:
        cols = distinct(np.concatenate([p.cols for p in given])) if given else np.zeros(0, np.int64)
        for result in stmt.results:
            kind: Any = result.type  # a stack is one row: whatever is read from it depends on all of it
            size = kind.size if isinstance(kind, TensorType) else 1
            if isinstance(kind, TensorType) and kind.dtype.kind != "f":
                continue
            if size * cols.size > LARGEST:
                raise too_dense()
            self.patterns[id(result)] = Pattern(self.columns, (np.arange(size)[:, None] * self.columns + cols).ravel())


def has_no_derivative(op: Map) -> bool:
    kind = type(op)
    return kind.derivative is Map.derivative and kind._chain is Map._chain and kind.jvp is Map.jvp


def reduced_axes(stmt: Stmt) -> tuple[int, ...]:
    rank = len(stmt.args[0].type.shape)
    return tuple(int(axis) % rank for axis in getattr(stmt.op, "axes", ()))


def kept_axes(shape: Sequence[int], axes: Sequence[int]) -> Array:
    """For each element, its position among those that remain when some axes are reduced."""
    left = [1 if i in axes else n for i, n in enumerate(shape)]
    labels = np.arange(math.prod(left)).reshape(left)
    return np.broadcast_to(labels, tuple(shape)).ravel()


def jacobian_pattern(func: Func, source: int, values: Sequence[Array | None]) -> tuple[list[Pattern], bool]:
    """The pattern of each result by the parameter `source`, given the values of the others where they are known.

    Also returns whether these values matter: if not, the pattern holds for all.
    """
    param = func.params[source]
    size = param.type.size
    state = Dependencies(max(size, 1))
    state.patterns[id(param)] = Pattern(max(size, 1), np.arange(size, dtype=np.int64) * (max(size, 1) + 1))
    for other, value in zip(func.params, values, strict=True):
        if value is not None and other is not param:
            state.known[id(other)] = value
            state.varying.add(id(other))
    state.run(func.block)
    return [state.of(r) for r in func.results], state.uses_values
