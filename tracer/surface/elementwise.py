"""Elementwise functions: the primitives, for any arguments that users pass, and a few composed from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, overload

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.maps import common_math_dtype, promoted
from adjit.ir.tracebacks import end_at_callers, ended
from adjit.ir.types import BOOL, C128, F64, I8, SCALARS, math_dtype

from ..convert import Number, arithmetic, numbers, present, to_operand
from ..results import apart, copies

F = TypeVar("F", bound=Callable[..., Any])


def unary(function: Callable[[Operand], Operand], name: str, doc: str, *example: str) -> Callable[[Any], Operand]:
    """Create a public function of one array; `example` are the lines of a doctest."""

    def public(x: Any, /) -> Operand:
        operand = as_operand(x) if isinstance(x, Operand) and x.type.dtype != BOOL else to_operand(x)  # Python's bools add up to integers
        return present(array_result(function(operand), operand))

    return named(public, name, doc, example)


def binary(function: Callable[[Any, Any], Operand], name: str, doc: str, *example: str) -> Callable[[Any, Any], Operand]:
    """Create a public function of two arrays that broadcast against each other; `example` are the lines of a doctest."""

    def public(a: Any, b: Any, /) -> Operand:
        if not isinstance(a, Operand) and not isinstance(b, Operand):
            return present(function(*numbers(a, b)))
        given = arithmetic(a, b)
        return present(array_result(function(*given), *given))

    return named(public, name, doc, example)


def array_result(out: Operand, *args: Any) -> Operand:
    """Return the result of a ufunc: for Python numbers it is a NumPy scalar, whose dtype counts in promotion."""
    if not out.weak:
        return apart(out, args, False)  # type: ignore[no-any-return]
    return out.strong() if any(out is x for x in args) else out.settled()  # nothing else refers to a new value: no cast is needed


def named(function: F, name: str, doc: str, example: tuple[str, ...]) -> F:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "\n".join((doc, "", *example)) if example else doc
    return ended(function)  # type: ignore[arg-type,return-value] # a function


def floating(x: Operand) -> Operand:
    """Convert integers and bools to the float dtype that NumPy uses for means."""
    return x if x.type.is_inexact else ops.cast(x, F64)


def real_numbers(what: str, x: Operand) -> Operand:
    """Return x; raise an error if it is complex."""
    if x.type.is_complex:
        raise DTypeError(f"{what}: takes real numbers, not {x.type}")
    return x


def as_ufuncs(x: Any) -> Operand:
    """Convert integers and bools to the float dtype that NumPy's ufuncs return."""
    operand = to_operand(x)
    return ops.cast(operand, math_dtype(operand.dtype))


