"""tf.function: adjit's functions with TensorFlow's rules.

Python numbers are static: each value has its own trace. Arguments are bound to the parameters first, so that `f(1)` and `f(x=1)` share
a trace; with an `input_signature` they are converted and checked. Inside, values are tensors with TensorFlow's interface, and results
are converted to such tensors too.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import cycle
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.errors import AdjitError, TraceError, UnplannedError, raised_as
from adjit.ir.func import Value
from adjit.ir.operand import Operand
from adjit.ir.types import F32, I32, I64
from adjit.runtime.concrete import ConcreteFunction as Compiled
from adjit.runtime.config import config
from adjit.runtime.function import Function as RuntimeFunction
from adjit.runtime.function import eager_call
from adjit.runtime.general import Policy
from adjit.runtime.methods import bind
from adjit.runtime.recording import listening
from adjit.runtime.shortcut import Shortcut
from adjit.runtime.signature import Static, is_traced
from adjit.runtime.variable import Variable as RuntimeVariable
from adjit.tracer.autograph.convert import convert
from adjit.tracer.frames import is_from_handler, raised_at, recurs_at
from adjit.tracer.given import Given
from adjit.tracer.pytree import TreeDef, flatten, tree_map
from adjit.tracer.trace import Trace, current_trace

from .autograph import Feature
from .concrete import UNBOUND, ConcreteFunction, fitting, signature_text
from .data import Dataset
from .errors import translate
from .feeding import ARGUMENT, Wanted, fed, feeding, read
from .iterators import ADVICE, DatasetIterator
from .loop_rules import TensorLoops
from .ranges import Range
from .specs import TensorSpec, VariableSpec
from .stepping import Steps
from .tensor import EagerTensor, SymbolicTensor, convert_to_tensor, dress, dress_structure
from .variable import Variable

PYTHON = (bool, int, float, complex, str, bytes)
DIFFERENT = (5, 7, 11, 13, 17, 19, 23)  # example sizes for those that a template leaves open


class Body:
    """Adapts the user's function for tracing: its arguments get TensorFlow's interface, its results are converted to tensors."""

    def __init__(self, fn: Callable[..., Any], autograph: bool, prints: bool = False) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.autograph = autograph
        self.prints = prints  # whether Python's print shows values at every call, not once while tracing
        self.sizes_known = True  # whether traces know the sizes of all arguments in TensorFlow too
        self.feeds: list[Dataset] = []  # datasets from outside that the function iterates over

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        fn = self.fn
        if inspect.isgeneratorfunction(fn):
            raise NotImplementedError("generators are not supported by tf.function: return a list, or loop in the function")
        if trace is not None:
            dress_trace(trace, self.sizes_known)
            trace.root().python_prints = not self.prints
            fn = convert(fn) if self.autograph else fn
        args, kwargs = tree_map(dress_argument, (args, kwargs))
        fed_in = kwargs.pop(ARGUMENT, ())
        given = Given((args, kwargs))
        with fed(self.feeds, fed_in) if trace is not None else nullcontext():
            result = fn(*args, **kwargs)
        if trace is not None and any(True for _ in given.changed()):
            called = f"{getattr(self.fn, '__name__', self.fn)}{inspect.signature(self.fn)}"
            raise ValueError(
                f"{called} should not modify its Python input arguments, such as lists and dicts. Modifying a copy is allowed."
            )
        return tree_map(as_result, result)


def dress_trace(trace: Trace, sizes_known: bool = True) -> None:
    """From now on, values of this trace are created with TensorFlow's interface, and its loops follow TensorFlow's rules."""
    trace.value_class = SymbolicTensor
    trace.root().loop_rules = trace.root().loop_rules or TensorLoops(sizes_known)
    trace.root().python_prints = True


def dress_argument(x: Any) -> Any:
    if type(x) is RuntimeVariable:  # the placeholder for a variable that is an argument of the call
        x.__class__ = Variable
        return x
    return x.value if isinstance(x, Static) else dress(x)


def with_static_numbers(x: Any) -> Any:
    """An argument whose Python numbers and strings are part of the key."""
    return static_number(x) if isinstance(x, Operand) or type(x) in PYTHON else tree_map(static_number, x)


def static_number(x: Any) -> Any:
    """A Python number or string, or an object that defines which others it shares a trace with (`__tf_tracing_type__`)."""
    if type(x) in PYTHON:
        return Static(x)
    tracing_type = None if isinstance(x, Operand) else getattr(type(x), "__tf_tracing_type__", None)
    return x if tracing_type is None else Static(x, tracing_type(x, None))


def as_result(x: Any) -> Any:
    if isinstance(x, Operand):
        x = x.read_operand() if isinstance(x, RuntimeVariable) else x
        if x.weak and isinstance(x, Value):  # a Python number computed by a loop or a branch
            return dress(ops.cast(x, I32 if x.type.dtype == I64 else F32 if x.type.is_float else x.type.dtype))
        return dress(x)
    if isinstance(x, Range):
        return x.made_tensor()
    return convert_to_tensor(x) if isinstance(x, bool | int | float | np.ndarray | np.generic) else x


def template_of(kind: Any) -> Any:
    """The template of an argument, from its entry in a trace's key."""
    if isinstance(kind[0], np.dtype):
        return TensorSpec(kind[1], kind[0])
    return VariableSpec(kind[1].shape, kind[1].dtype, kind[2]) if kind[0] is RuntimeVariable else Static(kind[1])


