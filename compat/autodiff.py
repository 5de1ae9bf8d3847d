"""tf.autodiff.ForwardAccumulator, tf.gradients and tf.hessians: derivatives beside those of tapes."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from adjit.ir.operand import Operand
from adjit.runtime.record import Record, TraceRecord
from adjit.runtime.variable import Variable as RuntimeVariable
from adjit.tracer.pytree import flatten
from adjit.tracer.trace import current_trace

from .array import ones_like, zeros_like
from .errors import missing, translated
from .tape import GradientTape, UnconnectedGradients
from .tensor import convert_to_tensor

__all__ = ["ForwardAccumulator"]


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
            raise ValueError("Tensor passed as a primal more than once; add its tangents")
        for primal, tangent in zip(leaves, self._tangents, strict=True):
            if not isinstance(primal, Operand):
                raise ValueError(f"primals are tensors and variables, not {type(primal).__name__}")
            if primal.type.shape != tangent.type.shape or primal.type.dtype != tangent.type.dtype:
                raise ValueError(f"Expected the tangent of a primal of {primal.type} to be {primal.type}, got {tangent.type}")
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)

    def __enter__(self) -> ForwardAccumulator:
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
        """The gradient by the results' weights of a gradient, which is linear in them: the transpose of reverse mode."""
        for primal, tangent in zip(self._primals, self._tangents, strict=True):
            if result is primal:
                return tangent
        weights = ones_like(result)
        with GradientTape(watch_accessed_variables=False) as outer:
            outer.watch(weights)
            found = self._tape.gradient(result, self._primals, weights)
            pairs = [(g, t) for g, t in zip(found, self._tangents, strict=True) if g is not None]
        along = outer.gradient([g for g, _ in pairs], weights, [t for _, t in pairs]) if pairs else None
        return zeros_like(result) if along is None and unconnected is UnconnectedGradients.ZERO else along


class _WholeTape(GradientTape):
    """A tape over everything that the function being traced has done so far."""

    def __init__(self, sources: list[Operand]) -> None:
        super().__init__(persistent=True)
        record = TraceRecord(watch_accessed=False)
        record.stretches.append(([], None))  # from the beginning
        for source in sources:
            Record.watch(record, record.resolve(source))
            record.since[id(record.resolve(source))] = ()
        self._record = record


@translated
def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", gate_gradients: bool = False, aggregation_method: Any = None,
    stop_gradients: Any = None, unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:  # fmt: skip
    """The gradients of the sum of ys by each of xs, inside a tf.function; elsewhere use tf.GradientTape."""
    if current_trace() is None:
        raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
    if stop_gradients is not None:
        raise NotImplementedError("tf.gradients(stop_gradients=...): use tf.stop_gradient on these tensors")
    sources = [x.read_operand() if isinstance(x, RuntimeVariable) else x for x in flatten(xs)[0]]
    out: list[Any] = _WholeTape(sources).gradient(ys, sources, grad_ys, unconnected_gradients)
    return out


@translated
def hessians(
    ys: Any, xs: Any, gate_gradients: bool = False, aggregation_method: Any = None, name: str = "hessians",
) -> list[Any]:  # fmt: skip
    """The second derivatives of the sum of ys by each of xs, inside a tf.function."""
    if current_trace() is None:
        raise RuntimeError("tf.hessians is not supported when eager execution is enabled. Use tf.GradientTape instead.")
    out = []
    for x in flatten(xs)[0]:
        source = x.read_operand() if isinstance(x, RuntimeVariable) else x
        slope = _WholeTape([source]).gradient(ys, source, None, UnconnectedGradients.ZERO)
        out.append(_WholeTape([source]).jacobian(slope, source, UnconnectedGradients.ZERO))
    return out


__getattr__ = missing("tf.autodiff", "use tf.GradientTape")
