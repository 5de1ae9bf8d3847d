"""tf.linalg: products, equations, factorisations, eigenvalues and singular values, norms, diagonals and bands of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.ir.ops.complex import conj, real
from adjit.tracer.surface import create, indexing, norms, shapes
from adjit.tracer.surface import einsum as _einsum
from adjit.tracer.surface import linalg as _linalg

from .array import eye as eye
from .diagonals import diag as diag
from .diagonals import diag_part as diag_part
from .diagonals import set_diag as set_diag
from .dtypes import as_dtype
from .errors import InvalidShape, missing, out_of_scope
from .listing import public_names
from .math import global_norm as global_norm
from .math import l2_normalize as l2_normalize
from .tensor import convert_to_tensor, dress, same_dtypes
from .wrapping import axes_of, public, tensors


def _adjoint(x: Operand) -> Operand:
    """The conjugated transpose."""
    return conj(shapes.matrix_transpose(x))


def _turned(x: Operand, transpose: bool, adjoint: bool) -> Operand:
    if transpose and adjoint:
        raise ValueError("Only one of transpose and adjoint can be True for a matrix.")
    return _adjoint(x) if adjoint else shapes.matrix_transpose(x) if transpose else x


@public
def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False, adjoint_b: bool = False,
    a_is_sparse: bool = False, b_is_sparse: bool = False, output_type: Any = None, grad_a: bool = False, grad_b: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The product of two matrices, or of batches of them."""
    x, y = tensors("MatMul", a, b)
    if len(x.type.shape) < 2 or len(y.type.shape) < 2:
        raise InvalidShape(
            f"MatMul: In[0] and In[1] must have at least 2 dimensions, not {list(x.type.shape)} and {list(y.type.shape)}; "
            "use tf.linalg.matvec or tf.tensordot for vectors"
        )
    if output_type is not None:
        kind = as_dtype(output_type).dtype
        x, y = ops.cast(x, kind), ops.cast(y, kind)
    return ops.matmul(_turned(x, transpose_a, adjoint_a), _turned(y, transpose_b, adjoint_b))


