"""`custom_gradient`: a function whose derivative is written by the user.

Owns the protocol (`f(*args)` returns the result and `grad_fn`, which maps cotangents of the result to cotangents of the arguments) and its
two forms: eagerly, a tape records one statement that calls `grad_fn`; in a trace, `grad_fn` is traced immediately, into the block of a
`custom_gradient` op.

The intermediate values of `f` are recorded as usual but are not connected to the result: gradients go through `grad_fn`. They are connected
to what `grad_fn` closes over, so that higher-order derivatives are those of `grad_fn`.

Eagerly, `f` may compute with NumPy, SciPy or any other library. Higher derivatives then require that `grad_fn` closes over tensors only:
derivatives of a number or an array would be lost, so they raise an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from adjit.ir.errors import GradientError
from adjit.ir.func import Block, Value
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.ops.base import Op, with_attributes
from adjit.ir.ops.complex import conj
from adjit.ir.ops.custom import NO_FORWARD, CustomGradient
from adjit.ir.tracebacks import boundary
from adjit.ir.types import TensorType
from adjit.tracer.convert import present
from adjit.tracer.frames import definition
from adjit.tracer.pytree import TreeDef, flatten
from adjit.tracer.trace import Trace, current_trace

from .conversion import as_called
from .linear import transposed
from .recording import Recorder, join, leave, listening
from .tensor import Tensor, tensor, wrap
from .variable import Store, Variable

Present = Callable[[Operand], Operand]
Convert = Callable[[Any], Any]


def custom_gradient(f: Callable[..., Any], present: Present = present, convert: Convert = tensor) -> Callable[..., Any]:
    """Return a function that computes `f(*args)[0]` and is differentiated by `f(*args)[1]`, called `grad_fn` below.

    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(x)
    ...     return np.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    `grad_fn` takes one cotangent for each array of the result and returns one gradient (or None) for each positional argument, then for
    each array among the keyword arguments, in the order of the call. If `f` reads trainable variables, `grad_fn` must accept `variables=`
    and return `(gradients, gradients of the variables)`.
    """

    @boundary
    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return GradientCall(f, args, kwargs, present, convert).run()

    return differentiated


class GradientCall:
    """One call: which of its arguments are differentiated, and how the user's gradients are assigned to them."""

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], present: Present, convert: Convert = tensor
    ) -> None:
        self.f = f
        self.name = str(getattr(f, "__name__", type(f).__name__))
        self.present = present  # gives operands the interface of the frontend
        self.convert = convert  # makes tensors of numbers and arrays, with the frontend's dtypes
        positional, tree = flatten(args)
        keyword, keyword_tree = flatten(kwargs)
        self.given_args = [self.argument(x) for x in positional]
        self.given_kwargs = [self.argument(x) for x in keyword]
        self.trees = (tree, keyword_tree)
        # one gradient for each of these, in the order in which `grad_fn` returns them
        self.places = [*self.given_args, *(x for x in self.given_kwargs if isinstance(x, Operand))]
        self.inputs = [x for x in self.places if isinstance(x, Operand) and x.type.is_inexact]
        self.variables: list[Variable] = []
        self.left = False  # whether `f` took values out of tensors
        self.out_tree: TreeDef | None = None
        self.grad_fn: Callable[..., Any] = lambda *_: None

    def argument(self, x: Any) -> Any:
        """Return arrays and variables in the form that users hold; numbers and everything else unchanged."""
        if isinstance(x, Operand):
            return self.present(as_operand(x))
        return self.present(tensor(x)) if isinstance(x, np.ndarray | np.generic) else x

    def run(self) -> Any:
        tree, keyword_tree = self.trees
        reads = Reads()
        join(reads)
        try:
            out = as_called(self.f)(*tree.unflatten(self.given_args), **keyword_tree.unflatten(self.given_kwargs))
        finally:
            leave(reads)
        if not (isinstance(out, tuple | list) and len(out) == 2 and callable(out[1])):
            raise self.wrong("a custom_gradient function must return its result and a function: (result, grad_fn)")
        result, self.grad_fn = out
        self.left = bool(reads.exits)
        for x, taken in reads.exits:  # these may also be used outside this function, where its derivative does not apply
            for recorder in listening.recorders if taken is not None else ():
                if recorder.watches(x):
                    recorder.left(x, None, taken)
        self.variables = [v for v in reads.variables.values() if not any(reads.values[v.store] is x for x in self.inputs)]
        self.inputs += [reads.values[v.store] for v in self.variables]
        leaves, self.out_tree = flatten(result)
        values = [as_operand(self.convert(leaf)) for leaf in leaves]
        trace = current_trace()
        results = self.recorded(values) if trace is None else self.emitted(trace, values)
        return self.out_tree.unflatten([self.present(r) for r in results])

    def wrong(self, what: str) -> GradientError:
        return rule_error(self.name, self.f, what)

    # ---- the two forms

    def recorded(self, values: Sequence[Operand]) -> list[Operand]:
        """Eagerly: return results with new identities, recorded by tapes as those of one statement."""
        results: list[Operand] = []
        for value in values:
            assert isinstance(value, Tensor)
            result = wrap(value.buffer)
            result.__class__ = type(value)
            results.append(result)
        op = EagerCustomGradient(self)
        for recorder in listening.recorders:
            recorder.applied(op, tuple(self.inputs), tuple(results))
        return results

    def emitted(self, trace: Trace, values: Sequence[Operand]) -> list[Operand]:
        """In a trace: emit a statement that holds the traced `grad_fn`."""
        region = trace.region()
        region.phase = "backward"
        names = [f"{v.name}.bar" if isinstance(v, Value) and v.name else None for v in values]
        cotangents = [region.parameter(v.type, name) for v, name in zip(values, names, strict=True) if v.type.is_inexact]
        with region:
            given = iter(cotangents)
            found = self.gradients([self.present(next(given)) if v.type.is_inexact else None for v in values])
            pulled = [i for i, d in enumerate(found) if d is not None]
            block = region.finish([d for d in found if d is not None])
        if region.written:
            raise self.wrong("the gradient function of a custom_gradient must not assign to variables")
        own = set(map(id, cotangents))
        read = [v for v in block.free() if id(v) not in own]
        op = CustomGradient.of(self.name, len(self.inputs), len(values), pulled, Block([*read, *cotangents], block.stmts, block.results))
        return list(trace.emit(op, (*self.inputs, *values, *read)))

    def check_order(self) -> None:
        """Refuse to differentiate `grad_fn` by tapes that cannot follow what it closes over."""
        if not self.left or not any(recorder.watches(x) for recorder in listening.recorders for x in self.inputs):
            return
        lost = next((name for name, value in closed_over(self.grad_fn) if not followed(value)), None)
        if lost is not None:
            raise self.wrong(
                f"its gradient is being differentiated, but its gradient function reads {lost}, which no tape has recorded, because the "
                "function converts tensors to NumPy or Python; compute the gradient from the arguments, with functions of NumPy or adjit"
            )

    # ---- the user's gradients

    def gradients(self, cotangents: Sequence[Operand | None]) -> list[Operand | None]:
        """Call `grad_fn`, check its results, and return one gradient for each of `inputs`."""
        grad_fn = as_called(self.grad_fn)
        cotangents = [None if c is None else self.present(conj(c)) if c.type.is_complex else c for c in cotangents]  # TensorFlow's
        if self.variables:
            if not takes_variables(self.grad_fn):
                names = ", ".join(repr(v.name) for v in self.variables)
                raise TypeError(
                    "If using @custom_gradient with a function that uses variables, then grad_fn must accept a 'variables' keyword "
                    f"argument: {self.name} reads {names}"
                )
            pair = grad_fn(*cotangents, variables=self.variables)
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise self.wrong("with variables, grad_fn must return (gradients, gradients of the variables)")
            found, of_variables = pair
            theirs = listed(of_variables)
        else:
            found, theirs = grad_fn(*cotangents), []
        mine = listed(found)
        if len(mine) != len(self.places):
            extra = len(self.places) - len(self.given_args)
            hint = f" ({extra} of them for keyword arguments, which count too; give None where there is none)" if extra else ""
            raise self.wrong(f"grad_fn must return {len(self.places)} gradients{hint}, but returned {len(mine)}")
        if len(theirs) != len(self.variables):
            raise self.wrong(f"grad_fn must return {len(self.variables)} gradients of variables, but returned {len(theirs)}")
        kept = [d for d, x in zip(mine, self.places, strict=True) if isinstance(x, Operand) and x.type.is_inexact]
        return [self.checked(d, x.type) for d, x in zip([*kept, *theirs], self.inputs, strict=True)]

    def checked(self, d: Any, type: TensorType) -> Operand | None:
        if d is None:
            return None
        operand = Literal(d, type) if isinstance(d, bool | int | float | complex) and not type.shape else as_operand(d)
        if operand.type.shape != type.shape:
            raise self.wrong(f"grad_fn returned a gradient of type {operand.type} for an argument of type {type}")
        return conj(operand if operand.type.dtype == type.dtype else operand.astype(type.dtype))


