"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import normalize_axis

from ..convert import pick, to_operands
from .shapes import moveaxis, stack


def matmul(a: Any, b: Any, /) -> Operand:
    """Return the product of (stacks of) matrices and vectors.

    >>> aj.matmul([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    Tensor([[2, 1],
            [4, 3]], i64[2,2])
    """
    return ops.matmul(*to_operands(a, b))


def dot(a: Any, b: Any, /) -> Operand:
    """Return the product of vectors or matrices; with more axes, the sum over the last axis of a and the second-to-last of b.

    >>> aj.dot([[1, 2], [3, 4]], [1, 10])
    Tensor([21, 43], i64[2])
    """
    a, b = to_operands(a, b)
    if not a.ndim or not b.ndim:
        return ops.mul(a, b)
    if b.ndim == 1 or (a.ndim <= 2 and b.ndim <= 2):
        return ops.matmul(a, b)
    return tensordot(a, b, axes=(a.ndim - 1, b.ndim - 2))


def vdot(a: Any, b: Any, /) -> Operand:
    """Return the dot product of the flattened operands, the first of them conjugated.

    >>> aj.vdot([1j, 2.0], [1j, 1.0])
    Tensor(3.+0.j, c128[])
    """
    a, b = to_operands(a, b)
    return ops.matmul(ops.conj(ops.reshape(a, -1)), ops.reshape(b, -1))


def vecdot(a: Any, b: Any, /, axis: int = -1) -> Operand:
    """Return the dot products of vectors along one axis of both operands, the first of them conjugated.

    >>> aj.vecdot([[1, 2], [3, 4]], [1, 10])
    Tensor([21, 43], i64[2])
    """
    a, b = (moveaxis(x, axis, -1) for x in to_operands(a, b))
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"vecdot: vectors of different lengths: {a.type} and {b.type} ({a.shape[-1]} != {b.shape[-1]})")
    return same_dtype(ops.sum(ops.conj(a) * b, -1), a, b)


def inner(a: Any, b: Any, /) -> Operand:
    """Return the sum of products over the last axes.

    >>> aj.inner([1, 2], [3, 4])
    Tensor(11, i64[])
    """
    a, b = to_operands(a, b)
    return a * b if not a.ndim or not b.ndim else tensordot(a, b, axes=(-1, -1))


def outer(a: Any, b: Any, /) -> Operand:
    """Return the outer product of the flattened operands.

    >>> aj.outer([1, 2], [10, 20])
    Tensor([[10, 20],
            [20, 40]], i64[2,2])
    """
    a, b = to_operands(a, b)
    return ops.reshape(a, (-1, 1)) * ops.reshape(b, (1, -1))


def outer_of_vectors(a: Any, b: Any, /) -> Operand:
    """Return the outer product of two vectors, as `np.linalg.outer` does."""
    a, b = to_operands(a, b)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"linalg.outer: takes vectors, not {a.type} and {b.type}; use np.outer")
    return outer(a, b)


