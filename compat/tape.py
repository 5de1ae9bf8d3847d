"""tf.GradientTape: adjit's tape, giving tensors in TensorFlow's dress, with Jacobians."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand, as_operand
from adjit.runtime.tape import GradientTape as RuntimeTape
from adjit.runtime.variable import Variable as RuntimeVariable
from adjit.tracer.pytree import flatten

from .errors import translated
from .tensor import convert_to_tensor, dress, dress_structure, eager


class UnconnectedGradients(enum.Enum):
    """What a source gets that the target does not depend on: None, or zeros."""

    NONE = "none"
    ZERO = "zero"


class GradientTape(RuntimeTape):
    """Records what happens inside of `with`, and gives gradients and Jacobians of it."""

    @translated
    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        weights = None if output_gradients is None else _weights(output_gradients)
        self._read_targets(target)
        return dress_structure(super().gradient(target, sources, weights, unconnected_gradients))

    @translated
    def jacobian(
        self, target: Any, sources: Any, unconnected_gradients: Any = UnconnectedGradients.NONE, parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """For each source, the derivatives of every element of the target by every element of the source."""
        shape = as_operand(target).type.shape
        size = int(np.prod(shape, dtype=np.int64))
        seeds = np.eye(size, dtype=as_operand(target).type.dtype).reshape(size, *shape)
        rows = self._swept(target, sources, seeds, unconnected_gradients)
        return _stacked(rows, sources, lambda parts, source: _joined(parts, (*shape, *source.type.shape), 0))

    @translated
    def batch_jacobian(
        self, target: Any, source: Any, unconnected_gradients: Any = UnconnectedGradients.NONE, parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """The Jacobian of each row of the target by the same row of the source; rows must not depend on other rows."""
        shape, its = as_operand(target).type.shape, as_operand(source).type.shape
        if not shape or not its or shape[0] != its[0]:
            raise ValueError(f"Need first dimension of target shape ({shape}) and source shape ({its}) to match.")
        size = int(np.prod(shape[1:], dtype=np.int64))
        unit = np.eye(size, dtype=as_operand(target).type.dtype).reshape(size, 1, *shape[1:])
        rows = self._swept(target, source, np.broadcast_to(unit, (size, *shape)), unconnected_gradients)
        return _stacked(rows, source, lambda parts, s: _joined(parts, (*shape, *its[1:]), 1))

    def _read_targets(self, target: Any) -> None:
        """A variable that is itself a target is one even if nothing read it inside of the tape."""
        record = self._record
        for leaf in flatten(target)[0] if record is not None else ():
            if isinstance(leaf, RuntimeVariable) and record is not None and not record.values(leaf):
                record.read(leaf, leaf.read_operand())

    def _swept(self, target: Any, sources: Any, seeds: Any, unconnected: Any) -> list[Any]:
        """Gradients for each seed, in the structure of the sources: one reverse sweep each."""
        persistent, self._persistent = self._persistent, True
        try:
            return [super(GradientTape, self).gradient(target, sources, eager(np.array(seed)), unconnected) for seed in seeds]
        finally:
            self._persistent = persistent
            if not persistent:
                self.watched_variables()
                self._record = None


def _weights(output_gradients: Any) -> Any:
    leaves, tree = flatten(output_gradients, is_leaf=lambda x: x is None)
    return tree.unflatten([x if x is None or isinstance(x, float | int) else convert_to_tensor(x) for x in leaves])


def _stacked(rows: list[Any], sources: Any, join: Any) -> Any:
    leaves, tree = flatten(sources)
    columns = zip(*(flatten(row, is_leaf=lambda x: x is None)[0] for row in rows), strict=True)
    found = [None if any(x is None for x in column) else join(list(column), source) for column, source in zip(columns, leaves, strict=True)]
    return tree.unflatten(found)



def _joined(parts: list[Operand], shape: tuple[int, ...], axis: int) -> Any:
    def widened(x: Operand) -> Operand:
        return ops.reshape(x, (*x.type.shape[:axis], 1, *x.type.shape[axis:]))

    return dress(ops.reshape(ops.concatenate([widened(as_operand(p)) for p in parts], axis), shape))