def rule_error(name: str, fn: Callable[..., Any], what: str) -> GradientError:
    """An error in the derivative that a user has defined for the function `name`, located at the definition of `fn`."""
    return GradientError(f"{name}: {what}").at(definition(fn))


@with_attributes
class EagerCustomGradient(Op, abstract=True):
    """A finished call as a single op, as eager tapes see it."""

    takes_stored = True
    call: GradientCall

    name = "custom_gradient"  # has no textual form: it never appears in the IR

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        """Forward mode: transpose `grad_fn` with respect to its cotangents."""
        floats = [r for r in results if r.type.is_inexact]

        def pull(cotangents: list[Operand]) -> list[Operand | None]:
            given = iter(cotangents)
            return self.call.gradients([self.call.present(next(given)) if r.type.is_inexact else None for r in results])

        found = iter(transposed(pull, floats, tangents, f"{self.call.name}: {NO_FORWARD}"))
        return [next(found) if r.type.is_inexact else None for r in results]

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: Sequence[bool]
    ) -> list[Operand | None]:
        self.call.check_order()
        given = [self.seed(c, r) if r.type.is_inexact else None for c, r in zip(cotangents, results, strict=True)]
        return self.call.gradients(given)

    def seed(self, cotangent: Operand | None, result: Operand) -> Operand:
        return self.call.present(result.literal(0.0, result.type) if cotangent is None else cotangent)


