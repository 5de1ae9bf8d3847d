"""The transpose of a function that is linear, found by recording it: how eager tapes turn a forward rule of the user's into a backward one,
and a backward rule into a forward one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adjit.ir.errors import GradientError
from adjit.ir.operand import Operand
from adjit.passes.rewrite import operands_read

from .internal import backpropagate
from .record import EagerRecord, Record, new_record
from .recording import join, leave
from .tensor import wrap


def transposed(
    function: Callable[[list[Operand]], Sequence[Operand | None]], inputs: Sequence[Operand], seeds: Sequence[Operand | None], refusal: str
) -> list[Operand | None]:
    """For each of the inputs (of which the types count alone) of a linear function, the cotangent by `seeds` of its results.

    Zeros stand for the inputs: that of a linear function depends on no values of them. Raises GradientError(refusal) if it does.
    """
    places: list[Operand] = [wrap(np.zeros(x.type.shape, x.type.dtype)) for x in inputs]
    record = new_record(watch_accessed=False, strict=True)
    record.start()
    join(record)
    try:
        for place in places:
            record.watch(place)
        found = function(places)
        pairs = [(record.resolve(y), c) for y, c in zip(found, seeds, strict=True) if y is not None and c is not None]
        sources = [record.resolve(place) for place in places]
        out = backpropagate(record.statements(), [y for y, _ in pairs], [c for _, c in pairs], sources)
    finally:
        leave(record)
        record.stop()
    dependent = depending(record, sources)
    if any(d is not None and id(d) in dependent for d in out):
        raise GradientError(refusal)
    return out


def depending(record: Record, sources: Sequence[Operand]) -> set[int]:
    """Ids of all that was computed from the sources, differentiably or not."""
    if isinstance(record, EagerRecord):
        return {*record.watched, *record.lost}
    known = set(map(id, sources))
    for stmt in record.everything():
        if any(id(x) in known for x in operands_read(stmt)):
            known.update(map(id, stmt.results))
    return known
