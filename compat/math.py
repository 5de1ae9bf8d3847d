"""tf.math: elementwise functions, reductions and scans; most are also names of `tf` itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adjit.ir import ops
from adjit.ir.found_sizes import size_of
from adjit.ir.operand import Operand, as_operand
from adjit.ir.types import BOOL, I64, real_dtype
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import elementwise, indexing, norms, reductions

from .dtypes import as_dtype, int32, int64
from .errors import InvalidDType, InvalidShape, missing, out_of_scope
from .listing import public_names
from .segments import *  # noqa: F403 - names of tf.math
from .shape import TensorShape
from .special import *  # noqa: F403 - names of tf.math
from .tensor import convert_to_tensor, dress, first_dtype, floor_quotient, floor_remainder, pair, true_quotient
from .wrapping import axes_of, binary, floating, public, sizes_of, tensors, unary

# ---- elementwise

abs = unary(ops.absolute, "abs")
negative = unary(ops.neg, "negative")
sign = unary(ops.sign, "sign")
square = unary(ops.square, "square")
exp, expm1 = unary(ops.exp, "exp", True), unary(ops.expm1, "expm1", True)
log, log1p = unary(ops.log, "log", True), unary(ops.log1p, "log1p", True)
sqrt, rsqrt = unary(ops.sqrt, "sqrt", True), unary(ops.rsqrt, "rsqrt", True)
sin, cos, tan = unary(ops.sin, "sin", True), unary(ops.cos, "cos", True), unary(ops.tan, "tan", True)
asin, acos, atan = unary(ops.asin, "asin", True), unary(ops.acos, "acos", True), unary(ops.atan, "atan", True)
sinh, cosh, tanh = unary(ops.sinh, "sinh", True), unary(ops.cosh, "cosh", True), unary(ops.tanh, "tanh", True)
asinh, acosh, atanh = unary(ops.asinh, "asinh", True), unary(ops.acosh, "acosh", True), unary(ops.atanh, "atanh", True)
erf = unary(ops.erf, "erf", True)
sigmoid = unary(ops.sigmoid, "sigmoid", True)
softplus = unary(ops.softplus, "softplus", True, "features")
log_sigmoid = unary(lambda x: ops.neg(ops.softplus(ops.neg(x))), "log_sigmoid", True)
softsign = unary(lambda x: x / (ops.absolute(x) + 1.0), "softsign", True, "features")
reciprocal = unary(elementwise.reciprocal, "reciprocal", True)
floor, ceil, rint = unary(ops.floor, "floor"), unary(ops.ceil, "ceil"), unary(elementwise.rint, "rint")
round = unary(ops.round, "round")
is_nan, is_inf, is_finite = unary(ops.isnan, "is_nan"), unary(ops.isinf, "is_inf"), unary(ops.isfinite, "is_finite")
logical_not = unary(ops.logical_not, "logical_not")
sinc = unary(elementwise.sinc, "sinc", True)

add, subtract, multiply = binary(ops.add, "add"), binary(ops.sub, "subtract"), binary(ops.mul, "multiply")
divide = truediv = binary(true_quotient, "divide")
floordiv, floormod = binary(floor_quotient, "floordiv"), binary(floor_remainder, "floormod")
mod = floormod
pow = binary(ops.power, "pow")
maximum, minimum = binary(ops.maximum, "maximum"), binary(ops.minimum, "minimum")
squared_difference = binary(lambda a, b: ops.square(ops.sub(a, b)), "squared_difference")
equal, not_equal = binary(ops.equal, "equal"), binary(ops.not_equal, "not_equal")
less, less_equal = binary(ops.less, "less"), binary(ops.less_equal, "less_equal")
greater, greater_equal = binary(ops.greater, "greater"), binary(ops.greater_equal, "greater_equal")


def _of_bools(function: Callable[[Any, Any], Operand], name: str) -> Callable[..., Any]:
    def combine(a: Any, b: Any) -> Operand:
        wrong = next((x for x in (a, b) if isinstance(x, Operand) and x.type.dtype != BOOL), None)
        if wrong is not None:
            raise InvalidDType(f"cannot compute {name}: expected a bool tensor, but got {as_dtype(wrong.type.dtype).name}; compare with 0")
        return function(a, b)

    return binary(combine, name)


logical_and, logical_or = _of_bools(ops.logical_and, "logical_and"), _of_bools(ops.logical_or, "logical_or")
logical_xor = _of_bools(ops.logical_xor, "logical_xor")
xlogy = binary(lambda a, b: _where_zero(ops.log, *tensors("xlogy", a, b)), "xlogy")
xlog1py = binary(lambda a, b: _where_zero(ops.log1p, *tensors("xlog1py", a, b)), "xlog1py")
divide_no_nan = binary(lambda a, b: _no_nan(b, lambda: true_quotient(a, b)), "divide_no_nan")
multiply_no_nan = binary(lambda a, b: _no_nan(b, lambda: ops.mul(a, b)), "multiply_no_nan")


def atan2(y: Any, x: Any, name: str | None = None) -> Any:
    """The angle of the points (x, y)."""
    return _atan2(y, x)


_atan2 = binary(ops.atan2, "atan2")


def _where_zero(function: Callable[[Operand], Operand], x: Operand, y: Operand) -> Operand:
    """x function(y), and 0 where x is 0, whatever y is there: the adjoint of `where` also keeps such y out of gradients."""
    return ops.where(ops.equal(x, 0.0), 0.0, ops.mul(x, function(y)))


def _no_nan(divisor: Any, value: Callable[[], Operand]) -> Operand:
    out = value()
    return ops.where(ops.equal(convert_to_tensor(divisor, dtype_hint=as_dtype(out.type.dtype)), 0), 0.0, out)


@public
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """x cast to another dtype; casting floats to integers truncates."""
    wanted = as_dtype(dtype)
    if not isinstance(x, Operand):
        x = convert_to_tensor(np.asarray(x).astype(wanted.dtype) if isinstance(x, bool | int | float) else x)
    return ops.cast(as_operand(x), wanted.dtype)


@public
def add_n(inputs: Any, name: str | None = None) -> Any:
    """The sum of a list of tensors of one shape."""
    xs = [convert_to_tensor(x) for x in inputs]
    if not xs:
        raise ValueError("add_n: needs a list of at least one tensor")
    if any(x.type != xs[0].type for x in xs):
        raise InvalidShape(f"add_n: the inputs must have one dtype and shape, not {', '.join(str(x.type) for x in xs)}")
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


@public
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Any:
    """`add_n`, which checks the shape and the dtype if they are given."""
    out = add_n(inputs)
    if shape is not None and tuple(out.type.shape) != sizes_of(shape):
        raise ValueError(f"accumulate_n: the inputs are {out.type}, but shape={shape}")
    if tensor_dtype is not None and as_dtype(tensor_dtype) != out.dtype:
        raise TypeError(f"accumulate_n: the inputs are {out.type}, but tensor_dtype={tensor_dtype}")
    return out


@public
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    return multiply(scalar, x)


@public
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    x = convert_to_tensor(t)
    out = ops.minimum(*pair("clip_by_value", ops.maximum(*pair("clip_by_value", x, clip_value_min)), clip_value_max))
    if out.type.shape != x.type.shape:
        raise ValueError(f"Shapes {TensorShape(x.type.shape)} and {TensorShape(out.type.shape)} are incompatible")
    return out


@public
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """t, scaled so that its norm is at most `clip_norm`."""
    x = floating("clip_by_norm", t)
    size = norms.norm(x, axis=axes_of(axes), keepdims=True) if axes is not None else norms.norm(ops.reshape(x, (-1,)))
    bound = convert_to_tensor(clip_norm, dtype_hint=x.dtype)
    return x * bound / ops.maximum(size, ops.broadcast_to(bound, size.type.shape))


@public
def global_norm(t_list: Any, name: str | None = None) -> Any:
    """The norm of all elements of all tensors together; None entries are ignored."""
    squares = [ops.sum(ops.square(convert_to_tensor(t))) for t in t_list if t is not None]
    return ops.sqrt(add_n(squares))


def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None) -> tuple[list[Any], Any]:
    """The tensors, scaled together so that their global norm is at most `clip_norm`; and that norm."""
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    bound = convert_to_tensor(clip_norm, dtype_hint=as_dtype(norm.type.dtype))
    scale = bound / maximum(norm, bound)
    # an infinite or NaN norm makes everything NaN, rather than hiding that the gradients are invalid
    scale = scale + (norm - norm)
    return [None if t is None else convert_to_tensor(t) * scale for t in t_list], norm


@public
def polyval(coeffs: Any, x: Any, name: str | None = None) -> Any:
    """The polynomial with these coefficients, that of the highest power first."""
    if not coeffs:
        return convert_to_tensor(0.0)
    at = convert_to_tensor(x, dtype_hint=first_dtype(coeffs))
    total = convert_to_tensor(coeffs[0], dtype_hint=at.dtype)
    for c in coeffs[1:]:
        total = total * at + c
    return total


# ---- reductions


def _reduction(function: Callable[..., Operand], name: str, dtype: Any = None) -> Callable[..., Any]:
    """`tf.reduce_sum` from `sum`; the result has the dtype of the argument."""

    @public
    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        x = convert_to_tensor(input_tensor)
        out = function(x, axes_of(axis), keepdims)
        return ops.cast(out, dtype or (x.type.dtype if out.type.is_complex else real_dtype(x.type.dtype)))

    reduce.__name__ = reduce.__qualname__ = name
    return reduce


def _mean(x: Operand, axis: Any, keepdims: bool) -> Operand:
    """The mean; that of integers is an integer, rounded towards zero."""
    out = reductions.mean(x, axis, keepdims=keepdims)
    return out if x.type.is_inexact else ops.trunc(out)


def _logical(function: Callable[..., Operand], name: str) -> Callable[..., Operand]:
    def reduce(x: Operand, axis: Any, keepdims: bool) -> Operand:
        if x.type.size and x.type.dtype != BOOL:
            raise InvalidDType(f"{name}: cannot compute it of a {as_dtype(x.type.dtype).name} tensor: it takes bools; use tf.cast")
        return function(ops.cast(x, BOOL), axis, keepdims)

    return reduce


def _euclidean(x: Operand, axis: Any, keepdims: bool) -> Operand:
    return ops.cast(ops.sqrt(ops.sum(_squares(x), axis, keepdims)), x.type.dtype)


def _squares(x: Operand) -> Operand:
    """The squares of the absolute values, in the dtype of the absolute values."""
    return ops.square(ops.absolute(x)) if x.type.is_complex else ops.square(x)


reduce_sum = _reduction(ops.sum, "reduce_sum")
reduce_prod = _reduction(ops.prod, "reduce_prod")
reduce_mean = _reduction(_mean, "reduce_mean")
reduce_max = _reduction(ops.max, "reduce_max")
reduce_min = _reduction(ops.min, "reduce_min")
reduce_all = _reduction(_logical(ops.all, "reduce_all"), "reduce_all", BOOL)
reduce_any = _reduction(_logical(ops.any, "reduce_any"), "reduce_any", BOOL)
reduce_variance = _reduction(lambda x, axis, keepdims: reductions.var(x, axis, keepdims=keepdims), "reduce_variance")
reduce_std = _reduction(lambda x, axis, keepdims: reductions.std(x, axis, keepdims=keepdims), "reduce_std")
reduce_logsumexp = _reduction(lambda x, axis, keepdims: reductions.logsumexp(x, axis, keepdims), "reduce_logsumexp")
reduce_euclidean_norm = _reduction(_euclidean, "reduce_euclidean_norm")


@public
def count_nonzero(input: Any, axis: Any = None, keepdims: bool = False, dtype: Any = int64, name: str | None = None) -> Any:
    counted = reductions.count_nonzero(convert_to_tensor(input), axes_of(axis), keepdims=keepdims)
    return ops.cast(counted, as_dtype(dtype).dtype)


@public
def argmax(input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None) -> Any:
    """The index of the largest element along an axis, by default the first."""
    return ops.cast(ops.argmax(convert_to_tensor(input), 0 if axis is None else axes_of(axis)), as_dtype(output_type).dtype)


@public
def argmin(input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None) -> Any:
    return ops.cast(ops.argmin(convert_to_tensor(input), 0 if axis is None else axes_of(axis)), as_dtype(output_type).dtype)


@public
def cumsum(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    return _scanned(ops.cumsum, convert_to_tensor(x), axes_of(axis), exclusive, reverse, 0)


@public
def cumprod(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    return _scanned(ops.cumprod, convert_to_tensor(x), axes_of(axis), exclusive, reverse, 1)


def _scanned(function: Callable[..., Operand], x: Any, axis: int, exclusive: bool, reverse: bool, neutral: int) -> Operand:
    axis %= len(x.type.shape)
    if reverse:
        return ops.flip(_scanned(function, ops.flip(x, axis), axis, exclusive, False, neutral), axis)
    if exclusive:
        first = [slice(None)] * axis
        head = x[(*first, slice(0, 1))] * 0 + neutral
        x = ops.concatenate([head, x[(*first, slice(0, -1))]], axis)
    return ops.cast(function(x, axis), x.type.dtype)


# ---- segments and counting


@public
def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = int32, name: str | None = None,
    axis: int | None = None, binary_output: bool = False,
) -> Any:  # fmt: skip
    """How often each of the numbers 0, 1, ... occurs, or the sum of its weights: in all elements, or (`axis=-1`) in each row.

    With `binary_output`, 1 for each number that occurs. Numbers from `maxlength` on are left out.
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    if binary_output and weights is not None:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
    ids = convert_to_tensor(arr)
    given = None if weights is None else convert_to_tensor(weights)
    rows = ops.reshape(ids, (1, -1) if axis != -1 or len(ids.type.shape) < 2 else ids.type.shape)
    kind = as_dtype(dtype).dtype if given is None else given.type.dtype
    ops.check(ops.all(ops.greater_equal(ids, 0)), "Input arr must be non-negative!")
    length = _bins(ids, minlength, maxlength)
    weight = convert_to_tensor(np.ones((), kind)) if given is None else ops.reshape(given, rows.type.shape)
    inside, row = ops.less(rows, length), ops.iota(rows.type.shape, 0)
    empty = ops.broadcast_to(convert_to_tensor(np.zeros((), kind)), (rows.type.shape[0], length))
    out = ops.additem(empty, (row, ops.where(inside, rows, 0)), ops.where(inside, weight, ops.mul(weight, 0)))
    out = ops.cast(ops.greater(out, 0), kind) if binary_output else out
    return out if axis == -1 and len(ids.type.shape) > 1 else ops.reshape(out, (length,))