def open_axes(arguments: Sequence[Any]) -> list[tuple[int, int]]:
    """The axes of arrays that the templates among arguments, or in an `input_signature`, leave open."""
    arrays = [leaf for leaf in flatten(tuple(arguments))[0] if is_traced(leaf) or type(leaf) is TensorSpec]
    return [(i, a) for i, leaf in enumerate(arrays) if type(leaf) is TensorSpec for a, n in enumerate(leaf.shape or ()) if n is None]


def prints_values(options: Any) -> bool:
    """Whether AutoGraph's optional features convert Python's functions, of which `print` is one."""
    chosen = options if isinstance(options, list | tuple | set) else (options,)
    return any(option in (Feature.ALL, Feature.BUILTIN_FUNCTIONS) for option in chosen)


def checked_signature(signature: Sequence[Any]) -> tuple[Any, ...]:
    """An `input_signature`, which is made of TensorSpecs."""
    leaves = flatten(tuple(signature))[0]
    if any(isinstance(leaf, VariableSpec) for leaf in leaves):
        raise TypeError(f"input_signature doesn't support VariableSpec. Received input_signature: {signature}.")
    if not all(isinstance(leaf, TensorSpec) or hasattr(leaf, "element_spec") for leaf in leaves):
        raise TypeError(f"input_signature must be a possibly nested sequence of TensorSpec objects, got {signature}.")
    return tuple(signature)


