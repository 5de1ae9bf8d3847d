"""`@function`: trace once per signature, compile, and call.

Owns the rules of tracing (nested functions are inlined, two threads that make the same first call compile once) and the fast path of a
call through Python.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from adjit.ir.active import current_builder, unwinding
from adjit.ir.guards import Recording, recording
from adjit.ir.locks import new_lock
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.ir.tracebacks import boundary, trim
from adjit.ir.types import NUMBERS, Shape
from adjit.tracer.frames import is_from_handler, user_location
from adjit.tracer.pytree import find_node_type, tree_map
from adjit.tracer.trace import TracedProgram, current_trace, stays_number, trace_function

from .collection import collection_paused
from .concrete import ConcreteFunction, observers
from .config import check_threads, config
from .convention import ReshapedError
from .conversion import converted
from .creation import Creation
from .executable import expect_compilation
from .exporting import Exportable
from .general import General, Policy, conditions, general_key, narrowed, refusal, shapes_of, symbolized
from .inspecting import Inspectable, InspectedCall, check_finite
from .methods import BoundFunction, Instances, bind
from .outside import OutsideNames, described
from .recording import listening, suspended
from .restart import Restarts, Start
from .retracing import Retraces
from .shortcut import Shortcut
from .signature import Signature, is_array, probe, resolve_static, shows_keywords, take_apart
from .slow_calls import SlowCalls
from .slow_compiling import warn_if_slow
from .specializations import Specializations
from .specs import InputSignature, Specialization, signature_text
from .tensor import Tensor, WeakTensor, tensor
from .variable import Store, scope, undone_by_errors

RESHAPED = "a variable had another shape"


class Function(Inspectable, Exportable):
    """A Python function that runs as native code. Called on traced values, inside another function, it is inlined into that function.

    >>> @aj.function
    ... def square(x):
    ...     return x * x
    >>> isinstance(square, aj.Function), square(3.0)
    (True, Tensor(9., f64[]))
    """

    kind: type[Function]

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        static: Sequence[int | str] = (),
        max_traces: int = 256,
        input_signature: Sequence[Any] | None = None,
        reduce_retracing: bool = False,
        threads: int | None = None,
        dynamic: bool | str | None = None,
    ) -> None:
        if not callable(fn):
            raise TypeError(f"function() takes a callable, not {type(fn).__name__}")
        if max_traces < 1:
            raise ValueError(f"max_traces must be at least 1, not {max_traces}")
        functools.update_wrapper(self, fn, updated=())
        self._fn = fn
        self._name = name or getattr(fn, "__name__", None) or type(fn).__name__
        self._static = resolve_static(fn, static)
        self._shows_keywords = shows_keywords(fn)
        self._max_traces = max_traces
        check_threads(threads)
        self._threads = threads
        self._specs = None if input_signature is None else InputSignature(fn, self._name, input_signature)
        dynamic = config.dynamic if dynamic is None else dynamic
        self._policy = Policy(dynamic, () if self._specs is None or dynamic is False else self._specs.open_axes)
        self._retraces = None if reduce_retracing else Retraces(fn, self._name)
        self._shortcut = self._new_shortcut()
        self._cache = Specializations(max_traces, self._shortcut)
        self._lock = new_lock()  # held while a specialisation is created
        self._traces = 0
        self._restarts = Restarts()
        self._was_slow = False  # whether there was a warning about slow compilation
        self._creation = Creation()
        self._instances = Instances(self._lock)
        self._outside = OutsideNames()
        self._slow_calls = SlowCalls(self._name)

    def _new_shortcut(self) -> Shortcut:
        return Shortcut(self)

    # ---- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._enter(args, kwargs, None)
        except Exception as error:
            trim(error)
            raise

    def _slow_path(self, *args: Any, **kwargs: Any) -> Any:
        """Handle the calls that the native entry does not take."""
        try:
            return self._enter(args, kwargs, None)
        except Exception as error:
            trim(error)
            raise

    def _enter(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> Any:
        """Call; start again if the capacity of a list is too small, or if the call finds a size that it has not assumed."""
        start = self._restarts.start()
        while True:
            try:
                return self._entered(args, kwargs, instance, start)
            except ReshapedError:  # another thread assigned it meanwhile
                self._discard(RESHAPED, "pad it to one shape")
            except Exception as error:
                if current_builder() is not None or not self._starts_again(start, error):
                    raise

    def _entered(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any, start: Start) -> Any:
        """Take the fast path for plain arrays, scalars and containers of them; pass everything else to `_call`."""
        if self._specs is not None:
            args, kwargs = self._specs.bound(args, kwargs, instance is not None)
        self._check_outside_names()
        special = self._static or start.sizes is not None or config.eager or config.debug_nans or listening.recorders
        if special or current_builder() is not None:
            return self._call(args, kwargs, None, instance, start)
        key: list[Any] = []
        arrays: list[Array] = []
        if not probe((*args, kwargs) if kwargs else args, key, arrays):
            self._slow_calls.note(args, kwargs)
            return self._call(args, kwargs, None, instance, start)
        quick = (len(args), *key)
        found = self._cache.quick.get(quick)
        if found is None:
            return self._call(args, kwargs, quick, instance, start)
        self._cache.use(found)
        out = found.run(arrays)
        if found.convention.is_general:
            self._shortcut.grow(found)
        return out

    def _check_outside_names(self) -> None:
        """Discard all programs if a name that they have read is bound to another object now."""
        changed = self._outside.changed()
        if changed is not None:
            with self._lock:
                if self._outside.changed() is not None:
                    self._discard(described(changed), "pass it as an argument, or make it a Variable")
        self._shortcut.refresh()

    def _discard(self, what: str, instead: str) -> None:
        self.clear_cache()
        self._outside.forget(self._name, what, instead)

    def _taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Signature:
        named = kwargs if self._shows_keywords or len(kwargs) < 2 else dict(sorted(kwargs.items()))
        return take_apart(args, named, self._static)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], quick: tuple[Any, ...] | None, instance: Any, start: Start) -> Any:
        if config.eager:
            return eager_call(bind(self._fn, instance), args, kwargs)
        if current_trace() is not None:
            return self._inline(args, kwargs, instance)
        signature = self._taken_apart(args, start.passed(kwargs))
        if start.sizes:  # they vary from call to call
            self._policy.leave_open(signature, start.axes(signature.arrays))
        concrete = self._concrete(signature, quick, instance, general=not listening.recorders)
        if config.debug_nans:
            check_finite(concrete, signature)
        if quick is not None and instance is None and not kwargs:
            self._shortcut.add(args, concrete)
        if listening.recorders:
            return concrete.run_recorded(signature.tensors(), signature.stores)
        out = concrete.run(signature.arrays, signature.stores)
        if concrete.convention.is_general:
            self._shortcut.grow(concrete)
        return out

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any) -> Any:
        """Inline the call into the enclosing trace: the body runs on its values."""
        args, kwargs = tree_map(lambda x: tensor(x) if isinstance(x, np.ndarray | np.generic) else x, (args, kwargs))
        with self._creation.watched(set() if scope.closed_over is None else scope.closed_over):
            return with_arrays(converted(bind(self._fn, instance))(*args, **kwargs))

    # ---- specialisations

    def _concrete(
        self, signature: Signature, quick: tuple[Any, ...] | None = None, instance: Any = None, general: bool = True
    ) -> ConcreteFunction:
        """Return the specialisation for a call; unless `general`, one for its sizes alone."""
        found, is_new, busy = self._find(signature, general), False, 0.0
        if found is None:
            with self._lock:
                found = self._find(signature, general)
                if found is None:
                    started = time.process_time()
                    found, is_new = self._specialize(signature, instance, general), True
                    busy = time.process_time() - started
        if quick is not None:
            self._cache.remember(quick, found)
        self._cache.use(found)
        if is_new:
            self._noticed(signature, found)
            self._was_slow = self._was_slow or warn_if_slow(self._name, found, busy)
            for observe in observers:
                observe(found, signature)
        return found

    def _noticed(self, signature: Signature, concrete: ConcreteFunction) -> None:
        """Report a new trace to the retrace warning, which checks by their stamps whether earlier traces were used again."""
        if self._retraces is not None and concrete.program.is_whole:
            with self._cache.lock:
                self._cache.use_entered()
                self._retraces.note(signature, concrete, self._policy.reasons(signature.key))

    def _find(self, signature: Signature, general: bool) -> ConcreteFunction | None:
        found = self._cache.get(signature.key)
        if found is not None and signature.stores:
            found = next((f for f in self._cache.versions(signature.key) if f.alias == f.coincidence(signature.stores)), None)
        if found is not None and not found.convention.fits(signature.stores):
            self._discard(RESHAPED, "pad it to one shape")
            found = None
        return self._policy.find(signature) if found is None and general and self._policy else found

    def _specialize(self, signature: Signature, instance: Any, general: bool) -> ConcreteFunction:
        with collection_paused():
            expect_compilation()
            attempted = self._policy.axes(signature) if general and self._policy else []
            found = self._generalize(signature, instance) if attempted else None
            if found is not None:
                return found
            try:
                made = self._compiled(signature, instance)
            except Exception:  # the sizes are not the cause
                self._policy.forgive(signature, attempted)
                raise
            self._cache.add(signature.key, made)
            if self._policy:
                self._policy.note(signature, None)
            return made

    def _generalize(self, signature: Signature, instance: Any) -> ConcreteFunction | None:
        """Return a new specialisation for all sizes of some axes; None if the policy or the program does not allow it."""
        policy = self._policy
        while axes := policy.axes(signature):
            shapes, symbols = symbolized(shapes_of(signature), axes)
            try:
                with recording(symbols, user_location) as found:
                    made = self._compiled(signature, instance, shapes, found)
            except Exception as error:  # if the function itself is the cause, the error is raised again for these sizes alone
                if is_from_handler(error):
                    raise
                if found.is_single:
                    return None
                policy.family(signature).refused[frozenset(axes)] = refusal(error)
                return None
            if made is None:
                policy.fix(signature, shapes, found)
                continue
            made.guards = tuple(found.guards)
            self._cache.add(general_key(signature, shapes), made)
            policy.note(signature, General(made, shapes, symbols))
            return made
        return None

    @overload
    def _compiled(self, signature: Signature, instance: Any) -> ConcreteFunction: ...
    @overload
    def _compiled(self, signature: Signature, instance: Any, shapes: Sequence[Shape], found: Recording) -> ConcreteFunction | None: ...
    def _compiled(
        self, signature: Signature, instance: Any, shapes: Sequence[Shape] | None = None, found: Recording | None = None
    ) -> ConcreteFunction | None:
        """Trace and compile, for symbolic `shapes` if they are given; None if the trace has pinned some of their sizes."""
        closed_over: set[Store] = set()
        started = time.perf_counter()
        program = self._trace(signature, instance, closed_over, shapes)
        self._traces += 1
        if found is not None and found.pins:
            return None
        self._outside.add(program.bindings)
        seconds = {"trace": time.perf_counter() - started}
        return narrowed(found, lambda: ConcreteFunction(program, dict(seconds), signature.stores, closed_over, self._threads))

    def _trace(self, signature: Signature, instance: Any, closed_over: set[Store], shapes: Sequence[Shape] | None = None) -> TracedProgram:
        """Run the Python function on traced values, adding the variables that it closes over to a set."""
        with unwinding(), suspended(), self._creation.watched(closed_over), self._restarts.with_capacity():
            return trace_function(converted(bind(self._fn, instance)), signature.tree, signature.traced_leaves(shapes), self._name)

    def _starts_again(self, start: Start, error: Exception) -> bool:
        """Whether a call that failed starts again, with what it has found; discards programs whose lists were too small."""
        if not start.concerns(error) or is_from_handler(error):
            return False
        with self._lock:
            small = self._restarts.learn(start, error, list(self._cache.values()))
            if small:
                self._cache.evict(lambda known: known in small)
            return small is not None

    # ---- methods

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        if find_node_type(type(instance)) is not None:  # a registered pytree is passed like any other argument
            return MethodType(self, instance)
        return BoundFunction(self._instances.function_of(instance, self), instance)

    def _clone(self) -> Function:
        """Return the same function with an empty cache."""
        return self.kind(*self._arguments())

    def _arguments(self) -> tuple[Any, ...]:
        """Return the arguments of the constructor."""
        specs = None if self._specs is None else self._specs.specs
        static = tuple(dict.fromkeys(self._static))
        return self._fn, self._name, static, self._max_traces, specs, self._retraces is None, self._threads, self._policy.dynamic

    # ---- inspection

    def _looked_up(self, args: tuple[Any, ...], kwargs: dict[str, Any], general: bool = True) -> InspectedCall:
        self._check_outside_names()
        signature = self._taken_apart(args, self._restarts.start().passed(kwargs))  # sizes that follow from values: those of the last call
        return InspectedCall(self._concrete(signature, general=general), signature, self._fn)

    def _traced_alone(self, args: tuple[Any, ...], kwargs: dict[str, Any], instance: Any = None) -> TracedProgram:
        """Trace for code that runs without Python; a `TensorSpec` may replace an argument."""
        from .export import examples  # noqa: PLC0415 - few functions are exported

        args, kwargs = examples(*self._signed(args, kwargs))
        if self._specs is not None:
            args, kwargs = self._specs.bound(args, kwargs, instance is not None)
        with self._lock, collection_paused():
            return self._trace(self._taken_apart(args, kwargs), instance, set())

    @boundary
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Specialization:
        """Return the function for one signature: that of these arguments, or of the `TensorSpec`s given in their place."""
        return self._specialization(self, None, args, kwargs)

    def _specialization(self, owner: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Specialization:
        """`owner` is this function, or the method of `instance` that it implements."""
        return Specialization(owner, bind(self._fn, instance), *self._signed(args, kwargs))

    def _signed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self._specs.specs, {}) if self._specs is not None and not args and not kwargs else (args, kwargs)

    def pretty_printed_signature(self) -> str:
        """One line for each compiled specialisation: `loss(x: f32[32,3], n=2) -> f32[]`; for all sizes, with `f32[B,3]`.

        The reasons why `function(dynamic=...)` did not compile one for all sizes follow, with the line of the function.
        """
        lines = []
        for key in list(self._cache):
            tree, kinds = key  # type: ignore[misc]
            for known in self._cache.versions(key):
                text = signature_text(self._fn, self._name, tree, kinds, known.program.func.results)  # type: ignore[has-type]
                lines.append(text + conditions(known))
                if not known.convention.is_general:  # those for all sizes differ in their guards
                    break
        reasons = dict.fromkeys(reason for key in list(self._cache) for reason in self._policy.reasons(key))
        return "\n".join([*lines, *(f"  not for all sizes: {reason}" for reason in reasons)])

    @property
    def trace_count(self) -> int:
        """The number of times that the Python function has been traced."""
        return self._traces

    @property
    def cache_size(self) -> int:
        """The number of compiled specialisations in the cache."""
        return len(self._cache)

    def clear_cache(self) -> None:
        """Discard all compiled specialisations; the next call traces again."""
        with self._lock:  # also discards what is being traced now
            self._cache.evict(lambda _: True)
            self._instances.clear()
            self._policy.clear()
            if self._retraces is not None:
                with self._cache.lock:
                    self._retraces.clear()

    @property
    def python_function(self) -> Callable[..., Any]:
        return self._fn

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        return self  # as for plain functions

    def __reduce__(self) -> Any:
        from .pickling import reduced  # noqa: PLC0415 - few pickle functions

        return reduced(self)

    def __setstate__(self, arguments: tuple[Any, ...]) -> None:
        self.__init__(*arguments)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"<adjit function {getattr(self._fn, '__qualname__', self._name)}, {self.cache_size} compiled>"


Function.kind = Function  # the native entry gives each function a class of its own


def eager_call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run op by op, with the argument and result types of a compiled call."""
    args, kwargs = tree_map(lambda x: tensor(x) if is_array(x) and not isinstance(x, Operand) else x, (args, kwargs))
    with undone_by_errors():
        return with_arrays(fn(*args, **kwargs))