def _bins(ids: Any, minlength: Any, maxlength: Any) -> int:
    """The number of bins, which the call has to find if the values are traced."""
    least, most = (None if n is None else int(n) for n in (minlength, maxlength))
    if least is not None and least == most:
        return least
    count = ops.add(ops.max(ids), 1) if ids.type.size else convert_to_tensor(0)
    count = count if least is None else ops.maximum(count, least)
    count = count if most is None else ops.minimum(count, most)
    return size_of(count, "bincount") if is_traced(count) else int(dress(count).numpy())


def xdivy(x: Any, y: Any, name: str | None = None) -> Any:
    """x / y, and 0 where x is 0, whatever y is."""
    a, b = tensors("xdivy", x, y)
    none = ops.equal(a, 0)
    return dress(ops.where(none, ops.mul(a, 0), ops.div(a, ops.where(none, ops.add(ops.mul(b, 0), 1), b))))


@public
def softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    return reductions.softmax(floating("softmax", logits), -1 if axis is None else axes_of(axis))


@public
def log_softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    return reductions.log_softmax(floating("log_softmax", logits), -1 if axis is None else axes_of(axis))


@public
def reciprocal_no_nan(x: Any, name: str | None = None) -> Any:
    """1 / x, and 0 where x is 0."""
    t = floating("reciprocal_no_nan", x)
    none = ops.equal(t, 0.0)
    return ops.where(none, 0.0, 1.0 / ops.where(none, 1.0, t))


