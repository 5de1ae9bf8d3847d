"""Linear solves, with the LU factors of the matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import AdjitError, DTypeError, ShapeError, SingularMatrixError
from ..types import F64, I64, TensorType, broadcast_shapes
from .base import Array, Loops, Op, Window, Writing, apply, nest, with_attributes
from .complex import from_parts, imag, real
from .create import iota
from .join import concatenate
from .linalg import matmul, swap
from .logic import equal
from .lu import Lu, check_square, exchange, exchanged, lu
from .maps import cast, common_dtype, where
from .shape import broadcast_to, lead, reshape, slice_, trail, transpose
from .triangle import Triangles, cut

__all__ = ["solve"]

if TYPE_CHECKING:
    from ..operand import Operand

SINGULAR = "solve: the matrix is singular: a pivot is 0"


@with_attributes
class SolveWith(Op):
    """x with `a @ x = b` (`transposed`: `a.T @ x = b`), given the factors of a from `Lu`; all with equal batch dimensions.

    Derivatives are with respect to a and b, as if there were no factors, and are computed with the same factors.
    """

    transposed: bool = False
    unread: ClassVar[tuple[int, ...]] = (1,)  # the factors
    made_from: ClassVar[dict[int, tuple[str, int]]] = {1: (Lu.name, 0)}

    can_fail = True
    error: ClassVar[type[AdjitError]] = SingularMatrixError

    def infer(self, *types: TensorType) -> TensorType:
        a, factors, b = types
        check_system(a, b)
        if factors != Lu().infer(a):
            raise ShapeError(f"solve: {factors} are not the factors of the matrices {a}")
        return b

    def evaluate(self, *arrays: Array) -> Array:
        a, _, b = arrays
        try:
            return np.asarray(np.linalg.solve(np.swapaxes(a, -1, -2) if self.transposed else a, b))
        except np.linalg.LinAlgError:
            raise SingularMatrixError(SINGULAR) from None

    def python(self, write: Writing, *args: Operand) -> Any:
        a, b = write.array(args[0]), write.array(args[2])
        return write("np.linalg.solve({}, {})", write("np.swapaxes({}, -1, -2)", a) if self.transposed else a, b)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        a, factors, _ = args
        if i == 1:
            return None
        return apply(self, a, factors, d if i == 2 else -matmul(swap(d) if self.transposed else d, y))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        a, factors, _ = args
        if i == 1:
            return None
        back = apply(SolveWith(not self.transposed), a, factors, d)
        if i == 2:
            return back
        return -matmul(y, swap(back)) if self.transposed else -matmul(back, swap(y))

    def widened(self, size: int) -> SolveWith:
        return self

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        """Examples that share the matrix become further right-hand sides."""
        if any(batched[:2]):
            return super().batch(size, args, batched)
        a, factors, b = args
        return batch_beside(size, b, lambda b: apply(self, a, factors, b))

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        """Inactive examples solve with the identity."""
        a, factors, b = args
        return (a, harmless_matrices(size, active, factors, batched[1]), b), (batched[0], True, batched[2])

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 2.0 * types[2].size * types[0].shape[-1])

    def lower(self, k: Loops, out: Window, a: Window, factors: Window, b: Window) -> None:
        *batch, n, m = b.type.shape
        if not n:
            return
        triangles = Triangles(k, cut(n).width, m, b.type.dtype)
        with nest(k, batch) as at:
            packed, sides = factors.at(*at), out.at(*at)
            matrix, exchanges = packed.slice(0, 0, n), packed.slice(0, n, 1).at(k.scalar.const(I64, 0))
            with k.loop(n) as i:
                pivot = k.load(matrix, i, i)
                k.fail_if(k.scalar.compare("eq", pivot, k.scalar.like(pivot, 0.0)), SINGULAR)
            k.copy(sides, b.at(*at))
            if self.transposed:
                triangles.substitute(matrix.transposed(1, 0), sides, upper=False, unit=False)
                triangles.substitute(matrix.transposed(1, 0), sides, upper=True, unit=True)
                self.exchange(k, sides, exchanges)
            else:
                self.exchange(k, sides, exchanges)
                triangles.substitute(matrix, sides, upper=False, unit=True)
                triangles.substitute(matrix, sides, upper=True, unit=False)

    def exchange(self, k: Loops, sides: Window, exchanges: Window) -> None:
        """Exchange rows as in the elimination; if `transposed`, in reverse order."""
        n, emit = sides.type.shape[0], k.scalar
        with k.loop(n) as step:
            i = emit.sub(emit.like(step, n - 1), step) if self.transposed else step
            exchange(k, sides, i, exchanged(k, exchanges, i))


def check_system(a: TensorType, b: TensorType, what: str = "solve") -> None:
    if a.dtype != b.dtype or not a.is_float:
        raise DTypeError(f"{what}: both operands are floats of one dtype, not {a} and {b}")
    check_square(what, a)
    if b.rank < 2 or a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(f"{what}: the right-hand sides {b} do not fit the matrices {a}")


def batch_beside(size: int, b: Operand, solve: Callable[[Operand], Operand]) -> Operand:
    """The solutions for a batch of right-hand sides of one system: they are solved for side by side."""
    *stack, n, m = b.shape[1:]
    beside = reshape(transpose(b, [*range(1, b.ndim - 1), 0, b.ndim - 1]), (*stack, n, size * m))
    found = reshape(solve(beside), (*stack, n, size, m))
    return transpose(found, [b.ndim - 2, *range(b.ndim - 2), b.ndim - 1])


def harmless_matrices(size: int, active: Operand, a: Operand, batched: bool) -> Operand:
    """The matrices of a batch, with the identity for inactive examples."""
    a = a if batched else lead(a, size)
    return where(trail(active, a.shape), a, cast(identity(a), a.dtype))


def identity(a: Operand) -> Operand:
    """A mask of the diagonals of matrices."""
    return equal(iota(a.shape, a.ndim - 2), iota(a.shape, a.ndim - 1))


def apply_solve(a: Operand, b: Operand, transposed: bool = False) -> Operand:
    """x with `a @ x = b`, or `a.T @ x = b`, for operands that already meet the op's requirements."""
    check_system(a.type, b.type)
    return apply(SolveWith(transposed), a, lu(a), b)


