"""`NamedTuple`, as `typing` has it, and `record`, a plain dataclass: for classes that are created when adjit is imported or first called.

The originals compile code for each class, which takes longer than everything else together. Here, classes with as many fields share code,
in which only the names differ. Type checkers see the originals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from operator import itemgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple

T = TypeVar("T")

if not TYPE_CHECKING:
    try:
        from _collections import _tuplegetter as _getter  # as fast as an attribute
    except ImportError:

        def _getter(index: int, doc: str) -> property:
            return property(itemgetter(index), doc=doc)

    class _Meta(type):
        """Turns a class body with annotations into a named tuple that has the other members of the body."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            if bases != (NamedTuple,):
                raise TypeError(f"{name}: a named tuple has no other base classes")
            fields = tuple(map(sys.intern, body.get("__annotations__", {})))
            defaults = {field: body[field] for field in fields if field in body}
            if any(field in body for field in fields[: len(fields) - len(defaults)]):
                raise TypeError(f"{name}: fields with defaults come last")
            new = _with_names(_new_code(len(fields)), ("_cls", *fields), (), "__new__", name, defaults.values())
            made = {key: value for key, value in body.items() if key not in fields and key not in _KEPT}
            made.setdefault("__doc__", f"{name}({', '.join(fields)})")
            made |= {field: _getter(k, f"Alias for field number {k}") for k, field in enumerate(fields)}
            made |= {"__slots__": (), "__match_args__": fields, "_fields": fields, "_field_defaults": defaults, "__new__": new}
            return type(name, (tuple,), _METHODS | made)

    class NamedTuple(metaclass=_Meta):
        """The base of named tuples; they are subclasses of `tuple` only."""

    _KEPT = ("__new__", "__init__", "__slots__", "__getnewargs__", "_fields", "_field_defaults", "_make", "_replace", "_asdict")

    _UNEXPECTED = TypeError if sys.version_info >= (3, 13) else ValueError  # as in `collections.namedtuple`

    # ---- what all of them have

    def _make(cls: Any, iterable: Iterable[Any]) -> Any:
        made = tuple.__new__(cls, iterable)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self: Any, /, **changes: Any) -> Any:
        made = tuple.__new__(type(self), map(changes.pop, self._fields, self))
        if changes:
            raise _UNEXPECTED(f"Got unexpected field names: {list(changes)!r}")
        return made

    def __repr__(self: Any) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in zip(self._fields, self, strict=True))})"

    def _asdict(self: Any) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __getnewargs__(self: Any) -> tuple[Any, ...]:
        return tuple(self)

    _METHODS = {"_make": classmethod(_make), "_replace": _replace, "__replace__": _replace, "__repr__": __repr__}
    _METHODS |= {"_asdict": _asdict, "__getnewargs__": __getnewargs__}


@dataclass_transform(eq_default=False)
def record(cls: type[T]) -> type[T]:
    """Give a class `__init__` for its annotated fields, as `dataclass(eq=False, repr=False)` does. Defaults are immutable."""
    fields = tuple(cls.__annotations__)
    defaults = {field: vars(cls)[field] for field in fields if field in vars(cls)}
    if any(field in defaults for field in fields[: len(fields) - len(defaults)]):
        raise TypeError(f"{cls.__name__}: fields with defaults come last")
    init = _with_names(_init_code(len(fields)), ("self", *fields), fields, "__init__", cls.__name__, defaults.values())
    cls.__init__, cls.__match_args__ = init, fields  # type: ignore[attr-defined, method-assign, misc]
    return cls


def replace(instance: T, **changes: Any) -> T:
    """A copy of a record with other values of some fields."""
    cls = type(instance)
    return cls(**{field: getattr(instance, field) for field in cls.__annotations__} | changes)


def _with_names(
    code: CodeType, variables: tuple[str, ...], names: tuple[str, ...], function: str, owner: str, defaults: Iterable[Any]
) -> Callable[..., Any]:
    """A function with the code of another, whose local variables and attributes have other names."""
    qualified = f"{owner}.{function}"
    named = code.replace(co_varnames=variables, co_name=function, co_qualname=qualified, co_names=names or code.co_names)
    return FunctionType(named, {"new": tuple.__new__}, function, tuple(defaults) or None)


@cache
def _new_code(count: int) -> CodeType:
    fields = "".join(f"a{k}, " for k in range(count))
    made: FunctionType = eval(f"lambda _cls, {fields}: new(_cls, ({fields}))")
    return made.__code__


@cache
def _init_code(count: int) -> CodeType:
    names: dict[str, Any] = {}
    fields = [f"a{k}" for k in range(count)]
    exec(f"def init(self, {', '.join(fields)}):\n" + "\n".join(f" self.{field} = {field}" for field in fields), names)
    code: CodeType = names["init"].__code__
    return code