exp = unary(
    ops.exp, "exp", "Return e to the power of x, elementwise.",
    ">>> aj.exp([0.0, 1.0])", "Tensor([1.        , 2.71828183], f64[2])",
)  # fmt: skip
expm1 = unary(ops.expm1, "expm1", "Return exp(x) - 1, accurate also near 0.", ">>> aj.expm1(1e-10)", "Tensor(1.e-10, f64[])")
log = unary(ops.log, "log", "Return the natural logarithm, elementwise.", ">>> aj.log([1.0, aj.e])", "Tensor([0., 1.], f64[2])")
log1p = unary(ops.log1p, "log1p", "Return log(1 + x), accurate also near 0.", ">>> aj.log1p(1e-10)", "Tensor(1.e-10, f64[])")
sqrt = unary(
    ops.sqrt, "sqrt", "Return the square root; its derivative at 0 is infinite.",
    ">>> aj.sqrt([4.0, 9.0])", "Tensor([2., 3.], f64[2])",
)  # fmt: skip
rsqrt = unary(ops.rsqrt, "rsqrt", "Return 1 / sqrt(x).", ">>> aj.rsqrt([4.0, 0.25])", "Tensor([0.5, 2. ], f64[2])")
square = unary(ops.square, "square", "Return x * x.", ">>> aj.square([2, -3])", "Tensor([4, 9], i64[2])")
sin = unary(ops.sin, "sin", "Return the sine of x, in radians.", ">>> aj.grad(aj.sin)(0.0)", "Tensor(1., f64[])")
cos = unary(ops.cos, "cos", "Return the cosine of x, in radians.", ">>> aj.cos([0.0, aj.pi])", "Tensor([ 1., -1.], f64[2])")
tan = unary(ops.tan, "tan", "Return the tangent of x, in radians.", ">>> aj.tan([0.0, aj.pi / 4])", "Tensor([0., 1.], f64[2])")
arcsin = unary(
    ops.asin, "arcsin", "Return the inverse sine, between -pi/2 and pi/2.",
    ">>> aj.arcsin([0.0, 1.0])", "Tensor([0.        , 1.57079633], f64[2])",
)  # fmt: skip
arccos = unary(
    ops.acos, "arccos", "Return the inverse cosine, between 0 and pi.",
    ">>> aj.arccos([0.0, 1.0])", "Tensor([1.57079633, 0.        ], f64[2])",
)  # fmt: skip
arctan = unary(
    ops.atan, "arctan", "Return the inverse tangent, between -pi/2 and pi/2.",
    ">>> aj.arctan([0.0, 1.0])", "Tensor([0.        , 0.78539816], f64[2])",
)  # fmt: skip
sinh = unary(ops.sinh, "sinh", "Return the hyperbolic sine.", ">>> aj.sinh([0.0, 1.0])", "Tensor([0.        , 1.17520119], f64[2])")
cosh = unary(ops.cosh, "cosh", "Return the hyperbolic cosine.", ">>> aj.cosh([0.0, 1.0])", "Tensor([1.        , 1.54308063], f64[2])")
tanh = unary(ops.tanh, "tanh", "Return the hyperbolic tangent.", ">>> aj.tanh([0.0, 1.0])", "Tensor([0.        , 0.76159416], f64[2])")
arcsinh = unary(
    ops.asinh, "arcsinh", "Return the inverse hyperbolic sine.",
    ">>> aj.arcsinh([0.0, 1.0])", "Tensor([0.        , 0.88137359], f64[2])",
)  # fmt: skip
arccosh = unary(
    ops.acosh, "arccosh", "Return the inverse hyperbolic cosine.",
    ">>> aj.arccosh([1.0, 2.0])", "Tensor([0.       , 1.3169579], f64[2])",
)  # fmt: skip
arctanh = unary(
    ops.atanh, "arctanh", "Return the inverse hyperbolic tangent.",
    ">>> aj.arctanh([0.0, 0.5])", "Tensor([0.        , 0.54930614], f64[2])",
)  # fmt: skip
exp2 = unary(ops.exp2, "exp2", "Return 2 to the power of x.", ">>> aj.exp2([3.0, -1.0])", "Tensor([8. , 0.5], f64[2])")
log2 = unary(ops.log2, "log2", "Return the logarithm to base 2.", ">>> aj.log2([8.0, 0.5])", "Tensor([ 3., -1.], f64[2])")
log10 = unary(ops.log10, "log10", "Return the logarithm to base 10.", ">>> aj.log10([1000.0, 0.1])", "Tensor([ 3., -1.], f64[2])")
cbrt = unary(
    ops.cbrt, "cbrt", "Return the cube root, of negative numbers as well; its derivative at 0 is infinite.",
    ">>> aj.cbrt([27.0, -8.0])", "Tensor([ 3., -2.], f64[2])",
)  # fmt: skip
erf = unary(ops.erf, "erf", "Return the error function.", ">>> aj.erf([0.0, 1.0])", "Tensor([0.        , 0.84270079], f64[2])")
sigmoid = unary(
    ops.sigmoid, "sigmoid", "Return the logistic function, 1 / (1 + exp(-x)).",
    ">>> aj.sigmoid([0.0, 2.0])", "Tensor([0.5       , 0.88079708], f64[2])",
)  # fmt: skip
relu = unary(
    ops.relu, "relu", "Return the larger of x and 0; its derivative at 0 is 0.",
    ">>> aj.relu([-1.0, 2.0])", "Tensor([0., 2.], f64[2])",
)  # fmt: skip
softplus = unary(
    ops.softplus, "softplus", "Return log(1 + exp(x)), without overflow.",
    ">>> aj.softplus(0.0), aj.softplus(1000.0)", "(Tensor(0.69314718, f64[]), Tensor(1000., f64[]))",
)  # fmt: skip
absolute = unary(
    ops.absolute, "absolute", "Return the absolute value; its derivative at 0 is 0.",
    ">>> aj.abs([-2.0, 3.0])", "Tensor([2., 3.], f64[2])",
)  # fmt: skip
negative = unary(ops.neg, "negative", "Return -x.", ">>> aj.negative([1, -2])", "Tensor([-1,  2], i64[2])")
sign = unary(
    ops.sign, "sign", "Return the sign of x: -1, 0 or 1; not differentiable.",
    ">>> aj.sign([-3.0, 0.0, 2.0])", "Tensor([-1.,  0.,  1.], f64[3])",
)  # fmt: skip
floor = unary(
    ops.floor, "floor", "Return the largest integer that is not above x, as a float; not differentiable.",
    ">>> aj.floor([1.7, -1.2])", "Tensor([ 1., -2.], f64[2])",
)  # fmt: skip
ceil = unary(
    ops.ceil, "ceil", "Return the smallest integer that is not below x, as a float; not differentiable.",
    ">>> aj.ceil([1.2, -1.7])", "Tensor([ 2., -1.], f64[2])",
)  # fmt: skip
trunc = unary(
    ops.trunc, "trunc", "Return x without its fraction; not differentiable.",
    ">>> aj.trunc([1.7, -1.7])", "Tensor([ 1., -1.], f64[2])",
)  # fmt: skip
isnan = unary(ops.isnan, "isnan", "Return whether each element is NaN.", ">>> aj.isnan([1.0, aj.nan])", "Tensor([False,  True], bool[2])")
isinf = unary(
    ops.isinf, "isinf", "Return whether each element is infinite.",
    ">>> aj.isinf([1.0, -aj.inf])", "Tensor([False,  True], bool[2])",
)  # fmt: skip
isfinite = unary(
    ops.isfinite, "isfinite", "Return whether each element is neither infinite nor NaN.",
    ">>> aj.isfinite([1.0, aj.inf, aj.nan])", "Tensor([ True, False, False], bool[3])",
)  # fmt: skip
logical_not = unary(
    ops.logical_not, "logical_not", "Return whether each element is zero or False.",
    ">>> aj.logical_not([0, 2])", "Tensor([ True, False], bool[2])",
)  # fmt: skip
bitwise_not = unary(
    ops.bitwise_not, "bitwise_not", "Return x with all bits flipped.",
    ">>> aj.bitwise_not([0, 5])", "Tensor([-1, -6], i64[2])",
)  # fmt: skip