class Function(RuntimeFunction):
    """The result of `@tf.function`."""

    def __init__(
        self, fn: Callable[..., Any], input_signature: Sequence[Any] | None = None, autograph: bool = True, reduce_retracing: bool = False,
        options: Any = None,
    ) -> None:  # fmt: skip
        dynamic = "auto" if reduce_retracing and config.dynamic is not False else False
        super().__init__(
            Body(fn, autograph, prints_values(options)), getattr(fn, "__name__", None), reduce_retracing=reduce_retracing, dynamic=dynamic
        )
        if input_signature is not None and config.dynamic is not False:
            self._policy = Policy(dynamic, open_axes(input_signature))
        self._fn.sizes_known = not self._policy  # type: ignore[attr-defined]
        self._user = fn
        self._input_signature = None if input_signature is None else checked_signature(input_signature)
        self._autograph = autograph
        self._reduce, self._options = reduce_retracing, options
        self._parameters = inspect.signature(fn)
        parameters = self._parameters.parameters
        self._method = list(parameters)[:1] in (["self"], ["cls"])
        simple = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values())
        if self._input_signature is not None:
            open_ones = list(parameters.values())[self._method :][len(self._input_signature) :]
            missing = [p.name for p in open_ones if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            for p in parameters.values():
                if p.kind is p.KEYWORD_ONLY and p.default is p.empty:
                    raise TypeError(f"Since input_signature is defined, keyword-only parameter `{p.name}` must have a default value")
            if missing:
                names = ", ".join(missing)
                raise TypeError(f"input_signature missing type constraint for {names}: TensorSpecs are still required for {names}")
        self._arity = len(parameters) - self._method if simple else -1  # with this number of positional arguments, binding is skipped
        self._steps = Steps(self._name)
        self._described: weakref.WeakValueDictionary[Any, ConcreteFunction] = weakref.WeakValueDictionary()  # by trace

    def _new_shortcut(self) -> Shortcut:
        return Shortcut(self, EagerTensor, EagerTensor)

    def _arguments(self) -> tuple[Any, ...]:
        return self._user, self._input_signature, self._autograph, self._reduce, self._options

    # ---- calls

    def _enter(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> Any:
        outermost = current_builder() is None and not config.eager
        try:
            if outermost and any(type(x) is DatasetIterator for x in (*args, *kwargs.values())):
                # not traced first: a trace that stops in the middle would have taken elements of other iterators
                self._steps.add(DatasetIterator, UnplannedError(ADVICE))
                return self._stepwise(args, kwargs, instance)
            if outermost and self._steps and self._key(args, kwargs, instance) in self._steps:
                return self._stepwise(args, kwargs, instance)
            try:
                return self._run(args, kwargs, instance)
            except UnplannedError as error:
                if not outermost or is_from_handler(error):
                    raise
                self._steps.add(self._key(args, kwargs, instance), error)
            return self._stepwise(args, kwargs, instance)
        except AdjitError as error:
            translate(error)
            raise

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> Any:
        if current_builder() is None and not config.eager:
            if kwargs or len(args) != self._arity or self._input_signature is not None or not all(type(a) is EagerTensor for a in args):
                args, kwargs = self._bound(args, kwargs, instance)
            elif not listening.recorders:
                args = tuple([a.buffer for a in args])  # no tape is recording: passing only the arrays is the fastest path
        elif self._input_signature is not None:
            args, kwargs = self._signed(*self._positional(args, kwargs, instance))
        return dress_structure(self._fed(args, kwargs, instance))

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> Any:
        return self._taken_apart(*self._bound(args, kwargs, instance)).key

    def _stepwise(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> Any:
        """Run op by op, under the rule that variables are created once."""
        if self._input_signature is not None:
            args, kwargs = self._signed(*self._positional(args, kwargs, instance))
        try:
            with self._creation.watched(set(), is_stepwise=True):
                return dress_structure(eager_call(bind(self._fn, instance), args, kwargs))
        except UnboundLocalError as error:  # a compiled loop without iterations raises the same
            raise raised_as("UnboundLocalError")(str(error)).at(raised_at(error.__traceback__)) from None
        except RecursionError as error:
            raise TraceError(f"{self._name}: infinite recursion").at(recurs_at(error.__traceback__)) from None

    def _fed(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> Any:
        """Call the function with the elements of the datasets that it reads."""
        enter = super()._enter
        if current_builder() is not None or config.eager:
            return enter(args, kwargs, instance)
        return self._reading(lambda fed: enter(args, {**kwargs, **fed}, instance))

    def _reading(self, go: Callable[[dict[str, Any]], Any]) -> Any:
        """Trace or call, with the elements of the datasets that the function reads as an additional argument."""
        body = self._fn
        assert isinstance(body, Body)
        feeding.can_retrace = True
        try:
            while True:
                try:
                    return go({ARGUMENT: tuple(map(read, body.feeds))} if body.feeds else {})
                except Wanted as wanted:
                    body.feeds.append(wanted.dataset)
        finally:
            feeding.can_retrace = False

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments as the cache distinguishes them: by parameter, with defaults, Python numbers by value."""
        if kwargs or len(args) != self._arity:
            args, kwargs = self._positional(args, kwargs, instance)
        if self._input_signature is not None:
            args, kwargs = self._signed(args, kwargs)
        return tuple(map(with_static_numbers, args)), {name: with_static_numbers(x) for name, x in kwargs.items()}

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            bound = self._parameters.bind(*(() if instance is None else (instance,)), *args, **kwargs)
        except TypeError as error:
            received = f"Received args: {args!r} and kwargs: {kwargs!r} for signature: {self._name}{self._parameters}"
            raise TypeError(f"{UNBOUND} due to `{error}`. {received}.") from None
        bound.apply_defaults()
        return bound.args[0 if instance is None else 1 :], bound.kwargs

    def _signed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        signature = self._input_signature
        assert signature is not None
        given = (*args, *kwargs.values())
        if len(given) < len(signature):
            raise TypeError(f"{UNBOUND}: {self._name} has a signature of {len(signature)} inputs, but got {len(given)}")
        names = [n for n in self._parameters.parameters if not (self._method and n in ("self", "cls"))]
        names += [f"{names[-1] if names else 'args'}_{i}" for i in range(len(names), len(signature))]  # of a *parameter
        checked = [fitting(name, spec, x) for name, spec, x in zip(names, signature, given, strict=False)]
        if len(signature) <= len(args):  # keyword-only parameters are not part of it
            return (*checked, *args[len(signature) :]), kwargs
        return (*checked, *given[len(signature) :]), {}

    # ---- inspection

    def _specialization(self, owner: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:  # type: ignore[override] # TensorFlow's has more to say
        """One trace, for these arguments or for the `TensorSpec`s given in their place."""
        if not args and not kwargs and self._input_signature is not None:
            args = self._input_signature
        given, names = self._positional(args, kwargs, instance)
        compiled = self._for_specs(given, names, instance)
        wanted = tuple(map(with_static_numbers, given)), {name: with_static_numbers(x) for name, x in names.items()}
        found = ConcreteFunction(self, *wanted, compiled, instance)
        return self._described.setdefault((id(compiled), id(instance), str(found.structured_input_signature)), found)

    def _for_specs(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> Compiled:
        """The trace for templates: for all sizes where they leave them open, if the function permits it, else for sizes of 1."""
        axes = open_axes((args, kwargs))
        if axes and config.dynamic is not False:
            for sizes in (DIFFERENT, [DIFFERENT[0]] * len(DIFFERENT)):
                try:
                    found = self._for_sizes(args, kwargs, instance, sizes, axes)
                except (AdjitError, ValueError, TypeError):  # the example sizes do not fit; an error of the function itself is raised again
                    continue
                if found.convention.is_general:
                    return found
        return self._for_sizes(args, kwargs, instance, [1], ())

    def _for_sizes(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any, sizes: Sequence[int], axes: Sequence[tuple[int, int]]
    ) -> Compiled:
        """The trace for templates whose open sizes are these; `axes` become symbols."""
        size = cycle(sizes)
        examples, named = tree_map(lambda x: x.example(lambda: next(size)) if isinstance(x, TensorSpec) else x, (args, kwargs))
        taken = self._bound(examples, named, instance)

        def made(fed: dict[str, Any]) -> Compiled:
            signature = self._taken_apart(taken[0], {**taken[1], **fed})
            if axes:
                self._policy.leave_open(signature, axes, always=True)
            return self._concrete(signature, None, instance)

        compiled: Compiled = self._reading(made)
        return compiled

    @property
    def python_function(self) -> Callable[..., Any]:
        return self._user

    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        return self._input_signature

    @property
    def function_spec(self) -> inspect.Signature:
        return self._parameters

    def experimental_get_tracing_count(self) -> int:
        return self.trace_count + sum(own.trace_count for own in self._instances.functions())

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The signature of each trace."""
        own: list[Any] = [self, *self._instances.functions()]
        return "\n\n".join(function._trace_text(*key, compiled) for function in own for key, compiled in function._cache.items())

    def _trace_text(self, tree: TreeDef, kinds: Sequence[Any], compiled: Compiled) -> str:
        args, kwargs = tree.unflatten(map(template_of, kinds))
        wanted = self._parameters.bind_partial(*((None,) if self._method else ()), *args, **kwargs).arguments
        return signature_text(self._parameters, dict(list(wanted.items())[self._method :]), compiled)

    def __repr__(self) -> str:
        return f"<tf.function {getattr(self._user, '__qualname__', self._name)}, {self.cache_size} compiled>"


Function.kind = Function


def function(
    func: Callable[..., Any] | None = None, input_signature: Sequence[Any] | None = None, autograph: bool = True,
    jit_compile: bool | None = None, reduce_retracing: bool = False, experimental_implements: Any = None,
    experimental_autograph_options: Any = None, experimental_attributes: Any = None, experimental_relax_shapes: Any = None,
    experimental_compile: bool | None = None, experimental_follow_type_hints: Any = None,
) -> Any:  # fmt: skip
    """Compile a Python function: `@tf.function`, `@tf.function(input_signature=[...])` or `tf.function(f)`.

    Everything is compiled to native code; `jit_compile` has no effect. An unknown dimension of a signature is compiled for all sizes, where
    that is possible (docs/dynamic.md); with `reduce_retracing`, so are dimensions in which calls differ.
    """

    def decorate(fn: Callable[..., Any]) -> Function:
        return Function(fn, input_signature, autograph, reduce_retracing, experimental_autograph_options)

    return decorate if func is None else decorate(func)
