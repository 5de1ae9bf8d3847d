"""Derivatives as functions of functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `linearize`, `jacobian`, `hessian`, `hvp`.

Each transform records the call of the user's function, so they work eagerly, inside `@function` and inside each other. The differentiated
arguments first get new identities: the same tensor reached through a closure remains a constant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from adjit.ir.arrays import as_array
from adjit.ir.errors import DTypeError, GradientError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.complex import conj
from adjit.ir.ops.shape import Reshape
from adjit.ir.tracebacks import boundary
from adjit.ir.types import F32, F64
from adjit.tracer.pytree import TreeDef, flatten
from adjit.tracer.trace import Traced, current_trace

from .conversion import as_called
from .internal import push_forward
from .quick import wrapped
from .record import new_record
from .recording import join, leave
from .tape import StrictTape, checked_seed, conjugated
from .tensor import Tensor, WeakTensor, tensor

if TYPE_CHECKING:
    from .jacobians import Mode

P = ParamSpec("P")


def grad(fn: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable[P, Any]:
    """Return a function that computes the gradient of the scalar `fn(*args)`, in the structure of the arguments at `argnums`.

    With `has_aux`, `fn` returns `(value, aux)`, and the new function returns `(gradient, aux)`. For a complex argument, the gradient is
    TensorFlow's: the direction of steepest ascent. With `holomorphic`, value and arguments are complex, and the result is the complex
    derivative.

    >>> grad(lambda x: x * x)(3.0)
    Tensor(6., f64[])
    """
    both = value_and_grad(fn, argnums, has_aux, holomorphic)

    @boundary
    @functools.wraps(fn)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        out, gradients = both(*args, **kwargs)
        return (gradients, out[1]) if has_aux else gradients

    return gradient


def value_and_grad(
    fn: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """Return a function that computes `fn(*args)` and its gradient with respect to the arguments at `argnums`.

    The gradient is zero for arguments that do not influence the value.

    >>> aj.value_and_grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    (Tensor(5., f64[]), Tensor([2., 4.], f64[2]))
    """

    @boundary
    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        args, sources = renewed(fn, args, positions_of(argnums))
        flat = [leaf for leaves, _ in sources for leaf in leaves]
        tape = StrictTape()
        with tape:
            tape._watch(flat)
            out = as_called(fn)(*args, **kwargs)
        out, aux = split_aux(fn, out, has_aux)
        value = scalar_value(fn, out, holomorphic)
        if holomorphic:
            check_complex(name_of(fn), flat)
        found = tape._gradients(value, flat, zeros=True)
        if holomorphic:  # of a holomorphic function, the derivative is the conjugate of the gradient
            found = [conj(g) for g in found]
        each = iter(found)
        gradients = [tree.unflatten([next(each) for _ in leaves]) for leaves, tree in sources]
        return (value, aux) if has_aux else value, gradients[0] if isinstance(argnums, int) else tuple(gradients)

    return differentiated


@boundary
def vjp(fn: Callable[..., Any], *args: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `fn(*args)` and a function that maps cotangents of the result (None: zero) to a tuple of cotangents of the arguments.

    With `has_aux`, `fn` returns `(result, aux)`, and `vjp` returns `(result, pullback, aux)`.

    >>> y, pullback = aj.vjp(lambda a, b: a * b, 2.0, 3.0)
    >>> y, pullback(1.0)
    (Tensor(6., f64[]), (Tensor(3., f64[]), Tensor(2., f64[])))
    """
    args, sources = with_fresh(fn, args, range(len(args)))
    with StrictTape(persistent=True) as tape:
        tape.watch(sources)
        out = as_called(fn)(*args)
    out, aux = split_aux(fn, out, has_aux)

    def pullback(cotangents: Any) -> Any:
        leaves, tree = flatten(cotangents, is_leaf=lambda x: x is None)
        weights = tree.unflatten([0.0 if c is None else c for c in leaves])  # a tape would take None as ones
        return tuple(tape.gradient(out, sources, output_gradients=weights, unconnected_gradients="zero"))

    return (out, pullback, aux) if has_aux else (out, pullback)


@boundary
def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """Return `fn(*primals)` and its derivative in the direction of `tangents`, which have the structure of `primals`.

    With `has_aux`, `fn` returns `(result, aux)`, and `jvp` returns `(result, tangent, aux)`.

    >>> aj.jvp(lambda x: x * x, (3.0,), (1.0,))
    (Tensor(9., f64[]), Tensor(6., f64[]))
    """
    call = Linearization(fn, tuple(primals), {}, range(len(primals)), has_aux)
    tangent = call.push(tangents)
    return (call.out, tangent, call.aux) if has_aux else (call.out, tangent)