def tensordot(a: Any, b: Any, /, axes: Any = 2) -> Operand:
    """Return the sum of products over pairs of axes; an integer n means the last n axes of a and the first n of b.

    >>> aj.tensordot(aj.ones((2, 3)), aj.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    a, b = to_operands(a, b)
    if isinstance(axes, Iterable):
        given_a, given_b = axes
        axes_a = [given_a] if not isinstance(given_a, Iterable) else list(given_a)
        axes_b = [given_b] if not isinstance(given_b, Iterable) else list(given_b)
    else:
        count = operator.index(axes)
        axes_a, axes_b = list(range(a.ndim - count, a.ndim)), list(range(count))
    axes_a = [normalize_axis(axis, a.ndim, "tensordot") for axis in axes_a]
    axes_b = [normalize_axis(axis, b.ndim, "tensordot") for axis in axes_b]
    if [a.shape[i] for i in axes_a] != [b.shape[i] for i in axes_b]:
        raise ShapeError(f"tensordot: sizes of axes {axes_a} of {a.type} and {axes_b} of {b.type} differ")
    free_a = [i for i in range(a.ndim) if i not in axes_a]
    free_b = [i for i in range(b.ndim) if i not in axes_b]
    shape = (*(a.shape[i] for i in free_a), *(b.shape[i] for i in free_b))
    if not axes_a:
        return ops.reshape(outer(a, b), shape)
    size = math.prod(a.shape[i] for i in axes_a)
    left = ops.reshape(ops.transpose(a, (*free_a, *axes_a)), (math.prod(a.shape[i] for i in free_a), size))
    right = ops.reshape(ops.transpose(b, (*axes_b, *free_b)), (size, math.prod(b.shape[i] for i in free_b)))
    return ops.reshape(ops.matmul(left, right), shape)


def matvec(a: Any, b: Any, /) -> Operand:
    """Multiply (stacks of) matrices by vectors."""
    a, b = to_operands(a, b)
    if a.ndim < 2 or b.ndim < 1:
        raise ShapeError(f"matvec: takes matrices and vectors, not {a.type} and {b.type}")
    out = ops.matmul(a, ops.reshape(b, (*b.shape, 1)))
    return ops.reshape(out, out.shape[:-1])


def vecmat(a: Any, b: Any, /) -> Operand:
    """Multiply (stacks of) vectors, conjugated, by matrices."""
    a, b = to_operands(a, b)
    if a.ndim < 1 or b.ndim < 2:
        raise ShapeError(f"vecmat: takes vectors and matrices, not {a.type} and {b.type}")
    out = ops.matmul(ops.reshape(ops.conj(a), (*a.shape[:-1], 1, a.shape[-1])), b)
    return ops.reshape(out, (*out.shape[:-2], out.shape[-1]))


def kron(a: Any, b: Any, /) -> Operand:
    """Return the Kronecker product: b scaled by each element of a.

    >>> aj.kron([1, 10], [1, 2])
    Tensor([ 1,  2, 10, 20], i64[4])
    """
    a, b = to_operands(a, b)
    rank = max(a.ndim, b.ndim)
    sizes_a, sizes_b = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    wide_a = ops.reshape(a, tuple(n for size in sizes_a for n in (size, 1)))
    wide_b = ops.reshape(b, tuple(n for size in sizes_b for n in (1, size)))
    return ops.reshape(wide_a * wide_b, tuple(m * n for m, n in zip(sizes_a, sizes_b, strict=True)))


def cross(a: Any, b: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Operand:
    """Return the cross product of vectors of three elements.

    >>> aj.cross([1, 0, 0], [0, 1, 0])
    Tensor([0, 0, 1], i64[3])
    """
    a, b = to_operands(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ShapeError(f"cross: takes vectors of three elements, not {a.shape[-1]} and {b.shape[-1]}")
    (a0, a1, a2), (b0, b1, b2) = ([pick(x, (..., i)) for i in range(3)] for x in (a, b))
    return stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axisc)


def multi_dot(xs: Any, /) -> Operand:
    """Return the product of several matrices, in the order that needs the fewest multiplications; the first and last may be vectors.

    >>> aj.linalg.multi_dot([aj.ones((2, 10)), aj.ones((10, 3)), aj.ones(3)])
    Tensor([30., 30.], f64[2])
    """
    chain = list(to_operands(*xs))
    if len(chain) < 2:
        raise ShapeError("multi_dot: takes at least two arrays")
    row, column = chain[0].ndim == 1, chain[-1].ndim == 1
    if row:
        chain[0] = ops.reshape(chain[0], (1, -1))
    if column:
        chain[-1] = ops.reshape(chain[-1], (-1, 1))
    if any(x.ndim != 2 for x in chain):
        raise ShapeError(f"multi_dot: takes matrices, and vectors at its ends, not {', '.join(str(x.type) for x in to_operands(*xs))}")
    cuts = chain_cuts([chain[0].shape[0], *(x.shape[1] for x in chain)])

    def product(low: int, high: int) -> Operand:
        return chain[low] if low == high else ops.matmul(product(low, cuts[low, high]), product(cuts[low, high] + 1, high))

    out = product(0, len(chain) - 1)
    return ops.reshape(out, out.shape[row : 1 if column else 2])


def chain_cuts(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where to split the product of matrices low … high for the fewest multiplications; matrix i is sizes[i] by sizes[i + 1]."""
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for low in range(count - length):
            high = low + length
            cost, cut = min((costs[low, k] + costs[k + 1, high] + sizes[low] * sizes[k + 1] * sizes[high + 1], k) for k in range(low, high))
            costs[low, high], cuts[low, high] = cost, cut
    return cuts


def same_dtype(out: Operand, *operands: Operand) -> Operand:
    """Cast `out`, which a sum may have widened, to the dtype that its operands promote to."""
    return ops.cast(out, np.result_type(*(x.dtype for x in operands)))


end_at_callers(globals())