def floats(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Both in the float dtype in which NumPy solves them."""
    dtype = common_dtype(a, b)
    dtype = dtype if dtype.kind == "f" else F64
    return cast(a, dtype), cast(b, dtype)


def complex_solve(a: Operand, b: Operand) -> Operand:
    """Solve for real and imaginary parts at once: a system of real numbers, twice as large."""
    dtype = common_dtype(a, b)
    a, b = cast(a, dtype), cast(b, dtype)
    n, axis = b.shape[0 if b.ndim == 1 else -2] if b.ndim else 0, 0 if b.ndim < 2 else b.ndim - 2
    if a.ndim < 2 or not b.ndim:
        return apply_solve(a, b)  # which refuses it
    rows = [concatenate(parts, a.ndim - 1) for parts in ([real(a), -imag(a)], [imag(a), real(a)])]
    x = solve(concatenate(rows, a.ndim - 2), concatenate([real(b), imag(b)], axis))
    at = x.ndim - (1 if b.ndim == 1 else 2)
    whole = [slice(None)] * at
    return from_parts(*(slice_(x, [*whole, part]) for part in (slice(n), slice(n, None))))


def solve(a: Operand, b: Operand) -> Operand:
    """x with `a @ x = b`; b is a vector, or (a stack of) matrices. Integers are solved as float64, as in NumPy."""
    if a.type.is_complex or b.type.is_complex:
        return complex_solve(a, b)
    a, b = floats(a, b)
    if b.ndim == 1:
        return reshape(solve(a, reshape(b, (*b.shape, 1))), (*a.shape[:-2], *b.shape)) if a.ndim > 1 else apply_solve(a, b)
    if a.ndim < 2:
        return apply_solve(a, b)
    batch = broadcast_shapes(f"solve: {a.type} and {b.type}", a.shape[:-2], b.shape[:-2])
    return apply_solve(broadcast_to(a, batch + a.shape[-2:]), broadcast_to(b, batch + b.shape[-2:]))
