"""TensorShape: a tuple of sizes with TensorFlow's methods. A size, or all of them, may be unknown in a `TensorSpec`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjit.ir.sizes import is_symbolic


class TensorShape(tuple[int | None, ...]):
    """`x.shape`: a tuple with the additional methods `as_list()`, `rank` and `is_compatible_with`."""

    __slots__ = ()

    def __new__(cls, dims: Iterable[Any] | None = ()) -> TensorShape:
        if isinstance(dims, TensorShape):
            return dims
        if dims is None:
            return UNKNOWN
        return super().__new__(cls, (d if d is None or is_symbolic(d) else int(d) for d in dims))

    @property
    def rank(self) -> int | None:
        return len(self)

    @property
    def ndims(self) -> int | None:
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        return list(self)

    def as_list(self) -> list[int | None]:
        return list(self)

    def is_fully_defined(self) -> bool:
        return None not in self

    def num_elements(self) -> int | None:
        total = 1
        for d in self:
            if d is None:
                return None
            total *= d
        return total

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor could have both shapes."""
        theirs = TensorShape(other)
        if theirs is UNKNOWN:
            return True
        return len(self) == len(theirs) and all(a is None or b is None or a == b for a, b in zip(self, theirs, strict=True))

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """The shape with all sizes that are known in either."""
        theirs = TensorShape(other)
        if not self.is_compatible_with(theirs):
            raise ValueError(f"Shapes {self} and {theirs} are not compatible")
        return self if theirs is UNKNOWN else TensorShape(b if a is None else a for a, b in zip(self, theirs, strict=True))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The shape of the sizes that both have in common."""
        theirs = TensorShape(other)
        if theirs is UNKNOWN or len(self) != len(theirs):
            return UNKNOWN
        return TensorShape(a if a == b else None for a, b in zip(self, theirs, strict=True))

    def concatenate(self, other: Any) -> TensorShape:
        return UNKNOWN if TensorShape(other) is UNKNOWN else TensorShape((*self, *TensorShape(other)))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape((*other, *self))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return TensorShape(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | list) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __reduce__(self) -> Any:
        return TensorShape, (tuple(self),)

    def __repr__(self) -> str:
        return f"TensorShape({list(self.shown())})"

    def __str__(self) -> str:
        return repr(self.shown())

    def shown(self) -> tuple[int | None, ...]:
        """The sizes as TensorFlow shows them: None if known only when the function runs."""
        return tuple(None if is_symbolic(size) else size for size in self)


class UnknownShape(TensorShape):
    """`TensorShape(None)`: a shape of unknown rank, which only declarations have."""

    __slots__ = ()

    def _refuse(self, *args: Any) -> Any:
        raise ValueError("Cannot take the length, the sizes or a list of a shape with unknown rank.")

    __len__ = __iter__ = __getitem__ = as_list = _refuse

    @property
    def rank(self) -> None:
        return None

    @property
    def dims(self) -> None:
        return None

    def is_fully_defined(self) -> bool:
        return False

    def num_elements(self) -> None:
        return None

    def is_compatible_with(self, other: Any) -> bool:
        return True

    def merge_with(self, other: Any) -> TensorShape:
        return TensorShape(other)

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        return self

    def concatenate(self, other: Any) -> TensorShape:
        return self

    def __radd__(self, other: Any) -> TensorShape:
        return self

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is self

    __hash__ = tuple.__hash__

    def __reduce__(self) -> Any:
        return TensorShape, (None,)

    def __repr__(self) -> str:
        return "TensorShape(None)"

    def __str__(self) -> str:
        return "<unknown>"


UNKNOWN: TensorShape = tuple.__new__(UnknownShape)