@public
def matvec(
    a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    x, y = tensors("MatVec", a, b)
    out = ops.matmul(_turned(x, transpose_a, adjoint_a), ops.reshape(y, (*y.type.shape, 1)))
    return ops.reshape(out, out.type.shape[:-1])


@public
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Any:
    return _linalg.tensordot(*tensors("Tensordot", a, b), axes=axes)


@public
def einsum(equation: str, *inputs: Any, optimize: Any = "greedy", name: str | None = None) -> Any:
    return _einsum.einsum(equation, *same_dtypes("Einsum", [convert_to_tensor(x) for x in inputs]))


@public
def cross(a: Any, b: Any, name: str | None = None) -> Any:
    return _linalg.cross(*tensors("Cross", a, b))


@public
def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The norm of all elements, or along an axis; two axes give matrix norms."""
    x = convert_to_tensor(tensor)
    kind = None if ord == "euclidean" else ord
    if axis is None:
        flat = ops.cast(norms.norm(ops.reshape(x, (-1,)), None if kind == "fro" else kind), x.type.dtype)
        return ops.reshape(flat, (1,) * len(x.type.shape)) if keepdims else flat
    return ops.cast(norms.norm(x, kind, axes_of(axis), keepdims), x.type.dtype)


@public
def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Any, Any]:
    x = convert_to_tensor(tensor)
    size = norm(x, ord, axis, keepdims=True)
    return x / size, size


@public
def trace(x: Any, name: str | None = None) -> Any:
    t = _of_rank("Trace", 2, x)
    return ops.cast(indexing.trace(t, axis1=-2, axis2=-1), t.type.dtype)


@public
def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Any:
    x = _of_rank("MatrixTranspose", 2, a)
    return _adjoint(x) if conjugate else shapes.matrix_transpose(x)


@public
def adjoint(matrix: Any, name: str | None = None) -> Any:
    """The transpose of matrices, conjugated."""
    return _adjoint(_of_rank("Adjoint", 2, matrix))


@public
def tensor_diag(diagonal: Any, name: str | None = None) -> Any:
    """A tensor of twice the rank: element [i, j, i, j] is element [i, j] of a matrix."""
    x = _of_rank("Diag", 1, diagonal)
    size, shape = x.type.size, x.type.shape
    return ops.reshape(ops.reshape(x, (size, 1)) * create.eye(size, dtype=x.type.dtype), (*shape, *shape))


@public
def tensor_diag_part(input: Any, name: str | None = None) -> Any:
    """The inverse of `tensor_diag`."""
    x = _of_rank("DiagPart", 2, input)
    shape = x.type.shape[: len(x.type.shape) // 2]
    if x.type.shape != (*shape, *shape):
        raise InvalidShape(f"DiagPart: the axes of the input must be two equal halves, not {list(x.type.shape)}; use tf.linalg.diag_part")
    size = math.prod(shape)
    return ops.reshape(indexing.diagonal(ops.reshape(x, (size, size)), 0), shape)


def _of_rank(what: str, rank: int, given: Any) -> Any:
    """The tensor, if it has at least that rank."""
    x = convert_to_tensor(given)
    if len(x.type.shape) < rank:
        raise InvalidShape(f"{what}: input must be at least {rank}-dim, received shape: {list(x.type.shape)}")
    return x


@public
def band_part(input: Any, num_lower: int, num_upper: int, name: str | None = None) -> Any:
    """The matrix with zeros outside a band around its diagonal; -1 keeps a whole triangle."""
    x = convert_to_tensor(input)
    row, column = (ops.iota(x.type.shape, len(x.type.shape) - n) for n in (2, 1))
    offset = dress(column) - dress(row)
    keep = ops.full(x.type.shape, True)
    if num_lower >= 0:
        keep = ops.logical_and(keep, ops.greater_equal(offset, -int(num_lower)))
    if num_upper >= 0:
        keep = ops.logical_and(keep, ops.less_equal(offset, int(num_upper)))
    return ops.where(keep, x, ops.full(x.type.shape, 0, x.type.dtype))


@public
def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
    """x with `matrix @ x = rhs`, where rhs is a matrix or a batch of matrices."""
    a, b = tensors("MatrixSolve", matrix, rhs)
    if len(b.type.shape) < 2:
        raise InvalidShape(f"MatrixSolve: rhs must have at least 2 dimensions, not {list(b.type.shape)}; use rhs[:, None] for a vector")
    return ops.solve(_adjoint(a) if adjoint else a, b)


@public
def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Any:
    x = convert_to_tensor(input)
    return _linalg.inv(_adjoint(x) if adjoint else x)


@public
def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None) -> Any:
    """x with `matrix @ x = rhs`, where only one triangle of the matrix is read."""
    a, b = tensors("MatrixTriangularSolve", matrix, rhs)
    return ops.solve_triangular(conj(a) if adjoint else a, b, upper=not lower, transposed=adjoint)


@public
def cholesky(input: Any, name: str | None = None) -> Any:
    return _linalg.cholesky(convert_to_tensor(input))


@public
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Any:
    """x with `chol @ adjoint(chol) @ x = rhs`."""
    a, b = tensors("CholeskySolve", chol, rhs)
    return ops.solve_triangular(conj(a), ops.solve_triangular(a, b), transposed=True)


@public
def det(input: Any, name: str | None = None) -> Any:
    return _linalg.det(convert_to_tensor(input))


@public
def slogdet(input: Any, name: str | None = None) -> Any:
    x = convert_to_tensor(input)
    return tuple(ops.cast(part, x.type.dtype) for part in _linalg.slogdet(x))


@public
def logdet(matrix: Any, name: str | None = None) -> Any:
    """The logarithm of the determinant of positive definite matrices."""
    factor = _linalg.cholesky(convert_to_tensor(matrix))
    return 2.0 * ops.sum(ops.log(real(indexing.diagonal(factor, 0, -2, -1))), -1)


@public
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    if full_matrices:
        out_of_scope("tf.linalg.qr(full_matrices=True)", "leave it out")
    return tuple(_linalg.qr(convert_to_tensor(input)))


@public
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Any:
    return _linalg.pinv(convert_to_tensor(a), rcond)


@public
def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None) -> Any:
    """x that minimises the distance of `matrix @ x` from rhs."""
    a, b = tensors("MatrixSolveLs", matrix, rhs)
    if l2_regularizer:
        square = ops.matmul(_adjoint(a), a)
        return ops.solve(square + l2_regularizer * create.eye(square.type.shape[-1], dtype=square.type.dtype), _adjoint(a) @ b)
    return _linalg.pinv(a) @ b


@public
def eigh(tensor: Any, name: str | None = None) -> Any:
    """The eigenvalues of symmetric or Hermitian matrices, ascending, and the eigenvectors as columns."""
    x = _of_rank("SelfAdjointEig", 2, tensor)
    return tuple(ops.cast(part, x.type.dtype) for part in _linalg.eigh(x))


@public
def eigvalsh(tensor: Any, name: str | None = None) -> Any:
    x = _of_rank("SelfAdjointEig", 2, tensor)
    return ops.cast(_linalg.eigvalsh(x), x.type.dtype)


@public
def eig(tensor: Any, name: str | None = None) -> Any:
    """The eigenvalues of square matrices, which are complex, and the eigenvectors as columns."""
    return tuple(_linalg.eig(_of_rank("Eig", 2, tensor)))


@public
def eigvals(tensor: Any, name: str | None = None) -> Any:
    return _linalg.eigvals(_of_rank("Eig", 2, tensor))


@public
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """The singular values, descending, and u and v with `u @ diag(s) @ adjoint(v)` equal to the tensor."""
    x = _of_rank("Svd", 2, tensor)
    if not compute_uv:
        return _linalg.svd(x, full_matrices, compute_uv=False)
    u, s, v = _linalg.svd(x, full_matrices)
    return s, u, _adjoint(v)


@public
def expm(input: Any, name: str | None = None) -> Any:
    return _linalg.expm(_of_rank("MatrixExponential", 2, input))


@public
def sqrtm(input: Any, name: str | None = None) -> Any:
    return _linalg.sqrtm(_of_rank("MatrixSquareRoot", 2, input))


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Any:
    """The rank of a constant matrix; rank is not a continuous function."""
    return convert_to_tensor(np.array(np.linalg.matrix_rank(np.asarray(convert_to_tensor(a)), tol), np.int32))


__getattr__ = missing("tf.linalg", "compute it with NumPy outside of the gradient")


def __dir__() -> list[str]:
    return public_names(globals())
