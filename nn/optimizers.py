"""Optimizers: `apply_gradients` updates variables in place, as part of the compiled step that calls it.

The state of an optimizer (counts, moments) is stored in variables, created on its first call and named after the variables they belong to,
so that it is saved and loaded like a model. Formulas and defaults are those of Keras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import GradientError, ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import F64
from adjit.runtime.conversion import as_called
from adjit.runtime.tape import GradientTape
from adjit.runtime.variable import Store, Variable
from adjit.tracer.convert import to_operand

from .averages import MovingAverages, overwrite
from .gradients import clip_by_global_norm, clip_by_norm, clip_by_value, clip_slices
from .module import Module

if TYPE_CHECKING:
    from .sharding import Sharding

__all__ = [
    "Optimizer", "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Lion", "get_optimizer",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class Optimizer(Module):
    """Base of optimizers: `slots` names the state of each variable, `step` defines how a gradient changes a variable.

    `learning_rate` is a number (in a variable: assigning it does not recompile) or a schedule. Gradients are clipped by `clipvalue`, by
    `clipnorm` (each) or by `global_clipnorm` (all together); `weight_decay` shrinks variables in addition to the gradient. With
    `gradient_accumulation_steps` = n, every n-th call applies the mean of n gradients. With `use_ema`, moving averages replace variables at
    every `ema_overwrite_frequency`-th update, and at the end of `fit` (`finalize_variable_values`).

    >>> class Signs(aj.nn.optimizers.Optimizer):
    ...     def step(self, g, state, factors):  # what to subtract, and the new state; the first factor is the learning rate
    ...         return factors[0] * np.sign(g), {}
    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = Signs(0.5).apply_gradients([(np.array([3.0, -1.0]), w)])
    >>> w.numpy()
    array([ 0.5, -1.5])
    """

    slots: ClassVar[dict[str, float]] = {}  # name of a state of each variable: its initial value

    def __init__(
        self, learning_rate: float | Callable[[Any], Any] = 0.001, *, clipnorm: float | None = None, clipvalue: float | None = None,
        global_clipnorm: float | None = None, weight_decay: float | None = None, gradient_accumulation_steps: int | None = None,
        use_ema: bool = False, ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name)
        given = {"clipnorm": clipnorm, "clipvalue": clipvalue, "global_clipnorm": global_clipnorm}
        if sum(v is not None for v in given.values()) > 1:
            raise ValueError(f"{self.name}: give only one kind of clipping, not {', '.join(k for k, v in given.items() if v is not None)}")
        for option, value in given.items():
            if value is not None and not value > 0:
                raise ValueError(f"{self.name}: {option} must be positive, not {value}")
        if gradient_accumulation_steps is not None and gradient_accumulation_steps < 2:
            raise ValueError(f"{self.name}: gradient_accumulation_steps must be at least 2, not {gradient_accumulation_steps}")
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.weight_decay = weight_decay
        self.accumulation = gradient_accumulation_steps
        self.averages = MovingAverages(self.name, ema_momentum, ema_overwrite_frequency) if use_ema else None
        self.iterations = Variable(np.int64(0), trainable=False, name=f"{self.name}.iterations")
        self.schedule: Callable[[Any], Any] | None = None
        self.rate: Variable | None = None
        self._set_rate(learning_rate)
        self.state: dict[str, list[Variable]] = {}
        self.targets: list[Store] = []
        self._index: dict[Store, int] = {}
        self.sharding: Sharding | None = None  # set before it is built, if each rank keeps a slice of the state
        self._ready: Operand | None = None  # whether this call applies the accumulated gradients

    # ---- the learning rate

    def _set_rate(self, value: Any) -> None:
        if callable(value) and not isinstance(value, Operand):
            self.schedule, self.rate = value, None
        elif self.rate is not None:
            self.rate.assign(np.float64(value))
        else:
            self.schedule, self.rate = None, Variable(np.float64(value), trainable=False, name=f"{self.name}.learning_rate")

    @property
    def learning_rate(self) -> Any:
        """The learning rate as a variable, or the schedule's rate for the next update."""
        return self.rate if self.rate is not None else self.current_rate()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._set_rate(value)

    lr = learning_rate

    def current_rate(self) -> Operand:
        if self.schedule is not None:
            return to_operand(as_called(self.schedule)(self.iterations.read_operand())).astype(F64)
        assert self.rate is not None
        return self.rate.read_operand()

    # ---- state

    def build(self, variables: Sequence[Variable]) -> None:
        """Create the state for these variables; called by the first `apply_gradients`."""
        if self.built:
            return
        self._index = {v.store: i for i, v in enumerate(variables)}
        if len(self._index) != len(variables):
            raise ValueError(f"{self.name}: a variable is given twice among {', '.join(map(label, variables))}")
        self.targets = list(self._index)
        averaged = {} if self.averages is None else self.averages.slots(self.sharding)
        names = {**self.slots, **({"accumulated": 0.0} if self.accumulation else {}), **averaged}
        for slot, first in names.items():
            self.state[slot] = [
                Variable(np.full(self._state_shape(v), first, v.type.dtype), trainable=False, name=f"{label(v)}.{slot}") for v in variables
            ]
        if self.accumulation:
            self.calls = Variable(np.int64(0), trainable=False, name=f"{self.name}.calls")
        self.built = True

    def _state_shape(self, variable: Variable) -> tuple[int, ...]:
        return variable.shape if self.sharding is None else (self.sharding.length(variable.type),)

    def _position(self, variable: Variable) -> int:
        at = self._index.get(variable.store)
        if at is None:
            known = ", ".join(str(store.name) for store in self.targets[:5]) + (", ..." if len(self.targets) > 5 else "")
            raise ValueError(
                f"{self.name} was built for {len(self.targets)} variables ({known}), and {label(variable)} ({variable.type}) is not "
                "among them: there is no state for it; create a new optimizer for the new variables"
            )
        return at

    # ---- updates

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> Variable:
        """Update variables by their gradients, given as pairs: `zip(gradients, variables)`. Returns the number of updates so far."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError(f"{self.name}: no gradients to apply; is the model built, and are its variables trainable?")
        variables = [v for _, v in pairs]
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError(f"{self.name}: pairs are (gradient, variable), and {type(variable).__name__} is not a variable")
        self._check_missing(pairs)
        if not self.built:
            self.build(variables)
        places = [self._position(v) for v in variables]
        gradients = [self._checked(g, v) for g, v in pairs]
        if self.sharding is not None:
            gradients = [self.sharding.own(g) for g in gradients]
        if self.accumulation:
            gradients = self._accumulated(gradients, places)
        try:
            self._apply(self._clipped(gradients), variables, places)
        finally:
            self._ready = None
        return self.iterations

    def apply(self, gradients: Iterable[Any], variables: Sequence[Variable] | None = None) -> Variable:
        """Update variables by their gradients, given as two lists, or as pairs: see `apply_gradients`."""
        return self.apply_gradients(gradients if variables is None else zip(gradients, variables, strict=True))

    def minimize(self, loss: Callable[[], Any], variables: Sequence[Variable]) -> Operand:
        """Compute `loss()` and its gradients, and apply them; returns the loss."""
        with GradientTape() as tape:
            value = as_called(loss)()
        self.apply_gradients(zip(tape.gradient(value, list(variables)), variables, strict=True))
        return to_operand(value)

    def finalize_variable_values(self, variables: Sequence[Variable]) -> None:
        """Replace variables by their moving averages, if they have been updated and have some."""
        if self.averages is not None and self.built:
            overwrite(variables, [self.state["average"][self._position(v)] for v in variables])

    def _check_missing(self, pairs: Sequence[tuple[Any, Variable]]) -> None:
        missing = [label(v) for g, v in pairs if g is None]
        if missing:
            raise GradientError(
                f"{self.name}: the gradient of {', '.join(missing)} is None: the loss does not depend on it, or was computed outside "
                "of the tape; leave it out, set `trainable = False` on its layer, or pass unconnected_gradients='zero'"
            )

    def _checked(self, gradient: Any, variable: Variable) -> Operand:
        out = to_operand(gradient)
        if out.type.shape != variable.type.shape:
            raise ShapeError(f"{self.name}: {label(variable)} is {variable.type}, its gradient {out.type}: both must be in the same order")
        return out.astype(variable.type.dtype)

    def _accumulated(self, gradients: list[Operand], places: Sequence[int]) -> list[Operand]:
        """Mean gradients since the last update; `_ready`: whether this call applies them."""
        assert self.accumulation is not None
        calls = self.calls.read_operand() + 1
        ready = ops.equal(calls, self.accumulation)
        self.calls.assign(ops.where(ready, 0, calls))
        out: list[Operand] = []
        for g, at in zip(gradients, places, strict=True):
            slot = self.state["accumulated"][at]
            total = slot + g
            slot.assign(ops.where(ready, 0.0, total))
            out.append(total * (1.0 / self.accumulation))
        self._ready = ready
        return out

    def _clipped(self, gradients: list[Operand]) -> list[Operand]:
        if self.clipvalue is not None:
            return clip_by_value(gradients, self.clipvalue)
        if self.sharding is not None:
            return clip_slices(gradients, self.sharding, self.clipnorm, self.global_clipnorm)
        if self.clipnorm is not None:
            return clip_by_norm(gradients, self.clipnorm)
        return clip_by_global_norm(gradients, self.global_clipnorm)[0] if self.global_clipnorm is not None else gradients

    def _apply(self, gradients: Sequence[Operand], variables: Sequence[Variable], places: Sequence[int]) -> None:
        rate = self.current_rate()
        factors = self.factors(self.iterations.read_operand().astype(F64) + 1.0, rate)
        for g, variable, at in zip(gradients, variables, places, strict=True):
            state = {slot: kept[at] for slot, kept in self.state.items()}
            old = {slot: kept.read_operand() for slot, kept in state.items()}
            value = variable.read_operand() if self.sharding is None else self.sharding.own(variable.read_operand())
            if self.weight_decay:
                value = value - value * (rate * self.weight_decay).astype(value.type.dtype)
            change, new = self.step(g, old, [f.astype(g.type.dtype) for f in factors])
            for slot, following in new.items():
                self._assign(state[slot], old[slot], following)
            changed = value - change if self.sharding is None else self.sharding.whole(value - change, variable.type)
            self._assign(variable, variable.read_operand(), self._constrained(variable, changed))
            if self.averages is not None:
                self.averages.follow(variable, state["average"], self.iterations.read_operand())
        self._assign(self.iterations, self.iterations.read_operand(), self.iterations.read_operand() + 1)

    def _constrained(self, variable: Variable, value: Operand) -> Operand:
        constraint = variable.store.constraint
        return value if constraint is None else to_operand(as_called(constraint)(value)).astype(value.type.dtype)

    def _assign(self, variable: Variable, old: Operand, new: Operand) -> None:
        variable.assign(new if self._ready is None else ops.where(self._ready, new, old))

    def factors(self, step: Operand, rate: Operand) -> list[Operand]:
        """Scalars shared by all variables, in float64: the learning rate first. `step` counts from 1."""
        return [rate]

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        """The amount to subtract from the variable, and the new state."""
        raise NotImplementedError(type(self).__name__)


def label(variable: Variable) -> str:
    return variable.store.name or "a variable without a name"


class SGD(Optimizer):
    """Gradient descent, optionally with momentum (also Nesterov's).

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.SGD(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.9, -1.9])
    """

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, **more: Any) -> None:
        super().__init__(learning_rate, **more)
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"{self.name}: the momentum is a number in [0, 1], not {momentum}")
        self.momentum, self.nesterov = float(momentum), nesterov
        self.slots = {"momentum": 0.0} if momentum else {}  # type: ignore[misc]

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        change = factors[0] * g
        if not self.momentum:
            return change, {}
        moved = self.momentum * state["momentum"] - change
        return (change - self.momentum * moved if self.nesterov else -moved), {"momentum": moved}


class Adam(Optimizer):
    """Adam; with `amsgrad`, steps are divided by the largest second moment so far.

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.Adam(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.9, -1.9])
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, amsgrad: bool = False,
        **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **more)
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = beta_1, beta_2, epsilon, amsgrad
        self.slots = {"momentum": 0.0, "velocity": 0.0, **({"largest": 0.0} if amsgrad else {})}  # type: ignore[misc]

    def factors(self, step: Operand, rate: Operand) -> list[Operand]:
        return [rate * ops.sqrt(1.0 - ops.power(self.beta_2, step)) / (1.0 - ops.power(self.beta_1, step))]

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        m = state["momentum"] + (g - state["momentum"]) * (1.0 - self.beta_1)
        v = state["velocity"] + (g * g - state["velocity"]) * (1.0 - self.beta_2)
        new = {"momentum": m, "velocity": v}
        if self.amsgrad:
            v = new["largest"] = ops.maximum(state["largest"], v)
        return m * factors[0] / (ops.sqrt(v) + self.epsilon), new


