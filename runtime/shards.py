"""The number of the part of a batch that is being computed. Random layers mix it into their keys, so that parts do not share masks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from adjit.ir.operand import Operand


class Current(threading.local):
    number: Operand | None = None


_current = Current()


def shard_number() -> Operand | None:
    """The number of the part among all parts of all ranks, or None outside of data-parallel functions."""
    return _current.number


@contextmanager
def computing(number: Operand) -> Iterator[None]:
    before, _current.number = _current.number, number
    try:
        yield
    finally:
        _current.number = before
