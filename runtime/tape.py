"""GradientTape: records what happens inside its context, and differentiates it.

The tape itself implements TensorFlow's rules: when it records, what may be requested, and how often. The recording is kept in a `Record`:
eager statements on tensors (`EagerRecord`) or a range of a trace (`TraceRecord`). Both use the same reverse sweep, which evaluates on
tensors and emits statements on traced values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from adjit.ir.active import current_builder
from adjit.ir.errors import GradientError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.complex import conj
from adjit.ir.tracebacks import boundary, trim
from adjit.ir.types import Shape
from adjit.tracer.frames import user_level
from adjit.tracer.pytree import flatten

from . import backward
from .internal import backpropagate
from .record import EagerRecord, Record, new_record
from .recording import join, leave, listening
from .tensor import Tensor
from .variable import Variable

SPENT = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
NOT_FLOATING = "The dtype of the {} tensor must be floating when calling GradientTape.gradient, got {}"


class GradientTape:
    """Records ops on watched values inside a `with` block, and computes gradients of their results.

    >>> x = Variable(3.0)
    >>> with GradientTape() as tape:
    ...     y = x * x
    >>> tape.gradient(y, x)
    Tensor(6., f64[])

    Trainable variables are watched when they are read, other tensors by `watch`. Only a `persistent` tape can be used more than once.
    """

    _strict = False

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._record: Record | None = None
        self._recording = False
        self._watched_variables: tuple[Variable, ...] = ()
        self._unconnected: Record | None = None  # of the last gradient() with a None in its result, for `explain`

    # ---- recording

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._recording:
            self._stop()
        if isinstance(error, ValueError) and isinstance(error.__cause__, GradientError):
            try:  # NumPy's own message is "setting an array element with a sequence"
                raise error.__cause__.with_traceback(traceback) from None
            except GradientError as cause:
                trim(cause)
                raise

    def _start(self) -> None:
        record = self._current_record()
        record.start()
        join(record)
        self._recording = True

    def _stop(self) -> None:
        assert self._record is not None
        leave(self._record)
        self._record.stop()
        self._recording = False

    def _current_record(self) -> Record:
        if self._record is None:
            self._record = new_record(self._watch_accessed, self._strict)
        return self._record

    @boundary
    def watch(self, tensor: Any) -> None:
        """Watch a tensor, a variable, or a structure of them: ops on them are recorded from now on."""
        record = self._current_record()
        for x in flatten(tensor)[0]:
            if isinstance(x, Variable):
                record.watch_variable(x)
            elif isinstance(x, Operand):
                if not is_inexact(x):
                    message = f"The dtype of the watched tensor must be floating, got {x.type}: it has no gradient"
                    warnings.warn(message, stacklevel=user_level())
                record.watch(x)
            else:
                raise TypeError(f"watch takes tensors and variables, not {type(x).__name__}; make a tensor of it with adjit.tensor(...)")

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables that were read while being watched, in order of creation."""
        if self._record is not None:
            known = self._record.variables.values()
            self._watched_variables = tuple(sorted(known, key=lambda v: v.store.number)) if known else ()
        return self._watched_variables

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Pause recording inside the `with` block."""
        if not self._recording:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        self._stop()
        try:
            yield
        finally:
            self._start()

    def reset(self) -> None:
        """Discard everything recorded and watched so far."""
        recording = self._recording
        if recording:
            self._stop()
        self._record = self._unconnected = None
        self._watched_variables = ()
        if recording:
            self._start()

    # ---- gradients

    @boundary
    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: str | None = None) -> Any:
        """Return the gradients of the sum of all targets with respect to each source, in the structure of `sources`.

        A source that no recorded, differentiable op connects to a target gets None, or zeros with `unconnected_gradients="zero"`.
        `output_gradients` are the weights of the targets' elements (ones by default). The gradient with respect to a variable is that with
        respect to all its values read inside the tape.
        """
        zeros = wants_zeros(unconnected_gradients)
        leaves, tree = flatten(sources)
        return tree.unflatten(self._gradients(target, leaves, output_gradients, zeros))

    def _gradients(self, target: Any, sources: list[Any], output_gradients: Any = None, zeros: bool = False) -> list[Any]:
        """Return the gradient with respect to each of the sources."""
        record = self._requested_record()
        targets, seeds = seeded_targets(record, target, output_gradients)
        asked = [source_operands(record, s) for s in sources]
        try:
            found = iter(differentiate(record, targets, seeds, [x for xs in asked for x in xs]))
            gradients = [conjugated(total([next(found) for _ in xs])) for xs in asked]
        finally:
            self._spent()
        finished = [finish(record, g, s, zeros) for g, s in zip(gradients, sources, strict=True)]
        self._unconnected = None
        for gradient in finished:
            if gradient is None:
                self._unconnected = record
        return finished

    @boundary
    def jacobian(self, target: Any, sources: Any, unconnected_gradients: str | None = None) -> Any:
        """Return the derivatives of the target's elements with respect to those of each source: shape target.shape + source.shape.

        All rows are computed at once, in one batched sweep. A structure of targets gives a structure of Jacobians.
        """
        zeros = wants_zeros(unconnected_gradients)
        record = self._requested_record()
        targets, target_tree = flatten(target)
        leaves, tree = flatten(sources)
        asked = [source_operands(record, s) for s in leaves]
        out: list[Any] = []
        try:
            for each in targets:
                found = iter(jacobian_row(record, seeded_targets(record, each, None)[0], [x for xs in asked for x in xs]))
                parts = [conjugated(total([next(found) for _ in xs])) for xs in asked]
                shapes = [each.type.shape + s.type.shape for s in leaves]
                row = [finish(record, d, s, zeros, shape) for d, s, shape in zip(parts, leaves, shapes, strict=True)]
                out.append(tree.unflatten(row))
        finally:
            self._spent()
        return target_tree.unflatten(out)

    @boundary
    def batch_jacobian(self, target: Any, source: Any, unconnected_gradients: str | None = None) -> Any:
        """Return the derivatives of each row of the target with respect to the same row of the source.

        The shape is [rows, *target.shape[1:], *source.shape[1:]]. Rows are assumed to be independent: derivatives with respect to other
        rows of the source are added to those with respect to the same row.
        """
        zeros = wants_zeros(unconnected_gradients)
        record = self._requested_record()
        from .jacobians import batch_jacobian_block  # noqa: PLC0415 - brings in `vmap`, which few tapes need

        rows, its = as_operand(target).type.shape, source.type.shape
        if not rows or not its or rows[0] != its[0]:
            raise ValueError(f"Need first dimension of target shape ({rows}) and source shape ({its}) to match.")
        targets, asked = seeded_targets(record, target, None)[0], source_operands(record, source)
        try:
            stmts = record.statements()
            connected = record.connected(stmts)
            found = conjugated(total([batch_jacobian_block(stmts, t, x) for t in targets for x in asked if id(x) in connected]))
        finally:
            self._spent()
        return finish(record, found, source, zeros, (*rows, *its[1:]))

    def explain(self, target: Any, source: Any) -> str:
        """Return one line that explains why the gradient of `target` with respect to `source` is None, or that it is not.

        After `gradient`, a tape that is not persistent keeps its record only if a result was None.
        """
        from .explain import explain  # noqa: PLC0415 - only who wonders about a None needs it

        return explain(self._record or self._unconnected, target, source, self._persistent)

    @property
    def record(self) -> Record:
        """The record; an error if the tape has discarded it."""
        return self._requested_record()

    def _requested_record(self) -> Record:
        """Return the record, from which derivatives are about to be computed."""
        if self._record is None:
            raise RuntimeError(SPENT)
        if self._recording and not self._persistent:
            self._stop()
        return self._record

    def _spent(self) -> None:
        """Called after derivatives were computed: only a persistent tape keeps its record."""
        if not self._persistent:
            self.watched_variables()
            self._record = None


class StrictTape(GradientTape):
    """The tape of a transform: values being differentiated may not be converted to NumPy, and variables are constants."""

    _strict = True

    def __init__(self, persistent: bool = False) -> None:
        super().__init__(persistent, watch_accessed_variables=False)

    def _watch(self, values: list[Operand]) -> None:
        """`watch`, of values that are known to be floats."""
        record = self._current_record()
        for x in values:
            record.watch(x)


def wants_zeros(unconnected: Any) -> bool:
    choice = getattr(unconnected, "value", unconnected)  # TensorFlow's enumeration, or the plain string
    if choice not in (None, "none", "zero"):
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected!r}; it is None, 'none' or 'zero'")
    return bool(choice == "zero")


def seeded_targets(record: Record, target: Any, output_gradients: Any) -> tuple[list[Operand], list[Operand | None]]:
    """Return the floating-point targets and their cotangents, where None are ones."""
    if target is None:
        raise TypeError("Argument `target` should be a list or nested structure of Tensors or Variables to be differentiated, but is None.")
    leaves, tree = flatten(target)
    weights: Sequence[Any] = [None] * len(leaves)
    if output_gradients is not None:
        weights, its_tree = flatten(output_gradients, is_leaf=lambda x: x is None)
        if len(weights) != len(leaves):
            raise GradientError(f"output_gradients {its_tree} does not have the structure of the target, {tree}")
    targets: list[Operand] = []
    seeds: list[Operand | None] = []
    for leaf, weight in zip(leaves, weights, strict=True):
        if not isinstance(leaf, Operand):
            raise GradientError(f"a target must be a tensor that was computed while the tape was recording, not {type(leaf).__name__}")
        for x in record.values(leaf) if isinstance(leaf, Variable) else [record.resolve(leaf)]:
            if not is_inexact(x):
                warnings.warn(NOT_FLOATING.format("target", x.type), stacklevel=user_level())
                continue
            targets.append(x)
            seeds.append(None if weight is None else conj(checked_seed(weight, x)))
    return targets, seeds


def checked_seed(weight: Any, target: Operand) -> Operand:
    if isinstance(weight, bool | int | float | complex):
        return target.literal(weight if target.type.is_complex else float(weight), target.type)  # type: ignore[arg-type]
    seed = as_operand(weight)
    if seed.type.shape != target.type.shape:
        raise GradientError(f"a gradient or tangent of type {seed.type} does not have the shape of its value, {target.type}")
    return seed if seed.type.dtype == target.type.dtype else seed.astype(target.type.dtype)


def source_operands(record: Record, source: Any) -> list[Operand]:
    """Return the operands that represent a source on the tape: a tensor itself, or all values read from a variable."""
    if isinstance(source, Variable):
        check_floating(source)
        return record.values(source)
    if not isinstance(source, Operand):
        raise GradientError(f"a source must be a tensor or a variable, not {type(source).__name__}; adjit.tensor(...) makes one")
    check_floating(source)
    return [record.resolve(source)]


def check_floating(source: Operand) -> None:
    if not is_inexact(source):
        warnings.warn(NOT_FLOATING.format("source", source.type), stacklevel=user_level())


def is_inexact(x: Operand) -> bool:
    """Whether x has derivatives. Looks at the array if there is one, since most tensors of an eager computation have no type yet."""
    return x.buffer.dtype.kind in "fcV" if isinstance(x, Tensor) else x.type.is_inexact


def differentiate(record: Record, targets: list[Operand], seeds: list[Operand | None], sources: list[Operand]) -> list[Operand | None]:
    """Run the reverse sweep for those sources that are watched or depend on watched values, or a program that does the same."""
    if isinstance(record, EagerRecord) and not listening.recorders and current_builder() is None:  # otherwise the sweep itself is recorded
        known = backward.pulled(record.log, targets, seeds, sources)
        if known is not None:
            return known
    stmts = record.statements()
    connected = record.connected(stmts)
    wanted = [s for s in sources if id(s) in connected]
    weights = [t.literal(1.0, t.type) if s is None else s for t, s in zip(targets, seeds, strict=True)]
    found = dict(zip(map(id, wanted), backpropagate(stmts, targets, weights, wanted), strict=True))
    return [found.get(id(s)) for s in sources]


def jacobian_row(record: Record, targets: Sequence[Operand], sources: Sequence[Operand]) -> list[Operand | None]:
    """Return the derivatives of one target (for a variable, all its values that were read) with respect to each source."""
    stmts = record.statements()
    connected = record.connected(stmts)
    wanted = [s for s in sources if id(s) in connected and s.type.is_inexact]
    is_complex = any(x.type.is_complex for x in (*targets, *wanted))
    # TensorFlow's derivatives of a complex target are those of its real part
    from .jacobians import jacobian_blocks  # noqa: PLC0415 - brings in `vmap`, which few tapes need

    rows = jacobian_blocks(stmts, targets, wanted, "reverse" if is_complex else None) if wanted else []
    found = {id(s): total([row[i] for row in rows]) for i, s in enumerate(wanted)}
    return [found.get(id(s)) for s in sources]


def total(parts: Sequence[Operand | None]) -> Operand | None:
    out: Operand | None = None
    for part in parts:
        if part is not None:
            out = part if out is None else out + part
    return out


def conjugated(cotangent: Operand | None) -> Operand | None:
    """Return a derivative by TensorFlow's convention: sweeps pair cotangents and tangents as Re(c t), users as Re(conj(c) t)."""
    if isinstance(cotangent, Tensor) and cotangent.buffer.dtype.kind != "c":
        return cotangent
    return None if cotangent is None else conj(cotangent)


def finish(record: Record, gradient: Operand | None, source: Operand, zeros: bool, shape: Shape | None = None) -> Operand | None:
    """Return the derivative as users hold it: a tensor, or in a trace a traced value or a constant. `shape` is that of zeros."""
    if gradient is None:
        if not zeros or not source.type.is_inexact:
            return None
        gradient = source.literal(0.0, source.type if shape is None else source.type.with_shape(shape))
    return record.give(gradient)
