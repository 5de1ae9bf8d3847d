"""tf.GradientTape: adjit's tape, returning tensors with TensorFlow's interface."""

from __future__ import annotations

import enum
from typing import Any

from adjit.ir.operand import Operand, as_operand
from adjit.runtime.tape import GradientTape as RuntimeTape
from adjit.runtime.variable import Variable as RuntimeVariable
from adjit.tracer.pytree import flatten

from .errors import translated
from .tensor import convert_to_tensor, dress_structure


class UnconnectedGradients(enum.Enum):
    """The gradient of a source that the target does not depend on: None, or zeros."""

    NONE = "none"
    ZERO = "zero"


class GradientTape(RuntimeTape):
    """Records the operations inside `with`, and computes gradients and Jacobians of them."""

    def watch(self, tensor: Any) -> None:
        """Watch tensors and variables, in any structure."""
        for x in flatten(tensor)[0]:
            if not isinstance(x, Operand):
                raise ValueError(f"Passed in object {x!r} of type {type(x).__name__!r}, not tf.Tensor or tf.Variable; use tf.constant")
        super().watch(tensor)

    def reset(self) -> None:
        """Discard everything recorded so far."""
        self._check_recording()
        super().reset()

    def stop_recording(self) -> Any:
        """Ops inside are not recorded."""
        self._check_recording()
        return super().stop_recording()

    def _check_recording(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")

    @translated
    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: Any = UnconnectedGradients.NONE
    ) -> Any:
        weights = None if output_gradients is None else _weights(output_gradients)
        self._read_targets(target)
        return dress_structure(super().gradient(target, sources, weights, unconnected_gradients))

    @translated
    def jacobian(
        self, target: Any, sources: Any, unconnected_gradients: Any = UnconnectedGradients.NONE, parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """For each source, the derivatives of every element of the target with respect to every element of the source."""
        self._check_persistent(parallel_iterations, experimental_use_pfor)
        self._read_targets(target)
        return dress_structure(super().jacobian(target, sources, unconnected_gradients))

    @translated
    def batch_jacobian(
        self, target: Any, source: Any, unconnected_gradients: Any = UnconnectedGradients.NONE, parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """The Jacobian of each row of the target with respect to the same row of the source; rows must not depend on other rows."""
        shape, its = as_operand(target).type.shape, as_operand(source).type.shape
        if not shape or not its or shape[0] != its[0]:
            raise ValueError(f"Need first dimension of target shape ({shape}) and source shape ({its}) to match.")
        for what, each in (("target", shape), ("source", its)):
            if len(each) < 2:
                raise ValueError(f"{what} must have rank at least 2, one of them for the batch. Got {what} of shape {each}")
        self._check_persistent(parallel_iterations, experimental_use_pfor)
        return dress_structure(super().batch_jacobian(target, source, "zero"))  # never None, as in TensorFlow

    def _check_persistent(self, parallel_iterations: Any, vectorized: bool) -> None:
        """Raise where TensorFlow does, which computes rows one by one in these cases, so that code is portable."""
        if not self._persistent and (parallel_iterations is not None or not vectorized):
            raise RuntimeError(
                "GradientTape must be created with persistent=True to compute the jacobian with parallel_iterations, or without pfor "
                "(experimental_use_pfor=False)."
            )

    def _read_targets(self, target: Any) -> None:
        """Read variables that are targets themselves: they count as targets even if nothing read them inside the tape."""
        record = self._record
        for leaf in flatten(target)[0] if record is not None else ():
            if isinstance(leaf, RuntimeVariable) and record is not None and not record.values(leaf):
                record.read(leaf, leaf.read_operand())


def _weights(output_gradients: Any) -> Any:
    leaves, tree = flatten(output_gradients, is_leaf=lambda x: x is None)
    return tree.unflatten([x if x is None or isinstance(x, float | int) else convert_to_tensor(x) for x in leaves])