@boundary
def linearize(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `fn(*primals)` and its derivative there, a linear function of tangents. `fn` runs once, however often that function is called.

    With `has_aux`, `fn` returns `(result, aux)`, and `linearize` returns `(result, linear, aux)`.

    >>> y, derivative = aj.linearize(lambda x: x * x, 3.0)
    >>> y, derivative(1.0), derivative(2.0)
    (Tensor(9., f64[]), Tensor(6., f64[]), Tensor(12., f64[]))
    """
    call = Linearization(fn, primals, {}, range(len(primals)), has_aux)

    def linear(*tangents: Any) -> Any:
        return call.push(tangents)

    return (call.out, linear, call.aux) if has_aux else (call.out, linear)


def jacobian(
    fn: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    mode: Mode | None = None,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of each array in `fn(*args)` with respect to each array in the arguments at `argnums`.

    The result has the structure of `fn`'s result, with the structure of the arguments in place of each array; shapes are those of the
    result's array followed by those of the argument's. `mode` is "forward" or "reverse"; by default the one that needs fewer sweeps.
    Derivatives of complex results are complex with respect to real arguments, and with respect to complex ones if the function is
    `holomorphic`. For real results and complex arguments, each row is a gradient as that of `grad`.

    >>> jacobian(lambda x: x * x)(tensor([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]], f64[2,2])
    """

    @boundary
    @functools.wraps(fn)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        call = Linearization(fn, args, kwargs, positions_of(argnums), has_aux)
        results, tree = flatten(call.out)
        targets = [as_operand(r) for r in results]
        if holomorphic:
            check_complex(call.name, call.flat)
        elif any(t.type.is_complex for t in targets) and any(s.type.is_complex for s in call.flat):
            raise GradientError(
                f"{call.name}: complex results have a complex derivative with respect to complex arguments only if the function is "
                "holomorphic: give holomorphic=True, or differentiate real and imaginary parts separately (jvp, vjp and hvp need neither)"
            )
        from .jacobians import jacobian_blocks  # noqa: PLC0415 - brings in `vmap`

        rows = jacobian_blocks(call.statements, targets, call.flat, mode)
        if not holomorphic:
            rows = [[conjugated(d) if s.type.is_complex else d for d, s in zip(row, call.flat, strict=True)] for row in rows]
        full = [
            [call.give(zeros(t, t.type.shape + s.type.shape) if d is None else d) for d, s in zip(row, call.flat, strict=True)]
            for t, row in zip(targets, rows, strict=True)
        ]
        parts = [call.tree.unflatten(row) for row in full]
        out = tree.unflatten([part[0] if isinstance(argnums, int) else tuple(part) for part in parts])
        return (out, call.aux) if has_aux else out

    return differentiated


def hessian(
    fn: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    mode: Mode | None = None,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the second derivatives of the scalar `fn(*args)` with respect to the arguments at `argnums`.

    It is the Jacobian of the gradient. For one array x the shape is x.shape + x.shape; for structures, the structure of the arguments
    nested in itself.

    >>> aj.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    Tensor([[6., 2.],
            [2., 0.]], f64[2,2])
    """
    return jacobian(grad(fn, argnums, has_aux, holomorphic), argnums, has_aux, mode, holomorphic)


def hvp(fn: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Return the product of the Hessian of the scalar `fn(*primals)` and `tangents`, in the structure of `primals`; no matrix is formed.

    A single argument may be passed without a tuple.

    >>> aj.hvp(lambda x: (x**3).sum(), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    Tensor([6., 0.], f64[2])
    """
    several = isinstance(primals, tuple | list)
    points, directions = (primals, tangents) if several else ((primals,), (tangents,))
    _, out = jvp(grad(fn, argnums=range(len(points))), tuple(points), tuple(directions))
    return type(primals)(out) if several else out[0]


class Linearization:
    """A recorded call of a function: its result, and the statements that tangents are pushed through."""

    def __init__(
        self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], positions: Sequence[int], has_aux: bool
    ) -> None:
        self.name = name_of(fn)
        args, sources = with_fresh(fn, args, positions)
        self.flat, self.tree = flatten(sources)
        self.record = record = new_record(watch_accessed=False, strict=True)
        record.start()
        join(record)
        try:
            for x in self.flat:
                record.watch(x)
            out = as_called(fn)(*args, **kwargs)
        except ValueError as error:
            if isinstance(error.__cause__, GradientError):  # NumPy's own message is "setting an array element with a sequence"
                raise error.__cause__.with_traceback(error.__traceback__) from None
            raise
        finally:
            leave(record)
            record.stop()
        self.statements = record.statements()
        self.out, self.aux = split_aux(fn, out, has_aux)
        self.give = record.give

    def push(self, tangents: Sequence[Any]) -> Any:
        """Return the tangent of the result, in its structure."""
        directions, tree = flatten(list(tangents))
        if tree != self.tree:
            raise GradientError(f"{self.name}: the tangents {tree} do not have the structure of the primals, {self.tree}")
        seeds = [checked_seed(d, x) for d, x in zip(directions, self.flat, strict=True)]
        pushed = push_forward(self.statements, self.flat, seeds)
        results, out_tree = flatten(self.out)
        return out_tree.unflatten([self.give(pushed[id(r)] if id(r) in pushed else zeros(as_operand(r))) for r in results])


def zeros(x: Operand, shape: tuple[int, ...] | None = None) -> Operand:
    return x.literal(0, x.type if shape is None else x.type.with_shape(shape))


def positions_of(argnums: int | Sequence[int]) -> tuple[int, ...]:
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(isinstance(n, int) for n in positions):
        raise GradientError(f"argnums are the positions of arguments, as ints, not {argnums!r}")
    return positions


def split_aux(fn: Callable[..., Any], out: Any, has_aux: bool) -> tuple[Any, Any]:
    """Split a result into the value and the auxiliary output."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise GradientError(f"{name_of(fn)}: with has_aux it must return a pair (result, aux), not {type(out).__name__}")
    return out[0], out[1]


def with_fresh(fn: Callable[..., Any], args: tuple[Any, ...], positions: Sequence[int]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the arguments with fresh values at `positions`, and the list of those values."""
    out, _ = renewed(fn, args, positions)
    return out, [out[i] for i in positions]


def renewed(
    fn: Callable[..., Any], args: tuple[Any, ...], positions: Sequence[int]
) -> tuple[tuple[Any, ...], list[tuple[list[Operand], TreeDef]]]:
    """Return the arguments with fresh values at `positions`, and these values with the structures that they are in."""
    out = list(args)
    groups: list[tuple[list[Operand], TreeDef]] = []
    for i in positions:
        if not -len(args) <= i < len(args):
            raise GradientError(
                f"{name_of(fn)}: argnums names argument {i}, but the function was called with {len(args)} positional arguments"
            )
        leaves, tree = flatten(args[i])
        values = [fresh(leaf, functools.partial(place, fn, i, tree, n)) for n, leaf in enumerate(leaves)]
        out[i] = tree.unflatten(values)
        groups.append((values, tree))
    return tuple(out), groups


def fresh(x: Any, what: Callable[[], str]) -> Operand:
    """Return the same value with a new identity, connected to the old one for the enclosing tapes; `what` names it in errors."""
    trace = current_trace()
    if trace is None and type(x) is np.ndarray and (x.dtype is F64 or x.dtype is F32):
        return wrapped(x.copy())
    if isinstance(x, Operand):
        operand = as_operand(x)
    elif type(x) in (float, complex):
        operand = WeakTensor(x)
    else:
        try:
            operand = tensor(as_array(x))
        except DTypeError as error:
            raise GradientError(f"{what()} has no gradient: {error}") from None
    if not operand.type.is_inexact:
        hint = "; write it as a float" if type(x) is int else "; cast it with .astype('f4'), or leave it out of argnums"
        raise GradientError(f"{what()} is {operand.type}: only floats have gradients{hint}")
    if trace is None and not isinstance(x, Operand):
        return operand  # new already
    identity = Reshape(operand.type.shape)
    if trace is None:
        return apply(identity, operand)
    (value,) = trace.emit(identity, (operand,))  # not `apply`, which would evaluate constants immediately
    if isinstance(value, Traced):
        value.weak = operand.weak
        value.name = getattr(operand, "name", None)  # not the name of a caller's variable: the gradient is named after it
    return value


def check_complex(what: str, sources: Any) -> None:
    """Raise an error unless all sources are complex."""
    for x in flatten(sources)[0]:
        if not x.type.is_complex:
            raise GradientError(f"{what}: holomorphic functions take complex numbers, and this argument is {x.type}; cast it first")


def scalar_value(fn: Callable[..., Any], value: Any, holomorphic: bool = False) -> Operand:
    if type(value) is Tensor and not holomorphic and value.buffer.dtype.kind == "f" and not value.buffer.ndim:
        return value
    what = name_of(fn)
    operand = as_operand(value) if isinstance(value, Operand) else None if flatten(value)[1].leaves != 1 else tensor(value)
    if operand is not None and operand.type.is_complex != holomorphic and not operand.type.shape and operand.type.is_inexact:
        hint = "with holomorphic it must be complex" if holomorphic else "take its real part or abs, or give holomorphic=True"
        raise GradientError(f"{what}: only real scalars have gradients, and its result is {operand.type}; {hint}")
    if operand is None or operand.type.shape or not operand.type.is_inexact:
        got = operand.type if operand is not None else type(value).__name__
        raise GradientError(f"{what}: only floating-point scalars have gradients, and its result is {got}; sum it, or use vjp")
    return operand


def place(fn: Callable[..., Any], argument: int, tree: TreeDef, leaf: int) -> str:
    """Name a leaf of an argument. Finding its path walks over the whole structure, so it is only done for an error."""
    return f"{name_of(fn)}: argument {argument}{tree.paths()[leaf]}"


def name_of(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))
