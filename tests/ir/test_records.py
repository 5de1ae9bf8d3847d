"""`NamedTuple` of `ir.records` behaves like that of `typing`, and `record` like a plain dataclass."""

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


@pytest.mark.parametrize("call", [
    lambda cls: cls(), lambda cls: cls(1, 2, 3), lambda cls: cls(1, z=2), lambda cls: cls(1)._replace(z=2), lambda cls: cls._make([1]),
])  # fmt: skip
def test_errors_are_those_of_a_named_tuple(call: typing.Callable[[typing.Any], object]) -> None:
    raised = []
    for cls in (Ours, Theirs):
        with pytest.raises((TypeError, ValueError)) as error:
            call(cls)
        raised.append((error.type, str(error.value).replace("Theirs", "Ours")))
    assert raised[0] == raised[1]


@records.record
class Point:
    x: int
    y: int = 2

    def sum(self) -> int:
        return self.x + self.y


def test_records() -> None:
    point = Point(1)
    assert (point.x, point.y, point.sum()) == (1, 2, 3)
    point.x = 5
    moved = records.replace(point, y=7)
    assert type(moved) is Point
    assert (moved.x, moved.y, point.y) == (5, 7, 2)
    assert Point(1) != Point(1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        records.replace(point, z=1)


def test_refusals() -> None:
    with pytest.raises(TypeError, match="come last"):
        records.record(type("A", (), {"__annotations__": {"x": int, "y": int}, "x": 1}))
    with pytest.raises(TypeError, match="come last"):
        type(records.NamedTuple)("A", (records.NamedTuple,), {"__annotations__": {"x": int, "y": int}, "x": 1, "__module__": "m"})
    with pytest.raises(TypeError, match="no other base"):
        type(records.NamedTuple)("A", (records.NamedTuple, dict), {"__module__": "m"})
