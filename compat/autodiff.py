"""tf.autodiff.ForwardAccumulator, tf.gradients and tf.hessians: derivatives beside those of tapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Stmt, Value
from adjit.ir.operand import Operand
from adjit.runtime.record import Record, TraceRecord
from adjit.runtime.recording import join, leave, listening
from adjit.runtime.variable import Variable as RuntimeVariable
from adjit.tracer.frames import user_location
from adjit.tracer.pytree import flatten
from adjit.tracer.trace import current_trace

from .array import ones_like, zeros_like
from .errors import missing, translated
from .tape import GradientTape, UnconnectedGradients
from .tensor import convert_to_tensor

__all__ = ["ForwardAccumulator", "GradientTape"]


class ForwardAccumulator:
    """Computes products of Jacobians and vectors: the derivatives of results inside `with` along tangents of the primals.

    >>> x = convert_to_tensor([2.0, 3.0])
    >>> with ForwardAccumulator(primals=x, tangents=convert_to_tensor([1.0, 0.0])) as acc:
    ...     y = x * x
    >>> acc.jvp(y).numpy()
    array([4., 0.], dtype=float32)
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        leaves, tree = flatten(primals)
        given, its = flatten(tangents)
        if its != tree:
            raise ValueError(f"primals and tangents must have the same structure, not {tree} and {its}")
        self._primals = leaves
        self._tangents = [convert_to_tensor(t) for t in given]
        if len({id(p) for p in leaves}) != len(leaves):
            raise ValueError("Tensor passed as a primal multiple times; add its tangents")
        for primal, tangent in zip(leaves, self._tangents, strict=True):
            if not isinstance(primal, Operand):
                raise ValueError(f"primals are tensors and variables, not {type(primal).__name__}")
            if primal.type.shape != tangent.type.shape or primal.type.dtype != tangent.type.dtype:
                raise ValueError(f"Expected the tangent of a primal of {primal.type} to be {primal.type}, got {tangent.type}")
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)
        self._around: tuple[Any, ...] = ()  # the recorders that were active when this one began: they record its derivatives, too

    def __enter__(self) -> ForwardAccumulator:
        if self._tape._recording:
            raise ValueError("Accumulator is already recording.")
        self._around = listening.recorders
        self._tape.__enter__()
        self._tape.watch(self._primals)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._tape.__exit__(kind, error, traceback)

    @translated
    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """The derivative of each result along the tangents. None (or zeros) for results that do not depend on the primals."""
        leaves, tree = flatten(primals)
        return tree.unflatten([self._along(x, UnconnectedGradients(unconnected_gradients)) for x in leaves])

    def _along(self, result: Any, unconnected: UnconnectedGradients) -> Any:
        """Return the tangent as a transpose of reverse mode: a gradient is linear in the weights of the results; differentiate it again."""
        for primal, tangent in zip(self._primals, self._tangents, strict=True):
            if result is primal:
                return tangent
        weights = ones_like(result)
        with self._recorded(), GradientTape(watch_accessed_variables=False) as outer:
            outer.watch(weights)
            assert outer._record is not None
            weights = outer._record.resolve(weights)  # the value that represents a constant of a trace
            found = self._tape.gradient(result, self._primals, weights)
            pairs = [(g, t) for g, t in zip(found, self._tangents, strict=True) if g is not None]
            along = outer.gradient([g for g, _ in pairs], weights, [t for _, t in pairs]) if pairs else None
        return zeros_like(result) if along is None and unconnected is UnconnectedGradients.ZERO else along

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Compute as if inside the tapes and accumulators around this one: TensorFlow computes derivatives while they record."""
        resumed = [record for record in self._around if not any(record is r for r in listening.recorders)]
        for record in resumed:
            record.start()
            join(record)
        try:
            yield
        finally:
            for record in reversed(resumed):
                leave(record)
                record.stop()


class _Stopped(TraceRecord):
    """The statements of a trace without those that compute values treated as constants."""

    def __init__(self, stops: Sequence[Operand]) -> None:
        super().__init__(watch_accessed=False)
        self.stops = {id(self.resolve(x)): x for x in stops}

    def recorded(self) -> Iterator[tuple[Any, Stmt]]:
        return ((place, stmt) for place, stmt in super().recorded() if not any(id(r) in self.stops for r in stmt.results))


class _WholeTape(GradientTape):
    """A tape over everything that the function being traced has done so far."""

    def __init__(self, sources: list[Operand], stops: Sequence[Operand] = ()) -> None:
        super().__init__(persistent=True)
        record = _Stopped(stops)
        record.stretches.append(([], None))  # from the beginning
        for source in sources:
            Record.watch(record, record.resolve(source))
            record.since[id(record.resolve(source))] = ()
        self._record = record


def source_of(x: Any, what: str) -> Operand:
    """Return the value of a source in the trace. A constant has none: everything that depends only on it was computed while tracing."""
    source: Operand = x.read_operand() if isinstance(x, RuntimeVariable) else x
    if not isinstance(source, Value):
        raise UnsupportedError(
            f"tf.{what}: {x!r} is a constant, and everything that depends only on it was computed while tracing; make it an argument or a "
            "tf.Variable, or watch it with a tf.GradientTape before it is used"
        ).at(user_location())
    return source


@translated
def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", gate_gradients: bool = False, aggregation_method: Any = None,
    stop_gradients: Any = None, unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:  # fmt: skip
    """The gradients of the sum of ys with respect to each of xs, inside a tf.function; elsewhere use tf.GradientTape.

    Values among `stop_gradients` count as constants: derivatives do not pass through them to the values that they were computed from.
    """
    if current_trace() is None:
        raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
    stops = [x.read_operand() if isinstance(x, RuntimeVariable) else x for x in flatten(stop_gradients)[0]]
    sources = [source_of(x, "gradients") for x in flatten(xs)[0]]
    out: list[Any] = _WholeTape(sources, [x for x in stops if isinstance(x, Value)]).gradient(ys, sources, grad_ys, unconnected_gradients)
    return out


@translated
def hessians(
    ys: Any, xs: Any, gate_gradients: bool = False, aggregation_method: Any = None, name: str = "hessians",
) -> list[Any]:  # fmt: skip
    """The second derivatives of the sum of ys with respect to each of xs, inside a tf.function."""
    if current_trace() is None:
        raise RuntimeError("tf.hessians is not supported when eager execution is enabled. Use tf.GradientTape instead.")
    out = []
    for x in flatten(xs)[0]:
        source = source_of(x, "hessians")
        slope = _WholeTape([source]).gradient(ys, source, None, UnconnectedGradients.ZERO)
        out.append(_WholeTape([source]).jacobian(slope, source, UnconnectedGradients.ZERO))
    return out


__getattr__ = missing("tf.autodiff", "use tf.GradientTape")


def __dir__() -> list[str]:
    return __all__
