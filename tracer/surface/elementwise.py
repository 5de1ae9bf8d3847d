"""Elementwise functions: the primitives, for any arguments that users pass, and a few composed from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, UnsupportedError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.maps import common_math_dtype, promoted
from adjit.ir.types import BOOL, C128, F64, I8, SCALARS, math_dtype

from ..convert import Number, arithmetic, numbers, present, to_operand

F = TypeVar("F", bound=Callable[..., Any])


def unary(function: Callable[[Operand], Operand], name: str, doc: str) -> Callable[[Any], Operand]:
    """Create a public function of one array."""

    def public(x: Any, /) -> Operand:
        operand = as_operand(x) if isinstance(x, Operand) and x.type.dtype != BOOL else to_operand(x)  # Python's bools add up to integers
        return present(array_result(function(operand), operand))

    return named(public, name, doc)


def binary(function: Callable[[Any, Any], Operand], name: str, doc: str) -> Callable[[Any, Any], Operand]:
    """Create a public function of two arrays that broadcast against each other."""

    def public(a: Any, b: Any, /) -> Operand:
        if not isinstance(a, Operand) and not isinstance(b, Operand):
            return present(function(*numbers(a, b)))
        given = arithmetic(a, b)
        return present(array_result(function(*given), *given))

    return named(public, name, doc)


def array_result(out: Operand, *args: Any) -> Operand:
    """Return the result of a ufunc: of Python numbers it is a scalar of NumPy, whose dtype counts in promotion."""
    if not out.weak:
        return out
    return out.strong() if any(out is x for x in args) else out.settled()  # nothing else refers to a new value: no cast is needed


def named(function: F, name: str, doc: str) -> F:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def floating(x: Operand) -> Operand:
    """Convert integers and bools to the float dtype that NumPy uses for means."""
    return x if x.type.is_inexact else ops.cast(x, F64)


def as_ufuncs(x: Any) -> Operand:
    """Convert integers and bools to the float dtype that NumPy's ufuncs return."""
    operand = to_operand(x)
    return ops.cast(operand, math_dtype(operand.dtype))


exp = unary(ops.exp, "exp", "e to the power of x.")
expm1 = unary(ops.expm1, "expm1", "exp(x) - 1, accurate near 0.")
log = unary(ops.log, "log", "Natural logarithm.")
log1p = unary(ops.log1p, "log1p", "log(1 + x), accurate near 0.")
sqrt = unary(ops.sqrt, "sqrt", "Square root; its derivative at 0 is infinite.")
rsqrt = unary(ops.rsqrt, "rsqrt", "1 / sqrt(x).")
square = unary(ops.square, "square", "x * x.")
sin = unary(ops.sin, "sin", "Sine.")
cos = unary(ops.cos, "cos", "Cosine.")
tan = unary(ops.tan, "tan", "Tangent.")
arcsin = unary(ops.asin, "arcsin", "Inverse sine.")
arccos = unary(ops.acos, "arccos", "Inverse cosine.")
arctan = unary(ops.atan, "arctan", "Inverse tangent.")
sinh = unary(ops.sinh, "sinh", "Hyperbolic sine.")
cosh = unary(ops.cosh, "cosh", "Hyperbolic cosine.")
tanh = unary(ops.tanh, "tanh", "Hyperbolic tangent.")
arcsinh = unary(ops.asinh, "arcsinh", "Inverse hyperbolic sine.")
arccosh = unary(ops.acosh, "arccosh", "Inverse hyperbolic cosine.")
arctanh = unary(ops.atanh, "arctanh", "Inverse hyperbolic tangent.")
exp2 = unary(ops.exp2, "exp2", "2 to the power of x.")
log2 = unary(ops.log2, "log2", "Logarithm to base 2.")
log10 = unary(ops.log10, "log10", "Logarithm to base 10.")
cbrt = unary(ops.cbrt, "cbrt", "Cube root, of negative numbers as well; its derivative at 0 is infinite.")
erf = unary(ops.erf, "erf", "The error function.")
sigmoid = unary(ops.sigmoid, "sigmoid", "1 / (1 + exp(-x)).")
relu = unary(ops.relu, "relu", "The larger of x and 0; its derivative at 0 is 0.")
softplus = unary(ops.softplus, "softplus", "log(1 + exp(x)), without overflow.")
absolute = unary(ops.absolute, "absolute", "|x|; its derivative at 0 is 0.")
negative = unary(ops.neg, "negative", "-x.")
sign = unary(ops.sign, "sign", "-1, 0 or 1; not differentiable.")
floor = unary(ops.floor, "floor", "The largest whole number that is not above x; not differentiable.")
ceil = unary(ops.ceil, "ceil", "The smallest whole number that is not below x; not differentiable.")
trunc = unary(ops.trunc, "trunc", "x without its fraction; not differentiable.")
isnan = unary(ops.isnan, "isnan", "Whether an element is not a number.")
isinf = unary(ops.isinf, "isinf", "Whether an element is infinite.")
isfinite = unary(ops.isfinite, "isfinite", "Whether an element is neither infinite nor not a number.")
logical_not = unary(ops.logical_not, "logical_not", "Whether an element is zero or False.")
bitwise_not = unary(ops.bitwise_not, "bitwise_not", "All bits flipped.")

