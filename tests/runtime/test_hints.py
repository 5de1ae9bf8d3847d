"""Names of other frameworks, and misspelt ones: the error suggests what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator
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


INTERNAL = {
    "Any", "Callable", "NamedTuple", "Operand", "Sequence", "annotations", "as_operand", "axes_of", "dress", "missing", "np", "ops",
    "present", "public_names", "to_operand", "unary",
}  # fmt: skip


def namespaces(module: ModuleType, path: str, seen: set[ModuleType]) -> Iterator[tuple[str, ModuleType]]:
    """The modules that completion leads to, each once."""
    seen.add(module)
    yield path, module
    for name in dir(module):
        inside = getattr(module, name, None)
        if isinstance(inside, ModuleType) and inside not in seen and not name.startswith("_"):
            yield from namespaces(inside, f"{path}.{name}", seen)


SPACES = dict(namespaces(aj, "aj", set()))


def test_completion_leads_to_all_namespaces() -> None:
    assert {"aj.fft", "aj.implicit", "aj.linalg", "aj.nn.losses", "aj.random", "aj.special", "aj.tf.dtypes", "aj.tf.keras.layers"} <= set(
        SPACES
    )


@pytest.mark.parametrize("path", SPACES)
def test_tab_completion_shows_public_names_only(path: str) -> None:
    space = SPACES[path]
    shown = [name for name in dir(space) if not name.startswith("__")]
    assert shown
    assert "__dir__" in vars(space), "says itself what it shows"
    assert INTERNAL.isdisjoint(shown)
    for each in shown:
        value = getattr(space, each, None)
        if isinstance(value, ModuleType):
            assert value.__name__.startswith("adjit."), each
        else:
            assert str(getattr(value, "__module__", None) or "adjit").startswith(("adjit", "numpy", "builtins", "types")), each


def test_tab_completion_shows_public_names() -> None:
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