add = binary(ops.add, "add", "Return a + b.", ">>> aj.add([1, 2], [[10], [20]])", "Tensor([[11, 12],", "        [21, 22]], i64[2,2])")
subtract = binary(ops.sub, "subtract", "Return a - b.", ">>> aj.subtract([3, 4], 1)", "Tensor([2, 3], i64[2])")
multiply = binary(ops.mul, "multiply", "Return a * b, elementwise.", ">>> aj.multiply([1, 2], [3, 4])", "Tensor([3, 8], i64[2])")
divide = binary(ops.div, "divide", "Return a / b, in floating point.", ">>> aj.divide([1, 4], 2)", "Tensor([0.5, 2. ], f64[2])")
floor_divide = binary(
    ops.floor_divide, "floor_divide", "Return the floor of a / b.",
    ">>> aj.floor_divide([7, -7], 2)", "Tensor([ 3, -4], i64[2])",
)  # fmt: skip
remainder = binary(
    ops.remainder, "remainder", "Return the remainder of floor division, with the sign of b.",
    ">>> aj.remainder([7, -7], 3)", "Tensor([1, 2], i64[2])",
)  # fmt: skip
fmod = binary(
    ops.fmod, "fmod", "Return the remainder of truncated division, with the sign of a.",
    ">>> aj.fmod([7, -7], 3)", "Tensor([ 1, -1], i64[2])",
)  # fmt: skip
power = binary(ops.power, "power", "Return a to the power of b.", ">>> aj.power([2.0, 3.0], 2)", "Tensor([4., 9.], f64[2])")
maximum = binary(
    ops.maximum, "maximum", "Return the larger of two elements; ties give their derivative to the first.",
    ">>> aj.maximum([1, 5], [3, 2])", "Tensor([3, 5], i64[2])",
)  # fmt: skip
minimum = binary(
    ops.minimum, "minimum", "Return the smaller of two elements; ties give their derivative to the first.",
    ">>> aj.minimum([1, 5], [3, 2])", "Tensor([1, 2], i64[2])",
)  # fmt: skip
arctan2 = binary(
    ops.atan2, "arctan2", "Return the angle of the point (b, a), between -pi and pi.",
    ">>> aj.arctan2([1.0, -1.0], [1.0, 0.0])", "Tensor([ 0.78539816, -1.57079633], f64[2])",
)  # fmt: skip
hypot = binary(ops.hypot, "hypot", "Return sqrt(a*a + b*b), without overflow.", ">>> aj.hypot(3e200, 4e200)", "Tensor(5.e+200, f64[])")
logaddexp = binary(
    ops.logaddexp, "logaddexp", "Return log(exp(a) + exp(b)), without overflow.",
    ">>> aj.logaddexp(1000.0, 1000.0)", "Tensor(1000.69314718, f64[])",
)  # fmt: skip
logaddexp2 = binary(ops.logaddexp2, "logaddexp2", "Return log2(2**a + 2**b), without overflow.")
copysign = binary(
    ops.copysign, "copysign", "Return |a| with the sign of b.",
    ">>> aj.copysign([1.0, -2.0], -0.0)", "Tensor([-1., -2.], f64[2])",
)  # fmt: skip
equal = binary(ops.equal, "equal", "Return whether a == b, elementwise.", ">>> aj.equal([1, 2], [1, 3])", "Tensor([ True, False], bool[2])")
not_equal = binary(
    ops.not_equal, "not_equal", "Return whether a != b, elementwise.",
    ">>> aj.not_equal([1, 2], [1, 3])", "Tensor([False,  True], bool[2])",
)  # fmt: skip
less = binary(ops.less, "less", "Return whether a < b, elementwise.", ">>> aj.less([1, 2], 2)", "Tensor([ True, False], bool[2])")
less_equal = binary(
    ops.less_equal, "less_equal", "Return whether a <= b, elementwise.",
    ">>> aj.less_equal([1, 2, 3], 2)", "Tensor([ True,  True, False], bool[3])",
)  # fmt: skip
greater = binary(
    ops.greater, "greater", "Return whether a > b, elementwise.",
    ">>> aj.greater([1, 2, 3], 2)", "Tensor([False, False,  True], bool[3])",
)  # fmt: skip
greater_equal = binary(
    ops.greater_equal, "greater_equal", "Return whether a >= b, elementwise.",
    ">>> aj.greater_equal([1, 2, 3], 2)", "Tensor([False,  True,  True], bool[3])",
)  # fmt: skip
logical_and = binary(
    ops.logical_and, "logical_and", "Return whether both elements are true.",
    ">>> aj.logical_and([True, True], [True, False])", "Tensor([ True, False], bool[2])",
)  # fmt: skip
logical_or = binary(
    ops.logical_or, "logical_or", "Return whether at least one of two elements is true.",
    ">>> aj.logical_or([True, False], [False, False])", "Tensor([ True, False], bool[2])",
)  # fmt: skip
logical_xor = binary(
    ops.logical_xor, "logical_xor", "Return whether exactly one of two elements is true.",
    ">>> aj.logical_xor([True, True], [True, False])", "Tensor([False,  True], bool[2])",
)  # fmt: skip
bitwise_and = binary(ops.bitwise_and, "bitwise_and", "Return a & b.", ">>> aj.bitwise_and([5, 6], 3)", "Tensor([1, 2], i64[2])")
bitwise_or = binary(ops.bitwise_or, "bitwise_or", "Return a | b.", ">>> aj.bitwise_or([5, 6], 3)", "Tensor([7, 7], i64[2])")
bitwise_xor = binary(ops.bitwise_xor, "bitwise_xor", "Return a ^ b.", ">>> aj.bitwise_xor([5, 6], 3)", "Tensor([6, 5], i64[2])")
left_shift = binary(ops.left_shift, "left_shift", "Return a << b.", ">>> aj.left_shift([1, 3], 2)", "Tensor([ 4, 12], i64[2])")
right_shift = binary(ops.right_shift, "right_shift", "Return a >> b.", ">>> aj.right_shift([8, -8], 2)", "Tensor([ 2, -2], i64[2])")