@public
def invert_permutation(x: Any, name: str | None = None) -> Any:
    """The inverse of a permutation."""
    t = convert_to_tensor(x)
    return ops.cast(ops.argsort(t), t.type.dtype)


@public
def cumulative_logsumexp(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """log(cumsum(exp(x))), scaled by the largest element."""
    t = floating("cumulative_logsumexp", x)
    if exclusive:
        out_of_scope("cumulative_logsumexp(exclusive=True)", "shift the result by one")
    top = ops.stop_gradient(ops.max(t, axis, True))
    lines = ops.exp(t - top)
    flipped = ops.flip(lines, axis) if reverse else lines
    total = ops.cumsum(flipped, axis)
    return ops.log(ops.flip(total, axis) if reverse else total) + top


class TopK(NamedTuple):
    """The result of `top_k`."""

    values: Any
    indices: Any


def top_k(input: Any, k: int = 1, sorted: bool = True, index_type: Any = int32, name: str | None = None) -> TopK:
    """The k largest elements along the last axis, and their indices; of equal elements, the first."""
    x = convert_to_tensor(input)
    if not x.type.shape or x.type.shape[-1] < k:
        raise InvalidShape(f"top_k: input must have at least k={k} columns, not {list(x.type.shape)}")
    values, order = ops.top_k(x, int(k))
    return TopK(dress(values), dress(ops.cast(order, as_dtype(index_type).dtype)))


@public
def in_top_k(targets: Any, predictions: Any, k: int, name: str | None = None) -> Any:
    """Whether fewer than k predictions of each row are larger than that of its target."""
    scores, labels = convert_to_tensor(predictions), convert_to_tensor(targets)
    own = indexing.take_along_axis(scores, ops.reshape(labels, (-1, 1)), axis=1)
    larger = ops.sum(ops.cast(ops.greater(scores, ops.broadcast_to(own, scores.type.shape)), I64), 1)
    return ops.less(larger, int(k))


@public
def confusion_matrix(
    labels: Any, predictions: Any, num_classes: int | None = None, weights: Any = None, dtype: Any = int32, name: str | None = None
) -> Any:
    rows, columns = convert_to_tensor(labels), convert_to_tensor(predictions)
    if num_classes is None:
        num_classes = int(max(rows.numpy().max(), columns.numpy().max())) + 1
    kind = as_dtype(dtype).dtype
    one = convert_to_tensor(np.ones(rows.type.shape, kind) if weights is None else np.asarray(weights).astype(kind))
    return ops.additem(convert_to_tensor(np.zeros((num_classes, num_classes), kind)), (rows, columns), one)


def is_strictly_increasing(x: Any, name: str | None = None) -> Any:
    """Whether every element is greater than the previous one, in the order of a flattened tensor."""
    t = ops.reshape(convert_to_tensor(x), -1)
    return reduce_all(t[1:] > t[:-1])


def is_non_decreasing(x: Any, name: str | None = None) -> Any:
    """Whether no element is less than the previous one, in the order of a flattened tensor."""
    t = ops.reshape(convert_to_tensor(x), -1)
    return reduce_all(t[1:] >= t[:-1])


@public
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5, name: str | None = None) -> Any:
    a, b = tensors("approximate_equal", x, y)
    return ops.less(ops.absolute(ops.sub(a, b)), tolerance)


