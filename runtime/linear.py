"""The transpose of a linear function, computed by recording it.

Eager tapes use it to derive a backward rule from a user's forward rule, and a forward rule from a backward one.
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
    """Return the cotangent of each input of a linear function, given the cotangents `seeds` of its results.

    Only the types of the inputs matter: the function is evaluated at zeros, since the transpose of a linear function does not depend on
    their values. Raises GradientError(refusal) if it does.
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
    """Return the ids of all values computed from the sources, differentiably or not."""
    if isinstance(record, EagerRecord):
        return {*record.watched, *record.lost}
    known = set(map(id, sources))
    for stmt in record.everything():
        if any(id(x) in known for x in operands_read(stmt)):
            known.update(map(id, stmt.results))
    return known
