"""Eigenvalues, singular values and functions of them; functions of matrices; systems with structured matrices.

Imported when one of its functions is first used: as `aj.linalg.svd`, or as `np.linalg.svd` on adjit's values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.ops import spectral
from adjit.ir.ops.lu_parts import lu_parts
from adjit.ir.ops.triangular import lower
from adjit.ir.records import NamedTuple
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import I64, normalize_axis

from ..control import fori_loop
from ..convert import counting, pick, present, to_operand, to_operands
from ..results import copies
from . import linalg
from .create import eye
from .elementwise import floating
from .norms import largest
from .shapes import concatenate, matrix_transpose, moveaxis

__all__ = [
    "block_diag", "cho_solve", "cond", "eig", "eigh", "eigvals", "eigvalsh", "expm", "lu", "matrix_rank", "nuclear_norm",
    "solve_triangular", "sqrtm", "svd", "svdvals", "tensorinv", "toeplitz",
]  # fmt: skip

PADE = tuple(math.comb(13, k) * math.factorial(26 - k) // math.factorial(13) for k in range(14))  # numerator of exp's approximant
PADE_NORM = 5.371920351148152  # up to this norm the approximant is accurate to float64
SQUARE_ROOTS = 18  # steps of Newton's iteration: it converges quadratically


class EighResult(NamedTuple):
    """The result of `eigh`, as in NumPy."""

    eigenvalues: Operand
    eigenvectors: Operand


class EigResult(NamedTuple):
    """The result of `eig`, as in NumPy."""

    eigenvalues: Operand
    eigenvectors: Operand


class SVDResult(NamedTuple):
    """The result of `svd`, as in NumPy."""

    U: Operand
    S: Operand
    Vh: Operand


# ---- eigenvalues and singular values


@copies
def eigh(a: Any, /, UPLO: str = "L") -> EighResult:
    """Return the eigenvalues of symmetric or Hermitian matrices, ascending, and the eigenvectors as columns; reads one triangle, as NumPy.

    Eigenvectors of equal eigenvalues are arbitrary, and their derivatives NaN; those of the eigenvalues are exact there.

    >>> values, vectors = aj.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> values
    Tensor([1., 3.], f64[2])
    """
    x = floating(to_operand(a))
    if UPLO.upper() not in ("L", "U"):
        raise ShapeError(f"eigh: UPLO must be 'L' or 'U', not {UPLO!r}")
    x = x if UPLO.upper() == "L" else linalg.adjoint(x)
    return EighResult(*(complex_decompositions().eigh_complex(x) if x.type.is_complex else spectral.eigh(x)))


def complex_decompositions() -> Any:
    """Decompositions of complex matrices, which few programs need."""
    from adjit.ir.ops import hermitian  # noqa: PLC0415 - few programs need it

    return hermitian


@copies
def eigvalsh(a: Any, /, UPLO: str = "L") -> Operand:
    """Return the eigenvalues of symmetric or Hermitian matrices, ascending.

    >>> aj.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])
    Tensor([1., 3.], f64[2])
    """
    return eigh(a, UPLO).eigenvalues


@copies
def eig(a: Any, /) -> EigResult:
    """Return the eigenvalues and eigenvectors of square matrices. They are always complex numbers, and in no order.

    Eigenvectors are the columns, of length 1. Native code needs LAPACK, which NumPy's wheels have.

    >>> values, vectors = aj.linalg.eig([[0.0, -1.0], [1.0, 0.0]])
    >>> values
    Tensor([0.+1.j, 0.-1.j], c128[2])
    """
    from adjit.ir.ops import eig as general  # noqa: PLC0415 - few programs need it

    return EigResult(*general.eig(floating(to_operand(a))))


@copies
def eigvals(a: Any, /) -> Operand:
    """Return the eigenvalues of square matrices: complex numbers, in no order.

    >>> aj.linalg.eigvals([[0.0, -1.0], [1.0, 0.0]])
    Tensor([0.+1.j, 0.-1.j], c128[2])
    >>> aj.grad(lambda a: aj.sum(aj.real(aj.linalg.eigvals(a))))(np.ones((2, 2)))  # the trace
    Tensor([[1., 0.],
            [0., 1.]], f64[2,2])
    """
    return eig(a).eigenvalues


@copies
def svd(a: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return U, the singular values, descending, and V^H; with `compute_uv=False`, the singular values.

    For matrices that are not square, square factors need values that are known and not differentiated; otherwise pass
    `full_matrices=False`.

    >>> u, s, vt = aj.linalg.svd([[3.0, 0.0], [0.0, 4.0]])
    >>> s
    Tensor([4., 3.], f64[2])
    """
    x = floating(to_operand(a))
    if x.ndim < 2:
        raise ShapeError(f"svd: takes matrices, not {x.type}")
    if compute_uv and full_matrices and x.shape[-1] != x.shape[-2]:
        return linalg.by_numpy("svd", np.linalg.svd, x)
    u, s, vt = complex_decompositions().svd_complex(x) if x.type.is_complex else spectral.svd(x)
    if not compute_uv:
        return s
    return SVDResult(u, s, vt)