class Reads(Recorder):
    """Records which trainable variables are read, and whether values are taken out of tensors."""

    excuses = True

    def __init__(self) -> None:
        self.exits: list[tuple[Operand, object]] = []  # tensors, and what was taken out of them
        self.variables: dict[Store, Variable] = {}
        self.values: dict[Store, Operand] = {}

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        pass

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args

    def read(self, variable: Variable, value: Operand) -> None:
        if variable.trainable:
            self.variables.setdefault(variable.store, variable)
            self.values.setdefault(variable.store, value)

    def last_read(self, store: Store) -> Operand | None:
        return self.values.get(store)

    def left(self, tensor: Operand, location: Any, out: object) -> None:
        self.exits.append((tensor, out))


def closed_over(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The variables of outer functions that a gradient function reads, and those that functions among them read."""
    if hasattr(function, "saved"):
        yield "the values saved for it", function.saved
        return
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(function.__code__.co_freevars if cells else (), cells, strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if isinstance(value, FunctionType) and value is not function:
            yield from closed_over(value)
        else:
            yield name, value


def followed(value: Any) -> bool:
    """Whether derivatives with respect to a closed-over value are right: it consists of tensors, or has no derivatives."""
    return all(isinstance(leaf, KEPT) for leaf in flatten(value)[0])


KEPT = (Operand, Variable, ModuleType, FunctionType, type, int, str, bytes, np.ufunc, BuiltinFunctionType, TreeDef)


def listed(gradients: Any) -> list[Any]:
    """Return the result of `grad_fn` as a list with one entry for each argument; a single gradient becomes a list of one."""
    return flatten(gradients, is_leaf=lambda x: x is None)[0]


def takes_variables(function: Callable[..., Any]) -> bool:
    import inspect  # noqa: PLC0415 - slow to import, and few custom gradients read variables

    parameters = inspect.signature(function).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)