add = binary(ops.add, "add", "a + b.")
subtract = binary(ops.sub, "subtract", "a - b.")
multiply = binary(ops.mul, "multiply", "a * b.")
divide = binary(ops.div, "divide", "a / b, in floating point.")
floor_divide = binary(ops.floor_divide, "floor_divide", "The floor of a / b.")
remainder = binary(ops.remainder, "remainder", "What floor division leaves; it has the sign of b.")
fmod = binary(ops.fmod, "fmod", "What truncated division leaves; it has the sign of a.")
power = binary(ops.power, "power", "a to the power of b.")
maximum = binary(ops.maximum, "maximum", "The larger element; ties give their derivative to the first.")
minimum = binary(ops.minimum, "minimum", "The smaller element; ties give their derivative to the first.")
arctan2 = binary(ops.atan2, "arctan2", "The angle of the point (b, a).")
hypot = binary(ops.hypot, "hypot", "sqrt(a*a + b*b) without overflow.")
logaddexp = binary(ops.logaddexp, "logaddexp", "log(exp(a) + exp(b)), without overflow.")
logaddexp2 = binary(ops.logaddexp2, "logaddexp2", "log2(2**a + 2**b), without overflow.")
copysign = binary(ops.copysign, "copysign", "|a| with the sign of b.")
equal = binary(ops.equal, "equal", "a == b.")
not_equal = binary(ops.not_equal, "not_equal", "a != b.")
less = binary(ops.less, "less", "a < b.")
less_equal = binary(ops.less_equal, "less_equal", "a <= b.")
greater = binary(ops.greater, "greater", "a > b.")
greater_equal = binary(ops.greater_equal, "greater_equal", "a >= b.")
logical_and = binary(ops.logical_and, "logical_and", "Whether both elements are true.")
logical_or = binary(ops.logical_or, "logical_or", "Whether an element is true.")
logical_xor = binary(ops.logical_xor, "logical_xor", "Whether exactly one element is true.")
bitwise_and = binary(ops.bitwise_and, "bitwise_and", "a & b.")
bitwise_or = binary(ops.bitwise_or, "bitwise_or", "a | b.")
bitwise_xor = binary(ops.bitwise_xor, "bitwise_xor", "a ^ b.")
left_shift = binary(ops.left_shift, "left_shift", "a << b.")
right_shift = binary(ops.right_shift, "right_shift", "a >> b.")


# ---- composed functions


def stop_gradient(x: Any, /) -> Operand:
    """Return x unchanged, but treated as a constant by differentiation."""
    return ops.stop_gradient(to_operand(x))


def positive(x: Any, /) -> Operand:
    """Return x itself."""
    operand = to_operand(x)
    if operand.dtype == BOOL:
        raise DTypeError("positive: bools have no sign; cast with .astype")
    return operand


def conjugate(x: Any, /) -> Operand:
    """Return the complex conjugate; real numbers unchanged. Bools become integers, as in NumPy."""
    operand = to_operand(x)
    return ops.cast(operand, I8) if operand.dtype == BOOL else ops.conj(operand)