# ---- composed functions


@copies
def stop_gradient(x: Any, /) -> Operand:
    """Return x unchanged, but treated as a constant by differentiation.

    >>> aj.grad(lambda x: x * aj.stop_gradient(x))(3.0)
    Tensor(3., f64[])
    """
    return ops.stop_gradient(to_operand(x))


@copies
def positive(x: Any, /) -> Operand:
    """Return x itself.

    >>> aj.positive([1, -2])
    Tensor([ 1, -2], i64[2])
    """
    operand = to_operand(x)
    if operand.dtype == BOOL:
        raise DTypeError("positive: bools have no sign; cast with .astype")
    return operand


def isposinf(x: Any, /) -> Operand:
    """Return whether each element is positive infinity."""
    return ops.equal(floating(to_operand(x)), math.inf)


def isneginf(x: Any, /) -> Operand:
    """Return whether each element is negative infinity."""
    return ops.equal(floating(to_operand(x)), -math.inf)


def reciprocal(x: Any, /) -> Operand:
    """Return 1 / x. For integers it is truncated: 0 except for 1 and -1 (also for 0, where NumPy's result depends on the machine).

    >>> aj.reciprocal([2.0, 4.0])
    Tensor([0.5 , 0.25], f64[2])
    """
    operand = to_operand(x)
    if operand.type.is_inexact:
        return 1.0 / operand
    integer = ops.cast(operand, I8) if operand.dtype == BOOL else operand
    return ops.where(ops.equal(ops.absolute(integer), 1), integer, 0)


