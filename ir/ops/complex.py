"""Complex numbers and their parts: `real`, `imag`, `conj`, and the complex number of two real ones.

Derivatives: a cotangent c of z pairs with a tangent t as Re(c t), without a conjugate. So every rule that is written for real numbers holds
for complex ones as well, and the ops here are the only ones whose rules differ. Users see the conjugates of these cotangents (TensorFlow's
convention): `runtime` conjugates what goes in and out.

Native code has no complex numbers: `passes.complex` replaces each by a pair of real ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost import NOTHING, Cost
from ..errors import ShapeError
from ..types import DType, TensorType, complex_dtype, real_dtype
from .base import Array, Loops, Op, Window, Writing, apply
from .maps import Binary, Unary, cast, promoted

__all__ = ["real", "imag", "conj", "from_parts"]

if TYPE_CHECKING:
    from ..operand import Operand


class ComplexPart(Unary, abstract=True):
    """A real number of a complex one."""

    kinds = "c"

    def result(self, operand: TensorType) -> TensorType:
        return operand.with_dtype(real_dtype(operand.dtype))

    def element_cost(self, *dtypes: DType) -> Cost:
        return NOTHING  # the part exists by itself

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)


class Real(ComplexPart):
    """The real part."""

    numpy = "{}.real"

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0].real

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return cast(d, args[0].type.dtype)


class Imag(ComplexPart):
    """The imaginary part."""

    numpy = "{}.imag"

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0].imag

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(Complex(), d.literal(0.0, d.type), -d)


class Complex(Binary):
    """a + ib."""

    kinds = "f"

    def result(self, operand: TensorType) -> TensorType:
        return operand.with_dtype(complex_dtype(operand.dtype))

    def evaluate(self, *arrays: Array) -> Array:
        a, b = arrays
        out = np.empty(np.broadcast_shapes(a.shape, b.shape), complex_dtype(a.dtype))
        out.real, out.imag = a, b
        return out

    def python(self, write: Writing, *args: Operand) -> Any:
        parts = [write.array(x) for x in args]
        type = self.result(args[0].type)
        out = write.new(write("np.empty({}, {})", write.value(type.shape), write.dtype(type.dtype)))
        for name, part in zip(("real", "imag"), parts, strict=True):
            write.run(f"{{}}.{name} = {{}}", out, part)

    def element_cost(self, *dtypes: DType) -> Cost:
        return NOTHING

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        zero = d.literal(0.0, d.type)
        return apply(self, d, zero) if i == 0 else apply(self, zero, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(Real(), d) if i == 0 else -apply(Imag(), d)


class Conj(Unary):
    """The complex conjugate."""

    numpy = "np.conj({})"
    kinds = "c"

    def evaluate(self, *arrays: Array) -> Array:
        return np.conjugate(arrays[0])

    def element_cost(self, *dtypes: DType) -> Cost:
        return Cost(1.0, 1.0)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)


class Interleave(Op):
    """Two arrays as one, whose last axis has an element of each: the memory layout of complex numbers."""

    arity = 2
    differentiable = False  # inserted by passes, after differentiation

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if a != b:
            raise ShapeError(f"interleave: types differ: {a} and {b}")
        return a.with_shape((*a.shape, 2))

    def evaluate(self, *arrays: Array) -> Array:
        return np.stack(arrays, -1)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("np.stack([{}, {}], -1)", *map(write.array, args))

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types)

    def lower(self, k: Loops, out: Window, a: Window, b: Window) -> None:
        *_, size = a.type.shape or (1,)
        if a.type.rank == 1 and size >= 4 * CHUNK:
            count = size // CHUNK
            parts = [w.sliding(0, count, CHUNK, CHUNK) for w in (out, a, b)]
            k.each(count, 4.0 * size, lambda i, *windows: k.interleave(*(w.at(i) for w in windows)), *parts)
            out, a, b = (w.slice(0, count * CHUNK, size % CHUNK) for w in (out, a, b))
        elif a.type.rank > 1:
            k.each(a.type.shape[0], 4.0 * a.type.size, lambda i, *windows: k.interleave(*(w.at(i) for w in windows)), out, a, b)
            return
        k.interleave(out, a, b)


CHUNK = 4096  # elements that a thread interleaves at a time


def real(x: Operand) -> Operand:
    return apply(Real(), x) if x.type.is_complex else x


def imag(x: Operand) -> Operand:
    return apply(Imag(), x) if x.type.is_complex else x.filled(0, x.type)


def conj(x: Operand) -> Operand:
    return apply(Conj(), x) if x.type.is_complex else x


def from_parts(a: Operand | float, b: Operand | float) -> Operand:
    """The complex numbers with these real and imaginary parts."""
    return apply(Complex(), *promoted("complex", (a, b)))