def with_arrays(results: Any) -> Any:
    """Return the results of a Python function as a compiled call returns them: numbers become tensors that are weakly typed."""
    return tree_map(as_returned, results)


def as_returned(x: Any) -> Any:
    if type(x) in NUMBERS:
        return WeakTensor(x)
    if not (is_array(x) or type(x) is bool) or stays_number(x):
        return x
    return x.strong() if isinstance(x, Tensor) else tensor(x)


if TYPE_CHECKING:
    P = ParamSpec("P")
    R = TypeVar("R")

    class TypedFunction(Function, Generic[P, R]):
        """For type checkers: a compiled function has the parameters and result of the wrapped Python function."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


@overload
def function(
    fn: Callable[P, R], /, *, name: str | None = ..., static: Sequence[int | str] = ..., max_traces: int = ...,
    input_signature: Sequence[Any] | None = ..., reduce_retracing: bool = ..., threads: int | None = ..., dynamic: bool | str | None = ...,
) -> TypedFunction[P, R]: ...  # fmt: skip
@overload
def function(
    fn: None = ..., /, *, name: str | None = ..., static: Sequence[int | str] = ..., max_traces: int = ...,
    input_signature: Sequence[Any] | None = ..., reduce_retracing: bool = ..., threads: int | None = ..., dynamic: bool | str | None = ...,
) -> Callable[[Callable[P, R]], TypedFunction[P, R]]: ...  # fmt: skip
@boundary
def function(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    static: Sequence[int | str] = (),
    max_traces: int = 256,
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    threads: int | None = None,
    dynamic: bool | str | None = None,
) -> Any:
    """Return a Python function compiled to native code: `@function`, `@function(static=["n"])` or `function(f)`.

    It is traced once for each combination of structure, dtypes, shapes and static values of its arguments; a second shape that differs in
    sizes only is compiled for all sizes of these axes. Arrays and Python ints and floats are traced; bools, strings, None and other
    hashable objects are static, as are the arguments listed in `static` (by position or name). At most `max_traces` compiled
    specialisations are cached; the least recently used are evicted first.

    With an `input_signature` (a `TensorSpec`, or a structure of them, for each argument), calls must match it; Python numbers and lists are
    converted to its dtypes. A function that is repeatedly compiled for a single call each gives a warning; `reduce_retracing` disables it.
    `dynamic` is "auto" by default (`config.dynamic`); with True, all axes may have any size at once; with False, every shape gets a program
    of its own.
    `threads` limits the threads of large kernels (default: `config.threads`); results are bitwise identical for any number of threads.

    >>> @function
    ... def scaled(x, factor):
    ...     return x * factor
    >>> scaled(np.array([1.0, 2.0]), 3.0), scaled(np.array([1.0, 2.0]), 0.5)        # another float does not retrace
    (Tensor([3., 6.], f64[2]), Tensor([0.5, 1. ], f64[2]))
    """
    if fn is None:
        return lambda f: Function(f, name, static, max_traces, input_signature, reduce_retracing, threads, dynamic)
    return Function(fn, name, static, max_traces, input_signature, reduce_retracing, threads, dynamic)
