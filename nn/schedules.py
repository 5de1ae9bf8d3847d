"""Learning rate schedules. A schedule is a function of the step, which may be traced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.ir.types import F64
from adjit.tracer.convert import to_operand

from .recorded import Recorded

__all__ = [
    "Schedule", "Constant", "StepDecay", "ExponentialDecay", "InverseTimeDecay", "PiecewiseConstantDecay", "PolynomialDecay", "CosineDecay",
    "CosineDecayRestarts", "WarmUp",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class Schedule(Recorded):
    """Base of schedules: define `rate(step)`, for a step counted from 0 as a float64 scalar.

    >>> class Halving(aj.nn.schedules.Schedule):
    ...     def rate(self, step):
    ...         return 0.1 * 0.5**step
    >>> float(Halving()(2))
    0.025
    """

    def __call__(self, step: Any) -> Operand:
        return to_operand(self.rate(to_operand(step).astype(F64)))

    def rate(self, step: Operand) -> Any:
        raise NotImplementedError(type(self).__name__)

    def label(self, name: str | None) -> str:
        """The given name, or that of the class."""
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: name must be a string, not {name!r}")
        return name or type(self).__name__


class Constant(Schedule):
    """A constant rate.

    >>> schedule = aj.nn.schedules.Constant(0.1)
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.1, 0.1, 0.1]
    """

    def __init__(self, value: float) -> None:
        self.value = float(value)

    def rate(self, step: Operand) -> Any:
        return 0.0 * step + self.value


class ExponentialDecay(Schedule):
    """initial * decay_rate ** (step / decay_steps); with `staircase`, the exponent is rounded down.

    >>> schedule = aj.nn.schedules.ExponentialDecay(0.1, 10, 0.5)
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.1, 0.05, 0.0354]
    """

    def __init__(
        self, initial_learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False, name: str | None = None
    ) -> None:
        self.name = self.label(name)
        self.initial, self.steps, self.decay, self.staircase = initial_learning_rate, decay_steps, decay_rate, staircase

    def rate(self, step: Operand) -> Any:
        passed = step / float(self.steps)
        return self.initial * ops.power(self.decay, ops.floor(passed) if self.staircase else passed)


class StepDecay(ExponentialDecay):
    """initial, multiplied by `factor` after every `every` steps.

    >>> schedule = aj.nn.schedules.StepDecay(0.1, 10, 0.5)
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.1, 0.05, 0.05]
    """

    def __init__(self, initial_learning_rate: float, every: int, factor: float = 0.1) -> None:
        super().__init__(initial_learning_rate, every, factor, staircase=True)


class InverseTimeDecay(Schedule):
    """initial / (1 + decay_rate * step / decay_steps)

    >>> schedule = aj.nn.schedules.InverseTimeDecay(0.1, 10, 0.5)
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.1, 0.0667, 0.0571]
    """

    def __init__(
        self, initial_learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False, name: str | None = None
    ) -> None:
        self.name = self.label(name)
        self.initial, self.steps, self.decay, self.staircase = initial_learning_rate, decay_steps, decay_rate, staircase

    def rate(self, step: Operand) -> Any:
        passed = step / float(self.steps)
        return self.initial / (1.0 + self.decay * (ops.floor(passed) if self.staircase else passed))


class PiecewiseConstantDecay(Schedule):
    """values[0] up to and including step boundaries[0], values[1] up to boundaries[1], and so on.

    >>> schedule = aj.nn.schedules.PiecewiseConstantDecay([10], [0.1, 0.01])
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.1, 0.1, 0.01]
    """

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], name: str | None = None) -> None:
        self.name = self.label(name)
        if len(values) != len(boundaries) + 1:
            raise ValueError(f"PiecewiseConstantDecay: {len(boundaries)} boundaries need {len(boundaries) + 1} values, not {len(values)}")
        self.boundaries, self.values = tuple(boundaries), tuple(values)

    def rate(self, step: Operand) -> Any:
        out: Any = 0.0 * step + self.values[-1]
        for boundary, value in zip(reversed(self.boundaries), reversed(self.values[:-1]), strict=True):
            out = ops.where(step <= float(boundary), value, out)
        return out


class PolynomialDecay(Schedule):
    """From the initial rate to `end_learning_rate` in `decay_steps`, along (1 - step / decay_steps) ** power; with `cycle`, repeatedly.

    >>> schedule = aj.nn.schedules.PolynomialDecay(0.1, 20, 0.0)
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.1, 0.05, 0.025]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str | None = None,
    ) -> None:
        self.name = self.label(name)
        self.initial, self.steps, self.end, self.power, self.cycle = initial_learning_rate, decay_steps, end_learning_rate, power, cycle

    def rate(self, step: Operand) -> Any:
        total: Any = float(self.steps)
        if self.cycle:
            total = total * ops.maximum(ops.ceil(step / float(self.steps)), 1.0)
        left = 1.0 - ops.minimum(step, total) / total
        return (self.initial - self.end) * ops.power(left, self.power) + self.end


