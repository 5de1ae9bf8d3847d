"""tf.debugging: assertions on values, checked eagerly and in every run of a compiled function, and on types, checked while tracing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.runtime.config import config
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import reductions

from .dtypes import as_dtype
from .errors import FailedCheck, missing, translated
from .shape_checks import assert_shapes as assert_shapes
from .tensor import convert_to_tensor, pair

SHOWN = 3


def _hold(holds: Any, message: str | None, details: Callable[[], str]) -> None:
    """Check immediately, or in every run; a traced condition has no values to show."""
    every = ops.all(holds)
    if is_traced(every):
        ops.check(every, message or details())
    elif not bool(np.asarray(every)):
        raise FailedCheck(f"{message + chr(10) if message else ''}{details()}")


def _elements(name: str, x: Any) -> str:
    data = np.asarray(x).reshape(-1)
    return f"First {min(SHOWN, data.size)} elements of {name}:\n{data[:SHOWN]}"


def _compared(symbol: str, function: Callable[[Any, Any], Operand]) -> Callable[..., None]:
    @translated
    def check(x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        a, b = (convert_to_tensor(v) if not isinstance(v, Operand) else v for v in pair("assert", x, y))

        def details() -> str:
            head = f"Condition x {symbol} y did not hold."
            return head if is_traced(a) or is_traced(b) else f"{head}\n{_elements('x', a)}\n{_elements('y', b)}"

        _hold(function(a, b), message, details)

    return check


assert_equal, _differ = _compared("==", ops.equal), _compared("!=", ops.not_equal)


def assert_none_equal(x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None) -> None:
    """Check that no two elements are equal."""
    _differ(x, y, message)


assert_less, assert_less_equal = _compared("<", ops.less), _compared("<=", ops.less_equal)
assert_greater, assert_greater_equal = _compared(">", ops.greater), _compared(">=", ops.greater_equal)


def _signed(symbol: str, function: Callable[[Any, Any], Operand]) -> Callable[..., None]:
    @translated
    def check(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        a = convert_to_tensor(x)
        _hold(function(a, 0), message, lambda: f"Condition x {symbol} 0 did not hold element-wise.")

    return check


assert_positive, assert_negative = _signed(">", ops.greater), _signed("<", ops.less)
assert_non_negative, assert_non_positive = _signed(">=", ops.greater_equal), _signed("<=", ops.less_equal)


@translated
def assert_near(
    x: Any, y: Any, rtol: Any = None, atol: Any = None, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    a, b = (convert_to_tensor(v) if not isinstance(v, Operand) else v for v in pair("assert_near", x, y))
    default = 10 * float(np.finfo(a.type.dtype).eps)
    near = reductions.allclose(a, b, default if rtol is None else float(rtol), default if atol is None else float(atol))
    _hold(near, message, lambda: "x and y not equal to tolerance")


@translated
def Assert(condition: Any, data: Any = (), summarize: int | None = None, name: str | None = None) -> None:  # noqa: N802 - TensorFlow's name
    """`tf.Assert`: raise, showing `data`, unless the condition holds."""
    shown = "" if any(is_traced(x) for x in data) else " ".join(str(np.asarray(x)) if isinstance(x, Operand) else str(x) for x in data)
    _hold(convert_to_tensor(condition), None, lambda: f"assertion failed: [{shown}]")


@translated
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Any:
    """Return the tensor; raises if it contains NaN or infinity."""
    x = convert_to_tensor(tensor)
    _hold(ops.isfinite(x), f"{message} : Tensor had NaN or Inf values", lambda: "")
    return x


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Any:
    """`check_numerics` under an older name."""
    return check_numerics(x, message)


# ---- checked while tracing


def assert_rank(x: Any, rank: int, message: str | None = None, name: str | None = None) -> None:
    t = convert_to_tensor(x)
    if len(t.type.shape) != int(rank):
        raise ValueError(f"{message or ''} Tensor must have rank {rank}. Received rank {len(t.type.shape)}, shape {t.shape}".strip())


def assert_rank_at_least(x: Any, rank: int, message: str | None = None, name: str | None = None) -> None:
    t = convert_to_tensor(x)
    if len(t.type.shape) < int(rank):
        found = f"Received rank {len(t.type.shape)}, shape {t.shape}"
        raise ValueError(f"{message or ''} Tensor must have rank at least {rank}. {found}".strip())


def assert_rank_in(x: Any, ranks: Any, message: str | None = None, name: str | None = None) -> None:
    t = convert_to_tensor(x)
    if len(t.type.shape) not in [int(r) for r in ranks]:
        raise ValueError(f"{message or ''} Tensor must have rank in {tuple(ranks)}. Received shape {t.shape}".strip())


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    t = convert_to_tensor(x)
    if not t.dtype.is_integer:
        raise TypeError(f"{message or ''} Expected x to be integer type. Found type: {t.dtype!r}".strip())


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> Any:
    assert_rank(tensor, 0, message)
    return convert_to_tensor(tensor)


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    t = convert_to_tensor(tensor)
    if t.dtype != as_dtype(tf_type):
        raise TypeError(f"{message or ''} {t} must be of type {as_dtype(tf_type)!r}; got {t.dtype!r}".strip())


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    found = {convert_to_tensor(t).dtype for t in tensors or ()} | ({as_dtype(dtype)} if dtype is not None else set())
    if len(found) != 1 or not next(iter(found)).is_floating:
        raise ValueError(f"Expected one floating dtype, got {sorted(d.name for d in found)}")
    return found.pop()


def is_numeric_tensor(tensor: Any) -> bool:
    return isinstance(tensor, Operand) and tensor.type.dtype.kind in "iuf"


# ---- settings


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From now on, the first NaN or infinity in a compiled function raises an error that names its line."""
    config.debug_nans = True


def disable_check_numerics() -> None:
    config.debug_nans = False


def enable_traceback_filtering() -> None:
    """Does nothing: errors name your line."""


disable_traceback_filtering = enable_traceback_filtering

__all__ = [name for name in dir() if name.startswith(("assert_", "check_", "is_")) and name != "is_traced"] + ["Assert"]


def __dir__() -> list[str]:
    return __all__


__getattr__ = missing("tf.debugging", "assert with tf.debugging.Assert, and look for NaN with adjit.config.debug_nans")
