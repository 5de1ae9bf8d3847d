"""Nests with pads: the domain is cut at the edges of the padded operands, and each box is a nest of its own.

Within a box it is known for every pad whether its operand or the constant around it is read, so no box needs tests or masks. The largest
box comes first and may run on all cores; the others are usually narrow borders. Reductions accumulate from box to box in the memory of
their outputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cmp_to_key
from typing import Protocol

from adjit.ir.bounds import proven_sign
from adjit.ir.errors import NotGeneral
from adjit.ir.expr import Expr, hint_of
from adjit.ir.records import NamedTuple, replace

from .chunks import Limits, add_nest
from .ir import Access, Body, LoopProgram, Reduction
from .nest import NestSpec, fill

MINOR = 16  # a box is minor if the domain is this many times as large


class Border(NamedTuple):
    """A pad: the box of the domain that its operand occupies, and the index of that operand among the inputs, if it is in memory."""

    low: tuple[Expr, ...]
    shape: tuple[Expr, ...]
    input: int | None


class Box(NamedTuple):
    start: tuple[Expr, ...]
    shape: tuple[Expr, ...]

    def inside(self, border: Border) -> bool:
        """No border crosses a box: it is inside along every axis, or outside along one. An empty box may be both."""
        sides = list(zip(border.low, border.shape, self.start, self.shape, strict=True))
        if all(_is_at_most(low, at) and _is_at_most(at + size, low + n) for low, n, at, size in sides):
            return True
        if any(_is_at_most(at + size, low) or _is_at_most(low + n, at) for low, n, at, size in sides):
            return False
        raise NotGeneral("a pad that covers other parts of its operand for other sizes")


class PaddedBody(Protocol):
    """A body with pads."""

    def outside(self, pads: frozenset[int]) -> Body:
        """The body for a box that lies outside of the operands of these pads."""
        ...


def boxes(domain: Sequence[Expr], borders: Sequence[Border]) -> list[Box]:
    """Split the domain into boxes that no border crosses, the largest first."""
    spans: list[list[tuple[Expr, Expr]]] = []
    for axis, n in enumerate(domain):
        ends = {0, n, *(at for b in borders for at in (b.low[axis], b.low[axis] + b.shape[axis]))}
        spans.append([(start, stop - start) for start, stop in itertools.pairwise(sorted(ends, key=cmp_to_key(_order)))])
    cut = [Box(*map(tuple, zip(*sides, strict=True))) for sides in itertools.product(*spans)]
    return sorted(cut, key=lambda box: -hint_of(math.prod(box.shape)))


def _order(a: Expr, b: Expr) -> int:
    """The order of two edges for all sizes. If they are equal for some sizes, the box between them is empty then."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if _is_at_most(a, b):
        return -1
    if _is_at_most(b, a):
        return 1
    raise NotGeneral(f"a pad whose edges, {a!s} and {b!s}, are ordered differently for other sizes")


def _is_at_most(a: Expr, b: Expr) -> bool:
    return proven_sign(b - a, or_zero=True) > 0


def add_boxes(program: LoopProgram, spec: NestSpec, body: PaddedBody, borders: Sequence[Border], limits: Limits) -> None:
    """Append the boxes of a nest with pads to the program of a kernel."""
    cut = boxes(spec.domain, borders)
    reductions = list(_started(program, spec, cut, limits))
    for box in cut:
        outside = frozenset(k for k, border in enumerate(borders) if not box.inside(border))
        part = NestSpec(
            box.shape,
            _inputs(spec, borders, box, outside),
            [a.moved(box.start) for a in spec.outputs],
            [replace(r, output=r.output.moved(box.start)) for r in reductions],
            body.outside(outside),
            spec.ops,
            spec.indexed,
            spec.aliased,
            frozenset(border.input for k, border in enumerate(borders) if k in outside and border.input is not None),
            minor=hint_of(math.prod(box.shape)) * MINOR <= hint_of(math.prod(spec.domain)),
        )
        add_nest(program, part, limits)
        reductions = [replace(r, adding=True) for r in reductions]


def _started(program: LoopProgram, spec: NestSpec, cut: Sequence[Box], limits: Limits) -> Iterator[Reduction]:
    """Start reductions from the identity if no single box covers all of their results, otherwise from the first box."""
    for r in spec.reductions:
        if any(box.shape[axis] != n for box in cut for axis, n in enumerate(spec.domain) if axis not in r.axes):
            program.nodes += fill(limits.vector_bytes, spec.domain, r)
            r = replace(r, adding=True)
        yield r


def _inputs(spec: NestSpec, borders: Sequence[Border], box: Box, outside: frozenset[int]) -> list[Access]:
    inputs = [a.moved(box.start) for a in spec.inputs]
    for k, border in enumerate(borders):
        if border.input is None:
            continue
        source = spec.inputs[border.input]
        if k in outside:  # not read: zero strides do not keep axes from being merged
            inputs[border.input] = source._replace(strides=(0,) * len(source.strides))
        else:
            inputs[border.input] = source.moved([at - low for at, low in zip(box.start, border.low, strict=True)])
    return inputs