class CosineDecay(Schedule):
    """From the initial rate to `alpha` times it in `decay_steps`, along half a cosine, after a linear warm-up to `warmup_target`.

    >>> schedule = aj.nn.schedules.CosineDecay(0.1, 20)
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.1, 0.05, 0.0146]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        alpha: float = 0.0,
        name: str | None = None,
        warmup_target: float | None = None,
        warmup_steps: int = 0,
    ) -> None:
        self.name = self.label(name)
        self.initial, self.steps, self.alpha = initial_learning_rate, decay_steps, alpha
        self.target, self.warmup = warmup_target, warmup_steps

    def rate(self, step: Operand) -> Any:
        top = self.initial if self.target is None else self.target
        warmup = float(self.warmup if self.target is not None else 0)
        after = ops.clip((step - warmup) / float(self.steps), 0.0, 1.0)
        cosine = 0.5 * (1.0 + ops.cos(math.pi * after))
        out = top * ((1.0 - self.alpha) * cosine + self.alpha)
        if not warmup:
            return out
        return ops.where(step < warmup, self.initial + (top - self.initial) * (step / warmup), out)


class CosineDecayRestarts(Schedule):
    """Repeated half cosines: each cycle is `t_mul` times as long as the previous one, and `m_mul` times as high.

    >>> schedule = aj.nn.schedules.CosineDecayRestarts(0.1, 20)
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.1, 0.05, 0.0146]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: int,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str | None = None,
    ) -> None:
        self.name = self.label(name)
        self.initial, self.first, self.t_mul, self.m_mul, self.alpha = initial_learning_rate, first_decay_steps, t_mul, m_mul, alpha

    def rate(self, step: Operand) -> Any:
        passed = step / float(self.first)
        if self.t_mul == 1.0:
            cycle = ops.floor(passed)
            within = passed - cycle
        else:
            cycle = ops.floor(ops.log(1.0 - passed * (1.0 - self.t_mul)) / math.log(self.t_mul))
            start = (1.0 - ops.power(self.t_mul, cycle)) / (1.0 - self.t_mul)
            within = (passed - start) / ops.power(self.t_mul, cycle)
        cosine = 0.5 * ops.power(self.m_mul, cycle) * (1.0 + ops.cos(math.pi * within))
        return self.initial * ((1.0 - self.alpha) * cosine + self.alpha)


class WarmUp(Schedule):
    """A linear increase from 0 over `steps`, then `after` (a rate or a schedule that starts there).

    >>> schedule = aj.nn.schedules.WarmUp(0.1, 20)
    >>> [round(float(schedule(step)), 4) for step in (0, 10, 15)]
    [0.0048, 0.0524, 0.0762]
    """

    def __init__(self, after: float | Callable[[Any], Any], steps: int) -> None:
        self.after = after if callable(after) else Constant(after)
        self.steps = steps

    def rate(self, step: Operand) -> Any:
        top = to_operand(self.after(0.0 * step)).astype(F64)
        later = to_operand(self.after(ops.maximum(step - float(self.steps), 0.0))).astype(F64)
        return ops.where(step < float(self.steps), top * ((step + 1.0) / float(self.steps + 1)), later)
