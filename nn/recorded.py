"""Objects that remember how they were created, so that a model can be written to a file as data."""

from __future__ import annotations

from typing import Any

__all__ = ["Given", "Recorded"]


class Given:
    """The arguments of a constructor."""

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs


class Recorded:
    """Mixin: `given` holds the arguments that the object was created with."""

    given: Given

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        self.given = Given(args, kwargs)
        return self
