"""`custom_jvp`: a function whose forward derivative is written by the user; reverse mode is its transpose.

Owns the protocol (`f.defjvp(rule)`: `rule(primals, tangents)` returns the result and its tangent) and its two forms. Eagerly, a tape
records one statement that calls the rule when derivatives are taken. In a trace the rule is traced immediately, into the block of a
`custom_gradient` op, next to its transpose.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from adjit.ir.errors import GradientError
from adjit.ir.func import Block, Value
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.ops.base import Op, with_attributes
from adjit.ir.ops.custom import NO_REVERSE, CustomGradient
from adjit.tracer.pytree import TreeDef, flatten
from adjit.tracer.trace import Trace, current_trace

from .conversion import as_called
from .custom_gradient import rule_error
from .linear import transposed
from .recording import listening, suspended
from .tensor import Tensor, tensor, wrap

Rule = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, Any]]


class CustomJvp:
    """A function with a user-defined forward derivative, created by `custom_jvp`."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn
        self.name = str(getattr(fn, "__name__", type(fn).__name__))
        self.rule: Rule | None = None

    def defjvp(self, rule: Rule) -> Rule:
        """Set the derivative: `rule(primals, tangents)` takes two tuples like the arguments and returns `(result, its tangent)`."""
        self.rule = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.rule is None:
            raise rule_error(self.name, self.fn, f"a custom_jvp function needs its derivative: decorate one with @{self.name}.defjvp")
        return JvpCall(self, self.rule, self.positional(args, kwargs)).run()

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position, as the rule takes them."""
        if not kwargs:
            return args
        import inspect  # noqa: PLC0415 - slow to import, and most calls have no keywords

        bound = inspect.signature(self.fn).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            raise TypeError(
                f"{self.name}: keyword-only arguments ({names}) are not supported by custom_jvp, whose rule takes positional arguments"
            )
        return bound.args

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        raise TypeError(f"{self.name}: custom_jvp takes functions, not methods, whose object has no tangent; make it a static function")


def custom_jvp(fn: Callable[..., Any]) -> CustomJvp:
    """Return a function whose forward-mode derivative is set by `defjvp`; reverse mode is derived from it.

    >>> @custom_jvp
    ... def cube(x):
    ...     return x**3
    >>> @cube.defjvp
    ... def cube_jvp(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return cube(x), 3.0 * x * x * dx

    The rule must be linear in the tangents. Arguments that carry no derivative (integers, strings) have a tangent of 0.0.
    """
    return CustomJvp(fn)


class Unfolding(threading.local):
    """The functions whose rules this thread is tracing: a rule may call its own function."""

    functions: tuple[CustomJvp, ...] = ()

    @contextmanager
    def of(self, function: CustomJvp) -> Iterator[None]:
        before = self.functions
        self.functions = (*before, function)
        try:
            yield
        finally:
            self.functions = before


unfolding = Unfolding()


class JvpCall:
    """One call: its arguments, and the rule applied to tangents of the floating-point arrays among them."""

    def __init__(self, function: CustomJvp, rule: Rule, args: tuple[Any, ...]) -> None:
        self.function = function
        self.name = function.name
        self.rule = rule
        leaves, self.tree = flatten(args)
        self.leaves = [argument(x) for x in leaves]
        self.places = [i for i, x in enumerate(self.leaves) if isinstance(x, Operand) and x.type.is_inexact]
        self.inputs: list[Operand] = [self.leaves[i] for i in self.places]
        self.out_tree: TreeDef | None = None
        self.results: list[Operand] = []

    def run(self) -> Any:
        trace = current_trace()
        if trace is None:
            with suspended():  # tapes record the call as a whole
                out = as_called(self.function.fn)(*self.tree.unflatten(self.leaves))
        else:
            out = as_called(self.function.fn)(*self.tree.unflatten(self.leaves))
        leaves, self.out_tree = flatten(out)
        values = [as_operand(leaf if isinstance(leaf, Operand) else tensor(leaf)) for leaf in leaves]
        return self.out_tree.unflatten(self.recorded(values) if trace is None else self.emitted(trace, values))

    def recorded(self, values: Sequence[Operand]) -> list[Operand]:
        for value in values:
            assert isinstance(value, Tensor)
            self.results.append(wrap(value.buffer))
        for recorder in listening.recorders:
            recorder.applied(EagerCustomJvp(self), tuple(self.inputs), tuple(self.results))
        return self.results

    def emitted(self, trace: Trace, values: Sequence[Operand]) -> list[Operand]:
        from adjit.passes.autodiff.transpose import transpose  # noqa: PLC0415 - with the passes that it needs, too much for `import adjit`

        self.results = list(values)
        count = len(self.inputs)
        if self.function in unfolding.functions:
            op = CustomGradient.deferred(self.name, count, len(values), range(count), self.derivatives)
            return list(trace.emit(op, (*self.inputs, *values, *self.inputs)))
        region = trace.region()
        dots = [region.parameter(x.type, f"{x.name}.dot" if isinstance(x, Value) and x.name else None) for x in self.inputs]
        with region, unfolding.of(self.function):
            block = region.finish(self.tangents(self.inputs, dots))
        if region.written:
            raise self.wrong("the rule of a custom_jvp must not assign to variables")
        own = set(map(id, dots))
        read = [v for v in block.free() if id(v) not in own]
        push = Block([*read, *dots], block.stmts, block.results)
        pull, pulled = transpose(push, len(read), self.name)
        op = CustomGradient.of(self.name, count, len(values), pulled, pull, push)
        return list(trace.emit(op, (*self.inputs, *values, *read)))

    def derivatives(self) -> tuple[Block, Block]:
        """Return the blocks of a call made by the rule itself, traced on demand: the rule as a function of the inputs alone."""
        from adjit.passes.autodiff.transpose import transpose  # noqa: PLC0415 - as above

        trace = Trace(self.name)
        trace.capture = None  # arrays become constants: a block has no hidden parameters
        primals, dots = ([trace.parameter(x.type) for x in self.inputs] for _ in range(2))
        with suspended(), trace, unfolding.of(self.function):
            block = trace.finish(self.tangents(primals, dots))
        if trace.cells:
            raise self.wrong("its rule reads a variable; give it to the function as an argument")
        push = Block([*primals, *dots], block.stmts, block.results)
        pull, pulled = transpose(push, len(primals), self.name)
        found = dict(zip(pulled, pull.results, strict=True))
        whole = [found.get(i, Literal(0.0, x.type)) for i, x in enumerate(self.inputs)]
        return Block(pull.params, pull.stmts, whole), push

    def tangents(self, inputs: Sequence[Operand], dots: Sequence[Operand]) -> list[Operand]:
        """Return the user's tangents of the floating-point results."""
        primals, directions = list(self.leaves), [0.0 for _ in self.leaves]
        for i, x, d in zip(self.places, inputs, dots, strict=True):
            primals[i], directions[i] = x, d  # type: ignore[call-overload]
        pair: Any = as_called(self.rule)(self.tree.unflatten(primals), self.tree.unflatten(directions))
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise self.wrong(f"a rule of custom_jvp must return (result, tangent), not {type(pair).__name__}")
        found, tree = flatten(pair[1])
        if tree != self.out_tree:
            raise self.wrong(f"the tangent must have the structure of the result, {self.out_tree}, not {tree}")
        return [self.checked(d, y) for d, y in zip(found, self.results, strict=True) if y.type.is_inexact]

    def checked(self, d: Any, result: Operand) -> Operand:
        tangent = result.literal(d, result.type) if isinstance(d, bool | int | float | complex) else as_operand(d)
        if tangent.type != result.type:
            raise self.wrong(f"the tangent of a result of type {result.type} must have the same type, not {tangent.type}")
        return tangent

    def wrong(self, what: str) -> GradientError:
        return rule_error(self.name, self.rule, what)


@with_attributes
class EagerCustomJvp(Op, abstract=True):
    """A finished call as a single op, as eager tapes see it."""

    takes_stored = True
    call: JvpCall

    name = "custom_jvp"  # has no textual form: it never appears in the IR

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        given = [held(x.literal(0.0, x.type) if d is None else d) for x, d in zip(args, tangents, strict=True)]
        found = iter(self.call.tangents(args, given))
        return [next(found) if r.type.is_inexact else None for r in results]

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: Sequence[bool]
    ) -> list[Operand | None]:
        """Reverse mode: transpose the rule with respect to its tangents."""
        given = [c for c, r in zip(cotangents, results, strict=True) if r.type.is_inexact]
        return transposed(lambda dots: self.call.tangents(args, dots), args, given, f"{self.call.name}: {NO_REVERSE}")


def argument(x: Any) -> Any:
    """Return arrays as tensors and variables as their values; numbers and everything else unchanged."""
    if isinstance(x, Operand):
        return as_operand(x)
    return tensor(x) if isinstance(x, np.ndarray | np.generic) else x


def held(x: Operand) -> Operand:
    """Return a (co)tangent in the form that the user's rule takes."""
    return x if isinstance(x, Value | Tensor) else tensor(x)
