"""`custom_vjp`: `custom_gradient` in JAX's spelling, with a forward and a backward function."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from adjit.ir.errors import GradientError
from adjit.ir.tracebacks import boundary
from adjit.tracer.pytree import flatten

from .conversion import as_called
from .custom_gradient import custom_gradient, rule_error


class Running(threading.local):
    """The calls that run on this thread."""

    forward = False  # whether the forward function does


class CustomVjp:
    """A function with a user-defined reverse-mode derivative, created by `custom_vjp`."""

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn
        self.name = str(getattr(fn, "__name__", type(fn).__name__))
        self.fixed = frozenset(nondiff_argnums)
        self.rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self.running = Running()

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the derivative: `fwd(*args)` returns the result and what to save; `bwd(saved, cotangent)` a cotangent for each argument."""
        self.rules = fwd, bwd

    @boundary
    def __call__(self, *args: Any) -> Any:
        if self.rules is None:
            raise self.wrong(f"a custom_vjp function needs its derivative: call {self.name}.defvjp(fwd, bwd)")
        if self.running.forward:  # the forward function calls the function itself, as in JAX's documentation
            return as_called(self.fn)(*args)
        fwd, bwd = self.rules
        fixed = [x for k, x in enumerate(args) if k in self.fixed]
        given = [x for k, x in enumerate(args) if k not in self.fixed]

        def both(*given: Any) -> tuple[Any, Callable[..., Any]]:
            rest = iter(given)
            whole = [x if k in self.fixed else next(rest) for k, x in enumerate(args)]
            before, self.running.forward = self.running.forward, True
            try:
                out = as_called(fwd)(*whole)
            finally:
                self.running.forward = before
            if not (isinstance(out, tuple) and len(out) == 2):
                raise self.wrong("the forward function must return the result and what the backward function needs: (result, saved)")
            result, saved = out
            _, tree = flatten(result)

            def pull(*cotangents: Any) -> list[Any]:
                return self.spread(given, as_called(bwd)(*fixed, saved, tree.unflatten(cotangents)))

            pull.saved = saved  # type: ignore[attr-defined] # all that its own derivative may depend on
            return result, pull

        both.__name__ = self.name
        both.__wrapped__ = self.fn  # type: ignore[attr-defined] # where errors are
        return custom_gradient(both)(*given)

    def spread(self, args: Sequence[Any], gradients: Any) -> list[Any]:
        """Return one gradient, or None, for each leaf of the arguments."""
        if not isinstance(gradients, tuple | list) or len(gradients) != len(args):
            raise self.wrong(f"the backward function must return a tuple of {len(args)}, one for each argument, not {gradients!r}")
        out: list[Any] = []
        for arg, gradient in zip(args, gradients, strict=True):
            leaves, tree = flatten(arg)
            if gradient is None:
                out += [None] * len(leaves)
                continue
            found, its_tree = flatten(gradient, is_leaf=lambda x: x is None)
            if its_tree != tree:
                raise self.wrong(f"the backward function returned {its_tree} for an argument of structure {tree}")
            out += found
        return out

    def wrong(self, what: str) -> GradientError:
        return rule_error(self.name, self.fn, what)


def custom_vjp(fn: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> CustomVjp:
    """Return a function whose reverse-mode derivative is set by `defvjp`, as in JAX; `custom_gradient` is TensorFlow's spelling.

    >>> @custom_vjp
    ... def clipped(x, limit):
    ...     return x
    >>> def backward(limit, g):
    ...     import numpy as np
    ...     return np.clip(g, -limit, limit), None
    >>> clipped.defvjp(lambda x, limit: (x, limit), backward)
    >>> from adjit import grad
    >>> grad(lambda x: 5.0 * clipped(x, 1.0))(3.0)
    Tensor(1., f64[])

    Arguments at `nondiff_argnums` are not differentiated; the backward function takes them first.
    """
    return CustomVjp(fn, nondiff_argnums)