@copies
def svdvals(a: Any, /) -> Operand:
    """Return the singular values, descending.

    >>> aj.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]])
    Tensor([4., 3.], f64[2])
    """
    out: Operand = svd(a, False, False)
    return out


def nuclear_norm(x: Operand, axes: tuple[int, int], keepdims: bool, ord: Any) -> Operand:
    """Return the sum of the singular values ("nuc"), the largest (2) or the smallest one (-2), over two axes."""
    rows, columns = (normalize_axis(axis, x.ndim, "norm") for axis in axes)
    s = svdvals(moveaxis(x, (rows, columns), (-2, -1)))
    out = ops.sum(s, -1) if ord == "nuc" else pick(s, (..., 0 if ord == 2 else -1))
    return ops.reshape(out, tuple(1 if i in (rows, columns) else n for i, n in enumerate(x.shape))) if keepdims else out


def cond(x: Any, /, p: Any = None) -> Operand:
    """Return the condition number: the ratio of the extreme singular values, or by another norm the product with the inverse's.

    >>> aj.linalg.cond([[1.0, 0.0], [0.0, 4.0]])
    Tensor(4., f64[])
    """
    x = floating(to_operand(x))
    if p in (None, 2, -2):
        s = svdvals(x)
        largest, smallest = pick(s, (..., 0)), pick(s, (..., -1))
        ratio = smallest / largest if p == -2 else largest / smallest
    else:
        ratio = linalg.matrix_norm(x, ord=p) * linalg.matrix_norm(linalg.inv(x), ord=p)
    undefined = ops.logical_and(ops.isnan(ratio), ops.logical_not(ops.any(ops.isnan(x), (-2, -1))))  # 0 / 0
    return ops.where(undefined, math.inf, ratio)


def matrix_rank(a: Any, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Operand:
    """Return the number of singular values above a tolerance: max(m, n) times the largest times the precision, unless given.

    >>> aj.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    Tensor(1, i64[])
    """
    x = floating(to_operand(a))
    if x.ndim < 2:
        return ops.cast(ops.any(ops.not_equal(x, 0.0)), I64)
    s = ops.stop_gradient(svdvals(x))
    if tol is None:
        relative = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if rtol is None else rtol
        tol = largest(s, (-1,), True) * relative
    elif isinstance(tol, Operand | np.ndarray):
        tol = ops.reshape(to_operand(tol), (*np.shape(tol), 1))
    return ops.sum(ops.cast(ops.greater(s, tol), I64), -1)


def tensorinv(a: Any, /, ind: int = 2) -> Operand:
    """Return the inverse of the linear map that `tensordot(a, x, a.ndim - ind)` is.

    >>> aj.linalg.tensorinv(2.0 * aj.eye(6).reshape(2, 3, 6), ind=2).shape
    (6, 2, 3)
    """
    x = to_operand(a)
    if ind <= 0:
        raise ShapeError("tensorinv: ind must be positive")
    left, right = x.shape[:ind], x.shape[ind:]
    if math.prod(left) != math.prod(right):
        raise ShapeError(f"tensorinv: {x.type} with ind={ind} is not a square map: {math.prod(left)} != {math.prod(right)}")
    return ops.reshape(linalg.inv(ops.reshape(x, (math.prod(left), -1))), (*right, *left))


# ---- functions of matrices


def expm(a: Any, /) -> Operand:
    """Return the exponential of (stacks of) square matrices, by scaling, Padé's approximant of order 13, and squaring.

    >>> aj.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[1., 1.],
            [0., 1.]], f64[2,2])
    """
    x = floating(to_operand(a))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"expm: takes square matrices, not {x.type}")
    if not x.type.size:
        return x
    norm = ops.max(ops.sum(ops.absolute(ops.stop_gradient(x)), -2))
    doublings = ops.maximum(ops.ceil(ops.log2(ops.maximum(norm, 1e-30) / PADE_NORM)), 0.0)
    doublings = ops.cast(ops.where(ops.isfinite(norm), doublings, 0.0), I64)
    scaled = x * ops.exp2(-ops.cast(doublings, x.dtype))
    one = ops.broadcast_to(ops.cast(to_operand(eye(x.shape[-1])), x.dtype), x.shape)
    b = [float(c) / PADE[0] for c in PADE]
    second = ops.matmul(scaled, scaled)
    fourth = ops.matmul(second, second)
    sixth = ops.matmul(second, fourth)
    odd = ops.matmul(sixth, sixth * b[13] + fourth * b[11] + second * b[9]) + sixth * b[7] + fourth * b[5] + second * b[3] + one * b[1]
    even = ops.matmul(sixth, sixth * b[12] + fourth * b[10] + second * b[8]) + sixth * b[6] + fourth * b[4] + second * b[2] + one * b[0]
    odd = ops.matmul(scaled, odd)
    out: Operand = fori_loop(0, doublings, lambda _, y: ops.matmul(y, y), present(ops.solve(even - odd, even + odd)))
    return out