def fmax(a: Any, b: Any, /) -> Operand:
    """Return the larger of two elements; if one is NaN, the other.

    >>> aj.fmax([1.0, aj.nan], [3.0, 2.0])
    Tensor([3., 2.], f64[2])
    """
    a, b = numbers(a, b)
    return _ignoring_nan(a, b, ops.maximum)


def fmin(a: Any, b: Any, /) -> Operand:
    """Return the smaller of two elements; if one is NaN, the other.

    >>> aj.fmin([1.0, aj.nan], [3.0, 2.0])
    Tensor([1., 2.], f64[2])
    """
    a, b = numbers(a, b)
    return _ignoring_nan(a, b, ops.minimum)


def _ignoring_nan(a: Number, b: Number, choose: Callable[[Any, Any], Operand]) -> Operand:
    chosen = choose(a, b)
    if not chosen.type.is_inexact:
        return chosen
    return ops.where(ops.isnan(floating(to_operand(b))), a, ops.where(ops.isnan(floating(to_operand(a))), b, chosen))


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
    """Return a to the power of b, in float64 or complex128."""
    operands = [to_operand(v) for v in numbers(a, b)]
    a, b = (ops.cast(v, C128 if any(o.type.is_complex for o in operands) else F64) for v in operands)
    return ops.power(a, b)


def signbit(x: Any, /) -> Operand:
    """Return whether each element has its sign bit set; this includes -0.0.

    >>> aj.signbit([1.0, -0.0])
    Tensor([False,  True], bool[2])
    """
    x = real_numbers("signbit", to_operand(x))
    return ops.copysign(1.0, x) < 0 if x.type.is_float else x < 0


def heaviside(x: Any, at_zero: Any, /) -> Operand:
    """Return 0 where x < 0, 1 where x > 0 and `at_zero` where x = 0; not differentiable with respect to x.

    >>> aj.heaviside([-1.0, 0.0, 2.0], 0.5)
    Tensor([0. , 0.5, 1. ], f64[3])
    """
    given = tuple(numbers(x, at_zero))
    x, at_zero = (real_numbers("heaviside", v) for v in promoted("heaviside", given, common_math_dtype(*given)))
    return ops.where(ops.isnan(x), x, ops.where(ops.equal(x, 0.0), at_zero, ops.cast(x > 0, x.dtype)))


