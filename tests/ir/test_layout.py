"""Layouts against NumPy's strides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.layout import Layout, merged

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def check(layout: Layout, array: Any, base: Any) -> None:
    """The layout walks `base` as NumPy's view of it does; strides of axes that are never walked are free."""
    assert len(layout.strides) == array.ndim
    if array.size == 0:
        return
    at = (array.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    assert layout.offset == at
    for size, ours, theirs in zip(array.shape, layout.strides, array.strides, strict=True):
        assert size == 1 or ours * base.itemsize == theirs


@st.composite
def views(draw: st.DrawFn) -> tuple[Layout, Any, Any]:
    """A layout and NumPy's view after the same random steps, with the array they look into."""
    shape = draw(shapes)
    base = np.arange(math.prod(shape), dtype="i8").reshape(shape)
    layout, view = Layout.contiguous(shape), base
    for step in draw(st.lists(st.sampled_from(["permute", "slice", "flip", "broadcast"]), max_size=3)):
        rank = view.ndim
        if step == "permute":
            axes = draw(st.permutations(range(rank)))
            layout, view = layout.permuted(axes), view.transpose(axes)
        elif step == "slice":
            starts = [draw(st.integers(0, max(0, n - 1))) for n in view.shape]
            steps = [draw(st.integers(1, 3)) for _ in view.shape]
            layout = layout.sliced(starts, steps)
            view = view[(*(slice(b, None, k) for b, k in zip(starts, steps, strict=True)), ...)]
        elif step == "flip" and rank:
            axes = draw(st.lists(st.integers(0, rank - 1), unique=True))
            layout, view = layout.flipped(axes, view.shape), np.flip(view, axes)
        elif rank < 5:
            target = (2, *(draw(st.integers(2, 3)) if n == 1 else n for n in view.shape))
            layout, view = layout.broadcast(view.shape, target), np.broadcast_to(view, target)
    return layout, view, base


@given(views())
def test_steps(case: tuple[Layout, Any, Any]) -> None:
    layout, view, base = case
    check(layout, view, base)
    assert layout.is_contiguous(view.shape) == view.flags.c_contiguous


@st.composite
def factorings(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A random shape of so many elements."""
    out = []
    while size != 1 and draw(st.booleans()):
        factor = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0])) if size else draw(st.integers(0, 2))
        out.append(factor)
        size = size // factor if factor else 1
    return tuple(draw(st.permutations([*out, size])))


@given(views(), st.data())
def test_reshape_is_a_view_exactly_where_numpy_has_one(case: tuple[Layout, Any, Any], data: st.DataObject) -> None:
    layout, view, base = case
    target = data.draw(factorings(view.size))
    again = view.reshape(target)
    ours = layout.reshaped(view.shape, target)
    if view.size == 0:
        assert ours is not None
        assert len(ours.strides) == len(target)
    elif np.may_share_memory(again, base):
        assert ours is not None
        check(ours, again, base)
    else:
        assert ours is None


@given(views())
def test_merging_axes_keeps_the_walk(case: tuple[Layout, Any, Any]) -> None:
    layout, view, base = case
    if view.size:
        groups = merged(view.shape, layout.strides)
        items = [base.reshape(-1)[layout.offset + i] for i in walk(groups)]
        assert items == view.reshape(-1).tolist()
        assert all(n != 1 for n, _ in groups)


def walk(groups: list[tuple[int, int]]) -> list[int]:
    offsets = [0]
    for size, stride in groups:
        offsets = [o + i * stride for o in offsets for i in range(size)]
    return offsets


def test_contiguity_ignores_axes_of_size_one_and_empty_arrays() -> None:
    assert Layout(7, (99, 3, 1)).is_contiguous((1, 2, 3))
    assert Layout(0, (5, 5)).is_contiguous((0, 2))
    assert not Layout(0, (1, 2)).is_contiguous((2, 2))
    assert Layout(3, ()).is_contiguous(())
