"""Systems of linear equations, factorisations, norms and powers of matrices; `aj.linalg`, with the products of `products.py`."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.operand import Concrete, Operand
from adjit.ir.records import NamedTuple
from adjit.ir.tracebacks import end_at_callers, lookup
from adjit.ir.types import F64, listed_axes

from ..convert import present, to_operand, to_operands
from ..numpy_fallback import tensors
from ..results import copies
from . import indexing, norms
from .create import eye
from .elementwise import floating
from .norms import norm as norm
from .products import cross, matmul, multi_dot, outer, tensordot, vecdot
from .shapes import concatenate, matrix_transpose, moveaxis

__all__ = [
    "cholesky", "cross", "det", "inv", "lstsq", "matmul", "matrix_power", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet",
    "solve", "tensordot", "tensorsolve", "vecdot", "block_diag", "cho_solve", "cond", "eig", "eigh", "eigvals", "eigvalsh", "expm",
    "lu", "matrix_rank", "solve_triangular", "sqrtm", "svd", "svdvals", "tensorinv", "toeplitz",
]  # fmt: skip

if TYPE_CHECKING:
    from .spectral import (
        block_diag,
        cho_solve,
        cond,
        eig,
        eigh,
        eigvals,
        eigvalsh,
        expm,
        lu,
        matrix_rank,
        solve_triangular,
        sqrtm,
        svd,
        svdvals,
        tensorinv,
        toeplitz,
    )


@lookup
def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import spectral  # noqa: PLC0415 - few programs use it

        return getattr(spectral, name)
    raise AttributeError(f"module 'aj.linalg' has no attribute {name!r}; those of NumPy that it has are in dir(aj.linalg)")


def __dir__() -> list[str]:
    return __all__


def solve(a: Any, b: Any, /) -> Operand:
    """Return the solution x of `a @ x = b`.

    >>> aj.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    Tensor([1. , 0.5], f64[2])
    """
    return ops.solve(*to_operands(a, b))


def inv(a: Any, /) -> Operand:
    """Return the inverse of (stacks of) matrices; where the inverse would be multiplied, `solve` is faster and more accurate.

    >>> aj.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
    Tensor([[0.5 , 0.  ],
            [0.  , 0.25]], f64[2,2])
    """
    x = to_operand(a)
    return ops.solve(x, eye(x.shape[-1] if x.ndim else 0, dtype=x.dtype if x.type.is_inexact else F64))


class SlogdetResult(NamedTuple):
    """The result of `slogdet`, as in NumPy."""

    sign: Operand
    logabsdet: Operand


class QRResult(NamedTuple):
    """The result of `qr`, as in NumPy."""

    Q: Operand
    R: Operand


@copies
def slogdet(a: Any, /) -> SlogdetResult:
    """Return the sign and the logarithm of the absolute determinant: 0 and -inf for a singular matrix, which has no derivative.

    The sign of a complex determinant is a complex number of magnitude 1.

    >>> aj.linalg.slogdet([[-1.0, 0.0], [0.0, 1.0]])
    SlogdetResult(sign=Tensor(-1., f64[]), logabsdet=Tensor(0., f64[]))
    """
    x = floating(to_operand(a))
    return SlogdetResult(*(complex_factors().slogdet_complex(x) if x.type.is_complex else ops.slogdet(x)))


def complex_factors() -> Any:
    """The factorisations of complex matrices, which few programs need."""
    from adjit.ir.ops import complex_factor  # noqa: PLC0415 - few programs need it

    return complex_factor


def det(a: Any, /) -> Operand:
    """Return the determinant; there is no derivative at a singular matrix.

    >>> aj.linalg.det([[2.0, 0.0], [1.0, 3.0]])
    Tensor(6., f64[])
    """
    sign, size = slogdet(a)
    return sign * ops.exp(size)


def cholesky(a: Any, /, *, upper: bool = False) -> Operand:
    """Return the lower triangular l with `l @ l^H = a` (or, with `upper`, its adjoint). Reads only that triangle of a, as NumPy does.

    >>> aj.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    Tensor([[2., 0.],
            [1., 2.]], f64[2,2])
    """
    x = floating(to_operand(a))
    factor = complex_factors().cholesky_complex if x.type.is_complex else ops.cholesky
    return adjoint(factor(adjoint(x))) if upper else factor(x)


def adjoint(x: Operand) -> Operand:
    """The conjugate transpose of (stacks of) matrices."""
    return matrix_transpose(ops.conj(x))


@copies
def qr(a: Any, /, mode: str = "reduced") -> Any:
    """Return q with orthonormal columns and triangular r with `q @ r = a`; with mode "r", only r.

    For complex matrices, the diagonal of r is positive. Mode "complete", with a square q, takes matrices that are known and not
    differentiated.

    >>> q, r = aj.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> aj.allclose(q @ r, [[3.0, 1.0], [4.0, 2.0]])
    Tensor(True, bool[])
    """
    x = floating(to_operand(a))
    if mode == "complete" and (x.ndim < 2 or x.shape[-2] > x.shape[-1]):
        return by_numpy("qr", np.linalg.qr, x, mode="complete")
    if mode not in ("reduced", "r", "complete"):
        raise UnsupportedError(f"qr: mode {mode!r}; 'reduced', 'complete' and 'r' are supported")
    found = QRResult(*(complex_factors().qr_complex(x) if x.type.is_complex else ops.qr(x)))
    return found.R if mode == "r" else found


def by_numpy(what: str, function: Any, x: Operand, **options: Any) -> Any:
    """Call NumPy for a result whose derivatives are not defined, if x is known and not differentiated."""
    if not isinstance(x, Concrete) or x.is_watched:
        why = "this part of the result is not unique: it has no derivatives and is not compiled; use the reduced form"
        raise UnsupportedError(f"{what}: {why}")
    out = function(np.asarray(x), **options)
    return tensors(out, set())


def lstsq(a: Any, b: Any, /, rcond: Any = None) -> tuple[Any, ...]:
    """Return the least-squares solution x of `a @ x = b`, the squared residuals, the rank, and the singular values.

    If `a` or `b` is traced or differentiated, the columns of `a` must be linearly independent, or an error is raised, and None is returned
    in place of the singular values. With a tolerance for small singular values, both must be known.

    >>> x, residuals, rank, _ = aj.linalg.lstsq([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], [1.0, 4.0, 3.0])
    >>> x, residuals
    (Tensor([1., 2.], f64[2]), Tensor([9.], f64[1]))
    """
    a, b = (floating(x) for x in to_operands(a, b))
    if all(isinstance(x, Concrete) and not x.is_watched for x in (a, b)):
        x, residuals, rank, values = by_numpy("lstsq", np.linalg.lstsq, a, b=np.asarray(b), rcond=rcond)
        return x, residuals, int(rank), values
    if rcond is not None:
        raise UnsupportedError("lstsq: with a tolerance, the matrix must be known: the rank depends on values")
    if a.ndim != 2 or a.shape[0] < a.shape[1]:
        raise UnsupportedError(f"lstsq: takes a matrix with at least as many rows as columns, not {a.type}")
    q, r = qr(a)
    check_independent(r, a.shape[-2], "lstsq")
    x = upper_solution(r, ops.matmul(adjoint(q), b))
    rest = ops.absolute(b - ops.matmul(a, x))
    residuals = ops.reshape(ops.sum(rest * rest, 0), (-1,)) if a.shape[0] > a.shape[1] else present(ops.full((0,), 0, rest.dtype))
    return x, residuals, a.shape[1], None


def pinv(a: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Operand:
    """Return the pseudoinverse of a matrix.

    If the matrix is traced or differentiated, its columns (or its rows, if there are fewer) must be linearly independent, or an error is
    raised. With a tolerance for small singular values, it must be known.

    >>> a = aj.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> aj.allclose(aj.linalg.pinv(a) @ a, aj.eye(2))
    Tensor(True, bool[])
    """
    x = floating(to_operand(a))
    if x.ndim < 2:
        raise ShapeError(f"pinv: takes matrices, not {x.type}")
    if isinstance(x, Concrete) and not x.is_watched:
        given = {name: np.asarray(value) for name, value in (("rcond", rcond), ("rtol", rtol)) if value is not None}
        return by_numpy("pinv", np.linalg.pinv, x, hermitian=hermitian, **given)  # type: ignore[no-any-return]
    if rcond is not None or rtol is not None:
        raise UnsupportedError("pinv: with a tolerance, the matrix must be known: the rank depends on values")
    if x.shape[-2] < x.shape[-1]:
        return adjoint(pinv(adjoint(x)))
    q, r = qr(x)
    check_independent(r, x.shape[-2], "pinv")
    return upper_solution(r, adjoint(q))


def upper_solution(r: Operand, b: Operand) -> Operand:
    """Solve with an upper triangle."""
    return ops.solve(r, b) if r.type.is_complex or b.type.is_complex else ops.solve_triangular(r, b, upper=True)


def check_independent(r: Operand, rows: int, what: str) -> None:
    """Raise an error if the triangle of a QR factorisation shows that a column depends on earlier ones, up to rounding.

    The least-squares solution is not unique then. The rest of a column is compared with the column itself, whatever the norms of the
    others.
    """
    r = ops.stop_gradient(r)
    left, whole = ops.absolute(diagonal(r)), ops.sqrt(ops.sum(ops.absolute(r) * ops.absolute(r), -2))
    independent = ops.all(ops.greater(left, whole * (4.0 * rows * float(np.finfo(r.dtype).eps))))
    ops.check(independent, f"{what}: columns of the matrix depend on each other, so that its rank is less than their number", "ValueError")


def tensorsolve(a: Any, b: Any, /, axes: Any = None) -> Operand:
    """Return the solution x of `tensordot(a, x, x.ndim) = b`.

    >>> aj.linalg.tensorsolve(2.0 * aj.eye(4).reshape(2, 2, 2, 2), aj.ones((2, 2)))
    Tensor([[0.5, 0.5],
            [0.5, 0.5]], f64[2,2])
    """
    a, b = to_operands(a, b)
    if axes is not None:
        a = moveaxis(a, axes, tuple(range(-len(axes), 0)))
    shape = a.shape[b.ndim :]
    return ops.reshape(ops.solve(ops.reshape(a, (b.type.size, math.prod(shape))), ops.reshape(b, -1)), shape)


@copies
def matrix_power(x: Any, n: int, /) -> Operand:
    """Return a square matrix to the integer power n; if n is negative, its inverse to the power -n.

    >>> aj.matrix_power([[1, 1], [0, 1]], 3)
    Tensor([[1, 3],
            [0, 1]], i64[2,2])
    """
    base = to_operand(x)
    n = operator.index(n)
    if n < 0:
        base, n = inv(base), -n
    if base.ndim < 2 or base.shape[-1] != base.shape[-2]:
        raise ShapeError(f"matrix_power: takes square matrices, not {base.type}")
    if n == 0:
        return present(ops.broadcast_to(ops.eye(base.shape[-1], dtype=base.dtype), base.shape))
    out: Operand | None = None
    while n:
        if n & 1:
            out = base if out is None else ops.matmul(out, base)
        n >>= 1
        base = ops.matmul(base, base) if n else base
    return out if out is not None else base


@copies
def block(rows: Any, /) -> Operand:
    """Assemble an array from nested lists of blocks; the innermost are joined along the last axis."""
    depth = nesting(rows)
    return joined(rows, depth, depth) if depth else to_operand(rows)


def nesting(rows: Any) -> int:
    return 1 + max(map(nesting, rows)) if isinstance(rows, list) else 0


def joined(rows: Any, depth: int, rank: int) -> Operand:
    if not isinstance(rows, list):
        x = to_operand(rows)
        return ops.reshape(x, (1,) * (rank - x.ndim) + x.shape) if x.ndim < rank else x
    return concatenate([joined(row, depth - 1, rank) for row in rows], -depth)


# ---- functions of stacks of matrices, as in np.linalg


def vector_norm(x: Any, /, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Operand:
    """Compute a vector norm over any axes (default: all), as np.linalg.vector_norm does."""
    x = floating(to_operand(x))
    axes = tuple(range(x.ndim)) if axis is None else listed_axes(axis)
    return norms.vector_norm(x, 2 if ord is None else ord, axes, keepdims)


def matrix_norm(x: Any, /, keepdims: bool = False, ord: Any = "fro") -> Operand:
    """Compute a matrix norm over the last two axes, as np.linalg.matrix_norm does."""
    return norms.matrix_norm(floating(to_operand(x)), "fro" if ord is None else ord, (-2, -1), keepdims)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Operand:
    """Sum over the diagonals of the last two axes."""
    return indexing.trace(x, offset, -2, -1, dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Operand:
    """Return the diagonals of the last two axes."""
    return indexing.diagonal(x, offset, -2, -1)


end_at_callers(globals())
