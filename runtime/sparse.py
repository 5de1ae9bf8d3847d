"""Sparse Jacobians and Hessians: the pattern from the IR, columns of equal colour in one sweep, the result as `scipy.sparse`.

Columns (or rows) that have no row (column) in common get the same colour: the derivative in the direction of their sum contains all their
elements. One compiled program computes the derivatives for all colours.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from adjit.ir.errors import GradientError, UnsupportedError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.base import Array
from adjit.ir.ops.join import concatenate
from adjit.ir.ops.shape import reshape
from adjit.ir.records import NamedTuple
from adjit.passes.dependencies import LARGEST, Pattern, jacobian_pattern, too_dense
from adjit.tracer.pytree import flatten
from adjit.tracer.trace import current_trace

from .conversion import as_called
from .function import Function, function
from .signature import Signature, take_apart
from .transforms import grad, jvp, name_of, vjp
from .vmap import vmap

P = ParamSpec("P")
MOST = 10_000  # sweeps


class SparsePlan(NamedTuple):
    """How to compute a sparse derivative: where its elements are, and the seeds whose derivatives contain them."""

    shape: tuple[int, int]
    rows: Array
    cols: Array
    seeds: Array  # one per colour
    sweep: Function
    positions: tuple[Array, Array]  # of the elements in the derivatives of the seeds


def sparse_jacobian(fn: Callable[P, Any], argnums: int = 0) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `fn` with respect to one array as a `scipy.sparse.csr_array`.

    Its rows are the elements of the result (the arrays of a structure one after the other), its columns those of the argument. The pattern
    follows from the operations of `fn`, whatever the values; elements that happen to be zero are stored.

    >>> aj.sparse_jacobian(lambda x: x[1:] - x[:-1])(np.ones(3)).toarray().tolist()
    [[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]]
    """
    return Sparse(fn, argnums, symmetric=False).wrapped()


def sparse_hessian(fn: Callable[P, Any], argnums: int = 0) -> Callable[P, Any]:
    """Return a function that computes the Hessian of the scalar `fn` with respect to one array as a `scipy.sparse.csr_array`.

    >>> h = sparse_hessian(lambda x: (x[1:] * x[:-1] ** 2).sum())(np.ones(3))
    >>> h.toarray().tolist()
    [[2.0, 2.0, 0.0], [2.0, 2.0, 2.0], [0.0, 2.0, 0.0]]
    """
    return Sparse(grad(fn, argnums), argnums, symmetric=True).wrapped()