def sqrtm(a: Any, /) -> Operand:
    """Return the principal square root of square matrices without eigenvalues on the negative axis, by Denman and Beavers' iteration.

    >>> aj.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]])
    Tensor([[2., 0.],
            [0., 3.]], f64[2,2])
    """
    x = floating(to_operand(a))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"sqrtm: takes square matrices, not {x.type}")
    one = ops.broadcast_to(ops.cast(to_operand(eye(x.shape[-1])), x.dtype), x.shape)
    scale = ops.sqrt(ops.sum(x * x, (-2, -1), True) / x.shape[-1])

    def step(_: Any, state: tuple[Operand, Operand]) -> tuple[Operand, Operand]:
        y, z = state
        return 0.5 * (y + ops.solve(z, one)), 0.5 * (z + ops.solve(y, one))

    root, _ = fori_loop(0, SQUARE_ROOTS, step, (x / scale, present(one * 1.0)))
    out: Operand = root * ops.sqrt(scale)
    return out


# ---- structured matrices


def solve_triangular(a: Any, b: Any, /, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Operand:
    """Return the solution of `a @ x = b` for a triangular a, whose other triangle is not read; `trans=1` or "T": its transpose.

    >>> aj.linalg.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True)
    Tensor([1., 2.], f64[2])
    """
    if trans not in (0, 1, "N", "T"):
        raise ShapeError(f"solve_triangular: trans must be 0, 1, 'N' or 'T', not {trans!r}")
    a, b = (floating(x) for x in to_operands(a, b))
    return ops.solve_triangular(a, b, not lower, trans in (1, "T"), unit_diagonal)


@copies
def lu(a: Any, /, permute_l: bool = False) -> tuple[Operand, ...]:
    """Return a permutation matrix p, a lower triangle l with a diagonal of 1, and an upper triangle u with `p @ l @ u = a`.

    With `permute_l`, the first two are one matrix. Takes (stacks of) square matrices; derivatives need invertible ones.

    >>> p, l, u = aj.linalg.lu([[0.0, 2.0], [4.0, 6.0]])
    >>> u
    Tensor([[4., 6.],
            [0., 2.]], f64[2,2])
    """
    exchanges, packed = lu_parts(floating(to_operand(a)))
    below = lower(packed, -1)
    is_diagonal = ops.equal(ops.iota(packed.shape, packed.ndim - 1), ops.iota(packed.shape, packed.ndim - 2))
    left, right = ops.where(is_diagonal, 1.0, below), packed - below
    p = matrix_transpose(exchanges)
    return (ops.matmul(p, left), right) if permute_l else (p, left, right)


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, /) -> Operand:
    """Return the solution of `a @ x = b`, given the Cholesky factor of a and whether it is the lower one.

    >>> factor = aj.linalg.cholesky([[4.0, 0.0], [0.0, 9.0]])
    >>> aj.linalg.cho_solve((factor, True), [4.0, 18.0])
    Tensor([1., 2.], f64[2])
    """
    c, lower = c_and_lower
    first = solve_triangular(c, b, trans=0 if lower else 1, lower=lower)
    return solve_triangular(c, first, trans=1 if lower else 0, lower=lower)


@copies
def block_diag(*blocks: Any) -> Operand:
    """Return a matrix with the given matrices along its diagonal and zeros elsewhere; vectors count as rows.

    >>> aj.linalg.block_diag([[1, 2], [3, 4]], 5)
    Tensor([[1, 2, 0],
            [3, 4, 0],
            [0, 0, 5]], i64[3,3])
    """
    matrices = [ops.reshape(x, (1,) * (2 - x.ndim) + x.shape) for x in to_operands(*blocks)]
    if any(x.ndim != 2 for x in matrices):
        raise ShapeError(f"block_diag: takes matrices, not {', '.join(str(x.type) for x in matrices)}")
    width, before, rows = sum(x.shape[1] for x in matrices), 0, []
    for x in matrices:
        rows.append(ops.pad(x, [0, before], [0, width - before - x.shape[1]]))
        before += x.shape[1]
    return concatenate(rows, 0)


def toeplitz(c: Any, r: Any = None, /) -> Operand:
    """Return the matrix with constant diagonals whose first column is c and first row r (default: c), whose first element is not read.

    >>> aj.linalg.toeplitz([1, 2, 3], [1, 8, 9])
    Tensor([[1, 8, 9],
            [2, 1, 8],
            [3, 2, 1]], i64[3,3])
    """
    column, row = to_operands(c, c if r is None else r)
    column, row = ops.reshape(column, -1), ops.reshape(row, -1)
    m, n = column.shape[0], row.shape[0]
    line = concatenate([ops.flip(column, 0), pick(row, slice(1, None))], 0)
    return pick(line, (m - 1) - counting(m, 2, 0) + counting(n, 2, 1))


end_at_callers(globals())
