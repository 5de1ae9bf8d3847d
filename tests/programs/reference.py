"""What programs call, twice: `numpy_side` computes with plain NumPy, `adjit_side` with adjit. Both are the globals of a program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import adjit as aj
from adjit.ir import ops
from adjit.tracer.convert import to_operand
from adjit.tracer.pytree import flatten, tree_map


class Rejected(Exception):
    """A guard does not hold: the program would be decided by rounding."""


def need(holds: Any) -> bool:
    if not np.all(holds):
        raise Rejected
    return True


def plain(x: Any) -> Any:
    """A NumPy array of what may be a tensor, without telling tapes that it left them."""
    return x.buffer if isinstance(x, aj.Tensor) else np.asarray(x)


class Calls:
    """How often functions may still be called that are mapped: nested maps over long axes take seconds, and show nothing new."""

    left = math.inf

    @classmethod
    @contextmanager
    def at_most(cls, count: int) -> Iterator[None]:
        cls.left = count
        try:
            yield
        finally:
            cls.left = math.inf

    @classmethod
    def spend(cls, count: int) -> None:
        cls.left -= count
        need(cls.left >= 0)


MARGIN = 1e-3


def apart(x: Any, y: Any = 0.0) -> bool:
    """Whether no element of x comes near its neighbour in y."""
    x, y = plain(x), plain(y)
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        return True
    return bool(np.abs(x.astype(float) - y.astype(float)).min(initial=1.0) > MARGIN)


def distinct(x: Any, axis: Any = None) -> bool:
    """Whether no two elements along an axis (or of the whole array) come near each other, nor are equal."""
    x = plain(x)
    flat = np.sort(x.reshape(-1) if axis is None else x, axis=-1 if axis is None else axis).astype(float)
    return bool(np.diff(flat, axis=-1 if axis is None else axis).min(initial=1.0) > MARGIN)


def fractional(x: Any) -> bool:
    """Whether no element comes near an integer."""
    x = plain(x).astype(float)
    return bool(np.abs(x - np.round(x)).min(initial=1.0) > MARGIN)


class Cell(np.lib.mixins.NDArrayOperatorsMixin):
    """A variable of the NumPy side."""

    def __init__(self, data: Any) -> None:
        self.data = np.array(data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.data

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*(x.data if isinstance(x, Cell) else x for x in inputs), **kwargs)

    def assign(self, value: Any) -> None:
        value = np.array(value)
        if value.dtype != self.data.dtype or value.shape != self.data.shape:
            raise TypeError("assign: another type")
        self.data = value

    def assign_add(self, value: Any) -> None:
        self.assign(np.asarray(self.data + value))

    def assign_sub(self, value: Any) -> None:
        self.assign(np.asarray(self.data - value))


# ---- functions of adjit that NumPy does not have


def windows_of(size: int, places: int, stride: int, padding: str) -> tuple[int, int, int]:
    """The number of results along an axis, and the padding before and after."""
    if padding == "valid":
        return (size - places) // stride + 1, 0, 0
    count = -(-size // stride)
    total = max((count - 1) * stride + places - size, 0)
    return count, total // 2, total - total // 2


class Library:
    """`lib.conv` and its like, in NumPy."""

    @staticmethod
    def _windows(x: Any, places: Sequence[int], stride: int, padding: str, value: float) -> tuple[Any, tuple[int, ...]]:
        spans = [windows_of(n, p, stride, padding) for n, p in zip(x.shape[1:-1], places, strict=True)]
        if any(count < 1 for count, _, _ in spans) or 0 in places:
            raise Rejected
        padded = np.pad(x, [(0, 0), *((low, high) for _, low, high in spans), (0, 0)], constant_values=value)
        return padded, tuple(count for count, _, _ in spans)

    @classmethod
    def conv(cls, x: Any, w: Any, strides: int = 1, padding: str = "valid") -> Any:
        places = w.shape[:-2]
        x, out = cls._windows(x, places, strides, padding, 0)
        result = np.zeros((x.shape[0], *out, w.shape[-1]), np.result_type(x, w))
        for at in itertools.product(*map(range, places)):
            cut = tuple(slice(a, a + (n - 1) * strides + 1, strides) for a, n in zip(at, out, strict=True))
            result = result + x[(slice(None), *cut)] @ w[at]
        return result

    @classmethod
    def _pool(cls, x: Any, window: int, strides: int, padding: str, value: float) -> list[Any]:
        places = (window,) * (x.ndim - 2)
        x, out = cls._windows(x, places, strides, padding, value)
        cuts = [
            tuple(slice(a, a + (n - 1) * strides + 1, strides) for a, n in zip(at, out, strict=True))
            for at in itertools.product(*map(range, places))
        ]
        return [x[(slice(None), *cut)] for cut in cuts]

    @classmethod
    def max_pool(cls, x: Any, window: int, strides: int = 1, padding: str = "valid") -> Any:
        parts = np.stack(cls._pool(x, window, strides, padding, -np.inf))
        return parts.max(0)

    @classmethod
    def avg_pool(cls, x: Any, window: int, strides: int = 1, padding: str = "valid") -> Any:
        count = sum(cls._pool(np.ones_like(x), window, strides, padding, 0.0))
        return sum(cls._pool(x, window, strides, padding, 0.0)) / count


class Ours:
    """The same of adjit."""

    @staticmethod
    def conv(x: Any, w: Any, strides: int = 1, padding: str = "valid") -> Any:
        return ops.conv(to_operand(x), to_operand(w), strides, padding)

    @staticmethod
    def max_pool(x: Any, window: int, strides: int = 1, padding: str = "valid") -> Any:
        return ops.max_pool(to_operand(x), window, strides, padding)

    @staticmethod
    def avg_pool(x: Any, window: int, strides: int = 1, padding: str = "valid") -> Any:
        return ops.avg_pool(to_operand(x), window, strides, padding)


def kept(out: Any, given: Any) -> Any:
    """Tensors for who gave tensors, arrays for who gave arrays."""
    return out if any(isinstance(leaf, aj.Tensor) for leaf in flatten(given)[0]) else arrays_of(out)


class Reference:
    """`aj` for the NumPy side: control flow as plain Python; derivatives by adjit's eager tape, which the checks hold to differences."""

    range = range

    @staticmethod
    def grad(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: kept(aj.grad(f)(*xs), xs)

    @staticmethod
    def jvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
        return kept(aj.jvp(f, primals, tangents), (primals, tangents))

    @staticmethod
    def vmap(f: Callable[..., Any]) -> Callable[..., Any]:
        def mapped(*xs: Any) -> Any:
            if not len(xs[0]):
                raise Rejected
            Calls.spend(len(xs[0]))
            rows = [f(*row) for row in zip(*xs, strict=True)]
            return aj.stack(rows) if any(isinstance(row, aj.Tensor) for row in rows) else np.stack(rows)

        return mapped

    @staticmethod
    def map(f: Callable[..., Any], xs: Any) -> Any:
        if not len(xs):
            raise Rejected
        Calls.spend(len(xs))
        return np.stack([f(x) for x in xs])

    @staticmethod
    def scan(f: Callable[..., Any], init: Any, xs: Any, reverse: bool = False, **_: Any) -> Any:
        carry, ys = init, []
        if not len(xs):
            raise Rejected
        Calls.spend(len(xs))
        for x in xs[::-1] if reverse else xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys[::-1] if reverse else ys)

    @staticmethod
    def cond(pred: Any, yes: Callable[..., Any], no: Callable[..., Any], *args: Any) -> Any:
        return yes(*args) if pred else no(*args)

    @staticmethod
    def while_loop(test: Callable[..., Any], body: Callable[..., Any], state: Any, **_: Any) -> Any:
        while test(state):
            state = body(state)
        return state

    @staticmethod
    def fori_loop(low: Any, high: Any, body: Callable[..., Any], state: Any, **_: Any) -> Any:
        for i in range(int(low), int(high)):
            state = body(i, state)
        return state

    @staticmethod
    def stack(rows: Any, fill: Any = None, length: int | None = None) -> Any:
        if length is None:
            return np.stack(rows)
        return np.stack([*rows, *[np.full_like(rows[0], fill)] * (length - len(rows))])

    @staticmethod
    def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: f(*xs)[0]

    @staticmethod
    def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
        return f

    @staticmethod
    def stop_gradient(x: Any) -> Any:
        return aj.stop_gradient(x) if isinstance(x, aj.Tensor) else x  # inside of `grad`, which is adjit's on this side too

    @staticmethod
    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def relu(x: Any) -> Any:
        return np.maximum(x, 0)

    @staticmethod
    def softplus(x: Any) -> Any:
        return np.logaddexp(x, 0)

    @staticmethod
    def softmax(x: Any, axis: int = -1) -> Any:
        e = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return e / np.sum(e, axis=axis, keepdims=True)


GUARDS: Mapping[str, Any] = {"_need": need, "apart": apart, "distinct": distinct, "fractional": fractional}


def numpy_side(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {"np": np, "aj": Reference, "lib": Library, **GUARDS, **{name: Cell(value) for name, value in variables.items()}}


def adjit_side(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {"np": np, "aj": aj, "lib": Ours, **{name: aj.Variable(value, name=name) for name, value in variables.items()}}


def arrays_of(structure: Any) -> Any:
    return tree_map(plain, structure)
