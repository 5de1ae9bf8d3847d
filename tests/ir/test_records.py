"""`NamedTuple` of `ir.records` behaves like that of `typing`."""

from __future__ import annotations

import pickle
import typing

import pytest

from adjit.ir import records


class Ours(records.NamedTuple):
    """Two fields."""

    x: int
    y: str = "b"

    @property
    def both(self) -> str:
        return f"{self.x}{self.y}"

    def __str__(self) -> str:
        return self.both


class Theirs(typing.NamedTuple):
    """Two fields."""

    x: int
    y: str = "b"


@pytest.mark.parametrize("name", ["_fields", "_field_defaults", "__match_args__", "__doc__", "__module__"])
def test_it_has_the_attributes_of_a_named_tuple(name: str) -> None:
    assert getattr(Ours, name) == getattr(Theirs, name)


def test_instances() -> None:
    ours = Ours(1)
    assert ours == (1, "b") == Theirs(1)
    assert ours._replace(y="c") == Ours(x=1, y="c") == Ours._make([1, "c"])
    assert repr(ours) == "Ours(x=1, y='b')"
    assert str(ours) == ours.both == "1b"
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert type(ours).__mro__ == (Ours, tuple, object)
    with pytest.raises(AttributeError):
        ours.x = 2  # type: ignore[misc]


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="come last"):
        type(records.NamedTuple)("A", (records.NamedTuple,), {"__annotations__": {"x": int, "y": int}, "x": 1, "__module__": "m"})
    with pytest.raises(TypeError, match="no other base"):
        type(records.NamedTuple)("A", (records.NamedTuple, dict), {"__module__": "m"})
