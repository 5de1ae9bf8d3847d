"""Objects that store the arguments of their constructor, so that a model can be written to a file as data."""

from __future__ import annotations

from typing import Any

from adjit.ir.tracebacks import boundary

__all__ = ["Given", "Recorded"]


class Given:
    """The arguments of a constructor."""

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs


class Recorded:
    """Mixin: `given` holds the arguments that the object was created with. Errors leave constructors and calls without adjit's frames."""

    given: Given

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.__module__.startswith("adjit."):
            for name in {"__init__", "__call__"} & vars(cls).keys():
                setattr(cls, name, boundary(vars(cls)[name]))

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        self.given = Given(args, kwargs)
        return self
