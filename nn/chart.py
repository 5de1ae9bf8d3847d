"""Curves as an SVG image, without other packages: axes, ticks, lines and a legend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 460, 300  # of one chart
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 42  # margins
COLORS = ("#1f6fb2", "#d1582b", "#3a8f4d", "#8757a8", "#b08900", "#5f6b76")


def svg(groups: Mapping[str, Mapping[str, Sequence[float]]], epochs: Sequence[int]) -> str:
    """One chart per group, side by side; `groups` maps each title to its curves by name."""
    width = WIDTH * len(groups)
    drawn = [_chart(title, curves, epochs) for title, curves in groups.items()]
    charts = [f'<g transform="translate({k * WIDTH},0)">{chart}</g>' for k, chart in enumerate(drawn)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}"'
    return f'{head} font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(charts)}</svg>\n'


def _chart(title: str, curves: Mapping[str, Sequence[float]], epochs: Sequence[int]) -> str:
    values = [v for curve in curves.values() for v in curve if math.isfinite(v)]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    logarithmic = low > 0 and high / low > 30
    scale = math.log10 if logarithmic else float
    bottom, top = scale(low), scale(high)
    if top == bottom:
        bottom, top = bottom - 0.5, top + 0.5
    first, last = (epochs[0], epochs[-1]) if epochs else (0, 1)

    def x(epoch: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((epoch - first) / (last - first) if last > first else 0.5)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (top - value) / (top - bottom)

    parts = [f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{escape(title)}{" (log)" if logarithmic else ""}</text>']
    for tick in _ticks(bottom, top):
        label = f"{10**tick:.3g}" if logarithmic else f"{tick:.4g}"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#e3e3e3"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{label}</text>')
    below = HEIGHT - BOTTOM + 18
    parts += [f'<text x="{x(tick):.1f}" y="{below}" text-anchor="middle">{tick:g}</text>' for tick in _ticks(first, last, whole=True)]
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">epoch</text>')
    parts.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#444"/>')
    for k, (name, curve) in enumerate(curves.items()):
        color = COLORS[k % len(COLORS)]
        points = " ".join(f"{x(e):.1f},{y(scale(v)):.1f}" for e, v in zip(epochs, curve, strict=False) if math.isfinite(v))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        at = TOP + 14 + 16 * k
        parts.append(f'<line x1="{WIDTH - 128}" x2="{WIDTH - 108}" y1="{at - 4}" y2="{at - 4}" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - 102}" y="{at}">{escape(name)}</text>')
    return "".join(parts)


def _ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """Four to nine round numbers between the ends."""
    step = 10.0 ** math.floor(math.log10((high - low) or 1.0))
    for factor in (1.0, 0.5, 0.2) if (high - low) / step < 8 else (2.0, 1.0):
        if (high - low) / (step * factor) >= 3:
            step *= factor
            break
    if whole:
        step = max(1.0, round(step))
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
