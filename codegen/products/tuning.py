"""Decides which products OpenBLAS computes, from the measurements of `python -m adjit.tune`, stored next to the compiled code.

    ADJIT_BLAS=own, openblas     overrides the table, for every product that OpenBLAS supports

Without a table, all products use adjit's own routine. Tables are read like object code (see `cache/disk.py`): they must belong to this user
and match their checksum, or they are ignored. A table holds the times of both for a grid of shapes; for shapes in between, the logarithm of
their ratio is interpolated. OpenBLAS must win by MARGIN, because adjit's own routine applies the operations after a product while it is in
the cache, and takes any strides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from adjit.ir.environment import value
from adjit.ir.locks import once
from adjit.ir.target import Target

from ..cache import disk as cache
from . import blas

FORMAT = "1"  # version of tables and of what they measure: a new number invalidates all of them
MARGIN = 0.05
FAR = 3.0  # doublings: shapes further than this from every measured one use the own routine
CHOICES = ("own", "openblas")


class Measured(NamedTuple):
    """Time in seconds of one product; `layout`: whether each factor is plain (n) or transposed (t)."""

    dtype: str
    layout: str
    threads: int
    m: int
    n: int
    k: int
    own: float
    blas: float


class Table(NamedTuple):
    library: str  # name of the measured library
    rows: tuple[Measured, ...]


def takes_blas(target: Target, dtype: str, layout: str, threads: int, m: int, n: int, k: int) -> bool:
    """Whether OpenBLAS computes this product."""
    wanted = _wanted()
    if wanted in CHOICES:
        return wanted == "openblas" and blas.find() is not None
    table = load(target)
    if table is None or predicted(table.rows, dtype, layout, threads, m, n, k) <= math.log(1 + MARGIN):
        return False
    found = blas.find()
    return found is not None and found.source == table.library


def settings(target: Target) -> str:
    """Everything that determines which implementation computes a product; part of a program's key in the disk cache."""
    return _wanted() or repr(load(target))


def is_own() -> bool:
    """Whether adjit's own routines are forced."""
    return _wanted() == "own"


def _wanted() -> str:
    return _forced[-1] if _forced else value("ADJIT_BLAS")


def predicted(rows: Sequence[Measured], dtype: str, layout: str, threads: int, m: int, n: int, k: int) -> float:
    """Predicted logarithm of own time over OpenBLAS's: an average over measured shapes, weighted by proximity; 0 if nothing is known."""
    like = [r for r in rows if (r.dtype, r.layout, r.threads > 1) == (dtype, layout, threads > 1)]
    near = [(math.dist([math.log2(x) for x in (m, n, k)], [math.log2(x) for x in (r.m, r.n, r.k)]), r) for r in like]
    if not near or min(near)[0] > FAR:
        return 0.0
    weights = [(1.0 / (1e-6 + distance) ** 4, math.log(r.own / r.blas)) for distance, r in near]
    return sum(w * gain for w, gain in weights) / sum(w for w, _ in weights)


# ---- the table on disk


def load(target: Target) -> Table | None:
    """The table of a machine; None if there is none that can be trusted."""
    path = cache.directory()
    return None if path is None else _read(path, _key(target))


def save(table: Table, target: Target) -> bool:
    """Store a table; return whether that succeeded."""
    path = cache.directory()
    if path is None:
        return False
    import json  # noqa: PLC0415 - few programs need it

    cache.store(path, _key(target), json.dumps([table.library, table.rows]).encode())
    _read.forget()
    return load(target) == table


@once
def _read(path: str, key: bytes) -> Table | None:
    content = cache.load(path, key)
    if content is None:
        return None
    import json  # noqa: PLC0415 - as in `save`

    try:
        library, rows = json.loads(content)
        table = Table(str(library), tuple(Measured(*row) for row in rows))
    except (ValueError, TypeError):
        return None
    return table if all(min(r.m, r.n, r.k, r.own, r.blas) > 0 for r in table.rows) else None


def _key(target: Target) -> bytes:
    return cache.key("products", FORMAT, *target.with_threads(1).settings)


# ---- forced choice, for comparisons


_forced: list[str] = []


@contextmanager
def only(choice: str) -> Iterator[None]:
    """While active, all products that are compiled use this one of CHOICES, where possible."""
    _forced.append(choice)
    try:
        yield
    finally:
        _forced.pop()
