"""`NamedTuple`, as `typing` has it, for classes that are created when adjit is imported or first called.

`typing.NamedTuple` compiles each annotation to check it, which takes longer than everything else together. Type checkers see the original.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Meta(type):
        """Turns a class body with annotations into a named tuple that has the other members of the body."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            if bases != (NamedTuple,):
                raise TypeError(f"{name}: a named tuple has no other base classes")
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            if any(field in body for field in list(fields)[: len(fields) - len(defaults)]):
                raise TypeError(f"{name}: fields with defaults come last")
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                if key not in fields and key not in _KEPT:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Meta):
        """The base of named tuples; they are subclasses of `tuple` only."""

    _KEPT = ("__new__", "__init__", "__slots__", "__getnewargs__", "_fields", "_field_defaults", "_make", "_replace", "_asdict")