class AdamW(Adam):
    """Adam with decoupled weight decay.

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.AdamW(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.8996, -1.8992])
    """

    def __init__(self, learning_rate: Any = 0.001, weight_decay: float = 0.004, **more: Any) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **more)


class Adamax(Optimizer):
    """Adam in the infinity norm.

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.Adamax(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.9, -1.9])
    """

    slots: ClassVar[dict[str, float]] = {"momentum": 0.0, "norm": 0.0}

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **more: Any) -> None:
        super().__init__(learning_rate, **more)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def factors(self, step: Operand, rate: Operand) -> list[Operand]:
        return [rate / (1.0 - ops.power(self.beta_1, step))]

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        m = state["momentum"] + (g - state["momentum"]) * (1.0 - self.beta_1)
        u = ops.maximum(self.beta_2 * state["norm"], ops.absolute(g))
        return m * factors[0] / (u + self.epsilon), {"momentum": m, "norm": u}


class Nadam(Adam):
    """Adam with Nesterov momentum, including its momentum schedule.

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.Nadam(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.8937, -1.8937])
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **more: Any
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **more)

    def build(self, variables: Sequence[Variable]) -> None:
        if not self.built:
            self.product = Variable(np.float64(1.0), trainable=False, name=f"{self.name}.product")
        super().build(variables)

    def factors(self, step: Operand, rate: Operand) -> list[Operand]:
        u, following = (self.beta_1 * (1.0 - 0.5 * ops.power(0.96, s)) for s in (step, step + 1.0))
        before = self.product.read_operand()
        product = before * u
        self._assign(self.product, before, product)
        return [
            rate * (1.0 - u) / (1.0 - product),
            rate * following / (1.0 - product * following),
            1.0 / (1.0 - ops.power(self.beta_2, step)),
        ]

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        m = state["momentum"] + (g - state["momentum"]) * (1.0 - self.beta_1)
        v = state["velocity"] + (g * g - state["velocity"]) * (1.0 - self.beta_2)
        ahead = factors[1] * m + factors[0] * g
        return ahead / (ops.sqrt(v * factors[2]) + self.epsilon), {"momentum": m, "velocity": v}


class RMSprop(Optimizer):
    """Steps divided by the root of a moving mean of squares; `centered` uses the variance instead.

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.RMSprop(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.6838, -1.6838])
    """

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7, centered: bool = False,
        **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, **more)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered
        names = ["velocity", *(["momentum"] if momentum else []), *(["average"] if centered else [])]
        self.slots = dict.fromkeys(names, 0.0)  # type: ignore[misc]

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        new = {"velocity": self.rho * state["velocity"] + (1.0 - self.rho) * (g * g)}
        squares = new["velocity"]
        if self.centered:
            new["average"] = self.rho * state["average"] + (1.0 - self.rho) * g
            squares = squares - ops.square(new["average"])
        change = factors[0] * g * ops.rsqrt(squares + self.epsilon)
        if self.momentum:
            change = new["momentum"] = self.momentum * state["momentum"] + change
        return change, new


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squares so far.

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.Adagrad(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.9047, -1.9047])
    """

    def __init__(self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1, epsilon: float = 1e-7, **more: Any) -> None:
        super().__init__(learning_rate, **more)
        self.epsilon = epsilon
        self.slots = {"accumulator": initial_accumulator_value}  # type: ignore[misc]

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        total = state["accumulator"] + g * g
        return factors[0] * g * ops.rsqrt(total + self.epsilon), {"accumulator": total}


