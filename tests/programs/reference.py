"""The functions that programs call, in two versions: `numpy_side` uses plain NumPy, `adjit_side` adjit. Either is a program's globals."""

from __future__ import annotations

import functools
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
from tests.programs import objects


class Rejected(Exception):
    """A guard does not hold: the results would depend on rounding."""


def need(holds: Any) -> bool:
    if not np.all(holds):
        raise Rejected
    return True


def plain(x: Any) -> Any:
    """A NumPy array from a value that may be a tensor, without reporting the conversion to tapes."""
    return x.buffer if isinstance(x, aj.Tensor) else np.asarray(x)


class Calls:
    """The remaining number of calls of mapped functions: nested maps over long axes take seconds, and test nothing new."""

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
    """Whether no element of x is close to the corresponding one of y."""
    x, y = plain(x), plain(y)
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        return True
    return bool(np.abs(x.astype(float) - y.astype(float)).min(initial=1.0) > MARGIN)


def distinct(x: Any, axis: Any = None) -> bool:
    """Whether no two elements along an axis (or of the whole array) are close or equal."""
    x = plain(x)
    flat = np.sort(x.reshape(-1) if axis is None else x, axis=-1 if axis is None else axis).astype(float)
    return bool(np.diff(flat, axis=-1 if axis is None else axis).min(initial=1.0) > MARGIN)


def fractional(x: Any) -> bool:
    """Whether no element is close to an integer."""
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
    def taped(f: Callable[..., Any]) -> Callable[..., Any]:
        """A function that opens tapes, which watch tensors alone."""
        return lambda *xs: kept(f(*map(aj.tensor, xs)), xs)

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
    def taped(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: f(*map(aj.tensor, xs))

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


def leaves_along(x: Any, axes: Any) -> list[tuple[Any, Any]]:
    """The arrays of an argument of `vmap`, with the axis of each."""
    if isinstance(axes, tuple):
        return [pair for part, axis in zip(x, axes, strict=True) for pair in leaves_along(part, axis)]
    return [(leaf, axes) for leaf in flatten(x)[0]]


def row_of(x: Any, axes: Any, k: int) -> Any:
    if isinstance(axes, tuple):
        return tuple(row_of(part, axis, k) for part, axis in zip(x, axes, strict=True))
    return x if axes is None else tree_map(lambda v: v[(*[slice(None)] * (axes % np.ndim(v)), k)], x)


def stacked(rows: Sequence[Any], axis: int = 0) -> Any:
    return tree_map(lambda *each: (aj if any(isinstance(v, aj.Tensor) for v in each) else np).stack(each, axis), *rows)


class Reference:
    """`aj` for the NumPy side: control flow as plain Python; derivatives by adjit's eager tape, which checks compare with differences."""

    range = range
    tree_map = staticmethod(tree_map)

    GradientTape = aj.GradientTape

    @staticmethod
    def grad(f: Callable[..., Any], *options: Any, **more: Any) -> Callable[..., Any]:
        return lambda *xs: kept(aj.grad(f, *options, **more)(*xs), xs)

    @staticmethod
    def value_and_grad(f: Callable[..., Any], *options: Any, **more: Any) -> Callable[..., Any]:
        return lambda *xs: kept(aj.value_and_grad(f, *options, **more)(*xs), xs)

    @staticmethod
    def hessian(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: kept(aj.hessian(f)(*xs), xs)

    @staticmethod
    def jacobian(f: Callable[..., Any], **more: Any) -> Callable[..., Any]:
        return lambda *xs: kept(aj.jacobian(f, **more)(*xs), xs)

    @staticmethod
    def jvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
        return kept(aj.jvp(f, primals, tangents), (primals, tangents))

    @staticmethod
    def hvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
        return kept(aj.hvp(f, primals, tangents), (primals, tangents))

    @staticmethod
    def vjp(f: Callable[..., Any], *xs: Any) -> Any:
        value, pull = aj.vjp(f, *xs)
        return kept(value, xs), lambda ct: kept(pull(ct), xs)

    @staticmethod
    def linearize(f: Callable[..., Any], *xs: Any) -> Any:
        value, push = aj.linearize(f, *xs)
        return kept(value, xs), lambda *ts: kept(push(*ts), xs)

    @staticmethod
    def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
        def mapped(*xs: Any) -> Any:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(xs)
            (count,) = {np.shape(v)[axis] for x, one in zip(xs, axes, strict=True) for v, axis in leaves_along(x, one) if axis is not None}
            if not count:
                raise Rejected
            Calls.spend(count)
            rows = [f(*(row_of(x, axis, k) for x, axis in zip(xs, axes, strict=True))) for k in range(count)]
            return stacked(rows, out_axes)

        return mapped

    @staticmethod
    def map(f: Callable[..., Any], xs: Any) -> Any:
        return Reference.scan(lambda _, x: (None, f(x)), None, xs)[1]

    @staticmethod
    def scan(f: Callable[..., Any], init: Any, xs: Any, length: int | None = None, reverse: bool = False, **_: Any) -> Any:
        carry, ys = init, []
        count = length if xs is None else len(flatten(xs)[0][0])
        if not count:
            raise Rejected
        Calls.spend(count)
        for k in range(count - 1, -1, -1) if reverse else range(count):
            carry, y = f(carry, None if xs is None else row_of(xs, 0, k))
            ys.append(y)
        return carry, stacked(ys[::-1] if reverse else ys)

    @staticmethod
    def switch(index: Any, branches: Sequence[Callable[..., Any]], *args: Any) -> Any:
        return branches[min(max(int(index), 0), len(branches) - 1)](*args)

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

    class custom_vjp:
        """The function alone."""

        def __init__(self, f: Callable[..., Any]) -> None:
            self.f = f

        def __call__(self, *xs: Any) -> Any:
            return self.f(*xs)

        def defvjp(self, *rules: Callable[..., Any]) -> None:
            pass

        defjvp = defvjp

    custom_jvp = custom_vjp

    @staticmethod
    def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
        return f

    @staticmethod
    def ravel_pytree(tree: Any) -> Any:
        leaves, form = flatten(tree)
        sizes = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]

        def back(flat: Any) -> Any:
            parts = np.split(flat, sizes)
            return form.unflatten([part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)])

        return np.concatenate([np.ravel(leaf) for leaf in leaves]), back

    @staticmethod
    def stop_gradient(x: Any) -> Any:
        return aj.stop_gradient(x) if isinstance(x, aj.Tensor) else x  # inside `grad`, which is adjit's on this side too

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


MODULES: Mapping[str, Any] = {"np": np, "obj": objects, "functools": functools, "itertools": itertools}


def numpy_side(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {**MODULES, "aj": Reference, "lib": Library, **GUARDS, **{name: Cell(value) for name, value in variables.items()}}


def adjit_side(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {**MODULES, "aj": aj, "lib": Ours, **{name: aj.Variable(value, name=name) for name, value in variables.items()}}


def arrays_of(structure: Any) -> Any:
    return tree_map(plain, structure)
