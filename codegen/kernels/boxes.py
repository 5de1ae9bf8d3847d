"""Loop nests with pads: the domain is cut at the edges of the padded operands, and each box is a loop nest of its own.

Within a box it is known for every pad whether its operand or the constant around it is read, so no box needs tests or masks. The largest
box comes first and may run on all cores; the others are usually narrow borders. Reductions accumulate from box to box in the memory of
their outputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from adjit.ir.types import Shape

from ..llvm import memory
from ..llvm.memory import Access
from .nest import Reduction, fill_identity
from .parallel import emit_nest

if TYPE_CHECKING:
    from .kernels import Kernel, Parts


class Border(NamedTuple):
    """A pad: the box of the domain that its operand occupies, and the index of that operand among the inputs, if it is in memory."""

    low: Shape
    shape: Shape
    input: int | None


class Box(NamedTuple):
    start: Shape
    shape: Shape

    def inside(self, border: Border) -> bool:
        return all(low <= at < low + n for low, n, at in zip(border.low, border.shape, self.start, strict=True))


def boxes(domain: Shape, borders: Sequence[Border]) -> list[Box]:
    """Split the domain into boxes that no border crosses, the largest first."""
    if not borders:
        return [Box((0,) * len(domain), domain)]
    spans: list[list[tuple[int, int]]] = []
    for axis, n in enumerate(domain):
        ends = {0, n, *(at for b in borders for at in (b.low[axis], b.low[axis] + b.shape[axis]))}
        spans.append([(start, stop - start) for start, stop in itertools.pairwise(sorted(ends))])
    cut = [Box(*map(tuple, zip(*sides, strict=True))) for sides in itertools.product(*spans)]
    return sorted(cut, key=lambda box: -math.prod(box.shape))


def emit_boxes(kernel: Kernel, parts: Parts) -> None:
    cut = boxes(parts.domain, parts.borders)
    reductions = list(_started(kernel, parts, cut))
    for box in cut:
        outside = frozenset(k for k, border in enumerate(parts.borders) if not box.inside(border))
        emit_nest(
            kernel,
            box.shape,
            _inputs(kernel, parts, box, outside),
            [_moved(kernel, a, box.start) for a in parts.outputs],
            [replace(r, output=_moved(kernel, r.output, box.start)) for r in reductions],
            partial(parts.body, outside=outside),
            parts.ops,
            parts.indexed,
            parts.aliased,
        )
        reductions = [replace(r, adding=True) for r in reductions]


def _started(kernel: Kernel, parts: Parts, cut: Sequence[Box]) -> Iterator[Reduction]:
    """Start reductions from the identity if no single box covers all of their results, otherwise from the first box."""
    for r in parts.reductions:
        if any(box.shape[axis] != n for box in cut for axis, n in enumerate(parts.domain) if axis not in r.axes):
            fill_identity(kernel.text, kernel.vector_bytes, parts.domain, r)
            r = replace(r, adding=True)
        yield r


def _inputs(kernel: Kernel, parts: Parts, box: Box, outside: frozenset[int]) -> list[Access]:
    inputs = [_moved(kernel, a, box.start) for a in parts.inputs]
    for k, border in enumerate(parts.borders):
        if border.input is None:
            continue
        source = parts.inputs[border.input]
        if k in outside:  # never read; zero strides keep the address valid
            inputs[border.input] = source._replace(strides=(0,) * len(source.strides))
        else:
            start = tuple(at - low for at, low in zip(box.start, border.low, strict=True))
            inputs[border.input] = _moved(kernel, source, start)
    return inputs


def _moved(kernel: Kernel, access: Access, start: Shape) -> Access:
    """The same buffer starting at another element, through a pointer that is also passed to the threads."""
    offset = sum(at * stride for at, stride in zip(start, access.strides, strict=True))
    return access._replace(pointer=kernel.shifted(access.pointer, memory.memory_type(access.dtype), offset))
