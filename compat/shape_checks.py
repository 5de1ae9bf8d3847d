"""tf.debugging.assert_shapes: sizes by number and by name, checked as soon as the tensors exist, since their shapes are known then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .tensor import convert_to_tensor

ANY_SIZE = (None, ".")
ANY_RANK = (..., "...", "*")


def assert_shapes(shapes: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None) -> None:
    """Check that sizes given by number match, and that sizes with the same name are equal.

    `[(x, ("n", 3)), (y, "n")]`: a shape is a sequence of numbers, names, and None or "." for any size. With `...` or "*" in front there
    may be any further axes; a shape of None is not checked. A scalar is an array of one number.

    >>> x, y = convert_to_tensor([[1.0, 2.0]]), convert_to_tensor([3.0])
    >>> assert_shapes([(x, ("n", 2)), (y, "n")])
    """
    first: dict[Any, tuple[int, str]] = {}  # a name's size, and where it comes from
    for number, (x, wanted) in enumerate(shapes.items() if isinstance(shapes, dict) else shapes):
        if wanted is not None:
            check(f"{message}.  " if message else "", f"{number}", convert_to_tensor(x).type.shape, as_symbols(number, wanted), first)


def as_symbols(number: int, wanted: Any) -> list[Any]:
    if not isinstance(wanted, Iterable) and not hasattr(wanted, "__getitem__"):
        raise ValueError(
            f"Tensor {number}.  Specified shape must be an iterable.  An iterable has the attribute `__iter__` or `__getitem__`.  "
            f"Received specified shape: {wanted!r}"
        )
    return [int(s) if isinstance(s, str) and s.isdigit() else s for s in wanted] or [1]


def check(prefix: str, number: str, shape: tuple[int, ...], symbols: list[Any], first: dict[Any, tuple[int, str]]) -> None:
    open_rank = any(symbols[0] is s or symbols[0] == s for s in ANY_RANK)
    inner = symbols[1:] if open_rank else symbols
    for at, symbol in enumerate(inner):
        if symbol is ... or symbol in ANY_RANK:
            raise ValueError(
                f"{prefix}Tensor {number} specified shape index {at + open_rank}.  Symbol `...` or `*` for a variable number of "
                "unspecified dimensions is only allowed as the first entry"
            )
    sizes = shape or (1,)
    if len(sizes) < len(inner) or (len(sizes) > len(inner) and not open_rank):
        raise ValueError(f"{prefix}Tensor {number} must have rank {len(inner)}.  Received rank {len(shape)}, shape {shape}")
    for at, (symbol, size) in enumerate(zip(inner, sizes[len(sizes) - len(inner) :], strict=True)):
        place = f"dimension {at - len(inner) if open_rank else at}"
        if symbol in ANY_SIZE:
            continue
        source = "Specified explicitly."
        known = symbol
        if not isinstance(symbol, int):
            known, source = first.setdefault(symbol, (size, f"Specified by tensor {number} {place}."))
        if known != size:
            raise ValueError(f"{prefix}{source}  Tensor {number} {place} must have size {known}.  Received size {size}, shape {shape}")