@public
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Any:
    """Like `cast`, but values out of range are clipped to the range."""
    t, target = convert_to_tensor(value), as_dtype(dtype).dtype
    source = t.type.dtype
    if target.kind == "b" or source.kind == "b" or (source.kind in "iu" and target.kind == "f"):
        return ops.cast(t, target)
    (low, high), (least, most) = _limits(target), _limits(source)
    if low > least:
        t = ops.maximum(t, low)
    if high < most:
        t = ops.minimum(t, high)
    return ops.cast(t, target)  # casts of floats to integers saturate at bounds that a float cannot represent


def _limits(dtype: Any) -> tuple[Any, Any]:
    info: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return info.min.item() if dtype.kind == "f" else info.min, info.max.item() if dtype.kind == "f" else info.max


@public
def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Any:
    """x divided by its norm along the axis; `dim` is an older name of it."""
    if dim is not None and axis is not None:
        raise ValueError("Cannot specify both 'axis' and 'dim'")
    axis, t = dim if axis is None else axis, floating("l2_normalize", x)
    squared = ops.sum(_squares(t), axes_of(axis), True)
    return t * ops.cast(ops.rsqrt(ops.maximum(squared, epsilon)), t.type.dtype)


__getattr__ = missing("tf.math", "compose it of the functions of tf.math")


def __dir__() -> list[str]:
    return public_names(globals())