def deg2rad(x: Any, /) -> Operand:
    """Return degrees converted to radians.

    >>> aj.deg2rad([90.0, 180.0])
    Tensor([1.57079633, 3.14159265], f64[2])
    """
    return real_numbers("deg2rad", as_ufuncs(x)) * (math.pi / 180.0)


def rad2deg(x: Any, /) -> Operand:
    """Return radians converted to degrees.

    >>> aj.rad2deg([0.0, aj.pi])
    Tensor([  0., 180.], f64[2])
    """
    return real_numbers("rad2deg", as_ufuncs(x)) * (180.0 / math.pi)


def sinc(x: Any, /) -> Operand:
    """Return sin(pi x) / (pi x), which is 1 at 0.

    >>> aj.sinc([0.0, 0.5])
    Tensor([1.        , 0.63661977], f64[2])
    """
    scaled = floating(to_operand(x)) * math.pi
    zero = ops.equal(scaled, 0.0)
    safe = ops.where(zero, 1.0, scaled)
    return ops.where(zero, 1.0 - scaled * scaled / 6.0, ops.sin(safe) / safe)


@copies
def round(x: Any, /, decimals: int = 0) -> Operand:
    """Return x rounded to a number of decimals, ties to even; not differentiable.

    >>> aj.round([0.5, 1.5, 2.25])
    Tensor([0., 2., 2.], f64[3])
    >>> aj.round(3.14159, 2)
    Tensor(3.14, f64[])
    """
    return ops.round(to_operand(x), decimals)


def rint(x: Any, /) -> Operand:
    """Return x rounded to the nearest integer, ties to even, as a float; not differentiable.

    >>> aj.rint([0.5, 1.5, 2.6])
    Tensor([0., 2., 3.], f64[3])
    """
    return ops.round(as_ufuncs(x), 0)


@copies
def clip(x: Any, /, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Operand:
    """Return the elements limited to the range from the minimum to the maximum."""
    low, high = a_min if min is None else min, a_max if max is None else max
    given = numbers(*(v for v in (x, low, high) if v is not None))
    bounds = iter(given[1:])
    return ops.clip(to_operand(given[0]), None if low is None else next(bounds), None if high is None else next(bounds))


@overload
def where(condition: Any, /) -> tuple[Operand, ...]: ...
@overload
def where(condition: Any, a: Any, b: Any, /) -> Operand: ...
def where(condition: Any, a: Any = None, b: Any = None, /) -> Any:
    """Return a where the condition holds, else b. Derivatives are masked too, so a NaN in the branch not chosen does not propagate.

    Of a condition alone, the indices at which it holds: `nonzero`.

    >>> aj.where([True, False], [1.0, 2.0], 0.0)
    Tensor([1., 0.], f64[2])
    >>> aj.grad(lambda x: aj.where(x > 0, aj.sqrt(x), 0.0))(0.0)
    Tensor(0., f64[])
    """
    if a is None and b is None:
        return import_module("adjit.tracer.surface.sets").nonzero(condition)  # which imports this module
    condition, a, b = numbers(condition, a, b)
    return ops.where(to_operand(condition), a, to_operand(b) if type(a) in SCALARS and type(b) in SCALARS else b)


@copies
def nan_to_num(x: Any, /, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Operand:
    """Return x with NaN replaced by 0 and infinities by the largest finite numbers of the dtype (or by the given values).

    >>> aj.nan_to_num([1.0, aj.nan, aj.inf], posinf=9.0)
    Tensor([1., 0., 9.], f64[3])
    """
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
    """Return whether |a - b| <= atol + rtol * |b|, elementwise.

    >>> aj.isclose([1.0, 1.1], 1.0 + 1e-9)
    Tensor([ True, False], bool[2])
    """
    a, b = numbers(a, b)
    return ops.isclose(a, b, rtol, atol, equal_nan)


end_at_callers(globals())
