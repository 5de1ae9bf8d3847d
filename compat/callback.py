"""Calling Python from TensorFlow code: `py_function` and `numpy_function`. They run eagerly, and cannot be compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjit.tracer.pytree import tree_map

from .errors import out_of_scope
from .tensor import convert_to_tensor, tracing


def py_function(func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> Any:
    """Call `func(*inp)` on tensors and return tensors; without `inp`, a decorator."""
    return _callback("tf.py_function", func, inp, Tout, convert_to_tensor)


def numpy_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """Call `func(*inp)` on arrays and return tensors; without `inp`, a decorator. NumPy functions also accept tensors directly."""
    return _callback("tf.numpy_function", func, inp, Tout, lambda x: convert_to_tensor(x).numpy())


def _callback(what: str, func: Callable[..., Any] | None, inp: Any, kinds: Any, given: Callable[[Any], Any]) -> Any:
    if func is None:
        return functools.partial(_callback, what, inp=inp, kinds=kinds, given=given)
    if inp is None:
        return functools.wraps(func)(lambda *args: _callback(what, func, args, kinds, given))
    if tracing():
        out_of_scope(f"{what} inside a tf.function", "a compiled function cannot call Python while it runs: call it before or after")
    out = func(*(given(x) for x in inp))
    if isinstance(kinds, list | tuple):
        return [convert_to_tensor(x, kind) for x, kind in zip(out, kinds, strict=True)]
    return tree_map(lambda x: convert_to_tensor(x, kinds), out)