class Sparse:
    """A function and the plans for the signatures with which its sparse derivative was computed."""

    def __init__(self, fn: Callable[..., Any], position: int, symmetric: bool) -> None:
        self.fn, self.position, self.symmetric = fn, position, symmetric
        self.name = name_of(fn)
        self.plans: dict[Any, SparsePlan] = {}

    def wrapped(self) -> Callable[..., Any]:
        @functools.wraps(self.fn)
        def differentiated(*args: Any) -> Any:
            return self.compute(args)

        return differentiated

    def compute(self, args: tuple[Any, ...]) -> Any:
        sparse = scipy_sparse()
        if current_trace() is not None:
            raise UnsupportedError(f"{self.name}: a sparse derivative is a SciPy array, which compiled code cannot hold; call it outside")
        if not -len(args) <= self.position < len(args):
            raise GradientError(f"{self.name}: argnums names argument {self.position}, but the function was called with {len(args)}")
        given = [as_operand(x) if i == self.position % len(args) else x for i, x in enumerate(args)]
        x = given[self.position]
        if not x.type.is_float:
            raise GradientError(f"{self.name}: argument {self.position} is {x.type}: only floats have derivatives")
        plan = self.plan(tuple(given))
        if not plan.rows.size:
            return sparse.csr_array(plan.shape, dtype=x.dtype)
        swept = np.asarray(plan.sweep(plan.seeds, *given))
        values = swept.reshape(len(plan.seeds), -1)[plan.positions]
        return sparse.csr_array((values, (plan.rows, plan.cols)), shape=plan.shape)

    def plan(self, args: tuple[Any, ...]) -> SparsePlan:
        signature = take_apart(args, {})
        found = self.plans.get(signature.key)
        if found is None:
            found, holds_for_all = self.made(signature, args)
            if holds_for_all:
                self.plans[signature.key] = found
        return found

    def made(self, signature: Signature, args: tuple[Any, ...]) -> tuple[SparsePlan, bool]:
        program = function(self.flat, name=self.name)._trace(signature, None, set())
        source = self.source(args)
        values: list[Array | None] = [*signature.arrays, *[None] * len(program.cells), *program.captures]
        (pattern,), uses_values = jacobian_pattern(program.func, source, values)
        (result,), size = program.func.results, program.func.params[source].type.size
        shape, x = (result.type.size, size), args[self.position]
        choices = [colouring(pattern, shape)]
        if not self.symmetric:
            choices.append(colouring(Pattern.of(max(shape[0], 1), pattern.cols, pattern.rows), shape[::-1]))
        colours = min((c for c in choices if c is not None), key=count_of, default=None)
        if colours is None:
            raise too_dense()
        forward, count = colours is choices[0], count_of(colours)
        like = x.type if forward else result.type
        seeds = np.zeros((count, colours.size), like.dtype)
        seeds[colours, np.arange(colours.size)] = 1.0
        rows, cols = pattern.rows, pattern.cols
        positions = (colours[cols], rows) if forward else (colours[rows], cols)
        sweep = function(self.forward if forward else self.reverse, name=f"{self.name}.sparse")
        return SparsePlan(shape, rows, cols, seeds.reshape(count, *like.shape), sweep, positions), not uses_values

    def source(self, args: tuple[Any, ...]) -> int:
        """The position of the differentiated argument among the traced leaves."""
        before = args[: self.position % len(args)]
        return len(take_apart(before, {}).arrays)

    def flat(self, *args: Any) -> Any:
        """All arrays of the result, as one vector."""
        leaves, _ = flatten(as_called(self.fn)(*args))
        vectors = [reshape(as_operand(leaf), -1) for leaf in leaves if isinstance(leaf, Operand)]
        return vectors[0] if len(vectors) == 1 else concatenate(vectors, 0)

    def by_argument(self, args: Sequence[Any]) -> tuple[Callable[[Any], Any], Any]:
        at = self.position % len(args)
        return lambda x: self.flat(*args[:at], x, *args[at + 1 :]), args[at]

    def forward(self, seeds: Any, *args: Any) -> Any:
        fn, x = self.by_argument(args)
        return vmap(lambda seed: jvp(fn, (x,), (seed,))[1])(seeds)

    def reverse(self, seeds: Any, *args: Any) -> Any:
        fn, x = self.by_argument(args)
        _, pullback = vjp(fn, x)
        return vmap(lambda seed: pullback(seed)[0])(seeds)


def count_of(colours: Array) -> int:
    return int(colours.max(initial=-1)) + 1


def colouring(pattern: Pattern, shape: tuple[int, int]) -> Array | None:
    """A colour for each column, so that no row has two columns of one colour: each column takes the first that is free.

    None if too many columns meet in one row.
    """
    sparse = scipy_sparse()
    ones = np.ones(pattern.keys.size, np.int32)
    matrix = sparse.csr_array((ones, (pattern.rows, pattern.cols)), shape=shape)
    counts = np.diff(matrix.indptr).astype(np.float64)
    if counts.max(initial=0.0) == shape[1] <= MOST:
        return np.arange(shape[1])  # a full row: no two columns can share a sweep
    if counts.max(initial=0.0) > MOST or float(counts @ counts) > LARGEST:
        return None
    by_column = matrix.tocsc()
    starts, rows = by_column.indptr.tolist(), by_column.indices.tolist()
    taken = [0] * shape[0]  # the colours in each row, as bits
    colours = []
    for start, stop in itertools.pairwise(starts):
        near = 0
        for row in rows[start:stop]:
            near |= taken[row]
        free = ~near & (near + 1)  # the lowest bit that is 0
        colours.append(free.bit_length() - 1)
        for row in rows[start:stop]:
            taken[row] |= free
    return np.array(colours, np.int64)


def scipy_sparse() -> Any:
    try:
        from scipy import sparse  # noqa: PLC0415 - an optional dependency
    except ImportError:
        raise ImportError("sparse derivatives are scipy.sparse arrays: install SciPy (pip install scipy)") from None
    return sparse
