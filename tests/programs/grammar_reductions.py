"""Reductions, scans and orderings along any axes, also empty ones."""

from __future__ import annotations

from typing import Any

from tests.programs.draw import Draw, Rule
from tests.programs.program import Node


def axes(d: Draw, rank: int) -> Any:
    if not rank or d.chance(0.3):
        return None
    if d.chance(0.7):
        return d.random.randrange(-rank, rank)
    return tuple(a for a in range(rank) if d.chance(0.6))


def reduced(d: Draw) -> Node | None:
    x = d.array("fiub")
    if x is None:
        return None
    axis, kind = axes(d, len(d.shape(x))), d.dtype(x).kind
    more = f"axis={axis}" + d.choice(["", "", ", keepdims=True"])
    single = axis if not isinstance(axis, tuple) else None
    along = f"axis={single}"
    forms = [
        f"np.sum({x}, {more})", f"np.sum({x}, {more})", f"{x}.sum({along})", f"np.mean({x}, {more})", f"np.prod({x} * 1, {more})",
        f"np.any({x} > 1, {more})",
        f"np.all({x} < 1, {more})", f"np.count_nonzero({x} > 1, {along})", f"np.sum({x}, {more}, dtype='f8')", f"np.sum({x} > 0.5, {more})",
        f"np.sum({x}, {more}, where={x} > 0.25)", f"np.sum({x}, {along}, initial=2)", f"np.mean({x} > 0.5, {along})",
        f"np.average({x}, {along})",
        f"np.prod({x}, {more}, initial=2)",
    ]  # fmt: skip
    guards = [f"apart({x}, 0.25)", f"apart({x}, 0.5)", f"apart({x}, 1.0)"]
    if kind == "f":
        forms += [f"np.var({x}, {along})", f"np.std({x} * {x} + np.arange({x}.size).reshape({x}.shape), {along})",
                  f"np.sqrt(np.sum({x} * {x}, {more}) + 0.1)", f"np.linalg.norm({x} + 3.0, {along})",
                  f"np.nansum({x}, {along})"]  # fmt: skip
    return d.assign(d.choice(forms), *guards)


def extreme(d: Draw) -> Node | None:
    x = d.array("fiu")
    if x is None:
        return None
    rank = len(d.shape(x))
    axis = axes(d, rank)
    axis = None if isinstance(axis, tuple) else axis
    name = d.choice(["max", "min", "amax", "amin"])
    initial = d.choice([-2, 2, 25]) if d.dtype(x).kind != "u" else 3
    forms = [f"np.{name}({x}, axis={axis})", f"np.{name}({x}, axis={axis}, keepdims=True)",
             f"np.{name}({x}, axis={axis}, initial={initial})",
             f"np.ptp({x}, axis={axis})", f"np.argmax({x}, axis={axis})", f"np.argmin({x}, axis={axis})", f"{x}.max()",
             f"np.max({x}, axis={axis}, initial={initial}, where={x} > 0.5)"]  # fmt: skip
    guards = [f"distinct({x}, {axis})", f"apart({x}, {initial}.0)", f"apart({x}, 0.5)"] if d.dtype(x).kind == "f" else []
    return d.assign(d.choice(forms), *guards)


def scanned(d: Draw) -> Node | None:
    x = d.array("fiub", least=1)
    if x is None:
        return None
    axis = d.random.randrange(-len(d.shape(x)), len(d.shape(x)))
    forms = [f"np.cumsum({x}, axis={axis})", f"np.cumsum({x})", f"np.cumprod(np.tanh({x} * 1.0) + 1.2, axis={axis})", f"{x}.cumsum({axis})",
             f"np.cumprod({x}, axis={axis})", f"np.cumsum({x}, axis={axis}, dtype='f8')",
             f"np.cumsum({x}[::-1], axis=0)[::-1]"]  # fmt: skip
    return d.assign(d.choice(forms))


def ordered(d: Draw) -> Node | None:
    x = d.array("f" if d.chance(0.7) else "iu", least=1)
    if x is None:
        return None
    axis = d.random.randrange(-len(d.shape(x)), len(d.shape(x)))
    forms = [f"np.sort({x}, axis={axis})", f"np.argsort({x}, axis={axis}, kind='stable')", f"np.median({x}, axis={axis})",
             f"np.sort({x}, axis=None)",
             f"np.take_along_axis({x}, np.argsort({x}, axis={axis}, kind='stable'), axis={axis})", f"np.quantile({x}, 0.3, axis={axis})",
             f"np.searchsorted(np.array([-1.0, 0.0, 0.5, 2.0]), {x})", f"np.sort({x}, axis={axis})[..., ::-1]"]  # fmt: skip
    text = d.choice(forms)
    guards = [f"distinct({x})" if "None" in text else f"distinct({x}, {axis})"] if d.dtype(x).kind == "f" else []
    if "median" in text or "quantile" in text:
        guards.append(f"{x}.size > 0")
    return d.assign(text, *guards, *(f"apart({x}, {t})" for t in (-1.0, 0.0, 0.5, 2.0)))


def spread(d: Draw) -> Node | None:
    """A reduction that is combined with its operand."""
    x = d.array("f", least=1)
    if x is None:
        return None
    axis = d.random.randrange(-len(d.shape(x)), len(d.shape(x)))
    forms = [f"aj.softmax({x}, axis={axis})", f"{x} - np.mean({x}, axis={axis}, keepdims=True)", f"{x} / np.sqrt(np.sum({x} * {x}) + 1)",
             f"{x} / (1 + np.max({x} * {x}, axis={axis}, keepdims=True))", f"{x} * np.sum({x}, axis={axis}, keepdims=True)",
             f"np.cumsum({x}, axis={axis}) - np.sum({x}, axis={axis}, keepdims=True)"]  # fmt: skip
    return d.assign(d.choice(forms), f"distinct({x} * {x}, {axis})")


def neighbouring(d: Draw) -> Node | None:
    """Operations on adjacent elements along an axis: moving sums, slopes, lines through points, counts."""
    x = d.array("f", least=1)
    if x is None:
        return None
    knots, flat = "np.array([-1.0, 0.25, 2.0])", f"np.ravel({x})"
    forms = [f"np.convolve({flat}, np.array([0.5, 1.0, -0.25]), '{d.choice(['full', 'same', 'valid'])}')",
             f"np.correlate(np.cos(np.arange(3.0)), {flat}, '{d.choice(['full', 'same', 'valid'])}')", f"np.gradient({x}, axis=-1)",
             f"np.interp({x}, {knots}, np.array([0.5, -1.0, 1.0]))", f"np.interp(0.5, np.arange({x}.size), {flat})",
             f"np.bincount(np.arange({x}.size) % 3, {flat}, 4)", f"np.cov(np.atleast_2d({x}))", f"np.polyval({flat}[:4], 0.5)"]  # fmt: skip
    return d.assign(d.choice(forms), *(f"apart({x}, {t})" for t in (-1.0, 0.25, 2.0)))


RULES: list[Rule] = [(6, reduced), (3, extreme), (3, scanned), (2, ordered), (2, spread), (1, neighbouring)]