class Adadelta(Optimizer):
    """Steps scaled by the ratio of the moving means of squared steps and squared gradients.

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.Adadelta(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.9999, -1.9999])
    """

    slots: ClassVar[dict[str, float]] = {"gradients": 0.0, "changes": 0.0}

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **more: Any) -> None:
        super().__init__(learning_rate, **more)
        self.rho, self.epsilon = rho, epsilon

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        squares = self.rho * state["gradients"] + (1.0 - self.rho) * (g * g)
        change = g * ops.sqrt(state["changes"] + self.epsilon) * ops.rsqrt(squares + self.epsilon)
        return factors[0] * change, {"gradients": squares, "changes": self.rho * state["changes"] + (1.0 - self.rho) * (change * change)}


class Lion(Optimizer):
    """Steps by the sign of a mix of momentum and gradient.

    >>> w = aj.Variable(np.array([1.0, -2.0]))
    >>> _ = aj.nn.optimizers.Lion(0.1).apply_gradients([(np.array([1.0, -1.0]), w)])
    >>> w.numpy().round(4)
    array([ 0.9, -1.9])
    """

    slots: ClassVar[dict[str, float]] = {"momentum": 0.0}

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **more: Any) -> None:
        super().__init__(learning_rate, **more)
        self.beta_1, self.beta_2 = beta_1, beta_2

    def step(self, g: Operand, state: dict[str, Operand], factors: Sequence[Operand]) -> tuple[Operand, dict[str, Operand]]:
        m = state["momentum"]
        change = factors[0] * ops.sign(self.beta_1 * m + (1.0 - self.beta_1) * g)
        return change, {"momentum": self.beta_2 * m + (1.0 - self.beta_2) * g}


NAMED: dict[str, type[Optimizer]] = {c.__name__.lower(): c for c in (SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Lion)}


def get_optimizer(what: Any) -> Optimizer:
    """Return an optimizer from its name, its class, or an instance.

    >>> type(aj.nn.optimizers.get_optimizer("adam")).__name__
    'Adam'
    """
    if isinstance(what, Optimizer):
        return what
    if isinstance(what, type) and issubclass(what, Optimizer):
        return what()
    if isinstance(what, str) and what.lower() in NAMED:
        return NAMED[what.lower()]()
    raise ValueError(f"there is no optimizer {what!r}; choose one of {', '.join(NAMED)}")
