"""Training history: a list of values for each metric, and their curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .chart import svg
from .shown import Shown

__all__ = ["History", "text_plot"]

MARKS = "*o+x#@"


class History:
    """Values by name, one per epoch: `history["val_loss"][-1]`; `print(history.plot())` draws them.

    >>> trainer = aj.nn.Trainer(aj.nn.Dense(1), "mse", "sgd")
    >>> history = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=3, verbose=0)
    >>> len(history["loss"])
    3
    """

    def __init__(self) -> None:
        self.epoch: list[int] = []
        self.history: dict[str, list[float]] = {}

    def append(self, epoch: int, logs: Mapping[str, float]) -> None:
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(float(value))

    def __getitem__(self, name: str) -> list[float]:
        if name not in self.history:
            raise KeyError(f"there is no {name!r} in this history; it has {', '.join(self.history) or 'no values yet'}")
        return self.history[name]

    def __contains__(self, name: str) -> bool:
        return name in self.history

    def __repr__(self) -> str:
        last = ", ".join(f"{name} {values[-1]:.4g}" for name, values in self.history.items() if values)
        return f"<history of {len(self.epoch)} epochs{': ' if last else ''}{last}>"

    def _repr_html_(self) -> str:
        """In notebooks: the curves."""
        return self.plot()._repr_html_() if self.history else escape(repr(self))  # type: ignore[attr-defined] # it is `Shown`

    def plot(self, path: Any = None, names: Sequence[str] | None = None) -> str:
        """Return the curves as text, which notebooks show as a picture; with a path, also write an image file.

        `.svg` needs no other package, other formats need matplotlib.
        """
        groups: dict[str, list[str]] = {}
        for name in names or self.history:
            groups.setdefault(name.removeprefix("val_"), []).append(name)
        drawn = "\n\n".join(text_plot({name: self[name] for name in group}) for group in groups.values())
        picture = svg({title: {name: self[name] for name in group} for title, group in groups.items()}, self.epoch)
        text: str = Shown(drawn, picture)
        if path is None:
            return text
        if str(path).endswith(".svg"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(picture)
            return text
        try:
            from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import
        except ImportError:
            return f"{text}\n(no picture at {path}: matplotlib is not installed)"
        figure = Figure(figsize=(5.0 * len(groups), 3.5), layout="constrained")
        for axes, (title, group) in zip(figure.subplots(1, len(groups), squeeze=False)[0], groups.items(), strict=True):
            for name in group:
                axes.plot(self.epoch, self[name], label=name)
            axes.set(title=title, xlabel="epoch")
            axes.legend()
        figure.savefig(path)
        return text


def text_plot(curves: Mapping[str, Sequence[float]], width: int = 64, height: int = 12) -> str:
    """Curves drawn with characters, on a logarithmic scale where they span more than two orders of magnitude."""
    values = [v for curve in curves.values() for v in curve if math.isfinite(v)]
    if not values:
        return f"{', '.join(curves)}: nothing to plot"
    low, high = min(values), max(values)
    logarithmic = low > 0 and high / low > 100
    scale = math.log10 if logarithmic else float
    bottom, top = scale(low), scale(high)
    span = (top - bottom) or 1.0
    grid = [[" "] * width for _ in range(height)]
    for mark, curve in zip(MARKS * (1 + len(curves) // len(MARKS)), curves.values(), strict=False):
        for column in range(width):
            value = curve[round(column * (len(curve) - 1) / (width - 1))]
            if math.isfinite(value):
                grid[height - 1 - round((scale(value) - bottom) / span * (height - 1))][column] = mark
    lines = []
    for row, line in enumerate(grid):
        at = top - span * row / (height - 1)
        lines.append(f"{10.0**at if logarithmic else at:10.4g} |{''.join(line)}")
    legend = "   ".join(f"{mark} {name}" for mark, name in zip(MARKS * 4, curves, strict=False))
    return "\n".join([*lines, " " * 11 + "+" + "-" * width, f"{' ' * 12}{legend}"])
