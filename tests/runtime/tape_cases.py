"""The table of tape semantics: each row is a function, its arguments, and its result, the same eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import adjit as aj


class Case(NamedTuple):
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    gives: Any


CASES: list[Case] = []


def case(*args: Any, gives: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(fn, args, gives))
        return fn

    return register


# ---- watched values


@case(3.0, gives=6.0)
def watched_tensor(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x)


@case(3.0, gives=None)
def unwatched_tensor(x: Any) -> Any:
    with aj.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, x)


W = aj.Variable(3.0, name="W")
V = aj.Variable(2.0, name="V")
FROZEN = aj.Variable(5.0, trainable=False, name="frozen")
CONSTANT = aj.tensor([1.0, 2.0])


@case(gives=6.0)
def variable() -> Any:
    with aj.GradientTape() as tape:
        y = W * W
    return tape.gradient(y, W)


@case(gives=None)
def variable_not_trainable() -> Any:
    with aj.GradientTape() as tape:
        y = FROZEN * FROZEN
    return tape.gradient(y, FROZEN)


@case(gives=10.0)
def variable_not_trainable_but_watched() -> Any:
    with aj.GradientTape() as tape:
        tape.watch(FROZEN)
        y = FROZEN * FROZEN
    return tape.gradient(y, FROZEN)


@case(gives=[None, 4.0])
def variables_not_watched_by_access() -> Any:
    with aj.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(V)
        y = W * W + V * V
    return tape.gradient(y, [W, V])


@case(4.0, gives=None)
def constant_beside_a_variable(x: Any) -> Any:
    with aj.GradientTape() as tape:
        y = x * W
    return tape.gradient(y, x)


@case(gives=[2.0, 4.0])
def closed_over_constant() -> Any:
    with aj.GradientTape() as tape:
        tape.watch(CONSTANT)
        y = (CONSTANT * CONSTANT).sum()
    return tape.gradient(y, CONSTANT)


@case([5.0, 6.0], gives=[5.0, 6.0])
def closed_over_constant_beside_an_argument(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(CONSTANT)
        y = (x * CONSTANT).sum()
    return tape.gradient(y, CONSTANT)


@case(gives=12.0)
def constant_made_inside() -> Any:
    x = aj.tensor(2.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x**3
    return tape.gradient(y, x)


@case(3.0, gives=None)
def before_the_context(x: Any) -> Any:
    y = x * x
    with aj.GradientTape() as tape:
        tape.watch(x)
    return tape.gradient(y, x)


@case(3.0, gives=6.0)
def after_the_context(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    x * y
    return tape.gradient(y, x)


@case(3.0, gives=None)
def watched_too_late(x: Any) -> Any:
    with aj.GradientTape() as tape:
        y = x * x
        tape.watch(x)
    return tape.gradient(y, x)


# ---- targets and sources


@case([1.0, 2.0], gives=[2.0, 4.0])
def target_that_is_no_scalar(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x)


@case(3.0, gives=7.0)
def several_targets_are_summed(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        targets = {"a": x * x, "b": [x, 2.0]}
    return tape.gradient([targets["a"], targets["b"][0]], x)


@case(3.0, gives=12.0)
def the_same_target_twice(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient([y, y], x)


@case(2.0, 3.0, gives={"a": 3.0, "rest": (2.0, [None])})
def structure_of_sources(x: Any, z: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch([x, z])
        y = x * z
    return tape.gradient(y, {"a": x, "rest": (z, [V])})


@case(3.0, gives=(18.0, 108.0))
def intermediate_as_source(x: Any) -> Any:
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    return tape.gradient(z, y), tape.gradient(z, x)


@case(3.0, gives=None)
def unrelated_intermediate(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        other = W.value() * 2.0
        y = x * x
    return tape.gradient(y, other)


@case(3.0, gives=1.0)
def source_that_is_the_target(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
    return tape.gradient(x, x)


@case(2.0, gives=[4.0, 4.0])
def the_same_source_twice(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, [x, x])


@case(gives=8.0)
def variable_read_twice() -> Any:
    with aj.GradientTape() as tape:
        y = W * W + 2.0 * W.value()
    return tape.gradient(y, W)


@case(3.0, gives=(None, 0.0))
def unconnected(x: Any) -> Any:
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, W), tape.gradient(y, W, unconnected_gradients="zero")


@case([1.0, 2.0], gives=[0.0, 0.0])
def unconnected_zeros_have_the_sources_shape(x: Any) -> Any:
    with aj.GradientTape() as tape:
        y = W * 2.0
    return tape.gradient(y, x, unconnected_gradients="zero")


@case([1.0, 2.0], gives=[20.0, 0.0])
def output_gradients(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x, output_gradients=np.array([10.0, 0.0]))


@case(3.0, gives=62.0)
def output_gradients_of_several_targets(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y, z = x * x, 2.0 * x
    return tape.gradient([y, z], x, output_gradients=[10.0, None])


# ---- how often, and when


@case(3.0, gives=(6.0, 27.0))
def persistent_tape(x: Any) -> Any:
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * x * x
    return tape.gradient(y, x), tape.gradient(z, x)


@case(3.0, gives="A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)")
def spent_tape(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    try:
        tape.gradient(y, x)
    except RuntimeError as error:
        return str(error)


@case(3.0, gives="Tape is still recording, This can happen if you try to re-enter an already-active tape.")
def re_entered_tape(x: Any) -> Any:
    with aj.GradientTape() as tape:
        try:
            with tape:
                pass
        except ValueError as error:
            return str(error)


@case(3.0, gives=6.0)
def gradient_inside_the_context(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        return tape.gradient(y, x)


@case(3.0, gives=(6.0, 6.0, 2.0))
def gradient_inside_the_context_of_a_persistent_tape(x: Any) -> Any:
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        first = tape.gradient(y, x)
    return first, tape.gradient(y, x), tape.gradient(first, x)


@case(3.0, gives=(None, 1.0))
def stopped_recording(x: Any) -> Any:
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
        z = x + y
    return tape.gradient(y, x), tape.gradient(z, x)


@case(3.0, gives=(None, 2.0))
def reset_tape(x: Any) -> Any:
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = 2.0 * x
    return tape.gradient(y, x), tape.gradient(z, x)


@case(3.0, gives=5.0)
def entered_twice(x: Any) -> Any:
    tape = aj.GradientTape()
    with tape:
        tape.watch(x)
        y = 2.0 * x
    with tape:
        z = y + 3.0 * x
    return tape.gradient(z, x)


@case(gives=["W", "V"])
def watched_variables() -> Any:
    with aj.GradientTape() as tape:
        W * V * FROZEN
    return [v.name for v in tape.watched_variables()]


@case(gives=["W"])
def watched_variables_of_a_spent_tape() -> Any:
    with aj.GradientTape() as tape:
        y = W * 2.0
    tape.gradient(y, W)
    return [v.name for v in tape.watched_variables()]


# ---- higher orders


@case(3.0, gives=(27.0, 18.0, 6.0))
def nested_tapes(x: Any) -> Any:
    with aj.GradientTape() as outer:
        outer.watch(x)
        with aj.GradientTape() as middle:
            middle.watch(x)
            with aj.GradientTape() as inner:
                inner.watch(x)
                y = x * x * x
            first = inner.gradient(y, x)
        second = middle.gradient(first, x)
    return first, second, outer.gradient(second, x)


@case(gives=2.0)
def nested_tapes_on_a_variable() -> Any:
    with aj.GradientTape() as outer:
        with aj.GradientTape() as inner:
            y = W * W
        first = inner.gradient(y, W)
    return outer.gradient(first, W)


@case([1.0, 2.0], gives=[6.0, 12.0])
def hessian_vector_product(x: Any) -> Any:
    with aj.GradientTape() as outer:
        outer.watch(x)
        with aj.GradientTape() as inner:
            inner.watch(x)
            y = (x * x * x).sum()
        first = inner.gradient(y, x)
    return outer.gradient(first, x, output_gradients=np.ones(2))


@case(3.0, gives=(6.0, 2.0))
def one_tape_around_another_tensor(x: Any) -> Any:
    with aj.GradientTape() as outer:
        outer.watch(x)
        with aj.GradientTape() as inner:
            inner.watch(x)
            y = x * x
        z = inner.gradient(y, x)
    return z, outer.gradient(z, x)


# ---- state


@case(3.0, gives=(None, 3.0))
def state_blocks_gradients(x: Any) -> Any:
    state = FROZEN
    with aj.GradientTape(persistent=True) as tape:
        tape.watch([x, state])
        state.assign(2.0 * x)
        y = 3.0 * state
    out = tape.gradient(y, x), tape.gradient(y, state)
    state.assign(5.0)
    return out


@case(gives=4.0)
def values_before_and_after_an_assignment_both_count() -> Any:
    with aj.GradientTape() as tape:
        y = V * 1.0
        V.assign(10.0)
        y = y + V * 3.0
    gradient = tape.gradient(y, V)
    V.assign(2.0)
    return gradient


@case(3.0, gives=(3.0, 0.0))
def stop_gradient(x: Any) -> Any:
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * aj.stop_gradient(x)
    return tape.gradient(y, x), tape.gradient(aj.stop_gradient(y), x, unconnected_gradients="zero")


# ---- values


@case([1.0, -2.0, 0.0], gives=[1.0, -1.0, 0.0])
def absolute_value(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = abs(x)
    return tape.gradient(y, x)


@case([0.0, 4.0], gives=[0.0, 0.25])
def masked_square_root(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = np.where(x > 0, np.sqrt(x), 0.0)
    return tape.gradient(y, x)


@case([[1.0, 2.0], [3.0, 4.0]], gives=[[2.0, 2.0], [2.0, 2.0]])
def broadcasting_is_summed_back(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = np.stack([x, x])
    return tape.gradient(y, x)


@case([1.0, 2.0, 3.0], gives=[0.0, 3.0, 0.0])
def duplicate_indices_accumulate(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x[np.array([1, 1, 1])]
    return tape.gradient(y, x)


@case(3.0, gives=None)
def through_integers(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x.astype("i4").astype("f8") * 2.0
    return tape.gradient(y, x)
