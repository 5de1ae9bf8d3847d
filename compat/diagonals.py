"""Diagonals of matrices: building a matrix from them, reading and replacing them; one (`k=1`), or those of a band (`k=(-1, 1)`).

The diagonals of a band are rows of one array, as long as the longest; `align` selects the side on which the shorter ones are padded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.tracer.surface import indexing

from .errors import InvalidShape
from .tensor import convert_to_tensor, dress
from .wrapping import public

ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


class Band(NamedTuple):
    """The diagonals from `lowest` to `highest` of matrices of this size."""

    lowest: int
    highest: int
    rows: int
    columns: int
    align: str
    is_one: bool  # one diagonal, which is not a row of an array

    @property
    def length(self) -> int:
        """The length of the longest diagonal."""
        return min(self.rows + min(self.highest, 0), self.columns - max(self.lowest, 0))

    def elements(self) -> Iterator[tuple[int, int, int, int]]:
        """The elements: diagonal, position in its row of the array, row and column in the matrix."""
        above, below = self.align.split("_")
        for number, offset in enumerate(range(self.highest, self.lowest - 1, -1)):
            count = min(self.rows + min(offset, 0), self.columns - max(offset, 0))
            left = (offset >= 0 and above == "LEFT") or (offset <= 0 and below == "LEFT")
            start = 0 if left else self.length - count
            for i in range(count):
                yield number, start + i, i - min(offset, 0), i + max(offset, 0)

    def places(self) -> tuple[Any, Any]:
        """For each element of a matrix its index among those of the diagonals, or -1; and the inverse."""
        count = self.highest - self.lowest + 1
        inward, outward = np.full((self.rows, self.columns), -1), np.full((count, self.length), -1)
        for number, position, row, column in self.elements():
            inward[row, column] = number * self.length + position
            outward[number, position] = row * self.columns + column
        return inward, outward[0] if self.is_one else outward


def band(what: str, k: Any, rows: int, columns: int, align: str) -> Band:
    lowest, highest = bounds(what, k, align)
    if not -rows < lowest <= highest < columns and not (rows == 0 or columns == 0):
        raise InvalidShape(f"{what}: k={k} is out of range for matrices of {rows} x {columns}")
    return Band(lowest, highest, rows, columns, align, lowest == highest)


def bounds(what: str, k: Any, align: str) -> tuple[int, int]:
    if align not in ALIGNMENTS:
        raise ValueError(f"{what}: align is one of {', '.join(ALIGNMENTS)}, not {align!r}")
    both = np.asarray(convert_to_tensor(k).numpy()).reshape(-1).tolist()
    if len(both) not in (1, 2) or both[0] > both[-1]:
        raise InvalidShape(f"{what}: k is a diagonal, or the lowest and the highest of a band, not {k}")
    return int(both[0]), int(both[-1])


def rearranged(x: Operand, axes: int, places: Any, otherwise: Any) -> Any:
    """The elements of the last axes at the given indices, and `otherwise` where the index is -1."""
    lead = x.type.shape[: len(x.type.shape) - axes]
    flat = ops.reshape(x, (*lead, int(np.prod(x.type.shape[len(lead) :]))))
    found = indexing.take(flat, np.maximum(places, 0).reshape(-1), axis=-1)
    found = ops.reshape(found, (*lead, *places.shape))
    if (places >= 0).all():
        return dress(found)
    return dress(ops.where(convert_to_tensor(places >= 0), found, convert_to_tensor(otherwise, dtype_hint=dress(x).dtype)))


@public
def diag(
    diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Any:
    """Matrices with the last axis on a diagonal, or with the rows of the last two axes on those of a band."""
    x = convert_to_tensor(diagonal)
    lowest, highest = bounds("MatrixDiag", k, align)
    axes = 1 if lowest == highest else 2
    if len(x.type.shape) < axes:
        raise InvalidShape(f"MatrixDiag: {x.shape} has fewer than {axes} axes")
    if axes == 2 and x.type.shape[-2] != highest - lowest + 1:
        raise InvalidShape(f"MatrixDiag: {x.shape} has no row for each of the diagonals from {lowest} to {highest}")
    length, rows, columns = x.type.shape[-1], int(num_rows), int(num_cols)
    least = length - min(highest, 0), length + max(lowest, 0)
    if rows == columns == -1:
        rows = columns = max(least)
    rows, columns = least[0] if rows == -1 else rows, least[1] if columns == -1 else columns
    place = band("MatrixDiag", k, rows, columns, align)
    if place.length != length:
        raise InvalidShape(f"MatrixDiag: {length} elements do not fit the diagonals of matrices of {rows} x {columns}")
    return rearranged(x, axes, place.places()[0], padding_value)


@public
def diag_part(input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """A diagonal of matrices, or those of a band as rows, padded at their ends."""
    x = matrices("MatrixDiagPart", input)
    return rearranged(x, 2, band("MatrixDiagPart", k, x.type.shape[-2], x.type.shape[-1], align).places()[1], padding_value)


@public
def set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """Matrices with other values on a diagonal, or on those of a band."""
    x = matrices("MatrixSetDiag", input)
    values = convert_to_tensor(diagonal, dtype_hint=x.dtype)
    place = band("MatrixSetDiag", k, x.type.shape[-2], x.type.shape[-1], align)
    wanted = (*x.type.shape[:-2], *(() if place.is_one else (place.highest - place.lowest + 1,)), place.length)
    if values.type.shape != wanted:
        raise InvalidShape(f"MatrixSetDiag: the diagonal must have shape {wanted}, not {values.shape}")
    return rearranged(values, 1 if place.is_one else 2, place.places()[0], x)


def matrices(what: str, input: Any) -> Any:
    x = convert_to_tensor(input)
    if len(x.type.shape) < 2:
        raise InvalidShape(f"{what}: {x.shape} has fewer than 2 axes")
    return x
