"""Names of other frameworks, and misspelt ones: the error says what to write."""

from __future__ import annotations

import operator
import re
from types import ModuleType

import pytest

import adjit as aj
from adjit.runtime.hints import ELSEWHERE


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_of_other_frameworks(name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}. {ELSEWHERE[name]}")):
        getattr(aj, name)
    for suggestion in re.findall(r"aj\.(\w+)", ELSEWHERE[name]):
        assert hasattr(aj, suggestion), "what is suggested exists"


def test_misspelt_names() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'fucntion'. Did you mean 'function'\?"):
        aj.fucntion  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'zzz'$"):
        aj.zzz  # type: ignore[attr-defined]
    assert not hasattr(aj, "__path_of_nothing__")


SPACES = [
    "random", "linalg", "nn", "nn.activations", "nn.callbacks", "nn.initializers", "nn.losses", "nn.metrics", "nn.optimizers",
    "nn.regularizers", "nn.schedules", "tf", "tf.math", "tf.nn", "tf.linalg", "tf.random", "tf.errors", "tf.config", "tf.data",
    "tf.debugging", "tf.nest", "tf.autograph",
]  # fmt: skip
INTERNAL = {
    "Any", "Callable", "NamedTuple", "Operand", "Sequence", "annotations", "as_operand", "axes_of", "dress", "missing", "np", "ops",
    "present", "public_names", "to_operand", "unary",
}  # fmt: skip


@pytest.mark.parametrize("name", ["", *SPACES])
def test_tab_completion_shows_public_names_only(name: str) -> None:
    space = operator.attrgetter(name)(aj) if name else aj
    shown = dir(space)
    assert shown
    assert INTERNAL.isdisjoint(shown)
    for each in shown:
        value = getattr(space, each)
        assert not isinstance(value, ModuleType) or value.__name__.startswith("adjit."), each


def test_tab_completion_shows_what_people_look_for() -> None:
    assert {"exp", "reduce_sum", "top_k"} <= set(dir(aj.tf.math))
    assert {"conv2d", "relu", "softmax", "dropout"} <= set(dir(aj.tf.nn))
    assert {"function", "GradientTape", "keras", "reduce_sum"} <= set(dir(aj.tf))
    assert {"Dense", "Trainer", "losses"} <= set(dir(aj.nn))


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("Adam", "It is nn.optimizers.Adam"),
        ("MeanSquaredError", "It is nn.losses.MeanSquaredError"),
        ("relu", "It is nn.activations.relu"),
        ("Linear", r"A linear layer is nn.Dense\(units\)"),
        ("Dens", r"Did you mean 'Dense'\?"),
    ],
)
def test_names_that_are_in_a_part_of_nn(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'adjit.nn' has no attribute {name!r}. {instead}$"):
        getattr(aj.nn, name)


def test_the_order_of_saving() -> None:
    with pytest.raises(TypeError, match=r"not from str; the path comes first: nn.save\(path, model\)"):
        aj.nn.save(aj.nn.Dense(1), "weights")
