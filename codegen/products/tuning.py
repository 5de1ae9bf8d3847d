"""Which products OpenBLAS computes: by what `python -m adjit.tune` has measured on this machine, kept beside the compiled code.

    ADJIT_BLAS=own, openblas     overrides the table, for every product that OpenBLAS can read

Without a table all products are our own. A table is read as object code is (see `cache.py`): of this user, with a checksum, or not at
all. It holds times of both for a grid of shapes; for a shape between them the logarithm of their ratio is interpolated, and OpenBLAS must
win by MARGIN: our own routine goes on with what follows a product while that is in the cache, and takes any strides.
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

FORMAT = "1"  # of tables, and of what they measured: a new number makes all of them misses
MARGIN = 0.05
FAR = 3.0  # doublings: a shape further from everything measured is our own
CHOICES = ("own", "openblas")


class Measured(NamedTuple):
    """Seconds that one product took; `layout` says whether each factor is plain (n) or transposed (t)."""

    dtype: str
    layout: str
    threads: int
    m: int
    n: int
    k: int
    own: float
    blas: float


class Table(NamedTuple):
    library: str  # that was measured
    rows: tuple[Measured, ...]


def takes_blas(target: Target, dtype: str, layout: str, threads: int, m: int, n: int, k: int) -> bool:
    """Whether OpenBLAS is the one for this product."""
    wanted = _wanted()
    if wanted in CHOICES:
        return wanted == "openblas" and blas.find() is not None
    table = load(target)
    if table is None or predicted(table.rows, dtype, layout, threads, m, n, k) <= math.log(1 + MARGIN):
        return False
    found = blas.find()
    return found is not None and found.source == table.library


def settings(target: Target) -> str:
    """All that decides who computes a product: part of the name of a program on the disk."""
    return _wanted() or repr(load(target))


def _wanted() -> str:
    return _forced[-1] if _forced else value("ADJIT_BLAS")


def predicted(rows: Sequence[Measured], dtype: str, layout: str, threads: int, m: int, n: int, k: int) -> float:
    """The logarithm of our time over OpenBLAS's: of the shapes that were measured, the nearer the more; 0 where nothing is known."""
    like = [r for r in rows if (r.dtype, r.layout, r.threads > 1) == (dtype, layout, threads > 1)]
    near = [(math.dist([math.log2(x) for x in (m, n, k)], [math.log2(x) for x in (r.m, r.n, r.k)]), r) for r in like]
    if not near or min(near)[0] > FAR:
        return 0.0
    weights = [(1.0 / (1e-6 + distance) ** 4, math.log(r.own / r.blas)) for distance, r in near]
    return sum(w * gain for w, gain in weights) / sum(w for w, _ in weights)


# ---- the table on disk


def load(target: Target) -> Table | None:
    """The table of a machine; None where there is none that can be trusted."""
    path = cache.directory()
    return None if path is None else _read(path, _key(target))


def save(table: Table, target: Target) -> bool:
    """Keep a table; says whether the disk took it."""
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


# ---- one of them for everything, while they are compared


_forced: list[str] = []


@contextmanager
def only(choice: str) -> Iterator[None]:
    """Inside, all products that are compiled are made by one of CHOICES, where it can."""
    _forced.append(choice)
    try:
        yield
    finally:
        _forced.pop()