def real(x: Any, /) -> Operand:
    """Return the real part; real numbers unchanged, also Python numbers that are traced."""
    return ops.real(as_operand(x) if isinstance(x, Operand) else to_operand(x))


def imag(x: Any, /) -> Operand:
    """Return the imaginary part, which is 0 for real numbers."""
    x = x if isinstance(x, Operand) else to_operand(x)
    return x.literal(0, x.type) if x.weak and not x.type.is_complex else present(ops.imag(x))  # of a Python number, NumPy gives a number


def isreal(x: Any, /) -> Operand:
    """Whether the imaginary part of each element is 0."""
    return present(ops.equal(ops.imag(to_operand(x)), 0))


def iscomplex(x: Any, /) -> Operand:
    """Whether the imaginary part of each element differs from 0."""
    return present(ops.not_equal(ops.imag(to_operand(x)), 0))


def complex(real: Any, imag: Any, /) -> Operand:
    """Return the complex numbers with these real and imaginary parts."""
    given = numbers(real, imag)
    return ops.from_parts(*promoted("complex", tuple(given), common_math_dtype(*given)))


def isposinf(x: Any, /) -> Operand:
    """Whether each element is positive infinity."""
    return ops.equal(floating(to_operand(x)), math.inf)


def isneginf(x: Any, /) -> Operand:
    """Whether each element is negative infinity."""
    return ops.equal(floating(to_operand(x)), -math.inf)


def reciprocal(x: Any, /) -> Operand:
    """Compute 1 / x. For integers it is truncated: 0 except for 1 and -1 (also for 0, where NumPy's result depends on the machine)."""
    operand = to_operand(x)
    if operand.type.is_inexact:
        return 1.0 / operand
    integer = ops.cast(operand, I8) if operand.dtype == BOOL else operand
    return ops.where(ops.equal(ops.absolute(integer), 1), integer, 0)


def fmax(a: Any, b: Any, /) -> Operand:
    """Return the larger of two elements; if one is NaN, the other."""
    a, b = numbers(a, b)
    return _ignoring_nan(a, b, ops.maximum)


def fmin(a: Any, b: Any, /) -> Operand:
    """Return the smaller of two elements; if one is NaN, the other."""
    a, b = numbers(a, b)
    return _ignoring_nan(a, b, ops.minimum)


def _ignoring_nan(a: Number, b: Number, choose: Callable[[Any, Any], Operand]) -> Operand:
    chosen = choose(a, b)
    if not chosen.type.is_float:
        return chosen
    return ops.where(ops.isnan(floating(to_operand(a))), b, ops.where(ops.isnan(floating(to_operand(b))), a, chosen))


def divmod(a: Any, b: Any, /) -> tuple[Operand, Operand]:
    """Return the quotient of floor division and the remainder."""
    a, b = numbers(a, b)
    return ops.floor_divide(a, b), ops.remainder(a, b)


def modf(x: Any, /) -> tuple[Operand, Operand]:
    """Return the fractional and integral parts, both with the sign of x."""
    x = as_ufuncs(x)
    whole = ops.trunc(x)
    return ops.copysign(ops.where(ops.isinf(x), 0.0, x - whole), x), whole


def float_power(a: Any, b: Any, /) -> Operand:
    """Raise a to the power b, in float64 or complex128."""
    operands = [to_operand(v) for v in numbers(a, b)]
    a, b = (ops.cast(v, C128 if any(o.type.is_complex for o in operands) else F64) for v in operands)
    return ops.power(a, b)


def signbit(x: Any, /) -> Operand:
    """Whether each element has its sign bit set; this includes -0.0."""
    x = to_operand(x)
    return ops.copysign(1.0, x) < 0 if x.type.is_float else x < 0


def heaviside(x: Any, at_zero: Any, /) -> Operand:
    """Return 0 where x < 0, 1 where x > 0 and `at_zero` where x = 0; not differentiable with respect to x."""
    given = tuple(numbers(x, at_zero))
    x, at_zero = promoted("heaviside", given, common_math_dtype(*given))
    return ops.where(ops.isnan(x), x, ops.where(ops.equal(x, 0.0), at_zero, ops.cast(x > 0, x.dtype)))


