"""Moving averages of the variables that an optimizer updates, which replace them at intervals, or when training ends."""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir import ops
from adjit.ir.operand import Operand, as_operand
from adjit.runtime.variable import Variable


class MovingAverages:
    """In each call of an optimizer: average = momentum * average + (1 - momentum) * variable; the first average is the variable.

    With `overwrite_frequency` n, every n-th update replaces the variables by their averages. As in Keras, calls that only accumulate
    gradients update the averages, too.
    """

    def __init__(self, owner: str, momentum: float, overwrite_frequency: int | None) -> None:
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"{owner}: ema_momentum is a number in [0, 1], not {momentum}")
        if overwrite_frequency is not None and overwrite_frequency < 1:
            raise ValueError(f"{owner}: ema_overwrite_frequency is a positive integer, or None, not {overwrite_frequency}")
        self.owner, self.momentum, self.frequency = owner, momentum, overwrite_frequency

    def slots(self, sharding: object) -> dict[str, float]:
        """The additional state of each variable, with its initial value."""
        if sharding is not None:
            raise ValueError(
                f"{self.owner}: use_ema needs whole variables, but each rank has a part of the state: leave out shard_optimizer"
            )
        return {"average": 0.0}

    def follow(self, variable: Variable, average: Variable, updates: Operand) -> None:
        """Update the average of a variable after a call of the optimizer; `updates` counts those before it."""
        value = variable.read_operand()
        kept = ops.cast(as_operand(ops.where(ops.equal(updates, 0), 0.0, self.momentum)), value.type.dtype)
        following = kept * average.read_operand() + (1.0 - kept) * value
        average.assign(following)
        if self.frequency is not None:
            variable.assign(ops.where(ops.equal(ops.remainder(updates + 1, self.frequency), 0), following, value))


def overwrite(variables: Sequence[Variable], averages: Sequence[Variable]) -> None:
    for variable, average in zip(variables, averages, strict=True):
        variable.assign(average.read_operand())
