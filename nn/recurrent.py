"""Recurrent layers over [batch, time, features]: one compiled loop over time, with the products of the inputs moved out of it.

Variables are laid out as in Keras: an LSTM's gates are input, forget, cell and output; a GRU's are update, reset and candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from adjit.ir import ops
from adjit.ir.active import outside_builders
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import BOOL, TensorType
from adjit.runtime.recording import suspended
from adjit.runtime.variable import Variable
from adjit.tracer.control import scan
from adjit.tracer.convert import present, to_operand

from .activations import get_activation
from .calls import is_training
from .core import Dropout, Init, positive
from .initializers import get_initializer
from .module import Module, as_input, check_features

States = tuple[Operand, ...]


class Recurrent(Module):
    """Base of recurrent layers.

    Returns the last output, or with `return_sequences` all outputs; with `return_state`, also the last states. A `mask` [batch, time]
    marks the steps that count: other steps leave the states unchanged. `go_backwards` starts at the end, and returns outputs in that order.
    A `stateful` layer starts a batch with the final states of the previous one, until `reset_state()`.
    In training, `dropout` drops features of the inputs, `recurrent_dropout` units seen by the next step; both are the same in all steps.
    """

    regularized = ("kernel", "recurrent", "bias")
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1
    bias: Variable | None
    kept: Sequence[Variable] = ()  # the states of a stateful layer

    def __init__(
        self, units: int, activation: str | Callable[..., Any] | None = "tanh", use_bias: bool = True,
        kernel_initializer: Init = "glorot_uniform", recurrent_initializer: Init = "orthogonal", bias_initializer: Init = "zeros",
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(**more)
        self.units = positive(self, "units", units)
        self.activation = get_activation(activation, self.name)
        self.use_bias = use_bias
        self.kernel_initializer, self.recurrent_initializer = kernel_initializer, recurrent_initializer
        self.bias_initializer = bias_initializer
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.stateful, self.unroll = go_backwards, stateful, unroll
        self.dropout = Dropout(dropout, (None, 1, None), seed) if dropout else None
        self.recurrent_dropout = Dropout(recurrent_dropout, None, seed) if recurrent_dropout else None

    def build(self, shape: Any, *_: Any) -> None:
        if shape is None or len(shape) != 3:
            raise ShapeError(f"{self.name}: takes [batch, time, features], not the shape {shape}")
        width = self.gates * self.units
        penalty, constraint = self._regularizers.get("recurrent"), self._constraints.get("recurrent")
        self.kernel = self.add_variable("kernel", (shape[-1], width), self.kernel_initializer)
        inner = (self.units, width)
        self.recurrent_kernel = self.add_variable("recurrent_kernel", inner, self.recurrent_initializer, True, None, penalty, constraint)
        self.bias = self.add_variable("bias", self.bias_shape(), self.first_bias) if self.use_bias else None
        if self.stateful:
            self.kept = [self.add_variable(f"state_{i}", (shape[0], self.units), "zeros", trainable=False) for i in range(self.states)]

    def bias_shape(self) -> tuple[int, ...]:
        return (self.gates * self.units,)

    def first_bias(self, shape: Any, dtype: Any) -> Any:
        return get_initializer(self.bias_initializer)(shape, dtype=dtype)

    def project(self, x: Operand) -> Operand:
        """The contribution of the inputs of all steps: one product for the whole sequence."""
        out = x @ self.kernel
        return out if self.bias is None else out + self.bias

    def step(self, x: Operand, states: States, seen: Operand) -> States:
        """The next states (the first is the output), from the projected input and the visible part of the last output."""
        raise NotImplementedError(type(self).__name__)

    def reset_state(self) -> None:
        """Reset the states of a stateful layer to zeros."""
        for variable in self.kept:
            variable.assign(np.zeros(variable.type.shape, variable.type.dtype))

    reset_states = reset_state

    def call(self, x: Any, initial_state: Any = None, mask: Any = None) -> Any:
        sequence = as_input(self, x)
        if sequence.ndim != 3:
            raise ShapeError(f"{self.name}: takes [batch, time, features], not {sequence.type}")
        if sequence.type.shape[1] == 0:
            raise ShapeError(f"{self.name}: the sequence is empty: {sequence.type}")
        check_features(self, sequence, self.kernel.type.shape[0])
        states = self._first(sequence, initial_state)
        sequence = sequence if self.dropout is None else self.dropout(sequence)
        steps = ops.transpose(self.project(sequence), (1, 0, 2))
        masks = None if mask is None else self._masks(mask, sequence)
        if self.go_backwards:
            steps, masks = ops.flip(steps, 0), None if masks is None else ops.flip(masks, 0)
        last, outputs = self._run(states, steps, masks)
        for variable, state in zip(self.kept, last, strict=False):
            variable.assign(state)
        out = ops.transpose(outputs, (1, 0, 2)) if self.return_sequences else last[0]
        return (out, *last) if self.return_state else out

    def _first(self, x: Operand, initial_state: Any) -> States:
        shape = (x.type.shape[0], self.units)
        if initial_state is None and self.kept:
            if self.kept[0].type.shape != shape:
                raise ShapeError(
                    f"{self.name}: is stateful and was built for batches of {self.kept[0].type.shape[0]}, called with {x.type}; "
                    "keep the size of batches, or make the layer not stateful"
                )
            return tuple(v.read_operand() for v in self.kept)
        if initial_state is None:
            return tuple(present(x.literal(0.0, TensorType(self.dtype, shape))) for _ in range(self.states))
        given = tuple(initial_state) if isinstance(initial_state, tuple | list) else (initial_state,)
        states = tuple(as_input(self, s) for s in given)
        if len(states) != self.states or any(s.type.shape != shape for s in states):
            raise ShapeError(
                f"{self.name}: takes {self.states} initial state(s) of shape {list(shape)}, not {', '.join(str(s.type) for s in states)}"
            )
        return states

    def _masks(self, mask: Any, x: Operand) -> Operand:
        masks = to_operand(mask)
        if masks.type.shape != x.type.shape[:2]:
            raise ShapeError(f"{self.name}: the mask {masks.type} must be [batch, time] of {x.type}")
        return ops.reshape(ops.transpose(masks.astype(BOOL)), (x.type.shape[1], x.type.shape[0], 1))

    def _run(self, states: States, steps: Operand, masks: Operand | None) -> tuple[States, Operand]:
        kept = self._kept_units(states[0])

        def advance(states: States, inputs: tuple[Operand, ...]) -> tuple[States, Operand]:
            new = self.step(inputs[0], states, states[0] if kept is None else states[0] * kept)
            if len(inputs) > 1:
                new = tuple(ops.where(inputs[1], n, old) for n, old in zip(new, states, strict=True))
            return new, new[0]

        inputs = (steps,) if masks is None else (steps, masks)
        if not self.unroll:
            last, sequence = scan(advance, states, inputs)
            return tuple(last), sequence
        outputs = []
        for t in range(steps.type.shape[0]):
            states, output = advance(states, tuple(ops.getitem(x, t) for x in inputs))
            outputs.append(ops.reshape(output, (1, *output.type.shape)))
        return states, ops.concatenate(outputs, 0)

    def _kept_units(self, state: Operand) -> Operand | None:
        """Factors for the units seen by the next step, 0 for dropped ones; None if all are kept."""
        if self.recurrent_dropout is None:
            return None
        kept = self.recurrent_dropout(present(state.literal(1.0, TensorType(self.dtype, state.type.shape))))
        return to_operand(kept) if is_training() else None  # called in any case, so that its variable exists after the first call

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return mask if self.return_sequences else None


class SimpleRNN(Recurrent):
    """activation(x @ kernel + h @ recurrent_kernel + bias)

    >>> aj.nn.SimpleRNN(4, return_sequences=True)(np.ones((2, 5, 3), "f4")).shape
    (2, 5, 4)
    """

    def step(self, x: Operand, states: States, seen: Operand) -> States:
        return (to_operand(self.activation(x + seen @ self.recurrent_kernel)),)


def parts(x: Operand, count: int) -> list[Operand]:
    """Split the last axis into equal parts."""
    size = x.type.shape[-1] // count
    return [ops.slice_(x, [*[slice(None)] * (x.ndim - 1), slice(i * size, (i + 1) * size)]) for i in range(count)]


class LSTM(Recurrent):
    """Long short-term memory; its states are the output and the cell.

    >>> aj.nn.LSTM(4)(np.ones((2, 5, 3), "f4")).shape
    (2, 4)
    """

    gates, states = 4, 2

    def __init__(self, units: int, recurrent_activation: Any = "sigmoid", unit_forget_bias: bool = True, **more: Any) -> None:
        super().__init__(units, **more)
        self.recurrent_activation = get_activation(recurrent_activation, self.name)
        self.unit_forget_bias = unit_forget_bias

    def first_bias(self, shape: Any, dtype: Any) -> Any:
        with outside_builders(), suspended():
            bias = np.array(super().first_bias(shape, dtype))
        if self.unit_forget_bias:
            bias[self.units : 2 * self.units] = 1.0  # forget gate: keep the cell at first
        return bias

    def step(self, x: Operand, states: States, seen: Operand) -> States:
        _, c = states
        i, f, g, o = parts(x + seen @ self.recurrent_kernel, 4)
        gate = self.recurrent_activation
        c = gate(f) * c + gate(i) * self.activation(g)
        return gate(o) * self.activation(c), c


class GRU(Recurrent):
    """Gated recurrent unit; with `reset_after` (the default) the reset gate acts on the product, and there are two biases.

    >>> aj.nn.GRU(4, return_sequences=True)(np.ones((2, 5, 3), "f4")).shape
    (2, 5, 4)
    """

    gates = 3

    def __init__(self, units: int, recurrent_activation: Any = "sigmoid", reset_after: bool = True, **more: Any) -> None:
        super().__init__(units, **more)
        self.recurrent_activation = get_activation(recurrent_activation, self.name)
        self.reset_after = reset_after

    def bias_shape(self) -> tuple[int, ...]:
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def project(self, x: Operand) -> Operand:
        out = x @ self.kernel
        if self.bias is None:
            return out
        return out + (ops.getitem(self.bias.read_operand(), 0) if self.reset_after else self.bias)

    def step(self, x: Operand, states: States, seen: Operand) -> States:
        (h,) = states
        xz, xr, xh = parts(x, 3)
        gate = self.recurrent_activation
        if self.reset_after:
            inner = seen @ self.recurrent_kernel
            if self.bias is not None:
                inner = inner + ops.getitem(self.bias.read_operand(), 1)
            hz, hr, hh = parts(inner, 3)
            z, r = gate(xz + hz), gate(xr + hr)
            candidate = self.activation(xh + r * hh)
        else:
            weights = self.recurrent_kernel.read_operand()
            both, last = (ops.slice_(weights, [slice(None), s]) for s in (slice(2 * self.units), slice(2 * self.units, None)))
            hz, hr = parts(seen @ both, 2)
            z, r = gate(xz + hz), gate(xr + hr)
            candidate = self.activation(xh + (r * seen) @ last)
        return (z * h + (1.0 - z) * candidate,)


class Bidirectional(Module):
    """A recurrent layer in both directions, each created by `make()`; outputs are concatenated, added, multiplied or averaged.

    >>> aj.nn.Bidirectional(lambda: aj.nn.LSTM(4))(np.ones((2, 5, 3), "f4")).shape
    (2, 8)
    """

    def __init__(self, make: Callable[[], Recurrent], merge_mode: str | None = "concat", **more: Any) -> None:
        super().__init__(**more)
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(f"{self.name}: merge_mode is concat, sum, mul, ave or None, not {merge_mode!r}")
        if isinstance(make, Module):
            raise TypeError(f"{self.name}: takes a function that makes a layer, since it needs two of them: Bidirectional(lambda: LSTM(8))")
        self.forward, self.backward, self.merge_mode = make(), make(), merge_mode
        self.backward.go_backwards = not self.forward.go_backwards

    def call(self, x: Any, mask: Any = None) -> Any:
        ahead, behind = self.forward(x, mask=mask), self.backward(x, mask=mask)
        if self.forward.return_sequences:
            behind = ops.flip(behind, 1)
        if self.merge_mode is None:
            return ahead, behind
        if self.merge_mode == "concat":
            return ops.concatenate([ahead, behind], -1)
        if self.merge_mode == "mul":
            return ahead * behind
        return (ahead + behind) * (0.5 if self.merge_mode == "ave" else 1.0)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return self.forward.compute_mask(x, mask)