def deg2rad(x: Any, /) -> Operand:
    """Convert degrees to radians."""
    return as_ufuncs(x) * (math.pi / 180.0)


def rad2deg(x: Any, /) -> Operand:
    """Convert radians to degrees."""
    return as_ufuncs(x) * (180.0 / math.pi)


def sinc(x: Any, /) -> Operand:
    """Compute sin(pi x) / (pi x), which is 1 at 0."""
    scaled = floating(to_operand(x)) * math.pi
    zero = ops.equal(scaled, 0.0)
    safe = ops.where(zero, 1.0, scaled)
    return ops.where(zero, 1.0 - scaled * scaled / 6.0, ops.sin(safe) / safe)


def round(x: Any, /, decimals: int = 0) -> Operand:
    """Round to a number of decimals, ties to even; not differentiable."""
    return ops.round(to_operand(x), decimals)


def rint(x: Any, /) -> Operand:
    """Round to the nearest integer, ties to even; not differentiable."""
    return ops.round(as_ufuncs(x), 0)


def clip(x: Any, /, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Operand:
    """Limit the elements to the range from the minimum to the maximum."""
    low, high = a_min if min is None else min, a_max if max is None else max
    given = numbers(*(v for v in (x, low, high) if v is not None))
    bounds = iter(given[1:])
    return ops.clip(to_operand(given[0]), None if low is None else next(bounds), None if high is None else next(bounds))


def where(condition: Any, a: Any, b: Any, /) -> Operand:
    """Return a where the condition holds, else b. Derivatives are masked too, so a NaN in the branch not chosen does not propagate."""
    condition, a, b = numbers(condition, a, b)
    condition = to_operand(condition)
    if type(a) in SCALARS and type(b) in SCALARS:
        b = to_operand(b)
    return ops.where(condition, a, b)


def select(conditions: Any, choices: Any, /, default: Any = 0) -> Operand:
    """Return, for each element, the first of the choices whose condition holds."""
    out = default
    for condition, choice in zip(reversed(list(conditions)), reversed(list(choices)), strict=True):
        out = where(condition, choice, out)
    return to_operand(out)


def nan_to_num(x: Any, /, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Operand:
    """Replace NaN by 0 and infinities by the largest finite numbers of the dtype (or by the given values)."""
    operand = to_operand(x)
    if operand.type.is_complex:
        return ops.from_parts(*(nan_to_num(part, True, nan, posinf, neginf) for part in (ops.real(operand), ops.imag(operand))))
    if not operand.type.is_float:
        return operand
    limits = np.finfo(operand.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    proper = ops.where(ops.isnan(operand), nan, operand)
    return ops.where(ops.equal(proper, math.inf), high, ops.where(ops.equal(proper, -math.inf), low, proper))


def isclose(a: Any, b: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Operand:
    """Whether |a - b| <= atol + rtol * |b|, elementwise."""
    a, b = numbers(a, b)
    return ops.isclose(a, b, rtol, atol, equal_nan)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Operand:
    """Cast x to another dtype."""
    if device not in (None, "cpu"):
        raise UnsupportedError(f"device {device!r}: there is one, 'cpu'")
    return to_operand(x).astype(dtype)


def cast(x: Any, dtype: Any, /) -> Operand:
    """Cast x to another dtype."""
    return to_operand(x).astype(dtype)


def angle(x: Any, /, deg: bool = False) -> Operand:
    """Return the angle of numbers in the complex plane, in radians or degrees."""
    x = floating(to_operand(x))
    if x.type.is_complex:
        out = ops.atan2(ops.imag(x), ops.real(x))
        return out * (180.0 / math.pi) if deg else out
    out = ops.where(signbit(x), 180.0 if deg else math.pi, ops.cast(to_operand(0.0), x.dtype))
    return ops.where(ops.isnan(x), x, out)


def real_if_close(x: Any, /, tol: float = 100) -> Operand:
    """Return x itself if it is real; whether a complex array is close to a real one is only known eagerly."""
    operand = to_operand(x)
    if operand.type.is_complex:
        raise UnsupportedError("real_if_close: whether the result is complex would depend on values; take .real")
    return operand
