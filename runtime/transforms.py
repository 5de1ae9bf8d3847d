"""Derivatives as functions of functions: `grad`, `value_and_grad`, `vjp`, `jvp`.

Each records the call of the user's function on a tape of its own, so that they work eagerly, inside of `@function` and of each other. The
arguments that are differentiated get fresh identities first: the same tensor reached through a closure stays a constant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from adjit.ir.errors import DTypeError, GradientError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.shape import Reshape
from adjit.passes.forward import push_forward
from adjit.tracer.pytree import TreeDef, flatten
from adjit.tracer.trace import Traced, current_trace

from .record import new_record
from .recording import join, leave
from .tape import GradientTape, checked_seed
from .tensor import WeakTensor, numeric_array, tensor


def grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of the scalar `fn(*args)` by the arguments at `argnums`, in their structure.

    With `has_aux`, `fn` returns `(value, aux)`, and the new function `(gradient, aux)`.

    >>> grad(lambda x: x * x)(3.0)
    Tensor(6., f64[])
    """
    both = value_and_grad(fn, argnums, has_aux)

    @functools.wraps(fn)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        out, gradients = both(*args, **kwargs)
        return (gradients, out[1]) if has_aux else gradients

    return gradient


def value_and_grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives `fn(*args)` and its gradient by the arguments at `argnums`; what has no influence has gradient zero."""

    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        args, sources = with_fresh(name_of(fn), args, positions)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            out = fn(*args, **kwargs)
        value = scalar_value(name_of(fn), out[0] if has_aux else out)
        gradients = tape.gradient(value, sources, unconnected_gradients="zero")
        return (value, out[1]) if has_aux else value, gradients[0] if isinstance(argnums, int) else tuple(gradients)

    return differentiated


def vjp(fn: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], Any]]:
    """`fn(*args)`, and a function that pulls cotangents of the result (None: zero) back to a tuple of cotangents of the arguments."""
    args, sources = with_fresh(name_of(fn), args, range(len(args)))
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(sources)
        out = fn(*args)

    def pullback(cotangents: Any) -> Any:
        leaves, tree = flatten(cotangents, is_leaf=lambda x: x is None)
        weights = tree.unflatten([0.0 if c is None else c for c in leaves])  # to a tape, None would mean ones
        return tuple(tape.gradient(out, sources, output_gradients=weights, unconnected_gradients="zero"))

    return out, pullback


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`fn(*primals)`, and the derivative of it in the direction of `tangents`, which have the structure of `primals`."""
    args, sources = with_fresh(name_of(fn), tuple(primals), range(len(primals)))
    flat, tree = flatten(sources)
    directions, its_tree = flatten(list(tangents))
    if its_tree != tree:
        raise GradientError(f"jvp: the tangents {its_tree} do not have the structure of the primals, {tree}")
    record = new_record(watch_accessed=False)
    record.start()
    join(record)
    try:
        for x in flat:
            record.watch(x)
        out = fn(*args)
    finally:
        leave(record)
        record.stop()
    pushed = push_forward(record.statements(), flat, [checked_seed(d, x) for d, x in zip(directions, flat, strict=True)])
    results, out_tree = flatten(out)
    return out, out_tree.unflatten([record.give(pushed[id(r)] if id(r) in pushed else zeros(r)) for r in results])


def zeros(x: Any) -> Operand:
    operand = as_operand(x)
    return operand.literal(0, operand.type)


def with_fresh(what: str, args: tuple[Any, ...], positions: Sequence[int]) -> tuple[tuple[Any, ...], list[Any]]:
    """The arguments with fresh values at `positions`, and the list of these."""
    out = list(args)
    for i in positions:
        if not -len(args) <= i < len(args):
            raise GradientError(f"{what}: there is no argument {i} to differentiate by: it was called with {len(args)} positional ones")
        leaves, tree = flatten(args[i])
        out[i] = tree.unflatten([fresh(leaf, f"{what}: argument {i}{path(tree, n)}") for n, leaf in enumerate(leaves)])
    return tuple(out), [out[i] for i in positions]


def fresh(x: Any, what: str) -> Operand:
    """The same value under an identity of its own, connected with the old one for the tapes around."""
    if isinstance(x, Operand):
        operand = as_operand(x)
    elif type(x) is float:
        operand = WeakTensor(x)
    else:
        try:
            operand = tensor(numeric_array(x))
        except DTypeError as error:
            raise GradientError(f"{what} cannot be differentiated by: {error}") from None
    if not operand.type.is_float:
        hint = "; write it as a float" if type(x) is int else "; cast it with .astype('f4'), or leave it out of argnums"
        raise GradientError(f"{what} is {operand.type}: only floats have gradients{hint}")
    identity = Reshape(operand.type.shape)
    trace = current_trace()
    if trace is None:
        return apply(identity, operand)
    (value,) = trace.emit(identity, (operand,))  # not `apply`, which would compute constants on the spot
    if isinstance(value, Traced):
        value.weak = operand.weak
    return value


def scalar_value(what: str, value: Any) -> Operand:
    operand = as_operand(value) if isinstance(value, Operand) else None if flatten(value)[1].leaves != 1 else tensor(value)
    if operand is None or operand.type.shape or not operand.type.is_float:
        got = operand.type if operand is not None else type(value).__name__
        raise GradientError(f"{what}: a gradient is that of a floating scalar, and this is {got}; sum it, or use vjp for other weights")
    return operand


def path(tree: TreeDef, leaf: int) -> str:
    return tree.paths()[leaf]


def name_of(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))
